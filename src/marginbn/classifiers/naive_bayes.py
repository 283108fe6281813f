"""Naive Bayes: every feature has the class as its only parent."""

from __future__ import annotations

from typing import Any

from marginbn.classifiers.base import BaseBNClassifier, fixed_structure_result
from marginbn.data.encode import EncodedData
from marginbn.solvers.result import SolveResult


class NaiveBayesClassifier(BaseBNClassifier):
    """Naive Bayes with Laplace-smoothed parameters.

    Parameters
    ----------
    smoothing : float, default=1.0
        Added to every count.
    missing : {"drop", "state", "error"}, default="drop"
        Training rows with missing values are left out, missing becomes a state, or an error.
    unseen : {"missing", "error"}, default="missing"
        What a category never seen in training means at prediction.
    column_kinds : "auto", "numeric", "categorical" or dict, default="auto"
        Kind of all columns, or of some by name or index.

    Examples
    --------
    >>> from marginbn import NaiveBayesClassifier
    >>> X = [["red", "s"], ["red", "m"], ["blue", "m"], ["blue", "l"]]
    >>> NaiveBayesClassifier().fit(X, ["a", "a", "b", "b"]).predict([["red", None]])
    array(['a'], dtype='<U1')
    """

    def __init__(
        self,
        *,
        smoothing: float = 1.0,
        missing: str = "drop",
        unseen: str = "missing",
        column_kinds: Any = "auto",
    ) -> None:
        self.smoothing = smoothing
        self.missing = missing
        self.unseen = unseen
        self.column_kinds = column_kinds

    def _learn_structure(self, data: EncodedData) -> SolveResult:
        parents = [() if i == 0 else (0,) for i in range(data.n_variables)]
        return fixed_structure_result(data, parents, "naive_bayes")
