"""From what a user passes to ``fit`` and ``predict`` to tables and encoded data."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from marginbn.data.columns import Column, as_input_errors
from marginbn.data.encode import (
    EncodedData,
    MissingPolicy,
    TableCoding,
    Variable,
    learn_table_coding,
)
from marginbn.data.table import Kinds, Table, as_table, check_distinct_names
from marginbn.exceptions import DataWarning, InputError


def read_features(
    estimator: Any, X: Any, *, kinds: Kinds, reset: bool, rows: NDArray[np.intp] | None = None
) -> Table:
    """Table of the feature columns; sets or checks ``feature_names_in_`` and the like.

    Only the given ``rows`` are read, so that others cannot influence how kinds are inferred.
    """
    with as_input_errors():
        return _read_features(estimator, X, kinds, reset, rows)


def _read_features(
    estimator: Any, X: Any, kinds: Kinds, reset: bool, rows: NDArray[np.intp] | None
) -> Table:
    if isinstance(X, Table):
        X = _check_own_table(estimator, X, reset)
        return as_table(X if rows is None else X.take(rows), kinds=kinds)
    if hasattr(X, "columns"):  # a data frame: keep its types
        check_distinct_names([str(name) for name in getattr(X, "column_names", X.columns)])
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        _check_shape(len(X), len(X.columns))
        return as_table(_take(X, rows), kinds=kinds)
    if isinstance(X, (list, tuple)):  # numpy would turn 9.0 beside a text into the text "9.0"
        X = np.array(X, dtype=object)
    array = validate_data(estimator, X, reset=reset, dtype=None, ensure_all_finite="allow-nan")
    names = getattr(estimator, "feature_names_in_", None)
    return as_table(_take(array, rows), kinds=kinds, names=names)


def _check_own_table(estimator: Any, table: Table, reset: bool) -> Table:
    """A :class:`Table` is matched by column name at prediction, extra columns are ignored."""
    _check_shape(table.n_rows, table.n_columns)
    if reset:
        estimator.feature_names_in_ = np.array(table.names, dtype=object)
        estimator.n_features_in_ = table.n_columns
        return table
    names = [coding.name for coding in estimator.coding_.columns]
    absent = [name for name in names if name not in table.names]
    if absent:
        listed = ", ".join(map(repr, absent[:10])) + (", ..." if len(absent) > 10 else "")
        raise InputError(f"the table lacks columns that the classifier was trained with: {listed}")
    return table.select(names)


def _check_shape(n_rows: int, n_columns: int) -> None:
    if n_rows == 0 or n_columns == 0:
        raise InputError(
            f"X must have at least one row and one column, got {n_rows} row(s) "
            f"and {n_columns} column(s)"
        )


def _take(X: Any, rows: NDArray[np.intp] | None) -> Any:
    return X if rows is None else _safe_indexing(X, rows)


def read_target(y: Any) -> tuple[NDArray[Any], str]:
    """Class labels as a one-dimensional array, and the name of the class variable."""
    name = getattr(y, "name", None)
    labels = column_or_1d(y.values if isinstance(y, Column) else y, warn=True)
    if labels.dtype == object:
        if any(label is None or label != label for label in labels):
            raise InputError("y must not contain missing values; leave such rows out before fit")
        labels = np.asarray(labels.tolist())
    elif labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise InputError("y must not contain NaN or infinity; leave such rows out before fit")
    check_classification_targets(labels)
    return labels, str(name) if isinstance(name, str) and name else "class"


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Rows that take part in training: positive weight, missing-value policy applied.

    ``positions`` are their row numbers in what the user passed to ``fit``.
    """

    table: Table
    labels: NDArray[Any]
    weights: NDArray[np.float64]
    positions: NDArray[np.intp]
    target: str
    n_dropped: int = 0

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.labels)

    def take(self, rows: NDArray[Any]) -> TrainingRows:
        """Only the given rows."""
        return replace(
            self,
            table=self.table.take(rows),
            labels=self.labels[rows],
            weights=self.weights[rows],
            positions=self.positions[rows],
        )


def read_training_rows(
    estimator: Any, X: Any, y: Any, sample_weight: Any, *, kinds: Kinds, missing: MissingPolicy
) -> TrainingRows:
    """Validate ``fit``'s arguments; rows of weight zero count as absent."""
    if missing not in ("drop", "state", "error"):
        raise InputError(f"missing must be 'drop', 'state' or 'error', got {missing!r}")
    if y is None:
        raise InputError("requires y to be passed, but the target y is None")
    with as_input_errors():
        labels, name = read_target(y)
        kept, weights = _read_weights(sample_weight, labels)
        table = read_features(estimator, X, kinds=kinds, reset=True, rows=kept)
        check_consistent_length(X if not isinstance(X, Table) else X.columns[0].values, labels)
    positions = np.arange(len(labels)) if kept is None else kept
    rows = TrainingRows(table, labels[positions], weights, positions, _free(name, table))
    return _apply_missing(rows, missing)


def _read_weights(
    sample_weight: Any, labels: NDArray[Any]
) -> tuple[NDArray[np.intp] | None, NDArray[np.float64]]:
    """Rows of positive weight (None for all) and their weights."""
    if sample_weight is None:
        return None, np.ones(len(labels))
    weights = _check_sample_weight(
        sample_weight, labels.reshape(-1, 1), dtype=np.float64, ensure_non_negative=True
    )
    kept = np.flatnonzero(weights > 0)
    if len(kept) == 0:
        raise InputError("sample_weight must be positive for at least one row, all are zero")
    return (None if len(kept) == len(labels) else kept), weights[kept]


def _free(name: str, table: Table) -> str:
    """The target's name, with underscores added until no feature has it."""
    while name in table.names:
        name += "_"
    return name


def _apply_missing(rows: TrainingRows, missing: MissingPolicy) -> TrainingRows:
    """Drop, keep or refuse rows with missing values."""
    complete = rows.table.complete
    n_missing = int((~complete).sum())
    if missing == "state" or n_missing == 0:
        return rows
    if missing == "error":
        columns = [c.name for c in rows.table.columns if c.missing.any()]
        raise InputError(
            f"{n_missing} of {rows.n_rows} rows have missing values, in the columns {columns}; "
            "use missing='drop' or missing='state', or fill them in"
        )
    if n_missing == rows.n_rows:
        raise InputError(
            "every row has a missing value, so missing='drop' leaves none; use missing='state'"
        )
    warnings.warn(
        f"{n_missing} of {rows.n_rows} rows have missing values and are left out "
        "(missing='drop'); missing='state' keeps them",
        DataWarning,
        stacklevel=4,
    )
    return replace(rows.take(complete), n_dropped=n_missing)


@dataclass(frozen=True, eq=False)
class EncodedTraining:
    """Training data with what is needed to encode more rows alike."""

    coding: TableCoding
    classes: NDArray[Any]
    data: EncodedData


def encode_training(rows: TrainingRows, missing: MissingPolicy) -> EncodedTraining:
    """Learn codings from the rows, discretising against the class, and encode; class first."""
    classes, class_codes = np.unique(rows.labels, return_inverse=True)
    coding = learn_table_coding(rows.table, class_codes, rows.weights, len(classes), missing)
    codes = np.column_stack([class_codes.astype(np.int32), coding.encode(rows.table)])
    variables = (Variable(rows.target, tuple(str(c) for c in classes)), *coding.variables)
    return EncodedTraining(coding, classes, EncodedData(codes, rows.weights, variables))
