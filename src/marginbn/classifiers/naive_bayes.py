"""Structures that need no search: naive Bayes, and naive Bayes with a tree (TAN).

In naive Bayes every feature has the class as its only parent. In tree-augmented naive Bayes the
features form a tree besides (``problem/augmented_tree.py``).
"""

from __future__ import annotations

import time

from marginbn.classifiers.base import BaseBNClassifier, fixed_structure_result
from marginbn.problem.augmented_tree import augmented_tree
from marginbn.problem.encoded import EncodedData
from marginbn.solvers.result import SolveResult


class NaiveBayesClassifier(BaseBNClassifier):
    """Naive Bayes with Laplace-smoothed parameters.

    Parameters
    ----------
    smoothing : float, default=1.0
        Added to every count (Laplace).
    missing : {"auto", "drop", "state", "error"}, default="auto"
        Training rows with missing values are left out ("drop", as in the paper), missing becomes
        a state, or an error; "auto" decides column by column between the first two and loses few
        rows and no class.
    unseen : {"missing", "error"}, default="missing"
        What a category never seen in training means at prediction.
    column_kinds : "auto", a kind or dict, default="auto"
        Kind of all columns, or of some by name or index: "numeric", "categorical", "date",
        "day-first" or "month-first" (which become year, month and weekday), "amount" ($1,234.50,
        80 kg) or "decimal-comma" (1.234,50).
    identifiers : {"ignore", "use", "error"}, default="ignore"
        Columns that name a row (nearly every row has its own value) are left out, used, or refused.
    max_states : int or None, default=50
        States of a categorical column at most: the rarest are merged into one state "other".
    class_weight : None, "balanced" or dict, default=None
        Weight of the rows of each class; "balanced" gives all classes the same total.

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
        parents = augmented_tree(data).parents
        seconds = time.perf_counter() - start
        return fixed_structure_result(data, parents, "chow_liu", seconds)
