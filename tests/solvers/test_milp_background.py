"""Foreign solvers in a thread of their own."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from marginbn.solvers.milp import Cancelled, Channel, Ending, follow
from marginbn.solvers.result import Status
from marginbn.solvers.run import Deadline, Limits, Tracker
from marginbn.solvers.start import begin, initial_bound
from problems import small_linear_problem


def started(callback=None, **limits) -> Tracker:
    tracker = Tracker(small_linear_problem(0), Deadline(Limits(**limits)), callback)
    begin(tracker, None)
    return tracker


def test_posts_reach_the_tracker_in_the_callers_thread() -> None:
    """Bounds and selections arrive; the callback runs where the caller is."""
    threads = []
    tracker = started(lambda point: threads.append(threading.current_thread()))
    value = initial_bound(tracker.problem) - 1e-3
    ending = follow(lambda channel: _post(channel, value), tracker)
    assert ending == Ending(Status.NODE_LIMIT, 7)
    assert tracker.bound == value
    assert set(threads) == {threading.current_thread()}


def _post(channel: Channel, value: float) -> Ending:
    channel.post(value)
    return Ending(Status.NODE_LIMIT, 7)


def test_an_error_in_the_thread_is_raised_to_the_caller() -> None:
    """Whatever goes wrong in the thread is heard."""

    def work(channel: Channel) -> Ending:
        raise ZeroDivisionError("inside")

    with pytest.raises(ZeroDivisionError, match="inside"):
        follow(work, started())


def test_an_error_in_the_callback_ends_the_thread() -> None:
    """The user's exception comes through and the work is told to stop."""
    left = threading.Event()

    def work(channel: Channel) -> Ending:
        channel.post(initial_bound(tracker.problem) - 1e-3)
        return _wait_for_cancel(channel, left)

    def callback(point) -> None:
        if armed:
            raise LookupError("in the callback")

    armed: list[int] = []
    tracker = started(callback)
    armed.append(1)
    with pytest.raises(LookupError):
        follow(work, tracker)
    assert left.wait(10)


def _wait_for_cancel(channel: Channel, left: threading.Event) -> Ending:
    try:
        while True:
            channel.poll()
            threading.Event().wait(0.01)
    except Cancelled:
        left.set()
        raise


def test_the_clock_ends_the_work() -> None:
    """At the time limit the flag is set and the thread leaves."""
    left = threading.Event()
    ending = follow(lambda channel: _wait_for_cancel(channel, left), started(time=0.2))
    assert ending.stopped is Status.TIME_LIMIT
    assert left.wait(10)


def test_a_thread_that_does_not_look_up_is_left_behind() -> None:
    """Patience ends: the caller leaves, and later posts change nothing."""
    release, done = threading.Event(), threading.Event()
    tracker = started(time=0.1)

    def work(channel: Channel) -> Ending:
        release.wait(60)
        channel.post(initial_bound(tracker.problem) - 1e-3)
        done.set()
        return Ending()

    ending = follow(work, tracker)
    before = tracker.bound
    release.set()
    assert done.wait(10)
    assert ending.stopped is Status.TIME_LIMIT
    assert tracker.bound == before


def test_a_cyclic_post_is_ignored() -> None:
    """A solution that is cyclic within a solver's tolerances is no structure."""
    tracker = started()
    candidates = tracker.problem.candidates
    cyclic = np.array(candidates.offsets[:-1])
    cyclic[0], cyclic[1] = candidates.index(0, (1,)), candidates.index(1, (0,))
    before = tracker.objective

    def work(channel: Channel) -> Ending:
        channel.post(cyclic)
        return Ending(Status.NODE_LIMIT)

    assert follow(work, tracker).stopped is Status.NODE_LIMIT
    assert tracker.objective == before
