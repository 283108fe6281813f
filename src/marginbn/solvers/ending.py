"""How a solver written in Python leaves its loops when it should end."""

from __future__ import annotations

from typing import Protocol

from marginbn.solvers.result import Status
from marginbn.solvers.run import Tracker


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
