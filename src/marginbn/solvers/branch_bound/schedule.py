"""The recommended numbers of a search, and how its tree and its local search alternate."""

from __future__ import annotations

import numpy as np

from marginbn.solvers.branch_bound.arrays import Encoding
from marginbn.solvers.branch_bound.kernels.bound import Settings
from marginbn.solvers.branch_bound.kernels.records import Instance
from marginbn.solvers.run import Limits

MANY_FEATURES = 30
"""Chosen between german (20), whose proof more accuracy makes slower, and spambase (57), whose gap
it makes smaller.
"""


def settings_for(
    encoding: Encoding, limits: Limits, heuristics: bool, random_splits: bool
) -> Settings:
    """The recommended numbers. With many features a box is far from decided even where its bound is
    near the incumbent, and stays worth an accurate bound for longer.
    """
    inst = encoding.instance
    return Settings(
        cap=8 if inst.weights.size else inst.first.size,
        smoothing_start=0.45,
        smoothing_floor=0.01,
        smoothing_factor=0.6,
        smoothing_reset=1.0,
        stale=0.01,
        correction=2.0,
        accuracy=0.5,
        accuracy_top=0.04,
        top=0.15 if inst.n_features > MANY_FEATURES else 0.4,
        slot_discount=encoding.slot_discount,
        patience=1.5,
        iterations=50,
        root_iterations=1000,
        evaluate=heuristics,
        random_splits=random_splits,
        gap=limits.gap,
    )


BATCH = 3e7
"""Nanoseconds of a batch."""


class Pace:
    """How batches and local search alternate, in iterations and columns tried."""

    EVERY = 8
    """Batches between two runs of the local search: one long walk finds more than many short ones.
    """

    SHARE = 0.25
    """Time of the local search, in units of the tree's; later a quarter of it when nothing better
    has turned up for three quarters of the search, but twice of it while most of the gap is open.
    """

    MOST = 0.5
    """What is most of the gap."""

    EARLY = 4 * EVERY
    """Batches in which small problems are solved."""

    def __init__(self, inst: Instance) -> None:
        self.batch = 1
        self.share = 0
        self.root_effort = 0
        self.polish_effort = 0
        self.next_stop = 1
        self.round = 0
        self.success = 0  # round of the newest incumbent
        self.fit(inst, inst)

    def fit(self, bounding: Instance, walking: Instance) -> None:
        """Batches of about 30 ms on a machine of our time, whatever rows are in use."""
        n = bounding.n_features
        iteration = 2e4 + 75.0 * n**2 + 130.0 * bounding.rows.shape[0]  # nanoseconds
        evaluation = 2e2 + 1.6 * walking.columns.shape[1]
        self.batch = int(np.clip(BATCH / iteration, 5, 2000))
        self.share = int(self.SHARE * self.EVERY * BATCH / evaluation)
        sweep = n * (n + 2)
        self.root_effort = min(300 * sweep, int(10 * BATCH / evaluation))
        self.polish_effort = min(10 * sweep, self.root_effort)

    def advance(self, open_gap: float) -> int:
        """Plan the next batch; returns the effort of the local search before it. ``open_gap`` is
        the part of the root's gap that is left.
        """
        self.next_stop += self.batch
        self.round += 1
        if self.round % self.EVERY:
            return 0
        if self.round > self.EARLY and open_gap > self.MOST:
            return 2 * self.share
        return self.share if self.round <= max(4 * self.success, self.EARLY) else self.share // 4
