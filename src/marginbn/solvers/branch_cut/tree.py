"""Nodes of the search tree and the order in which they are visited.

Best bound first, with mild plunging: after a split the better child is visited next while its
bound lies within a share of the remaining gap of the best open one. The largest bound at which
anything was ever discarded is kept, so that the final bound covers it.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from marginbn.solvers.branch_cut.instance import BoolArray
from marginbn.solvers.branch_cut.splits import Split
from marginbn.solvers.branch_cut.warm import Warm

PLUNGE = 0.3
"""Share of (best open bound - incumbent) that a child may lie below the best open bound."""


@dataclass(frozen=True)
class Origin:
    """The split that made a node: object, side, value of the object and bound before."""

    split: Split
    side: int
    value: float
    bound: float


@dataclass(frozen=True)
class Node:
    """An open node; candidates and present edges are stored as bits."""

    bound: float
    depth: int
    allowed_bits: npt.NDArray[np.uint8]
    present_bits: npt.NDArray[np.uint8]
    warm: Warm
    origin: Origin | None

    @classmethod
    def of(
        cls,
        bound: float,
        depth: int,
        allowed: BoolArray,
        present: BoolArray,
        warm: Warm,
        origin: Origin | None,
    ) -> Node:
        """Pack a node."""
        return cls(bound, depth, np.packbits(allowed), np.packbits(present), warm, origin)

    def allowed(self, n_candidates: int) -> BoolArray:
        """(K,)"""
        return np.unpackbits(self.allowed_bits, count=n_candidates).astype(bool)

    def present(self, n_variables: int) -> BoolArray:
        """(n, n), upper triangle."""
        flat = np.unpackbits(self.present_bits, count=n_variables**2).astype(bool)
        return flat.reshape(n_variables, n_variables)

    @property
    def nbytes(self) -> int:
        """Memory; the warm state is shared by siblings and counted by half."""
        return self.allowed_bits.nbytes + self.present_bits.nbytes + self.warm.nbytes // 2 + 500


class Tree:
    """Open nodes."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, int, Node]] = []
        self._count = 0
        self._next: Node | None = None
        self.discarded = -math.inf
        """Largest bound at which structures were given up."""
        self.nbytes = 0

    def push(self, node: Node) -> None:
        """Add an open node."""
        self._count += 1
        self.nbytes += node.nbytes
        heapq.heappush(self._heap, (-node.bound, -node.depth, self._count, node))

    def push_children(self, children: list[Node], incumbent: float) -> None:
        """Add children; the better one may be visited next."""
        children = sorted(children, key=lambda child: -child.bound)
        for child in children:
            self.push(child)
        if children:
            best, top = children[0].bound, -self._heap[0][0]
            room = PLUNGE * (top - incumbent) if math.isfinite(incumbent) else math.inf
            if best >= top - room:
                self._next = children[0]

    def pop(self) -> Node | None:
        """The node to visit next."""
        node = self._next
        self._next = None
        if node is not None:
            # Plunging: take the child from wherever it is in the heap.
            place = next(a for a, entry in enumerate(self._heap) if entry[3] is node)
            last = self._heap.pop()
            if place < len(self._heap):
                self._heap[place] = last
                heapq.heapify(self._heap)
        elif self._heap:
            node = heapq.heappop(self._heap)[3]
        if node is not None:
            self.nbytes -= node.nbytes
        return node

    def discard(self, bound: float) -> None:
        """Remember that structures with values up to ``bound`` were given up."""
        self.discarded = max(self.discarded, bound)

    def bound(self, current: float = -math.inf) -> float:
        """Upper bound on everything open or given up, and on ``current``."""
        top = -self._heap[0][0] if self._heap else -math.inf
        return max(top, self.discarded, current)
