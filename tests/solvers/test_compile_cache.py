"""Machine code on the disk is our own and whole, or it is not used: nothing there ends a fit."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from marginbn.exceptions import InputError
from marginbn.solvers import compile as compiling

KERNEL = "from marginbn.solvers.compile import entry\n\n@entry\ndef twice(x):\n    return x + x\n"


class Bench:
    """A tiny kernel and its cache; every call is that of a new process."""

    def __init__(self, root: Path) -> None:
        self.cache = root / "cache"
        self.source = root / "toy" / "kernels" / "twice.py"
        self.source.parent.mkdir(parents=True)
        self.source.write_text(KERNEL)

    def load(self) -> Any:
        """The kernel as a fresh process has it: decorated, not yet compiled."""
        compiling.machine_code_folder.cache_clear()
        compiling._told.clear()
        module: dict[str, Any] = {"__name__": "toy"}
        exec(compile(KERNEL, str(self.source), "exec"), module)
        return module["twice"]

    def run(self, x: Any = 2.0) -> tuple[Any, bool]:
        twice = self.load()
        answer = twice(x)
        return answer, bool(twice.stats.cache_hits)

    @property
    def kept(self) -> list[Path]:
        return sorted(path for path in self.cache.rglob("*") if path.is_file())

    @property
    def folder(self) -> Path:
        [folder] = (self.cache / "kernels").iterdir()
        return folder


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setenv("MARGINBN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(compiling, "_told", [])
    yield Bench(tmp_path)
    compiling.machine_code_folder.cache_clear()


needs_owners = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no owners on this system")


class Payload:
    """Leaves a mark where it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.mark),)


def test_machine_code_is_found_again(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    """One file per function and types of arguments, and nothing is said."""
    assert bench.run() == (4.0, False)
    assert bench.run() == (4.0, True)
    assert bench.run(3) == (6, False)
    assert bench.run(3) == (6, True)
    assert len(bench.kept) == 2
    assert capsys.readouterr().err == ""


# ---------------------------------------------------------------------- damage


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "emptied": lambda content: b"",
    "zeroed": lambda content: bytes(len(content)),
    "cut in the middle": lambda content: content[: len(content) // 2],
    "cut at the end": lambda content: content[:-1],
    "no pickle": lambda content: b"never a pickle",
    "another value": lambda content: pickle.dumps(17),
    "a name that is not there": lambda content: b"cnumba.nowhere\nnothing\n.",
    "another program's": lambda content: b"\x7fELF" + content,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_machine_code_is_made_again(
    bench: Bench, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    """The answer is right, and the next process finds whole code."""
    bench.run()
    [path] = bench.kept
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    assert bench.run() == (4.0, False)
    assert bench.run() == (4.0, True)
    assert capsys.readouterr().err == ""
    assert len(bench.kept) == 1


# ---------------------------------------------------------------------- foreign folders


def refusal(bench: Bench, capsys: pytest.CaptureFixture[str]) -> str:
    """Run twice; what was said, once that neither run read nor wrote anything."""
    before = sorted(bench.cache.rglob("*"))
    told = ""
    for _ in range(2):
        assert bench.run() == (4.0, False)
        told = capsys.readouterr().err
        assert told.count("\n") == 1
        assert "compiled code is not kept" in told
        assert "MARGINBN_CACHE" in told
    assert sorted(bench.cache.rglob("*")) == before
    return told


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="root alone can give")
@pytest.mark.parametrize("depth", range(3))
def test_a_folder_of_another_user_is_not_used(
    bench: Bench, capsys: pytest.CaptureFixture[str], depth: int
) -> None:
    """Nor one below: what is there is not even read. It would run with the rights of the user."""
    bench.run()
    [path] = bench.kept
    mark = bench.cache.parent / "mark"
    path.write_bytes(pickle.dumps(Payload(mark)))
    os.chown([bench.cache, bench.cache / "kernels", bench.folder][depth], 65534, -1)
    assert "other users can write" in refusal(bench, capsys)
    assert not mark.exists()


@needs_owners
@pytest.mark.parametrize("depth", range(3))
def test_a_folder_that_everybody_can_write_is_not_used(
    bench: Bench, capsys: pytest.CaptureFixture[str], depth: int
) -> None:
    """The cache, the folder in it, the folder of the kernels."""
    bench.run()
    [bench.cache, bench.cache / "kernels", bench.folder][depth].chmod(0o777)
    assert "other users can write" in refusal(bench, capsys)


@needs_owners
def test_a_sticky_folder_may_stand_above(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    """As /tmp does; but the cache itself must be closed to others."""
    bench.cache.parent.chmod(0o1777)
    assert bench.run() == (4.0, False)
    assert bench.run() == (4.0, True)
    assert capsys.readouterr().err == ""
    bench.folder.chmod(0o1777)
    refusal(bench, capsys)


@needs_owners
def test_folders_are_made_closed_to_others(bench: Bench) -> None:
    """Whatever the user's mask allows."""
    before = os.umask(0)
    try:
        bench.run()
    finally:
        os.umask(before)
    for path in (bench.cache, bench.cache / "kernels", bench.folder):
        assert path.stat().st_mode & 0o022 == 0
    assert bench.run() == (4.0, True)


# ---------------------------------------------------------------------- trouble on the way


def test_a_cache_that_takes_no_file_is_read(
    bench: Bench, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is there is used; what is not there is compiled, and one line says that it is lost."""
    bench.run()

    def refuse(*_: Any) -> None:
        raise InputError("Read-only file system")

    monkeypatch.setattr(compiling, "write_atomic", refuse)
    assert bench.run() == (4.0, True)
    assert capsys.readouterr().err == ""
    twice = bench.load()
    assert (twice(1), twice(1j)) == (2, 2j)
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "Read-only file system" in told


def test_a_cache_that_vanishes_is_missed_by_nobody(bench: Bench) -> None:
    """Before the first call, and between two."""
    twice = bench.load()
    shutil.rmtree(bench.cache)
    assert twice(2.0) == 4.0
    assert twice(2) == 4
    assert bench.run()[0] == 4.0
    assert bench.run() == (4.0, True)


def test_an_interrupt_is_not_taken_for_damage(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while code is loaded ends the program and removes nothing."""
    bench.run()

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(compiling, "_rebuild", interrupt)
    with pytest.raises(KeyboardInterrupt):
        bench.run()
    assert len(bench.kept) == 1


@pytest.mark.slow
def test_processes_share_a_cache(bench: Bench) -> None:
    """All at once into an empty one, then into a damaged one: right answers, no stray files. Each
    begins with other types, and none takes for them what the other has written.
    """
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from twice import twice\n"
        "first, second = eval(sys.argv[2])\n"
        "print(twice(first), twice(second))"
    )

    def run_two() -> list[str]:
        started = [
            subprocess.Popen(
                [sys.executable, "-c", code, str(bench.source.parent), numbers],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for numbers in ("2.0, 3", "3, 2.0")
        ]
        ends = [process.communicate() for process in started]
        assert [process.returncode for process in started] == [0] * 2, ends
        return [out for out, _ in ends]

    assert run_two() == ["4.0 6\n", "6 4.0\n"]
    for path in bench.kept:
        path.write_bytes(path.read_bytes()[:100])
    assert run_two() == ["4.0 6\n", "6 4.0\n"]
    assert len(bench.kept) == 2
