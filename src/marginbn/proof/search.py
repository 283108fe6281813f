"""The tree search that keeps its proof.

Best bound first, as in the engines, but node by node in Python, with every decision and every
weight kept until the end. Whatever ends the search, the nodes still open are leaves with the best
weights they have: the certificate proves the gap that is left.
"""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count

from marginbn.proof.cutoff import Cutoff
from marginbn.proof.record import Claim, Relaxation, TreeNode, leaves
from marginbn.solvers.result import Status
from marginbn.solvers.run import Tracker
from marginbn.solvers.tree_search import Progress, SearchTree, run

PROOF_BYTES = 500_000_000
"""Weights kept in memory; beyond it the search ends with a memory limit."""


class CertifyingSearch(SearchTree):
    """State of one search."""

    def __init__(self, relaxation: Relaxation, tracker: Tracker, cutoff: Cutoff) -> None:
        self.relaxation = relaxation
        self.tracker = tracker
        self.cutoff = cutoff
        claim = relaxation.root()
        self.root = TreeNode(claim.bound, claim.proof)
        self._visited = 0
        self.is_open = True
        self._order = count()
        self._open: list[tuple[float, int, TreeNode, Claim]] = []
        self._floor = -float("inf")  # largest bound of a closed leaf
        self._nbytes = 0
        self._push(self.root, claim)

    def run(self) -> Status | None:
        """Visit nodes until none is left (None) or a limit is reached."""
        with self.tracker.deadline.ringing(self.interrupt):
            return run(self, self.tracker)

    def advance(self) -> Progress:
        """Visit one node."""
        if not self._open:
            return Progress.FINISHED
        limit = self.tracker.deadline.limits.nodes
        if limit is not None and self.nodes >= limit:
            return Progress.NODE_LIMIT
        if self._nbytes > PROOF_BYTES:
            return Progress.MEMORY_LIMIT
        _, _, node, claim = heappop(self._open)
        try:
            self._visit(node, claim)
        except BaseException:
            self._push(node, claim)  # an interrupt must not lose a node
            raise
        return Progress.MORE

    def _visit(self, node: TreeNode, claim: Claim) -> None:
        if claim.bound <= self.cutoff.value:
            self._close(claim.bound)
            return
        self._visited += 1
        visit = self.relaxation.visit(claim)
        if visit.bound < node.bound:
            node.bound, node.proof = visit.bound, visit.proof
            self._nbytes += visit.proof.nbytes
        if visit.sides is None:
            self._close(node.bound)
            return
        sides = tuple(TreeNode(side.bound, side.proof) for side in visit.sides)
        node.split, node.sides = visit.split, (sides[0], sides[1])
        for side, made in zip(visit.sides, node.sides, strict=True):
            self._push(made, side)

    def _push(self, node: TreeNode, claim: Claim) -> None:
        if claim.bound <= self.cutoff.value:
            self._close(claim.bound)
        else:
            heappush(self._open, (-claim.bound, next(self._order), node, claim))

    def _close(self, bound: float) -> None:
        self._floor = max(self._floor, bound)

    @property
    def nodes(self) -> int:
        """Nodes visited."""
        return self._visited

    @property
    def bound(self) -> float:
        """Of everything open or closed, and the incumbent."""
        top = -self._open[0][0] if self._open else -float("inf")
        return max(top, self._floor, self.tracker.objective)

    @property
    def proven(self) -> float:
        """Largest bound of a leaf: what the recorded tree proves."""
        return max(leaf.bound for leaf in leaves(self.root))

    def interrupt(self) -> None:
        """Ask the relaxation to come back soon."""
        self.relaxation.interrupt()
