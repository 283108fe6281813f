"""What each value of a feature, known alone, makes of the probability of each class.

**The effect.** P(c | x = s) is the classifier's answer when one feature is known and nothing else.
It is the number that ``posterior`` and the page give for the same question.

**Points** are the feature importances (:func:`marginbn.network.explain.influence`);
the page lists features in this order.

**The band** is the 95 % interval of Wilson for the share of class c among the rows in state s. Rows
are those given; without rows, their number is n P(s) and the share P(c | s).

**The axis** of a number reaches from its 1 % to its 99 % quantile, and the density has
:data:`BARS` columns of equal width. Without rows both come from the cells of the trained tables, or
from the bins of the network.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from marginbn.classifiers import BaseBNClassifier
from marginbn.data.columns import Column
from marginbn.data.labelled import LabelledTable
from marginbn.data.table import Table
from marginbn.exceptions import ProblemTooLargeError
from marginbn.network.explain import influence
from marginbn.network.wording import name_group
from marginbn.problem.array_types import FloatArray
from marginbn.problem.encoded import count_states

BARS = 40
"""Columns of a density."""

MOST_GROUPS = 8
"""States that a card shows; more bins of a number are shown in runs of neighbours."""

_Z = 1.96
"""Standard deviations on each side of the mean that hold 95 % of a normal distribution."""


class Group(TypedDict):
    """A line of a card: its name, and the states that it sums up."""

    name: str
    states: list[int]


@dataclass(frozen=True, eq=False)
class Axis:
    """Values of a number: both ends of the axis, and the height of each column, at most 1."""

    low: float
    high: float
    heights: FloatArray


@dataclass(frozen=True, eq=False)
class Effect:
    """One feature.

    Parameters
    ----------
    variable
        Its index in the network.
    joint
        float64 (n_classes, n_states): P(c, s).
    counts
        float64 (n_classes, n_states): rows, counted or expected.
    axis
        None for categories and for a number without a cut.
    """

    variable: int
    joint: FloatArray
    counts: FloatArray
    axis: Axis | None = None

    @property
    def values(self) -> FloatArray:
        """P(c | s), (n_classes, n_states)."""
        shares: FloatArray = self.joint / np.maximum(self.joint.sum(axis=0), 1e-300)
        return shares

    @property
    def points(self) -> float:
        """How far knowing the feature alone moves the probabilities on average."""
        return influence(self.joint)

    @property
    def band(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper ends, of the shape of ``values``."""
        return wilson(self.counts, self.counts.sum(axis=0))


def wilson(hits: FloatArray, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The 95 % interval of a share; all of [0, 1] where there is no row.

    Examples
    --------
    >>> [float(end.round(3)) for end in wilson(np.array(8.0), np.array(10.0))]
    [0.49, 0.943]
    """
    n = np.maximum(rows, 1e-9)
    share, weight = hits / n, _Z**2 / n
    centre, scale = share + weight / 2, 1 + weight
    half = np.sqrt(weight * share * (1 - share) + weight**2 / 4)
    return (centre - half) / scale, (centre + half) / scale


def measure_effects(
    classifier: BaseBNClassifier, rows: LabelledTable | None = None
) -> tuple[Effect, ...] | None:
    """Effects of all features; None with one class, or where there is too much to compute."""
    network = classifier.network_
    if network.n_classes < 2:
        return None
    try:
        joints = [network.posterior_array([0, i]) for i in range(1, network.n_variables)]
    except ProblemTooLargeError:
        return None
    counts = [classifier.n_samples_ * joint for joint in joints]
    columns: Sequence[Column | None] = [None] * len(joints)
    if rows is not None:
        prepared = classifier.prepare(rows.features)
        if not is_weighted(classifier):  # a band of counted rows would miss the curve
            counts = count_by_class(classifier, prepared, rows.labels)
        columns = prepared.columns
    return tuple(
        Effect(i + 1, joint, count, _axis(classifier, i, joint, column))
        for i, (joint, count, column) in enumerate(zip(joints, counts, columns, strict=True))
    )


def is_weighted(classifier: BaseBNClassifier) -> bool:
    """Whether some training rows counted more than others, as far as the model knows."""
    weight, n_rows = classifier.evidence_.total_weight, classifier.n_samples_
    return classifier.class_weight is not None or (
        weight is not None and not math.isclose(weight, n_rows, rel_tol=1e-9)
    )


def count_by_class(
    classifier: BaseBNClassifier, prepared: Table, labels: NDArray[Any]
) -> list[FloatArray]:
    """By feature: rows (n_classes, n_states); rows of unknown classes or states are not counted."""
    codes = classifier.coding_.encode(prepared)
    place = {str(label): c for c, label in enumerate(classifier.classes_.tolist())}
    classes = np.array([place.get(str(label), -1) for label in labels.tolist()])
    tables = []
    for i, arity in enumerate(classifier.network_.arities[1:]):
        known = (classes >= 0) & (codes[:, i] >= 0)
        tables.append(count_states((classes[known], codes[known, i]), (len(place), int(arity))))
    return tables


def _axis(
    classifier: BaseBNClassifier, i: int, joint: FloatArray, column: Column | None
) -> Axis | None:
    cuts = classifier.coding_.columns[i].cuts
    if not cuts:
        return None
    if column is not None and not column.missing.all():
        return axis_of_numbers(column.numbers[~column.missing], cuts)
    weights, model = joint.sum(axis=0), classifier.class_model_
    if model is not None:
        cells = model.design.cells.features[i]
        cuts, weights = cells.coding.cuts, np.array(cells.weights)
    return axis_of_bins(cuts, weights[: len(cuts) + 1])


def axis_of_numbers(numbers: FloatArray, cuts: Sequence[float]) -> Axis:
    """The axis of numbers that are known; whole numbers of a small range have a column each."""
    low, high = np.quantile(numbers, [0.01, 0.99]).tolist()
    low, high = min(low, cuts[0]), max(high, cuts[-1])
    n_bars = BARS
    if high - low <= 2 * BARS and (numbers == np.floor(numbers)).all():
        low, high = np.floor(low) - 0.5, np.ceil(high) + 0.5
        n_bars = round(high - low)
    if high == low:
        low, high = low - 0.5, high + 0.5
    heights = np.histogram(numbers, n_bars, (low, high))[0]
    return Axis(low, high, heights / max(heights.max(), 1))


def axis_of_bins(cuts: Sequence[float], weights: FloatArray) -> Axis:
    """The axis of bins; the outer ones are as wide as their neighbours."""
    inner = np.diff(cuts) if len(cuts) > 1 else np.array([max(abs(cuts[0]), 1.0)])
    edges = np.array([cuts[0] - inner[0], *cuts, cuts[-1] + inner[-1]])
    reached = np.append(0.0, np.cumsum(weights))
    grid = np.linspace(edges[0], edges[-1], BARS + 1)
    heights = np.diff(np.interp(grid, edges, reached))
    return Axis(float(edges[0]), float(edges[-1]), heights / max(heights.max(), 1e-300))


def group_states(states: Sequence[str], shares: FloatArray, n_bins: int) -> list[Group]:
    """At most :data:`MOST_GROUPS` lines for a card: names, and the states of each.

    The first ``n_bins`` states are bins of a number: neighbours of the smallest shares are joined.
    The most frequent categories have a line of their own.

    Examples
    --------
    >>> group_states(list("abcdefghij"), np.full(10, 0.1), 0)[-1]
    {'name': '3 others', 'states': [7, 8, 9]}
    """
    n_states = len(states)
    if n_states <= MOST_GROUPS:
        return [{"name": state, "states": [s]} for s, state in enumerate(states)]
    if n_bins == 0:
        order = np.argsort(-shares, kind="stable").tolist()
        first, others = sorted(order[: MOST_GROUPS - 1]), sorted(order[MOST_GROUPS - 1 :])
        lines: list[Group] = [{"name": states[s], "states": [s]} for s in first]
        return [*lines, {"name": f"{len(others)} others", "states": others}]
    runs, total = [[s] for s in range(n_bins)], shares[:n_bins].tolist()
    while len(runs) > MOST_GROUPS - (n_states - n_bins):
        k = min(range(len(runs) - 1), key=lambda k: total[k] + total[k + 1])
        runs[k : k + 2], total[k : k + 2] = [runs[k] + runs[k + 1]], [total[k] + total[k + 1]]
    groups = runs + [[s] for s in range(n_bins, n_states)]
    return [{"name": name_group([states[s] for s in g]), "states": g} for g in groups]


def effect_values(effects: Sequence[Effect]) -> list[dict[str, object]]:
    """For the page: numbers of each feature, rounded to what can be seen."""
    return [
        {
            "points": e.points,
            "values": np.round(e.values, 6).tolist(),
            "low": np.round(e.band[0], 4).tolist(),
            "high": np.round(e.band[1], 4).tolist(),
            "counts": np.round(e.counts.sum(axis=0)).astype(int).tolist(),
            "axis": None
            if e.axis is None
            else [e.axis.low, e.axis.high, np.round(e.axis.heights, 3).tolist()],
        }
        for e in effects
    ]
