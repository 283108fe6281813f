"""Scores without cancellation, and how far rounding can have moved them.

The formulas are those of ``problem/scores.py``, term by term. Sums carry what rounding took from
them along (Neumaier), so their error does not grow with the number of terms.
"""

from __future__ import annotations

import math

import numpy as np

from marginbn.problem.array_types import FloatArray, WordArray
from marginbn.scoring.kernels.counting import HALF_LOG_TWO_PI, SMALL, count_cells
from marginbn.scoring.kernels.divisions import (
    FIRST,
    CodedRows,
    Stack,
    column_of,
    enter,
    group_of,
    start,
    walk,
)
from marginbn.solvers.compile import entry, kernel

DIRECT = 100.0
"""As in ``problem/scores.py``."""


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


@kernel
def likelihood_state(counts: FloatArray, out: FloatArray) -> None:
    """Log likelihood of one parent state."""
    rows = 0.0
    for j in range(len(counts)):
        rows += counts[j]
    for j in range(len(counts)):
        if counts[j] > 0.0:
            add(out, counts[j] * math.log(counts[j] / rows))


@entry
def exact_scores(
    stack: Stack,
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

    The last column is the child's; ``cells`` are zero before and after. ``priors`` (sets,) are the
    prior counts of a cell, zero for a likelihood; ``penalties`` (sets,) are subtracted.
    """
    columns, r = rows.columns, rows.arities[child]
    out = np.empty(3)
    start(stack, columns.shape[1], len(masks))
    top = 0
    for k in range(len(masks)):
        top = enter(stack, rows, masks, k, top)
        depth = walk(stack, rows, top, 0)
        group = group_of(stack, top, depth)
        first = stack.tables[top, FIRST]
        column = column_of(stack, columns, top, len(columns) - 1)
        count_cells(group, r, column, stack.weights[first : first + len(group)], cells)
        out[:] = 0.0
        own_remainder = remainder(priors[k]) if priors[k] > 0.0 else 0.0
        for h in range(stack.counts[top, depth]):
            state = cells[h * r : (h + 1) * r]
            if priors[k] > 0.0:
                dirichlet_state(state, priors[k], own_remainder, out)
            else:
                likelihood_state(state, out)
            state[:] = 0.0
        add(out, -penalties[k])
        values[k] = out[0] + out[1]
        sizes[k] = out[2]
