"""The engine: exact branch and bound for structures with at most two parents per variable.

Importing this package is cheap; numba and the kernels are loaded when a solve starts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marginbn.problem.problem import StructureProblem
from marginbn.solvers.branch_bound.needs import Shape
from marginbn.solvers.checkpoint import Checkpoint
from marginbn.solvers.memory import Needs
from marginbn.solvers.result import Majorant, SolveResult
from marginbn.solvers.run import Callback, Limits

__all__ = ["BranchBoundSolver", "warm_up"]


def warm_up() -> None:
    """Compile the kernels now (or load them from the cache), not when the first solve starts."""
    from marginbn.solvers.branch_bound.engine import warm_up as compile_kernels

    compile_kernels()


@dataclass(frozen=True)
class BranchBoundSolver:
    """Branch and bound with Frank-Wolfe bounds (solver name ``"branch_bound"``).

    Parameters
    ----------
    heuristics
        Whether local search and relaxation vertices may supply incumbents. Without them only
        evaluated leaves do; meant for tests.
    random_splits
        Split on random objects instead of the best ones; meant for tests.
    neighbour
        What is known of the same problem at another gamma.
    """

    heuristics: bool = True
    random_splits: bool = False
    neighbour: Majorant | None = None

    @property
    def name(self) -> str:
        """Name in the registry."""
        return "branch_bound"

    def can_solve(self, problem: StructureProblem) -> str | None:
        """None, or the reason why the problem is out of reach."""
        candidates = problem.candidates
        if candidates.n_variables < 2:
            return "it needs at least one feature"
        if not candidates.is_class_restricted:
            return "it needs class-restricted candidates: features have no parents or the class"
        if candidates.max_parents > 2:
            return f"it handles at most two parents per variable, not {candidates.max_parents}"
        return None

    def needs(self, problem: StructureProblem, n_jobs: int = 1) -> Needs:
        """Memory for scratch, the smallest store of open nodes, and the coefficients."""
        return Shape.of(problem.candidates, problem.n_rows).needs(n_jobs)

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
        """Solve to the gap of the limits, or until another limit; see
        :class:`marginbn.solvers.solve.Solver`.

        The time limit and the times of the trace begin when the kernels are compiled (the first
        time on a machine, up to a minute, told on stderr) or loaded.
        """
        from marginbn.solvers.branch_bound.engine import drive

        return drive(
            problem,
            limits,
            start,
            callback,
            seed,
            self.heuristics,
            self.random_splits,
            n_jobs,
            checkpoint,
            self.neighbour,
        )
