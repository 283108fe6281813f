"""Structures that need no search: naive Bayes, and naive Bayes with a tree (TAN).

In naive Bayes every feature has the class as its only parent. In tree-augmented naive Bayes the
features form a tree besides, the one of Chow and Liu given the class: among all such structures the
log likelihood is largest for a maximum spanning tree under the conditional mutual information

    I(i; j | C) = sum n(c, i, j)/M log( n(c, i, j) n(c) / (n(c, i) n(c, j)) )

(Friedman, Geiger and Goldszmidt 1997). The tree is rooted at the first feature.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from marginbn.classifiers.base import BaseBNClassifier, fixed_structure_result
from marginbn.data.encode import EncodedData, contingency
from marginbn.problem.arborescence import maximum_arborescence
from marginbn.solvers.result import SolveResult


class NaiveBayesClassifier(BaseBNClassifier):
    """Naive Bayes with Laplace-smoothed parameters.

    Parameters
    ----------
    smoothing : float or "auto", default=1.0
        Added to every count; "auto" chooses it by validated log loss (``smoothing_``).
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

    def _learn_structure(self, data: EncodedData) -> SolveResult:
        parents = [() if i == 0 else (0,) for i in range(data.n_variables)]
        return fixed_structure_result(data, parents, "naive_bayes")


class TANClassifier(BaseBNClassifier):
    """Tree-augmented naive Bayes with Laplace-smoothed parameters.

    Parameters are those of :class:`NaiveBayesClassifier`. Features with a single state are left
    out of the tree: they carry no information.

    Examples
    --------
    >>> from marginbn import TANClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> TANClassifier().fit(X, y).status_
    'optimal'
    """

    def _learn_structure(self, data: EncodedData) -> SolveResult:
        start = time.perf_counter()
        parents: list[tuple[int, ...]] = [() for _ in range(data.n_variables)]
        features = [i for i in range(1, data.n_variables) if i not in data.constant]
        if features:
            tails, _ = maximum_arborescence(_tree_weights(data, features))
            for i, tail in zip(features, tails, strict=True):
                parents[i] = (0,) if tail == len(features) else (0, features[int(tail)])
        seconds = time.perf_counter() - start
        return fixed_structure_result(data, parents, "chow_liu", seconds)


def _tree_weights(data: EncodedData, features: list[int]) -> NDArray[np.float64]:
    """Arborescence weights (n, n + 1): mutual information, and a root arc for the first only."""
    n = len(features)
    weights = np.full((n, n + 1), -np.inf)
    for a in range(n):
        for b in range(a + 1, n):
            information = conditional_mutual_information(data, features[a], features[b])
            weights[a, b] = weights[b, a] = information
    weights[0, n] = 0.0
    return weights


def conditional_mutual_information(data: EncodedData, i: int, j: int) -> float:
    """I(i; j | C) in nats, from unsmoothed counts."""
    joint = contingency(data, (0, i, j))
    total = xlogy(joint, joint).sum() + xlogy(joint.sum((1, 2)), joint.sum((1, 2))).sum()
    total -= xlogy(joint.sum(2), joint.sum(2)).sum() + xlogy(joint.sum(1), joint.sum(1)).sum()
    return float(total) / data.total_weight
