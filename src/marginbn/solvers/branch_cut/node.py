"""Nodes of the search tree and the order in which they are visited.

Best bound first with mild plunging: after a split the better child is visited next while its bound
lies within a share of the remaining gap of the best open one. Depth first where memory is short.
The largest bound at which anything was ever discarded is kept, so that the final bound covers it.

A checkpoint keeps the bound, the allowed candidates and the present edges of every open node.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from marginbn.problem.array_types import BoolArray, IntArray
from marginbn.solvers.branch_cut.branching import Split
from marginbn.solvers.branch_cut.warm import Warm
from marginbn.solvers.result import Status
from marginbn.solvers.run import Limits

PLUNGE = 0.3
"""Share of (best open bound - incumbent) that a child may lie below the best open bound, where it
profits from the program that is loaded.
"""

SMALLEST_TREE = 1_000_000
"""Bytes of open nodes that are never too many."""

SMALLEST_GAP = 1e-9
"""Relative gap to which bounds can be expected to close in double precision."""

CUTOFF_SHARE = 0.5
"""Part of the requested gap within which nodes are given up; the rest is for rounding."""

LAST_RESORT = 4
"""The search ends with a memory limit when open nodes take so many times what they may; depth
first they hardly ever do.
"""


@dataclass(frozen=True)
class Origin:
    """The split that made a node: branching candidate, child 0 or 1, what its degradation is
    measured by and the middle of the parent's bracket, see ``relaxation.py``.
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

    def allowed(self, n_candidates: int) -> BoolArray:
        """(K,)"""
        return np.unpackbits(self.allowed_bits, count=n_candidates).astype(bool)

    def present(self, n_variables: int) -> BoolArray:
        """(n, n), upper triangle."""
        flat = np.unpackbits(self.present_bits, count=n_variables**2).astype(bool)
        return flat.reshape(n_variables, n_variables)

    @property
    def box(self) -> npt.NDArray[np.uint8]:
        """Both sets of bits."""
        return np.concatenate([self.allowed_bits, self.present_bits])

    @property
    def nbytes(self) -> int:
        """Memory; the warm state is shared by siblings and counted by half."""
        return self.allowed_bits.nbytes + self.present_bits.nbytes + self.warm.nbytes // 2 + 500


class Frontier:
    """Open nodes in a heap, the node being visited, the best value, and what was given up.

    A node visited out of turn leaves its entry in the heap behind, to be skipped. While open nodes
    take more than ``budget`` bytes the newest is visited next: depth first, which adds hardly any.
    """

    def __init__(self, budget: float, limits: Limits, scale: float = 1.0) -> None:
        self.limits = limits
        self.scale = scale
        self.value = -math.inf
        """Best value that may prune."""
        self.chosen: IntArray | None = None
        """Its selection, where it is one of ours."""
        self.nodes = 0
        self.earlier_nodes = 0  # of calls before this one
        self.discarded = -math.inf
        """Largest bound at which structures were given up."""
        self.nbytes = 0
        self._budget = max(budget, SMALLEST_TREE)
        self._heap: list[tuple[float, int, int]] = []  # -bound, -depth, number
        self._open: dict[int, Node] = {}
        self._count = 0
        self._next: int | None = None
        self._visited: Node | None = None
        self._visited_bound = -math.inf
        self._next_search = 0

    def __len__(self) -> int:
        return len(self._open)

    def push(self, node: Node) -> int:
        """Add an open node; returns its number."""
        self._count += 1
        self.nbytes += node.nbytes
        self._open[self._count] = node
        heapq.heappush(self._heap, (-node.bound, -node.depth, self._count))
        return self._count

    def take(self) -> Node | None:
        """The node to visit next; None if there is none, or none may be visited now."""
        if self.limit() is not None or self._top() == -math.inf:
            return None
        number, self._next = self._next, None
        if self.nbytes > self._budget:
            number = next(reversed(self._open))
        if number is None:
            number = self._heap[0][2]
        node = self._open[number]
        # first: an interrupt must find it in one place at least
        self._visited, self._visited_bound = node, node.bound
        del self._open[number]
        self.nbytes -= node.nbytes
        self.nodes += 1
        return node

    def claim(self, bound: float) -> None:
        """The node being visited has a better bound."""
        self._visited_bound = min(self._visited_bound, bound)

    def settle(self, children: list[Node]) -> None:
        """A visit is over: children take the place of the node; the better one may come next."""
        ordered = sorted(children, key=lambda child: -child.bound)
        numbers = [self.push(child) for child in ordered]
        room = PLUNGE * (self._top() - self.value) if math.isfinite(self.value) else math.inf
        if ordered and ordered[0].bound >= self._top() - room:
            self._next = numbers[0]
        self._visited, self._visited_bound = None, -math.inf

    def _top(self) -> float:
        """Largest open bound, -inf if nothing is open."""
        while self._heap and self._heap[0][2] not in self._open:
            heapq.heappop(self._heap)
        return -self._heap[0][0] if self._heap else -math.inf

    def open_nodes(self) -> list[Node]:
        """All open nodes and the one being visited, as it was when the visit began."""
        visited = self._visited
        return [*self._open.values()] + ([] if visited is None else [visited])

    def discard(self, bound: float) -> None:
        """Remember that structures with values up to ``bound`` were given up."""
        self.discarded = max(self.discarded, bound)

    @property
    def cutoff(self) -> float:
        """Nodes with a bound up to this are given up: incumbent plus part of the requested gap."""
        value = self.value
        if not math.isfinite(value):
            return -math.inf
        gap = max(self.limits.gap, SMALLEST_GAP)
        return value + CUTOFF_SHARE * gap * max(self.scale, abs(value))

    @property
    def bound(self) -> float:
        """Largest bound of everything open, in progress or ever given up, and the best value."""
        return max(self._top(), self._visited_bound, self.discarded, self.value)

    def take_turn(self, nodes_between: int) -> bool:
        """Whether it is time for a local search; if so, the next one is so many nodes away."""
        is_due = self.nodes >= self._next_search
        if is_due:
            self._next_search = self.nodes + nodes_between
        return is_due

    def limit(self) -> Status | None:
        """Why no further node may be visited."""
        here = self.nodes - self.earlier_nodes
        if self.limits.nodes is not None and here >= self.limits.nodes:
            return Status.NODE_LIMIT
        return Status.MEMORY_LIMIT if self.nbytes > LAST_RESORT * self._budget else None
