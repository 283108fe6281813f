"""Time that several solves share, in one process or in many."""

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
