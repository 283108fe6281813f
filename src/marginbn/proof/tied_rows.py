"""Rows whose dual weights are tied to each other: groups, as the tree of a certificate needs them.

Samples of one class may share their shares: ``u_m = w_m p`` with the same p for all members of a
group is a choice of dual weights like any other, so the bound of the groups
(``solvers/branch_bound/row_groups.py``) is a bound of the whole problem, and a checker needs no
argument but the weights of every sample. The certificate holds the last grouping, and a vector of
parts for every group. Groups are only ever split, so weights of an earlier, coarser grouping are
given to the groups that have come of each group.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marginbn.proof.certificate import DualWeights
from marginbn.solvers.branch_bound.arrays import Encoding
from marginbn.solvers.branch_bound.kernels.combination import Bounding, load_margins
from marginbn.solvers.branch_bound.kernels.records import (
    FloatArray,
    Instance,
    IntArray,
    count_rows,
)
from marginbn.solvers.branch_bound.pair_tables import Coded, Poll
from marginbn.solvers.branch_bound.row_groups import Groups
from marginbn.solvers.branch_bound.rows import RAREST_CHECK, WORTH

COPIES = 6
"""Coefficients of a group are held so many times: by row and column, and while it is split."""

LEAST_LOSS = 1e-13
"""What groups lose beside gamma and all weights where they lose nothing but rounding."""


class TiedRows:
    """Groups of samples, split where tying their weights costs too much."""

    def __init__(self, encoding: Encoding, coded: Coded, budget: int, poll: Poll) -> None:
        self.full = encoding.instance
        self._groups = Groups(encoding, coded, budget // (8 * COPIES * self.full.linear.size))
        self._poll = poll
        self._origin: IntArray = np.arange(self._groups.n_groups)
        self._visits, self._next_look, self._interval = 0, 1, 1

    @property
    def instance(self) -> Instance:
        """The means of the groups."""
        return self._groups.instance

    @property
    def group_of(self) -> NDArray[np.int32]:
        """Group of every sample."""
        return self._groups.group_of

    def look(self, b: Bounding, gap: float) -> bool:
        """Split groups that lose more than a small part of the gap at the relaxed solution; whether
        any was. Less and less often while none is.
        """
        self._visits += 1
        if self._visits < self._next_look:
            return False
        found = self._split_at(b, WORTH * gap)
        self._interval = 1 if found else min(2 * self._interval, RAREST_CHECK)
        self._next_look = self._visits + self._interval
        load_margins(self.instance, b)
        return found

    def margins_of(self, b: Bounding, vertex: IntArray) -> FloatArray:
        """Margins of the groups at a structure (groups, rivals), once they lose nothing there that
        more groups would win back; the relaxed solution is forgotten.
        """
        b.vertices[0], b.share[0], b.state.n_active = vertex, 1.0, 1
        little = LEAST_LOSS * self.full.gamma * float(self.full.weights.sum())
        while self._split_at(b, little):
            pass
        load_margins(self.instance, b)
        count = self._groups.n_groups
        return b.t[: count_rows(self.instance)].reshape(count, -1)

    def _split_at(self, b: Bounding, tolerated: float) -> bool:
        load_margins(self.full, b)
        losses, before = self._groups.losses(b.t), self._groups.n_groups
        if losses.total <= tolerated or not self._groups.split(losses, self._poll):
            return False
        self._origin = np.append(self._origin, self._groups.origin[before:])
        return True

    def spread(self, dual: DualWeights) -> DualWeights:
        """Weights of an earlier grouping for the present one."""
        known, heir = len(dual.parts), np.arange(self._groups.n_groups)
        while (heir >= known).any():
            heir = np.where(heir >= known, self._origin[heir], heir)
        return DualWeights(dual.bits, dual.parts[heir])
