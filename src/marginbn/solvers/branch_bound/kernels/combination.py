"""The convex combination of one box: its vertices, their margins, and moving weight between them.

``eta = sum_k share_k vertex_k`` has the margins ``t = sum_k share_k T_k``, T_k those of vertex k. A
*pairwise step* moves weight from one vertex to another along ``T_a - T_b``, as far as the smoothed
objective grows (``gradient.py``).

**Corrections.** A new vertex costs an oracle call and a pass over all columns of the gradient. The
vertices at hand can be balanced against each other without either: with p the dual weights of t,
the *level* of vertex k, ``linear . vertex_k + T_k . p``, is the slope of the smoothed objective
towards it, and changes only by the rows whose weight changed. So weight moves from the lowest level
to the highest until they differ by less than what the last oracle call promised: then a new vertex
is worth its price again. The steps cost no more than ``Settings.correction`` times the work of the
oracle and the gradient, both estimated in nanoseconds from counts, so runs do not depend on clocks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from marginbn.solvers.branch_bound.kernels import duals, records
from marginbn.solvers.branch_bound.kernels.records import FloatArray, Instance, IntArray
from marginbn.solvers.compile import entry, kernel

ROW_TIME, CHANGE_TIME = 15.0, 0.8
"""Very roughly, nanoseconds per row, and per changed row and vertex, of a step between vertices at
hand.
"""

ARC_TIME, COLUMN_TIME = 8.0, 0.4
"""The same per arc of an arborescence (11 to 17 were measured), and per changed row and column of a
gradient.
"""

LIGHT = 1e-12
"""A vertex with no more weight than this is dropped: it is what rounding left of it."""

MOST_STEPS = 40
"""Steps of one correction."""

STALE = 0.001
"""Changes of a dual weight, in units of its largest value, that corrections overlook."""


class BoundState:
    """The numbers of the box being bounded, and the magnitudes that rounding is judged by."""

    n_active: int  # vertices of the convex combination
    smoothing: float  # mu
    iterations: int  # of this run
    relaxed: float  # f(eta)
    bound: float  # the best
    constant: float  # c of the best majorant, rounding allowance included
    unused: float  # sum_m (w_m - sum_c u_mc) of the best: what gamma is multiplied with in c
    new_constant: float  # the same two of the newest majorant
    new_unused: float
    structure: float  # structure magnitude G
    largest: float  # largest magnitude of a column
    total_weight: float


class Bounding(NamedTuple):
    """The convex combination and the best bound of one box."""

    t: FloatArray  # (R or more,) margins of eta
    best_g: FloatArray  # (K,) gradient of the best bound
    vertices: IntArray  # (active, n + 1)
    share: FloatArray  # (active,) weights of the convex combination
    state: BoundState


class Balance(NamedTuple):
    """The active vertices side by side."""

    margins: FloatArray  # (active, R)
    level: FloatArray  # (active,)
    p: FloatArray  # (R,) dual weights that the levels belong to
    direction: FloatArray  # (R,)
    changed: IntArray  # (R + BLOCK,) scratch
    delta: FloatArray  # (R + BLOCK,) scratch


def new_bounding(inst: Instance, active: int, structure: float) -> Bounding:
    """Room for boxes of an instance, or of one with fewer rows, with up to ``active`` vertices."""
    n_rows, n_columns = inst.rows.shape[0], inst.linear.size
    return Bounding(
        np.zeros(n_rows),
        np.zeros(n_columns),
        np.zeros((active, inst.n_features + 1), dtype=np.int64),
        np.zeros(active),
        records.new_record(
            BoundState,
            structure=structure,
            largest=inst.magnitude.max(initial=0.0),
            total_weight=inst.weights.sum(),
        ),
    )


@kernel
def new_balance(inst: Instance, b: Bounding) -> Balance:
    """Room for the vertices, with those of the box loaded."""
    n_rows = inst.rows.shape[0]
    balance = Balance(
        np.empty((b.share.size, n_rows)),
        np.empty(b.share.size),
        np.zeros(n_rows),
        np.empty(n_rows),
        np.empty(n_rows + duals.BLOCK, dtype=np.int64),
        np.empty(n_rows + duals.BLOCK),
    )
    for k in range(b.state.n_active):
        _load_vertex(inst, b, balance, k)
    return balance


@kernel
def _load_vertex(inst: Instance, b: Bounding, balance: Balance, k: int) -> None:
    """Margins and level of active vertex k."""
    margins = balance.margins[k]
    for r in range(margins.size):
        margins[r] = 0.0
    duals.add_vertex_margins(inst, b.vertices[k], 1.0, margins)
    level = duals.linear_of_vertex(inst, inst.linear, b.vertices[k])
    for r in range(margins.size):
        level += margins[r] * balance.p[r]
    balance.level[k] = level


@kernel
def point_of(inst: Instance, b: Bounding) -> FloatArray:
    """eta of the convex combination, by columns."""
    n = inst.n_features
    eta = np.zeros(inst.linear.size)
    for k in range(b.state.n_active):
        for i in range(n + 1):
            eta[records.column_of(n, i, b.vertices[k, i])] += b.share[k]
    return eta


@entry
def load_margins(inst: Instance, b: Bounding) -> None:
    """t = margins of the convex combination."""
    eta = point_of(inst, b)
    for r in range(inst.rows.shape[0]):
        b.t[r] = 0.0
    for v in range(eta.size):
        if eta[v] != 0.0:
            duals.add_column(inst, v, eta[v], b.t)


@kernel
def worst_vertex(inst: Instance, b: Bounding, g: FloatArray) -> tuple[int, float]:
    """Active vertex of the smallest value, and g . eta."""
    worst, lowest, total = 0, np.inf, 0.0
    for k in range(b.state.n_active):
        value = duals.linear_of_vertex(inst, g, b.vertices[k])
        total += b.share[k] * value
        if value < lowest:
            worst, lowest = k, value
    return worst, total


@kernel
def linear_of_active(inst: Instance, b: Bounding, g: FloatArray) -> float:
    """g . eta of the convex combination."""
    total = 0.0
    for k in range(b.state.n_active):
        total += b.share[k] * duals.linear_of_vertex(inst, g, b.vertices[k])
    return total


@kernel
def step_towards(
    inst: Instance, b: Bounding, balance: Balance, target: IntArray, worst: int, slope: float
) -> None:
    """Move weight from an active vertex to any vertex of the box."""
    _step(inst, b, balance, _find_vertex(inst, b, balance, target), worst, slope)


@kernel
def _step(
    inst: Instance, b: Bounding, balance: Balance, into: int, worst: int, slope: float
) -> None:
    """Move weight between two active vertices."""
    plus, minus, direction = balance.margins[into], balance.margins[worst], balance.direction
    for r in range(direction.size):
        direction[r] = plus[r] - minus[r]
    linear = duals.linear_of_vertex(inst, inst.linear, b.vertices[into])
    linear -= duals.linear_of_vertex(inst, inst.linear, b.vertices[worst])
    largest = b.share[worst]
    s = duals.step_length(
        inst, b.t, direction, b.state.smoothing, slope, linear, largest, balance.changed
    )
    for r in range(direction.size):
        b.t[r] += s * direction[r]
    b.share[into] += s
    b.share[worst] -= s
    if s >= largest or b.share[worst] <= LIGHT:
        _remove_vertex(b, balance, worst)


@kernel
def correct(inst: Instance, b: Bounding, balance: Balance, gap: float, time: float) -> None:
    """Steps between active vertices while their levels differ by more than ``gap`` and the time,
    in the nanoseconds of the estimates, lasts.
    """
    level, margins = balance.level, balance.margins
    time = min(time, MOST_STEPS * ROW_TIME * balance.p.size)
    while time > 0.0:
        count, _ = duals.update_duals(
            inst, b.t, b.state.smoothing, STALE, balance.p, balance.changed, balance.delta
        )
        best, worst = 0, 0
        for k in range(b.state.n_active):
            level[k] += _change(margins[k], balance.changed, balance.delta, count)
            if level[k] > level[best]:
                best = k
            if level[k] < level[worst]:
                worst = k
        slope = level[best] - level[worst]
        if slope <= max(gap, 0.0):
            return
        time -= ROW_TIME * balance.p.size + CHANGE_TIME * count * b.state.n_active
        _step(inst, b, balance, best, worst, slope)


@kernel
def _change(margins: FloatArray, changed: IntArray, delta: FloatArray, count: int) -> float:
    """sum_a delta_a margins[changed_a]; four sums at a time need not wait for each other."""
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    last = count // 4 * 4
    for a in range(0, last, 4):
        s0 += delta[a] * margins[changed[a]]
        s1 += delta[a + 1] * margins[changed[a + 1]]
        s2 += delta[a + 2] * margins[changed[a + 2]]
        s3 += delta[a + 3] * margins[changed[a + 3]]
    for a in range(last, count):
        s0 += delta[a] * margins[changed[a]]
    return (s0 + s1) + (s2 + s3)


@kernel
def _find_vertex(inst: Instance, b: Bounding, balance: Balance, target: IntArray) -> int:
    """Index of a vertex among the active ones, added with weight 0 if it is new."""
    for k in range(b.state.n_active):
        same = True
        for i in range(target.size):
            if b.vertices[k, i] != target[i]:
                same = False
                break
        if same:
            return k
    k = b.state.n_active
    b.state.n_active = k + 1
    records.copy_array(target, b.vertices[k])
    b.share[k] = 0.0
    _load_vertex(inst, b, balance, k)
    return int(k)


@kernel
def _remove_vertex(b: Bounding, balance: Balance, k: int) -> None:
    """Drop an active vertex; the last one takes its place."""
    last = b.state.n_active - 1
    if k != last:
        records.copy_array(b.vertices[last], b.vertices[k])
        records.copy_array(balance.margins[last], balance.margins[k])
        b.share[k] = b.share[last]
        balance.level[k] = balance.level[last]
    b.state.n_active = last


@kernel
def make_room(b: Bounding, balance: Balance) -> None:
    """If there is no place for a new vertex the lightest goes and the others share its weight."""
    if b.state.n_active < b.share.size:
        return
    lightest = 0
    for k in range(b.state.n_active):
        if b.share[k] < b.share[lightest]:
            lightest = k
    rest, margins = 1.0 - b.share[lightest], balance.margins[lightest]
    for r in range(margins.size):
        b.t[r] = (b.t[r] - b.share[lightest] * margins[r]) / rest
    _remove_vertex(b, balance, lightest)
    for k in range(b.state.n_active):
        b.share[k] /= rest
