"""Bayesian-Dirichlet scores: log marginal likelihood of a (q, r) table of counts.

With prior counts a(h, j) and a(h) = sum_j a(h, j):

    sum_h [ lgamma(a(h)) - lgamma(a(h) + n(h)) + sum_j lgamma(a(h, j) + n(h, j)) - lgamma(a(h, j)) ]

BDeu has a(h, j) = s / (q r) for an equivalent sample size s; K2 has a(h, j) = 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln


def bdeu(counts: NDArray[np.float64], total: float, equivalent_sample_size: float = 1.0) -> float:
    """BDeu score; ``total`` is not used."""
    return _marginal_likelihood(counts, equivalent_sample_size / counts.size)


def k2(counts: NDArray[np.float64], total: float) -> float:
    """K2 score; ``total`` is not used."""
    return _marginal_likelihood(counts, 1.0)


def _marginal_likelihood(counts: NDArray[np.float64], prior: float) -> float:
    rows, row_prior = counts.sum(axis=1), prior * counts.shape[1]
    cells = gammaln(counts + prior).sum() - counts.size * gammaln(prior)
    return float(cells + len(rows) * gammaln(row_prior) - gammaln(rows + row_prior).sum())
