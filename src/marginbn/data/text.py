"""What the text formats share: loading a file, errors that name the line, columns of text.

A column of a text file is made of numbers if every value present is one; then the usual inference
applies (``infer_kind`` in :mod:`~marginbn.data.columns`). Categories keep the text as written,
except that a column of plain whole numbers (no leading zero, ``2`` and ``2.0`` alike) has ints as
categories.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from marginbn.data.amounts import read_as
from marginbn.data.columns import (
    Column,
    Kind,
    WantedKind,
    categorical_column,
    factorize,
    infer_kind,
)
from marginbn.data.dates import as_dates, is_date_kind
from marginbn.exceptions import FormatError, InputError

MISSING_TEXTS = frozenset({"", "?", "NA", "N/A", "n/a", "NaN", "nan"})
"""Fields of a CSV file that mean missing, once surrounding spaces are gone."""

MAX_SAFE_BYTES = 2**28
"""What a gzip file of any size may unpack to."""

MAX_EXPANSION = 200
"""Beyond that, the bytes a packed byte may become; tables have 3 to 30, bombs a thousand."""

_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.0+)?")


@dataclass(frozen=True)
class Origin:
    """Where rows come from: the file, and the line on which each row begins."""

    path: str
    lines: Sequence[int]

    def error(self, row: int, reason: str) -> FormatError:
        """The error for a row, counted from 0."""
        return format_error(self.path, self.lines[row], reason)


def format_error(path: str, line: int | None, reason: str) -> FormatError:
    """A malformed file: path, line (None if unknown) and reason."""
    place = path if line is None else f"{path}, line {line}"
    return FormatError(f"{place}: {reason}")


def load_text(path: Path, encoding: str = "utf-8") -> str:
    """Text of a file, unpacked if its name ends in .gz, without byte order mark."""
    encoding = "utf-8-sig" if encoding == "utf-8" else encoding
    text = decode_text(load_bytes(path), str(path), encoding)
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise format_error(str(path), line, "there is a NUL byte; this is not a text file")
    if not text.strip():
        raise format_error(str(path), None, "the file is empty")
    return text


def decode_text(data: bytes, path: str, encoding: str = "utf-8-sig") -> str:
    """The text, or an error that names the line of the first byte that is none."""
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        name = encoding.upper().removesuffix("-SIG")
        raise not_text(path, line, data[error.start], name) from None


def not_text(path: str, line: int | None, byte: int, encoding: str = "UTF-8") -> FormatError:
    """The error for a byte that is no text."""
    likely = "utf-16" if line == 1 and byte >= 0xFE else "latin-1"  # a mark of byte order
    reason = (
        f"byte 0x{byte:02x} is not {encoding}; save the file as UTF-8, or say its encoding, such "
        f"as encoding={likely!r}"
    )
    return format_error(path, line, reason)


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """A file to read from its beginning, unpacked on the way if its name ends in .gz."""
    with reading_errors(path):
        file = path.open("rb")
    with file:
        if path.suffix.lower() == ".gz":
            yield cast(BinaryIO, gzip.GzipFile(fileobj=file))
        else:
            yield file


@contextmanager
def reading_errors(path: Path) -> Iterator[None]:
    """What the system says about a file that cannot be read, as our error."""
    try:
        yield
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot read {str(path)!r}: {reason}") from error


def load_bytes(path: Path) -> bytes:
    """Content of a file, unpacked if its name ends in .gz."""
    with reading_errors(path):
        data = path.read_bytes()
    if path.suffix.lower() != ".gz":
        return data
    return _unpack(data, str(path))


def _unpack(data: bytes, path: str) -> bytes:
    """Content of gzip data; a small file that unpacks to gigabytes is refused on the way."""
    limit = max(MAX_SAFE_BYTES, MAX_EXPANSION * len(data))
    try:
        with gzip.open(io.BytesIO(data)) as stream:
            unpacked = stream.read(limit + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise format_error(path, None, f"the gzip file is damaged: {error}") from error
    if len(unpacked) > limit:
        reason = (
            f"the gzip file unpacks to more than {limit} bytes, {MAX_EXPANSION} times its size; "
            "unpack it yourself if it is no attack"
        )
        raise format_error(path, None, reason)
    return unpacked


class TextArray(ABC):
    """Fields of a column as another library keeps them; what a list of texts is, only faster.

    Both ways to look at it answer as the functions for lists do (`numbers` may also pass): numbers
    that the library reads Python reads alike, and what it refuses or reads as no finite number gets
    the closer look that every distinct text gets. See :mod:`marginbn.data.splitting`.
    """

    @classmethod
    @abstractmethod
    def join(cls, parts: Iterable[Any]) -> TextArray:
        """One part below the other."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __iter__(self) -> Iterator[str]: ...

    @abstractmethod
    def numbers(self) -> NDArray[np.float64] | None:
        """float64 with NaN where missing; None if not every field is plainly one or the other."""

    @abstractmethod
    def factorize(self) -> tuple[NDArray[np.int64], list[str]]:
        """Codes and distinct texts, -1 where missing."""


Texts: TypeAlias = Sequence[str | None] | TextArray
"""The fields of a column."""


def column_from_text(name: str, texts: Texts, kind: WantedKind | None, origin: Origin) -> Column:
    """Column of the fields of a text file; None and `MISSING_TEXTS` are missing."""
    if is_date_kind(kind):
        return as_dates(column_from_text(name, texts, "categorical", origin), kind)
    kind = read_as(kind)
    if kind != "categorical":
        measured = _measurements(texts, kind)
        if measured is not None:
            return Column.numeric(name, measured)
    codes, levels = distinct_texts(texts)
    numbers = numbers_of_texts(levels)
    if numbers is None and kind == "numeric":
        raise _not_a_number(name, codes, levels, origin)
    if numbers is not None and kind != "categorical":
        values = np.append(numbers, np.nan)[codes]
        _require_finite(name, values, origin)
        if (kind or infer_kind(values)) == "numeric":
            return Column.numeric(name, values)
    return categorical_column(name, codes, _categories_of_texts(levels), None)


def distinct_texts(texts: Texts) -> tuple[NDArray[np.int64], list[str]]:
    """Codes, -1 where missing, and texts without surrounding spaces; some may be equal then."""
    if isinstance(texts, TextArray):
        codes, levels = texts.factorize()
    else:
        codes, levels = factorize(texts, missing=is_missing_text)
    return codes, [level.strip() for level in levels]


def exact_text_column(
    name: str, texts: Sequence[str | None], missing: frozenset[str | None]
) -> Column:
    """Categorical column that keeps every field as the text it is."""
    codes, levels = factorize(texts, missing=missing.__contains__)
    return categorical_column(name, codes, levels, None)


def numbers_of_texts(texts: Sequence[str]) -> NDArray[np.float64] | None:
    """All texts as numbers, or None if one of them is none."""
    try:
        numbers = np.fromiter(map(float, texts), dtype=np.float64, count=len(texts))
    except ValueError:
        return None
    joined = "".join(texts)
    if "_" in joined or not joined.isascii():
        return None  # float() accepts 1_000 and foreign digits
    return None if np.isnan(numbers).any() else numbers


def _measurements(texts: Texts, kind: Kind | None) -> NDArray[np.float64] | None:
    """Short cut for a column of finite numbers that are no codes."""
    numbers = plain_numbers(texts)
    if numbers is None:
        return None
    return numbers if (kind or infer_kind(numbers)) == "numeric" else None


def plain_numbers(texts: Texts) -> NDArray[np.float64] | None:
    """All fields as finite numbers; None if that takes a closer look, as at missing values."""
    if isinstance(texts, TextArray):
        return texts.numbers()
    if texts and texts[0] is None:
        return None
    try:
        numbers = numbers_of_texts(texts)  # type: ignore[arg-type]
    except TypeError:  # a missing value further down
        return None
    return None if numbers is None or np.isinf(numbers).any() else numbers


def is_missing_text(text: str | None) -> bool:
    """Whether a field means missing."""
    return text is None or text.strip() in MISSING_TEXTS


def _categories_of_texts(levels: list[str]) -> Sequence[str | int]:
    numbers = [whole_number(level) for level in levels]
    if not levels or None in numbers:
        return levels
    return cast(list[int], numbers)


def whole_number(text: str) -> int | None:
    """A plain whole number (no leading zero, ``2`` and ``2.0`` alike); None if it is none."""
    return int(text.partition(".")[0]) if _WHOLE.fullmatch(text) else None


def _not_a_number(
    name: str, codes: NDArray[np.int64], levels: Sequence[str], origin: Origin
) -> FormatError:
    bad = np.array([numbers_of_texts([level]) is None for level in levels] + [False])
    row = int(np.flatnonzero(bad[codes])[0])
    value = levels[codes[row]]
    return origin.error(
        row,
        f"column {name!r} is to be numeric, but {value!r} is no number; correct it, leave the "
        "field empty, or declare the column categorical, or an amount ($1,234.50, 80 kg)",
    )


def _require_finite(name: str, values: NDArray[np.float64], origin: Origin) -> None:
    rows = np.flatnonzero(np.isinf(values))
    if len(rows):
        raise origin.error(
            int(rows[0]),
            f"column {name!r} holds inf, but numeric columns must be finite; leave the field "
            "empty for missing, or declare the column categorical",
        )
