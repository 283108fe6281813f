"""What a solve returns: structure, objective, bound, gap, status and the trace.

**The gap.** With objective z (best structure found) and bound Z >= z (proven upper bound)

    relative_gap = (Z - z) / max(1, |Z|, |z|)

which is sane for every sign: zero exactly when the bound is met, never more than 2, and an
absolute gap in nats where both numbers are small (an optimum of 0 is an ordinary case). The
paper's table 1 uses 100 (Z - z) / Z (:func:`paper_gap`), which is the same number in per cent
whenever 0 <= z and Z >= 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from marginbn.problem.structure import Structure
from marginbn.solvers.majorant import Majorant


def relative_gap(objective: float, bound: float) -> float:
    """Gap between objective and bound, relative to the larger of the two in size (at least 1).

    Examples
    --------
    >>> relative_gap(99.0, 100.0)
    0.01
    >>> relative_gap(-100.0, -99.0)
    0.01
    >>> relative_gap(0.0, 0.0)
    0.0
    """
    if bound <= objective:
        return 0.0
    if not (math.isfinite(objective) and math.isfinite(bound)):
        return math.inf
    return (bound - objective) / max(1.0, abs(bound), abs(objective))


def paper_gap(objective: float, bound: float) -> float:
    """100 (Z - z) / Z per cent, the formula of the paper's table 1; NaN where Z = 0 < Z - z.

    Examples
    --------
    >>> paper_gap(99.0, 100.0)
    1.0
    """
    if bound == objective:
        return 0.0
    if bound == 0 or not (math.isfinite(objective) and math.isfinite(bound)):
        return math.inf if math.isinf(bound) or math.isinf(objective) else math.nan
    return 100.0 * (bound - objective) / bound


class Status(StrEnum):
    """How a solve ended; only ``OPTIMAL`` is a proof of optimality (to the gap tolerance).

    Examples
    --------
    >>> from marginbn import Status
    >>> Status.OPTIMAL == "optimal", Status("time_limit") is Status.TIME_LIMIT
    (True, True)
    """

    OPTIMAL = "optimal"
    GAP_LIMIT = "gap_limit"
    TIME_LIMIT = "time_limit"
    NODE_LIMIT = "node_limit"
    MEMORY_LIMIT = "memory_limit"
    INTERRUPTED = "interrupted"


PROOF_TOLERANCE = 1e-6
"""A relative gap of at most this much is called optimal; a larger requested gap is a gap limit."""


def allowance(value: float) -> float:
    """How far two computations of the same objective may differ by rounding."""
    return 1e-9 * max(1.0, abs(value)) if math.isfinite(value) else 0.0


@dataclass(frozen=True)
class TracePoint:
    """Best objective and bound known ``seconds`` after the start; infinite while unknown.

    Examples
    --------
    >>> from marginbn import TracePoint
    >>> TracePoint(seconds=1.5, objective=99.0, bound=100.0).gap
    0.01
    """

    seconds: float
    objective: float
    bound: float

    @property
    def gap(self) -> float:
        """Relative gap at this moment."""
        return relative_gap(self.objective, self.bound)


@dataclass(frozen=True, eq=False)
class SolveResult:
    """The answer of a solver, always with a bound.

    Parameters
    ----------
    structure, selection
        Best structure found, also as the flat candidate index of each variable.
    objective, bound
        Its value and a proven upper bound on every structure's value, in nats.
    status
        How the solve ended.
    trace
        (seconds, objective, bound) whenever one of the two improved.
    seconds, nodes, solver
        Wall-clock time, number of tree nodes (0 where there is no tree) and the solver's name.
        After going on from a checkpoint time and trace are those of the last call, nodes those of
        all calls.
    majorant
        What the solver knows about the same problem at other gammas, where it knows something.

    Examples
    --------
    >>> import numpy as np
    >>> from marginbn import StructureProblem, Variable, enumerate_candidates, solve_structure
    >>> variables = (Variable("class", ("0", "1")), Variable("x", ("0", "1")))
    >>> problem = StructureProblem(
    ...     enumerate_candidates(2, 1), np.array([-3.0, -2.0, -5.0, -1.0]), variables
    ... )
    >>> result = solve_structure(problem, "exhaustive")
    >>> result.is_optimal, result.objective, result.bound, result.structure.arcs
    (True, -4.0, -4.0, ((0, 1),))
    """

    structure: Structure
    selection: NDArray[np.int64]
    objective: float
    bound: float
    status: Status
    trace: tuple[TracePoint, ...]
    seconds: float
    solver: str
    nodes: int = 0
    majorant: Majorant | None = None

    @property
    def gap(self) -> float:
        """Relative gap, see :func:`relative_gap`."""
        return relative_gap(self.objective, self.bound)

    @property
    def is_optimal(self) -> bool:
        """Whether optimality is proven."""
        return self.status is Status.OPTIMAL
