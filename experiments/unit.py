"""Do one unit of work: make the task, run the method, judge the predictions, write it all down."""

from __future__ import annotations

import time
import traceback
import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from experiments.fitted import Fitted, judge
from experiments.methods import METHODS, TABLE1_METHODS
from experiments.missing_features import predict_with_hidden
from experiments.origin import describe_origin
from experiments.protocol import Data, Spec, Task, load, make_task
from experiments.records import Record, Unit, pack_bits
from experiments.settings import Settings
from marginbn import MaxMarginBNClassifier

SEARCHING = ("sm", "sbm", *TABLE1_METHODS)


def run_unit(
    unit: Unit, spec: Spec, folder: Path, settings: Settings, scratch: Path | None = None
) -> Record:
    """The record of a unit, or one with an "error" entry; never raises but for Ctrl-C."""
    method = (METHODS | TABLE1_METHODS)[unit.method]
    try:
        # One unit, one thread: units run side by side.
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # gaps are in the record; nobody reads the rest
            if unit.method in SEARCHING:
                warm_up()
            task = make_unit_task(unit, load(spec, folder), settings, scratch)
            origin = describe_origin()
            fitted, measured = measure(method.fit, task)
    except Exception:
        return {"unit": unit.told, "error": traceback.format_exc()}
    return {
        "unit": unit.told,
        "quick": settings.quick,
        "settings": settings.relevant(unit.kind),
        "split": task.about,
        "chosen": fitted.chosen,
        **measured,
        "validation": fitted.validation,
        "search": fitted.search,
        "notes": fitted.notes,
        "origin": origin,
    }


@cache
def warm_up() -> None:
    """Have kernels compiled or loaded, once per process, outside all times and limits."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 40)
    features = (labels[:, None] + rng.integers(0, 2, (40, 4))).astype(str)
    for margin in ("multiclass", "binary"):  # two workers: one would do without machine code here
        MaxMarginBNClassifier(margin=margin, time_limit=None, n_jobs=2).fit(features, labels)


def make_unit_task(unit: Unit, data: Data, settings: Settings, scratch: Path | None = None) -> Task:
    """The unit's outer fold; table 1 takes all rows of a set that has no test part."""
    task = make_task(data, unit.seed, unit.fold, settings, unit.rows)
    about = task.about | {"dataset": unit.dataset}
    if unit.kind != "accuracy" and data.spec.is_cross_validated and settings.max_train is None:
        about |= {"split": "all", "n_train": len(data.labels), "n_test": 0, "digest": "all"}
        task = replace(task, train=data.features, labels=data.labels)
    return replace(task, about=about, scratch=scratch)


def measure(fit: Any, task: Task) -> tuple[Fitted, dict[str, Any]]:
    """Fit, predict and judge, with the seconds of each."""
    start, cpu_start = time.perf_counter(), time.process_time()
    fitted: Fitted = fit(task)
    learned = time.perf_counter()
    judged: dict[str, Any] = {}
    if fitted.answer is not None:
        judged = _judge(fitted, task)
    end = time.perf_counter()
    seconds = {"fit": learned - start, "predict": end - learned, "total": end - start}
    seconds["cpu"] = time.process_time() - cpu_start  # what counts where the machine is shared
    if task.settings.hidden_shares:
        judged["hidden"] = predict_with_hidden(fitted, task)
    return fitted, {**judged, "seconds": {k: round(v, 3) for k, v in seconds.items()}}


def _judge(fitted: Fitted, task: Task) -> dict[str, Any]:
    """The measures and, for the tests of significance, which test rows were right."""
    posterior, labels = fitted.predict(task.test)
    correct = labels == task.test_labels
    return {
        **judge(fitted.classes, posterior, labels, task.test_labels),
        "n_correct": int(correct.sum()),
        "n_test": len(correct),
        "correct": pack_bits(correct),
    }
