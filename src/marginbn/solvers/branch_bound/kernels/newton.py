"""One Newton step over the weights of the active vertices (without it x1.57, at worst x2.5).

Let ``eta = sum_k share_k vertex_k`` have the margins t, and p the dual weights of t. To second
order the smoothed objective is, for other shares x,

    level . (x - share) - 1/2 (x - share)^T H (x - share),      level_k = linear_k + T_k . p.

**H.** Only samples in the smoothing zone bend. Let S be the support of a sample: the rivals of
positive weight, and the cap gamma (whose margin never changes: T = 0) if they leave it some weight.
There p is linear in the margins, and the second derivative of the smoothed minimum is

    -(1/mu) (I - 11^T/|S|)      on S, 0 elsewhere.

Subtracting the mean is the same as projecting on the |S| - 1 orthonormal contrasts

    (s_1 + ... + s_j - j s_{j+1}) / sqrt(j (j + 1)),   j = 1, ..., |S| - 1,

so with ``X[k, e] = sqrt(w / mu) * contrast e of T_k`` the matrix is ``H = X X^T``. For a sample
with one rival beside the cap this is the single number ``sqrt(w / (2 mu)) T_k``. The root is taken
of ``w / u`` and H multiplied by u, the power of two above the largest weight: a root is not exact
in another unit of weight, these products are.

**The step.** The quadratic is maximised over the simplex by pairs: weight moves from the vertex of
the smallest slope to that of the largest, each time as far as the quadratic grows. Then a line
search on the smoothed objective itself goes from the present shares towards the result. A new
vertex takes part with weight 0. Nothing here need be exact: shares only decide which dual weights
come next, and their bound is computed from them alone. So sums may be added in any order, which is
what makes them fast.
"""

from __future__ import annotations

import math

import numpy as np

from marginbn.problem.array_types import FloatArray, IntArray
from marginbn.solvers.branch_bound.kernels import duals
from marginbn.solvers.branch_bound.kernels.combination import (
    LIGHT,
    Balance,
    Bounding,
    remove_vertex,
)
from marginbn.solvers.branch_bound.kernels.records import Instance, add_scaled, clear, count_rows
from marginbn.solvers.compile import kernel, vectorised

RIDGE = 1e-7
"""Part of the largest curvature that is added to that of a pair: two vertices may have the same
margins on all rows in the zone.
"""

IDLE = 1e200
"""Added to the slope of a vertex without weight, which has none to give."""

PAIRS, FEWEST_PAIRS = 6, 20
"""Pairs per vertex, and in addition, after which the quadratic is good enough."""


@kernel
def newton_step(inst: Instance, b: Bounding, balance: Balance, tolerance: float) -> bool:
    """Move the shares; False if that promises nothing. Slopes that differ by less than
    ``tolerance`` count as equal.
    """
    level, hessian = second_order(inst, b, balance)
    share = b.share[: level.size].copy()
    if not maximise_quadratic(hessian, level, share, tolerance):
        return False
    return _go_towards(inst, b, balance, level, share)


@kernel
def second_order(inst: Instance, b: Bounding, balance: Balance) -> tuple[FloatArray, FloatArray]:
    """level (k,) and H (k, k) of the active vertices."""
    largest = 0.0
    for w in inst.weights:
        largest = max(largest, w)
    unit = math.ldexp(1.0, math.frexp(largest)[1])  # u; 1 where no row matters
    contrasts = _contrasts(inst, b, balance, unit)
    k = b.state.n_active
    level, hessian = np.empty(k), np.empty((k, k))
    for a in range(k):
        level[a] = balance.linear[a] + dot(balance.margins[a], balance.p)
        _products(contrasts, a, hessian[a])
    for a in range(k):
        for c in range(a + 1):
            hessian[a, c] *= unit
            hessian[c, a] = hessian[a, c]
    return level, hessian


@kernel
def _contrasts(inst: Instance, b: Bounding, balance: Balance, unit: float) -> FloatArray:
    """X for weights in a unit; the dual weights go to ``balance.p``."""
    k, n_rows = b.state.n_active, count_rows(inst)
    rows, order = np.empty(n_rows, dtype=np.int64), np.empty(n_rows, dtype=np.int64)
    scale = np.empty(n_rows)
    count = _list_zone(inst, b.t, b.state.smoothing, unit, balance.p, rows, order, scale)
    n_contrasts = 0
    for e in range(count):
        if order[e] > 0:
            n_contrasts += 1
    x = np.empty((k, n_contrasts))
    for a in range(k):
        _contrast_vertex(balance.margins[a], rows, order, scale, count, x[a])
    return x


@kernel
def _list_zone(
    inst: Instance,
    t: FloatArray,
    mu: float,
    unit: float,
    p: FloatArray,
    rows: IntArray,
    order: IntArray,
    scale: FloatArray,
) -> int:
    """Dual weights w p, and the rows in the zone: each with its place j in the support of its
    sample (the cap comes first, so a row with place 0 stands for nothing yet) and the factor of its
    contrast.
    """
    count = 0
    half = 0.5 / mu
    lone = math.sqrt(half)
    own = np.empty(duals.most_rows(inst))
    threshold = inst.gamma + mu
    for m in range(inst.weights.size):
        w = inst.weights[m]
        row, end = inst.starts[m], inst.starts[m + 1]
        if end == row + 1:
            share = 0.5 + (inst.gamma - t[row]) * half
            p[row] = w * min(1.0, max(0.0, share))
            if 0.0 < share < 1.0:
                rows[count], order[count], scale[count] = row, 1, lone * math.sqrt(w / unit)
                count += 1
            continue
        lowest = np.inf
        for r in range(row, end):
            lowest = min(lowest, t[r])
            p[r] = 0.0
        if lowest >= threshold:
            continue
        duals.smooth_weights(t, row, end - row, inst.gamma, mu, own)
        total, support = 0.0, 0
        for c in range(end - row):
            total += own[c]
            if own[c] > 0.0:
                support += 1
        place = 1 if total < 1.0 - FULL else 0
        bends = place + support > 1
        for c in range(end - row):
            p[row + c] = w * own[c]
            if bends and own[c] > 0.0:
                rows[count], order[count] = row + c, place
                scale[count] = math.sqrt(w / unit / (mu * max(1, place * (place + 1))))
                place += 1
                count += 1
    return count


FULL = 1e-9
"""Weights that sum to 1 but for this leave the cap none."""


@kernel
def _contrast_vertex(
    margins: FloatArray,
    rows: IntArray,
    order: IntArray,
    scale: FloatArray,
    count: int,
    out: FloatArray,
) -> None:
    """One row of X."""
    place, before = 0, 0.0
    for e in range(count):
        value, j = margins[rows[e]], order[e]
        if j == 0:  # no cap: the first rival begins the sum
            before = value
            continue
        if j == 1 and (e == 0 or order[e - 1] != 0):
            before = 0.0  # the cap does
        out[place] = scale[e] * (before - j * value)
        before += value
        place += 1


@vectorised(np.dot, is_reordered=True)
def dot(x: FloatArray, y: FloatArray) -> float:
    """x . y"""
    total = 0.0
    for r in range(x.size):
        total += x[r] * y[r]
    return total


def _products_plain(x: FloatArray, a: int, out: FloatArray) -> None:
    out[: a + 1] = x[: a + 1] @ x[a]


@vectorised(_products_plain, is_reordered=True)
def _products(x: FloatArray, a: int, out: FloatArray) -> None:
    """out[c] = x[a] . x[c] for c <= a, four at a time: each entry of x[a] is read once for them."""
    own = x[a]
    c = 0
    while c + 3 <= a:
        x0, x1, x2, x3 = x[c], x[c + 1], x[c + 2], x[c + 3]
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for r in range(own.size):
            s0 += own[r] * x0[r]
            s1 += own[r] * x1[r]
            s2 += own[r] * x2[r]
            s3 += own[r] * x3[r]
        out[c], out[c + 1], out[c + 2], out[c + 3] = s0, s1, s2, s3
        c += 4
    while c <= a:
        out[c] = dot(own, x[c])
        c += 1


@kernel
def maximise_quadratic(
    hessian: FloatArray, level: FloatArray, share: FloatArray, tolerance: float
) -> bool:
    """Maximise ``level . (x - share) - 1/2 (x - share)^T H (x - share)`` over the simplex, the
    result replaces ``share``; whether anything moved.
    """
    k = level.size
    slope, idle = level.copy(), np.zeros(k)
    ridge = 0.0
    for a in range(k):
        ridge = max(ridge, RIDGE * hessian[a, a])
        if share[a] <= 0.0:
            idle[a] = IDLE
    moved = False
    highest, lowest = _change_slopes(slope, idle, level, level, 0.0)
    for _ in range(PAIRS * k + FEWEST_PAIRS):
        rise = highest - lowest
        if rise <= tolerance:
            break
        best, worst = 0, 0
        while best + 1 < k and slope[best] < highest:
            best += 1
        while worst + 1 < k and slope[worst] + idle[worst] > lowest:
            worst += 1
        into, out = hessian[best], hessian[worst]
        bend = into[best] + out[worst] - 2.0 * into[worst] + ridge
        step = min(share[worst], rise / bend) if bend > 0.0 else share[worst]
        share[best] += step
        share[worst] -= step
        idle[best] = 0.0
        if share[worst] < LIGHT:
            share[worst], idle[worst] = 0.0, IDLE
        moved = True
        highest, lowest = _change_slopes(slope, idle, into, out, step)
    return moved


def _change_slopes_plain(
    slope: FloatArray, idle: FloatArray, into: FloatArray, out: FloatArray, step: float
) -> tuple[float, float]:
    slope -= step * (into - out)
    return float(slope.max()), float((slope + idle).min())


@vectorised(_change_slopes_plain, is_reordered=True)
def _change_slopes(
    slope: FloatArray, idle: FloatArray, into: FloatArray, out: FloatArray, step: float
) -> tuple[float, float]:
    """slope -= step (into - out); its largest entry, and the smallest of a vertex with weight. One
    loop of numbers alone, several of which go at a time: where they stand is looked for afterwards.
    """
    highest, lowest = -IDLE, IDLE
    for a in range(slope.size):
        value = slope[a] - step * (into[a] - out[a])
        slope[a] = value
        highest = max(highest, value)
        lowest = min(lowest, value + idle[a])
    return highest, lowest


@kernel
def _go_towards(
    inst: Instance, b: Bounding, balance: Balance, level: FloatArray, share: FloatArray
) -> bool:
    """Line search on the smoothed objective; vertices without weight leave."""
    direction = balance.direction
    clear(direction)
    slope, linear = 0.0, 0.0
    for a in range(share.size):
        move = share[a] - b.share[a]
        if move != 0.0:
            slope += move * level[a]
            linear += move * balance.linear[a]
            add_scaled(direction, move, balance.margins[a])
    if slope <= 0.0:
        return False
    s = duals.step_length(
        inst, b.t, direction, b.state.smoothing, slope, linear, 1.0, balance.listed
    )
    if s <= 0.0:
        return False
    add_scaled(b.t, s, direction)
    total = 0.0
    for a in range(share.size - 1, -1, -1):
        b.share[a] += s * (share[a] - b.share[a])
        if b.share[a] <= LIGHT:
            remove_vertex(b, balance, a)
        else:
            total += b.share[a]
    for a in range(b.state.n_active):
        b.share[a] /= total
    return True
