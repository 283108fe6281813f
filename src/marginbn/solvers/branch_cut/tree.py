"""Nodes of the search tree and the order in which they are visited.

Best bound first with mild plunging: after a split the better child is visited next while its bound
lies within a share of the remaining gap of the best open one. Depth first where memory is short.
The largest bound at which anything was ever discarded is kept, so that the final bound covers it.

A checkpoint keeps of the open nodes (N) the bound, the depth, the allowed candidates and the
present edges:

    bound (N,), depth (N,), allowed (N, A), present (N, P)    the last two as bits
    discarded (1,)                                            largest bound ever given up

What a node inherited from its parent (labels, rows, basis) and what scores have learned is found
again on the way; bounds are kept, because they were proved.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from marginbn.solvers.branch_cut.arrays import BoolArray
from marginbn.solvers.branch_cut.split import Split
from marginbn.solvers.branch_cut.warm import Warm
from marginbn.solvers.checkpoint import Arrays, BrokenFileError

PLUNGE = 0.3
"""Share of (best open bound - incumbent) that a child may lie below the best open bound, where it
profits from the programme that is loaded.
"""

SMALLEST_TREE = 1_000_000
"""Bytes of open nodes that are never too many."""


@dataclass(frozen=True)
class Origin:
    """The split that made a node: object, side, what its loss is measured by and the middle of the
    parent's bracket, see ``relaxation.py``.
    """

    split: Split
    side: int
    unit: float
    middle: float


@dataclass(frozen=True, eq=False)
class Node:
    """An open node; candidates and present edges are stored as bits. A node equals only itself."""

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
    """Open nodes in a heap; a node visited out of turn leaves its entry behind, to be skipped.

    While they take more than ``budget`` bytes the newest is visited next: depth first, which adds
    hardly any.
    """

    def __init__(self, budget: float = math.inf) -> None:
        self._budget = max(budget, SMALLEST_TREE)
        self._heap: list[tuple[float, int, int]] = []  # -bound, -depth, number
        self._open: dict[int, Node] = {}
        self._count = 0
        self._next: int | None = None
        self.taken: dict[Node, float] = {}
        """The nodes being visited with their bounds; whoever visits one says when it is done."""
        self.discarded = -math.inf
        """Largest bound at which structures were given up."""
        self.nbytes = 0

    def __len__(self) -> int:
        return len(self._open)

    def push(self, node: Node) -> int:
        """Add an open node; returns its number."""
        self._count += 1
        self.nbytes += node.nbytes
        self._open[self._count] = node
        heapq.heappush(self._heap, (-node.bound, -node.depth, self._count))
        return self._count

    def push_children(self, children: list[Node], incumbent: float) -> None:
        """Add children; the better one may be visited next."""
        if not children:
            return
        ordered = sorted(children, key=lambda child: -child.bound)
        numbers = [self.push(child) for child in ordered]
        top = self._top()
        room = PLUNGE * (top - incumbent) if math.isfinite(incumbent) else math.inf
        if ordered[0].bound >= top - room:
            self._next = numbers[0]

    def pop(self) -> Node | None:
        """The node to visit next, or ``None``."""
        number, self._next = self._next, None
        if self._open and self.nbytes > self._budget:
            number = next(reversed(self._open))
        if number is None:
            if self._top() == -math.inf:
                return None
            number = self._heap[0][2]
        node = self._open[number]
        self.taken[node] = node.bound  # first: an interrupt must find it in one place at least
        del self._open[number]
        self.nbytes -= node.nbytes
        return node

    def claim(self, node: Node, bound: float) -> None:
        """A node being visited has a better bound."""
        if node in self.taken:
            self.taken[node] = min(self.taken[node], bound)

    def done(self, node: Node) -> None:
        """The visit of a node is over."""
        self.taken.pop(node, None)

    def _top(self) -> float:
        """Largest open bound, -inf if nothing is open."""
        while self._heap and self._heap[0][2] not in self._open:
            heapq.heappop(self._heap)
        return -self._heap[0][0] if self._heap else -math.inf

    def nodes(self) -> list[Node]:
        """All open nodes and those being visited, as they were when the visit began."""
        return [*self._open.values(), *self.taken]

    def discard(self, bound: float) -> None:
        """Remember that structures with values up to ``bound`` were given up."""
        self.discarded = max(self.discarded, bound)

    def bound(self) -> float:
        """Upper bound on everything open, being visited or given up."""
        return max(self._top(), self.discarded, *self.taken.values())


def save_nodes(nodes: list[Node], discarded: float, n_candidates: int, n_variables: int) -> Arrays:
    """Arrays of some nodes."""
    allowed, present = _widths(n_candidates, n_variables)
    return {
        "bound": np.array([node.bound for node in nodes], dtype=np.float64),
        "depth": np.array([node.depth for node in nodes], dtype=np.int64),
        "allowed": np.array([n.allowed_bits for n in nodes], dtype=np.uint8).reshape(-1, allowed),
        "present": np.array([n.present_bits for n in nodes], dtype=np.uint8).reshape(-1, present),
        "discarded": np.array([discarded]),
    }


def load_nodes(
    arrays: Arrays, n_candidates: int, n_variables: int, warm: Warm
) -> tuple[list[Node], float]:
    """Nodes of a file, and the largest bound given up before.

    Raises
    ------
    BrokenFileError
        If they are not the open nodes of such a problem.
    """
    count = len(arrays.get("bound", ()))
    allowed, present = _widths(n_candidates, n_variables)
    expected = {
        "bound": ((count,), np.float64),
        "depth": ((count,), np.int64),
        "allowed": ((count, allowed), np.uint8),
        "present": ((count, present), np.uint8),
        "discarded": ((1,), np.float64),
    }
    for name, (shape, dtype) in expected.items():
        if name not in arrays or arrays[name].shape != shape or arrays[name].dtype != dtype:
            raise BrokenFileError(f"its array {name!r} does not fit the problem")
    if np.isnan(arrays["bound"]).any() or np.isnan(arrays["discarded"][0]):
        raise BrokenFileError("its tree holds impossible values")
    columns = (arrays[name] for name in ("bound", "depth", "allowed", "present"))
    nodes = [
        Node(float(bound), max(int(depth), 1), bits, edges, warm, None)
        for bound, depth, bits, edges in zip(*columns, strict=True)
    ]
    return nodes, float(arrays["discarded"][0])


def _widths(n_candidates: int, n_variables: int) -> tuple[int, int]:
    """Bytes of the two sets of bits."""
    return (n_candidates + 7) // 8, (n_variables**2 + 7) // 8
