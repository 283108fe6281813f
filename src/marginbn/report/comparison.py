"""How good the classifier is next to naive Bayes and TAN, measured on rows that were not learned.

A model file does not say which rows it was learned from. So there are two protocols, and
the page says which one it was:

folds
    Cross-validation on labelled rows. In every fold each method learns everything again,
    discretisation included, and is measured on the rows left out. This judges the method with its
    settings; intervals are Student t intervals over the folds, differences are paired.
test rows
    Rows set aside by the user. The classifier is measured as it is, the others learn from
    the labelled rows; intervals are those of a proportion, differences an exact binomial test on
    the rows that only one of the two gets right.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from marginbn import classifiers
from marginbn.classifiers import BaseBNClassifier, evaluation
from marginbn.classifiers.decisions import costs_of
from marginbn.classifiers.validation import read_target
from marginbn.data.labelled import LabelledTable
from marginbn.exceptions import DataWarning, InputError, OptimalityWarning
from marginbn.network.wording import seconds

OnFold = Callable[[str, evaluation.FoldScore], None]

THIS, TAN, NAIVE_BAYES = "this classifier", "TAN", "naive Bayes"


def read_rows(classifier: BaseBNClassifier, X: Any, y: Any) -> LabelledTable:
    """Columns are matched by name where there are names, and keep the kinds of training."""
    features = classifier._read_features(X)
    labels, _ = read_target(y)
    if len(labels) != features.n_rows:
        raise InputError(f"y must have one label per row, {features.n_rows}, got {len(labels)}")
    return LabelledTable.of(features, labels)


@dataclass(frozen=True)
class MethodAccuracy:
    """A method's accuracy with the half width of its 95 % interval.

    ``p_value`` is that of "this classifier is better than the method", None for itself;
    ``max_gap`` the largest gap its searches were left with.
    """

    name: str
    accuracy: float
    half_width: float
    max_gap: float
    p_value: float | None = None


SHARED = (
    "smoothing",
    "missing",
    "unseen",
    "column_kinds",
    "identifiers",
    "max_states",
    "min_count",
    "class_weight",
    "cost",
)
"""Parameters that the baselines have in common with the classifier."""


@dataclass(frozen=True)
class Comparison:
    """Accuracies next to one another, this classifier first, and how they were measured."""

    methods: tuple[MethodAccuracy, ...]
    protocol: str


def compare_by_folds(
    classifier: BaseBNClassifier,
    rows: LabelledTable,
    n_folds: int,
    fold_time_limit: float,
    on_fold: OnFold | None = None,
) -> Comparison:
    """Cross-validate the classifier's method, TAN and naive Bayes on the same folds."""
    entrants = {THIS: unfitted(classifier, fold_time_limit), **_baselines(classifier)}
    scores = {}
    for name, entrant in entrants.items():
        entrant.set_params(cost=None)  # a fold may lack a class: all decide by the same costs
        with warnings.catch_warnings():  # the page says gaps and rows left out
            warnings.simplefilter("ignore", DataWarning)
            warnings.simplefilter("ignore", OptimalityWarning)
            scores[name] = evaluation.cross_validate(
                partial(clone, entrant),
                rows.features,
                rows.labels,
                n_folds,
                on_fold=None if on_fold is None else partial(on_fold, name),
                costs=costs_of(classifier),
            )
    own = scores[THIS].accuracies
    methods = tuple(
        MethodAccuracy(
            name,
            result.mean,
            result.half_width,
            result.max_gap,
            None if name == THIS else evaluation.paired_t_test(own, result.accuracies),
        )
        for name, result in scores.items()
    )
    return Comparison(methods, _describe_folds(classifier, rows, n_folds, fold_time_limit))


def compare_on_test(
    classifier: BaseBNClassifier, rows: LabelledTable, test: LabelledTable
) -> Comparison:
    """Measure the classifier as it is, and TAN and naive Bayes learned from ``rows``."""
    right = {THIS: _is_right(classifier, test)}
    for name, baseline in _baselines(classifier).items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            right[name] = _is_right(baseline.fit(rows.features, rows.labels), test)
    methods = []
    for name, hits in right.items():
        share = float(hits.mean())
        wins, losses = int((right[THIS] & ~hits).sum()), int((~right[THIS] & hits).sum())
        p_value = None if name == THIS else evaluation.binomial_test(wins, wins + losses)
        half_width = evaluation.binomial_interval(share, test.n_rows)
        methods.append(MethodAccuracy(name, share, half_width, 0.0, p_value))
    protocol = (
        f"Measured on {test.n_rows} test rows. This classifier is measured as it is; TAN and naive "
        f"Bayes were learned from the {rows.n_rows} labelled rows. Intervals are 95 % intervals of "
        f"a proportion, p values one-sided exact binomial tests on the rows that only one of the "
        f"two gets right. The test rows must not have been used to learn this classifier."
    )
    return Comparison(tuple(methods), protocol)


def unfitted(classifier: BaseBNClassifier, time_limit: float) -> BaseBNClassifier:
    """The classifier's method with its settings, ready to learn from tables of its columns."""
    if isinstance(classifier, classifiers.MaxMarginBNClassifierCV):
        fresh: BaseBNClassifier = classifier._with_setting(
            classifier.max_parents_, classifier.gamma_
        )
    else:
        fresh = clone(classifier)
    params = fresh.get_params(deep=False)
    changes: dict[str, Any] = {"column_kinds": "auto", "verbose": 0, "callback": None}
    if params.get("time_limit", 0) is None or params.get("time_limit", 0) > time_limit:
        changes["time_limit"] = time_limit
    find = classifier.network_.variable_index
    if params.get("tiers"):
        changes["tiers"] = [[find(v) for v in tier] for tier in params["tiers"]]
    for key in ("required_arcs", "forbidden_arcs", "allowed_arcs"):
        if params.get(key):  # by index: labels alone have no name
            changes[key] = [(find(parent), find(child)) for parent, child in params[key]]
    fresh.set_params(**{k: v for k, v in changes.items() if k in params})
    return fresh


def _baselines(classifier: BaseBNClassifier) -> dict[str, BaseBNClassifier]:
    """TAN and naive Bayes with the settings that every classifier has, where they are others."""
    given = classifier.get_params(deep=False)
    shared = {key: given[key] for key in SHARED if key in given}
    entrants = {
        TAN: classifiers.TANClassifier(**shared),
        NAIVE_BAYES: classifiers.NaiveBayesClassifier(**shared),
    }
    return {name: e for name, e in entrants.items() if type(e) is not type(classifier)}


def _is_right(classifier: BaseBNClassifier, rows: LabelledTable) -> NDArray[np.bool_]:
    predicted = classifier.predict(rows.features)
    evaluation.accuracy(predicted, rows.labels)  # refuses what cannot be compared
    hits: NDArray[np.bool_] = predicted.astype(str) == rows.labels.astype(str)
    return hits


def _describe_folds(
    classifier: BaseBNClassifier, rows: LabelledTable, n_folds: int, time_limit: float
) -> str:
    text = (
        f"{n_folds}-fold cross-validation on {rows.n_rows} rows: in each fold every method learns "
        "everything anew, discretisation included, and is measured on the rows left out. It judges "
        "the method with its settings rather than this one network. Intervals are 95 % Student t "
        "intervals over the folds, p values one-sided paired t tests."
    )
    if "time_limit" in classifier.get_params(deep=False):
        text += f" Each search had at most {seconds(time_limit)}."
    if isinstance(classifier, classifiers.MaxMarginBNClassifierCV):
        text += (
            " Gamma and the number of parents are those chosen on all rows, which favours this "
            "classifier a little."
        )
        if classifier.average:
            text += " Measured is the network shown here, not the average that predicts."
    return text
