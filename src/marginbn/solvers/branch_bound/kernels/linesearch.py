"""Step length of pairwise Frank-Wolfe on the smoothed objective.

Along ``t + s d`` the slope is ``h'(s) = sum_m u_m(t_m + s d_m) . d_m`` plus a constant for the
linear scores, and h is concave. Samples whose dual weights cannot change on the whole segment (all
rivals above the smoothing zone at both ends, or one rival alone below it) are summed once; the
others are listed and evaluated again for every trial step. The zero of h' is bracketed and found by
the Illinois rule; a tenth of the initial slope is accurate enough.
"""

from __future__ import annotations

import numpy as np

from marginbn.solvers.branch_bound.kernels.duals import single_weight, smooth_weights
from marginbn.solvers.branch_bound.kernels.layout import FloatArray, Instance, IntArray
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
    rivals = inst.n_rivals
    above, below = inst.gamma + mu, inst.gamma - mu
    constant, count = 0.0, 0
    for m in range(inst.weights.size):
        row = m * rivals
        lowest, highest = np.inf, -np.inf
        moves = False
        for r in range(row, row + rivals):
            end = t[r] + largest * d[r]
            lowest = min(lowest, min(t[r], end))
            highest = max(highest, max(t[r], end))
            moves = moves or d[r] != 0.0
        if not moves or lowest >= above:
            continue
        if rivals == 1 and highest <= below:
            constant += inst.weights[m] * d[row]
            continue
        listed[count] = m
        count += 1
    return constant, count


@kernel
def _slope(
    inst: Instance, t: FloatArray, d: FloatArray, mu: float, s: float, listed: IntArray, count: int
) -> float:
    rivals = inst.n_rivals
    total = 0.0
    if rivals == 1:
        for a in range(count):
            m = listed[a]
            total += inst.weights[m] * d[m] * single_weight(t[m] + s * d[m], inst.gamma, mu)
        return total
    p = np.empty(rivals)
    moved = np.empty(rivals)
    for a in range(count):
        m = listed[a]
        row = m * rivals
        for c in range(rivals):
            moved[c] = t[row + c] + s * d[row + c]
        smooth_weights(moved, inst.gamma, mu, p)
        part = 0.0
        for c in range(rivals):
            part += p[c] * d[row + c]
        total += inst.weights[m] * part
    return total
