"""From the sets of one layer to those with one more variable.

The next layer is a table of places that sets are hashed to; an infinite value marks an empty one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marginbn.problem.array_types import FloatArray, IntArray, WordArray
from marginbn.solvers.compile import entry, kernel

ONE = np.uint64(1)
"""One bit, as a word."""

Layer = tuple[WordArray, FloatArray]
"""Sets of one size with their costs."""
Lists = tuple[IntArray, WordArray, FloatArray]
"""Offsets, parent sets, costs."""
Clusters = tuple[WordArray, FloatArray]
"""Sets and multipliers."""
Places = tuple[WordArray, FloatArray, NDArray[np.uint8]]
"""Sets, values and newest variables of a table."""


@kernel
def place_of(key: np.uint64, keys: WordArray, values: FloatArray) -> int:
    """Where a set is, or the empty place where it belongs."""
    last = len(keys) - 1
    number = key * np.uint64(0x9E3779B97F4A7C15)
    place = np.int64((number ^ (number >> np.uint64(31))) & np.uint64(last))
    while values[place] < np.inf and keys[place] != key:
        place = np.int64((place + 1) & last)
    return int(place)


@kernel
def rest_of(placed: np.uint64, clusters: Clusters, loses: FloatArray) -> float:
    """Sum of the multipliers outside ``placed``; fills what each variable would take away."""
    members, multipliers = clusters
    total = 0.0
    loses[:] = 0.0
    for c in range(len(members)):
        if members[c] & placed != 0:
            continue
        total += multipliers[c]
        left = members[c]
        v = 0
        while left != 0:
            if left & ONE:
                loses[v] += multipliers[c]
            left >>= ONE
            v += 1
    return total


@entry
def expand(
    layer: Layer,
    first: int,
    last: int,
    lists: Lists,
    clusters: Clusters,
    upper: float,
    table: Places,
    state: FloatArray,
) -> int:
    """Add one variable to the sets from ``first`` to before ``last`` in every way that can pay.

    ``state`` is (sets in the table, least value with the rest). Returns the first set that was not
    handled because the table is half full.
    """
    (sets, best), (offsets, masks, cost), (keys, values, newest) = layer, lists, table
    n = len(offsets) - 1
    loses = np.empty(n)
    for s in range(first, last):
        if 2 * (state[0] + n) > len(keys):
            return s
        placed = sets[s]
        rest = rest_of(placed, clusters, loses)
        for v in range(n):
            bit = ONE << np.uint64(v)
            if placed & bit != 0:
                continue
            own_rest = max(0.0, rest - loses[v])
            budget = upper - best[s] - own_rest
            if budget < 0.0:
                continue
            for k in range(offsets[v], offsets[v + 1]):
                if cost[k] > budget:
                    break
                if masks[k] & ~placed == 0:
                    value = best[s] + cost[k]
                    place = place_of(placed | bit, keys, values)
                    if value < values[place]:
                        if values[place] == np.inf:
                            state[0] += 1.0
                            keys[place] = placed | bit
                        values[place] = value
                        newest[place] = v
                        state[1] = min(state[1], value + own_rest)
                    break
    return last


@entry
def enlarge(table: Places, larger: Places) -> None:
    """Move everything into a larger table."""
    keys, values, newest = table
    for place in range(len(keys)):
        if values[place] < np.inf:
            other = place_of(keys[place], larger[0], larger[1])
            larger[0][other] = keys[place]
            larger[1][other] = values[place]
            larger[2][other] = newest[place]
