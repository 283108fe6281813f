"""Counts to log parameters. Margins and final networks both come through here.

With n(h, j) the weighted count of child state j under parent state h, smoothing s and child
arity r, the Laplace-smoothed maximum-likelihood parameter (eq. 2 with n + 1 for s = 1) is

    theta(j | h) = (n(h, j) + s) / (n(h) + s r),        n(h) = sum_j n(h, j).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marginbn.data.counts import contingency
from marginbn.data.encode import EncodedData
from marginbn.problem.structure import Structure


def smoothed_log_table(counts: NDArray[np.float64], smoothing: float) -> NDArray[np.float64]:
    """Log parameters from counts; the child's states are the last axis, rows sum to one."""
    smoothed = counts + smoothing
    table: NDArray[np.float64] = np.log(smoothed) - np.log(smoothed.sum(axis=-1, keepdims=True))
    return table


def estimate_log_tables(
    data: EncodedData, structure: Structure, smoothing: float
) -> tuple[NDArray[np.float64], ...]:
    """Log tables of every variable: table i has shape (*arities of its parents, its arity)."""
    return tuple(
        smoothed_log_table(contingency(data, (*parents, child)), smoothing)
        for child, parents in enumerate(structure.parents)
    )
