"""Bound a box with the rows that matter at its own relaxed solution (letter's gap without: x1.03).

Without it 20 000 rows of five classes get 48 nodes instead of 78 in 10 s, and their gap is 1.04
times as wide; eleven proofs take x1.02.

``rows.py`` leaves out what no relaxed solution so far has needed. One box needs much less of that:
with many classes a sixth of the rows. So a large instance is reduced once more for each box, by the
same rules and with the same justification (a minimum over fewer terms is nowhere smaller): terms
within a band of the smallest at the eta that the box begins with. If the eta it ends with
needs more of them, ``F(eta) - f(eta)`` being a good part of the distance to the cutoff, its terms
join and the box goes on from there. Trials of a few iterations share one such instance.
"""

from __future__ import annotations

import numpy as np

from marginbn.problem.array_types import EPS, BoolArray, FloatArray
from marginbn.solvers.branch_bound.kernels import combination, duals, records
from marginbn.solvers.branch_bound.kernels.bound import (
    EMPTY,
    PRUNED,
    Context,
    Settings,
    bound_box,
    cutoff_of,
)
from marginbn.solvers.branch_bound.kernels.combination import Bounding
from marginbn.solvers.branch_bound.kernels.records import Box, Instance, Oracle
from marginbn.solvers.compile import kernel

WORTH = 0.1
"""More terms join if their absence costs more than this part of the distance to the cutoff."""

ROUNDS = 4
"""Choices of terms for one box."""

FEWEST = 8
"""Iterations that a further choice gets at least."""


@kernel
def bound_nearby(
    inst: Instance,
    context: Context,
    box: Box,
    b: Bounding,
    oracle: Oracle,
    theta: float,
    worth: float,
    iterations: int,
) -> int:
    """Like :func:`bound_box`, with as few rows as the box needs where ``inst`` has many."""
    settings = context.settings
    if not _is_large(inst, settings):
        return bound_box(inst, context, box, b, oracle, theta, worth, iterations)
    rows = np.zeros(records.count_rows(inst), dtype=np.bool_)
    caps = np.zeros(inst.weights.size, dtype=np.bool_)
    bound, constant, unused, used = np.inf, 0.0, 0.0, 0
    gradient = np.empty(inst.linear.size)
    combination.load_margins(inst, b)
    outcome = EMPTY
    for _ in range(ROUNDS):
        _choose_terms(inst, b.t, settings.band, rows, caps)
        near = build(inst, rows, caps, b.state.structure)
        left = max(FEWEST, iterations - used)
        outcome = bound_box(near, context, box, b, oracle, theta, worth, left)
        used += b.state.iterations
        b.state.iterations = used
        if outcome == EMPTY:
            return EMPTY
        if b.state.bound < bound:
            bound, constant, unused = b.state.bound, b.state.constant, b.state.unused
            records.copy_array(b.best_g, gradient)
        else:
            b.state.bound, b.state.constant, b.state.unused = bound, constant, unused
            records.copy_array(gradient, b.best_g)
        cutoff = cutoff_of(context)
        if outcome == PRUNED or bound <= cutoff:
            return PRUNED
        combination.load_margins(inst, b)
        value = duals.objective_of_margins(inst, b.t)
        for k in range(b.state.n_active):
            value += b.share[k] * duals.linear_of_vertex(inst, inst.linear, b.vertices[k])
        cost = b.state.relaxed - value
        b.state.relaxed = value
        if context.stop[0] != 0 or cost <= WORTH * (bound - cutoff):
            break
    return outcome


@kernel
def _is_large(inst: Instance, settings: Settings) -> bool:
    """Whether a choice of rows pays: where samples have a row each, it does not."""
    n_rows = records.count_rows(inst)
    return bool(n_rows >= settings.many_rows and n_rows > inst.weights.size)


@kernel
def instance_nearby(inst: Instance, settings: Settings, b: Bounding) -> Instance:
    """The rows that matter at the relaxed solution at hand, which its neighbours will need too; the
    whole instance where it has few rows. The margins of b become those of ``inst``.
    """
    if not _is_large(inst, settings):
        return inst
    rows = np.zeros(records.count_rows(inst), dtype=np.bool_)
    caps = np.zeros(inst.weights.size, dtype=np.bool_)
    combination.load_margins(inst, b)
    _choose_terms(inst, b.t, settings.band, rows, caps)
    return build(inst, rows, caps, b.state.structure)


@kernel
def _choose_terms(
    inst: Instance, t: FloatArray, band: float, rows: BoolArray, caps: BoolArray
) -> None:
    """Keep the terms near the smallest at these margins too."""
    for m in range(inst.weights.size):
        limit = inst.gamma
        for r in range(inst.starts[m], inst.starts[m + 1]):
            limit = min(limit, t[r])
        limit += band
        caps[m] = caps[m] or inst.gamma < limit
        for r in range(inst.starts[m], inst.starts[m + 1]):
            rows[r] = rows[r] or t[r] < limit


@kernel
def build(inst: Instance, rows: BoolArray, caps: BoolArray, structure: float) -> Instance:
    """The instance of the terms kept; see ``Reduction`` in ``rows.py``. Its coefficients are
    borrowed, as most are never looked at; where no row is left there is nothing to borrow.
    """
    n_rows, n_samples = records.count_rows(inst), inst.weights.size
    chosen, starts = np.empty(n_rows, dtype=np.int64), np.zeros(n_samples + 1, dtype=np.int64)
    alone = np.empty(n_samples + duals.BLOCK, dtype=np.int64)
    alone_weights, weights = np.empty(alone.size), np.empty(n_samples)
    count, samples, single, saturated = 0, 0, 0, 0
    offset, weight = inst.offset, 0.0
    for m in range(n_samples):
        weight += inst.weights[m]
        kept, last = 0, -1
        for r in range(inst.starts[m], inst.starts[m + 1]):
            if rows[r]:
                kept, last = kept + 1, r
        if kept == 0:
            offset += inst.gamma * inst.weights[m]
            saturated += 1
        elif kept == 1 and not caps[m]:
            alone[single], alone_weights[single] = last, inst.weights[m]
            single += 1
        else:
            for r in range(inst.starts[m], inst.starts[m + 1]):
                if rows[r]:
                    chosen[count] = r
                    count += 1
            weights[samples] = inst.weights[m]
            samples += 1
            starts[samples] = count
    linear, spans = inst.linear.copy(), np.array([[0, inst.linear.size]])
    if single > 0:
        duals.add_rows(inst, spans, 1, alone, alone_weights, single, linear)
    own_rows, own_columns = inst.rows, inst.columns
    if count == 0:
        own_rows, own_columns = np.empty((0, linear.size)), np.empty((linear.size, 0))
    terms = 2.0 * (single + 4) * structure + 2.0 * (saturated + 4) * inst.gamma * weight
    return Instance(
        inst.n_features,
        inst.gamma,
        offset,
        inst.error + 2.0 * EPS * terms,
        own_rows,
        own_columns,
        linear,
        inst.magnitude,
        weights[:samples].copy(),
        starts[: samples + 1].copy(),
        inst.first,
        inst.second,
        inst.scale,
        inst.skipped,
        inst.n_classes,
        inst.codes,
        inst.tables,
        inst.keys,
        chosen[:count].copy(),
    )
