"""Files: written all or nothing, read with suspicion; JSON by a declared shape.

**Writing.** New content goes to a temporary file in the same folder, is flushed to the disk and
takes the place of the old file in one step; then the folder itself is flushed, so that a power
failure cannot undo the step. Whatever goes wrong, the old file stays as it was and no temporary
file is left behind, unless the process is killed. Every file of the package is written like this.

**Reading JSON.** What a file must hold is declared as a :class:`Shape`; :func:`decode` builds it
and checks every key, type and length. Only plain values are built: a hostile file runs nothing.
"""

from __future__ import annotations

import contextlib
import io
import os
import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from marginbn.exceptions import FormatError, InputError

Built = TypeVar("Built")
PathLike = str | os.PathLike[str]


disk: Any = os
"""What writes, flushes, renames and removes; a test puts a disk in its place whose k-th step fails.
"""


class _NewFile(io.FileIO):
    """A file that did not exist before, written through :data:`disk`."""

    def __init__(self, path: str, mode: int) -> None:
        super().__init__(path, "x", opener=lambda name, flags: os.open(name, flags, mode))

    def write(self, content: Any) -> int:
        return int(disk.write(self.fileno(), content))


def open_new(path: str, mode: int = 0o666) -> io.BufferedWriter:
    """Open a file that must not exist yet, for bytes; ``mode`` before the user's mask."""
    return io.BufferedWriter(_NewFile(path, mode))


@contextmanager
def replacing(path: PathLike, suffix: str = "") -> Iterator[str]:
    """Name of a temporary file to write; it becomes ``path`` when the block ends without error.

    ``suffix`` ends the temporary name, for writers that choose the format by it. Whatever fails is
    an :class:`InputError`.
    """
    target = os.path.realpath(path)  # a link keeps pointing where it did
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name[:100]}.{secrets.token_hex(6)}.tmp{suffix}")
    try:
        yield temporary
        _sync(temporary, os.O_RDWR)
        disk.replace(temporary, target)
        with contextlib.suppress(OSError):  # Windows opens no folders
            _sync(folder, os.O_RDONLY)
    except OSError as error:
        raise InputError(
            f"cannot write {os.fspath(path)}: {error.strerror or error}; "
            f"what was there before is unchanged"
        ) from error
    finally:
        with contextlib.suppress(OSError):
            disk.unlink(temporary)


def write_atomic(path: PathLike, content: bytes, mode: int = 0o666) -> None:
    """Write a file all or nothing."""
    with replacing(path) as temporary, open_new(temporary, mode) as file:
        file.write(content)


def write_text(path: PathLike, text: str) -> None:
    """Write text as UTF-8, all or nothing."""
    try:
        content = text.encode()
    except UnicodeEncodeError:
        reason = "a name holds half a surrogate pair, which is no text"
        raise InputError(f"cannot write {os.fspath(path)}: {reason}") from None
    write_atomic(path, content)


def _sync(path: str, mode: int) -> None:
    handle = os.open(path, mode)
    try:
        disk.fsync(handle)
    finally:
        os.close(handle)


def try_writing(path: PathLike, name: str) -> None:
    """Refuse before a long work what could not be written after it; nothing is left behind.

    The error names the argument if the path is a folder or no file can be made next to it.
    """
    target = os.path.realpath(path)
    folder, file = os.path.split(target)
    try:
        if os.path.isdir(target):
            raise IsADirectoryError("it is a folder")
        if os.path.isfile(target) or not os.path.exists(target):  # no device such as /dev/null
            tempfile.TemporaryFile(prefix=f".{file[:100]}.", suffix=".tmp", dir=folder).close()
    except OSError as error:
        raise InputError(
            f"cannot write {os.fspath(path)}: {error.strerror or error}; {name} must be a file in "
            "a folder that exists and can be written"
        ) from None


def write_or_rescue(path: PathLike, write: Callable[[str], None]) -> str | None:
    """Write a result of long work; if that fails, into the working or the temporary folder.

    The answer is the reason and where it is instead, None if all went well.
    """
    try:
        write(os.fspath(path))
        return None
    except InputError as error:
        failed = error
    base, suffix = os.path.splitext(os.path.basename(path))
    for folder in (os.getcwd(), tempfile.gettempdir()):
        other = os.path.join(folder, f"{base}-{secrets.token_hex(4)}{suffix}")
        with contextlib.suppress(InputError):
            write(other)
            return f"{failed}; written to {other} instead"
    raise failed


MAX_BYTES = 2**32
"""Largest file that is read; it holds a table of 2**27 floats with all their digits."""


class MisfitError(Exception):
    """Something in the file is not as the format demands: place and reason, without the path."""


@contextmanager
def naming_file(path: PathLike | None) -> Iterator[None]:
    """Misfits inside the block become :class:`FormatError` with the path, if there is one."""
    prefix = "" if path is None else f"{os.fspath(path)}: "
    try:
        yield
    except MisfitError as misfit:
        raise FormatError(f"{prefix}{misfit}") from None
    except RecursionError:
        raise FormatError(f"{prefix}brackets are nested too deeply") from None


def read_bytes(path: PathLike, max_bytes: int | None = None) -> bytes:
    """Content of a file of sane size; by default :data:`MAX_BYTES` is the limit."""
    limit = MAX_BYTES if max_bytes is None else max_bytes
    try:
        if os.path.getsize(path) <= limit:
            return Path(path).read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read {os.fspath(path)}: {reason}") from None
    raise FormatError(f"{os.fspath(path)}: the file is larger than {limit} bytes")


class Shape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A JSON object with exactly these keys; ``__post_init__`` refuses by a ValueError."""


Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""A whole number that can be an index or a size."""


def decode(content: bytes, shape: type[Built], place: str = "$") -> Built:
    """JSON text as the declared shape, all checked; raises :class:`MisfitError` with the place."""
    try:
        return msgspec.json.decode(content, type=shape)
    except UnicodeDecodeError:
        raise MisfitError(f"{place}: not UTF-8 text") from None
    except msgspec.DecodeError as error:
        reason, _, inner = str(error).partition(" - at `$")
        raise MisfitError(f"{place}{inner.rstrip('`')}: {reason[:150]}") from None


def shorten(value: object) -> str:
    """A short repr; a hostile value must not make a hostile message."""
    if isinstance(value, dict | list | tuple) and len(value) > 20:
        return f"{type(value).__name__} of {len(value)} entries"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
