"""The largest value of a forest with class parents, in whole numbers.

Features are numbered from 0 here, the class is apart. A feature has the parents {} or {class},
which makes it a root, or {class, another feature}, which is an arc. The arcs form a forest, and a
parent of the class has {}. For a fixed parent set of the class the best forest is a maximum
arborescence of the graph in which one more node, numbered n, stands for "root".

Whole numbers make large constants harmless: an arc that is not allowed weighs -2^f, an edge that
must be there adds 2^b to both of its arcs, with 2^f >> n 2^b >> n |values|. A forest has at most
one arc of each edge, so the best one has all edges that must be there unless no forest has.
:func:`marginbn.proof.checker.bounds.room` says how large values may be, so that nothing overflows
64 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
F = TypeVar("F", bound=Callable[..., Any])
_njit: Any = numba.njit


def compiled(function: F) -> F:
    """Compile; the function itself stays reachable as ``py_func``."""
    try:
        result: F = _njit(cache=True)(function)
    except RuntimeError:  # nowhere to keep the machine code
        result = _njit(function)
    return result


@compiled
def contract_cycles(chosen: Integers) -> tuple[Integers, int]:
    """New numbers of the nodes and the root, equal for the members of a cycle of chosen arcs, and
    how many there are without the root.
    """
    n = chosen.size
    group = np.full(n + 1, -1)
    mark = np.full(n, -1)
    count = 0
    for start in range(n):  # walk until a node that was seen; on this walk it closes a cycle
        v = start
        while v != n and mark[v] < 0:
            mark[v] = start
            v = chosen[v]
        if v != n and mark[v] == start:
            while group[v] < 0:
                group[v] = count
                v = chosen[v]
            count += 1
    for v in range(n):
        if group[v] < 0:
            group[v] = count
            count += 1
    group[n] = count
    return group, count


@compiled
def best_arborescence(weights: Integers, to_root: Integers) -> int:
    """Largest sum of one entering arc per node without cycles; ``weights[child, parent]``.

    There are n nodes and n + 1 possible parents, the last of them the root. Every node takes its
    best entering arc; the arcs of a cycle are taken together as one node, and an arc that enters
    it at v replaces the one chosen for v, so its weight is reduced by that of the chosen one.

    The reduced weights of the arcs taken are *prices* y: their sum is the value, an arc weighs at
    most the sum of the prices of everything it enters, and prices of contracted cycles are not
    positive. So a solution that uses an arc is worth at most the value minus what the arc falls
    short of its prices, one such term for every arc. ``to_root`` (n,) receives the sum of the
    prices that an arc from the root enters on its way to each node.
    """
    w = weights.copy()
    n = w.shape[0]
    total = 0
    top = np.arange(n)  # what contains each of the original nodes
    to_root[:] = 0
    while True:
        chosen = np.zeros(n, dtype=np.int64)
        for v in range(n):
            parent = n
            for u in range(n):
                if u != v and w[v, u] > w[v, parent]:
                    parent = u
            chosen[v] = parent
            total += w[v, parent]
        for v in range(top.size):
            to_root[v] += w[top[v], chosen[top[v]]]
        group, count = contract_cycles(chosen)
        if count == n:
            return total
        smaller = np.full((count, count + 1), np.int64(-(2**62)))
        for v in range(n):
            for u in range(n + 1):
                if group[u] != group[v]:
                    value = w[v, u] - w[v, chosen[v]]
                    if value > smaller[group[v], group[u]]:
                        smaller[group[v], group[u]] = value
        for v in range(top.size):
            top[v] = group[top[v]]
        w, n = smaller, count


@compiled
def best_forest(
    arcs: Integers,
    lonely: Integers,
    empty: Integers,
    tied: NDArray[np.bool_],
    first: Integers,
    second: Integers,
    own: Integers,
    penalty: int,
    enough: int,
) -> int:
    """An upper bound of the largest value over forests and parent sets of the class.

    Whenever the largest value exceeds ``enough`` it is the largest value; otherwise it is at most
    ``enough``. The arborescence for a class without parents gives a quick bound for every parent
    set: its members have {}, an arc from the root that falls short of its prices by so much (or
    exceeds them, where {} needs the set). Only sets whose quick bound is above ``enough`` are
    looked at any further.

    Parameters
    ----------
    arcs, lonely, empty
        Value of {class, u}, (n, n), of {class} and of {}, (n,), for every feature.
    tied
        Features that must not have {} without being a parent of the class.
    first, second, own
        Members (-1: none) and values of the parent sets of the class.
    penalty
        What an arc that is not allowed costs.
    """
    n = arcs.shape[0]
    roots = np.where(tied, lonely, np.maximum(lonely, empty))
    weights = np.empty((n, n + 1), dtype=np.int64)
    weights[:, :n] = arcs
    weights[:, n] = roots
    to_root = np.empty(n, dtype=np.int64)
    scratch = np.empty(n, dtype=np.int64)
    without = best_arborescence(weights, to_root)
    result = -(2**62)
    for s in range(own.size):
        quick = without + own[s]
        for member in (first[s], second[s]):
            if member >= 0:
                quick -= to_root[member] - empty[member]
        if quick <= enough:
            result = max(result, quick)
            continue
        weights[:, :n] = arcs
        weights[:, n] = roots
        for member in (first[s], second[s]):
            if member >= 0:
                weights[member, :n] = -penalty
                weights[member, n] = empty[member]
        result = max(result, best_arborescence(weights, scratch) + own[s])
    return result
