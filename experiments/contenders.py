"""The methods of the accuracy comparison by name, each a function from a Task to a Fitted.

The rivals are in :mod:`experiments.modern`; here are the networks:

    bn              BNClassifier, the estimator to reach for: one readable network
    bn-average      BNClassifier(average=True): the weighted average of its candidates
    sm-laplace      exact soft margin with its defaults and the paper's smoothed parameters
    sm-conditional  the same structure search, conditional parameters, ordinal bins
    tan, nb, a1de   TAN, naive Bayes, averaged one-dependence estimators with Laplace smoothing

Networks get the table as it is and discretise it themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np

import marginbn
from experiments import modern
from experiments.forecast import Fitted
from experiments.outcome import require_finished
from experiments.protocol import Task
from marginbn.exceptions import InputError, MissingDependencyError


@dataclass(frozen=True)
class Network:
    """One of marginbn's estimators by name, with its options; called with a task it fits."""

    class_name: str
    options: dict[str, Any] = field(default_factory=dict)

    def make(self) -> Any:
        """A new estimator; AttributeError or TypeError if this version of marginbn lacks it."""
        return getattr(marginbn, self.class_name)(**self.options)

    def __call__(self, task: Task) -> Fitted:
        classifier = self.make()
        if "random_state" in classifier.get_params():
            classifier.set_params(random_state=task.settings.seed)
        classifier.fit(task.train, task.labels)
        require_finished(classifier)
        classes = np.asarray(classifier.classes_).astype(str)
        return Fitted(classes, classifier.predict_proba, _chosen(classifier))


@dataclass(frozen=True)
class Contender:
    """A method: its name in tables, a rough factor of its time, the package it is made of."""

    label: str
    fit: Callable[[Task], Fitted]
    cost: float
    needs: str = ""

    def require(self, name: str) -> None:
        """Say what is missing, before any work is done."""
        remedy = "or name other methods with --methods"
        if self.needs and find_spec(self.needs) is None:
            raise MissingDependencyError(
                f"the method {name} needs {self.needs}: "
                f'pip install "marginbn[experiments]", {remedy}'
            )
        if isinstance(self.fit, Network):
            try:
                self.fit.make()
            except (AttributeError, TypeError) as error:
                raise InputError(
                    f"the method {name} needs a newer marginbn ({error}): upgrade, {remedy}"
                ) from error


def _chosen(classifier: Any) -> dict[str, Any]:
    """What the estimator chose and how its search ended, in words where it is no plain value."""
    found = {name: getattr(classifier, f"{name}_", None) for name in ("chosen", "status", "gap")}
    return {k: _plain(v) for k, v in found.items() if v is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    return value if type(value) in (bool, int, float, str) else str(value)


RIVALS = {
    "hgb": Contender("HistGradientBoosting", modern.hist_boosting, 0.5),
    "lightgbm": Contender("LightGBM", modern.light_boosting, 0.3, "lightgbm"),
    "forest": Contender("random forest", modern.random_forest, 2.0),
    "logistic": Contender("logistic", modern.logistic, 3.0),
    "svm": Contender("RBF SVM", modern.support_vectors(modern.raw_inputs), 8.0),
    "svm-states": Contender("SVM on bins", modern.support_vectors(modern.state_inputs), 8.0),
    "lightgbm-tuned": Contender("LightGBM tuned", modern.tuned_light_boosting, 5.0, "lightgbm"),
    "catboost": Contender("CatBoost", modern.cat_boosting, 20.0, "catboost"),
    "ebm": Contender("EBM", modern.explainable_boosting, 30.0, "interpret"),
}
_CONDITIONAL = {"parameters": "conditional", "bins": "ordinal"}
_ALL = {"time_limit": None}  # every candidate is tried, whatever the machine does besides
_DROP = {"missing": "drop"}
_LONG = {"time_limit": 60.0, "gap_tolerance": 1e-6, **_DROP}
NETWORKS = {
    "bn": Contender("BN", Network("BNClassifier", _ALL), 5.0),
    "bn-average": Contender("BN average", Network("BNClassifier", {**_ALL, "average": True}), 5.0),
    "sm-laplace": Contender("SM Laplace", Network("MaxMarginBNClassifier", _LONG), 10.0),
    "sm-conditional": Contender(
        "SM conditional", Network("MaxMarginBNClassifier", {**_LONG, **_CONDITIONAL}), 10.0
    ),
    "tan": Contender("TAN", Network("TANClassifier", _DROP), 0.1),
    "nb": Contender("NB", Network("NaiveBayesClassifier", _DROP), 0.1),
    "a1de": Contender("A1DE", Network("A1DEClassifier", _DROP), 0.2),
}
CONTENDERS = NETWORKS | RIVALS
