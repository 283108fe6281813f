"""Greedy dual ascent over clusters.

For multipliers y_K >= 0 of sets K of variables every structure costs at least

    sum_K y_K + sum_i min over k of i of r_k,      r_k = cost_k - sum of y_K over K with
                                                         child of k in K, parents disjoint from K

(``docs/theory/linear_programs.rst``). Start with y = 0 and keep all r_k >= 0. The variables that
the candidates with r_k = 0 cannot place in an order form a cluster W; it is shrunk by placing
members by force, in random order, and y_W rises by the smallest r of its candidates with parents
outside W. Every step makes another candidate free or ends the ascent.

Candidates that a node forbids have r = inf.
"""

from __future__ import annotations

import numpy as np

from marginbn.problem.array_types import FloatArray, IntArray, WordArray
from marginbn.solvers.compile import entry, kernel
from marginbn.solvers.orders.kernels.word_sets import (
    Lists,
    add,
    has,
    is_within,
    meets,
    next_random,
    shuffle,
)


@kernel
def _place(
    lists: Lists, free: IntArray, n_free: IntArray, placed: WordArray, waiting: IntArray
) -> int:
    """Place every variable that has a free candidate among the placed; returns how many wait.

    ``free`` holds the free candidates of i from ``offsets[i]`` on; ``waiting`` is filled.
    """
    count = 0
    for i in range(n_free.size):
        if not has(placed, i):
            waiting[count] = i
            count += 1
    changed = True
    while changed and count > 0:
        changed = False
        left = 0
        for a in range(count):
            i = waiting[a]
            first, found = lists.offsets[i], False
            for b in range(first, first + n_free[i]):
                if is_within(lists.masks, free[b], placed):
                    found = True
                    break
            if found:
                add(placed, i)
                changed = True
            else:
                waiting[left] = i
                left += 1
        count = left
    return count


@kernel
def _shrink(
    lists: Lists,
    free: IntArray,
    n_free: IntArray,
    cluster: WordArray,
    order: IntArray,
    placed: WordArray,
    waiting: IntArray,
) -> None:
    """Make a cluster minimal: no member can be placed by force without placing all of it."""
    n = order.size
    for a in range(n):
        v = order[a]
        if not has(cluster, v):
            continue
        for w in range(cluster.size):
            placed[w] = ~cluster[w]
        add(placed, v)
        count = _place(lists, free, n_free, placed, waiting)
        if count > 0:
            cluster[:] = 0
            for b in range(count):
                add(cluster, waiting[b])


@kernel
def _find_free(lists: Lists, reduced: FloatArray, i: int, tiny: float, free: IntArray) -> int:
    """List the free candidates of a variable; returns their number."""
    first, count = lists.offsets[i], 0
    for k in range(first, lists.offsets[i + 1]):
        if reduced[k] <= tiny:
            free[first + count] = k
            count += 1
    return count


@kernel
def _ascend(
    lists: Lists,
    reduced: FloatArray,
    tiny: float,
    enough: float,
    state: IntArray,
    clusters: WordArray,
    multipliers: FloatArray,
) -> tuple[float, int]:
    """Raise multipliers until nothing can be raised or the gain is enough.

    ``reduced`` (K,) is changed in place, at least zero before and after; what is at most ``tiny``
    counts as free. Returns the gain, infinite if no structure is left, and the number of clusters
    written to ``clusters`` (room, words) and ``multipliers`` (room,); the ascent ends where the
    room does.
    """
    n = lists.offsets.size - 1
    words = lists.masks.shape[1]
    free, n_free = np.zeros(reduced.size, dtype=np.int64), np.zeros(n, dtype=np.int64)
    touched = np.zeros(reduced.size, dtype=np.int64)
    placed, cluster = np.zeros(words, dtype=np.uint64), np.zeros(words, dtype=np.uint64)
    waiting, order = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    for i in range(n):
        order[i] = i
        n_free[i] = _find_free(lists, reduced, i, tiny, free)
    gain, count = 0.0, 0
    while count < multipliers.size and gain < enough:
        placed[:] = 0
        left = _place(lists, free, n_free, placed, waiting)
        if left == 0:
            break
        cluster[:] = 0
        for a in range(left):
            add(cluster, waiting[a])
        shuffle(order, state)
        _shrink(lists, free, n_free, cluster, order, placed, waiting)
        step, n_touched = np.inf, 0
        for i in range(n):
            if has(cluster, i):
                for k in range(lists.offsets[i], lists.offsets[i + 1]):
                    if reduced[k] < np.inf and not meets(lists.masks, k, cluster):
                        touched[n_touched] = k
                        n_touched += 1
                        step = min(step, reduced[k])
        if step == np.inf:
            return np.inf, count
        for a in range(n_touched):
            reduced[touched[a]] -= step
        for i in range(n):
            if has(cluster, i):
                n_free[i] = _find_free(lists, reduced, i, tiny, free)
        gain += step
        clusters[count] = cluster
        multipliers[count] = step
        count += 1
    return gain, count


@kernel
def charge(lists: Lists, cluster: WordArray, amount: float, reduced: FloatArray) -> None:
    """Take ``amount`` from the candidates that a cluster counts; a negative one gives back."""
    for i in range(lists.offsets.size - 1):
        if has(cluster, i):
            for k in range(lists.offsets[i], lists.offsets[i + 1]):
                if not meets(lists.masks, k, cluster):
                    reduced[k] -= amount


@entry
def charge_all(
    lists: Lists, clusters: WordArray, multipliers: FloatArray, reduced: FloatArray
) -> None:
    """Take the multipliers of clusters from the costs, in their order."""
    for a in range(multipliers.size):
        if multipliers[a] > 0:
            charge(lists, clusters[a], multipliers[a], reduced)


@entry
def improve(
    lists: Lists,
    reduced: FloatArray,
    tiny: float,
    enough: float,
    rounds: int,
    share: float,
    state: IntArray,
    clusters: WordArray,
    multipliers: FloatArray,
    count: int,
) -> tuple[float, int]:
    """Give back a random share of the clusters and ascend again, keeping what is not worse; without
    ``rounds`` ascend once. One function for both, because each contains the machine code of the
    ascent.

    Returns the total of all multipliers and the number of clusters; both arrays change in place.
    """
    if rounds == 0:
        return _ascend(lists, reduced, tiny, enough, state, clusters, multipliers)
    room, words = multipliers.size, lists.masks.shape[1]
    total = 0.0
    for a in range(count):
        total += multipliers[a]
    trial, kept = reduced.copy(), np.zeros(room)
    kept_clusters = np.zeros((room, words), dtype=np.uint64)
    new, new_clusters = np.zeros(room), np.zeros((room, words), dtype=np.uint64)
    limit = int(share * 1_000_000)
    for _ in range(rounds):
        if total >= enough:
            break
        trial[:] = reduced
        n_kept, rest = 0, 0.0
        for a in range(count):
            if next_random(state) % 1_000_000 < limit:
                charge(lists, clusters[a], -multipliers[a], trial)
            else:
                kept[n_kept] = multipliers[a]
                kept_clusters[n_kept] = clusters[a]
                rest += multipliers[a]
                n_kept += 1
        gain, n_new = _ascend(lists, trial, tiny, np.inf, state, new_clusters, new[: room - n_kept])
        if rest + gain >= total and gain < np.inf:
            total = rest + gain
            reduced[:] = trial
            count = n_kept + n_new
            clusters[:n_kept] = kept_clusters[:n_kept]
            multipliers[:n_kept] = kept[:n_kept]
            clusters[n_kept:count] = new_clusters[:n_new]
            multipliers[n_kept:count] = new[:n_new]
    return total, count
