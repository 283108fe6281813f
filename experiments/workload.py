"""How long a unit may take: a rough guess, for the order of work and the time left.

Only ratios matter, since the progress report scales the guesses by the time taken so far. The
constants were read off a few runs on a small machine.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from experiments.records import Unit
from experiments.settings import Settings
from marginbn.datasets import list_folder_datasets
from marginbn.exceptions import InputError

LARGE = 1000
SEARCH_SPEED = 2e5
"""Rows x features^2 x rival classes that a search deals with per second, where it ends early."""
START_UP = 0.1


@dataclass(frozen=True)
class Size:
    """Rows learned from, features and classes."""

    n_rows: int
    n_features: int
    n_classes: int


def read_sizes(folder: Path, names: Collection[str]) -> dict[str, Size]:
    """Sizes from the folder's schema; no data is read."""
    absent = sorted(set(names) - set(list_folder_datasets(folder)))
    if absent:
        raise InputError(f"the folder {str(folder)!r} lacks the data sets {', '.join(absent)}")
    schema = json.loads((folder / "schema.json").read_text(encoding="utf-8"))
    return {
        name: Size(
            schema[name].get("rows_train", LARGE),
            len(schema[name]["features"]),
            len(schema[name].get("classes", "ab")),
        )
        for name in names
    }


def estimate_seconds(unit: Unit, size: Size, settings: Settings) -> float:
    """A guess of the unit's seconds."""
    n_rows = min(size.n_rows, settings.max_train or size.n_rows)
    n_splits = 1 if n_rows > LARGE else settings.validation_folds
    difficulty = n_rows * size.n_features**2 / SEARCH_SPEED
    if unit.is_table1:
        return settings.table1_limit + difficulty
    if unit.method in ("sm", "sbm"):
        if unit.method == "sm":
            difficulty *= size.n_classes - 1
        inner = 2 * len(settings.probabilities) * n_splits * min(difficulty, settings.inner_limit)
        return START_UP + inner + min(20 * difficulty, settings.final_limit)
    if unit.method == "svm":
        grid = len(settings.sigmas) * len(settings.penalties) * n_splits
        return START_UP + grid * _machine(min(n_rows, settings.svm_rows)) + _machine(n_rows)
    if unit.method in ("mdl", "bdeu", "lr"):
        return START_UP + n_splits * difficulty
    if unit.method == "hgb":
        return START_UP + n_rows * size.n_classes / 1e4
    return START_UP


def _machine(n_rows: int) -> float:
    """Seconds of one support vector machine, about quadratic in the rows."""
    return (n_rows / 2500) ** 2
