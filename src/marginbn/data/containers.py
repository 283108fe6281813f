"""Columns of arrays, nested lists and data frames, not yet read as numbers or categories.

pandas, polars, pyarrow and what else narwhals knows go through narwhals, which is imported only
when such a table comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from marginbn.data.cells import column_from_objects, refuse
from marginbn.data.columns import Column, Kind, column_from_numbers
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


def read_column(name: str, source: Source, kind: Kind | None) -> Column:
    """Column of an unread source; `kind` None means inferred."""
    if isinstance(source, Column):
        return source.renamed(name).as_kind(kind or source.kind)
    if isinstance(source, np.ndarray):
        return _read_array(name, source, kind)
    if isinstance(source, (list, tuple)):
        return column_from_objects(name, source, kind)
    return _read_series(name, source, kind)


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
    if dtype in (nw.Categorical, nw.Enum):
        declared = _declared_categories(series)
        return column_from_objects(name, series.to_list(), kind or "categorical", declared=declared)
    return column_from_objects(name, series.to_list(), kind)


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
