"""How good a classifier is, and how sure one can be of it.

The paper's table 2 gives every accuracy with a 95 % interval; here are the formulas. With p an
accuracy on n rows and a_1, ..., a_k the accuracies on k folds (mean a, standard deviation s):

    one test set      p +- 1.96 sqrt(p (1 - p) / n)        :func:`binomial_interval`
                      or Wilson's, if few rows are wrong   :func:`accuracy_interval`
    folds             a +- t_{k-1, 0.975} s / sqrt(k)      :func:`t_interval`
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit
from sklearn.exceptions import ConvergenceWarning

from marginbn.classifiers.base import FIXED, BaseBNClassifier
from marginbn.classifiers.measures import Quality
from marginbn.data.labelled import (
    LabelledTable,
    class_factors,
    cost_of_places,
    label_codes,
    stratified_folds,
)
from marginbn.data.preparation import TableSettings
from marginbn.data.table import Table, as_table
from marginbn.exceptions import DataWarning, InputError, OptimalityWarning
from marginbn.interrupts import without_interrupting_children
from marginbn.problem.array_types import FloatArray, IndexArray
from marginbn.solvers.result import Status

NORMAL_QUANTILE = 1.96
"""Two-sided 95 % quantile of the normal distribution, rounded as everybody rounds it."""


def binomial_interval(accuracy: float, n_rows: int) -> float:
    """Half width of the 95 % interval of an accuracy measured on ``n_rows`` rows.

    Examples
    --------
    >>> round(binomial_interval(0.9, 100), 4)
    0.0588
    """
    if not 0 <= accuracy <= 1:
        raise InputError(f"accuracy must lie between 0 and 1, got {accuracy}")
    if n_rows < 1:
        raise InputError(f"n_rows must be at least 1, got {n_rows}")
    return NORMAL_QUANTILE * math.sqrt(accuracy * (1 - accuracy) / n_rows)


def accuracy_interval(accuracy: float, n_rows: int) -> float:
    """The same for reports: also where fewer than five rows are right, or wrong.

    There the normal distribution is no guide (20 right rows of 20 do not prove 100 %), and it is
    the distance to the farther end of Wilson's interval: of all p that are no farther from the
    accuracy than 1.96 sqrt(p (1 - p) / n).

    Examples
    --------
    >>> round(accuracy_interval(0.9, 100), 4), round(accuracy_interval(1.0, 20), 4)
    (0.0588, 0.1611)
    """
    plain = binomial_interval(accuracy, n_rows)
    if n_rows * min(accuracy, 1 - accuracy) >= 5:
        return plain
    part = NORMAL_QUANTILE**2 / n_rows
    middle = (accuracy + part / 2) / (1 + part)
    half = math.sqrt(plain**2 + part**2 / 4) / (1 + part)
    return abs(middle - accuracy) + half


def t_interval(scores: ArrayLike) -> tuple[float, float]:
    """Mean of fold scores and half width of its 95 % Student t interval.

    Examples
    --------
    >>> mean, half_width = t_interval([0.9, 0.8, 1.0])
    >>> round(mean, 3), round(half_width, 3)
    (0.9, 0.248)
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or len(values) < 2:
        raise InputError(f"scores must hold at least two fold scores, got {scores!r}")
    quantile = float(stdtrit(len(values) - 1, 0.975))
    standard_error = float(values.std(ddof=1)) / math.sqrt(len(values))
    return float(values.mean()), quantile * standard_error


@dataclass(frozen=True)
class FoldScore:
    """One fold: accuracy on its test rows, and how the structure search on the others ended."""

    accuracy: float
    n_train: int
    n_test: int
    status: str
    gap: float
    seconds: float


@dataclass(frozen=True)
class FoldScores:
    """All folds of a cross-validation."""

    folds: tuple[FoldScore, ...]
    quality: Quality  # of all rows, each predicted by the fold that did not see it

    @property
    def accuracies(self) -> tuple[float, ...]:
        """Accuracy of each fold."""
        return tuple(fold.accuracy for fold in self.folds)

    @property
    def mean(self) -> float:
        """Mean accuracy of the folds."""
        return t_interval(self.accuracies)[0]

    @property
    def half_width(self) -> float:
        """Half width of the 95 % Student t interval of the mean."""
        return t_interval(self.accuracies)[1]

    @property
    def max_gap(self) -> float:
        """Largest gap that a structure search was left with."""
        return max(fold.gap for fold in self.folds)

    @property
    def all_closed(self) -> bool:
        """Whether every search ended with a proof of optimality or at the gap asked for."""
        closed = (FIXED, Status.OPTIMAL, Status.GAP_LIMIT)
        return all(fold.status in closed for fold in self.folds)

    @property
    def all_proved(self) -> bool:
        """Whether every search ended with a proof of optimality."""
        return all(fold.status in (FIXED, Status.OPTIMAL) for fold in self.folds)


MakeClassifier = Callable[[], "BaseBNClassifier | MajorityBaseline | LogisticBaseline"]


def cross_validate(
    make_classifier: MakeClassifier,
    table: Table,
    labels: NDArray[Any],
    n_folds: int = 5,
    seed: int = 0,
    n_jobs: int | None = None,
    on_fold: Callable[[FoldScore], None] | None = None,
) -> FoldScores:
    """Accuracy on stratified folds; discretisation and all else is learned again in each.

    Parameters
    ----------
    make_classifier
        Called once per fold for an unfitted classifier.
    table, labels
        Feature columns and class labels (n_rows,), without missing labels.
    n_folds, seed
        Number of folds, and seed of their shuffling.
    n_jobs
        Folds in parallel (joblib); None means one after the other.
    on_fold
        Called with each fold's score, in order.

    Raises
    ------
    KeyboardInterrupt
        If Ctrl-C ended a search: an average over fewer folds would not be what was asked for.

    Examples
    --------
    >>> from marginbn import NaiveBayesClassifier
    >>> from marginbn.datasets import load_dataset
    >>> from marginbn.classifiers.evaluation import cross_validate
    >>> table = load_dataset("corral").train
    >>> X, y = table.drop("class"), table.column("class").values
    >>> scores = cross_validate(NaiveBayesClassifier, X, y)
    >>> len(scores.folds), 0.7 < scores.mean < 1.0
    (5, True)
    """
    if not 2 <= n_folds <= len(labels):
        raise InputError(
            f"n_folds must lie between 2 and the number of rows, {len(labels)}, got {n_folds}"
        )
    if table.n_rows != len(labels):
        raise InputError(
            f"labels must have one entry per row of the table, {table.n_rows}, got {len(labels)}"
        )
    splits = stratified_folds(np.asarray(labels), n_folds, seed)
    tasks = (delayed(_score_fold)(make_classifier, table, labels, *split) for split in splits)
    answers: list[_FoldAnswer] = []
    for answer in without_interrupting_children(
        Parallel(n_jobs=n_jobs, return_as="generator"), tasks
    ):
        answers.append(answer)
        if on_fold is not None:
            on_fold(answer[0])
    _warn_once([messages for *_, messages in answers])
    tests = [test for _, test in splits]
    return FoldScores(tuple(score for score, *_ in answers), _pool(answers, labels, tests))


Message = tuple[type[Warning], str]
"""A warning as category and message."""


_FoldAnswer = tuple[FoldScore, NDArray[Any], FloatArray, list[Message]]
"""One fold: its score, the classes, the probabilities of its test rows, the warnings it gave."""


def _pool(
    answers: Sequence[_FoldAnswer],
    labels: NDArray[Any],
    tests: Sequence[IndexArray],
) -> Quality:
    """Quality over all folds; a class that a fold did not learn has probability 0 in it."""
    names = sorted({str(c) for _, classes, *_ in answers for c in classes})
    parts = []
    for _, classes, probabilities, _ in answers:
        part = np.zeros((len(probabilities), len(names)))
        part[:, [names.index(str(c)) for c in classes]] = probabilities
        parts.append(part)
    truth = np.concatenate([np.asarray(labels)[test] for test in tests])
    return Quality.measure(names, truth, np.concatenate(parts))


def _score_fold(
    make_classifier: MakeClassifier,
    table: Table,
    labels: NDArray[Any],
    train: IndexArray,
    test: IndexArray,
) -> _FoldAnswer:
    """Fit on one part, predict the other."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        classifier = make_classifier().fit(table.take(train), labels[train])
        status, gap, seconds = FIXED, 0.0, 0.0  # a baseline searches for nothing
        if isinstance(classifier, BaseBNClassifier) and classifier.result_ is not None:
            result = classifier.result_
            status, gap, seconds = classifier.status_, result.gap, result.seconds
        if status == Status.INTERRUPTED:
            raise KeyboardInterrupt
        probabilities = classifier.predict_proba(table.take(test))
    messages = [(w.category, str(w.message)) for w in caught]
    predicted = classifier.classes_[probabilities.argmax(axis=1)].astype(str)
    value = float((predicted == labels[test].astype(str)).mean())
    score = FoldScore(value, len(train), len(test), status, gap, seconds)
    return score, classifier.classes_, probabilities, messages


def _warn_once(caught: Sequence[Iterable[Message]]) -> None:
    """One warning per kind instead of one per fold; a kind is what stands before the colon."""
    kinds: dict[tuple[type[Warning], str], list[str]] = {}
    for fold in caught:
        for category, message in fold:
            if issubclass(category, DataWarning | OptimalityWarning):
                about = re.sub(r"[\d.]+", "", message.partition(":")[0])
                kinds.setdefault((category, about), []).append(message)
    for (category, _), messages in kinds.items():
        warnings.warn(
            f"in {len(messages)} of {len(caught)} folds, such as: {messages[0]}",
            category,
            stacklevel=3,
        )


# --- what any classifier should be compared with ---
#
# Much of scikit-learn is needed for a logistic regression, and imported only when it is made.

_ABSENT = "(missing)"


class MajorityBaseline:
    """Always the most frequent class, with the shares of the classes as probabilities."""

    def __init__(self, settings: TableSettings | None = None) -> None:
        self.settings = settings or TableSettings()

    def fit(self, table: Table, labels: NDArray[Any]) -> Self:
        """Learn from the rows of a table."""
        self._preparation = self.settings.learn(table)
        features = self._preparation.apply_to_all(table)
        self._kinds = features.kinds
        self._model = self._fitted(features, labels)
        self.classes_: NDArray[Any] = self._model.classes_
        return self

    def predict_proba(self, table: Table) -> FloatArray:
        """Probability of every class."""
        used = as_table(
            table.select(self._preparation.used_names), kinds=self._preparation.used_kinds
        )
        features = as_table(self._preparation.apply(used), kinds=self._kinds)
        answer: FloatArray = self._model.predict_proba(_as_array(features))
        return answer

    def _fitted(self, features: Table, labels: NDArray[Any]) -> Any:
        """A fitted model of scikit-learn: the shares of the classes, whatever the row."""
        from sklearn.dummy import DummyClassifier

        return DummyClassifier(strategy="prior").fit(_as_array(features), labels)


class LogisticBaseline(MajorityBaseline):
    """Logistic regression on standardised numbers and indicators of categories."""

    def _fitted(self, features: Table, labels: NDArray[Any]) -> Any:
        from sklearn.compose import make_column_transformer
        from sklearn.impute import SimpleImputer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder, StandardScaler

        classes, codes = label_codes(labels)
        if len(classes) == 1:  # in a fold: there is nothing to tell apart
            return super()._fitted(features, labels)
        numeric = [i for i, c in enumerate(features.columns) if c.kind == "numeric"]
        others = [i for i in range(features.n_columns) if i not in numeric]
        fill = SimpleImputer(strategy="median", keep_empty_features=True)
        columns = make_column_transformer(
            (make_pipeline(fill, StandardScaler()), numeric),
            (OneHotEncoder(handle_unknown="ignore"), others),
        )
        model = make_pipeline(columns, LogisticRegression(max_iter=300))
        weights = None
        if self.settings.class_weight is not None:
            weights = class_factors(self.settings.class_weight, classes, codes)[codes]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return model.fit(_as_array(features), labels, logisticregression__sample_weight=weights)


def logistic_accuracy(rows: LabelledTable, settings: TableSettings) -> float:
    """Accuracy of logistic regression on the very rows that the default classifier is judged by."""
    from marginbn.class_model.choose import split_rows

    table = settings.learn(rows.features).apply_to_all(rows.features)
    missing = {c.name: c.missing for c in table.columns if c.missing.any()}
    classes, codes = np.unique(rows.labels, return_inverse=True)
    rows = rows.take(np.flatnonzero(cost_of_places(missing, codes, settings.missing, classes).kept))
    drawn, splits = split_rows(rows.labels)
    right = total = 0
    for train, test in splits:
        learned, judged = rows.take(drawn[train]), rows.take(drawn[test])
        model = LogisticBaseline(settings).fit(learned.features, learned.labels)
        chosen = model.classes_[model.predict_proba(judged.features).argmax(axis=1)]
        right, total = right + int((chosen == judged.labels).sum()), total + judged.n_rows
    return right / total


def _as_array(features: Table) -> NDArray[Any]:
    """Numbers with NaN and labels with a word for missing, side by side."""
    array = np.empty((features.n_rows, features.n_columns), dtype=object)
    for i, column in enumerate(features.columns):
        is_numeric, labels = column.kind == "numeric", np.array([*column.labels, _ABSENT], object)
        array[:, i] = column.numbers if is_numeric else labels[column.codes]
    return array
