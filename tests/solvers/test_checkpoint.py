"""Checkpoint files: complete at every moment, refused when they are not ours, safe to read."""

from __future__ import annotations

import errno
import io
import os
import warnings
import zipfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginbn.exceptions import CheckpointWarning, InputError
from marginbn.files import replacing
from marginbn.problem.problem import StructureProblem
from marginbn.solvers import solve_structure
from marginbn.solvers.branch_bound import BranchBoundSolver
from marginbn.solvers.checkpoint import (
    BrokenFileError,
    Checkpoint,
    Saved,
    SearchState,
    read_arrays,
    remove_leftovers,
)
from marginbn.solvers.result import fingerprint
from marginbn.solvers.run import Limits, Run
from marginbn.solvers.solve import solve_with
from marginbn.solvers.tree_search import initial_selection
from problems import small_linear_problem, small_margin_problem


def problem(gamma: float = 1.0) -> StructureProblem:
    return small_margin_problem(0, gamma=gamma)


def some_state(bound: float = 1e6) -> Saved:
    """A state with a bound that tells it apart, and a tree."""
    selection = initial_selection(problem())
    return Saved(selection, bound, SearchState("nobody", 7, {"words": np.arange(5)}))


def bounds_on_disk(path: Path) -> float | None:
    """Bound of the checkpoint that a resumed solve would start from."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CheckpointWarning)
        saved = Checkpoint(path, problem()).saved
    return None if saved is None else saved.bound


# ---------------------------------------------------------------------- the file


def zipped(**members: bytes) -> bytes:
    """An archive with right checksums."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, member in members.items():
            archive.writestr(f"{name}.npy", member)
    return content.getvalue()


def headed(header: str, payload: bytes = b"") -> bytes:
    """An array of numpy's format."""
    return b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header.encode() + payload


@pytest.mark.parametrize(
    "content",
    [
        zipped(a=headed("{'descr': '<f8', 'fortran_order': False, 'shape': (1099511627776, 64)}")),
        zipped(a=headed("{'descr': '<f8', 'fortran_order': False, 'shape': (1,)}", b"\0" * 7)),
        zipped(a=headed("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -1)}")),
        zipped(a=headed("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", b"N.")),
        zipped(a=headed("__import__('os').abort()")),
        zipped(about=headed("{'descr': '<U1', 'fortran_order': False, 'shape': ()}", b"{\0\0\0")),
    ],
)
def test_hostile_headers_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(BrokenFileError):
        read_arrays(tmp_path / "f")


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_are_read_or_refused(tmp_path_factory: Any, tail: bytes, seal: bool) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(zipped(about=tail) if seal else tail)
    with suppress(BrokenFileError, InputError):
        read_arrays(path)


# ---------------------------------------------------------------------- which problem


def test_the_fingerprint_tells_problems_apart() -> None:
    """Every part that the optimum depends on counts; names do not."""
    base = problem()
    assert fingerprint(base) == fingerprint(problem())
    renamed = tuple(replace(v, name=v.name + "!") for v in base.variables)
    assert fingerprint(base) == fingerprint(replace(base, variables=renamed))
    keep = np.ones(base.candidates.n_candidates, dtype=bool)
    keep[-1] = False
    others = [
        base.with_gamma(1.1),
        replace(base, weights=2 * base.sample_weights),
        replace(base, linear=base.linear + 1.0),
        replace(base, margins=replace(base.margins, smoothing=2.0)),
        replace(base, margins=replace(base.margins, kind="binary")),
        replace(base, candidates=base.candidates.keep(keep), linear=base.linear[keep]),
        small_margin_problem(1),
        small_linear_problem(0),
        small_linear_problem(1),
    ]
    assert len({fingerprint(p) for p in [base, *others]}) == len(others) + 1


def test_another_problem_is_refused_with_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "c"
    solve_structure(problem(), checkpoint=path)
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"another problem.*name another file, or remove this one"):
        solve_structure(problem(gamma=2.0), checkpoint=path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "content", [b"colour,size\nred,1\n", b"marginbn checkpoint 1\n...", zipped(sheet=b"a,b")]
)
def test_files_of_other_kinds_are_not_written_over(tmp_path: Path, content: bytes) -> None:
    """A table given by mistake stays, and so does the checkpoint of another version."""
    path = tmp_path / "c"
    path.write_bytes(content)
    with pytest.raises(InputError, match="name another file"):
        solve_structure(problem(), checkpoint=path)
    assert path.read_bytes() == content


def test_impossible_places_are_told_before_the_search(tmp_path: Path) -> None:
    """A folder, or a folder that is not there."""
    with pytest.raises(InputError, match="it is a folder"):
        Checkpoint(tmp_path, problem())
    with pytest.raises(InputError, match="existing folder"):
        Checkpoint(tmp_path / "absent" / "c", problem())


# ---------------------------------------------------------------------- saving


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "c"
    first = Checkpoint(path, problem())
    assert first.saved is None
    for bound in (9e5, 8e5, 7e5):
        first.save(some_state(bound))
    saved = Checkpoint(path, problem()).saved
    assert saved is not None
    np.testing.assert_array_equal(saved.selection, some_state().selection)
    assert (saved.bound, saved.search.solver, saved.search.nodes) == (7e5, "nobody", 7)
    np.testing.assert_array_equal(saved.search.arrays["words"], np.arange(5))
    assert os.listdir(tmp_path) == ["c"]


def test_saving_is_due_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a second, then at growing intervals up to 30 seconds; a write of 3 seconds means that
    the next one waits for 150 more.
    """
    now = [0.0]
    monkeypatch.setattr("marginbn.solvers.checkpoint.time.perf_counter", lambda: now[0])
    kept = Checkpoint(tmp_path / "c", problem())
    monkeypatch.setattr(kept, "_write", lambda saved: None)
    for interval in (1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0):
        now[0] += interval - 0.1
        assert not kept.is_due
        now[0] += 0.1
        assert kept.is_due
        kept.save(some_state())
    monkeypatch.setattr(kept, "_write", lambda saved: now.__setitem__(0, now[0] + 3.0))
    kept.save(some_state())
    now[0] += 149.0
    assert not kept.is_due
    now[0] += 2.0
    assert kept.is_due


def saved_tree(path: Path) -> None:
    kept = Checkpoint(path, problem())
    solver = BranchBoundSolver(heuristics=False)
    solve_with(solver, Run(problem(), limits=Limits(nodes=2), checkpoint=kept))


def test_a_file_cut_off_at_any_byte_is_noticed(tmp_path: Path) -> None:
    """The search starts from scratch with a warning; also after a power failure that left nothing
    but empty blocks.
    """
    path = tmp_path / "c"
    saved_tree(path)
    content = path.read_bytes()
    for broken in (*(content[:length] for length in range(len(content))), b"\0" * len(content)):
        path.write_bytes(broken)
        with pytest.warns(CheckpointWarning, match="starts from scratch"):
            assert Checkpoint(path, problem()).saved is None


def test_changed_bytes_are_noticed(tmp_path: Path) -> None:
    """Any single byte that is different is noticed, or changes no array; a tree may lack one, and
    is then left aside.
    """
    path = tmp_path / "c"
    saved_tree(path)
    known = Checkpoint(path, problem()).saved
    assert known is not None
    content = bytearray(path.read_bytes())
    for place in range(0, len(content), 3):
        content[place] ^= 0x40
        path.write_bytes(bytes(content))
        content[place] ^= 0x40
        with warnings.catch_warnings(), suppress(InputError):
            warnings.simplefilter("ignore", CheckpointWarning)
            found = Checkpoint(path, problem()).saved
            if found is not None:
                assert found.bound == known.bound
                assert (found.selection == known.selection).all()
                for name, array in found.search.arrays.items():
                    assert (array == known.search.arrays[name]).all()


# ---------------------------------------------------------------------- what can go wrong


def full_disk() -> OSError:
    return OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_told_once_and_the_search_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result is the same, and there is one warning for many attempts."""
    kept = Checkpoint(tmp_path / "c", problem(), interval=0.0)
    attempts = []

    def full(*_: Any) -> None:
        attempts.append(1)
        raise full_disk()

    monkeypatch.setattr(os, "fsync", full)
    monkeypatch.setattr("marginbn.solvers.checkpoint.LARGEST_SHARE", 1e9)
    with pytest.warns(CheckpointWarning, match="No space left on device.*search continues") as told:
        result = solve_with(BranchBoundSolver(heuristics=False), Run(problem(), checkpoint=kept))
    assert result.is_optimal
    assert len(told) == 1
    assert len(attempts) > 1
    assert os.listdir(tmp_path) == []


def test_a_file_that_may_not_grow_keeps_the_old_content(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    path = tmp_path / "c"
    kept = Checkpoint(path, problem())
    kept.save(some_state(9e5))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.warns(CheckpointWarning, match="cannot write"):
            kept.save(some_state(8e5))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert bounds_on_disk(path) == 9e5
    kept.save(some_state(7e5))
    assert bounds_on_disk(path) == 7e5


@pytest.mark.parametrize(
    "change",
    [
        {"selection": np.array([0, 0, 0, 0, 0])},
        {"selection": np.array([10**9, 0, 0, 0, 0])},
        {"selection": np.zeros(0, dtype=np.int64)},
        {"bound": np.nan},
        {"search": SearchState("x", -1)},
    ],
)
def test_impossible_states_are_broken(tmp_path: Path, change: dict[str, Any]) -> None:
    """An incumbent that is no structure, a bound that is no number."""
    Checkpoint(tmp_path / "c", problem()).save(replace(some_state(), **change))
    with pytest.warns(CheckpointWarning, match="starts from scratch"):
        assert Checkpoint(tmp_path / "c", problem()).saved is None


def test_leftovers_are_removed_once_nobody_writes_to_them(tmp_path: Path) -> None:
    """Only temporary files of the same name go, and only after an hour without a write."""
    old, other = tmp_path / ".a.0123456789ab.tmp", tmp_path / ".b.0123456789ab.tmp"
    for path in (old, other, tmp_path / "a"):
        path.touch()
        os.utime(path, (1e9, 1e9))
    young = tmp_path / ".a.ba9876543210.tmp"
    young.touch()
    remove_leftovers(tmp_path / "a")
    assert sorted(tmp_path.iterdir()) == sorted([other, young, tmp_path / "a"])


def test_a_draft_that_is_being_written_stays(tmp_path: Path) -> None:
    """The start of another search must not make a write fail."""
    with replacing(tmp_path / "a") as draft:
        Path(draft).write_bytes(b"new")
        remove_leftovers(tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a"]
