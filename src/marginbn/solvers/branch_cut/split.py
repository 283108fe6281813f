"""Splitting a node in two: objects, their children and scores that learn.

* edge {i, j}: absent (no candidate of one contains the other) or present (a row, see
  ``rows.py``). It is 0 or 1 in every structure and what reversing an arc cannot undo; with
  class-restricted candidates {0, j} says whether feature j matters at all.
* arc j -> i: no candidate of i with j, or only such.
* candidate k: forbidden, or the only one of its variable.

Scores are products of the expected losses of bound of the two children. Expected losses come from
pseudo-costs, loss per unit of fractionality as observed for the object, for its kind before that.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from marginbn.solvers.branch_cut.arrays import BoolArray, FloatArray, Instance, IntArray

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
