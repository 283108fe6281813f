"""How good predictions are, as people measure it: the measures of scikit-learn.

Rows are judged by the probabilities they are given. Labels are compared as text, so that 1 and "1"
are the same class; a class that training never saw has probability 0 and counts as wrong. The Brier
score is the mean square error of the probability of the second class where there are two, and
the sum over the classes elsewhere. AUC is that of one class against the rest, and its mean over the
classes that occur beside others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marginbn.exceptions import InputError
from marginbn.network.wording import align, percent, share
from marginbn.problem.array_types import BoolArray, FloatArray

CALIBRATION_BINS = 10
"""Bins of equal width of the confidence, as in the literature on calibration."""

_MOST_CONFUSED = 12
"""Classes up to which the table of confusion is shown."""


@dataclass(frozen=True)
class ClassQuality:
    """One class against the rest; None where a measure has no meaning."""

    label: str
    n_rows: int
    precision: float | None
    recall: float | None
    auc: float | None


@dataclass(frozen=True)
class CalibrationBin:
    """Predictions of about the same confidence: how sure they were, and how often right."""

    confidence: float
    accuracy: float
    n_rows: int


@dataclass(frozen=True)
class Quality:
    """Measures of predictions on rows with known classes; build it with :meth:`measure`.

    Examples
    --------
    >>> quality = Quality.measure(["a", "b"], ["a", "b", "b"], [[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]])
    >>> round(quality.accuracy, 3), quality.balanced_accuracy, quality.auc
    (0.667, 0.75, 1.0)
    >>> quality.confusion
    ((1, 0), (1, 1))
    """

    n_rows: int
    accuracy: float
    balanced_accuracy: float
    log_loss: float
    brier: float
    auc: float | None
    classes: tuple[ClassQuality, ...]
    confusion: tuple[tuple[int, ...], ...]  # rows are true classes, columns predicted ones
    calibration: tuple[CalibrationBin, ...]
    calibration_error: float
    above: tuple[tuple[int, int], ...] = ()  # two classes: see _rows_above

    @classmethod
    def measure(
        cls, classes: Sequence[Any], labels: ArrayLike, probabilities: ArrayLike
    ) -> Quality:
        """Measure probabilities, float (n_rows, n_classes), of rows with the given labels.

        The most probable class is predicted.
        """
        truth = np.asarray(labels).astype(str)
        names, given = [str(c) for c in classes], np.asarray(probabilities, dtype=np.float64)
        if given.shape != (len(truth), len(names)) or not len(truth):
            raise InputError(
                f"probabilities must have the shape {(len(truth), len(names))} and a row, "
                f"got {given.shape}"
            )
        predicted = np.array(names)[given.argmax(axis=1)]
        strange = sorted(set(truth.tolist()) - set(names))  # of these, the probability is 0
        names, given = names + strange, np.pad(given, ((0, 0), (0, len(strange))))
        by_class = _by_class(names, truth, predicted, given)
        areas = [c.auc for c in by_class if c.auc is not None]
        bins, error = _calibration(given.max(axis=1), predicted == truth)
        recalls = [c.recall for c in by_class if c.recall is not None]
        own = given[np.arange(len(truth)), list(map(names.index, truth.tolist()))]
        errors = (given - (truth[:, np.newaxis] == np.array(names))) ** 2
        confusion = [[int(((truth == a) & (predicted == b)).sum()) for b in names] for a in names]
        return cls(
            n_rows=len(truth),
            accuracy=float((truth == predicted).mean()),
            balanced_accuracy=float(np.mean(recalls)),
            log_loss=float(-np.log(np.clip(own, np.finfo(np.float64).eps, 1.0)).mean()),
            brier=float((errors[:, 1] if len(names) == 2 else errors.sum(axis=1)).mean()),
            auc=float(np.mean(areas)) if areas else None,
            classes=by_class,
            confusion=tuple(map(tuple, confusion)),
            calibration=bins,
            calibration_error=error,
            above=_rows_above(truth == names[1], given[:, 1]) if len(names) == 2 else (),
        )

    def to_dict(self) -> dict[str, Any]:
        """All measures as JSON values; without the counts by threshold."""
        return {name: value for name, value in asdict(self).items() if name != "above"}

    def numbers(self) -> dict[str, float | None]:
        """The measures that are one number, and the number of rows."""
        names = ("n_rows", "accuracy", "balanced_accuracy", "log_loss", "brier", "auc")
        return {name: getattr(self, name) for name in (*names, "calibration_error")}

    def summary(self) -> list[list[str]]:
        """Name and value of the measures that are one number."""
        return [
            ["balanced accuracy", percent(self.balanced_accuracy)],
            ["AUC", _decimals(self.auc)],
            ["log loss", _decimals(self.log_loss)],
            ["Brier score", _decimals(self.brier)],
            ["calibration error", share(self.calibration_error)],
        ]

    def lines(self) -> list[str]:
        """All of it for a terminal."""
        table = [["class", "rows", "recall", "precision", "AUC"]]
        for c in self.classes:
            shares = ["-" if s is None else percent(s) for s in (c.recall, c.precision)]
            table.append([c.label, str(c.n_rows), *shares, _decimals(c.auc)])
        text = [*align(self.summary()), "", *align(table)]
        if len(self.classes) <= _MOST_CONFUSED:
            labels = [c.label for c in self.classes]
            counts = [[n, *map(str, row)] for n, row in zip(labels, self.confusion, strict=True)]
            text += ["", *align([["true \\ predicted", *labels], *counts])]
        return text


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows that were predicted without having been learned from."""

    labels: NDArray[Any]
    weights: FloatArray
    probabilities: FloatArray  # (rows, classes)

    def quality(self, classes: NDArray[Any]) -> Quality:
        """All measures of the predictions."""
        return Quality.measure(classes.tolist(), self.labels, self.probabilities)

    def where(self, n_samples: int) -> str:
        """Which rows of a training set of this size."""
        n_rows = len(self.labels)
        kind = "rows, each held out once" if n_rows == n_samples else "held-out rows"
        return f"{n_rows} {kind}"


def _decimals(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _by_class(
    names: Sequence[str],
    truth: NDArray[Any],
    predicted: NDArray[Any],
    given: FloatArray,
) -> tuple[ClassQuality, ...]:
    answers = []
    judged = [1, 1] if len(names) == 2 else range(len(names))  # two classes have one AUC
    for name, j in zip(names, judged, strict=True):
        is_class, says_class = truth == name, predicted == name
        right, n_class, n_says = (is_class & says_class).sum(), is_class.sum(), says_class.sum()
        mixed = 0 < n_class < len(truth)
        answers.append(
            ClassQuality(
                label=name,
                n_rows=int(n_class),
                precision=float(right / n_says) if n_says else None,
                recall=float(right / n_class) if n_class else None,
                auc=_area(truth == names[j], given[:, j]) if mixed else None,
            )
        )
    return tuple(answers)


def _area(is_class: BoolArray, scores: FloatArray) -> float:
    """Area under the ROC curve: the share of pairs of a row of the class and another row in which
    the first has the larger score, ties counted half (Mann-Whitney, by mean ranks).
    """
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    mean_rank = np.cumsum(counts) - (counts - 1) / 2
    n_class = int(is_class.sum())
    larger = mean_rank[place[is_class]].sum() - n_class * (n_class + 1) / 2
    return float(larger / (n_class * (len(scores) - n_class)))


def _rows_above(is_second: BoolArray, probability: FloatArray) -> tuple[tuple[int, int], ...]:
    """At each threshold of 0, 1, ..., 100 %: rows with a larger probability of the second class,
    those of the second class and those of the first.
    """
    steps = np.arange(101) / 100
    second, first = np.sort(probability[is_second]), np.sort(probability[~is_second])
    counts = [len(part) - np.searchsorted(part, steps, side="right") for part in (second, first)]
    return tuple((int(a), int(b)) for a, b in zip(*counts, strict=True))


def _calibration(
    confidence: FloatArray, right: BoolArray
) -> tuple[tuple[CalibrationBin, ...], float]:
    """Curve over bins of equal width, and the mean distance from the diagonal by rows."""
    bins = np.minimum((confidence * CALIBRATION_BINS).astype(int), CALIBRATION_BINS - 1)
    found = []
    for b in np.unique(bins):
        rows = bins == b
        found.append(
            CalibrationBin(
                float(confidence[rows].mean()), float(right[rows].mean()), int(rows.sum())
            )
        )
    error = sum(abs(c.confidence - c.accuracy) * c.n_rows for c in found) / len(right)
    return tuple(found), float(error)
