"""Tables written a chunk of rows at a time, as CSV or Parquet, whole or not at all.

A chunk is a list of columns. A column is an array of numbers, a list of texts, an array of pyarrow,
or :class:`Coded` where few distinct values occur in many rows: each of them is formatted once.
"""

from __future__ import annotations

import gzip
import importlib
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from os import PathLike
from typing import Any, TextIO, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from marginbn.files import open_new, replacing

_QUOTE_NEEDED = re.compile(r'[,"\r\n]')


@dataclass(frozen=True)
class Coded:
    """Values by code; code -1 is missing.

    Examples
    --------
    >>> import numpy as np
    >>> Coded(np.array([1, 0, -1]), ["no", "yes"]).to_list()
    ['yes', 'no', None]
    """

    codes: NDArray[np.integer]
    values: Sequence[Any]

    def to_list(self) -> list[Any]:
        """The value of every row."""
        return _look_up([*self.values, None], self.codes)


WrittenColumn: TypeAlias = Coded | NDArray[np.float64] | list[Any] | Any
Chunk: TypeAlias = Sequence[WrittenColumn]


def values_of_column(column: WrittenColumn) -> list[Any]:
    """The values of a column of any sort."""
    if isinstance(column, Coded):
        return column.to_list()
    if isinstance(column, list):
        return column
    values: list[Any] = column.tolist() if isinstance(column, np.ndarray) else column.to_pylist()
    return values


def write_csv_chunks(
    target: str | PathLike[str] | TextIO,
    names: Sequence[str],
    chunks: Iterable[Chunk],
    *,
    for_spreadsheets: bool = False,
) -> None:
    """Write a CSV file, or to an open stream; None and NaN become empty fields."""
    write_lines(target, _csv_texts(names, chunks, for_spreadsheets))


def _csv_texts(names: Sequence[str], chunks: Iterable[Chunk], is_plain: bool) -> Iterator[str]:
    header = csv_line([as_plain_text(name) for name in names] if is_plain else names)
    for chunk in chunks:
        fields = [_csv_fields(column, is_plain) for column in chunk]
        if len(fields) == 1:  # an empty line would be no row at all
            fields = [[field or '""' for field in fields[0]]]
        lines = [f"{line}\n" for line in map(",".join, zip(*fields, strict=True))]
        yield header + "".join(lines)  # the header not before there are rows: they may be unusable
        header = ""
    yield header


def _csv_fields(column: WrittenColumn, is_plain: bool) -> list[str]:
    if isinstance(column, Coded):
        return _look_up([*_csv_fields(list(column.values), is_plain), ""], column.codes)
    values = values_of_column(column)
    if is_plain:
        values = list(map(as_plain_text, values))
    return list(map(csv_field, values))


def _look_up(values: Sequence[Any], codes: NDArray[np.integer]) -> list[Any]:
    table = np.empty(len(values), dtype=object)
    table[:] = values
    found: list[Any] = table[codes].tolist()
    return found


def write_parquet_chunks(
    path: str | PathLike[str], names: Sequence[str], chunks: Iterable[Chunk]
) -> None:
    """Write a Parquet file; all chunks have the types of the first."""
    parquet: Any = importlib.import_module("pyarrow.parquet")
    with replacing(path) as temporary:
        writer = None
        for chunk in chunks:
            columns = [_arrow_column(column) for column in chunk]
            table = pa.Table.from_arrays(columns, names=list(names))
            writer = writer or parquet.ParquetWriter(temporary, table.schema)
            writer.write_table(table.cast(writer.schema))
        if writer is not None:
            writer.close()


def _arrow_column(column: WrittenColumn) -> Any:
    if isinstance(column, Coded):
        codes = pa.array(column.codes, mask=column.codes < 0)
        return pa.array(column.values).take(codes)
    if isinstance(column, list):
        return pa.array(column, pa.string())
    return pa.array(column) if isinstance(column, np.ndarray) else column


# --- CSV ------------------------------------------------------------------------------------------


def write_lines(target: str | PathLike[str] | TextIO, lines: Iterable[str]) -> None:
    """Write pieces of text to a file, packed if its name ends in .gz, or to an open stream."""
    if not isinstance(target, (str, PathLike)):
        target.writelines(lines)
        return
    with (
        replacing(target) as temporary,
        open_new(temporary) as file,
        _packed(file) if str(target).lower().endswith(".gz") else nullcontext(file) as plain,
        io.TextIOWrapper(plain, encoding="utf-8", newline="") as stream,
    ):
        stream.writelines(lines)


def _packed(file: io.BufferedWriter) -> gzip.GzipFile:
    return gzip.GzipFile("", "wb", fileobj=file)


FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""What spreadsheets take for the beginning of a formula, or skip before one."""


_NEGATIVE_NUMBER = re.compile(r"-[0-9]+([.][0-9]+)?([eE][+-]?[0-9]+)?")


def as_plain_text(value: Any) -> Any:
    """A text as a spreadsheet shows it without computing anything; numbers stay numbers, those
    that a text file holds too.

    Examples
    --------
    >>> as_plain_text("=1+1"), as_plain_text("red"), as_plain_text(-1), as_plain_text("-1.5")
    ("'=1+1", 'red', -1, '-1.5')
    """
    is_risky = isinstance(value, str) and value.startswith(FORMULA_STARTS)
    return f"'{value}" if is_risky and not _NEGATIVE_NUMBER.fullmatch(value) else value


def csv_line(values: Sequence[Any]) -> str:
    """One line; csv.writer would leave a lone carriage return unquoted in some versions."""
    if len(values) == 1 and csv_field(values[0]) == "":
        return '""\n'  # an empty line would be no row at all
    return ",".join(map(csv_field, values)) + "\n"


def csv_field(value: Any) -> str:
    """A value as it stands in a line, in quotes if need be; empty if it is missing."""
    if value is None or (isinstance(value, float) and value != value):
        return ""
    text = str(value)
    if not _QUOTE_NEEDED.search(text):
        return text
    return '"' + text.replace('"', '""') + '"'
