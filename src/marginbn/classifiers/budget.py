"""Time and work that several solves share, in one process or in many.

Solves of a validation are limited by *work*, which the solver counts by its operations: then what
they find depends neither on how many jobs there are nor on how busy the machine is. The clock of
the whole fit is a net behind it: it ends a solve only where the machine is more than
:data:`RESERVE` times slower than the solver thinks. Solvers that do not count work have the clock
alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from time import monotonic

SHORTEST = 0.01
"""Seconds that a solve gets when the time is over: enough for a first structure."""


@dataclass(frozen=True)
class Budget:
    """Time that several solves share: each gets an even part of what the ones before it left.

    ``deadline`` is a time of :func:`time.monotonic`, None if there is no end. Every solve gets
    ``least`` seconds, however late it is.
    """

    deadline: float | None
    least: float = SHORTEST

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
