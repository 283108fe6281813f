"""Best-first tree search over boxes, compiled; depth first where the pool is nearly full.

One node: take the open box of the largest bound, tighten its bound, remove what cannot beat the
incumbent, split it, and bound both children by the majorant just found (one oracle call each). A
box whose features are all decided is either discarded by its bound or evaluated for every class
set left.

``PoolState.floor`` is the largest bound of anything ever discarded, so max(incumbent, floor, open
bounds) is a true upper bound whatever the cutoff was.
"""

from __future__ import annotations

import numpy as np

from marginbn.problem.array_types import FloatArray
from marginbn.solvers.branch_bound.kernels import node_pool, records
from marginbn.solvers.branch_bound.kernels.bound import (
    EMPTY,
    PAUSED,
    PRUNED,
    Context,
    bound_box,
    cutoff_of,
    offer_vertex,
)
from marginbn.solvers.branch_bound.kernels.box import fix_box, propagate
from marginbn.solvers.branch_bound.kernels.branching import midpoint, observe, rank_candidates
from marginbn.solvers.branch_bound.kernels.children import (
    Workspace,
    discard,
    load_vertices,
    push_children,
    push_tried,
    strong_branching,
    worth_of,
)
from marginbn.solvers.branch_bound.kernels.combination import load_margins
from marginbn.solvers.branch_bound.kernels.duals import objective_of_vertex
from marginbn.solvers.branch_bound.kernels.nearby import bound_nearby
from marginbn.solvers.branch_bound.kernels.node_pool import Pool
from marginbn.solvers.branch_bound.kernels.oracle import maximise
from marginbn.solvers.branch_bound.kernels.records import Box, Instance
from marginbn.solvers.compile import entry, kernel

SEARCH, PROPAGATE, LOAD_MARGINS, MAXIMISE, PUSH = 0, 1, 2, 3, 4
"""Tasks: a batch, or a step with the box and the relaxed solution of the workspace."""

EXHAUSTED, BATCH_DONE, NODE_LIMIT, POOL_FULL, IMPROVED, STOPPED = 0, 1, 2, 3, 4, 5
"""Why a batch ended."""

SMALLEST_GRANT = 20
"""Iterations a node gets even at the end of a batch."""

ROOT_ACCURACY = 0.1
"""theta of the root, which has no bound yet to compare its own with."""

PLACES = 8
"""Free places without which no node is begun: two children, their family and those of two trials,
and some to spare.
"""


@entry
def perform(
    task: int,
    inst: Instance,
    context: Context,
    pool: Pool,
    work: Workspace,
    node_limit: int,
    iteration_limit: int,
    reserve: int,
) -> int:
    """A batch, or one of the small steps that Python takes before it and in between: all behind one
    entry, which contains their machine code anyway (as entries of their own they take 4 s of the
    compiler's time).
    """
    b = work.bounding
    if task == SEARCH:
        return run_batch(inst, context, pool, work, node_limit, iteration_limit, reserve)
    if task == PROPAGATE:
        return int(propagate(inst, work.box))
    if task == LOAD_MARGINS:
        load_margins(inst, b)
    elif task == MAXIMISE:
        b.state.bound, _ = maximise(inst, work.box, b.best_g, work.oracle)
    else:
        family = node_pool.new_family(pool, b)
        node_pool.push(pool, work.box, b.state.bound, family, 0)
        node_pool.drop_family(pool, family)
    return 1


@kernel
def run_batch(
    inst: Instance,
    context: Context,
    pool: Pool,
    work: Workspace,
    node_limit: int,
    iteration_limit: int,
    reserve: int,
) -> int:
    """Process nodes until something needs the caller's attention.

    While fewer than ``reserve`` places are free the search goes depth first, which needs hardly any
    new ones.
    """
    state, incumbent = pool.state, context.incumbent
    found, is_first = incumbent.found[0], state.nodes == 0
    while True:
        if state.open == 0:
            return EXHAUSTED
        if incumbent.found[0] != found:
            return IMPROVED
        if is_first and state.nodes > 0:
            return IMPROVED  # the root is done: the caller keeps its majorant
        if context.stop[0] != 0:
            return STOPPED
        if state.nodes >= node_limit:
            return NODE_LIMIT
        if state.iterations >= iteration_limit:
            return BATCH_DONE
        if state.free_nodes < PLACES or state.free_families < PLACES:
            return POOL_FULL
        free = min(state.free_nodes, state.free_families)
        node = node_pool.take(pool, node_pool.lowest(pool) if free < reserve else 0)
        bound = pool.bound[node]
        if bound <= cutoff_of(context):
            discard(pool, bound)
        else:
            node_pool.unpack_box(pool.words[node], work.box)
            propagate(inst, work.box)  # restores the components
            grant = max(SMALLEST_GRANT, iteration_limit - state.iterations)
            _bound_and_split(inst, context, pool, work, node, grant)
        node_pool.release(pool, node)


@kernel
def _bound_and_split(
    inst: Instance, context: Context, pool: Pool, work: Workspace, node: int, grant: int
) -> None:
    b, settings = work.bounding, context.settings
    if not load_vertices(inst, pool, pool.family[node], settings, work.box, work.oracle, b):
        return
    is_root = pool.state.root_bound == np.inf
    largest = settings.root_iterations if is_root else settings.iterations
    left = min(max(1, largest - pool.spent[node]), grant)
    box, oracle = work.box, work.oracle
    if is_root:  # its rows are chosen by the caller
        outcome = bound_box(inst, context, box, b, oracle, ROOT_ACCURACY, np.inf, left)
    else:
        worth = worth_of(settings, work.gains)
        outcome = bound_nearby(inst, context, box, b, oracle, settings.accuracy, worth, left)
    spent = pool.spent[node] + b.state.iterations
    pool.state.iterations += b.state.iterations
    cutoff = cutoff_of(context)
    if outcome == EMPTY:
        _learn(inst, pool, node, cutoff, work.gains)
        return
    # the bound the node came with may be better; the majorant at hand is valid for it too
    b.state.bound = min(b.state.bound, pool.bound[node])
    if outcome == PRUNED or b.state.bound <= cutoff:
        pool.state.nodes += 1
        discard(pool, b.state.bound)
        _learn(inst, pool, node, cutoff, work.gains)
    elif outcome == PAUSED and spent < largest:
        family = node_pool.new_family(pool, b)
        again = node_pool.push(pool, work.box, b.state.bound, family, spent)
        node_pool.copy_origin(pool, node, pool, again)
        node_pool.drop_family(pool, family)
    else:
        pool.state.nodes += 1
        if is_root:
            pool.state.root_bound = b.state.bound
        _learn(inst, pool, node, midpoint(b.state, cutoff), work.gains)
        _split(inst, context, pool, work)


@kernel
def _learn(inst: Instance, pool: Pool, node: int, reached: float, gains: FloatArray) -> None:
    """What the split that made this node has gained."""
    origin = pool.origin[node]
    if origin >= 0:
        gain = pool.middle[node] - reached
        observe(gains, inst.n_features, origin >> 1, origin & 1, gain, pool.degradation[node])


@kernel
def _split(inst: Instance, context: Context, pool: Pool, work: Workspace) -> None:
    """Fix, choose a candidate, and push the children that survive the present majorant."""
    b = work.bounding
    cutoff = cutoff_of(context)
    possible, removed = fix_box(inst, work.box, b.state.constant, b.best_g, cutoff, work.oracle)
    discard(pool, removed)
    if not possible or not propagate(inst, work.box):
        return
    if _is_decided(work.box):
        _evaluate_leaf(context, pool, work)
        return
    middle = midpoint(b.state, cutoff)
    ranking = rank_candidates(context.coarse, work.box, b, work.gains, middle - cutoff)
    if ranking.score.size == 0:
        _evaluate_leaf(context, pool, work)
        return
    family = node_pool.new_family(pool, b)
    families, bounds = np.full(2, family), np.empty(2)
    best, is_tried = int(np.argmax(ranking.score)), False
    if ranking.score.size > 1 and cutoff > -np.inf:
        best, is_tried = strong_branching(
            inst, context, pool, work, ranking, family, families, bounds
        )
    if is_tried:
        push_tried(inst, pool, work, ranking, best, families, bounds)
    else:
        push_children(inst, context, pool, work, ranking, best, family, middle)
    node_pool.drop_family(pool, family)


@kernel
def _is_decided(box: Box) -> bool:
    for i in range(box.allowed.shape[0]):  # noqa: SIM110 (generators are not compiled)
        if records.only_true(box.allowed[i]) < 0:
            return False
    return True


@kernel
def _evaluate_leaf(context: Context, pool: Pool, work: Workspace) -> None:
    """Every feature is decided: score each class set left."""
    n = context.full.n_features
    vertex = work.oracle.other
    for i in range(n):
        vertex[i] = records.only_true(work.box.allowed[i])
    for s in range(work.box.classes.size):
        if work.box.classes[s]:
            vertex[n] = s
            value = objective_of_vertex(context.full, vertex, work.bounding.t)
            offer_vertex(vertex, value, context.incumbent)
            pool.state.leaves += 1
