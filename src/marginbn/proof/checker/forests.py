"""The largest value of a forest with class parents, in whole numbers.

Features are numbered from 0 here, the class is apart. A feature has the parents {} or {class},
which makes it a root, or {class, another feature}, which is an arc. The arcs form a forest, and a
parent of the class has {}. For a fixed parent set of the class the best forest is a maximum
arborescence of the graph in which one more node, numbered n, stands for "root".

Whole numbers make large constants harmless: an arc that is not allowed weighs -2^f, an edge that
must be there adds 2^b to both of its arcs, with 2^f >> n 2^b >> n |values|. A forest has at most
one arc of each edge, so the best one has all edges that must be there unless no forest has.
:func:`marginbn.proof.checker.bounds.room` says how large values may be, so that nothing overflows
64 bits. Nothing here is compiled: NumPy and Python are all that has to be trusted.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

LOWEST = -(2**62)
"""Less than any value: an arc that does not exist."""


def contract_cycles(chosen: list[int]) -> tuple[list[int], int]:
    """New numbers of the nodes and the root, equal for the members of a cycle of chosen arcs, and
    how many there are without the root.
    """
    n = len(chosen)
    group = [-1] * (n + 1)
    mark = [-1] * n
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


def best_arborescence(weights: Integers) -> tuple[int, Integers]:
    """Largest sum of one entering arc per node without cycles, and prices of the way to each node.

    ``weights[child, parent]`` has n rows and n + 1 columns, the last of them the root. Every node
    takes its best entering arc; the arcs of a cycle are taken together as one node, and an arc that
    enters it at v replaces the one chosen for v, so its weight is reduced by that of the chosen
    one.

    The reduced weights of the arcs taken are *prices* y: their sum is the value, an arc weighs at
    most the sum of the prices of everything it enters, and prices of contracted cycles are not
    positive. So a solution that uses an arc is worth at most the value minus what the arc falls
    short of its prices, one such term for every arc. The second result (n,) is the sum of the
    prices that an arc from the root enters on its way to each node.
    """
    w = weights.copy()
    n = len(w)
    np.fill_diagonal(w, LOWEST)
    total = 0
    top = np.arange(n)  # what contains each of the original nodes
    prices = np.zeros(n, dtype=np.int64)
    while True:
        best = w.max(axis=1, initial=LOWEST)
        chosen = np.where(w[:, n] == best, n, w.argmax(axis=1))  # the root first: fewer cycles
        total += int(best.sum())
        prices += best[top]
        groups, count = contract_cycles(chosen.tolist())
        if count == n:
            return total, prices
        group = np.array(groups)
        smaller = np.full((count, count + 1), LOWEST, dtype=np.int64)
        np.maximum.at(smaller, (group[:n, None], group[None, :]), w - best[:, None])
        np.fill_diagonal(smaller, LOWEST)
        w, n, top = smaller, count, group[top]


def best_forest(
    arcs: Integers,
    class_only: Integers,
    empty: Integers,
    tied: NDArray[np.bool_],
    class_sets: Integers,
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
    arcs, class_only, empty
        Value of {class, u}, (n, n), of {class} and of {}, (n,), for every feature.
    tied
        Features that must not have {} without being a parent of the class.
    class_sets, own
        Members (S, 2), -1 for none, and values (S,) of the parent sets of the class.
    penalty
        What an arc that is not allowed costs.
    """
    roots = np.where(tied, class_only, np.maximum(class_only, empty))
    plain = np.column_stack([arcs, roots])
    without, prices = best_arborescence(plain)
    extra = np.append(empty - prices, 0)  # the last for "no member", which is number -1
    quick = own + extra[class_sets].sum(axis=1) + without
    result = int(quick[quick <= enough].max(initial=LOWEST))
    for s in np.flatnonzero(quick > enough):
        members = class_sets[s][class_sets[s] >= 0]
        weights = plain.copy()
        weights[members, :-1] = -penalty
        weights[members, -1] = empty[members]
        result = max(result, best_arborescence(weights)[0] + int(own[s]))
    return result
