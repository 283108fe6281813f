"""Codings: how the values of a column become states, learned once and applied to other rows.

A numeric column is cut into bins (Fayyad-Irani, on the training rows only); a categorical column
has the categories seen in training. Code -1 stands for "not known": a missing value, or a
category that training never saw. With the policies ``missing="state"`` and ``"auto"`` a column that
has missing values in training gets one more state for them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from marginbn.data.columns import Column, Kind, Scalar
from marginbn.data.discretize import assign_bins, mdlp_cuts, name_bins
from marginbn.data.labelled import LabelledTable
from marginbn.data.labels import MISSING_LABEL
from marginbn.data.missing_values import MissingPolicy
from marginbn.data.sampling import report_sample
from marginbn.data.table import Table
from marginbn.exceptions import DataWarning, InputError
from marginbn.problem.encoded import PIECE, EncodedData, Variable

UnseenPolicy = Literal["missing", "error"]


@dataclass(frozen=True)
class Coding:
    """States of one feature column.

    Parameters
    ----------
    name, kind
        Of the column.
    cuts
        Bin edges of a numeric column, increasing; values up to and including a cut lie left.
    categories
        Values of a categorical column, in the order of their codes.
    missing_state
        Whether the last state stands for a missing value.
    values
        Training values of each bin to draw from; empty where nothing is drawn.
    """

    name: str
    kind: Kind
    cuts: tuple[float, ...] = ()
    categories: tuple[Scalar, ...] = ()
    missing_state: bool = False
    values: tuple[tuple[float, ...], ...] = ()

    @property
    def variable(self) -> Variable:
        """The variable that the coded column is."""
        if self.kind == "numeric":
            labels = name_bins(np.array(self.cuts))
        else:
            labels = tuple(str(c) for c in self.categories)
        if self.missing_state:
            missing = MISSING_LABEL
            while missing in labels:
                missing += "_"
            labels = (*labels, missing)
        return Variable(self.name, labels)

    def encode(self, column: Column, unseen: UnseenPolicy = "missing") -> NDArray[np.int32]:
        """Codes of a column, read as the kind it had in training; -1 where not known."""
        column = column.as_kind(self.kind)
        if self.kind == "numeric":
            codes = assign_bins(column.numbers, np.array(self.cuts))
        else:
            codes = self._encode_categories(column, unseen)
        if self.missing_state:
            last = self.variable.arity - 1
            codes = np.where(column.missing, np.int32(last), codes)
        return codes

    def draw(self, codes: NDArray[np.int32], rng: np.random.Generator) -> NDArray[Any]:
        """Values of codes: categories as they were given, training values of a bin at random, None
        for a missing value.
        """
        drawn = np.full(len(codes), None, dtype=object)
        for state, values in enumerate(self.values or [(c,) for c in self.categories]):
            rows = np.flatnonzero(codes == state)
            drawn[rows] = np.array(values, dtype=object)[rng.integers(len(values), size=len(rows))]
        return drawn

    def _encode_categories(self, column: Column, unseen: UnseenPolicy) -> NDArray[np.int32]:
        known = {label: code for code, label in enumerate(str(c) for c in self.categories)}
        lookup = np.array([known.get(label, -1) for label in column.labels] + [-1], dtype=np.int32)
        codes: NDArray[np.int32] = lookup[column.codes]  # code -1 picks the last entry
        if unseen == "error":
            strange = (codes < 0) & ~column.missing
            if strange.any():
                row = int(np.flatnonzero(strange)[0])
                raise InputError(
                    f"column {self.name!r} holds {column.values[row]!r} in row {row}, a category "
                    "never seen in training; set unseen='missing' to treat it as missing"
                )
        return codes


def learn_coding(
    column: Column,
    class_codes: NDArray[np.integer],
    weights: NDArray[np.float64],
    n_classes: int,
    missing: MissingPolicy,
    drawn: NDArray[np.intp] | slice = slice(None),
) -> Coding:
    """Coding of one training column; numeric ones are discretised against the class, by the rows
    that are ``drawn``.
    """
    with_state = missing in ("state", "auto") and bool(column.missing.any())
    if column.kind == "numeric":
        cuts = mdlp_cuts(column.numbers[drawn], class_codes[drawn], weights[drawn], n_classes)
        return Coding(column.name, "numeric", tuple(float(c) for c in cuts), (), with_state)
    used = np.bincount(column.codes[column.codes >= 0], minlength=len(column.categories)) > 0
    categories = tuple(c for c, seen in zip(column.categories, used, strict=True) if seen)
    return Coding(column.name, "categorical", (), categories, with_state)


@dataclass(frozen=True)
class TableCoding:
    """Codings of all feature columns of a table."""

    columns: tuple[Coding, ...]

    @property
    def variables(self) -> tuple[Variable, ...]:
        """One variable per feature."""
        return tuple(c.variable for c in self.columns)

    def encode(self, table: Table, unseen: UnseenPolicy = "missing") -> NDArray[np.int32]:
        """Codes (n_rows, n_features), -1 where not known; columns are matched by position."""
        if table.n_columns != len(self.columns):
            raise InputError(
                f"the table must have the {len(self.columns)} columns of the training table, "
                f"got {table.n_columns}"
            )
        codes = np.empty((table.n_rows, len(self.columns)), dtype=np.int32)
        for i, (coding, column) in enumerate(zip(self.columns, table.columns, strict=True)):
            codes[:, i] = coding.encode(column, unseen)
        return codes


@dataclass(frozen=True, eq=False)
class EncodedTraining:
    """Training data with what is needed to encode more rows alike."""

    coding: TableCoding
    classes: NDArray[Any]
    data: EncodedData


ENOUGH_ROWS = 20_000
"""Rows, drawn at random, by which columns are cut when time is short."""

IsLate = Callable[[], bool]
"""Whether cuts have taken as much time as they may."""


def encode_training(
    rows: LabelledTable,
    missing: MissingPolicy,
    is_late: IsLate = lambda: False,
) -> EncodedTraining:
    """Learn codings from the rows, discretising against the class, and encode; class first.

    It is asked before every numeric column of a long table whether it ``is_late``: then the rest
    are cut by some of the rows only, with a :class:`DataWarning`.
    """
    classes = np.unique(rows.labels)
    class_codes = np.searchsorted(classes, rows.labels)
    coding = _learn_codings(rows, class_codes, len(classes), missing, is_late)
    variables = (Variable(rows.target, tuple(str(c) for c in classes)), *coding.variables)
    if rows.n_rows > PIECE:
        codes = _by_column(class_codes, coding, rows.features, variables)
    else:
        codes = np.column_stack([class_codes.astype(np.int32), coding.encode(rows.features)])
    return EncodedTraining(coding, classes, EncodedData(codes, rows.weights, variables))


def _learn_codings(
    rows: LabelledTable,
    class_codes: NDArray[np.integer],
    n_classes: int,
    missing: MissingPolicy,
    is_late: IsLate,
) -> TableCoding:
    """Codings of all columns; the first ones by all rows, those for which it is late by a few."""
    few: NDArray[np.intp] | None = None
    sample = rows.sample()
    codings, hurried = [], []
    for column in rows.features.columns:
        is_long = column.kind == "numeric" and rows.n_rows > ENOUGH_ROWS
        if is_long and few is None and is_late():
            few = np.sort(np.random.default_rng(0).choice(rows.n_rows, ENOUGH_ROWS, replace=False))
        drawn = few if is_long and few is not None else sample
        if is_long and few is not None:
            hurried.append(column.name)
        codings.append(learn_coding(column, class_codes, rows.weights, n_classes, missing, drawn))
    if not isinstance(sample, slice):
        names = [c.name for c in codings if c.kind == "numeric" and c.name not in hurried]
        report_sample(names, len(rows.given_labels), stacklevel=5)  # the caller of fit
    if hurried:
        warnings.warn(
            f"time_limit is short for these rows: the bins of {len(hurried)} numeric columns "
            f"({', '.join(map(repr, hurried[:10]))}) come from {ENOUGH_ROWS} rows drawn at random; "
            "a larger time_limit cuts them by all rows",
            DataWarning,
            stacklevel=6,  # the caller of fit
        )
    return TableCoding(tuple(codings))


def _by_column(
    class_codes: NDArray[np.integer],
    coding: TableCoding,
    features: Table,
    variables: tuple[Variable, ...],
) -> NDArray[np.integer]:
    """Codes of many rows without gaps, one column after the other in as few bytes as hold them."""
    dtype = np.min_scalar_type(max(variable.arity for variable in variables) - 1)
    out = np.empty((len(variables), len(class_codes)), dtype=dtype)
    out[0] = class_codes
    for i, (own, column) in enumerate(zip(coding.columns, features.columns, strict=True), 1):
        codes = own.encode(column)
        if codes.min() < 0:  # would become another state
            raise InputError(f"column {own.name!r} has missing values; set missing='state'")
        out[i] = codes
    return out.T
