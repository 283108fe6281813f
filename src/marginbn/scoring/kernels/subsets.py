"""Sums over the joint states of many sets of variables, and the lattice of parent sets.

A set is a mask of 64 bits. Rows are divided into groups that agree in the variables of a set, one
variable after the other from the highest; sets that come in increasing order share their highest
variables, so mostly one division is new.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from marginbn.solvers.compile import entry, kernel

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Masks = NDArray[np.uint64]
Codes = NDArray[np.int32]


@kernel
def divide(group: Codes, n_groups: int, column: Codes, arity: int, label: Codes, out: Codes) -> int:
    """Groups of rows that agree in one more variable; returns how many there are."""
    label[: n_groups * arity] = -1
    found = 0
    for row in range(len(column)):
        cell = group[row] * arity + column[row]
        if label[cell] < 0:
            label[cell] = found
            found += 1
        out[row] = label[cell]
    return found


@kernel
def log_gamma_rise(count: float, prior: float) -> float:
    """log(Gamma(prior + count) / Gamma(prior))."""
    return math.lgamma(prior + count) - math.lgamma(prior)


@kernel
def entropy_sum(sums: FloatArray, n_groups: int) -> float:
    """sum of n log n."""
    total = 0.0
    for k in range(n_groups):
        total += sums[k] * math.log(sums[k])
    return total


@kernel
def gamma_sum(sums: FloatArray, n_groups: int, prior: float, whole: bool, tally: IntArray) -> float:
    """sum of log(Gamma(prior + n) / Gamma(prior)); equal whole counts are evaluated once."""
    total = 0.0
    if not whole:
        for k in range(n_groups):
            total += log_gamma_rise(sums[k], prior)
        return total
    for k in range(n_groups):
        tally[int(sums[k])] += 1
    for k in range(n_groups):
        count = int(sums[k])
        if tally[count] > 0:
            total += tally[count] * log_gamma_rise(sums[k], prior)
            tally[count] = 0
    return total


@entry
def sum_sets(
    columns: Codes,
    arities: IntArray,
    weights: FloatArray,
    whole: bool,
    masks: Masks,
    priors: FloatArray,
    sums: FloatArray,
    observed: IntArray,
) -> None:
    """Fill ``sums`` (sets, kinds) and ``observed`` (sets,), the number of groups of each set.

    ``columns`` (variables, rows); ``masks`` increase. Without kinds of ``priors`` (sets, kinds) the
    one sum is that of n log n, otherwise those of :func:`gamma_sum`.
    """
    n_variables, n_rows = columns.shape
    groups = np.zeros((n_variables + 1, n_rows), np.int32)
    counts = np.ones(n_variables + 1, np.int64)
    path = np.full(n_variables + 1, -1)
    label = np.empty(n_rows * arities.max(), np.int32)
    weight_of = np.empty(n_rows)
    tally = np.zeros(int(weights.sum()) + 2 if whole else 1, np.int64)
    one = np.uint64(1)
    for k in range(len(masks)):
        depth = 0
        fresh = False
        for v in range(n_variables - 1, -1, -1):
            if (masks[k] >> np.uint64(v)) & one == np.uint64(0):
                continue
            depth += 1
            if fresh or path[depth] != v:
                fresh = True
                path[depth] = v
                counts[depth] = divide(
                    groups[depth - 1],
                    counts[depth - 1],
                    columns[v],
                    arities[v],
                    label,
                    groups[depth],
                )
        if depth < n_variables:
            path[depth + 1] = -1
        weight_of[: counts[depth]] = 0.0
        for row in range(n_rows):
            weight_of[groups[depth, row]] += weights[row]
        observed[k] = counts[depth]
        if priors.shape[1] == 0:
            sums[k, 0] = entropy_sum(weight_of, counts[depth])
        for kind in range(priors.shape[1]):
            sums[k, kind] = gamma_sum(weight_of, counts[depth], priors[k, kind], whole, tally)


@kernel
def position(masks: Masks, mask: int) -> int:
    """Where a mask stands among increasing ones, -1 if it does not."""
    low = 0
    high = len(masks)
    while low < high:
        middle = (low + high) // 2
        if masks[middle] < mask:
            low = middle + 1
        else:
            high = middle
    return low if low < len(masks) and masks[low] == mask else -1


@entry
def extend_sets(opened: Masks, free: Masks) -> Masks:
    """Sets of one more member of which all subsets of one less are open.

    ``opened`` increase and have the same size; ``free`` are the single bits, increasing.
    """
    found = np.empty(16, np.uint64)
    n_found = 0
    for mask in opened:
        for bit in free:
            if bit <= mask:  # the new member is the highest
                continue
            larger = mask | bit
            whole = True
            for other in free:
                if other >= bit:
                    break
                if larger & other and position(opened, larger ^ other) < 0:
                    whole = False
                    break
            if whole:
                if n_found == len(found):
                    found = np.concatenate((found, found))
                found[n_found] = larger
                n_found += 1
    return np.sort(found[:n_found])


@entry
def best_subsets(sets: Masks, smaller: Masks, best: FloatArray, free: Masks) -> FloatArray:
    """The best score of any proper subset, given that of all sets of one member less."""
    result = np.full(len(sets), -np.inf)
    for k in range(len(sets)):
        for bit in free:
            if sets[k] & bit:
                place = position(smaller, sets[k] ^ bit)
                if place >= 0:
                    result[k] = max(result[k], best[place])
    return result


@entry
def useless_members(
    sets: Masks,
    smaller: Masks,
    free: Masks,
    arities: IntArray,
    price: FloatArray,
    lost: FloatArray,
    entropy: FloatArray,
    own_entropy: FloatArray,
) -> NDArray[np.bool_]:
    """Whether a set has a member that cannot pay for itself, there or in any superset.

    Of each set of one member less: ``price`` of doubling its states, ``lost`` likelihood of the
    child, ``entropy`` sum of n log n. ``own_entropy`` is that of the sets, infinite if unknown;
    ``arities`` those of the free bits.
    """
    result = np.zeros(len(sets), np.bool_)
    for k in range(len(sets)):
        for b in range(len(free)):
            if not sets[k] & free[b]:
                continue
            place = position(smaller, sets[k] ^ free[b])
            if place < 0:
                continue
            gain = lost[place]
            if own_entropy[k] < np.inf:
                gain = min(gain, entropy[place] - own_entropy[k])
            if gain < price[place] * (arities[b] - 1):
                result[k] = True
                break
    return result
