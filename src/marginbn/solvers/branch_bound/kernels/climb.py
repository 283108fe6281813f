"""Iterated local search on structures with incremental margins, compiled.

State: a vertex, its margins t, its objective f and a supergradient. f is concave in t, so with
``u_m = w_m`` on the smallest margin of sample m where it is below gamma (else 0) and
``g = linear + A^T u``

    f(other structure) - f(structure)  <=  g . (other - structure):

a move whose right-hand side is no better than the best gain found so far need not be evaluated.
That spares half to five sixths of the evaluations; a move changes few smallest margins,
so g is kept up to date by adding few rows.

Moves: another slot for one feature; another class set (its new members get {}); *re-routing*:
feature i becomes a child of its own descendant s, and a feature p on the way from s up to i takes
over the slot of i, or {class} (p = s next to i reverses an arc). *Climbing* takes the best move per
feature until nothing improves. Then random *kicks* change a few features, half of them to what they
are in a *guide*, a structure of the newest relaxed solution; the search climbs again and goes on
from there unless it lost too much. When many kicks in a row found nothing new the walk starts again
somewhere else, and calls go on with the walk of the call before. Climbing uses the rows that matter
(``rows.py``): their objective is nowhere smaller, so a climb that ends too low there needs no
second look, and the others are scored with all rows. All randomness comes from one integer, and
effort is counted in evaluations, so a run depends on its seed and on nothing else.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from marginbn.solvers.branch_bound.kernels import duals
from marginbn.solvers.branch_bound.kernels.bound import Incumbent, offer_vertex
from marginbn.solvers.branch_bound.kernels.box import is_member
from marginbn.solvers.branch_bound.kernels.records import (
    Box,
    FloatArray,
    Instance,
    IntArray,
    column_of,
    copy_array,
    new_record,
    next_random,
    set_class,
)
from marginbn.solvers.compile import entry, kernel

TOLERANCE = 3e-3
"""A climb that ends up to this much (relatively) lower may still replace the structure it was
kicked from.
"""

LEVELS = 8
"""What a kick may lose is drawn from so many levels between nothing and :data:`TOLERANCE`, so that
a walk is careful at times and bold at others.
"""

PATIENCE = 3
"""A walk ends after so many kicks per feature without a new best of its own."""

RESTART = 2
"""Changes per feature of the kick that begins another walk: little of the old structure is left."""

CLASS_KICK = 8
"""One of so many changes of a kick is another class set."""

SMALLEST_GAIN = 1e-9
"""Smaller gains, relative to the objective, are rounding."""

MOVED_COLUMNS = 4
"""Effort of a move that adds or removes about so many columns; a slot alone counts 1."""

Move = tuple[float, int, int, int, int]
"""Gain, feature, its new slot, second feature (-1: none), its new slot."""


class ClimbState:
    """The numbers of the local search."""

    value: float  # of the current structure
    effort: int  # evaluations of this call
    best: float  # of the present walk
    failures: int  # kicks since then
    found: int  # incumbents known at the end of the call before


class Climber(NamedTuple):
    """Scratch of the local search, for an instance or one with fewer rows and samples."""

    vertex: IntArray  # (n + 1,) current structure
    kept: IntArray  # (n + 1,) structure before the kick
    t: FloatArray  # (R,) margins of ``vertex``
    base: FloatArray  # (R,) margins without the part being moved
    margins: FloatArray  # (all rows,) scratch
    g: FloatArray  # (K,) supergradient
    lowest: IntArray  # (M,) row of the smallest margin, -1 where it is not below gamma
    changed: IntArray  # (2 M + BLOCK,) rows whose weight in u changes
    delta: FloatArray  # (2 M + BLOCK,) by how much
    spans: IntArray  # (1, 2) all columns
    seed: IntArray  # (1,)
    state: ClimbState


def new_climber(inst: Instance, seed: int) -> Climber:
    """Scratch for an instance, or for one with fewer rows."""
    n, n_samples = inst.n_features, inst.weights.size
    n_rows = inst.rows.shape[0]
    return Climber(
        np.zeros(n + 1, dtype=np.int64),
        np.zeros(n + 1, dtype=np.int64),
        np.zeros(n_rows),
        np.zeros(n_rows),
        np.zeros(n_rows),
        inst.linear.copy(),
        np.full(n_samples, -1, dtype=np.int64),
        np.zeros(2 * n_samples + duals.BLOCK, dtype=np.int64),
        np.zeros(2 * n_samples + duals.BLOCK),
        np.array([[0, inst.linear.size]], dtype=np.int64),
        np.array([2 * seed + 1], dtype=np.int64),
        new_record(ClimbState, best=-np.inf, found=-1),
    )


@entry
def search_from(
    inst: Instance,
    full: Instance,
    box: Box,
    start: IntArray,
    climber: Climber,
    incumbent: Incumbent,
    effort: int,
    strength: int,
    guides: IntArray,
    stop: IntArray,
) -> None:
    """Climb from a structure on the rows of ``inst``, then kick, with at least one guide, and climb
    until the effort is used up; offers what it finds, scored with the rows of ``full``.
    """
    climber.state.effort = 0
    _begin(inst, full, box, start, climber, incumbent, stop)
    state = climber.state
    while climber.state.effort < effort and stop[0] == 0:
        if state.failures > PATIENCE * inst.n_features:
            fresh = next_random(climber.seed) % 2 == 0
            copy_array(start if fresh else incumbent.vertex, climber.vertex)
            _kick(inst, box, climber, guides, RESTART * inst.n_features)
            _climb(inst, box, climber, stop)
            _judge(full, climber, -np.inf)
            state.best = -np.inf
        else:
            size = 1 + next_random(climber.seed) % strength
            _kick_and_climb(inst, full, box, climber, guides, size, stop)
        state.failures += 1
        if climber.state.value > state.best:
            state.best, state.failures = climber.state.value, 0
            offer_vertex(climber.vertex, climber.state.value, incumbent)
    state.found = incumbent.found[0]


@kernel
def _copy_margins(inst: Instance, source: FloatArray, target: FloatArray) -> None:
    """target = source for the rows of an instance; the arrays have room for more."""
    for r in range(inst.rows.shape[0]):
        target[r] = source[r]


@kernel
def _judge(full: Instance, climber: Climber, least: float) -> None:
    """Replace the value by the one with all rows, unless it is too low already."""
    if climber.state.value >= least:
        climber.state.value = duals.objective_of_vertex(full, climber.vertex, climber.margins)


@kernel
def _begin(
    inst: Instance,
    full: Instance,
    box: Box,
    start: IntArray,
    climber: Climber,
    incumbent: Incumbent,
    stop: IntArray,
) -> None:
    """Climb from the start; the last walk goes on from where it was unless there is a new
    incumbent.
    """
    state = climber.state
    copy_array(climber.vertex, climber.kept)
    value = climber.state.value
    copy_array(start, climber.vertex)
    _forget_gradient(inst, climber)
    _climb(inst, box, climber, stop)
    _judge(full, climber, -np.inf)
    offer_vertex(climber.vertex, climber.state.value, incumbent)
    if state.found == incumbent.found[0]:
        copy_array(climber.kept, climber.vertex)
        climber.state.value = value
    else:
        state.best, state.failures = climber.state.value, 0


@kernel
def _forget_gradient(inst: Instance, climber: Climber) -> None:
    """u = 0, so that rounding does not pile up."""
    copy_array(inst.linear, climber.g)
    for m in range(inst.weights.size):
        climber.lowest[m] = -1


@kernel
def _kick_and_climb(
    inst: Instance,
    full: Instance,
    box: Box,
    climber: Climber,
    guides: IntArray,
    size: int,
    stop: IntArray,
) -> None:
    """One step of the walk; a structure that is much worse is taken back."""
    value = climber.state.value
    copy_array(climber.vertex, climber.kept)
    _kick(inst, box, climber, guides, size)
    _climb(inst, box, climber, stop)
    least = value - TOLERANCE * (next_random(climber.seed) % LEVELS) / LEVELS * abs(value)
    _judge(full, climber, least)
    if climber.state.value < least:
        copy_array(climber.kept, climber.vertex)
        climber.state.value = value


@kernel
def _climb(inst: Instance, box: Box, climber: Climber, stop: IntArray) -> None:
    """Improve features in turn until a whole round fails, then class set and routes."""
    n = inst.n_features
    climber.state.value = duals.objective_of_vertex(inst, climber.vertex, climber.t)
    _follow(inst, climber)
    climber.state.effort += n
    while True:
        failures, i = 0, next_random(climber.seed) % n
        while failures < n and stop[0] == 0:
            failures = 0 if _improve_slot(inst, box, climber, i) else failures + 1
            i = i + 1 if i + 1 < n else 0
        if stop[0] != 0:
            break
        if not _improve_class(inst, box, climber) and not _improve_route(inst, box, climber):
            break


@kernel
def _follow(inst: Instance, climber: Climber) -> None:
    """Move the supergradient to the present margins."""
    count = 0
    for m in range(inst.weights.size):
        value, row = inst.gamma, -1
        for r in range(inst.starts[m], inst.starts[m + 1]):
            if climber.t[r] < value:
                value, row = climber.t[r], r
        old = climber.lowest[m]
        if row == old:
            continue
        if old >= 0:
            climber.changed[count], climber.delta[count] = old, -inst.weights[m]
            count += 1
        if row >= 0:
            climber.changed[count], climber.delta[count] = row, inst.weights[m]
            count += 1
        climber.lowest[m] = row
    if count > 0:
        duals.add_rows(inst, climber.spans, 1, climber.changed, climber.delta, count, climber.g)


@kernel
def _value_with(inst: Instance, climber: Climber, v: int) -> float:
    """The objective without linear scores when column v joins ``base``."""
    return duals.value_along(inst, inst.offset, climber.base, 1.0, inst.columns[v])


@kernel
def _linear(inst: Instance, vertex: IntArray) -> float:
    n = inst.n_features
    total = 0.0
    for i in range(n + 1):
        total += inst.linear[column_of(inst, i, vertex[i])]
    return total


@kernel
def is_below(vertex: IntArray, j: int, i: int) -> bool:
    """Whether j is i or a descendant of i."""
    n = vertex.size - 1
    while j < n:
        if j == i:
            return True
        j = vertex[j]
    return False


@kernel
def _least_gain(inst: Instance, climber: Climber) -> float:
    return float(SMALLEST_GAIN * (inst.scale + abs(climber.state.value)))


@kernel
def _improve_slot(inst: Instance, box: Box, climber: Climber, i: int) -> bool:
    """Best slot of feature i, everything else unchanged."""
    n = inst.n_features
    vertex = climber.vertex
    if is_member(inst, i, vertex[n]):
        return False
    offset = column_of(inst, i, 0)
    old = vertex[i]
    least = climber.g[offset + old] + _least_gain(inst, climber)
    best, slot, loaded, linear = climber.state.value, old, False, 0.0
    for s in range(n + 2):
        if s == old or not box.allowed[i, s] or climber.g[offset + s] <= least:
            continue
        if s < n and is_below(vertex, s, i):
            continue
        if not loaded:
            _copy_margins(inst, climber.t, climber.base)
            duals.add_column(inst, offset + old, -1.0, climber.base)
            linear = _linear(inst, vertex) - inst.linear[offset + old]
            loaded = True
        climber.state.effort += 1
        value = linear + inst.linear[offset + s] + _value_with(inst, climber, offset + s)
        if value - best > _least_gain(inst, climber):
            best, slot = value, s
            least = climber.g[offset + old] + (best - climber.state.value)
    if slot == old:
        return False
    vertex[i] = slot
    duals.add_column(inst, offset + slot, 1.0, climber.base)
    _copy_margins(inst, climber.base, climber.t)
    climber.state.value = best
    _follow(inst, climber)
    return True


@kernel
def _improve_class(inst: Instance, box: Box, climber: Climber) -> bool:
    """Best class set whose new members may have {}."""
    n = inst.n_features
    vertex = climber.vertex
    best, which = climber.state.value + _least_gain(inst, climber), -1
    for s in range(inst.first.size):
        if s == vertex[n] or not _class_set_possible(inst, box, s):
            continue
        if _class_gain(inst, climber, s) <= best - climber.state.value:
            continue
        value = _class_move_value(inst, climber, s)
        if value > best:
            best, which = value, s
    if which < 0:
        return False
    set_class(inst, vertex, which)
    climber.state.value = duals.objective_of_vertex(inst, vertex, climber.t)
    _follow(inst, climber)
    return True


@kernel
def _class_gain(inst: Instance, climber: Climber, s: int) -> float:
    """g . (change to class set s)."""
    n = inst.n_features
    vertex, g = climber.vertex, climber.g
    gain = g[column_of(inst, n, s)] - g[column_of(inst, n, vertex[n])]
    for j in (inst.first[s], inst.second[s]):
        if j >= 0:
            gain += g[column_of(inst, j, n + 1)] - g[column_of(inst, j, vertex[j])]
    return float(gain)


@kernel
def _class_set_possible(inst: Instance, box: Box, s: int) -> bool:
    n = inst.n_features
    j, k = inst.first[s], inst.second[s]
    if not box.classes[s] or (j >= 0 and not box.allowed[j, n + 1]):
        return False
    return k < 0 or bool(box.allowed[k, n + 1])


@kernel
def _class_move_value(inst: Instance, climber: Climber, s: int) -> float:
    """Objective after changing the class set to s."""
    n = inst.n_features
    vertex = climber.vertex
    _copy_margins(inst, climber.t, climber.base)
    old, new = column_of(inst, n, vertex[n]), column_of(inst, n, s)
    duals.add_column(inst, old, -1.0, climber.base)
    linear = _linear(inst, vertex) - inst.linear[old]
    for j in (inst.first[s], inst.second[s]):
        if j >= 0 and vertex[j] != n + 1:
            present, empty = column_of(inst, j, vertex[j]), column_of(inst, j, n + 1)
            duals.add_column(inst, present, -1.0, climber.base)
            duals.add_column(inst, empty, 1.0, climber.base)
            linear += inst.linear[empty] - inst.linear[present]
    climber.state.effort += MOVED_COLUMNS
    return float(linear + inst.linear[new] + _value_with(inst, climber, new))


@kernel
def _improve_route(inst: Instance, box: Box, climber: Climber) -> bool:
    """The first feature for which re-routing pays gets its best route."""
    n = inst.n_features
    vertex = climber.vertex
    begin = next_random(climber.seed) % n
    for a in range(n):
        i = (begin + a) % n
        if is_member(inst, i, vertex[n]):
            continue
        move = (_least_gain(inst, climber), -1, 0, -1, 0)
        for s in range(n):
            if s != i and s != vertex[i] and box.allowed[i, s] and is_below(vertex, s, i):
                move = _best_route(inst, box, climber, i, s, move)
        if move[1] >= 0:
            vertex[move[1]] = move[2]
            vertex[move[3]] = move[4]
            climber.state.value = duals.objective_of_vertex(inst, vertex, climber.t)
            _follow(inst, climber)
            return True
    return False


@kernel
def _best_route(inst: Instance, box: Box, climber: Climber, i: int, s: int, best: Move) -> Move:
    """i gets {class, s}; every feature from its descendant s up to i is tried as the new top."""
    n = inst.n_features
    vertex, g = climber.vertex, climber.g
    own = g[column_of(inst, i, s)] - g[column_of(inst, i, vertex[i])]
    p = s
    while p != i:
        for slot in (vertex[i], n):
            if box.allowed[p, slot]:
                gain = own + g[column_of(inst, p, slot)] - g[column_of(inst, p, vertex[p])]
                if gain > best[0]:
                    gain = _route_value(inst, climber, i, s, p, slot) - climber.state.value
                if gain > best[0]:
                    best = (gain, i, s, p, slot)
        p = vertex[p]
    return best


@kernel
def _route_value(inst: Instance, climber: Climber, i: int, s: int, p: int, slot: int) -> float:
    vertex, linear = climber.vertex, inst.linear
    old_i, new_i = column_of(inst, i, vertex[i]), column_of(inst, i, s)
    old_p, new_p = column_of(inst, p, vertex[p]), column_of(inst, p, slot)
    _copy_margins(inst, climber.t, climber.base)
    duals.add_column(inst, old_i, -1.0, climber.base)
    duals.add_column(inst, new_i, 1.0, climber.base)
    duals.add_column(inst, old_p, -1.0, climber.base)
    rest = _linear(inst, vertex) - linear[old_i] - linear[old_p]
    climber.state.effort += MOVED_COLUMNS
    return float(rest + linear[new_i] + linear[new_p] + _value_with(inst, climber, new_p))


@kernel
def _kick(inst: Instance, box: Box, climber: Climber, guides: IntArray, size: int) -> None:
    """Random changes: mostly slots, sometimes the class set; half of them taken from one of the
    guides.
    """
    n = inst.n_features
    vertex = climber.vertex
    for _ in range(size):
        guide = next_random(climber.seed) % (2 * guides.shape[0])
        if next_random(climber.seed) % CLASS_KICK == 0:
            s = next_random(climber.seed) % inst.first.size
            if guide < guides.shape[0]:
                s = guides[guide, n]
            if _class_set_possible(inst, box, s):
                set_class(inst, vertex, s)
            continue
        i = next_random(climber.seed) % n
        s = next_random(climber.seed) % (n + 2)
        if guide < guides.shape[0]:
            s = guides[guide, i]
        free = box.allowed[i, s] and not is_member(inst, i, vertex[n])
        if free and not (s < n and is_below(vertex, s, i)):
            vertex[i] = s
