"""Dual ascent in linear problems: the first bound and rows, and better bounds of children.

The Lagrangian of a node (``lagrangian.py``) leaves reduced costs r_k = (largest value of the
variable) - v_k >= 0. Fewer candidates are allowed at a child, so these admit no order more often,
and clusters can be raised from there as from the costs of the problem: in milliseconds instead of a
linear programme.
"""

from __future__ import annotations

import numpy as np

from marginbn.solvers.branch_cut.arrays import BoolArray, Instance
from marginbn.solvers.branch_cut.lagrangian import Prices
from marginbn.solvers.orders.ascent import TINY
from marginbn.solvers.orders.kernels.raising import ascend, charge_all
from marginbn.solvers.orders.parent_lists import ParentLists


class Deepener:
    """Raises clusters on top of prices; one per worker."""

    def __init__(self, instance: Instance, parents: ParentLists, seed: int) -> None:
        self._instance = instance
        self._parents = parents
        self._state = np.array([2 * seed + 6_364_136_223_846_793_005], dtype=np.int64)
        room = 4 * parents.n_variables
        self._clusters = np.zeros((room, parents.n_words), dtype=np.uint64)
        self._multipliers = np.zeros(room)

    def raised(self, prices: Prices, allowed: BoolArray) -> Prices:
        """Prices whose bound over the allowed candidates is at most that of the given ones."""
        instance, parents = self._instance, self._parents
        index, lists = parents.index, parents.lists
        best = prices.best(instance, allowed)
        if not np.isfinite(best).all():
            return prices
        reduced = np.where(allowed, best[instance.child] - prices.values, np.inf)[index]
        tiny = TINY * max(parents.size, 1e-300)
        gain, count = ascend(
            lists, reduced, tiny, np.inf, self._state, self._clusters, self._multipliers
        )
        if count == 0 or gain == np.inf:
            return prices
        clusters, multipliers = self._clusters[:count], self._multipliers[:count]
        charged = np.zeros(len(index))
        charge_all(lists, clusters, multipliers, charged)
        values = np.zeros(len(index))
        values[index] = -charged
        return prices.raised(instance, values, multipliers)
