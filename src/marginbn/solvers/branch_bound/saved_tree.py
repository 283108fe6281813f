"""The open nodes as arrays for a checkpoint, and back.

Of a node its box, its bound and the iterations spent are kept, of a family its smoothing and its
active vertices: all that the stores have.

Arrays (N nodes, F families, V vertices, all workers together):

    words (N, W), bound (N,), spent (N,), family (N,)    see ``kernels/store.py``
    smoothing (F,), count (F,)                           vertices of each family
    vertices (V, n + 2), share (V,)                      one family after the other
    numbers (2,)                                         floor, bound of the root
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from marginbn.solvers.branch_bound.kernels import store
from marginbn.solvers.branch_bound.kernels.records import Box, FloatArray, Instance, IntArray
from marginbn.solvers.branch_bound.kernels.store import Pool, SmallArray
from marginbn.solvers.checkpoint import Arrays, BrokenFileError


@dataclass(frozen=True, eq=False)
class OpenNodes:
    """The arrays named above."""

    words: npt.NDArray[np.uint64]
    bound: FloatArray
    spent: IntArray
    family: IntArray
    smoothing: FloatArray
    count: IntArray
    vertices: SmallArray
    share: npt.NDArray[np.float32]
    numbers: FloatArray

    @property
    def arrays(self) -> Arrays:
        """By name."""
        return {part.name: getattr(self, part.name) for part in fields(self)}

    @property
    def floor(self) -> float:
        """Largest bound of anything ever discarded."""
        return float(self.numbers[0])

    @property
    def bytes_per_node(self) -> float:
        """Bytes of all arrays for each node."""
        return sum(array.nbytes for array in self.arrays.values()) / max(len(self.bound), 1)

    def with_one_family(self) -> OpenNodes:
        """The same boxes and bounds without anything else to start from."""
        return replace(
            self,
            family=np.zeros_like(self.family),
            smoothing=self.smoothing.max(keepdims=True, initial=1.0),
            count=np.zeros(1, dtype=np.int64),
            vertices=self.vertices[:0],
            share=self.share[:0],
        )

    def some(self, chosen: IntArray) -> OpenNodes:
        """Some of the nodes, with what they start from; the floor goes with every part."""
        families, member = np.unique(self.family[chosen], return_inverse=True)
        owner = np.repeat(np.arange(len(self.count)), self.count)
        own = np.isin(owner, families)
        return OpenNodes(
            words=self.words[chosen],
            bound=self.bound[chosen],
            spent=self.spent[chosen],
            family=member.reshape(-1).astype(np.int64),
            smoothing=self.smoothing[families],
            count=self.count[families],
            vertices=self.vertices[own],
            share=self.share[own],
            numbers=self.numbers,
        )

    @cached_property
    def starts(self) -> IntArray:
        """(F + 1,) where the vertices of each family begin."""
        return np.concatenate([[0], np.cumsum(self.count)])


# ---------------------------------------------------------------------- out of the stores


def gather(pools: Iterable[Pool]) -> OpenNodes:
    """The open nodes of all stores."""
    return join([_gather_one(pool) for pool in pools])


def join(parts: Sequence[OpenNodes]) -> OpenNodes:
    """Several trees of the same problem as one."""
    before = np.cumsum([0, *(len(part.smoothing) for part in parts)])
    joined: dict[str, Any] = {
        name: np.concatenate([part.arrays[name] for part in parts]) for name in parts[0].arrays
    }
    joined["family"] = np.concatenate(
        [part.family + offset for part, offset in zip(parts, before, strict=False)]
    )
    floors, roots = np.array([part.numbers for part in parts]).T
    joined["numbers"] = np.array([floors.max(), roots.min()])
    return OpenNodes(**joined)


def _gather_one(pool: Pool) -> OpenNodes:
    nodes = pool.heap[: pool.state.open]
    families, member = np.unique(pool.family[nodes], return_inverse=True)
    used = np.arange(pool.share.shape[1]) < pool.n_vertices[families][:, None]
    used &= pool.share[families] > 0
    return OpenNodes(
        words=pool.words[nodes],
        bound=pool.bound[nodes],
        spent=pool.spent[nodes],
        family=member.astype(np.int64),
        smoothing=pool.smoothing[families],
        count=used.sum(axis=1),
        vertices=pool.vertices[families][used],
        share=pool.share[families][used],
        numbers=np.array([pool.state.floor, pool.state.root_bound]),
    )


# ---------------------------------------------------------------------- into the stores


def parse(arrays: Arrays, inst: Instance) -> OpenNodes:
    """Arrays of a file as open nodes; whatever could lead a kernel astray is refused.

    Raises
    ------
    BrokenFileError
        If they are not the open nodes of such an instance.
    """
    names = [part.name for part in fields(OpenNodes)]
    if sorted(arrays) != sorted(names):
        raise BrokenFileError("its tree lacks some array")
    tree = OpenNodes(**{name: arrays[name] for name in names})
    n, n_sets = inst.n_features, inst.first.size
    n_nodes, n_families, n_vertices = len(tree.bound), len(tree.smoothing), len(tree.share)
    expected = {
        "words": ((n_nodes, store.words_per_box(n, n_sets, inst.skipped == 0)), np.uint64),
        "bound": ((n_nodes,), np.float64),
        "spent": ((n_nodes,), np.int64),
        "family": ((n_nodes,), np.int64),
        "smoothing": ((n_families,), np.float64),
        "count": ((n_families,), np.int64),
        "vertices": ((n_vertices, n + 2), store.small_type(n)),
        "share": ((n_vertices,), np.float32),
        "numbers": ((2,), np.float64),
    }
    for name, (shape, dtype) in expected.items():
        if arrays[name].shape != shape or arrays[name].dtype != dtype:
            raise BrokenFileError(f"its array {name!r} does not fit the problem")
    if not (_are_numbers(tree) and _are_indices(tree) and are_feasible(inst, tree.vertices)):
        raise BrokenFileError("its tree holds impossible values")
    return tree


def _are_numbers(tree: OpenNodes) -> bool:
    """No NaN anywhere, smoothings and shares positive."""
    positive = (tree.smoothing > 0).all() and (tree.share > 0).all()
    finite = np.isfinite(tree.smoothing).all() and np.isfinite(tree.share).all()
    return bool(positive and finite and not np.isnan(np.append(tree.bound, tree.numbers)).any())


def _are_indices(tree: OpenNodes) -> bool:
    """Families exist, their vertices add up, iterations are no fewer than none."""
    known = _within(tree.family, len(tree.smoothing))
    counted = (tree.count >= 0).all() and tree.count.sum() == len(tree.share)
    return bool(known and counted and (tree.spent >= 0).all())


BLOCK = 4096
"""Vertices that are looked at together: few enough for the processor's cache. Several copies of all
at once would be many times the store itself.
"""


def are_feasible(inst: Instance, vertices: SmallArray) -> bool:
    """Whether every vertex is a structure: a forest, and parents of the class with the slot {}."""
    starts = range(0, len(vertices), BLOCK)
    return all(_are_structures(inst, vertices[k : k + BLOCK]) for k in starts)


def _are_structures(inst: Instance, vertices: SmallArray) -> bool:
    n, n_sets = inst.n_features, inst.first.size
    numbers = vertices.astype(np.int64)
    slots, classes = numbers[:, :n], numbers[:, n] + (numbers[:, n + 1] << 8 * vertices.itemsize)
    if not (_within(slots, n + 2) and _within(classes, n_sets)):
        return False
    root = np.full((len(vertices), 1), n)
    above = np.concatenate([np.minimum(slots, n), root], axis=1)  # {} and {class} hang on the root
    for _ in range(n.bit_length()):
        above = np.take_along_axis(above, above, axis=1)
    if (above != n).any():
        return False
    for members in (inst.first[classes], inst.second[classes]):
        own = np.take_along_axis(slots, np.maximum(members, 0)[:, None], axis=1)[:, 0]
        if ((members >= 0) & (own != n + 1)).any():
            return False
    return True


def _within(indices: IntArray, size: int) -> bool:
    return bool((indices >= 0).all() and (indices < size).all())


def load(pool: Pool, inst: Instance, root: Box, tree: OpenNodes, chosen: IntArray) -> Pool:
    """Put some of the nodes into a store; returns the store, enlarged if it had no room.

    Boxes are cut to the root and tightened, so nothing impossible gets in.
    """
    families, member = np.unique(tree.family[chosen], return_inverse=True)
    pool = store.with_room(pool, len(chosen) + 4)
    places = _load_families(pool, tree, families)
    store.push_all(
        pool,
        inst,
        root,
        tree.words[chosen],
        tree.bound[chosen],
        tree.spent[chosen],
        places[member],
    )
    is_idle = pool.references[places] == 1  # all their boxes are empty
    pool.references[places[~is_idle]] -= 1
    for place in places[is_idle]:
        store.drop_family(pool, int(place))
    pool.state.floor, pool.state.root_bound = tree.numbers
    return pool


def _load_families(pool: Pool, tree: OpenNodes, families: IntArray) -> IntArray:
    """Places of families of the file; the caller holds one reference of each."""
    free = pool.state.free_families
    places = pool.free_families[free - len(families) : free].astype(np.int64)
    pool.state.free_families -= len(families)
    counts = np.minimum(tree.count[families], pool.share.shape[1])
    pool.references[places] = 1
    pool.smoothing[places] = tree.smoothing[families]
    pool.n_vertices[places] = counts
    for k in range(0, len(families), BLOCK):
        count = counts[k : k + BLOCK]
        owner = np.repeat(np.arange(len(count)), count)
        within = np.arange(len(owner)) - (np.cumsum(count) - count)[owner]
        place, kept = places[k + owner], tree.starts[families[k + owner]] + within
        pool.vertices[place, within] = tree.vertices[kept]
        pool.share[place, within] = tree.share[kept]
    return places
