"""How a solver written in Python leaves its loops when it should end."""

from __future__ import annotations

from marginbn.solvers.events import Tracker
from marginbn.solvers.result import Status


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
