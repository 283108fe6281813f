"""Run units here, side by side, or on a cluster; finished ones are skipped.

Only this process writes records, each as soon as its unit is done. So a killed run loses the
units in progress (one per worker) and nothing else, and a worker that outlives its run cannot
write into the next one.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, TextIO

from joblib import Parallel, delayed

from experiments.methods import METHODS, TABLE1_METHODS, is_needed
from experiments.protocol import TABLE1_SETS, Spec, n_folds
from experiments.records import (
    Record,
    Unit,
    append_record,
    cut_torn_lines,
    plain,
    read_records,
    unit_of,
)
from experiments.searches import proof_limit
from experiments.settings import FIRST_SEED, Settings
from experiments.unit import run_unit
from experiments.workload import estimate_seconds, read_sizes
from marginbn.exceptions import InputError, MissingDependencyError


def plan_units(
    specs: dict[str, Spec],
    methods: Sequence[str],
    settings: Settings,
    rows: Sequence[int | None] = (None,),
) -> list[Unit]:
    """Every method on every seed and outer fold of every data set, with each number of rows."""
    return [
        Unit(spec.name, name, seed, fold, most)
        for spec in specs.values()
        for name in methods
        if is_needed(name, spec)
        for seed in METHODS[name].seeds(spec, settings)
        for fold in range(n_folds(spec, settings))
        for most in rows
    ]


def plan_table1(
    specs: dict[str, Spec], methods: Sequence[str] = tuple(TABLE1_METHODS)
) -> list[Unit]:
    """The searches behind table 1, for those of its data sets that are asked for."""
    return [
        Unit(name, method, FIRST_SEED)
        for name in TABLE1_SETS
        for method in methods
        if name in specs and is_needed(method, specs[name])
    ]


def unfinished(units: Sequence[Unit], records: Path, settings: Settings) -> list[Unit]:
    """Units without a record, and proofs that may go on.

    Raises
    ------
    InputError
        If a record was made with other settings: the tables would mix what cannot be compared.
    """
    found = {unit_of(record): record for record in read_records(records)}
    waiting = []
    for unit in units:
        if unit not in found:
            waiting.append(unit)
            continue
        wanted, made_with = plain(settings.relevant(unit.kind)), found[unit]["settings"]
        differing = sorted(k for k in wanted if wanted[k] != made_with.get(k))
        if differing:
            raise InputError(
                f"the record of {unit} in {records} was made with other settings "
                f"({', '.join(differing)}); give another folder with --records, or the settings "
                "it was made with"
            )
        if unit.kind == "proof" and may_go_on(found[unit], settings):
            waiting.append(unit)
    return waiting


def may_go_on(record: Record, settings: Settings) -> bool:
    """Whether a search without a proof has time left under the limit of these settings."""
    limit = proof_limit(settings.proof_limit, unit_of(record).dataset)
    search = record["search"]
    return bool(search["status"] != "optimal" and search["limit"] < limit - 1)


Report = Iterator[Record]
SCRATCH = "checkpoints"
"""Folder beside the records for what long searches keep."""


def run_serial(units: Sequence[Unit], work: Work) -> Report:
    """One after the other in this process."""
    return (work.do(unit) for unit in units)


def run_joblib(units: Sequence[Unit], work: Work, n_jobs: int) -> Report:
    """Side by side in processes of this machine; one unit at a time each, so none wait unsaved."""
    parallel = Parallel(
        n_jobs=n_jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="n_jobs"
    )
    reports: Report = parallel(delayed(_do_for)(os.getpid(), work, unit) for unit in units)
    return reports


def _do_for(parent: int, work: Work, unit: Unit) -> Record:
    """A unit in a process that ends when its parent does."""
    _end_with(parent)
    return work.do(unit)


@lru_cache(maxsize=1)
def _end_with(parent: int) -> None:
    """Watch the parent: workers of a killed run would take time from the run that resumes it."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def run_dask(units: Sequence[Unit], work: Work, address: str) -> Report:
    """On a Dask cluster; the order of the units becomes their priority."""
    try:
        from distributed import Client, as_completed
    except ImportError as error:
        raise MissingDependencyError(
            "--dask needs distributed: pip install --group experiments"
        ) from error
    with Client(address, set_as_default=False) as client:
        _require_single_threads(client)
        futures = {
            client.submit(work.do, unit, key=f"{unit} {work.stamp}", priority=-place): unit
            for place, unit in enumerate(units)
        }
        for future in as_completed(futures, loop=client.loop):
            yield _result(future, futures[future])
            future.release()  # a cluster need not remember what has been written down


def _require_single_threads(client: Any) -> None:
    """One solver thread per worker process: a second one would halve the time limits' worth."""
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    if any(worker["nthreads"] != 1 for worker in workers):
        raise InputError("every Dask worker must have one thread: start it with --nthreads 1")


def _result(future: Any, unit: Unit) -> Record:
    """The record, or what became of the worker."""
    if future.status == "finished":
        record: Record = future.result()
        return record
    return {"unit": unit.told, "error": f"{future.status}: {future.exception()}"}


@dataclass(frozen=True)
class Work:
    """What every unit needs to know; goes to the workers."""

    specs: dict[str, Spec]
    folder: Path
    settings: Settings
    scratch: Path | None = None
    stamp: str = field(default_factory=lambda: str(time.time_ns()))  # a key of Dask is used once

    def do(self, unit: Unit) -> Record:
        spec = self.specs[unit.dataset]
        return run_unit(unit, spec, self.folder, self.settings, self.scratch)


@dataclass
class Progress:
    """Lines on stderr with an estimate of the time left.

    The estimate scales the predicted seconds of what is left by how the prediction fared so far.
    """

    costs: dict[Unit, float]
    n_workers: int
    stream: TextIO = sys.stderr
    clock: Callable[[], float] = time.monotonic
    failed: list[Unit] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._start, self._waiting, self._done = self.clock(), dict(self.costs), 0.0

    def report(self, record: Record) -> None:
        unit = unit_of(record)
        self._done += self._waiting.pop(unit)
        place = f"[{len(self.costs) - len(self._waiting)}/{len(self.costs)}]"
        self.say(f"{place} {unit}: {self._ending(unit, record)}; {self.left()}")

    def _ending(self, unit: Unit, record: Record) -> str:
        if "error" in record:
            self.failed.append(unit)
            return f"FAILED\n{record['error']}"
        if unit.kind == "accuracy":
            result = f"{percent(100 * record['accuracy'])}, log loss {record['log_loss']:.3f}"
        else:
            result = f"gap {percent(record['search']['paper_gap'])}"
        return f"{result}, {record['seconds']['total']:.1f} s"

    def left(self) -> str:
        """Such as ``about 12 min left``."""
        remaining = sum(self._waiting.values())
        elapsed = self.clock() - self._start
        rate = elapsed / self._done if self._done else 1 / self.n_workers
        return f"about {duration(remaining * rate)} left"

    def say(self, line: str) -> None:
        self.stream.write(f"{line}\n")
        self.stream.flush()


def percent(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f} %"


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, whatever reads best."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def run(
    units: Sequence[Unit],
    specs: dict[str, Spec],
    folder: Path,
    records: Path,
    settings: Settings,
    *,
    n_jobs: int = 1,
    dask: str | None = None,
    stream: TextIO = sys.stderr,
) -> list[Unit]:
    """Run what has no record yet; returns the units that failed.

    The first seed comes first, so that a run which is cut short leaves whole tables; then the
    longest units, so that workers end together.
    """
    for name in {unit.method: None for unit in units}:
        (METHODS | TABLE1_METHODS)[name].require(name)
    cut_torn_lines(records)
    waiting = unfinished(units, records, settings)
    sizes = read_sizes(folder, {unit.dataset for unit in waiting})
    costs = {u: estimate_seconds(u, sizes[u.dataset], settings) for u in waiting}
    waiting.sort(key=lambda unit: (unit.seed, -costs[unit], str(unit)))
    progress = Progress({u: costs[u] for u in waiting}, max(n_jobs, 1), stream)
    if settings.describe():
        progress.say(settings.describe())
    progress.say(
        f"{len(units)} units, {len(units) - len(waiting)} of them finished before; "
        f"{progress.left()}"
    )
    work = Work(specs, folder, settings, records / SCRATCH)
    for record in _reports(waiting, work, n_jobs, dask):
        if "error" not in record:
            append_record(record, records)
        progress.report(record)
    if progress.failed:
        progress.say(f"{len(progress.failed)} units failed and have no record; run again to retry")
    if settings.describe():
        progress.say(settings.describe())
    return progress.failed


def _reports(waiting: list[Unit], work: Work, n_jobs: int, dask: str | None) -> Report:
    if dask is not None:
        return run_dask(waiting, work, dask)
    return run_serial(waiting, work) if n_jobs == 1 else run_joblib(waiting, work, n_jobs)
