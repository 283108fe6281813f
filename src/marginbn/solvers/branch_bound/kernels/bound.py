"""Bound of one box by Frank-Wolfe on the smoothed objective, all its vertices kept in balance.

The relaxation is ``max f(eta)`` over the convex hull of the box, f concave and piecewise linear.
Its dual is

    D(u) = gamma sum_m (w_m - sum_c u_mc) + max over the box of (linear + A^T u) . eta
    with  u >= 0,  sum_c u_mc <= w_m,

an upper bound for *every* feasible u. eta is a convex combination of vertices with margins t; u
comes from t by smoothing (``duals.py``), the oracle gives D(u) and a new vertex, and a Newton step
moves weight among all of them (``newton.py``); where it does not get anywhere, weight moves from
the worst vertex to the new one (``combination.py``).

Small changes of u are not carried out (they would cost a row of the gradient each) until the
bracket ``D(u) - f(eta)`` has not narrowed for some iterations: near the end the small ones matter.

The loop ends when the box is pruned, when ``f(eta) > cutoff`` shows that no u can prune it and the
bracket is small against the distance to the cutoff and against what a split gains (as long as
neither is known, no bracket is small: boxes that end before their first step would pass the same
vertices on for ever), when the smoothing is at its floor and nothing moves, or when the iterations
granted are used up.

**How much rounding can hide in a bound.** A bound is ``c + max g . eta`` with
``c = gamma sum_m (w_m - sum_c u_mc) + u . b`` (b: margins of decided features) and
``g = linear + A^T u``. The dual weights u are floating-point numbers that satisfy ``u >= 0`` and
``sum_c u_mc <= w_m`` exactly (``duals.py``), so c and g are a valid majorant in exact arithmetic
and only their evaluation errs. Let eps = 2^-53 and

    G_v = |linear_v| + sum_m w_m max_c |A_mc,v|        >= |g_v| for every feasible u,
    G   = sum over features of max_s G_is  +  max_S G_S    >= |g . eta| for every structure.

*Gradient.* One pass adds blocks of four rows: ``g += ((d1 a1 + d2 a2) + d3 a3) + d4 a4``. With the
rounding of d itself the block errs by at most 5 eps sum |d_k a_k| and the addition by eps |g|. Over
one pass ``sum |d| |a| <= 2 G_v`` because old and new u are feasible, so a pass of b blocks adds at
most ``eps G_v (b + 12)``, and a chosen structure sums at most G of it. Passes since the last fresh
start add up.

*Constant.* ``gamma sum (w - sum u)`` has M terms of at most ``gamma w_m``, in total ``gamma W``;
``u . b`` has R terms of at most G in total, and b itself sums at most n + 1 columns.

*Oracle.* Prices are differences along at most n nested contractions of numbers below 2 max G, there
are at most 2n of them, and re-rooting adds n terms: less than ``16 (n + 2)^2 eps max_v G_v``. The
final sum ``c + value`` adds two more roundings.

All terms are doubled once more (second-order terms, the rounding of this estimate itself). For
vehicle (2 031 rows) the allowance is about 1e-12 of the objective.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from marginbn.problem.array_types import EPS, FloatArray, IntArray
from marginbn.solvers.branch_bound.kernels import combination, duals, records
from marginbn.solvers.branch_bound.kernels.combination import Balance, Bounding, BoundState
from marginbn.solvers.branch_bound.kernels.newton import newton_step
from marginbn.solvers.branch_bound.kernels.oracle import maximise
from marginbn.solvers.branch_bound.kernels.records import Box, Instance
from marginbn.solvers.compile import kernel, shared

FEW = 4
"""Roundings of a sum besides its additions: the factors, and the final ``c + value``."""

ORACLE_ROUNDINGS = 16.0
"""See *Oracle* above."""

UNTOUCHED = 16.0
"""Operations of a gradient that is just the linear scores: a pass of no rows counts 13."""


def structure_magnitude(magnitude: FloatArray, n: int, n_class_sets: int) -> float:
    """G: no structure's ``|g . eta|`` exceeds it."""
    slots, class_sets = np.split(magnitude, [magnitude.size - n_class_sets])
    features = slots.reshape(n, -1).max(axis=1, initial=0.0)
    return float(features.sum() + class_sets.max(initial=0.0))


@shared
def bound_error(inst: Instance, scale: BoundState, operations: float) -> float:
    """Rounding allowance of a bound whose gradient has seen ``operations`` = sum over passes of
    (blocks + PASS_COST), for magnitudes ``scale``.
    """
    n, n_rows, n_samples = inst.n_features, records.count_rows(inst), inst.weights.size
    gradient = operations * scale.structure
    constant = (n_samples + FEW) * inst.gamma * scale.total_weight
    constant += (n_rows + n + FEW) * scale.structure
    oracle = ORACLE_ROUNDINGS * (n + 2) * (n + 2) * scale.largest
    return float(inst.error + 2.0 * EPS * (gradient + constant + oracle))


EMPTY, PRUNED, SPLIT, PAUSED = 0, 1, 2, 3
"""Outcomes of bounding a box."""

REFRESH = 50
"""Iterations after which the gradient is computed from scratch."""

EVALUATE = 8
"""Every so many iterations the oracle's vertex is tried as an incumbent."""

CHEAP = 4
"""So many times the rows of the box can be looked at in addition; with more rows in the whole
problem, vertices are tried less often.
"""

LULL = 3
"""Iterations without a narrower bracket after which the smallest changes of u are carried out."""

NARROWER = 0.98
"""What counts as a narrower bracket."""

USED_GAP = 0.9
"""Boxes are pruned at this part of the tolerance; the rest is a reserve for rounding in the gap as
it is reported.
"""

SAME_VALUE = 1e-9
"""Values of one structure with fewer and with all rows differ by no more (relatively) in rounding.
"""

SMOOTHED_OUT = 0.3
"""If the oracle promises less than this part of the bracket, the smoothing makes up most of it and
is reduced.
"""

EQUAL_SLOPES = 0.1
"""Part of what the oracle promises that the balance of the vertices at hand need not be better."""

STANDSTILL = 1e-7
"""At the floor of the smoothing: no vertex promises more than this part of the bound."""


class Settings(NamedTuple):
    """Numbers that steer the search; none of them can make a bound wrong."""

    smoothing_start: float  # mu of the root, in units of gamma
    smoothing_floor: float
    smoothing_factor: float
    stale: float  # see duals.py (without it x1.04)
    accuracy: float  # theta: bracket against distance to the cutoff at which a box is split
    many_rows: int  # instances with more are reduced for each box, see nearby.py
    band: float  # terms this much above the smallest of their sample stay there (nats)
    worth: float  # in units of what splits gain: smaller brackets end a box (without it x1.10)
    reliable: int  # observations of each side after which the gain to expect is reliable
    trials: int  # objects that one node tries out
    trial_iterations: int  # of each side
    iterations: int  # largest number per box
    root_iterations: int
    evaluate: bool  # try oracle vertices as incumbents
    gap: float  # relative tolerance of the proof


class Incumbent(NamedTuple):
    """Best structure known to the kernels."""

    vertex: IntArray  # (n + 1,)
    value: FloatArray  # (1,)
    found: IntArray  # (1,) number of improvements


class Context(NamedTuple):
    """What all nodes of a batch share."""

    full: Instance  # all rows: what might be a better structure is scored with them
    coarse: Instance  # some rows: splits are compared with them
    settings: Settings
    incumbent: Incumbent
    stop: IntArray  # (1,) anything but 0 ends the batch


class Scratch(NamedTuple):
    """What one bounding run needs in addition."""

    fixed: FloatArray  # (R,) margins of decided features
    u: FloatArray  # (R,) dual weights of the newest gradient
    delta: FloatArray  # (R + BLOCK,) changes of u
    changed: IntArray  # (R + BLOCK,) their rows
    g: FloatArray  # (K,)
    spans: IntArray  # (K, 2) live columns


@kernel
def new_scratch(inst: Instance) -> Scratch:
    n_rows, n_columns = records.count_rows(inst), inst.linear.size
    return Scratch(
        np.zeros(n_rows),
        np.zeros(n_rows),
        np.empty(n_rows + duals.BLOCK),
        np.empty(n_rows + duals.BLOCK, dtype=np.int64),
        inst.linear.copy(),
        np.empty((n_columns + 1, 2), dtype=np.int64),
    )


@kernel
def cutoff_of(context: Context) -> float:
    """Boxes at or below this need no search."""
    value = float(context.incumbent.value[0])
    if value == -np.inf:
        return value
    return value + USED_GAP * context.settings.gap * max(context.full.scale, abs(value))


@kernel
def offer_vertex(vertex: IntArray, value: float, incumbent: Incumbent) -> None:
    """Keep a better structure."""
    if value > incumbent.value[0]:
        incumbent.value[0] = value
        records.copy_array(vertex, incumbent.vertex)
        incumbent.found[0] += 1


@kernel
def try_vertex(inst: Instance, context: Context, vertex: IntArray, margins: FloatArray) -> None:
    """Keep a structure if it is better. The reduced objective is nowhere smaller, so it decides
    for nearly all structures that nothing more need be computed.
    """
    full, incumbent = context.full, context.incumbent
    value = duals.objective_of_vertex(inst, vertex, margins)
    slack = SAME_VALUE * (inst.scale + abs(value))
    if value + slack > incumbent.value[0]:
        if records.count_rows(inst) < records.count_rows(full):
            value = duals.objective_of_vertex(full, vertex, np.empty(records.count_rows(full)))
        offer_vertex(vertex, value, incumbent)


@kernel
def bound_box(
    inst: Instance,
    context: Context,
    box: Box,
    b: Bounding,
    oracle: records.Oracle,
    theta: float,
    worth: float,
    iterations: int,
) -> int:
    """Tighten the bound of a box; starts from the active vertices and their smoothing, ends when
    the bracket is below theta times the distance to the cutoff and below ``worth``.
    """
    full, settings = context.full, context.settings
    work = new_scratch(inst)
    n_spans = duals.prepare_columns(inst, box, work.spans, work.fixed)
    b.state.bound, b.state.relaxed = np.inf, -np.inf
    b.state.iterations = 0
    balance = combination.new_balance(inst, b)
    operations = 0.0
    narrowest, lull = np.inf, 0
    rest = max(EVALUATE, records.count_rows(full) // (CHEAP * max(1, records.count_rows(inst))))
    for iteration in range(iterations):
        stale = settings.stale if lull < LULL else 0.0
        operations = refresh_gradient(inst, b, work, stale, n_spans, iteration, operations)
        upper, value = maximise(inst, box, work.g, oracle)
        if upper == -np.inf:
            return EMPTY
        b.state.iterations += 1
        keep_best(inst, b, work.g, upper, operations)
        if settings.evaluate and (iteration % rest == rest - 1 or inst.weights.size == 0):
            try_vertex(inst, context, oracle.vertex, balance.direction)
        cutoff = cutoff_of(context)
        if b.state.bound <= cutoff:
            return PRUNED
        if context.stop[0] != 0:
            return PAUSED
        if not _advance(
            inst, b, work, balance, settings, oracle.vertex, value, theta, worth, cutoff
        ):
            return SPLIT
        bracket = b.state.bound - b.state.relaxed
        lull += 1
        if bracket < NARROWER * narrowest:
            narrowest, lull = bracket, 0
    return PAUSED


@kernel
def move_inside(inst: Instance, box: Box, oracle: records.Oracle, b: Bounding) -> bool:
    """Replace a combination that has no vertex in the box by the vertex of the box that its dual
    weights lead to; False if the box is empty.
    """
    work = new_scratch(inst)
    n_spans = duals.prepare_columns(inst, box, work.spans, work.fixed)
    combination.load_margins(inst, b)
    refresh_gradient(inst, b, work, 0.0, n_spans, 0, 0.0)
    upper, _ = maximise(inst, box, work.g, oracle)
    if upper == -np.inf:
        return False
    records.copy_array(oracle.vertex, b.vertices[0])
    b.share[0], b.state.n_active = 1.0, 1
    return True


@kernel
def refresh_gradient(
    inst: Instance,
    b: Bounding,
    work: Scratch,
    stale: float,
    n_spans: int,
    iteration: int,
    operations: float,
) -> float:
    """Dual weights of t and their gradient; the constant goes to the state. Returns what the
    gradient counts in the rounding allowance.
    """
    mu = b.state.smoothing
    count, unused = duals.update_duals(inst, b.t, mu, stale, work.u, work.changed, work.delta)
    if iteration % REFRESH == 0:
        operations = duals.fresh_gradient(
            inst, work.spans, n_spans, work.u, work.changed, work.delta, work.g
        )
    else:
        operations += duals.add_rows(
            inst, work.spans, n_spans, work.changed, work.delta, count, work.g
        )
    constant = inst.offset + inst.gamma * unused
    for r in range(work.u.size):
        constant += work.u[r] * work.fixed[r]
    b.state.new_constant = constant
    b.state.new_unused = unused + inst.offset / inst.gamma
    return operations


@kernel
def keep_best(inst: Instance, b: Bounding, g: FloatArray, upper: float, operations: float) -> None:
    """Remember the majorant if its bound, with its rounding allowance, is the best so far."""
    error = bound_error(inst, b.state, operations)
    constant = b.state.new_constant + error
    if constant + upper < b.state.bound:
        b.state.bound = constant + upper
        b.state.constant = constant
        b.state.unused = b.state.new_unused
        records.copy_array(g, b.best_g)


@kernel
def _advance(
    inst: Instance,
    b: Bounding,
    work: Scratch,
    balance: Balance,
    settings: Settings,
    target: IntArray,
    value: float,
    theta: float,
    worth: float,
    cutoff: float,
) -> bool:
    """Stop rules, then a Newton step over the active vertices and the new one; False when the box
    should be split.
    """
    combination.make_room(b, balance)
    worst, lowest, at_eta, linear = 0, np.inf, 0.0, 0.0
    for k in range(b.state.n_active):
        of_vertex = duals.linear_of_vertex(inst, work.g, b.vertices[k])
        at_eta += b.share[k] * of_vertex
        linear += b.share[k] * balance.linear[k]
        if of_vertex < lowest:
            worst, lowest = k, of_vertex
    relaxed = duals.objective_of_margins(inst, b.t) + linear
    b.state.relaxed = relaxed
    bracket = b.state.bound - relaxed
    enough = min(worth, theta * (b.state.bound - cutoff))
    if relaxed > cutoff and bracket < enough < np.inf:
        return False
    frank_wolfe_gap = value - at_eta
    if frank_wolfe_gap < SMOOTHED_OUT * bracket:
        floor = settings.smoothing_floor * inst.gamma
        if b.state.smoothing <= floor and frank_wolfe_gap < STANDSTILL * abs(b.state.bound):
            return False
        b.state.smoothing = max(floor, settings.smoothing_factor * b.state.smoothing)
    slope = duals.linear_of_vertex(inst, work.g, target) - lowest
    if slope > 0.0:
        new = combination.find_vertex(inst, b, balance, target)
        if not newton_step(inst, b, balance, EQUAL_SLOPES * frank_wolfe_gap):
            combination.step_between(inst, b, balance, new, worst, slope)
    elif b.state.smoothing <= settings.smoothing_floor * inst.gamma:
        return False
    return True
