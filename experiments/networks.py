"""The Bayesian networks among the methods.

They get the table as it is: numeric features are discretised by the estimators, from the rows
that each fit sees, and no column is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import marginbn
from experiments.fitted import Fitted, best_setting, describe_search, require_finished, short
from experiments.protocol import Task
from marginbn import (
    GenerativeBNClassifier,
    MaxMarginBNClassifier,
    MaxMarginBNClassifierCV,
    Search,
)
from marginbn.problem.margins import MarginKind

PAPER: dict[str, Any] = {"missing": "drop"}
"""The paper's data preparation leaves out rows with missing values."""

PARENTS = (1, 2)
DEEP_FEATURES = 15
"""With at most so many features dynamic programming also solves BDeu with three parents."""


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
        known = classifier.get_params()
        if "random_state" in known:
            classifier.set_params(random_state=task.seed)
        classifier.set_params(column_kinds=dict(task.train.kinds))
        if known.get("time_limit") is not None:  # a search, whose limit is that of final searches
            classifier.set_params(time_limit=task.settings.final_limit)
        return as_fitted(classifier.fit(task.train, task.labels))


def as_fitted(
    classifier: Any,
    *,
    chosen: dict[str, Any] | None = None,
    validation: list[dict[str, Any]] | None = None,
) -> Fitted:
    require_finished(classifier)
    search = {} if classifier.result_ is None else describe_search(classifier)
    return Fitted(
        np.asarray(classifier.classes_).astype(str),
        classifier.predict_proba,
        chosen=chosen or {},
        validation=validation or [],
        search=search,
        model=classifier,
    )


def mdl(**preparation: Any) -> Callable[[Task], Fitted]:
    """The paper's generative rival: same candidates as the soft margin, MDL score."""

    def run(task: Task) -> Fitted:
        def make(limit: float, max_parents: int) -> GenerativeBNClassifier:
            return GenerativeBNClassifier(
                score="mdl",
                max_parents=max_parents,
                column_kinds=dict(task.train.kinds),
                time_limit=limit,
                **preparation,
            )

        return _validated_network(make, PARENTS, task)

    return run


def bdeu(task: Task) -> Fitted:
    """Every feature has the class as parent, so the class has none; BDeu chooses the rest."""
    arcs = [(0, i) for i in range(1, task.train.n_columns + 1)]

    def make(limit: float, max_parents: int) -> GenerativeBNClassifier:
        return GenerativeBNClassifier(
            score="bdeu",
            max_parents=max_parents,
            required_arcs=arcs,
            column_kinds=dict(task.train.kinds),
            time_limit=limit,
            **PAPER,
        )

    return _validated_network(make, bdeu_parents(task.train.n_columns), task)


def bdeu_parents(n_features: int) -> tuple[int, ...]:
    """Grid of the parent limit, the class counted."""
    return (2, 3) if n_features <= DEEP_FEATURES else (2,)


def _validated_network(
    make: Callable[[float, int], GenerativeBNClassifier], parents: Sequence[int], task: Task
) -> Fitted:
    """Choose the parent limit on the inner splits, then learn from the whole training part."""
    entries = []
    for k in parents if len(parents) > 1 else ():
        scores, gaps = [], []
        for fit_rows, held_out in task.inner:
            classifier = make(task.settings.inner_limit, k)
            classifier.fit(task.train.take(fit_rows), task.labels[fit_rows])
            require_finished(classifier)
            hits = classifier.predict(task.train.take(held_out)) == task.labels[held_out]
            scores.append(short(np.mean(hits)))
            gaps.append(classifier.gap_)
        entries.append({"max_parents": k, "scores": scores, "max_gap": max(gaps)})
    best = best_setting(entries)["max_parents"] if entries else parents[0]
    final = make(task.settings.final_limit, best).fit(task.train, task.labels)
    return as_fitted(final, chosen={"max_parents": best}, validation=entries)


def max_margin(
    margin: MarginKind, *, is_trained: bool = False, **preparation: Any
) -> Callable[[Task], Fitted]:
    """gamma and parents validated; each search starts from the answer of the larger gamma.

    With ``is_trained`` the tables are trained on the structure that is learned with that choice.
    """

    def run(task: Task) -> Fitted:
        settings = task.settings
        classifier = MaxMarginBNClassifierCV(
            margin=margin,
            gammas=settings.gammas,
            max_parents=PARENTS,
            cv=task.inner,
            search=Search(inner_time_limit=settings.inner_limit, time_limit=settings.final_limit),
            time_limit=None,
            random_state=task.seed,
            column_kinds=dict(task.train.kinds),
            **preparation,
        ).fit(task.train, task.labels)
        chosen = {"gamma": classifier.gamma_, "max_parents": classifier.max_parents_}
        if is_trained:
            trained = MaxMarginBNClassifier(
                margin=margin,
                **chosen,
                parameters="trained",
                random_state=task.seed,
                time_limit=settings.final_limit,
                column_kinds=dict(task.train.kinds),
                **preparation,
            )
            return as_fitted(trained.fit(task.train, task.labels), chosen=chosen)
        return as_fitted(classifier, chosen=chosen, validation=_margin_validation(classifier))

    return run


def _margin_validation(classifier: MaxMarginBNClassifierCV) -> list[dict[str, Any]]:
    results = classifier.cv_results_
    splits = [name for name in results if name.startswith("split")]
    return [
        {
            "max_parents": int(results["max_parents"][s]),
            "gamma": float(results["gamma"][s]),
            "scores": [short(results[name][s]) for name in splits],
            "max_gap": float(results["max_gap"][s]),
        }
        for s in range(len(results["gamma"]))
    ]
