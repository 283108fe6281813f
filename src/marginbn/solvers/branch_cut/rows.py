"""Structural rows: inequalities over candidates that every structure of a node satisfies.

**A kind of cut** is a subclass of :class:`Cut`, one inequality is a value of it. The class says

* ``row(instance)``: the coefficients, ``coefficient . eta[index] >= rhs``;
* ``everywhere``: whether the inequality holds for all structures, or only at nodes that ask for it;
* ``certificate``: the kind of row that certificates and their checker know for it, with
  ``members`` as its variables; ``None`` if they know none.

Rows are made once, kept in a :class:`RowPool` and named by their number; nodes store numbers only.
``RowPool.number(cut)`` makes a row or finds it, ``RowPool.describe(number)`` names it as a
certificate does. Kinds that are looked for at fractional points have a :class:`Separator` in
:data:`SEPARATORS`; those without form in certificates are left out where a certificate is written.

The kinds so far:

* :class:`ClusterCut`, inequality (7) below;
* :class:`ClassCut` of feature j, for class-restricted candidates: a parent of the class has no
  parents, eta_{j,{}} >= sum of eta_{C,S} over S containing j. It is the cluster {C, j} in other
  terms and implies every cluster with the class in it;
* :class:`EdgeCut` {i, j}: the candidates of i with j and of j with i sum to at least 1 where the
  edge is decided to be present (the sum is 0 or 1 in every structure).

**Clusters.** In an acyclic graph every set K of variables has a member without a parent in K (the
first one of a topological order). Over candidates k = (child i, parents S):

    f(K) = sum over i in K, k of i with S and K disjoint  of  eta_k   >=  1             (7)

and, because the etas of one variable sum to one, equivalently

    sum over i in K, k of i with S meeting K  of  eta_k   <=  |K| - 1.

Whichever form has fewer entries becomes the matrix row. Separation looks for K with f(K) < 1 at a
given point. That is NP-hard for general candidates; ``kernels/separation.py`` does it by minimum
cuts and descent, here are

* :func:`violated_by_selection`, a cycle of an integral point, which always gives f(K) = 0;
* :func:`separate_exactly`, the small integer programme that maximises the violation.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from marginbn.exceptions import InputError
from marginbn.problem.candidates import CandidateSets
from marginbn.problem.structure import find_cycle
from marginbn.solvers.branch_cut.arrays import FloatArray, Instance, IntArray
from marginbn.solvers.branch_cut.kernels.separation import SupportArrays, separate
from marginbn.solvers.milp import load_highspy

Cluster = frozenset[int]

SUPPORT = 1e-7
"""Candidates of less mass are no part of a point; the simplex method leaves such dust."""

RANDOM_CUTS = 2
"""Times that minimum cuts give the mass of a candidate to a random parent instead of all."""

MOST_CLUSTERS = 256
"""Clusters that one separation lists at most; the most violated of them become rows."""


@dataclass(frozen=True)
class Row:
    """``coefficient . eta[index] >= rhs``, coefficients 1 or -1."""

    index: IntArray
    coefficient: FloatArray
    rhs: float

    def activity(self, point: FloatArray) -> float:
        """Left-hand side at a point (K,)."""
        return float(self.coefficient @ point[self.index])


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


def cluster_row(candidates: CandidateSets, members: Collection[int]) -> Row:
    """The inequality (7) of a cluster, in the form with fewer entries."""
    cluster = frozenset(members)
    inside: list[int] = []
    outside: list[int] = []
    for variable in sorted(cluster):
        for k in candidates.group(variable):
            meets = not cluster.isdisjoint(candidates.parents[k])
            (inside if meets else outside).append(k)
    if len(inside) < len(outside):
        signs, rhs = -np.ones(len(inside)), 1.0 - len(cluster)
        return Row(np.array(inside, dtype=np.int64), signs, rhs)
    return Row(np.array(outside, dtype=np.int64), np.ones(len(outside)), 1.0)


def free_mass(support: Support, members: Collection[int]) -> float:
    """f(K): mass of the members' candidates that have no parent in the cluster."""
    cluster = frozenset(members)
    return sum(
        mass
        for child, parents, mass in support.items()
        if child in cluster and cluster.isdisjoint(parents)
    )


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
    cycle = find_cycle(parents)
    return None if cycle is None else frozenset(cycle)


@dataclass(frozen=True)
class Cut(ABC):
    """One inequality of a kind, see the module's docstring; ``members`` are increasing."""

    members: tuple[int, ...]

    everywhere: ClassVar[bool] = True
    certificate: ClassVar[str | None] = None

    @abstractmethod
    def row(self, instance: Instance) -> Row:
        """The coefficients."""


class ClusterCut(Cut):
    """Inequality (7) of a cluster."""

    certificate = "cluster"

    def row(self, instance: Instance) -> Row:
        """The form with fewer entries."""
        return cluster_row(instance.candidates, self.members)


class ClassCut(Cut):
    """The class (0) and one of its possible parents."""

    certificate = "cluster"

    def row(self, instance: Instance) -> Row:
        """Over the class' candidates with the feature, and the feature's empty set."""
        feature = self.members[1]
        with_feature = instance.holding(0, feature)
        first = instance.group(feature).start
        is_empty = instance.members[first, 0] < 0  # smallest set first
        empty = np.array([first] if is_empty else [], dtype=np.int64)
        signs = np.concatenate([-np.ones(len(with_feature)), np.ones(len(empty))])
        return Row(np.concatenate([with_feature, empty]), signs, 0.0)


class EdgeCut(Cut):
    """Two variables of which one is a parent of the other."""

    everywhere = False
    certificate = "edge"

    def row(self, instance: Instance) -> Row:
        """All candidates that make the edge."""
        i, j = self.members
        index = np.concatenate([instance.holding(i, j), instance.holding(j, i)])
        index.sort()
        return Row(index, np.ones(len(index)), 1.0)


class Separator(Protocol):
    """Looks for violated cuts of one kind; one per worker, made as ``Separator(instance, seed)``.

    It may hold what it likes; cuts it returns must be violated by the point.
    """

    kind: ClassVar[type[Cut]]

    def __init__(self, instance: Instance, seed: int) -> None: ...

    def separate(self, point: FloatArray, room: int, violation: float) -> Sequence[Cut]:
        """At most ``room`` cuts that the point (K,) violates by more than ``violation``."""

    def search_exactly(self, point: FloatArray, most: int, seconds: float) -> Sequence[Cut]:
        """The last resort where nothing else was found; at most ``most`` times in a solve."""


class ClusterSeparator:
    """Clusters by minimum cuts and descent, or by an integer programme."""

    kind: ClassVar[type[Cut]] = ClusterCut

    def __init__(self, instance: Instance, seed: int) -> None:
        self._instance = instance
        self._random = np.array([2 * seed + 88_172_645_463_325_252], dtype=np.int64)
        self._usable = np.ones(instance.n_variables, dtype=bool)
        self._usable[0] = not instance.restricted  # class rows imply clusters with the class
        self._exact_calls = 0

    def separate(self, point: FloatArray, room: int, violation: float) -> list[ClusterCut]:
        """The most violated first; integral points give a cycle for certain."""
        instance, support = self._instance, np.flatnonzero(point > SUPPORT)
        arrays = SupportArrays(
            instance.child[support], instance.members[support], point[support], self._usable
        )
        found, values = separate(arrays, self._random, RANDOM_CUTS, violation, MOST_CLUSTERS)
        order = np.argsort(values, kind="stable")[:room]
        clusters = [frozenset(int(v) for v in np.flatnonzero(found[a])) for a in order]
        if not clusters and len(support) == instance.n_variables:
            cycle = violated_by_selection([instance.candidates.parents[k] for k in support])
            clusters = [] if cycle is None else [cycle]
        return [ClusterCut(tuple(sorted(cluster))) for cluster in clusters]

    def search_exactly(self, point: FloatArray, most: int, seconds: float) -> list[ClusterCut]:
        """The most violated cluster; integral points have none left."""
        large = np.where(point > SUPPORT, point, 0.0)
        is_integral = np.count_nonzero(large) == self._instance.n_variables
        if is_integral or self._exact_calls >= most:
            return []
        self._exact_calls += 1
        support = Support.of(self._instance.candidates, large)
        usable = [int(v) for v in np.flatnonzero(self._usable)]
        cluster = separate_exactly(support, usable, seconds=seconds)
        return [] if cluster is None else [ClusterCut(tuple(sorted(cluster)))]


SEPARATORS: tuple[type[Separator], ...] = (ClusterSeparator,)
"""The kinds of cuts that are looked for at fractional points."""


class RowPool:
    """All rows made so far; a number once given stays, so several workers may use one pool."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._lock = threading.RLock()
        self._rows: list[Row] = []
        self._cuts: list[Cut] = []
        self._numbers: dict[Cut, int] = {}
        none = np.zeros(0, dtype=np.int64)
        self._flat = (none, np.zeros(0), none, np.zeros(0))
        self.shared: list[int] = []
        """Numbers of the rows that hold at every node."""

    def __getitem__(self, number: int) -> Row:
        return self._rows[number]

    def __len__(self) -> int:
        return len(self._rows)

    def number(self, cut: Cut) -> int:
        """Number of the row of a cut, which is made on the first call."""
        with self._lock:
            if cut not in self._numbers:
                self._rows.append(cut.row(self._instance))
                self._cuts.append(cut)
                self._numbers[cut] = len(self._rows) - 1
                if cut.everywhere:
                    self.shared.append(len(self._rows) - 1)
            return self._numbers[cut]

    def cluster(self, members: Collection[int]) -> int:
        """Number of a cluster row."""
        return self.number(ClusterCut(tuple(sorted(members))))

    def edge(self, i: int, j: int) -> int:
        """Number of the row "edge {i, j} is present"."""
        return self.number(EdgeCut((min(i, j), max(i, j))))

    def class_rows(self) -> list[int]:
        """Numbers of the class rows; features that the class never has as a parent need none."""
        if not self._instance.restricted:
            return []
        features = range(1, self._instance.n_variables)
        parents = [j for j in features if len(self._instance.holding(0, j))]
        return [self.number(ClassCut((0, j))) for j in parents]

    def describe(self, number: int) -> tuple[str, tuple[int, ...]]:
        """A row as certificates name it: its kind and its variables."""
        cut = self._cuts[number]
        if cut.certificate is None:
            raise InputError(f"certificates have no row for a {type(cut).__name__}")
        return cut.certificate, cut.members

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
