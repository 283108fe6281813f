"""The second engine: linear programmes with cluster cuts, for any structure problem.

Importing this package is cheap; numba and HiGHS are loaded when a solve starts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marginbn.problem.problem import StructureProblem
from marginbn.solvers.branch_cut.needs import estimate
from marginbn.solvers.checkpoint import Checkpoint
from marginbn.solvers.memory import Needs
from marginbn.solvers.result import SolveResult
from marginbn.solvers.run import Callback, Deadline, Limits, Tracker

__all__ = ["BranchCutSolver"]


@dataclass(frozen=True)
class BranchCutSolver:
    """Branch and cut on hybrid linear programmes (solver name ``"branch_cut"``).

    Parameters
    ----------
    heuristics
        Whether local search and points of the relaxation may supply incumbents. Without them only
        evaluated leaves prune; meant for tests.
    random_splits
        Split on random objects instead of the best ones; meant for tests.
    """

    heuristics: bool = True
    random_splits: bool = False

    @property
    def name(self) -> str:
        """Name in the registry."""
        return "branch_cut"

    def can_solve(self, problem: StructureProblem) -> str | None:
        """None: any problem whose candidates allow a structure."""
        return None

    def needs(self, problem: StructureProblem, n_jobs: int = 1) -> Needs:
        """Memory for linear programmes, some open nodes and the coefficients."""
        return estimate(problem.candidates.n_candidates, problem.n_rows, n_jobs)

    def solve(
        self,
        problem: StructureProblem,
        *,
        limits: Limits,
        start: NDArray[np.int64] | None = None,
        callback: Callback | None = None,
        seed: int = 0,
        n_jobs: int = 1,
        checkpoint: Checkpoint | None = None,
    ) -> SolveResult:
        """Solve to the gap of the limits or until another limit."""
        from marginbn.solvers.branch_cut.engine import drive

        tracker = Tracker(problem, Deadline(limits), callback, checkpoint)
        return drive(tracker, start, seed, self.heuristics, self.random_splits, n_jobs)
