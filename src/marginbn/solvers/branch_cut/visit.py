"""What a search is about (arrays, rows, open nodes, the best value), and what happens at a node.

The node being visited stays in the tree, with the bound it had or a better one that was proved
since, until its children take its place in one step. So the bound covers everything at any time,
and a checkpoint contains it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from marginbn.problem.formulation import Poll
from marginbn.problem.problem import StructureProblem, drop_dominated
from marginbn.solvers.branch_cut import arrays, relaxation
from marginbn.solvers.branch_cut.arrays import BoolArray, FloatArray, Instance, IntArray
from marginbn.solvers.branch_cut.kernels.climb import IncumbentSearch
from marginbn.solvers.branch_cut.kernels.propagate import propagate
from marginbn.solvers.branch_cut.lagrangian import Prices
from marginbn.solvers.branch_cut.relaxation import HybridRelaxation, Relaxed
from marginbn.solvers.branch_cut.rows import RowPool
from marginbn.solvers.branch_cut.shape import BranchCutShape
from marginbn.solvers.branch_cut.split import Chooser, PseudoCosts, sides
from marginbn.solvers.branch_cut.tree import SMALLEST_TREE, Node, Origin, Tree
from marginbn.solvers.branch_cut.warm import Warm, cold_start, labels_at
from marginbn.solvers.memory import Division, Memory
from marginbn.solvers.orders.local_search import OrderSearch
from marginbn.solvers.orders.parent_lists import ParentLists
from marginbn.solvers.result import Status
from marginbn.solvers.run import Limits, Run
from marginbn.solvers.tree_search import feasible_selection, initial_selection

if TYPE_CHECKING:
    from marginbn.solvers.branch_cut import BranchCutSolver

FIRST_COLUMNS = 20
"""Columns per variable at the root where columns are priced."""

ASCENTS, ASCENT_ROUNDS = 12, 30
"""Passes of dual ascent before the first linear programme, and improvements of the best."""

ORDERS_AT_ROOT, ORDERS_AT_NODE, NODES_BETWEEN_ORDERS = 300, 10, 4
"""Effort of the search over orders before the first programme and again after the root's, then
every so many nodes; times candidates times variables.
"""

ROUNDING = 1e-9
"""Relative difference between the arrays' value of a selection and that of the definition."""

INTEGRAL = 1e-6
"""Shares below this are zero to linear programming."""

SMALLEST_GAP = 1e-9
"""Relative gap to which bounds can be expected to close in double precision."""

CUTOFF_SHARE = 0.5
"""Part of the requested gap within which nodes are given up; the rest is for rounding."""

LAST_RESORT = 4
"""The search ends with a memory limit when open nodes take so many times what they may; depth
first they hardly ever do.
"""


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
    problem: StructureProblem,
    memory: Memory | None = None,
    poll: Poll = lambda: None,
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


class Frontier:
    """Open nodes, the node being visited, the best value, and what was given up."""

    def __init__(self, budget: int, limits: Limits, scale: float = 1.0) -> None:
        self.tree = Tree(budget)
        self.limits = limits
        self.scale = scale
        self.value = -math.inf
        """Best value that may prune."""
        self.chosen: IntArray | None = None
        """Its selection, where it is one of ours."""
        self.nodes = 0
        self.earlier_nodes = 0  # of calls before this one
        self._largest = LAST_RESORT * max(budget, SMALLEST_TREE)
        self._next_search = 0

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
        return max(self.tree.bound(), self.value)

    def take_turn(self, nodes_between: int) -> bool:
        """Whether it is time for a local search; if so, the next one is so many nodes away."""
        is_due = self.nodes >= self._next_search
        if is_due:
            self._next_search = self.nodes + nodes_between
        return is_due

    def take(self) -> Node | None:
        """A node to visit; None if there is none, or none may be visited now."""
        node = None if self.limit() is not None else self.tree.pop()
        self.nodes += node is not None
        return node

    def settle(self, node: Node, children: list[Node]) -> None:
        """A visit is over: the children take the place of the node."""
        self.tree.push_children(children, self.value)
        self.tree.done(node)

    def limit(self) -> Status | None:
        """Why no further node may be visited."""
        here = self.nodes - self.earlier_nodes
        if self.limits.nodes is not None and here >= self.limits.nodes:
            return Status.NODE_LIMIT
        return Status.MEMORY_LIMIT if self.tree.nbytes > self._largest else None


class Visitor:
    """Programmes, local search and random numbers of one search.

    ``report`` is called where the bound of the node being visited or the best selection has
    improved, ``stop`` ends compiled code.
    """

    def __init__(
        self,
        shared: Shared,
        frontier: Frontier,
        run: Run,
        solver: BranchCutSolver,
        report: Callable[[], object],
        stop: IntArray,
    ) -> None:
        self.shared = shared
        self.instance = shared.instance
        self.frontier = frontier
        self.heuristics = solver.heuristics
        self._run = run
        self._report = report
        seed, parts = run.seed, solver.parts
        self._relaxation = HybridRelaxation(shared.instance, shared.pool, self, seed, parts)
        self._chooser = Chooser(self._relaxation, shared.costs)
        self.finder = IncumbentSearch(shared.instance, seed, stop)
        self.orders: OrderSearch | None = None
        if shared.lists is not None and "orders" in parts:
            self.orders = OrderSearch(shared.lists, seed, stop)

    def poll(self) -> None:
        """Save if due, leave if the callback or the clock says so."""
        self._run.poll()

    def remaining(self) -> float:
        """Seconds left."""
        return self._run.remaining()

    def claim(self, node: Node, bound: float) -> None:
        """The node being visited has a better bound."""
        self.frontier.tree.claim(node, bound)
        self._report()

    def adopt(self, value: float, chosen: IntArray) -> None:
        """Prune with a selection from now on and report it, if it is the best."""
        if value > self.frontier.value:
            self.frontier.value = value
            self.frontier.chosen = np.array(chosen, dtype=np.int64)
            self._report()

    def visit(self, node: Node) -> list[Node]:
        """Bound a node, look for incumbents, fix and split; returns the children that are left."""
        allowed = node.allowed(self.instance.n_candidates)
        present = node.present(self.instance.n_variables)
        if node.bound <= self.frontier.cutoff:
            self.frontier.tree.discard(node.bound)
            return []
        if int(allowed.sum()) == self.instance.n_variables:
            return self._evaluate_leaf(np.flatnonzero(allowed))
        relaxed = self._relax(node, allowed, present)
        bound = min(node.bound, relaxed.bound)
        self._learn(node, relaxed)
        self.frontier.tree.claim(node, bound)
        if self.heuristics and relaxed.point is not None and relaxed.prices is not None:
            self._use_point(relaxed.point, relaxed.prices.values)
        if bound <= self.frontier.cutoff:
            self.frontier.tree.discard(bound)
            return []
        if relaxed.prices is not None:
            self.fix(relaxed.prices, allowed)
            if not propagate(self.instance.offsets, self.instance.members, allowed, present):
                return []
            if node.depth == 0 and self.shared.lists is not None:
                self.shared.pool.restrict(allowed)  # all other nodes lie below
        return self._split(node, relaxed, bound, allowed, present)

    def _relax(self, node: Node, allowed: BoolArray, present: BoolArray) -> Relaxed:
        """Solve the programmes of a node."""
        pool = self.shared.pool
        return self._relaxation.solve(
            node.warm,
            allowed,
            [pool.edge(int(i), int(j)) for i, j in zip(*np.nonzero(present), strict=True)],
            self.frontier.cutoff,
            relaxation.effort_at(self.instance, node.depth),
            lambda bound: self.claim(node, bound),
        )

    def offer(self, chosen: IntArray) -> None:
        """A selection is scored from the definition if it may be better than the best."""
        best = self.frontier.value
        if self.instance.value(chosen) > best - ROUNDING * max(self.frontier.scale, abs(best)):
            self.adopt(self.shared.problem.evaluate(chosen), chosen)

    def _evaluate_leaf(self, chosen: IntArray) -> list[Node]:
        """A node with one candidate per variable: its value is its bound."""
        self.frontier.tree.discard(self.shared.problem.evaluate(chosen))
        self.offer(chosen)
        return []

    def _learn(self, node: Node, relaxed: Relaxed) -> None:
        """What the split that made the node has gained: middles of brackets are compared."""
        middle, origin = relaxed.middle(self.frontier.cutoff), node.origin
        if origin is not None and math.isfinite(middle):
            loss = origin.middle - middle
            self.shared.costs.learn(origin.split, origin.side, origin.unit, loss)

    def _use_point(self, point: FloatArray, values: FloatArray) -> None:
        """The order of a linear problem's point always, a search from it now and then; of others an
        integral point always, a rounded one or a kick of the incumbent now and then.
        """
        integral = len(np.flatnonzero(point > INTEGRAL)) == self.instance.n_variables
        if self.orders is not None:
            order = self.orders.rounded(point)
            self.offer(self.orders.best_of(order))
            if integral or self.frontier.take_turn(NODES_BETWEEN_ORDERS):
                self.orders.join(order)
                self.search_orders(ORDERS_AT_NODE if self.frontier.nodes > 1 else ORDERS_AT_ROOT)
            return
        due = self.frontier.take_turn(self.finder.nodes_between)
        if not (integral or due):
            return
        chosen = self.finder.rounded(point, values)
        if chosen is not None:
            self.offer(chosen)
            if due:
                self.offer(self.finder.improved(chosen))
        if due:
            self.kick(1)

    def search_orders(self, effort: int) -> None:
        """Improve the population of orders of a linear problem."""
        assert self.orders is not None
        size = self.instance.n_candidates * self.instance.n_variables
        self.offer(self.orders.search(effort * size))

    def kick(self, times: int) -> None:
        """Look around the best selection found so far."""
        chosen, value = self.frontier.chosen, self.frontier.value
        if chosen is not None:
            self.offer(self.finder.around(chosen, value, times))

    def fix(self, prices: Prices, allowed: BoolArray) -> None:
        """Remove candidates whose structures cannot beat the incumbent."""
        cutoff = self.frontier.cutoff
        if not math.isfinite(cutoff):
            return
        bounds = prices.bounds_by_candidate(self.instance, allowed)
        removed = allowed & (bounds <= cutoff)
        if removed.any():
            self.frontier.tree.discard(float(bounds[removed].max()))
            allowed[removed] = False

    def _split(
        self,
        node: Node,
        relaxed: Relaxed,
        bound: float,
        allowed: BoolArray,
        present: BoolArray,
    ) -> list[Node]:
        """Make the children of a node; those that cannot be better are given up."""
        if int(allowed.sum()) == self.instance.n_variables:
            return self._evaluate_leaf(np.flatnonzero(allowed))
        cutoff = self.frontier.cutoff
        choice = self._chooser.choose(relaxed, bound, cutoff, allowed, present, node.depth)
        children: list[Node] = []
        for side, change in enumerate(sides(self.instance, choice.split, allowed)):
            origin = Origin(choice.split, side, choice.units[side], relaxed.middle(cutoff))
            child, edges = change.apply(allowed, present)
            if not propagate(self.instance.offsets, self.instance.members, child, edges):
                continue
            value = min(bound, choice.bounds[side])
            if relaxed.prices is not None:
                value = min(value, relaxed.prices.bound(self.instance, child))
            if value <= cutoff:
                self.frontier.tree.discard(value)
                continue
            children.append(Node.of(value, node.depth + 1, child, edges, relaxed.warm, origin))
        return children
