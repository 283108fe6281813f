"""Levers are switched off by changes of text, which must fit the package as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchmarks import levers
from benchmarks.levers import LEVERS, SETS, Lever, Patch


@pytest.mark.parametrize("lever", LEVERS, ids=lambda lever: lever.name)
def test_every_patch_fits_once(lever: Lever, tmp_path: Path) -> None:
    """In a file that Python still understands; the package itself stays as it is."""
    levers.patched(lever, tmp_path)
    for patch in lever.patches:
        assert patch.replacement != patch.text
    copy = tmp_path / "marginbn"
    pairs = [(path, levers.PACKAGE / path.relative_to(copy)) for path in copy.rglob("*.py")]
    changed = [path for path, own in pairs if path.read_bytes() != own.read_bytes()]
    assert bool(changed) == bool(lever.patches)
    for path in changed:
        compile(path.read_text(encoding="utf-8"), path.name, "exec")


def test_a_text_that_is_not_there_once_is_an_error(tmp_path: Path) -> None:
    """In one file, and in the files of a folder."""
    for where, text, count in (("solvers", "no such text", 0), ("__init__.py", "\n", "")):
        with pytest.raises(ValueError, match=f"{where} has {count}"):
            levers.patched(Lever("wrong", "A", (Patch(where, text, ""),)), tmp_path / where)


def test_keys_name_every_problem_of_a_lever() -> None:
    keys = levers.keys()
    assert len(set(keys)) == len(keys)
    for kind, problems in SETS.items():
        own = [lever.name for lever in LEVERS if kind in lever.sets and lever.patches]
        first = keys.index(f"{kind} {problems[0]} as it is")
        assert keys[first + 1 : first + 1 + len(own)] == [
            f"{kind} {problems[0]} without {name}" for name in own
        ]


def record(lever: str, problem: str, seconds: float, status: str = "optimal") -> dict[str, Any]:
    """A unit of set G."""
    known = {"set": "G", "problem": problem, "lever": lever, "seconds": seconds, "gap": 0.0}
    return {**known, "status": status}


def test_factors_by_hand() -> None:
    """2 and 8 times longer are 4 times in the mean; a proof that is lost has no factor."""
    lines = levers.table(
        [
            *(record("none", name, 1.0) for name in "abc"),
            record("facets", "a", 2.0),
            record("facets", "b", 8.0),
            record("facets", "c", 60.0, "time_limit"),
        ]
    ).splitlines()
    assert lines[1].split() == ["facets", "G", "3", "4.00", "8.00", "1"]
