"""Local scores of a (child, parent set) pair: siblings that can replace one another."""

from marginbn.scores.decomposable import LOCAL_SCORES, LocalScore, get_local_score, local_scores
from marginbn.scores.margin import MarginKind, MarginRows

__all__ = [
    "LOCAL_SCORES",
    "LocalScore",
    "MarginKind",
    "MarginRows",
    "get_local_score",
    "local_scores",
]
