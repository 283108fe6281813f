"""Decomposable scores: the formulas, the one registry, and their values over all candidates.

With counts n(h, j), n(h) their row sums, q parent states, r child states and M rows:

    log likelihood   L = sum_{h,j} n(h, j) log(n(h, j) / n(h))          (eq. 2, unsmoothed, nats)
    AIC              L - q (r - 1)
    BIC = MDL        L - q (r - 1) (log M) / 2

Bayesian-Dirichlet scores are log marginal likelihoods. With prior counts a(h, j), a(h) their sums:

    sum_h [ lgamma(a(h)) - lgamma(a(h) + n(h)) + sum_j lgamma(a(h, j) + n(h, j)) - lgamma(a(h, j)) ]

BDeu has a(h, j) = s / (q r) for an equivalent sample size s; K2 has a(h, j) = 1.

**Without cancellation** (``docs/theory/rounding.rst``). Stirling's formula,
lgamma(x) = (x - 1/2) log x - x + const + d(x), gives one parent state the score

    E  -  (1/2) (sum_j log(x_j / a) - log(X / A))  +  sum_j (d(x_j) - d(a))  -  (d(X) - d(A))

with x_j = a + n_j, A = r a, N = sum_j n_j, X = A + N, and E written in either of two ways:

    E = sum_j x_j log(x_j / X) + A log r          where the counts outweigh the prior,
    E = sum_j x_j log(r x_j / X) - N log r        where the prior outweighs the counts.

In the first the largest x_j has log(x_j / X) = log1p(-(sum of the others) / X), in the second
r x_j / X = 1 + (r n_j - N) / X. The sum of the terms' sizes times a few roundings bounds the error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from scipy.special import gammaln

from marginbn.exceptions import InputError
from marginbn.problem.array_types import EPS, FloatArray
from marginbn.problem.candidates import CandidateSets
from marginbn.problem.encoded import EncodedData, contingency

LocalScore = Callable[[FloatArray, float], float]
"""(counts of shape (parent states, child states), total weight) -> score in nats"""


def log_likelihood(counts: FloatArray, total: float) -> float:
    """Maximised log likelihood of a (q, r) table; ``total`` is not used."""
    used = counts > 0
    rows = np.broadcast_to(counts.sum(axis=1, keepdims=True), counts.shape)[used]
    return float((counts[used] * np.log(counts[used] / rows)).sum())


def free_parameters(counts: FloatArray) -> int:
    """q (r - 1)."""
    return int(counts.shape[0] * (counts.shape[1] - 1))


def aic(counts: FloatArray, total: float) -> float:
    """Akaike's criterion on the log-likelihood scale."""
    return log_likelihood(counts, total) - free_parameters(counts)


def bic(counts: FloatArray, total: float) -> float:
    """Bayesian information criterion, equal to minus the description length (MDL)."""
    return log_likelihood(counts, total) - 0.5 * math.log(total) * free_parameters(counts)


def bdeu(counts: FloatArray, total: float, equivalent_sample_size: float = 1.0) -> float:
    """BDeu score; ``total`` is not used."""
    return _marginal_likelihood(counts, equivalent_sample_size / counts.size)[0]


def k2(counts: FloatArray, total: float) -> float:
    """K2 score; ``total`` is not used."""
    return _marginal_likelihood(counts, 1.0)[0]


def _marginal_likelihood(counts: FloatArray, prior: float) -> tuple[float, float]:
    """The Dirichlet score with a(h, j) = ``prior``, and the size of its terms, all added up."""
    r = counts.shape[1]
    counts = counts[counts.any(axis=1)]  # a parent state without rows scores exactly zero
    rows, row_prior = counts.sum(axis=1, keepdims=True), prior * r
    heavy = (rows > row_prior).ravel()
    few, of_few = counts[~heavy], rows[~heavy]  # where the prior outweighs the counts
    parts = [
        *_likely(counts[heavy] + prior, row_prior),
        (prior + few) * np.log1p((r * few - of_few) / (r * prior + of_few)),
        -of_few * math.log(r),
        -0.5 * _log_ratio(counts, prior),
        0.5 * _log_ratio(rows, row_prior),
        *_remainders(counts, prior),
        *(-part for part in _remainders(rows, row_prior)),
    ]
    value, size = sum(part.sum() for part in parts), sum(np.abs(part).sum() for part in parts)
    return float(value), float(size)


def _likely(x: FloatArray, row_prior: float) -> Iterator[FloatArray]:
    """The terms of E where counts outweigh the prior."""
    if len(x) == 0:
        return
    total = x.sum(axis=1, keepdims=True)
    largest = np.zeros(x.shape, dtype=bool)
    largest[np.arange(len(x)), x.argmax(axis=1)] = True
    others = np.where(largest, 0.0, x).sum(axis=1, keepdims=True)
    yield x * np.where(largest, np.log1p(-others / total), np.log(x / total))
    yield np.full(len(x), row_prior * math.log(x.shape[1]))


def _log_ratio(counts: FloatArray, prior: float) -> FloatArray:
    """log((a + n) / a)."""
    light = counts <= prior
    ratio: FloatArray = np.where(
        light,
        np.log1p(np.where(light, counts, 0.0) / prior),
        np.log(counts + prior) - math.log(prior),
    )
    return ratio


def _remainders(counts: FloatArray, prior: float) -> Iterator[FloatArray]:
    """d(a + n) and -d(a), for counts that are not zero: the others have a difference of zero."""
    counts = counts[counts > 0]
    yield _stirling_remainder(counts + prior)
    yield np.full(len(counts), -_stirling_remainder(np.array([prior]))[0])


SMALL = 16.0
"""Below this Stirling's series has too few digits, and log-gamma itself loses none."""

HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
"""The constant of Stirling's formula."""


def _stirling_remainder(x: FloatArray) -> FloatArray:
    """d(x) = lgamma(x) - ((x - 1/2) log x - x + log(2 pi) / 2); the series errs below 1e-17."""
    near, square = np.minimum(x, SMALL), np.maximum(x, SMALL) ** -2.0
    direct = gammaln(near) - (near - 0.5) * np.log(near) + near - HALF_LOG_TWO_PI
    series = 1 / 1260 - square * (1 / 1680 - square * (1 / 1188 - square * (691 / 360360)))
    series = (1 / 12 - square * (1 / 360 - square * series)) / np.maximum(x, SMALL)
    remainder: FloatArray = np.where(x < SMALL, direct, series)
    return remainder


@dataclass(frozen=True)
class DecomposableScore:
    """One line of the registry.

    ``certificate`` is the name under which the checker of certificates has the same formula;
    ``None`` says that it has none, and asking for a certificate is then refused.
    """

    function: LocalScore
    certificate: str | None


ScoreName = Literal["mdl", "bic", "aic", "loglik", "bdeu", "k2"]

SCORES: dict[str, DecomposableScore] = {
    "mdl": DecomposableScore(bic, certificate="mdl"),
    "bic": DecomposableScore(bic, certificate="mdl"),
    "aic": DecomposableScore(aic, certificate="aic"),
    "loglik": DecomposableScore(log_likelihood, certificate="loglik"),
    "bdeu": DecomposableScore(bdeu, certificate="bdeu"),
    "k2": DecomposableScore(k2, certificate="k2"),
}
"""Every score by name; whatever lists scores elsewhere derives its list from here."""


def get_local_score(name: str, equivalent_sample_size: float = 1.0) -> LocalScore:
    """The score of that name; ``equivalent_sample_size`` matters for BDeu only."""
    if name not in SCORES:
        raise InputError(f"score must be one of {sorted(SCORES)}, got {name!r}")
    if name == "bdeu":
        if not 0 < equivalent_sample_size < float("inf"):
            raise InputError(
                f"equivalent_sample_size must be positive, got {equivalent_sample_size}"
            )
        return partial(bdeu, equivalent_sample_size=equivalent_sample_size)
    return SCORES[name].function


def candidate_score(
    data: EncodedData, candidates: CandidateSets, k: int, score: LocalScore
) -> float:
    """Score of one candidate."""
    return score(_table(data, candidates, k), data.total_weight)


def _table(data: EncodedData, candidates: CandidateSets, k: int) -> FloatArray:
    """Counts of a candidate, (parent states, child states)."""
    counts = contingency(data, (*candidates.parents[k], int(candidates.child[k])))
    return counts.reshape(-1, counts.shape[-1])


# ---------------------------------------------------------------------- rounding

ROUNDINGS = 64.0
"""Roundings of a term: its factors, its logarithm, and a pairwise sum of any length."""

DIRECT = 100.0
"""Largest number inside d(x) below :data:`SMALL`: a term of its own in the size of a score."""


def scores_with_errors(
    data: EncodedData, candidates: CandidateSets, score: LocalScore
) -> tuple[FloatArray, FloatArray]:
    """Score of every candidate, and how far rounding can have moved it (both (K,)).

    The formula of a user is taken at its word: its error is zero.
    """
    roundings = ROUNDINGS + (0.0 if counts_are_exact(data) else 2.0 * data.n_samples)
    values, errors = np.zeros((2, candidates.n_candidates))
    for k in range(candidates.n_candidates):
        values[k], size = _with_size(score, _table(data, candidates, k), data.total_weight)
        errors[k] = EPS * roundings * size
    return values, errors


def counts_are_exact(data: EncodedData) -> bool:
    """Whether sums of weights have no rounding: all are multiples of a power of two that goes less
    than 2^53 times into the total.
    """
    fraction, exponent = np.frexp(data.weights)
    digits = np.ldexp(fraction, 53).astype(np.int64)  # of weights times 2^(53 - exponent)
    lowest = exponent + np.frexp((digits & -digits).astype(np.float64))[1] - 54
    return math.frexp(data.total_weight)[1] - int(lowest.min()) <= 53


def is_dirichlet(score: LocalScore) -> bool:
    """Whether a score is a log marginal likelihood."""
    return (score.func if isinstance(score, partial) else score) in (bdeu, k2)


def _with_size(score: LocalScore, counts: FloatArray, total: float) -> tuple[float, float]:
    """A score and the size of its terms, all added up; zero for formulas that are not ours."""
    function, options = score, {}
    if isinstance(score, partial):
        function, options = score.func, score.keywords
    if function not in (entry.function for entry in SCORES.values()):
        return score(counts, total), 0.0
    if is_dirichlet(score):
        size = options.get("equivalent_sample_size", 1.0) / counts.size if function is bdeu else 1.0
        value, terms = _marginal_likelihood(counts, size)
        cells = np.count_nonzero(counts) + np.count_nonzero(counts.sum(axis=1))
        return value, terms + 2.0 * DIRECT * cells
    value = score(counts, total)
    return value, abs(value)  # likelihood and penalty are both negative, term by term
