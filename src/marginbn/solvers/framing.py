"""Named arrays in one checked file: what a checkpoint looks like on disk.

::

    magic line        "marginbn checkpoint 1"
    8 bytes           length of the header, little endian
    header            JSON: {"about": {...}, "arrays": [[name, dtype, shape], ...]}
    arrays            one after the other, little endian, C order
    32 bytes          SHA-256 of everything before

Reading builds plain values and arrays of numbers only, so nothing in a file is ever executed.
Sizes that a header claims are believed only if they add up to the size of the file, so no file
makes the reader take more memory than its own length.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbn.exceptions import InputError

KIND = b"marginbn checkpoint "
MAGIC = KIND + b"1\n"

MAX_HEADER = 1_000_000
"""Bytes of the longest header that is read; ours have about a thousand."""

DTYPES = ("<f8", "<i8", "<u8", "<i4", "<i2", "|u1")
"""Types of numbers that arrays may have."""

_DIGEST = 32


class BrokenFileError(Exception):
    """A file that is no complete frame; the message says what is wrong with it."""


@dataclass(frozen=True, eq=False)
class Frame:
    """Plain values and arrays."""

    about: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]]


def pack(frame: Frame) -> Iterator[bytes | memoryview]:
    """The parts of a file, in order."""
    described = [[name, array.dtype.str, list(array.shape)] for name, array in frame.arrays.items()]
    header = json.dumps({"about": frame.about, "arrays": described}, allow_nan=False).encode()
    digest = hashlib.sha256()
    for part in (MAGIC, len(header).to_bytes(8, "little"), header):
        digest.update(part)
        yield part
    for array in frame.arrays.values():
        content = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        digest.update(content)
        yield content
    yield digest.digest()


def read_frame(path: str | os.PathLike[str]) -> Frame:
    """Read a file written from :func:`pack`.

    Raises
    ------
    BrokenFileError
        If the file is cut off or damaged.
    InputError
        If it never was a file of this kind, or is one of another version.
    OSError
        If it cannot be read.
    """
    content = Path(path).read_bytes()
    _check_kind(content, os.fspath(path))
    if len(content) < len(MAGIC) + 8 + _DIGEST:
        raise BrokenFileError(f"it ends after {len(content)} bytes")
    body = memoryview(content)[:-_DIGEST]
    if hashlib.sha256(body).digest() != content[-_DIGEST:]:
        raise BrokenFileError("it is cut off or damaged: its checksum is wrong")
    return _parse(body)


def _check_kind(content: bytes, name: str) -> None:
    """Refuse files of other kinds, which must not be written over."""
    start = content[: len(MAGIC)]
    if start == MAGIC[: len(start)] or not any(start):  # cut off, or blocks that were never written
        return
    if start.startswith(KIND):
        raise InputError(
            f"{name} is a checkpoint of another version of marginbn; finish it with that version, "
            "or remove it (or name another file) to start anew"
        )
    raise InputError(f"{name} is not a checkpoint and will not be written over; name another file")


def _parse(body: memoryview) -> Frame:
    """The content of a file whose checksum is right; it may be hostile all the same."""
    place = len(MAGIC) + 8
    length = int.from_bytes(body[len(MAGIC) : place], "little")
    if length > min(MAX_HEADER, len(body) - place):
        raise BrokenFileError("its header is too long")
    try:
        header = json.loads(bytes(body[place : place + length]))
        about, described = dict(header["about"]), list(header["arrays"])
        shapes = [_parse_shape(*entry) for entry in described]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise BrokenFileError("its header is malformed") from None
    place += length
    arrays: dict[str, NDArray[Any]] = {}
    for name, dtype, shape in shapes:
        size = math.prod(shape) * dtype.itemsize
        if size > len(body) - place:
            raise BrokenFileError(f"its array {name!r} is larger than the file")
        # copies are aligned and own their memory, as compiled code wants them
        arrays[name] = np.ndarray(shape, dtype, buffer=body, offset=place).copy()
        place += size
    if place != len(body):
        raise BrokenFileError("it is longer than its arrays")
    return Frame(about, arrays)


def _parse_shape(name: Any, dtype: Any, shape: Any) -> tuple[str, np.dtype[Any], tuple[int, ...]]:
    sane = (
        isinstance(name, str)
        and dtype in DTYPES
        and isinstance(shape, list)
        and len(shape) <= 3
        and all(type(length) is int and 0 <= length < 2**48 for length in shape)  # true is an int
    )
    if not sane:
        raise ValueError
    return name, np.dtype(dtype), tuple(shape)
