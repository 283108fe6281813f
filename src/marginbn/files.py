"""Files: written all or nothing, read with suspicion; JSON by a declared shape.

**Writing.** New content goes to a temporary file in the same folder, is flushed to the disk and
takes the place of the old file in one step; then the folder itself is flushed, so that a power
failure cannot undo the step. Whatever goes wrong, the old file stays as it was and no temporary
file is left behind (unless the process is killed on the way: :func:`remove_leftovers`). Every file
that the package writes goes through :func:`replacing`, and every step on the way through
:data:`disk`, in whose place a test puts one that fails.

**Folders of one's own.** What is read from a cache of machine code is run. :func:`own_folder` gives
a folder in which nobody but this user and root can put a file.

**Reading JSON.** Only plain values are ever built, so a hostile file runs nothing; whatever plain
JSON does not allow is refused with the place in the file. What a file must hold is declared once,
as a dataclass, and :func:`read_as` checks all of it: every key, type and length, with the place
(``$.coding[3].name``) in the message.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import io
import json
import math
import os
import platform
import re
import secrets
import stat
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sized
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, partial
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, NoReturn, Union, get_args, get_origin, get_type_hints

from marginbn.exceptions import FormatError, InputError

PathLike = str | os.PathLike[str]
Reader = Callable[[object, str], Any]


class Disk:
    """Every step that changes the disk; a test puts one in its place whose k-th step fails."""

    def write(self, handle: int, content: Any) -> int:
        """Write a part of a file; how many bytes were taken."""
        return os.write(handle, content)

    def fsync(self, handle: int) -> None:
        """Wait until what was written is on the disk."""
        os.fsync(handle)

    def replace(self, source: str, target: str) -> None:
        """Give a file another name, in one step, whatever had that name."""
        os.replace(source, target)

    def link(self, source: str, target: str) -> None:
        """Give a file a second name."""
        os.link(source, target)

    def unlink(self, path: str) -> None:
        """Take a name from a file."""
        os.unlink(path)


disk = Disk()
"""The disk that all files are written to."""


class _NewFile(io.FileIO):
    """A file that did not exist before, written through :data:`disk`."""

    def __init__(self, path: str, mode: int) -> None:
        super().__init__(path, "x", opener=lambda name, flags: os.open(name, flags, mode))

    def write(self, content: Any) -> int:
        return disk.write(self.fileno(), content)


def open_new(path: str, mode: int = 0o666) -> io.BufferedWriter:
    """Open a file that must not exist yet, for bytes; ``mode`` before the user's mask."""
    return io.BufferedWriter(_NewFile(path, mode))


def flush(file: io.BufferedWriter) -> None:
    """Wait until all that was written to a file is on the disk."""
    file.flush()
    disk.fsync(file.fileno())


@contextmanager
def replacing(path: PathLike, suffix: str = "") -> Iterator[str]:
    """Name of a temporary file to write; it becomes ``path`` when the block ends without error.

    ``suffix`` ends the temporary name, for writers that choose the format by it.

    Raises
    ------
    InputError
        If the disk is full, the folder is missing or anything else fails.
    """
    target = os.path.realpath(path)  # a link keeps pointing where it did
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name[:100]}.{_writer_mark()}.tmp{suffix}")
    try:
        yield temporary
        _sync(temporary, os.O_RDWR)
        disk.replace(temporary, target)
        sync_folder(folder)
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
        raise InputError(
            f"cannot write {os.fspath(path)}: a name holds half a surrogate pair, which is no text"
        ) from None
    write_atomic(path, content)


def keep_as(path: str, second: str) -> None:
    """Give a file a second name, whatever had it before; where files have one name, move it."""
    spare = f"{second}.new"
    with contextlib.suppress(OSError):
        disk.unlink(spare)
    try:
        disk.link(path, spare)
    except OSError:  # a file system without second names: for a moment only this one is left
        disk.replace(path, second)
        return
    try:
        disk.replace(spare, second)
    finally:  # renaming between two names of one file does nothing and leaves both
        with contextlib.suppress(OSError):
            disk.unlink(spare)


ABANDONED_AFTER = 86_400.0
"""Seconds without a write after which a temporary file is nobody's, on whatever machine."""

_WRITER = re.compile(r"\.([0-9a-f]{8})-(\d{1,9})-[0-9a-f]{12}\.tmp$")


def remove_leftovers(path: PathLike) -> None:
    """Remove temporary files of ``path`` that killed processes left in its folder.

    Their names say which process on which machine writes them: those of a living process stay.
    """
    folder, name = os.path.split(os.path.realpath(path))
    for leftover in glob.glob(f"{glob.escape(os.path.join(folder, '.' + name[:100]))}.*.tmp"):
        with contextlib.suppress(OSError):
            if _is_abandoned(leftover):
                os.unlink(leftover)


def _writer_mark() -> str:
    """Machine, process and a number that nobody else has."""
    return f"{_machine()}-{os.getpid()}-{secrets.token_hex(6)}"


def _is_abandoned(temporary: str) -> bool:
    """Whether nobody writes a temporary file any more; where in doubt, somebody does."""
    writer = _WRITER.search(temporary)
    if writer and writer[1] == _machine() and not _is_alive(int(writer[2])):
        return True
    return time.time() - os.stat(temporary).st_mtime > ABANDONED_AFTER


def _is_alive(process: int) -> bool:
    if sys.platform == "win32":  # there, asking by a signal would end it
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's, but there
        return True
    return True


@cache
def _machine() -> str:
    """A mark of what process numbers refer to: this machine, or this container on it."""
    try:
        numbers = os.readlink("/proc/self/ns/pid")
    except OSError:  # not on Linux
        numbers = ""
    return hashlib.sha256(f"{platform.node()} {numbers}".encode()).hexdigest()[:8]


def sync_folder(folder: str) -> None:
    """Flush the names in a folder to the disk, where the system can."""
    with contextlib.suppress(OSError):  # Windows opens no folders, some file systems flush none
        _sync(folder or ".", os.O_RDONLY)


def _sync(path: str, mode: int) -> None:
    handle = os.open(path, mode)
    try:
        disk.fsync(handle)
    finally:
        os.close(handle)


def own_folder(path: PathLike) -> Path:
    """The folder, made if need be, once it is sure that nobody else can put files there.

    It and everything above it must belong to this user or to root, and nobody else may write in
    it. Above it there may be a folder such as ``/tmp``, writable for all but sticky: there nobody
    can rename or remove what belongs to others. On systems without such owners nothing is checked.

    Raises
    ------
    PermissionError
        If others could change what is in the folder; the message says where and why.
    OSError
        If the folder cannot be made.
    """
    folder = Path(os.path.realpath(path))
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    if missing:
        _check_owners(missing[-1].parent, is_above=True)
    for place in reversed(missing):
        with contextlib.suppress(FileExistsError):
            os.mkdir(place, 0o755)
    _check_owners(folder, is_above=False)
    return folder


def _check_owners(folder: Path, is_above: bool) -> None:
    if not folder.is_dir():
        raise NotADirectoryError(f"{str(folder)!r} is no folder")
    for place in (folder, *folder.parents):
        reason = why_not_mine(os.stat(place), is_above)
        if reason:
            raise PermissionError(f"{str(place)!r} {reason}")
        is_above = True


def why_not_mine(status: os.stat_result, is_above: bool = False) -> str | None:
    """How somebody else could change a file or folder; None if only this user and root can.

    A mask of access control lists shows as the rights of the group, so these count as well.
    """
    if not hasattr(os, "geteuid"):
        return None
    if status.st_uid not in (0, os.geteuid()):
        return f"belongs to another user (number {status.st_uid})"
    if is_above and status.st_mode & stat.S_ISVTX:
        return None
    if status.st_mode & stat.S_IWOTH:
        return "can be written by everybody"
    if status.st_mode & stat.S_IWGRP and not _is_private_group(status.st_gid):
        return f"can be written by its group (number {status.st_gid})"
    return None


def _is_private_group(number: int) -> bool:
    """Whether a group has this user alone: many systems make one of the user's name."""
    try:
        import grp
        import pwd

        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(number)
    except (ImportError, KeyError):
        return False
    if number == 0 or user.pw_gid != number:  # containers give group 0 to users without a name
        return False
    return group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}


MAX_BYTES = 2**32
"""Largest file that is read; it holds a table of 2**27 floats with all their digits."""

_MAX_DIGITS = 400
"""Longest integer that is read; a float ends at 309 digits, an index far earlier."""

_MAX_SHOWN = 20  # entries of a container that a message repeats


class MisfitError(Exception):
    """Something in the file is not as the format demands: place and reason, without the path."""


class NotPlainError(InputError):
    """A value that JSON cannot carry."""


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


def read_json(path: PathLike) -> object:
    """Read strict JSON: UTF-8, no NaN or Infinity, no repeated keys, no endless integers."""
    content = read_bytes(path)
    with naming_file(path):
        return parse_json(content)


def parse_json(content: bytes) -> object:
    """The value of strict JSON text; raises :class:`MisfitError`."""
    try:
        return json.loads(
            content.decode("utf-8"),
            parse_constant=_refuse_constant,
            parse_int=_parse_int,
            object_pairs_hook=_parse_object,
        )
    except UnicodeDecodeError as error:
        raise MisfitError(f"not UTF-8 text at byte {error.start}") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise MisfitError(f"{place}: not JSON, {error.msg}") from None
    except RecursionError:
        raise MisfitError("brackets are nested too deeply") from None


def _refuse_constant(token: str) -> NoReturn:
    raise MisfitError(f"{token} is not a JSON number")


def _parse_int(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise MisfitError(f"an integer of {len(digits)} digits is too long")
    return int(digits)


def _parse_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) < len(pairs):
        repeated = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise MisfitError(f"an object has the key {repeated[:80]!r} twice")
    return result


def write_json_atomic(path: PathLike, obj: object) -> None:
    """Write JSON so that the file is either the old one or the complete new one, never a part."""
    try:
        content = f"{json.dumps(obj, allow_nan=False, ensure_ascii=False)}\n".encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"cannot write {os.fspath(path)} as JSON: {error}") from None
    write_atomic(path, content)


def try_writing(path: PathLike, name: str) -> None:
    """Refuse before a long work what could not be written after it; nothing is left behind.

    Raises
    ------
    InputError
        That names the argument, if the path is a folder or no file can be made beside it.
    """
    target = os.path.realpath(path)
    folder, file = os.path.split(target)
    if os.path.isdir(target):
        reason = "it is a folder"
    elif not os.path.isdir(folder):
        reason = f"there is no folder {folder}"
    elif os.path.exists(target) and not os.path.isfile(target):
        return  # a device such as /dev/null tells when it is written
    else:
        try:
            tempfile.TemporaryFile(prefix=f".{file[:100]}.", suffix=".tmp", dir=folder).close()
            return
        except OSError as error:
            reason = error.strerror or str(error)
    raise InputError(
        f"cannot write {os.fspath(path)}: {reason}; {name} must be a file in a folder "
        "that can be written"
    )


@dataclass(frozen=True)
class Rescued:
    """A file that could not be written where it should be."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.reason}; written to {self.path} instead"


def write_or_rescue(path: PathLike, write: Callable[[str], None]) -> Rescued | None:
    """Write a result of long work; if that fails, into the working folder or that for temporary
    files, under a name of its own.

    Returns
    -------
    Rescued or None
        Where it is instead, None if all went well.

    Raises
    ------
    InputError
        If it cannot be written there either.
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
            return Rescued(other, str(failed))
    raise failed


@dataclass(frozen=True)
class Must:
    """A condition in ``Annotated``: the words that follow "must", and the test."""

    words: str
    holds: Callable[[Any], bool]


def one_of(names: Collection[str]) -> Must:
    """The condition to be one of these names."""
    return Must(f"be one of {', '.join(sorted(names))}", names.__contains__)


def read_as(shape: Any, data: object, place: str = "$") -> Any:
    """JSON values as the declared shape, all checked; raises :class:`MisfitError` with the place.

    A shape is a dataclass (an object with exactly its fields as keys) or one of ``str``, ``int``,
    ``bool``, ``float`` (finite), :data:`Count`, :data:`Number`, :data:`Plain`, ``list`` and
    ``object`` (not looked into), ``Literal``, an enumeration, ``tuple[X, ...]``, ``tuple[X, Y]``,
    ``dict[str, X]``, ``X | None`` or ``Annotated[X, Must(...)]``.

    Examples
    --------
    >>> @dataclass
    ... class Point:
    ...     name: str
    ...     where: tuple[float, float]
    >>> read_as(Point, {"name": "a", "where": [1, 2.5]})
    Point(name='a', where=(1.0, 2.5))
    >>> read_as(Point, {"name": "a", "where": [1, "b"]})
    Traceback (most recent call last):
        ...
    marginbn.files.MisfitError: $.where[1]: must be a number, got 'b'
    """
    return _reader(shape)(data, place)


def read_document(
    shape: Any, data: object, format_name: str, version: int, place: str = "$"
) -> Any:
    """:func:`read_as`, once other formats and versions that are not known yet are refused."""
    record = _checked(dict, data, place)
    if record.get("format") != format_name:
        found = shorten(record.get("format"))
        raise MisfitError(f"{place}.format: must be {format_name!r}, got {found}")
    written = _checked(int, record.get("version"), f"{place}.version")
    if written > version:
        raise MisfitError(
            f"{place}.version: written by a newer marginbn (format version {shorten(written)}, "
            f"this one reads up to {version}); upgrade marginbn to read it"
        )
    if written < 1:
        known = "1" if version == 1 else f"1 to {version}"
        raise MisfitError(f"{place}.version: must be {known}, got {shorten(written)}")
    return read_as(shape, data, place)


def check_length(items: Sized, length: int, place: str) -> None:
    """Refuse an array that has not so many entries."""
    if len(items) != length:
        raise MisfitError(f"{place}: must have {length} entries, got {len(items)}")


@cache
def _reader(shape: Any) -> Reader:
    """The function that reads values of this shape."""
    if shape in _READERS:
        return _READERS[shape]
    if is_dataclass(shape):
        hints = get_type_hints(shape, include_extras=True)
        return partial(_read_record, shape, {f.name: _reader(hints[f.name]) for f in fields(shape)})
    origin, arguments = get_origin(shape), get_args(shape)
    if origin is tuple and arguments[-1] is not ...:
        return partial(_read_row, [_reader(argument) for argument in arguments])
    if origin is tuple:
        return partial(_read_array, _reader(arguments[0]))
    if origin is dict:
        return partial(_read_mapping, _reader(arguments[1]))
    if origin is Annotated:
        return partial(_read_checked, _reader(arguments[0]), arguments[1:])
    if origin in (Union, UnionType):
        return partial(_read_optional, _reader(arguments[0]))
    return partial(_read_choice, arguments or tuple(shape))


def _read_record(shape: Any, readers: dict[str, Reader], data: object, place: str) -> Any:
    record = _checked(dict, data, place)
    for key in readers:
        if key not in record:
            raise MisfitError(f"{place}: the key {key!r} is missing")
    unknown = [key for key in record if key not in readers]
    if unknown:
        raise MisfitError(f"{place}: unknown keys {shorten(unknown)}")
    return shape(**{key: read(record[key], f"{place}.{key}") for key, read in readers.items()})


def _read_row(readers: list[Reader], data: object, place: str) -> tuple[Any, ...]:
    items = _checked(list, data, place)
    check_length(items, len(readers), place)
    return tuple([read(items[i], f"{place}[{i}]") for i, read in enumerate(readers)])


def _read_array(read: Reader, data: object, place: str) -> tuple[Any, ...]:
    items = _checked(list, data, place)
    return tuple([read(item, f"{place}[{i}]") for i, item in enumerate(items)])


def _read_mapping(read: Reader, data: object, place: str) -> dict[str, Any]:
    record = _checked(dict, data, place)
    return {key: read(value, f"{place}.{key[:80]}") for key, value in record.items()}


def _read_optional(read: Reader, data: object, place: str) -> Any:
    return None if data is None else read(data, place)


def _read_checked(read: Reader, conditions: tuple[Must, ...], data: object, place: str) -> Any:
    value = read(data, place)
    for must in conditions:
        if not must.holds(value):
            raise MisfitError(f"{place}: must {must.words}, got {shorten(data)}")
    return value


def _read_choice(choices: tuple[Any, ...], data: object, place: str) -> Any:
    if data not in choices:
        known = ", ".join(map(str, choices))
        raise MisfitError(f"{place}: must be one of {known}, got {shorten(data)}")
    return choices[choices.index(data)]


def _checked(kind: type, data: object, place: str) -> Any:
    """The value, if it is of this type and no other: true is no whole number."""
    if type(data) is not kind:
        raise MisfitError(f"{place}: must be {_WORDS[kind]}, got {shorten(data)}")
    return data


def _read_text(data: object, place: str) -> str:
    text: str = _checked(str, data, place)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise MisfitError(f"{place}: half a surrogate pair is no text") from None
    return text


def _read_float(data: object, place: str) -> float:
    try:
        number = float(_checked(int if type(data) is int else float, data, place))
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):  # 1e999 reads as infinity
        raise MisfitError(f"{place}: the number is too large for a float")
    return number


def _read_count(data: object, place: str) -> int:
    number: int = _checked(int, data, place)
    if not 0 <= number < 2**63:
        raise MisfitError(f"{place}: must be at least 0 and below 2^63, got {shorten(data)}")
    return number


def _read_number(data: object, place: str) -> float:
    return float(data) if data in ("inf", "-inf", "nan") else _read_float(data, place)


_WORDS: dict[type, str] = {
    dict: "an object",
    list: "an array",
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
}

Count = Annotated[int, "count"]
"""A whole number that can be an index or a size."""

Number = Annotated[float, "or a word"]
"""A float, or one of the words "inf", "-inf" and "nan", as :func:`encode_number` writes it."""

Plain = Annotated[Any, "plain"]
"""What :func:`encode_value` wrote."""

_READERS: dict[Any, Reader] = {
    str: _read_text,
    int: partial(_checked, int),
    bool: partial(_checked, bool),
    float: _read_float,
    list: partial(_checked, list),
    object: lambda data, _: data,
    Count: _read_count,
    Number: _read_number,
}


def encode_number(value: float) -> float | str:
    """A number for JSON, which has no infinities; :data:`Number` is the inverse."""
    number = float(value)
    return number if math.isfinite(number) else str(number)


def encode_value(value: Any) -> object:
    """A plain Python value for JSON; :func:`decode_value` is the inverse.

    Lists stay lists; tuples, mappings and non-finite floats are marked as such, so that they come
    back as what they were. numpy scalars and arrays become Python numbers and lists.

    Examples
    --------
    >>> encode_value({0: ("a", 1.5)})
    {'dict': [[0, {'tuple': ['a', 1.5]}]]}
    """
    import numpy as np  # here, so that whoever only writes a file need not wait for it

    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, list):
        return [encode_value(v) for v in value]
    if isinstance(value, tuple):
        return {"tuple": [encode_value(v) for v in value]}
    if isinstance(value, Mapping) and all(isinstance(key, str | int) for key in value):
        return {"dict": [[key, encode_value(v)] for key, v in value.items()]}
    raise NotPlainError(f"{type(value).__name__} is not a plain value")


def decode_value(data: object, place: str) -> Any:
    """The value that :func:`encode_value` made ``data`` of."""
    if isinstance(data, list):
        return [decode_value(v, f"{place}[{i}]") for i, v in enumerate(data)]
    if isinstance(data, str | float):
        return read_as(type(data), data, place)
    if not isinstance(data, dict):
        return data
    if len(data) != 1:
        raise MisfitError(f"{place}: must be marked as float, tuple or dict, got {shorten(data)}")
    [(mark, content)] = data.items()
    if mark == "float":
        return _read_number(content, place)
    if mark == "tuple":
        return tuple(decode_value(_checked(list, content, place), place))
    if mark == "dict":
        return dict(_decode_pair(pair, place) for pair in _checked(list, content, place))
    raise MisfitError(f"{place}: the mark must be float, tuple or dict, got {shorten(mark)}")


def _decode_pair(pair: object, place: str) -> tuple[str | int, Any]:
    key, value = read_as(tuple[object, object], pair, place)
    if not isinstance(key, str | int):
        raise MisfitError(f"{place}: a key must be text or a whole number, got {shorten(key)}")
    return key, decode_value(value, f"{place}.{shorten(key)}")


_READERS[Plain] = decode_value


def shorten(value: object) -> str:
    """A short repr; a hostile value must not make a hostile message."""
    if isinstance(value, dict | list | tuple) and len(value) > _MAX_SHOWN:
        return f"{type(value).__name__} of {len(value)} entries"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
