"""What a floating-point MILP solver's bound on formulation (19) is worth.

A solver proves its bound to tolerances, all of them set to t. A reduced cost that is wrong by t
changes the bound of a linear programme by at most t times the distance that its column can move
from the optimum; with the objective divided by its scale s that is

    s t (1 + sum_m (gamma - tau_m) + N Delta + N)

for tau taken at a good structure (the etas of one variable sum to one, hence N for all of them).
Entries of the matrix below a threshold are left out by the solver: at most N of them, one per
variable, can raise a margin row, each by its own size. Constraints that hold only to a tolerance
enlarge the feasible set and with it the bound, which is the safe side. The sum of both is added to
whatever the solver claims, so that a bound is never below the optimum.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from marginbn.polytope.formulation import MILP


def objective_scale(milp: MILP) -> float:
    """A power of two near the largest objective coefficient (1 if all are zero).

    Dividing the objective by it is exact and lets large sample weights meet the same tolerances.
    """
    largest = float(np.abs(milp.cost).max(initial=0.0))
    return 2.0 ** round(math.log2(largest)) if largest > 0 else 1.0


def bound_allowance(
    milp: MILP, point: NDArray[np.float64], tolerance: float, threshold: float
) -> float:
    """What to add to a bound that was proven to ``tolerance``.

    Parameters
    ----------
    milp, point
        The formulation and a feasible point of it.
    tolerance
        Feasibility tolerance of the solver.
    threshold
        Matrix entries below this are treated as zero by the solver.
    """
    n = milp.candidates.n_variables
    slack = float((milp.upper[milp.tau] - point[milp.tau]).sum())
    sizes = np.abs(milp.matrix.data)
    lost = float(sizes[sizes <= threshold].max(initial=0.0))
    movement = 1.0 + slack + n * milp.delta + n
    weight = float(milp.cost[milp.tau].sum())
    return tolerance * objective_scale(milp) * movement + n * lost * weight
