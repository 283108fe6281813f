"""Compiled separation of cluster inequalities, see ``cuts.py``.

*Cuts.* Give the mass of every candidate to its members (all in equal parts, or one at random) and
call the capacity of the arc j -> i what i's candidates gave to j; candidates without usable
member give to the source. The cut between source and a set K then has capacity at least f(K),
with equality when no candidate has two usable members; so minimum cuts below one are violated
clusters, and where sets are larger they are good starts for the descent.

*Descent.* One pass over the support yields the change of f for every single addition and removal:

    f(K + v) - f(K) = (free mass of v) - (free mass inside K of candidates that contain v)
    f(K - v) - f(K) = (mass inside K - v whose only member in K is v) - (free mass of v)

*Exact search.* Variables are in K, out or open. The mass of members' candidates without parent in
or open is lost: it counts for f whatever follows. A state is left when that reaches one; otherwise
the open candidate of the largest mass is either hit by its first open parent, by the next one with
those before it out, and so on, or lost. Effort is counted in states.

Sums over rows that are stored one after the other stand at the end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from marginbn.problem.array_types import BoolArray, FloatArray, IntArray
from marginbn.solvers.compile import entry, kernel
from marginbn.solvers.orders.kernels.word_sets import next_random

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
    value, size = free_mass_of(support, inside), inside.sum()
    while True:
        _step_changes(support, inside, change)
        best, best_change = -1, -NOTHING
        for v in range(inside.size):
            if support.usable[v] and (not inside[v] or size > 2) and change[v] < best_change:
                best, best_change = v, change[v]
        if best < 0:
            return value
        inside[best] = not inside[best]
        size += 1 if inside[best] else -1
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


class Flows(NamedTuple):
    """Capacities, and what one maximum flow needs."""

    capacity: FloatArray  # (n + 1, n + 1), the source being the last
    near: IntArray  # (n + 1, n + 1), increasing: what an arc joins to each node
    degree: IntArray  # (n + 1,), how many these are
    residual: FloatArray  # (n + 1, n + 1)
    before: IntArray  # (n + 1,), the way back to the source
    queue: IntArray  # (n + 1,)


@kernel
def _flows(capacity: FloatArray) -> Flows:
    """Few nodes are joined, so that a search must not look at all pairs."""
    size = capacity.shape[0]
    near, degree = np.zeros((size, size), dtype=np.int64), np.zeros(size, dtype=np.int64)
    for u in range(size):
        for v in range(size):
            if capacity[u, v] > NOTHING or capacity[v, u] > NOTHING:
                near[u, degree[u]] = v
                degree[u] += 1
    before, queue = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    return Flows(capacity, near, degree, np.zeros((size, size)), before, queue)


@kernel
def _minimum_cut(flows: Flows, target: int) -> float:
    """Maximum flow from the last node to the target; ``before[v] >= 0`` marks the source side."""
    residual, before = flows.residual, flows.before
    source = before.size - 1
    residual[:] = flows.capacity
    flow = 0.0
    while True:
        _search_path(flows, source, target)
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
def _search_path(flows: Flows, source: int, target: int) -> None:
    """Breadth first from the source until the target is met; ``before`` is the way back."""
    before, queue = flows.before, flows.queue
    before[:] = -1
    before[source] = source
    queue[0] = source
    head, tail = 0, 1
    while head < tail and before[target] < 0:
        u = queue[head]
        head += 1
        for place in range(flows.degree[u]):
            v = flows.near[u, place]
            if before[v] < 0 and flows.residual[u, v] > NOTHING:
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
        v = 0
        while v < inside.size and found.clusters[a, v] == inside[v]:
            v += 1
        if v == inside.size:
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
    n, flows = support.usable.size, _flows(capacity)
    inside = np.zeros(n, dtype=np.bool_)
    for target in range(n):
        if not support.usable[target]:
            continue
        if _minimum_cut(flows, target) >= FULL:
            continue
        for v in range(n):
            inside[v] = support.usable[v] and flows.before[v] < 0
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
    enough = min(n, room)  # more of them say much the same
    for attempt in range(1 + n_random):
        if found.size[0] < enough:
            _capacities(support, attempt > 0, state, capacity)
            _try_cuts(support, capacity, violation, found)
    if found.size[0] < enough:
        _try_arcs(support, violation, found)
    return found.clusters[: found.size[0]], found.values[: found.size[0]]


OPEN, IN, OUT = 0, 1, 2
"""What a variable is in the exact search."""


@kernel
def _judge_state(support: SupportArrays, status: IntArray) -> tuple[float, float, int]:
    """Lost mass, f of the members alone, and the open candidate of the largest mass (-1: none)."""
    lost, value, heaviest, most = 0.0, 0.0, -1, 0.0
    for s in range(support.child.size):
        if status[support.child[s]] != IN:
            continue
        hit, can_be_hit = False, False
        for p in range(support.members.shape[1]):
            j = support.members[s, p]
            if j < 0:
                break
            if status[j] == IN:
                hit = True
                break
            if status[j] == OPEN:
                can_be_hit = True
        if hit:
            continue
        value += support.mass[s]
        if not can_be_hit:
            lost += support.mass[s]
        elif support.mass[s] > most:
            heaviest, most = s, support.mass[s]
    return lost, value, heaviest


@entry
def search_clusters(
    support: SupportArrays, violation: float, states: int, room: int
) -> tuple[BoolArray, FloatArray, bool]:
    """Violated clusters by exhaustive search, their f, and whether the search was complete.

    It ends after so many states, or when ``room`` clusters are found.
    """
    n = support.usable.size
    found = Found(np.zeros((room, n), dtype=np.bool_), np.zeros(room), np.zeros(1, dtype=np.int64))
    stack = np.zeros((2 * n + (support.members.shape[1] + 1) * (n + 1), n), dtype=np.int64)
    status, inside = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.bool_)
    for first in range(n):
        if not support.usable[first]:
            continue
        for v in range(n):
            stack[0, v] = OPEN if v > first and support.usable[v] else OUT
        stack[0, first] = IN
        size = 1
        while size > 0:
            if states <= 0 or found.size[0] >= room:
                return found.clusters[: found.size[0]], found.values[: found.size[0]], False
            states -= 1
            size -= 1
            status[:] = stack[size]
            lost, value, heaviest = _judge_state(support, status)
            if lost >= 1.0 - violation:
                continue
            if value < 1.0 - violation:
                for v in range(n):
                    inside[v] = status[v] == IN
                _remember(inside, value, found)
                continue
            if heaviest < 0:
                continue
            base = size
            for p in range(support.members.shape[1]):
                j = support.members[heaviest, p]
                if j < 0:
                    break
                if status[j] == OPEN:
                    stack[size] = status
                    stack[size, j] = IN
                    size += 1
                    status[j] = OUT
            stack[size] = status
            size += 1
            for a in range((size - base) // 2):  # the first parent is tried first
                for v in range(n):
                    b = size - 1 - a
                    stack[base + a, v], stack[b, v] = stack[b, v], stack[base + a, v]
    return found.clusters[: found.size[0]], found.values[: found.size[0]], True


class FlatRows(NamedTuple):
    """Row r has the entries ``starts[r]`` to ``starts[r + 1]``."""

    starts: IntArray  # (R + 1,) or longer
    columns: IntArray  # (E,) or longer
    coefficient: FloatArray


@entry
def activities(rows: FlatRows, point: FloatArray, found: FloatArray) -> None:
    """Left-hand sides at a point (K,), written to ``found`` (R,)."""
    for r in range(found.size):
        total = 0.0
        for e in range(rows.starts[r], rows.starts[r + 1]):
            total += rows.coefficient[e] * point[rows.columns[e]]
        found[r] = total


@entry
def combine(rows: FlatRows, numbers: IntArray, multipliers: FloatArray, total: FloatArray) -> None:
    """Add y_r times each listed row to ``total`` (K,); multipliers of zero are skipped."""
    for a in range(numbers.size):
        y = multipliers[a]
        if y > 0:
            for e in range(rows.starts[numbers[a]], rows.starts[numbers[a] + 1]):
                total[rows.columns[e]] += y * rows.coefficient[e]
