"""Files written all or nothing, whatever happens on the way."""

from __future__ import annotations

import errno
import gzip
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.tables import write_rows

from marginbn import files
from marginbn.data.writers import write_csv_chunks
from marginbn.exceptions import InputError
from marginbn.files import keep_as, remove_leftovers, replacing, write_atomic, write_text


def test_content_is_written_and_nothing_else(tmp_path: Path) -> None:
    """The folder holds the file and no temporary one."""
    write_atomic(tmp_path / "a", b"one")
    write_text(tmp_path / "a", "zwölf")
    assert (tmp_path / "a").read_bytes() == "zwölf".encode()
    assert os.listdir(tmp_path) == ["a"]


def test_the_folder_is_flushed_after_the_name_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """File, then name, then folder: a power failure in between costs nothing."""
    steps = []
    fsync, replace = os.fsync, os.replace

    def record_flush(handle: int) -> None:
        steps.append(os.readlink(f"/proc/self/fd/{handle}"))
        fsync(handle)

    def record_replace(source: str, target: str) -> None:
        steps.append("replace")
        replace(source, target)

    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("needs the names of open files")
    monkeypatch.setattr(os, "fsync", record_flush)
    monkeypatch.setattr(os, "replace", record_replace)
    write_atomic(tmp_path / "a", b"one")
    assert [os.path.basename(step)[:3] for step in steps[:2]] == [".a.", "rep"]
    assert os.path.realpath(steps[2]) == os.path.realpath(tmp_path)


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The message says why and that nothing has changed."""
    write_atomic(tmp_path / "a", b"old")

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(InputError, match="No space left on device; what was there before"):
        write_atomic(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_an_error_of_the_writer_passes_through(tmp_path: Path) -> None:
    """Other errors keep their type, and the old file stays."""
    write_atomic(tmp_path / "a", b"old")

    def fail() -> None:
        with replacing(tmp_path / "a") as draft:
            Path(draft).write_bytes(b"half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert (tmp_path / "a").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_a_table_cut_short_is_not_written(tmp_path: Path) -> None:
    """Rows that cannot be made leave the old table, compressed or not."""

    def chunks() -> Any:
        yield [["1"]]
        raise ZeroDivisionError

    for name in ("a.csv", "a.csv.gz"):
        write_rows(tmp_path / name, ["x"], [["1"], ["2"]])
        before = (tmp_path / name).read_bytes()
        with pytest.raises(ZeroDivisionError):
            write_csv_chunks(tmp_path / name, ["x"], chunks())
        assert (tmp_path / name).read_bytes() == before
    assert gzip.decompress(before) == b"x\n1\n2\n"
    assert sorted(os.listdir(tmp_path)) == ["a.csv", "a.csv.gz"]


def dead_process() -> int:
    """The number of a process that has ended."""
    ended = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"],
        capture_output=True,
        text=True,
        check=True,
    )
    return int(ended.stdout)


def temporary(folder: Path, name: str, process: int, machine: str | None = None) -> Path:
    """A file as :func:`replacing` makes one."""
    machine = files._machine() if machine is None else machine
    path = folder / f".{name}.{machine}-{process}-0123456789ab.tmp"
    path.touch()
    return path


@pytest.mark.skipif(os.name == "nt", reason="processes cannot be asked for")
def test_leftovers_of_the_file_are_removed_and_no_others(tmp_path: Path) -> None:
    """Only temporary files of the same name go, and only those of processes that have ended."""
    dead = dead_process()
    temporary(tmp_path, "a", dead)
    kept = [temporary(tmp_path, "b", dead), temporary(tmp_path, "a", os.getpid()), tmp_path / "a"]
    kept += [temporary(tmp_path, "a", os.getppid()), temporary(tmp_path, "a", 1)]
    kept += [temporary(tmp_path, "a", dead, "00000000")]  # another machine's process
    (tmp_path / "a").touch()
    remove_leftovers(tmp_path / "a")
    assert sorted(tmp_path.iterdir()) == sorted(kept)


def test_what_nobody_wrote_to_for_long_is_removed(tmp_path: Path) -> None:
    """Of another machine, of a living process that got the same number, of earlier versions."""
    old = [temporary(tmp_path, "a", 1, "00000000"), temporary(tmp_path, "a", os.getpid())]
    old += [tmp_path / ".a.0123456789ab.tmp"]
    old[-1].touch()
    remove_leftovers(tmp_path / "a")
    assert sorted(tmp_path.iterdir()) == sorted(old)
    for path in old:
        os.utime(path, (1e9, 1e9))
    remove_leftovers(tmp_path / "a")
    assert not list(tmp_path.iterdir())


def test_a_second_process_leaves_what_the_first_is_writing(tmp_path: Path) -> None:
    """Its start removed the living temporary file of the first, whose checkpoint then failed."""
    second = [
        sys.executable,
        "-c",
        "import sys; from marginbn.files import remove_leftovers; remove_leftovers(sys.argv[1])",
        str(tmp_path / "a"),
    ]
    with replacing(tmp_path / "a") as draft:
        Path(draft).write_bytes(b"new")
        subprocess.run(second, check=True)
    assert (tmp_path / "a").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a"]


def test_a_second_name_replaces_the_one_before(tmp_path: Path) -> None:
    """Also where both are names of one file already: renaming between them does nothing."""
    (tmp_path / "a").write_bytes(b"new")
    (tmp_path / "b").write_bytes(b"old")
    for _ in range(2):
        keep_as(str(tmp_path / "a"), str(tmp_path / "b"))
        assert (tmp_path / "b").read_bytes() == b"new"
        assert sorted(os.listdir(tmp_path)) == ["a", "b"]
