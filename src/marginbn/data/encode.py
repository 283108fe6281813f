"""Encoded data: integer codes, weights and the names behind them.

Variable 0 is always the class. A sample is a row of codes with a positive weight; rows that are
equal are the same sample with the sum of their weights, which changes no count, no score and no
margin but makes every later step cheaper.

How the values of a column become states is a coding, learned once and applied for ever. A numeric
column is cut into bins (Fayyad-Irani, on the training rows only); a categorical column
has the categories seen in training. Code -1 stands for "not known": a missing value, or a
category that training never saw. With the policies ``missing="state"`` and ``"auto"`` a column that
has missing values in training gets one more state for them.

Contingency tables are counted here and nowhere else.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from marginbn.data.columns import Column, Kind, Scalar, frozen
from marginbn.data.discretize import assign_bins, mdlp_cuts, name_bins
from marginbn.data.labelled import LabelledTable
from marginbn.data.labels import MISSING_LABEL
from marginbn.data.missing_values import MissingPolicy
from marginbn.data.table import Table
from marginbn.exceptions import DataWarning, InputError, ProblemTooLargeError


@dataclass(frozen=True)
class Variable:
    """A discrete random variable: its name and the labels of its states.

    Examples
    --------
    >>> Variable("petal length", ("<= 2.45", "> 2.45")).arity
    2
    """

    name: str
    states: tuple[str, ...]

    @property
    def arity(self) -> int:
        """Number of states."""
        return len(self.states)


Groups = tuple[NDArray[np.intp] | None, ...]
"""Per variable the group of each of its states, 0, 1, ...; None where every state is its own."""


@dataclass(frozen=True, eq=False)
class EncodedData:
    """Complete discrete data, class first.

    Parameters
    ----------
    codes
        int32 (n_samples, n_variables), ``0 <= codes[:, i] < arity of i``; no missing values.
        Unsigned ones of 8 or 16 bits stay as they are: a long table takes a quarter of the room.
    weights
        float64 (n_samples,), positive.
    variables
        One :class:`Variable` per column; variable 0 is the class.

    Examples
    --------
    >>> import numpy as np
    >>> from marginbn import EncodedData, Variable
    >>> variables = (Variable("class", ("no", "yes")), Variable("colour", ("red", "blue")))
    >>> data = EncodedData(np.array([[0, 0], [1, 1], [1, 1]]), np.ones(3), variables)
    >>> data.n_samples, data.n_classes, data.total_weight
    (3, 2, 3.0)
    >>> data.merged().codes.tolist(), data.merged().weights.tolist()
    ([[0, 0], [1, 1]], [1.0, 2.0])
    """

    codes: NDArray[np.integer]
    weights: NDArray[np.float64]
    variables: tuple[Variable, ...]
    _is_merged: bool = field(default=False, init=False, repr=False)
    """Whether it is known that merging rows would spare nothing."""

    def __post_init__(self) -> None:
        codes: NDArray[np.integer] = self.codes
        if getattr(codes, "dtype", None) not in COMPACT:
            with np.errstate(invalid="ignore"):  # what the cast bends is refused below
                codes = np.ascontiguousarray(codes, dtype=np.int32)
        weights = np.ascontiguousarray(self.weights, dtype=np.float64)
        if codes.ndim != 2 or codes.shape[1] != len(self.variables):
            raise InputError(
                f"codes must have shape (n_samples, {len(self.variables)}), got {codes.shape}"
            )
        if weights.shape != codes.shape[:1]:
            raise InputError(f"weights must have shape {codes.shape[:1]}, got {weights.shape}")
        if len(codes) and not (np.isfinite(weights).all() and (weights > 0).all()):
            raise InputError("weights must be positive and finite; leave out rows of weight zero")
        if codes is not self.codes and not np.array_equal(codes, self.codes):
            raise InputError("codes must be integers of 32 bits")
        if codes.size and (codes.min() < 0 or (codes.max(axis=0) >= self.arities).any()):
            raise InputError("codes must lie between 0 and the arity of their variable minus one")
        for name, array in (("codes", codes), ("weights", weights)):
            object.__setattr__(self, name, frozen(array))

    @cached_property
    def arities(self) -> NDArray[np.int64]:
        """Number of states of each variable."""
        return np.array([v.arity for v in self.variables], dtype=np.int64)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the variables."""
        return tuple(v.name for v in self.variables)

    @cached_property
    def by_column(self) -> NDArray[np.unsignedinteger[Any]]:
        """The codes again, (n_variables, n_samples), in as few bytes as hold them: passes over
        single variables are much faster this way.
        """
        dtype = np.min_scalar_type(int(self.arities.max(initial=1)) - 1)
        if self.codes.dtype == dtype and self.codes.T.flags.c_contiguous:
            return frozen(self.codes.T)
        out = np.empty((self.n_variables, self.n_samples), dtype=dtype)
        for begin in range(0, self.n_samples, PIECE):
            out[:, begin : begin + PIECE] = self.codes[begin : begin + PIECE].T
        return frozen(out)

    @property
    def n_samples(self) -> int:
        """Number of (distinct, if merged) rows."""
        return len(self.codes)

    @property
    def n_variables(self) -> int:
        """Number of variables, class included."""
        return len(self.variables)

    @property
    def n_classes(self) -> int:
        """Number of states of the class."""
        return self.variables[0].arity

    @property
    def total_weight(self) -> float:
        """Sum of the weights: the number of rows behind the samples if all weigh one."""
        return float(self.weights.sum())

    @property
    def constant(self) -> tuple[int, ...]:
        """Features with a single state; they can influence nothing."""
        return tuple(i for i, v in enumerate(self.variables) if i > 0 and v.arity <= 1)

    def merged(self) -> EncodedData:
        """Equal rows merged, weights added; rows come out in lexicographic order.

        A long table in which nearly all rows differ stays as it is.
        """
        if self.n_samples == 0 or self._is_merged:
            return self
        if self.n_samples >= MANY_ROWS and self._is_worth_nothing():
            object.__setattr__(self, "_is_merged", True)
            return self
        first, group = distinct_rows(self.codes, self.arities)
        weights = np.bincount(group, self.weights, len(first)).astype(np.float64, copy=False)
        return EncodedData(self.codes[first], weights, self.variables)

    def _is_worth_nothing(self) -> bool:
        """Whether nearly all rows differ, so that a second copy would spare nothing."""
        keys = row_keys(self.codes, self.arities)
        keys.sort()
        n_distinct = 1 + np.count_nonzero(keys[1:] != keys[:-1])
        return bool(n_distinct > WORTH_MERGING * self.n_samples)


def distinct_rows(
    codes: NDArray[np.integer], arities: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Index of the first row of each distinct kind, and the kind of every row.

    Kinds are in lexicographic order.
    """
    keys = row_keys(codes, arities)
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    return first.astype(np.int64), group.reshape(-1).astype(np.int64)


def row_keys(codes: NDArray[np.integer], arities: NDArray[np.int64]) -> NDArray[np.int64]:
    """An integer for every row that compares as the row does; where it would overflow, the kinds of
    the columns so far are numbered, which keeps their order.
    """
    keys, size = np.zeros(len(codes), dtype=np.int64), 1
    for column, arity in enumerate(arities):
        if size * int(arity) >= 2**62:
            distinct, keys = np.unique(keys, return_inverse=True)
            keys, size = keys.reshape(-1).astype(np.int64), len(distinct)
        keys *= int(arity)
        keys += codes[:, column]
        size *= int(arity)
    return keys


PIECE = 65_536
"""Rows that are copied at a time."""

COMPACT = (np.dtype(np.uint8), np.dtype(np.uint16))
"""Types of codes that are kept as they are."""

MANY_ROWS, WORTH_MERGING = 1_000_000, 0.9
"""In a table of so many rows, equal ones are merged if no more than this part of them differs."""

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
    """

    name: str
    kind: Kind
    cuts: tuple[float, ...] = ()
    categories: tuple[Scalar, ...] = ()
    missing_state: bool = False

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


def with_class_column(features: NDArray[np.int32]) -> NDArray[np.int32]:
    """Feature codes with a column 0 for the class, which prediction ignores."""
    return np.column_stack([np.zeros(len(features), dtype=np.int32), features])


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
    classes: NDArray[Any] | None = None,
    is_late: IsLate = lambda: False,
) -> EncodedTraining:
    """Learn codings from the rows, discretising against the class, and encode; class first.

    ``classes`` are all that there are, sorted, if the rows may lack one. It is asked before every
    numeric column of a long table whether it ``is_late``: then the rest are cut by some of the rows
    only, with a :class:`DataWarning`.
    """
    if classes is None:
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
    codings, hurried = [], []
    for column in rows.features.columns:
        is_long = column.kind == "numeric" and rows.n_rows > ENOUGH_ROWS
        if is_long and few is None and is_late():
            few = np.sort(np.random.default_rng(0).choice(rows.n_rows, ENOUGH_ROWS, replace=False))
        drawn = few if is_long and few is not None else slice(None)
        if is_long and few is not None:
            hurried.append(column.name)
        codings.append(learn_coding(column, class_codes, rows.weights, n_classes, missing, drawn))
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


def encode_alike(
    known: EncodedTraining, rows: LabelledTable
) -> tuple[EncodedTraining, LabelledTable]:
    """Other rows in the states of some training rows, and those of them that have no gap there."""
    codes = np.column_stack(
        [
            np.searchsorted(known.classes, rows.labels).astype(np.int32),
            known.coding.encode(rows.features),
        ]
    )
    kept = np.flatnonzero((codes >= 0).all(axis=1))
    rows = rows.take(kept)
    data = EncodedData(codes[kept], rows.weights, known.data.variables)
    return EncodedTraining(known.coding, known.classes, data), rows


MAX_JOINT_STATES = 2**31
"""A table with more cells than this is refused: it could neither be stored nor estimated."""


def check_joint_states(data: EncodedData, columns: Sequence[int]) -> int:
    """Number of joint states of ``columns``, refused above :data:`MAX_JOINT_STATES`."""
    size = math.prod(int(data.arities[c]) for c in columns)
    if size > MAX_JOINT_STATES:
        names = ", ".join(repr(data.names[c]) for c in columns)
        raise ProblemTooLargeError(
            f"the table over {names} would have {size} joint states, more than 2^31; "
            "reduce max_parents, or the number of states of these columns"
        )
    return size


def joint_codes(
    data: EncodedData, columns: Sequence[int], rows: slice = slice(None)
) -> NDArray[np.int64]:
    """Mixed-radix code of the joint state of ``columns`` in every sample, last column fastest."""
    check_joint_states(data, columns)
    code = np.zeros(len(data.weights[rows]), dtype=np.int64)
    for column in columns:
        code *= int(data.arities[column])
        code += data.by_column[column, rows]
    return code


def contingency(data: EncodedData, columns: Sequence[int]) -> NDArray[np.float64]:
    """Weighted counts of the joint states of ``columns``; shape ``arities[columns]``."""
    size = check_joint_states(data, columns)
    counts = np.bincount(joint_codes(data, columns), weights=data.weights, minlength=size)
    return counts.astype(np.float64, copy=False).reshape([int(data.arities[c]) for c in columns])
