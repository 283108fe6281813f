"""Best-first tree search over boxes, compiled; depth first where the store is nearly full.

One node: take the open box of the largest bound, tighten its bound, remove what cannot beat the
incumbent, split it, and bound both sides at once by the majorant just found (one oracle call each).
A box whose features are all decided is either discarded by its bound or evaluated for every class
set left.

``PoolState.floor`` is the largest bound of anything ever discarded, so max(incumbent, floor, open
bounds) is a true upper bound whatever the cutoff was.
"""

from __future__ import annotations

import numpy as np

from marginbn.solvers.branch_bound.kernels import records, store
from marginbn.solvers.branch_bound.kernels.bound import (
    EMPTY,
    PAUSED,
    PRUNED,
    Incumbent,
    Settings,
    bound_box,
    cutoff_of,
    offer_vertex,
)
from marginbn.solvers.branch_bound.kernels.box import fix_box, propagate
from marginbn.solvers.branch_bound.kernels.combination import Bounding
from marginbn.solvers.branch_bound.kernels.duals import objective_of_vertex
from marginbn.solvers.branch_bound.kernels.gains import midpoint, observe
from marginbn.solvers.branch_bound.kernels.nearby import bound_nearby
from marginbn.solvers.branch_bound.kernels.records import Box, FloatArray, Instance, IntArray
from marginbn.solvers.branch_bound.kernels.sides import (
    Workspace,
    discard,
    load_vertices,
    look_ahead,
    push_sides,
    push_tried,
    worth_of,
)
from marginbn.solvers.branch_bound.kernels.split import rank_objects
from marginbn.solvers.branch_bound.kernels.store import Pool
from marginbn.solvers.compile import entry, kernel, shared

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
def run_batch(
    inst: Instance,
    full: Instance,
    coarse: Instance,
    settings: Settings,
    pool: Pool,
    work: Workspace,
    incumbent: Incumbent,
    node_limit: int,
    iteration_limit: int,
    reserve: int,
    stop: IntArray,
) -> int:
    """Process nodes until something needs the caller's attention. ``inst``, ``full`` and ``coarse``
    are one problem: see :class:`Instance`.

    While fewer than ``reserve`` places are free the search goes depth first, which needs hardly any
    new ones.
    """
    state = pool.state
    found, is_first = incumbent.found[0], state.nodes == 0
    while True:
        if state.open == 0:
            return EXHAUSTED
        if incumbent.found[0] != found:
            return IMPROVED
        if is_first and state.nodes > 0:
            return IMPROVED  # the root is done: the caller keeps its majorant
        if stop[0] != 0:
            return STOPPED
        if state.nodes >= node_limit:
            return NODE_LIMIT
        if state.iterations >= iteration_limit:
            return BATCH_DONE
        if state.free_nodes < PLACES or state.free_families < PLACES:
            return POOL_FULL
        free = min(state.free_nodes, state.free_families)
        node = store.pop_lowest(pool) if free < reserve else store.pop(pool)
        bound = pool.bound[node]
        if bound <= cutoff_of(incumbent.value[0], settings.gap, inst.scale):
            discard(pool, bound)
        else:
            store.unpack_box(pool.words[node], work.box)
            propagate(inst, work.box)  # restores the components
            grant = max(SMALLEST_GRANT, iteration_limit - state.iterations)
            _bound_and_split(inst, full, coarse, settings, pool, work, incumbent, node, grant, stop)
        store.release(pool, node)


@kernel
def _bound_and_split(
    inst: Instance,
    full: Instance,
    coarse: Instance,
    settings: Settings,
    pool: Pool,
    work: Workspace,
    incumbent: Incumbent,
    node: int,
    grant: int,
    stop: IntArray,
) -> None:
    b = work.bounding
    if not load_vertices(inst, pool, pool.family[node], settings, work.box, work.oracle, b):
        return
    is_root = pool.state.root_bound == np.inf
    largest = settings.root_iterations if is_root else settings.iterations
    left = max(1, largest - pool.spent[node])
    theta = accuracy(settings, pool.state.root_bound, pool.bound[node], incumbent.value[0])
    left = min(left, grant)
    if is_root:  # its rows are chosen by the caller
        outcome = bound_box(
            inst, full, work.box, settings, b, work.oracle, incumbent, theta, np.inf, left, stop
        )
    else:
        worth = worth_of(settings, work.gains)
        outcome = bound_nearby(
            inst, full, work.box, settings, b, work.oracle, incumbent, theta, worth, left, stop
        )
    spent = pool.spent[node] + b.state.iterations
    pool.state.iterations += b.state.iterations
    cutoff = cutoff_of(incumbent.value[0], settings.gap, inst.scale)
    if outcome == EMPTY:
        _learn(inst, pool, node, cutoff, work.gains)
        return
    _prefer_inherited(pool, node, b)
    if outcome == PRUNED or b.state.bound <= cutoff:
        pool.state.nodes += 1
        discard(pool, b.state.bound)
        _learn(inst, pool, node, cutoff, work.gains)
    elif outcome == PAUSED and spent < largest:
        family = store.new_family(pool, b)
        again = store.push(pool, work.box, b.state.bound, family, spent)
        store.copy_origin(pool, node, pool, again)
        store.drop_family(pool, family)
    else:
        pool.state.nodes += 1
        if is_root:
            pool.state.root_bound = b.state.bound
        _learn(inst, pool, node, midpoint(b.state, cutoff), work.gains)
        _split(inst, full, coarse, settings, pool, work, incumbent, stop)


@kernel
def _learn(inst: Instance, pool: Pool, node: int, reached: float, gains: FloatArray) -> None:
    """What the split that made this node has gained on its side."""
    origin = pool.origin[node]
    if origin >= 0:
        gain = pool.middle[node] - reached
        observe(gains, inst.n_features, origin >> 1, origin & 1, gain, pool.drop[node])


@shared
def accuracy(settings: Settings, root: float, bound: float, best: float) -> float:
    """theta: strict at the top of the tree, where a converged eta pays, loose below; ``root`` is
    the bound of the root, infinite while there is none.
    """
    if root == np.inf:
        return ROOT_ACCURACY
    if bound - best > settings.top * (root - best):
        return settings.accuracy_top
    return settings.accuracy


@kernel
def _prefer_inherited(pool: Pool, node: int, b: Bounding) -> None:
    """Use the bound the node came with if it is still better; its majorant is not known any more,
    and the one at hand is valid too.
    """
    b.state.bound = min(b.state.bound, pool.bound[node])


@kernel
def _split(
    inst: Instance,
    full: Instance,
    coarse: Instance,
    settings: Settings,
    pool: Pool,
    work: Workspace,
    incumbent: Incumbent,
    stop: IntArray,
) -> None:
    """Fix, choose an object, and push the sides that survive the present majorant."""
    b = work.bounding
    cutoff = cutoff_of(incumbent.value[0], settings.gap, inst.scale)
    possible, removed = fix_box(inst, work.box, b.state.constant, b.best_g, cutoff, work.oracle)
    discard(pool, removed)
    if not possible or not propagate(inst, work.box):
        return
    if _is_decided(work.box):
        _evaluate_leaf(full, pool, work, incumbent)
        return
    middle = midpoint(b.state, cutoff)
    ranking = rank_objects(coarse, work.box, b, work.gains, middle - cutoff)
    if ranking.score.size == 0:
        _evaluate_leaf(full, pool, work, incumbent)
        return
    family = store.new_family(pool, b)
    families, bounds = np.full(2, family), np.empty(2)
    best, is_tried = int(np.argmax(ranking.score)), False
    if ranking.score.size > 1 and cutoff > -np.inf:
        best, is_tried = look_ahead(
            inst, full, settings, pool, work, incumbent, ranking, family, families, bounds, stop
        )
    if is_tried:
        push_tried(inst, pool, work, ranking, best, families, bounds)
    else:
        push_sides(inst, settings, pool, work, incumbent, ranking, best, family, middle)
    store.drop_family(pool, family)


@kernel
def _is_decided(box: Box) -> bool:
    for i in range(box.allowed.shape[0]):  # noqa: SIM110 (generators are not compiled)
        if records.only_true(box.allowed[i]) < 0:
            return False
    return True


@kernel
def _evaluate_leaf(full: Instance, pool: Pool, work: Workspace, incumbent: Incumbent) -> None:
    """Every feature is decided: score each class set left."""
    n = full.n_features
    vertex = work.oracle.other
    for i in range(n):
        vertex[i] = records.only_true(work.box.allowed[i])
    for s in range(work.box.classes.size):
        if work.box.classes[s]:
            vertex[n] = s
            value = objective_of_vertex(full, vertex, work.bounding.t)
            offer_vertex(vertex, value, incumbent)
            pool.state.leaves += 1
