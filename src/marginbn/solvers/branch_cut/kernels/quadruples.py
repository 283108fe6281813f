"""Compiled search for sets of four variables whose facets a point violates, see ``cuts.py``.

What a point says about four variables is the mass of every member's candidates by their parents in
the set. A facet that is neither a cluster nor a packing can be violated only where the arcs of the
support join the four to a strongly connected graph: otherwise the point is put together from its
parts on fewer variables, where clusters and packings are all there is. So the sets are listed that
are connected, by the usual enumeration (the smallest variable first, neighbours that no earlier
member had), and those in which every member has an arc in and an arc out are compared with all
facets. Effort is counted in sets.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from marginbn.problem.array_types import BoolArray, FloatArray, IntArray
from marginbn.solvers.branch_cut.kernels.separation import SupportArrays
from marginbn.solvers.compile import entry, kernel

LEAST_ARC = 0.02
"""Arcs of less mass join nothing: what they violate is little."""


class FacetArrays(NamedTuple):
    """``weights . mass <= most`` for every facet."""

    weights: FloatArray  # (4, 16, F), by member and the bits of its parents among the four
    most: FloatArray  # (F,)
    least: float  # the smallest of these


class _Sets(NamedTuple):
    """What a set is judged by, and the best facets so far."""

    starts: IntArray  # (n + 1,), places of each child in the support
    arcs: BoolArray  # (n, n), [parent, child]
    ordered: IntArray  # (4,), the set that is looked at, increasing
    mass: FloatArray  # (4, 16), of this set
    sums: FloatArray  # (F,), by how much it violates each facet
    members: IntArray  # (room, 4)
    facets: IntArray  # (room,)
    excess: FloatArray  # (room,)
    tally: IntArray  # (2,): facets kept, sets seen


@kernel
def _fill(support: SupportArrays, sets: _Sets, chosen: IntArray) -> float:
    """Mass by member and parents among the four; returns what no facet's left side exceeds, less
    one for each member.
    """
    sets.mass[:] = 0.0
    total = 0.0
    for place in range(4):
        i = chosen[place]
        for s in range(sets.starts[i], sets.starts[i + 1]):
            bits, size = 0, 0
            for p in range(support.members.shape[1]):
                j = support.members[s, p]
                if j < 0:
                    break
                for other in range(4):
                    if chosen[other] == j:
                        bits |= 1 << other
                        size += 1
            if bits:
                sets.mass[place, bits] += support.mass[s]
                total += support.mass[s] * min(size, 2)
    return total


@kernel
def _is_joined(arcs: BoolArray, chosen: IntArray) -> bool:
    """Whether every member has an arc from and an arc to another one."""
    for a in range(4):
        comes, goes = False, False
        for b in range(4):
            if a != b:
                comes |= arcs[chosen[b], chosen[a]]
                goes |= arcs[chosen[a], chosen[b]]
        if not (comes and goes):
            return False
    return True


@kernel
def _judge(
    support: SupportArrays, facets: FacetArrays, sets: _Sets, chosen: IntArray, violation: float
) -> None:
    """Keep the most violated facet of a set, in the place of the least violated if need be."""
    if not _is_joined(sets.arcs, chosen):
        return
    ordered = sets.ordered
    for place in range(4):
        at = place
        while at > 0 and ordered[at - 1] > chosen[place]:
            ordered[at] = ordered[at - 1]
            at -= 1
        ordered[at] = chosen[place]
    if _fill(support, sets, ordered) <= facets.least + violation:
        return
    sums = sets.sums
    for f in range(sums.size):
        sums[f] = -facets.most[f]
    for place in range(4):
        for bits in range(1, 16):
            mass = sets.mass[place, bits]
            if mass > 0.0:
                weights = facets.weights[place, bits]
                for f in range(sums.size):
                    sums[f] += weights[f] * mass
    best = 0
    for f in range(1, sums.size):
        if sums[f] > sums[best]:
            best = f
    most = sums[best]
    if most <= violation:
        return
    place = sets.tally[0]
    if place == sets.excess.size:
        place = 0
        for kept in range(1, sets.excess.size):
            if sets.excess[kept] < sets.excess[place]:
                place = kept
        if sets.excess[place] >= most:
            return
    else:
        sets.tally[0] += 1
    sets.members[place], sets.facets[place], sets.excess[place] = ordered, best, most


@kernel
def _extend(
    joined: BoolArray, usable: BoolArray, chosen: IntArray, waiting: IntArray, size: int, place: int
) -> None:
    """What may follow ``size`` members: what waits behind ``place`` in the list before, and the
    neighbours of the newest member that no earlier one has. The last entry of a list is its length.
    """
    before, after = waiting[size - 1], waiting[size]
    count = 0
    for a in range(place + 1, before[-1]):
        after[count] = before[a]
        count += 1
    for v in range(chosen[0] + 1, usable.size):
        is_new = joined[chosen[size - 1], v] and usable[v]
        for a in range(size - 1):
            is_new = is_new and not joined[chosen[a], v] and chosen[a] != v
        if is_new:
            after[count] = v
            count += 1
    after[-1] = count


@entry
def search_quadruples(
    support: SupportArrays,
    starts: IntArray,
    arcs: FloatArray,
    facets: FacetArrays,
    violation: float,
    most_sets: int,
    room: int,
) -> tuple[IntArray, IntArray, FloatArray]:
    """Violated facets, one of a set: its variables (V, 4), increasing, its number (V,) and by how
    much (V,). The search ends after so many sets.

    ``starts`` (n + 1,) are the places at which the children begin in the support; ``arcs`` (n, n)
    have the mass of every arc, [parent, child].
    """
    n = support.usable.size
    sets = _Sets(
        starts,
        arcs > LEAST_ARC,
        np.zeros(4, dtype=np.int64),
        np.zeros((4, 16)),
        np.zeros(facets.most.size),
        np.zeros((room, 4), dtype=np.int64),
        np.zeros(room, dtype=np.int64),
        np.zeros(room),
        np.zeros(2, dtype=np.int64),
    )
    joined, usable = sets.arcs | sets.arcs.T, support.usable
    chosen = np.zeros(4, dtype=np.int64)
    waiting = np.zeros((4, 3 * n + 1), dtype=np.int64)
    for a in range(n):
        if not usable[a]:
            continue
        chosen[0] = a
        _extend(joined, usable, chosen, waiting, 1, -1)
        for place_b in range(waiting[1, -1]):
            chosen[1] = waiting[1, place_b]
            _extend(joined, usable, chosen, waiting, 2, place_b)
            for place_c in range(waiting[2, -1]):
                chosen[2] = waiting[2, place_c]
                _extend(joined, usable, chosen, waiting, 3, place_c)
                for place_d in range(waiting[3, -1]):
                    if sets.tally[1] >= most_sets:
                        break
                    sets.tally[1] += 1
                    chosen[3] = waiting[3, place_d]
                    _judge(support, facets, sets, chosen, violation)
    kept = sets.tally[0]
    return sets.members[:kept], sets.facets[:kept], sets.excess[:kept]
