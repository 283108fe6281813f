"""Answers written a chunk of rows at a time, as CSV or Parquet, whole or not at all.

A chunk is an Arrow table; all chunks have the same columns.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from importlib import import_module
from os import PathLike
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as types

from marginbn.files import open_new, replacing

FORMULA = r"^[=+\-@\t\r\n＝＋－＠]"
"""What spreadsheets take for the beginning of a formula, or skip before one."""

QUOTE_NEEDED = r'[,"\r\n]'

NEGATIVE_NUMBER = r"^-[0-9]+([.][0-9]+)?([eE][+-]?[0-9]+)?$"


def write_csv_chunks(
    target: str | PathLike[str] | TextIO,
    chunks: Iterable[pa.Table],
    *,
    for_spreadsheets: bool = False,
) -> None:
    """Write a CSV file, packed if its name ends in .gz, or to an open stream; what is missing
    becomes an empty field.
    """
    texts = _csv_texts(chunks, for_spreadsheets)
    if not isinstance(target, (str, PathLike)):
        target.writelines(texts)
        return
    is_packed = str(target).lower().endswith(".gz")
    with (
        replacing(target) as temporary,
        open_new(temporary) as file,
        gzip.GzipFile("", "wb", fileobj=file) if is_packed else nullcontext(file) as plain,
        io.TextIOWrapper(plain, encoding="utf-8", newline="") as stream,
    ):
        stream.writelines(texts)


def _csv_texts(chunks: Iterable[pa.Table], for_spreadsheets: bool) -> Iterator[str]:
    """The header not before there are rows: they may be unusable."""
    is_first = True
    for chunk in chunks:
        if for_spreadsheets:
            columns = [as_plain_texts(column) for column in chunk.columns]
            names = as_plain_texts(pa.chunked_array([chunk.column_names])).to_pylist()
            chunk = pa.Table.from_arrays(columns, names=names)
        if is_first:
            header = pa.table({str(i): [name] for i, name in enumerate(chunk.column_names)})
            yield _csv_text(header)
        yield _csv_text(chunk)
        is_first = False


def _csv_text(rows: pa.Table) -> str:
    fields = [_csv_fields(column) for column in rows.columns]
    if len(fields) == 1:  # an empty line would be no row at all
        fields = [pc.if_else(pc.equal(fields[0], ""), '""', fields[0])]
    lines = pc.binary_join_element_wise(*fields, ",").to_pylist()
    return "".join(f"{line}\n" for line in lines)


def _csv_fields(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values as they stand in a line, in quotes if need be; empty if they are missing."""
    texts = pc.fill_null(column.cast(pa.string()), "")
    doubled = pc.replace_substring(texts, '"', '""')
    quoted = pc.binary_join_element_wise('"', doubled, '"', "")
    return pc.if_else(pc.match_substring_regex(texts, QUOTE_NEEDED), quoted, texts)


def as_plain_texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Texts as a spreadsheet shows them without computing anything; numbers stay numbers, those
    that a text file holds too.

    Examples
    --------
    >>> as_plain_texts(pa.chunked_array([["=1+1", "red", "-1.5"]])).to_pylist()
    ["'=1+1", 'red', '-1.5']
    """
    if not (types.is_string(column.type) or types.is_large_string(column.type)):
        return column
    is_number = pc.match_substring_regex(column, NEGATIVE_NUMBER)
    is_risky = pc.and_not(pc.match_substring_regex(column, FORMULA), is_number)
    quote, empty = (pa.scalar(text, column.type) for text in ("'", ""))
    return pc.if_else(is_risky, pc.binary_join_element_wise(quote, column, empty), column)


def write_parquet_chunks(path: str | PathLike[str], chunks: Iterable[pa.Table]) -> None:
    """Write a Parquet file; all chunks have the types of the first."""
    parquet: Any = import_module("pyarrow.parquet")
    with replacing(path) as temporary:
        writer = None
        for chunk in chunks:
            writer = writer or parquet.ParquetWriter(temporary, chunk.schema)
            writer.write_table(chunk.cast(writer.schema))
        if writer is not None:
            writer.close()
