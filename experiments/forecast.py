"""Class posteriors and how good they are: what the accuracy comparison asks of every method.

Let p_nk be a method's posterior of class k for test row n, and y_n the true class. With

    q_nk = max(p_nk, 1e-15) / sum_j max(p_nj, 1e-15)

    accuracy   share of rows with argmax_k p_nk = y_n, ties to the first class
    log loss   mean over rows of -log q_n,y_n
    Brier      mean over rows of sum_k (q_nk - [y_n = k])^2        (between 0 and 2)

The clipping is the same for all methods, so that a method which calls the truth impossible pays
34.5 nats for the row and no more. Classes that the training rows lack have p = 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.encoding import Matrix
from experiments.outcome import Labels
from marginbn import Table

SMALLEST = 1e-15


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted method.

    Parameters
    ----------
    classes
        The classes it knows, str (n_classes,).
    answer
        Table -> posterior, float (n_rows, n_classes); or, where ``gives_labels``, the classes
        themselves, str (n_rows,).
    chosen
        Settings that were chosen by validation, as JSON values.
    notes
        Savings of time, where there were any.
    gives_labels
        True for a method without probabilities: it has an accuracy and nothing else.
    """

    classes: Labels
    answer: Callable[[Table], Any]
    chosen: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    gives_labels: bool = False


def judge(fitted: Fitted, answer: Any, truth: Labels) -> dict[str, float | None]:
    """accuracy, log_loss and brier of an answer; the last two None where it has labels only."""
    if fitted.gives_labels:
        return {"accuracy": float(np.mean(answer == truth)), "log_loss": None, "brier": None}
    classes = np.union1d(fitted.classes, truth)
    posterior = np.zeros((len(truth), len(classes)))
    posterior[:, np.searchsorted(classes, fitted.classes)] = answer
    true_class = np.searchsorted(classes, truth)
    clipped = clip(posterior)
    return {
        "accuracy": float(np.mean(posterior.argmax(axis=1) == true_class)),
        "log_loss": log_loss(clipped, true_class),
        "brier": brier(clipped, true_class),
    }


def clip(posterior: Matrix) -> Matrix:
    """No probability below SMALLEST, and rows that sum to one."""
    raised = np.maximum(posterior, SMALLEST)
    clipped: Matrix = raised / raised.sum(axis=1, keepdims=True)
    return clipped


def log_loss(posterior: Matrix, true_class: NDArray[np.intp]) -> float:
    return float(-np.log(posterior[np.arange(len(true_class)), true_class]).mean())


def brier(posterior: Matrix, true_class: NDArray[np.intp]) -> float:
    distance = posterior.copy()
    distance[np.arange(len(true_class)), true_class] -= 1
    return float((distance**2).sum(axis=1).mean())
