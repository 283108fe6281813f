"""One depth-first search: the start, thresholds, and what the run hears of it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from marginbn.solvers import orders
from marginbn.solvers.compile import prepare
from marginbn.solvers.memory import LARGEST_DESCENT, candidate_bytes, descent_bytes, list_bytes
from marginbn.solvers.orders.ascent import Ascent, dual_ascent
from marginbn.solvers.orders.kernels.descent import (
    DONE,
    FOUND,
    Control,
    Levels,
    Room,
    descend,
    open_root,
)
from marginbn.solvers.orders.kernels.known_sets import WAYS, KnownSets
from marginbn.solvers.orders.kernels.word_sets import Lists
from marginbn.solvers.orders.local_search import OrderSearch
from marginbn.solvers.orders.parent_lists import ParentLists
from marginbn.solvers.result import Status
from marginbn.solvers.run import Run, Stopped

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

PASSES, ROUNDS = 12, 200
"""Of the dual ascent at the root: the search is exponential in what it leaves open."""

ASCENT_WORK = 20_000_000
"""Candidates times rounds, at most."""

EFFORT = 300_000
"""Candidates that the search over orders looks at before, per variable."""

SHARE = 0.2
"""And later, per candidate that the search looks at."""

PORTION = 2_000_000
"""Candidates between two looks at the clock."""

FIRST_STEP = 0.25
"""Share of the gap at the root that the first threshold lies above the bound."""

SLOW_GROWTH = 3.0
"""Nodes of a threshold in proportion to the one before it, below which steps get longer."""

CUTOFF_SHARE = 0.5
"""Part of the requested gap that need not be searched."""

MOST_PLACES = 1 << 24
"""Of the table of sets."""


def warm_up() -> None:
    """Compile or load the kernels by calling them once."""
    orders.warm_up()

    def exercise() -> None:
        lists = Lists(
            np.array([0, 2, 4]),
            np.array([[2], [0], [1], [0]], dtype=np.uint64),
            np.array([0.0, 1.0, 0.0, 2.0]),
        )
        parents = ParentLists(lists, np.arange(4), np.zeros(2), 3.0)
        search = Descent(parents, dual_ascent(parents, passes=1), 4.0, 10**6, 0)
        search.begin(4.0)
        search.advance(100, 100)

    hint = "depth-first search, once; this takes some seconds"
    prepare(orders.__name__, exercise, hint, "ready-depth-first")


class RootLists:
    """Lists of the root: what cannot cost less than the incumbent is left out, and what stands
    behind a candidate without parents.
    """

    def __init__(self, parents: ParentLists, ascent: Ascent, upper: float) -> None:
        lists = parents.lists
        least = np.minimum.reduceat(ascent.reduced, lists.offsets[:-1])
        child = np.repeat(np.arange(parents.n_variables), np.diff(lists.offsets))
        reduced = ascent.reduced - least[child]
        keep = ascent.cost + reduced < upper
        bare = ~lists.masks.any(axis=1)
        before: IntArray = np.cumsum(bare) - bare
        keep &= before == before[lists.offsets[:-1]][child]
        ends = np.concatenate([[0], np.cumsum(keep)])
        self.offsets = ends[lists.offsets].astype(np.int64)
        self.masks = np.ascontiguousarray(lists.masks[keep])
        self.cost, self.reduced, self.least = lists.cost[keep], reduced[keep], least


class Descent:
    """The arrays of a search and the state it is in."""

    def __init__(
        self, parents: ParentLists, ascent: Ascent, upper: float, memory: float, seed: int
    ) -> None:
        n, words = parents.n_variables, parents.n_words
        self._parents = parents
        self._n = n
        root = RootLists(parents, ascent, upper)
        size = len(root.cost)
        per_candidate = candidate_bytes(n)
        spare = min(memory, LARGEST_DESCENT) - descent_bytes(size, n, 2)
        more = int(min(n * size, max(0.0, 0.75 * spare) / per_candidate))
        capacity = 2 * (size + n) + more
        places = min(max(0.25 * spare, 0.0) / (8 * words + 8), MOST_PLACES)
        places = 1 << max(WAYS.bit_length(), int(places).bit_length() - 1)
        self._known = KnownSets(np.zeros((places, words), np.uint64), np.zeros(places))
        self._room = Room(
            np.empty((capacity, words), np.uint64), np.empty(capacity), np.empty(capacity)
        )
        self._levels = _levels(n, words, 40 * n + 1000)
        self._fill_root(root, ascent)
        state = np.array([2 * seed + 4_101_842_887_655_102_017], dtype=np.int64)
        tiny = 1e-10 * max(parents.size, 1e-300)
        self._control = Control(
            np.array([upper, tiny]), np.array([-1]), np.zeros(2, dtype=np.int64), state
        )

    def _fill_root(self, root: RootLists, ascent: Ascent) -> None:
        levels, size, count = self._levels, len(root.cost), len(ascent.multipliers)
        self._room.masks[:size] = root.masks
        self._room.cost[:size] = root.cost
        self._room.reduced[:size] = root.reduced
        levels.offsets[0] = root.offsets
        levels.least[0] = root.least
        levels.clusters[0, :count] = ascent.clusters
        levels.multipliers[0, :count] = ascent.multipliers
        levels.n_clusters[0] = count
        levels.charges[0] = count + 2
        levels.bound[0] = ascent.cost

    @property
    def nodes(self) -> int:
        """Nodes so far."""
        return int(self._control.counts[0])

    @property
    def work(self) -> int:
        """Candidates looked at so far."""
        return int(self._control.counts[1])

    @property
    def threshold(self) -> float:
        """The search is for structures that cost less."""
        return float(self._control.limits[0])

    def lower(self, threshold: float) -> None:
        """Search for less from now on."""
        self._control.limits[0] = min(self.threshold, threshold)

    def begin(self, threshold: float) -> None:
        """Start at the root again, for structures that cost less than the threshold."""
        self._control.limits[0] = threshold
        open_root(self._levels, self._room, self._control)

    def advance(self, portion: int, most: int) -> int:
        """A portion of the search; see the kernel."""
        return descend(self._levels, self._room, self._known, self._control, portion, most)

    @property
    def order(self) -> IntArray:
        """Of the structure just found."""
        return self._levels.order.copy()

    @property
    def least_open(self) -> float:
        """What everything that is not yet searched costs at least, up to the threshold."""
        levels, least = self._levels, self.threshold
        for level in range(int(self._control.depth[0]) + 1):
            child = levels.next_child[level]
            if level == self._control.depth[0] or child < levels.n_children[level]:
                pending = levels.child_bound[level, child : levels.n_children[level]]
                least = min(least, float(pending.min(initial=math.inf)))
        return least


def _levels(n: int, words: int, n_clusters: int) -> Levels:
    """Empty levels, each its own source."""

    def floats(*shape: int) -> FloatArray:
        return np.zeros((n + 2, *shape))

    def numbers(*shape: int) -> IntArray:
        return np.zeros((n + 2, *shape), dtype=np.int64)

    return Levels(
        placed=np.zeros((n + 2, words), np.uint64),
        n_placed=numbers(),
        spent=floats(),
        bound=floats(),
        charges=numbers(),
        source=numbers(),
        least=floats(n),
        offsets=numbers(n + 1),
        clusters=np.zeros((n + 2, n_clusters, words), np.uint64),
        multipliers=floats(n_clusters),
        n_clusters=numbers(),
        children=numbers(n),
        child_bound=floats(n),
        child_cost=floats(n),
        n_children=numbers(),
        next_child=numbers(),
        order=np.zeros(n, dtype=np.int64),
    )


class DepthFirstSearch:
    """One solve."""

    def __init__(self, run: Run, heuristics: bool) -> None:
        problem = run.problem
        self._heuristics = heuristics
        self._earlier = run.nodes
        self._run = run
        self._n = problem.n_variables
        self._parents = ParentLists.of(problem.candidates, problem.linear, problem.undominated)
        self._orders = OrderSearch(self._parents, run.seed)
        self._top = math.fsum(self._parents.top)
        self._slack = 2.0**-50 * (self._n + 4) * self._parents.size
        self._memory = run.memory.spendable - list_bytes(problem.candidates.n_candidates)

    def run(self) -> Status:
        """Deepen until nothing better is left; every limit leaves incumbent and bound."""
        self._find_start()
        ascent = self._bound()
        if self._run.is_closed:
            return Status.OPTIMAL
        self._descent = Descent(self._parents, ascent, self._upper(), self._memory, self._run.seed)
        lower = max(ascent.cost, self._top - self._run.bound)  # of an earlier call, maybe
        step, before = FIRST_STEP * (self._upper() - lower), 0
        while True:
            nodes = self._descent.nodes
            is_last = lower + 1.5 * step >= self._cutoff()
            self._search(self._cutoff() if is_last else lower + step)
            lower = self._descent.threshold
            self._claim(lower)
            if lower >= self._cutoff() or self._run.is_closed:
                return Status.OPTIMAL
            nodes = self._descent.nodes - nodes
            if nodes < SLOW_GROWTH * before:
                step *= 2.0
            before = nodes

    def _find_start(self) -> None:
        """A good structure: it decides how much is left out."""
        if not self._heuristics:
            return
        assert self._run.selection is not None
        known = self._run.problem.candidates.structure(self._run.selection)
        self._orders.join(np.array(known.order, dtype=np.int64))
        for _ in range(10):
            self._run.poll()
            self._run.offer(self._orders.search(self._n * EFFORT // 10))

    def _bound(self) -> Ascent:
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
        """What a structure costs that is as good as the incumbent, rounding allowed for."""
        return self._top - self._run.objective + self._slack

    def _cutoff(self) -> float:
        """The last threshold: the rest is within the requested gap."""
        run = self._run
        size = max(run.problem.scale, abs(run.objective))
        return self._upper() - CUTOFF_SHARE * run.limits.gap * size

    def _claim(self, cost: float) -> None:
        """Nothing costs less."""
        self._run.improve_bound(self._top - cost + self._slack)

    def _search(self, threshold: float) -> None:
        """Everything that costs less than the threshold."""
        run, descent = self._run, self._descent
        descent.begin(threshold)
        limit = 2**62 if run.limits.nodes is None else run.limits.nodes - self._earlier
        while True:
            run.poll()
            if descent.nodes >= limit:
                raise Stopped(Status.NODE_LIMIT)
            work = descent.work
            ending = descent.advance(PORTION, limit)
            run.nodes = self._earlier + descent.nodes
            if ending == FOUND:
                run.offer(self._orders.selection(descent.order))
                self._orders.join(descent.order)
            elif self._heuristics:
                effort = int(SHARE * (descent.work - work))
                run.offer(self._orders.search(effort))
            descent.lower(self._cutoff())
            if ending == DONE:
                return
            self._claim(descent.least_open)
