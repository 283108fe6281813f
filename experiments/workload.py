"""How long a unit may take: a rough guess, for the order of work and the time left.

Only ratios matter, since the progress report scales the guesses by the time taken so far. The
constants were read off a few runs on a small machine.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from experiments.methods import METHODS
from experiments.records import Unit
from experiments.searches import proof_limit
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
    wanted = [most for most in (unit.rows, settings.max_train) if most is not None]
    n_rows = min([size.n_rows, *wanted])
    n_splits = 1 if n_rows > LARGE else settings.validation_folds
    difficulty = n_rows * size.n_features**2 / SEARCH_SPEED
    if unit.method in ("sm", "sm-trained", "gap-sm", "proof-sm"):
        difficulty *= size.n_classes - 1
    if unit.kind == "gap":
        return settings.gap_limit + difficulty
    if unit.kind == "proof":
        return proof_limit(settings.proof_limit, unit.dataset) + difficulty
    if unit.method in ("sm", "sm-trained", "sbm"):
        inner = 2 * len(settings.probabilities) * n_splits * min(difficulty, settings.inner_limit)
        return START_UP + inner + min(20 * difficulty, settings.final_limit)
    if unit.method.startswith("svm"):
        grid = len(settings.sigmas) * len(settings.penalties) * n_splits
        return START_UP + grid * _machine(min(n_rows, settings.svm_rows)) + _machine(n_rows)
    if unit.method in ("mdl", "bdeu"):
        return START_UP + n_splits * difficulty
    outputs = size.n_classes if size.n_classes > 2 else 1
    return METHODS[unit.method].cost * (0.3 + n_rows * size.n_features * outputs / 1e5)


def _machine(n_rows: int) -> float:
    """Seconds of one support vector machine, about quadratic in the rows."""
    return (n_rows / 2500) ** 2
