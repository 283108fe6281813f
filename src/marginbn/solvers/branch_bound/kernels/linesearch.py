"""Step length of pairwise Frank-Wolfe on the smoothed objective.

Along ``t + s d`` the slope is ``h'(s) = sum_m u_m(t_m + s d_m) . d_m`` plus a constant for the
linear scores, and h is concave. Samples whose dual weights cannot change on the whole segment (all
rivals above the smoothing zone at both ends, or at both ends the same rival below it and more than
mu below all others) are summed once; the others are listed and evaluated again for every trial
step. The zero of h' is bracketed and found by the Illinois rule; a tenth of the initial slope is
accurate enough.
"""

from __future__ import annotations

import numpy as np

from marginbn.solvers.branch_bound.kernels.duals import most_rows, single_weight, smooth_weights
from marginbn.solvers.branch_bound.kernels.records import FloatArray, Instance, IntArray
from marginbn.solvers.compile import kernel

MAX_TRIALS = 8
ACCURACY = 0.1


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
    """The s in [0, largest] where the smoothed objective along d is maximal; ``slope`` is h'(0) >
    0.
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
            slope_high *= 0.5
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
