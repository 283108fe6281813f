"""Judges any solve result anew, from the problem's definition alone."""

from __future__ import annotations

import math

import numpy as np

from marginbn.exceptions import InputError, SolverError
from marginbn.problem.problem import StructureProblem
from marginbn.problem.structure import is_acyclic
from marginbn.solvers.result import PROOF_TOLERANCE, SolveResult, Status, allowance

SCORE_TOLERANCE = 1e-9
"""Relative difference allowed between a claimed and a recomputed objective: float summation."""


def check_result(problem: StructureProblem, result: SolveResult) -> None:
    """Raise :class:`SolverError` unless the result is consistent.

    The structure must be acyclic, made of candidates and the one that is selected, the objective
    must be what the definition gives, the bound must not lie below it and must meet it if
    the status says optimal; in the trace objectives only rise, bounds only fall and no bound lies
    below any objective.
    """
    if not is_acyclic(result.structure.parents):
        raise SolverError(f"solver {result.solver!r} returned a cyclic graph")
    _check_selection(problem, result)
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
    if result.status is Status.OPTIMAL and result.gap > PROOF_TOLERANCE:
        raise SolverError(
            f"solver {result.solver!r} claims an optimal structure, but objective "
            f"{result.objective} and bound {result.bound} leave a gap of {result.gap:.3g}"
        )
    _check_trace(result)


def _check_selection(problem: StructureProblem, result: SolveResult) -> None:
    try:
        selection = problem.candidates.selection(result.structure)
    except InputError as error:
        raise SolverError(f"solver {result.solver!r}: {error}") from error
    if not np.array_equal(selection, result.selection):
        raise SolverError(
            f"solver {result.solver!r} returned the selection {result.selection}, "
            f"but its structure is the selection {selection}"
        )


def _check_trace(result: SolveResult) -> None:
    seconds, objective, bound = 0.0, -math.inf, math.inf
    for point in result.trace:
        falls = point.bound <= bound + allowance(bound)
        # every comparison with NaN is false, so a NaN is refused here as well
        if not (point.seconds >= seconds and falls and objective <= point.objective <= point.bound):
            raise SolverError(f"solver {result.solver!r} has an inconsistent trace at {point}")
        seconds, objective, bound = point.seconds, point.objective, point.bound
    if objective > result.objective + allowance(objective):
        raise SolverError(f"solver {result.solver!r} once had a better structure: {objective}")
    if bound < result.objective - allowance(bound):
        raise SolverError(f"solver {result.solver!r} once claimed a bound that was too low")
