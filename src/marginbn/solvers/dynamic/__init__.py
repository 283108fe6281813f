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

from marginbn.problem.problem import StructureProblem
from marginbn.solvers.memory import Needs
from marginbn.solvers.result import Status
from marginbn.solvers.run import Run, Solver
from marginbn.solvers.sizes import DynamicShape

MOST_VARIABLES = 64
"""A set of variables is one word."""


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
        """Where all sets of variables would fit, or nearly: linear programmes are slower then."""
        return problem.n_variables <= DynamicShape.FEW_VARIABLES

    def needs(self, problem: StructureProblem, n_jobs: int = 1) -> Needs:
        """The lists; and all sets of variables, of which most are left out as a rule."""
        return DynamicShape(problem.n_variables, problem.candidates.n_candidates).needs()

    def run(self, run: Run) -> Status:
        """Find good orders and a bound, then go through the layers."""
        from marginbn.solvers.dynamic.layers import LayerSearch

        return LayerSearch(run).run()
