"""Nodes of few variables: the convex hull of their structures instead of a linear programme.

Dynamic programming over sets of variables (``branch_bound/kernels/subsets.py``) maximises any
linear function over the structures of a node, fast as long as variables are few. So the relaxation
over their convex hull, which no cut can tighten, is solved as in branch and bound: steps of Frank
and Wolfe with all vertices in balance. What splits gain is learned as there
(``branch_bound/kernels/gains.py``), from drops of f and the middles of brackets.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np
import numpy.typing as npt

from marginbn.problem.formulation import Poll
from marginbn.solvers.branch_bound.kernels import hull
from marginbn.solvers.branch_bound.kernels.bound import EMPTY, PAUSED
from marginbn.solvers.branch_bound.kernels.combination import new_bounding
from marginbn.solvers.branch_bound.kernels.records import Instance as Rows
from marginbn.solvers.branch_bound.kernels.subsets import Candidates, new_tables, table_bytes
from marginbn.solvers.branch_bound.shape import ACTIVE_VERTICES, KEPT_VERTICES
from marginbn.solvers.branch_cut.arrays import BoolArray, FloatArray, Instance, IntArray
from marginbn.solvers.branch_cut.kernels.propagate import propagate
from marginbn.solvers.branch_cut.lagrangian import Prices
from marginbn.solvers.branch_cut.shape import BranchCutShape
from marginbn.solvers.branch_cut.split import Choice, Kind, Split, any_split, every_split, sides

PACKAGE = hull.__name__.partition(".kernels")[0]
"""Where the kernels are."""

SMOOTHING, SMOOTHING_FLOOR, SMOOTHING_FACTOR = 0.45, 0.01, 0.6
"""Of the root, and at the least, in units of gamma; and what it is multiplied by."""

STALE = 0.01
"""Changes of dual weights below this part of a sample's weight are not carried out."""

WINDOW, PATIENCE = 16, 1.5
"""Progress is judged over so many iterations; a node is split if pruning would take more than so
many windows.
"""

ITERATIONS, ROOT_ITERATIONS, TRIAL_ITERATIONS = 50, 1000, 10
"""Of a node, of the root, and of a side of an object that is tried."""

ACCURACY, ACCURACY_TOP, ACCURACY_ROOT, TOP = 0.5, 0.2, 0.1, 0.15
"""Bracket against the distance to the cutoff at which a node is split: below; while the bound is
farther from the incumbent than a part of the root's distance; and of the root.
"""

WORTH = 0.7
"""In units of what splits gain: smaller brackets are not worth an iteration."""

PIECE, COST = 1e8, 30.0
"""Nanoseconds of one call of the kernel, between two of which the clock is looked at; and of one
set of variables in an iteration.
"""

SMALL, LARGEST = 0.03, 0.999
"""Shares of objects nearer to 0 say too little about them, nearer to 1 too; of candidates, which
remain where all else is settled, only those that are settled too.
"""

TRIED, BELIEVED, CONSIDERED = 4, 2, 8
"""Objects tried at a node, observations of both sides after which none is tried, and objects of
the best scores among which one is chosen.
"""

PRIOR = 2.0
"""Observations that the ratio of the kind counts as."""

LEAST = 1e-3
"""Gains to expect count as at least this part of the largest possible one."""

RECENT = 0.02
"""Weight of the newest gain in the running mean."""

POOL = 512
"""Newest vertices that are kept beside those of a node."""

RARELY, LESS = 8, 0.98
"""Candidates are bounded one by one, which takes as long as three iterations, at nodes no farther
from the cutoff than where that helped, and at every so many-th of the others. Where it does not
help, the distance is multiplied by a little less than one.
"""

KINDS: tuple[Kind, ...] = ("edge", "arc", "candidate")
"""By the numbers of the kernel."""


@dataclass(frozen=True)
class HullState:
    """What a node hands to its children: the vertices of its point and their shares."""

    vertices: npt.NDArray[np.int32]  # (active, n)
    share: FloatArray  # (active,)
    smoothing: float

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        return self.vertices.nbytes + self.share.nbytes + 200


@dataclass(frozen=True)
class HullPrices(Prices):
    """The best majorant of a node, with the bound of the structures that have each candidate."""

    through: FloatArray  # (K,)

    def bound(self, instance: Instance, allowed: BoolArray) -> float:
        """Every structure has an allowed candidate of every variable."""
        return float(instance.group_maxima(np.where(allowed, self.through, -np.inf)).min())

    def bounds_by_candidate(self, instance: Instance, allowed: BoolArray) -> FloatArray:
        """Bound of the structures that choose k, for every k; (K,)."""
        return self.through


@dataclass(frozen=True)
class HullRelaxed:
    """A node after some iterations."""

    warm: HullState
    bound: float = math.inf  # safe; -inf where the node is empty
    prices: HullPrices | None = None
    point: FloatArray | None = None  # (K,)
    value: float = -math.inf  # of the point

    def middle(self, cutoff: float) -> float:
        """Middle of the bracket in which the node's relaxation lies, or the cutoff."""
        if not math.isfinite(cutoff):
            return self.bound
        return max(cutoff, 0.5 * (self.bound + max(self.value, cutoff)))


class Gains:
    """What splits have gained so far, by object and side; for all workers.

    With r0 the ratio of all gains to all drops of objects of this kind and side, and m the mean
    drop of this object and side,

        ratio = (sum of gains + PRIOR m r0) / (sum of drops + PRIOR m),

    and the gain to expect is the drop times the ratio.
    """

    def __init__(self, instance: Instance) -> None:
        n = instance.n_variables
        self._n = n
        size = 2 * n * n + instance.n_candidates
        self._gain, self._drop = np.zeros((size, 2)), np.zeros((size, 2))
        self._count = np.zeros((size, 2))
        self._kind_gain, self._kind_drop = np.zeros((3, 2)), np.zeros((3, 2))
        self._lock = threading.Lock()
        self.recent = 0.0
        """Running mean of all gains, 0 before the first."""
        self.root_bound = math.inf

    def _rows(self, objects: IntArray) -> IntArray:
        kind, first, second = objects.T
        n = self._n
        pairs = kind * n * n + first * n + second
        return np.asarray(np.where(kind == hull.CANDIDATE, 2 * n * n + second, pairs))

    def learn(self, split: Split, side: int, drop: float, gain: float) -> None:
        """A child (side 0 or 1) gained ``gain`` where a drop was seen before."""
        if not (math.isfinite(gain) and drop > 0.0):
            return
        kind = KINDS.index(split.kind)
        second = split.first if kind == hull.CANDIDATE else split.second
        row = int(self._rows(np.array([[kind, split.first, second]]))[0])
        gain = max(gain, 0.0)
        with self._lock:
            self._gain[row, side] += gain
            self._drop[row, side] += drop
            self._count[row, side] += 1
            self._kind_gain[kind, side] += gain
            self._kind_drop[kind, side] += drop
            self.recent = self.recent + RECENT * (gain - self.recent) if self.recent else gain

    def expected(self, objects: IntArray, drops: FloatArray) -> FloatArray:
        """Gains to expect, (m, 2)."""
        kind, rows = objects[:, 0], self._rows(objects)
        usual = np.divide(
            self._kind_gain, self._kind_drop, out=np.ones((3, 2)), where=self._kind_drop > 0
        )[kind]
        count = self._count[rows]
        prior = PRIOR * self._drop[rows] / np.maximum(count, 1.0)
        total = self._drop[rows] + prior
        known = np.divide(
            self._gain[rows] + prior * usual, total, out=usual.copy(), where=count > 0
        )
        return np.asarray(drops * known)

    def observations(self, objects: IntArray) -> FloatArray:
        """The smaller number of observations of the two sides, (m,)."""
        return np.asarray(self._count[self._rows(objects)].min(axis=1))


def suits(instance: Instance) -> bool:
    """Whether variables are few enough, and the coefficients at hand."""
    few = instance.n_variables - instance.restricted <= BranchCutShape.MOST_PLACES
    return few and instance.n_samples > 0 and instance.coefficients.dense is not None


def needed_bytes(instance: Instance, n_jobs: int) -> int:
    """Memory besides the coefficients by row: those by column, and every worker's tables and
    margins of vertices.
    """
    n_rows = instance.coefficients.n_rows
    tables = table_bytes(instance.n_variables - instance.restricted)
    return 8 * n_rows * instance.n_candidates + n_jobs * (
        tables + 8 * n_rows * (ACTIVE_VERTICES + 10)
    )


class HullModel:
    """A problem as the kernels want it, and what was learned about splits; for all workers."""

    def __init__(self, instance: Instance) -> None:
        dense = instance.coefficients.dense
        assert dense is not None  # see :func:`suits`
        self.instance = instance
        self.gains = Gains(instance)
        sizes = np.abs(instance.linear) + instance.coefficients.magnitudes(instance.weights)
        none = np.zeros(0, dtype=np.int64)
        self.rows = Rows(
            instance.n_variables - 1,
            instance.gamma,
            0.0,
            0.0,
            dense,
            np.ascontiguousarray(dense.T),
            np.array(instance.linear),
            float(sizes.max()),
            np.array(instance.weights),
            np.arange(instance.n_samples + 1, dtype=np.int64) * instance.n_rivals,
            none,
            none,
            instance.scale,
        )
        restricted, is_class = instance.restricted, instance.child == 0
        counts = (instance.members >= 0).sum(axis=1)
        most = int(counts[~is_class].max(initial=1)) - 1 if restricted else int(counts.max())
        self.candidates = Candidates(
            np.array(instance.offsets),
            instance.masks[:, 0].astype(np.int64),
            max(most, 0),
            int(counts[is_class].max()) if restricted else most,
            restricted,
        )


def accuracy(root: float, bound: float, best: float) -> float:
    """theta of a node: strict at the top of the tree, where a converged point pays."""
    if not math.isfinite(root):
        return ACCURACY_ROOT
    return ACCURACY_TOP if bound - best > TOP * (root - best) else ACCURACY


class HullRelaxation:
    """Bounds nodes; one per worker. ``poll`` is called between pieces of work and may raise,
    ``stop`` ends a piece.
    """

    def __init__(self, model: HullModel, stop: IntArray, poll: Poll = lambda: None) -> None:
        self.model = model
        self.instance, self.gains = model.instance, model.gains
        self.rows, self.candidates = model.rows, model.candidates
        self._stop, self._poll = stop, poll
        n = self.instance.n_variables
        self._tables = new_tables(n - self.instance.restricted)
        self._bounding = new_bounding(self.rows, ACTIVE_VERTICES, self.instance.magnitude)
        self._reach, self._unfixed = math.inf, 0  # see :data:`RARELY`
        room = np.zeros((POOL, n), dtype=np.int64)
        self._pool = hull.Pool(room, np.zeros(1, dtype=np.int64))
        self.found = hull.Found(np.zeros(n, dtype=np.int64), np.full(1, -np.inf))
        """The best structure that the newest call came across, where better than the incumbent."""

    def first_state(self, chosen: IntArray) -> HullState:
        """A structure alone."""
        return HullState(chosen[None, :].astype(np.int32), np.ones(1), SMOOTHING * self.rows.gamma)

    def _piece(self, allowed: BoolArray) -> int:
        """Iterations of one call."""
        sizes = np.add.reduceat(allowed.astype(np.int64), self.instance.offsets[:-1])
        places = int((sizes > 1).sum())
        return int(np.clip(PIECE / (COST * 2.0**places), 2, WINDOW))

    def solve(
        self,
        warm: HullState,
        allowed: BoolArray,
        present: BoolArray,
        best: float,
        cutoff: float,
        theta: float,
        iterations: int,
        report: Callable[[float], None] | None,
    ) -> HullRelaxed:
        """Bound the structures with allowed candidates and the present edges; ``best`` is the value
        of the incumbent. ``report`` gets the bounds; without it this is a trial, after which
        nothing is fixed.
        """
        b, constant = self._bounding, self.instance.constant
        count = len(warm.share)
        b.vertices[:count], b.share[:count] = warm.vertices, warm.share
        b.state.n_active, b.state.smoothing, b.state.bound = count, warm.smoothing, np.inf
        self.found.value[0] = best - constant
        worth = WORTH * self.gains.recent if self.gains.recent and theta > ACCURACY_ROOT else np.inf
        piece = self._piece(allowed)
        spent, mark, before = 0, WINDOW, math.inf
        while True:
            effort = hull.Effort(
                cutoff - constant,
                theta,
                worth,
                min(piece, iterations - spent),
                SMOOTHING_FLOOR,
                SMOOTHING_FACTOR,
                STALE,
            )
            outcome = hull.bound_hull(
                self.rows,
                self.candidates,
                allowed,
                present,
                self._tables,
                effort,
                b,
                self.found,
                self._pool,
                self._stop,
            )
            if outcome == EMPTY:
                return HullRelaxed(warm, -math.inf)
            spent += int(b.state.iterations)
            bound = float(b.state.bound)
            if report is not None:
                report(bound + constant)
            self._poll()
            if outcome != PAUSED or spent >= iterations:
                break
            if spent >= mark and theta >= ACCURACY:
                if PATIENCE * (before - bound) < bound + constant - cutoff:
                    break
                before, mark = bound, spent + WINDOW
        if bound + constant <= cutoff:
            return HullRelaxed(warm, bound + constant)
        point, state = np.zeros(self.instance.n_candidates), self._state()
        for vertex, share in zip(state.vertices, state.share, strict=True):
            point[vertex] += share
        prices, distance = None, bound + constant - cutoff
        self._unfixed += report is not None
        if report is not None and (distance <= self._reach or self._unfixed >= RARELY):
            self._unfixed = 0
            through = np.empty(len(allowed))
            hull.bound_candidates(
                self.rows, self.candidates, allowed, present, self._tables, b, through
            )
            prices = HullPrices(b.best_g.copy(), b.state.constant, 0.0, through + constant)
            helps = bool((allowed & (prices.through <= cutoff)).any())
            if helps:
                self._reach = max(self._reach, distance)
            else:
                self._reach = LESS * min(self._reach, distance)
        return HullRelaxed(
            state, bound + constant, prices, point, float(b.state.relaxed) + constant
        )

    def _state(self) -> HullState:
        """The heaviest vertices."""
        b = self._bounding
        share = b.share[: b.state.n_active]
        kept = np.argsort(-share, kind="stable")[:KEPT_VERTICES]
        total = share[kept].sum()
        return HullState(b.vertices[kept].astype(np.int32), share[kept] / total, b.state.smoothing)


class HullChooser:
    """Splits on what promises the largest product of gains; one per worker."""

    def __init__(self, relaxation: HullRelaxation, seed: int, random_splits: bool) -> None:
        self._relaxation = relaxation
        self._instance = relaxation.instance
        self._gains = relaxation.gains
        self._random = np.random.default_rng(seed) if random_splits else None

    def choose(
        self,
        relaxed: HullRelaxed,
        cutoff: float,
        best: float,
        allowed: BoolArray,
        present: BoolArray,
    ) -> Choice:
        """The object of the best score; some of those that are little known are tried."""
        if self._random is not None:
            splits = every_split(self._instance, allowed, present)
            return Choice(splits[int(self._random.integers(len(splits)))], (0.0, 0.0))
        if relaxed.point is None:
            return Choice(any_split(self._instance, None, allowed), (0.0, 0.0))
        objects = self._objects(relaxed.point, allowed, present)
        drops = np.zeros((len(objects), 2))
        rows, candidates = self._relaxation.rows, self._relaxation.candidates
        hull.drops_of_sides(rows, candidates, relaxed.point, objects, drops)
        room = relaxed.middle(cutoff) - cutoff
        score = self._score(self._gains.expected(objects, drops), room)
        order = (
            int(a)
            for a in np.argsort(-score, kind="stable")
            if self._is_open(_split_of(objects[a]), allowed)
        )
        first = next(order, -1)
        if first < 0:
            return Choice(any_split(self._instance, relaxed.point, allowed), (0.0, 0.0))
        if not math.isfinite(cutoff):
            return Choice(_split_of(objects[first]), (drops[first, 0], drops[first, 1]))
        some = islice(chain([first], order), CONSIDERED)
        return self._try(relaxed, cutoff, best, allowed, present, objects, drops, score, some)

    @staticmethod
    def _score(gains: FloatArray, room: float) -> FloatArray:
        """Products of gains, none above the largest possible one."""
        if not math.isfinite(room):
            return np.asarray(np.maximum(gains, 0.0).prod(axis=1))
        return np.asarray(np.clip(gains, LEAST * room, room).prod(axis=1))

    def _is_open(self, split: Split, allowed: BoolArray) -> bool:
        """Whether both sides are smaller than the node."""
        zero, one = sides(self._instance, split, allowed)
        return len(zero.removed) > 0 and (one.edge is not None or len(one.removed) > 0)

    def _objects(self, point: FloatArray, allowed: BoolArray, present: BoolArray) -> IntArray:
        """Fractional objects (kind, i, j): edges; arcs where the edge is decided or the reverse is
        impossible; candidates.
        """
        instance = self._instance
        n = instance.n_variables
        arcs, possible = np.zeros((n, n)), np.zeros((n, n), dtype=bool)
        support = np.flatnonzero(point > 0)
        for p in range(instance.members.shape[1]):
            parents = instance.members[support, p]
            real = parents >= 0
            np.add.at(arcs, (instance.child[support[real]], parents[real]), point[support[real]])
            real = allowed & (instance.members[:, p] >= 0)
            possible[instance.child[real], instance.members[real, p]] = True
        edges = np.triu(arcs + arcs.T)
        both = present | present.T
        first, second = np.nonzero((edges > SMALL) & (edges < 1.0 - SMALL) & ~present)
        kinds = [np.column_stack([np.full(len(first), hull.EDGE), first, second])]
        decided = both | ~possible.T
        first, second = np.nonzero((arcs > SMALL) & (arcs < 1.0 - SMALL) & decided)
        kinds.append(np.column_stack([np.full(len(first), hull.ARC), first, second]))
        chosen = support[(point[support] > SMALL) & (point[support] < LARGEST) & allowed[support]]
        kinds.append(
            np.column_stack([np.full(len(chosen), hull.CANDIDATE), instance.child[chosen], chosen])
        )
        return np.ascontiguousarray(np.concatenate(kinds), dtype=np.int64)

    def _try(
        self,
        relaxed: HullRelaxed,
        cutoff: float,
        best: float,
        allowed: BoolArray,
        present: BoolArray,
        objects: IntArray,
        drops: FloatArray,
        score: FloatArray,
        order: Iterator[int],
    ) -> Choice:
        """The best of some objects; those that are little known are tried: both sides are bounded
        for a few iterations.
        """
        seen = self._gains.observations(objects)
        middle = relaxed.middle(cutoff)
        found: list[tuple[float, Choice]] = []
        n_tried = 0
        for a in order:
            split, units = _split_of(objects[a]), (drops[a, 0], drops[a, 1])
            if seen[a] >= BELIEVED or n_tried == TRIED:
                found.append((score[a], Choice(split, units)))
                if n_tried == TRIED or not (seen < BELIEVED).any():
                    break
                continue
            n_tried += 1
            gains, results = np.zeros(2), []
            for side, change in enumerate(sides(self._instance, split, allowed)):
                child, edges = change.apply(allowed, present)
                result = self._bound_side(relaxed, child, edges, best, cutoff)
                gains[side] = min(middle - result.middle(cutoff), middle - cutoff)
                self._gains.learn(split, side, units[side], gains[side])
                results.append(result)
            own = float(self._score(gains[None, :], middle - cutoff)[0])
            bounds, states = (
                (results[0].bound, results[1].bound),
                (results[0].warm, results[1].warm),
            )
            found.append((own, Choice(split, units, bounds, states)))
        return max(found, key=lambda item: item[0])[1]

    def _bound_side(
        self,
        relaxed: HullRelaxed,
        allowed: BoolArray,
        present: BoolArray,
        best: float,
        cutoff: float,
    ) -> HullRelaxed:
        instance, relaxation = self._instance, self._relaxation
        if not propagate(instance.offsets, instance.members, allowed, present):
            return HullRelaxed(relaxed.warm, -math.inf)
        return relaxation.solve(
            relaxed.warm,
            allowed,
            present,
            best,
            cutoff,
            ACCURACY_TOP,
            TRIAL_ITERATIONS,
            None,
        )


def _split_of(row: IntArray) -> Split:
    kind, first, second = (int(v) for v in row)
    return (
        Split("candidate", second, -1)
        if kind == hull.CANDIDATE
        else Split(KINDS[kind], first, second)
    )
