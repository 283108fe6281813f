"""Progress bookkeeping and the gap functions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from marginbn.exceptions import InputError, SolverError
from marginbn.solvers.result import SolveResult, Status, TracePoint
from marginbn.solvers.run import Limits, Run
from marginbn.solvers.tree_search import initial_bound, initial_selection
from problems import small_linear_problem


def new_run(callback=None, **limits) -> Run:
    return Run(small_linear_problem(0), Limits(**limits), callback=callback)


def ended(run: Run, stopped: Status) -> SolveResult:
    run.stopped = stopped
    return run.finish("test")


def test_objectives_rise_and_bounds_fall() -> None:
    run = new_run()
    first = initial_selection(run.problem)
    empty = run.problem.candidates.offsets[:-1]
    assert run.offer(first)
    assert not run.offer(first)
    assert not run.offer(empty)
    bound = initial_bound(run.problem)
    assert run.improve_bound(bound + 1)
    assert not run.improve_bound(bound + 2)
    assert run.improve_bound(bound)
    result = ended(run, Status.TIME_LIMIT)
    error = 2.0 * run.problem.error
    assert [point.bound for point in result.trace] == [math.inf, bound + 1 + error, bound + error]
    assert {point.objective for point in result.trace} == {result.objective}
    np.testing.assert_array_equal(result.selection, first)


def test_a_cyclic_incumbent_is_refused() -> None:
    run = new_run()
    candidates = run.problem.candidates
    cyclic = candidates.offsets[:-1].copy()
    cyclic[0], cyclic[1] = candidates.index(0, (1,)), candidates.index(1, (0,))
    with pytest.raises(InputError, match="directed cycle"):
        run.offer(cyclic)
    assert run.selection is None


def test_a_refuted_bound_is_an_error() -> None:
    run = new_run()
    selection = initial_selection(run.problem)
    run.offer(selection)
    with pytest.raises(SolverError, match="claimed as an upper bound"):
        run.improve_bound(run.objective - 1.0)
    late = new_run()
    late.improve_bound(run.objective - 1.0)
    with pytest.raises(SolverError, match="claimed as an upper bound"):
        late.offer(selection)


def test_the_callback_hears_every_improvement_and_may_stop() -> None:
    heard: list[TracePoint] = []

    def callback(point: TracePoint) -> bool:
        heard.append(point)
        return len(heard) == 2

    run = new_run(callback)
    run.offer(initial_selection(run.problem))
    assert not run.stop_requested
    run.improve_bound(initial_bound(run.problem))
    assert run.stop_requested
    assert tuple(heard) == ended(run, Status.INTERRUPTED).trace


def test_the_status_tells_proof_from_stop() -> None:
    run = new_run()
    with pytest.raises(SolverError, match="without any structure"):
        ended(run, Status.OPTIMAL)
    run.offer(initial_selection(run.problem))
    run.improve_bound(run.objective + 10)
    assert ended(run, Status.NODE_LIMIT).status is Status.NODE_LIMIT
    with pytest.raises(SolverError, match="claims to be done"):
        ended(run, Status.OPTIMAL)
    run.improve_bound(run.objective)
    assert ended(run, Status.TIME_LIMIT).status is Status.OPTIMAL


def test_a_wide_gap_tolerance_ends_as_gap_limit() -> None:
    run = new_run(gap=0.5)
    run.offer(initial_selection(run.problem))
    run.improve_bound(run.objective * 0.9)  # objectives are negative here
    assert run.is_closed
    assert ended(run, Status.OPTIMAL).status is Status.GAP_LIMIT


def test_the_forecast_follows_the_root_gap_law() -> None:
    """With a root gap of 100 the proof is forecast from 30, 20 and 10 nats on, each time from the
    moment when so much was left for the first time; never before the present.
    """
    run = new_run()
    run.objective, run.bound = 0.0, 100.0
    assert run._forecast(1.0) is None, "the root is not solved"
    run.root_bound = 100.0
    seen = []
    for seconds, bound in (
        (1.0, 31.0),
        (2.0, 30.0),
        (3.0, 25.0),
        (4.0, 20.0),
        (9.0, 11.0),
        (10, 9),
    ):
        run.bound = bound
        seen.append(run._forecast(float(seconds)))
    assert seen == [None, (6.0, 70.0), (6.0, 70.0), (8.0, 72.0), (9.0, 72.0), (14.0, 57.0)]
    run.bound = 0.0
    assert run._forecast(20.0) is None, "nothing is left to prove"


def test_points_of_margin_problems_have_the_gap_per_row() -> None:
    """100 nats over 50 rows are 2 nats per row; scores of parent sets have no rows."""
    assert TracePoint(1.0, 0.0, 100.0, rows=50.0).details == "2 nats per row"
    assert TracePoint(1.0, 0.0, 100.0).details == ""
    assert TracePoint(1.0, -math.inf, 100.0, rows=50.0).details == ""
