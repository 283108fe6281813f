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
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

import marginbn
from experiments import modern
from experiments.forecast import Fitted
from experiments.outcome import require_finished
from experiments.protocol import Task
from marginbn.exceptions import InputError, MissingDependencyError

SEARCH_SECONDS = 60.0


@dataclass(frozen=True)
class Contender:
    """A method and what it needs.

    ``needs`` is the package it is made of, ``uses`` the name in marginbn; either may be empty.
    ``cost`` is a rough factor for its time beside the others.
    """

    label: str
    fit: Callable[[Task], Fitted]
    cost: float
    needs: str = ""
    uses: str = ""

    def require(self, name: str) -> None:
        """Say what is missing, before any work is done."""
        if self.needs and find_spec(self.needs) is None:
            raise MissingDependencyError(
                f'the method {name} needs {self.needs}: pip install "marginbn[experiments]", '
                "or name other methods with --methods"
            )
        if self.uses and not hasattr(marginbn, self.uses):
            raise InputError(
                f"the method {name} needs marginbn.{self.uses}, which this version lacks; "
                "name other methods with --methods"
            )


def network(class_name: str, **options: Any) -> Callable[[Task], Fitted]:
    """Fit one of marginbn's estimators."""

    def fit(task: Task) -> Fitted:
        classifier = getattr(marginbn, class_name)(**options)
        if "random_state" in classifier.get_params():
            classifier.set_params(random_state=task.settings.seed)
        classifier.fit(task.train, task.labels)
        require_finished(classifier)
        classes = np.asarray(classifier.classes_).astype(str)
        return Fitted(classes, classifier.predict_proba, _chosen(classifier))

    return fit


def _chosen(classifier: Any) -> dict[str, Any]:
    """What the estimator chose and how its search ended, in words where it is no plain value."""
    found = {name: getattr(classifier, f"{name}_", None) for name in ("chosen", "status", "gap")}
    return {k: _plain(v) for k, v in found.items() if v is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    return value if type(value) in (bool, int, float, str) else str(value)


def _margin(**options: Any) -> Callable[[Task], Fitted]:
    return network("MaxMarginBNClassifier", time_limit=SEARCH_SECONDS, **options)


RIVALS = {
    "hgb": Contender("HistGradientBoosting", modern.hist_boosting, 0.5),
    "lightgbm": Contender("LightGBM", modern.light_boosting, 0.3, "lightgbm"),
    "forest": Contender("random forest", modern.random_forest, 2.0),
    "logistic": Contender("logistic", modern.logistic, 3.0),
    "svm": Contender("RBF SVM", modern.support_vectors, 8.0),
    "lightgbm-tuned": Contender("LightGBM tuned", modern.tuned_light_boosting, 5.0, "lightgbm"),
    "catboost": Contender("CatBoost", modern.cat_boosting, 20.0, "catboost"),
    "ebm": Contender("EBM", modern.explainable_boosting, 30.0, "interpret"),
}
NETWORKS = {
    "bn": Contender("BN", network("BNClassifier"), 5.0, uses="BNClassifier"),
    "bn-average": Contender(
        "BN average", network("BNClassifier", average=True), 5.0, uses="BNClassifier"
    ),
    "sm-laplace": Contender("SM Laplace", _margin(), 10.0),
    "sm-conditional": Contender(
        "SM conditional", _margin(parameters="conditional", bins="ordinal"), 10.0
    ),
    "tan": Contender("TAN", network("TANClassifier"), 0.1),
    "nb": Contender("NB", network("NaiveBayesClassifier"), 0.1),
    "a1de": Contender("A1DE", network("A1DEClassifier"), 0.2, uses="A1DEClassifier"),
}
CONTENDERS = NETWORKS | RIVALS
