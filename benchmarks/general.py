"""General networks: how long the best network of a score file takes, and how long the scores take.

The data folder has ``scores/`` with local scores (``NAME.jkl``, also gzipped) and ``csv/`` with
tables of integer states without a header (``NAME.csv``, also gzipped). Every measurement is one
process. Seconds are processor seconds; reading files and loading compiled kernels are not counted,
a short rehearsal on the same kind of work pays for the latter. The limit of a search is on the
clock.
"""

from __future__ import annotations

import io
import resource
import tempfile
import time
from collections.abc import Iterable
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from experiments.origin import describe_origin

from marginbn import (
    EncodedData,
    SolveResult,
    StructureProblem,
    Variable,
    load_scores,
    local_scores,
    solve_structure,
    verify_certificate,
)
from marginbn.proof import exact
from marginbn.solvers import choose_solver

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
            "good_after": good_after(result),
            **_size(problem),
        }


@dataclass(frozen=True)
class Learning:
    """The best network of a table, scores included, and a certificate that both checkers read."""

    instance: str
    score: str
    max_parents: int | None
    certificate: bool = True
    seconds: float = SECONDS

    @property
    def key(self) -> str:
        """Identifies the measurement in a file of records."""
        return f"{Scoring(self.instance, self.score, self.max_parents).name} network"

    def file(self, folder: Path) -> Path | None:
        """The table, if the folder has it."""
        return _present(folder / "csv", f"{self.instance}.csv")

    def measure(self, path: Path) -> dict[str, Any]:
        """Score, solve; then solve again with a certificate, and have it checked."""
        data = read_states(path)
        few = EncodedData(data.codes[:, :4], data.weights, data.variables[:4])
        few_problem = local_scores(few, self.score, self.max_parents)
        solve_structure(few_problem, choose_solver(local_scores(data, self.score, 1)).name)
        start = time.process_time()
        problem = local_scores(data, self.score, self.max_parents)
        scored = time.process_time()
        result = solve_structure(problem, time_limit=self.seconds)
        ended = time.process_time()
        return {
            "network_of": self.instance,
            "score": self.score,
            "max_parents": self.max_parents,
            "rows": len(data.codes),
            "scoring_seconds": scored - start,
            "seconds": ended - start,
            "limit": self.seconds,
            "used": result.solver,
            "status": str(result.status),
            "objective": result.objective,
            "bound": result.bound,
            "gap_percent": 100.0 * result.gap,
            "good_after": good_after(result),
            **(self._certified(problem) if self.certificate else {}),
            **_size(problem),
        }

    def _certified(self, problem: StructureProblem) -> dict[str, Any]:
        """Seconds of writing and of both checkers, and whether both accept."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "network.cert"
            laps, accepted = [time.process_time()], []
            solve_structure(problem, time_limit=self.seconds, certificate=path)
            laps.append(time.process_time())
            accepted.append(bool(verify_certificate(path)))
            laps.append(time.process_time())
            with redirect_stdout(io.StringIO()):
                accepted.append(exact.main([str(path)]) == 0)
            laps.append(time.process_time())
            return {
                "certificate_bytes": path.stat().st_size,
                "certificate_seconds": laps[1] - laps[0],
                "checker_seconds": [laps[2] - laps[1], laps[3] - laps[2]],
                "accepted": accepted,
            }


def good_after(result: SolveResult) -> float:
    """Seconds on the clock until the incumbent was within 0.1 % of the last one."""
    close = result.objective - 1e-3 * abs(result.objective)
    return next(point.seconds for point in result.trace if point.objective >= close)


@dataclass(frozen=True)
class Scoring:
    """The parent sets of a table that can matter, with their scores."""

    instance: str
    score: str
    max_parents: int | None

    @property
    def name(self) -> str:
        """Table, score and parents."""
        parents = "any" if self.max_parents is None else self.max_parents
        return f"{self.instance} {self.score} {parents}"

    @property
    def key(self) -> str:
        """Identifies the measurement in a file of records."""
        return f"{self.name} scores"

    def file(self, folder: Path) -> Path | None:
        """The table, if the folder has it."""
        return _present(folder / "csv", f"{self.instance}.csv")

    def measure(self, path: Path) -> dict[str, Any]:
        """The median of some repetitions."""
        return self.measure_data(read_states(path))

    def measure_data(self, data: EncodedData) -> dict[str, Any]:
        """The same of rows in memory."""
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


class LetterSized(Scoring):
    """20 000 rows and 17 columns like those of *letter*: one of 26 states, 16 of 16 states, made at
    random with dependences from each column to the next ones.
    """

    def file(self, folder: Path) -> Path:
        """Nothing is read."""
        return folder

    def measure(self, path: Path) -> dict[str, Any]:
        """The median of some repetitions."""
        rng = np.random.default_rng(0)
        codes = rng.integers(0, 26, (20_000, 17))
        for i in range(1, 17):
            noise = rng.integers(0, 16, 20_000)
            follows = rng.random(20_000) < 0.7
            codes[:, i] = np.where(follows, (codes[:, i // 2] + noise // 6) % 16, noise)
        variables = tuple(
            Variable(f"v{i}", tuple(map(str, range(26 if i == 0 else 16)))) for i in range(17)
        )
        data = EncodedData(codes.astype(np.int32), np.ones(len(codes)), variables)
        return self.measure_data(data)


Measurement = Search | Scoring | Learning


def measurements() -> list[Measurement]:
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
        LetterSized("letter-sized", "bdeu", 3),
    ]
    learnings = [
        Learning("wine", "bic", 3),
        Learning("insurance1000", "bdeu", 3),
        Learning("autos", "bic", 6),
        Learning("soybean", "bic", None),
        Learning("alarm1000", "bdeu", 3),
        Learning("carpo100", "bdeu", 3, seconds=600.0),
        Learning("hailfinder500", "bdeu", 3),
        Learning("zoo", "bdeu", 8, seconds=600.0),
        Learning("wdbc", "bic", None, certificate=False),
        Learning("mushroom", "bdeu", 6, certificate=False),
        Learning("mushroom", "bdeu", None, certificate=False, seconds=300.0),
    ]
    return [*scorings, *map(Search, searches), *learnings]


def absent(wanted: Iterable[Measurement], folder: Path) -> list[str]:
    """The instances that the folder does not have."""
    return list(dict.fromkeys(m.instance for m in wanted if m.file(folder) is None))


def measure(measurement: Measurement, folder: Path) -> dict[str, Any]:
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
