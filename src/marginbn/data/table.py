"""Tables: named columns of equal length, from arrays, nested lists and data frames.

Files are read by :mod:`marginbn.data.readers`; what may stand in a cell is said in
:mod:`marginbn.data.cells`, how kinds are inferred in :mod:`marginbn.data.columns`.

Missing values are NaN, None, pandas NA and NaT, and the nulls of polars and pyarrow. The empty
string is a value like any other; only in files does it mean missing.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from marginbn.data.columns import Column, Kind, infer_kind
from marginbn.data.containers import Source, columns_of, read_column, values_of
from marginbn.exceptions import InputError

__all__ = ["Column", "Kind", "Kinds", "Table", "as_column", "as_table", "infer_kind"]

Kinds: TypeAlias = Literal["auto", "numeric", "categorical"] | Mapping[str, str] | Mapping[int, str]

_KIND_NAMES = ("auto", "numeric", "categorical")


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of equal length with distinct names.

    Examples
    --------
    >>> table = as_table([["a", 1.5], ["b", None]], names=["letter", "size"])
    >>> table.names, table.n_rows, table.column("letter").kind
    (('letter', 'size'), 2, 'categorical')
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
        """The column called `name`.

        Examples
        --------
        >>> as_table([["a", 1.5], ["b", 2.5]], names=["letter", "size"]).column("letter").categories
        ('a', 'b')
        """
        for column in self.columns:
            if column.name == name:
                return column
        raise InputError(f"there is no column {name!r}{_suggestion(name, self.names)}")

    def drop(self, name: str) -> Table:
        """All columns but the one called `name`.

        Examples
        --------
        >>> as_table([["a", 1.5]], names=["letter", "size"]).drop("size").names
        ('letter',)
        """
        dropped = self.column(name)
        return Table(tuple(column for column in self.columns if column is not dropped))

    def select(self, names: Iterable[str]) -> Table:
        """Only the columns called `names`, in that order.

        Examples
        --------
        >>> as_table([["a", 1.5]], names=["letter", "size"]).select(["size", "letter"]).names
        ('size', 'letter')
        """
        return Table(tuple(self.column(name) for name in names))

    def take(self, row_indices: Any) -> Table:
        """Only the given rows (indices or a mask), in that order.

        Examples
        --------
        >>> as_table([["a", 1.5], ["b", 2.5]], names=["letter", "size"]).take([1]).n_rows
        1
        """
        rows = np.asarray(row_indices)
        rows = rows.astype(np.intp) if rows.size == 0 and rows.dtype != np.bool_ else rows
        return Table(tuple(column.take(rows) for column in self.columns))


def as_table(X: Any, *, kinds: Kinds = "auto", names: Sequence[str] | None = None) -> Table:
    """Read anything tabular.

    Parameters
    ----------
    X
        Two-dimensional numpy array, list of rows, pandas, polars or pyarrow table, or a
        :class:`Table`, which keeps the kinds it has unless told otherwise.
    kinds
        ``"auto"`` (see :func:`infer_kind`), one kind for all columns, or a mapping from column
        name or position to kind for some of them. A key names a column if it can, and counts as
        a position otherwise.
    names
        Names of the columns; the default is those of `X`, or x0, x1, ... where it has none.

    Raises
    ------
    InputError
        If `X` is no table, or a column holds what cannot be used; the message names the column.

    Examples
    --------
    >>> from marginbn import as_table
    >>> table = as_table([["red", 1.5], ["blue", None]], names=["colour", "size"])
    >>> table.kinds
    {'colour': 'categorical', 'size': 'numeric'}
    >>> table.complete.tolist()
    [True, False]
    """
    own_names, sources = _names_and_sources(X)
    labels = _checked_names(own_names, names)
    wanted = resolve_kinds(kinds, labels)
    return Table(tuple(map(read_column, labels, sources, wanted)))


def as_column(values: Any, *, name: str = "y", kind: str = "auto") -> Column:
    """Read one column: a one-dimensional array, a list, or a data-frame series."""
    source = values if isinstance(values, Column) else values_of(values, name)
    return read_column(name, source, _checked_kind(kind))


def resolve_kinds(kinds: Kinds, names: Sequence[str]) -> list[Kind | None]:
    """The wanted kind of every column, None where it is to be inferred."""
    if isinstance(kinds, str):
        return [_checked_kind(kinds)] * len(names)
    if not isinstance(kinds, Mapping):
        raise InputError(f"kinds must be one of {_KIND_NAMES} or a mapping, got {kinds!r}")
    wanted: list[Kind | None] = [None] * len(names)
    for key, kind in kinds.items():
        wanted[_position(key, names)] = _checked_kind(kind)
    return wanted


def check_distinct_names(names: Sequence[str]) -> None:
    """Refuse names that occur twice."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        listed = ", ".join(map(repr, repeated))
        raise InputError(f"column names must be distinct, but these occur twice: {listed}")


def _checked_kind(kind: str) -> Kind | None:
    if kind not in _KIND_NAMES:
        raise InputError(f"kinds must be one of {_KIND_NAMES}, got {kind!r}")
    return None if kind == "auto" else kind  # type: ignore[return-value]


def _position(key: str | int, names: Sequence[str]) -> int:
    if str(key) in names:
        return list(names).index(str(key))
    if isinstance(key, (int, np.integer)) and -len(names) <= key < len(names):
        return int(key)
    raise InputError(f"kinds names a column {key!r} that is not there{_suggestion(key, names)}")


def _suggestion(name: object, names: Sequence[str]) -> str:
    close = difflib.get_close_matches(str(name), names, n=3)
    if close:
        return f"; did you mean {' or '.join(map(repr, close))}?"
    shown = ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")
    return f"; the columns are {shown or 'none'}"


def _names_and_sources(X: Any) -> tuple[Sequence[str], Sequence[Source]]:
    return (X.names, X.columns) if isinstance(X, Table) else columns_of(X)


def _checked_names(own: Sequence[str], given: Sequence[str] | None) -> list[str]:
    names = list(own if given is None else map(str, given))
    if len(names) != len(own):
        raise InputError(f"names must have {len(own)} entries, one per column, got {len(names)}")
    check_distinct_names(names)
    return names
