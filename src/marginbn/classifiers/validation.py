"""What users pass: constructor parameters by declared checks, ``X`` and ``y`` by scikit-learn's.

A class declares its checks as a table from parameter name to check; ``fit`` goes through it once.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from os import PathLike
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from marginbn.data.columns import Column, as_input_errors, is_missing
from marginbn.data.labelled import CLASS_NAME, LabelledTable, refuse_measured
from marginbn.data.preparation import Preparation
from marginbn.data.source import (
    Source,
    array_of_objects,
    check_distinct_names,
    source_of_memory,
)
from marginbn.data.table import Kinds, Table, as_table, source_of_typed
from marginbn.exceptions import DataWarning, InputError, warn_user
from marginbn.problem.array_types import FloatArray, IndexArray

Check = Callable[[str, Any], object]
"""(name, value) -> refuses a wrong value with a message that begins with the name"""


def parameter(default: Any, check: Check) -> Any:
    """A constructor parameter, as a field of a dataclass, with what refuses wrong values."""
    return field(default=default, metadata={"check": check})


def check_positive(name: str, value: Any) -> None:
    """Refuse anything but a positive finite number."""
    number = isinstance(value, (int, float, np.integer, np.floating))
    if not number or isinstance(value, bool) or not 0 < value < float("inf"):
        raise InputError(f"{name} must be a positive number, got {value!r}")


def check_count(name: str, value: Any, least: int = 0) -> None:
    """Refuse anything but an integer of at least ``least``."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise InputError(f"{name} must be an integer of at least {least}, got {value!r}")


def kind_of(words: str, *kinds: type) -> Check:
    """Refuse anything but values of these types, or None."""

    def check(name: str, value: Any) -> None:
        if value is not None and (isinstance(value, bool) or not isinstance(value, kinds)):
            raise InputError(f"{name} must be {words} or None, got {value!r}")

    return check


check_jobs = kind_of("a whole number of workers", int, np.integer)
check_path = kind_of("a path", str, PathLike)
check_seed = kind_of("a whole number, a numpy RandomState", int, np.integer, np.random.RandomState)


def one_of(*choices: str) -> Check:
    """Refuse anything but the choices."""

    def check(name: str, value: Any) -> None:
        if value not in choices:
            listed = f"{', '.join(map(repr, choices[:-1]))} or {choices[-1]!r}"
            raise InputError(f"{name} must be {listed}, got {value!r}")

    return check


def check_class_weight(name: str, value: Any) -> None:
    """Refuse anything but None, "balanced" or a mapping from classes to positive numbers."""
    if value is None or (isinstance(value, str) and value == "balanced"):
        return
    if not isinstance(value, Mapping):
        raise InputError(
            f"{name} must be None, 'balanced' or a mapping from class to weight, got {value!r}"
        )
    for label, weight in value.items():
        check_positive(f"{name}[{label!r}]", weight)


def optional(check: Check) -> Check:
    """None, or what ``check`` accepts."""
    return lambda name, value: None if value is None else check(name, value)


def each(check: Check) -> Check:
    """A grid of which ``check`` accepts every entry."""

    def check_entries(name: str, values: Any) -> None:
        for value in as_grid(name, values):
            check(f"every entry of {name}", value)

    return check_entries


def as_grid(name: str, values: Any) -> tuple[Any, ...]:
    """A non-empty tuple of distinct grid values."""
    try:
        grid = tuple(dict.fromkeys(values))
    except TypeError:
        raise InputError(f"{name} must be a sequence of numbers, got {values!r}") from None
    if not grid:
        raise InputError(f"{name} must not be empty")
    return grid


# --- X and y --------------------------------------------------------------------------------------


@as_input_errors()
def read_training_rows(
    estimator: Any, X: Any, y: Any, sample_weight: Any, *, kinds: Kinds, has_class: bool = True
) -> LabelledTable:
    """Validate ``fit``'s arguments; rows of weight zero count as absent. Without a class all rows
    have the same label.
    """
    if has_class and y is None:
        raise InputError("requires y to be passed, but the target y is None")
    if not has_class and not isinstance(X, Table) and not hasattr(X, "columns"):
        X = _check_features(estimator, X, reset=True)[0]  # of another array its length is unknown
    shape = (X.n_rows,) if isinstance(X, Table) else getattr(X, "shape", None)
    n_rows = shape[0] if shape else len(X) if isinstance(X, Sequence) else None
    labels, name = read_target(y) if has_class else (np.zeros(n_rows or 0, np.int64), CLASS_NAME)
    if n_rows not in (None, len(labels)):
        raise InputError(
            f"y must have a label for each of the {n_rows} rows of X, got {len(labels)}"
        )
    kept, weights = _read_weights(sample_weight, len(labels))
    table = read_features(estimator, X, kinds=kinds, rows=kept)
    return LabelledTable.of(table, labels, name, weights=weights, kept=kept)


@as_input_errors()
def read_features(estimator: Any, X: Any, *, kinds: Kinds, rows: IndexArray | None = None) -> Table:
    """Table of the feature columns of training; sets ``feature_names_in_`` and the like.

    Only the given ``rows`` are read, so that others cannot influence how kinds are inferred.
    """
    if isinstance(X, Table):
        check_shape(X.n_rows, X.n_columns)
        set_feature_names(estimator, X.names)
        return as_table(X if rows is None else X.take(rows), kinds=kinds)
    table, names = _check_features(estimator, X, reset=True)
    table = table if rows is None else _safe_indexing(table, rows)
    return as_table(table, kinds=kinds, names=names)


@as_input_errors()
def source_of_rows(estimator: Any, X: Any, preparation: Preparation) -> Source:
    """Rows to answer, with the columns that a fitted classifier uses under their names there."""
    if isinstance(X, Table):
        return source_of_typed(_matching_columns(X, preparation))
    table, _ = _check_features(estimator, X, reset=False)
    source = source_of_memory(table).renamed([plan.name for plan in preparation.columns])
    return source.without(preparation.left_out)


@as_input_errors()
def read_more_rows(estimator: Any, X: Any, preparation: Preparation) -> Table:
    """The columns that a fitted classifier uses; the others are not looked at."""
    if isinstance(X, Table):
        return as_table(_matching_columns(X, preparation), kinds=preparation.used_kinds)
    return as_table(source_of_rows(estimator, X, preparation), kinds=preparation.used_kinds)


def _matching_columns(table: Table, preparation: Preparation) -> Table:
    """The columns that are used, matched by name; others are ignored."""
    check_shape(table.n_rows, table.n_columns)
    used = preparation.used_names
    if absent := [name for name in used if name not in table.names]:
        listed = ", ".join(map(repr, absent[:10])) + (", ..." if len(absent) > 10 else "")
        raise InputError(f"the table lacks columns that the classifier was trained with: {listed}")
    return table.select(used)


def single_row(estimator: Any, X: Any) -> Mapping[str, Any] | Sequence[Any] | None:
    """The values of the only row of a table whose columns are those of training; else None."""
    if isinstance(X, Mapping):
        return X if any(name in X for name in names_of(estimator)) else None
    if isinstance(X, (list, tuple)):
        if len(X) == 1 and isinstance(X[0], Mapping):
            return single_row(estimator, X[0])
        is_row = len(X) == 1 and isinstance(X[0], (list, tuple))
        return X[0] if is_row and len(X[0]) == estimator.n_features_in_ else None
    if isinstance(X, np.ndarray):
        is_row = X.ndim == 2 and X.shape == (1, estimator.n_features_in_)
        return X[0].tolist() if is_row and X.dtype.kind in "iufOU" else None
    if not (hasattr(type(X), "__len__") and hasattr(X, "columns")) or len(X) != 1:
        return None
    if list(getattr(X, "column_names", X.columns)) != list(names_of(estimator)):
        return None
    if hasattr(X, "iloc"):
        return [X[name].iat[0] for name in X.columns]
    if hasattr(X, "to_pylist"):  # pyarrow
        return [column[0].as_py() for column in X.columns]
    return X.row(0) if hasattr(X, "row") else None  # polars


def names_of(estimator: Any) -> Sequence[str]:
    """Names of the columns of training; x0, x1, ... where they had none."""
    names = getattr(estimator, "feature_names_in_", None)
    return [f"x{i}" for i in range(estimator.n_features_in_)] if names is None else names


def _check_features(estimator: Any, X: Any, *, reset: bool) -> tuple[Any, Sequence[str] | None]:
    """A data frame as it is, or an array, and the names of its columns if it has none itself."""
    if isinstance(X, (list, tuple)) and len(X) and isinstance(X[0], Mapping):
        if not reset:
            expected = [str(name) for name in names_of(estimator)]
            if not any(name in row for row in X for name in expected):
                listed = ", ".join(map(repr, expected[:10]))
                raise InputError(f"no row has a value of the columns of training: {listed}")
            columns = {n: array_of_objects(n, [row.get(n) for row in X]) for n in expected}
            return pa.table(columns), expected  # what a row lacks is missing
        X = source_of_memory(X).whole()
    if isinstance(X, np.ndarray) and X.dtype.names:
        X = source_of_memory(X).whole()
    if hasattr(X, "columns"):  # a data frame: keep its types
        names = [str(name) for name in getattr(X, "column_names", X.columns)]
        check_distinct_names(names)
        try:
            validate_data(estimator, X, reset=reset, skip_check_array=True)
        except ValueError as error:
            if {*names_of(estimator)} <= {*names}:
                remedy = "Give X[clf.feature_names_in_]: the columns of training in their order."
                raise InputError(f"{error}{remedy}") from None
            raise
        check_shape(len(X), len(X.columns))
        return X, None
    if isinstance(X, (list, tuple)):  # numpy would turn a 9.0 next to a text into the text "9.0"
        X = np.array(X, dtype=object)
    array = validate_data(estimator, X, reset=reset, dtype=None, ensure_all_finite="allow-nan")
    return array, getattr(estimator, "feature_names_in_", None)


def set_feature_names(estimator: Any, names: Sequence[str]) -> None:
    """Set scikit-learn's attributes about the features, as ``validate_data`` does for frames."""
    estimator.feature_names_in_ = np.array(names, dtype=object)
    estimator.n_features_in_ = len(names)


def check_shape(n_rows: int, n_columns: int) -> None:
    """Refuse tables without rows or columns."""
    if n_rows == 0 or n_columns == 0:
        raise InputError(
            f"X must have at least one row and one column, got {n_rows} row(s) "
            f"and {n_columns} column(s)"
        )


def read_target(y: Any) -> tuple[NDArray[Any], str]:
    """Class labels as a one-dimensional array, and the name of the class variable."""
    if isinstance(y, str):
        raise InputError(
            f"y must be a class label for each row, got {y!r}; only tables read in pieces "
            f"take a column name: give X[{y!r}] as y and drop it from X"
        )
    name = getattr(y, "name", None)
    if hasattr(getattr(y, "dtype", None), "na_value"):
        y = np.asarray(y, object)  # nullable: scikit-learn would make floats of True and of 1
    labels = column_or_1d(y.values if isinstance(y, Column) else y, warn=True)
    if labels.dtype == object:
        if any(map(is_missing, labels)):
            raise InputError("y must not contain missing values; leave such rows out before fit")
        listed = labels.tolist()
        labels = np.asarray(listed)
        strange = [type(label).__name__ for label in listed if labels.dtype == object]
        if strange:
            raise InputError(
                f"Unknown label type: {strange[0]}. y must hold texts, whole numbers or booleans; "
                "make texts of the labels"
            )
    elif labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise InputError("y must not contain NaN or infinity; leave such rows out before fit")
    name = str(name) if isinstance(name, str) and name else None
    refuse_measured(labels, f"y ({name!r})" if name else "y")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of many classes the guardrails warn
        check_classification_targets(labels)
    return labels, name or CLASS_NAME


LEAST_WEIGHT = 0.02
"""Mean weight below which rows count so little that hardly anything can be learned from them."""


def _read_weights(sample_weight: Any, n_rows: int) -> tuple[IndexArray | None, FloatArray]:
    """Rows of positive weight (None for all) and their weights."""
    if sample_weight is None:
        return None, np.ones(n_rows)
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"sample_weight must hold numbers, got {sample_weight!r:.80}") from None
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise InputError(
            f"sample_weight must have one entry for each of the {n_rows} rows, got the shape "
            f"{weights.shape}"
        )
    bad = np.flatnonzero(~np.isfinite(weights) | (weights < 0))
    if len(bad):
        raise InputError(
            f"sample_weight must hold numbers of at least 0, got {weights[bad[0]]} for row "
            f"{bad[0]} (the first row is 0); a weight of 0 leaves a row out"
        )
    kept = np.flatnonzero(weights > 0)
    if len(kept) == 0:
        raise InputError("sample_weight must be positive for at least one row, all are zero")
    if weights[kept].mean() < LEAST_WEIGHT:
        warn_user(
            f"the entries of sample_weight add up to {weights.sum():.3g}: so few rows teach hardly "
            f"anything. A weight counts copies of its row; multiply the weights by "
            f"{1.0 / weights[kept].mean():.3g} to make their mean 1",
            DataWarning,
        )
    return (None if len(kept) == n_rows else kept), weights[kept]


def seed_of(random_state: Any) -> int:
    """A seed for the solver's heuristics; None means 0, so that fits are reproducible."""
    if random_state is None:
        return 0
    if isinstance(random_state, (int, np.integer)):
        return int(random_state) % 2**31
    with as_input_errors():
        return int(check_random_state(random_state).randint(2**31 - 1))
