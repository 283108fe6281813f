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
"""

from __future__ import annotations

import numpy as np

from marginbn.solvers.branch_bound.kernels.records import FloatArray, Instance, IntArray, column_of
from marginbn.solvers.compile import kernel

EPS = 2.0**-53

ROUNDINGS = 8.0
"""Of each of the C + 2 terms behind a sum of weights, all roundings together: a few in the weight,
one in the sum, the division and the product, and some to spare.
"""


@kernel
def single_weight(t: float, gamma: float, mu: float) -> float:
    """The weight of the only rival."""
    return min(1.0, max(0.0, 0.5 + (gamma - t) / (2.0 * mu)))


@kernel
def smooth_weights(t: FloatArray, gamma: float, mu: float, p: FloatArray) -> None:
    """Fill p with the weights of the rivals, which sum to at most 1."""
    lowest = gamma
    for c in range(t.size):
        lowest = min(lowest, t[c])
    cap = gamma - lowest
    count, total, last = 0, 0.0, 0
    for c in range(t.size):
        p[c] = t[c] - lowest
        if p[c] < mu:
            count += 1
            total += p[c]
            last = c
    if count == 1:  # one rival alone, by far the most common case
        weight = single_weight(p[last], cap, mu)
        p[:] = 0.0
        p[last] = weight
        return
    if cap < mu:
        count += 1
        total += cap
    nu = (mu + total) / count
    while True:  # entries at or above nu leave; nu falls until nothing changes
        count_new, total = 0, 0.0
        for c in range(t.size):
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
    _finish(p, nu, mu)


@kernel
def _finish(p: FloatArray, nu: float, mu: float) -> None:
    """Turn differences into safe weights."""
    total = 0.0
    for c in range(p.size):
        p[c] = max(0.0, (nu - p[c]) / mu)
        total += p[c]
    slack = ROUNDINGS * (p.size + 2) * EPS
    if total > 1.0 - slack:
        scale = 1.0 / (total * (1.0 + slack))
        for c in range(p.size):
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
    """Move u to the weights of margins t; lists changed rows and returns their number and
    sum_m (w_m - sum_c u_mc).
    """
    count, unused = 0, 0.0
    weights = np.empty(most_rows(inst))
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
        p = weights[:rivals]
        lowest, move = np.inf, 0.0
        for c in range(rivals):
            lowest = min(lowest, t[row + c])
        if lowest >= threshold:
            p[:] = 0.0
        else:
            smooth_weights(t[row : row + rivals], inst.gamma, mu, p)
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
    total = inst.offset
    if inst.weights.size == inst.rows.shape[0]:
        for m in range(inst.weights.size):
            total += inst.weights[m] * min(inst.gamma, t[m])
        return total
    for m in range(inst.weights.size):
        lowest = inst.gamma
        for r in range(inst.starts[m], inst.starts[m + 1]):
            lowest = min(lowest, t[r])
        total += inst.weights[m] * lowest
    return total


@kernel
def value_along(inst: Instance, start: float, t: FloatArray, step: float, d: FloatArray) -> float:
    """start + sum_m w_m min(gamma, min_c (t + step d)_mc)."""
    total = start
    if inst.weights.size == inst.rows.shape[0]:
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
        add_column(inst, column_of(n, i, vertex[i]), scale, t)


@kernel
def add_column(inst: Instance, v: int, scale: float, t: FloatArray) -> None:
    """t += scale * column v."""
    column = inst.columns[v]
    for r in range(column.size):
        t[r] += scale * column[r]


@kernel
def linear_of_vertex(inst: Instance, g: FloatArray, vertex: IntArray) -> float:
    """g . eta of a vertex."""
    n = inst.n_features
    total = g[column_of(n, n, vertex[n])]
    for i in range(n):
        total += g[column_of(n, i, vertex[i])]
    return float(total)


@kernel
def objective_of_vertex(inst: Instance, vertex: IntArray, t: FloatArray) -> float:
    """The objective of a structure; t is scratch and holds its margins afterwards."""
    for r in range(inst.rows.shape[0]):
        t[r] = 0.0
    add_vertex_margins(inst, vertex, 1.0, t)
    return objective_of_margins(inst, t) + linear_of_vertex(inst, inst.linear, vertex)
