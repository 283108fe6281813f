"""Progress of a solve: monotone by construction, heard by one callback."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from marginbn.exceptions import SolverError
from marginbn.problem.problem import StructureProblem
from marginbn.solvers.checkpoint import Checkpoint, Saved, SearchState
from marginbn.solvers.limits import Deadline
from marginbn.solvers.majorant import Majorant
from marginbn.solvers.result import (
    PROOF_TOLERANCE,
    SolveResult,
    Status,
    TracePoint,
    allowance,
    relative_gap,
)

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
