"""Tables: named columns of equal length, read from anything tabular.

Rows come from :mod:`marginbn.data.source`; what a column holds is decided by
:mod:`marginbn.data.profile`.

Missing values are NaN, None, pandas NA and NaT, and the nulls of polars and pyarrow. In text files
an empty field and ``?``, ``NA``, ``N/A``, ``n/a``, ``NaN``, ``nan`` mean missing, in quotes too;
everything else (``null``, ``None``, ``-``) is a value. Surrounding spaces are dropped, numbers have
a decimal point, and nothing is ever evaluated.
"""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa

from marginbn.data.arff import source_of_arff
from marginbn.data.columns import Column, Kind, WantedKind, listed, parse_number
from marginbn.data.profile import ColumnReading, encoded_texts, profile_block
from marginbn.data.source import (
    ARROW_SUFFIXES,
    Source,
    array_of,
    check_distinct_names,
    source_of_dask,
    source_of_dataset,
    source_of_duckdb,
    source_of_lazy_frame,
    source_of_memory,
    source_of_path,
    source_of_table,
)
from marginbn.data.text_files import (
    DELIMITERS,
    PACKED,
    checked_encoding,
    load_text,
    source_of_text,
)
from marginbn.data.texts import read_as
from marginbn.exceptions import InputError
from marginbn.problem.array_types import BoolArray

Kinds: TypeAlias = (
    Literal["auto"] | WantedKind | Mapping[str, str] | Mapping[int, str] | Sequence[str]
)

_KIND_NAMES = ("auto", *get_args(WantedKind))


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of equal length with distinct names.

    Examples
    --------
    >>> table = as_table([["a", 1.5], ["b", None]], names=["letter", "size"])
    >>> table.kinds, table.complete.tolist()
    ({'letter': 'categorical', 'size': 'numeric'}, [True, False])
    >>> table.names, table.n_rows, table.column("letter").categories
    (('letter', 'size'), 2, ('a', 'b'))
    >>> table.drop("size").names, table.select(["size", "letter"]).names, table.take([1]).n_rows
    (('letter',), ('size', 'letter'), 1)
    """

    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        check_distinct_names(self.names)
        lengths = {column.name: column.n_rows for column in self.columns}
        if len(set(lengths.values())) > 1:
            raise InputError(f"columns must be of equal length, got {lengths}")

    @property
    def n_rows(self) -> int:
        """Number of rows; 0 if there are no columns."""
        return self.columns[0].n_rows if self.columns else 0

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def kinds(self) -> dict[str, Kind]:
        """Kind of each column by name; give it to :func:`as_table` to read new rows alike."""
        return {column.name: column.kind for column in self.columns}

    @property
    def complete(self) -> BoolArray:
        """True for rows without a missing value, bool (n_rows,)."""
        complete = np.ones(self.n_rows, dtype=np.bool_)
        for column in self.columns:
            complete &= ~column.missing
        return complete

    def column(self, name: str) -> Column:
        """The column called `name`."""
        for column in self.columns:
            if column.name == name:
                return column
        raise InputError(f"there is no column {name!r}{suggestion(name, self.names)}")

    def drop(self, name: str) -> Table:
        """All columns but the one called `name`."""
        dropped = self.column(name)
        return Table(tuple(column for column in self.columns if column is not dropped))

    def select(self, names: Iterable[str]) -> Table:
        """Only the columns called `names`, in that order."""
        return Table(tuple(self.column(name) for name in names))

    def take(self, row_indices: Any) -> Table:
        """Only the given rows (indices or a mask), in that order."""
        rows = np.asarray(row_indices)
        rows = rows.astype(np.intp) if rows.size == 0 and rows.dtype != np.bool_ else rows
        return Table(tuple(column.take(rows) for column in self.columns))


def as_table(
    X: Any,
    *,
    kinds: Kinds = "auto",
    names: Sequence[str] | None = None,
) -> Table:
    """Read anything tabular. There is an example in :class:`Table`.

    Parameters
    ----------
    X
        Array, list of rows or of dicts, data frame, :class:`~marginbn.data.source.Source`, or a
        :class:`Table`, whose columns are handed on as they are unless `kinds` says otherwise.
    kinds
        ``"auto"`` (see :mod:`marginbn.data.profile`), one kind for all columns, a list with the
        kind of each, or a mapping from column name or, where no name is meant, position to kind.
        A column of dates or amounts holds its texts.
    names
        Names of the columns, by default those of `X` or x0, x1, ...
    """
    if isinstance(X, Table):
        names = X.names if names is None else names
        given = zip(X.columns, names, resolve_kinds(kinds, names), strict=True)
        columns = tuple(as_kind(c.renamed(n), read_as(k) or c.kind) for c, n, k in given)
        return X if all(map(operator.is_, columns, X.columns)) else Table(columns)
    source = X if isinstance(X, Source) else source_of_memory(X)
    source = source if names is None else source.renamed(names)
    wanted = resolve_kinds(kinds, source.names)
    rows = source.whole() if source.origin else None
    return read_rows(rows, source, dict(zip(source.names, wanted, strict=True)))


def read_rows(
    rows: pa.Table | None, source: Source, wanted: Mapping[str, WantedKind | None]
) -> Table:
    """Columns of rows in memory, of the kinds that are wanted; None is to be found out. Without
    rows each column is read from the source when it is its turn, so that no two are converted.
    """
    columns: list[Column] = []
    for name, kind in wanted.items():
        column = (source.whole([name]) if rows is None else rows).column(name)
        block = pa.table({name: column if source.is_text else encoded_texts(name, column)})
        own = {name: read_as(kind) or source.kinds.get(name)}
        readings = [profile_block(block, own, source.is_text)[name].decide()]
        columns += source.answer(partial(read_block, readings=readings), block).columns
    return Table(tuple(columns))


def read_block(block: pa.Table, first_row: int, readings: Sequence[ColumnReading]) -> Table:
    """Columns of a block, read alike in all blocks; a :data:`~marginbn.data.source.Work`."""
    return Table(tuple(reading.read(block.column(reading.name)) for reading in readings))


def as_kind(column: Column, kind: Kind) -> Column:
    """The same values seen as another kind; text that is no number cannot become numeric."""
    if column.kind == kind:
        return column
    rows = pa.table({column.name: column.arrow})
    return read_rows(rows, source_of_table(rows), {column.name: kind}).columns[0]


def as_column(values: Any, *, name: str = "y", kind: str = "auto") -> Column:
    """Read one column: a one-dimensional array, a list, or a data-frame series."""
    if isinstance(values, Column):
        return as_kind(values.renamed(name), read_as(_checked_kind(kind)) or values.kind)
    rows = pa.table({name: array_of(name, values)})
    return read_rows(rows, source_of_table(rows), {name: _checked_kind(kind)}).columns[0]


_KINDS = "column_kinds (kinds of read_table)"


def resolve_kinds(kinds: Kinds, names: Sequence[str]) -> list[WantedKind | None]:
    """The wanted kind of every column, None where it is to be inferred."""
    if isinstance(kinds, str):
        return [_checked_kind(kinds)] * len(names)
    if isinstance(kinds, (list, tuple)):
        if len(kinds) != len(names):
            raise InputError(
                f"{_KINDS} must have {len(names)} entries, one per column, got {kinds!r}"
            )
        return [_checked_kind(kind) for kind in kinds]
    if not isinstance(kinds, Mapping):
        raise InputError(f"{_KINDS} must be one of {_KIND_NAMES} or a mapping, got {kinds!r}")
    wanted: list[WantedKind | None] = [None] * len(names)
    for key, kind in kinds.items():
        wanted[_position(key, names)] = _checked_kind(kind)
    return wanted


def _checked_kind(kind: str) -> WantedKind | None:
    if kind not in _KIND_NAMES:
        raise InputError(f"{_KINDS} must be one of {_KIND_NAMES}, got {kind!r}")
    return None if kind == "auto" else kind  # type: ignore[return-value]


def _position(key: str | int, names: Sequence[str]) -> int:
    if str(key) in names:
        return list(names).index(str(key))
    if isinstance(key, (int, np.integer)) and -len(names) <= key < len(names):
        return int(key)
    raise InputError(f"column_kinds: there is no column {key!r}{suggestion(key, names)}")


def suggestion(name: object, names: Sequence[str]) -> str:
    """What to add to the message about a name that is not there."""
    if len(names) == 1:
        part = re.search(rf"(?:^|(\W)\s*){re.escape(str(name))}(?:\s*(\W)|$)", names[0])
        if part is not None and (part[1] or part[2]):
            return (
                f"; the only column is {names[0]!r}: if {part[1] or part[2]!r} separates its "
                f"fields, give delimiter={part[1] or part[2]!r}"
            )
    close = difflib.get_close_matches(str(name), names, n=3)
    if close:
        return f"; did you mean {' or '.join(map(repr, close))}?"
    is_number = [not name.isdigit() and parse_number(name) is not None for name in names]
    shown = f"; the columns are {listed(names) or 'none'}"
    return f"{shown}; the first line of a file must name them" if any(is_number) else shown


def source_of_typed(table: Table) -> Source:
    """A table that is read already, as a source."""
    return source_of_table(pa.table({column.name: column.arrow for column in table.columns}))


# --- files ----------------------------------------------------------------------------------------


def read_table(
    path: str | PathLike[str],
    *,
    kinds: Kinds = "auto",
    delimiter: str | None = None,
    encoding: str = "utf-8",
) -> Table:
    """Read a table from a file.

    Parameters
    ----------
    path
        A .csv, .tsv, .txt or .arff file, also with .gz or .zst appended; or a .parquet, .arrow or
        .feather file. Or a folder of Parquet files; names of folders such as ``year=2024`` are a
        column.
    kinds
        As in :func:`marginbn.data.table.as_table`.
    delimiter
        What separates the fields of a .csv, .tsv or .txt file; a space means any number of spaces.
        None finds it in the header, except for .tsv.
    encoding
        Of the text, such as ``"latin-1"`` or ``"cp1252"``.

    Raises
    ------
    FormatError
        If the file is malformed; the message gives path, line and reason.
    InputError
        If the file is not there or of no known format.

    Examples
    --------
    >>> import os, tempfile
    >>> from marginbn import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "table.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("colour,size\\nred,1.5\\nblue,?\\n")
    ...     table = read_table(path)
    >>> table.kinds, table.complete.tolist()
    ({'colour': 'categorical', 'size': 'numeric'}, [True, False])
    """
    return as_table(open_file(path, delimiter=delimiter, encoding=encoding), kinds=kinds)


def open_file(
    path: str | PathLike[str], *, delimiter: str | None = None, encoding: str = "utf-8"
) -> Source:
    """The rows of a file as a source: only its header or schema is read now."""
    path = Path(path)
    suffix = format_of(path)
    if suffix in DELIMITERS:
        return source_of_text(path, suffix, delimiter=delimiter, encoding=encoding)
    if suffix == ".arff":
        return source_of_arff(load_text(path, checked_encoding(encoding)), str(path))
    return source_of_path(path)


def as_stream(X: Any) -> Source | None:
    """A table that is read in blocks, because it need not fit into memory; None for anything else.

    These are paths of files and folders, pyarrow datasets, DuckDB relations, polars LazyFrames and
    Dask DataFrames.
    """
    if isinstance(X, Source):
        return X
    if isinstance(X, (str, PathLike)):
        return open_file(X)
    library = type(X).__module__.partition(".")[0].lstrip("_")
    if library == "pyarrow" and hasattr(X, "scanner"):
        return source_of_dataset(X, "pyarrow dataset")
    if library == "duckdb" and hasattr(X, "columns"):
        return source_of_duckdb(X)
    if library == "polars" and hasattr(X, "sink_parquet"):
        return source_of_lazy_frame(X)
    is_dask = library in ("dask", "dask_expr") and hasattr(X, "partitions")
    return source_of_dask(X) if is_dask else None


def format_of(path: Path) -> str:
    """The suffix of the format, without that of a packed file."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = bool(suffixes) and suffixes[-1] in PACKED
    suffix = (suffixes[:-1] if packed else suffixes)[-1:]
    if suffix and (suffix[0] in DELIMITERS or suffix[0] == ".arff"):
        return suffix[0]
    if suffix and suffix[0] in ARROW_SUFFIXES and not packed:
        return suffix[0]
    if path.is_dir():
        return ".parquet"
    raise InputError(
        f"the format of {str(path)!r} is unknown; give a folder of Parquet files, or a name that "
        "ends in .csv, .tsv, .txt, .arff (also .gz, .zst), .parquet, .arrow or .feather"
    )
