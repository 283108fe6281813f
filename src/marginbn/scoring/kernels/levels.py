"""One child climbs its lattice of parent sets: which sets come next.

Sets here are without the base of the lattice; all sets of a level have the same size, and members
are numbered from the lowest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marginbn.scoring.kernels.set_tables import find, has, new_table, toggle
from marginbn.solvers.compile import entry, kernel

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Masks = NDArray[np.uint64]


@kernel
def upper_gain(place: NDArray[np.int32], u: int, lost_most: FloatArray, worth: FloatArray) -> float:
    """What member u can gain at most: what the others leave, or what is unknown about u given all
    but one of them.
    """
    gain = float(lost_most[place[u]])
    for w in range(len(place)):
        if w != u:
            gain = min(gain, worth[place[w], u if u < w else u - 1])
    return gain


@entry
def extend_sets(
    opened: Masks,
    free: IntArray,
    best: FloatArray,
    limit: FloatArray,
    price: FloatArray,
    arities: IntArray,
    lost_most: FloatArray,
    lost_least: FloatArray,
    worth: FloatArray,
    least: float,
) -> tuple[Masks, NDArray[np.int32], FloatArray, FloatArray]:
    """Sets of one more member of which all subsets of one less are open, where they can matter.

    Of each open set: the ``best`` score of it and its subsets, the ``limit`` of its supersets'
    scores. Where states have a price (else ``price`` is empty): the price of its states, the
    smallest and largest likelihood that may be lost, and for each of its members the ``worth``,
    what is unknown about the member given the others; ``arities`` are those of ``free``.

    Returns the sets, the numbers of their subsets (sets, members), the best score of a subset, and
    what the likelihood can be at most.
    """
    n_words = opened.shape[1]
    size = 0
    for v in free:
        if len(opened) > 0 and has(opened[0], v):
            size += 1
    found = np.empty((16, n_words), np.uint64)
    places = np.empty((16, size + 1), np.int32)
    below = np.empty(16)
    upper = np.empty(16)
    n_found = 0
    table = new_table(opened)
    larger = np.empty(n_words, np.uint64)
    member = np.empty(size + 1, np.int64)  # as places in ``free``
    place = np.empty(size + 1, np.int32)
    for k in range(len(opened)):
        n_members = 0
        for b in range(len(free)):
            if has(opened[k], free[b]):
                member[n_members] = b
                n_members += 1
        larger[:] = opened[k]
        place[size] = k
        for b in range(member[size - 1] + 1 if size else 0, len(free)):
            toggle(larger, free[b])
            member[size] = b
            top = best[k]
            ceiling = limit[k]
            whole = True
            for m in range(size - 1, -1, -1):
                toggle(larger, free[member[m]])
                other = find(table, opened, larger)
                toggle(larger, free[member[m]])
                if other < 0:
                    whole = False
                    break
                place[m] = other
                top = max(top, best[other])
                ceiling = min(ceiling, limit[other])
            toggle(larger, free[b])
            if not whole or not ceiling > top - least:
                continue
            likelihood = np.inf
            if len(price) > 0:
                useful = True
                for u in range(size + 1):
                    gain = upper_gain(place, u, lost_most, worth)
                    if gain < (price[place[u]] - least) * (arities[member[u]] - 1):
                        useful = False
                        break
                    likelihood = min(likelihood, gain - lost_least[place[u]])
                own_price = price[k] * arities[b]
                can_be_kept = likelihood - own_price > top - least
                stays_open = -2.0 * own_price > top - least
                if not useful or not (can_be_kept or stays_open):
                    continue
            if n_found == len(found):
                found = np.concatenate((found, np.empty_like(found)))
                places = np.concatenate((places, np.empty_like(places)))
                below = np.concatenate((below, np.empty_like(below)))
                upper = np.concatenate((upper, np.empty_like(upper)))
            found[n_found] = opened[k]
            toggle(found[n_found], free[b])
            places[n_found] = place
            below[n_found] = top
            upper[n_found] = likelihood
            n_found += 1
    return found[:n_found], places[:n_found], below[:n_found], upper[:n_found]


@entry
def weigh_members(
    sets: Masks,
    places: NDArray[np.int32],
    free: IntArray,
    arities: IntArray,
    price: FloatArray,
    lost_most: FloatArray,
    lost_least: FloatArray,
    entropy: FloatArray,
    own_entropy: FloatArray,
    least: float,
    worth: FloatArray,
    upper: FloatArray,
) -> BoolArray:
    """Whether each member of a set can pay for itself, now that the set is counted.

    ``entropy`` (sum of n log n) and the other numbers are those of the subsets; ``own_entropy`` is
    that of the sets. Fills ``worth`` (sets, members) and lowers ``upper``.
    """
    useful = np.ones(len(sets), np.bool_)
    for k in range(len(sets)):
        u = 0
        for b in range(len(free)):
            if not has(sets[k], free[b]):
                continue
            below = places[k, u]
            worth[k, u] = max(0.0, entropy[below] - own_entropy[k])
            gain = min(lost_most[below], worth[k, u])
            if gain < (price[below] - least) * (arities[b] - 1):
                useful[k] = False
            upper[k] = min(upper[k], gain - lost_least[below])
            u += 1
    return useful
