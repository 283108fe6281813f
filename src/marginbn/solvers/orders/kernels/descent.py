"""Depth-first search over orders, from the first variable to the last.

A node stands for the variables U that come first, at the cost g of their best parent sets; it asks
for the least cost of the others. Its state are lists, multipliers and reduced costs of the
variables outside U:

- a parent set S counts as S - U, and behind the first one that lies within U nothing in a list is
  of use;
- clusters outside U bound what the others cost (``raising.py``). Below a node, clusters that meet
  what was placed meanwhile are given back, and the ascent goes on from the rest. With the smallest
  reduced cost b_i of each list taken out of it, the bound of a node is

      f = g + sum of b_i + sum of y_K,        a structure with candidate k costs at least f + r_k;

- candidates with f + r_k >= T are left out: the search is for structures that cost less than T.

**No choice.** A variable whose first candidate lies within U is placed at once: it can do no better
and helps the others.

**Components.** An arc from j to i wherever j is in a candidate of i: the parents of a strongly
connected component without arcs from outside are among its own members and U, so that its members
may come first. Only members of the smallest such component are tried; it is found as the smallest
set of ancestors.

**Sets met again.** What is known of the others when U comes first is kept (``known_sets.py``): the
bound of a node, but at most T - g, because sets were left out that only cost T or more can have;
and T - g when all below a node is done.

**Memory.** Lists of a node stand behind those of its parent. Where there is no room they stand in a
reserve that the next such node overwrites, and nodes below start from the last lists that stand:
that is slower, but nothing is lost.

**Rounding.** A reduced cost is a sum of as many terms as there were charges on the way to the node;
all of them are at most T in size, as everything that costs T or more is left out. n candidates make
a structure. The allowance for all of it is taken off f.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from marginbn.solvers.compile import entry, kernel
from marginbn.solvers.orders.kernels.known_sets import KnownSets, recall, remember
from marginbn.solvers.orders.kernels.raising import ascend, charge
from marginbn.solvers.orders.kernels.word_sets import (
    ONE,
    FloatArray,
    IntArray,
    Lists,
    WordArray,
    add,
    has,
    is_within,
    lowest_bit,
    meets,
)

EPS = 2.0**-53

PLACED, DEAD, COMPLETE = 1, 0, 2
"""What comes of a node: lists, nothing, a structure."""

PAUSED, DONE, FOUND = 0, 1, 2
"""How a portion ends."""


class Room(NamedTuple):
    """Lists of all nodes from the root to the current one, and a reserve at the end."""

    masks: WordArray  # (R, words)
    cost: FloatArray  # (R,)
    reduced: FloatArray  # (R,)


class Levels(NamedTuple):
    """The nodes from the root to the current one, n + 2 at most."""

    placed: WordArray  # (levels, words)
    n_placed: IntArray  # (levels,)
    spent: FloatArray  # (levels,) cost of the placed variables
    bound: FloatArray  # (levels,) f
    charges: IntArray  # (levels,) roundings of a reduced cost
    source: IntArray  # (levels,) the level whose lists still stand
    least: FloatArray  # (levels, n) b
    offsets: IntArray  # (levels, n + 1) of the lists in the room
    clusters: WordArray  # (levels, C, words)
    multipliers: FloatArray  # (levels, C)
    n_clusters: IntArray  # (levels,)
    children: IntArray  # (levels, n) variables to be placed next, best first
    child_bound: FloatArray  # (levels, n)
    child_cost: FloatArray  # (levels, n)
    n_children: IntArray  # (levels,)
    next_child: IntArray  # (levels,)
    order: IntArray  # (n,) the placed variables of the current node


class Control(NamedTuple):
    """What the search is told, and where it stands."""

    limits: FloatArray  # (2,) T, and what counts as zero
    depth: IntArray  # (1,) the current level; -1 when everything is done
    counts: IntArray  # (2,) nodes, candidates looked at
    state: IntArray  # (1,) of the random numbers


@kernel
def _allowance(levels: Levels, level: int, threshold: float) -> float:
    """Rounding of the bound of a node."""
    n = levels.order.size
    return float(8.0 * EPS * n * (levels.charges[level] + n + 8) * threshold)


@kernel
def _first_alive(
    levels: Levels, room: Room, source: int, i: int, threshold: float, work: IntArray
) -> int:
    """The first candidate of a list that is of use; the end of the list if there is none."""
    k, end = levels.offsets[source, i], levels.offsets[source, i + 1]
    while k < end and levels.bound[source] + room.reduced[k] >= threshold:
        k += 1
    work[1] += 1
    return int(k)


@kernel
def _place_without_choice(
    levels: Levels, room: Room, source: int, target: int, threshold: float, work: IntArray
) -> bool:
    """Place all variables whose first candidate lies within the placed ones; False if a variable
    has no candidate left.
    """
    n, changed = levels.order.size, True
    placed = levels.placed[target]
    while changed:
        changed = False
        for i in range(n):
            if has(placed, i):
                continue
            k = _first_alive(levels, room, source, i, threshold, work)
            if k == levels.offsets[source, i + 1]:
                return False
            if is_within(room.masks, k, placed):
                add(placed, i)
                levels.order[levels.n_placed[target]] = i
                levels.n_placed[target] += 1
                levels.spent[target] += room.cost[k]
                changed = True
    return True


@kernel
def _copy_lists(
    levels: Levels, room: Room, source: int, target: int, start: int, threshold: float
) -> int:
    """Write what is of use of the lists to ``start``; returns the end, or -1 if a list is empty.

    A placed variable has one candidate, without parents and costs.
    """
    n, place = levels.order.size, start
    placed = levels.placed[target]
    for i in range(n):
        levels.offsets[target, i] = place
        if has(placed, i):
            room.masks[place] = 0
            room.cost[place] = room.reduced[place] = 0.0
            place += 1
            continue
        first = place
        for k in range(levels.offsets[source, i], levels.offsets[source, i + 1]):
            if levels.bound[source] + room.reduced[k] >= threshold:
                continue
            room.masks[place] = room.masks[k]
            room.cost[place] = room.cost[k]
            room.reduced[place] = room.reduced[k]
            place += 1
            if is_within(room.masks, k, placed):
                break
        if place == first:
            return -1
    levels.offsets[target, n] = place
    return place


@kernel
def _view(levels: Levels, room: Room, level: int) -> tuple[Lists, FloatArray]:
    """The lists of a level and their reduced costs."""
    start, end = levels.offsets[level, 0], levels.offsets[level, -1]
    lists = Lists(levels.offsets[level] - start, room.masks[start:end], room.cost[start:end])
    return lists, room.reduced[start:end]


@kernel
def _keep_clusters(
    levels: Levels, source: int, target: int, lists: Lists, reduced: FloatArray
) -> float:
    """Give back the clusters that meet what was placed; returns the multipliers of the others."""
    total, kept, given = 0.0, 0, 0
    for c in range(levels.n_clusters[source]):
        if meets(levels.clusters[source], c, levels.placed[target]):
            charge(lists, levels.clusters[source, c], -levels.multipliers[source, c], reduced)
            given += 1
        else:
            levels.clusters[target, kept] = levels.clusters[source, c]
            levels.multipliers[target, kept] = levels.multipliers[source, c]
            total += levels.multipliers[source, c]
            kept += 1
    levels.n_clusters[target] = kept
    levels.charges[target] = levels.charges[source] + given + 1
    return total


@kernel
def _take_least(levels: Levels, source: int, target: int, lists: Lists, red: FloatArray) -> float:
    """Forget the placed variables in parent sets, and take the least reduced cost out of every
    list; returns the sum of all that was ever taken out of these lists.
    """
    total = 0.0
    for i in range(levels.order.size):
        if has(levels.placed[target], i):
            levels.least[target, i] = 0.0
            red[lists.offsets[i]] = 0.0  # whatever was given back
            continue
        least = np.inf
        for k in range(lists.offsets[i], lists.offsets[i + 1]):
            for w in range(lists.masks.shape[1]):
                lists.masks[k, w] &= ~levels.placed[target, w]
            least = min(least, red[k])
        for k in range(lists.offsets[i], lists.offsets[i + 1]):
            red[k] -= least
        levels.least[target, i] = levels.least[source, i] + least
        total += levels.least[target, i]
    return total


@kernel
def _raise_bound(
    levels: Levels,
    source: int,
    target: int,
    lists: Lists,
    reduced: FloatArray,
    control: Control,
) -> None:
    """The bound of a node, from what its parent knows and an ascent from there."""
    threshold, tiny = control.limits[0], control.limits[1]
    total = _keep_clusters(levels, source, target, lists, reduced)
    total += _take_least(levels, source, target, lists, reduced) + levels.spent[target]
    enough = threshold - total
    if enough > 0:
        kept = levels.n_clusters[target]
        gain, count = ascend(
            lists,
            reduced,
            tiny,
            enough + _allowance(levels, target, threshold),
            control.state,
            levels.clusters[target, kept:],
            levels.multipliers[target, kept:],
        )
        levels.n_clusters[target] = kept + count
        levels.charges[target] += count
        total += gain
    levels.bound[target] = max(levels.bound[source], total - _allowance(levels, target, threshold))


@kernel
def _arcs_into(lists: Lists, reduced: FloatArray, limit: float, placed: WordArray) -> WordArray:
    """Of every variable the union of its candidates that are of use, (n, words)."""
    n, words = lists.offsets.size - 1, lists.masks.shape[1]
    above = np.zeros((n, words), dtype=np.uint64)
    for i in range(n):
        if not has(placed, i):
            for k in range(lists.offsets[i], lists.offsets[i + 1]):
                if reduced[k] < limit:
                    for w in range(words):
                        above[i, w] |= lists.masks[k, w]
    return above


@kernel
def _smallest_component(above: WordArray, placed: WordArray, best: WordArray) -> None:
    """The smallest set of ancestors of a variable, itself included."""
    n, words = above.shape
    fewest = n + 1
    seen, waiting = np.zeros(words, dtype=np.uint64), np.zeros(n, dtype=np.int64)
    for i in range(n):
        if has(placed, i):
            continue
        seen[:] = 0
        add(seen, i)
        waiting[0] = i
        n_seen, looked = 1, 0
        while looked < n_seen and n_seen < fewest:
            u = waiting[looked]
            looked += 1
            for w in range(words):
                new = above[u, w] & ~seen[w]
                seen[w] |= new
                while new != 0:
                    waiting[n_seen] = 64 * w + lowest_bit(new)
                    n_seen += 1
                    new &= new - ONE
        if n_seen < fewest:
            fewest = n_seen
            best[:] = seen


@kernel
def _list_children(
    levels: Levels, level: int, lists: Lists, reduced: FloatArray, threshold: float
) -> None:
    """The variables of the smallest component that can come next, best first."""
    bound = levels.bound[level]
    component = np.zeros(lists.masks.shape[1], dtype=np.uint64)
    above = _arcs_into(lists, reduced, threshold - bound, levels.placed[level])
    _smallest_component(above, levels.placed[level], component)
    count = 0
    for i in range(levels.order.size):
        if not has(component, i):
            continue
        k = lists.offsets[i + 1] - 1
        for w in range(component.size):
            if lists.masks[k, w] != 0:
                k = -1
                break
        if k < 0 or bound + reduced[k] >= threshold:
            continue
        own, cost = bound + reduced[k], lists.cost[k]
        place = count
        while place > 0 and levels.child_bound[level, place - 1] > own:
            levels.children[level, place] = levels.children[level, place - 1]
            levels.child_bound[level, place] = levels.child_bound[level, place - 1]
            levels.child_cost[level, place] = levels.child_cost[level, place - 1]
            place -= 1
        levels.children[level, place] = i
        levels.child_bound[level, place] = own
        levels.child_cost[level, place] = cost
        count += 1
    levels.n_children[level] = count
    levels.next_child[level] = 0


@kernel
def _start_of_lists(levels: Levels, room: Room, parent: int, source: int, target: int) -> int:
    """Where the lists of a level go: behind those that stand, or into the reserve."""
    size = levels.offsets[source, -1] - levels.offsets[source, 0] + levels.order.size
    reserve = room.cost.size - (levels.offsets[0, -1] + levels.order.size)
    if levels.offsets[source, -1] + size <= reserve and source == parent:
        levels.source[target] = target
        return int(levels.offsets[source, -1])
    levels.source[target] = source
    return int(reserve)


@kernel
def _enter(levels: Levels, room: Room, known: KnownSets, parent: int, control: Control) -> int:
    """Make the node of the next child of a level; returns what comes of it."""
    threshold, target, source = control.limits[0], parent + 1, levels.source[parent]
    child = levels.next_child[parent]
    levels.next_child[parent] += 1
    v = levels.children[parent, child]
    levels.placed[target] = levels.placed[parent]
    add(levels.placed[target], v)
    levels.order[levels.n_placed[parent]] = v
    levels.n_placed[target] = levels.n_placed[parent] + 1
    levels.spent[target] = levels.spent[parent] + levels.child_cost[parent, child]
    if not _place_without_choice(levels, room, source, target, threshold, control.counts):
        return DEAD
    spent = levels.spent[target]
    if levels.n_placed[target] == levels.order.size:
        return COMPLETE if spent < threshold else DEAD
    if spent + recall(known, levels.placed[target]) >= threshold:
        return DEAD
    start = _start_of_lists(levels, room, parent, source, target)
    end = _copy_lists(levels, room, source, target, start, threshold)
    if end >= 0:
        lists, reduced = _view(levels, room, target)
        control.counts[1] += end - start
        _raise_bound(levels, source, target, lists, reduced, control)
        remember(known, levels.placed[target], min(levels.bound[target], threshold) - spent)
        if levels.bound[target] < threshold:
            _list_children(levels, target, lists, reduced, threshold)
            return PLACED
    else:
        remember(known, levels.placed[target], threshold - spent)
    return DEAD


@entry
def open_root(levels: Levels, room: Room, control: Control) -> None:
    """Begin at the root, whose lists, clusters and bound are there."""
    lists, reduced = _view(levels, room, 0)
    _list_children(levels, 0, lists, reduced, control.limits[0])
    control.depth[0] = 0


@entry
def descend(
    levels: Levels, room: Room, known: KnownSets, control: Control, portion: int, most: int
) -> int:
    """Search until a structure that costs less than T is found, everything is done, or so many
    candidates were looked at, or there are ``most`` nodes.
    """
    until = control.counts[1] + portion
    while control.counts[1] < until and control.counts[0] < most:
        level = control.depth[0]
        if level < 0:
            return DONE
        child, threshold = levels.next_child[level], control.limits[0]
        if child >= levels.n_children[level] or levels.child_bound[level, child] >= threshold:
            remember(known, levels.placed[level], threshold - levels.spent[level])
            control.depth[0] -= 1
            continue
        control.counts[0] += 1
        control.counts[1] += levels.order.size
        came = _enter(levels, room, known, level, control)
        if came == COMPLETE:
            return FOUND
        if came == PLACED:
            control.depth[0] += 1
    return PAUSED
