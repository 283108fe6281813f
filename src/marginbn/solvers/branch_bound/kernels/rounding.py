"""How much rounding can hide in a bound.

A bound is ``c + max g . eta`` with ``c = gamma sum_m (w_m - sum_c u_mc) + u . b`` (b: margins of
decided features) and ``g = linear + A^T u``. The dual weights u are floating-point numbers that
satisfy ``u >= 0`` and ``sum_c u_mc <= w_m`` exactly (see ``duals.py``), so c and g are a valid
majorant in exact arithmetic and only their evaluation errs. Let eps = 2^-53 and

    G_v = |linear_v| + sum_m w_m max_c |A_mc,v|        >= |g_v| for every feasible u,
    G   = sum over features of max_s G_is  +  max_S G_S    >= |g . eta| for every structure.

*Gradient.* One pass adds blocks of four rows: ``g += ((d1 a1 + d2 a2) + d3 a3) + d4 a4``. With the
rounding of d itself the block errs by at most 5 eps sum |d_k a_k| and the addition by eps |g|. Over
one pass ``sum |d| |a| <= 2 G_v`` because old and new u are feasible, so a pass of b blocks adds at
most ``eps G_v (b + 12)``, and a chosen structure sums at most G of it. Passes since the last fresh
start add up.

*Constant.* ``gamma sum (w - sum u)`` has M terms of at most ``gamma w_m`` in total ``gamma W``; ``u
. b`` has R terms of at most G in total, and b itself sums at most n + 1 columns.

*Oracle.* Prices are differences along at most n nested contractions of numbers below 2 max G, there
are at most 2n of them, and re-rooting adds n terms: less than ``16 (n + 2)^2 eps max_v G_v``. The
final sum ``c + value`` adds two more roundings.

All terms are doubled once more (second-order terms, the rounding of this estimate itself). For
vehicle (2 031 rows) the allowance is about 1e-12 of the objective.
"""

from __future__ import annotations

from marginbn.solvers.branch_bound.kernels.records import FloatArray, Instance
from marginbn.solvers.compile import shared

EPS = 2.0**-53


def structure_magnitude(magnitude: FloatArray, n: int) -> float:
    """G: no structure's ``|g . eta|`` exceeds it."""
    features = magnitude[: n * (n + 2)].reshape(n, n + 2).max(axis=1, initial=0.0)
    return float(features.sum() + magnitude[n * (n + 2) :].max(initial=0.0))


@shared
def bound_error(
    inst: Instance, structure: float, largest: float, total_weight: float, operations: float
) -> float:
    """Rounding allowance of a bound whose gradient has seen ``operations`` = sum over passes of
    (blocks + 12).
    """
    n = inst.n_features
    n_rows = inst.rows.shape[0]
    gradient = operations * structure
    constant = (inst.weights.size + 4) * inst.gamma * total_weight + (n_rows + n + 4) * structure
    oracle = 16.0 * (n + 2) * (n + 2) * largest
    return float(inst.error + 2.0 * EPS * (gradient + constant + oracle))
