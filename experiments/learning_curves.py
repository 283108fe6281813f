"""Accuracy and log loss against the number of training rows, on the largest data sets.

A point is the ordinary unit with at most so many training rows, every class in proportion; a
smaller sample is not a part of a larger one. The test rows are the same for all points.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.methods import LABELS
from experiments.records import Record, unit_of
from experiments.render import Cell, Grid

SETS = ("adult", "nursery", "letter", "spambase")
METHODS = ("nb", "tan", "sm", "logistic", "lightgbm", "catboost")
ROWS = (100, 300, 1000, 3000, 10000)
"""Numbers that a data set has not are left out; all rows are those of the ordinary run."""
QUICK_ROWS = (100, 200)
MEASURES = ("accuracy", "log_loss")

Curves = dict[tuple[str, str], dict[int, dict[str, float]]]
"""Mean measures by data set and method, then by training rows."""


def sizes(n_train: int, wanted: tuple[int, ...]) -> list[int]:
    """Numbers of rows to learn from: those below the rows there are."""
    return [rows for rows in wanted if rows < n_train]


def with_last_points(curves: list[Record], records: list[Record]) -> list[Record]:
    """The curves' records and those of an ordinary run that have all rows."""
    known = {(unit_of(r).dataset, unit_of(r).method) for r in curves}
    ends = [r for r in records if (unit_of(r).dataset, unit_of(r).method) in known]
    return curves + [r for r in ends if unit_of(r).kind == "accuracy"]


def collect(records: list[Record]) -> Curves:
    """Points of all units of the records, at the number of rows they really learned from."""
    found: dict[tuple[str, str], dict[int, list[Record]]] = {}
    for record in records:
        unit = unit_of(record)
        if unit.kind == "accuracy" and unit.dataset in SETS:
            rows = record["split"]["n_train"]
            found.setdefault((unit.dataset, unit.method), {}).setdefault(rows, []).append(record)
    return {
        key: {rows: _means(group) for rows, group in points.items()}
        for key, points in sorted(found.items(), key=lambda item: _order(item[0]))
        if len(points) > 1
    }


def _order(key: tuple[str, str]) -> tuple[int, int]:
    return SETS.index(key[0]), list(LABELS).index(key[1])


def _means(group: list[Record]) -> dict[str, Any]:
    return {m: float(np.mean([r[m] for r in group])) for m in MEASURES}


def grids(records: list[Record]) -> list[Grid]:
    """One table per data set: methods by training rows."""
    curves = collect(records)
    made = []
    for name in dict.fromkeys(dataset for dataset, _ in curves):
        own = {method: points for (dataset, method), points in curves.items() if dataset == name}
        rows = sorted({r for points in own.values() for r in points})
        lines = tuple(
            (LABELS[method], tuple(_cell(points.get(r)) for r in rows))
            for method, points in own.items()
        )
        made.append(
            Grid(
                f"Learning curves on {name}: accuracy / log loss by training rows",
                ("method", *(str(r) for r in rows)),
                lines,
            )
        )
    return made


def _cell(point: dict[str, float] | None) -> Cell:
    if point is None:
        return Cell()
    return Cell(f"{100 * point['accuracy']:.2f} / {point['log_loss']:.4f}")
