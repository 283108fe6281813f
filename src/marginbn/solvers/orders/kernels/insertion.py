"""Compiled search over orders of variables.

An order fixes the best structure: every variable takes the first parent set of its list within
those before it. The neighbours of an order move one variable to another place. While v moves to the
left past u, u gains the parent v and v loses the parent u; so the new choice of u stands before its
old one in the list and is looked for among sets with v only, and the new choice of v stands at its
old place or behind it. To the right it is the other way round. One sweep takes each variable in
turn to its best place; a local optimum has no better neighbour.

A *population* of local optima is kept: a member is kicked (a few random moves), and replaced by the
new local optimum if that is not worse; or two are crossed (some variables keep their places in the
one, the others follow in the order of the other), and the worst is replaced by what comes of it.

Costs are compared relative to their sum where a climb begins: in another unit the search goes the
same way. No cost is negative and none of a chosen set exceeds that sum S, so what a move changes is
rounded by far less than 1e-12 S; a move that is taken gains more, and every climb ends. (The sum
itself, kept up to date by adding changes, would not do: at a cost of zero it ends below zero.)

Effort is counted in candidates looked at.
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
    next_random,
    remove,
)

SMALLEST_KICK, LARGEST_KICK = 2, 7
"""Moves of one kick, at random between these."""

LOOKUP = 6
"""Candidates that one look into a list costs in addition to those looked at, by timing."""

CROSSED = 4
"""One of so many steps crosses two members instead of kicking one."""


@kernel
def first_within(lists: Lists, first: int, last: int, allowed: WordArray, work: IntArray) -> int:
    """The first candidate from ``first`` on, before ``last``, within a set; ``last`` if none."""
    k = first
    while k < last and not is_within(lists.masks, k, allowed):
        k += 1
    work[0] += k - first + LOOKUP
    return k


@kernel
def choose_all(lists: Lists, order: IntArray, chosen: IntArray, work: IntArray) -> float:
    """Best candidates given an order; returns their cost, infinite if a variable has none."""
    before = np.zeros(lists.masks.shape[1], dtype=np.uint64)
    total = 0.0
    for p in range(order.size):
        i = order[p]
        k = first_within(lists, lists.offsets[i], lists.offsets[i + 1], before, work)
        if k == lists.offsets[i + 1]:
            return np.inf
        chosen[i] = k
        total += lists.cost[k]
        add(before, i)
    return total


@kernel
def _best_place(
    lists: Lists,
    order: IntArray,
    chosen: IntArray,
    before: WordArray,
    inside: WordArray,
    work: IntArray,
    place: int,
) -> tuple[int, float]:
    """The best place of the variable at ``place``, and the change of cost there.

    ``chosen`` (n,) are the candidates, ``before`` (n + 1, words) the sets of the first p variables.
    """
    v = order[place]
    best, best_change = place, 0.0
    last = lists.offsets[v + 1]
    own = lists.cost[chosen[v]]
    k, change = chosen[v], 0.0
    for q in range(place - 1, -1, -1):  # to the left
        u = order[q]
        inside[:] = before[q]
        k = first_within(lists, k, last, inside, work)
        if k == last:
            break
        add(inside, v)
        new = first_within(lists, lists.offsets[u], chosen[u], inside, work)
        change += lists.cost[new] - lists.cost[chosen[u]]
        total = change + lists.cost[k] - own
        if total < best_change:
            best, best_change = q, total
    k, change = chosen[v], 0.0
    for q in range(place + 1, order.size):  # to the right
        u = order[q]
        if has(lists.masks[chosen[u]], v):
            inside[:] = before[q]
            remove(inside, v)
            new = first_within(lists, chosen[u], lists.offsets[u + 1], inside, work)
            cost = lists.cost[new] if new < lists.offsets[u + 1] else np.inf
            change += cost - lists.cost[chosen[u]]
            if change - own >= best_change:  # v costs nothing at the best
                break
        inside[:] = before[q + 1]
        remove(inside, v)
        k = first_within(lists, lists.offsets[v], k, inside, work)
        total = change + lists.cost[k] - own
        if total < best_change:
            best, best_change = q, total
    return best, best_change


@kernel
def _move(order: IntArray, place: int, target: int) -> None:
    """Take a variable to another place."""
    v = order[place]
    if target < place:
        for p in range(place, target, -1):
            order[p] = order[p - 1]
    else:
        for p in range(place, target):
            order[p] = order[p + 1]
    order[target] = v


@kernel
def climb_order(lists: Lists, order: IntArray, chosen: IntArray, work: IntArray) -> float:
    """Improve an order to a local optimum; returns its cost."""
    n = order.size
    value = choose_all(lists, order, chosen, work)
    if value == np.inf:
        return value
    before = np.zeros((n + 1, lists.masks.shape[1]), dtype=np.uint64)
    inside = np.zeros(lists.masks.shape[1], dtype=np.uint64)
    for p in range(n):
        before[p + 1] = before[p]
        add(before[p + 1], order[p])
    place = np.zeros(n, dtype=np.int64)
    least_gain = 1e-12 * value
    unchanged, v = 0, 0
    while unchanged < n:
        for p in range(n):
            place[order[p]] = p
        target, change = _best_place(lists, order, chosen, before, inside, work, place[v])
        if change < -least_gain:
            _move(order, place[v], target)
            for p in range(min(place[v], target), max(place[v], target) + 1):
                i = order[p]
                first, last = lists.offsets[i], lists.offsets[i + 1]
                chosen[i] = first_within(lists, first, last, before[p], work)
                before[p + 1] = before[p]
                add(before[p + 1], i)
            unchanged = 0
        else:
            unchanged += 1
        v = (v + 1) % n
    return choose_all(lists, order, chosen, work)


@kernel
def _kick(order: IntArray, state: IntArray) -> None:
    """A few random moves."""
    n = order.size
    for _ in range(SMALLEST_KICK + next_random(state) % (LARGEST_KICK - SMALLEST_KICK + 1)):
        _move(order, next_random(state) % n, next_random(state) % n)


@kernel
def _cross(one: IntArray, other: IntArray, order: IntArray, state: IntArray) -> None:
    """Half of the variables keep their places in the one, the rest the order of the other."""
    n = one.size
    stays = np.zeros(n, dtype=np.bool_)
    for v in range(n):
        stays[v] = next_random(state) % 2 == 0
    q = 0
    for p in range(n):
        if stays[one[p]]:
            order[p] = one[p]
            continue
        while stays[other[q]]:
            q += 1
        order[p] = other[q]
        q += 1


@kernel
def _extreme(costs: FloatArray, sign: float) -> int:
    """The first member of least cost, or of the largest if ``sign`` is -1."""
    best = 0
    for a in range(1, costs.size):
        if sign * costs[a] < sign * costs[best]:
            best = a
    return best


@entry
def search_orders(
    lists: Lists, orders: IntArray, costs: FloatArray, state: IntArray, effort: int, stop: IntArray
) -> int:
    """Improve a population in place until the effort is spent; returns the number of the best.

    ``orders`` (P, n) with ``costs`` (P,): NaN where the order is new and not yet climbed from. The
    flag ``stop`` (1,) ends the search from another thread.
    """
    size, n = orders.shape
    work = np.zeros(1, dtype=np.int64)
    order, chosen = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    for a in range(size):
        if np.isnan(costs[a]) and stop[0] == 0:
            costs[a] = climb_order(lists, orders[a], chosen, work)
    turn = 0
    while work[0] < effort and stop[0] == 0:
        a = turn % size
        turn += 1
        crossed = size > 1 and next_random(state) % CROSSED == 0
        if crossed:
            b = next_random(state) % (size - 1)
            _cross(orders[a], orders[b + 1 if b >= a else b], order, state)
            a = _extreme(costs, -1.0)
        else:
            order[:] = orders[a]
            _kick(order, state)
        value = climb_order(lists, order, chosen, work)
        is_known = crossed and (np.abs(costs - value) <= 1e-9 * value).any()
        if not (value > costs[a] or is_known):
            orders[a] = order
            costs[a] = value
    return _extreme(costs, 1.0)
