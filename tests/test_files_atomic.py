"""Files written all or nothing, whatever happens on the way."""

from __future__ import annotations

import errno
import gzip
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from marginbn.cli.data import write_csv_chunks
from marginbn.exceptions import InputError
from marginbn.files import replacing, write_atomic, write_text
from tables import write_rows


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
        yield pa.table({"x": ["1"]})
        raise ZeroDivisionError

    for name in ("a.csv", "a.csv.gz"):
        write_rows(tmp_path / name, ["x"], [["1"], ["2"]])
        before = (tmp_path / name).read_bytes()
        with pytest.raises(ZeroDivisionError):
            write_csv_chunks(tmp_path / name, chunks())
        assert (tmp_path / name).read_bytes() == before
    assert gzip.decompress(before) == b"x\n1\n2\n"
    assert sorted(os.listdir(tmp_path)) == ["a.csv", "a.csv.gz"]


def test_a_link_keeps_pointing_to_the_new_content(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"


def test_new_files_follow_the_umask(tmp_path: Path) -> None:
    """A file others may read stays so; temporary files with private modes would change that."""
    (tmp_path / "plain").write_text("1")
    write_text(tmp_path / "a", "1")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_an_interrupt_leaves_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_text(tmp_path / "a", "new")
    assert os.listdir(tmp_path) == []
