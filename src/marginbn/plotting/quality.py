"""How good a fit is: its trace, margins, calibration and confusion."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marginbn.classifiers.evaluation import accuracy, binomial_interval
from marginbn.classifiers.validation import read_target
from marginbn.exceptions import InputError
from marginbn.network import explain
from marginbn.network.wording import counted, percent
from marginbn.plotting.axes import (
    AGAINST,
    FOR,
    GREY,
    is_classifier,
    label,
    new_axes,
    require_rows,
    turn_labels,
    write_numbers,
)
from marginbn.solvers.result import read_trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MILLISECOND = 1e-3
_MOST_CLASSES = 20
"""More classes are drawn without numbers."""


def plot_trace(source: Any, *, log_time: bool = False, ax: Axes | None = None) -> Axes:
    """Best objective and proven bound over time; between them lies the optimum.

    Parameters
    ----------
    source
        A fitted classifier, a :class:`~marginbn.SolveResult`, or its trace.
    log_time
        Whether the time axis is logarithmic.
    ax
        Axes to draw on.

    Examples
    --------
    >>> from marginbn import TracePoint
    >>> from marginbn.plotting import plot_trace
    >>> plot_trace([TracePoint(0.1, 90.0, 110.0), TracePoint(2.0, 99.0, 100.0)]).get_title()
    'gap 1.00 %'
    """
    trace = read_trace(source)
    ax = new_axes(ax)
    earliest = _MILLISECOND if log_time else 0.0  # zero has no place on a logarithmic axis
    seconds = [max(point.seconds, earliest) for point in trace]
    objective = [_or_nan(point.objective) for point in trace]
    bound = [_or_nan(point.bound) for point in trace]
    marker = "o" if len(trace) < 25 else None
    style: dict[str, Any] = {"where": "post", "marker": marker, "markersize": 4}
    ax.step(seconds, bound, color=AGAINST, label="bound", **style)
    ax.step(seconds, objective, color=FOR, label="objective", **style)
    ax.fill_between(seconds, objective, bound, step="post", color=GREY, alpha=0.2, linewidth=0)
    if log_time:
        _use_log_time(ax)
    ax.set_xlabel("seconds")
    ax.set_ylabel("nats")
    ax.set_title(f"gap {percent(trace[-1].gap)}", fontsize="medium")
    ax.legend()
    return ax


def _use_log_time(ax: Axes) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter(NullFormatter())


def _or_nan(value: float) -> float:
    """Unknown values are left out of the picture."""
    return value if math.isfinite(value) else math.nan


def plot_margins(
    log_margins: Any,
    X: Any = None,
    y: Any = None,
    *,
    gamma: float | None = None,
    bins: int = 40,
    ax: Axes | None = None,
) -> Axes:
    """Histogram of the log margins of the true class, gamma marked.

    Below zero a sample is misclassified; above gamma the soft margin gains nothing more.

    Parameters
    ----------
    log_margins
        A fitted classifier; or the margins themselves, one per sample, such as from
        :func:`marginbn.network.explain.log_margins` with true labels.
    X, y
        Rows and their labels, with a classifier.
    gamma
        Desired log margin, drawn as a line; None for that of the classifier, if it has one.
    bins
        Number of bins.
    ax
        Axes to draw on.

    Examples
    --------
    >>> from marginbn.plotting import plot_margins
    >>> ax = plot_margins([-0.5, 0.5, 1.5, 3.0], gamma=1.0)
    >>> ax.get_xlabel()
    'log margin of the true class (nats)'
    """
    if is_classifier(log_margins):
        require_rows("plot_margins", X, y)
        gamma = getattr(log_margins, "gamma_", None) if gamma is None else gamma
        log_margins = explain.log_margins(log_margins, X, y)
    margins = np.asarray(log_margins, dtype=np.float64).ravel()
    if not len(margins) or not np.isfinite(margins).all():
        raise InputError("log_margins must hold at least one number, and only finite ones")
    ax = new_axes(ax)
    edges = _edges(margins, bins)
    for part, colour, name in (
        (margins[margins < 0], AGAINST, "wrong"),
        (margins[margins >= 0], FOR, "right"),
    ):
        share = percent(len(part) / len(margins))
        ax.hist(part, bins=edges, color=colour, label=f"{name}: {share}")
    if gamma is not None:
        reached = percent(float((margins >= gamma).mean()))
        text = f"gamma = {gamma:.4g}, reached by {reached}"
        ax.axvline(gamma, color=GREY, linestyle="--", linewidth=1.6, label=text)
    ax.set_xlabel("log margin of the true class (nats)")
    ax.set_ylabel("samples")
    ax.legend()
    return ax


def _edges(margins: np.ndarray[tuple[int, ...], np.dtype[np.float64]], bins: int) -> list[float]:
    """Bin edges, one of which is zero, so that no bar is half right and half wrong."""
    low, high = min(float(margins.min()), 0.0), max(float(margins.max()), 0.0)
    width = (high - low) / bins or 1.0
    first, last = int(np.floor(low / width)), int(np.ceil(high / width))
    return [width * step for step in range(first, max(last, first + 1) + 1)]


class CalibrationBin(NamedTuple):
    """Samples of similar confidence."""

    confidence: float
    accuracy: float
    n_samples: int


def plot_calibration(
    labels: Any,
    probabilities: Any = None,
    classes: Any = None,
    *,
    n_bins: int = 10,
    ax: Axes | None = None,
) -> Axes:
    """Accuracy against confidence: on the diagonal probabilities mean what they say.

    Called as ``plot_calibration(clf, X, y)``, or with arrays.

    Parameters
    ----------
    labels
        A fitted classifier; or the true classes, (n,).
    probabilities
        The rows X; or what ``predict_proba`` gives for them, (n, n_classes).
    classes
        The labels y; or the label of each column.
    n_bins
        Bins of equal width between 0 and 1; the area of a dot is its number of samples, the bar
        a 95 % interval.
    ax
        Axes to draw on.

    Examples
    --------
    >>> from marginbn.plotting import plot_calibration
    >>> plot_calibration(["a", "b"], [[0.9, 0.1], [0.3, 0.7]], ["a", "b"]).get_title()
    '2 rows, mean calibration error 20.00 %'
    """
    if is_classifier(labels):
        require_rows("plot_calibration", probabilities, classes)
        clf, X, y = labels, probabilities, classes
        labels, probabilities, classes = read_target(y)[0], clf.predict_proba(X), clf.classes_
    bins = calibration_bins(labels, probabilities, classes, n_bins)
    ax = new_axes(ax, (4.8, 4.8))
    total = sum(b.n_samples for b in bins)
    error = sum(b.n_samples * abs(b.accuracy - b.confidence) for b in bins) / total
    ax.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1)
    x, y = np.array([b.confidence for b in bins]), np.array([b.accuracy for b in bins])
    half = np.array([binomial_interval(b.accuracy, b.n_samples) for b in bins])
    low, high = np.maximum(y - half, 0.0), np.minimum(y + half, 1.0)
    ax.errorbar(x, y, yerr=[y - low, high - y], fmt="none", ecolor=GREY, capsize=3)
    ax.scatter(x, y, s=[30 + 270 * b.n_samples / total for b in bins], color=FOR, zorder=3)
    ax.set_xlim(min(x.min(), 0.5) - 0.04, 1.04)
    ax.set_ylim(min(low.min(), 0.5) - 0.04, 1.04)
    ax.set_xlabel("mean probability of the predicted class")
    ax.set_ylabel("share of right predictions")
    ax.set_title(
        f"{counted(total, 'row')}, mean calibration error {percent(error)}", fontsize="medium"
    )
    return ax


def calibration_bins(
    labels: ArrayLike,
    probabilities: ArrayLike,
    classes: Sequence[Any] | NDArray[Any],
    n_bins: int = 10,
) -> list[CalibrationBin]:
    """Mean confidence and accuracy of the samples in each bin that is not empty."""
    if classes is None:
        raise InputError("classes must hold the label of each column of probabilities, got None")
    truth, shares = np.asarray(labels), np.asarray(probabilities, dtype=np.float64)
    if not len(truth) or shares.shape != (len(truth), len(classes)):
        raise InputError(
            f"probabilities must have shape (n labels, n classes) with n > 0, "
            f"({len(truth)}, {len(classes)}), got {shares.shape}"
        )
    predicted = np.asarray(classes)[shares.argmax(axis=1)].astype(str)
    right, confidence = predicted == truth.astype(str), shares.max(axis=1)
    places = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    return [
        CalibrationBin(float(confidence[at].mean()), float(right[at].mean()), int(at.sum()))
        for at in (places == place for place in np.unique(places))
    ]


def plot_confusion(
    labels: Any,
    predicted: Any = None,
    classes: Any = None,
    *,
    ax: Axes | None = None,
) -> Axes:
    """How often each true class (row) was predicted as each class (column).

    Numbers are counts, shades shares of the row. Called as ``plot_confusion(clf, X, y)``, or with
    arrays.

    Parameters
    ----------
    labels
        A fitted classifier; or the true classes, (n,).
    predicted
        The rows X; or the predicted classes, (n,), which are compared as text.
    classes
        The labels y; or the order of the classes, by default all that occur, sorted.
    ax
        Axes to draw on.

    Examples
    --------
    >>> from marginbn.plotting import plot_confusion
    >>> plot_confusion(["a", "b", "b"], ["a", "b", "b"]).get_title()
    'accuracy 100.00 %'
    """
    if is_classifier(labels):
        require_rows("plot_confusion", predicted, classes)
        clf, X, y = labels, predicted, classes
        labels, predicted = read_target(y)[0], clf.predict(X)
        known = {*clf.classes_.tolist(), *labels.tolist()}
        classes = sorted(known, key=lambda c: (c not in clf.classes_, c))
    counts, names = confusion_counts(labels, predicted, classes)
    side = 2.2 + 0.42 * min(len(names), 30)
    ax = new_axes(ax, (side + 0.6, side))
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    image = ax.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0)
    marks = [label(name, 16) for name in names]
    ax.set_yticks(range(len(names)), labels=marks)
    ax.set_xticks(range(len(names)), labels=marks)
    if max(map(len, marks)) > 4:
        turn_labels(ax)
    if len(names) <= _MOST_CLASSES:
        write_numbers(ax, shares, counts)
    else:
        ax.figure.colorbar(image, ax=ax, label="share of the true class", shrink=0.7)
    ax.set_xlabel("predicted")
    ax.set_ylabel("true")
    ax.set_title(f"accuracy {percent(accuracy(predicted, labels))}", fontsize="medium")
    return ax


def confusion_counts(
    labels: ArrayLike,
    predicted: ArrayLike,
    classes: Sequence[Any] | NDArray[Any] | None = None,
) -> tuple[NDArray[np.int64], list[str]]:
    """Counts (true, predicted) and the names of the classes."""
    truth, guesses = np.asarray(labels).astype(str), np.asarray(predicted).astype(str)
    if truth.shape != guesses.shape or truth.ndim != 1 or not len(truth):
        raise InputError(
            f"labels and predicted must be equally long and not empty, got {truth.shape} "
            f"and {guesses.shape}"
        )
    names = np.union1d(truth, guesses).tolist() if classes is None else [str(c) for c in classes]
    places = {name: k for k, name in enumerate(names)}
    unknown = sorted({*truth.tolist(), *guesses.tolist()} - set(names))
    if unknown:
        raise InputError(f"classes must hold every label, but {unknown[0]!r} is not among them")
    counts = np.zeros((len(names), len(names)), dtype=np.int64)
    np.add.at(counts, ([places[t] for t in truth], [places[g] for g in guesses]), 1)
    return counts, names
