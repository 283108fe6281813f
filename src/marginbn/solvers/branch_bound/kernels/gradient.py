"""What a bounding iteration does with all rows: the step length and the gradient.

**Step length** of pairwise Frank-Wolfe on the smoothed objective. Along ``t + s d`` the slope is
``h'(s) = sum_m u_m(t_m + s d_m) . d_m`` plus a constant for the linear scores, and h is concave.
Samples whose dual weights cannot change on the whole segment (all rivals above the smoothing zone
at both ends, or at both ends the same rival below it and more than mu below all others) are summed
once; the others are listed and evaluated again for every trial step. The zero of h' is bracketed
and found by the Illinois rule; a tenth of the initial slope is accurate enough.

**Gradients** ``g = linear + A^T u`` are updated only for rows whose dual weight changed. Only
*live* columns are needed: allowed slots of features with a choice, and class sets while more than
one is left. They are kept as spans of the column index; gaps of less than one vector register are
not worth a new span. Everything decided is summed in a constant margin vector instead:
``u . fixed`` belongs to the constant of the bound. A span must therefore never reach across a
decided feature: its margins would count twice.
"""

from __future__ import annotations

import numpy as np

from marginbn.solvers.branch_bound.kernels.duals import (
    add_column,
    most_rows,
    single_weight,
    smooth_weights,
)
from marginbn.solvers.branch_bound.kernels.records import (
    Box,
    FloatArray,
    Instance,
    IntArray,
    column_of,
    copy_array,
    only_true,
)
from marginbn.solvers.compile import kernel

MAX_TRIALS = 8
"""Trial steps; after them the longest one known to be uphill is taken."""

ACCURACY = 0.1
"""A slope this small against the initial one ends the search for a step."""


@kernel
def step_length(
    inst: Instance,
    t: FloatArray,
    d: FloatArray,
    mu: float,
    slope: float,
    linear: float,
    largest: float,
    listed: IntArray,
) -> float:
    """The s in [0, largest] where the smoothed objective along d is maximal; ``slope`` is h'(0),
    which is positive.
    """
    if inst.weights.size == 0:
        return largest
    constant, count = _split_samples(inst, t, d, mu, largest, listed)
    constant += linear
    low, high = 0.0, largest
    slope_low = slope
    slope_high = constant + _slope(inst, t, d, mu, largest, listed, count)
    if slope_high >= 0.0:
        return largest
    for _ in range(MAX_TRIALS):
        s = low + (high - low) * slope_low / (slope_low - slope_high)
        value = constant + _slope(inst, t, d, mu, s, listed, count)
        if abs(value) < ACCURACY * slope:
            return s
        if value > 0.0:
            low, slope_low = s, value
            slope_high *= 0.5  # Illinois: the end that stays moves nearer
        else:
            high, slope_high = s, value
            slope_low *= 0.5
    return low


@kernel
def _split_samples(
    inst: Instance, t: FloatArray, d: FloatArray, mu: float, largest: float, listed: IntArray
) -> tuple[float, int]:
    """Slope of the samples with constant weights, and the number of the others."""
    above, below = inst.gamma + mu, inst.gamma - mu
    constant, count = 0.0, 0
    for m in range(inst.weights.size):
        row, end_row = inst.starts[m], inst.starts[m + 1]
        if end_row == row + 1:
            end = t[row] + largest * d[row]
            if d[row] == 0.0 or min(t[row], end) >= above:
                continue
            if max(t[row], end) <= below:
                constant += inst.weights[m] * d[row]
                continue
            listed[count] = m
            count += 1
            continue
        here, there = row, row
        for r in range(row + 1, end_row):
            if t[r] < t[here]:
                here = r
            if t[r] + largest * d[r] < t[there] + largest * d[there]:
                there = r
        now, then = t[here], t[there] + largest * d[there]
        if min(now, then) >= above:
            continue
        low = here == there and max(now, then) <= below
        if low and _stands_alone(t, d, row, end_row, here, mu, largest):
            constant += inst.weights[m] * d[here]
            continue
        listed[count] = m
        count += 1
    return constant, count


@kernel
def _stands_alone(
    t: FloatArray, d: FloatArray, begin: int, end: int, lowest: int, mu: float, largest: float
) -> bool:
    """Whether all other rows stay at least mu above the lowest one at both ends."""
    now, then = t[lowest] + mu, t[lowest] + largest * d[lowest] + mu
    for r in range(begin, end):
        if r != lowest and (t[r] < now or t[r] + largest * d[r] < then):
            return False
    return True


@kernel
def _slope(
    inst: Instance, t: FloatArray, d: FloatArray, mu: float, s: float, listed: IntArray, count: int
) -> float:
    total = 0.0
    if inst.weights.size == inst.rows.shape[0]:
        for a in range(count):
            m = listed[a]
            total += inst.weights[m] * d[m] * single_weight(t[m] + s * d[m], inst.gamma, mu)
        return total
    most = most_rows(inst)
    weights, margins = np.empty(most), np.empty(most)
    for a in range(count):
        m = listed[a]
        row, rivals = inst.starts[m], inst.starts[m + 1] - inst.starts[m]
        if rivals == 1:
            p1 = single_weight(t[row] + s * d[row], inst.gamma, mu)
            total += inst.weights[m] * d[row] * p1
            continue
        p, moved = weights[:rivals], margins[:rivals]
        for c in range(rivals):
            moved[c] = t[row + c] + s * d[row + c]
        smooth_weights(moved, inst.gamma, mu, p)
        part = 0.0
        for c in range(rivals):
            part += p[c] * d[row + c]
        total += inst.weights[m] * part
    return total


GAP = 8
"""Live columns closer than this share a span: the numbers in one vector register."""

BLOCK = 4
"""Rows that one pass over the columns adds at a time; lists of rows have room for a last block that
is not full.
"""

PASS_COST = 12.0
"""Blocks that a pass counts in addition to its own in the rounding allowance (``bound.py``)."""


@kernel
def prepare_columns(inst: Instance, box: Box, spans: IntArray, fixed: FloatArray) -> int:
    """Spans of live columns (their number is returned) and the margins of everything decided."""
    n = inst.n_features
    fixed[:] = 0.0
    count, barrier = 0, 0
    for i in range(n):
        offset = column_of(n, i, 0)
        only = only_true(box.allowed[i])
        if only >= 0:
            add_column(inst, offset + only, 1.0, fixed)
            barrier = offset + n + 2
            continue
        for s in range(n + 2):
            if box.allowed[i, s]:
                count = _extend(spans, count, offset + s, barrier)
    only = only_true(box.classes)
    if only >= 0:
        add_column(inst, column_of(n, n, only), 1.0, fixed)
        return count
    for s in range(box.classes.size):
        if box.classes[s]:
            count = _extend(spans, count, column_of(n, n, s), barrier)
    return count


@kernel
def _extend(spans: IntArray, count: int, column: int, barrier: int) -> int:
    """Add a column to the last span, or begin a new one if it is far or behind the barrier."""
    if count > 0 and column - spans[count - 1, 1] < GAP and spans[count - 1, 1] > barrier:
        spans[count - 1, 1] = column + 1
        return count
    spans[count, 0] = column
    spans[count, 1] = column + 1
    return count + 1


@kernel
def add_rows(
    inst: Instance,
    spans: IntArray,
    n_spans: int,
    changed: IntArray,
    delta: FloatArray,
    n_changed: int,
    g: FloatArray,
) -> float:
    """g += sum of delta_k A[changed_k] on the spans; returns what the pass counts in the rounding
    allowance.
    """
    for a in range(n_changed, n_changed + BLOCK - 1):  # the last block may not be full
        delta[a] = 0.0
        changed[a] = changed[0]
    k = 0
    while k < n_changed:
        _add_block(inst.rows, spans, n_spans, changed, delta, k, g)
        k += BLOCK
    return n_changed / BLOCK + 1.0 + PASS_COST


@kernel
def _add_block(
    rows: FloatArray,
    spans: IntArray,
    n_spans: int,
    changed: IntArray,
    delta: FloatArray,
    k: int,
    g: FloatArray,
) -> None:
    d0, d1, d2, d3 = delta[k], delta[k + 1], delta[k + 2], delta[k + 3]
    r0, r1, r2, r3 = changed[k], changed[k + 1], changed[k + 2], changed[k + 3]
    for span in range(n_spans):
        lo, hi = spans[span, 0], spans[span, 1]
        out = g[lo:hi]
        a0, a1, a2, a3 = rows[r0, lo:hi], rows[r1, lo:hi], rows[r2, lo:hi], rows[r3, lo:hi]
        for v in range(out.size):
            out[v] += d0 * a0[v] + d1 * a1[v] + d2 * a2[v] + d3 * a3[v]


@kernel
def fresh_gradient(
    inst: Instance,
    spans: IntArray,
    n_spans: int,
    u: FloatArray,
    changed: IntArray,
    delta: FloatArray,
    g: FloatArray,
) -> float:
    """g from scratch; ends the drift of the incremental updates."""
    copy_array(inst.linear, g)
    count = 0
    for r in range(u.size):
        if u[r] != 0.0:
            changed[count], delta[count] = r, u[r]
            count += 1
    return add_rows(inst, spans, n_spans, changed, delta, count, g)
