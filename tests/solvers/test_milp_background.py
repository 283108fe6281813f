"""Foreign solvers in a thread of their own."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable

import numpy as np
import pytest

from marginbn.solvers.milp import Foreign
from marginbn.solvers.result import Status
from marginbn.solvers.run import Limits, Run
from marginbn.solvers.tree_search import begin, initial_bound
from problems import small_linear_problem


def started(callback=None, **limits) -> Run:
    run = Run(small_linear_problem(0), Limits(**limits), callback=callback)
    begin(run)
    return run


def follow(work: Callable[[Foreign], Status], run: Run) -> Status:
    foreign = Foreign(run)
    return foreign.follow(lambda: work(foreign))


def test_posts_reach_the_run_in_the_callers_thread() -> None:
    threads = []
    run = started(lambda point: threads.append(threading.current_thread()))
    value = initial_bound(run.problem) - 1e-3
    ending = follow(lambda foreign: _post(foreign, value), run)
    assert (ending, run.nodes) == (Status.NODE_LIMIT, 7)
    assert run.bound == value + 2.0 * run.problem.error
    assert set(threads) == {threading.current_thread()}


def _post(foreign: Foreign, value: float) -> Status:
    foreign.post(value)
    foreign.nodes = 7
    return Status.NODE_LIMIT


def test_an_error_in_the_thread_is_raised_to_the_caller() -> None:
    def work(foreign: Foreign) -> Status:
        raise ZeroDivisionError("inside")

    with pytest.raises(ZeroDivisionError, match="inside"):
        follow(work, started())


def test_an_error_in_the_callback_ends_the_thread() -> None:
    left = threading.Event()

    def work(foreign: Foreign) -> Status:
        foreign.post(initial_bound(run.problem) - 1e-3)
        return _wait_for_cancel(foreign, left)

    def callback(point) -> None:
        if armed:
            raise LookupError("in the callback")

    armed: list[int] = []
    run = started(callback)
    armed.append(1)
    with pytest.raises(LookupError):
        follow(work, run)
    assert left.wait(600)


def _wait_for_cancel(foreign: Foreign, left: threading.Event) -> Status:
    while not foreign.is_cancelled:
        threading.Event().wait(0.01)
    left.set()
    return Status.INTERRUPTED


def test_the_clock_ends_the_work() -> None:
    left = threading.Event()
    ending = follow(lambda foreign: _wait_for_cancel(foreign, left), started(time=0.2))
    assert ending is Status.TIME_LIMIT
    assert left.wait(600)


def test_a_thread_that_does_not_poll_is_left_behind() -> None:
    release, done = threading.Event(), threading.Event()
    run = started(time=0.1)

    def work(foreign: Foreign) -> Status:
        release.wait(600)
        foreign.post(initial_bound(run.problem) - 1e-3)
        done.set()
        return Status.GAP_LIMIT

    ending = follow(work, run)
    before = run.bound
    release.set()
    assert done.wait(600)
    assert ending is Status.TIME_LIMIT
    assert run.bound == before


def test_a_cyclic_post_is_ignored() -> None:
    """A solution that is cyclic within a solver's tolerances is no structure."""
    run = started()
    candidates = run.problem.candidates
    cyclic = np.array(candidates.offsets[:-1])
    cyclic[0], cyclic[1] = candidates.index(0, (1,)), candidates.index(1, (0,))
    before = run.objective

    def work(foreign: Foreign) -> Status:
        foreign.post(cyclic)
        return Status.NODE_LIMIT

    assert follow(work, run) is Status.NODE_LIMIT
    assert run.objective == before


LEFT_BEHIND = """
import numpy as np
from marginbn import StructureProblem, Variable, enumerate_candidates, solve_structure
from marginbn.solvers import milp

milp.PATIENCE = milp.PATIENCE_SHARE = 0.0
candidates = enumerate_candidates(12, 2, class_restricted=False)
scores = np.random.default_rng(0).normal(0.0, 4.0, candidates.n_candidates) - 20.0
names = tuple(Variable(f"v{i}", ()) for i in range(12))
result = solve_structure(StructureProblem(candidates, scores, names), "highs", time_limit=0.3)
print(result.status)
"""


def test_a_thread_that_is_left_in_foreign_code_does_not_abort_the_process() -> None:
    """It ended with exit code 134 when the interpreter was taken apart around a daemon thread."""
    done = subprocess.run(
        [sys.executable, "-c", LEFT_BEHIND], capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "time_limit", "")
