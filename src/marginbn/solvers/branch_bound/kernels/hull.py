"""Bound of a box of structures with any number of parents, for few variables.

The relaxation and its dual are those of ``bound.py``, over the convex hull of *all* structures of
the box; only the oracle is another (``subsets.py``). A vertex is a candidate of every variable, and
candidates are the columns of the instance.

The oracle is what takes time, and boxes have much in common. So the newest vertices of all boxes
are kept in a *pool*. The best of those in the box is improved one variable at a time; as long as
that promises a good part of the bracket, the oracle is not asked.

A box begins where its parent ended: the dual weights of the parent's combination give the first
bound and the first vertex, then the parent's vertices that lie in the box are balanced.

The rounding of the oracle, sums of at most n + 1 values and their differences, is well within what
``bound.bound_error`` allows for the other one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from marginbn.solvers.branch_bound.kernels import combination, duals
from marginbn.solvers.branch_bound.kernels.bound import (
    EMPTY,
    EQUAL_SLOPES,
    LULL,
    NARROWER,
    PAUSED,
    PRUNED,
    SMOOTHED_OUT,
    SPLIT,
    STANDSTILL,
    Scratch,
    keep_best,
    new_scratch,
    refresh_gradient,
)
from marginbn.solvers.branch_bound.kernels.combination import Balance, Bounding
from marginbn.solvers.branch_bound.kernels.newton import newton_step
from marginbn.solvers.branch_bound.kernels.records import (
    BoolArray,
    FloatArray,
    Instance,
    IntArray,
    are_equal,
    copy_array,
    count_rows,
)
from marginbn.solvers.branch_bound.kernels.subsets import (
    Candidates,
    Tables,
    lay_out,
    maximise_over_orders,
    values_through,
)
from marginbn.solvers.compile import entry, kernel


class Effort(NamedTuple):
    """When a box is bounded well enough; none of it can make a bound wrong."""

    cutoff: float  # boxes at or below this are pruned
    theta: float  # bracket against the distance to the cutoff at which a box is split
    worth: float  # brackets smaller than that are not worth an iteration
    iterations: int
    smoothing_floor: float
    smoothing_factor: float
    stale: float


class Found(NamedTuple):
    """The best structure that the bounding of boxes came across."""

    vertex: IntArray  # (n,)
    value: FloatArray  # (1,)


class Pool(NamedTuple):
    """The newest vertices of all boxes."""

    vertices: IntArray  # (room, n)
    written: IntArray  # (1,) vertices so far; the oldest are overwritten


PROMISING = 0.3
"""Part of the bracket that a vertex of the pool must promise; from here on the smoothing is not
what makes up the bracket (``bound.SMOOTHED_OUT``).
"""

IN_A_ROW = 6
"""Vertices of the pool that are taken before the oracle is asked again."""


@kernel
def _list_spans(allowed: BoolArray, spans: IntArray) -> int:
    """Spans of allowed columns; those with small gaps between them are one."""
    count = 0
    for k in range(allowed.size):
        if allowed[k]:
            if count > 0 and k - spans[count - 1, 1] < duals.GAP:
                spans[count - 1, 1] = k + 1
            else:
                spans[count, 0], spans[count, 1] = k, k + 1
                count += 1
    return count


@kernel
def _is_inside(c: Candidates, allowed: BoolArray, present: BoolArray, vertex: IntArray) -> bool:
    """Whether a structure belongs to the box."""
    n = vertex.size
    for i in range(n):
        if not allowed[vertex[i]]:
            return False
    for i in range(n):
        for j in range(i + 1, n):
            if present[i, j]:
                joined = c.masks[vertex[i]] >> j & 1 or c.masks[vertex[j]] >> i & 1
                if not joined:
                    return False
    return True


@kernel
def _load_margins(inst: Instance, b: Bounding) -> None:
    """t = margins of the convex combination."""
    eta = np.zeros(inst.linear.size)
    for k in range(b.state.n_active):
        for i in range(b.vertices.shape[1]):
            eta[b.vertices[k, i]] += b.share[k]
    for r in range(b.t.size):
        b.t[r] = 0.0
    for v in range(eta.size):
        if eta[v] != 0.0:
            duals.add_column(inst, v, eta[v], b.t)


@kernel
def _load_vertex(inst: Instance, b: Bounding, balance: Balance, k: int) -> None:
    """Margins and linear score of active vertex k."""
    margins, linear = balance.margins[k], 0.0
    for r in range(margins.size):
        margins[r] = 0.0
    for i in range(b.vertices.shape[1]):
        duals.add_column(inst, b.vertices[k, i], 1.0, margins)
        linear += inst.linear[b.vertices[k, i]]
    balance.linear[k] = linear


@kernel
def _keep_inside(c: Candidates, allowed: BoolArray, present: BoolArray, b: Bounding) -> None:
    """Drop the vertices outside the box; the others share their weight."""
    count, total = 0, 0.0
    for k in range(b.state.n_active):
        if _is_inside(c, allowed, present, b.vertices[k]):
            copy_array(b.vertices[k], b.vertices[count])
            b.share[count] = b.share[k]
            total += b.share[k]
            count += 1
    for k in range(count):
        b.share[k] /= total
    b.state.n_active = count


@kernel
def _find_vertex(inst: Instance, b: Bounding, balance: Balance, target: IntArray) -> int:
    """Index of a vertex among the active ones, added with weight 0 if it is new."""
    for k in range(b.state.n_active):
        if are_equal(b.vertices[k], target):
            return k
    k = b.state.n_active
    b.state.n_active = k + 1
    copy_array(target, b.vertices[k])
    b.share[k] = 0.0
    _load_vertex(inst, b, balance, k)
    return int(k)


@kernel
def _value(g: FloatArray, vertex: IntArray) -> float:
    """g . eta of a vertex."""
    total = 0.0
    for i in range(vertex.size):
        total += g[vertex[i]]
    return total


@kernel
def _offer(inst: Instance, balance: Balance, k: int, vertex: IntArray, found: Found) -> None:
    """Keep an active vertex if it is a better structure."""
    value = duals.objective_of_margins(inst, balance.margins[k]) + balance.linear[k]
    if value > found.value[0]:
        found.value[0] = value
        copy_array(vertex, found.vertex)


@entry
def bound_hull(
    inst: Instance,
    c: Candidates,
    allowed: BoolArray,
    present: BoolArray,
    tables: Tables,
    effort: Effort,
    b: Bounding,
    found: Found,
    pool: Pool,
    stop: IntArray,
) -> int:
    """Tighten the bound of a box, beginning with the active vertices, of which some lie inside;
    the bound in the state is the best of earlier calls for this box, or infinite.
    """
    layout = lay_out(c, allowed, present)
    work, vertex = new_scratch(inst), np.zeros(c.offsets.size - 1, dtype=np.int64)
    n_spans = _list_spans(allowed, work.spans)
    _load_margins(inst, b)
    operations = refresh_gradient(inst, b, work, 0.0, n_spans, 0, 0.0)
    value = maximise_over_orders(c, layout, allowed, work.g, tables, vertex)
    if value == -np.inf:
        return EMPTY
    b.state.iterations, b.state.relaxed = 1, -np.inf
    keep_best(inst, b, work.g, value, operations)
    _keep_inside(c, allowed, present, b)
    if b.state.n_active == 0:
        copy_array(vertex, b.vertices[0])
        b.share[0], b.state.n_active = 1.0, 1
    _load_margins(inst, b)
    balance = combination.empty_balance(inst, b)
    for k in range(b.state.n_active):
        _load_vertex(inst, b, balance, k)
    inside = _find_inside(c, allowed, present, pool)
    _remember(pool, inside, vertex)
    narrowest, lull, in_a_row = np.inf, 0, 0
    for iteration in range(1, effort.iterations * (IN_A_ROW + 1) + 1):
        cutoff = max(effort.cutoff, found.value[0])
        if b.state.bound <= cutoff:
            return PRUNED
        if not _advance(inst, b, work, vertex, balance, effort, value, cutoff, found, iteration):
            return SPLIT
        if stop[0] != 0 or b.state.iterations == effort.iterations:
            break
        bracket = b.state.bound - b.state.relaxed
        lull += 1
        if bracket < NARROWER * narrowest:
            narrowest, lull = bracket, 0
        stale = effort.stale if lull < LULL else 0.0
        operations = refresh_gradient(inst, b, work, stale, n_spans, iteration, operations)
        promise = -np.inf
        if in_a_row < IN_A_ROW and _take_best(pool, inside, work.g, vertex):
            _improve(c, allowed, present, work.g, vertex)
            value = _value(work.g, vertex)
            promise = value - _value_of_point(b, work.g)
        if promise > PROMISING * bracket:
            in_a_row += 1
            _remember(pool, inside, vertex)
            continue
        value, in_a_row = maximise_over_orders(c, layout, allowed, work.g, tables, vertex), 0
        _remember(pool, inside, vertex)
        b.state.iterations += 1
        keep_best(inst, b, work.g, value, operations)
    return PAUSED


@kernel
def _find_inside(c: Candidates, allowed: BoolArray, present: BoolArray, pool: Pool) -> BoolArray:
    """Which vertices of the pool lie in the box."""
    inside = np.zeros(pool.vertices.shape[0], dtype=np.bool_)
    for k in range(min(inside.size, pool.written[0])):
        inside[k] = _is_inside(c, allowed, present, pool.vertices[k])
    return inside


@kernel
def _remember(pool: Pool, inside: BoolArray, vertex: IntArray) -> None:
    """Put a vertex of the box into the pool."""
    place = pool.written[0] % inside.size
    copy_array(vertex, pool.vertices[place])
    inside[place] = True
    pool.written[0] += 1


@kernel
def _take_best(pool: Pool, inside: BoolArray, g: FloatArray, vertex: IntArray) -> bool:
    """Copy the best of these vertices; False if there are none."""
    best, highest = -1, -np.inf
    for k in range(inside.size):
        if inside[k]:
            value = _value(g, pool.vertices[k])
            if value > highest:
                best, highest = k, value
    if best < 0:
        return False
    copy_array(pool.vertices[best], vertex)
    return True


@kernel
def _improve(
    c: Candidates, allowed: BoolArray, present: BoolArray, g: FloatArray, vertex: IntArray
) -> None:
    """Give every variable its best candidate beside the others, until nothing changes."""
    n, unchanged, i = vertex.size, 0, 0
    while unchanged < n:
        below, needed = _below(c, vertex, i), _needed(c, present, vertex, i)
        best = vertex[i]
        for k in range(c.offsets[i], c.offsets[i + 1]):
            fits = c.masks[k] & below == 0 and c.masks[k] & needed == needed
            if allowed[k] and fits and g[k] > g[best]:
                best = k
        unchanged += 1
        if best != vertex[i]:
            vertex[i], unchanged = best, 1
        i = (i + 1) % n


@kernel
def _below(c: Candidates, vertex: IntArray, i: int) -> int:
    """i and its descendants."""
    below, before = 1 << i, 0
    while below != before:
        before = below
        for v in range(vertex.size):
            if c.masks[vertex[v]] & below:
                below |= 1 << v
    return below


@kernel
def _needed(c: Candidates, present: BoolArray, vertex: IntArray, i: int) -> int:
    """Parents that i must keep: other ends of edges that would be missing without them."""
    needed = 0
    for j in range(vertex.size):
        if (present[i, j] or present[j, i]) and c.masks[vertex[j]] >> i & 1 == 0:
            needed |= 1 << j
    return needed


@kernel
def _value_of_point(b: Bounding, g: FloatArray) -> float:
    """g . eta of the combination."""
    total = 0.0
    for k in range(b.state.n_active):
        total += b.share[k] * _value(g, b.vertices[k])
    return total


@entry
def bound_candidates(
    inst: Instance,
    c: Candidates,
    allowed: BoolArray,
    present: BoolArray,
    tables: Tables,
    b: Bounding,
    through: FloatArray,
) -> None:
    """Bound of the structures of a box with each candidate, (K,), by its best majorant."""
    layout = lay_out(c, allowed, present)
    values_through(c, layout, allowed, b.best_g, tables, through)
    for k in range(through.size):
        through[k] += b.state.constant


@kernel
def _advance(
    inst: Instance,
    b: Bounding,
    work: Scratch,
    vertex: IntArray,
    balance: Balance,
    effort: Effort,
    value: float,
    cutoff: float,
    found: Found,
    iteration: int,
) -> bool:
    """Stop rules, then a Newton step over the active vertices and the new one; False when the box
    should be split.
    """
    combination.make_room(b, balance)
    worst, at_eta, lowest = 0, 0.0, np.inf
    for k in range(b.state.n_active):
        level = _value(work.g, b.vertices[k])
        at_eta += b.share[k] * level
        if level < lowest:
            worst, lowest = k, level
    relaxed = duals.objective_of_margins(inst, b.t) + combination.linear_of_active(b, balance)
    b.state.relaxed = relaxed
    new = _find_vertex(inst, b, balance, vertex)
    _offer(inst, balance, new, vertex, found)
    bracket = b.state.bound - relaxed
    enough = min(effort.worth, effort.theta * (b.state.bound - cutoff))
    if relaxed > cutoff and bracket < enough < np.inf:
        _drop_idle(b, balance)
        return False
    frank_wolfe_gap = value - at_eta
    floor = effort.smoothing_floor * inst.gamma
    if iteration > 1 and frank_wolfe_gap < SMOOTHED_OUT * bracket:
        if b.state.smoothing <= floor and frank_wolfe_gap < STANDSTILL * abs(b.state.bound):
            _drop_idle(b, balance)
            return False
        b.state.smoothing = max(floor, effort.smoothing_factor * b.state.smoothing)
    slope = _value(work.g, vertex) - lowest  # summed alike: nothing for the same vertex
    if slope > 0.0:
        if not newton_step(inst, b, balance, EQUAL_SLOPES * max(frank_wolfe_gap, 0.0)):
            combination.step_between(inst, b, balance, new, worst, slope)
            _drop_idle(b, balance)
    elif b.state.smoothing <= floor:
        _drop_idle(b, balance)
        return False
    return True


@kernel
def _drop_idle(b: Bounding, balance: Balance) -> None:
    """Vertices without weight leave."""
    for k in range(b.state.n_active - 1, -1, -1):
        if b.share[k] <= combination.LIGHT and b.state.n_active > 1:
            combination.remove_vertex(b, balance, k)


EDGE, ARC, CANDIDATE = 0, 1, 2
"""Kinds of objects that a box is split on: i and j are joined; j is a parent of i; i has the
candidate j. Side 1 says so, side 0 denies it.
"""

TINY = 1e-9
"""Drops below this part of f are rounding, and count as so much."""


@entry
def drops_of_sides(
    inst: Instance, c: Candidates, eta: FloatArray, objects: IntArray, drops: FloatArray
) -> None:
    """How much f falls when eta moves into either side of every object (kind, i, j), all but the
    variables of the object unchanged; written to ``drops`` (m, 2).

    With T_i the part of the margins that variable i contributes, x the share of side 1 and delta
    the move into it, the other side is the move by ``-x / (1 - x) delta``.
    """
    n, n_rows = c.offsets.size - 1, count_rows(inst)
    parts, linear, t = np.zeros((n, n_rows)), np.zeros(n), np.zeros(n_rows)
    for i in range(n):
        for k in range(c.offsets[i], c.offsets[i + 1]):
            if eta[k] > 0.0:
                duals.add_column(inst, k, eta[k], parts[i])
                linear[i] += eta[k] * inst.linear[k]
        for r in range(n_rows):
            t[r] += parts[i, r]
    delta = np.zeros(n_rows)
    here = duals.value_along(inst, 0.0, t, 0.0, delta)
    tiny = TINY * (inst.scale + abs(here))
    for a in range(objects.shape[0]):
        kind, i, j = objects[a, 0], objects[a, 1], objects[a, 2]
        for r in range(n_rows):
            delta[r] = 0.0
        if kind == CANDIDATE:
            share = eta[j]
            duals.add_column(inst, j, 1.0, delta)
            rise = inst.linear[j] - linear[i]
            for r in range(n_rows):
                delta[r] -= parts[i, r]
        elif kind == ARC:
            share = _mass(c, eta, i, j)
            rise = _move(inst, c, eta, parts[i], linear[i], i, j, 1.0 / share, -1.0, delta)
        else:
            down, up = _mass(c, eta, i, j), _mass(c, eta, j, i)
            share = down + up
            rise = _join(inst, c, eta, parts[i], linear[i], i, j, down, up, delta)
            rise += _join(inst, c, eta, parts[j], linear[j], j, i, up, down, delta)
        back = -share / (1.0 - share)
        drops[a, 1] = max(tiny, here - duals.value_along(inst, rise, t, 1.0, delta))
        drops[a, 0] = max(tiny, here - duals.value_along(inst, back * rise, t, back, delta))


@kernel
def _mass(c: Candidates, eta: FloatArray, i: int, j: int) -> float:
    """Share of the candidates of i with parent j."""
    total = 0.0
    for k in range(c.offsets[i], c.offsets[i + 1]):
        if eta[k] > 0.0 and c.masks[k] >> j & 1:
            total += eta[k]
    return total


@kernel
def _move(
    inst: Instance,
    c: Candidates,
    eta: FloatArray,
    part: FloatArray,
    linear: float,
    i: int,
    j: int,
    own: float,
    rest: float,
    delta: FloatArray,
) -> float:
    """delta += own Q + rest T_i, Q the part of the candidates with parent j; the linear scores."""
    rise = rest * linear
    for k in range(c.offsets[i], c.offsets[i + 1]):
        if eta[k] > 0.0 and c.masks[k] >> j & 1:
            duals.add_column(inst, k, own * eta[k], delta)
            rise += own * eta[k] * inst.linear[k]
    for r in range(delta.size):
        delta[r] += rest * part[r]
    return rise


@kernel
def _join(
    inst: Instance,
    c: Candidates,
    eta: FloatArray,
    part: FloatArray,
    linear: float,
    i: int,
    j: int,
    down: float,
    up: float,
    delta: FloatArray,
) -> float:
    """Change of variable i when the edge i - j is present: with a, b the shares of both arcs and
    x = a + b, delta += Q / x + (b / x) (T_i - Q) / (1 - a) - T_i.
    """
    x = down + up
    if down >= 1.0:
        return 0.0
    other = up / x / (1.0 - down)
    return _move(inst, c, eta, part, linear, i, j, 1.0 / x - other, other - 1.0, delta)
