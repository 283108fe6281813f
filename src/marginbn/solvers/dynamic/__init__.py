"""Dynamic programming over subsets of variables, for decomposable scores.

An acyclic graph has an order in which every variable comes after its parents. With costs (what a
candidate loses against the best of its variable) and

    local_v(W) = least cost among the candidates of v with parents inside W,
    best(W)    = min over v in W of best(W - v) + local_v(W - v),      best({}) = 0,

best of all variables is the optimum. Sets W come by size, layer by layer (Silander and Myllymaki
2006), and only two layers are open at a time. A set is left out if

    best(W) + rest(W) > cost of the best structure known,

where rest(W) bounds what the other variables cost when W comes first: the multipliers of a dual
ascent over clusters outside W (``solvers/orders/ascent.py``). That is a breadth-first branch and
bound (Malone, Yuan, Hansen and Bridges 2011) with a far better heuristic. The least best(W) +
rest(W) of a layer is a bound at any time: every order passes through every layer.

local_v(W) is the first candidate of the sorted list of v that lies within W, and the search for it
ends where the cost alone is too much.
"""

from __future__ import annotations

import math

from marginbn.problem.problem import StructureProblem
from marginbn.solvers.memory import TABLE_BYTES, TRACE_BYTES, Needs, list_bytes
from marginbn.solvers.result import Status
from marginbn.solvers.run import Run, Solver

MOST_VARIABLES, FEW_VARIABLES = 64, 31
"""A set of variables is one word; up to so many it is the first choice for decomposable scores."""


class DynamicProgrammingSolver(Solver):
    """Exact for decomposable scores of up to thirty variables, and more where the bound is good."""

    name = "dp"
    may_run_out_of_memory = True

    def can_solve(self, problem: StructureProblem) -> str | None:
        """Linear problems of as many variables as a word has bits."""
        if not problem.is_linear:
            return "it has margin rows; dynamic programming needs a decomposable score"
        if problem.n_variables > MOST_VARIABLES:
            return f"it has {problem.n_variables} variables, more than {MOST_VARIABLES}"
        return None

    def suits(self, problem: StructureProblem) -> bool:
        """Where all sets of variables would fit, or nearly: linear programs are slower then."""
        return problem.n_variables <= FEW_VARIABLES

    def needs(self, problem: StructureProblem, n_jobs: int = 1) -> Needs:
        """The lists; and two layers of sets of variables, one of them as a table that grows, with
        the way back, if no set is left out.
        """
        n, least = problem.n_variables, list_bytes(problem.candidates.n_candidates)
        layers = 7 * TABLE_BYTES * math.comb(n, n // 2) + TRACE_BYTES * 2**n
        return Needs(least, least + layers)

    def run(self, run: Run) -> Status:
        """Find good orders and a bound, then go through the layers."""
        from marginbn.solvers.dynamic.layers import LayerSearch

        return LayerSearch(run).run()
