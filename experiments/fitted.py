"""What a method is once it has learned, and how good its answers are.

Let p_nk be a method's posterior of class k for test row n, and y_n the true class. With

    q_nk = max(p_nk, 1e-15) / sum_j max(p_nj, 1e-15)

    accuracy   share of rows whose label is y_n: argmax_k p_nk, ties to the first class
    log loss   mean over rows of -log q_n,y_n
    Brier      mean over rows of sum_k (q_nk - [y_n = k])^2        (between 0 and 2)

The clipping is the same for all methods, so that a method which calls the truth impossible pays
34.5 nats for the row and no more. Classes that the training rows lack have p = 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.significance import paper_gap
from marginbn.data.table import Table
from marginbn.solvers import Status

SMALLEST = 1e-15
TRACE_POINTS = 60

Labels = NDArray[np.str_]
Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted method.

    Parameters
    ----------
    classes
        The classes it knows, str (n_classes,).
    answer
        Table -> posterior, float (n_rows, n_classes); None where nothing is predicted.
    label
        Table -> classes, str (n_rows,), for a method whose labels are not the posterior's largest.
    chosen, validation
        Settings that were chosen by validation, and the score of every setting in every inner
        split, as JSON values.
    search
        How the structure search ended.
    notes
        Savings of time, where there were any.
    model
        The object that answers, for those who count its parameters; None where there is none.
    """

    classes: Labels
    answer: Callable[[Table], Matrix] | None
    label: Callable[[Table], Labels] | None = None
    chosen: dict[str, Any] = field(default_factory=dict)
    validation: list[dict[str, Any]] = field(default_factory=list)
    search: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    model: Any = None

    def predict(self, table: Table) -> tuple[Matrix, Labels]:
        """Posterior and label of every row."""
        assert self.answer is not None
        posterior = np.asarray(self.answer(table), dtype=float)
        if self.label is not None:
            return posterior, self.label(table)
        return posterior, self.classes[posterior.argmax(axis=1)]


def judge(classes: Labels, posterior: Matrix, labels: Labels, truth: Labels) -> dict[str, float]:
    """accuracy, log_loss and brier of an answer."""
    every = np.union1d(classes, truth)
    wide = np.zeros((len(truth), len(every)))
    wide[:, np.searchsorted(every, classes)] = posterior
    true_class = np.searchsorted(every, truth)
    clipped = clip(wide)
    return {
        "accuracy": float(np.mean(labels == truth)),
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


# --- small steps that methods share ---


def require_finished(classifier: Any) -> None:
    """Ctrl-C ends a search kindly, with its best structure; a record must not be made of that."""
    if getattr(classifier, "status_", None) == Status.INTERRUPTED:
        raise KeyboardInterrupt


def describe_search(classifier: Any, *, trace: bool = False) -> dict[str, Any]:
    """Objective, bound and the like as JSON values; parents by variable, the class first."""
    require_finished(classifier)
    result = classifier.result_
    told = {
        "objective": result.objective,
        "bound": result.bound,
        "gap": result.gap,
        "paper_gap": paper_gap(result.objective, result.bound),
        "status": str(result.status),
        "solver": result.solver,
        "nodes": result.nodes,
        "seconds": round(result.seconds, 3),
        "parents": [list(p) for p in result.structure.parents],
    }
    if trace:
        told["trace"] = thin([[round(t.seconds, 3), t.objective, t.bound] for t in result.trace])
    return told


def thin(points: list[Any], most: int = TRACE_POINTS) -> list[Any]:
    """At most so many of the points, first and last included."""
    if len(points) <= most:
        return points
    step = (len(points) - 1) / (most - 1)
    return [points[round(i * step)] for i in range(most)]


def best_setting(entries: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Highest mean score over the inner splits; ties go to the first."""
    return max(entries, key=lambda entry: sum(entry["scores"]) / len(entry["scores"]))


def short(score: Any) -> float:
    """Six digits: enough to tell any two counts of rows apart, and records stay small."""
    return round(float(score), 6)
