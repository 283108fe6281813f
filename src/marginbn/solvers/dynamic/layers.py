"""The layers of one solve; see the package for the method.

The next layer is a table of places that sets are hashed to; an infinite value marks an empty one.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from marginbn.exceptions import SolverError
from marginbn.problem.array_types import FloatArray, IntArray, WordArray
from marginbn.solvers.compile import entry, kernel
from marginbn.solvers.memory import TABLE_BYTES, TRACE_BYTES, list_bytes
from marginbn.solvers.orders.ascent import Ascent, dual_ascent
from marginbn.solvers.orders.local_search import OrderSearch
from marginbn.solvers.orders.parent_lists import ParentLists
from marginbn.solvers.result import Status
from marginbn.solvers.run import Run, Stopped

SMALL = 12
"""Up to so many variables the layers take less time than a good bound."""

PASSES, ROUNDS = 12, 60
"""Of the dual ascent: the search is exponential in what it leaves open."""

ASCENT_WORK = 6_000_000
"""Candidates times rounds, at most."""

EFFORT = 300_000
"""Candidates that the search over orders looks at, per variable."""

SHARE = 150
"""And per set of a layer, as long as there are layers: a better structure leaves out more sets."""

PORTION = 20_000
"""Sets between two looks at the clock."""

ROOM = 1 << 12
"""Places of the first table."""

ONE = np.uint64(1)
"""One bit, as a word."""

Layer = tuple[WordArray, FloatArray]
"""Sets of one size with their costs."""
Lists = tuple[IntArray, WordArray, FloatArray]
"""Offsets, parent sets, costs."""
Clusters = tuple[WordArray, FloatArray]
"""Sets and multipliers."""
Places = tuple[WordArray, FloatArray, NDArray[np.uint8]]
"""Sets, values and newest variables of a table."""


@kernel
def place_of(key: np.uint64, keys: WordArray, values: FloatArray) -> int:
    """Where a set is, or the empty place where it belongs."""
    last = len(keys) - 1
    number = key * np.uint64(0x9E3779B97F4A7C15)
    place = np.int64((number ^ (number >> np.uint64(31))) & np.uint64(last))
    while values[place] < np.inf and keys[place] != key:
        place = np.int64((place + 1) & last)
    return int(place)


@kernel
def rest_of(placed: np.uint64, clusters: Clusters, loses: FloatArray) -> float:
    """Sum of the multipliers outside ``placed``; fills what each variable would take away."""
    members, multipliers = clusters
    total = 0.0
    loses[:] = 0.0
    for c in range(len(members)):
        if members[c] & placed != 0:
            continue
        total += multipliers[c]
        left = members[c]
        v = 0
        while left != 0:
            if left & ONE:
                loses[v] += multipliers[c]
            left >>= ONE
            v += 1
    return total


@entry
def expand(
    layer: Layer,
    first: int,
    last: int,
    lists: Lists,
    clusters: Clusters,
    upper: float,
    table: Places,
    state: FloatArray,
) -> int:
    """Add one variable to the sets from ``first`` to before ``last`` in every way that can pay.

    ``state`` is (sets in the table, least value with the rest). Returns the first set that was not
    handled because the table is half full.
    """
    (sets, best), (offsets, masks, cost), (keys, values, newest) = layer, lists, table
    n = len(offsets) - 1
    loses = np.empty(n)
    for s in range(first, last):
        if 2 * (state[0] + n) > len(keys):
            return s
        placed = sets[s]
        rest = rest_of(placed, clusters, loses)
        for v in range(n):
            bit = ONE << np.uint64(v)
            if placed & bit != 0:
                continue
            own_rest = max(0.0, rest - loses[v])
            budget = upper - best[s] - own_rest
            if budget < 0.0:
                continue
            for k in range(offsets[v], offsets[v + 1]):
                if cost[k] > budget:
                    break
                if masks[k] & ~placed == 0:
                    value = best[s] + cost[k]
                    place = place_of(placed | bit, keys, values)
                    if value < values[place]:
                        if values[place] == np.inf:
                            state[0] += 1.0
                            keys[place] = placed | bit
                        values[place] = value
                        newest[place] = v
                        state[1] = min(state[1], value + own_rest)
                    break
    return last


@entry
def enlarge(table: Places, larger: Places) -> None:
    """Move everything into a larger table."""
    keys, values, newest = table
    for place in range(len(keys)):
        if values[place] < np.inf:
            other = place_of(keys[place], larger[0], larger[1])
            larger[0][other] = keys[place]
            larger[1][other] = values[place]
            larger[2][other] = newest[place]


def _table(room: int) -> Places:
    """An empty table."""
    empty = np.full(room, np.inf, dtype=np.float64)
    return np.zeros(room, np.uint64), empty, np.zeros(room, np.uint8)


class LayerSearch:
    """One solve."""

    def __init__(self, run: Run) -> None:
        problem = run.problem
        self._run = run
        self._n = problem.n_variables
        self._parents = ParentLists.of(problem.candidates, problem.linear, problem.undominated)
        self._orders = OrderSearch(self._parents, run.seed)
        self._top = math.fsum(self._parents.top)
        # costs and sums of them are rounded: n of each, and the multipliers' allowance
        self._slack = 2.0**-50 * (self._n + 4) * self._parents.size
        self._trace: list[tuple[NDArray[np.unsignedinteger], NDArray[np.uint8]]] = []
        self._kept_bytes = 0
        self._room = run.memory.spendable - list_bytes(problem.candidates.n_candidates)

    def run(self) -> Status:
        """Go through the layers; every limit leaves incumbent and bound."""
        self._find_start()
        ascent = self._bound()
        self._slack += ascent.slack
        if self._run.is_closed and self._run.objective > -math.inf:
            return Status.OPTIMAL
        lists = self._useful_lists(ascent)
        clusters = (np.ascontiguousarray(ascent.clusters[:, 0]), ascent.multipliers)
        layer = np.zeros(1, np.uint64), np.zeros(1)
        for size in range(1, self._n + 1):
            self._run.offer(self._orders.search(min(SHARE * len(layer[0]), 10**8)))
            layer = self._next(layer, lists, clusters, is_last=size == self._n)
            if not len(layer[0]):  # nothing is better than the incumbent
                self._run.improve_bound(self._run.objective)
                return Status.OPTIMAL
        self._run.offer(self._orders.selection(self._way_back()))
        self._run.improve_bound(self._run.objective)  # every structure was considered
        return Status.OPTIMAL

    def _find_start(self) -> None:
        """A good structure: it decides how many sets are left out."""
        if self._n > SMALL:
            assert self._run.selection is not None
            known = self._run.problem.candidates.structure(self._run.selection)
            self._orders.join(np.array(known.order, dtype=np.int64))
            for _ in range(10):
                self._run.poll()
                self._run.offer(self._orders.search(self._n * EFFORT // 10))

    def _bound(self) -> Ascent:
        """Multipliers of clusters; none where the problem is small."""
        if self._n <= SMALL:
            return dual_ascent(self._parents, passes=1, seed=self._run.seed)
        n_candidates = self._run.problem.candidates.n_candidates
        ascent = dual_ascent(
            self._parents,
            passes=max(3, min(PASSES, ASCENT_WORK // (4 * n_candidates))),
            rounds=max(6, min(ROUNDS, ASCENT_WORK // n_candidates)),
            seed=self._run.seed,
            enough=self._upper(),
        )
        self._run.improve_bound(ascent.bound)
        return ascent

    def _upper(self) -> float:
        """What a set may cost with the rest, rounding allowed for."""
        return self._top - self._run.objective + self._slack

    def _useful_lists(self, ascent: Ascent) -> Lists:
        """Without the candidates that no better structure can have."""
        lists = self._parents.lists
        keep = ascent.reduced + ascent.multipliers.sum() <= self._upper() + 2.0 * self._slack
        ends = np.concatenate([[0], np.cumsum(keep)])
        offsets = ends[lists.offsets].astype(np.int64)
        return offsets, np.ascontiguousarray(lists.masks[keep, 0]), lists.cost[keep]

    def _next(self, layer: Layer, lists: Lists, clusters: Clusters, *, is_last: bool) -> Layer:
        """The sets of one more variable."""
        run, table, state = self._run, _table(ROOM), np.array([0.0, np.inf])
        done = 0
        while done < len(layer[0]):
            run.poll()
            if run.limits.nodes is not None and run.nodes >= run.limits.nodes:
                raise Stopped(Status.NODE_LIMIT)
            until = min(done + PORTION, len(layer[0]))
            reached = expand(layer, done, until, lists, clusters, self._upper(), table, state)
            if reached < until:
                table = self._enlarged(table, len(layer[0]))
            run.nodes += reached - done
            done = reached
        found = np.isfinite(table[1])
        keys, best, newest = table[0][found], table[1][found], table[2][found]
        short = np.uint32 if self._n <= 32 else np.uint64
        self._trace.append((keys.astype(short), newest))
        self._kept_bytes += len(keys) * TRACE_BYTES
        if len(keys) and not is_last:
            reachable = max(self._top - float(state[1]), run.objective)
            run.improve_bound(reachable + self._slack)
        return keys, best

    def _enlarged(self, table: Places, n_sets: int) -> Places:
        """A table of twice the places, if the memory allows."""
        room = len(table[0])
        if TABLE_BYTES * (3 * room + n_sets) + self._kept_bytes > self._room:
            raise Stopped(Status.MEMORY_LIMIT)
        larger = _table(2 * room)
        enlarge(table, larger)
        return larger

    def _way_back(self) -> IntArray:
        """The order of the best structure, from the last layer to the first."""
        order = np.zeros(self._n, dtype=np.int64)
        left = (1 << self._n) - 1
        for size in range(self._n, 0, -1):
            keys, newest = self._trace[size - 1]
            place = np.flatnonzero(keys == keys.dtype.type(left))
            if len(place) != 1:
                raise SolverError("no acyclic structure was found although one exists")
            order[size - 1] = newest[place[0]]
            left ^= 1 << int(order[size - 1])
        return order
