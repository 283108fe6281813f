"""Enumeration, the reference of all solvers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from marginbn.problem.candidates import CandidateSets
from marginbn.problem.encoded import Variable
from marginbn.problem.problem import StructureProblem
from marginbn.problem.structure import is_acyclic
from marginbn.solvers.exhaustive import ExhaustiveSolver
from marginbn.solvers.result import Status
from marginbn.solvers.run import Run
from marginbn.solvers.solve import solve_with
from problems import small_linear_problem, small_margin_problem


def test_two_variables_by_hand() -> None:
    """Both arcs together would score best but close a cycle; the better single arc wins."""
    candidates = CandidateSets(2, np.array([0, 0, 1, 1], dtype=np.int32), ((), (1,), (), (0,)))
    variables = (Variable("c", ("a", "b")), Variable("x", ("a", "b")))
    problem = StructureProblem(candidates, np.array([0.0, 5.0, 0.0, 7.0]), variables)
    result = solve_with(ExhaustiveSolver(), Run(problem))
    assert result.structure.parents == ((), (0,))
    assert (result.objective, result.bound, result.status) == (7.0, 7.0, Status.OPTIMAL)


@pytest.mark.parametrize("seed", range(4))
def test_equals_a_loop_over_the_product(seed: int) -> None:
    """The incremental walk finds what evaluating every acyclic selection finds."""
    for problem in (
        small_margin_problem(seed, n_features=3, n_rows=15),
        small_linear_problem(seed, n_features=3),
    ):
        groups = [problem.candidates.group(i) for i in range(problem.n_variables)]
        best = max(
            problem.evaluate(np.array(chosen))
            for chosen in itertools.product(*groups)
            if is_acyclic([problem.candidates.parents[k] for k in chosen])
        )
        result = solve_with(ExhaustiveSolver(), Run(problem))
        assert result.objective == pytest.approx(best, rel=1e-13)
        assert result.bound == result.objective + 2.0 * problem.error


def test_large_problems_are_refused_with_a_reason() -> None:
    """The number of selections, of variables and the memory are looked at."""
    solver = ExhaustiveSolver()
    assert solver.can_solve(small_margin_problem(0)) is None
    reason = solver.can_solve(small_margin_problem(0, n_features=8))
    assert reason is not None
    assert "selections" in reason
    many = CandidateSets(70, np.arange(70, dtype=np.int32), ((),) * 70)
    problem = StructureProblem(many, np.zeros(70), (Variable("v", ("a",)),) * 70)
    assert "70 variables" in (solver.can_solve(problem) or "")


def test_a_stop_leaves_a_valid_bound() -> None:
    """Stopped by the callback at once, the result still brackets the optimum."""
    problem = small_margin_problem(0)
    best = solve_with(ExhaustiveSolver(), Run(problem)).objective
    stopped = solve_with(ExhaustiveSolver(), Run(problem, callback=lambda point: True))
    assert stopped.status is Status.INTERRUPTED
    assert stopped.objective <= best <= stopped.bound
    assert np.isfinite(stopped.bound)


def test_ctrl_c_returns_the_incumbent() -> None:
    """A KeyboardInterrupt during the walk is a normal ending."""
    problem = small_margin_problem(0)
    events = []

    def callback(point) -> None:
        events.append(point)
        if len(events) == 4:  # first structure, two bounds, then the first improvement
            raise KeyboardInterrupt

    result = solve_with(ExhaustiveSolver(), Run(problem, callback=callback))
    assert result.status is Status.INTERRUPTED
    assert result.objective <= result.bound
