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
from scipy.special import xlogy

from marginbn.classifiers.base import BaseBNClassifier, Fitted
from marginbn.data.training import TrainingRows
from marginbn.problem.array_types import FloatArray
from marginbn.problem.encoded import EncodedData, contingency
from marginbn.problem.scores import log_likelihood
from marginbn.problem.structure import Structure
from marginbn.solvers.counts import blocks_of, count_sets
from marginbn.solvers.result import SolveResult, Status, TracePoint


class NaiveBayesClassifier(BaseBNClassifier):
    """Naive Bayes with Laplace-smoothed parameters.

    Parameters
    ----------
    parameters : {"counted", "trained"}, default="counted"
        Tables that predict: counted, or trained for the class (see :class:`BNClassifier`).
    smoothing : float, default=1.0
        Added to every count (Laplace).
    missing : {"auto", "drop", "state", "error"}, default="auto"
        Training rows with missing values are left out ("drop", as in the paper), missing becomes
        a state, or an error. "auto" drops rows or makes a state, column by column, so that few rows
        and no class are lost.
    column_kinds : "auto", a kind or dict, default="auto"
        Kind of all columns, or of some by name or index: "numeric", "categorical", "amount"
        ($1,234.50, 80 kg) or "decimal-comma" (1.234,50). Dates ("date", "day-first", "month-first")
        become year, month and weekday. Columns that name a row (nearly every row has its own
        value) are left out unless their kind is given.
    class_weight : None, "balanced" or dict, default=None
        Weight of the rows of each class; "balanced" gives all classes the same total.

    Examples
    --------
    >>> from marginbn import NaiveBayesClassifier
    >>> X = [["red", "s"], ["red", "m"], ["blue", "m"], ["blue", "l"]]
    >>> NaiveBayesClassifier().fit(X, ["a", "a", "b", "b"]).predict([["red", None]])
    array(['a'], dtype='<U1')
    """

    def _learn(self, rows: TrainingRows) -> Fitted:
        training = self._encode(rows)
        return self._count(rows, training, self._learn_again(training.data))

    def _learn_again(self, data: EncodedData) -> Structure:
        return Structure(tuple(() if i == 0 else (0,) for i in range(data.n_variables)))


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

    def _learn(self, rows: TrainingRows) -> Fitted:
        training = self._encode(rows)
        return self._count(rows, training, *_best_tree(training.data))

    def _learn_again(self, data: EncodedData) -> Structure:
        return augmented_tree(data)


def _best_tree(data: EncodedData) -> tuple[Structure, SolveResult]:
    """The tree of highest likelihood and what the exact algorithm says about it."""
    start = time.perf_counter()
    structure = augmented_tree(data)
    seconds = time.perf_counter() - start
    objective = 0.0
    for child, parents in enumerate(structure.parents):
        counts = contingency(data, (*parents, child))
        objective += log_likelihood(counts.reshape(-1, counts.shape[-1]), data.total_weight)
    result = SolveResult(
        structure=structure,
        selection=np.zeros(data.n_variables, dtype=np.int64),
        objective=objective,
        bound=objective,
        status=Status.OPTIMAL,
        trace=(TracePoint(seconds, objective, objective),),
        seconds=seconds,
        solver="chow_liu",
    )
    return structure, result


def augmented_tree(data: EncodedData) -> Structure:
    """The structure of TAN; features with a single state carry no information and get no arc."""
    parents: list[tuple[int, ...]] = [() for _ in range(data.n_variables)]
    features = [i for i in range(1, data.n_variables) if i not in data.constant]
    for i, parent in zip(features, _spanning_tree(_information(data, features)), strict=True):
        parents[i] = (0,) if parent < 0 else (0, features[parent])
    return Structure(tuple(parents))


MOST_CELLS = 1 << 22
"""Cells of counts that are held at a time."""


def _information(data: EncodedData, features: list[int]) -> FloatArray:
    """Conditional mutual information of all pairs of features in nats, (n, n), from unsmoothed
    counts.
    """
    n, k = len(features), data.n_classes
    rows, columns = np.triu_indices(n, 1)
    first, second = np.array(features, dtype=np.int64)[np.array([rows, columns])]
    states = data.arities[first] * data.arities[second]
    starts = np.cumsum(states * k) - states * k
    sets = np.stack([first, second, data.arities[second], starts, states], axis=1)
    codes, weights, joint = data.by_column, np.array(data.weights), np.zeros(len(sets))
    for lo, hi in blocks_of(sets, MOST_CELLS):
        counts = count_sets(codes, codes[0], sets[lo:hi], weights, data.n_classes)
        joint[lo:hi] = np.add.reduceat(xlogy(counts, counts), starts[lo:hi] - starts[lo])
    alone = np.zeros(n)
    for i, feature in enumerate(features):
        counts = contingency(data, (0, feature))
        alone[i] = xlogy(counts, counts).sum()
    classes = contingency(data, (0,))
    found = np.zeros((n, n))
    found[rows, columns] = joint - alone[rows] - alone[columns] + xlogy(classes, classes).sum()
    return np.asarray((found + found.T) / data.total_weight)


def _spanning_tree(weights: FloatArray) -> list[int]:
    """Parents in a maximum spanning tree of a symmetric matrix, by Prim; -1 for the root, node 0.

    The tree grows from the root by the heaviest edge that leaves it; equal ones are decided for the
    smallest node, then for the parent that was in the tree first.
    """
    parents = [-1] * len(weights)
    if not parents:
        return parents
    best, tails = weights[0].copy(), np.zeros(len(weights), dtype=np.int64)
    best[0] = -np.inf
    outside = np.arange(len(weights)) > 0
    for _ in range(len(weights) - 1):
        node = int(best.argmax())
        parents[node] = int(tails[node])
        outside[node], best[node] = False, -np.inf
        nearer = outside & (weights[node] > best)
        best[nearer], tails[nearer] = weights[node][nearer], node
    return parents
