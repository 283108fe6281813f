"""What a method did, and the small steps that all methods share."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from marginbn import Status, Table, paper_gap

TRACE_POINTS = 60

Labels = NDArray[np.str_]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a method did.

    ``validation`` has one entry per setting with its score in every inner split; ``search`` tells
    how the structure search ended; ``notes`` name any saving of time.
    """

    predicted: Labels | None
    chosen: dict[str, Any] = field(default_factory=dict)
    validation: list[dict[str, Any]] = field(default_factory=list)
    search: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


class Classifier(Protocol):
    """What validation needs of a method."""

    def fit(self, X: Any, y: Any) -> Any: ...
    def predict(self, X: Any) -> Any: ...


class Stopwatch:
    """Seconds of the named stages, one after the other."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.seconds[stage] = now - self._last
        self._last = now


def require_finished(classifier: Any) -> None:
    """Ctrl-C ends a search kindly, with its best structure; a record must not be made of that."""
    if getattr(classifier, "status_", None) == Status.INTERRUPTED:
        raise KeyboardInterrupt


def describe_search(classifier: Any) -> dict[str, Any]:
    """Objective, bound and the like as JSON values; parents by variable, the class first."""
    require_finished(classifier)
    result = classifier.result_
    return {
        "objective": result.objective,
        "bound": result.bound,
        "gap": result.gap,
        "paper_gap": paper_gap(result.objective, result.bound),
        "status": str(result.status),
        "solver": result.solver,
        "nodes": result.nodes,
        "seconds": result.seconds,
        "parents": [list(p) for p in result.structure.parents],
        "trace": thin([[round(t.seconds, 3), t.objective, t.bound] for t in result.trace]),
    }


def thin(points: list[Any]) -> list[Any]:
    """At most TRACE_POINTS of the points, first and last included."""
    if len(points) <= TRACE_POINTS:
        return points
    step = (len(points) - 1) / (TRACE_POINTS - 1)
    return [points[round(i * step)] for i in range(TRACE_POINTS)]


def best_setting(entries: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Highest mean score over the inner splits; ties go to the first."""
    return max(entries, key=lambda entry: sum(entry["scores"]) / len(entry["scores"]))


def score(
    classifier: Classifier,
    table: Table,
    labels: Labels,
    fit_rows: NDArray[np.intp],
    held_out: NDArray[np.intp],
) -> float:
    classifier.fit(table.take(fit_rows), labels[fit_rows])
    require_finished(classifier)
    return short(np.mean(classifier.predict(table.take(held_out)) == labels[held_out]))


def short(score: Any) -> float:
    """Six digits: enough to tell any two counts of rows apart, and records stay small."""
    return round(float(score), 6)
