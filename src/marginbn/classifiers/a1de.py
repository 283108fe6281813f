"""Averaged one-dependence estimators (A1DE): the cheap generative rival without a search.

Every feature i in turn is a parent of all others, beside the class (Webb, Boughton, Wang 2005):

    P_i(c, x) = P(c) P(x_i | c) prod_{j != i} P(x_j | c, x_i)
    P(c, x)   = mean over the known features i of P_i(c, x)

A row that lacks feature i is not judged by P_i, and a child that is missing drops out of its
product: it is a leaf, so this is exact. Each P_i is a Bayesian network. Features with a single
state are parents of nobody: P_i would be naive Bayes once more for each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from marginbn.classifiers.base import BaseBNClassifier, fixed_structure_result
from marginbn.data.encode import EncodedTraining
from marginbn.data.preparation import MAX_STATES
from marginbn.network.network import BayesianNetwork
from marginbn.problem.encoded import EncodedData
from marginbn.problem.structure import Structure
from marginbn.solvers.result import SolveResult


def super_parents(arities: Sequence[int]) -> list[int]:
    """Features that are the parent of all others in turn; the class is variable 0."""
    return [i for i, arity in enumerate(arities) if i > 0 and arity > 1]


def one_dependence(n_variables: int, super_parent: int | None) -> Structure:
    """Naive Bayes with arcs from one feature to all others."""
    parents: list[tuple[int, ...]] = [(), *[(0,)] * (n_variables - 1)]
    if super_parent is not None:
        for child in range(1, n_variables):
            if child != super_parent:
                parents[child] = (0, super_parent)
    return Structure(tuple(parents))


@dataclass(frozen=True, eq=False)
class OneDependenceAverage:
    """The mean of the joint distributions, row by row over the features that are known.

    ``networks[k]`` is that of the k-th of :func:`super_parents`; without any there is one network,
    naive Bayes.
    """

    networks: tuple[BayesianNetwork, ...]

    @classmethod
    def fit(cls, data: EncodedData, smoothing: float) -> Self:
        """Estimate the tables of all members."""
        parents: list[int | None] = [*super_parents(data.arities.tolist())]
        structures = [one_dependence(data.n_variables, i) for i in parents or [None]]
        return cls(tuple(BayesianNetwork.fit(data, s, smoothing) for s in structures))

    def log_joint_per_class(self, codes: NDArray[np.integer]) -> NDArray[np.float64]:
        """log P(c, known features), float64 (n, n_classes); a row that knows none has log P(c)."""
        first = self.networks[0]
        total = np.full((len(codes), first.n_classes), -np.inf)
        judges = np.zeros(len(codes))
        for network, i in zip(self.networks, super_parents(first.arities), strict=False):
            known = codes[:, i] >= 0
            part = network.log_joint_per_class(codes[known])
            total[known] = np.logaddexp(total[known], part)
            judges += known
        total[judges == 0] = first.log_tables[0]
        return total - np.log(np.maximum(judges, 1.0))[:, np.newaxis]


class A1DEClassifier(BaseBNClassifier):
    """Averaged one-dependence estimators: a strong generative baseline without a search.

    Predictions average one network per feature, in which that feature is a parent of all others.
    Nothing is chosen, so there is no single network behind a prediction: ``networks_`` are for
    predicting, ``network_`` (the member of highest likelihood) is for reading, and ``explain``
    explains what *it* says. Time and memory grow with the square of the number of features.

    Parameters
    ----------
    smoothing : float or "auto", default=1.0
        Added to every count; "auto" chooses it by validated log loss.
    missing, unseen, column_kinds, identifiers, max_states, min_count, class_weight, cost
        As in :class:`NaiveBayesClassifier`. At prediction a missing feature is parent of nobody.

    Attributes
    ----------
    networks_ : tuple of BayesianNetwork
        One per feature with more than one state, in the order of the features.

    Examples
    --------
    >>> from marginbn import A1DEClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = A1DEClassifier().fit(X, y)
    >>> len(clf.networks_), clf.predict([[5.1, 3.5, None, 0.2]]).tolist()
    (4, [0])
    """

    networks_: tuple[BayesianNetwork, ...]

    def __init__(
        self,
        *,
        smoothing: Any = 1.0,
        missing: str = "auto",
        unseen: str = "missing",
        column_kinds: Any = "auto",
        identifiers: str = "ignore",
        max_states: int | None = MAX_STATES,
        min_count: int = 1,
        class_weight: Any = None,
        cost: Any = None,
    ) -> None:  # no parameters= and bins=: an average of counted networks is what it is
        self._store(locals())

    def _learn_structure(self, data: EncodedData) -> SolveResult:
        """The member to read: no other explains the data better."""
        parents: list[int | None] = [*super_parents(data.arities.tolist())]
        members = [one_dependence(data.n_variables, i).parents for i in parents or [None]]
        results = [fixed_structure_result(data, member, "a1de") for member in members]
        return max(results, key=lambda result: result.objective)

    def _estimate(
        self, data: EncodedData, structure: Structure, smoothing: float
    ) -> OneDependenceAverage:
        return OneDependenceAverage.fit(data, smoothing)

    def _finish(self, training: EncodedTraining, result: SolveResult) -> Self:
        self.networks_ = OneDependenceAverage.fit(training.data, self.smoothing_).networks
        return super()._finish(training, result)

    def _log_joint_of_codes(self, codes: NDArray[np.int32]) -> NDArray[np.float64]:
        return OneDependenceAverage(self.networks_).log_joint_per_class(codes)
