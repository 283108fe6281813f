"""Tables: named columns of equal length, from arrays, nested lists and data frames.

Files are read by :mod:`marginbn.data.readers`; what may stand in a cell and how kinds are inferred
is said in :mod:`marginbn.data.columns`. pandas, polars, pyarrow and what else narwhals knows go
through narwhals, which is imported only when such a table comes.

Missing values are NaN, None, pandas NA and NaT, and the nulls of polars and pyarrow. The empty
string is a value like any other; only in files does it mean missing.
"""

from __future__ import annotations

import difflib
import operator
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from marginbn.data.amounts import read_as
from marginbn.data.columns import (
    Column,
    Kind,
    WantedKind,
    categorical_column,
    column_from_numbers,
    column_from_objects,
    leave_out_missing,
    refuse,
)
from marginbn.data.dates import DateKind, as_dates, column_from_dates, is_date_kind
from marginbn.exceptions import InputError

Source: TypeAlias = Any
"""An unread column: 1-D array, sequence of values, narwhals series, or a finished Column."""


def columns_of(X: Any) -> tuple[list[str], list[Source]]:
    """Names and unread columns of anything tabular."""
    if isinstance(X, (list, tuple)):
        columns = _columns_of_rows(X)
    elif _is_frame(X):
        return _columns_of_frame(X)
    else:
        columns = _columns_of_array(X)
    return [f"x{i}" for i in range(len(columns))], columns


def values_of(y: Any, name: str) -> Source:
    """Unread column behind a one-dimensional array, a sequence or a series."""
    if isinstance(y, (list, tuple)):
        return y
    if hasattr(y, "to_numpy"):
        import narwhals as nw

        y = nw.from_native(y, allow_series=True, pass_through=True)
        if isinstance(y, nw.Series):
            return y
    array = _plain_array(y)
    if array.ndim != 1:
        raise InputError(f"{name} must be one-dimensional, got an array of shape {array.shape}")
    return array


def read_column(name: str, source: Source, kind: WantedKind | None) -> Column:
    """Column of an unread source; `kind` None means inferred."""
    if is_date_kind(kind):
        return _read_dates(name, source, kind)
    plain = read_as(kind)
    if isinstance(source, Column):
        return source.renamed(name).as_kind(plain or source.kind)
    if isinstance(source, np.ndarray):
        return _read_array(name, source, plain)
    if isinstance(source, (list, tuple)):
        return column_from_objects(name, source, plain)
    return _read_series(name, source, plain)


def _read_dates(name: str, source: Source, kind: DateKind) -> Column:
    """Categorical column of ISO dates."""
    if isinstance(source, Column):
        return as_dates(source.renamed(name), kind)
    values = source if isinstance(source, (list, tuple)) else list(source)
    return column_from_dates(name, values, kind)


def _read_array(name: str, values: NDArray[Any], kind: Kind | None) -> Column:
    family = values.dtype.kind
    if family in "iuf":
        return column_from_numbers(name, values, kind)
    if family in "mM":
        refuse(name, "date")
    if family == "c":
        refuse(name, "complex")
    if family == "V":
        refuse(name, "nested")
    return column_from_objects(name, values.tolist(), kind)


def _read_series(name: str, series: Any, kind: Kind | None) -> Column:
    """Column of a narwhals series."""
    import narwhals as nw

    dtype = series.dtype
    if dtype.is_temporal():
        refuse(name, "date")
    if dtype.is_nested():
        refuse(name, "nested")
    wide = dtype.is_decimal() or dtype in (nw.Int128, nw.UInt128)  # numpy has no such types
    if dtype.is_numeric() and not wide:
        return _read_array(name, series.to_numpy(), kind)
    texts = _arrow_texts(series)
    if texts is not None:
        return categorical_column(name, *texts, None).as_kind(kind or "categorical")
    if dtype in (nw.Categorical, nw.Enum):
        declared = _declared_categories(series)
        return column_from_objects(name, series.to_list(), kind or "categorical", declared=declared)
    return column_from_objects(name, series.to_list(), kind)


def _arrow_texts(series: Any) -> tuple[NDArray[np.int64], list[str]] | None:
    """Codes (-1 for null) and distinct texts of a pyarrow column of texts; None of any other.

    Each distinct text becomes a Python object once instead of in every row.
    """
    if not series.implementation.is_pyarrow():
        return None
    array = series.to_native()
    if not array.num_chunks:
        return None
    array = array.unify_dictionaries() if hasattr(array.type, "value_type") else array
    if str(getattr(array.type, "value_type", array.type)) not in ("string", "large_string"):
        return None
    encoded = array.combine_chunks().dictionary_encode()
    if hasattr(encoded, "chunks"):  # too long for one piece
        return None
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    texts = encoded.dictionary.to_pylist()  # a null may stand among them
    return leave_out_missing(codes.astype(np.int64), texts, lambda text: text is None)


def _declared_categories(series: Any) -> list[Any] | None:
    """Categories in declared order; None where the list is only an encoding detail.

    polars and pyarrow keep every string the process or the file has met, so for them just an
    enum is a declaration.
    """
    import narwhals as nw

    if series.implementation.is_pandas_like():
        return list(series.to_native().cat.categories)
    if series.dtype == nw.Enum:
        return list(series.dtype.categories)
    return None


def _is_frame(X: Any) -> bool:
    kind = type(X)  # asked on the type: a lazy frame would warn when asked itself
    return any(hasattr(kind, a) for a in ("columns", "column_names", "__narwhals_dataframe__"))


def _columns_of_frame(X: Any) -> tuple[list[str], list[Source]]:
    import narwhals as nw
    from narwhals.exceptions import DuplicateError

    try:
        frame = nw.from_native(X, eager_only=True)
        columns = list(frame.iter_columns())
    except DuplicateError as error:
        reason = " ".join(str(error).split())
        raise InputError(f"column names must be distinct: {reason}") from error
    except TypeError as error:
        raise InputError(
            f"X must be an array, a list of rows or a data frame in memory, got {type(X)}; "
            "collect a lazy frame first"
        ) from error
    _require_columns(len(columns), frame.shape)
    return [str(name) for name in frame.columns], columns


def _columns_of_rows(rows: Sequence[Any]) -> list[Source]:
    if not rows:
        raise InputError("X is an empty list; give at least one row")
    if not all(isinstance(row, (list, tuple, np.ndarray)) for row in rows):
        _refuse_shape(np.ndim(rows[0]) + 1)
    width = len(rows[0])
    for i, row in enumerate(rows):
        if len(row) != width:
            raise InputError(
                f"the rows of X must be of equal length: row 0 has {width}, "
                f"row {i} has {len(row)} values"
            )
    _require_columns(width, (len(rows), width))
    return [list(column) for column in zip(*rows, strict=True)]


def _columns_of_array(X: Any) -> list[Source]:
    if hasattr(X, "tocsr"):
        raise InputError("Sparse data is not supported; use X.toarray() to give a dense array")
    array = _plain_array(X)
    if array.ndim != 2:
        _refuse_shape(array.ndim)
    _require_columns(array.shape[1], array.shape)
    return [array[:, j] for j in range(array.shape[1])]


def _plain_array(X: Any) -> NDArray[Any]:
    """Plain array; masked cells become missing."""
    if not isinstance(X, np.ma.MaskedArray):
        return np.asarray(X)
    array = np.ma.getdata(X).astype(np.float64 if X.dtype.kind == "f" else object)
    array[np.ma.getmaskarray(X)] = None  # NaN among floats
    return array


def _refuse_shape(ndim: int) -> None:
    raise InputError(
        f"Expected 2D array, got {ndim}D array instead: X must have one row per sample and one "
        "column per feature. Reshape your data with X.reshape(-1, 1) if it is a single feature, "
        "or X.reshape(1, -1) if it is a single sample."
    )


def _require_columns(n_columns: int, shape: tuple[int, ...]) -> None:
    if n_columns == 0:
        raise InputError(f"X has 0 feature(s) (shape={shape}) while a minimum of 1 is required.")


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
    def complete(self) -> NDArray[np.bool_]:
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
    only: Sequence[int] | None = None,
) -> Table:
    """Read anything tabular. There is an example in :class:`Table`.

    Parameters
    ----------
    X
        Two-dimensional numpy array, list of rows, pandas, polars or pyarrow table, or a
        :class:`Table`, whose columns are handed on as they are unless `kinds` says otherwise.
    kinds
        ``"auto"`` (see :func:`infer_kind`), one kind for all columns, a list with the kind of
        each, or a mapping from column name or position to kind for some of them. A key names a
        column if it can, and counts as a position otherwise. A column of kind ``"date"``,
        ``"day-first"`` or ``"month-first"`` holds ISO dates as categories, one of kind
        ``"amount"`` or ``"decimal-comma"`` its texts.
    names
        Names of the columns; the default is those of `X`, or x0, x1, ... where it has none.
    only
        Positions of the columns to read; the others are not even looked at.

    Raises
    ------
    InputError
        If `X` is no table, or a column holds what cannot be used; the message names the column.
    """
    own_names, sources = (X.names, X.columns) if isinstance(X, Table) else columns_of(X)
    labels = _checked_names(own_names, names)
    wanted = list(zip(labels, sources, resolve_kinds(kinds, labels), strict=True))
    if only is not None:
        return Table(tuple(read_column(*wanted[i]) for i in only))
    columns = tuple(read_column(*column) for column in wanted)
    if isinstance(X, Table) and all(map(operator.is_, columns, X.columns)):
        return X  # columns are built once: nothing about them was to change
    return Table(columns)


def as_column(values: Any, *, name: str = "y", kind: str = "auto") -> Column:
    """Read one column: a one-dimensional array, a list, or a data-frame series."""
    source = values if isinstance(values, Column) else values_of(values, name)
    return read_column(name, source, _checked_kind(kind))


def resolve_kinds(kinds: Kinds, names: Sequence[str]) -> list[WantedKind | None]:
    """The wanted kind of every column, None where it is to be inferred."""
    if isinstance(kinds, str):
        return [_checked_kind(kinds)] * len(names)
    if isinstance(kinds, (list, tuple)):
        if len(kinds) != len(names):
            raise InputError(f"kinds must have {len(names)} entries, one per column, got {kinds!r}")
        return [_checked_kind(kind) for kind in kinds]
    if not isinstance(kinds, Mapping):
        raise InputError(f"kinds must be one of {_KIND_NAMES} or a mapping, got {kinds!r}")
    wanted: list[WantedKind | None] = [None] * len(names)
    for key, kind in kinds.items():
        wanted[_position(key, names)] = _checked_kind(kind)
    return wanted


def check_distinct_names(names: Sequence[str]) -> None:
    """Refuse names that occur twice."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        listed = ", ".join(map(repr, repeated))
        raise InputError(f"column names must be distinct, but these occur twice: {listed}")


def _checked_kind(kind: str) -> WantedKind | None:
    if kind not in _KIND_NAMES:
        raise InputError(f"kinds must be one of {_KIND_NAMES}, got {kind!r}")
    return None if kind == "auto" else kind  # type: ignore[return-value]


def _position(key: str | int, names: Sequence[str]) -> int:
    if str(key) in names:
        return list(names).index(str(key))
    if isinstance(key, (int, np.integer)) and -len(names) <= key < len(names):
        return int(key)
    raise InputError(f"kinds names a column {key!r} that is not there{suggestion(key, names)}")


def suggestion(name: object, names: Sequence[str]) -> str:
    """What to add to the message about a name that is not there."""
    if len(names) == 1:
        part = re.search(rf"(?:^|(\W)\s*){re.escape(str(name))}(?:\s*(\W)|$)", names[0])
        if part is not None and (part[1] or part[2]):
            return (
                f"; the only column is {names[0]!r}: if {part[1] or part[2]!r} separates its "
                f"fields, say delimiter={part[1] or part[2]!r}"
            )
    close = difflib.get_close_matches(str(name), names, n=3)
    if close:
        return f"; did you mean {' or '.join(map(repr, close))}?"
    shown = ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")
    return f"; the columns are {shown or 'none'}"


def _checked_names(own: Sequence[str], given: Sequence[str] | None) -> list[str]:
    names = list(own if given is None else map(str, given))
    if len(names) != len(own):
        raise InputError(f"names must have {len(own)} entries, one per column, got {len(names)}")
    check_distinct_names(names)
    return names
