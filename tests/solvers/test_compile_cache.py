"""Machine code on the disk is our own and whole, or it is not used: nothing there ends a fit."""

from __future__ import annotations

import errno
import hashlib
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from marginbn import files
from marginbn.solvers import compile as compiling
from marginbn.solvers import compile as own_folder

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
        """The answer, and whether it was found on the disk."""
        twice = self.load()
        answer = twice(x)
        return answer, bool(twice.stats.cache_hits)

    @property
    def kept(self) -> list[Path]:
        """Files of machine code."""
        return sorted(self.cache.rglob("*.code"))

    @property
    def folder(self) -> Path:
        """The folder that they are in."""
        [folder] = (self.cache / "kernels").iterdir()
        return folder


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """A bench with a cache of its own."""
    monkeypatch.setenv("MARGINBN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(compiling, "_told", set())
    yield Bench(tmp_path)
    compiling.machine_code_folder.cache_clear()


@pytest.fixture
def stranger(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """A function that gives a file or folder to another user, as far as the package can see."""

    def give(path: Path) -> None:
        if os.geteuid() == 0:
            os.chown(path, 65534, -1)
            return
        ask, given = own_folder.why_not_mine, (path.stat().st_ino, path.stat().st_dev)

        def look(status: os.stat_result, is_above: bool = False) -> str | None:
            if (status.st_ino, status.st_dev) == given:
                return "belongs to another user (number 65534)"
            return ask(status, is_above)

        monkeypatch.setattr(own_folder, "why_not_mine", look)
        monkeypatch.setattr(compiling, "why_not_mine", look)

    return give


needs_owners = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no owners on this system")


def sealed(content: bytes) -> bytes:
    """A file with a right checksum."""
    return compiling._MAGIC + hashlib.sha256(content).digest() + content


class Payload:
    """Leaves a mark where it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.mark),)


def test_machine_code_is_found_again(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    """One file per function and types of arguments, nothing else, and nothing is said."""
    assert bench.run() == (4.0, False)
    assert bench.run() == (4.0, True)
    assert bench.run(3) == (6, False)
    assert bench.run(3) == (6, True)
    assert len(bench.kept) == 2
    assert sorted(bench.folder.iterdir()) == bench.kept
    assert capsys.readouterr().err == ""


# ---------------------------------------------------------------------- damage


def flip(place: int) -> Callable[[bytes], bytes]:
    def change(content: bytes) -> bytes:
        return content[:place] + bytes([content[place] ^ 0x10]) + content[place:][1:]

    return change


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "emptied": lambda content: b"",
    "zeroed": lambda content: bytes(len(content)),
    "cut in the name": lambda content: content[:10],
    "cut in the checksum": lambda content: content[:40],
    "cut in the middle": lambda content: content[: len(content) // 2],
    "cut at the end": lambda content: content[:-1],
    "longer": lambda content: content + b"\0",
    "flipped in the name": flip(3),
    "flipped in the checksum": flip(30),
    "flipped at the start": flip(60),
    "flipped in the middle": flip(3000),
    "flipped at the end": flip(-1),
    "no pickle": lambda content: sealed(b"never a pickle"),
    "empty pickle": lambda content: sealed(b""),
    "another value": lambda content: sealed(pickle.dumps(17)),
    "a name that is not there": lambda content: sealed(b"cnumba.nowhere\nnothing\n."),
    "no compiled function": lambda content: sealed(
        pickle.dumps((pickle.loads(content[len(compiling._MAGIC) + 32 :])[0], (1, 2, 3)))
    ),
    "another program's": lambda content: b"\x7fELF" + content,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_machine_code_is_made_anew(
    bench: Bench, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    """The answer is right, one line says so, and the next process finds whole code."""
    bench.run()
    [path] = bench.kept
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    assert bench.run() == (4.0, False)
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "is not usable" in told
    assert bench.run() == (4.0, True)
    assert capsys.readouterr().err == ""
    assert sorted(bench.folder.iterdir()) == [path]


def test_machine_code_cut_at_any_byte_is_noticed(bench: Bench) -> None:
    """And so is any byte that is different."""
    bench.run()
    [path] = bench.kept
    content = path.read_bytes()
    for place in range(0, len(content), 97):
        path.write_bytes(content[:place])
        with pytest.raises(compiling.DamagedError):
            compiling._read_sealed(path)
        path.write_bytes(flip(place)(content))
        with pytest.raises(compiling.DamagedError):
            compiling._read_sealed(path)


def test_another_function_of_the_same_name_is_compiled(bench: Bench) -> None:
    """Code that was kept for other types is not used, whatever the file is called."""
    bench.run()
    [path] = bench.kept
    bench.run(3)
    [other] = [kept for kept in bench.kept if kept != path]
    shutil.copy(other, path)
    assert bench.run() == (4.0, False)


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


@needs_owners
@pytest.mark.parametrize("depth", range(3))
def test_a_folder_of_another_user_is_not_used(
    bench: Bench,
    capsys: pytest.CaptureFixture[str],
    stranger: Callable[[Path], None],
    depth: int,
) -> None:
    """Nor one below: what is there is not even read. It would run with the rights of the user."""
    bench.run()
    [path] = bench.kept
    mark = bench.cache.parent / "mark"
    path.write_bytes(sealed(pickle.dumps(Payload(mark))))
    stranger([bench.cache, bench.cache / "kernels", bench.folder][depth])
    assert "belongs to another user (number 65534)" in refusal(bench, capsys)
    assert not mark.exists()


@needs_owners
@pytest.mark.parametrize("depth", range(3))
@pytest.mark.parametrize(("mode", "who"), [(0o777, "everybody"), (0o775, "its group")])
def test_a_folder_that_others_can_write_is_not_used(
    bench: Bench,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    depth: int,
    mode: int,
    who: str,
) -> None:
    """The cache, the folder in it, the folder of the kernels."""
    monkeypatch.setattr(own_folder, "_is_private_group", lambda number: False)
    bench.run()
    [bench.cache, bench.cache / "kernels", bench.folder][depth].chmod(mode)
    assert f"can be written by {who}" in refusal(bench, capsys)


@needs_owners
def test_nothing_is_made_in_a_foreign_place(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    """A cache that is not there yet is not made where others can rename it."""
    bench.cache.parent.chmod(0o777)
    refusal(bench, capsys)
    assert not bench.cache.exists()


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
def test_a_link_leads_to_the_folder_that_is_checked(
    bench: Bench, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What counts is where a link leads."""
    open_to_all = bench.cache.parent / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    link = bench.cache.parent / "link"
    link.symlink_to(open_to_all)
    monkeypatch.setenv("MARGINBN_CACHE", str(link))
    assert "open' can be written by everybody" in refusal(bench, capsys)
    assert not list(open_to_all.iterdir())


@needs_owners
@pytest.mark.parametrize("mode", [None, 0o666])
def test_a_foreign_file_in_an_own_folder_is_removed(
    bench: Bench,
    capsys: pytest.CaptureFixture[str],
    stranger: Callable[[Path], None],
    mode: int | None,
) -> None:
    """It may be from a time when the folder was open to others."""
    bench.run()
    [path] = bench.kept
    mark = bench.cache.parent / "mark"
    path.write_bytes(sealed(pickle.dumps(Payload(mark))))
    if mode is None:
        stranger(path)
    else:
        path.chmod(mode)
    assert bench.run() == (4.0, False)
    assert "is not usable (it " in capsys.readouterr().err
    assert not mark.exists()
    assert path.read_bytes() != sealed(pickle.dumps(Payload(mark)))


@needs_owners
def test_a_group_of_the_user_alone_is_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many systems give every user a group of the same name; group 0 is never taken for one."""
    import grp
    import pwd
    from types import SimpleNamespace as Record

    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(pwd, "getpwuid", lambda number: Record(pw_name="ada", pw_gid=group.gr_gid))
    monkeypatch.setattr(grp, "getgrgid", lambda number: group)
    for number, name, members, expected in [
        (1000, "ada", [], True),
        (1000, "ada", ["ada"], True),
        (1000, "ada", ["ada", "eve"], False),
        (100, "users", [], False),
        (0, "ada", [], False),
    ]:
        group = Record(gr_gid=number, gr_name=name, gr_mem=members)
        assert own_folder._is_private_group(number) is expected
    assert not own_folder._is_private_group(4)


@needs_owners
def test_folders_are_made_closed_to_others(bench: Bench) -> None:
    """Whatever the user's mask allows."""
    before = os.umask(0)
    try:
        bench.run()
    finally:
        os.umask(before)
    for path in (bench.cache, *bench.cache.rglob("*")):
        assert path.stat().st_mode & 0o022 == 0
    assert bench.run() == (4.0, True)


# ---------------------------------------------------------------------- trouble on the way


class ReadOnly(files.Disk):
    """A disk that takes nothing."""

    def write(self, handle: int, content: Any) -> int:
        raise OSError(errno.EROFS, "Read-only file system")


def test_a_cache_that_can_only_be_read_is_read(
    bench: Bench, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is there is used; what is not there is compiled, and one line says that it is lost."""
    bench.run()
    monkeypatch.setattr(files, "disk", ReadOnly())
    assert bench.run() == (4.0, True)
    assert capsys.readouterr().err == ""
    twice = bench.load()
    assert (twice(1), twice(1j)) == (2, 2j)
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "Read-only file system" in told
    assert len(list(bench.folder.iterdir())) == 1


def test_a_cache_that_vanishes_is_missed_by_nobody(bench: Bench) -> None:
    """Before the first call, and between two."""
    twice = bench.load()
    shutil.rmtree(bench.cache)
    assert twice(2.0) == 4.0
    assert twice(2) == 4
    assert not bench.cache.exists()
    assert bench.run() == (4.0, False)
    assert bench.run() == (4.0, True)


def test_a_file_that_vanishes_while_it_is_read_is_compiled(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another process may remove it at any moment."""
    bench.run()

    def vanish(path: Path) -> bytes:
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(path))

    monkeypatch.setattr(compiling, "_read_sealed", vanish)
    assert bench.run() == (4.0, False)
    assert capsys.readouterr().err == ""


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
    """All at once into an empty one, then into a damaged one: right answers, no stray files."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from twice import twice\n"
        "print(twice(2.0), twice(3), len(sys.argv))"
    )

    def run_two() -> list[str]:
        started = [
            subprocess.Popen(
                [sys.executable, "-c", code, str(bench.source.parent)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for _ in range(2)
        ]
        ends = [process.communicate() for process in started]
        assert [process.returncode for process in started] == [0] * 2, ends
        return [out for out, _ in ends]

    assert run_two() == ["4.0 6 2\n"] * 2
    for path in bench.kept:
        path.write_bytes(path.read_bytes()[:100])
    assert run_two() == ["4.0 6 2\n"] * 2
    assert sorted(bench.folder.iterdir()) == bench.kept
    assert len(bench.kept) == 2
