"""The second engine, for any structure problem: linear programs with cluster cuts.

Modules in the order of a search: ``engine`` opens the tree and visits nodes (``node``) of a problem
(``arrays``); ``relaxation`` solves the program (``lp``) of a node from its parent's state
(``warm``), adds ``cuts`` that ``separators`` find, and takes the safe ``bound``; ``branching``
chooses the split. Importing this package is cheap; numba and HiGHS are loaded when a solve starts.
"""

from __future__ import annotations

from dataclasses import dataclass

from marginbn.problem.problem import StructureProblem
from marginbn.solvers.memory import COMPILING, LOADING, BranchCutShape, Needs, refuse_if_confined
from marginbn.solvers.run import Run
from marginbn.solvers.tree_search import Engine, SearchTree


@dataclass(frozen=True)
class BranchCutSolver(Engine):
    """Branch and cut on hybrid linear programs (solver name ``"branch_cut"``)."""

    name = "branch_cut"

    def needs(self, problem: StructureProblem, n_jobs: int = 1) -> Needs:
        """Memory for linear programs, some open nodes and the coefficients."""
        return BranchCutShape.of(problem).needs()

    def prepare(self, problem: StructureProblem | None = None, n_jobs: int = 1) -> None:
        """Load the engine, if there is room for its compiler too where that will be needed."""
        refuse_if_confined(LOADING, "loading the search engine")
        from marginbn.solvers.branch_cut.kernels.separation import separate
        from marginbn.solvers.compile import is_at_hand

        if not is_at_hand(separate):
            refuse_if_confined(COMPILING, "compiling the search engine")

    def tree(self, run: Run) -> SearchTree:
        """Nodes with a linear program each."""
        from marginbn.solvers.branch_cut.engine import CutSearch

        return CutSearch(run, self.heuristics)
