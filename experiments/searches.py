"""The searches behind table 1: one problem, nothing validated, nothing predicted.

``gap``    one core and a minute
``proof``  two cores and a long limit. The search keeps a checkpoint in the run's scratch folder,
           and beside it the seconds it has had: a killed run goes on where it was, and so does a
           run with a larger limit. The seconds of all runs are added up.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from experiments.fitted import Fitted, describe_search
from experiments.networks import PAPER, PARENTS
from experiments.protocol import Task
from marginbn import MaxMarginBNClassifier, Search
from marginbn.exceptions import InputError
from marginbn.files import write_text

TICK = 5.0
"""Seconds between notes of the time; a kill loses so much of the count."""
LONG = {"spambase": 4.0}
"""Data sets whose proof gets so many times the limit."""
LEAST_SECONDS = 0.1


def largest_margin(margin: str) -> Callable[[Task], Fitted]:
    """The gap after a minute on one core."""

    def run(task: Task) -> Fitted:
        return _search(task, margin, task.settings.gap_limit, 1, None, 0.0)

    return run


def proved_margin(margin: str) -> Callable[[Task], Fitted]:
    """The proof, or the gap when the long limit ends."""

    def run(task: Task) -> Fitted:
        if task.scratch is None:
            raise InputError("a proof needs a folder for its checkpoint")
        limit = proof_limit(task.settings.proof_limit, task.about["dataset"])
        file = task.scratch / f"{task.about['dataset']}.{margin}.ckpt"
        file.parent.mkdir(parents=True, exist_ok=True)
        with counted(file.with_suffix(".seconds")) as before:
            left = max(limit - before, LEAST_SECONDS)
            return _search(task, margin, left, task.settings.proof_jobs, file, before)

    return run


def proof_limit(limit: float, dataset: str) -> float:
    """Seconds for the proof on this data set."""
    return limit * LONG.get(dataset, 1.0)


def _search(
    task: Task, margin: str, limit: float, n_jobs: int, checkpoint: Path | None, before: float
) -> Fitted:
    settings = task.settings
    classifier = MaxMarginBNClassifier(
        margin=margin,
        gamma=settings.table1_gamma,
        max_parents=max(PARENTS),
        time_limit=limit,
        n_jobs=n_jobs,
        search=Search(checkpoint=checkpoint),
        random_state=task.seed,
        column_kinds=dict(task.train.kinds),
        **PAPER,
    ).fit(task.train, task.labels)
    search: dict[str, Any] = describe_search(classifier, trace=True)
    search["seconds"] = round(before + search["seconds"], 3)
    search["limit"], search["jobs"] = round(before + limit, 3), n_jobs
    chosen = {"gamma": settings.table1_gamma, "max_parents": max(PARENTS)}
    return Fitted(classifier.classes_.astype(str), None, chosen=chosen, search=search)


@contextmanager
def counted(file: Path) -> Iterator[float]:
    """Note every few seconds how long all runs together have taken; gives what came before."""
    before = float(file.read_text()) if file.exists() else 0.0
    start, ended = time.perf_counter(), threading.Event()

    def note() -> None:
        write_text(file, f"{before + time.perf_counter() - start:.6f}\n")

    def tick() -> None:
        while not ended.wait(TICK):
            note()

    clock = threading.Thread(target=tick, daemon=True)
    clock.start()
    try:
        yield before
    finally:
        ended.set()
        clock.join()
        note()
