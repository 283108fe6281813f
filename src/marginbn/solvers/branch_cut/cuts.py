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
* :class:`PackingCut` and :class:`FacetCut`;
* :class:`EdgeCut` {i, j}: the candidates of i with j and of j with i sum to at least 1 where the
  edge is decided to be present (the sum is 0 or 1 in every structure).

**Clusters.** In an acyclic graph every set K of variables has a member without a parent in K (the
first one of a topological order). Over candidates k = (child i, parents S):

    f(K) = sum over i in K, k of i with S and K disjoint  of  eta_k   >=  1             (7)

and, because the etas of one variable sum to one, equivalently

    sum over i in K, k of i with S meeting K  of  eta_k   <=  |K| - 1.

Whichever form has fewer entries becomes the matrix row. Separation looks for K with f(K) < 1 at a
point, see ``separators.py``.

**Facets.** What an acyclic graph says about four variables is the parents that each has among them:
one of 543 points in 28 coordinates, one for every variable and every non-empty set of the other
three. Their convex hull has facets of a few kinds (Cussens, Jaervisalo, Korhonen & Bartlett 2017):
coordinates are not negative, those of a variable sum to at most one, clusters, packings, and

    sum over the members i and sets J  of  weight(i, J) x(i, J)   <=   most.

In a larger graph x(i, J) is the sum of the candidates of i whose parents among the four are J.
Every kind is given by one representative in :data:`KINDS`: for each member the weights of {a}, {b},
{c}, {a, b}, {a, c}, {b, c}, {a, b, c}, with a < b < c the other members. Renaming the members gives
the others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, permutations
from typing import ClassVar

import numpy as np

from marginbn.exceptions import InputError
from marginbn.problem.array_types import BoolArray, FloatArray, IntArray
from marginbn.problem.structure import find_cycle
from marginbn.solvers.branch_cut.arrays import Instance
from marginbn.solvers.branch_cut.kernels.quadruples import FacetArrays
from marginbn.solvers.branch_cut.kernels.separation import FlatRows, activities, combine
from marginbn.solvers.orders.parent_lists import to_words

Cluster = frozenset[int]

FIRST_ROOM = 256
"""Rows that a pool has room for at first."""


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


def inner_sets(member: int) -> list[tuple[int, ...]]:
    """The non-empty sets of other members, in the order of weights."""
    others = [place for place in range(4) if place != member]
    return [chosen for size in (1, 2, 3) for chosen in combinations(others, size)]


SLOTS = tuple((member, inner) for member in range(4) for inner in inner_sets(member))
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

    def activity(self, point: FloatArray) -> float:
        """Left-hand side at a point (K,)."""
        return float(self.coefficient @ point[self.index])

    def restricted_to(self, alive: BoolArray) -> Row:
        """Without the candidates that are not alive."""
        kept = alive[self.index]
        return self if kept.all() else Row(self.index[kept], self.coefficient[kept], self.rhs)


def _split_cluster(instance: Instance, members: Collection[int]) -> tuple[IntArray, IntArray]:
    """The members' candidates with and without parents in the cluster."""
    inside = np.zeros(instance.n_variables, dtype=bool)
    inside[list(members)] = True
    index = np.flatnonzero(inside[instance.child])
    masks, meets = instance.candidates.masks, np.zeros(len(index), dtype=bool)
    for place, word in enumerate(to_words(members, masks.shape[1])):
        if word:
            meets |= (masks[index, place] & word) != 0
    return index[meets], index[~meets]


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
        inside, outside = _split_cluster(instance, self.members)
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
            others = to_words((u for u in self.members if u != v), masks.shape[1])
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
        self.instance = self._instance = instance
        self._rows: list[Row] = []
        self._cuts: list[Cut] = []
        self._numbers: dict[Cut, int] = {}
        self._alive: BoolArray | None = None
        self._flat = FlatRows(
            np.zeros(FIRST_ROOM, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)
        )
        self._rhs = np.zeros(FIRST_ROOM)
        self._sizes = np.zeros(FIRST_ROOM)
        self._everywhere = np.zeros(FIRST_ROOM, dtype=bool)

    def __getitem__(self, number: int) -> Row:
        return self._rows[number]

    def __len__(self) -> int:
        return len(self._rows)

    def number(self, cut: Cut) -> int:
        """Number of the row of a cut, which is made on the first call."""
        if cut not in self._numbers:
            row = cut.row(self._instance)
            self._append(row if self._alive is None else row.restricted_to(self._alive))
            self._everywhere[len(self._rows) - 1] = cut.everywhere
            self._cuts.append(cut)
            self._numbers[cut] = len(self._rows) - 1
        return self._numbers[cut]

    def cluster(self, members: Collection[int]) -> int:
        """Number of a cluster row."""
        return self.number(ClusterCut(tuple(sorted(members))))

    def edge(self, i: int, j: int) -> int:
        """Number of the row "edge {i, j} is present"."""
        return self.number(EdgeCut((min(i, j), max(i, j))))

    def class_rows(self) -> list[int]:
        """Numbers of the class rows; features that the class never has as a parent need none."""
        if not self._instance.candidates.is_class_restricted:
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

    def restrict(self, alive: BoolArray) -> None:
        """Leave candidates out of all rows that no node will ever allow again."""
        self._alive = alive.copy()
        rows, self._rows = self._rows, []
        self._flat = self._flat._replace(starts=np.zeros_like(self._flat.starts))
        for row in rows:
            self._append(row.restricted_to(alive))

    def _append(self, row: Row) -> None:
        """Store a row behind the others, making room where necessary."""
        starts, index, coefficient = self._flat
        place, begin = len(self._rows), int(self._flat.starts[len(self._rows)])
        end = begin + len(row.index)
        if place + 1 >= len(starts):
            starts = np.concatenate([starts, np.zeros_like(starts)])
            self._rhs = np.concatenate([self._rhs, np.zeros_like(self._rhs)])
            self._sizes = np.concatenate([self._sizes, np.zeros_like(self._sizes)])
            more = np.zeros_like(self._everywhere)
            self._everywhere = np.concatenate([self._everywhere, more])
        if end > len(index):
            more_entries = max(end, 2 * len(index)) - len(index)
            index = np.concatenate([index, np.zeros(more_entries, dtype=np.int64)])
            coefficient = np.concatenate([coefficient, np.zeros(more_entries)])
        index[begin:end], coefficient[begin:end] = row.index, row.coefficient
        starts[place + 1] = end
        self._rhs[place] = row.rhs
        self._sizes[place] = np.abs(row.coefficient).max(initial=1.0)
        self._flat = FlatRows(starts, index, coefficient)
        self._rows.append(row)

    def violations(self, point: FloatArray) -> FloatArray:
        """rhs - left-hand side of every row so far, -inf for those that hold at some nodes only."""
        count, flat = len(self._rows), self._flat
        rhs, everywhere = self._rhs[:count], self._everywhere[:count]
        found = np.zeros(count)
        activities(flat, point, found)
        return np.where(everywhere, rhs - found, -np.inf)

    def combine(self, numbers: Sequence[int], multipliers: FloatArray) -> FloatArray:
        """rows^T y, (K,)."""
        total = np.zeros(self._instance.n_candidates)
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
        return self._rhs[np.array(numbers, dtype=np.int64)]

    def sizes(self, numbers: Sequence[int]) -> FloatArray:
        """Largest coefficients, 1 at the least."""
        return self._sizes[np.array(numbers, dtype=np.int64)]
