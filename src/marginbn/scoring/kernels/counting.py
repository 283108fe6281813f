"""Sums over the joint states of many sets of variables.

Rows are divided into groups that agree in the variables of a set, one variable after the other;
sets that share their first variables and come one after the other share these divisions, so that
mostly one pass over the rows is new: that of the last variable, which only counts.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from marginbn.scoring.kernels.set_tables import has
from marginbn.solvers.compile import entry, kernel

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Masks = NDArray[np.uint64]
Codes = NDArray[np.int32]

MANY = 3
"""Cells per row from which on it is quicker to look at the rows than at the cells."""


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
def walk(
    members: IntArray,
    depth: int,
    path: IntArray,
    counts: IntArray,
    groups: Codes,
    columns: Codes,
    arities: IntArray,
    label: Codes,
) -> None:
    """Divide the rows by the first members; ``path`` says which divisions are there already."""
    fresh = False
    for level in range(depth):
        v = members[level]
        if fresh or path[level] != v:
            fresh = True
            path[level] = v
            counts[level + 1] = divide(
                groups[level], counts[level], columns[v], arities[v], label, groups[level + 1]
            )
    if fresh:
        path[depth:] = -1


@kernel
def list_members(mask: NDArray[np.uint64], n_variables: int, members: IntArray) -> int:
    """Members from the lowest up; returns how many."""
    n_members = 0
    for v in range(n_variables):
        if has(mask, v):
            members[n_members] = v
            n_members += 1
    return n_members


@kernel
def log_gamma_rise(count: float, prior: float) -> float:
    """log(Gamma(prior + count) / Gamma(prior))."""
    return math.lgamma(prior + count) - math.lgamma(prior)


@kernel
def rise(count: float, whole: bool, prior: float, known: FloatArray) -> float:
    """What a joint state with a count adds: n log n for a prior of zero, else a rise of log Gamma.

    ``known`` has the values of the smallest whole counts, NaN where nobody has asked yet.
    """
    if whole and count < len(known):
        value = float(known[int(count)])
        if value == value:
            return value
    value = count * math.log(count) if prior == 0.0 else log_gamma_rise(count, prior)
    if whole and count < len(known):
        known[int(count)] = value
    return value


@entry
def sum_sets(
    columns: Codes,
    arities: IntArray,
    weights: FloatArray | IntArray,
    whole: bool,
    masks: Masks,
    kinds: IntArray,
    priors: FloatArray,
    known: FloatArray,
    sums: FloatArray,
    observed: IntArray,
) -> None:
    """Fill ``sums`` (sets, kinds) and ``observed`` (sets,), the number of states that occur.

    ``columns`` (variables, rows). ``kinds`` (sets, kinds) says which of the ``priors`` a sum has;
    ``known`` (priors, counts) is the memory of :func:`rise`.
    """
    n_variables, n_rows = columns.shape
    groups = np.zeros((n_variables + 1, n_rows), np.int32)
    counts = np.ones(n_variables + 1, np.int64)
    path = np.full(n_variables + 1, -1)
    label = np.empty(n_rows * arities.max(), np.int32)
    cells = np.zeros(n_rows * arities.max(), weights.dtype)
    found = np.empty(n_rows + 1, weights.dtype)
    members = np.empty(n_variables, np.int64)
    for k in range(len(masks)):
        depth = list_members(masks[k], n_variables, members)
        walk(members, depth - 1, path, counts, groups, columns, arities, label)
        v = members[depth - 1] if depth > 0 else 0
        arity = arities[v] if depth > 0 else 1
        group = groups[max(depth - 1, 0)]
        column = columns[v] if depth > 0 else groups[0]
        n_cells = counts[max(depth - 1, 0)] * arity
        for row in range(n_rows):
            cells[group[row] * arity + column[row]] += weights[row]
        if n_cells > MANY * n_rows:  # most cells are empty: ask the rows which are not
            n_counts = 0
            for row in range(n_rows):
                cell = group[row] * arity + column[row]
                found[n_counts] = cells[cell]
                n_counts += 1 if cells[cell] > 0 else 0
                cells[cell] = 0
        else:
            n_counts = 0
            for cell in range(n_cells):
                found[n_counts] = cells[cell]
                n_counts += 1 if cells[cell] > 0 else 0
                cells[cell] = 0
        observed[k] = n_counts
        for kind in range(kinds.shape[1]):
            which = kinds[k, kind]
            total = 0.0
            for c in range(n_counts):
                total += rise(float(found[c]), whole, priors[which], known[which])
            sums[k, kind] = total


@entry
def count_states(masks: Masks, arities: IntArray) -> FloatArray:
    """Number of joint states of each set, as a float: it may be huge."""
    total = np.ones(len(masks))
    for k in range(len(masks)):
        for w in range(masks.shape[1]):
            left = masks[k, w]
            v = 64 * w
            while left != np.uint64(0):
                if left & np.uint64(1):
                    total[k] *= arities[v]
                left >>= np.uint64(1)
                v += 1
    return total


@entry
def limit_supersets(
    columns: Codes,
    arities: IntArray,
    child: int,
    masks: Masks,
    mixed: IntArray,
    finest: FloatArray,
    left: FloatArray,
    relief: float,
    further: FloatArray,
    limits: FloatArray,
) -> None:
    """Lower ``limits`` (sets,) to what marginal likelihoods of supersets cannot exceed.

    Of the rows ``mixed`` that others equal in all but the child: ``finest``, the log likelihood
    given all variables but the child; ``left``, that of their group without one row of each kind
    (empty where it is zero for all). Leaving a row out relieves a likelihood by at most ``relief``.
    ``further`` (sets,) is what a further kind of row costs beyond log r.
    """
    n_variables, n_rows = columns.shape
    groups = np.zeros((n_variables + 1, n_rows), np.int32)
    counts = np.ones(n_variables + 1, np.int64)
    path = np.full(n_variables + 1, -1)
    label = np.empty(n_rows * arities.max(), np.int32)
    r = arities[child]
    column = columns[child]
    seen = np.zeros(n_rows * r, np.uint8)
    likelihood = np.zeros(n_rows)
    less = np.zeros(n_rows)
    members = np.empty(n_variables, np.int64)
    kind = math.log(r)
    for k in range(len(masks)):
        depth = list_members(masks[k], n_variables, members)
        walk(members, depth, path, counts, groups, columns, arities, label)
        group = groups[depth]
        for row in range(n_rows):
            seen[group[row] * r + column[row]] = 1
        for m in range(len(mixed)):
            likelihood[group[mixed[m]]] += finest[m]
        for m in range(len(left)):
            less[group[mixed[m]]] += left[m]
        relieved = 2.0 * (relief - kind) - further[k]
        if relieved > 0.0 or relief - kind > further[k]:
            relieved = 0.0
        limit = 0.0
        for state in range(counts[depth]):
            n_kinds = 0
            for cell in range(state * r, (state + 1) * r):
                n_kinds += seen[cell]
                seen[cell] = 0
            value = -kind * n_kinds
            if likelihood[state] < 0.0:  # two kinds or more will stay together
                value = min(value + less[state] - further[k], likelihood[state] + relieved)
                likelihood[state] = 0.0
                less[state] = 0.0
            limit += value
        limits[k] = min(limits[k], limit)
