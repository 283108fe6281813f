"""When a solve must end.

Threads of workers for the time of a search.

Progress of a solve: monotone by construction, heard by one callback.

How a solver written in Python leaves its loops when it should end.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from marginbn.exceptions import InputError, SolverError
from marginbn.problem.problem import StructureProblem
from marginbn.solvers.checkpoint import Checkpoint, Saved, SearchState
from marginbn.solvers.result import (
    PROOF_TOLERANCE,
    Majorant,
    SolveResult,
    Status,
    TracePoint,
    allowance,
    relative_gap,
)


@dataclass(frozen=True)
class Limits:
    """Limits of one solve; ``None`` means no limit.

    Parameters
    ----------
    time
        Wall-clock seconds.
    nodes
        Nodes of the search tree.
    memory
        Bytes that the solve may take (:mod:`marginbn.solvers.memory`); ``None`` means most of what
        the machine has left.
    gap
        Relative gap (:func:`marginbn.solvers.result.relative_gap`) at which the search may stop.
    """

    time: float | None = None
    nodes: int | None = None
    gap: float = 1e-6
    memory: int | None = None

    def __post_init__(self) -> None:
        if self.time is not None and not self.time > 0:
            raise InputError(f"time_limit must be positive seconds or None, got {self.time}")
        if self.nodes is not None and not self.nodes > 0:
            raise InputError(f"node_limit must be a positive integer or None, got {self.nodes}")
        if self.memory is not None and not self.memory > 0:
            raise InputError(f"memory_limit must be positive bytes or None, got {self.memory}")
        if not 0 <= self.gap < float("inf"):
            raise InputError(f"gap_tolerance must be a number of at least 0, got {self.gap}")


@dataclass(frozen=True)
class Deadline:
    """A clock that starts when it is made."""

    limits: Limits
    start: float = field(default_factory=time.perf_counter)

    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.start

    def remaining(self) -> float:
        """Seconds left; infinite without a time limit, never negative."""
        if self.limits.time is None:
            return float("inf")
        return max(0.0, self.limits.time - self.elapsed())

    def expired(self) -> bool:
        """Whether the time limit is reached."""
        return self.remaining() <= 0.0

    @contextmanager
    def ringing(self, ring: Callable[[], None]) -> Iterator[None]:
        """Call ``ring`` from a thread of its own when the time is up while the block still runs."""
        remaining = self.remaining()
        if remaining == float("inf"):
            yield
            return
        timer = threading.Timer(remaining, ring)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


NAME = "marginbn worker"
"""Of the threads, with a number."""


@contextmanager
def running(
    bodies: Sequence[Callable[[], None]], send_home: Callable[[], None], patience: float = math.inf
) -> Iterator[None]:
    """A thread for each body while the block runs.

    Whatever ends the block, Ctrl-C in the middle of the start too, ``send_home`` must make the
    bodies return. They are waited for, up to ``patience`` seconds in all.
    """
    threads = [
        threading.Thread(target=body, name=f"{NAME} {k}", daemon=True)
        for k, body in enumerate(bodies, 1)
    ]
    try:
        for thread in threads:
            thread.start()
        yield
    finally:
        if threads:
            _end(threads, send_home, patience)


def _end(threads: list[threading.Thread], send_home: Callable[[], None], patience: float) -> None:
    try:
        send_home()
    except KeyboardInterrupt:  # nobody may be left who has not heard of the end
        send_home()
        raise
    leave = time.perf_counter() + patience
    for thread in threads:
        if thread.is_alive():  # an interrupt may have come before its start
            thread.join(None if math.isinf(leave) else max(0.0, leave - time.perf_counter()))


Callback = Callable[[TracePoint], bool | None]
"""Called at every improvement; a true return value asks the solver to stop."""


class Tracker:
    """Keeps incumbent, bound and trace of one solve; objectives only rise, bounds only fall.

    Every incumbent is re-scored from the definition and checked acyclic here, outside the
    solver that claims it.
    """

    def __init__(
        self,
        problem: StructureProblem,
        deadline: Deadline,
        callback: Callback | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self.problem = problem
        self.deadline = deadline
        self.objective = -math.inf
        self.bound = math.inf
        self.selection: NDArray[np.int64] | None = None
        self.stop_requested = False
        self.majorant: Majorant | None = None
        """What is known about the same problem at other gammas."""
        self.snapshot: Callable[[], SearchState] = self._earlier_search
        """How far the search is, for a checkpoint; solvers with a tree set it."""
        self._checkpoint = checkpoint
        self._callback = callback
        self._trace: list[TracePoint] = []

    def offer(self, selection: Sequence[int] | NDArray[np.int64]) -> bool:
        """Take a selection as incumbent if it is better; returns whether it was."""
        chosen = np.array(selection, dtype=np.int64)
        value = self.problem.evaluate(chosen)
        if not value > self.objective:
            return False
        self.problem.candidates.structure(chosen)  # raises if there is a cycle
        self._refute(value, self.bound)
        self.selection, self.objective = chosen, value
        self.bound = max(self.bound, value)  # equal up to rounding
        self._record()
        return True

    def improve_bound(self, bound: float) -> bool:
        """Take a proven upper bound if it is smaller; never below the incumbent."""
        self._refute(self.objective, bound)
        value = max(bound, self.objective)  # equal up to rounding
        if not value < self.bound:
            return False
        self.bound = value
        self._record()
        return True

    @staticmethod
    def _refute(objective: float, bound: float) -> None:
        """A bound is a claim about every structure; an incumbent above it refutes the claim."""
        if objective > bound + allowance(bound):
            raise SolverError(
                f"a structure reaches {objective}, but {bound} was claimed as an upper bound"
            )

    @property
    def gap(self) -> float:
        """Relative gap at this moment."""
        return relative_gap(self.objective, self.bound)

    @property
    def is_closed(self) -> bool:
        """Whether the gap is within the requested tolerance."""
        return self.gap <= self.deadline.limits.gap

    def _record(self) -> None:
        point = TracePoint(self.deadline.elapsed(), self.objective, self.bound)
        self._trace.append(point)
        if self._callback is not None and self._callback(point):
            self.stop_requested = True

    @property
    def saved(self) -> Saved | None:
        """What an earlier sitting left behind."""
        return None if self._checkpoint is None else self._checkpoint.saved

    def _earlier_search(self) -> SearchState:
        """What a solver without a tree keeps for one that can use it."""
        return SearchState() if self.saved is None else self.saved.search

    def save_if_due(self) -> None:
        """Write a checkpoint if it is time to."""
        if self._checkpoint is not None and self._checkpoint.is_due:
            self._save()

    def _save(self) -> None:
        if self._checkpoint is not None and self.selection is not None:
            search = self.snapshot()  # first: it may bring news
            self._checkpoint.save(Saved(self.selection, self.bound, search))

    def finish(self, solver: str, stopped: Status | None, nodes: int = 0) -> SolveResult:
        """The result; ``stopped`` says which limit ended the search, if any.

        The status is OPTIMAL whenever the gap is at most ``PROOF_TOLERANCE``, whatever stopped
        the search; a gap closed to a wider requested tolerance is a GAP_LIMIT.
        """
        if self.selection is None and stopped is Status.INTERRUPTED:
            raise KeyboardInterrupt  # so early that there is nothing to return
        if self.selection is None:
            raise SolverError(f"solver {solver!r} ended without any structure")
        with suppress(KeyboardInterrupt):  # whoever is in a hurry gets the result
            self._save()
        if self.gap <= PROOF_TOLERANCE:
            status = Status.OPTIMAL
        elif self.is_closed:
            status = Status.GAP_LIMIT
        elif stopped is not None:
            status = stopped
        else:
            raise SolverError(
                f"solver {solver!r} claims to be done with objective {self.objective} "
                f"and bound {self.bound}, but these leave a gap of {self.gap:.3g}"
            )
        return SolveResult(
            structure=self.problem.candidates.structure(self.selection),
            selection=self.selection,
            objective=self.objective,
            bound=self.bound,
            status=status,
            trace=tuple(self._trace),
            seconds=self.deadline.elapsed(),
            solver=solver,
            nodes=nodes,
            majorant=self.majorant,
        )


class ConsoleListener:
    """Prints progress to stderr, at most twice a second."""

    def __init__(self, interval: float = 0.5) -> None:
        self._interval = interval
        self._last = -math.inf

    def __call__(self, point: TracePoint) -> None:
        """Print a line unless the last one is too fresh; closed gaps are always told."""
        if point.seconds - self._last < self._interval and point.gap > PROOF_TOLERANCE:
            return
        self._last = point.seconds
        sys.stderr.write(
            f"{point.seconds:8.1f} s   objective {point.objective:14.6f}   "
            f"bound {point.bound:14.6f}   gap {100 * point.gap:9.4f} %\n"
        )
        sys.stderr.flush()


class Stopped(Exception):  # noqa: N818  (an ending, not an error)
    """Raised by :func:`look_up`; carries the status to end with."""

    def __init__(self, status: Status) -> None:
        super().__init__(status)
        self.status = status


def look_up(tracker: Tracker) -> None:
    """Look up from the work: save it if due, and raise :class:`Stopped` if the callback or the
    clock says so.
    """
    tracker.save_if_due()
    if tracker.stop_requested:
        raise Stopped(Status.INTERRUPTED)
    if tracker.deadline.expired():
        raise Stopped(Status.TIME_LIMIT)


class Watch(Protocol):
    """What somebody deep in the work sees of the outside."""

    def look_up(self) -> None:
        """Look up from the work; raises :class:`Stopped` if it should end."""

    def remaining(self) -> float:
        """Seconds left."""


class CallersWatch:
    """The watch of a worker in the caller's thread, who may speak to the tracker."""

    def __init__(self, tracker: Tracker) -> None:
        self.tracker = tracker

    def look_up(self) -> None:
        """Save if due; leave if the callback or the clock says so."""
        look_up(self.tracker)

    def remaining(self) -> float:
        """Seconds left."""
        return self.tracker.deadline.remaining()
