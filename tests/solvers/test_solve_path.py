"""Solves along a path of gammas, each from the structure before it."""

from __future__ import annotations

import numpy as np
import pytest

from branch_bound_cases import random_problem
from brute_force import brute_force
from marginbn import InputError
from marginbn.problem.structure import Structure
from marginbn.solvers import solve_structure

GAMMAS = (0.01, 0.3, 1.0, 2.5, 9.0)


@pytest.mark.parametrize("solver", ["branch_bound", "highs"])
@pytest.mark.parametrize("seed", range(12, 18))
def test_a_path_of_gammas_finds_every_optimum(seed: int, solver: str) -> None:
    problem = random_problem(np.random.default_rng(seed), 2 + seed % 3)
    start: Structure | None = None
    for gamma in GAMMAS if seed % 2 else reversed(GAMMAS):
        here = problem.with_gamma(gamma)
        result = solve_structure(here, solver, start=start)
        best = brute_force(here)
        assert result.objective == pytest.approx(best, rel=2e-6, abs=1e-9)
        assert result.bound >= best - 1e-10 * max(1.0, abs(best))
        start = result.structure


def test_a_start_that_is_no_structure_of_the_problem_is_refused() -> None:
    problem = random_problem(np.random.default_rng(3), 3)
    with pytest.raises(InputError, match="must have 4 variables, got 2"):
        solve_structure(problem, start=Structure(((), ())))
