"""Compiled separation of cluster inequalities, see ``polytope/clusters.py``.

The support of the point comes as arrays: ``child`` (S,), ``members`` (S, P) padded with -1,
``mass`` (S,). ``usable[v]`` says whether v may belong to a cluster.

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

import numpy as np
import numpy.typing as npt

from marginbn.solvers.compile import entry as kernel

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

FULL = 1.0 - 1e-9
"""A flow of this much leaves no violated cut."""


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
def free_mass_of(child: IntArray, members: IntArray, mass: FloatArray, inside: BoolArray) -> float:
    """f(K)."""
    total = 0.0
    for s in range(child.size):
        if inside[child[s]] and _hits(members, s, inside) == 0:
            total += mass[s]
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
def _step_changes(
    child: IntArray, members: IntArray, mass: FloatArray, inside: BoolArray, change: FloatArray
) -> None:
    """Change of f if v joins (v outside) or leaves (v inside), for every v."""
    change[:] = 0.0
    for s in range(child.size):
        i = child[s]
        count = _hits(members, s, inside)
        if not inside[i]:
            if count == 0:
                change[i] += mass[s]
            continue
        if count == 0:
            change[i] -= mass[s]
        if count > 1:
            continue
        for p in range(members.shape[1]):
            j = members[s, p]
            if j < 0:
                break
            if inside[j]:
                change[j] += mass[s]
            elif count == 0:
                change[j] -= mass[s]


@kernel
def descend_from(
    child: IntArray,
    members: IntArray,
    mass: FloatArray,
    usable: BoolArray,
    inside: BoolArray,
    change: FloatArray,
) -> float:
    """Move ``inside`` to a local minimum of f with two or more members; returns f there."""
    value = free_mass_of(child, members, mass, inside)
    while True:
        _step_changes(child, members, mass, inside, change)
        size = 0
        for v in range(inside.size):
            size += inside[v]
        best, best_change = -1, -1e-9
        for v in range(inside.size):
            if usable[v] and (not inside[v] or size > 2) and change[v] < best_change:
                best, best_change = v, change[v]
        if best < 0:
            return value
        inside[best] = not inside[best]
        value += best_change


@kernel
def _capacities(
    child: IntArray,
    members: IntArray,
    mass: FloatArray,
    usable: BoolArray,
    at_random: bool,
    state: IntArray,
    capacity: FloatArray,
) -> None:
    """Fill ``capacity[j, i]``, the source being the last index."""
    n = usable.size
    capacity[:] = 0.0
    for s in range(child.size):
        i = child[s]
        count = _hits(members, s, usable)
        if not usable[i]:
            continue
        if count == 0:
            capacity[n, i] += mass[s]
            continue
        chosen = next_random(state) % count if at_random else -1
        seen = 0
        for p in range(members.shape[1]):
            j = members[s, p]
            if j < 0:
                break
            if usable[j]:
                if chosen < 0:
                    capacity[j, i] += mass[s] / count
                elif seen == chosen:
                    capacity[j, i] += mass[s]
                seen += 1


@kernel
def _minimum_cut(
    capacity: FloatArray, target: int, residual: FloatArray, before: IntArray, queue: IntArray
) -> float:
    """Maximum flow from the last node to the target; ``before[v] >= 0`` marks the source side."""
    n = capacity.shape[0]
    residual[:] = capacity
    flow = 0.0
    while True:
        before[:] = -1
        before[n - 1] = n - 1
        queue[0] = n - 1
        head, tail = 0, 1
        while head < tail and before[target] < 0:
            u = queue[head]
            head += 1
            for v in range(n):
                if before[v] < 0 and residual[u, v] > 1e-9:
                    before[v] = u
                    queue[tail] = v
                    tail += 1
        if before[target] < 0 or flow >= FULL:
            return flow
        step, v = np.inf, target
        while v != n - 1:
            step = min(step, residual[before[v], v])
            v = before[v]
        v = target
        while v != n - 1:
            residual[before[v], v] -= step
            residual[v, before[v]] += step
            v = before[v]
        flow += step


@kernel
def _remember(
    inside: BoolArray, value: float, found: BoolArray, values: FloatArray, n_found: int
) -> int:
    """Append a cluster unless it is there or the room is used up."""
    if n_found >= values.size:
        return n_found
    for a in range(n_found):
        if (found[a] == inside).all():
            return n_found
    found[n_found] = inside
    values[n_found] = value
    return n_found + 1


@kernel
def _try_cluster(
    child: IntArray,
    members: IntArray,
    mass: FloatArray,
    usable: BoolArray,
    inside: BoolArray,
    violation: float,
    found: BoolArray,
    values: FloatArray,
    n_found: int,
) -> int:
    """Keep a cluster and the end of its descent, where violated; returns how many are kept."""
    value = free_mass_of(child, members, mass, inside)
    if value < 1.0 - violation:
        n_found = _remember(inside, value, found, values, n_found)
    value = descend_from(child, members, mass, usable, inside, np.zeros(inside.size))
    if value < 1.0 - violation:
        n_found = _remember(inside, value, found, values, n_found)
    return n_found


@kernel
def _try_cuts(
    child: IntArray,
    members: IntArray,
    mass: FloatArray,
    usable: BoolArray,
    capacity: FloatArray,
    violation: float,
    found: BoolArray,
    values: FloatArray,
    n_found: int,
) -> int:
    """Minimum cuts to every variable as clusters."""
    n = usable.size
    residual = np.zeros((n + 1, n + 1))
    before = np.zeros(n + 1, dtype=np.int64)
    queue = np.zeros(n + 1, dtype=np.int64)
    inside = np.zeros(n, dtype=np.bool_)
    for target in range(n):
        if not usable[target]:
            continue
        if _minimum_cut(capacity, target, residual, before, queue) >= FULL:
            continue
        size = 0
        for v in range(n):
            inside[v] = usable[v] and before[v] < 0
            size += inside[v]
        if size >= 2:
            n_found = _try_cluster(
                child, members, mass, usable, inside, violation, found, values, n_found
            )
    return n_found


@kernel
def separate(
    child: IntArray,
    members: IntArray,
    mass: FloatArray,
    usable: BoolArray,
    state: IntArray,
    n_random: int,
    violation: float,
    room: int,
) -> tuple[BoolArray, FloatArray]:
    """Violated clusters (F, n) and their f (F,), in the order found; at most ``room``."""
    n = usable.size
    found = np.zeros((room, n), dtype=np.bool_)
    values = np.zeros(room)
    n_found = 0
    capacity = np.zeros((n + 1, n + 1))
    for attempt in range(1 + n_random):
        _capacities(child, members, mass, usable, attempt > 0, state, capacity)
        n_found = _try_cuts(
            child, members, mass, usable, capacity, violation, found, values, n_found
        )
    inside = np.zeros(n, dtype=np.bool_)
    for s in range(child.size):  # every arc of the support as a cluster of two
        for p in range(members.shape[1]):
            j = members[s, p]
            if j < 0:
                break
            if usable[child[s]] and usable[j]:
                inside[:] = False
                inside[child[s]] = True
                inside[j] = True
                n_found = _try_cluster(
                    child, members, mass, usable, inside, violation, found, values, n_found
                )
    return found[:n_found], values[:n_found]
