"""Machine code is never stale: where it is kept, when it goes, and what users see."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys

from layers import MODULES, read_imports
from marginbn.solvers import compile as compiling
from marginbn.solvers import interpreted, run
from marginbn.solvers.interpreted import Compiler

PACKAGE = Path(compiling.__file__).parents[1]

ENGINES = ("branch_bound", "branch_cut")

SQUARE = """
from marginbn.solvers.compile import entry, kernel
from marginbn.inner import square

@entry
def fourth(x):
    return square(square(x))
"""


def copy_package(target: Path) -> Path:
    ignore = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(PACKAGE, target / "marginbn", ignore=ignore))


def fingerprints(package: Path) -> dict[str, str]:
    folders = {name: package / "solvers" / name / "kernels" for name in ENGINES}
    return {name: compiling.fingerprint(folder) for name, folder in folders.items()}


@pytest.mark.parametrize("file", ["kernels/edmonds.py", "arrays.py"])
def test_a_change_behind_an_engine_changes_its_folder(file: str, tmp_path: Path) -> None:
    package = copy_package(tmp_path)
    before = fingerprints(package)
    edited = package / "solvers" / "branch_bound" / file
    edited.write_text(edited.read_text() + "\n# changed\n")
    after = fingerprints(package)
    assert [name for name in ENGINES if before[name] != after[name]] == ["branch_bound"]


ANNOTATIONS = {"marginbn.problem.array_types"}
"""Modules of which kernels use names in annotations only: nothing of them becomes machine code."""


@pytest.mark.parametrize("engine", ENGINES)
def test_kernels_import_nothing_that_the_fingerprint_leaves_out(engine: str) -> None:
    """Otherwise machine code could be older than a function it contains."""
    folder = PACKAGE / "solvers" / engine / "kernels"
    covered = compiling.kernel_sources(folder)
    assert len(covered) > len(list(folder.glob("*.py")))
    for path in folder.glob("*.py"):
        for name in set(read_imports(path.read_text(), MODULES)) - ANNOTATIONS:
            assert MODULES[name] in covered, (path, name)


def test_the_fingerprint_does_not_depend_on_place_or_time(tmp_path: Path) -> None:
    """A copy has the same fingerprints, whatever the times of its files."""
    package = copy_package(tmp_path)
    for path in package.rglob("*.py"):
        os.utime(path, (0, 0))
    assert fingerprints(package) == fingerprints(PACKAGE)


@pytest.mark.parametrize("name", ["numba", "llvmlite"])
def test_versions_are_part_of_the_fingerprint(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprints(PACKAGE)
    monkeypatch.setattr(getattr(compiling, name), "__version__", "0.0")
    after = fingerprints(PACKAGE)
    assert all(before[engine] != after[engine] for engine in ENGINES)


def with_fourth(target: Path) -> Path:
    """A copy of the package with two files of kernels, one of which calls the other."""
    package = copy_package(target)
    (package / "inner.py").write_text(
        "from marginbn.solvers.compile import kernel\n\n@kernel\ndef square(x):\n    return x * x\n"
    )
    (package / "outer.py").write_text(SQUARE)
    return package


def run_fourth(package: Path, cache: Path, before: str = "") -> str:
    """fourth(2.0) by a fresh process; what it printed."""
    code = before + "from marginbn.outer import fourth; print(fourth(2.0))"
    environment = {
        **os.environ,
        "PYTHONPATH": str(package.parent),
        "MARGINBN_CACHE": str(cache),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    answer = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return answer.stdout.strip()


@pytest.mark.slow
def test_a_changed_callee_is_compiled_again(tmp_path: Path) -> None:
    package = with_fourth(tmp_path)
    inner = package / "inner.py"
    for body, expected in (("x * x", "16.0"), ("x + x", "8.0")):
        inner.write_text(inner.read_text().replace("x * x", body))
        os.utime(inner, (1e9, 1e9))
        assert run_fourth(package, tmp_path / "cache") == expected
    kept = [path.name for path in (tmp_path / "cache" / "kernels").iterdir()]
    assert len(kept) == 2


def test_without_a_place_to_write_it_still_works(tmp_path: Path) -> None:
    """A cache folder that cannot be made means compiling in every process, nothing worse."""
    package = with_fourth(tmp_path)
    obstacle = tmp_path / "file"
    obstacle.write_text("")
    before = set(package.rglob("*"))
    assert run_fourth(package, obstacle) == "16.0"
    assert set(package.rglob("*")) == before


def test_kernels_are_linked_as_drafts() -> None:
    @compiling.kernel
    def half(x: float) -> float:
        return x / 2

    @compiling.entry
    def quarter(x: float) -> float:
        return half(half(x))

    assert isinstance(half, compiling.DraftKernel)
    assert quarter(6.0) == 1.5
    assert half(3.0) == 1.5


def test_a_kernel_is_compiled_for_types_not_for_values() -> None:
    """``power(2, 3)`` and ``power(k, k)`` are one kernel."""

    @compiling.kernel
    def power(base: int, exponent: int) -> int:
        return int(base**exponent)

    @compiling.entry
    def tower(k: int) -> int:
        return power(2, 3) + power(k, k) + power(exponent=2, base=k)

    assert tower(3) == 8 + 27 + 9
    assert len(power.overloads) == 1  # type: ignore[attr-defined]


class Pair(NamedTuple):
    """Two arrays, as kernels hand them around."""

    x: np.ndarray
    y: np.ndarray


def test_arrays_of_arguments_are_borrowed() -> None:
    """No kernel counts the references of what it is given; what it returns or makes is counted as
    ever, also where a parameter is assigned to.
    """

    @compiling.kernel
    def larger(pair: Pair) -> np.ndarray:
        if pair.x[0] > pair.y[0]:
            return pair.x
        return pair.y

    @compiling.kernel
    def shifted(x: np.ndarray, n: int) -> np.ndarray:
        for _ in range(n):
            x = x + 1.0
        return x

    @compiling.entry
    def mixed(pair: Pair, n: int) -> Pair:
        kept = Pair(larger(pair), shifted(pair.x, n))
        return Pair(kept.x, shifted(kept.y, 1))

    pair = Pair(np.array([5.0, 1.0]), np.array([2.0, 7.0]))
    before = [sys.getrefcount(part) for part in pair]
    mixed(pair, 1)
    _nrt_python.memsys_enable_stats()
    allocated = rtsys.get_allocation_stats()
    for n in range(4):
        result = mixed(pair, n)
        assert result.x.tolist() == [5.0, 1.0]
        assert result.y.tolist() == [6.0 + n, 2.0 + n]
        assert mixed(Pair(result.y, result.x), n).x.tolist() == result.y.tolist()
    del result
    assert [sys.getrefcount(part) for part in pair] == before
    after = rtsys.get_allocation_stats()
    _nrt_python.memsys_disable_stats()
    assert after.alloc - allocated.alloc == after.free - allocated.free > 0
    texts = larger.inspect_llvm(larger.signatures[0])  # type: ignore[attr-defined]
    assert texts.count("call void @NRT_decref") == 0


def test_a_shared_kernel_is_plain_for_python() -> None:
    @compiling.shared
    def kind(x: object) -> str:
        return type(x).__name__

    assert kind("never compiled: numba knows no such call") == "str"


def test_old_folders_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARGINBN_CACHE", str(tmp_path))
    names = ["old", "fresh"]
    for name in names:
        (tmp_path / "kernels" / name).mkdir(parents=True)
    month = time.time() - 86_400 * (compiling.KEPT_DAYS + 1)
    os.utime(tmp_path / "kernels" / "old", (month, month))
    compiling.machine_code_folder.cache_clear()
    own = compiling.machine_code_folder(PACKAGE / "solvers" / "branch_cut" / "kernels")
    assert own is not None
    assert {path.name for path in (tmp_path / "kernels").iterdir()} == {"fresh", own.name}
    compiling.machine_code_folder.cache_clear()


def test_platform_cache_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The variable wins; otherwise the platform's own place, if there is a home folder."""
    monkeypatch.setenv("MARGINBN_CACHE", str(tmp_path))
    assert compiling.cache_root() == tmp_path / "kernels"
    monkeypatch.delenv("MARGINBN_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    if sys.platform == "linux":
        assert compiling.cache_root() == tmp_path / "x" / "marginbn" / "kernels"
    monkeypatch.setattr(compiling, "user_cache_path", lambda *_, **__: Path("~/.cache/marginbn"))
    with pytest.raises(OSError, match="no home folder"):
        compiling.cache_root()


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> Compiler:
    """One that has compiled nothing, announces everything and keeps nothing on disk."""
    monkeypatch.setattr(compiling, "machine_code_folder", lambda _: None)
    new = Compiler()
    monkeypatch.setattr(compiling, "COMPILER", new)
    monkeypatch.setattr(interpreted, "MANY", 1)
    monkeypatch.setattr(compiling, "_entries", {})
    return new


@compiling.kernel
def half(x: float) -> float:
    return x / 2


def test_functions_are_counted_and_announced_once(
    compiler: Compiler, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line before the first of a package; what others have compiled is not counted again."""

    @compiling.entry
    def quarter(x: float) -> float:
        return half(half(x))

    @compiling.entry
    def eighth(x: float) -> float:
        return half(x) / 4

    assert not compiling.is_at_hand(quarter)
    assert quarter(6.0) == 1.5
    assert compiling.is_at_hand(quarter)
    assert capsys.readouterr().err == "marginbn: compiling 3 functions, once\n"
    assert eighth(8.0) == 1.0
    assert capsys.readouterr().err == ""
    assert (compiler.done, compiler.total, compiler.text) == (3, 3, None)


def test_clocks_stand_still_for_the_compiler(
    compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long it takes; a call that compiles nothing counts."""
    monkeypatch.setattr(run, "COMPILER", compiler)
    now = [100.0]
    monkeypatch.setattr("marginbn.solvers.interpreted.time.perf_counter", lambda: now[0])

    def take_an_hour() -> None:
        now[0] += 3600.0

    monkeypatch.setattr(compiler, "step", take_an_hour)

    @compiling.entry
    def third(x: float) -> float:
        return x / 3

    clock = run.Deadline(run.Limits(time=10.0), start=now[0])
    now[0] += 4.0
    third(9.0)
    assert now[0] >= 3704.0
    assert clock.remaining() == 6.0
    third(9.0)
    now[0] += 1.0
    assert clock.elapsed() == 5.0


def test_a_compiler_in_the_background(compiler: Compiler) -> None:
    """It stops no clock; whoever is late waits for it, and that stops clocks."""
    may_end, seconds = threading.Event(), compiler.seconds
    compiler.start(lambda: assert_true(may_end.wait(60)))
    compiler.start(lambda: pytest.fail("one at a time"))
    assert not compiler.is_ready(patiently=False)
    assert compiler.seconds == seconds
    may_end.set()
    assert compiler.is_ready(patiently=True)
    assert compiler.seconds > seconds
    assert not compiler.is_ready(patiently=True), "there is nothing to wait for"


def test_functions_compiled_in_the_background_are_counted(
    compiler: Compiler, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is printed, but who waits can show a bar."""

    @compiling.entry
    def fifth(x: float) -> float:
        return x / 5

    compiler.start(lambda: assert_true(fifth(10.0) == 2.0))
    assert compiler.is_ready(patiently=True)
    assert capsys.readouterr().err == ""
    with compiler.waiting():
        assert compiler.text == f"compiling, once [{'#' * 20}] 1 of 1 functions"
    assert compiler.text is None


def assert_true(value: bool) -> None:
    assert value
