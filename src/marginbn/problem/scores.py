"""The list of decomposable scores and their evaluation over all candidates."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from marginbn.data.counts import contingency
from marginbn.data.encode import EncodedData
from marginbn.exceptions import InputError
from marginbn.problem.candidates import CandidateSets
from marginbn.problem.dirichlet import bdeu, k2
from marginbn.problem.loglik import aic, bic, log_likelihood

LocalScore = Callable[[NDArray[np.float64], float], float]
"""(counts of shape (parent states, child states), total weight) -> score in nats"""

LOCAL_SCORES: dict[str, LocalScore] = {
    "mdl": bic,
    "bic": bic,
    "aic": aic,
    "loglik": log_likelihood,
    "bdeu": bdeu,
    "k2": k2,
}


def get_local_score(name: str, equivalent_sample_size: float = 1.0) -> LocalScore:
    """The score of that name; ``equivalent_sample_size`` matters for BDeu only."""
    if name not in LOCAL_SCORES:
        raise InputError(f"score must be one of {sorted(LOCAL_SCORES)}, got {name!r}")
    if name == "bdeu":
        if not 0 < equivalent_sample_size < float("inf"):
            raise InputError(
                f"equivalent_sample_size must be positive, got {equivalent_sample_size}"
            )
        return partial(bdeu, equivalent_sample_size=equivalent_sample_size)
    return LOCAL_SCORES[name]


def local_scores(
    data: EncodedData, candidates: CandidateSets, score: LocalScore
) -> NDArray[np.float64]:
    """Score of every candidate, float64 (K,)."""
    return np.array(
        [candidate_score(data, candidates, k, score) for k in range(candidates.n_candidates)]
    )


def candidate_score(
    data: EncodedData, candidates: CandidateSets, k: int, score: LocalScore
) -> float:
    """Score of one candidate."""
    counts = contingency(data, (*candidates.parents[k], int(candidates.child[k])))
    return score(counts.reshape(-1, counts.shape[-1]), data.total_weight)
