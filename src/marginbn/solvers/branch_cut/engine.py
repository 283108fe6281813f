"""Branch and cut as a tree for the search loop: opening, first incumbents, books, checkpoints."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager

import numpy as np
from numpy.typing import NDArray

from marginbn.solvers.branch_cut.arrays import IntArray
from marginbn.solvers.branch_cut.kernels.propagate import propagate
from marginbn.solvers.branch_cut.needs import Division
from marginbn.solvers.branch_cut.tree import Node, Tree, load_nodes, save_nodes
from marginbn.solvers.branch_cut.visit import Desk, Ground, Visitor, prepare
from marginbn.solvers.branch_cut.warm import Warm
from marginbn.solvers.branch_cut.workers import Team
from marginbn.solvers.checkpoint import SearchState
from marginbn.solvers.result import SolveResult
from marginbn.solvers.run import Tracker, look_up
from marginbn.solvers.tree_search import Progress, SearchTree, report, saved_tree, search

NAME = "branch_cut"


def drive(
    tracker: Tracker,
    start: NDArray[np.int64] | None,
    seed: int,
    heuristics: bool,
    random_splits: bool,
    n_jobs: int = 1,
    division: Division | None = None,
) -> SolveResult:
    """Solve one problem; ``division`` says how memory is used if not as the limits have it."""

    def plant() -> Search:
        look_up(tracker)
        ground = prepare(
            tracker.problem,
            lambda: look_up(tracker),
            memory_limit=tracker.deadline.limits.memory,
            n_jobs=n_jobs,
            division=division,
        )
        return Search(ground, tracker, seed, heuristics, random_splits, n_jobs)

    return search(tracker, start, NAME, plant)


class CallersDesk(Desk):
    """The desk of the worker in the caller's thread, who speaks to the tracker."""

    def __init__(self, tree: Search) -> None:
        super().__init__(tree.team, tree.tracker.deadline)
        self.tree = tree

    def look_up(self) -> None:
        """Tell news of other workers, save if due, leave if the callback or the clock says so."""
        if self.tree.has_helpers:
            self.team.raise_failure()
            report(self.tree, self.tree.tracker)
        look_up(self.tree.tracker)

    def claim(self, node: Node, bound: float) -> None:
        """The node being visited has a better bound: the tracker hears of it at once."""
        super().claim(node, bound)
        report(self.tree, self.tree.tracker)

    def adopt(self, value: float, chosen: IntArray) -> None:
        """The same with selections."""
        super().adopt(value, chosen)
        self.tree.hand_over()


class Search(SearchTree):
    """State of one solve.

    The search runs on the problem without dominated candidates; the tracker keeps the books of the
    original one.
    """

    def __init__(
        self,
        ground: Ground,
        tracker: Tracker,
        seed: int,
        heuristics: bool,
        random_splits: bool,
        n_jobs: int = 1,
    ) -> None:
        self.ground = ground
        self.tracker = tracker
        self.heuristics = heuristics
        self.is_open = False
        self.team = Team(Tree(ground.memory.tree), tracker.deadline.limits, ground.memory.tree)
        helpers = [Desk(self.team, tracker.deadline) for _ in range(1, n_jobs)]
        self.visitors = [
            Visitor(ground, desk, seed + 7919 * k, heuristics, random_splits)
            for k, desk in enumerate([CallersDesk(self), *helpers])
        ]

    # ------------------------------------------------------------------ books

    @property
    def has_helpers(self) -> bool:
        """Whether there are workers in threads of their own."""
        return len(self.visitors) > 1

    @property
    def nodes(self) -> int:
        """Nodes visited, in earlier sittings too."""
        return self.team.nodes

    @property
    def bound(self) -> float:
        """Of everything open, in progress, given up or found; infinite where nothing is known."""
        bound = self.team.bound
        return bound if bound > -math.inf else math.inf

    def hand_over(self) -> bool:
        """Offer what was found to the tracker, which scores it from the definition."""
        found = self.team.found
        improved = [self.tracker.offer(self.ground.original[chosen]) for chosen in found]
        self.team.forget(found)
        return any(improved)

    # ------------------------------------------------------------------ the root

    def open(self) -> None:
        """First incumbents, then the root node or the tree of an earlier sitting."""
        if self.heuristics:
            self.team.value = self.tracker.objective
            self._search_first()
        instance = self.ground.instance
        allowed = np.ones(instance.n_candidates, dtype=bool)
        present = np.zeros((instance.n_variables, instance.n_variables), dtype=bool)
        if not propagate(instance.offsets, instance.members, allowed, present):
            raise AssertionError("the first selection proves that the root is not empty")
        chosen, _ = self.team.best
        warm = self.ground.first_state(self._starts()[0] if chosen is None else chosen, allowed)
        if not self._resume(warm):
            root = Node.of(self.tracker.bound, 0, allowed, present, warm, None)
            self.team.tree.push(root)
        self.is_open = True

    def _starts(self) -> list[IntArray]:
        return self.ground.starts(self.tracker.selection)

    def _search_first(self) -> None:
        """Climb from the tracker's selection and from the smallest sets, then kick."""
        first, starts = self.visitors[0], self._starts()
        for chosen in starts if first.finder.is_cheap else starts[:1]:
            first.offer(first.finder.improved(chosen))
        first.kick(first.finder.kicks_at_start)

    # ------------------------------------------------------------------ checkpoints

    def _resume(self, warm: Warm) -> bool:
        """Take over the tree of an earlier sitting; all its nodes start from the state given."""
        size = self.ground.instance.n_candidates, self.ground.instance.n_variables
        saved = saved_tree(
            self.tracker,
            NAME,
            lambda arrays: load_nodes(arrays, *size, warm),
            lambda loaded: loaded[1],
        )
        if saved is None:
            return False
        (nodes, discarded), earlier = saved
        self.team.tree.discard(discarded)
        for node in nodes:
            self._reopen(node)
        self.team.nodes = self.team.earlier_nodes = earlier
        return True

    def _reopen(self, node: Node) -> None:
        """Push a node of a file, tightened anew: nothing impossible gets in."""
        instance = self.ground.instance
        allowed = node.allowed(instance.n_candidates)
        present = node.present(instance.n_variables)
        if propagate(instance.offsets, instance.members, allowed, present):
            again = Node.of(node.bound, node.depth, allowed, present, node.warm, None)
            self.team.tree.push(again)

    def snapshot(self) -> SearchState:
        """The open nodes and those being visited, as they were when the visits began."""
        size = self.ground.instance.n_candidates, self.ground.instance.n_variables
        with self.team.at_rest() as tree:
            nodes, count, discarded = tree.nodes(), self.team.nodes, tree.discarded
        self.hand_over()  # what has closed the nodes that are missing
        return SearchState(NAME, count, save_nodes(nodes, discarded, *size))

    # ------------------------------------------------------------------ the search

    def advance(self) -> Progress:
        """Visit one node."""
        node = self.team.take()
        if node is None:
            return self.team.pause()
        self.team.settle(node, self.visitors[0].visit(node))
        return Progress.MORE

    def interrupt(self) -> None:
        """Ask compiled searches to stop."""
        self.team.stop[0] = 1

    def at_work(self) -> AbstractContextManager[None]:
        """Threads of all workers but the first."""
        return self.team.helpers([visitor.visit for visitor in self.visitors[1:]])
