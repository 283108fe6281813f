"""Formulation (19) on HiGHS: what is special about a foreign solver."""

from __future__ import annotations

import math

import numpy as np
import pytest

from brute_force import brute_force
from marginbn.exceptions import MissingDependencyError, SolverError
from marginbn.solvers.milp import HighsSolver, load_highspy
from marginbn.solvers.result import Status
from marginbn.solvers.run import Limits, Run
from marginbn.solvers.solve import solve_with
from problems import small_linear_problem, small_margin_problem
from seeds import seeds


@pytest.mark.parametrize("weight", [0.5, 1.0, 1e6, 1e9])
def test_weights_of_any_size_are_proved(weight: float) -> None:
    """Scaling the objective keeps tolerances meaningful; enumeration agrees."""
    problem = small_margin_problem(3, weight=weight, n_rows=60)
    best = brute_force(problem)
    result = solve_with(HighsSolver(), Run(problem))
    assert result.objective == pytest.approx(best, rel=1e-9)
    assert result.bound >= best
    assert result.status is Status.OPTIMAL


@pytest.mark.parametrize("seed", seeds(2, 8))
def test_bounds_are_never_below_the_optimum(seed: int) -> None:
    problem = small_margin_problem(seed, n_rows=50, gamma=0.5)
    best = brute_force(problem)
    result = solve_with(HighsSolver(), Run(problem))
    assert min(point.bound for point in result.trace) >= best
    assert all(math.isfinite(point.bound) for point in result.trace[1:])


def test_incumbents_and_bounds_stream() -> None:
    problem = small_margin_problem(2, n_rows=100, n_features=5)
    result = solve_with(HighsSolver(), Run(problem))
    assert result.status is Status.OPTIMAL
    assert len({point.bound for point in result.trace}) >= 4
    assert result.nodes >= 1


def test_an_error_in_the_callback_reaches_the_caller() -> None:
    def callback(point) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        solve_with(HighsSolver(), Run(small_linear_problem(0), callback=callback))


def test_no_time_to_build_is_a_normal_ending() -> None:
    """A limit that passes while the matrix is built leaves the first structure and bound."""
    problem = small_margin_problem(0, n_rows=400, n_features=8)
    result = solve_with(HighsSolver(), Run(problem, limits=Limits(time=1e-9)))
    assert result.status is Status.TIME_LIMIT
    assert result.bound == problem.gamma * math.fsum(problem.sample_weights)


def test_a_clash_of_libraries_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    _fail_import(monkeypatch, "highspy", "libhighs.so: undefined symbol: _ZN5Highs")
    with pytest.raises(MissingDependencyError, match="another copy of the HiGHS library"):
        solve_with(HighsSolver(), Run(small_linear_problem(0)))


def test_missing_packages_are_told_with_the_line_that_installs_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _fail_import(monkeypatch, "highspy", "No module named 'highspy'")
    with pytest.raises(MissingDependencyError, match="pip install"):
        load_highspy()


def _fail_import(monkeypatch: pytest.MonkeyPatch, module: str, message: str) -> None:
    import builtins

    original = builtins.__import__

    def fake(wanted: str, *args, **kwargs):
        if wanted == module:
            raise ImportError(message)
        return original(wanted, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", fake)


def test_too_large_problems_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from marginbn.problem import formulation

    monkeypatch.setattr(formulation, "MAX_NONZEROS", 100)
    assert "margin rows" in (HighsSolver().can_solve(small_margin_problem(0)) or "")


def test_a_failed_solver_is_a_solver_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """An ending that is no limit (here: a matrix without feasible point) is never hidden."""
    from dataclasses import replace

    from marginbn.problem.formulation import formulate
    from marginbn.solvers import milp

    def impossible(problem, poll):
        form = formulate(problem, poll=poll)
        return replace(form, row_lower=form.row_lower + 1e6, row_upper=np.full(form.n_rows, 1e7))

    monkeypatch.setattr(milp.formulation, "formulate", impossible)
    with pytest.raises(SolverError, match="ended with the status"):
        solve_with(HighsSolver(), Run(small_linear_problem(0)))
