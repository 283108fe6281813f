"""Decomposable scores: the formulas, the one registry, and their values over all candidates.

With counts n(h, j), n(h) their row sums, q parent states, r child states and M rows:

    log likelihood   L = sum_{h,j} n(h, j) log(n(h, j) / n(h))          (eq. 2, unsmoothed, nats)
    AIC              L - q (r - 1)
    BIC = MDL        L - q (r - 1) (log M) / 2

Bayesian-Dirichlet scores are log marginal likelihoods. With prior counts a(h, j), a(h) their sums:

    sum_h [ lgamma(a(h)) - lgamma(a(h) + n(h)) + sum_j lgamma(a(h, j) + n(h, j)) - lgamma(a(h, j)) ]

BDeu has a(h, j) = s / (q r) for an equivalent sample size s; K2 has a(h, j) = 1.

These are differences of large numbers; ``scoring/kernels/counting.py`` computes them without
cancellation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from scipy.special import gammaln

from marginbn.exceptions import InputError
from marginbn.problem.array_types import FloatArray
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
    return _marginal_likelihood(counts, equivalent_sample_size / counts.size)


def k2(counts: FloatArray, total: float) -> float:
    """K2 score; ``total`` is not used."""
    return _marginal_likelihood(counts, 1.0)


def _marginal_likelihood(counts: FloatArray, prior: float) -> float:
    """The Dirichlet score with a(h, j) = ``prior``."""
    rows, whole = counts.sum(axis=1), prior * counts.shape[1]
    of_rows = gammaln(whole) - gammaln(whole + rows)
    return float(of_rows.sum() + (gammaln(prior + counts) - gammaln(prior)).sum())


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
    counts = contingency(data, (*candidates.parents[k], int(candidates.child[k])))
    return score(counts.reshape(-1, counts.shape[-1]), data.total_weight)


def is_dirichlet(score: LocalScore) -> bool:
    """Whether a score is a log marginal likelihood."""
    return (score.func if isinstance(score, partial) else score) in (bdeu, k2)
