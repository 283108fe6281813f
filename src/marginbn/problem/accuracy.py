"""What a floating-point MILP solver's bound on formulation (19) is worth.

A solver proves its bound to tolerances. A reduced cost that is wrong by t changes the bound of a
linear programme by at most t times the distance that its column can move; with the objective
divided by its scale s and tau taken at a first structure that is

    s t (1 + sum_m (gamma - tau_m) + N Delta + N)

(the etas of one variable sum to one, hence N for all of them). A node is given up when its bound
exceeds the incumbent's value by no more than a rounding share of 1e-9. Entries of the matrix
below a threshold are left out by the solver: at most N of them, one per variable, can raise a
margin row, each by its own size. Constraints that hold only to a tolerance enlarge the feasible
set and with it the bound, which is the safe side. The sum of all this is added to whatever the
solver claims, so that a bound is not below the optimum.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from marginbn.problem.formulation import MILP

ROUNDING = 1e-9
"""Relative difference below which HiGHS and SCIP take two values for equal."""


def objective_scale(milp: MILP, largest: float = 1.0) -> float:
    """The power of two by which to divide the objective; 1 if it is zero.

    Afterwards its largest coefficient is near ``largest``. The division is exact; it lets sample
    weights of any size meet the same tolerances, and a ``largest`` above one tightens them.
    """
    size = float(np.abs(milp.cost).max(initial=0.0)) / largest
    return 2.0 ** round(math.log2(size)) if size > 0 else 1.0


def bound_allowance(
    milp: MILP,
    point: NDArray[np.float64],
    *,
    scale: float,
    tolerance: float,
    threshold: float,
) -> float:
    """What to add to a bound, see the module text.

    Parameters
    ----------
    milp, point
        The formulation and a feasible point of it.
    scale
        The solver has seen the objective divided by this.
    tolerance
        Dual feasibility tolerance of the solver.
    threshold
        Matrix entries below this are zero to the solver.
    """
    n = milp.candidates.n_variables
    slack = float((milp.upper[milp.tau] - point[milp.tau]).sum())
    movement = 1.0 + slack + n * milp.delta + n
    sizes = np.abs(milp.matrix.data)
    lost = float(sizes[sizes <= threshold].max(initial=0.0))
    lost_value = n * lost * float(milp.cost[milp.tau].sum())
    return tolerance * scale * movement + ROUNDING * abs(float(milp.cost @ point)) + lost_value
