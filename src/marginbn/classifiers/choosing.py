"""Choosing a setting by what networks say about rows they have not seen.

Every setting is judged on every held-out part by the weighted mean of a number per row (larger is
better). With p_c the posterior of class c and y the true class:

    accuracy      1 if p_y is the largest posterior, else 0
    log_loss      log p_y, that is: the negative log loss
    ramp_margin   log p_y - log of the largest other posterior, clipped to +-log 9

A rule makes a choice of these means: the best mean over the parts, the best mean over all held-out
rows (pooled), or the simplest setting within one standard error of the best. scikit-learn's scorers
take part by their name or as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginbn.exceptions import InputError

FloatArray = NDArray[np.float64]
RowScore = Callable[[FloatArray, NDArray[np.intp]], FloatArray]
"""(log posteriors (n, n_classes), true class or -1 for one never learned) -> (n,)"""

SMALLEST_LOG = math.log(np.finfo(np.float64).eps)
"""Log posteriors count no less than this, as in scikit-learn: one row must not outweigh all."""
RAMP = math.log(9.0)
"""Margins of a posterior of 0.9 against 0.1 and beyond count the same."""
_TIE = 1e-12  # scores that differ by less are equal: they are means of the same numbers


def accuracy_of_rows(log_posterior: FloatArray, truth: NDArray[np.intp]) -> FloatArray:
    """1 where the most probable class (the first of equals) is the true one."""
    hits: FloatArray = (log_posterior.argmax(axis=1) == truth).astype(np.float64)
    return hits


def log_posterior_of_truth(log_posterior: FloatArray, truth: NDArray[np.intp]) -> FloatArray:
    """log p_y of every row."""
    values = log_posterior[np.arange(len(truth)), truth]
    return np.maximum(np.where(truth < 0, -np.inf, values), SMALLEST_LOG)


def ramp_margin(log_posterior: FloatArray, truth: NDArray[np.intp]) -> FloatArray:
    """Log margin of the true class against its strongest rival, clipped."""
    rows = np.arange(len(truth))
    rivals = log_posterior.copy()
    rivals[rows, truth] = -np.inf
    with np.errstate(invalid="ignore"):  # a single class has no rival: inf
        margin = log_posterior[rows, truth] - rivals.max(axis=1)
    return np.clip(np.where(truth < 0, -np.inf, margin), -RAMP, RAMP)


class Scoring(NamedTuple):
    """What is measured on every row, and the rule that chooses by it."""

    of_rows: RowScore
    pooled: bool = False
    standard_errors: float = 0.0


SCORINGS: dict[str, Scoring] = {
    "accuracy": Scoring(accuracy_of_rows),
    "pooled_accuracy": Scoring(accuracy_of_rows, pooled=True),
    "log_loss": Scoring(log_posterior_of_truth),
    "ramp_margin": Scoring(ramp_margin),
    "one_standard_error": Scoring(accuracy_of_rows, standard_errors=1.0),
}


def scorer_names() -> list[str]:
    """Names that scikit-learn knows; asked for when needed, because its metrics load slowly."""
    from sklearn.metrics import get_scorer_names

    return [*get_scorer_names()]


def check_scoring(name: str, value: Any) -> None:
    """Refuse anything but a scoring of this module or of scikit-learn, or a callable."""
    if callable(value) or (isinstance(value, str) and value in SCORINGS):
        return
    if not isinstance(value, str) or value not in scorer_names():
        raise InputError(
            f"{name} must be one of {sorted(SCORINGS)}, the name of a scikit-learn scorer, or "
            f"a callable (estimator, X, y) -> number, got {value!r}"
        )


def scorer_of(scoring: Any) -> Callable[..., float]:
    """A scorer of scikit-learn by its name, or as it is."""
    from sklearn.metrics import get_scorer

    found: Callable[..., float] = scoring if callable(scoring) else get_scorer(scoring)
    return found


def class_codes(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.intp]:
    """Place of each label among the sorted classes, -1 where it is none of them."""
    place = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    return np.where(classes[place] == labels, place, -1).astype(np.intp)


@dataclass(frozen=True)
class HeldOut:
    """Scores of all settings on all held-out parts.

    Parameters
    ----------
    scores
        float64 (n_settings, n_parts).
    weights
        float64 (n_parts,), total weight of the rows of each part.
    n_rows
        Number of rows of all parts.
    """

    scores: FloatArray
    weights: FloatArray
    n_rows: int

    def means(self, pooled: bool = False) -> FloatArray:
        """Mean of the parts, or of all their rows."""
        means: FloatArray = np.average(
            self.scores, axis=1, weights=self.weights if pooled else None
        )
        return means

    def standard_error(self, setting: int) -> float:
        """Of the mean accuracy: over the parts; with a single part, that of a share of its rows."""
        own = self.scores[setting]
        if len(own) > 1:
            return float(own.std(ddof=1) / math.sqrt(len(own)))
        return math.sqrt(own[0] * (1.0 - own[0]) / self.n_rows)


def choose(held_out: HeldOut, rule: Scoring, settings: list[tuple[int, float]]) -> int:
    """Index of the setting (max_parents, gamma) that the rule takes.

    Ties go to fewer parents, then to the larger gamma; so does the rule of the standard error.
    """
    means = held_out.means(rule.pooled)
    best = int(means.argmax())
    room = _TIE * max(1.0, abs(means[best]))
    if rule.standard_errors:
        room += rule.standard_errors * held_out.standard_error(best)
    near = np.flatnonzero(means >= means[best] - room)
    return min(map(int, near), key=lambda s: (settings[s][0], -settings[s][1]))
