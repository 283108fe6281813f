"""The convex combination of one box: its vertices, their margins, and moving weight between them.

``eta = sum_k share_k vertex_k`` has the margins ``t = sum_k share_k T_k``, T_k those of vertex k. A
*pairwise step* moves weight from one vertex to another along ``T_a - T_b``, as far as the smoothed
objective grows (``gradient.py``).

Between two steps to new vertices the weights of those at hand are balanced (``newton.py``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from marginbn.problem.array_types import FloatArray, IntArray
from marginbn.solvers.branch_bound.kernels import duals, records
from marginbn.solvers.branch_bound.kernels.records import Instance
from marginbn.solvers.compile import kernel

LIGHT = 1e-12
"""A vertex with no more weight than this is dropped: it is what rounding left of it."""

ROOM = 1 << 22
"""Numbers of a box that have a place of their own: memory that is asked for again and again has to
be cleared by the system every time (20 000 rows, 17 features, 5 classes: a third of the time).
"""


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
    room: FloatArray  # for margins of vertices and copies of columns, see ``Balance``
    state: BoundState


class Balance(NamedTuple):
    """The active vertices side by side."""

    margins: FloatArray  # (active, R) of every vertex
    linear: FloatArray  # (active,) their linear scores
    p: FloatArray  # (R,) scratch: dual weights
    direction: FloatArray  # (R,) scratch
    listed: IntArray  # (R,) scratch
    columns: FloatArray  # (places R,) copies of columns that vertices have needed, where the
    # instance has borrowed its coefficients: its own rows side by side
    place: IntArray  # (K + 1,) of every column among the copies, -1: none; then how many there are


def new_bounding(inst: Instance, active: int, structure: float) -> Bounding:
    """Room for boxes of an instance, or of one with fewer rows, with up to ``active`` vertices."""
    n_rows, n_columns = records.count_rows(inst), inst.linear.size
    return Bounding(
        np.zeros(n_rows),
        np.zeros(n_columns),
        np.zeros((active, inst.n_features + 1), dtype=np.int64),
        np.zeros(active),
        np.empty(min(ROOM, n_rows * (n_columns + active))),
        records.new_record(
            BoundState, structure=structure, largest=inst.magnitude, total_weight=inst.weights.sum()
        ),
    )


@kernel
def new_balance(inst: Instance, b: Bounding) -> Balance:
    """Room for the vertices, with those of the box loaded; t = margins of their combination."""
    n_rows = records.count_rows(inst)
    size, margins = b.share.size * n_rows, b.room
    if margins.size < size:
        margins = np.empty(size)
    place = np.full(inst.linear.size + 1, -1)
    place[inst.linear.size] = 0
    balance = Balance(
        margins[:size].reshape((b.share.size, n_rows)),
        np.empty(b.share.size),
        np.empty(n_rows),
        np.empty(n_rows),
        np.empty(n_rows, dtype=np.int64),
        b.room[min(size, b.room.size) :],
        place,
    )
    records.clear(b.t[:n_rows])
    for k in range(b.state.n_active):
        _load_vertex(inst, b, balance, k)
        records.add_scaled(b.t, b.share[k], balance.margins[k])
    return balance


@kernel
def _load_vertex(inst: Instance, b: Bounding, balance: Balance, k: int) -> None:
    """Margins and linear score of active vertex k."""
    margins = balance.margins[k]
    records.clear(margins)
    if inst.places.size == 0:
        duals.add_vertex_margins(inst, b.vertices[k], 1.0, margins)
    else:
        for i in range(inst.n_features + 1):
            _add_copy(inst, balance, records.column_of(inst, i, b.vertices[k, i]), margins)
    balance.linear[k] = duals.linear_of_vertex(inst, inst.linear, b.vertices[k])


@kernel
def _add_copy(inst: Instance, balance: Balance, v: int, margins: FloatArray) -> None:
    """margins += column v; what one vertex has needed others will need too."""
    n_rows, place, last = margins.size, balance.place, balance.place.size - 1
    if place[v] < 0 and (place[last] + 1) * n_rows > balance.columns.size:
        duals.add_column(inst, v, 1.0, margins)
        return
    is_new = place[v] < 0
    if is_new:
        place[v] = place[last]
        place[last] += 1
    own = balance.columns[place[v] * n_rows : (place[v] + 1) * n_rows]
    if is_new:
        column = inst.columns[v]
        for r in range(own.size):
            own[r] = column[inst.places[r]]
    records.add_scaled(margins, 1.0, own)


@kernel
def point_of(inst: Instance, b: Bounding) -> FloatArray:
    """eta of the convex combination, by columns."""
    n = inst.n_features
    eta = np.zeros(inst.linear.size)
    for k in range(b.state.n_active):
        for i in range(n + 1):
            eta[records.column_of(inst, i, b.vertices[k, i])] += b.share[k]
    return eta


@kernel
def load_margins(inst: Instance, b: Bounding) -> None:
    """t = margins of the convex combination."""
    eta, t = point_of(inst, b), b.t
    records.clear(t[: records.count_rows(inst)])
    if inst.codes.shape[0] > 0 or inst.places.size > 0:
        for v in range(eta.size):
            if eta[v] != 0.0:
                duals.add_column(inst, v, eta[v], t)
        return
    used = np.zeros(eta.size + duals.BLOCK, dtype=np.int64)
    share = np.zeros(used.size)  # the last block may not be full
    count = 0
    for v in range(eta.size):
        if eta[v] != 0.0:
            used[count], share[count] = v, eta[v]
            count += 1
    for k in range(0, count, duals.BLOCK):  # t is read and written once for all columns of a block
        e0, e1, e2, e3 = share[k], share[k + 1], share[k + 2], share[k + 3]
        a0, a1 = inst.columns[used[k]], inst.columns[used[k + 1]]
        a2, a3 = inst.columns[used[k + 2]], inst.columns[used[k + 3]]
        for r in range(a0.size):
            t[r] += e0 * a0[r] + e1 * a1[r] + e2 * a2[r] + e3 * a3[r]


@kernel
def step_between(
    inst: Instance, b: Bounding, balance: Balance, into: int, worst: int, slope: float
) -> None:
    """Move weight between two active vertices; ``slope`` is that of the smoothed objective."""
    plus, minus, direction = balance.margins[into], balance.margins[worst], balance.direction
    for r in range(direction.size):
        direction[r] = plus[r] - minus[r]
    linear = balance.linear[into] - balance.linear[worst]
    largest = b.share[worst]
    s = duals.step_length(
        inst, b.t, direction, b.state.smoothing, slope, linear, largest, balance.listed
    )
    records.add_scaled(b.t, s, direction)
    b.share[into] += s
    b.share[worst] -= s
    if s >= largest or b.share[worst] <= LIGHT:
        remove_vertex(b, balance, worst)


@kernel
def find_vertex(inst: Instance, b: Bounding, balance: Balance, target: IntArray) -> int:
    """Index of a vertex among the active ones, added with weight 0 if it is new."""
    for k in range(b.state.n_active):
        if records.are_equal(b.vertices[k], target):
            return k
    k = b.state.n_active
    b.state.n_active = k + 1
    records.copy_array(target, b.vertices[k])
    b.share[k] = 0.0
    _load_vertex(inst, b, balance, k)
    return int(k)


@kernel
def remove_vertex(b: Bounding, balance: Balance, k: int) -> None:
    """Drop an active vertex; the last one takes its place."""
    last = b.state.n_active - 1
    if k != last:
        records.copy_array(b.vertices[last], b.vertices[k])
        records.copy_array(balance.margins[last], balance.margins[k])
        b.share[k] = b.share[last]
        balance.linear[k] = balance.linear[last]
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
    remove_vertex(b, balance, lightest)
    for k in range(b.state.n_active):
        b.share[k] /= rest
