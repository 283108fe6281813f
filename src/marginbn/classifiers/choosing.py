"""Choosing a setting by what networks say about held-out rows.

Every setting is judged on every held-out part by the weighted mean of a number per row (larger is
better). With p_c the posterior of class c and y the true class:

    accuracy      1 if p_y is the largest posterior, else 0
    log_loss      log p_y, that is: the negative log loss

The best mean over the parts is chosen. Scorers of scikit-learn work by their name or as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbn.exceptions import InputError

FloatArray = NDArray[np.float64]
RowScore = Callable[[FloatArray, NDArray[np.intp]], FloatArray]
"""(log posteriors (n, n_classes), true class or -1 for one never learned) -> (n,)"""

SMALLEST_LOG = math.log(np.finfo(np.float64).eps)
"""Log posteriors count no less than this, as in scikit-learn: one row must not outweigh all."""
_TIE = 1e-12  # scores that differ by less are equal: they are means of the same numbers


def accuracy_of_rows(log_posterior: FloatArray, truth: NDArray[np.intp]) -> FloatArray:
    """1 where the most probable class (the first of equals) is the true one."""
    hits: FloatArray = (log_posterior.argmax(axis=1) == truth).astype(np.float64)
    return hits


def log_posterior_of_truth(log_posterior: FloatArray, truth: NDArray[np.intp]) -> FloatArray:
    """log p_y of every row."""
    values = log_posterior[np.arange(len(truth)), truth]
    return np.maximum(np.where(truth < 0, -np.inf, values), SMALLEST_LOG)


SCORINGS: dict[str, RowScore] = {
    "accuracy": accuracy_of_rows,
    "log_loss": log_posterior_of_truth,
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


def choose(means: FloatArray, settings: Sequence[tuple[int, float]]) -> int:
    """Index of the setting (max_parents, gamma) of largest mean score.

    Ties go to fewer parents, then to the larger gamma.
    """
    best = means.max()
    near = np.flatnonzero(means >= best - _TIE * max(1.0, abs(best)))
    return min(map(int, near), key=lambda s: (settings[s][0], -settings[s][1]))
