"""Iterated local search on structures (gap after 8 s without it x1.09, at worst x1.33).

In that figure the search at the root remains. Without re-routing and parts of samples the gap of
20 000 rows of five classes after 10 s is 1.08 times as wide, as worse structures are found; eleven
proofs take as long.

State: a vertex, its margins t, its objective f and a supergradient. f is concave in t, so with
``u_m = w_m`` on the smallest margin of sample m where it is below gamma (else 0) and
``g = linear + A^T u``

    f(other structure) - f(structure)  <=  g . (other - structure):

a move whose right-hand side is no better than the best gain found so far need not be evaluated.
That spares half to five sixths of the evaluations; a move changes few smallest margins, so g is
kept up to date by adding few rows. The inequality holds for every sample on its own, so samples
stand in :data:`PARTS` parts, each with its share of f and of g: with the exact change of the parts
evaluated so far and the right-hand side of the others an evaluation ends as soon as the move is
known to be no better.

A move is another slot for one feature; another class set (its new members get {}); or *re-routing*:
feature i becomes a child of its own descendant s, and a feature p on the way from s up to i takes
over the slot of i, or {class} (p = s next to i reverses an arc). *Climbing* takes the best move per
feature until nothing improves. Then a random *kick* changes a few features, half of them to what
they are in a *guide*, a structure of the newest relaxed solution. Some kicks hang a whole tree on
another feature, which then has no parents at all: good structures have such a root in every tree,
and no way leads slot by slot from one root to another. The search climbs again and goes on from
there unless it lost too much. After many kicks without a new best the walk starts again somewhere
else; a call continues the walk of the call before.

Climbing uses the rows that matter (``rows.py``): their objective is nowhere smaller, so only a
climb that ends above the incumbent is scored with all rows. All randomness comes from one integer,
and effort is counted in evaluations, so a run depends on its seed and on nothing else.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from marginbn.problem.array_types import FloatArray, IntArray
from marginbn.solvers.branch_bound.kernels import duals
from marginbn.solvers.branch_bound.kernels.bound import Incumbent, offer_vertex
from marginbn.solvers.branch_bound.kernels.box import is_member
from marginbn.solvers.branch_bound.kernels.records import (
    Box,
    Instance,
    add_scaled,
    are_equal,
    clear,
    column_of,
    copy_array,
    count_rows,
    is_below,
    new_record,
    next_random,
    set_class,
)
from marginbn.solvers.compile import entry, kernel

TOLERANCE = 1e-3
"""A climb that ends up to this much (relatively) lower may still replace the structure it was
kicked from. With three times as much a walk found the best of satimage less often.
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

ROOT_KICK = 6
"""One of so many of the others hangs a tree on another feature."""

PARTS = 8
"""Parts of the samples."""

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


class Ground(NamedTuple):
    """Where one call of the local search looks."""

    inst: Instance  # it climbs on these rows
    full: Instance  # and scores what it finds with these
    box: Box
    incumbent: Incumbent
    guides: IntArray  # (at least 1, n + 1) structures that kicks lead to
    stop: IntArray


class Climber(NamedTuple):
    """Scratch of the local search, for an instance or one with fewer rows and samples."""

    vertex: IntArray  # (n + 1,) current structure
    kept: IntArray  # (n + 1,) structure before the kick
    t: FloatArray  # (R,) margins of ``vertex``
    base: FloatArray  # (R,) margins without the part being moved
    margins: FloatArray  # (all rows,) scratch
    g: FloatArray  # (K,) supergradient
    parts: FloatArray  # (PARTS, K) what the samples of each part add to it
    here: FloatArray  # (PARTS,) what they add to the objective
    rest: FloatArray  # (PARTS,) change of the supergradient's value by the move being tried
    lowest: IntArray  # (M,) row of the smallest margin, -1 where it is not below gamma
    changed: IntArray  # (2 M + BLOCK,) rows whose weight in u changes
    delta: FloatArray  # (2 M + BLOCK,) by how much
    spans: IntArray  # (1, 2) all columns
    seed: IntArray  # (1,)
    state: ClimbState


def new_climber(inst: Instance, n_samples: int, seed: int) -> Climber:
    """Scratch for an instance, or for one with fewer rows, that climbs on so many of its samples
    at the most.
    """
    n, n_rows = inst.n_features, count_rows(inst)
    return Climber(
        np.zeros(n + 1, dtype=np.int64),
        np.zeros(n + 1, dtype=np.int64),
        np.zeros(n_rows),
        np.zeros(n_rows),
        np.zeros(n_rows),
        inst.linear.copy(),
        np.zeros((PARTS, inst.linear.size)),
        np.zeros(PARTS),
        np.zeros(PARTS),
        np.full(n_samples, -1, dtype=np.int64),
        np.zeros(2 * n_samples + duals.BLOCK, dtype=np.int64),
        np.zeros(2 * n_samples + duals.BLOCK),
        np.array([[0, inst.linear.size]], dtype=np.int64),
        np.array([2 * seed + 1], dtype=np.int64),
        new_record(ClimbState, best=-np.inf, found=-1),
    )


@entry
def search_from(
    ground: Ground, start: IntArray, climber: Climber, effort: int, strength: int
) -> None:
    """Climb from a structure, then kick and climb until the effort is used up; offers what it
    finds.
    """
    inst, full, box, incumbent, guides, stop = ground
    climber.state.effort = 0
    _begin(ground, start, climber)
    state = climber.state
    while climber.state.effort < effort and stop[0] == 0:
        if state.failures > PATIENCE * inst.n_features:
            fresh = next_random(climber.seed) % 2 == 0
            copy_array(start if fresh else incumbent.vertex, climber.vertex)
            _kick(inst, box, climber, guides, RESTART * inst.n_features)
            _climb(inst, box, climber, stop)
            _judge(inst, full, climber, incumbent)
            state.best = -np.inf
        else:
            size = 1 + next_random(climber.seed) % strength
            _kick_and_climb(ground, climber, size)
        state.failures += 1
        if state.value > state.best + _least_gain(inst, climber):
            state.best, state.failures = state.value, 0
    state.found = incumbent.found[0]


@kernel
def _copy_margins(inst: Instance, source: FloatArray, target: FloatArray) -> None:
    """target = source for the rows of an instance; the arrays have room for more."""
    for r in range(count_rows(inst)):
        target[r] = source[r]


@kernel
def _judge(inst: Instance, full: Instance, climber: Climber, incumbent: Incumbent) -> None:
    """What may be better than the incumbent is scored with all rows, and offered."""
    if climber.state.value > incumbent.value[0] + _least_gain(inst, climber):
        climber.state.value = duals.objective_of_vertex(full, climber.vertex, climber.margins)
        offer_vertex(climber.vertex, climber.state.value, incumbent)


@kernel
def _begin(ground: Ground, start: IntArray, climber: Climber) -> None:
    """Climb from the start; the last walk goes on from where it was unless there is a new
    incumbent. The incumbent of the call before has been climbed from.
    """
    inst, full, box, incumbent, _, stop = ground
    state = climber.state
    if state.found == incumbent.found[0] and are_equal(start, incumbent.vertex):
        _forget_gradient(inst, climber)
        return
    copy_array(climber.vertex, climber.kept)
    value = climber.state.value
    copy_array(start, climber.vertex)
    _forget_gradient(inst, climber)
    _climb(inst, box, climber, stop)
    _judge(inst, full, climber, incumbent)
    if state.found == incumbent.found[0]:
        copy_array(climber.kept, climber.vertex)
        climber.state.value = value
    else:
        state.best, state.failures = climber.state.value, 0


@kernel
def _forget_gradient(inst: Instance, climber: Climber) -> None:
    """u = 0, so that rounding does not pile up."""
    copy_array(inst.linear, climber.g)
    climber.parts[:] = 0.0
    for m in range(inst.weights.size):
        climber.lowest[m] = -1


@kernel
def _kick_and_climb(ground: Ground, climber: Climber, size: int) -> None:
    """One step of the walk; a structure that is much worse is taken back."""
    inst, full, box, incumbent, guides, stop = ground
    value = climber.state.value
    copy_array(climber.vertex, climber.kept)
    _kick(inst, box, climber, guides, size)
    _climb(inst, box, climber, stop)
    least = value - TOLERANCE * (next_random(climber.seed) % LEVELS) / LEVELS * abs(value)
    _judge(inst, full, climber, incumbent)
    if climber.state.value < least:
        copy_array(climber.kept, climber.vertex)
        climber.state.value = value


@kernel
def _climb(inst: Instance, box: Box, climber: Climber, stop: IntArray) -> None:
    """Improve features in turn until a whole round fails, then class set and routes."""
    n = inst.n_features
    _arrive(inst, climber)
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
def _first_sample(inst: Instance, part: int) -> int:
    return part * inst.weights.size // PARTS


@kernel
def _arrive(inst: Instance, climber: Climber) -> None:
    """Margins, objective and supergradient of the present vertex."""
    clear(climber.t[: count_rows(inst)])
    duals.add_vertex_margins(inst, climber.vertex, 1.0, climber.t)
    _follow(inst, climber)


@kernel
def _follow(inst: Instance, climber: Climber) -> None:
    """Move objective and supergradient to the present margins."""
    changes = 0
    climber.state.value = inst.offset
    climber.state.value += duals.linear_of_vertex(inst, inst.linear, climber.vertex)
    for part in range(PARTS):
        count = _list_changes(inst, climber, part)
        climber.state.value += climber.here[part]
        if count > 0:
            changed, delta, g = climber.changed, climber.delta, climber.parts[part]
            duals.add_rows(inst, climber.spans, 1, changed, delta, count, g)
        changes += count
    if changes > 0:
        copy_array(inst.linear, climber.g)
        for part in range(PARTS):
            add_scaled(climber.g, 1.0, climber.parts[part])


@kernel
def _list_changes(inst: Instance, climber: Climber, part: int) -> int:
    """Changes of weights in a part, and what the part adds to the objective."""
    count, total = 0, 0.0
    for m in range(_first_sample(inst, part), _first_sample(inst, part + 1)):
        value, row = inst.gamma, -1
        for r in range(inst.starts[m], inst.starts[m + 1]):
            if climber.t[r] < value:
                value, row = climber.t[r], r
        total += inst.weights[m] * value
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
    climber.here[part] = total
    return count


@kernel
def _leave(inst: Instance, climber: Climber) -> None:
    """Begin a move: nothing has changed yet."""
    _copy_margins(inst, climber.t, climber.base)
    climber.rest[:] = 0.0


@kernel
def _exchange(inst: Instance, climber: Climber, v: int, scale: float) -> float:
    """Part of a move: column v joins (scale 1) or leaves (-1); returns its linear score. The one
    that joins last is left to :func:`_gain_with`.
    """
    duals.add_column(inst, v, scale, climber.base)
    for part in range(PARTS):
        climber.rest[part] += scale * climber.parts[part, v]
    return float(scale * inst.linear[v])


@kernel
def _gain_with(inst: Instance, climber: Climber, v: int, linear: float, need: float) -> float:
    """Gain of a move when column v joins ``base`` last, the linear scores of the others changing by
    ``linear``; something not above ``need`` if the gain is not above it.
    """
    climber.state.effort += 1
    gain = linear + inst.linear[v]
    for part in range(PARTS):
        gain += climber.rest[part] + climber.parts[part, v]
    for part in range(PARTS):
        if gain <= need:
            break
        gain -= climber.rest[part] + climber.parts[part, v]
        gain += _value_of_part(inst, climber.base, inst.columns[v], part) - climber.here[part]
    return float(gain)


@kernel
def _value_of_part(inst: Instance, t: FloatArray, d: FloatArray, part: int) -> float:
    """sum w_m min(gamma, min_c (t + d)_mc) of a part; four sums at a time, of which none waits for
    another.
    """
    first, last = _first_sample(inst, part), _first_sample(inst, part + 1)
    gamma, w, starts = inst.gamma, inst.weights, inst.starts
    if inst.weights.size == count_rows(inst):
        a0, a1, a2, a3 = 0.0, 0.0, 0.0, 0.0
        m = first
        while m + 3 < last:
            a0 += w[m] * min(gamma, t[m] + d[m])
            a1 += w[m + 1] * min(gamma, t[m + 1] + d[m + 1])
            a2 += w[m + 2] * min(gamma, t[m + 2] + d[m + 2])
            a3 += w[m + 3] * min(gamma, t[m + 3] + d[m + 3])
            m += 4
        while m < last:
            a0 += w[m] * min(gamma, t[m] + d[m])
            m += 1
        return (a0 + a1) + (a2 + a3)
    total = 0.0
    for m in range(first, last):
        lowest = gamma
        for r in range(starts[m], starts[m + 1]):
            lowest = min(lowest, t[r] + d[r])
        total += w[m] * lowest
    return total


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
    best, slot, loaded, linear = _least_gain(inst, climber), old, False, 0.0
    for s in range(n + 2):
        if s == old or not box.allowed[i, s]:
            continue
        if climber.g[offset + s] - climber.g[offset + old] <= best:
            continue
        if s < n and is_below(vertex, s, i):
            continue
        if not loaded:
            _leave(inst, climber)
            linear = _exchange(inst, climber, offset + old, -1.0)
            loaded = True
        gain = _gain_with(inst, climber, offset + s, linear, best)
        if gain > best:
            best, slot = gain, s
    if slot == old:
        return False
    vertex[i] = slot
    duals.add_column(inst, offset + slot, 1.0, climber.base)
    _copy_margins(inst, climber.base, climber.t)
    _follow(inst, climber)
    return True


@kernel
def _improve_class(inst: Instance, box: Box, climber: Climber) -> bool:
    """Best class set whose new members may have {}."""
    n = inst.n_features
    vertex, g = climber.vertex, climber.g
    best, which = _least_gain(inst, climber), -1
    for s in range(inst.first.size):
        if s == vertex[n] or not _class_set_possible(inst, box, s):
            continue
        gain = g[column_of(inst, n, s)] - g[column_of(inst, n, vertex[n])]
        for j in (inst.first[s], inst.second[s]):
            if j >= 0:
                gain += g[column_of(inst, j, n + 1)] - g[column_of(inst, j, vertex[j])]
        if gain <= best:
            continue
        gain = _try_class(inst, climber, s, best)
        if gain > best:
            best, which = gain, s
    if which < 0:
        return False
    set_class(inst, vertex, which)
    _arrive(inst, climber)
    return True


@kernel
def _class_set_possible(inst: Instance, box: Box, s: int) -> bool:
    n = inst.n_features
    j, k = inst.first[s], inst.second[s]
    if not box.classes[s] or (j >= 0 and not box.allowed[j, n + 1]):
        return False
    return k < 0 or bool(box.allowed[k, n + 1])


@kernel
def _try_class(inst: Instance, climber: Climber, s: int, need: float) -> float:
    """Gain of changing the class set to s, see :func:`_gain_with`."""
    n = inst.n_features
    vertex = climber.vertex
    _leave(inst, climber)
    linear = _exchange(inst, climber, column_of(inst, n, vertex[n]), -1.0)
    for j in (inst.first[s], inst.second[s]):
        if j >= 0 and vertex[j] != n + 1:
            linear += _exchange(inst, climber, column_of(inst, j, vertex[j]), -1.0)
            linear += _exchange(inst, climber, column_of(inst, j, n + 1), 1.0)
    climber.state.effort += MOVED_COLUMNS
    return _gain_with(inst, climber, column_of(inst, n, s), linear, need)


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
            _arrive(inst, climber)
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
                    _leave(inst, climber)
                    linear = _exchange(inst, climber, column_of(inst, i, vertex[i]), -1.0)
                    linear += _exchange(inst, climber, column_of(inst, i, s), 1.0)
                    linear += _exchange(inst, climber, column_of(inst, p, vertex[p]), -1.0)
                    climber.state.effort += MOVED_COLUMNS
                    last = column_of(inst, p, slot)
                    gain = _gain_with(inst, climber, last, linear, best[0])
                if gain > best[0]:
                    best = (gain, i, s, p, slot)
        p = vertex[p]
    return best


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
        if next_random(climber.seed) % ROOT_KICK == 0:
            _hang_on(inst, box, vertex, i)
            continue
        s = next_random(climber.seed) % (n + 2)
        if guide < guides.shape[0]:
            s = guides[guide, i]
        free = box.allowed[i, s] and not is_member(inst, i, vertex[n])
        if free and not (s < n and is_below(vertex, s, i)):
            vertex[i] = s


@kernel
def _hang_on(inst: Instance, box: Box, vertex: IntArray, i: int) -> None:
    """Feature i gets {}, and everything on the way to its root becomes a child of what was its
    own child; nothing happens where the box or the class set does not allow it.
    """
    n = inst.n_features
    if is_member(inst, i, vertex[n]) or not box.allowed[i, n + 1]:
        return
    j, above = i, vertex[i]
    while above < n:
        if is_member(inst, above, vertex[n]) or not box.allowed[above, j]:
            return
        j, above = above, vertex[above]
    j, above = i, vertex[i]
    vertex[i] = n + 1
    while above < n:
        j, vertex[above], above = above, j, vertex[above]
