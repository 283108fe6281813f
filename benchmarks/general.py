"""General networks: how long the best network of a score file takes, and how long the scores take.

The data folder has ``scores/`` with local scores (``NAME.jkl``, also gzipped) and ``csv/`` with
tables of integer states without a header (``NAME.csv``, also gzipped). Every measurement is one
process. Seconds are processor seconds; reading files and loading compiled kernels are not counted,
a short rehearsal on the same kind of work pays for the latter. The limit of a search is on the
clock.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from experiments.origin import describe_origin

from marginbn import (
    EncodedData,
    StructureProblem,
    Variable,
    load_scores,
    local_scores,
    solve_structure,
)

SECONDS = 120.0
REHEARSAL_SECONDS = 3.0
REPEATS = 3


@dataclass(frozen=True)
class Search:
    """The best network of a score file."""

    instance: str
    solver: str = "auto"
    seconds: float = SECONDS

    @property
    def key(self) -> str:
        """Identifies the measurement in a file of records."""
        return f"{self.instance} {self.solver} {self.seconds:g}"

    def file(self, folder: Path) -> Path | None:
        """The score file, if the folder has it."""
        return _present(folder / "scores", f"{self.instance}.jkl")

    def measure(self, path: Path) -> dict[str, Any]:
        """Solve the problem of a score file."""
        rehearsal = min(REHEARSAL_SECONDS, self.seconds)
        solve_structure(load_scores(path), self.solver, time_limit=rehearsal)
        problem = load_scores(path)  # anew: nothing that was found out about it may be kept
        start = time.process_time()
        result = solve_structure(problem, self.solver, time_limit=self.seconds)
        return {
            "instance": self.instance,
            "solver": self.solver,
            "seconds": time.process_time() - start,
            "limit": self.seconds,
            "used": result.solver,
            "status": str(result.status),
            "objective": result.objective,
            "bound": result.bound,
            "gap_percent": 100.0 * result.gap,  # the paper's would be negative here
            "nodes": result.nodes,
            **_size(problem),
        }


@dataclass(frozen=True)
class Scoring:
    """The parent sets of a table that can matter, with their scores."""

    instance: str
    score: str
    max_parents: int | None

    @property
    def key(self) -> str:
        """Identifies the measurement in a file of records."""
        parents = "any" if self.max_parents is None else self.max_parents
        return f"{self.instance} {self.score} {parents} scores"

    def file(self, folder: Path) -> Path | None:
        """The table, if the folder has it."""
        return _present(folder / "csv", f"{self.instance}.csv")

    def measure(self, path: Path) -> dict[str, Any]:
        """The median of some repetitions."""
        data = read_states(path)
        few = EncodedData(data.codes[:, :4], data.weights, data.variables[:4])
        local_scores(few, self.score, self.max_parents)
        laps = []
        for _ in range(REPEATS):
            start = time.process_time()
            problem = local_scores(data, self.score, self.max_parents)
            laps.append(time.process_time() - start)
        return {
            "table": self.instance,
            "score": self.score,
            "max_parents": self.max_parents,
            "rows": len(data.codes),
            "seconds": float(np.median(laps)),
            "repeats": REPEATS,
            **_size(problem),
        }


def measurements() -> list[Search | Scoring]:
    """All of the suite, quick ones first."""
    searches = [
        "wine.BIC.3",
        "zoo.BDeu.8",
        "child_2000_1.BDeu",
        "autos.BIC.6",
        "insurance1000.BDeu.3",
        "insurance_2000_1.BDeu",
        "alarm1000.BDeu.3",
        "hailfinder500.BDeu.3",
        "soybean.BIC",
        "steel.BIC",
        "carpo100.BDeu.3",
    ]
    scorings = [
        Scoring("insurance1000", "bdeu", 3),
        Scoring("alarm1000", "bdeu", 3),
        Scoring("alarm1000", "bic", None),
        Scoring("soybean", "bic", None),
    ]
    return [*scorings, *map(Search, searches)]


def absent(wanted: Iterable[Search | Scoring], folder: Path) -> list[str]:
    """The instances that the folder does not have."""
    return list(dict.fromkeys(m.instance for m in wanted if m.file(folder) is None))


def measure(measurement: Search | Scoring, folder: Path) -> dict[str, Any]:
    """The record of one measurement."""
    path = measurement.file(folder)
    if path is None:
        raise FileNotFoundError(f"{folder} has no instance {measurement.instance}")
    origin = describe_origin()
    record = measurement.measure(path)
    return {
        "key": measurement.key,
        **record,
        "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "origin": origin,
    }


def read_states(path: Path) -> EncodedData:
    """All columns of a table of integers; a state is a number that occurs."""
    table = np.loadtxt(path, delimiter=",", dtype=np.int64, ndmin=2)
    columns = [np.unique(column, return_inverse=True) for column in table.T]
    variables = tuple(
        Variable(f"v{i}", tuple(map(str, states))) for i, (states, _) in enumerate(columns)
    )
    codes = np.column_stack([codes for _, codes in columns]).astype(np.int32)
    return EncodedData(codes, np.ones(len(codes)), variables)


def _present(folder: Path, name: str) -> Path | None:
    paths = (folder / name, folder / f"{name}.gz")
    return next((path for path in paths if path.is_file()), None)


def _size(problem: StructureProblem) -> dict[str, int]:
    return {
        "variables": problem.n_variables,
        "parent_sets": problem.candidates.n_candidates,
    }
