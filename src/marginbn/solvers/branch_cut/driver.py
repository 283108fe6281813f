"""The search loop: visit nodes, keep books, stop in time."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from marginbn.problem import StructureProblem, drop_dominated
from marginbn.solvers.branch_cut.choosing import Chooser
from marginbn.solvers.branch_cut.incumbents import IncumbentSearch
from marginbn.solvers.branch_cut.instance import (
    BoolArray,
    FloatArray,
    IntArray,
    build_instance,
)
from marginbn.solvers.branch_cut.kernels.propagate import propagate
from marginbn.solvers.branch_cut.needs import Division, divide
from marginbn.solvers.branch_cut.relaxation import (
    ALL_COLUMNS,
    Effort,
    HybridRelaxation,
    Relaxed,
    labels_at,
)
from marginbn.solvers.branch_cut.rows import RowPool
from marginbn.solvers.branch_cut.saving import load_nodes, save_nodes
from marginbn.solvers.branch_cut.splits import sides
from marginbn.solvers.branch_cut.tree import SMALLEST_TREE, Node, Origin, Tree
from marginbn.solvers.branch_cut.warm import Warm, cold_start
from marginbn.solvers.checkpoint import SearchState, warn_unused
from marginbn.solvers.ending import Stopped, look_up
from marginbn.solvers.events import Tracker
from marginbn.solvers.framing import BrokenFileError
from marginbn.solvers.memory import spendable
from marginbn.solvers.result import SolveResult, Status, relative_gap
from marginbn.solvers.start import begin, feasible_selection, initial_selection

SMALLEST_GAP = 1e-9
"""Relative gap to which bounds can be expected to close in double precision."""

NAME = "branch_cut"

LAST_RESORT = 4
"""The search ends with a memory limit when open nodes take so many times what they may; depth
first they hardly ever do.
"""

FIRST_COLUMNS = 20
"""Columns per variable at the root where columns are priced."""


def drive(
    tracker: Tracker,
    start: NDArray[np.int64] | None,
    seed: int,
    heuristics: bool,
    random_splits: bool,
    division: Division | None = None,
) -> SolveResult:
    """Solve one problem; ``division`` says how memory is used if not as the limits have it."""
    stopped: Status | None = None
    nodes = 0
    try:
        begin(tracker, start)
        look_up(tracker)
        search = Search(tracker, seed, heuristics, random_splits, division)
        try:
            with tracker.deadline.ringing(search.raise_flag):
                stopped = search.run()
        finally:
            nodes = search.nodes
            search.report()
    except KeyboardInterrupt:
        stopped = Status.INTERRUPTED
    except Stopped as stop:
        stopped = stop.status
    return tracker.finish(NAME, stopped, nodes)


class Search:
    """State of one solve.

    The search runs on the problem without dominated candidates; the tracker keeps the books of the
    original one.
    """

    def __init__(
        self,
        tracker: Tracker,
        seed: int,
        heuristics: bool,
        random_splits: bool,
        division: Division | None = None,
    ) -> None:
        self.tracker = tracker
        self.limits = tracker.deadline.limits
        self.heuristics = heuristics
        self.problem = drop_dominated(tracker.problem)
        self._original = _positions(self.problem, tracker.problem)
        self.memory = self._divide() if division is None else division
        self.instance = build_instance(
            self.problem, self.memory.dense, lambda: look_up(tracker), self.memory.cache
        )
        self.pool = RowPool(self.instance, self.problem.candidates)
        self.relaxation = HybridRelaxation(self.instance, self.pool, tracker, seed)
        self.finder = IncumbentSearch(self.instance, seed)
        self.chooser = Chooser(self.relaxation, seed, random_splits)
        self.tree = Tree(self.memory.tree)
        self.nodes = 0
        self.earlier_nodes = 0  # of sittings before this one
        self._current = math.inf  # bound of the node being visited
        self._value = -math.inf  # best value that may prune
        self._chosen: IntArray | None = None  # its selection, where it is one of ours
        self._next_search = 0

    def _divide(self) -> Division:
        limit = self.limits.memory
        size = self.problem.candidates.n_candidates, self.problem.n_rows
        return divide(*size, limit, spendable(limit))

    # ------------------------------------------------------------------ book-keeping

    def raise_flag(self) -> None:
        """Ask the kernels to stop."""
        self.finder.stop[0] = 1

    @property
    def cutoff(self) -> float:
        """Nodes with a bound up to this are given up: incumbent plus half the requested gap."""
        if not math.isfinite(self._value):
            return -math.inf
        return self._value + 0.5 * max(self.limits.gap, SMALLEST_GAP) * abs(self._value)

    def offer(self, chosen: IntArray) -> None:
        """Hand a selection to the tracker, which scores it from the definition."""
        if self.instance.value(chosen) <= self._value - 1e-9 * abs(self._value):
            return  # not worth the definition
        improves = self.tracker.offer(self._original[chosen])
        if improves or not self.heuristics:
            value = self.tracker.objective if improves else self.problem.evaluate(chosen)
            if value > self._value:
                self._value, self._chosen = value, np.array(chosen, dtype=np.int64)

    def report(self) -> None:
        """Tell the tracker the bound of everything open, given up or being visited."""
        bound = max(self.tree.bound(self._current), self._value)
        if bound > -math.inf:
            self.tracker.improve_bound(bound)

    def _hear(self, bound: float) -> None:
        """The node being visited has a better bound."""
        self._current = min(self._current, bound)
        self.report()

    # ------------------------------------------------------------------ the loop

    def run(self) -> Status | None:
        """Visit nodes until none is left (None) or a limit is reached."""
        self._open_root()
        while True:
            self._current = math.inf  # an interrupt between the two lines must not lose a node
            node = self.tree.pop()
            if node is None:
                self._current = -math.inf
                return None
            self._current = node.bound
            self.report()
            if self.tracker.is_closed:
                return None
            look_up(self.tracker)
            here = self.nodes - self.earlier_nodes
            if self.limits.nodes is not None and here >= self.limits.nodes:
                return Status.NODE_LIMIT
            if self.tree.nbytes > LAST_RESORT * max(self.memory.tree, SMALLEST_TREE):
                return Status.MEMORY_LIMIT
            self.nodes += 1
            self._visit(node)
            self.tree.taken = None

    def _open_root(self) -> None:
        """First incumbents and the root node."""
        first = self.tracker.selection
        assert first is not None  # begin has offered one
        if self.heuristics:
            self._value = self.tracker.objective
            self._search_first()
        n = self.instance.n_variables
        allowed = np.ones(self.instance.n_candidates, dtype=bool)
        present = np.zeros((n, n), dtype=bool)
        if not propagate(self.instance.offsets, self.instance.members, allowed, present):
            raise AssertionError("the first selection proves that the root is not empty")
        warm = self._first_state(allowed)
        if not self._resume(warm):
            self.tree.push(Node.of(self.tracker.bound, 0, allowed, present, warm, None))
        self.tracker.snapshot = self.snapshot
        self._current = -math.inf

    # ------------------------------------------------------------------ checkpoints

    def _resume(self, warm: Warm) -> bool:
        """Take over the tree of an earlier sitting; all its nodes start from the state given."""
        saved = self.tracker.saved
        if saved is None or saved.search.solver != NAME or not saved.search.arrays:
            return False
        size = self.instance.n_candidates, self.instance.n_variables
        try:
            nodes, discarded = load_nodes(saved.search.arrays, *size, warm)
        except BrokenFileError as error:
            warn_unused(f"the checkpoint's tree cannot be used: {error}")
            return False
        if relative_gap(self.tracker.objective, discarded) > self.limits.gap:
            warn_unused("the checkpoint's tree was searched with a wider gap_tolerance")
            return False
        self.tree.discard(discarded)
        for node in nodes:
            self._reopen(node)
        self.nodes = self.earlier_nodes = saved.search.nodes
        return True

    def _reopen(self, node: Node) -> None:
        """Push a node of a file, tightened anew: nothing impossible gets in."""
        allowed = node.allowed(self.instance.n_candidates)
        present = node.present(self.instance.n_variables)
        if propagate(self.instance.offsets, self.instance.members, allowed, present):
            self.tree.push(Node.of(node.bound, node.depth, allowed, present, node.warm, None))

    def snapshot(self) -> SearchState:
        """The open nodes and the one being visited, as it was when the visit began."""
        size = self.instance.n_candidates, self.instance.n_variables
        return SearchState(
            NAME, self.nodes, save_nodes(self.tree.nodes(), self.tree.discarded, *size)
        )

    # ------------------------------------------------------------------ one node

    def _search_first(self) -> None:
        """Climb from the tracker's selection and from the smallest sets, then kick."""
        starts = self._starts()
        for chosen in starts if self.finder.is_cheap else starts[:1]:
            self.offer(self.finder.improved(chosen))
        if self._chosen is not None:
            kicks = self.finder.kicks_at_start
            self.offer(self.finder.around(self._chosen, self._value, kicks))

    def _starts(self) -> list[IntArray]:
        starts = [initial_selection(self.problem), feasible_selection(self.problem.candidates)]
        places = {int(k): place for place, k in enumerate(self._original)}
        known = self.tracker.selection
        if known is not None and all(int(k) in places for k in known):
            starts.insert(0, np.array([places[int(k)] for k in known], dtype=np.int64))
        return starts

    def _first_state(self, allowed: BoolArray) -> Warm:
        """Labels of the incumbent, or of the first selection; some or all columns."""
        chosen = self._starts()[0] if self._chosen is None else self._chosen
        labels = labels_at(self.instance, chosen)
        warm = cold_start(self.instance, labels, np.flatnonzero(allowed), self.pool.class_rows())
        if self.instance.n_candidates <= ALL_COLUMNS:
            return warm
        active = {int(k) for k in chosen}
        for i in range(self.instance.n_variables):
            group = self.instance.group(i)
            order = np.argsort(-warm.cost[group], kind="stable")[:FIRST_COLUMNS]
            active.update(int(k) + group.start for k in order)
        columns = np.array(sorted(active), dtype=np.int64)
        return cold_start(self.instance, labels, columns[allowed[columns]], list(warm.rows))

    def _visit(self, node: Node) -> None:
        """Bound a node, look for incumbents, fix and split."""
        allowed = node.allowed(self.instance.n_candidates)
        present = node.present(self.instance.n_variables)
        if node.bound <= self.cutoff:
            self.tree.discard(node.bound)
            return
        if int(allowed.sum()) == self.instance.n_variables:
            self._evaluate_leaf(np.flatnonzero(allowed))
            return
        edges = [self.pool.edge(int(i), int(j)) for i, j in zip(*np.nonzero(present), strict=True)]
        relaxed = self.relaxation.solve(
            node.warm, allowed, edges, self.cutoff, self._effort(node.depth), self._hear
        )
        bound = min(node.bound, relaxed.bound)
        self._learn(node, bound)
        self._current = bound
        if self.heuristics and relaxed.point is not None and relaxed.prices is not None:
            self._use_point(relaxed.point, relaxed.prices.values)
        if bound <= self.cutoff:
            self.tree.discard(bound)
            return
        if relaxed.prices is not None:
            self._fix(relaxed, allowed)
            if not propagate(self.instance.offsets, self.instance.members, allowed, present):
                return
        self._split(node, relaxed, bound, allowed, present)

    def _effort(self, depth: int) -> Effort:
        n = self.instance.n_variables
        linear = self.instance.n_samples == 0
        if depth == 0:
            return Effort(1000, 10, 2e-3, 2 * n, 1e-4 if linear else 1e-3, accuracy=0.02, exact=10)
        if linear:
            return Effort(30, 3, 1e-2, n, 1e-4)
        return Effort(10, 2, 1e-2, n, 2e-2)

    def _evaluate_leaf(self, chosen: IntArray) -> None:
        """A node with one candidate per variable: its value is its bound."""
        value = self.problem.evaluate(chosen)
        self.tree.discard(value)
        self.offer(chosen)

    def _learn(self, node: Node, bound: float) -> None:
        if node.origin is not None and math.isfinite(bound):
            origin = node.origin
            loss = origin.bound - bound
            self.chooser.costs.learn(origin.split, origin.side, origin.value, loss)

    def _use_point(self, point: FloatArray, values: FloatArray) -> None:
        """An integral point always, a rounded one or a kick of the incumbent now and then."""
        integral = len(np.flatnonzero(point > 1e-6)) == self.instance.n_variables
        due = self.nodes >= self._next_search
        if not (integral or due):
            return
        chosen = self.finder.rounded(point, values)
        if chosen is not None:
            self.offer(chosen)
            if due:
                self.offer(self.finder.improved(chosen))
        if due:
            self._next_search = self.nodes + self.finder.nodes_between
            if self._chosen is not None:
                self.offer(self.finder.around(self._chosen, self._value, 1))

    def _fix(self, relaxed: Relaxed, allowed: BoolArray) -> None:
        """Remove candidates whose structures cannot beat the incumbent."""
        assert relaxed.prices is not None
        if not math.isfinite(self.cutoff):
            return
        bounds = relaxed.prices.bounds_by_candidate(self.instance, allowed)
        removed = allowed & (bounds <= self.cutoff)
        if removed.any():
            self.tree.discard(float(bounds[removed].max()))
            allowed[removed] = False

    def _split(
        self, node: Node, relaxed: Relaxed, bound: float, allowed: BoolArray, present: BoolArray
    ) -> None:
        """Make the two children of a node."""
        if int(allowed.sum()) == self.instance.n_variables:
            self._evaluate_leaf(np.flatnonzero(allowed))
            return
        choice = self.chooser.choose(relaxed, bound, self.cutoff, allowed, present, node.depth)
        children: list[Node] = []
        for side, change in enumerate(sides(self.instance, choice.split, allowed)):
            child, edges = allowed.copy(), present.copy()
            child[change.removed] = False
            if change.edge is not None:
                edges[change.edge] = True
            if not propagate(self.instance.offsets, self.instance.members, child, edges):
                continue
            value = min(bound, choice.bounds[side])
            if relaxed.prices is not None:
                value = min(value, relaxed.prices.bound(self.instance, child))
            if value <= self.cutoff:
                self.tree.discard(value)
                continue
            origin = Origin(choice.split, side, choice.value, bound)
            children.append(Node.of(value, node.depth + 1, child, edges, relaxed.warm, origin))
        self.tree.push_children(children, self._value)


def _positions(reduced: StructureProblem, original: StructureProblem) -> IntArray:
    """Flat index in the original problem of every candidate of the reduced one."""
    if reduced is original:
        return np.arange(original.candidates.n_candidates)
    pairs = zip(reduced.candidates.child, reduced.candidates.parents, strict=True)
    return np.array([original.candidates.index(int(i), p) for i, p in pairs], dtype=np.int64)
