"""Open nodes in flat arrays: boxes as bits, a heap by bound, active vertices shared by siblings.

A *family* is what both children of a split inherit: the smoothing of their parent and its heaviest
active vertices. The majorant (c, g) behind their bounds is not kept: it has a number per column,
tens of kilobytes where there are many features, and the vertices lead back to one as good in a few
iterations. The bounds stay, because they were proved. Nodes and families live in pools with free
lists; the caller grows the pools between batches.

A vertex is kept as n + 2 small numbers: the slots of the features, and the class set as two digits
to the base of the type (256 where slots fit into a byte).
"""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from marginbn.problem.array_types import BoolArray, FloatArray, IntArray, WordArray
from marginbn.solvers.branch_bound.kernels import records
from marginbn.solvers.branch_bound.kernels.box import propagate
from marginbn.solvers.branch_bound.kernels.combination import Bounding
from marginbn.solvers.branch_bound.kernels.records import Box, Instance
from marginbn.solvers.compile import entry, kernel, shared

SmallArray = npt.NDArray[np.unsignedinteger[Any]]
"""Kept vertices."""


class PoolState:
    """The numbers of a node pool."""

    open: int  # nodes in the heap
    free_nodes: int
    free_families: int
    nodes: int  # ever processed
    iterations: int  # ever made
    leaves: int  # ever evaluated
    floor: float  # largest bound of anything ever discarded
    root_bound: float  # infinite until the root is done


class Pool(NamedTuple):
    """Storage of the open nodes."""

    words: WordArray  # (nodes, W) packed boxes
    bound: FloatArray  # (nodes,)
    family: IntArray  # (nodes,)
    spent: IntArray  # (nodes,) iterations already spent on the node
    origin: IntArray  # (nodes,) 2 (row in ``branching.py``) + child; -1: not known
    degradation: FloatArray  # (nodes,) of f towards this child
    middle: FloatArray  # (nodes,) midpoint of the parent's bracket
    heap: IntArray  # (nodes,) largest bound first
    free_nodes: IntArray  # (nodes,)
    smoothing: FloatArray  # (families,)
    vertices: SmallArray  # (families, kept, n + 2)
    share: npt.NDArray[np.float32]  # (families, kept)
    n_vertices: IntArray  # (families,)
    references: IntArray  # (families,)
    free_families: IntArray  # (families,)
    state: PoolState


NODE_FIELDS = Pool._fields[: Pool._fields.index("smoothing")]
FAMILY_FIELDS = Pool._fields[Pool._fields.index("smoothing") : Pool._fields.index("state")]


@shared
def words_per_box(n: int, n_class_sets: int, has_arcs: bool) -> int:
    """64-bit words of a packed box; without arcs neither their slots nor edges are kept."""
    bits = n * (n + 2) + n * n if has_arcs else 2 * n
    return -(-(bits + n + n_class_sets) // 64)


def new_pool(inst: Instance, nodes: int, families: int, kept: int) -> Pool:
    """Empty storage with room for so many nodes and families."""
    n = inst.n_features
    return Pool(
        words=np.zeros(
            (nodes, words_per_box(n, inst.first.size, inst.skipped == 0)), dtype=np.uint64
        ),
        bound=np.zeros(nodes),
        family=np.zeros(nodes, dtype=np.int64),
        spent=np.zeros(nodes, dtype=np.int64),
        origin=np.zeros(nodes, dtype=np.int64),
        degradation=np.zeros(nodes),
        middle=np.zeros(nodes),
        heap=np.zeros(nodes, dtype=np.int64),
        free_nodes=np.arange(nodes, dtype=np.int64),
        smoothing=np.zeros(families),
        vertices=np.empty((families, kept, n + 2), dtype=np.uint8 if n + 2 <= 256 else np.uint16),
        share=np.empty((families, kept), dtype=np.float32),
        n_vertices=np.zeros(families, dtype=np.int64),
        references=np.zeros(families, dtype=np.int64),
        free_families=np.arange(families, dtype=np.int64),
        state=records.new_record(
            PoolState, free_nodes=nodes, free_families=families, floor=-np.inf, root_bound=np.inf
        ),
    )


def grown(pool: Pool, nodes: int, families: int) -> Pool:
    """The same storage with more room; indices stay valid."""
    old_nodes, old_families = pool.bound.size, pool.smoothing.size
    sizes = dict.fromkeys(NODE_FIELDS, nodes) | dict.fromkeys(FAMILY_FIELDS, families)
    arrays: dict[str, Any] = {}
    for name, size in sizes.items():
        old = getattr(pool, name)
        arrays[name] = np.zeros((size, *old.shape[1:]), dtype=old.dtype)
        arrays[name][: len(old)] = old
    state = copy(pool.state)
    free_nodes, free_families = int(state.free_nodes), int(state.free_families)
    arrays["free_nodes"][free_nodes : free_nodes + nodes - old_nodes] = np.arange(old_nodes, nodes)
    arrays["free_families"][free_families : free_families + families - old_families] = np.arange(
        old_families, families
    )
    state.free_nodes += nodes - old_nodes
    state.free_families += families - old_families
    return pool._replace(state=state, **arrays)


def with_room(pool: Pool, nodes: int) -> Pool:
    """The same storage, with room for so many more nodes and families."""
    free = min(int(pool.state.free_nodes), int(pool.state.free_families))
    if free >= nodes:
        return pool
    more = nodes - free
    return grown(pool, pool.bound.size + more, pool.smoothing.size + more)


def top_bound(pool: Pool) -> float:
    """Largest bound of an open node, -inf if there is none."""
    return float(pool.bound[pool.heap[0]]) if pool.state.open > 0 else -np.inf


@kernel
def _has_arcs(box: Box, words: WordArray) -> bool:
    """Whether words have room for arcs."""
    return bool(words.size >= words_per_box(box.allowed.shape[0], box.classes.size, True))


@kernel
def pack_box(box: Box, words: WordArray) -> None:
    """Write a box as bits."""
    words[:] = np.uint64(0)
    n, place = box.allowed.shape[0], 0
    has_arcs = _has_arcs(box, words)
    for i in range(n):
        place = _pack(box.allowed[i, 0 if has_arcs else n :], words, place)
    place = _pack(box.classes, words, place)
    if has_arcs:
        place = _pack(box.edges.ravel(), words, place)
    _pack(box.relevant, words, place)


@kernel
def _pack(flags: BoolArray, words: WordArray, place: int) -> int:
    for a in range(flags.size):
        if flags[a]:
            words[place >> 6] |= np.uint64(1) << np.uint64(place & 63)
        place += 1
    return place


@kernel
def unpack_box(words: WordArray, box: Box) -> None:
    """Read a box back; components are not restored."""
    n, place = box.allowed.shape[0], 0
    has_arcs = _has_arcs(box, words)
    for i in range(n):
        place = _unpack(words, place, box.allowed[i, 0 if has_arcs else n :])
        for j in range(0 if has_arcs else n):
            box.allowed[i, j] = False
    place = _unpack(words, place, box.classes)
    if has_arcs:
        place = _unpack(words, place, box.edges.ravel())
    else:
        for i in range(n):
            for j in range(n):
                box.edges[i, j] = False
    _unpack(words, place, box.relevant)


@kernel
def _unpack(words: WordArray, place: int, flags: BoolArray) -> int:
    for a in range(flags.size):
        flags[a] = (words[place >> 6] >> np.uint64(place & 63)) & np.uint64(1) != 0
        place += 1
    return place


@kernel
def copy_box(source: Box, target: Box) -> None:
    """Copy the description of a box (not its components)."""
    records.copy_array(source.allowed, target.allowed)
    records.copy_array(source.classes, target.classes)
    records.copy_array(source.edges, target.edges)
    records.copy_array(source.relevant, target.relevant)


@kernel
def push(pool: Pool, box: Box, bound: float, family: int, spent: int) -> int:
    """Add an open node of unknown origin; returns its place."""
    state = pool.state
    state.free_nodes -= 1
    node = pool.free_nodes[state.free_nodes]
    pack_box(box, pool.words[node])
    pool.bound[node] = bound
    pool.family[node] = family
    pool.spent[node] = spent
    pool.origin[node] = -1
    pool.references[family] += 1
    _sift_up(pool, node, state.open)
    state.open += 1
    return int(node)


@kernel
def _sift_up(pool: Pool, node: int, place: int) -> None:
    heap = pool.heap
    while place > 0:
        above = (place - 1) >> 1
        if pool.bound[heap[above]] >= pool.bound[node]:
            break
        heap[place] = heap[above]
        place = above
    heap[place] = node


@kernel
def lowest(pool: Pool) -> int:
    """The place of the smallest bound in the heap. Children never have larger bounds than their
    parent, so its node goes through a subtree depth first before it touches another one.
    """
    size = pool.state.open
    found = size >> 1  # nodes from here on have nothing below them
    for place in range(size >> 1, size):
        if pool.bound[pool.heap[place]] < pool.bound[pool.heap[found]]:
            found = place
    return found


@kernel
def take(pool: Pool, place: int) -> int:
    """Remove and return the node at a place of the heap, by default that of the largest bound; its
    storage stays until :func:`release`.
    """
    heap, state = pool.heap, pool.state
    taken = heap[place]
    state.open -= 1
    size = state.open
    if place == size:
        return int(taken)
    node = heap[size]
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and pool.bound[heap[child + 1]] > pool.bound[heap[child]]:
            child += 1
        if pool.bound[heap[child]] <= pool.bound[node]:
            break
        heap[place] = heap[child]
        place = child
    _sift_up(pool, node, place)
    return int(taken)


@entry
def move_nodes(source: Pool, target: Pool, count: int, alternate: bool) -> int:
    """Move the ``count`` best nodes to another pool, or every second one of the best; returns how
    many moved. The target must have room.
    """
    kept = np.empty(count, dtype=np.int64)
    moved = 0
    while moved < count and source.state.open > (1 if alternate else 0):
        if alternate:
            kept[moved] = take(source, 0)
        node = take(source, 0)
        _copy_node(source, node, target)
        release(source, node)
        moved += 1
    if alternate:
        for k in range(moved):
            _sift_up(source, kept[k], source.state.open)
            source.state.open += 1
    return moved


@kernel
def _copy_node(source: Pool, node: int, target: Pool) -> None:
    """Add a copy of a node, with a family of its own."""
    state = target.state
    state.free_families -= 1
    family = target.free_families[state.free_families]
    own = source.family[node]
    target.smoothing[family] = source.smoothing[own]
    records.copy_array(source.vertices[own], target.vertices[family])
    records.copy_array(source.share[own], target.share[family])
    target.n_vertices[family] = source.n_vertices[own]
    target.references[family] = 1
    state.free_nodes -= 1
    place = target.free_nodes[state.free_nodes]
    records.copy_array(source.words[node], target.words[place])
    target.bound[place] = source.bound[node]
    target.family[place] = family
    target.spent[place] = source.spent[node]
    copy_origin(source, node, target, place)
    _sift_up(target, place, state.open)
    state.open += 1


@kernel
def copy_origin(source: Pool, node: int, target: Pool, place: int) -> None:
    """Where a node comes from is the same for another."""
    target.origin[place] = source.origin[node]
    target.degradation[place] = source.degradation[node]
    target.middle[place] = source.middle[node]


@kernel
def release(pool: Pool, node: int) -> None:
    """Give back a node, and its family if it was the last member."""
    state = pool.state
    pool.free_nodes[state.free_nodes] = node
    state.free_nodes += 1
    drop_family(pool, pool.family[node])


@shared
def drop_family(pool: Pool, family: int) -> None:
    """Remove one reference."""
    pool.references[family] -= 1
    if pool.references[family] == 0:
        pool.free_families[pool.state.free_families] = family
        pool.state.free_families += 1


@kernel
def new_family(pool: Pool, b: Bounding) -> int:
    """Store the heaviest vertices; the caller holds one reference."""
    pool.state.free_families -= 1
    family = pool.free_families[pool.state.free_families]
    pool.references[family] = 1
    pool.smoothing[family] = b.state.smoothing
    count, n, bits = b.state.n_active, b.vertices.shape[1] - 1, 8 * pool.vertices.itemsize
    kept = min(count, pool.share.shape[1])
    for a in range(kept):  # the heaviest to the front; the order does not matter to eta
        heaviest = a
        for k in range(a + 1, count):
            if b.share[k] > b.share[heaviest]:
                heaviest = k
        b.share[a], b.share[heaviest] = b.share[heaviest], b.share[a]
        for i in range(n + 1):
            b.vertices[a, i], b.vertices[heaviest, i] = b.vertices[heaviest, i], b.vertices[a, i]
        vertex, place = b.vertices[a], pool.vertices[family, a]
        for i in range(n):
            place[i] = vertex[i]
        place[n] = vertex[n] & ((1 << bits) - 1)
        place[n + 1] = vertex[n] >> bits
        pool.share[family, a] = b.share[a]
    pool.n_vertices[family] = kept
    return int(family)


@entry
def push_all(pool: Pool, inst: Instance, root: Box, words: WordArray, bound: FloatArray) -> None:
    """Cut boxes to the root, tighten them and add those that are not empty, with one family that
    has no vertices.
    """
    n, state = inst.n_features, pool.state
    state.free_families -= 1
    family = pool.free_families[state.free_families]
    pool.references[family], pool.n_vertices[family] = 1, 0
    pool.smoothing[family] = np.inf
    box = records.new_box(n, inst.first.size)
    for node in range(bound.size):
        unpack_box(words[node], box)
        for i in range(n):
            for s in range(n + 2):
                box.allowed[i, s] = box.allowed[i, s] and root.allowed[i, s]
            box.edges[i, i] = False
            for j in range(i):
                either = box.edges[i, j] or box.edges[j, i]
                box.edges[i, j] = either
                box.edges[j, i] = either
        for s in range(box.classes.size):
            box.classes[s] = box.classes[s] and root.classes[s]
        if propagate(inst, box):
            push(pool, box, bound[node], family, 0)
    drop_family(pool, family)
