"""Progress bookkeeping and the gap functions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginbn.exceptions import InputError, SolverError
from marginbn.solvers.result import Status, TracePoint, paper_gap, relative_gap
from marginbn.solvers.run import Deadline, Limits, Tracker
from marginbn.solvers.start import initial_bound, initial_selection
from problems import small_linear_problem

FINITE = st.floats(-1e9, 1e9, allow_nan=False)


def new_tracker(callback=None, **limits) -> Tracker:
    return Tracker(small_linear_problem(0), Deadline(Limits(**limits)), callback)


@pytest.mark.parametrize(
    ("objective", "bound", "gap", "paper"),
    [
        (99.0, 100.0, 0.01, 1.0),
        (100.0, 100.0, 0.0, 0.0),
        (-100.0, -99.0, 0.01, -100 / 99),
        (-50.0, 50.0, 2.0, 200.0),
        (0.0, 0.0, 0.0, 0.0),
        (0.0, 5.0, 1.0, 100.0),
        (-math.inf, 3.0, math.inf, math.inf),
        (3.0, math.inf, math.inf, math.inf),
    ],
)
def test_gaps_by_hand(objective: float, bound: float, gap: float, paper: float) -> None:
    """Both gap formulas for every combination of signs."""
    assert relative_gap(objective, bound) == pytest.approx(gap)
    assert paper_gap(objective, bound) == pytest.approx(paper)


def test_paper_gap_has_no_answer_at_a_zero_bound() -> None:
    """The paper divides by the bound, so a zero bound above the objective has no gap."""
    assert math.isnan(paper_gap(-1.0, 0.0))


@settings(deadline=None)
@given(FINITE, FINITE)
def test_the_gap_is_sane_for_every_sign(one: float, other: float) -> None:
    """Never negative, at most two, zero when closed; with one sign, better means smaller."""
    objective, bound = min(one, other), max(one, other)
    gap = relative_gap(objective, bound)
    assert 0.0 <= gap <= 2.0
    assert relative_gap(bound, bound) == 0.0
    if objective * bound > 0:
        middle = max(objective / 2 + bound / 2, objective)
        assert relative_gap(middle, bound) <= gap + 1e-12
        assert gap <= 1.0


@settings(deadline=None)
@given(st.floats(1e-3, 1e9), st.floats(0, 1))
def test_the_paper_gap_is_the_relative_gap_in_per_cent(bound: float, share: float) -> None:
    """Where 0 <= z <= Z the paper's number is a hundred times ours, if the objective is no dust."""
    objective = bound * share
    if bound >= 1.0:
        assert paper_gap(objective, bound) == pytest.approx(
            100 * relative_gap(objective, bound), abs=1e-9
        )


def test_objectives_rise_and_bounds_fall() -> None:
    """Worse structures and weaker bounds leave no trace."""
    tracker = new_tracker()
    first = initial_selection(tracker.problem)
    empty = tracker.problem.candidates.offsets[:-1]
    assert tracker.offer(first)
    assert not tracker.offer(first)
    assert not tracker.offer(empty)
    bound = initial_bound(tracker.problem)
    assert tracker.improve_bound(bound + 1)
    assert not tracker.improve_bound(bound + 2)
    assert tracker.improve_bound(bound)
    result = tracker.finish("test", Status.TIME_LIMIT)
    assert [point.bound for point in result.trace] == [math.inf, bound + 1, bound]
    assert {point.objective for point in result.trace} == {result.objective}
    np.testing.assert_array_equal(result.selection, first)


def test_a_cyclic_incumbent_is_refused() -> None:
    """A selection with a cycle never becomes the incumbent."""
    tracker = new_tracker()
    candidates = tracker.problem.candidates
    cyclic = candidates.offsets[:-1].copy()
    cyclic[0], cyclic[1] = candidates.index(0, (1,)), candidates.index(1, (0,))
    with pytest.raises(InputError, match="directed cycle"):
        tracker.offer(cyclic)
    assert tracker.selection is None


def test_a_refuted_bound_is_an_error() -> None:
    """A bound below a known objective, in either order of arrival, is a wrong claim."""
    tracker = new_tracker()
    selection = initial_selection(tracker.problem)
    tracker.offer(selection)
    with pytest.raises(SolverError, match="claimed as an upper bound"):
        tracker.improve_bound(tracker.objective - 1.0)
    late = new_tracker()
    late.improve_bound(tracker.objective - 1.0)
    with pytest.raises(SolverError, match="claimed as an upper bound"):
        late.offer(selection)


def test_the_callback_hears_every_improvement_and_may_stop() -> None:
    """The callback gets exactly the trace; a true answer asks for a stop."""
    heard: list[TracePoint] = []

    def callback(point: TracePoint) -> bool:
        heard.append(point)
        return len(heard) == 2

    tracker = new_tracker(callback)
    tracker.offer(initial_selection(tracker.problem))
    assert not tracker.stop_requested
    tracker.improve_bound(initial_bound(tracker.problem))
    assert tracker.stop_requested
    assert tuple(heard) == tracker.finish("test", Status.INTERRUPTED).trace


def test_the_status_tells_proof_from_stop() -> None:
    """OPTIMAL when the bound is met, else the limit; an unfinished proof is no result."""
    tracker = new_tracker()
    with pytest.raises(SolverError, match="without any structure"):
        tracker.finish("test", None)
    tracker.offer(initial_selection(tracker.problem))
    tracker.improve_bound(tracker.objective + 10)
    assert tracker.finish("test", Status.NODE_LIMIT).status is Status.NODE_LIMIT
    with pytest.raises(SolverError, match="claims to be done"):
        tracker.finish("test", None)
    tracker.improve_bound(tracker.objective)
    assert tracker.finish("test", Status.TIME_LIMIT).status is Status.OPTIMAL


def test_a_wide_gap_tolerance_ends_as_gap_limit() -> None:
    """A gap within the requested tolerance but above the proof tolerance is a gap limit."""
    tracker = new_tracker(gap=0.5)
    tracker.offer(initial_selection(tracker.problem))
    tracker.improve_bound(tracker.objective * 0.9)  # objectives are negative here
    assert tracker.is_closed
    assert tracker.finish("test", None).status is Status.GAP_LIMIT
