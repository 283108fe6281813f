"""Generative baseline: the structure that maximises a decomposable score, exactly."""

from __future__ import annotations

from typing import Any

from marginbn.classifiers.search import SearchingBNClassifier
from marginbn.data.encode import EncodedData
from marginbn.problem.problem import StructureProblem, drop_dominated, linear_problem
from marginbn.problem.scores import get_local_score
from marginbn.solvers.result import SolveResult


class GenerativeBNClassifier(SearchingBNClassifier):
    """Bayesian network of maximal generative score, used as a classifier.

    Parameters
    ----------
    score : {"mdl", "bic", "aic", "loglik", "bdeu", "k2"}, default="mdl"
        The score to maximise. (``clf.score(X, y)`` is scikit-learn's accuracy all the same.)
    max_parents : int, default=2
        Parents per variable, the class counted.
    class_restricted : bool, default=True
        Features have no parents or the class among them; ``False`` learns a general network.
    equivalent_sample_size : float, default=1.0
        Strength of the prior of ``score="bdeu"``.
    smoothing : float, default=1.0
        Added to every count for the parameters (not for the score).
    solver, time_limit, gap_tolerance, random_state, n_jobs, verbose, callback, memory_limit, \
checkpoint, certificate
        As in :class:`MaxMarginBNClassifier`.
    required_arcs, forbidden_arcs : list of (parent, child), optional
        Arcs every (no) structure must have, by name; the class has the name of ``y`` or "class".
    missing, unseen, column_kinds
        As in :class:`NaiveBayesClassifier`.

    Examples
    --------
    >>> from marginbn import GenerativeBNClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> GenerativeBNClassifier(score="mdl", max_parents=1).fit(X, y).status_
    'optimal'
    """

    def __init__(
        self,
        *,
        score: str = "mdl",
        max_parents: int = 2,
        class_restricted: bool = True,
        equivalent_sample_size: float = 1.0,
        smoothing: float = 1.0,
        solver: str = "auto",
        time_limit: float | None = 60.0,
        gap_tolerance: float = 1e-6,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        required_arcs: Any = None,
        forbidden_arcs: Any = None,
        missing: str = "drop",
        unseen: str = "missing",
        column_kinds: Any = "auto",
        callback: Any = None,
        memory_limit: Any = None,
        checkpoint: Any = None,
        certificate: Any = None,
    ) -> None:
        self._store(locals())

    # The parameter "score" has the name of scikit-learn's accuracy method. Reading the attribute
    # gives the method, setting it stores the parameter, and get_params gives the parameter.
    @property
    def score(self) -> Any:
        """Accuracy, as in every scikit-learn classifier: ``score(X, y, sample_weight=None)``."""
        return super().score

    @score.setter
    def score(self, name: str) -> None:
        self.__dict__["score"] = name

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name."""
        return {**super().get_params(deep), "score": self.__dict__["score"]}

    def _problem(self, data: EncodedData) -> StructureProblem:
        local_score = get_local_score(self.__dict__["score"], self.equivalent_sample_size)
        candidates = self._candidates(data, class_restricted=self.class_restricted)
        return linear_problem(data, candidates, local_score)

    def _learn_structure(self, data: EncodedData) -> SolveResult:
        return self._search(drop_dominated(self._problem(data)))
