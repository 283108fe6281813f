"""Compiled separation of cluster inequalities, see ``rows.py``.

*Cuts.* Give the mass of every candidate to its members (all in equal parts, or one at random) and
call the capacity of the arc j -> i what i's candidates gave to j; candidates without usable
member give to the source. The cut between source and a set K then has capacity at least f(K),
with equality when no candidate has two usable members; so minimum cuts below one are violated
clusters, and where sets are larger they are good starts for the descent.

*Descent.* One pass over the support yields the change of f for every single addition and removal:

    f(K + v) - f(K) = (free mass of v) - (free mass inside K of candidates that contain v)
    f(K - v) - f(K) = (mass inside K - v whose only member in K is v) - (free mass of v)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from marginbn.solvers.branch_cut.arrays import BoolArray, FloatArray, IntArray
from marginbn.solvers.compile import entry, kernel

FULL = 1.0 - 1e-9
"""A flow of this much leaves no violated cut."""

NOTHING = 1e-9
"""Capacities and falls of f that count as zero: masses are known to little more."""


class SupportArrays(NamedTuple):
    """The candidates of positive mass, and which variables may belong to a cluster."""

    child: IntArray  # (S,)
    members: IntArray  # (S, P), padded with -1
    mass: FloatArray  # (S,)
    usable: BoolArray  # (n,)


class Found(NamedTuple):
    """The violated clusters so far."""

    clusters: BoolArray  # (room, n)
    values: FloatArray  # (room,), f of each
    size: IntArray  # (1,), how many there are


@kernel
def next_random(state: IntArray) -> int:
    """A non-negative number from a xorshift generator; ``state`` (1,) must not be zero."""
    x: int = state[0]
    x ^= (x << 13) & 0x7FFFFFFFFFFFFFFF
    x ^= x >> 7
    x ^= (x << 17) & 0x7FFFFFFFFFFFFFFF
    state[0] = x
    return x & 0x3FFFFFFFFFFFFFFF


@kernel
def free_mass_of(support: SupportArrays, inside: BoolArray) -> float:
    """f(K)."""
    total = 0.0
    for s in range(support.child.size):
        if inside[support.child[s]] and _hits(support.members, s, inside) == 0:
            total += support.mass[s]
    return total


@kernel
def _hits(members: IntArray, s: int, inside: BoolArray) -> int:
    """Number of parents of candidate s inside the cluster."""
    count = 0
    for p in range(members.shape[1]):
        j = members[s, p]
        if j < 0:
            break
        if inside[j]:
            count += 1
    return count


@kernel
def _step_changes(support: SupportArrays, inside: BoolArray, change: FloatArray) -> None:
    """Change of f if v joins (v outside) or leaves (v inside), for every v."""
    change[:] = 0.0
    for s in range(support.child.size):
        i, mass = support.child[s], support.mass[s]
        count = _hits(support.members, s, inside)
        if not inside[i]:
            if count == 0:
                change[i] += mass
            continue
        if count == 0:
            change[i] -= mass
        if count > 1:
            continue
        for p in range(support.members.shape[1]):
            j = support.members[s, p]
            if j < 0:
                break
            if inside[j]:
                change[j] += mass
            elif count == 0:
                change[j] -= mass


@kernel
def descend_from(support: SupportArrays, inside: BoolArray) -> float:
    """Move ``inside`` to a local minimum of f with two or more members; returns f there."""
    change = np.zeros(inside.size)
    value = free_mass_of(support, inside)
    while True:
        _step_changes(support, inside, change)
        size = inside.sum()
        best, best_change = -1, -NOTHING
        for v in range(inside.size):
            if support.usable[v] and (not inside[v] or size > 2) and change[v] < best_change:
                best, best_change = v, change[v]
        if best < 0:
            return value
        inside[best] = not inside[best]
        value += best_change


@kernel
def _capacities(
    support: SupportArrays, at_random: bool, state: IntArray, capacity: FloatArray
) -> None:
    """Fill ``capacity[j, i]``, the source being the last index."""
    n = support.usable.size
    capacity[:] = 0.0
    for s in range(support.child.size):
        i, mass = support.child[s], support.mass[s]
        count = _hits(support.members, s, support.usable)
        if not support.usable[i]:
            continue
        if count == 0:
            capacity[n, i] += mass
            continue
        chosen = next_random(state) % count if at_random else -1
        seen = 0
        for p in range(support.members.shape[1]):
            j = support.members[s, p]
            if j < 0:
                break
            if support.usable[j]:
                if chosen < 0:
                    capacity[j, i] += mass / count
                elif seen == chosen:
                    capacity[j, i] += mass
                seen += 1


@kernel
def _minimum_cut(
    capacity: FloatArray, target: int, residual: FloatArray, before: IntArray, queue: IntArray
) -> float:
    """Maximum flow from the last node to the target; ``before[v] >= 0`` marks the source side."""
    source = capacity.shape[0] - 1
    residual[:] = capacity
    flow = 0.0
    while True:
        _search_path(residual, source, target, before, queue)
        if before[target] < 0 or flow >= FULL:
            return flow
        step, v = np.inf, target
        while v != source:
            step = min(step, residual[before[v], v])
            v = before[v]
        v = target
        while v != source:
            residual[before[v], v] -= step
            residual[v, before[v]] += step
            v = before[v]
        flow += step


@kernel
def _search_path(
    residual: FloatArray, source: int, target: int, before: IntArray, queue: IntArray
) -> None:
    """Breadth first from the source until the target is met; ``before`` is the way back."""
    before[:] = -1
    before[source] = source
    queue[0] = source
    head, tail = 0, 1
    while head < tail and before[target] < 0:
        u = queue[head]
        head += 1
        for v in range(before.size):
            if before[v] < 0 and residual[u, v] > NOTHING:
                before[v] = u
                queue[tail] = v
                tail += 1


@kernel
def _remember(inside: BoolArray, value: float, found: Found) -> None:
    """Append a cluster unless it is there or the room is used up."""
    count = found.size[0]
    if count >= found.values.size:
        return
    for a in range(count):
        if (found.clusters[a] == inside).all():
            return
    found.clusters[count] = inside
    found.values[count] = value
    found.size[0] += 1


@kernel
def _try_cluster(support: SupportArrays, inside: BoolArray, violation: float, found: Found) -> None:
    """Keep a cluster and the end of its descent, where violated."""
    value = free_mass_of(support, inside)
    if value < 1.0 - violation:
        _remember(inside, value, found)
    value = descend_from(support, inside)
    if value < 1.0 - violation:
        _remember(inside, value, found)


@kernel
def _try_cuts(support: SupportArrays, capacity: FloatArray, violation: float, found: Found) -> None:
    """Minimum cuts to every variable as clusters."""
    n = support.usable.size
    residual = np.zeros((n + 1, n + 1))
    before = np.zeros(n + 1, dtype=np.int64)
    queue = np.zeros(n + 1, dtype=np.int64)
    for target in range(n):
        if not support.usable[target]:
            continue
        if _minimum_cut(capacity, target, residual, before, queue) >= FULL:
            continue
        inside = support.usable & (before[:n] < 0)
        if inside.sum() >= 2:
            _try_cluster(support, inside, violation, found)


@kernel
def _try_arcs(support: SupportArrays, violation: float, found: Found) -> None:
    """Every arc of the support as a cluster of two."""
    inside = np.zeros(support.usable.size, dtype=np.bool_)
    for s in range(support.child.size):
        i = support.child[s]
        for p in range(support.members.shape[1]):
            j = support.members[s, p]
            if j < 0:
                break
            if support.usable[i] and support.usable[j]:
                inside[:] = False
                inside[i] = True
                inside[j] = True
                _try_cluster(support, inside, violation, found)


@entry
def separate(
    support: SupportArrays, state: IntArray, n_random: int, violation: float, room: int
) -> tuple[BoolArray, FloatArray]:
    """Violated clusters (F, n) and their f (F,), in the order found; at most ``room``."""
    n = support.usable.size
    found = Found(np.zeros((room, n), dtype=np.bool_), np.zeros(room), np.zeros(1, dtype=np.int64))
    capacity = np.zeros((n + 1, n + 1))
    for attempt in range(1 + n_random):
        _capacities(support, attempt > 0, state, capacity)
        _try_cuts(support, capacity, violation, found)
    _try_arcs(support, violation, found)
    return found.clusters[: found.size[0]], found.values[: found.size[0]]
