"""How coarse the arithmetic of a certificate is, and how much a claim must allow for it.

A checker rounds the values of candidates up to multiples of 2^grid in 64-bit integers, which leave
54 - 3 b bits for a value where the number of variables has b bits. The claimed bound has to lie
above everything that rounding can add: one unit of the grid for every variable, for the constant
and for every multiplier; eight units of 2^-44 for every coefficient, times the weights; the errors
of decomposable scores; and those of sums in double precision, on both sides.
"""

from __future__ import annotations

import math

from marginbn.problem.problem import StructureProblem


def value_bits(n_variables: int) -> int:
    """Bits that a checker leaves for a value."""
    return 54 - 3 * max(n_variables, 1).bit_length()


def choose_grid(largest: float, n_variables: int) -> int:
    """The finest grid on which values up to ``largest`` fit, with a factor of two in reserve."""
    bits = value_bits(n_variables)
    return math.frexp(2.0 * largest)[1] - bits if largest > 0 else -bits


def rounding_slack(
    problem: StructureProblem, grid: int, largest: float, n_multipliers: int = 0
) -> float:
    """How much a checker's bound can exceed the same bound in exact arithmetic, and ours fall
    short of it.
    """
    n = problem.n_variables + 1
    weight = float(problem.sample_weights.sum())
    gamma = problem.gamma if problem.margins is not None else 0.0
    units = (2 * n + n_multipliers + 4) * 2.0**grid
    coefficients = 8.0 * n * weight * 2.0**-44
    sums = 2.0**-49 * (problem.n_rows + 64) * (n * largest + gamma * weight)
    return units + coefficients + sums + n * _score_slack(problem)


def _score_slack(problem: StructureProblem) -> float:
    """How far two computations of a decomposable local score may be apart.

    A checker has up to four logarithms or log-gammas per distinct row, each off by a unit of 2^-44
    and, in likelihoods, times its count; ours has one of size 50 or less for every cell.
    """
    if problem.origin is None:
        return 0.0
    data = problem.origin[0]
    candidates = problem.candidates
    cells = max(
        math.prod(int(data.arities[v]) for v in {int(child), *parents})
        for child, parents in zip(candidates.child, candidates.parents, strict=True)
    )
    ours = 2.0**-50 * 50.0 * (cells + 8)
    return (8.0 * data.n_samples + 4.0 * data.total_weight) * 2.0**-44 + ours
