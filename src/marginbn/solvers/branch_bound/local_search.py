"""Iterated local search on structures with incremental margins, compiled.

State: a vertex, its margins t and its objective. A move replaces one to three columns, so trying it
costs one pass over the margin rows.

Moves: another slot for one feature; another class set (its new members get {}); reversing an arc
(the child takes over the slot of its parent). *Climbing* takes the best move per feature until
nothing improves. Then random *kicks* change a few features, the search climbs again and goes on
from there unless it lost too much. All randomness comes from one integer, and effort is counted in
columns tried, so a run depends on its seed and on nothing else.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from marginbn.solvers.branch_bound.kernels.duals import add_column, objective_of_vertex
from marginbn.solvers.branch_bound.kernels.layout import (
    Box,
    FloatArray,
    Instance,
    IntArray,
    copy_array,
)
from marginbn.solvers.branch_bound.kernels.pairwise import Incumbent, offer_vertex
from marginbn.solvers.branch_bound.kernels.propagate import is_member
from marginbn.solvers.branch_bound.splits import next_random
from marginbn.solvers.compile import entry, kernel

TOLERANCE = 1e-3
"""A climb that ends up to this much (relatively) lower may still replace the structure it was
kicked from.
"""

MAX_CLASS_TRIALS = 400
"""Class sets tried in one sweep; larger families are sampled."""


class Climber(NamedTuple):
    """Scratch of the local search."""

    vertex: IntArray  # (n + 1,) current structure
    kept: IntArray  # (n + 1,) structure before the kick
    t: FloatArray  # (R,) margins of ``vertex``
    base: FloatArray  # (R,) margins without the part being moved
    value: FloatArray  # (1,)
    seed: IntArray  # (1,)
    effort: IntArray  # (1,) columns tried


def new_climber(inst: Instance, seed: int) -> Climber:
    """Scratch for one instance."""
    n = inst.n_features
    n_rows = inst.rows.shape[0]
    return Climber(
        np.zeros(n + 1, dtype=np.int64),
        np.zeros(n + 1, dtype=np.int64),
        np.zeros(n_rows),
        np.zeros(n_rows),
        np.zeros(1),
        np.array([2 * seed + 1], dtype=np.int64),
        np.zeros(1, dtype=np.int64),
    )


@entry
def search_from(
    inst: Instance,
    box: Box,
    start: IntArray,
    climber: Climber,
    incumbent: Incumbent,
    effort: int,
    strength: int,
    stop: IntArray,
) -> None:
    """Climb from a structure, then kick and climb until the effort is used up; offers what it
    finds.
    """
    climber.effort[0] = 0
    copy_array(start, climber.vertex)
    _climb(inst, box, climber, stop)
    offer_vertex(inst, climber.vertex, climber.value[0], incumbent)
    while climber.effort[0] < effort and stop[0] == 0:
        value = climber.value[0]
        copy_array(climber.vertex, climber.kept)
        _kick(inst, box, climber, 1 + next_random(climber.seed) % strength)
        _climb(inst, box, climber, stop)
        offer_vertex(inst, climber.vertex, climber.value[0], incumbent)
        if climber.value[0] < value - TOLERANCE * abs(value) * (next_random(climber.seed) % 8) / 8:
            copy_array(climber.kept, climber.vertex)
            climber.value[0] = value


@kernel
def _climb(inst: Instance, box: Box, climber: Climber, stop: IntArray) -> None:
    """Improve features in turn until a whole round fails, then class set and arc reversals."""
    n = inst.n_features
    climber.value[0] = objective_of_vertex(inst, climber.vertex, climber.t)
    climber.effort[0] += n
    while True:
        failures, i = 0, next_random(climber.seed) % n
        while failures < n and stop[0] == 0:
            failures = 0 if _improve_slot(inst, box, climber, i) else failures + 1
            i = i + 1 if i + 1 < n else 0
        if stop[0] != 0:
            break
        if not _improve_class(inst, box, climber) and not _improve_arcs(inst, box, climber):
            break


@kernel
def _value_with(inst: Instance, base: FloatArray, v: int) -> float:
    """sum_m w_m min(gamma, min_c (base + column v)_mc)."""
    rivals = inst.n_rivals
    column = inst.columns[v]
    total = 0.0
    if rivals == 1:
        for m in range(inst.weights.size):
            total += inst.weights[m] * min(inst.gamma, base[m] + column[m])
        return total
    for m in range(inst.weights.size):
        lowest = inst.gamma
        for r in range(m * rivals, (m + 1) * rivals):
            lowest = min(lowest, base[r] + column[r])
        total += inst.weights[m] * lowest
    return total


@kernel
def _linear(inst: Instance, vertex: IntArray) -> float:
    n = inst.n_features
    total = 0.0
    for i in range(n + 1):
        total += inst.linear[i * (n + 2) + vertex[i]]
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
def _is_better(new: float, old: float) -> bool:
    return new > old + 1e-9 * (1.0 + abs(old))


@kernel
def _improve_slot(inst: Instance, box: Box, climber: Climber, i: int) -> bool:
    """Best slot of feature i, everything else unchanged."""
    n = inst.n_features
    vertex = climber.vertex
    if is_member(inst, i, vertex[n]):
        return False
    offset = i * (n + 2)
    old = vertex[i]
    copy_array(climber.t, climber.base)
    add_column(inst, offset + old, -1.0, climber.base)
    linear = _linear(inst, vertex) - inst.linear[offset + old]
    best, slot = climber.value[0], old
    for s in range(n + 2):
        if s == old or not box.allowed[i, s] or (s < n and is_below(vertex, s, i)):
            continue
        climber.effort[0] += 1
        value = linear + inst.linear[offset + s] + _value_with(inst, climber.base, offset + s)
        if _is_better(value, best):
            best, slot = value, s
    if slot == old:
        return False
    vertex[i] = slot
    add_column(inst, offset + slot, 1.0, climber.base)
    copy_array(climber.base, climber.t)
    climber.value[0] = best
    return True


@kernel
def _improve_class(inst: Instance, box: Box, climber: Climber) -> bool:
    """Best class set whose new members may have {}."""
    n = inst.n_features
    vertex = climber.vertex
    n_sets = inst.first.size
    step = 1 + n_sets // MAX_CLASS_TRIALS
    begin = next_random(climber.seed) % step
    best, which = climber.value[0], -1
    for s in range(begin, n_sets, step):
        if s == vertex[n] or not _class_set_possible(inst, box, s):
            continue
        value = _class_move_value(inst, climber, s)
        if _is_better(value, best):
            best, which = value, s
    if which < 0:
        return False
    set_class(inst, vertex, which)
    climber.value[0] = objective_of_vertex(inst, vertex, climber.t)
    return True


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
    copy_array(climber.t, climber.base)
    old = n * (n + 2) + vertex[n]
    add_column(inst, old, -1.0, climber.base)
    linear = _linear(inst, vertex) - inst.linear[old]
    for j in (inst.first[s], inst.second[s]):
        if j >= 0 and vertex[j] != n + 1:
            add_column(inst, j * (n + 2) + vertex[j], -1.0, climber.base)
            add_column(inst, j * (n + 2) + n + 1, 1.0, climber.base)
            linear += inst.linear[j * (n + 2) + n + 1] - inst.linear[j * (n + 2) + vertex[j]]
    climber.effort[0] += 4
    return float(
        linear + inst.linear[n * (n + 2) + s] + _value_with(inst, climber.base, n * (n + 2) + s)
    )


@kernel
def set_class(inst: Instance, vertex: IntArray, s: int) -> None:
    """Use class set s and give its members {}."""
    n = inst.n_features
    vertex[n] = s
    if inst.first[s] >= 0:
        vertex[inst.first[s]] = n + 1
    if inst.second[s] >= 0:
        vertex[inst.second[s]] = n + 1


@kernel
def _improve_arcs(inst: Instance, box: Box, climber: Climber) -> bool:
    """Reverse j -> i: i takes over the slot of j, or {class}, and j gets {class, i}."""
    n = inst.n_features
    vertex = climber.vertex
    for i in range(n):
        j = vertex[i]
        if j >= n or not box.allowed[j, i] or is_member(inst, j, vertex[n]):
            continue
        for slot in (vertex[j], n):
            if box.allowed[i, slot] and _try_reversal(inst, climber, i, j, slot):
                return True
    return False


@kernel
def _try_reversal(inst: Instance, climber: Climber, i: int, j: int, slot: int) -> bool:
    n = inst.n_features
    vertex = climber.vertex
    of_i, of_j = i * (n + 2), j * (n + 2)
    copy_array(climber.t, climber.base)
    add_column(inst, of_i + j, -1.0, climber.base)
    add_column(inst, of_i + slot, 1.0, climber.base)
    add_column(inst, of_j + vertex[j], -1.0, climber.base)
    linear = _linear(inst, vertex) - inst.linear[of_i + j] - inst.linear[of_j + vertex[j]]
    value = (
        linear
        + inst.linear[of_i + slot]
        + inst.linear[of_j + i]
        + _value_with(inst, climber.base, of_j + i)
    )
    climber.effort[0] += 4
    if not _is_better(value, climber.value[0]):
        return False
    vertex[i], vertex[j] = slot, i
    climber.value[0] = objective_of_vertex(inst, vertex, climber.t)
    return True


@kernel
def _kick(inst: Instance, box: Box, climber: Climber, size: int) -> None:
    """Random changes: mostly slots, sometimes the class set."""
    n = inst.n_features
    vertex = climber.vertex
    for _ in range(size):
        if next_random(climber.seed) % 8 == 0:
            s = next_random(climber.seed) % inst.first.size
            if _class_set_possible(inst, box, s):
                set_class(inst, vertex, s)
            continue
        i = next_random(climber.seed) % n
        s = next_random(climber.seed) % (n + 2)
        free = box.allowed[i, s] and not is_member(inst, i, vertex[n])
        if free and not (s < n and is_below(vertex, s, i)):
            vertex[i] = s
