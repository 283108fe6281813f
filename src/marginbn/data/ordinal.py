"""Fine ordinal bins: numbers keep their order and most of their resolution.

The entropy cuts of ``discretize.py`` are made for tables that are counted: few bins, none where the
class does not change. Parameters that are trained with a prior that knows the order of the bins can
have many more. So a numeric column gets

* *fine* bins: the quantiles of the training values, united with the entropy cuts;
* *coarse* bins: the entropy cuts alone, for counting structures; each is a group of fine bins;
* a *position* for every fine bin: the mean of its values, clipped to the central 98 % and
  standardised, so that an effect can be linear in the value.

All of it counts weights as repetitions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from marginbn.data.columns import Column
from marginbn.data.discretize import short_cut
from marginbn.data.encode import (
    Coding,
    EncodedTraining,
    IsLate,
    TableCoding,
    encode_training,
    learn_coding,
)
from marginbn.data.labelled import LabelledTable
from marginbn.data.missing_values import MissingPolicy
from marginbn.data.table import Table
from marginbn.exceptions import InputError
from marginbn.problem.encoded import EncodedData, Groups, Variable

Bins = Literal["mdlp", "ordinal"]
FloatArray = NDArray[np.float64]

FINE_BINS = 64
CLIPPED_SHARE = 0.01


@dataclass(frozen=True, eq=False)
class OrdinalData:
    """Encoded rows whose numeric variables know their order.

    Parameters
    ----------
    data
        The rows in fine bins.
    groups
        Per variable the coarse bin of each state; None where each state is a bin of its own.
    positions
        Per variable where its states lie on the number line, in standard deviations from the mean
        and NaN for a state that is no number; None for categories.
    """

    data: EncodedData
    groups: Groups
    positions: tuple[FloatArray | None, ...]

    @classmethod
    def plain(cls, data: EncodedData) -> Self:
        """Rows without order: every variable is a category."""
        none = (None,) * data.n_variables
        return cls(data, none, none)

    def take(self, rows: NDArray[np.intp]) -> Self:
        """Some of the rows, in the same bins."""
        data = self.data
        part = EncodedData(data.codes[rows], data.weights[rows], data.variables)
        return replace(self, data=part)

    def coarse(self) -> EncodedData:
        """The rows in coarse bins, whose labels are numbers."""
        columns = []
        variables = []
        for i, (groups, variable) in enumerate(zip(self.groups, self.data.variables, strict=True)):
            column = self.data.codes[:, i]
            columns.append(column if groups is None else groups[column])
            if groups is not None:
                states = tuple(str(g) for g in range(int(groups.max()) + 1))
                variable = Variable(variable.name, states)
            variables.append(variable)
        return EncodedData(np.column_stack(columns), self.data.weights, tuple(variables))

    def merged(self) -> Self:
        """Equal rows as one, with the sum of their weights."""
        return replace(self, data=self.data.merged())


@dataclass(frozen=True, eq=False)
class OrdinalTraining:
    """Training rows twice: in coarse bins for the structure, in fine bins for the parameters."""

    coarse: EncodedTraining
    coding: TableCoding
    fine: OrdinalData

    @classmethod
    def plain(cls, coarse: EncodedTraining) -> Self:
        """Coarse bins only."""
        return cls(coarse, coarse.coding, OrdinalData.plain(coarse.data))

    @property
    def classes(self) -> NDArray[Any]:
        """Class labels in the order of their codes."""
        return self.coarse.classes


def encode_ordinal(
    rows: LabelledTable,
    missing: MissingPolicy,
    bins: Bins = "ordinal",
    classes: NDArray[Any] | None = None,
    is_late: IsLate = lambda: False,
) -> OrdinalTraining:
    """Encode training rows in coarse and fine bins; with ``bins="mdlp"`` both are the same.

    ``classes`` are all that there are, sorted, if the rows may lack one; when it ``is_late``, the
    columns that are left are cut by some of the rows.
    """
    return refine(encode_training(rows, missing, classes, is_late), rows, bins)


def refine(coarse: EncodedTraining, rows: LabelledTable, bins: Bins = "ordinal") -> OrdinalTraining:
    """Rows that are in coarse bins already, in fine ones as well."""
    if bins == "mdlp":
        return OrdinalTraining.plain(coarse)
    columns, weights = rows.features.columns, rows.weights
    pairs = list(zip(coarse.coding.columns, columns, strict=True))
    fine = [_refined(coding, column, weights) for coding, column in pairs]
    groups = (_groups(f, coding) for f, (coding, _) in zip(fine, pairs, strict=True))
    positions = (_positions(f, column, weights) for f, column in zip(fine, columns, strict=True))
    coding = TableCoding(tuple(fine))
    codes = np.column_stack([coarse.data.codes[:, :1], coding.encode(rows.features)])
    variables: tuple[Variable, ...] = (coarse.data.variables[0], *coding.variables)
    data = EncodedData(codes, weights, variables)
    return OrdinalTraining(coarse, coding, OrdinalData(data, (None, *groups), (None, *positions)))


def _refined(coding: Coding, column: Column, weights: FloatArray) -> Coding:
    """The coding with quantiles among its cuts."""
    if coding.kind != "numeric":
        return coding
    values, weights = _present(column, weights)
    cuts = np.union1d(coding.cuts, quantile_cuts(values, weights, FINE_BINS))
    return replace(coding, cuts=tuple(cuts.tolist()))


def _present(column: Column, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    numbers = column.numbers
    known = ~np.isnan(numbers)
    return numbers[known], weights[known]


def quantile_cuts(values: FloatArray, weights: FloatArray, n_bins: int) -> FloatArray:
    """Cuts between the values, all of them if there are few, else at about equal total weight.

    Examples
    --------
    >>> import numpy as np
    >>> quantile_cuts(np.array([1.0, 2.0, 2.0, 5.0]), np.ones(4), 8).tolist()
    [1.5, 4.0]
    >>> quantile_cuts(np.arange(100.0), np.ones(100), 4).tolist()
    [24.5, 49.5, 74.5]
    """
    distinct, place = np.unique(values, return_inverse=True)
    first = np.arange(1, len(distinct))
    if len(distinct) > n_bins:
        reached = np.cumsum(np.bincount(place, weights, len(distinct)))
        shares = np.arange(1, n_bins) * (reached[-1] / n_bins)
        first = np.unique(np.searchsorted(reached, shares, side="right"))
        first = first[(first > 0) & (first < len(distinct))]
    cuts = [short_cut(float(distinct[k - 1]), float(distinct[k])) for k in first]
    return np.array(cuts, dtype=np.float64)


def _groups(fine: Coding, coarse: Coding) -> NDArray[np.intp] | None:
    """The coarse bin of each fine one; the state for missing values stays on its own."""
    if fine.kind != "numeric" or fine.cuts == coarse.cuts:
        return None
    upper = np.append(fine.cuts, np.inf)
    groups = np.searchsorted(np.array(coarse.cuts), upper, side="left")
    if fine.missing_state:
        groups = np.append(groups, len(coarse.cuts) + 1)
    return groups.astype(np.intp)


def _positions(coding: Coding, column: Column, weights: FloatArray) -> FloatArray | None:
    """Mean of the clipped, standardised values of each bin; NaN for the missing state."""
    if coding.kind != "numeric":
        return None
    values, weights = _present(column, weights)
    n_bins = len(coding.cuts) + 1
    positions = np.zeros(n_bins)
    if n_bins > 1:
        clipped = _clip(values, weights)
        clipped = clipped / np.abs(clipped).max()  # squares neither overflow nor vanish
        mean = np.average(clipped, weights=weights)
        spread = np.sqrt(np.average((clipped - mean) ** 2, weights=weights)) or 1.0
        bins = np.searchsorted(np.array(coding.cuts), values, side="left")
        total = np.bincount(bins, weights, n_bins)
        filled = np.flatnonzero(total)  # all, unless coarse bins are those of more rows
        sums = np.bincount(bins, weights * (clipped - mean) / spread, n_bins)
        positions = np.interp(np.arange(n_bins), filled, sums[filled] / total[filled])
    return np.append(positions, np.nan) if coding.missing_state else positions


def _clip(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Values outside the central 98 % of the weight moved to its borders: outliers have no say."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    shares = np.array([CLIPPED_SHARE, 1.0 - CLIPPED_SHARE]) * reached[-1]
    low, high = values[order][np.minimum(np.searchsorted(reached, shares), len(values) - 1)]
    clipped: FloatArray = np.clip(values, low, high) if high > low else values
    return clipped


def encode_plain(table: Table, n_bins: int = 4) -> EncodedData:
    """All columns alike, without a class: numbers cut at quantiles, categories as they are.

    Examples
    --------
    >>> from marginbn import as_table
    >>> table = as_table([[0.5, "a"], [1.5, "b"], [2.5, "a"], [9.5, "b"]])
    >>> data = encode_plain(table, 2)
    >>> data.codes.tolist(), data.variables[0].states
    ([[0, 0], [0, 1], [1, 0], [1, 1]], ('<= 2', '> 2'))
    """
    if not table.complete.all():
        lacking = [column.name for column in table.columns if column.missing.any()]
        raise InputError(
            f"the columns {lacking} have missing values; fill them in, or leave out these rows or "
            "columns"
        )
    weights = np.ones(table.n_rows)
    coding = learn_plain_codings(table, weights, n_bins, "error")
    variables = tuple(column.variable for column in coding.columns)
    return EncodedData(coding.encode(table), weights, variables)


N_BINS = 4
"""Bins of a numeric column without a class, unless another number is asked for."""


def learn_plain_codings(
    table: Table, weights: FloatArray, n_bins: int, missing: Any
) -> TableCoding:
    """Codings of all columns where none is a class: categories are states, numbers are cut at
    quantiles into bins of about equal weight, or at every value if these are no more than bins.
    """
    nobody = np.zeros(table.n_rows, dtype=np.int64)
    codings = []
    for column in table.columns:
        if column.kind != "numeric":
            codings.append(learn_coding(column, nobody, weights, 1, missing))
            continue
        known = ~np.isnan(column.numbers)
        cuts = quantile_cuts(column.numbers[known], weights[known], n_bins)
        with_state = missing in ("state", "auto") and bool((~known).any())
        codings.append(Coding(column.name, "numeric", tuple(cuts.tolist()), (), with_state))
    return TableCoding(tuple(codings))
