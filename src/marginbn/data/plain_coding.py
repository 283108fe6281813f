"""States of columns where no column is a class.

Categories are states. Numbers have no class to be cut against, so that a numeric column is cut at
quantiles into bins of about equal weight, or at every value where it has no more values than bins.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbn.data.encode import Coding, TableCoding, learn_coding
from marginbn.data.ordinal import quantile_cuts
from marginbn.data.table import Table

N_BINS = 4
"""Bins of a numeric column unless another number is asked for."""


def learn_plain_codings(
    table: Table, weights: NDArray[np.float64], n_bins: int, missing: Any
) -> TableCoding:
    """Codings of all columns without a class; numbers are cut at quantiles of their values."""
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
