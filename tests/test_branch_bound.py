"""The engine against exhaustive search, with and without heuristics; limits, interrupts,
determinism.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from branch_bound_cases import best_by_enumeration, random_linear_problem, random_problem
from marginbn.candidates import enumerate_candidates
from marginbn.encode import Variable
from marginbn.exceptions import InputError
from marginbn.problem import StructureProblem, margin_problem
from marginbn.solvers.branch_bound import BranchBoundSolver
from marginbn.solvers.limits import Limits
from marginbn.solvers.result import Status, TracePoint
from strategies import random_data


def check_against_enumeration(
    problem: StructureProblem, solver: BranchBoundSolver, seed: int
) -> None:
    """Objective and bound enclose the true optimum to 1e-6."""
    expected = best_by_enumeration(problem)
    if expected == -np.inf:
        with pytest.raises(InputError, match="no acyclic structure"):
            solver.solve(problem, limits=Limits(), seed=seed)
        return
    result = solver.solve(problem, limits=Limits(), seed=seed)
    rounding = 1e-11 * max(1.0, abs(expected))
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(expected, rel=1.01e-6, abs=rounding)
    assert result.objective <= expected + rounding
    assert result.bound >= expected - rounding


def solver_for(seed: int) -> BranchBoundSolver:
    """Half without heuristics (only leaves give incumbents), a third with random splits."""
    return BranchBoundSolver(heuristics=seed % 2 == 0, random_splits=seed % 3 == 0)


@pytest.mark.parametrize("seed", range(90))
def test_equals_enumeration(seed: int) -> None:
    """Small random problems are solved to the optimum that enumeration finds."""
    rng = np.random.default_rng(seed)
    check_against_enumeration(random_problem(rng, 2 + seed % 3), solver_for(seed), seed)


@pytest.mark.parametrize("seed", range(40))
def test_linear_problems_equal_enumeration(seed: int) -> None:
    """Without margins the joint oracle is exact."""
    rng = np.random.default_rng(seed)
    check_against_enumeration(random_linear_problem(rng, 2 + seed % 3), solver_for(seed), seed)


@pytest.mark.slow
def test_thousands_of_problems_equal_enumeration() -> None:
    """The same for thousands of problems of up to five features."""
    for seed in range(10_000, 14_000):
        rng = np.random.default_rng(seed)
        n_features = 5 if seed % 40 == 0 else 2 + seed % 3
        check_against_enumeration(random_problem(rng, n_features), solver_for(seed), seed)


def larger_problem() -> StructureProblem:
    """Nine noisy features: hundreds of nodes."""
    data = random_data(3, n_samples=150, arities=(3, 3, 2, 3, 2, 3, 3, 2, 3, 2))
    candidates = enumerate_candidates(data.n_variables, 2)
    return margin_problem(data, candidates, gamma=1.0)


def test_node_limit_gives_a_bracket() -> None:
    """A node limit is a normal ending: structure, bound and status."""
    result = BranchBoundSolver(heuristics=False).solve(larger_problem(), limits=Limits(nodes=3))
    assert result.status is Status.NODE_LIMIT
    assert result.nodes <= 3
    assert result.objective < result.bound


def test_time_limit_is_kept_mid_node() -> None:
    """A time limit that has passed at the first look still gives an answer."""
    result = BranchBoundSolver(heuristics=False).solve(larger_problem(), limits=Limits(time=1e-6))
    assert result.status is Status.TIME_LIMIT
    assert np.isfinite(result.bound)


def test_gap_limit() -> None:
    """A wide gap tolerance ends early and is reported as such."""
    problem = larger_problem()
    result = BranchBoundSolver(heuristics=False).solve(problem, limits=Limits(gap=0.5))
    assert result.gap <= 0.5
    assert result.status in (Status.GAP_LIMIT, Status.OPTIMAL)


def test_callback_can_stop() -> None:
    """A callback that returns true ends the search as interrupted."""
    result = BranchBoundSolver(heuristics=False).solve(
        larger_problem(), limits=Limits(), callback=lambda point: True
    )
    assert result.status is Status.INTERRUPTED


def test_interrupt_returns_the_incumbent() -> None:
    """Ctrl-C between batches returns the best structure so far."""

    def interrupt(point: TracePoint) -> bool:
        if np.isfinite(point.objective) and np.isfinite(point.bound):
            raise KeyboardInterrupt
        return False

    result = BranchBoundSolver().solve(larger_problem(), limits=Limits(), callback=interrupt)
    assert result.status is Status.INTERRUPTED
    assert result.objective <= result.bound


def test_start_is_used() -> None:
    """The objective is never below that of the structure the search starts from."""
    problem = larger_problem()
    best = BranchBoundSolver().solve(problem, limits=Limits(nodes=50))
    again = BranchBoundSolver(heuristics=False).solve(
        problem, limits=Limits(nodes=1), start=best.selection
    )
    assert again.objective == best.objective


def test_same_seed_same_run() -> None:
    """One worker with a node limit is deterministic."""
    runs = [
        BranchBoundSolver().solve(larger_problem(), limits=Limits(nodes=40), seed=5)
        for _ in range(2)
    ]
    points = [[(p.objective, p.bound) for p in run.trace] for run in runs]
    assert points[0] == points[1]
    assert runs[0].selection.tolist() == runs[1].selection.tolist()


def test_trace_is_monotone() -> None:
    """Objectives only rise, bounds only fall, and no bound is below an objective."""
    trace = BranchBoundSolver().solve(larger_problem(), limits=Limits(nodes=200)).trace
    for before, after in pairwise(trace):
        assert after.objective >= before.objective
        assert after.bound <= before.bound or before.bound == np.inf
    assert all(p.objective <= p.bound for p in trace)


@pytest.mark.parametrize("scale", [1e-6, 1e9])
def test_scaled_weights_give_the_same_structure_value(scale: float) -> None:
    """Multiplying all weights multiplies the optimum; tolerances are relative."""
    problem = random_problem(np.random.default_rng(7), 4)
    problem = replace(problem, linear=np.zeros_like(problem.linear))
    scaled = replace(problem, weights=problem.sample_weights * scale)
    expected = BranchBoundSolver().solve(problem, limits=Limits()).objective
    assert BranchBoundSolver().solve(scaled, limits=Limits()).objective == pytest.approx(
        scale * expected
    )


def test_refuses_what_it_cannot_solve() -> None:
    """Three parents and unrestricted candidates are refused with a reason."""
    variables = tuple(Variable(f"v{i}", ("0", "1")) for i in range(5))
    for options in ({"max_parents": 3}, {"max_parents": 2, "class_restricted": False}):
        candidates = enumerate_candidates(5, **options)
        problem = StructureProblem(candidates, np.zeros(candidates.n_candidates), variables)
        assert BranchBoundSolver().can_solve(problem) is not None


def test_importing_the_solver_does_not_import_numba() -> None:
    """numba is loaded when a solve starts, not before."""
    code = "import sys, marginbn.solvers.branch_bound; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
