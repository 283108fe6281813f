"""Dual weights from margins: the quadratically smoothed minimum.

For one sample let ``s = (t_1, ..., t_C, gamma)`` be its margins and the cap. The smoothed minimum
is

    min over p in the simplex of  p . s + (mu / 2) |p|^2,
    attained at  p_c = max(0, (nu - s_c) / mu),  sum p = 1,

and ``u_c = w p_c`` are dual weights for the rivals. Any ``u >= 0`` with ``sum_c u_c <= w`` gives a
valid bound; the smoothing only decides how good it is. With one rival

    p = clip(1/2 + (gamma - t) / (2 mu), 0, 1).

*Exact feasibility.* p is computed from differences ``s_c - min s`` (nothing cancels when margins
are large and mu small); its sum can exceed 1 by rounding, so it is divided by its own sum times
``1 + 8 (C + 2) eps`` whenever the sum comes near 1. The products ``w p_c`` then add up to at most w
in exact arithmetic, not only in floating point.

*Stale weights.* A sample whose weights would move by less than ``stale * w`` keeps its old ones:
still feasible, and its rows need no gradient update.

What a bounding iteration does with all rows: the step length and the gradient.

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

from marginbn.problem.array_types import EPS, FloatArray, IntArray
from marginbn.solvers.branch_bound.kernels import records
from marginbn.solvers.branch_bound.kernels.coded import add_coded_column
from marginbn.solvers.branch_bound.kernels.records import Box, Instance
from marginbn.solvers.compile import kernel, vectorised

ROUNDINGS = 8.0
"""Of each of the C + 2 terms behind a sum of weights, all roundings together: a few in the weight,
one in the sum, the division and the product, and some to spare.
"""


@kernel
def single_weight(t: float, gamma: float, mu: float) -> float:
    """The weight of the only rival."""
    return min(1.0, max(0.0, 0.5 + (gamma - t) / (2.0 * mu)))


@kernel
def smooth_weights(
    t: FloatArray, first: int, size: int, gamma: float, mu: float, p: FloatArray
) -> None:
    """Fill p[:size] with the weights of the rivals in rows first, first + 1, ..., which sum to at
    most 1. (Slices would be short, but each of them counts references.)
    """
    lowest = gamma
    for c in range(size):
        lowest = min(lowest, t[first + c])
    cap = gamma - lowest
    count, total, last = 0, 0.0, 0
    for c in range(size):
        p[c] = t[first + c] - lowest
        if p[c] < mu:
            count += 1
            total += p[c]
            last = c
    if count == 1:  # one rival alone, by far the most common case
        weight = single_weight(p[last], cap, mu)
        for c in range(size):
            p[c] = 0.0
        p[last] = weight
        return
    if cap < mu:
        count += 1
        total += cap
    nu = (mu + total) / count
    while True:  # entries at or above nu leave; nu falls until nothing changes
        count_new, total = 0, 0.0
        for c in range(size):
            if p[c] < nu:
                count_new += 1
                total += p[c]
        if cap < nu:
            count_new += 1
            total += cap
        if count_new == count:
            break
        count = count_new
        nu = (mu + total) / count
    _finish(p, size, nu, mu)


@kernel
def _finish(p: FloatArray, size: int, nu: float, mu: float) -> None:
    """Turn differences into safe weights."""
    total = 0.0
    for c in range(size):
        p[c] = max(0.0, (nu - p[c]) / mu)
        total += p[c]
    slack = ROUNDINGS * (size + 2) * EPS
    if total > 1.0 - slack:
        scale = 1.0 / (total * (1.0 + slack))
        for c in range(size):
            p[c] *= scale


@kernel
def update_duals(
    inst: Instance,
    t: FloatArray,
    mu: float,
    stale: float,
    u: FloatArray,
    changed: IntArray,
    delta: FloatArray,
) -> tuple[int, float]:
    """Move u to the weights of margins t, but for stale ones (without that x1.04, at worst x1.13);
    lists changed rows and returns their number and sum_m (w_m - sum_c u_mc).
    """
    count, unused = 0, 0.0
    p = np.empty(most_rows(inst))
    half = 0.5 / mu
    threshold = inst.gamma + mu
    for m in range(inst.weights.size):
        w = inst.weights[m]
        row, rivals = inst.starts[m], inst.starts[m + 1] - inst.starts[m]
        if rivals == 1:
            new = w * min(1.0, max(0.0, 0.5 + (inst.gamma - t[row]) * half))
            move = new - u[row]
            if abs(move) > stale * w or (move != 0.0 and (new == 0.0 or new == w)):
                changed[count] = row
                delta[count] = move
                count += 1
                u[row] = new
            unused += w - u[row]
            continue
        lowest, move = np.inf, 0.0
        for c in range(rivals):
            lowest = min(lowest, t[row + c])
            p[c] = 0.0
        if lowest < threshold:
            smooth_weights(t, row, rivals, inst.gamma, mu, p)
        for c in range(rivals):
            move = max(move, abs(w * p[c] - u[row + c]))
        if move > stale * w or lowest >= threshold:
            for c in range(rivals):
                new = w * p[c]
                if new != u[row + c]:
                    changed[count] = row + c
                    delta[count] = new - u[row + c]
                    count += 1
                    u[row + c] = new
        used = 0.0
        for c in range(rivals):
            used += u[row + c]
        unused += max(0.0, w - used)
    return count, unused


@kernel
def most_rows(inst: Instance) -> int:
    """Largest number of rows of one sample."""
    most = 0
    for m in range(inst.weights.size):
        most = max(most, inst.starts[m + 1] - inst.starts[m])
    return most


@kernel
def objective_of_margins(inst: Instance, t: FloatArray) -> float:
    """offset + sum_m w_m min(gamma, min_c t_mc)."""
    return value_along(inst, inst.offset, t, 0.0, t)


@kernel
def value_along(inst: Instance, start: float, t: FloatArray, step: float, d: FloatArray) -> float:
    """start + sum_m w_m min(gamma, min_c (t + step d)_mc)."""
    total = start
    if inst.weights.size == records.count_rows(inst):
        for m in range(inst.weights.size):
            total += inst.weights[m] * min(inst.gamma, t[m] + step * d[m])
        return total
    for m in range(inst.weights.size):
        lowest = inst.gamma
        for r in range(inst.starts[m], inst.starts[m + 1]):
            lowest = min(lowest, t[r] + step * d[r])
        total += inst.weights[m] * lowest
    return total


@kernel
def add_vertex_margins(inst: Instance, vertex: IntArray, scale: float, t: FloatArray) -> None:
    """t += scale * (margins of a vertex)."""
    n = inst.n_features
    for i in range(n + 1):
        add_column(inst, records.column_of(inst, i, vertex[i]), scale, t)


@kernel
def add_column(inst: Instance, v: int, scale: float, t: FloatArray) -> None:
    """t += scale * column v."""
    if inst.codes.shape[0] > 0:
        add_coded_column(inst, v, scale, t)
        return
    if inst.places.size > 0:
        _add_places(inst.columns[v], inst.places, scale, t)
        return
    records.add_scaled(t, scale, inst.columns[v])


@kernel
def _add_places(column: FloatArray, places: IntArray, scale: float, t: FloatArray) -> None:
    """The same where rows have to be found; apart, so that the other stays small."""
    for r in range(places.size):
        t[r] += scale * column[places[r]]


@kernel
def linear_of_vertex(inst: Instance, g: FloatArray, vertex: IntArray) -> float:
    """g . eta of a vertex."""
    n = inst.n_features
    total = g[records.column_of(inst, n, vertex[n])]
    for i in range(n):
        total += g[records.column_of(inst, i, vertex[i])]
    return float(total)


@kernel
def objective_of_vertex(inst: Instance, vertex: IntArray, t: FloatArray) -> float:
    """The objective of a structure; t is scratch and holds its margins afterwards."""
    records.clear(t[: records.count_rows(inst)])
    add_vertex_margins(inst, vertex, 1.0, t)
    return objective_of_margins(inst, t) + linear_of_vertex(inst, inst.linear, vertex)


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
    if inst.weights.size == records.count_rows(inst):
        for a in range(count):
            m = listed[a]
            total += inst.weights[m] * d[m] * single_weight(t[m] + s * d[m], inst.gamma, mu)
        return total
    most = most_rows(inst)
    p, moved = np.empty(most), np.empty(most)
    for a in range(count):
        m = listed[a]
        row, rivals = inst.starts[m], inst.starts[m + 1] - inst.starts[m]
        if rivals == 1:
            p1 = single_weight(t[row] + s * d[row], inst.gamma, mu)
            total += inst.weights[m] * d[row] * p1
            continue
        for c in range(rivals):
            moved[c] = t[row + c] + s * d[row + c]
        smooth_weights(moved, 0, rivals, inst.gamma, mu, p)
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
        offset = records.column_of(inst, i, 0)
        only = records.only_true(box.allowed[i])
        if only >= 0:
            add_column(inst, offset + only, 1.0, fixed)
            barrier = offset + n + 2
            continue
        for s in range(n + 2):
            if box.allowed[i, s]:
                count = _extend(spans, count, offset + s, barrier)
    only = records.only_true(box.classes)
    if only >= 0:
        add_column(inst, records.column_of(inst, n, only), 1.0, fixed)
        return count
    for s in range(box.classes.size):
        if box.classes[s]:
            count = _extend(spans, count, records.column_of(inst, n, s), barrier)
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
    allowance. ``changed`` holds places among the coefficients afterwards.
    """
    for a in range(n_changed, n_changed + BLOCK - 1):  # the last block may not be full
        delta[a] = 0.0
        changed[a] = changed[0]
    if inst.places.size > 0 and n_changed > 0:
        for a in range(n_changed + BLOCK - 1):
            changed[a] = inst.places[changed[a]]
    k = 0
    while k < n_changed:
        _add_block(inst.rows, spans, n_spans, changed, delta, k, g)
        k += BLOCK
    return n_changed / BLOCK + 1.0 + PASS_COST


def _add_block_plain(
    rows: FloatArray,
    spans: IntArray,
    n_spans: int,
    changed: IntArray,
    delta: FloatArray,
    k: int,
    g: FloatArray,
) -> None:
    d0, d1, d2, d3 = delta[k : k + BLOCK]
    a0, a1, a2, a3 = rows[changed[k : k + BLOCK]]
    total = d0 * a0 + d1 * a1 + d2 * a2 + d3 * a3
    for lo, hi in spans[:n_spans]:
        g[lo:hi] += total[lo:hi]


@vectorised(_add_block_plain)
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
    records.copy_array(inst.linear, g)
    count = 0
    for r in range(u.size):
        if u[r] != 0.0:
            changed[count], delta[count] = r, u[r]
            count += 1
    return add_rows(inst, spans, n_spans, changed, delta, count, g)
