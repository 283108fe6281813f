"""JSON files: strict reading and all-or-nothing writing."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from marginbn import files as jsonfile
from marginbn.exceptions import FormatError, InputError
from marginbn.files import read_json, write_json_atomic


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    """Plain values survive, text in other scripts stays readable, nothing else is left behind."""
    value = {"größe": [1, 2.5, None, True, "東"]}
    write_json_atomic(tmp_path / "a.json", value)
    assert read_json(tmp_path / "a.json") == value
    assert "größe" in (tmp_path / "a.json").read_text(encoding="utf-8")
    assert os.listdir(tmp_path) == ["a.json"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_disk_keeps_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """If flushing or replacing fails, the old content stays and the temporary file goes."""
    path = tmp_path / "a.json"
    write_json_atomic(path, "old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(jsonfile.os, step, full)
    with pytest.raises(InputError, match="No space left on device; what was there before"):
        write_json_atomic(path, "new")
    assert read_json(path) == "old"
    assert os.listdir(tmp_path) == ["a.json"]


def test_an_interrupt_leaves_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while writing passes through, and the folder is as before."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(jsonfile.os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_json_atomic(tmp_path / "a.json", "new")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, "\ud800"])
def test_what_json_cannot_hold_is_refused_before_the_disk_is_touched(
    tmp_path: Path, value: object
) -> None:
    """NaN, sets and half surrogates are errors, not files that cannot be read back."""
    with pytest.raises(InputError, match="as JSON"):
        write_json_atomic(tmp_path / "a.json", value)
    assert os.listdir(tmp_path) == []


def test_a_link_keeps_pointing_to_the_new_content(tmp_path: Path) -> None:
    """Writing through a symbolic link replaces its target, not the link."""
    (tmp_path / "link.json").symlink_to(tmp_path / "target.json")
    write_json_atomic(tmp_path / "link.json", 1)
    assert (tmp_path / "link.json").is_symlink()
    assert read_json(tmp_path / "target.json") == 1


def test_new_files_follow_the_umask(tmp_path: Path) -> None:
    """A file others may read stays so; temporary files with private modes would change that."""
    (tmp_path / "plain.json").write_text("1")
    write_json_atomic(tmp_path / "a.json", 1)
    plain = (tmp_path / "plain.json").stat().st_mode
    assert (tmp_path / "a.json").stat().st_mode == plain


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "line 1, column 1: not JSON"),
        (b'{"a": [1, 2', "line 1, column 12: not JSON"),
        (b"\xff\xfe\x00", "not UTF-8 text at byte 0"),
        (b'["ok", "\xc3\x28"]', "not UTF-8 text at byte 8"),
        (b"\xef\xbb\xbf{}", "not JSON"),
        (b"[NaN]", "NaN is not a JSON number"),
        (b"[-Infinity]", "-Infinity is not a JSON number"),
        (b'{"a": 1, "b": 2, "a": 3}', "the key 'a' twice"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"a":' * 200_000, "nested too deeply"),
        (b"9" * 100_000, "100000 digits is too long"),
        (b"[1] [2]", "not JSON"),
        (b"__import__('os').system('true')", "not JSON"),
    ],
)
def test_malformed_files_are_named_with_the_reason(
    tmp_path: Path, content: bytes, message: str
) -> None:
    """Truncated, mis-encoded, too deep or too long: a FormatError with path and place."""
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=message) as caught:
        read_json(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert len(str(caught.value)) < len(str(path)) + 200


def test_files_that_cannot_be_read_say_why(tmp_path: Path) -> None:
    """A missing file and a folder are input errors with the system's reason."""
    with pytest.raises(InputError, match="No such file"):
        read_json(tmp_path / "absent.json")
    with pytest.raises(InputError, match="cannot read"):
        read_json(tmp_path)
    with pytest.raises(InputError, match="cannot write"):
        write_json_atomic(tmp_path / "absent" / "a.json", 1)


def test_oversized_files_are_refused_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The size is asked before the content."""
    (tmp_path / "a.json").write_text(json.dumps(list(range(100))))
    monkeypatch.setattr(jsonfile, "MAX_BYTES", 99)
    with pytest.raises(FormatError, match="larger than 99 bytes"):
        read_json(tmp_path / "a.json")
