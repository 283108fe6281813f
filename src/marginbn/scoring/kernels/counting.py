"""Sums over the joint states of many sets of variables, and scores without cancellation.

Rows are divided into groups that agree in the members of a set, for many sets one after the other.
Sets come sorted by their members: of two sets the one that has the first variable in which they
differ comes first. So sets that share their first members stand together and share the divisions
by these, and mostly the division by the last member is all that is new.

``docs/theory/rounding.rst`` has the formulas of the scores, in which nothing large cancels. Sums
carry what rounding took from them along (Neumaier), so their error is that of a few roundings of
the terms' sizes, however many terms there are.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from marginbn.problem.array_types import CodeArray, FloatArray, IntArray, WordArray
from marginbn.solvers.compile import entry, kernel


class CodedRows(NamedTuple):
    """The rows of a table: codes (variables, rows), arities and weights."""

    columns: CodeArray
    arities: IntArray
    weights: FloatArray | CodeArray


class Divisions(NamedTuple):
    """The rows divided by one variable after the other, and room for the next division."""

    path: IntArray  # (levels,) the variables that divide them so far, -1 beyond
    counts: IntArray  # (levels,) groups before the first division, after it and so on
    groups: CodeArray  # (levels, rows) the group of each row
    label: CodeArray  # (rows x largest arity,)
    members: IntArray  # (levels,) of the set in hand


@kernel
def lowest(word: int) -> int:
    """The lowest bit of a word that is not zero."""
    v = 0
    for half in (32, 16, 8, 4, 2, 1):
        if word & ((np.uint64(1) << np.uint64(half)) - np.uint64(1)) == np.uint64(0):
            word >>= np.uint64(half)  # type: ignore[assignment]
            v += half
    return v


@kernel
def list_members(mask: WordArray, members: IntArray) -> int:
    """Members from the lowest up; returns how many."""
    n_members = 0
    for w in range(len(mask)):
        left = mask[w]
        while left != np.uint64(0):
            members[n_members] = 64 * w + lowest(left)
            n_members += 1
            left &= left - np.uint64(1)
    return n_members


@kernel
def cell_of(group: int, arity: int, state: int) -> int:
    """The place of a state among those of all groups; unsigned, so that no check is made whether
    it is counted from the end.
    """
    return np.uintp(np.uint32(group) * np.uint32(arity) + np.uint32(state))  # type: ignore[return-value]


@kernel
def divide(
    group: CodeArray, n_groups: int, column: CodeArray, arity: int, label: CodeArray, out: CodeArray
) -> int:
    """Groups of rows that agree in one more variable; returns how many there are."""
    label[: n_groups * arity] = -1
    found = np.int32(0)
    for row in range(len(column)):  # without a branch: no processor could predict it
        cell = cell_of(group[row], arity, column[row])
        is_new = label[cell] < 0
        own = found if is_new else label[cell]
        label[cell] = own
        out[row] = own
        found += np.int32(is_new)
    return int(found)


@kernel
def walk(divisions: Divisions, rows: CodedRows, mask: WordArray, but: int) -> int:
    """Divide the rows by the members of a set, but so many at the end; returns by how many."""
    path, counts, groups, label, members = divisions
    n_members = list_members(mask, members)
    members[n_members] = len(members)  # the end
    depth = max(n_members - but, 0)
    fresh = False
    for level in range(depth):
        v = members[level]
        if fresh or path[level] != v:
            fresh = True
            path[level] = v
            counts[level + 1] = divide(
                groups[level],
                counts[level],
                rows.columns[v],
                rows.arities[v],
                label,
                groups[level + 1],
            )
    if fresh:
        path[depth:] = -1
    return depth


# --- sums over joint states ---

SMALL = 16.0
"""Below this Stirling's series has too few digits, and log-gamma itself loses none."""

DIRECT = 100.0
"""Largest number inside d(x) below :data:`SMALL`: a term of its own in the size of a score."""

HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
"""The constant of Stirling's formula."""


@kernel
def log_gamma(x: float) -> float:
    """Stirling's series is several times faster; its error is below 1e-12."""
    if x < SMALL:
        return math.lgamma(x)
    square = 1.0 / (x * x)
    series = (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680)))) / x
    return (x - 0.5) * math.log(x) - x + HALF_LOG_TWO_PI + series


@kernel
def rise(count: float, prior: float) -> float:
    """What a joint state with a count adds: n log n for a prior of zero, else a rise of log Gamma,
    log(Gamma(prior + n) / Gamma(prior)).
    """
    if count <= 0.0:
        return 0.0
    if prior == 0.0:
        return count * math.log(count)
    return log_gamma(prior + count) - math.lgamma(prior)


@kernel
def sum_rises(
    counts: FloatArray | CodeArray, whole: bool, prior: float, known: FloatArray
) -> float:
    """The sum of :func:`rise` over counts.

    ``known`` has the values of the smallest whole counts, NaN where they are not known yet.
    """
    total = 0.0
    for c in range(len(counts)):
        count = counts[c]
        if not whole or count >= len(known):
            total += rise(float(count), prior)
        elif count > 0:
            value = float(known[int(count)])
            if value != value:
                value = rise(float(count), prior)
                known[int(count)] = value
            total += value
    return total


@kernel
def count_cells(
    group: CodeArray,
    arity: int,
    column: CodeArray,
    weights: FloatArray | CodeArray,
    cells: FloatArray | CodeArray,
) -> None:
    """Weights of the cells of groups and states."""
    for row in range(len(group)):
        cells[cell_of(group[row], arity, column[row])] += weights[row]


@entry
def sum_sets(
    divisions: Divisions,
    rows: CodedRows,
    cells: FloatArray | CodeArray,
    whole: bool,
    masks: WordArray,
    kinds: IntArray,
    priors: FloatArray,
    known: FloatArray,
    sums: FloatArray,
    observed: IntArray,
) -> None:
    """Fill ``sums`` (sets, kinds) and ``observed`` (sets,), the number of states that occur.

    ``kinds`` (sets, kinds) are places in ``priors``; ``known`` (priors, counts) is the memory of
    :func:`rise`. ``cells`` are zero before and after.
    """
    columns = rows.columns
    for k in range(len(masks)):
        depth = walk(divisions, rows, masks[k], 1)
        group = divisions.groups[depth]
        v = divisions.members[depth]
        arity, column = 1, divisions.groups[0]  # of the empty set, all in one group
        if v < len(columns):
            arity, column = rows.arities[v], columns[v]
        count_cells(group, arity, column, rows.weights, cells)
        counts = cells[: divisions.counts[depth] * arity]
        n_found = 0
        for c in range(len(counts)):
            n_found += 1 if counts[c] > 0 else 0
        observed[k] = n_found
        for kind in range(kinds.shape[1]):
            which = kinds[k, kind]
            sums[k, kind] = sum_rises(counts, whole, priors[which], known[which])
        counts[:] = 0


@entry
def count_states(masks: WordArray, arities: IntArray) -> FloatArray:
    """Number of joint states of each set, as a float: it may be huge."""
    total, members = np.ones(len(masks)), np.empty(len(arities), np.int64)
    for k in range(len(masks)):
        for m in range(list_members(masks[k], members)):
            total[k] *= arities[members[m]]
    return total


# --- scores without cancellation ---


@kernel
def add(total: FloatArray, term: float) -> None:
    """Add to a sum: value, what was lost, and the sizes of all terms."""
    value = total[0] + term
    if abs(total[0]) >= abs(term):
        total[1] += (total[0] - value) + term
    else:
        total[1] += (term - value) + total[0]
    total[0] = value
    total[2] += abs(term)


@kernel
def remainder(x: float) -> float:
    """d(x) = lgamma(x) - ((x - 1/2) log x - x + log(2 pi) / 2)."""
    if x < SMALL:
        return math.lgamma(x) - (x - 0.5) * math.log(x) + x - HALF_LOG_TWO_PI
    square = 1.0 / (x * x)
    series = 1 / 1260 - square * (1 / 1680 - square * (1 / 1188 - square * (691 / 360360)))
    return (1 / 12 - square * (1 / 360 - square * series)) / x


@kernel
def log_ratio(count: float, prior: float) -> float:
    """log((a + n) / a)."""
    if count <= prior:
        return math.log1p(count / prior)
    return math.log(count + prior) - math.log(prior)


@kernel
def dirichlet_state(
    counts: FloatArray, prior: float, own_remainder: float, out: FloatArray
) -> None:
    """Log marginal likelihood of one parent state; ``counts`` (r,) are not all zero."""
    r = len(counts)
    rows = 0.0
    largest = 0
    n_zero = 0
    for j in range(r):
        rows += counts[j]
        if counts[j] > counts[largest]:
            largest = j
        if counts[j] == 0.0:
            n_zero += 1
    row_prior = prior * r
    if rows > row_prior:
        total = row_prior + rows
        others = n_zero * prior
        for j in range(r):
            if j != largest and counts[j] > 0.0:
                others += counts[j] + prior
                add(out, (counts[j] + prior) * math.log((counts[j] + prior) / total))
        add(out, (counts[largest] + prior) * math.log1p(-others / total))
        add(out, n_zero * prior * math.log(prior / total))
        add(out, row_prior * math.log(r))
    else:
        for j in range(r):
            if counts[j] > 0.0:
                share = (r * counts[j] - rows) / (row_prior + rows)
                add(out, (prior + counts[j]) * math.log1p(share))
        add(out, n_zero * prior * math.log1p(-rows / (row_prior + rows)))
        add(out, -rows * math.log(r))
    for j in range(r):
        if counts[j] > 0.0:
            add(out, -0.5 * log_ratio(counts[j], prior))
            add(out, remainder(prior + counts[j]))
            add(out, -own_remainder)
            out[2] += 2.0 * DIRECT
    add(out, 0.5 * log_ratio(rows, row_prior))
    add(out, -remainder(row_prior + rows))
    add(out, remainder(row_prior))
    out[2] += 2.0 * DIRECT


@entry
def exact_scores(
    divisions: Divisions,
    rows: CodedRows,
    child: int,
    cells: FloatArray,
    masks: WordArray,
    priors: FloatArray,
    penalties: FloatArray,
    values: FloatArray,
    sizes: FloatArray,
) -> None:
    """Fill ``values`` and ``sizes`` (sets,) of a child's parent sets.

    ``cells`` are zero before and after. ``priors`` (sets,) are the prior counts of a cell, zero for
    a likelihood; ``penalties`` (sets,) are subtracted.
    """
    r = rows.arities[child]
    out = np.empty(3)
    for k in range(len(masks)):
        depth = walk(divisions, rows, masks[k], 0)
        count_cells(divisions.groups[depth], r, rows.columns[child], rows.weights, cells)
        out[:] = 0.0
        own_remainder = remainder(priors[k]) if priors[k] > 0.0 else 0.0
        for h in range(divisions.counts[depth]):
            state = cells[h * r : (h + 1) * r]
            if priors[k] > 0.0:
                dirichlet_state(state, priors[k], own_remainder, out)
            else:  # a likelihood
                total = state.sum()
                for j in range(r):
                    if state[j] > 0.0:
                        add(out, state[j] * math.log(state[j] / total))
            state[:] = 0.0
        add(out, -penalties[k])
        values[k] = out[0] + out[1]
        sizes[k] = out[2]
