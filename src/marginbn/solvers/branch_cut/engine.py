"""Branch and cut as a tree for the search loop: opening, first incumbents, checkpoints."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from marginbn.solvers.branch_cut.arrays import BoolArray, IntArray
from marginbn.solvers.branch_cut.kernels.propagate import propagate
from marginbn.solvers.branch_cut.tree import Node, load_nodes, save_nodes
from marginbn.solvers.branch_cut.visit import (
    ASCENT_ROUNDS,
    ASCENTS,
    ORDERS_AT_ROOT,
    Frontier,
    Visitor,
    prepare,
)
from marginbn.solvers.branch_cut.warm import Warm
from marginbn.solvers.checkpoint import SearchState
from marginbn.solvers.orders.ascent import dual_ascent
from marginbn.solvers.orders.parent_lists import to_members
from marginbn.solvers.result import Status
from marginbn.solvers.run import Run
from marginbn.solvers.tree_search import SearchTree, saved_tree

if TYPE_CHECKING:
    from marginbn.solvers.branch_cut import BranchCutSolver


class Search(SearchTree):
    """State of one solve.

    The search works on the problem without dominated candidates, the run on the original one.
    """

    def __init__(self, run: Run, solver: BranchCutSolver) -> None:
        run.poll()
        super().__init__(run)
        self.shared = prepare(run.problem, run.memory, run.poll)
        self.frontier = Frontier(self.shared.memory.tree, run.limits, run.problem.scale)
        self.name = solver.name
        self.heuristics = solver.heuristics
        self.parts = solver.parts
        made = (self.shared, self.frontier, run, solver)
        self.visitor = Visitor(*made, self.report, self.team.stop)
        self._offered: IntArray | None = None  # the best selection that the run has seen

    @property
    def nodes(self) -> int:
        """Nodes visited, in earlier calls too."""
        return self.frontier.nodes

    @property
    def bound(self) -> float:
        """Of everything open, in progress, given up or found; infinite where nothing is known."""
        bound = self.frontier.bound
        return bound if bound > -math.inf else math.inf

    def hand_over(self) -> bool:
        """Offer the best selection to the run. It counts as offered afterwards only: an interrupt
        must not lose a structure whose leaf is no longer in the tree.
        """
        chosen = self.frontier.chosen
        if chosen is None or chosen is self._offered:
            return False
        improved = self.run.offer(self.shared.original[chosen])
        self._offered = chosen
        return improved

    # ------------------------------------------------------------------ the root

    def open(self) -> None:
        """First incumbents, then the root node or the tree of an earlier call."""
        if self.heuristics:
            self.frontier.value = self.run.objective
            self._search_first()
        instance = self.shared.instance
        allowed = np.ones(instance.n_candidates, dtype=bool)
        present = np.zeros((instance.n_variables, instance.n_variables), dtype=bool)
        if not propagate(instance.offsets, instance.members, allowed, present):
            raise AssertionError("the first selection proves that the root is not empty")
        bound, rows = self._ascend(allowed)
        chosen = self.frontier.chosen
        first = self._starts()[0] if chosen is None else chosen
        warm = self.shared.first_state(first, allowed, rows)
        if not self._resume(warm):
            root = Node.of(min(bound, self.run.bound), 0, allowed, present, warm, None)
            self.frontier.tree.push(root)
        self.set_open()

    def _ascend(self, allowed: BoolArray) -> tuple[float, list[int]]:
        """The bound of a linear problem by dual ascent and rows for its clusters; candidates that
        it excludes are taken out of ``allowed``.
        """
        shared, lists = self.shared, self.shared.lists
        if lists is None or "ascent" not in self.parts:
            return math.inf, []
        ascent = dual_ascent(
            lists,
            passes=ASCENTS,
            rounds=ASCENT_ROUNDS,
            seed=self.run.seed,
            allowed=allowed[lists.index],
        )
        limits = np.empty(len(allowed))
        limits[lists.index] = ascent.bound - ascent.reduced
        removed = allowed & (limits <= self.frontier.cutoff)
        if removed.any():
            self.frontier.tree.discard(float(limits[removed].max()))
            allowed[removed] = False
        shared.pool.restrict(allowed)
        for cluster in ascent.seen:
            shared.pool.cluster(to_members(cluster))
        rows = dict.fromkeys(shared.pool.cluster(to_members(c)) for c in ascent.clusters)
        return ascent.bound, list(rows)

    def _starts(self) -> list[IntArray]:
        return self.shared.starts(self.run.selection)

    def _search_first(self) -> None:
        """Climb from the incumbent and from the smallest sets, then kick."""
        first, starts = self.visitor, self._starts()
        if first.orders is not None:
            first.offer(starts[0])
            first.orders.join(first.orders.order_of(starts[0]))
            first.search_orders(ORDERS_AT_ROOT)
            return
        for chosen in starts if first.finder.is_cheap else starts[:1]:
            first.offer(first.finder.improved(chosen))
        first.kick(first.finder.kicks_at_start)

    # ------------------------------------------------------------------ checkpoints

    def _resume(self, warm: Warm) -> bool:
        """Take over the tree of an earlier call; all its nodes start from the state given."""
        size = self.shared.instance.n_candidates, self.shared.instance.n_variables
        saved = saved_tree(
            self.run,
            self.name,
            lambda arrays: load_nodes(arrays, *size, warm),
            lambda loaded: loaded[1],
        )
        if saved is None:
            return False
        (nodes, discarded), earlier = saved
        self.frontier.tree.discard(discarded)
        for node in nodes:
            self._reopen(node)
        self.frontier.nodes = self.frontier.earlier_nodes = earlier
        return True

    def _reopen(self, node: Node) -> None:
        """Push a node of a file, tightened again: nothing impossible gets in."""
        instance = self.shared.instance
        allowed = node.allowed(instance.n_candidates)
        present = node.present(instance.n_variables)
        if propagate(instance.offsets, instance.members, allowed, present):
            again = Node.of(node.bound, node.depth, allowed, present, node.warm, None)
            self.frontier.tree.push(again)

    def snapshot(self) -> SearchState:
        """The open nodes and the one being visited, as it was when the visit began."""
        size = self.shared.instance.n_candidates, self.shared.instance.n_variables
        tree = self.frontier.tree
        saved = save_nodes(tree.nodes(), tree.discarded, *size)
        return SearchState(self.name, self.nodes, saved)

    # ------------------------------------------------------------------ the search

    def advance(self, worker: int = 0) -> Status | None:
        """Visit one node."""
        node = self.frontier.take()
        if node is None:
            return self.frontier.limit() if len(self.frontier.tree) else Status.OPTIMAL
        self.frontier.settle(node, self.visitor.visit(node))
        return None
