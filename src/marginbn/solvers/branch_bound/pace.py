"""The recommended numbers of a search, and how its tree and its local search alternate."""

from __future__ import annotations

import numpy as np

from marginbn.solvers.branch_bound.kernels.layout import Instance
from marginbn.solvers.branch_bound.kernels.pairwise import Settings
from marginbn.solvers.branch_bound.relaxations.frank_wolfe import Encoding
from marginbn.solvers.limits import Limits


def settings_for(
    encoding: Encoding, limits: Limits, heuristics: bool, random_splits: bool
) -> Settings:
    """The recommended numbers."""
    inst = encoding.instance
    return Settings(
        cap=8 if inst.weights.size else inst.first.size,
        smoothing_start=0.45,
        smoothing_floor=0.01,
        smoothing_factor=0.6,
        smoothing_reset=1.0,
        stale=0.01,
        accuracy=0.5,
        accuracy_top=0.15,
        top=0.4,
        slot_discount=encoding.slot_discount,
        patience=1.5,
        iterations=80,
        root_iterations=1000,
        evaluate=heuristics,
        random_splits=random_splits,
        gap=limits.gap,
    )


class Pace:
    """How batches and local search alternate, in iterations and columns tried."""

    EVERY = 8
    """Batches between two runs of the local search: one long walk finds more than many short ones.
    """

    def __init__(self, root_effort: int, polish_effort: int, share: int) -> None:
        self.batch = 1
        self.root_effort = root_effort
        self.polish_effort = polish_effort
        self.share = share
        self.next_stop = 1
        self.round = 0

    @classmethod
    def of(cls, encoding: Encoding) -> Pace:
        """A fifth of the time for the local search."""
        rows = encoding.instance.rows.shape[0]
        sweep = encoding.instance.n_features * (encoding.instance.n_features + 2)
        per_millisecond = 1e6 / (100 + 1.0 * rows)
        root = min(300 * sweep, int(300 * per_millisecond))
        pace = cls(root, min(10 * sweep, root), int(6 * cls.EVERY * per_millisecond))
        pace.fit(encoding.instance)
        return pace

    def fit(self, inst: Instance) -> None:
        """Batches of about 30 ms on a machine of our time."""
        iteration = 5_000 + 25 * inst.n_features**2 + 30 * inst.rows.shape[0]  # nanoseconds
        self.batch = int(np.clip(3e7 / iteration, 5, 2000))

    def advance(self) -> int:
        """Plan the next batch; returns the effort of the local search before it."""
        self.next_stop += self.batch
        self.round += 1
        return self.share if self.round % self.EVERY == 0 else 0
