"""Values in JSON files: exact both ways, refused with their place otherwise."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginbn.files import (
    Count,
    MisfitError,
    Must,
    NotPlainError,
    Number,
    Plain,
    decode_value,
    encode_number,
    encode_value,
    one_of,
    read_as,
    read_document,
    shorten,
)

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text()
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers(0, 9), inner, max_size=3)
    ),
    max_leaves=10,
)


def same(a: Any, b: Any) -> bool:
    """Equal in value and in type, all the way down."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


@settings(deadline=None)
@given(values)
def test_plain_values_survive_json_text(value: Any) -> None:
    """Tuples stay tuples, integer keys stay integers, infinities stay infinite."""
    text = json.dumps(encode_value(value), allow_nan=False)
    assert same(decode_value(json.loads(text), "$"), value)


def test_numpy_values_become_pythons() -> None:
    """Scalars and arrays of numpy are written as numbers and lists."""
    assert encode_value(np.float64(1.5)) == 1.5
    assert encode_value((np.int8(3), np.array([1, 2]))) == {"tuple": [3, [1, 2]]}


@pytest.mark.parametrize("value", [object(), len, {1.5: 2}, b"x", {"a": {1, 2}}])
def test_other_things_are_not_plain(value: Any) -> None:
    """What JSON cannot carry is refused, not turned into something else."""
    with pytest.raises(NotPlainError, match="is not a plain value"):
        encode_value(value)


@pytest.mark.parametrize("value", [0.1, -math.inf, math.inf, math.nan, 1e-320])
def test_numbers_survive(value: float) -> None:
    """Every float has a JSON form."""
    back = read_as(Number, json.loads(json.dumps(encode_number(value), allow_nan=False)))
    assert back == value or (math.isnan(back) and math.isnan(value))


class Colour(StrEnum):
    """Something to choose."""

    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Point:
    """One of everything that a shape can have."""

    name: str
    where: tuple[float, float]
    counts: tuple[Count, ...]
    colour: Colour
    side: Literal["left", "right"]
    seen: bool
    weight: Number | None
    notes: dict[str, int]
    rest: list  # type: ignore[type-arg]
    kind: Annotated[str, one_of({"a", "b"})]
    more: Plain
    next: object


GOOD = {
    "name": "p", "where": [1, 2.5], "counts": [0, 3], "colour": "red", "side": "left",
    "seen": True, "weight": "-inf", "notes": {"x": -1}, "rest": [None, {}], "kind": "a",
    "more": {"tuple": [1, {"float": "inf"}]}, "next": {"any": "thing"},
}  # fmt: skip


def test_a_shape_reads_what_it_declares() -> None:
    """Every kind of field, with the types that are declared."""
    assert read_as(Point, GOOD) == Point(
        "p", (1.0, 2.5), (0, 3), Colour.RED, "left", True, -math.inf, {"x": -1}, [None, {}], "a",
        (1, math.inf), {"any": "thing"},
    )  # fmt: skip
    assert isinstance(read_as(Point, GOOD).where[0], float)
    assert read_as(Point, {**GOOD, "weight": None}).weight is None


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("name", None, r"\.name: must be a string, got None"),
        ("where", [1], r"\.where: must have 2 entries, got 1"),
        ("where", [1, "b"], r"\.where\[1\]: must be a number, got 'b'"),
        ("where", "ab", r"\.where: must be an array, got 'ab'"),
        ("counts", [0, -1], r"\.counts\[1\]: must be at least 0 and below 2\^63, got -1"),
        ("colour", "green", r"\.colour: must be one of red, blue, got 'green'"),
        ("colour", ["red"], r"\.colour: must be one of red, blue, got \['red'\]"),
        ("side", "up", r"\.side: must be one of left, right, got 'up'"),
        ("seen", 1, r"\.seen: must be true or false, got 1"),
        ("weight", "x", r"\.weight: must be a number, got 'x'"),
        ("notes", [], r"\.notes: must be an object, got \[\]"),
        ("notes", {"x": 1.5}, r"\.notes\.x: must be a whole number, got 1\.5"),
        ("rest", {}, r"\.rest: must be an array"),
        ("kind", "c", r"\.kind: must be one of a, b, got 'c'"),
        ("more", {"set": []}, r"\.more: the mark must be"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(key: str, value: object, reason: str) -> None:
    """The message has the place, what must be there and what is."""
    with pytest.raises(MisfitError, match=rf"^\$\.here{reason}"):
        read_as(Point, {**GOOD, key: value}, "$.here")


@pytest.mark.parametrize(
    ("shape", "data"),
    [
        (str, 1),
        (str, "\ud800"),
        (int, True),
        (int, 1.0),
        (Count, -1),
        (Count, 2**63),
        (bool, 1),
        (Number, "Infinity"),
        (Number, True),
        (Number, 10**400),
        (Number, math.inf),
        (float, "inf"),
        (float, 10**400),
        (list, {}),
        (Point, []),
        (Plain, {"set": []}),
        (Plain, {"tuple": [], "dict": []}),
        (Plain, {"dict": [[1.5, 2]]}),
        (Plain, {"dict": [[1, 2, 3]]}),
        (Plain, [{"float": "x"}]),
        (Annotated[int, Must("be odd", lambda n: n % 2 == 1)], 2),
    ],
)
def test_wrong_values_are_refused_with_their_place(shape: Any, data: Any) -> None:
    """The message begins with where the value stands."""
    with pytest.raises(MisfitError, match=r"^\$\.here"):
        read_as(shape, data, "$.here")


def test_records_have_exactly_their_keys() -> None:
    """Neither less nor more."""
    with pytest.raises(MisfitError, match=r"^\$: the key 'seen' is missing"):
        read_as(Point, {key: value for key, value in GOOD.items() if key != "seen"})
    with pytest.raises(MisfitError, match=r"^\$: unknown keys \['__class__'\]"):
        read_as(Point, {**GOOD, "__class__": 1})


@dataclass(frozen=True)
class Header:
    """A document without content."""

    format: str
    version: int


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ({}, "must be 'x', got None"),
        ({"format": "y", "version": 1}, "must be 'x'"),
        ({"format": "x"}, "whole number"),
        ({"format": "x", "version": 3}, "newer marginbn"),
        ({"format": "x", "version": 0}, "must be 1 to 2, got 0"),
    ],
)
def test_headers_tell_format_and_version(header: dict[str, object], reason: str) -> None:
    """Another format, no version, a future one."""
    with pytest.raises(MisfitError, match=reason):
        read_document(Header, header, "x", 2)
    assert read_document(Header, {"format": "x", "version": 1}, "x", 2) == Header("x", 1)


def test_messages_stay_short() -> None:
    """A hostile value does not make a hostile message."""
    assert len(shorten("x" * 10**6)) <= 80
    assert shorten([0] * 10**6) == "list of 1000000 entries"
