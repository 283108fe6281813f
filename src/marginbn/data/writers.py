"""Tables written a chunk of rows at a time, as CSV or Parquet, whole or not at all.

A chunk is a list of columns. A column is an array of numbers, a list of texts, an array of pyarrow,
or :class:`Coded` where few distinct values occur in many rows: each of them is formatted once.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, TextIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from marginbn.data.readers import as_plain_text, csv_field, csv_line, write_lines
from marginbn.exceptions import MissingDependencyError
from marginbn.files import replacing


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
    """Write a CSV file, or to an open stream; see :func:`marginbn.data.readers.write_csv`."""
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


def check_parquet() -> None:
    """Refuse to begin what cannot be written."""
    if importlib.util.find_spec("pyarrow") is None:
        raise MissingDependencyError(
            'writing Parquet needs pyarrow; install it with: pip install "marginbn[parquet]"'
        )


def write_parquet_chunks(
    path: str | PathLike[str], names: Sequence[str], chunks: Iterable[Chunk]
) -> None:
    """Write a Parquet file; all chunks have the types of the first."""
    arrow = importlib.import_module("pyarrow")
    parquet = importlib.import_module("pyarrow.parquet")
    with replacing(path) as temporary:
        writer = None
        for chunk in chunks:
            columns = [_arrow_column(column, arrow) for column in chunk]
            table = arrow.Table.from_arrays(columns, names=list(names))
            writer = writer or parquet.ParquetWriter(temporary, table.schema)
            writer.write_table(table.cast(writer.schema))
        if writer is not None:
            writer.close()


def _arrow_column(column: WrittenColumn, arrow: Any) -> Any:
    if isinstance(column, Coded):
        codes = arrow.array(column.codes, mask=column.codes < 0)
        return arrow.array(column.values).take(codes)
    if isinstance(column, list):
        return arrow.array(column, arrow.string())
    return arrow.array(column) if isinstance(column, np.ndarray) else column
