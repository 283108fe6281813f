"""The paper's gap and significance tests: who wins over folds, and on one test set."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binomtest, ttest_rel

from marginbn.exceptions import InputError


def paper_gap(objective: float, bound: float) -> float:
    """100 (Z - z) / Z per cent, the formula of the paper's table 1; NaN where Z = 0 < Z - z.

    Examples
    --------
    >>> paper_gap(99.0, 100.0)
    1.0
    """
    if bound == objective:
        return 0.0
    if bound == 0 or not (math.isfinite(objective) and math.isfinite(bound)):
        return math.inf if math.isinf(bound) or math.isinf(objective) else math.nan
    return 100.0 * (bound - objective) / bound


def paired_t_test(first: ArrayLike, second: ArrayLike) -> float:
    """One-sided p-value of "first is better than second" over the same folds.

    Where all differences are equal there is no spread to compare with: 0 if they are positive,
    1 if they are negative, 0.5 if they are zero.

    Examples
    --------
    >>> round(paired_t_test([0.9, 0.8, 0.9], [0.8, 0.6, 0.7]), 4)
    0.0189
    """
    better, worse = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if better.shape != worse.shape or better.ndim != 1 or len(better) < 2:
        raise InputError("first and second must have one score per fold each, two or more")
    difference = better - worse
    if difference.std() <= 1e-12 * np.abs(difference).max():  # equal up to rounding
        return 0.5 - 0.5 * float(np.sign(difference[0]))
    return float(ttest_rel(better, worse, alternative="greater").pvalue)


def binomial_test(n_correct: int, n_rows: int) -> float:
    """One-sided p-value: P(at least ``n_correct`` of ``n_rows`` rows) by tossing a coin.

    The rows are those on which exactly one of two classifiers is right.

    Examples
    --------
    >>> binomial_test(5, 5), binomial_test(0, 0)
    (0.03125, 1.0)
    """
    return float(binomtest(n_correct, n_rows, alternative="greater").pvalue) if n_rows else 1.0
