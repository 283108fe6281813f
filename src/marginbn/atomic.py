"""Files written all or nothing.

New content goes to a temporary file in the same folder, is flushed to the disk and takes the place
of the old file in one step; then the folder itself is flushed, so that a power failure cannot undo
the step. Whatever goes wrong, the old file stays as it was and no temporary file is left behind
(unless the process is killed on the way: :func:`remove_leftovers`).
"""

from __future__ import annotations

import contextlib
import glob
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

from marginbn.exceptions import InputError

PathLike = str | os.PathLike[str]


@contextmanager
def replacing(path: PathLike, suffix: str = "") -> Iterator[str]:
    """Name of a temporary file to write; it becomes ``path`` when the block ends without error.

    ``suffix`` ends the temporary name, for writers that tell the format by it.

    Raises
    ------
    InputError
        If the disk is full, the folder is missing or anything else fails.
    """
    target = os.path.realpath(path)  # a link keeps pointing where it did
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name[:100]}.{secrets.token_hex(6)}.tmp{suffix}")
    try:
        yield temporary
        _sync(temporary, os.O_RDWR)
        os.replace(temporary, target)
        sync_folder(folder)
    except OSError as error:
        raise InputError(
            f"cannot write {os.fspath(path)}: {error.strerror or error}; "
            f"what was there before is unchanged"
        ) from error
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def write_atomic(path: PathLike, content: bytes) -> None:
    """Write a file all or nothing."""
    with replacing(path) as temporary, open(temporary, "xb") as file:
        file.write(content)


def write_text(path: PathLike, text: str) -> None:
    """Write text as UTF-8, all or nothing."""
    try:
        content = text.encode()
    except UnicodeEncodeError:
        raise InputError(
            f"cannot write {os.fspath(path)}: a name holds half a surrogate pair, which is no text"
        ) from None
    write_atomic(path, content)


def remove_leftovers(path: PathLike) -> None:
    """Remove temporary files that killed processes left beside ``path``."""
    folder, name = os.path.split(os.path.realpath(path))
    for leftover in glob.glob(f"{glob.escape(os.path.join(folder, '.' + name[:100]))}.*.tmp"):
        with contextlib.suppress(OSError):
            os.unlink(leftover)


def sync_folder(folder: str) -> None:
    """Flush the names in a folder to the disk, where the system can."""
    with contextlib.suppress(OSError):  # Windows opens no folders, some file systems flush none
        _sync(folder or ".", os.O_RDONLY)


def _sync(path: str, mode: int) -> None:
    handle = os.open(path, mode)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
