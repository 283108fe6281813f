"""Likelihood scores: log likelihood, AIC, BIC (the same number as MDL).

With counts n(h, j), n(h) their row sums, q parent states, r child states and M rows:

    log likelihood   L = sum_{h,j} n(h, j) log(n(h, j) / n(h))          (eq. 2, unsmoothed, nats)
    AIC              L - q (r - 1)
    BIC = MDL        L - q (r - 1) (log M) / 2
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy


def log_likelihood(counts: NDArray[np.float64], total: float) -> float:
    """Maximised log likelihood of a (q, r) table; ``total`` is not used."""
    return float(xlogy(counts, counts).sum() - _row_term(counts))


def _row_term(counts: NDArray[np.float64]) -> float:
    rows = counts.sum(axis=1)
    return float(xlogy(rows, rows).sum())


def free_parameters(counts: NDArray[np.float64]) -> int:
    """q (r - 1)."""
    return int(counts.shape[0] * (counts.shape[1] - 1))


def aic(counts: NDArray[np.float64], total: float) -> float:
    """Akaike's criterion on the log-likelihood scale."""
    return log_likelihood(counts, total) - free_parameters(counts)


def bic(counts: NDArray[np.float64], total: float) -> float:
    """Bayesian information criterion, equal to minus the description length (MDL)."""
    return log_likelihood(counts, total) - 0.5 * math.log(total) * free_parameters(counts)
