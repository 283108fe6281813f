"""Cluster inequalities (7): no set of variables may hang on itself alone.

In an acyclic graph every set K of variables has a member without a parent in K (the first one of
a topological order). Over candidates k = (child i, parents S):

    f(K) = sum over i in K, k of i with S and K disjoint  of  eta_k   >=  1             (7)

and, because the etas of one variable sum to one, equivalently

    sum over i in K, k of i with S meeting K  of  eta_k   <=  |K| - 1.

Whichever form has fewer entries becomes the matrix row. Separation looks for K with f(K) < 1 at a
given point. That is NP-hard for general candidates; here are the readable ways to do it:

* :func:`descend` walks to a local minimum of f by adding and removing single members;
* :func:`violated_by_selection` finds a cycle of an integral point, which always gives f(K) = 0;
* :func:`separate_exactly` solves the small integer programme that maximises the violation;
* :func:`separate_by_enumeration` looks at every K, the oracle for tests.

Everything takes a :class:`Support`, the candidates of positive mass. Compiled twins for the tree
search live in ``solvers/branch_cut/kernels/separation.py``.

Structural rows ``coefficient . eta[index] >= rhs``: cluster rows, class rows, present edges.

Rows are made once, kept in a pool and named by their number; nodes store numbers only.

* cluster K: inequality (7), see :mod:`marginbn.solvers.branch_cut.rows`;
* class row of feature j, for class-restricted candidates: a parent of the class has no parents,
  eta_{j,{}} >= sum of eta_{C,S} over S containing j. It implies every cluster with the class in it;
* edge {i, j}: sum of the candidates of i with j and of j with i, at least 1 where the edge is
  decided to be present (it is 0 or 1 in every structure).
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from marginbn.problem.candidates import CandidateSets
from marginbn.solvers.branch_cut.arrays import FloatArray, Instance, IntArray
from marginbn.solvers.milp import load_highspy

Cluster = frozenset[int]


@dataclass(frozen=True)
class Support:
    """The candidates that a point uses: children, parent sets and masses, in the same order."""

    n_variables: int
    child: tuple[int, ...]
    parents: tuple[tuple[int, ...], ...]
    mass: tuple[float, ...]

    @classmethod
    def of(cls, candidates: CandidateSets, point: NDArray[np.float64]) -> Support:
        """Candidates of positive mass at ``point``, float64 (K,)."""
        used = [int(k) for k in np.flatnonzero(point > 0)]
        return cls(
            candidates.n_variables,
            tuple(int(candidates.child[k]) for k in used),
            tuple(candidates.parents[k] for k in used),
            tuple(float(point[k]) for k in used),
        )

    def items(self) -> Iterator[tuple[int, tuple[int, ...], float]]:
        """(child, parents, mass) of every candidate."""
        return zip(self.child, self.parents, self.mass, strict=True)


@dataclass(frozen=True)
class ClusterRow:
    """The inequality of one cluster: ``coefficient * sum(eta[index]) >= bound``.

    Parameters
    ----------
    members
        The cluster K.
    index
        int64, flat candidate indices, increasing.
    coefficient, bound
        1 and 1 for the first form of (7), -1 and ``1 - |K|`` for the second.
    """

    members: Cluster
    index: NDArray[np.int64]
    coefficient: float
    bound: float


def cluster_row(candidates: CandidateSets, members: Collection[int]) -> ClusterRow:
    """The inequality (7) of a cluster, in the form with fewer entries."""
    cluster = frozenset(members)
    inside: list[int] = []
    outside: list[int] = []
    for variable in sorted(cluster):
        for k in candidates.group(variable):
            meets = not cluster.isdisjoint(candidates.parents[k])
            (inside if meets else outside).append(k)
    if len(inside) < len(outside):
        return ClusterRow(cluster, np.array(inside, dtype=np.int64), -1.0, 1.0 - len(cluster))
    return ClusterRow(cluster, np.array(outside, dtype=np.int64), 1.0, 1.0)


def free_mass(support: Support, members: Collection[int]) -> float:
    """f(K): mass of the members' candidates that have no parent in the cluster."""
    cluster = frozenset(members)
    return sum(
        mass
        for child, parents, mass in support.items()
        if child in cluster and cluster.isdisjoint(parents)
    )


def descend(
    support: Support, members: Collection[int], usable: Collection[int] | None = None
) -> tuple[Cluster, float]:
    """Local minimum of f over clusters of two or more ``usable`` members, by single steps.

    The largest decrease is taken first, ties by the smaller variable.
    """
    pool = sorted(range(support.n_variables) if usable is None else usable)
    cluster = frozenset(members)
    value = free_mass(support, cluster)
    while True:
        steps = [cluster ^ {v} for v in pool if v not in cluster or len(cluster) > 2]
        best = min(steps, key=lambda step: free_mass(support, step), default=cluster)
        reached = free_mass(support, best)
        if reached >= value - 1e-12:
            return cluster, value
        cluster, value = best, reached


def separate_by_enumeration(support: Support, violation: float = 1e-6) -> list[Cluster]:
    """Every violated cluster, the most violated first; for a handful of variables only."""
    variables = range(support.n_variables)
    clusters = [
        frozenset(members)
        for size in range(2, support.n_variables + 1)
        for members in combinations(variables, size)
    ]
    found = [(free_mass(support, cluster), cluster) for cluster in clusters]
    found = [pair for pair in found if pair[0] < 1.0 - violation]
    return [cluster for _, cluster in sorted(found, key=lambda pair: (pair[0], sorted(pair[1])))]


def separate_exactly(
    support: Support, usable: Collection[int] | None = None, *, seconds: float = 1.0
) -> Cluster | None:
    """The most violated cluster by an integer programme, or ``None``.

    With x_v = 1 for the members of K and z_s = 1 where candidate s of a member meets K,

        maximise   sum_s mass_s z_s - sum_v x_v     z_s <= x_child(s),  z_s <= sum over S_s of x_j,
                                                    sum_v x_v >= 2

    is the largest -f(K), masses of a variable summing to one; K is violated if it exceeds -1. A
    time limit may cut the search short, then ``None`` proves nothing.
    """
    highspy = load_highspy()
    members = sorted(range(support.n_variables) if usable is None else usable)
    if len(members) < 2:
        return None
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)
    highs.setOptionValue("time_limit", seconds)
    inside = {v: highs.addBinary(obj=1.0) for v in members}
    for child, parents, mass in support.items():
        meeting = [inside[j] for j in parents if j in inside]
        if child in inside and meeting:
            meets = highs.addVariable(lb=0.0, ub=1.0, obj=-mass)
            highs.addConstr(meets <= inside[child])
            highs.addConstr(meets <= sum(meeting))
    highs.addConstr(sum(inside.values()) >= 2)
    highs.run()
    values = highs.getSolution().col_value
    if len(values) == 0:
        return None
    found = frozenset(v for place, v in enumerate(members) if values[place] > 0.5)
    return found if len(found) >= 2 and free_mass(support, found) < 1.0 - 1e-6 else None


def violated_by_selection(parents: Sequence[Sequence[int]]) -> Cluster | None:
    """The variables of one directed cycle, or ``None`` if the graph has none.

    Every member has its predecessor on the cycle as a parent, so f of the cycle is zero.
    """
    alive = set(range(len(parents)))
    while True:
        free = {v for v in alive if alive.isdisjoint(parents[v])}
        if not free:
            break
        alive -= free
    if not alive:
        return None
    path = [min(alive)]
    while path[-1] not in path[:-1]:  # everybody left has a parent that is left
        path.append(min(alive.intersection(parents[path[-1]])))
    return frozenset(path[path.index(path[-1]) :])


@dataclass(frozen=True)
class Row:
    """``coefficient . eta[index] >= rhs``, coefficients 1 or -1."""

    index: IntArray
    coefficient: FloatArray
    rhs: float

    def activity(self, point: FloatArray) -> float:
        """Left-hand side at a point (K,)."""
        return float(self.coefficient @ point[self.index])


class RowPool:
    """All rows made so far; a number once given stays, so several workers may use one pool."""

    def __init__(self, instance: Instance, candidates: CandidateSets) -> None:
        self._instance = instance
        self._candidates = candidates
        self._lock = threading.RLock()
        self._rows: list[Row] = []
        self._clusters: dict[Cluster, int] = {}
        self._edges: dict[tuple[int, int], int] = {}
        none = np.zeros(0, dtype=np.int64)
        self._flat = (none, np.zeros(0), none, np.zeros(0))
        self.shared: list[int] = []
        """Numbers of the rows that hold at every node: clusters and class rows."""

    def __getitem__(self, number: int) -> Row:
        return self._rows[number]

    def __len__(self) -> int:
        return len(self._rows)

    def cluster(self, members: Cluster) -> int:
        """Number of a cluster row."""
        with self._lock:
            if members not in self._clusters:
                made = cluster_row(self._candidates, members)
                row = Row(made.index, np.full(len(made.index), made.coefficient), made.bound)
                self._clusters[members] = self._append(row, shared=True)
            return self._clusters[members]

    def edge(self, i: int, j: int) -> int:
        """Number of the row "edge {i, j} is present"."""
        key = (min(i, j), max(i, j))
        with self._lock:
            if key not in self._edges:
                index = np.concatenate([self._instance.holding(i, j), self._instance.holding(j, i)])
                index.sort()
                self._edges[key] = self._append(Row(index, np.ones(len(index)), 1.0), shared=False)
            return self._edges[key]

    def class_rows(self) -> list[int]:
        """Numbers of the class rows, made on the first call."""
        if not self._instance.restricted:
            return []
        return [
            self._append(row, shared=True)
            for j in range(1, self._instance.n_variables)
            if (row := self._class_row(j)) is not None
        ]

    def _class_row(self, feature: int) -> Row | None:
        """None where nothing would be forbidden."""
        with_feature = self._instance.holding(0, feature)
        if len(with_feature) == 0:
            return None
        first = self._instance.group(feature).start
        is_empty = self._instance.members[first, 0] < 0  # smallest set first
        empty = np.array([first] if is_empty else [], dtype=np.int64)
        index = np.concatenate([with_feature, empty])
        signs = np.concatenate([-np.ones(len(with_feature)), np.ones(len(empty))])
        return Row(index, signs, 0.0)

    def _append(self, row: Row, *, shared: bool) -> int:
        self._rows.append(row)
        if shared:
            self.shared.append(len(self._rows) - 1)
        return len(self._rows) - 1

    def violations(self, point: FloatArray) -> FloatArray:
        """rhs - left-hand side of every shared row so far, in the order of ``shared``."""
        with self._lock:
            index, coefficient, starts, rhs = self._flattened()
        if len(starts) == 0:
            return np.zeros(0)
        return np.asarray(rhs - np.add.reduceat(coefficient * point[index], starts))

    def _flattened(self) -> tuple[IntArray, FloatArray, IntArray, FloatArray]:
        """Shared rows one after the other: indices, coefficients, starts, right-hand sides.

        Each row ends in an extra entry of coefficient zero, so that none is empty.
        """
        index, coefficient, starts, rhs = self._flat
        new = [self._rows[number] for number in self.shared[len(starts) :]]
        if new:
            lengths = [len(row.index) + 1 for row in new]
            first = len(index) + np.cumsum([0, *lengths[:-1]])
            nothing = np.zeros(1, dtype=np.int64)
            parts = [part for row in new for part in (row.index, nothing)]
            signs = [part for row in new for part in (row.coefficient, np.zeros(1))]
            self._flat = (
                np.concatenate([index, *parts]),
                np.concatenate([coefficient, *signs]),
                np.concatenate([starts, first]),
                np.concatenate([rhs, [row.rhs for row in new]]),
            )
        return self._flat

    def combine(self, numbers: tuple[int, ...], multipliers: FloatArray) -> FloatArray:
        """rows^T y, (K,)."""
        total = np.zeros(self._instance.n_candidates)
        for number, multiplier in zip(numbers, multipliers, strict=True):
            if multiplier > 0:
                row = self._rows[number]
                total[row.index] += multiplier * row.coefficient
        return total

    def rhs(self, numbers: tuple[int, ...]) -> FloatArray:
        """Right-hand sides."""
        return np.array([self._rows[number].rhs for number in numbers])
