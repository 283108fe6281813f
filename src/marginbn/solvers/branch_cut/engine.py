"""Branch and cut as a tree for the search loop: the root, a visit of one node, checkpoints.

:meth:`CutSearch.open` finds first incumbents, by a search over orders (linear problems) or by
climbing (margins), bounds a linear problem by dual ascent, and pushes the root.
:meth:`CutSearch.visit` solves the programs of a node, rounds their point, removes candidates by
reduced costs, propagates, and splits.

The node being visited stays in the tree, with the bound it had or a better one that was proved
since, until its children take its place in one step. So the bound covers everything at any time,
and a checkpoint contains it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from marginbn.problem.array_types import BoolArray, FloatArray, IntArray
from marginbn.problem.formulation import Poll
from marginbn.problem.masks import ParentSets
from marginbn.problem.problem import StructureProblem, drop_dominated
from marginbn.solvers.branch_cut import arrays, relaxation
from marginbn.solvers.branch_cut.arrays import Instance
from marginbn.solvers.branch_cut.bound import Prices
from marginbn.solvers.branch_cut.branching import Chooser, PseudoCosts, children_of
from marginbn.solvers.branch_cut.cuts import RowPool
from marginbn.solvers.branch_cut.incumbents import IncumbentSearch
from marginbn.solvers.branch_cut.kernels.propagate import propagate
from marginbn.solvers.branch_cut.node import Frontier, Node, Origin
from marginbn.solvers.branch_cut.relaxation import HybridRelaxation, Relaxed
from marginbn.solvers.branch_cut.warm import Warm, cold_start, labels_at
from marginbn.solvers.checkpoint import OpenNodes, SearchState
from marginbn.solvers.memory import BranchCutShape, Division, Memory
from marginbn.solvers.orders.ascent import dual_ascent
from marginbn.solvers.orders.local_search import OrderSearch
from marginbn.solvers.orders.parent_lists import ParentLists
from marginbn.solvers.result import Status
from marginbn.solvers.run import Run
from marginbn.solvers.tree_search import (
    SearchTree,
    feasible_selection,
    initial_selection,
    saved_tree,
)

NAME = "branch_cut"
"""The solver, in checkpoints."""

FIRST_COLUMNS = 20
"""Columns per variable at the root where columns are priced."""

ASCENTS, ASCENT_ROUNDS = 12, 30
"""Passes of dual ascent before the first linear program, and improvements of the best."""

ORDERS_AT_ROOT, ORDERS_AT_NODE, NODES_BETWEEN_ORDERS = 300, 10, 4
"""Effort of the search over orders before the first program and again after the root's, then
every so many nodes; times candidates times variables.
"""

ROUNDING = 1e-9
"""Relative difference between the arrays' value of a selection and that of the definition."""

INTEGRAL = 1e-6
"""Shares below this are zero to linear programming."""


@dataclass(frozen=True, eq=False)
class Shared:
    """The problem as the search sees it."""

    problem: StructureProblem  # without dominated candidates
    original: IntArray  # number of each of its candidates in the problem as it was given
    memory: Division
    instance: Instance
    pool: RowPool  # the rows made so far
    costs: PseudoCosts  # what was learned about splits
    lists: ParentLists | None  # the candidates of a linear problem sorted by score

    def starts(self, known: IntArray | None) -> list[IntArray]:
        """Selections to start from; first a known one, if it is made of the candidates here."""
        starts = [initial_selection(self.problem), feasible_selection(self.problem.candidates)]
        places = {int(k): place for place, k in enumerate(self.original)}
        if known is not None and all(int(k) in places for k in known):
            starts.insert(0, np.array([places[int(k)] for k in known], dtype=np.int64))
        return starts

    def first_state(self, chosen: IntArray, allowed: BoolArray, rows: Sequence[int] = ()) -> Warm:
        """Labels of a selection; some or all columns; class rows and those given."""
        instance = self.instance
        labels = labels_at(instance, chosen)
        first_rows = [*self.pool.class_rows(), *rows]
        warm = cold_start(instance, labels, np.flatnonzero(allowed), first_rows)
        if np.count_nonzero(allowed) <= relaxation.all_columns(instance):
            return warm
        active = {int(k) for k in chosen}
        for i in range(instance.n_variables):
            group = instance.group(i)
            order = np.argsort(-warm.cost[group], kind="stable")[:FIRST_COLUMNS]
            active.update(int(k) + group.start for k in order)
        columns = np.array(sorted(active), dtype=np.int64)
        return cold_start(instance, labels, columns[allowed[columns]], list(warm.rows))


def prepare(
    problem: StructureProblem, memory: Memory | None = None, poll: Poll = lambda: None
) -> Shared:
    """Write a problem out within the memory (None: without a limit)."""
    reduced = drop_dominated(problem)
    division = BranchCutShape.of(reduced).divide(memory or Memory.probe(None))
    instance = arrays.build_instance(reduced, division.dense, poll, division.cache)
    pool = RowPool(instance)
    lists = ParentLists.of(reduced.candidates, reduced.linear) if reduced.is_linear else None
    original = np.flatnonzero(problem.undominated)
    costs = PseudoCosts(instance.unit)
    return Shared(reduced, original, division, instance, pool, costs, lists)


class CutSearch(SearchTree):
    """State of one solve.

    The search works on the problem without dominated candidates, the run on the original one.
    """

    def __init__(self, run: Run, heuristics: bool = True) -> None:
        run.poll()
        super().__init__(run)
        self.shared = prepare(run.problem, run.memory, run.poll)
        self.instance = self.shared.instance
        self.frontier = Frontier(self.shared.memory.tree, run.limits, run.problem.scale)
        self.heuristics = heuristics
        self.relaxation = HybridRelaxation(self.instance, self.shared.pool, run, run.seed)
        self._chooser = Chooser(self.relaxation, self.shared.costs)
        self._finder = IncumbentSearch(self.instance, run.seed, self.stop)
        lists = self.shared.lists
        self._orders = None if lists is None else OrderSearch(lists, run.seed, self.stop)
        self._size = self.instance.n_candidates * self.instance.n_variables
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
        instance = self.instance
        allowed = np.ones(instance.n_candidates, dtype=bool)
        present = np.zeros((instance.n_variables, instance.n_variables), dtype=bool)
        if not propagate(instance.offsets, instance.members, allowed, present):
            raise AssertionError("the first selection proves that the root is not empty")
        bound, rows = self._ascend(allowed)
        chosen = self.frontier.chosen
        first = self.shared.starts(self.run.selection)[0] if chosen is None else chosen
        warm = self.shared.first_state(first, allowed, rows)
        if not self._resume(warm):
            bits = np.packbits(allowed), np.packbits(present)
            self.frontier.push(Node(min(bound, self.run.bound), 0, *bits, warm, None))
        self.set_open()

    def _ascend(self, allowed: BoolArray) -> tuple[float, list[int]]:
        """Dual ascent, 1.3 times faster (alarm, hailfinder; see benchmarks/levers.py): the bound of
        a linear problem and rows for its clusters. It takes candidates out of ``allowed``.
        """
        shared, lists = self.shared, self.shared.lists
        if lists is None:
            return math.inf, []
        ascent = dual_ascent(
            lists,
            passes=ASCENTS,
            rounds=ASCENT_ROUNDS,
            seed=self.run.seed,
            allowed=allowed[lists.index],
            is_late=lambda: self.run.limit is not None,
        )
        limits = np.empty(len(allowed))
        limits[lists.index] = ascent.bound - ascent.reduced
        removed = allowed & (limits <= self.frontier.cutoff)
        if removed.any():
            self.frontier.discard(float(limits[removed].max()))
            allowed[removed] = False
        shared.pool.restrict(allowed)
        for cluster in ParentSets(ascent.seen):
            shared.pool.cluster(cluster)
        rows = dict.fromkeys(shared.pool.cluster(c) for c in ParentSets(ascent.clusters))
        return ascent.bound, list(rows)

    def _search_first(self) -> None:
        """Climb from the incumbent and from the smallest sets, then kick."""
        starts = self.shared.starts(self.run.selection)
        if self._orders is not None:
            self._offer(starts[0])
            self._orders.join(self._orders.order_of(starts[0]))
            self._offer(self._orders.search(ORDERS_AT_ROOT * self._size))
            return
        for chosen in starts if self._finder.is_cheap else starts[:1]:
            self._offer(self._finder.improved(chosen))
        self._kick(self._finder.kicks_at_start)

    # ------------------------------------------------------------------ checkpoints

    @property
    def _box_bytes(self) -> tuple[int, int]:
        """Bytes of the allowed candidates and of the present edges of a node."""
        instance = self.instance
        return -(-instance.n_candidates // 8), -(-(instance.n_variables**2) // 8)

    def _resume(self, warm: Warm) -> bool:
        """Take over the tree of an earlier call; its nodes start from the state given. They are
        tightened again: nothing impossible gets in.
        """
        instance = self.instance
        n, n_candidates = instance.n_variables, instance.n_candidates
        saved = saved_tree(self.run, NAME, sum(self._box_bytes), 0.0)
        if saved is None:
            return False
        nodes, earlier = saved
        frontier, middle = self.frontier, self._box_bytes[0]
        frontier.discard(nodes.floor)
        for bound, box in zip(nodes.bound.tolist(), nodes.boxes, strict=True):
            node = Node(bound, 1, box[:middle], box[middle:], warm, None)
            allowed, present = node.allowed(n_candidates), node.present(n)
            if propagate(instance.offsets, instance.members, allowed, present):
                bits = np.packbits(allowed), np.packbits(present)
                frontier.push(Node(bound, 1, *bits, warm, None))
        frontier.nodes = frontier.earlier_nodes = earlier
        return True

    def snapshot(self) -> SearchState:
        """The open nodes and the one being visited, as it was when the visit began."""
        nodes, discarded = self.frontier.open_nodes(), self.frontier.discarded
        width = sum(self._box_bytes)
        boxes = np.array([node.box for node in nodes], dtype=np.uint8).reshape(-1, width)
        bound = np.array([node.bound for node in nodes], dtype=np.float64)
        saved = OpenNodes(boxes, bound, np.array([discarded, np.inf]))
        return SearchState(NAME, self.nodes, saved.arrays)

    # ------------------------------------------------------------------ the search

    def advance(self) -> Status | None:
        """Visit one node."""
        node = self.frontier.take()
        if node is None:
            return self.frontier.limit() if len(self.frontier) else Status.OPTIMAL
        self.frontier.settle(self.visit(node))
        return None

    def _claim(self, bound: float) -> None:
        """The node being visited has a better bound."""
        self.frontier.claim(bound)
        self.report()

    def visit(self, node: Node) -> list[Node]:
        """Bound a node, look for incumbents, fix and split; returns the children that are left."""
        allowed = node.allowed(self.instance.n_candidates)
        present = node.present(self.instance.n_variables)
        if node.bound <= self.frontier.cutoff:
            self.frontier.discard(node.bound)
            return []
        if int(allowed.sum()) == self.instance.n_variables:
            return self._evaluate_leaf(np.flatnonzero(allowed))
        pool, edges = self.shared.pool, zip(*np.nonzero(present), strict=True)
        relaxed = self.relaxation.solve(
            node.warm,
            allowed,
            [pool.edge(int(i), int(j)) for i, j in edges],
            self.frontier.cutoff,
            relaxation.effort_at(self.instance, node.depth),
            self._claim,
        )
        bound = min(node.bound, relaxed.bound)
        middle, origin = relaxed.middle(self.frontier.cutoff), node.origin
        if origin is not None and math.isfinite(middle):  # what the split has gained
            loss = origin.middle - middle
            self.shared.costs.learn(origin.split, origin.side, origin.unit, loss)
        self.frontier.claim(bound)
        if self.heuristics and relaxed.point is not None and relaxed.prices is not None:
            self._use_point(relaxed.point, relaxed.prices.values)
        if bound <= self.frontier.cutoff:
            self.frontier.discard(bound)
            return []
        if relaxed.prices is not None:
            self.fix(relaxed.prices, allowed)
            if not propagate(self.instance.offsets, self.instance.members, allowed, present):
                return []
            if node.depth == 0 and self.shared.lists is not None:
                pool.restrict(allowed)  # all other nodes lie below
        return self._split(node, relaxed, bound, allowed, present)

    def _offer(self, chosen: IntArray) -> None:
        """A selection is scored from the definition if it may be better than the best; if it is,
        it prunes from now on.
        """
        best = self.frontier.value
        if self.instance.value(chosen) <= best - ROUNDING * max(self.frontier.scale, abs(best)):
            return
        value = self.shared.problem.evaluate(chosen)
        if value > best:
            self.frontier.value = value
            self.frontier.chosen = np.array(chosen, dtype=np.int64)
            self.report()

    def _evaluate_leaf(self, chosen: IntArray) -> list[Node]:
        """A node with one candidate per variable: its value is its bound."""
        self.frontier.discard(self.shared.problem.evaluate(chosen))
        self._offer(chosen)
        return []

    def _use_point(self, point: FloatArray, values: FloatArray) -> None:
        """The order of a linear problem's point always, a search from it now and then; of others an
        integral point always, a rounded one or a kick of the incumbent now and then.
        """
        integral = len(np.flatnonzero(point > INTEGRAL)) == self.instance.n_variables
        if self._orders is not None:
            order = self._orders.rounded(point)
            self._offer(self._orders.selection(order))
            if integral or self.frontier.take_turn(NODES_BETWEEN_ORDERS):
                self._orders.join(order)
                effort = ORDERS_AT_NODE if self.frontier.nodes > 1 else ORDERS_AT_ROOT
                self._offer(self._orders.search(effort * self._size))
            return
        due = self.frontier.take_turn(self._finder.nodes_between)
        if not (integral or due):
            return
        chosen = self._finder.rounded(point, values)
        if chosen is not None:
            self._offer(chosen)
            if due:
                self._offer(self._finder.improved(chosen))
        if due:
            self._kick(1)

    def _kick(self, times: int) -> None:
        """Look around the best selection found so far."""
        chosen, value = self.frontier.chosen, self.frontier.value
        if chosen is not None:
            self._offer(self._finder.around(chosen, value, times))

    def fix(self, prices: Prices, allowed: BoolArray) -> None:
        """Reduced-cost fixing: no faster on alarm and hailfinder (``benchmarks run levers``)."""
        cutoff = self.frontier.cutoff
        if not math.isfinite(cutoff):
            return
        bounds = prices.bounds_by_candidate(self.instance, allowed)
        removed = allowed & (bounds <= cutoff)
        if removed.any():
            self.frontier.discard(float(bounds[removed].max()))
            allowed[removed] = False

    def _split(
        self, node: Node, relaxed: Relaxed, bound: float, allowed: BoolArray, present: BoolArray
    ) -> list[Node]:
        """Make the children of a node; those that cannot be better are given up."""
        if int(allowed.sum()) == self.instance.n_variables:
            return self._evaluate_leaf(np.flatnonzero(allowed))
        cutoff = self.frontier.cutoff
        choice = self._chooser.choose(relaxed, bound, cutoff, allowed, present, node.depth)
        children: list[Node] = []
        for side, change in enumerate(children_of(self.instance, choice.split, allowed)):
            origin = Origin(choice.split, side, choice.moves[side], relaxed.middle(cutoff))
            child, edges = change.apply(allowed, present)
            if not propagate(self.instance.offsets, self.instance.members, child, edges):
                continue
            value = min(bound, choice.bounds[side])
            if relaxed.prices is not None:
                value = min(value, relaxed.prices.bound(self.instance, child))
            if value <= cutoff:
                self.frontier.discard(value)
                continue
            bits = np.packbits(child), np.packbits(edges)
            children.append(Node(value, node.depth + 1, *bits, relaxed.warm, origin))
        return children
