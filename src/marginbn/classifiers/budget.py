"""Time and work that several solves share, in one process or in many.

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
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

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


def half_used(limit: float | None, elapsed: Callable[[], float]) -> Callable[[], bool]:
    """Says whether half of what is left of a limit now has passed since: then binning hurries."""
    if limit is None:
        return lambda: False
    begin = elapsed()
    end = begin + 0.5 * max(limit - begin, 0.0)
    return lambda: elapsed() > end


SHORTEST = 0.01
"""Seconds that a solve gets when the time is over: enough for a first structure."""


@dataclass(frozen=True)
class Budget:
    """Time that several solves share: each gets an even part of what the ones before it left.

    ``deadline`` is a time of :func:`time.monotonic`, None if there is no end. Every solve gets
    ``least`` seconds, however late it is. On its way to another process, maybe on another machine,
    whose clock began elsewhere, it is the time of day.
    """

    deadline: float | None
    least: float = SHORTEST

    def __reduce__(self) -> tuple[Any, ...]:
        of_day = None if self.deadline is None else self.deadline - monotonic() + time.time()
        return _arrived, (of_day, self.least)

    def left(self) -> float:
        """Seconds until the end."""
        return math.inf if self.deadline is None else self.deadline - monotonic()

    def share(self, n_solves: int, most: float | None) -> float | None:
        """Seconds for the next of so many solves, at most ``most``; None for no limit."""
        seconds = min(self.left() / n_solves, math.inf if most is None else most)
        return None if seconds == math.inf else max(seconds, min(self.least, most or math.inf))

    def part(self, share: float) -> Budget:
        """A budget that ends when this share of what is left is used up."""
        if self.deadline is None:
            return self
        return replace(self, deadline=self.deadline - (1.0 - share) * max(self.left(), 0.0))


def _arrived(of_day: float | None, least: float) -> Budget:
    """The budget in this process."""
    return Budget(None if of_day is None else of_day - time.time() + monotonic(), least)


RESERVE = 2.0
"""Seconds on the clock for a second of work."""


def work_per_solve(n_solves: int, left: float, most: float | None) -> float | None:
    """Seconds of work for each of so many solves in ``left`` seconds by the clock and one job."""
    seconds = min(left / n_solves / RESERVE, math.inf if most is None else most)
    return None if seconds == math.inf else max(seconds, SHORTEST)


@dataclass
class Work:
    """Work that the solves of a path share: each gets an even part of what those before it left."""

    left: float | None
    most: float | None

    @classmethod
    def of(cls, per_solve: float | None, n_solves: int, most: float | None) -> Work:
        """So much for each, of which none takes more than ``most``."""
        return cls(None if per_solve is None else per_solve * n_solves, most)

    def share(self, n_solves: int) -> float | None:
        """For the next of so many solves; None for no limit."""
        if self.left is None:
            return self.most
        even = max(self.left / n_solves, SHORTEST)
        return even if self.most is None else min(even, self.most)

    def spend(self, seconds: float) -> None:
        """A solve has taken so much."""
        if self.left is not None:
            self.left -= seconds


def task_budgets(n_tasks: int, n_solves: int, n_jobs: int, whole: Budget) -> list[Budget]:
    """When each of the tasks of so many solves, begun in this order by the workers, has to end.

    Workers take a while to start. So that the first tasks need not pay for all of it, every solve
    gets half of an even part at least.
    """
    rounds = math.ceil(n_tasks / n_jobs)
    even = whole.left() / (rounds * n_solves)
    least = max(even / 2, SHORTEST) if math.isfinite(even) else SHORTEST
    parts = [whole.part((task // n_jobs + 1) / rounds) for task in range(n_tasks)]
    return [replace(part, least=least) for part in parts]
