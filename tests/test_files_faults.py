"""Whichever step on the way to the disk fails, nothing is lost and nothing is left lying about.

Every file goes through ``marginbn.files.disk``. Here another disk takes its place whose k-th step
fails, for every k: a part of a write, a flush, a new name, a second name, or memory runs out there.
The allocations of Python itself fail one by one in a process of their own.
"""

from __future__ import annotations

import errno
import itertools
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from certificates import certified
from marginbn import NaiveBayesClassifier, files
from marginbn.classifiers.model_file import save_model
from marginbn.exceptions import CheckpointWarning, InputError
from marginbn.export.formats import save_network
from marginbn.export.jkl import save_scores
from marginbn.problem.problem import StructureProblem
from marginbn.proof.certificate import write_certificate
from marginbn.report.page import make_report
from marginbn.solvers.checkpoint import Checkpoint, Saved, SearchState
from marginbn.solvers.milp import write_formulation
from marginbn.solvers.tree_search import initial_selection
from problems import small_linear_problem, small_margin_problem
from seeds import slow
from tables import write_rows


@pytest.fixture(autouse=True)
def _at_a_fixed_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")  # models tell when they were made


class CrashError(BaseException):
    """The process ends here."""


def full() -> OSError:
    return OSError(errno.ENOSPC, "No space left on device")


class FailingDisk:
    """The k-th step fails; a write gets half of its bytes to the disk first."""

    def __init__(self, k: int, error: Callable[[], BaseException]) -> None:
        self._left, self._error = k, error
        self.failed = ""

    def _step(self, name: str, *arguments: Any) -> Any:
        self._left -= 1
        if self._left == 0:
            self.failed = name
            if name == "write":
                os.write(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
            raise self._error()
        return getattr(os, name)(*arguments)

    def write(self, handle: int, content: Any) -> int:
        return int(self._step("write", handle, content))

    def fsync(self, handle: int) -> None:
        self._step("fsync", handle)

    def replace(self, source: str, target: str) -> None:
        self._step("replace", source, target)

    def unlink(self, path: str) -> None:
        self._step("unlink", path)


def classifier(seed: int) -> NaiveBayesClassifier:
    """A classifier of its own for every seed."""
    rng = np.random.default_rng(seed)
    return NaiveBayesClassifier().fit(rng.integers(0, 3, (40, 4)), rng.integers(0, 2, 40))


def network(seed: int) -> Any:
    return classifier(seed).network_


def write_proof(path: Path, seed: int) -> None:
    write_certificate(path, _PROOFS[seed])


_PROOFS: dict[int, Any] = {}

WRITERS: dict[str, Callable[[Path, int], object]] = {
    "bytes": lambda path, seed: files.write_atomic(path, bytes([seed]) * 100_000),
    "model.json": lambda path, seed: save_model(classifier(seed), path),
    "proof.cert": write_proof,
    "report.html": lambda path, seed: make_report(classifier(seed)).save(path),
    "table.csv": lambda path, seed: write_rows(path, ["x"], [[seed]] * 20_000),
    "table.csv.gz": lambda path, seed: write_rows(path, ["x"], [[seed]] * 20_000),
    "network.bif": lambda path, seed: save_network(network(seed), path),
    "scores.jkl": lambda path, seed: save_scores(small_linear_problem(seed), path),
    "problem.mps": lambda path, seed: write_formulation(small_linear_problem(seed), path),
}


@pytest.fixture(autouse=True)
def proofs(tmp_path: Path) -> None:
    """Two certificates that differ."""
    if not _PROOFS:
        made = certified(small_margin_problem(0), tmp_path)
        (tmp_path / "proof.cert").unlink()
        _PROOFS.update({0: made, 1: replace(made, objective=made.objective - 1.0)})


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def is_same(found: bytes, wanted: bytes) -> bool:
    """Equal but for the time in the header of gzip."""
    if wanted[:2] == b"\x1f\x8b":
        return found[:4] + found[8:] == wanted[:4] + wanted[8:]
    return found == wanted


@pytest.mark.parametrize("error", [full, MemoryError])
@pytest.mark.parametrize("has_old", [True, False])
@pytest.mark.parametrize("name", WRITERS)
def test_the_old_file_or_the_whole_new_one(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    has_old: bool,
    error: Callable[[], BaseException],
) -> None:
    """For every step that can fail; the error is one line for users, or that of the memory."""
    monkeypatch.chdir(tmp_path)  # where a page is saved that cannot be written
    write = WRITERS[name]
    write(tmp_path / name, 1)
    new = (tmp_path / name).read_bytes()
    write(tmp_path / name, 0)
    old = (tmp_path / name).read_bytes()
    assert not is_same(old, new)
    met = set()
    for k in itertools.count(1):
        folder = tmp_path / str(k)
        folder.mkdir()
        if has_old:
            (folder / name).write_bytes(old)
        disk = FailingDisk(k, error)
        with monkeypatch.context() as patch:
            patch.setattr(files, "disk", disk)
            with suppress(InputError, MemoryError):
                write(folder / name, 1)
        left = contents(folder)
        assert set(left) <= {name}, f"stray files after step {k} ({disk.failed}): {list(left)}"
        assert (name in left) or not has_old, f"lost in step {k} ({disk.failed})"
        assert all(is_same(found, new) or found == old for found in left.values()), (k, disk.failed)
        if not disk.failed:
            break
        met.add(disk.failed)
    assert is_same(left[name], new)
    assert {"fsync", "replace"} <= met
    assert "write" in met or name == "problem.mps"  # HiGHS writes the draft itself


# ---------------------------------------------------------------------- checkpoints


def problem() -> StructureProblem:
    return small_margin_problem(0)


def state(bound: float) -> Saved:
    tree = {"words": np.arange(5000)}
    return Saved(initial_selection(problem()), bound, SearchState("nobody", 7, tree))


def bound_on_disk(path: Path) -> float | None:
    """The bound that a new search would start from, if the checkpoint itself is whole."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", CheckpointWarning)
        saved = Checkpoint(path, problem()).saved
    return None if saved is None else saved.bound


@pytest.mark.parametrize("n_before", [0, 1, 2])
@pytest.mark.parametrize("error", [full, MemoryError, CrashError])
def test_a_checkpoint_survives_every_fault(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    n_before: int,
    error: Callable[[], BaseException],
) -> None:
    """The search goes on after it, saves again, and leaves one file."""
    for k in itertools.count(1):
        folder = tmp_path / str(k)
        folder.mkdir()
        path = folder / "c"
        kept = Checkpoint(path, problem())
        for i in range(n_before):
            kept.save(state(9e5 - i))
        last = bound_on_disk(path)
        disk = FailingDisk(k, error)
        with monkeypatch.context() as patch, warnings.catch_warnings():
            patch.setattr(files, "disk", disk)
            warnings.simplefilter("ignore", CheckpointWarning)
            with suppress(CrashError):
                kept.save(state(7e5))
        where = f"step {k} ({disk.failed})"
        assert bound_on_disk(path) in (last, 7e5), where
        assert set(os.listdir(folder)) <= {"c"}, where
        for bound in (6e5, 5e5):
            kept.save(state(bound))
        assert bound_on_disk(path) == 5e5, where
        assert os.listdir(folder) == ["c"], where
        if not disk.failed:
            break
    assert k > 4


def test_memory_that_runs_out_is_told_and_the_search_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkpoint is not worth a result."""
    kept = Checkpoint(tmp_path / "c", problem())
    monkeypatch.setattr(files, "disk", FailingDisk(1, MemoryError))
    with pytest.warns(CheckpointWarning, match=r"out of memory; the search continues"):
        kept.save(state(9e5))
    kept.save(state(8e5))
    assert bound_on_disk(tmp_path / "c") == 8e5


# ---------------------------------------------------------------------- allocations of Python

ALLOCATIONS = """
import itertools, os, sys, warnings
import _testcapi
import numpy as np
from marginbn import NaiveBayesClassifier, files
from marginbn.classifiers.model_file import save_model
from marginbn.solvers.checkpoint import Checkpoint
from test_files_faults import classifier, problem, state

warnings.simplefilter("ignore")
kind, folder = sys.argv[1], sys.argv[2]
path, made = os.path.join(folder, "c"), [classifier(0), classifier(1)]
kept, states = Checkpoint(path, problem()), [state(9e5), state(8e5)]

def write(i):
    if kind == "bytes":
        files.write_atomic(path, bytes([i]) * 1000)
    elif kind == "model":
        save_model(made[i], path)
    else:
        kept.save(states[i])

whole = []
for i in (0, 1):
    write(i)
    whole.append(open(path, "rb").read())
step = int(sys.argv[4])
failures = 0
for k in itertools.count(1, step):
    write(0)
    failed = False
    _testcapi.set_nomemory(k, k + 1)
    try:
        write(1)
    except Exception:  # short of memory, Python also raises RuntimeError and SystemError
        failed = True
    finally:
        _testcapi.remove_mem_hooks()
    found = open(path, "rb").read()
    failures += failed or found != whole[1]
    assert found in whole, k
    stray = set(os.listdir(folder)) - {"c"}
    assert not stray, (k, stray)
    if found == whole[1] and not failed and k > int(sys.argv[3]):
        break
print(k, failures)
"""


@pytest.mark.parametrize(
    ("kind", "least", "step"),
    [
        ("bytes", 200, 7),
        ("checkpoint", 500, 11),
        slow("bytes", 200, 1),
        slow("checkpoint", 500, 1),
        slow("model", 4000, 37),
    ],
)
def test_every_allocation_may_fail(tmp_path: Path, kind: str, least: int, step: int) -> None:
    """Memory really runs out at the k-th allocation, for every ``step``-th k."""
    pytest.importorskip("_testcapi")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run(
        [sys.executable, "-c", ALLOCATIONS, kind, str(tmp_path), str(least), str(step)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    _, failures = map(int, ended.stdout.split())
    assert failures > 10
