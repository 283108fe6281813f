"""The engine: exact branch and bound for structures with at most two parents per variable.

Importing this package is cheap; numba and the kernels are loaded when a solve starts.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal

from marginbn.problem.problem import StructureProblem
from marginbn.solvers.interpreted import interpreting
from marginbn.solvers.memory import COMPILING, LOADING, BranchBoundShape, Needs, refuse_if_confined
from marginbn.solvers.run import Run
from marginbn.solvers.tree_search import Engine, SearchTree

__all__ = ["BranchBoundSolver"]


@dataclass(frozen=True)
class BranchBoundSolver(Engine):
    """Branch and bound with Frank-Wolfe bounds (solver name ``"branch_bound"``)."""

    name = "branch_bound"
    rows: Literal["auto", "all", "groups"] = "auto"
    """Rows that boxes are bounded with (``row_groups.py``); the answer is for all rows in any
    case."""

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
        return BranchBoundShape.of(problem).needs(n_jobs)

    def prepare(self, problem: StructureProblem | None = None, n_jobs: int = 1) -> None:
        """Load the engine, if there is room for its compiler too where that will be needed."""
        refuse_if_confined(LOADING, "loading the search engine")
        from marginbn.solvers.branch_bound.engine import LARGEST, is_interpreted
        from marginbn.solvers.compile import is_at_hand

        in_python = problem is not None and is_interpreted(problem, n_jobs)
        if not (in_python or is_at_hand(LARGEST)):
            refuse_if_confined(COMPILING, "compiling the search engine")

    def mode(self, run: Run) -> AbstractContextManager[None]:
        """With machine code, or in plain Python."""
        from marginbn.solvers.branch_bound.engine import is_interpreted

        return interpreting(is_interpreted(run.problem, run.n_jobs))

    def tree(self, run: Run) -> SearchTree:
        """Boxes in a compiled store."""
        from marginbn.solvers.branch_bound.engine import BoxSearch

        return BoxSearch(run, self)
