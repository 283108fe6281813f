"""The size of src only falls: ``ratchets.toml`` holds the limits, a change lowers what it can."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import ratchets

NUMBERS = ratchets.measure()
LIMITS = ratchets.read_limits()

SPARE = 0.01
"""Share of a limit that may be unused before the test asks to lower it."""


def test_every_number_has_a_limit() -> None:
    assert LIMITS.keys() == NUMBERS.keys()


@pytest.mark.parametrize("name", LIMITS)
def test_no_number_grows(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Larger than its limit is an error, much smaller a request to lower the limit."""
    number, limit = NUMBERS[name], LIMITS[name]
    if number < (1 - SPARE) * limit:
        with capsys.disabled():
            print(f"\n{name} fell from {limit} to {number}: run python tests/ratchets.py")  # noqa: T201
    assert number <= limit, (
        f"src has {number} {name}, the limit is {limit}: make room elsewhere, or raise it in "
        f"{ratchets.FILE.name} and give the reason in the commit message"
    )


def read(source: str) -> list[ratchets.Definition]:
    return list(ratchets.functions_in([source]))


def test_parameters_by_hand() -> None:
    """All kinds count, the instance and the class do not."""
    (first, second) = read("def f(a, /, b, *c, d=1, **e): ...\nasync def g(self): ...")
    assert ratchets.count_parameters(first) == 5
    assert ratchets.count_parameters(second) == 0


def test_body_lines_by_hand() -> None:
    """Neither the docstring nor the signature counts; blank lines and comments do."""
    (function,) = read(
        'def f(\n    a,\n):\n    """Text.\n\n    More."""\n    b = a\n\n    return b\n'
    )
    assert isinstance(function, ast.FunctionDef)
    assert ratchets.count_body_lines(function) == 3


def test_limits_are_lowered_but_never_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Comments stay; a number that grew keeps its limit, so that the test above fails."""
    file = tmp_path / "ratchets.toml"
    file.write_text("# why\nlines = 10 # of Python\nfiles = 3\n")
    monkeypatch.setattr(ratchets, "FILE", file)
    monkeypatch.setattr(ratchets, "measure", lambda: {"lines": 8, "files": 4})
    ratchets.lower()
    assert file.read_text() == "# why\nlines = 8 # of Python\nfiles = 3\n"
