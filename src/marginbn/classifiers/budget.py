"""Time and work that several solves share, in one process or in many, and how far they are.

Solves of a validation are limited by *work*, which the solver counts by its operations: then what
they find depends neither on how many jobs there are nor on how busy the machine is. The clock of
the whole fit is a net behind it: it ends a solve only where the machine is more than
:data:`RESERVE` times slower than the solver thinks. Solvers that do not count work have the clock
alone.

A limit of a whole fit counts from its beginning: :func:`time_for_search` is what is left of it when
the search begins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

AFTERWARDS = 0.5
"""Time that parameters and fingerprints take, beside that of everything before the search."""

LEAST_SHARE, LEAST_SEARCH = 0.1, 0.5
"""Of the time limit, and in seconds at the most, for the search, however long everything before it
took.
"""


def time_for_search(limit: float | None, before: float) -> float | None:
    """Seconds for the search of a fit: what reading, binning and counting have left of the limit,
    less what counting and comparing take afterwards, which is about half of that again; and a tenth
    of the limit in any case, but no more than half a second.

    Examples
    --------
    >>> time_for_search(10.0, 2.0), time_for_search(10.0, 60.0), time_for_search(None, 2.0)
    (7.0, 0.5, None)
    """
    if limit is None:
        return None
    after = AFTERWARDS * min(before, limit)
    return max(limit - before - after, min(LEAST_SHARE * limit, LEAST_SEARCH))


FOR_SCORES = 0.75
"""Part of what binning leaves for scores of parent sets; counting and a first structure follow."""


def part_used(
    limit: float | None, elapsed: Callable[[], float], share: float = 0.5
) -> Callable[[], bool]:
    """Says whether this share of what is left of a limit now has passed since: then binning
    hurries, or scoring ends.
    """
    if limit is None:
        return lambda: False
    begin = elapsed()
    end = begin + share * max(limit - begin, 0.0)
    return lambda: elapsed() > end


SHORTEST = 0.01
"""Seconds that a solve gets when the time is over: enough for a first structure."""


def share_of(left: float, n_solves: int, most: float | None) -> float | None:
    """An even part of the seconds left, at least :data:`SHORTEST` but at most ``most``; None for no
    limit.

    Examples
    --------
    >>> share_of(10.0, 4, None), share_of(10.0, 4, 1.0), share_of(-3.0, 4, 1.0)
    (2.5, 1.0, 0.01)
    """
    most = math.inf if most is None else most
    seconds = min(max(left / n_solves, SHORTEST), most)
    return None if seconds == math.inf else seconds


RESERVE = 2.0
"""Seconds on the clock for a second of work."""


# --- progress, shown with ``verbose=1`` and by the command line ---

_LISTENER: ContextVar[Callable[[str], object] | None] = ContextVar("listener", default=None)


@contextmanager
def reporting_phases(listener: Callable[[str], object]) -> Iterator[None]:
    """Call the listener with every phase that begins."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def report_phase(text: str) -> None:
    """A phase begins, or goes on."""
    listener = _LISTENER.get()
    if listener is not None:
        listener(text)
