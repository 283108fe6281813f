"""Children of a node, and strong branching (without it proofs take x1.13, at worst x1.40).

Candidates are tried in the order of their scores. The score of one with enough observations is
reliable; of the others a few are tried: both children are bounded with a handful of iterations, and
what they gain is an observation. The node is split on the best candidate that was tried or is
reliable; children that were tried keep what they have reached.
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
from marginbn.solvers.branch_bound.kernels.box import propagate
from marginbn.solvers.branch_bound.kernels.branching import Ranking, restrict
from marginbn.solvers.branch_bound.kernels.combination import Bounding
from marginbn.solvers.branch_bound.kernels.nearby import instance_nearby
from marginbn.solvers.branch_bound.kernels.node_pool import Pool
from marginbn.solvers.branch_bound.kernels.oracle import maximise
from marginbn.solvers.branch_bound.kernels.pseudocosts import (
    midpoint,
    observations,
    observe,
    recent_gain,
    row_of,
)
from marginbn.solvers.branch_bound.kernels.records import Box, Instance, Oracle
from marginbn.solvers.branch_bound.kernels.repair import contains, move_into
from marginbn.solvers.compile import kernel, shared

WORSE = 4
"""Candidates in a row that are no better than the best end the comparison."""

TRIAL_ACCURACY = 0.02
"""theta of a child that is tried; usually its iterations end first."""

ENDED = 4.0
"""A child that is pruned makes a candidate worth so many times the product of its gains."""


FIRST_SEED = 88172645463325253
"""Of the numbers that one call draws."""


class Workspace(NamedTuple):
    """Scratch of one worker."""

    box: Box
    oracle: Oracle
    bounding: Bounding
    trial: Bounding  # of a side that is tried out
    gains: FloatArray  # what splits have gained, see ``pseudocosts.py``


@kernel
def discard(pool: Pool, bound: float) -> None:
    """Note the bound of what is given up."""
    pool.state.floor = max(pool.state.floor, bound)


@shared
def worth_of(settings: Settings, gains: FloatArray) -> float:
    """The bracket that is small against what splits gain."""
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
    """Active vertices of a family, moved into a box where they are outside (``repair.py``), or one
    that they lead to; False if the box is empty.

    A vertex outside the box would leave bounds valid but make ``f(eta)`` no longer a lower bound of
    the relaxation.
    """
    largest = settings.smoothing_start * inst.gamma
    b.state.smoothing = min(largest, settings.smoothing_reset * pool.smoothing[family])
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
    for k in range(count):
        node_pool.recall_vertex(pool.vertices[family, k], b.vertices[k])
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
