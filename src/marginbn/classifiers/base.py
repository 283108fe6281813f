"""What all classifiers share: validation, discretisation, encoding, parameters, prediction.

A subclass answers one question, :meth:`BaseBNClassifier._learn_structure`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from marginbn.classifiers.training import (
    EncodedTraining,
    encode_training,
    read_features,
    read_training_rows,
)
from marginbn.data.counts import contingency
from marginbn.data.encode import EncodedData
from marginbn.exceptions import InputError
from marginbn.network.explain import Explanations, as_rows, explain_codes
from marginbn.network.network import BayesianNetwork
from marginbn.problem.candidates import Arc
from marginbn.problem.scores import log_likelihood
from marginbn.problem.structure import Structure
from marginbn.solvers.result import SolveResult, Status, TracePoint


class BaseBNClassifier(ClassifierMixin, BaseEstimator):
    """Bayesian-network classifier with smoothed maximum-likelihood parameters.

    Attributes
    ----------
    classes_ : ndarray
        Class labels.
    structure_ : Structure
        Parents of every variable; variable 0 is the class, variable i + 1 is feature i.
    network_ : BayesianNetwork
        The structure with its parameters: posteriors, sampling, most probable explanation.
    objective_, bound_, gap_ : float
        Score of the structure, proven upper bound on the score of any allowed structure, and
        the relative gap between the two.
    status_ : str
        How the search ended; ``"optimal"`` means proven.
    trace_ : tuple of TracePoint
        (seconds, objective, bound) over time.
    result_ : SolveResult
        All of the above as the solver returned it.
    feature_names_in_, n_features_in_
        As everywhere in scikit-learn.
    n_samples_ : int
        Training rows used.
    n_dropped_ : int
        Training rows left out because of missing values.
    """

    smoothing: float
    missing: Any
    unseen: Any
    column_kinds: Any

    @abstractmethod
    def _learn_structure(self, data: EncodedData) -> SolveResult:
        """Find the structure; the only thing a subclass must do."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn codings, structure and parameters.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Numbers are discretised (Fayyad-Irani), strings and booleans are categories.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), optional
            Weights; an integer weight counts as that many copies of the row.

        Returns
        -------
        self

        Examples
        --------
        >>> from marginbn import NaiveBayesClassifier
        >>> X, y = [["red", 1.5], ["red", 2.0], ["blue", 7.5], ["blue", 8.0]], ["a", "a", "b", "b"]
        >>> NaiveBayesClassifier().fit(X, y, sample_weight=[1, 1, 2, 2]).network_.names
        ('class', 'x0', 'x1')
        """
        self._check_parameters()
        rows = read_training_rows(
            self, X, y, sample_weight, kinds=self.column_kinds, missing=self.missing
        )
        self.n_samples_, self.n_dropped_ = rows.n_rows, rows.n_dropped
        training = encode_training(rows, self.missing)
        return self._finish(training, self._learn_structure(training.data))

    def _finish(self, training: EncodedTraining, result: SolveResult) -> Self:
        """Estimate parameters and set the fitted attributes."""
        self.classes_ = training.classes
        self.coding_ = training.coding
        self.result_ = result
        self.structure_ = result.structure
        self.objective_, self.bound_, self.gap_ = result.objective, result.bound, result.gap
        self.status_ = str(result.status)
        self.trace_ = result.trace
        self.network_ = BayesianNetwork.fit(training.data, result.structure, self.smoothing)
        return self

    def _check_parameters(self) -> None:
        """Refuse parameters that no data could make sense of."""
        check_positive("smoothing", self.smoothing)
        if self.unseen not in ("missing", "error"):
            raise InputError(f"unseen must be 'missing' or 'error', got {self.unseen!r}")

    def _log_joint(self, X: Any) -> NDArray[np.float64]:
        """log P(c, known features) for every row and class; unknown features are summed out."""
        check_is_fitted(self)
        table = read_features(self, X, kinds=self._fitted_kinds(), reset=False)
        codes = self.coding_.encode(table, self.unseen)
        with_class = np.column_stack([np.zeros(len(codes), dtype=np.int32), codes])
        return self.network_.log_joint_per_class(with_class)

    def _fitted_kinds(self) -> dict[int, str]:
        return {i: c.kind for i, c in enumerate(self.coding_.columns)}

    def predict(self, X: Any) -> NDArray[Any]:
        """Most probable class of every row; ties go to the first class.

        Examples
        --------
        >>> from marginbn import NaiveBayesClassifier
        >>> X, y = [["red"], ["red"], ["blue"]], ["a", "a", "b"]
        >>> NaiveBayesClassifier().fit(X, y).predict([["blue"], [None]]).tolist()
        ['b', 'a']
        """
        best = self._log_joint(X).argmax(axis=1)  # first: it tells an unfitted estimator
        labels: NDArray[Any] = self.classes_[best]
        return labels

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Log posterior of every class, shape (n_samples, n_classes).

        Examples
        --------
        >>> from marginbn import NaiveBayesClassifier
        >>> X, y = [["red"], ["red"], ["blue"]], ["a", "a", "b"]
        >>> NaiveBayesClassifier().fit(X, y).predict_log_proba([[None]]).round(3).tolist()
        [[-0.511, -0.916]]
        """
        joint = self._log_joint(X)
        normalised: NDArray[np.float64] = joint - logsumexp(joint, axis=1, keepdims=True)
        return normalised

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Posterior of every class, shape (n_samples, n_classes).

        Examples
        --------
        >>> from marginbn import NaiveBayesClassifier
        >>> X, y = [["red"], ["red"], ["blue"]], ["a", "a", "b"]
        >>> NaiveBayesClassifier().fit(X, y).predict_proba([[None]]).round(3).tolist()
        [[0.6, 0.4]]
        """
        return np.exp(self.predict_log_proba(X))

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Log odds of the second class if there are two classes, else log posteriors.

        Examples
        --------
        >>> from marginbn import NaiveBayesClassifier
        >>> X, y = [["red"], ["red"], ["blue"]], ["a", "a", "b"]
        >>> NaiveBayesClassifier().fit(X, y).decision_function([[None]]).round(3).tolist()
        [-0.405]
        """
        log_proba = self.predict_log_proba(X)
        if len(self.classes_) == 2:
            odds: NDArray[np.float64] = log_proba[:, 1] - log_proba[:, 0]
            return odds
        return log_proba

    def explain(self, X: Any, y: Any = None) -> Explanations:
        """Why each row is predicted as it is: its log margin as a sum over the variables.

        The predicted class is compared with its nearest rival, or the labels ``y`` with theirs.
        One row on its own is welcome too; see :func:`marginbn.network.explain.explain`.

        Examples
        --------
        >>> from marginbn import NaiveBayesClassifier
        >>> X, y = [["red"], ["red"], ["blue"]], ["a", "a", "b"]
        >>> print(NaiveBayesClassifier().fit(X, y).explain(["red"])[0])
        row 0: a (p = 0.7714) against b, odds 3.38 : 1
          x0 = red    +0.8109
          class = a   +0.4055
          log margin  +1.2164
        """
        check_is_fitted(self)
        table = read_features(self, as_rows(X), kinds=self._fitted_kinds(), reset=False)
        codes = self.coding_.encode(table, self.unseen)
        return explain_codes(self.network_, self.classes_, codes, y)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def check_positive(name: str, value: Any) -> None:
    """Refuse anything but a positive finite number."""
    number = isinstance(value, (int, float, np.integer, np.floating))
    if not number or isinstance(value, bool) or not 0 < value < float("inf"):
        raise InputError(f"{name} must be a positive number, got {value!r}")


def check_count(name: str, value: Any, least: int = 0) -> None:
    """Refuse anything but an integer of at least ``least``."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise InputError(f"{name} must be an integer of at least {least}, got {value!r}")


def resolve_arcs(arcs: Any, data: EncodedData, name: str) -> tuple[Arc, ...]:
    """Arcs given as (parent, child) by name, or by index with the class at 0."""
    if arcs is None:
        return ()
    try:
        pairs = [(parent, child) for parent, child in arcs]
    except (TypeError, ValueError):
        raise InputError(f"{name} must be pairs (parent, child), got {arcs!r}") from None
    return tuple((_resolve(p, data, name), _resolve(c, data, name)) for p, c in pairs)


def _resolve(variable: Any, data: EncodedData, name: str) -> int:
    if isinstance(variable, str) and variable in data.names:
        return data.names.index(variable)
    if isinstance(variable, (int, np.integer)) and 0 <= variable < data.n_variables:
        return int(variable)
    raise InputError(
        f"{name} names the variable {variable!r}; known are {list(data.names)} "
        f"and the indices 0 (the class) to {data.n_variables - 1}"
    )


def fixed_structure_result(
    data: EncodedData, parents: Sequence[tuple[int, ...]], solver: str, seconds: float = 0.0
) -> SolveResult:
    """Result for a structure known to be optimal in its family: its maximised log likelihood."""
    structure = Structure(tuple(parents))
    objective = 0.0
    for child, parent_set in enumerate(structure.parents):
        counts = contingency(data, (*parent_set, child))
        objective += log_likelihood(counts.reshape(-1, counts.shape[-1]), data.total_weight)
    return SolveResult(
        structure=structure,
        selection=np.zeros(data.n_variables, dtype=np.int64),
        objective=objective,
        bound=objective,
        status=Status.OPTIMAL,
        trace=(TracePoint(seconds, objective, objective),),
        seconds=seconds,
        solver=solver,
    )
