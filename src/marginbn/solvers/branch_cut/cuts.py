"""Structural rows: inequalities over candidates that every structure of a node satisfies.

**A kind of cut** is a subclass of :class:`Cut`, one inequality is a value of it. The class says

* ``row(instance)``: the coefficients, ``coefficient . eta[index] >= rhs``;
* ``everywhere``: whether the inequality holds for all structures, or only at nodes that ask for it;
* ``certificate``: the kind of row that certificates and their checker know for it, with
  ``members`` as its variables; ``None`` if they know none.

Rows are made once, kept in a :class:`RowPool` and named by their number; nodes store numbers only.
Kinds that are looked for at fractional points have a :class:`Separator`, see ``separators.py``.

The kinds so far:

* :class:`ClusterCut`, inequality (7) below;
* :class:`ClassCut` of feature j, for class-restricted candidates: a parent of the class has no
  parents, eta_{j,{}} >= sum of eta_{C,S} over S containing j. It is the cluster {C, j} in other
  terms and implies every cluster with the class in it;
* :class:`PackingCut`, and :class:`FacetCut` below;
* :class:`EdgeCut` {i, j}: the candidates of i with j and of j with i sum to at least 1 where the
  edge is decided to be present (the sum is 0 or 1 in every structure).

**Clusters.** In an acyclic graph every set K of variables has a member without a parent in K (the
first one of a topological order). Over candidates k = (child i, parents S):

    f(K) = sum over i in K, k of i with S and K disjoint  of  eta_k   >=  1             (7)

and, because the etas of one variable sum to one, equivalently

    sum over i in K, k of i with S meeting K  of  eta_k   <=  |K| - 1.

Whichever form has fewer entries becomes the matrix row.

**Facets** of the acyclic graphs over four variables (``docs/theory/linear_programs.rst``):

    sum over the members i and sets J  of  weight(i, J) x(i, J)   <=   most,

x(i, J) being the sum of the candidates of i whose parents among the four are J. :data:`KINDS` has
one facet of each kind: for each member the weights of {a}, {b}, {c}, {a, b}, {a, c}, {b, c},
{a, b, c}, with a < b < c the other members. Renaming the members gives the others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations, permutations
from typing import ClassVar

import numpy as np

from marginbn.exceptions import InputError
from marginbn.problem.array_types import BoolArray, FloatArray, IntArray
from marginbn.problem.masks import masks_of
from marginbn.solvers.branch_cut.arrays import Instance
from marginbn.solvers.branch_cut.kernels.quadruples import FacetArrays
from marginbn.solvers.branch_cut.kernels.separation import FlatRows, activities, combine

Weights = tuple[int, ...]
"""Of the first member's seven sets, of the second's, and so on."""

KINDS = (
    ("0001111 0001111 0001111 0001111", 2),
    ("0000111 0000111 0000111 0001112", 2),
    ("0000111 0101111 0101111 0001101", 2),
    ("0000001 0000101 0000101 0111112", 2),
    ("0000011 0111111 0001101 0001101", 2),
    ("0011111 0011111 0011111 1112222", 3),
    ("0010111 0010111 1111111 1112112", 3),
    ("0000011 0010111 1111212 0111112", 3),
    ("0111112 0111112 1112112 1112112", 4),
)
"""Weights and ``most`` of one facet of each kind."""


SLOTS = tuple(
    (member, inner)
    for member in range(4)
    for size in (1, 2, 3)
    for inner in combinations([place for place in range(4) if place != member], size)
)
"""Member and set that each weight belongs to."""


@cache
def all_facets() -> dict[Weights, int]:
    """``most`` of every facet, by its weights."""
    place = {slot: number for number, slot in enumerate(SLOTS)}
    found: dict[Weights, int] = {}
    for text, most in KINDS:
        weights = [int(digit) for digit in text.replace(" ", "")]
        for names in permutations(range(4)):
            renamed = [0] * len(SLOTS)
            for weight, (member, inner) in zip(weights, SLOTS, strict=True):
                new = names[member], tuple(sorted(names[v] for v in inner))
                renamed[place[new]] = weight
            found[tuple(renamed)] = most
    return found


def weights_by_bits(weights: Weights) -> FloatArray:
    """(4, 16), by member and the bits of its parents among the four."""
    table = np.zeros((4, 16))
    for (member, inner), weight in zip(SLOTS, weights, strict=True):
        table[member, sum(1 << place for place in inner)] = weight
    return table


@cache
def facet_arrays() -> FacetArrays:
    """All facets for the compiled search, in the order of :func:`all_facets`."""
    facets = all_facets()
    weights = np.stack([weights_by_bits(one) for one in facets], axis=-1)
    most = np.array(list(facets.values()), dtype=np.float64)
    return FacetArrays(weights, most, float(most.min()))


@dataclass(frozen=True)
class Row:
    """``coefficient . eta[index] >= rhs``, whole numbers; ``index`` is increasing."""

    index: IntArray
    coefficient: FloatArray
    rhs: float

    @cached_property
    def size(self) -> float:
        """The largest coefficient, 1 at the least."""
        return float(np.abs(self.coefficient).max(initial=1.0))

    def activity(self, point: FloatArray) -> float:
        """Left-hand side at a point (K,)."""
        return float(self.coefficient @ point[self.index])

    def restricted_to(self, alive: BoolArray) -> Row:
        """Without the candidates that are not alive."""
        kept = alive[self.index]
        return self if kept.all() else Row(self.index[kept], self.coefficient[kept], self.rhs)


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
        index = np.flatnonzero(np.isin(instance.child, self.members))
        cluster = masks_of([self.members], instance.n_variables)
        meets = (instance.candidates.masks[index] & cluster).any(axis=1)
        inside, outside = index[meets], index[~meets]
        if len(inside) < len(outside):
            return Row(inside, -np.ones(len(inside)), 1.0 - len(self.members))
        return Row(outside, np.ones(len(outside)), 1.0)


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


class PackingCut(Cut):
    """Three or four variables of which at most one has all the others as parents."""

    certificate = "packing"

    def row(self, instance: Instance) -> Row:
        """Minus the candidates with all other members, at least -1."""
        found, masks = [], instance.candidates.masks
        for v in self.members:
            group = instance.group(v)
            others = masks_of([[u for u in self.members if u != v]], instance.n_variables)
            has_all = ((masks[group] & others) == others).all(axis=1)
            found.append(group.start + np.flatnonzero(has_all))
        index = np.sort(np.concatenate(found))
        return Row(index, -np.ones(len(index)), -1.0)


class FacetCut(Cut):
    """A facet of four variables (``cuts.py``): ``members`` are these, increasing, and weights."""

    def row(self, instance: Instance) -> Row:
        """Minus the weights of the members' candidates, by their parents among the four."""
        four, weights = self.members[:4], self.members[4:]
        by_bits = weights_by_bits(weights)
        total = np.zeros(instance.n_candidates)
        for member, variable in enumerate(four):
            bits = np.zeros(instance.n_candidates, dtype=np.int64)
            for place, other in enumerate(four):
                bits[instance.holding(variable, other)] |= 1 << place
            total += by_bits[member, bits]
        index = np.flatnonzero(total)
        return Row(index, -total[index], -float(all_facets()[weights]))


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


class RowPool:
    """All rows made so far; a number once given stays."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self._rows: list[Row] = []
        self._rhs: list[float] = []
        self._local: list[int] = []  # rows that hold at some nodes only
        self._cuts: list[Cut] = []
        self._numbers: dict[Cut, int] = {}
        self._alive: BoolArray | None = None
        self._flat = FlatRows(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), np.zeros(1))

    def __getitem__(self, number: int) -> Row:
        return self._rows[number]

    def __len__(self) -> int:
        return len(self._rows)

    def number(self, cut: Cut) -> int:
        """Number of the row of a cut, which is made on the first call."""
        if cut not in self._numbers:
            row = cut.row(self.instance)
            self._append(row if self._alive is None else row.restricted_to(self._alive))
            self._rhs.append(row.rhs)
            self._cuts.append(cut)
            self._numbers[cut] = len(self._rows) - 1
            if not cut.everywhere:
                self._local.append(self._numbers[cut])
        return self._numbers[cut]

    def cluster(self, members: Collection[int]) -> int:
        """Number of a cluster row."""
        return self.number(ClusterCut(tuple(sorted(members))))

    def edge(self, i: int, j: int) -> int:
        """Number of the row "edge {i, j} is present"."""
        return self.number(EdgeCut((min(i, j), max(i, j))))

    def class_rows(self) -> list[int]:
        """Numbers of the class rows; features that the class never has as a parent need none."""
        if not self.instance.candidates.is_class_restricted:
            return []
        features = range(1, self.instance.n_variables)
        parents = [j for j in features if len(self.instance.holding(0, j))]
        return [self.number(ClassCut((0, j))) for j in parents]

    def describe(self, number: int) -> tuple[str, tuple[int, ...]]:
        """A row as certificates name it: its kind and its variables."""
        cut = self._cuts[number]
        if cut.certificate is None:
            raise InputError(f"certificates have no row for a {type(cut).__name__}")
        return cut.certificate, cut.members

    def restrict(self, alive: BoolArray) -> None:
        """Leave candidates out of all rows that no node will ever allow again."""
        self._alive = alive.copy()
        rows, self._rows = self._rows, []
        self._flat.starts[0] = 0
        for row in rows:
            self._append(row.restricted_to(alive))

    def _append(self, row: Row) -> None:
        """Store a row behind the others, making room where necessary."""
        starts, index, coefficient = self._flat
        place = len(self._rows)
        begin, end = int(starts[place]), int(starts[place]) + len(row.index)
        if place + 1 == len(starts):
            starts = np.resize(starts, 2 * len(starts))
        if end > len(index):
            index, coefficient = np.resize(index, 2 * end), np.resize(coefficient, 2 * end)
        index[begin:end], coefficient[begin:end] = row.index, row.coefficient
        starts[place + 1] = end
        self._flat = FlatRows(starts, index, coefficient)
        self._rows.append(row)

    def violations(self, point: FloatArray) -> FloatArray:
        """rhs - left-hand side of every row so far, -inf for those that hold at some nodes only."""
        found = np.zeros(len(self._rows))
        activities(self._flat, point, found)
        violation = np.array(self._rhs) - found
        violation[self._local] = -np.inf
        return violation

    def combine(self, numbers: Sequence[int], multipliers: FloatArray) -> FloatArray:
        """rows^T y, (K,)."""
        total = np.zeros(self.instance.n_candidates)
        combine(self._flat, np.array(numbers, dtype=np.int64), multipliers, total)
        return total

    def entries(self, numbers: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """Entries of some rows: place of the row in the list, candidate and coefficient."""
        starts, columns, coefficient = self._flat
        lengths = starts[numbers + 1] - starts[numbers]
        owner = np.repeat(np.arange(len(numbers)), lengths)
        first = starts[numbers] - (np.cumsum(lengths) - lengths)
        taken = np.arange(len(owner)) + first[owner]
        return owner, columns[taken], coefficient[taken]

    def rhs(self, numbers: Sequence[int] | IntArray) -> FloatArray:
        """Right-hand sides."""
        return np.array([self._rhs[number] for number in numbers], dtype=np.float64)

    def sizes(self, numbers: Sequence[int]) -> FloatArray:
        """Largest coefficients, 1 at the least."""
        return np.array([self._rows[number].size for number in numbers], dtype=np.float64)
