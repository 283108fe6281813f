"""Files written all or nothing.

New content goes to a temporary file in the same folder, is flushed to the disk and takes the place
of the old file in one step; then the folder itself is flushed, so that a power failure cannot undo
the step. Whatever goes wrong, the old file stays as it was and no temporary file is left behind
(unless the process is killed on the way: :func:`remove_leftovers`).

JSON files: strict to read, all or nothing to write.

Reading only ever builds plain values, so a hostile file runs nothing; whatever plain JSON does not
allow is refused with the place in the file. Writing (:mod:`marginbn.files`) never leaves half a
file behind.

Values in a JSON file: checked when read, plain Python values both ways.

Every ``as_...`` function takes a value and its place in the file (``$.coding[3].name``) and either
returns the value with the type it promises or raises :class:`MisfitError` with the place.
"""

from __future__ import annotations

import contextlib
import glob
import json
import math
import os
import secrets
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from marginbn.exceptions import FormatError, InputError

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


MAX_BYTES = 2**32
"""Largest file that is read; it holds a table of 2**27 floats with all their digits."""

_MAX_DIGITS = 400
"""Longest integer that is read; a float ends at 309 digits, an index far earlier."""


def read_json(path: PathLike) -> object:
    """Read strict JSON: UTF-8, no NaN or Infinity, no repeated keys, no endless integers.

    Raises
    ------
    FormatError
        If the content is not strict JSON; the message has path, place and reason.
    InputError
        If the file cannot be read at all.
    """
    name = os.fspath(path)
    try:
        return _parse(_read_text(path))
    except OSError as error:
        raise InputError(f"cannot read {name}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise FormatError(f"{name}: not UTF-8 text at byte {error.start}") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise FormatError(f"{name}: {place}: not JSON, {error.msg}") from None
    except RecursionError:
        raise FormatError(f"{name}: brackets are nested too deeply") from None
    except _RefusedError as refusal:
        raise FormatError(f"{name}: {refusal}") from None


def write_json_atomic(path: PathLike, obj: object) -> None:
    """Write JSON so that the file is either the old one or the complete new one, never a part."""
    write_atomic(path, _encode(path, obj))


class _RefusedError(Exception):
    """Something that Python's parser would accept but we do not."""


def _read_text(path: PathLike) -> str:
    if os.path.getsize(path) > MAX_BYTES:
        raise _RefusedError(f"the file is larger than {MAX_BYTES} bytes")
    return Path(path).read_bytes().decode("utf-8")


def _parse(text: str) -> object:
    return json.loads(
        text,
        parse_constant=_refuse_constant,
        parse_int=_parse_int,
        object_pairs_hook=_parse_object,
    )


def _refuse_constant(token: str) -> NoReturn:
    raise _RefusedError(f"{token} is not a JSON number")


def _parse_int(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise _RefusedError(f"an integer of {len(digits)} digits is too long")
    return int(digits)


def _parse_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) < len(pairs):
        repeated = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise _RefusedError(f"an object has the key {repeated[:80]!r} twice")
    return result


def _encode(path: PathLike, obj: object) -> bytes:
    try:
        text = json.dumps(obj, allow_nan=False, ensure_ascii=False)
        return f"{text}\n".encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"cannot write {os.fspath(path)} as JSON: {error}") from None


_INFINITIES = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_MAX_SHOWN = 20  # entries of a container that a message repeats


class MisfitError(Exception):
    """Something in the file is not as the format demands: place and reason, without the path."""


class NotPlainError(InputError):
    """A value that JSON cannot carry."""


def as_record(data: object, place: str, keys: Sequence[str] | None = None) -> dict[str, object]:
    """An object; with exactly the given keys, if any are given."""
    if not isinstance(data, dict):
        raise MisfitError(f"{place}: must be an object, got {shorten(data)}")
    if keys is not None:
        for key in keys:
            if key not in data:
                raise MisfitError(f"{place}: the key {key!r} is missing")
        unknown = [key for key in data if key not in keys]
        if unknown:
            raise MisfitError(f"{place}: unknown keys {shorten(unknown)}")
    return data


def as_list(data: object, place: str, length: int | None = None) -> list[object]:
    """An array, of the given length if there is one."""
    if not isinstance(data, list):
        raise MisfitError(f"{place}: must be an array, got {shorten(data)}")
    if length is not None and len(data) != length:
        raise MisfitError(f"{place}: must have {length} entries, got {len(data)}")
    return data


def as_text(data: object, place: str) -> str:
    """A string that is real text."""
    if not isinstance(data, str):
        raise MisfitError(f"{place}: must be a string, got {shorten(data)}")
    try:
        data.encode("utf-8")
    except UnicodeEncodeError:
        raise MisfitError(f"{place}: half a surrogate pair is no text") from None
    return data


def as_int(data: object, place: str) -> int:
    """A whole number."""
    if isinstance(data, bool) or not isinstance(data, int):
        raise MisfitError(f"{place}: must be a whole number, got {shorten(data)}")
    return data


def as_count(data: object, place: str) -> int:
    """A whole number from 0 to what an index can be."""
    number = as_int(data, place)
    if not 0 <= number < 2**63:
        raise MisfitError(f"{place}: must be at least 0 and below 2^63, got {shorten(data)}")
    return number


def as_bool(data: object, place: str) -> bool:
    """True or false."""
    if not isinstance(data, bool):
        raise MisfitError(f"{place}: must be true or false, got {shorten(data)}")
    return data


def as_number(data: object, place: str) -> float:
    """A float, or one of the words "inf", "-inf" and "nan"."""
    if isinstance(data, str) and data in _INFINITIES:
        return _INFINITIES[data]
    if isinstance(data, bool) or not isinstance(data, int | float):
        raise MisfitError(f"{place}: must be a number, got {shorten(data)}")
    try:
        number = float(data)
    except OverflowError:
        number = math.inf
    if math.isinf(number):  # 1e999 reads as infinity
        raise MisfitError(f"{place}: the number is too large for a float")
    return number


def as_finite(data: object, place: str) -> float:
    """A finite number."""
    number = as_number(data, place)
    if not math.isfinite(number):
        raise MisfitError(f"{place}: must be finite, got {shorten(data)}")
    return number


def check_header(
    record: Mapping[str, object], format_name: str, version: int, place: str = "$"
) -> None:
    """Refuse other formats and versions that are not known yet."""
    if record.get("format") != format_name:
        found = shorten(record.get("format"))
        raise MisfitError(f"{place}.format: must be {format_name!r}, got {found}")
    written = as_int(record.get("version"), f"{place}.version")
    if written > version:
        raise MisfitError(
            f"{place}.version: written by a newer marginbn (format version {shorten(written)}, "
            f"this one reads up to {version}); upgrade marginbn to read it"
        )
    if written < 1:
        raise MisfitError(f"{place}.version: must be {version}, got {shorten(written)}")


def encode_number(value: float) -> float | str:
    """A number for JSON, which has no infinities; :func:`as_number` is the inverse."""
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
    if isinstance(data, str):
        return as_text(data, place)
    if isinstance(data, float):
        return as_finite(data, place)
    if not isinstance(data, dict):
        return data
    if len(data) != 1:
        raise MisfitError(f"{place}: must be marked as float, tuple or dict, got {shorten(data)}")
    [(mark, content)] = data.items()
    if mark == "float":
        return as_number(content, place)
    if mark == "tuple":
        return tuple(decode_value(as_list(content, place), place))
    if mark == "dict":
        return dict(_decode_pair(pair, place) for pair in as_list(content, place))
    raise MisfitError(f"{place}: the mark must be float, tuple or dict, got {shorten(mark)}")


def _decode_pair(pair: object, place: str) -> tuple[str | int, Any]:
    key, value = as_list(pair, place, 2)
    if not isinstance(key, str | int):
        raise MisfitError(f"{place}: a key must be text or a whole number, got {shorten(key)}")
    return key, decode_value(value, f"{place}.{shorten(key)}")


def shorten(value: object) -> str:
    """A short repr; a hostile value must not make a hostile message."""
    if isinstance(value, dict | list | tuple) and len(value) > _MAX_SHOWN:
        return f"{type(value).__name__} of {len(value)} entries"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
