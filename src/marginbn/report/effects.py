"""What each state of a feature does to the log odds of each class, with counts and a band.

**The effect.** The classifier is told one feature and nothing else. The log odds of class c against
all other classes then move by

    effect(c, s) = log P(c | x = s) / P(not c | x = s)  -  log P(c) / P(not c),

which is the weight of evidence of credit scoring, log P(s | c) / P(s | not c). 0.69 doubles the
odds. It is the classifier's own answer, whatever its structure and its parameters.

**The band.** With n rows, N(c, s) of them of class c and in state s, the counted effect is

    log P~(s | c) - log P~(s | not c),   P~(s | c) = (N(c, s) + 1) / (N(c) + S),

where P~(s | not c) is the mean of P~(s | c') over the other classes by their shares, and S the
number of states. Rows drawn again with replacement have counts that are multinomial with the shares
N(c, s) / n, so the bootstrap needs no rows: the band holds the middle 95 % of the effects of
:data:`REPLICATES` such tables of counts. A line outside the band says that the network sees the
feature otherwise than the rows do. Fine bins of a number hold too few rows each to say anything:
they are counted in runs of neighbours with about as many rows, and share the band of their run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from marginbn.classifiers import BaseBNClassifier
from marginbn.data.encode import Coding
from marginbn.data.labelled import LabelledTable
from marginbn.exceptions import ProblemTooLargeError
from marginbn.problem.encoded import with_class_column

FloatArray = NDArray[np.float64]

REPLICATES = 400
"""Tables of counts that are drawn for a band."""

_FINE, _RUNS = 15, 10
"""A number with more bins than the first is counted in as many runs as the second."""

_BAND = (2.5, 97.5)
_SMOOTHING = 1.0
_LARGEST = 30.0
"""Effects beyond are shown as this: a probability of zero has no logarithm."""


@dataclass(frozen=True, eq=False)
class Effect:
    """One feature.

    Parameters
    ----------
    variable
        Its index in the network.
    values
        float64 (n_states, n_classes): how the log odds of each class move.
    counts
        int64 (n_states,): rows in each state; None without rows.
    low, high
        The band, of the shape of ``values``; None without rows.
    """

    variable: int
    values: FloatArray
    counts: NDArray[np.int64] | None = None
    low: FloatArray | None = None
    high: FloatArray | None = None


def measure_effects(
    classifier: BaseBNClassifier, rows: LabelledTable | None = None
) -> tuple[Effect, ...] | None:
    """Effects of all features; None where the classifier's answers are too much to compute."""
    if len(classifier.classes_) < 2:
        return None
    try:
        values = _told_one_feature(classifier)
    except ProblemTooLargeError:
        return None
    if rows is None:
        return tuple(Effect(i, value) for i, value in enumerate(values, start=1))
    tables = count_by_class(classifier, rows)
    return tuple(
        Effect(i, value, table.sum(axis=0), *_band_of_runs(table, coding, seed=i))
        for i, (value, table, coding) in enumerate(
            zip(values, tables, classifier.coding_.columns, strict=True), start=1
        )
    )


def _band_of_runs(
    counts: NDArray[np.int64], coding: Coding, seed: int
) -> tuple[FloatArray, FloatArray]:
    """The band of each state, or of the run that a fine bin belongs to."""
    n_bins = len(coding.cuts) + 1 if coding.kind == "numeric" else 0
    if n_bins <= _FINE:
        return band(counts, seed)
    run_of = runs_of(counts[:, :n_bins].sum(axis=0))
    run_of = np.append(run_of, run_of[-1] + 1 + np.arange(counts.shape[1] - n_bins))
    starts = np.flatnonzero(np.diff(run_of, prepend=-1))
    low, high = band(np.add.reduceat(counts, starts, axis=1), seed)
    return low[run_of], high[run_of]


def runs_of(rows: NDArray[np.int64]) -> NDArray[np.intp]:
    """Number of the run of each bin: at most :data:`_RUNS`, about equal in rows, counted from 0.

    Examples
    --------
    >>> runs_of(np.array([5] * 20)).tolist()
    [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9]
    """
    before = np.cumsum(rows) - rows
    places = np.minimum(before * _RUNS // max(int(rows.sum()), 1), _RUNS - 1)
    numbered: NDArray[np.intp] = np.unique(places, return_inverse=True)[1].reshape(-1)
    return numbered


def _told_one_feature(classifier: BaseBNClassifier) -> list[FloatArray]:
    """By feature: effects (n_states, n_classes) as the classifier itself answers."""
    arities = classifier.network_.arities
    places = [(i, s) for i in range(1, len(arities)) for s in range(arities[i])]
    states = np.full((len(places) + 1, len(arities) - 1), -1, dtype=np.int32)
    for row, (i, state) in enumerate(places):
        states[row, i - 1] = state
    codes = with_class_column(classifier.codes_of_states(states))
    odds = log_odds(classifier.log_joint_of_codes(codes))
    with np.errstate(invalid="ignore"):
        effects = np.clip(np.nan_to_num(odds[:-1] - odds[-1]), -_LARGEST, _LARGEST)
    ends = np.cumsum(arities[1:])[:-1]
    return list(np.split(effects, ends))


def log_odds(log_joint: FloatArray) -> FloatArray:
    """Each class against the rest, of log P(c, known) up to a constant per row, (n, n_classes)."""
    n_classes = log_joint.shape[1]
    rest = [logsumexp(np.delete(log_joint, c, axis=1), axis=1) for c in range(n_classes)]
    with np.errstate(invalid="ignore"):  # a state that no class has
        odds: FloatArray = log_joint - np.stack(rest, axis=1)
    return odds


def count_by_class(classifier: BaseBNClassifier, rows: LabelledTable) -> list[NDArray[np.int64]]:
    """By feature: rows (n_classes, n_states); rows of unknown classes or states are not counted."""
    codes = classifier.encode(rows.features)
    place = {str(label): c for c, label in enumerate(classifier.classes_.tolist())}
    classes = np.array([place.get(str(label), -1) for label in rows.labels.tolist()])
    tables = []
    for i, arity in enumerate(classifier.network_.arities[1:]):
        known = (classes >= 0) & (codes[:, i] >= 0)
        cells = classes[known] * arity + codes[known, i]
        counted = np.bincount(cells, minlength=len(place) * arity)
        tables.append(counted.reshape(len(place), arity).astype(np.int64))
    return tables


def counted_effect(counts: NDArray[np.integer]) -> FloatArray:
    """Effects (..., n_states, n_classes) of counts (..., n_classes, n_states)."""
    smoothed = counts + _SMOOTHING
    given = smoothed / smoothed.sum(axis=-1, keepdims=True)  # P(s | c)
    joint = given * counts.sum(axis=-1, keepdims=True)
    others = joint.sum(axis=-2, keepdims=True) - joint
    weights = counts.sum(axis=(-2, -1), keepdims=True) - counts.sum(axis=-1, keepdims=True)
    rest = np.divide(others, weights, out=np.ones_like(joint), where=weights > 0)
    effects: FloatArray = np.swapaxes(np.log(given) - np.log(np.maximum(rest, 1e-300)), -1, -2)
    return effects


def band(counts: NDArray[np.int64], seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Lower and upper end (n_states, n_classes) of the band around the counted effects."""
    total = int(counts.sum())
    if total == 0:
        flat = np.zeros(counts.shape[::-1])
        return flat, flat
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(total, counts.ravel() / total, size=REPLICATES)
    effects = counted_effect(drawn.reshape(-1, *counts.shape))
    low, high = np.percentile(effects, _BAND, axis=0)
    return low, high


def strongest_states(effect: Effect, c: int) -> tuple[int, int]:
    """The states that speak most for and most against a class; rare ones speak less.

    A state counts by its effect times the square root of its rows, as far as rows are known.
    """
    weight = 1.0 if effect.counts is None else np.sqrt(effect.counts)
    said = effect.values[:, c] * weight
    return int(said.argmax()), int(said.argmin())


def effect_values(effects: Sequence[Effect]) -> list[dict[str, object]]:
    """For the page: numbers of each feature, rounded to what can be seen."""
    return [
        {
            "values": _rounded(e.values.T),
            "low": None if e.low is None else _rounded(e.low.T),
            "high": None if e.high is None else _rounded(e.high.T),
            "counts": None if e.counts is None else e.counts.tolist(),
        }
        for e in effects
    ]


def _rounded(numbers: FloatArray) -> list[list[float]]:
    rounded: list[list[float]] = np.round(numbers, 3).tolist()
    return rounded
