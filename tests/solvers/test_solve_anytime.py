"""Every solver at any time: limits end it, Ctrl-C returns the best, runs can be repeated."""

from __future__ import annotations

import itertools
import os
import signal
import threading

import pytest

from marginbn.problem.problem import StructureProblem
from marginbn.solvers.result import Status, TracePoint
from marginbn.solvers.run import Limits, Run
from marginbn.solvers.solve import Solver, get_solver, solve_with, solver_names
from problems import small_linear_problem, small_margin_problem


@pytest.fixture(params=solver_names())
def solver(request: pytest.FixtureRequest) -> Solver:
    return get_solver(request.param)


def problem_for(solver: Solver, *, n_features: int = 4) -> StructureProblem:
    if solver.name == "dp":
        return small_linear_problem(0, n_features=n_features)
    return small_margin_problem(1, n_features=n_features)


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_an_interrupt_at_any_point_returns_the_best(solver: Solver, nth: int) -> None:
    problem = problem_for(solver)
    best = solve_with(solver, Run(problem)).objective
    heard: list[TracePoint] = []

    def interrupt(point: TracePoint) -> bool:
        heard.append(point)
        if len(heard) == nth:
            raise KeyboardInterrupt
        return False

    result = solve_with(solver, Run(problem, callback=interrupt))
    assert result.objective >= heard[nth - 1].objective
    assert result.bound >= best - 1e-6 * abs(best)
    assert result.status is Status.INTERRUPTED or result.is_optimal


def test_an_interrupt_before_any_structure_is_an_interrupt(
    solver: Solver, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = problem_for(solver)
    solve_with(solver, Run(problem))  # whatever has to be loaded is loaded

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("marginbn.solvers.tree_search.simple_selections", interrupt)
    with pytest.raises(KeyboardInterrupt):
        solve_with(solver, Run(problem))


def send_ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("name", ["branch_bound", "branch_cut", "highs"])
def test_a_real_signal_returns_the_best(name: str) -> None:
    """A moment after the first report of a search that takes hours, wherever it is then."""
    problem = small_margin_problem(1, n_features=25, n_rows=500, n_classes=4, gamma=8.0)
    solver, timer = get_solver(name), threading.Timer(0.5, send_ctrl_c)

    def start_timer(point: TracePoint) -> None:
        if not timer.is_alive() and not timer.finished.is_set():
            timer.start()

    result = solve_with(solver, Run(problem, limits=Limits(time=600.0), callback=start_timer))
    assert result.status is Status.INTERRUPTED
    assert result.bound > result.objective


def test_a_real_signal_ends_dynamic_programming(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes while the fourth of seven layers is made."""
    poll, polls = Run.poll, itertools.count(1)

    def interrupt(self: Run) -> None:
        if next(polls) == 4:
            send_ctrl_c()
        poll(self)

    monkeypatch.setattr(Run, "poll", interrupt)
    result = solve_with(get_solver("dp"), Run(small_linear_problem(0, n_features=6)))
    assert result.status is Status.INTERRUPTED
    assert result.bound > result.objective


@pytest.mark.parametrize("name", ["branch_bound", "branch_cut"])
def test_one_worker_and_a_node_limit_can_be_repeated(name: str) -> None:
    problem = small_margin_problem(1, n_features=8, n_rows=80, n_classes=4)
    solver = get_solver(name)
    first, second = (
        solve_with(solver, Run(problem, limits=Limits(nodes=15), seed=7)) for _ in range(2)
    )
    assert first.structure == second.structure
    assert first.nodes == second.nodes <= 15
    assert [(p.objective, p.bound) for p in first.trace] == [
        (p.objective, p.bound) for p in second.trace
    ]


@pytest.mark.parametrize("name", ["branch_bound", "branch_cut", "highs"])
def test_a_node_limit_is_a_normal_ending(name: str) -> None:
    problem = small_margin_problem(1, n_features=6, n_rows=60, n_classes=4)
    best = solve_with(get_solver("branch_bound"), Run(problem)).objective
    result = solve_with(get_solver(name), Run(problem, limits=Limits(nodes=1)))
    assert result.status in (Status.NODE_LIMIT, Status.OPTIMAL)
    assert result.objective <= best * (1 + 1e-6)
    assert result.bound >= best * (1 - 1e-6)
