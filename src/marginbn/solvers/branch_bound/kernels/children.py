"""Children of a node, and strong branching (without it proofs take x1.13, at worst x1.40).

Candidates are tried in the order of their scores. The score of one with enough observations is
reliable; of the others a few are tried: both children are bounded with a handful of iterations, and
what they gain is an observation. The node is split on the best candidate that was tried or is
reliable; children that were tried keep what they have reached.

**Repair of vertices.** A child inherits the convex
combination of its parent. About half of its vertices use what the child forbids; without them it
would also lose the balance of everything that the split has nothing to do with. So a vertex outside
the box is changed where it has to be, and nowhere else:

- a class set that is gone becomes the heaviest one left, and its members get {};
- a forced edge that is missing is added, either way round, drawn by the shares of both ways in eta,
  unless that would close a cycle or take another forced edge away;
- a forbidden slot becomes another one that closes no cycle, drawn by the shares of eta.

What does not get into the box that way is given up. A vertex only decides where the search for dual
weights begins; no bound depends on it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from marginbn.problem.array_types import FloatArray, IntArray
from marginbn.solvers.branch_bound.kernels import combination, node_pool, records
from marginbn.solvers.branch_bound.kernels.bound import (
    EMPTY,
    Context,
    Settings,
    bound_box,
    cutoff_of,
    move_inside,
)
from marginbn.solvers.branch_bound.kernels.box import is_member, propagate
from marginbn.solvers.branch_bound.kernels.branching import (
    Ranking,
    midpoint,
    observations,
    observe,
    recent_gain,
    restrict,
    row_of,
)
from marginbn.solvers.branch_bound.kernels.combination import Bounding
from marginbn.solvers.branch_bound.kernels.nearby import instance_nearby
from marginbn.solvers.branch_bound.kernels.node_pool import Pool
from marginbn.solvers.branch_bound.kernels.oracle import maximise
from marginbn.solvers.branch_bound.kernels.records import (
    Box,
    Instance,
    Oracle,
    column_of,
    is_below,
    next_random,
    set_class,
)
from marginbn.solvers.compile import kernel, shared

WORSE = 4
"""Candidates in a row that are no better than the best end the comparison."""

TRIAL_ACCURACY = 0.02
"""theta of a child that is tried; usually its iterations end first."""

ENDED = 4.0
"""A child that is pruned makes a candidate worth so many times the product of its gains."""


ROUNDS = 2
"""Looks at a vertex: what helps one feature may leave another without its forced edge."""

FINE = 1 << 20
"""Steps in which shares are drawn."""

FIRST_SEED = 88172645463325253
"""Of the numbers that one call draws."""


class Workspace(NamedTuple):
    """Scratch of one worker."""

    box: Box
    oracle: Oracle
    bounding: Bounding
    trial: Bounding  # of a side that is tried out
    gains: FloatArray  # what splits have gained, see ``branching.py``


@kernel
def discard(pool: Pool, bound: float) -> None:
    """Note the bound of what is given up."""
    pool.state.floor = max(pool.state.floor, bound)


@shared
def worth_of(settings: Settings, gains: FloatArray) -> float:
    """The bracket that is small against what splits gain (without this stop rule x1.10)."""
    usual = recent_gain(gains)
    return settings.worth * usual if usual > 0.0 else np.inf


@kernel
def load_vertices(
    inst: Instance,
    pool: Pool,
    family: int,
    settings: Settings,
    box: Box,
    oracle: Oracle,
    b: Bounding,
) -> bool:
    """Active vertices of a family, moved into a box where they are outside, or one
    that they lead to; False if the box is empty.

    A vertex outside the box would leave bounds valid but make ``f(eta)`` no longer a lower bound of
    the relaxation.
    """
    largest = settings.smoothing_start * inst.gamma
    b.state.smoothing = min(largest, pool.smoothing[family])
    _recall_family(pool, family, b)
    count = b.state.n_active
    is_inside, lost = np.empty(count, dtype=np.bool_), 0
    for k in range(count):
        is_inside[k] = contains(inst, box, b.vertices[k])
        lost += not is_inside[k]
    if lost == 0 < count:
        return True
    eta = combination.point_of(inst, b)
    seed = np.full(1, FIRST_SEED)
    kept, total = 0, 0.0
    for k in range(count):
        if is_inside[k] or move_into(inst, box, eta, b.vertices[k], seed):
            total += b.share[k]
            kept = _keep_vertex(b, k, kept)
    if kept == 0:
        _recall_family(pool, family, b)
        return move_inside(inst, box, oracle, b)
    for k in range(kept):
        b.share[k] /= total
    b.state.n_active = kept
    return True


@kernel
def _recall_family(pool: Pool, family: int, b: Bounding) -> None:
    """The vertices of a family and their weights, as they are."""
    count, total = pool.n_vertices[family], 0.0
    n, bits = b.vertices.shape[1] - 1, 8 * pool.vertices.itemsize
    for k in range(count):
        kept = pool.vertices[family, k]
        for i in range(n):
            b.vertices[k, i] = np.int64(kept[i])
        b.vertices[k, n] = np.int64(kept[n]) + (np.int64(kept[n + 1]) << bits)
        b.share[k] = pool.share[family, k]
        total += b.share[k]
    for k in range(count):
        b.share[k] /= total
    b.state.n_active = count


@kernel
def _keep_vertex(b: Bounding, k: int, kept: int) -> int:
    """Move vertex k to the end of those kept so far, or its weight to an equal one; returns how
    many there are.
    """
    vertex = b.vertices[k]
    for a in range(kept):
        if records.are_equal(b.vertices[a], vertex):
            b.share[a] += b.share[k]
            return kept
    b.share[kept] = b.share[k]
    records.copy_array(vertex, b.vertices[kept])
    return kept + 1


@kernel
def push_children(
    inst: Instance,
    context: Context,
    pool: Pool,
    work: Workspace,
    ranking: Ranking,
    chosen: int,
    family: int,
    middle: float,
) -> None:
    """Push both children of a candidate, unless the majorant at hand prunes them."""
    n = inst.n_features
    kind, i, j = (
        ranking.candidates[chosen, 0],
        ranking.candidates[chosen, 1],
        ranking.candidates[chosen, 2],
    )
    row = row_of(n, kind, i, j)
    child = records.new_box(n, inst.first.size)
    for side in range(2):
        degradation = ranking.degradations[chosen, side]
        bound = _enter_child(inst, work, ranking.candidates[chosen], side, child)
        cutoff = cutoff_of(context)
        if bound <= cutoff:
            discard(pool, bound)
            if degradation > 0.0:
                observe(work.gains, n, row, side, middle - cutoff, degradation)
            continue
        node = node_pool.push(pool, child, bound, family, 0)
        if degradation > 0.0:
            pool.origin[node] = 2 * row + side
            pool.degradation[node], pool.middle[node] = degradation, middle


@kernel
def _enter_child(
    inst: Instance, work: Workspace, candidate: IntArray, side: int, child: Box
) -> float:
    """One child of a candidate and its bound by the majorant at hand, -inf if it is empty."""
    b = work.bounding
    if not _cut(inst, work, candidate, side, child):
        return -np.inf
    upper, _ = maximise(inst, child, b.best_g, work.oracle)
    return min(b.state.bound, b.state.constant + upper)


@kernel
def _cut(inst: Instance, work: Workspace, candidate: IntArray, side: int, child: Box) -> bool:
    """One child of a candidate; False if it is empty."""
    node_pool.copy_box(work.box, child)
    restrict(inst, child, candidate[0], candidate[1], candidate[2], side == 0)
    return propagate(inst, child)


@kernel
def push_tried(
    inst: Instance,
    pool: Pool,
    work: Workspace,
    ranking: Ranking,
    chosen: int,
    families: IntArray,
    bounds: FloatArray,
) -> None:
    """Push the children of a candidate that were tried out and are still open."""
    child = records.new_box(inst.n_features, inst.first.size)
    for side in range(2):
        if families[side] >= 0:
            _cut(inst, work, ranking.candidates[chosen], side, child)
            node_pool.push(pool, child, bounds[side], families[side], 0)
            node_pool.drop_family(pool, families[side])


@kernel
def strong_branching(
    inst: Instance,
    context: Context,
    pool: Pool,
    work: Workspace,
    ranking: Ranking,
    family: int,
    families: IntArray,
    bounds: FloatArray,
) -> tuple[int, bool]:
    """The candidate to split on, and whether it was tried out: then ``families`` (-1: pruned) and
    ``bounds`` are those of its children.
    """
    n, near, settings = inst.n_features, inst, context.settings
    score = ranking.score.copy()
    reached, own, own_bounds = np.empty(2), np.empty(2, dtype=np.int64), np.empty(2)
    best, chosen, is_tried = -1.0, int(np.argmax(score)), False
    trials, worse = 0, 0
    for _ in range(score.size):
        k = int(np.argmax(score))
        value, score[k] = score[k], -np.inf
        kind, i, j = ranking.candidates[k, 0], ranking.candidates[k, 1], ranking.candidates[k, 2]
        row = row_of(n, kind, i, j)
        if observations(work.gains, row) >= settings.reliable:
            if value <= best:
                worse += 1
                if worse >= WORSE:
                    break
                continue
            if is_tried:
                _forget_trial(pool, families)
            best, chosen, is_tried, worse = value, k, False, 0
            continue
        if trials >= settings.trials or context.stop[0] != 0:
            break
        if trials == 0:
            near = instance_nearby(inst, settings, work.bounding)
        trials += 1
        middle = midpoint(work.bounding.state, cutoff_of(context))
        value = 1.0
        for side in range(2):
            candidate = ranking.candidates[k]
            own[side] = _try_child(near, context, pool, work, family, candidate, side, reached)
            own_bounds[side] = work.trial.state.bound
            gain = middle - reached[0]
            observe(work.gains, n, row, side, gain, ranking.degradations[k, side])
            value *= max(gain, 0.0)
            if own[side] < 0:
                value *= ENDED
        if value <= best:
            _forget_trial(pool, own)
            worse += 1
            if worse >= WORSE:
                break
            continue
        if is_tried:
            _forget_trial(pool, families)
        best, chosen, is_tried, worse = value, k, True, 0
        records.copy_array(own, families)
        records.copy_array(own_bounds, bounds)
        if own[0] < 0 and own[1] < 0:
            break
    return chosen, is_tried


@kernel
def _forget_trial(pool: Pool, families: IntArray) -> None:
    for side in range(2):
        if families[side] >= 0:
            node_pool.drop_family(pool, families[side])


@kernel
def _try_child(
    inst: Instance,
    context: Context,
    pool: Pool,
    work: Workspace,
    family: int,
    candidate: IntArray,
    side: int,
    reached: FloatArray,
) -> int:
    """Bound one child of a candidate with a few iterations; returns a family of what it has
    reached, -1 if that is pruned. Its midpoint goes to ``reached``.
    """
    trial, settings = work.trial, context.settings
    child = records.new_box(inst.n_features, inst.first.size)
    bound = _enter_child(inst, work, candidate, side, child)
    reached[0] = cutoff_of(context)
    if bound <= reached[0]:
        discard(pool, bound)
        return -1
    if not load_vertices(inst, pool, family, settings, child, work.oracle, trial):
        return -1
    worth = worth_of(settings, work.gains)
    oracle, most = work.oracle, settings.trial_iterations
    outcome = bound_box(inst, context, child, trial, oracle, TRIAL_ACCURACY, worth, most)
    pool.state.iterations += trial.state.iterations
    if outcome == EMPTY:
        return -1
    trial.state.bound = min(trial.state.bound, bound)
    reached[0] = cutoff_of(context)
    if trial.state.bound <= reached[0]:
        discard(pool, trial.state.bound)
        return -1
    reached[0] = midpoint(trial.state, reached[0])
    return node_pool.new_family(pool, trial)


@kernel
def contains(inst: Instance, box: Box, vertex: IntArray) -> bool:
    """Whether a feasible structure belongs to the box."""
    n = inst.n_features
    if not box.classes[vertex[n]]:
        return False
    for i in range(n):
        if not box.allowed[i, vertex[i]] or _is_isolated(inst, box, vertex, i):
            return False
        for j in range(i):
            if box.edges[i, j] and vertex[i] != j and vertex[j] != i:
                return False
    return True


@kernel
def _is_isolated(inst: Instance, box: Box, vertex: IntArray, i: int) -> bool:
    """Whether a relevant feature stands alone."""
    n = inst.n_features
    return bool(box.relevant[i] and vertex[i] == n + 1 and not is_member(inst, i, vertex[n]))


@kernel
def move_into(inst: Instance, box: Box, eta: FloatArray, vertex: IntArray, seed: IntArray) -> bool:
    """Repair a vertex for a box whose components are known (without it x1.19, at worst x1.65);
    whether that was possible.
    """
    n = inst.n_features
    if not box.classes[vertex[n]]:
        offset, heaviest = column_of(inst, n, 0), -1
        for s in range(box.classes.size):
            if box.classes[s] and (heaviest < 0 or eta[offset + s] > eta[offset + heaviest]):
                heaviest = s
        set_class(inst, vertex, heaviest)
    for _ in range(ROUNDS):
        for v in range(n):
            p = box.above[v]
            missing = p >= 0 and vertex[v] != p and vertex[p] != v
            if missing and not _join(inst, box, eta, vertex, v, p, seed):
                return False
        for i in range(n):
            wrong = not box.allowed[i, vertex[i]] or _is_isolated(inst, box, vertex, i)
            if wrong and not _draw_slot(inst, box, eta, vertex, i, seed):
                return False
        if contains(inst, box, vertex):
            return True
    return False


@kernel
def _join(
    inst: Instance, box: Box, eta: FloatArray, vertex: IntArray, i: int, j: int, seed: IntArray
) -> bool:
    """Make one of two features the parent of the other."""
    down = _share_of_arc(inst, box, eta, vertex, i, j)
    up = _share_of_arc(inst, box, eta, vertex, j, i)
    if down < 0.0 and up < 0.0:
        return False
    if up < 0.0 or (down >= 0.0 and _draw(seed) * (down + up) <= down):
        vertex[i] = j
    else:
        vertex[j] = i
    return True


@kernel
def _share_of_arc(
    inst: Instance, box: Box, eta: FloatArray, vertex: IntArray, i: int, j: int
) -> float:
    """eta of feature i with parent j; negative if it cannot have it."""
    n = inst.n_features
    holds = vertex[i] < n and box.edges[i, vertex[i]]
    if holds or not box.allowed[i, j] or is_member(inst, i, vertex[n]) or is_below(vertex, j, i):
        return -1.0
    return float(eta[column_of(inst, i, j)])


@kernel
def _draw_slot(
    inst: Instance, box: Box, eta: FloatArray, vertex: IntArray, i: int, seed: IntArray
) -> bool:
    """Another slot for a feature; without shares {class} if possible, or the last one."""
    n = inst.n_features
    if is_member(inst, i, vertex[n]):
        return False
    offset = column_of(inst, i, 0)
    total, spare = 0.0, -1
    for s in range(n + 2):
        if _is_possible(box, vertex, i, s):
            total += eta[offset + s]
            if spare != n:
                spare = s
    if spare < 0:
        return False
    vertex[i] = spare
    left = _draw(seed) * total
    for s in range(n + 2):
        if _is_possible(box, vertex, i, s) and eta[offset + s] > 0.0:
            left -= eta[offset + s]
            if left <= 0.0:
                vertex[i] = s
                break
    return True


@kernel
def _is_possible(box: Box, vertex: IntArray, i: int, s: int) -> bool:
    """Whether feature i may have slot s in a box, beside the slots of the others."""
    n = box.allowed.shape[0]
    if not box.allowed[i, s] or (s == n + 1 and box.relevant[i]):
        return False
    return s >= n or not is_below(vertex, s, i)


@kernel
def _draw(seed: IntArray) -> float:
    """A number from 0 to 1."""
    return float(next_random(seed) % FINE / FINE)
