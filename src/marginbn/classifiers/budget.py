"""Time that several solves share, in one process or in many."""

from __future__ import annotations

import math
from dataclasses import dataclass
from time import monotonic

SHORTEST = 0.01
"""Seconds that a solve gets when the time is over: enough for a first structure."""


@dataclass(frozen=True)
class Budget:
    """Time that several solves share: each gets an even part of what the ones before it left.

    ``deadline`` is a time of :func:`time.monotonic`, None if there is no end.
    """

    deadline: float | None

    def left(self) -> float:
        """Seconds until the end."""
        return math.inf if self.deadline is None else self.deadline - monotonic()

    def share(self, n_solves: int, most: float | None) -> float | None:
        """Seconds for the next of so many solves, at most ``most``; None for no limit."""
        seconds = min(self.left() / n_solves, math.inf if most is None else most)
        return None if seconds == math.inf else max(seconds, SHORTEST)

    def part(self, share: float) -> Budget:
        """A budget that ends when this share of what is left is used up."""
        if self.deadline is None:
            return self
        return Budget(self.deadline - (1.0 - share) * max(self.left(), 0.0))


def task_budgets(n_tasks: int, n_jobs: int, whole: Budget) -> list[Budget]:
    """When each of the tasks, begun in this order by so many workers, has to end."""
    rounds = math.ceil(n_tasks / n_jobs)
    return [whole.part((task // n_jobs + 1) / rounds) for task in range(n_tasks)]
