"""Fields of plain blocks of delimited text by pyarrow or polars, whichever is installed.

Plain is what :mod:`~marginbn.data.delimited` calls so. Each of the two splits a block into columns
of text, or passes, so that the csv module reads it and finds the words for what is wrong.

pyarrow refuses rows of a wrong length. polars fills short rows up without a word, so the delimiters
outside quotes are counted first; it also sees blank lines and carriage returns in another way, so a
block with any is left to the csv module, unless the carriage returns are all of line ends and there
is no quote.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbn.data.columns import leave_out_missing
from marginbn.data.text import MISSING_TEXTS, TextArray, is_missing_text

Split = tuple[tuple[TextArray, ...], int]
"""Columns and the number of rows."""

Splitter = Callable[[bytes, int, Sequence[int], str], Split | None]
"""(block, number of columns, positions of the wanted ones, delimiter) -> None to pass"""


def find_splitter(delimiter: str) -> Splitter | None:
    """What can split blocks with this delimiter here, if anything."""
    if delimiter.isascii() and delimiter != " ":  # which stands for any number of spaces
        for package, split in SPLITTERS.items():
            if find_spec(package) is not None:
                return split
    return None


# --- pyarrow --------------------------------------------------------------------------------------


class ArrowTexts(TextArray):
    """Fields as pyarrow keeps them: a ``ChunkedArray`` of strings, none of them null."""

    def __init__(self, array: Any) -> None:
        self.array = array

    @classmethod
    def join(cls, parts: Iterable[Any]) -> TextArray:
        """As in :class:`TextArray`."""
        arrow = importlib.import_module("pyarrow")
        chunks = [chunk for part in parts for chunk in part.array.chunks]
        return cls(arrow.chunked_array(chunks, arrow.string()))

    def __len__(self) -> int:
        return len(self.array)

    def __iter__(self) -> Iterator[str]:
        return iter(self.array.to_pylist())

    def numbers(self) -> NDArray[np.float64] | None:
        """As in :class:`TextArray`."""
        compute = importlib.import_module("pyarrow.compute")
        arrow = importlib.import_module("pyarrow")
        texts = self.array
        missing = compute.is_in(texts, value_set=arrow.array(sorted(MISSING_TEXTS)))
        if compute.any(missing).as_py():
            texts = compute.if_else(missing, arrow.scalar(None, arrow.string()), texts)
        try:
            numbers = compute.cast(texts, arrow.float64())
        except arrow.ArrowInvalid:
            return None
        values: NDArray[np.float64] = numbers.to_numpy()
        n_finite = int(np.isfinite(values).sum())
        return values if n_finite + numbers.null_count == len(values) else None

    def factorize(self) -> tuple[NDArray[np.int64], list[str]]:
        """As in :class:`TextArray`."""
        encoded = self.array.combine_chunks().dictionary_encode()
        if hasattr(encoded, "chunks"):  # of an empty or very long array
            encoded = encoded.unify_dictionaries().combine_chunks()
        codes, texts = encoded.indices.to_numpy(), encoded.dictionary.to_pylist()
        return leave_out_missing(codes.astype(np.int64), texts, is_missing_text)


def split_by_pyarrow(
    body: bytes, n_columns: int, positions: Sequence[int], delimiter: str
) -> Split | None:
    """As in :data:`Splitter`."""
    if not body.strip(b"\r\n"):
        return (), 0
    arrow = importlib.import_module("pyarrow")
    reader = importlib.import_module("pyarrow.csv")
    names = [str(i) for i in range(n_columns)]
    needed = [names[i] for i in positions] or names[:1]  # one at least, for the number of rows
    try:
        table = reader.read_csv(
            arrow.BufferReader(_owned_by_arrow(body)),
            reader.ReadOptions(column_names=names),
            reader.ParseOptions(delimiter=delimiter, newlines_in_values=b'"' in body),
            reader.ConvertOptions(
                column_types=dict.fromkeys(needed, arrow.string()), include_columns=needed
            ),
        )
    except arrow.ArrowInvalid:
        return None
    columns = tuple(ArrowTexts(table.column(names[i])) for i in positions)
    return columns, table.num_rows


def _owned_by_arrow(body: bytes) -> Any:
    """A copy that arrow's threads may drop by themselves.

    They let go of what they read a moment after the answer is there. Of memory that belongs to
    Python they cannot do that while the interpreter ends: the process would be aborted.
    """
    buffer = importlib.import_module("pyarrow").allocate_buffer(len(body))
    memoryview(buffer).cast("B")[:] = body
    return buffer


# --- polars ---------------------------------------------------------------------------------------


class PolarsTexts(TextArray):
    """Fields as polars keeps them: a ``Series`` of strings, none of them null."""

    def __init__(self, series: Any) -> None:
        self.series = series

    @classmethod
    def join(cls, parts: Iterable[Any]) -> TextArray:
        """As in :class:`TextArray`."""
        polars = importlib.import_module("polars")
        return cls(polars.concat([part.series for part in parts]))

    def __len__(self) -> int:
        return len(self.series)

    def __iter__(self) -> Iterator[str]:
        return iter(self.series.to_list())

    def numbers(self) -> NDArray[np.float64] | None:
        """As in :class:`TextArray`."""
        polars = importlib.import_module("polars")
        missing = self.series.is_in(sorted(MISSING_TEXTS))
        numbers = self.series.cast(polars.Float64, strict=False)
        values: NDArray[np.float64] = numbers.to_numpy()
        n_finite = int(np.isfinite(values).sum())
        if n_finite + int(missing.sum()) != len(values):
            return None
        return np.where(missing.to_numpy(), np.nan, values)

    def factorize(self) -> tuple[NDArray[np.int64], list[str]]:
        """As in :class:`TextArray`."""
        polars = importlib.import_module("polars")
        levels = self.series.unique(maintain_order=True)
        places = polars.Series(range(len(levels)), dtype=polars.Int64)
        codes = self.series.replace_strict(levels, places, return_dtype=polars.Int64)
        return leave_out_missing(codes.to_numpy(), levels.to_list(), is_missing_text)


def split_by_polars(
    body: bytes, n_columns: int, positions: Sequence[int], delimiter: str
) -> Split | None:
    """As in :data:`Splitter`."""
    if not body.strip(b"\r\n"):
        return (), 0
    if b"\r" in body:
        if b'"' in body:
            return None
        body = body.replace(b"\r\n", b"\n")
    n_rows = _count_rows(body, n_columns, delimiter)
    if n_rows is None:
        return None
    polars = importlib.import_module("polars")
    try:
        table = polars.read_csv(
            body,
            has_header=False,
            separator=delimiter,
            infer_schema_length=0,  # all of it is text
            columns=list(positions) or [0],
        )
    except (polars.exceptions.PolarsError, ValueError):
        return None
    if table.height != n_rows:
        return None
    columns = [column.fill_null("") for column in table.get_columns()]  # no row is short
    return tuple(PolarsTexts(column) for column in columns[: len(positions)]), n_rows


def _count_rows(body: bytes, n_columns: int, delimiter: str) -> int | None:
    """Rows of a plain block without carriage returns; None if one is blank or of wrong length."""
    codes = np.frombuffer(body if body.endswith(b"\n") else body + b"\n", dtype=np.uint8)
    ends, between = np.flatnonzero(codes == ord("\n")), np.flatnonzero(codes == ord(delimiter))
    if b'"' in body:
        quotes = np.flatnonzero(codes == ord('"'))
        ends = ends[np.searchsorted(quotes, ends) % 2 == 0]
        between = between[np.searchsorted(quotes, between) % 2 == 0]
    if (np.diff(ends, prepend=-1) == 1).any():
        return None
    counts = np.diff(np.searchsorted(between, ends), prepend=0)
    return len(ends) if (counts == n_columns - 1).all() else None


SPLITTERS: dict[str, Splitter] = {"pyarrow": split_by_pyarrow, "polars": split_by_polars}
"""By package, the first that is installed being taken."""
