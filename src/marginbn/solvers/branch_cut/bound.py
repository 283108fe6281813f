"""The safe bound: a Lagrangian that is valid for any multipliers, whatever an LP solver says.

Take u_mc >= 0 with sum_c u_mc <= w_m for the margin rows and y_r >= 0 for structural rows
``row_r . eta >= rhs_r`` that hold for every structure of the node (cluster rows, class rows,
present edges). For every structure of the node, sum_m w_m min(gamma, min_c a_mc . eta) is at most
gamma sum_m (w_m - sum_c u_mc) + u . A eta, and y . (rows eta - rhs) >= 0, hence

    f(eta) <= gamma sum_m (w_m - sum_c u_mc) - y . rhs + sum_k v_k eta_k,
    v = linear + A^T u + rows^T y,
    f      <= L = gamma sum_m (w_m - sum_c u_mc) - y . rhs + sum_i max over allowed k of i of v_k.

All allowed candidates take part in the maximum, so a linear program over some of the columns
gives a bound for all of them, and L - (max of i - v_k) bounds the structures that choose k.

**Rounding.** Let eps = 2^-53, G_k = |linear_k| + sum_m w_m max_c |A_mc,k| >= |linear + A^T u|_k
for every feasible u, G = sum_i max_k G_k, Y = sum_r y_r max |row_r| and W = sum_m w_m.
Multipliers are floating-point numbers that satisfy their conditions exactly
(:func:`feasible_multipliers`), so only the evaluation errs:

* linear + A^T u is a sum of T products added in some order, possibly over several nodes, every
  partial sum belonging to a feasible u: error at most 2 T eps G_k, in a structure 2 T eps G;
* the structural part adds q products per candidate: 2 q eps (G_k + Y), at most 2 q eps (G + n Y);
* the final sums have n, q and M terms: eps (n + q) (G + n Y) + eps (M + 4) gamma W.

Everything is doubled for second-order terms and for the rounding of the estimate itself:

    error = 4 eps ((T + 2 q + n + 8) (G + n Y + |rhs part|) + (M + 8) gamma W).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginbn.problem.array_types import EPS, BoolArray, FloatArray, IntArray
from marginbn.solvers.branch_cut.arrays import Instance


def feasible_multipliers(
    raw: FloatArray, samples: IntArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Clip to u >= 0 and shrink until sum_c u_mc <= w_m holds exactly.

    ``raw`` and ``samples`` are the multiplier of each listed margin row and the sample it belongs
    to. Returns the feasible multipliers and their sum for every sample, (M,), at most w_m; the true
    sums are not larger by more than rounding, see below.
    """
    clipped = np.where(np.isfinite(raw), np.maximum(raw, 0.0), 0.0)
    sums = np.bincount(samples, clipped, len(weights)).astype(np.float64)
    # A sum of t rounded terms is off by t eps relative; shrinking by four times that is safe.
    margin = 1.0 - 4.0 * EPS * (np.bincount(samples, minlength=len(weights)) + 4.0)
    factor = np.ones(len(weights))
    over = sums > weights * margin
    factor[over] = weights[over] / sums[over] * margin[over]
    multipliers = clipped * factor[samples]
    return multipliers, np.bincount(samples, multipliers, len(weights)).astype(np.float64)


@dataclass(frozen=True)
class Prices:
    """A Lagrangian of a node."""

    values: FloatArray  # (K,) v
    constant: float  # everything but the maxima
    error: float  # rounding allowance, see above; added to every bound

    def best(self, instance: Instance, allowed: BoolArray) -> FloatArray:
        """Largest allowed value of each variable; -inf where nothing is allowed."""
        return instance.group_maxima(np.where(allowed, self.values, -np.inf))

    def bound(self, instance: Instance, allowed: BoolArray) -> float:
        """L plus the allowance."""
        return float(self.best(instance, allowed).sum()) + self.constant + self.error

    def bounds_by_candidate(self, instance: Instance, allowed: BoolArray) -> FloatArray:
        """Bound of the structures that choose k, for every k; (K,)."""
        best = self.best(instance, allowed)
        total = float(best.sum()) + self.constant + self.error
        return total - (best[instance.child] - self.values)


def lagrangian(
    instance: Instance,
    gradient: FloatArray,
    unused_weight: float,  # sum_m (w_m - sum_c u_mc)
    terms: int,
    row_values: FloatArray,
    multipliers: FloatArray,
    rhs: FloatArray,
    sizes: FloatArray | None = None,
) -> Prices:
    """Prices from their parts: ``gradient`` is linear + A^T u, (K,), a sum of ``terms`` products,
    ``row_values`` is rows^T y, (K,), and ``multipliers`` are y >= 0 of structural rows,
    whose coefficients are no larger than ``sizes`` (by default one).
    """
    used = float(multipliers @ rhs) if len(rhs) else 0.0
    n, n_rows = instance.n_variables, len(multipliers)
    rhs_size = float(multipliers @ np.abs(rhs))
    largest = float(multipliers.sum() if sizes is None else multipliers @ sizes)
    size = instance.magnitude + n * largest + rhs_size
    cap = instance.gamma * float(instance.weights.sum())
    error = 4.0 * EPS * ((terms + 2 * n_rows + n + 8) * size + (instance.n_samples + 8) * cap)
    constant = instance.constant + instance.gamma * unused_weight - used
    return Prices(gradient + row_values, constant, error)
