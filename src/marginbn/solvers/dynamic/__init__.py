"""Dynamic programming over subsets of variables, for decomposable scores.

With costs (what a candidate loses against the best of its variable) and

    local_v(W) = least cost among the candidates of v with parents inside W,
    best(W)    = min over v in W of best(W - v) + local_v(W - v),      best({}) = 0,

best of all variables is the optimum. Sets W come by size, layer by layer, and those are left out
that cannot be part of anything better than the best structure known; the multipliers of a dual
ascent (``solvers/orders/ascent.py``) bound what the other variables cost.
``docs/theory/dynamic_programming.rst`` has the proofs and the calls in their order.
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
