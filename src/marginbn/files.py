"""JSON files: strict to read, all or nothing to write.

Reading only ever builds plain values, so a hostile file runs nothing; whatever plain JSON does not
allow is refused with the place in the file. Writing (:mod:`marginbn.atomic`) never leaves half a
file behind.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import NoReturn

from marginbn.atomic import PathLike, write_atomic
from marginbn.exceptions import FormatError, InputError

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
