"""JSON by a declared shape: what fits is built, everything else is refused with its place."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

import pytest

from marginbn import files
from marginbn.exceptions import FormatError, InputError
from marginbn.files import Count, MisfitError, Shape, decode, naming_file, read_bytes, shorten


class Colour(StrEnum):
    """Something to choose."""

    RED = "red"
    BLUE = "blue"


class Point(Shape, frozen=True):
    """One of everything that a shape can have."""

    name: str
    where: tuple[float, float]
    counts: tuple[Count, ...]
    colour: Colour
    side: Literal["left", "right"]
    seen: bool
    weight: float | Literal["inf"] | None
    notes: dict[str, int]
    rest: Any

    def __post_init__(self) -> None:
        if self.name == "nobody":
            raise ValueError("name must be somebody's")


GOOD = {
    "name": "p", "where": [1, 2.5], "counts": [0, 3], "colour": "red", "side": "left",
    "seen": True, "weight": "inf", "notes": {"x": -1}, "rest": [None, {}],
}  # fmt: skip


def read(data: object) -> Point:
    return decode(json.dumps(data).encode(), Point)


def test_a_shape_reads_what_it_declares() -> None:
    """Every kind of field, with the types that are declared."""
    found = read(GOOD)
    assert found == Point(
        "p", (1.0, 2.5), (0, 3), Colour.RED, "left", True, "inf", {"x": -1}, [None, {}]
    )
    assert isinstance(found.where[0], float)
    assert read({**GOOD, "weight": None}).weight is None


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("name", None, r"\.name: Expected `str`, got `null`"),
        ("name", "nobody", r": name must be somebody's"),
        ("where", [1], r"\.where: Expected `array` of length 2"),
        ("where", [1, "b"], r"\.where\[1\]: Expected `float`, got `str`"),
        ("where", "ab", r"\.where: Expected `array`, got `str`"),
        ("counts", [0, -1], r"\.counts\[1\]: Expected `int` >= 0"),
        ("counts", [2**63], r"\.counts\[0\]: Expected `int` <= 9223372036854775807"),
        ("counts", [1.0], r"\.counts\[0\]: Expected `int`, got `float`"),
        ("counts", [True], r"\.counts\[0\]: Expected `int`, got `bool`"),
        ("colour", "green", r"\.colour: Invalid enum value 'green'"),
        ("side", "up", r"\.side: Invalid enum value 'up'"),
        ("seen", 1, r"\.seen: Expected `bool`, got `int`"),
        ("weight", "x", r"\.weight: Invalid enum value 'x'"),
        ("weight", 10**400, r"\.weight: Number out of range"),
        ("notes", [], r"\.notes: Expected `object`, got `array`"),
        ("notes", {"x": 1.5}, r"\.notes\[\.\.\.\]: Expected `int`, got `float`"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(key: str, value: object, reason: str) -> None:
    """The message has the place, what must be there and what is."""
    with pytest.raises(MisfitError, match=rf"^\${reason}"):
        read({**GOOD, key: value})


def test_records_have_exactly_their_keys() -> None:
    """Neither less nor more."""
    with pytest.raises(MisfitError, match=r"^\$: Object missing required field `seen`"):
        read({key: value for key, value in GOOD.items() if key != "seen"})
    with pytest.raises(MisfitError, match=r"^\$: Object contains unknown field `__class__`"):
        read({**GOOD, "__class__": 1})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "truncated"),
        (b'{"a": [1, 2', "truncated"),
        (b"\xff\xfe\x00", "malformed"),
        (b'["ok", "\xc3\x28"]', "not UTF-8 text"),
        (b'["\\ud800"]', "unicode|malformed|truncated"),
        (b"\xef\xbb\xbf{}", "malformed"),
        (b"[NaN]", "malformed"),
        (b"[-Infinity]", "malformed"),
        (b"[1e999]", r"\[0\]: Number out of range"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"a":' * 200_000, "nested too deeply"),
        (b"9" * 100_000, "out of range"),
        (b"[1] [2]", "malformed"),
        (b"__import__('os').system('true')", "malformed"),
    ],
)
def test_malformed_files_are_named_with_the_reason(
    tmp_path: Path, content: bytes, message: str
) -> None:
    """Truncated, mis-encoded, too deep or too long: a FormatError with path and place."""
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=message) as caught, naming_file(path):
        decode(read_bytes(path), Any)  # type: ignore[arg-type]
    assert str(caught.value).startswith(f"{path}: ")
    assert len(str(caught.value)) < len(str(path)) + 200


def test_messages_stay_short() -> None:
    with pytest.raises(MisfitError) as caught:
        read({**GOOD, "colour": "x" * 10**6})
    assert len(str(caught.value)) < 200
    assert len(shorten("x" * 10**6)) <= 80
    assert shorten([0] * 10**6) == "list of 1000000 entries"


def test_files_that_cannot_be_read_say_why(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_bytes(tmp_path / "absent.json")
    with pytest.raises(InputError, match="cannot read"):
        read_bytes(tmp_path)


def test_oversized_files_are_refused_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.json").write_text(json.dumps(list(range(100))))
    monkeypatch.setattr(files, "MAX_BYTES", 99)
    with pytest.raises(FormatError, match="larger than 99 bytes"):
        read_bytes(tmp_path / "a.json")
