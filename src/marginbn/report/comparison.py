"""How good the classifier is on rows that it has not learned from, next to simpler methods.

The page has one accuracy. It is that of the first of these that there is:

test rows
    Rows set aside by the user. The classifier is measured as it is, the others learn from
    the labelled rows; intervals are those of a proportion.
held-out rows
    Rows that ``fit`` held out to choose the amount of smoothing. Each was predicted by a model that
    had not seen it; ``held_out_`` and the model file keep them.
folds
    Cross-validation on labelled rows, on request. In every fold each method learns everything
    again, discretisation included. This judges the method with its settings; intervals are
    Student t intervals over the folds.
numbers
    Of the model file, where it has no more than that.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any

from sklearn.base import clone

from marginbn import classifiers
from marginbn.classifiers import BaseBNClassifier, evaluation
from marginbn.classifiers.evaluation import (
    LogisticBaseline,
    MajorityBaseline,
    logistic_accuracy,
)
from marginbn.classifiers.measures import Quality
from marginbn.classifiers.model_file import Provenance
from marginbn.classifiers.search import SearchingBNClassifier
from marginbn.classifiers.validation import read_more_rows, read_target
from marginbn.data.labelled import LabelledTable
from marginbn.exceptions import DataWarning, InputError, OptimalityWarning
from marginbn.network.wording import seconds

OnFold = Callable[[int, int], None]
"""Called after each fold with the number of folds done, of all methods, and of all."""

THIS, TAN, NAIVE_BAYES = "this classifier", "TAN", "naive Bayes"
LOGISTIC, MAJORITY = "logistic regression", "most frequent class"


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

    ``max_gap`` is the largest gap its searches were left with; ``quality`` all other measures.
    """

    name: str
    accuracy: float
    half_width: float
    max_gap: float
    quality: Quality


FOLD_TIME = 10.0
"""Most seconds for the structure search in a fold."""

SHARED = ("smoothing", "missing", "class_weight")
"""Parameters that the baselines have in common with the classifier."""


@dataclass(frozen=True)
class Comparison:
    """Accuracies next to one another, this classifier first, and how they were measured.

    ``where`` names the rows in a few words; ``is_test`` is true for test rows.
    """

    methods: tuple[MethodAccuracy, ...]
    protocol: str
    where: str
    is_test: bool = False

    @property
    def own(self) -> MethodAccuracy:
        """This classifier."""
        return self.methods[0]


@dataclass(frozen=True)
class Judged:
    """The accuracy of the page.

    Parameters
    ----------
    rows
        On which rows, in a few words.
    accuracy, half_width
        Share of the rows that are right, and half the width of its 95 % interval.
    majority, logistic
        The same share for the most frequent class and for logistic regression, if known.
    calibration_error
        Mean distance of stated and true probabilities, if known.
    quality
        All other measures, if the rows are known one by one.
    elsewhere
        Measures that ``fit`` printed, if these are of other rows, such as a test set.
    """

    rows: str
    accuracy: float
    half_width: float
    majority: float | None = None
    logistic: float | None = None
    calibration_error: float | None = None
    quality: Quality | None = None
    elsewhere: Mapping[str, float | None] = field(default_factory=dict)


def judge(
    classifier: BaseBNClassifier, comparison: Comparison | None, rows: LabelledTable | None = None
) -> Judged | None:
    """The best that is known of how well new rows are classified; None if nothing is."""
    if len(classifier.classes_) < 2:
        return None
    if comparison is not None and comparison.is_test:
        return _judge_comparison(comparison)
    about = (classifier.provenance_ or Provenance()).held_out or {}
    held_out = classifier.held_out_
    if held_out is not None:
        labels, quality = held_out.labels, held_out.quality(classifier.classes_)
        logistic = about.get("logistic_accuracy")
        if logistic is None and rows is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DataWarning)
                logistic = logistic_accuracy(rows, classifier.table_settings())
        majority = max(c.n_rows for c in quality.classes) / len(labels)
        where = held_out.where(classifier.n_samples_)
        judged = _judge_quality(quality, where, majority, logistic)
        is_other = about.get("n_rows", len(labels)) != len(labels)
        return replace(judged, elsewhere=about) if is_other else judged
    if comparison is not None:
        return _judge_comparison(comparison)
    accuracy, n_rows = about.get("accuracy"), about.get("n_rows")
    if accuracy is None or not n_rows:
        return None
    half = evaluation.accuracy_interval(accuracy, int(n_rows))
    error = about.get("calibration_error")
    return Judged(f"{n_rows:.0f} held-out rows", accuracy, half, calibration_error=error)


def _judge_comparison(comparison: Comparison) -> Judged:
    own, others = comparison.own, {method.name: method for method in comparison.methods}
    shares = [others[n].accuracy for n in (MAJORITY, LOGISTIC)]
    judged = _judge_quality(own.quality, comparison.where, *shares)
    return replace(judged, half_width=max(judged.half_width, own.half_width))


def _judge_quality(
    quality: Quality, where: str, majority: float | None, logistic: float | None
) -> Judged:
    half = evaluation.accuracy_interval(quality.accuracy, quality.n_rows)
    error = quality.calibration_error
    return Judged(where, quality.accuracy, half, majority, logistic, error, quality)


def compare_by_folds(
    classifier: BaseBNClassifier,
    rows: LabelledTable,
    n_folds: int,
    on_fold: OnFold | None = None,
) -> Comparison:
    """Cross-validate the classifier's method and the simpler ones on the same folds."""
    own = unfitted(classifier)
    entrants: dict[str, Callable[[], Any]] = {THIS: partial(clone, own)}
    entrants |= simpler_methods(classifier, _kinds(classifier))
    scores, done = {}, count(1)

    def finish(fold: evaluation.FoldScore) -> None:
        if on_fold is not None:
            on_fold(next(done), n_folds * len(entrants))

    for name, make in entrants.items():
        with warnings.catch_warnings():  # the page has gaps and rows left out
            warnings.simplefilter("ignore", DataWarning)
            warnings.simplefilter("ignore", OptimalityWarning)
            scores[name] = evaluation.cross_validate(
                make, rows.features, rows.labels, n_folds, on_fold=finish
            )
    methods = tuple(
        MethodAccuracy(name, found.mean, found.half_width, found.max_gap, found.quality)
        for name, found in scores.items()
    )
    protocol = _describe_folds(classifier, rows, n_folds)
    return Comparison(methods, protocol, f"{rows.n_rows} rows in {n_folds} folds")


def compare_on_test(
    classifier: BaseBNClassifier, rows: LabelledTable, test: LabelledTable
) -> Comparison:
    """Measure the classifier as it is, and simpler ones learned from ``rows``."""
    fitted: dict[str, Any] = {THIS: classifier}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        for name, make in simpler_methods(classifier, _kinds(classifier)).items():
            fitted[name] = make().fit(rows.features, rows.labels)
    methods = []
    for name, entrant in fitted.items():
        probabilities = entrant.predict_proba(test.features)
        quality = Quality.measure(entrant.classes_.tolist(), test.labels, probabilities)
        half_width = evaluation.accuracy_interval(quality.accuracy, test.n_rows)
        methods.append(MethodAccuracy(name, quality.accuracy, half_width, 0.0, quality))
    protocol = (
        f"Measured on {test.n_rows} test rows. This classifier is measured as it is; the others "
        f"were learned from the {rows.n_rows} labelled rows. Intervals are 95 % intervals of "
        f"a proportion. The test rows must not have been used to learn this classifier."
    )
    return Comparison(tuple(methods), protocol, f"{test.n_rows} test rows", is_test=True)


def unfitted(classifier: BaseBNClassifier) -> BaseBNClassifier:
    """The classifier's method with its settings, ready to learn from tables of its columns."""
    fresh: BaseBNClassifier = clone(classifier)
    params = fresh.get_params(deep=False)
    changes: dict[str, Any] = {"column_kinds": _kinds(classifier)}
    if "cv" in params:  # splits may be of all rows
        changes["cv"] = None
    if isinstance(fresh, SearchingBNClassifier):
        changes["search"] = replace(fresh.search_settings(), verbose=0, callback=None)
    if params.get("time_limit", 0) is None or params.get("time_limit", 0) > FOLD_TIME:
        changes["time_limit"] = FOLD_TIME
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


def simpler_methods(
    classifier: BaseBNClassifier, column_kinds: Any
) -> dict[str, Callable[[], Any]]:
    """Makers of the methods to compare with, on the same columns, rows and class weights."""
    given = classifier.get_params(deep=False)
    shared = {key: given[key] for key in SHARED if key in given} | {"column_kinds": column_kinds}
    settings = replace(classifier.table_settings(), column_kinds=column_kinds)
    makers: dict[str, partial[Any]] = {
        TAN: partial(classifiers.TANClassifier, **shared),
        NAIVE_BAYES: partial(classifiers.NaiveBayesClassifier, **shared),
        LOGISTIC: partial(LogisticBaseline, settings),
        MAJORITY: partial(MajorityBaseline, settings),
    }
    return {name: make for name, make in makers.items() if make.func is not type(classifier)}


def _describe_folds(classifier: BaseBNClassifier, rows: LabelledTable, n_folds: int) -> str:
    text = (
        f"{n_folds}-fold cross-validation on {rows.n_rows} rows: in each fold every method learns "
        "everything again, discretisation included, and is measured on the other rows. This judges "
        "the method with its settings, not this model. Intervals are 95 % Student t intervals over "
        "the folds."
    )
    if "time_limit" in classifier.get_params(deep=False):
        text += f" Each search had at most {seconds(FOLD_TIME)}."
    return text
