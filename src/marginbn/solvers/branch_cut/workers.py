"""Several workers on one tree.

Open nodes, nodes in progress, the best value and everything given up are shared and change under
one lock. A worker takes a node, visits it alone, for as long as that takes, and puts its children
back in one step; in between the node stays on the list of those in progress, with the bound it had
or a better one that was proved since. So at every moment the bound covers what anybody is working
on, and a checkpoint contains it.

What threads find prunes at once and waits to be handed to the run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from marginbn.solvers.branch_cut.arrays import IntArray
from marginbn.solvers.branch_cut.tree import SMALLEST_TREE, Node, Tree
from marginbn.solvers.result import Status
from marginbn.solvers.run import Limits
from marginbn.solvers.tree_search import REST
from marginbn.solvers.tree_search import Team as BaseTeam

SMALLEST_GAP = 1e-9
"""Relative gap to which bounds can be expected to close in double precision."""

CUTOFF_SHARE = 0.5
"""Part of the requested gap within which nodes are given up; the rest is for rounding."""

LAST_RESORT = 4
"""The search ends with a memory limit when open nodes take so many times what they may; depth
first they hardly ever do.
"""

PATIENCE = 2.0
"""Seconds for which threads are waited for at the end. One that is deep in a linear programme may
take longer; it then leaves on its own, and nobody reads what it brings.
"""


class Team(BaseTeam[IntArray]):
    """The tree that workers share; they find selections."""

    def __init__(self, tree: Tree, limits: Limits, budget: int, n_workers: int = 1) -> None:
        super().__init__(n_workers)
        self.patience = PATIENCE
        self.tree = tree
        self.limits = limits
        self.value = -math.inf
        """Best value that may prune."""
        self.chosen: IntArray | None = None
        """Its selection, where it is one of ours."""
        self.nodes = 0
        self.earlier_nodes = 0  # of calls before this one
        self._largest = LAST_RESORT * max(budget, SMALLEST_TREE)
        self._next_search = 0

    # ------------------------------------------------------------------ incumbents

    @property
    def cutoff(self) -> float:
        """Nodes with a bound up to this are given up: incumbent plus part of the requested gap."""
        value = self.value
        if not math.isfinite(value):
            return -math.inf
        return value + CUTOFF_SHARE * max(self.limits.gap, SMALLEST_GAP) * abs(value)

    def adopt(self, value: float, chosen: IntArray) -> None:
        """Prune with a selection of that value from now on, if it is the best."""
        with self._lock:
            if value > self.value and not self.is_over:
                self.value, self.chosen = value, np.array(chosen, dtype=np.int64)
                self._found.append(self.chosen)

    @property
    def best(self) -> tuple[IntArray | None, float]:
        """The best selection, where it is one of ours, and the best value."""
        with self._lock:
            return self.chosen, self.value

    def take_turn(self, nodes_between: int) -> bool:
        """Whether it is time for a local search; if so, the next one is so many nodes away."""
        with self._lock:
            is_due = self.nodes >= self._next_search
            if is_due:
                self._next_search = self.nodes + nodes_between
            return is_due

    # ------------------------------------------------------------------ nodes

    @property
    def bound(self) -> float:
        """Largest bound of everything open, in progress or ever given up, and the best value."""
        with self._lock:
            return max(self.tree.bound(), self.value)

    def discard(self, bound: float) -> None:
        """Remember that structures with values up to ``bound`` were given up."""
        with self._lock:
            self.tree.discard(bound)

    def claim(self, node: Node, bound: float) -> None:
        """A node in progress has a better bound."""
        with self._lock:
            self.tree.claim(node, bound)

    def take(self) -> Node | None:
        """A node to visit; None if there is none, or none may be visited now."""
        with self._lock:
            if self.is_over or self._limit() is not None:
                return None
            node = self.tree.pop()
            if node is not None:
                self.nodes += 1
            return node

    def settle(self, node: Node, children: list[Node]) -> None:
        """A visit is over: the children take the place of the node."""
        with self._lock:
            if not self.is_over:
                self.tree.push_children(children, self.value)
                self.tree.done(node)
                self._change.notify_all()

    def pause(self) -> Status | None:
        """For a worker that got no node: wait for the others, or say why to end."""
        with self._lock:
            if self.tree.taken:
                self._change.wait(REST)
                return None
            return Status.OPTIMAL if len(self.tree) == 0 else self._limit()

    def _limit(self) -> Status | None:
        """Why no further node may be visited."""
        here = self.nodes - self.earlier_nodes
        if self.limits.nodes is not None and here >= self.limits.nodes:
            return Status.NODE_LIMIT
        return Status.MEMORY_LIMIT if self.tree.nbytes > self._largest else None

    @contextmanager
    def at_rest(self) -> Iterator[Tree]:
        """The tree, with nobody changing it for the time of the block."""
        with self._lock:
            yield self.tree
