"""Do one unit of work: make the task, run the method, judge the predictions, write it all down."""

from __future__ import annotations

import os
import platform
import time
import traceback
import warnings
from dataclasses import asdict
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from experiments.methods import METHODS, TABLE1_METHODS
from experiments.outcome import Outcome
from experiments.protocol import Data, Spec, Task, load, make_task
from experiments.records import Record, Unit, pack_bits
from experiments.settings import Settings
from marginbn import MaxMarginBNClassifier
from marginbn.exceptions import DataWarning, OptimalityWarning

SEARCHING = ("sm", "sbm", *TABLE1_METHODS)
PACKAGES = ("marginbn", "scikit-learn", "numpy", "scipy", "numba")


def run_unit(unit: Unit, spec: Spec, folder: Path, settings: Settings) -> Record:
    """The record of a unit, or one with an "error" entry; never raises but for Ctrl-C."""
    try:
        # One unit, one thread: units run side by side.
        with threadpool_limits(1), warnings.catch_warnings():
            # A limit and a gap are in the record; nobody reads warnings of a thousand units.
            warnings.simplefilter("ignore", OptimalityWarning)
            warnings.simplefilter("ignore", DataWarning)
            if unit.method in SEARCHING:
                warm_up()
            start = time.perf_counter()
            task = make_unit_task(unit, load(spec, folder), settings)
            outcome = (METHODS | TABLE1_METHODS)[unit.method](task)
            outcome.seconds["total"] = time.perf_counter() - start
    except Exception:
        return {"unit": asdict(unit), "error": traceback.format_exc()}
    return make_record(unit, task, outcome)


@lru_cache(maxsize=1)
def warm_up() -> None:
    """Have the search engine compiled or loaded, once per process, outside all time limits."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 40)
    features = (labels[:, None] + rng.integers(0, 2, (40, 4))).astype(str)
    for margin in ("multiclass", "binary"):
        MaxMarginBNClassifier(margin=margin, time_limit=None, gap_tolerance=1e-6).fit(
            features, labels
        )


def make_unit_task(unit: Unit, data: Data, settings: Settings) -> Task:
    """The unit's outer fold; table 1 takes all rows of a set that has no test part."""
    task = make_task(data, unit.fold, settings)
    if not (unit.is_table1 and data.spec.is_cross_validated):
        return task
    about = task.about | {"split": "all", "n_train": len(data.labels), "n_test": 0, "digest": "all"}
    return Task(data.features, data.labels, data.features, data.labels, task.inner, settings, about)


def make_record(unit: Unit, task: Task, outcome: Outcome) -> Record:
    return {
        "unit": asdict(unit),
        "quick": task.settings.quick,
        "settings": task.settings.relevant(unit.is_table1),
        "split": task.about,
        "chosen": outcome.chosen,
        **_judge(task, outcome),
        "validation": outcome.validation,
        "search": outcome.search,
        "notes": outcome.notes,
        "seconds": {k: round(v, 3) for k, v in outcome.seconds.items()},
        "versions": versions(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    }


def _judge(task: Task, outcome: Outcome) -> dict[str, Any]:
    """Accuracy and, for the tests of significance, which test rows were right."""
    if outcome.predicted is None:
        return {}
    correct = outcome.predicted == task.test_labels
    return {
        "accuracy": float(correct.mean()),
        "n_correct": int(correct.sum()),
        "n_test": len(correct),
        "correct": pack_bits(correct),
    }


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}
