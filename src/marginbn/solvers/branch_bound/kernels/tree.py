"""Best-first tree search over boxes, compiled; depth first where the store is nearly full.

One node: take the open box of the largest bound, tighten its bound, remove what cannot beat the
incumbent, split it, and bound both sides at once by the majorant just found (one oracle call each).
Boxes whose features are all decided are evaluated for every class set left:
**leaves are never dropped unevaluated**.

``PoolState.floor`` is the largest bound of anything ever discarded, so max(incumbent, floor, open
bounds) is a true upper bound whatever the cutoff was.
"""

from __future__ import annotations

from typing import NamedTuple

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
from marginbn.solvers.branch_bound.kernels.box import fix_box, is_member, propagate
from marginbn.solvers.branch_bound.kernels.combination import Bounding, load_margins
from marginbn.solvers.branch_bound.kernels.duals import objective_of_vertex
from marginbn.solvers.branch_bound.kernels.oracle import maximise
from marginbn.solvers.branch_bound.kernels.records import Box, Instance, IntArray, Oracle
from marginbn.solvers.branch_bound.kernels.split import NONE, apply_split, choose_split
from marginbn.solvers.branch_bound.kernels.store import Pool
from marginbn.solvers.compile import entry, kernel, shared

EXHAUSTED, BATCH_DONE, NODE_LIMIT, POOL_FULL, IMPROVED, STOPPED = 0, 1, 2, 3, 4, 5
"""Why a batch ended."""

SMALLEST_GRANT = 20
"""Iterations a node gets even at the end of a batch."""

ROOT_ACCURACY = 0.1
"""theta of the root, which has no bound yet to compare its own with."""

PLACES = 4
"""Free places without which no node is begun: two children and their family, and some to spare."""


class Workspace(NamedTuple):
    """Scratch of one worker."""

    box: Box
    oracle: Oracle
    bounding: Bounding
    seed: IntArray  # (1,) of random splits


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
            _discard(pool, bound)
        else:
            store.unpack_box(pool.words[node], work.box)
            propagate(inst, work.box)  # restores the components
            grant = max(SMALLEST_GRANT, iteration_limit - state.iterations)
            _bound_and_split(inst, full, coarse, settings, pool, work, incumbent, node, grant, stop)
        store.release(pool, node)


@kernel
def _discard(pool: Pool, bound: float) -> None:
    pool.state.floor = max(pool.state.floor, bound)


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
    if not _load_vertices(inst, pool, node, settings, work):
        return
    is_root = pool.state.root_bound == np.inf
    largest = settings.root_iterations if is_root else settings.iterations
    left = max(1, largest - pool.spent[node])
    theta = accuracy(settings, pool.state.root_bound, pool.bound[node], incumbent.value[0])
    outcome = bound_box(
        inst, full, work.box, settings, b, work.oracle, incumbent, theta, min(left, grant), stop
    )
    spent = pool.spent[node] + b.state.iterations
    pool.state.iterations += b.state.iterations
    if outcome == EMPTY:
        return
    _prefer_inherited(pool, node, b)
    if outcome == PRUNED or b.state.bound <= cutoff_of(
        incumbent.value[0], settings.gap, inst.scale
    ):
        pool.state.nodes += 1
        _discard(pool, b.state.bound)
    elif outcome == PAUSED and spent < largest:
        family = store.new_family(pool, b)
        store.push(pool, work.box, b.state.bound, family, spent)
        store.drop_family(pool, family)
    else:
        pool.state.nodes += 1
        if is_root:
            pool.state.root_bound = b.state.bound
        _split(inst, full, coarse, settings, pool, work, incumbent)


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
    """Use the majorant the node came with if it is still better. A node from a checkpoint has only
    its bound: the constant of its family is infinite.
    """
    if pool.bound[node] < b.state.bound:
        family = pool.family[node]
        b.state.bound = pool.bound[node]
        if pool.constant[family] < np.inf:
            b.state.constant = pool.constant[family]
            b.state.unused = pool.unused[family]
            records.copy_array(pool.gradient[family], b.best_g)


@kernel
def _load_vertices(
    inst: Instance, pool: Pool, node: int, settings: Settings, work: Workspace
) -> bool:
    """Active vertices inherited by the node that lie in its box; False if the box is empty.

    A vertex outside the box would leave bounds valid but make ``f(eta)`` no longer a lower bound of
    the relaxation.
    """
    b = work.bounding
    family = pool.family[node]
    largest = settings.smoothing_start * inst.gamma
    b.state.smoothing = min(largest, settings.smoothing_reset * pool.smoothing[family])
    count, total = 0, 0.0
    for k in range(pool.n_vertices[family]):
        records.copy_array(pool.vertices[family, k], b.vertices[count])
        if contains(inst, work.box, b.vertices[count]):
            b.share[count] = pool.share[family, k]
            total += b.share[count]
            count += 1
    if count == 0:
        upper, _ = maximise(inst, work.box, pool.gradient[family], work.oracle)
        if upper == -np.inf:
            return False
        records.copy_array(work.oracle.vertex, b.vertices[0])
        b.share[0], count, total = 1.0, 1, 1.0
    for k in range(count):
        b.share[k] /= total
    b.state.n_active = count
    return True


@kernel
def contains(inst: Instance, box: Box, vertex: IntArray) -> bool:
    """Whether a feasible structure belongs to the box."""
    n = inst.n_features
    if not box.classes[vertex[n]]:
        return False
    for i in range(n):
        if not box.allowed[i, vertex[i]]:
            return False
        if box.relevant[i] and vertex[i] == n + 1 and not is_member(inst, i, vertex[n]):
            return False
        for j in range(i):
            if box.edges[i, j] and vertex[i] != j and vertex[j] != i:
                return False
    return True


@kernel
def _split(
    inst: Instance,
    full: Instance,
    coarse: Instance,
    settings: Settings,
    pool: Pool,
    work: Workspace,
    incumbent: Incumbent,
) -> None:
    """Fix, choose an object, and push the sides that survive the present majorant."""
    b = work.bounding
    cutoff = cutoff_of(incumbent.value[0], settings.gap, inst.scale)
    possible, removed = fix_box(inst, work.box, b.state.constant, b.best_g, cutoff, work.oracle)
    _discard(pool, removed)
    if not possible or not propagate(inst, work.box):
        return
    if _is_decided(work.box):
        _evaluate_leaf(full, pool, work, incumbent)
        return
    if coarse.rows.shape[0] != inst.rows.shape[0]:
        load_margins(coarse, b)
    kind, i, j = choose_split(coarse, work.box, settings, b, work.seed)
    if kind == NONE:
        _evaluate_leaf(full, pool, work, incumbent)
        return
    family = store.new_family(pool, b)
    child = records.new_box(inst.n_features, inst.first.size)
    for first in (True, False):
        store.copy_box(work.box, child)
        apply_split(inst, child, kind, i, j, first)
        if propagate(inst, child):
            upper, _ = maximise(inst, child, b.best_g, work.oracle)
            bound = min(b.state.bound, b.state.constant + upper)
            if bound <= cutoff:
                _discard(pool, bound)
            else:
                store.push(pool, child, bound, family, 0)
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
