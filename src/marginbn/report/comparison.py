"""How good the classifier is next to simpler ones, measured on rows that were not learned.

These are naive Bayes, TAN, logistic regression and the most frequent class.

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
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from marginbn import classifiers
from marginbn.classifiers import BaseBNClassifier, evaluation
from marginbn.classifiers.baselines import LogisticBaseline, MajorityBaseline
from marginbn.classifiers.measures import Quality
from marginbn.classifiers.search import SearchingBNClassifier
from marginbn.classifiers.validation import read_more_rows, read_target
from marginbn.data.labelled import LabelledTable
from marginbn.exceptions import DataWarning, InputError, OptimalityWarning
from marginbn.network.wording import seconds

OnFold = Callable[[str, evaluation.FoldScore], None]

THIS, TAN, NAIVE_BAYES = "this classifier", "TAN", "naive Bayes"
LOGISTIC, MAJORITY = "logistic regression", "most frequent class"

Entrant = BaseBNClassifier | LogisticBaseline | MajorityBaseline


def read_rows(classifier: BaseBNClassifier, X: Any, y: Any) -> LabelledTable:
    """Columns are matched by name where there are names, and keep the kinds of training."""
    features = read_more_rows(classifier, X, classifier.preparation_)
    labels, _ = read_target(y)
    if len(labels) != features.n_rows:
        raise InputError(f"y must have one label per row, {features.n_rows}, got {len(labels)}")
    return LabelledTable.of(features, labels)


@dataclass(frozen=True)
class MethodAccuracy:
    """A method's accuracy with the half width of its 95 % interval.

    ``p_value`` is that of "this classifier is better than the method", None for itself;
    ``max_gap`` the largest gap its searches were left with; ``quality`` all other measures.
    """

    name: str
    accuracy: float
    half_width: float
    max_gap: float
    p_value: float | None = None
    quality: Quality | None = None


SHARED = ("smoothing", "missing", "class_weight")
"""Parameters that the baselines have in common with the classifier."""


@dataclass(frozen=True)
class Comparison:
    """Accuracies next to one another, this classifier first, and how they were measured.

    ``where`` says on which rows, in a few words.
    """

    methods: tuple[MethodAccuracy, ...]
    protocol: str
    where: str = ""

    @property
    def own(self) -> MethodAccuracy:
        """This classifier."""
        return self.methods[0]

    def find(self, name: str) -> MethodAccuracy | None:
        """A method by its name."""
        return next((method for method in self.methods if method.name == name), None)


def compare_by_folds(
    classifier: BaseBNClassifier,
    rows: LabelledTable,
    n_folds: int,
    fold_time_limit: float,
    on_fold: OnFold | None = None,
) -> Comparison:
    """Cross-validate the classifier's method and the simpler ones on the same folds."""
    own = unfitted(classifier, fold_time_limit)
    entrants: dict[str, Callable[[], Any]] = {THIS: partial(clone, own)}
    for name, network in _networks(classifier).items():
        entrants[name] = partial(clone, network)
    entrants |= _plain(classifier)
    scores = {}
    for name, make in entrants.items():
        with warnings.catch_warnings():  # the page says gaps and rows left out
            warnings.simplefilter("ignore", DataWarning)
            warnings.simplefilter("ignore", OptimalityWarning)
            scores[name] = evaluation.cross_validate(
                make,
                rows.features,
                rows.labels,
                n_folds,
                on_fold=None if on_fold is None else partial(on_fold, name),
            )
    first = scores[THIS].accuracies
    methods = tuple(
        MethodAccuracy(
            name,
            result.mean,
            result.half_width,
            result.max_gap,
            None if name == THIS else evaluation.paired_t_test(first, result.accuracies),
            result.quality,
        )
        for name, result in scores.items()
    )
    protocol = _describe_folds(classifier, rows, n_folds, fold_time_limit)
    return Comparison(methods, protocol, f"{n_folds}-fold cross-validation of {rows.n_rows} rows")


def compare_on_test(
    classifier: BaseBNClassifier, rows: LabelledTable, test: LabelledTable
) -> Comparison:
    """Measure the classifier as it is, and simpler ones learned from ``rows``."""
    fitted: dict[str, Entrant] = {THIS: classifier}
    for name, network in _networks(classifier).items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            fitted[name] = network.fit(rows.features, rows.labels)
    for name, make in _plain(classifier).items():
        fitted[name] = make().fit(rows.features, rows.labels)
    measured = {name: _measure(entrant, test) for name, entrant in fitted.items()}
    first = measured[THIS][0]
    methods = []
    for name, (hits, quality) in measured.items():
        share = float(hits.mean())
        wins, losses = int((first & ~hits).sum()), int((~first & hits).sum())
        p_value = None if name == THIS else evaluation.binomial_test(wins, wins + losses)
        half_width = evaluation.told_interval(share, test.n_rows)
        methods.append(MethodAccuracy(name, share, half_width, 0.0, p_value, quality))
    protocol = (
        f"Measured on {test.n_rows} test rows. This classifier is measured as it is; the others "
        f"were learned from the {rows.n_rows} labelled rows. Intervals are 95 % intervals of "
        f"a proportion, p values one-sided exact binomial tests on the rows that only one of the "
        f"two gets right. The test rows must not have been used to learn this classifier."
    )
    return Comparison(tuple(methods), protocol, f"{test.n_rows} test rows")


def unfitted(classifier: BaseBNClassifier, time_limit: float) -> BaseBNClassifier:
    """The classifier's method with its settings, ready to learn from tables of its columns."""
    if isinstance(classifier, classifiers.MaxMarginBNClassifierCV):
        fresh: BaseBNClassifier = classifier.with_choice()
    else:
        fresh = clone(classifier)
    params = fresh.get_params(deep=False)
    changes: dict[str, Any] = {"column_kinds": _kinds(classifier)}
    if isinstance(fresh, SearchingBNClassifier):
        changes["search"] = replace(fresh.search_settings(), verbose=0, callback=None)
    if params.get("time_limit", 0) is None or params.get("time_limit", 0) > time_limit:
        changes["time_limit"] = time_limit
    find = classifier.network_.variable_index
    for key in ("required_arcs", "forbidden_arcs"):
        if params.get(key):  # by index: labels alone have no name
            changes[key] = [(find(parent), find(child)) for parent, child in params[key]]
    fresh.set_params(**changes)
    return fresh


def _kinds(classifier: BaseBNClassifier) -> Any:
    """Kinds of the columns that are used, as training found them."""
    plans = classifier.preparation_.columns
    return {plan.name: plan.kind for plan in plans if not plan.left_out} or "auto"


def _networks(classifier: BaseBNClassifier) -> dict[str, BaseBNClassifier]:
    """TAN and naive Bayes with the settings that every classifier has, where they are others."""
    given = classifier.get_params(deep=False)
    shared = {key: given[key] for key in SHARED if key in given}
    shared["column_kinds"] = _kinds(classifier)
    entrants = {
        TAN: classifiers.TANClassifier(**shared),
        NAIVE_BAYES: classifiers.NaiveBayesClassifier(**shared),
    }
    return {name: e for name, e in entrants.items() if type(e) is not type(classifier)}


def _plain(classifier: BaseBNClassifier) -> dict[str, Callable[[], Any]]:
    """Makers of what is no network, with the same columns and class weights."""
    if len(classifier.classes_) < 2:
        return {}
    settings = replace(classifier.table_settings(), column_kinds=_kinds(classifier))
    return {
        LOGISTIC: partial(LogisticBaseline, settings),
        MAJORITY: partial(MajorityBaseline, settings),
    }


def _measure(entrant: Entrant, rows: LabelledTable) -> tuple[NDArray[np.bool_], Quality]:
    """Which rows are right, and all measures."""
    probabilities = entrant.predict_proba(rows.features)
    predicted = entrant.classes_[probabilities.argmax(axis=1)]
    evaluation.accuracy(predicted, rows.labels)  # refuses what cannot be compared
    hits: NDArray[np.bool_] = predicted.astype(str) == rows.labels.astype(str)
    return hits, Quality.measure(entrant.classes_.tolist(), rows.labels, probabilities)


def measure_seen(classifier: BaseBNClassifier, rows: LabelledTable) -> Quality:
    """Quality on rows that the classifier may have learned from."""
    return _measure(classifier, rows)[1]


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
    return text
