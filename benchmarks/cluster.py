"""One search over local Dask workers.

python -m benchmarks run cluster --data FOLDER
python -m benchmarks run cluster --data FOLDER --only rate

*Rates.* Nodes per second of one, two and four workers on the same problem, by the clock on the wall
and by processor seconds: the second is what a node costs with everything around it, the first is
what a cluster gives. Only a machine with nothing else to do tells the first. Nodes and seconds
count from the moment when parts are handed out: before it a coordinator works alone, whatever the
number of workers.

*Proofs.* Problems to the proof with two workers, the second time with one of them killed in the
middle; beside them the same without a cluster.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from experiments.origin import describe_origin

from benchmarks.instances import Instance
from marginbn import Search, solve_structure
from marginbn.solvers import cluster

RATE = Instance("vehicle", "sm", 0.9, 2)
RATE_SECONDS = 30.0
"""Problem and time of the rates."""

PROOFS = (
    Instance("german", "sm", 0.9, 2),
    Instance("australian", "sm", 0.9, 2),
    Instance("vehicle", "sbm", 0.9, 2),
    Instance("crx", "sm", 0.9, 2),
)
PROOF_SECONDS = 300.0

KILL_AT = 0.5
"""Part of the time to the proof without a kill after which a worker is killed."""


def keys() -> list[str]:
    """All measurements."""
    rates = [f"rate {RATE} {count}" for count in (1, 2, 4)]
    return rates + [f"proof {instance}" for instance in PROOFS]


def measure(key: str, folder: Path | None) -> dict[str, Any]:
    """One measurement."""
    kind, name, *count = key.split()
    problem = Instance.parse(name).problem(folder)
    made = _rate(problem, int(count[0])) if kind == "rate" else _proof(problem)
    return {"key": key, "instance": name, **made, "origin": describe_origin()}


def _rate(problem: Any, n_workers: int) -> dict[str, Any]:
    with _local(n_workers) as client:
        # kernels, arrays and connections
        solve_structure(problem, Search(dask=client), time_limit=5.0)
        search = cluster.Coordinator.search
        begun: dict[str, float] = {}

        def timed(coordinator: cluster.Coordinator) -> Any:
            begun.update(wall=time.perf_counter(), nodes=coordinator.run.nodes)
            begun["workers"], begun["own"] = _used(client), time.process_time()
            return search(coordinator)

        cluster.Coordinator.search = timed  # type: ignore[method-assign]
        try:
            result = solve_structure(problem, Search(dask=client), time_limit=RATE_SECONDS)
        finally:
            cluster.Coordinator.search = search  # type: ignore[method-assign]
        wall = time.perf_counter() - begun["wall"]
        used, own = _used(client) - begun["workers"], time.process_time() - begun["own"]
    nodes = result.nodes - begun["nodes"]
    return {
        "n_workers": n_workers,
        "nodes": nodes,
        "seconds": wall,
        "worker_processor": used,
        "coordinator_processor": own,
        "nodes_per_second": nodes / wall,
        "nodes_per_processor_second": nodes / (used + own),
        "busy": used / wall / n_workers,
        "gap": result.gap,
    }


@contextmanager
def _local(n_workers: int) -> Iterator[Any]:
    """A client of so many processes on this machine."""
    distributed = import_module("distributed")
    settings = {"threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(n_workers=n_workers, **settings) as made,
        distributed.Client(made, set_as_default=False) as client,
    ):
        yield client


def _used(client: Any) -> float:
    """Processor seconds of all workers."""
    return sum(client.run(time.process_time).values())


def _proof(problem: Any) -> dict[str, Any]:
    alone = solve_structure(problem, time_limit=PROOF_SECONDS)
    made: dict[str, Any] = {"alone": _told(alone)}
    with _local(2) as client:
        made["two"] = _told(solve_structure(problem, Search(dask=client), time_limit=PROOF_SECONDS))
        victim = next(iter(client.run(os.getpid).values()))
        delay = KILL_AT * made["two"]["seconds"]
        timer = threading.Timer(delay, os.kill, (victim, signal.SIGKILL))
        timer.start()
        made["killed"] = _told(
            solve_structure(problem, Search(dask=client), time_limit=PROOF_SECONDS)
        )
        made["killed"]["was_killed"] = not timer.is_alive()
        timer.cancel()
    return made


def _told(result: Any) -> dict[str, Any]:
    return {
        "status": str(result.status),
        "objective": result.objective,
        "gap": result.gap,
        "nodes": result.nodes,
        "seconds": result.seconds,
    }
