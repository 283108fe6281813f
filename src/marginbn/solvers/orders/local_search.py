"""Good structures of decomposable scores: a population of orders that is improved in turns.

Everything depends on the lists and the seed alone: effort is counted, never timed.

Where arcs are required a variable may have no parent set within those before it: such an order is
*stuck* and stands for no structure. All orders that are kept are free of that. A new one is mended:
next comes always the first of the waiting variables that has a parent set within those placed.
Placing a variable never takes a choice from another, so this ends with an order wherever there is
one. Kicked and crossed orders that are stuck cost infinitely much and never replace one.
"""

from __future__ import annotations

import numpy as np

from marginbn.exceptions import SolverError
from marginbn.problem.array_types import FloatArray, IntArray
from marginbn.solvers.orders.kernels.insertion import search_orders
from marginbn.solvers.orders.parent_lists import ParentLists

POPULATION = 10
"""Orders that are kept."""


class OrderSearch:
    """One population. Easy networks take twice as long with it as without (alarm and hailfinder,
    ``benchmarks run levers``); carpo100 is not proved in 20 s without it.
    """

    def __init__(self, parents: ParentLists, seed: int, stop: IntArray | None = None) -> None:
        n = parents.n_variables
        self.parents = parents
        self.stop = np.zeros(1, dtype=np.int64) if stop is None else stop
        """Flag that ends a running search, for timers."""
        self._state = np.array([2 * seed + 2_862_933_555_777_941_757], dtype=np.int64)
        random = np.random.default_rng(seed)
        lists = parents.lists
        no_parents = ~lists.masks.any(axis=1)
        self._never_stuck = bool(np.logical_or.reduceat(no_parents, lists.offsets[:-1]).all())
        self._orders = np.array(
            [self._mended(random.permutation(n)) for _ in range(POPULATION)], dtype=np.int64
        )
        self._costs = np.full(POPULATION, np.nan)

    def search(self, effort: int) -> IntArray:
        """Spend an effort, in candidates looked at; the best selection so far."""
        best = search_orders(
            self.parents.lists, self._orders, self._costs, self._state, effort, self.stop
        )
        return self.selection(self._orders[best])

    def join(self, order: IntArray) -> None:
        """Put an order into the place of the worst; the next search climbs from it."""
        worst = int(np.argmax(self._costs))  # NaN counts as the largest
        self._orders[worst], self._costs[worst] = self._mended(order), np.nan

    def _mended(self, order: IntArray) -> IntArray:
        """The order, or one near to it that is not stuck."""
        if self._never_stuck:
            return order
        lists, before = self.parents.lists, np.zeros(self.parents.n_words, dtype=np.uint64)
        waiting, placed = [int(i) for i in order], []
        while waiting:
            for i in waiting:
                group = slice(lists.offsets[i], lists.offsets[i + 1])
                if not (lists.masks[group] & ~before).any(axis=1).all():
                    break
            else:
                raise SolverError(f"no order of the variables: {waiting} wait for each other")
            waiting.remove(i)
            placed.append(i)
            before[i // 64] |= np.uint64(1 << (i % 64))
        return np.array(placed, dtype=np.int64)

    def selection(self, order: IntArray) -> IntArray:
        """The best candidates of an order, or of one near to it that is not stuck, in the numbers
        of the problem.
        """
        order, lists = self._mended(order), self.parents.lists
        before = np.zeros(self.parents.n_words, dtype=np.uint64)
        chosen = np.zeros(len(order), dtype=np.int64)
        for i in order:
            group = slice(lists.offsets[i], lists.offsets[i + 1])
            outside = lists.masks[group] & ~before
            chosen[i] = group.start + int(np.argmin(outside.any(axis=1)))
            before[i // 64] |= np.uint64(1 << (int(i) % 64))
        return self.parents.index[chosen]

    def rounded(self, point: FloatArray) -> IntArray:
        """An order for a fractional point (K,) of the problem: next comes the variable with the
        largest mass on parent sets within those before it; ties go to the better score there.
        """
        lists, n = self.parents.lists, self.parents.n_variables
        mass = point[self.parents.index]
        support = np.flatnonzero(mass > 0)
        child = np.searchsorted(lists.offsets, support, side="right") - 1
        masks, mass, cost = lists.masks[support], mass[support], lists.cost[support]
        before = np.zeros(self.parents.n_words, dtype=np.uint64)
        waits = np.ones(n, dtype=bool)
        order = np.zeros(n, dtype=np.int64)
        for place in range(n):
            ready = ~(masks & ~before).any(axis=1)
            worth = np.bincount(child[ready], mass[ready], n)
            price = np.bincount(child[ready], mass[ready] * cost[ready], n)
            worth = np.where(waits, np.round(worth, 6), -1.0)
            best = np.flatnonzero(worth == worth.max())
            i = int(best[np.argmin(price[best])])
            order[place] = i
            waits[i] = False
            before[i // 64] |= np.uint64(1 << (i % 64))
        return order

    def order_of(self, chosen: IntArray) -> IntArray:
        """A topological order of a selection of the problem."""
        point = np.zeros(len(self.parents.index))
        point[chosen] = 1.0
        return self.rounded(point)
