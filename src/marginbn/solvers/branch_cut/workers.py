"""Several workers on one tree.

Open nodes, nodes in progress, the best value and everything given up are shared and change under
one lock. A worker takes a node, visits it alone, for as long as that takes, and puts its children
back in one step; in between the node stays on the list of those in progress, with the bound it had
or a better one that was proved since. So at every moment the bound covers what anybody is working
on, and a checkpoint contains it.

The first worker runs in the caller's thread, the only one that speaks to the tracker and hears
Ctrl-C; the others run in threads of their own. What these find prunes at once and waits to be
handed to the tracker.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np

from marginbn.solvers.branch_cut.arrays import IntArray
from marginbn.solvers.branch_cut.tree import SMALLEST_TREE, Node, Tree
from marginbn.solvers.run import Limits, Stopped, running
from marginbn.solvers.tree_search import Progress

SMALLEST_GAP = 1e-9
"""Relative gap to which bounds can be expected to close in double precision."""

LAST_RESORT = 4
"""The search ends with a memory limit when open nodes take so many times what they may; depth
first they hardly ever do.
"""

REST = 0.02
"""Seconds that a worker without nodes waits before it looks again."""

PATIENCE = 2.0
"""Seconds for which helpers are waited for at the end. One that is deep in a linear programme may
take longer; it then leaves on its own, and nobody reads what it brings.
"""

Visit = Callable[[Node], list[Node]]
"""Bounds a node and returns the children that are left."""


class Team:
    """What the workers share, and the threads of all but the first."""

    def __init__(self, tree: Tree, limits: Limits, budget: int) -> None:
        self.tree = tree
        self.limits = limits
        self.value = -math.inf
        """Best value that may prune."""
        self.chosen: IntArray | None = None
        """Its selection, where it is one of ours."""
        self.nodes = 0
        self.earlier_nodes = 0  # of sittings before this one
        self.stop = np.zeros(1, dtype=np.int64)
        """Flag that ends compiled searches."""
        self._largest = LAST_RESORT * max(budget, SMALLEST_TREE)
        self._lock = threading.RLock()
        self._change = threading.Condition(self._lock)
        self._is_over = False
        self._failure: BaseException | None = None
        self._found: list[IntArray] = []
        self._next_search = 0

    # ------------------------------------------------------------------ incumbents

    @property
    def cutoff(self) -> float:
        """Nodes with a bound up to this are given up: incumbent plus half the requested gap."""
        value = self.value
        if not math.isfinite(value):
            return -math.inf
        return value + 0.5 * max(self.limits.gap, SMALLEST_GAP) * abs(value)

    def adopt(self, value: float, chosen: IntArray) -> None:
        """Prune with a selection of that value from now on, if it is the best."""
        with self._lock:
            if value > self.value and not self._is_over:
                self.value, self.chosen = value, np.array(chosen, dtype=np.int64)
                self._found.append(self.chosen)

    @property
    def best(self) -> tuple[IntArray | None, float]:
        """The best selection, where it is one of ours, and the best value."""
        with self._lock:
            return self.chosen, self.value

    @property
    def found(self) -> list[IntArray]:
        """Selections that wait to be handed to the tracker, the oldest first."""
        with self._lock:
            return list(self._found)

    def forget(self, handed_over: list[IntArray]) -> None:
        """The tracker knows these, the oldest ones."""
        with self._lock:
            del self._found[: len(handed_over)]

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
            if self._is_over or self._limit() is not None:
                return None
            node = self.tree.pop()
            if node is not None:
                self.nodes += 1
            return node

    def settle(self, node: Node, children: list[Node]) -> None:
        """A visit is over: the children take the place of the node."""
        with self._lock:
            if not self._is_over:
                self.tree.push_children(children, self.value)
                self.tree.done(node)
                self._change.notify_all()

    def pause(self) -> Progress:
        """For the first worker when it got no node: wait for the others, or say why to end."""
        with self._lock:
            self.raise_failure()
            if self.tree.taken:
                self._change.wait(REST)
                return Progress.MORE
            if len(self.tree) == 0:
                return Progress.FINISHED
            return self._limit() or Progress.MORE

    def _limit(self) -> Progress | None:
        """Why no further node may be visited."""
        here = self.nodes - self.earlier_nodes
        if self.limits.nodes is not None and here >= self.limits.nodes:
            return Progress.NODE_LIMIT
        return Progress.MEMORY_LIMIT if self.tree.nbytes > self._largest else None

    @contextmanager
    def at_rest(self) -> Iterator[Tree]:
        """The tree, with nobody changing it for the time of the block."""
        with self._lock:
            yield self.tree

    # ------------------------------------------------------------------ helpers

    @property
    def is_over(self) -> bool:
        """Whether helpers should leave."""
        return self._is_over

    def raise_failure(self) -> None:
        """Raise in the caller's thread what went wrong in another."""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    @contextmanager
    def helpers(self, visits: list[Visit]) -> Iterator[None]:
        """A thread for each of some workers, for the time of the block."""
        bodies = [partial(self._help, visit) for visit in visits]
        with running(bodies, self._send_home, PATIENCE):
            yield
        self.raise_failure()

    def _send_home(self) -> None:
        """Tell helpers to leave; from now on nothing that they do counts."""
        with self._lock:
            self._is_over = True
            self.stop[0] = 1
            self._change.notify_all()

    def _help(self, visit: Visit) -> None:
        """Body of a thread: visits while there are nodes, until somebody says stop."""
        try:
            while not self._is_over:
                node = self.take()
                if node is None:
                    with self._lock:
                        self._change.wait(REST)
                else:
                    self.settle(node, visit(node))
        except Stopped:
            pass  # its node stays among those in progress
        except BaseException as error:  # raised again in the caller's thread
            self._failure = error
