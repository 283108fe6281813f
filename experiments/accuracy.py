"""The accuracy comparison: networks against the classifiers that people reach for today.

Outer splits as in the experiments of the paper (five stratified folds, or the given test part),
all rows, but with a seed of its own: the networks' design was settled with seed 0. Inner splits,
for whatever a method has to choose: five stratified folds up to 1200 training rows, above that one
stratified 20 % split; the same rows for all methods, on one thread each.

A unit is one method on one outer fold of one data set and leaves one line in the journal.
"""

from __future__ import annotations

import os
import platform
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TextIO

from threadpoolctl import threadpool_limits

from experiments.contenders import CONTENDERS
from experiments.forecast import judge
from experiments.journal import append_record, cut_torn_line, unfinished
from experiments.protocol import Data, Spec, Task, load, make_task, n_folds
from experiments.records import Record, Unit
from experiments.run import Progress
from experiments.settings import Settings
from experiments.unit import warm_up
from experiments.workload import Size, read_sizes

SEED = 1957
"""Used by nothing else: no choice about any method was made with these splits."""
LARGE_TRAINING_SET = 1200
"""With more training rows one 20 % split validates, else five folds."""
SVM_ROWS = 2000
PACKAGES = ("marginbn", "scikit-learn", "numpy", "scipy", "lightgbm", "catboost", "interpret-core")
COMPILED = ("bn", "bn-average", "sm-laplace", "sm-conditional")


@dataclass(frozen=True)
class Comparison:
    """What is done with every unit.

    ``measure`` fits and judges; ``asked`` is what a record depends on, as JSON values: records that
    differ in it do not share a journal.
    """

    measure: Callable[[Unit, Task], Record]
    settings: Settings
    asked: dict[str, Any]


def compare_accuracy(seed: int = SEED) -> Comparison:
    settings = make_settings(seed)
    return Comparison(measure_accuracy, settings, {"seed": seed, "svm_rows": settings.svm_rows})


def make_settings(seed: int) -> Settings:
    return Settings(seed=seed, svm_rows=SVM_ROWS)


def plan(specs: dict[str, Spec], methods: Sequence[str], settings: Settings) -> list[Unit]:
    """Every method on every outer fold of every data set."""
    return [
        Unit(spec.name, method, fold)
        for spec in specs.values()
        for fold in range(n_folds(spec, settings))
        for method in methods
    ]


def estimate_seconds(unit: Unit, size: Size) -> float:
    """A rough guess: for the order of work and the time left only ratios matter."""
    outputs = size.n_classes if size.n_classes > 2 else 1
    cells = size.n_rows * size.n_features * outputs
    return CONTENDERS[unit.method].cost * (0.3 + cells / 1e5)


def run(
    units: Sequence[Unit],
    specs: dict[str, Spec],
    folder: Path,
    journal: Path,
    comparison: Comparison,
    stream: TextIO = sys.stderr,
) -> list[Unit]:
    """Run what the journal lacks, the cheapest unit first; returns the units that failed."""
    for method in {unit.method: None for unit in units}:
        CONTENDERS[method].require(method)
    cut_torn_line(journal)
    waiting = unfinished(units, journal, comparison.asked)
    sizes = read_sizes(folder, {unit.dataset for unit in waiting})
    costs = {u: estimate_seconds(u, sizes[u.dataset]) for u in waiting}
    waiting.sort(key=lambda unit: (costs[unit], unit))
    progress = Progress({u: costs[u] for u in waiting}, 1, stream)
    n_done = len(units) - len(waiting)
    progress.say(f"{len(units)} units, {n_done} of them finished before; {progress.left()}")
    for unit in waiting:
        record = do_unit(unit, specs[unit.dataset], folder, comparison)
        if "error" not in record:
            append_record(record, journal)
        progress.report(record)
    if progress.failed:
        progress.say(f"{len(progress.failed)} units failed and have no record; run again to retry")
    return progress.failed


def do_unit(unit: Unit, spec: Spec, folder: Path, comparison: Comparison) -> Record:
    """The record of a unit, or one with an "error" entry; never raises but for Ctrl-C."""
    try:
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # nobody reads the warnings of a thousand units
            if unit.method in COMPILED:
                warm_up()
            task = make_comparison_task(load(spec, folder), unit.fold, comparison.settings)
            measured = comparison.measure(unit, task)
    except Exception:
        return {"unit": asdict(unit), "error": traceback.format_exc()}
    return {
        "unit": asdict(unit),
        "settings": comparison.asked,
        "split": describe_split(task),
        **measured,
        "versions": versions(),
        "machine": describe_machine(),
    }


def make_comparison_task(data: Data, fold: int, settings: Settings) -> Task:
    return make_task(data, fold, settings, large=LARGE_TRAINING_SET)


def measure_accuracy(unit: Unit, task: Task) -> Record:
    """Fit, predict the test rows, judge."""
    start, cpu_start = time.perf_counter(), time.process_time()
    fitted = CONTENDERS[unit.method].fit(task)
    trained = time.perf_counter()
    answer = fitted.answer(task.test)
    end = time.perf_counter()
    seconds = {"fit": trained - start, "predict": end - trained, "total": end - start}
    seconds["cpu"] = time.process_time() - cpu_start  # what counts where the machine is shared
    return {
        **judge(fitted, answer, task.test_labels),
        "seconds": {k: round(v, 3) for k, v in seconds.items()},
        "chosen": fitted.chosen,
        "notes": fitted.notes,
    }


def describe_split(task: Task) -> dict[str, Any]:
    names = ("split", "folds_run", "n_train", "n_test", "digest", "validation_digest")
    return {name: task.about[name] for name in names}


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def describe_machine() -> str:
    return f"{platform.machine()}, {os.cpu_count()} cores"
