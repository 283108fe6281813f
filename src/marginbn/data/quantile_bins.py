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
