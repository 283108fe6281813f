"""Depth-first search over orders with the bound of dual ascent, for very many candidates.

No linear programme and no table of all sets: a node costs a look at the lists that are left below
it, and memory is bounded whatever the search does. The method is in
``solvers/orders/kernels/descent.py``; it is the idea of CPBayes (van Beek and Hoffmann 2015) and
ELSA (Troesser, de Givry and Katsirelos 2021), with components and a table of sets.

The search deepens: it looks for structures that cost less than a threshold between the proven bound
and the incumbent. If there is none the threshold is the new bound; what became known of sets of
variables stays known, and the next threshold lies further. So the bound improves all the time, and
the last threshold, the cost of the incumbent, ends the search.
"""

from __future__ import annotations

from dataclasses import dataclass

from marginbn.problem.problem import StructureProblem
from marginbn.solvers.memory import Needs, descent_bytes, list_bytes
from marginbn.solvers.result import Status
from marginbn.solvers.run import Run, Solver

__all__ = ["DepthFirstSolver"]

MANY_CANDIDATES = 50_000
"""From so many on linear programmes are slow."""


@dataclass(frozen=True)
class DepthFirstSolver(Solver):
    """Depth-first search over orders (solver name ``"depth_first"``)."""

    name = "depth_first"

    heuristics: bool = True
    """Whether good structures are looked for before and beside the search; meant for tests."""

    def can_solve(self, problem: StructureProblem) -> str | None:
        """Linear problems."""
        if not problem.is_linear:
            return "it has margin rows; a search over orders needs a decomposable score"
        return None

    def suits(self, problem: StructureProblem) -> bool:
        """Where there are very many parent sets that no subset outdoes."""
        many = problem.candidates.n_candidates >= MANY_CANDIDATES
        return many and int(problem.undominated.sum()) >= MANY_CANDIDATES

    def needs(self, problem: StructureProblem, n_jobs: int = 1) -> Needs:
        """The lists twice; and room for those of many nodes."""
        size = problem.candidates.n_candidates, problem.n_variables
        lists = list_bytes(size[0])
        return Needs(lists + descent_bytes(*size, 2), lists + descent_bytes(*size, size[1]))

    def prepare(self, problem: StructureProblem | None = None, n_jobs: int = 1) -> None:
        """Load or compile the kernels."""
        from marginbn.solvers.depth_first.thresholds import warm_up

        warm_up()

    def run(self, run: Run) -> Status:
        """Find good orders and a bound, then search for better orders."""
        from marginbn.solvers.depth_first.thresholds import DepthFirstSearch

        return DepthFirstSearch(run, self.heuristics).run()
