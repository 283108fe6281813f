"""Judges any solve result anew, from the problem's definition alone."""

from __future__ import annotations

import math

from marginbn.exceptions import SolverError
from marginbn.problem import StructureProblem
from marginbn.solvers.result import SolveResult, allowance
from marginbn.structure import is_acyclic

SCORE_TOLERANCE = 1e-9
"""Relative difference allowed between a claimed and a recomputed objective: float summation."""


def check_result(problem: StructureProblem, result: SolveResult) -> None:
    """Raise :class:`SolverError` unless the result is consistent.

    The structure must be acyclic and made of candidates, the objective must be what the
    definition gives, the bound must not lie below it, and in the trace objectives only rise,
    bounds only fall and no bound lies below any objective.
    """
    if not is_acyclic(result.structure.parents):
        raise SolverError(f"solver {result.solver!r} returned a cyclic graph")
    recomputed = problem.score(result.structure)
    if abs(recomputed - result.objective) > SCORE_TOLERANCE * max(1.0, abs(recomputed)):
        raise SolverError(
            f"solver {result.solver!r} claims the objective {result.objective}, "
            f"the definition gives {recomputed}"
        )
    if not result.bound >= result.objective:
        raise SolverError(
            f"solver {result.solver!r} claims the bound {result.bound}, "
            f"which lies below the objective {result.objective}"
        )
    _check_trace(result)


def _check_trace(result: SolveResult) -> None:
    objective, bound = -math.inf, math.inf
    for point in result.trace:
        rises = point.bound > bound + allowance(bound)
        if point.objective < objective or rises or point.bound < point.objective:
            raise SolverError(f"solver {result.solver!r} has an inconsistent trace at {point}")
        objective, bound = point.objective, point.bound
    if bound < result.objective - allowance(bound):
        raise SolverError(f"solver {result.solver!r} once claimed a bound that was too low")
