"""The incumbent of a certifying search and the value up to which nodes are given up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marginbn.solvers.limits import Limits
from marginbn.solvers.run import Tracker

SMALLEST_GAP = 1e-9


class Cutoff:
    """Incumbent plus most of the requested gap, with the tracker behind it."""

    def __init__(self, tracker: Tracker) -> None:
        self.tracker = tracker

    @property
    def limits(self) -> Limits:
        """Limits of the solve."""
        return self.tracker.deadline.limits

    @property
    def gap(self) -> float:
        """Relative gap to which the proof goes."""
        return max(self.limits.gap, SMALLEST_GAP)

    @property
    def objective(self) -> float:
        """Value of the incumbent."""
        return self.tracker.objective

    @property
    def value(self) -> float:
        """Nodes with a bound up to this are leaves; a fifth of the gap is left for rounding."""
        return self.objective + 0.8 * self.gap * max(1.0, abs(self.objective))

    def offer(self, selection: NDArray[np.int64]) -> None:
        """Hand a selection to the tracker, which scores it from the definition."""
        self.tracker.offer(selection)
