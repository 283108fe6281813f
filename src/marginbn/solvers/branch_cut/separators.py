"""Separation: cuts of each kind that a fractional point violates.

A kind that is looked for has a :class:`Separator` in :data:`SEPARATORS`; kinds without a form in
certificates are left out where a certificate is written.

``docs/theory/linear_programs.rst`` describes how each kind is looked for. Integral points always
give a cycle.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import combinations
from typing import ClassVar

import numpy as np

from marginbn.problem.array_types import FloatArray, IntArray
from marginbn.problem.structure import find_cycle
from marginbn.solvers.branch_cut.arrays import Instance, arc_mass
from marginbn.solvers.branch_cut.cuts import (
    ClusterCut,
    Cut,
    FacetCut,
    PackingCut,
    RowPool,
    all_facets,
    facet_arrays,
)
from marginbn.solvers.branch_cut.kernels.quadruples import search_quadruples
from marginbn.solvers.branch_cut.kernels.separation import SupportArrays, search_clusters, separate

SUPPORT = 1e-7
"""Candidates of less mass are no part of a point; the simplex method leaves such dust."""

RANDOM_CUTS = 2
"""Times that minimum cuts give the mass of a candidate to a random parent instead of all."""

MOST_CLUSTERS = 256
"""Clusters that one separation lists at most; the most violated of them become rows."""

STATES = 20_000
"""States of one exhaustive search, some ten milliseconds."""

LEAST_FACET, MOST_SETS = 0.005, 20_000
"""Facets violated by less are left alone; sets of four variables that one search looks at."""

PACKED = (3, 4)
"""Sizes of packings."""


class Separator(ABC):
    """Looks for violated cuts of one kind; one per search, made as ``Separator(pool, seed)``.

    It may hold what it likes; cuts it returns must be violated by the point.
    """

    kind: ClassVar[type[Cut]]

    def __init__(self, pool: RowPool, seed: int) -> None:
        self._instance = pool.instance

    @abstractmethod
    def separate(self, point: FloatArray, room: int, violation: float) -> Sequence[Cut]:
        """At most ``room`` cuts that the point (K,) violates by more than ``violation``."""


def support_of(instance: Instance, point: FloatArray) -> SupportArrays:
    """The candidates that a point uses; class rows say all there is about the class."""
    support = np.flatnonzero(point > SUPPORT)
    usable = np.ones(instance.n_variables, dtype=bool)
    usable[0] = not instance.candidates.is_class_restricted
    return SupportArrays(instance.child[support], instance.members[support], point[support], usable)


class ClusterSeparator(Separator):
    """Clusters by minimum cuts and descent; cycles of integral points."""

    kind: ClassVar[type[Cut]] = ClusterCut

    def __init__(self, pool: RowPool, seed: int) -> None:
        super().__init__(pool, seed)
        self._random = np.array([2 * seed + 88_172_645_463_325_252], dtype=np.int64)

    def separate(self, point: FloatArray, room: int, violation: float) -> list[ClusterCut]:
        """The most violated first; integral points give a cycle for certain."""
        instance, arrays = self._instance, support_of(self._instance, point)
        found, values = separate(arrays, self._random, RANDOM_CUTS, violation, MOST_CLUSTERS)
        order = np.argsort(values, kind="stable")[:room]
        clusters = [ClusterCut(tuple(np.flatnonzero(found[a]).tolist())) for a in order]
        if not clusters and len(arrays.child) == instance.n_variables:
            cycle = find_cycle([row[row >= 0].tolist() for row in arrays.members])
            clusters = [] if cycle is None else [ClusterCut(tuple(sorted(cycle)))]
        return clusters

    def search_exactly(self, point: FloatArray, room: int, violation: float) -> list[ClusterCut]:
        """Exhaustive search: 1.3 times faster (alarm, hailfinder; ``benchmarks run levers``)."""
        arrays = support_of(self._instance, point)
        if len(arrays.child) == self._instance.n_variables:
            return []
        found, _, _ = search_clusters(arrays, violation, STATES, room)
        return [ClusterCut(tuple(np.flatnonzero(one).tolist())) for one in found]


class PackingSeparator(Separator):
    """Sets of 3 or 4: 1.4 times faster (alarm, hailfinder; ``benchmarks run levers``)."""

    kind: ClassVar[type[Cut]] = PackingCut

    def separate(self, point: FloatArray, room: int, violation: float) -> list[PackingCut]:
        """The most violated first."""
        instance, support = self._instance, np.flatnonzero(point > SUPPORT)
        sets, mass = packed_sets(instance.child[support], instance.members[support], point[support])
        violated = np.flatnonzero(mass > 1.0 + violation)
        order = violated[np.argsort(-mass[violated], kind="stable")][:room]
        return [PackingCut(tuple(int(v) for v in sets[a] if v >= 0)) for a in order]


class FacetSeparator(Separator):
    """Facets of four variables: 2.1 times faster (alarm, hailfinder; ``benchmarks run levers``)."""

    kind: ClassVar[type[Cut]] = FacetCut

    def separate(self, point: FloatArray, room: int, violation: float) -> list[FacetCut]:
        """The most violated first."""
        arrays = support_of(self._instance, point)
        least, weights = max(violation, LEAST_FACET), list(all_facets())
        n = self._instance.n_variables
        starts = np.searchsorted(arrays.child, np.arange(n + 1))
        arcs = arc_mass(n, arrays.child, arrays.members, arrays.mass)
        sets, facets, excess = search_quadruples(
            arrays, starts, arcs, facet_arrays(), least, MOST_SETS, room
        )
        order = np.argsort(-excess, kind="stable")
        return [FacetCut((*(int(v) for v in sets[a]), *weights[facets[a]])) for a in order]


def packed_sets(
    child: IntArray, members: IntArray, mass: FloatArray
) -> tuple[IntArray, FloatArray]:
    """Sets {child} + two or three of a candidate's parents, increasing and with -1 in front where
    there are three, and the mass of all candidates that give the same set.
    """
    sets, masses = [np.zeros((0, max(PACKED)), dtype=np.int64)], [np.zeros(0)]
    for size in PACKED:
        for places in combinations(range(members.shape[1]), size - 1):
            real = members[:, places[-1]] >= 0  # padding comes last
            both = np.column_stack([child[real], members[real][:, places]])
            padded = np.full((len(both), max(PACKED)), -1, dtype=np.int64)
            padded[:, max(PACKED) - size :] = np.sort(both, axis=1)
            sets.append(padded)
            masses.append(mass[real])
    found, place = np.unique(np.concatenate(sets), axis=0, return_inverse=True)
    return found, np.asarray(
        np.bincount(place.ravel(), np.concatenate(masses), len(found)), dtype=np.float64
    )


Kinds = tuple[type[Separator], ...]

SEPARATORS: Kinds = (ClusterSeparator, PackingSeparator, FacetSeparator)
"""The kinds of cuts that are looked for at fractional points."""
