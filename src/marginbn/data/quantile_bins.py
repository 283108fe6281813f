"""Bins of about equal weight, for tables without a class to cut the numbers against.

Weights count as repetitions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbn.data.discretize import short_cut
from marginbn.data.encode import Coding, TableCoding, learn_coding
from marginbn.data.table import Table
from marginbn.exceptions import InputError
from marginbn.problem.encoded import EncodedData

FloatArray = NDArray[np.float64]

N_BINS = 4
"""Bins of a numeric column without a class, unless another number is asked for."""

KEPT_VALUES = 64
"""Training values of a bin, at most, that are kept to draw from."""


def quantile_cuts(values: FloatArray, weights: FloatArray, n_bins: int) -> FloatArray:
    """Cuts between the values, all of them if there are few, else at about equal total weight.

    A value that is too heavy for a bin is a bin of its own, and the values below and above it share
    the other bins; a side that is too light for a bin joins the heavy value.

    Examples
    --------
    >>> import numpy as np
    >>> quantile_cuts(np.array([1.0, 2.0, 2.0, 5.0]), np.ones(4), 8).tolist()
    [1.5, 4.0]
    >>> quantile_cuts(np.arange(100.0), np.ones(100), 4).tolist()
    [24.5, 49.5, 74.5]
    >>> zeros = np.repeat([0.0, 1.0, 2.0, 3.0, 4.0], [90, 2, 2, 1, 1])
    >>> quantile_cuts(zeros, np.ones(96), 4).tolist()
    [0.5, 1.5, 2.5]
    """
    distinct, place = np.unique(values, return_inverse=True)
    heavy = np.bincount(place, weights, len(distinct)).astype(np.float64)
    first = _bin_starts(heavy, n_bins)
    cuts = [short_cut(float(distinct[k - 1]), float(distinct[k])) for k in first]
    return np.array(cuts, dtype=np.float64)


def _bin_starts(weights: FloatArray, n_bins: int) -> list[int]:
    """Where bins begin but the first one, for values in order with these weights."""
    if len(weights) <= n_bins:
        return list(range(1, len(weights)))
    if n_bins < 2:
        return []
    heavy, total = int(weights.argmax()), float(weights.sum())
    if weights[heavy] * n_bins <= total:
        shares = np.arange(1, n_bins) * (total / n_bins)
        return [int(k) for k in np.searchsorted(np.cumsum(weights), shares, side="right")]
    below, above = weights[:heavy], weights[heavy + 1 :]
    n_below = min(round((n_bins - 1) * float(below.sum() / (total - weights[heavy]))), len(below))
    n_above = min(n_bins - 1 - n_below, len(above))
    n_below = n_bins - 1 - n_above
    starts = []
    if n_below:
        starts += [*_bin_starts(below, n_below), heavy]
    if n_above:
        starts += [heavy + 1, *(heavy + 1 + k for k in _bin_starts(above, n_above))]
    return starts


def kept_values(
    values: FloatArray, weights: FloatArray, cuts: FloatArray
) -> tuple[tuple[float, ...], ...]:
    """Up to :data:`KEPT_VALUES` of the values in each bin, each of about the same weight.

    Examples
    --------
    >>> import numpy as np
    >>> kept_values(np.array([3.0, 1.0, 2.0, 9.0]), np.ones(4), np.array([2.5]))
    ((1.0, 2.0), (3.0, 9.0))
    """
    order = np.argsort(values, kind="stable")
    kept = []
    for part in np.split(order, np.searchsorted(values[order], cuts, side="right")):
        n_kept = min(len(part), KEPT_VALUES)
        reached = np.cumsum(weights[part])
        middles = (np.arange(n_kept) + 0.5) * (reached[-1] / n_kept)
        kept.append(tuple(values[part[np.searchsorted(reached, middles)]].tolist()))
    return tuple(kept)


def encode_plain(table: Table, n_bins: int = N_BINS) -> EncodedData:
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


def quantile_coding(
    name: str, values: FloatArray, weights: FloatArray, n_bins: int, with_state: bool
) -> Coding:
    """Coding of a numeric column by its values, none of them missing."""
    cuts = quantile_cuts(values, weights, n_bins)
    kept = kept_values(values, weights, cuts)
    return Coding(name, "numeric", tuple(cuts.tolist()), (), with_state, kept)


def learn_plain_codings(
    table: Table,
    weights: FloatArray,
    n_bins: int,
    missing: Any,
    drawn: NDArray[np.intp] | slice = slice(None),
) -> TableCoding:
    """Codings of all columns where none is a class: categories are states, numbers are cut at
    quantiles into bins of about equal weight, or at every value if these are no more than bins.
    The rows that are ``drawn`` decide the cuts.
    """
    nobody = np.zeros(table.n_rows, dtype=np.int64)
    codings = []
    for column in table.columns:
        if column.kind != "numeric":
            codings.append(learn_coding(column, nobody, weights, 1, missing))
            continue
        numbers, own = column.numbers[drawn], weights[drawn]
        known = ~np.isnan(numbers)
        with_state = missing in ("state", "auto") and bool(column.missing.any())
        codings.append(quantile_coding(column.name, numbers[known], own[known], n_bins, with_state))
    return TableCoding(tuple(codings))
