"""What workers share (arrays, structural rows, the tree), and one worker: what happens at a node.

Open nodes, nodes in progress, the best value and everything given up are shared and change under
one lock. A worker takes a node, visits it alone, for as long as that takes, and puts its children
back in one step; in between the node stays on the list of those in progress, with the bound it had
or a better one that was proved since. So at every moment the bound covers what anybody is working
on, and a checkpoint contains it.

What threads find prunes at once and waits to be handed to the run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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
from marginbn.solvers.run import Deadline, Limits, Stopped
from marginbn.solvers.tree_search import REST, feasible_selection, initial_selection
from marginbn.solvers.tree_search import Team as BaseTeam

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

PATIENCE = 2.0
"""Seconds for which threads are waited for at the end. One that is deep in a linear programme may
take longer; it then leaves on its own, and nobody reads what it brings.
"""


@dataclass(frozen=True, eq=False)
class Shared:
    """What the workers share; safe to use from several threads."""

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
    n_jobs: int = 1,
    poll: Poll = lambda: None,
) -> Shared:
    """Write a problem out within the memory (None: without a limit)."""
    reduced = drop_dominated(problem)
    division = BranchCutShape.of(reduced).divide(memory or Memory.probe(None), n_jobs)
    instance = arrays.build_instance(reduced, division.dense, poll, division.cache)
    pool = RowPool(instance)
    lists = ParentLists.of(reduced.candidates, reduced.linear) if reduced.is_linear else None
    original = np.flatnonzero(problem.undominated)
    costs = PseudoCosts(instance.unit)
    return Shared(reduced, original, division, instance, pool, costs, lists)


class Team(BaseTeam[IntArray]):
    """The tree that workers share; they find selections."""

    def __init__(
        self, tree: Tree, limits: Limits, budget: int, n_workers: int = 1, scale: float = 1.0
    ) -> None:
        super().__init__(n_workers)
        self.scale = scale
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
        gap = max(self.limits.gap, SMALLEST_GAP)
        return value + CUTOFF_SHARE * gap * max(self.scale, abs(value))

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


class Visitor:
    """A worker with programmes, local search and random numbers of its own. It runs in a thread and
    never meets the run; the one in the caller's thread is a subclass.
    """

    def __init__(
        self, shared: Shared, team: Team, deadline: Deadline, solver: BranchCutSolver, seed: int
    ) -> None:
        self.shared = shared
        self.instance = shared.instance
        self.team = team
        self.deadline = deadline
        self.heuristics = solver.heuristics
        parts = solver.parts
        self._relaxation = HybridRelaxation(shared.instance, shared.pool, self, seed, parts)
        self._chooser = Chooser(self._relaxation, shared.costs)
        self.finder = IncumbentSearch(shared.instance, seed, self.team.stop)
        self.orders: OrderSearch | None = None
        if shared.lists is not None and "orders" in parts:
            self.orders = OrderSearch(shared.lists, seed, self.team.stop)

    def poll(self) -> None:
        """Leave if the search is over."""
        if self.team.is_over:
            raise Stopped(Status.INTERRUPTED)
        if self.deadline.expired():
            raise Stopped(Status.TIME_LIMIT)

    def remaining(self) -> float:
        """Seconds left."""
        return self.deadline.remaining()

    def claim(self, node: Node, bound: float) -> None:
        """The node being visited has a better bound."""
        self.team.claim(node, bound)

    def adopt(self, value: float, chosen: IntArray) -> None:
        """A selection that may be the best."""
        self.team.adopt(value, chosen)

    def visit(self, node: Node) -> list[Node]:
        """Bound a node, look for incumbents, fix and split; returns the children that are left."""
        allowed = node.allowed(self.instance.n_candidates)
        present = node.present(self.instance.n_variables)
        if node.bound <= self.team.cutoff:
            self.team.discard(node.bound)
            return []
        if int(allowed.sum()) == self.instance.n_variables:
            return self._evaluate_leaf(np.flatnonzero(allowed))
        relaxed = self._relax(node, allowed, present)
        bound = min(node.bound, relaxed.bound)
        self._learn(node, relaxed)
        self.team.claim(node, bound)
        if self.heuristics and relaxed.point is not None and relaxed.prices is not None:
            self._use_point(relaxed.point, relaxed.prices.values)
        if bound <= self.team.cutoff:
            self.team.discard(bound)
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
            self.team.cutoff,
            relaxation.effort_at(self.instance, node.depth),
            lambda bound: self.claim(node, bound),
        )

    def offer(self, chosen: IntArray) -> None:
        """A selection is scored from the definition if it may be better than the best."""
        best = self.team.value
        if self.instance.value(chosen) > best - ROUNDING * max(self.team.scale, abs(best)):
            self.adopt(self.shared.problem.evaluate(chosen), chosen)

    def _evaluate_leaf(self, chosen: IntArray) -> list[Node]:
        """A node with one candidate per variable: its value is its bound."""
        self.team.discard(self.shared.problem.evaluate(chosen))
        self.offer(chosen)
        return []

    def _learn(self, node: Node, relaxed: Relaxed) -> None:
        """What the split that made the node has gained: middles of brackets are compared."""
        middle, origin = relaxed.middle(self.team.cutoff), node.origin
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
            if integral or self.team.take_turn(NODES_BETWEEN_ORDERS):
                self.orders.join(order)
                self.search_orders(ORDERS_AT_NODE if self.team.nodes > 1 else ORDERS_AT_ROOT)
            return
        due = self.team.take_turn(self.finder.nodes_between)
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
        chosen, value = self.team.best
        if chosen is not None:
            self.offer(self.finder.around(chosen, value, times))

    def fix(self, prices: Prices, allowed: BoolArray) -> None:
        """Remove candidates whose structures cannot beat the incumbent."""
        cutoff = self.team.cutoff
        if not math.isfinite(cutoff):
            return
        bounds = prices.bounds_by_candidate(self.instance, allowed)
        removed = allowed & (bounds <= cutoff)
        if removed.any():
            self.team.discard(float(bounds[removed].max()))
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
        cutoff = self.team.cutoff
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
                self.team.discard(value)
                continue
            children.append(Node.of(value, node.depth + 1, child, edges, relaxed.warm, origin))
        return children
