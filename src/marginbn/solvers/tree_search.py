"""One tree search: a loop that keeps the books, whatever bounds the nodes.

A relaxation with its store of open nodes is a :class:`SearchTree`. It works in portions: one node,
or a batch of them in compiled code. Between two portions the loop tells the tracker what is known,
looks at the limits, saves the tree if it is time to, and gives heuristics their turn.

*Bound.* The bound of a tree covers everything open, everything that any worker has in progress and
everything ever given up. So it is true at every moment, and whatever ends the search, the last
report is a proof.

Ctrl-C, a limit and an exhausted tree are normal endings. Only the caller's thread speaks to the
tracker; the other workers of a tree are the tree's own business.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from enum import Enum
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from marginbn.solvers.checkpoint import Arrays, BrokenFileError, SearchState, warn_unused
from marginbn.solvers.result import SolveResult, Status, relative_gap
from marginbn.solvers.run import Stopped, Tracker
from marginbn.solvers.start import begin


class Progress(Enum):
    """Why a portion of work ended."""

    MORE = "there is more to do, by this worker or by others"
    FINISHED = "nothing is open or in progress"
    CUT_SHORT = "the flag of the clock was seen"
    NODE_LIMIT = "no further node may be visited"
    MEMORY_LIMIT = "there is no room for further nodes"


class SearchTree(Protocol):
    """A relaxation with its open nodes, as the loop sees it. What has a body here is for trees that
    need nothing better: one worker, no heuristics, no checkpoint.
    """

    is_open: bool
    """Whether the root, or the tree of an earlier sitting, is in the store."""

    @property
    def nodes(self) -> int:
        """Nodes processed, in earlier sittings too."""

    @property
    def bound(self) -> float:
        """Upper bound on everything open, in progress, given up or found."""

    def open(self) -> None:
        """Put the root or a saved tree into the store; look for first incumbents."""
        return

    def advance(self) -> Progress:
        """One portion of work."""

    def hand_over(self) -> bool:
        """Offer what workers found to the tracker; returns whether anything was better."""
        return False

    def between(self, improved: bool) -> None:
        """The turn of heuristics between two portions, and of waiting for other workers."""
        return

    def snapshot(self) -> SearchState:
        """The open nodes and those in progress, for a checkpoint."""
        return SearchState()

    def interrupt(self) -> None:
        """Ask compiled code to come back soon; called from another thread when time is up."""

    def at_work(self) -> AbstractContextManager[None]:
        """The time of the search, for workers in threads of their own."""
        return nullcontext()


def search(
    tracker: Tracker,
    start: NDArray[np.int64] | None,
    name: str,
    plant: Callable[[], SearchTree],
) -> SolveResult:
    """Solve the tracker's problem by the tree that ``plant`` makes."""
    nodes = 0

    def work() -> Status | None:
        nonlocal nodes
        begin(tracker, start)
        tree = plant()
        tracker.snapshot = _snapshots_of(tree, tracker.snapshot)
        try:
            with tracker.deadline.ringing(tree.interrupt):
                tree.open()
                return run(tree, tracker)
        finally:
            nodes = tree.nodes
            report(tree, tracker)

    stopped = ended(work)
    return tracker.finish(name, stopped, nodes)


def ended(work: Callable[[], Status | None]) -> Status | None:
    """How some work ended: by itself, by a look at the limits deep inside, or by Ctrl-C."""
    try:
        return work()
    except (KeyboardInterrupt, SystemError) as error:
        if not _is_interrupt(error):
            raise
        return Status.INTERRUPTED
    except Stopped as stop:
        return stop.status


def _is_interrupt(error: BaseException | None) -> bool:
    """Whether it is Ctrl-C. One that comes while a compiled kernel packs its result is wrapped,
    maybe more than once: the interpreter complains of both a result and an exception.
    """
    while isinstance(error, SystemError):
        error = error.__cause__
    return isinstance(error, KeyboardInterrupt)


def run(tree: SearchTree, tracker: Tracker) -> Status | None:
    """Portions of work until nothing is left or the gap is closed (None), or a limit is reached."""
    progress = Progress.MORE
    with tree.at_work():
        while True:
            improved = report(tree, tracker)
            if tracker.is_closed or progress is Progress.FINISHED:
                return None
            stopped = _limit(progress, tracker)
            if stopped is not None:
                return stopped
            tracker.save_if_due()
            tree.between(improved)
            progress = tree.advance()


def report(tree: SearchTree, tracker: Tracker) -> bool:
    """Tell the tracker incumbents and bound; returns whether an incumbent was better."""
    improved = tree.hand_over()
    bound = tree.bound if tree.is_open else math.inf
    if bound < math.inf:
        tracker.improve_bound(bound)
    return improved


def _limit(progress: Progress, tracker: Tracker) -> Status | None:
    """The limit that has been reached, if any."""
    if tracker.stop_requested:
        return Status.INTERRUPTED
    if progress is Progress.CUT_SHORT or tracker.deadline.expired():
        return Status.TIME_LIMIT
    if progress is Progress.NODE_LIMIT:
        return Status.NODE_LIMIT
    return Status.MEMORY_LIMIT if progress is Progress.MEMORY_LIMIT else None


# ---------------------------------------------------------------------- checkpoints

Nodes = TypeVar("Nodes")


def _snapshots_of(tree: SearchTree, before: Callable[[], SearchState]) -> Callable[[], SearchState]:
    """The tree once it is open; until then what an earlier sitting left."""
    return lambda: tree.snapshot() if tree.is_open else before()


def saved_tree(
    tracker: Tracker,
    name: str,
    parse: Callable[[Arrays], Nodes],
    given_up: Callable[[Nodes], float],
) -> tuple[Nodes, int] | None:
    """The tree of an earlier sitting and its number of nodes, if there is one that can be used.

    ``parse`` reads it and may raise :class:`BrokenFileError`; ``given_up`` is the largest bound at
    which it has lost structures for good, which must not leave a wider gap than is asked for now.
    """
    saved = tracker.saved
    if saved is None or saved.search.solver != name or not saved.search.arrays:
        return None
    try:
        nodes = parse(saved.search.arrays)
    except BrokenFileError as error:
        warn_unused(f"the checkpoint's tree cannot be used: {error}")
        return None
    if relative_gap(tracker.objective, given_up(nodes)) > tracker.deadline.limits.gap:
        warn_unused("the checkpoint's tree was searched with a wider gap_tolerance")
        return None
    return nodes, saved.search.nodes
