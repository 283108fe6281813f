"""The Bayesian networks among the methods.

They get the table as it is: numeric features are discretised by the estimators, from the rows
that each fit sees.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from experiments.outcome import (
    Outcome,
    Stopwatch,
    best_setting,
    describe_search,
    score,
    short,
)
from experiments.protocol import Task
from marginbn import (
    GenerativeBNClassifier,
    MaxMarginBNClassifier,
    MaxMarginBNClassifierCV,
    NaiveBayesClassifier,
    TANClassifier,
)

PAPER: dict[str, Any] = {
    "missing": "drop",
    "identifiers": "use",
    "max_states": None,
    "min_count": 1,
}
"""The paper's data preparation: rows with missing values left out, every column used as it is."""

PROVED: dict[str, Any] = {"gap_tolerance": 1e-6}
"""Searches of the paper's tables go on to a proof of optimality, as far as time allows."""

PARENTS = (1, 2)
DEEP_FEATURES = 15
"""With at most so many features dynamic programming also solves BDeu with three parents."""


def naive_bayes(task: Task) -> Outcome:
    return _fit_and_predict(NaiveBayesClassifier(**PAPER), task, Stopwatch())


def tan(task: Task) -> Outcome:
    return _fit_and_predict(TANClassifier(**PAPER), task, Stopwatch())


def mdl(task: Task) -> Outcome:
    """The paper's generative rival: same candidates as the soft margin, MDL score."""

    def make(limit: float, max_parents: int) -> GenerativeBNClassifier:
        return GenerativeBNClassifier(
            score="mdl", max_parents=max_parents, time_limit=limit, **PROVED, **PAPER
        )

    return _validated_network(make, PARENTS, task)


def bdeu(task: Task) -> Outcome:
    """Every feature has the class as parent, so the class has none; BDeu chooses the rest."""
    arcs = [(0, i) for i in range(1, task.train.n_columns + 1)]

    def make(limit: float, max_parents: int) -> GenerativeBNClassifier:
        return GenerativeBNClassifier(
            score="bdeu",
            max_parents=max_parents,
            required_arcs=arcs,
            time_limit=limit,
            **PROVED,
            **PAPER,
        )

    return _validated_network(make, bdeu_parents(task.train.n_columns), task)


def bdeu_parents(n_features: int) -> tuple[int, ...]:
    """Grid of the parent limit, the class counted."""
    return (2, 3) if n_features <= DEEP_FEATURES else (2,)


def max_margin(margin: str) -> Callable[[Task], Outcome]:
    def run(task: Task) -> Outcome:
        settings, watch = task.settings, Stopwatch()
        classifier = MaxMarginBNClassifierCV(
            margin=margin,
            gammas=settings.gammas,
            max_parents=PARENTS,
            cv=task.inner,
            inner_time_limit=settings.inner_limit,
            time_limit=settings.final_limit,
            total_time_limit=None,
            random_state=settings.seed,
            **PROVED,
            **PAPER,
        ).fit(task.train, task.labels)
        watch.lap("learn")
        predicted = classifier.predict(task.test)
        watch.lap("predict")
        watch.seconds["validate"] = watch.seconds["learn"] - classifier.result_.seconds
        return Outcome(
            predicted,
            {"gamma": classifier.gamma_, "max_parents": classifier.max_parents_},
            _margin_validation(classifier),
            describe_search(classifier),
            watch.seconds,
        )

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


def largest_margin(margin: str) -> Callable[[Task], Outcome]:
    """Table 1: one search on the training part with the paper's candidates, two parents."""

    def run(task: Task) -> Outcome:
        settings, watch = task.settings, Stopwatch()
        classifier = MaxMarginBNClassifier(
            margin=margin,
            gamma=settings.table1_gamma,
            max_parents=max(PARENTS),
            time_limit=settings.table1_limit,
            random_state=settings.seed,
            **PROVED,
            **PAPER,
        ).fit(task.train, task.labels)
        watch.lap("learn")
        chosen = {"gamma": settings.table1_gamma, "max_parents": max(PARENTS)}
        return Outcome(None, chosen, search=describe_search(classifier), seconds=watch.seconds)

    return run


def _validated_network(
    make: Callable[[float, int], GenerativeBNClassifier], parents: Sequence[int], task: Task
) -> Outcome:
    """Choose the parent limit on the inner splits, then learn from the whole training part."""
    watch, entries = Stopwatch(), []
    for k in parents if len(parents) > 1 else ():
        scores, gaps = [], []
        for fit_rows, held_out in task.inner:
            classifier = make(task.settings.inner_limit, k)
            scores.append(score(classifier, task.train, task.labels, fit_rows, held_out))
            gaps.append(classifier.gap_)
        entries.append({"max_parents": k, "scores": scores, "max_gap": max(gaps)})
    watch.lap("validate")
    best = best_setting(entries)["max_parents"] if entries else parents[0]
    final = make(task.settings.final_limit, best)
    return _fit_and_predict(final, task, watch, {"max_parents": best}, entries)


def _fit_and_predict(
    classifier: Any,
    task: Task,
    watch: Stopwatch,
    chosen: dict[str, Any] | None = None,
    validation: list[dict[str, Any]] | None = None,
) -> Outcome:
    classifier.fit(task.train, task.labels)
    watch.lap("fit")
    predicted = classifier.predict(task.test)
    watch.lap("predict")
    search = describe_search(classifier)
    return Outcome(predicted, chosen or {}, validation or [], search, watch.seconds)
