"""One solve as a value: what was asked for, and what is known so far.

A :class:`Run` carries the request (problem, limits, start, seed, workers, callback,
checkpoint) and the state (incumbent, bound, trace, nodes). A :class:`Solver` works on it and
returns the :class:`Status` that ended the work. State is monotone by construction and belongs to
the caller's thread. A limit and Ctrl-C are normal endings; :meth:`Run.ending` is the one place that
turns them into a status.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from marginbn.exceptions import InputError, SolverError
from marginbn.interrupts import INTERRUPTS
from marginbn.problem.array_types import IntArray
from marginbn.problem.problem import StructureProblem
from marginbn.solvers import result
from marginbn.solvers.checkpoint import Checkpoint, Saved, SearchState
from marginbn.solvers.interpreted import COMPILER
from marginbn.solvers.memory import Memory, Needs
from marginbn.solvers.result import SolveResult, Status, TracePoint


@dataclass(frozen=True)
class Limits:
    """Limits of one solve; ``None`` means no limit."""

    time: float | None = None  # wall-clock seconds
    nodes: int | None = None  # of the search tree
    gap: float = 1e-6  # relative gap at which the search may stop
    memory: int | None = None  # bytes; None means most of what the machine has left
    work: float | None = None
    """Seconds of work as the solver counts it: the same on every machine, however busy it is."""

    def __post_init__(self) -> None:
        positive = (
            ("time_limit", self.time, "positive seconds"),
            ("node_limit", self.nodes, "a positive integer"),
            ("memory_limit", self.memory, "positive bytes"),
            ("work_limit", self.work, "positive seconds"),
        )
        for name, value, kind in positive:
            if value is not None and not value > 0:
                raise InputError(f"{name} must be {kind} or None, got {value}")
        if not 0 <= self.gap < float("inf"):
            raise InputError(f"gap_tolerance must be a number of at least 0, got {self.gap}")


@dataclass
class Deadline:
    """A clock that starts when it is made; it stands still while a compiler is waited for."""

    limits: Limits
    start: float = field(default_factory=time.perf_counter)
    compiled: float = field(default_factory=lambda: COMPILER.seconds)  # before it started

    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.start - (COMPILER.seconds - self.compiled)

    def remaining(self) -> float:
        """Seconds left; infinite without a time limit, never negative."""
        if self.limits.time is None:
            return float("inf")
        return max(0.0, self.limits.time - self.elapsed())

    def expired(self) -> bool:
        """Whether the time limit is reached."""
        return self.remaining() <= 0.0

    @contextmanager
    def calling(self, callback: Callable[[], None]) -> Iterator[None]:
        """Call ``callback`` from another thread when the time is up or a signal comes."""
        with INTERRUPTS.calling(callback):
            if self.limits.time is None:
                yield
                return
            is_over = threading.Event()

            def watch() -> None:
                while not is_over.wait(self.remaining()):
                    if self.expired():  # it may have stood still
                        callback()
                        return

            threading.Thread(target=watch, name="marginbn clock", daemon=True).start()
            try:
                yield
            finally:
                is_over.set()


RowsInUse: TypeAlias = Literal["auto", "all", "groups"]
"""Which rows nodes are bounded with: groups where coefficients take too much memory or time."""

NAME = "marginbn worker"
"""Of the threads, with a number."""


def solver_thread(body: Callable[[], None], name: str) -> threading.Thread:
    """A thread for work that may be left behind in the middle of foreign code.

    The interpreter waits for it when it ends. It takes a daemon off the processor when that comes
    back from C++ instead, and C++ calls that an error and aborts the process.
    """
    return threading.Thread(target=body, name=name, daemon=False)


@contextmanager
def running(bodies: Sequence[Callable[[], None]], stop: Callable[[], None]) -> Iterator[None]:
    """A thread for each body while the block runs.

    Whatever ends the block, Ctrl-C in the middle of the start too, ``stop`` must make the bodies
    return. They are waited for.
    """
    threads = [solver_thread(body, f"{NAME} {k}") for k, body in enumerate(bodies, 1)]
    try:
        for thread in threads:
            thread.start()
        yield
    finally:
        if threads:
            try:
                stop()
            except KeyboardInterrupt:  # no thread may be left that has not heard of the end
                stop()
                raise
            for thread in threads:
                if thread.is_alive():  # an interrupt may have come before its start
                    thread.join()


ROOT_GAP_LAW = ((0.1, 1.4, 5.7), (0.2, 2.0, 18.0), (0.3, 3.0, 35.0))
"""When so large a part of the gap of the root is left, the proof takes so many times the time till
then, at the least and at the most: measured at eight proofs by branch and bound.
"""

Callback = Callable[[TracePoint], bool | None]
"""Called at every improvement; a true return value asks the solver to stop."""


class Stopped(Exception):  # noqa: N818  (an ending, not an error)
    """Raised by :meth:`Run.poll`; carries the status to end with."""

    def __init__(self, status: Status) -> None:
        super().__init__(status)
        self.status = status


@dataclass(eq=False)
class Run:
    """One solve: the request, and its incumbent, bound and trace so far.

    Objectives only rise, bounds only fall. Every incumbent is re-scored from the definition and
    checked acyclic here, outside the solver that claims it.
    """

    problem: StructureProblem
    limits: Limits = field(default_factory=Limits)
    start: IntArray | None = None  # a selection to begin with
    seed: int = 0  # of the heuristics
    n_jobs: int = 1  # workers on one search tree
    callback: Callback | None = None
    checkpoint: Checkpoint | None = None  # where the state is kept, that of an earlier call too
    fallback: Solver | None = None  # continues where the memory of the solver is full

    def __post_init__(self) -> None:
        self.deadline = Deadline(self.limits)
        self.objective = -math.inf
        self.bound = math.inf
        self.selection: IntArray | None = None
        self.nodes = 0
        self.root_bound = math.inf
        """Of the root of a search tree, once it is solved."""
        self.work = 0.0
        """Seconds that a solver counts for what it has done, by operations and not by a clock."""
        self.stopped = Status.OPTIMAL
        """What has ended the search; OPTIMAL where nothing was left to search."""
        self.stop_requested = False
        self.snapshot: Callable[[], SearchState] = self._earlier_search
        """How far the search is, for a checkpoint; solvers with a tree set it."""
        self._trace: list[TracePoint] = []
        self._reached: dict[float, float] = {}  # seconds, by the part of the root gap that was left
        self._signals_before = INTERRUPTS.count  # they do not concern this run

    @cached_property
    def memory(self) -> Memory:
        """What the solve may take; the machine is asked once."""
        return Memory.probe(self.limits.memory)

    def within(self, limits: Limits) -> Run:
        """The same request with other limits of time and nodes, and nothing known yet."""
        other = replace(self, limits=limits)
        other.memory = self.memory
        return other

    def start_clock(self) -> None:
        """Time counts from now."""
        self.deadline = Deadline(self.limits)

    # ------------------------------------------------------------------ what is known

    def offer(self, selection: Sequence[int] | IntArray) -> bool:
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
        """Take an upper bound that a solver has proven for the scores as they are rounded, if it is
        smaller; never below the incumbent.
        """
        return self.recall_bound(bound + self._slack)

    @property
    def _slack(self) -> float:
        """How far a bound for the rounded scores of the candidates is below one for all scores."""
        return 2.0 * self.problem.error + self.problem.unscored

    def recall_bound(self, bound: float) -> bool:
        """The same with a bound that a run has given: it counts the error of the scores already."""
        self._refute(self.objective, bound)
        value = max(bound, self.objective)  # equal up to rounding
        if not value < self.bound:
            return False
        self.bound = value
        self._record()
        return True

    def _refute(self, objective: float, bound: float) -> None:
        """A bound is a claim about every structure; an incumbent above it refutes the claim."""
        if objective > bound + result.allowance(bound, self.problem.rounding):
            raise SolverError(
                f"a structure reaches {objective}, but {bound} was claimed as an upper bound"
            )

    @property
    def gap(self) -> float:
        """Relative gap at this moment."""
        return result.relative_gap(self.objective, self.bound, self.problem.scale)

    @property
    def is_closed(self) -> bool:
        """Whether the gap is within the requested tolerance."""
        return self.gap <= self.limits.gap

    def _record(self) -> None:
        problem, seconds = self.problem, self.deadline.elapsed()
        rows = 0.0 if problem.is_linear else float(problem.sample_weights.sum())
        values = seconds, self.objective, self.bound, problem.scale, rows
        point = TracePoint(*values, self._forecast(seconds))
        self._trace.append(point)
        if self.callback is not None and self.callback(point):
            self.stop_requested = True

    def _forecast(self, seconds: float) -> tuple[float, float] | None:
        """Seconds after the start between which the proof is likely; None while much is open."""
        if math.isinf(self.root_bound) or self.is_closed:
            return None
        left = (self.bound - self.objective) / max(self.root_bound - self.objective, 1e-300)
        for part, soonest, latest in ROOT_GAP_LAW:
            if left <= part:
                reached = self._reached.setdefault(part, seconds)
                return max(seconds, soonest * reached), latest * reached
        return None

    # ------------------------------------------------------------------ checkpoints

    @property
    def saved(self) -> Saved | None:
        """What an earlier call left behind."""
        return None if self.checkpoint is None else self.checkpoint.saved

    def _earlier_search(self) -> SearchState:
        """What a solver without a tree keeps for one that can use it."""
        return SearchState() if self.saved is None else self.saved.search

    def save_if_due(self) -> None:
        """Write a checkpoint if it is time to."""
        if self.checkpoint is not None and self.checkpoint.is_due:
            self._save()

    def _save(self) -> None:
        if self.checkpoint is not None and self.selection is not None:
            search = self.snapshot()  # first: it may bring news
            self.checkpoint.save(Saved(self.selection, self.bound, search))

    # ------------------------------------------------------------------ endings

    def remaining(self) -> float:
        """Seconds left."""
        return self.deadline.remaining()

    @property
    def limit(self) -> Status | None:
        """Why the work should end now, if the callback or the clock says so."""
        if (
            self.stop_requested or INTERRUPTS.count > self._signals_before
        ):  # its exception may be lost
            return Status.INTERRUPTED
        if self.limits.work is not None and self.work >= self.limits.work:
            return Status.WORK_LIMIT
        return Status.TIME_LIMIT if self.deadline.expired() else None

    def poll(self) -> None:
        """Save if due; raise :class:`Stopped` if the callback or the clock says so."""
        self.save_if_due()
        self.look()

    def look(self) -> None:
        """Raise :class:`Stopped` if the callback or the clock says so."""
        limit = self.limit
        if limit is not None:
            raise Stopped(limit)

    @contextmanager
    def ending(self) -> Iterator[None]:
        """Work on this run. A limit that :meth:`poll` raises and Ctrl-C end the block normally;
        ``stopped`` says so.
        """
        try:
            with INTERRUPTS.raising():
                self._signals_before = INTERRUPTS.count
                yield
        except (KeyboardInterrupt, SystemError) as error:
            if not is_interrupt(error):
                raise
            self.stopped = Status.INTERRUPTED
        except Stopped as stop:
            self.stopped = stop.status

    def finish(self, solver: str) -> SolveResult:
        """The result of what is known now.

        The status is OPTIMAL whenever the gap is at most ``PROOF_TOLERANCE``, whatever stopped
        the search; a gap closed to a wider requested tolerance is a GAP_LIMIT. Where the search is
        done and only the error of the scores leaves a wider one, it is ROUNDING; TIME_LIMIT where
        parent sets were not scored in time.
        """
        if self.selection is None and self.stopped is Status.INTERRUPTED:
            raise KeyboardInterrupt  # so early that there is nothing to return
        if self.selection is None:
            raise SolverError(f"solver {solver!r} ended without any structure")
        with suppress(KeyboardInterrupt):  # whoever is in a hurry gets the result
            self._save()
        exact = self.bound - self._slack  # if the scores were exact, and all were known
        if self.gap <= result.PROOF_TOLERANCE:
            status = Status.OPTIMAL
        elif self.is_closed:
            status = Status.GAP_LIMIT
        elif result.relative_gap(self.objective, exact, self.problem.scale) <= self.limits.gap:
            status = Status.TIME_LIMIT if self.problem.unscored else Status.ROUNDING
        elif self.stopped is not Status.OPTIMAL:
            status = self.stopped
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
            nodes=self.nodes,
            scale=self.problem.scale,
            work=self.work,
        )


def is_interrupt(error: BaseException | None) -> bool:
    """Whether it is Ctrl-C. One that comes while a compiled kernel packs its result is wrapped,
    maybe more than once: the interpreter complains of both a result and an exception.
    """
    while isinstance(error, SystemError):
        error = error.__cause__
    return isinstance(error, KeyboardInterrupt)


class Solver:
    """What every solver offers. What has a body here is for solvers that need nothing better."""

    name: str

    may_run_out_of_memory = False
    """Whether a search that has begun may have to end for want of memory."""

    def can_solve(self, problem: StructureProblem) -> str | None:
        """``None`` if the solver can handle the problem, else the reason why not."""
        return None

    def suits(self, problem: StructureProblem) -> bool:
        """Whether it is a good choice for a problem that it can solve; others may be better."""
        return True

    def needs(self, problem: StructureProblem, n_jobs: int = 1) -> Needs:
        """Memory that a solve takes."""
        return Needs(0, 0)

    def prepare(self, problem: StructureProblem | None = None, n_jobs: int = 1) -> None:
        """Load what is needed for a problem (None: for any), or refuse; kernels are loaded or
        compiled when they are first called, while the clock stands still.
        """
        return

    def run(self, run: Run) -> Status:
        """Work on a run that has an incumbent and a bound already, until nothing is left (OPTIMAL)
        or a limit is reached. Limits that :meth:`Run.poll` raises and Ctrl-C need no care.
        """
        raise NotImplementedError


class ConsoleListener:
    """Prints progress to stderr, at most twice a second."""

    def __init__(self, interval: float = 0.5) -> None:
        self._interval = interval
        self._last = -math.inf

    def __call__(self, point: TracePoint) -> None:
        """Print a line unless the last one is too fresh; closed gaps are always printed."""
        if point.seconds - self._last < self._interval and point.gap > result.PROOF_TOLERANCE:
            return
        self._last = point.seconds
        sys.stderr.write(
            f"{point.seconds:8.1f} s   objective {point.objective:14.6f}   "
            f"bound {point.bound:14.6f}   gap {100 * point.gap:9.4f} %   {point.details}\n"
        )
        sys.stderr.flush()
