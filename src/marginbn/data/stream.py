"""Tables that are read in pieces: they need not fit into memory.

What can be read so: a Parquet file or a folder of them, a pyarrow dataset, a DuckDB relation, a
polars LazyFrame or a Dask DataFrame. Each can be passed over several times; one piece is an Arrow
table of some hundred thousand rows. A LazyFrame is written to a temporary Parquet file first, by
polars itself and piece by piece, so that its query runs once. Of a Dask DataFrame the pieces are
its partitions: work on them is done where they are, by the workers of the cluster, and only what
comes of it travels.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from marginbn.exceptions import InputError, MissingDependencyError

PIECE = 262_144
"""Rows of one piece."""


Work = Callable[[Any], Any]

AT_A_TIME = 16
"""Partitions whose answers are waited for together."""


@dataclass(frozen=True)
class Stream:
    """A table in pieces.

    Parameters
    ----------
    names
        Of all columns, the class among them.
    pieces
        Begins a new pass: Arrow tables with these columns.
    origin
        What it was made of, for messages.
    elsewhere
        Answers of a function to all pieces, in their order, where the pieces are in other
        processes; None answers for a piece without rows.
    """

    names: tuple[str, ...]
    pieces: Callable[[], Iterator[Any]]
    origin: str
    elsewhere: Callable[[Work], Iterator[Any]] | None = None

    def __iter__(self) -> Iterator[Any]:
        return self.pieces()

    def without(self, names: Iterable[str]) -> Stream:
        """The table without some of its columns."""
        left_out = [*names]
        absent = [name for name in left_out if name not in self.names]
        if absent:
            raise InputError(f"{self.origin} has no column {absent[0]!r} to leave out")
        kept = [name for name in self.names if name not in left_out]
        return Stream(
            tuple(kept), lambda: (piece.select(kept) for piece in self.pieces()), self.origin
        )

    def each(self, work: Work) -> Iterator[Any]:
        """The answer of a function to every piece, given where the piece is; the function and its
        answers must be fit for another process.
        """
        if self.elsewhere is None:
            return (work(piece) for piece in self)
        return (answer for answer in self.elsewhere(work) if answer is not None)


def as_stream(X: Any) -> Stream | None:
    """A table that is read in pieces, or None for anything else.

    Raises
    ------
    InputError
        If there is no such file, or it is no Parquet.
    """
    if isinstance(X, Stream):
        return X
    if isinstance(X, (str, os.PathLike)):
        return _from_path(Path(X))
    library = type(X).__module__.partition(".")[0].lstrip("_")
    if library == "pyarrow" and hasattr(X, "to_batches") and hasattr(X, "scanner"):
        return _from_dataset(X, "pyarrow dataset")
    if library == "duckdb" and hasattr(X, "to_arrow_table"):
        return _from_duckdb(X)
    if library == "polars" and hasattr(X, "sink_parquet"):
        return _from_lazy_frame(X)
    if library == "dask" or (library == "dask_expr" and hasattr(X, "partitions")):
        return _from_dask(X)
    return None


def row_pieces(X: Any, names: list[str] | None = None) -> Iterator[Any] | None:
    """Many rows to answer, in pieces; None where they are few enough, or cannot be divided.

    ``names`` are the columns to take from a table that is read in pieces.
    """
    stream = as_stream(X)
    if stream is not None:
        return _selected(stream, names)
    length = getattr(X, "shape", (0,))[0] if hasattr(X, "shape") else 0
    if not isinstance(length, int) or length <= PIECE:
        return None
    if hasattr(X, "iloc"):
        return (X.iloc[begin : begin + PIECE] for begin in range(0, length, PIECE))
    if hasattr(X, "slice"):  # polars and pyarrow
        return (X.slice(begin, PIECE) for begin in range(0, length, PIECE))
    return (X[begin : begin + PIECE] for begin in range(0, length, PIECE))


def _selected(stream: Stream, names: list[str] | None) -> Iterator[Any]:
    absent = [name for name in names or () if name not in stream.names]
    if absent:
        raise InputError(f"{stream.origin} lacks columns of training: {absent[:10]}")
    return (piece if names is None else piece.select(names) for piece in stream)


def _arrow() -> Any:
    try:
        import pyarrow
        import pyarrow.dataset
    except ImportError:
        raise MissingDependencyError(
            "tables that are read in pieces need pyarrow: pip install pyarrow"
        ) from None
    return pyarrow


def _from_path(path: Path) -> Stream:
    arrow = _arrow()
    if not path.exists():
        raise InputError(f"there is no file or folder {str(path)!r}")
    try:
        return _from_dataset(arrow.dataset.dataset(path, format="parquet"), str(path))
    except arrow.ArrowInvalid as error:
        raise InputError(
            f"{str(path)!r} must be a Parquet file or a folder of them; {error}"
        ) from None


def _from_dataset(dataset: Any, origin: str, keep: Any = None) -> Stream:
    """``keep`` lives as long as somebody may begin or go on with a pass."""
    arrow = _arrow()
    settings: dict[str, Any] = {"batch_readahead": 2, "fragment_readahead": 1}
    if isinstance(getattr(dataset, "format", None), arrow.dataset.ParquetFileFormat):
        # else what has been read of a file stays in memory until the end of the pass
        settings["fragment_scan_options"] = arrow.dataset.ParquetFragmentScanOptions(
            pre_buffer=False, use_buffered_stream=True
        )

    def pieces(_: Any = keep) -> Iterator[Any]:
        for batch in dataset.to_batches(batch_size=PIECE, **settings):
            if batch.num_rows:
                yield arrow.Table.from_batches([batch])

    return Stream(tuple(dataset.schema.names), pieces, origin)


def _from_duckdb(relation: Any) -> Stream:
    arrow = _arrow()

    def pieces() -> Iterator[Any]:
        read = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
        for batch in read(PIECE):
            if batch.num_rows:
                yield arrow.Table.from_batches([batch])

    return Stream(tuple(relation.columns), pieces, "DuckDB relation")


class _TemporaryFolder:
    """A folder that is removed with this object."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="marginbn-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def _from_lazy_frame(frame: Any) -> Stream:
    folder = _TemporaryFolder()
    frame.sink_parquet(folder.path / "frame.parquet")
    dataset = _arrow().dataset.dataset(folder.path, format="parquet")
    return _from_dataset(dataset, "polars LazyFrame", folder)


def _from_dask(frame: Any) -> Stream:
    arrow = _arrow()

    def pieces() -> Iterator[Any]:
        for k in range(frame.npartitions):
            part = frame.partitions[k].compute()
            if len(part):
                yield arrow.Table.from_pandas(part, preserve_index=False)

    def elsewhere(work: Work) -> Iterator[Any]:
        dask: Any = import_module("dask")
        answers = [dask.delayed(_answer)(work, part) for part in frame.to_delayed()]
        for begin in range(0, len(answers), AT_A_TIME):
            yield from dask.compute(*answers[begin : begin + AT_A_TIME])

    names = tuple(str(name) for name in frame.columns)
    return Stream(names, pieces, "Dask DataFrame", elsewhere)


def _answer(work: Work, part: Any) -> Any:
    """The answer to a partition, a pandas frame."""
    if len(part) == 0:
        return None
    return work(_arrow().Table.from_pandas(part, preserve_index=False))
