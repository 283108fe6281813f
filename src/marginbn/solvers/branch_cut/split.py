"""Splitting a node in two: objects, their children and scores that learn.

* edge {i, j}: absent (no candidate of one contains the other) or present (a row, see
  ``rows.py``). It is 0 or 1 in every structure and what reversing an arc cannot undo; with
  class-restricted candidates {0, j} says whether feature j matters at all.
* arc j -> i: no candidate of i with j, or only such.
* candidate k: forbidden, or the only one of its variable.

Scores are products of the expected losses of bound of the two children. Expected losses come from
pseudo-costs, loss per unit of fractionality as observed for the object, for its kind before that.

Choosing the object to split on: pseudo-costs, checked by a few strong-branching programmes.
"""

from __future__ import annotations

import math
import threading
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal, NamedTuple

import numpy as np

from marginbn.solvers.branch_cut.arrays import BoolArray, FloatArray, Instance, IntArray
from marginbn.solvers.branch_cut.bounds import Prices
from marginbn.solvers.branch_cut.relaxation import HybridRelaxation, Relaxed

Kind = Literal["edge", "arc", "candidate"]

INTEGRAL = 1e-5
"""Closer to 0 or 1 than this counts as decided."""


class Split(NamedTuple):
    """An object: ``first``, ``second`` are (i, j) with i < j, (child, parent) or (k, -1)."""

    kind: Kind
    first: int
    second: int


class Side(NamedTuple):
    """What one child changes: candidates that go, and an edge that becomes present."""

    removed: IntArray
    edge: tuple[int, int] | None


def sides(instance: Instance, split: Split, allowed: BoolArray) -> tuple[Side, Side]:
    """The child where the object is 0 and the one where it is 1."""
    if split.kind == "edge":
        i, j = split.first, split.second
        both = np.concatenate([instance.holding(i, j), instance.holding(j, i)])
        return Side(both[allowed[both]], None), Side(np.zeros(0, dtype=np.int64), (i, j))
    if split.kind == "arc":
        variable = split.first
        chosen = instance.holding(variable, split.second)
    else:
        variable = int(instance.child[split.first])
        chosen = np.array([split.first], dtype=np.int64)
    group = instance.group(variable)
    others = allowed[group].copy()
    others[chosen - group.start] = False
    rest = np.flatnonzero(others) + group.start
    return Side(chosen[allowed[chosen]], None), Side(rest, None)


def fractional_splits(
    instance: Instance, point: FloatArray, allowed: BoolArray, present: BoolArray
) -> list[tuple[Split, float]]:
    """Undecided objects with their value at the point; edges, then arcs, then candidates."""
    n = instance.n_variables
    arcs = np.zeros((n, n))  # [child, parent]
    support = np.flatnonzero(point > 0)
    for p in range(instance.members.shape[1]):
        parents = instance.members[support, p]
        real = parents >= 0
        np.add.at(arcs, (instance.child[support[real]], parents[real]), point[support[real]])
    edges = np.triu(arcs + arcs.T)
    found: list[tuple[Split, float]] = []
    for i, j in zip(*np.nonzero(_is_fractional(edges) & ~present), strict=True):
        found.append((Split("edge", int(i), int(j)), float(edges[i, j])))
    for i, j in zip(*np.nonzero(_is_fractional(arcs)), strict=True):
        found.append((Split("arc", int(i), int(j)), float(arcs[i, j])))
    for k in support[_is_fractional(point[support])]:
        if allowed[k]:
            found.append((Split("candidate", int(k), -1), float(point[k])))
    return found


def _is_fractional(values: FloatArray) -> BoolArray:
    return np.asarray((values > INTEGRAL) & (values < 1.0 - INTEGRAL))


def any_split(
    instance: Instance, point: FloatArray | None, allowed: BoolArray
) -> tuple[Split, float]:
    """For points without fractional object: the point's candidate of the largest open variable."""
    sizes = np.add.reduceat(allowed.astype(np.int64), instance.offsets[:-1])
    group = instance.group(int(np.argmax(sizes)))
    worth = np.where(allowed[group], 1.0 if point is None else 1.0 + point[group], 0.0)
    return Split("candidate", group.start + int(np.argmax(worth)), -1), 0.5


def every_split(instance: Instance, allowed: BoolArray, present: BoolArray) -> list[Split]:
    """All objects that really split the allowed candidates; for random splits."""
    n = instance.n_variables
    sizes = np.add.reduceat(allowed.astype(np.int64), instance.offsets[:-1])
    found: list[Split] = []
    for i in range(n):
        for j in range(n):
            count = int(allowed[instance.holding(i, j)].sum())
            if 0 < count < sizes[i]:
                found.append(Split("arc", i, j))
                back = int(allowed[instance.holding(j, i)].sum())
                if back < sizes[j] and not present[min(i, j), max(i, j)]:
                    found.append(Split("edge", min(i, j), max(i, j)))
    open_ = allowed & (sizes[instance.child] > 1)
    return found + [Split("candidate", int(k), -1) for k in np.flatnonzero(open_)]


@dataclass
class _Average:
    total: float = 0.0
    count: int = 0

    def add(self, value: float) -> None:
        self.total += value
        self.count += 1

    @property
    def mean(self) -> float:
        return self.total / self.count


@dataclass
class PseudoCosts:
    """Observed losses per unit, by object and side, with averages by kind; for all workers."""

    of_split: dict[tuple[Split, int], _Average] = field(
        default_factory=lambda: defaultdict(_Average)
    )
    of_kind: dict[tuple[Kind, int], _Average] = field(default_factory=lambda: defaultdict(_Average))
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def learn(self, split: Split, side: int, value: float, loss: float) -> None:
        """A child (side 0 or 1) lost ``loss`` of bound where the object had ``value``."""
        unit = max(value if side == 0 else 1.0 - value, 1e-3)
        with self._lock:
            self.of_split[split, side].add(max(loss, 0.0) / unit)
            self.of_kind[split.kind, side].add(max(loss, 0.0) / unit)

    def observations(self, split: Split) -> int:
        """How often the less known side was seen."""
        with self._lock:
            return min(self.of_split[split, side].count for side in (0, 1))

    def expected(self, split: Split, value: float) -> tuple[float, float]:
        """Expected losses of the two children."""
        with self._lock:
            return self._rate(split, 0) * value, self._rate(split, 1) * (1.0 - value)

    def _rate(self, split: Split, side: int) -> float:
        own = self.of_split[split, side]
        if own.count:
            return own.mean
        kind = self.of_kind[split.kind, side]
        return kind.mean if kind.count else 1.0


def score(losses: tuple[float, float], scale: float) -> float:
    """Product score; ``scale`` is a loss that counts as nothing."""
    floor = 1e-4 * scale + 1e-12
    return max(losses[0], floor) * max(losses[1], floor)


RELIABLE = 1
"""Observations of both sides after which pseudo-costs are believed."""

PROBED, PROBED_AT_ROOT = 3, 16
"""Objects probed per node at most."""

CONSIDERED = 8
"""Objects with the best expected score that may be probed."""

ITERATIONS = 150
"""Simplex iterations of one probe; its bound is safe whenever it stops."""


@dataclass(frozen=True)
class Choice:
    """The object, its value at the point and safe bounds of the children (inf where unknown)."""

    split: Split
    value: float
    bounds: tuple[float, float] = (math.inf, math.inf)


class Chooser:
    """Learns from node to node, with all workers; one per worker."""

    def __init__(
        self, relaxation: HybridRelaxation, costs: PseudoCosts, seed: int, random_splits: bool
    ) -> None:
        self._relaxation = relaxation
        self._instance = relaxation.instance
        self._random = np.random.default_rng(seed) if random_splits else None
        self.costs = costs

    def choose(
        self,
        relaxed: Relaxed,
        bound: float,
        cutoff: float,
        allowed: BoolArray,
        present: BoolArray,
        depth: int,
    ) -> Choice:
        """The object with the best product of losses."""
        if self._random is not None:
            splits = every_split(self._instance, allowed, present)
            return Choice(splits[int(self._random.integers(len(splits)))], 0.5)
        if relaxed.point is None:
            return Choice(*any_split(self._instance, None, allowed))
        scale = bound - cutoff if math.isfinite(cutoff) else abs(bound)
        found = fractional_splits(self._instance, relaxed.point, allowed, present)
        ranked = sorted(found, key=lambda item: -score(self.costs.expected(*item), scale))
        wanted = CONSIDERED if depth else 2 * PROBED_AT_ROOT
        considered = list(islice((s for s in ranked if self._splits(s[0], allowed)), wanted))
        if not considered:
            return Choice(*any_split(self._instance, relaxed.point, allowed))
        return self._probe_best(considered, relaxed, bound, cutoff, scale, allowed, depth)

    def _splits(self, split: Split, allowed: BoolArray) -> bool:
        """Whether the object is undecided among the allowed candidates, after fixing."""
        zero, one = sides(self._instance, split, allowed)
        return len(zero.removed) > 0 and (one.edge is not None or len(one.removed) > 0)

    def _probe_best(
        self,
        considered: list[tuple[Split, float]],
        relaxed: Relaxed,
        bound: float,
        cutoff: float,
        scale: float,
        allowed: BoolArray,
        depth: int,
    ) -> Choice:
        """Probe the unreliable ones among the best, then take the best score."""
        room = PROBED_AT_ROOT if depth == 0 else PROBED
        unreliable = [s for s in considered if self.costs.observations(s[0]) < RELIABLE][:room]
        choices: list[tuple[float, Choice]] = []
        probed = self._probe(unreliable, relaxed, bound, cutoff, allowed)
        for split, value in considered:
            if split in probed:
                losses, bounds = probed[split]
                choices.append((score(losses, scale), Choice(split, value, bounds)))
            else:
                expected = self.costs.expected(split, value)
                choices.append((score(expected, scale), Choice(split, value)))
        return max(choices, key=lambda item: item[0])[1]

    def _probe(
        self,
        splits: list[tuple[Split, float]],
        relaxed: Relaxed,
        bound: float,
        cutoff: float,
        allowed: BoolArray,
    ) -> dict[Split, tuple[tuple[float, float], tuple[float, float]]]:
        """Estimated losses and safe bounds of both children of each object."""
        if not splits:
            return {}
        program, pool = self._relaxation.program, self._relaxation.pool
        edges = [split for split, _ in splits if split.kind == "edge"]
        numbers = {split: pool.edge(split.first, split.second) for split in edges}
        first = 0
        if edges:
            first = program.add_probe_rows([pool[numbers[split]] for split in edges])
        basis = program.remember_basis()
        results: dict[Split, tuple[tuple[float, float], tuple[float, float]]] = {}
        for split, value in splits:
            row = first + edges.index(split) if split.kind == "edge" else None
            losses, both = [], []
            for side, change in enumerate(sides(self._instance, split, allowed)):
                on = row if change.edge is not None else None
                number = numbers.get(split) if change.edge is not None else None
                estimate, reached = self._probe_side(relaxed, basis, change, on, number, allowed)
                loss = min(max(bound - estimate, 0.0), max(bound - cutoff, 0.0))
                self.costs.learn(split, side, value, loss)
                losses.append(loss)
                both.append(min(bound, reached))
            results[split] = ((losses[0], losses[1]), (both[0], both[1]))
            if min(both) <= cutoff:  # one child is settled: nothing beats that
                break
        return results

    def _probe_side(
        self,
        relaxed: Relaxed,
        basis: object,
        change: Side,
        row: int | None,
        number: int | None,
        allowed: BoolArray,
    ) -> tuple[float, float]:
        """Value of one child's programme without further rounds, and its safe bound.

        Where columns are missing the value is too low and the safe bound too weak; the value is the
        better guide, and only a guide.
        """
        relaxation = self._relaxation
        relaxation.watch.poll()
        seconds = relaxation.watch.remaining()
        solution, multiplier = relaxation.program.probe(
            basis, change.removed, row, seconds, ITERATIONS
        )
        if solution.outcome == "infeasible":
            return -math.inf, math.inf
        if len(solution.eta) == 0:
            return math.inf, math.inf
        child = allowed.copy()
        child[change.removed] = False
        extra = [] if number is None else [(number, multiplier)]
        prices: Prices = relaxation.prices(relaxed.loaded, solution, extra)
        saturated = relaxed.loaded.saturated_weight(self._instance)
        estimate = solution.objective + self._instance.gamma * saturated + self._instance.constant
        return estimate, prices.bound(self._instance, child)
