"""What all workers share (arrays, structural rows, what scores have learned), and one worker: what
happens at a node.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from marginbn.problem.problem import StructureProblem, drop_dominated
from marginbn.solvers.branch_cut.arrays import (
    BoolArray,
    FloatArray,
    Instance,
    IntArray,
    Poll,
    build_instance,
)
from marginbn.solvers.branch_cut.kernels.climb import IncumbentSearch
from marginbn.solvers.branch_cut.kernels.propagate import propagate
from marginbn.solvers.branch_cut.relaxation import (
    ALL_COLUMNS,
    HybridRelaxation,
    Relaxed,
    effort_at,
)
from marginbn.solvers.branch_cut.rows import RowPool
from marginbn.solvers.branch_cut.split import Chooser, PseudoCosts, sides
from marginbn.solvers.branch_cut.tree import Node, Origin
from marginbn.solvers.branch_cut.warm import Warm, cold_start, labels_at
from marginbn.solvers.branch_cut.workers import Team
from marginbn.solvers.memory import BranchCutShape, Division, Memory
from marginbn.solvers.result import Status
from marginbn.solvers.run import Deadline, Stopped
from marginbn.solvers.start import feasible_selection, initial_selection

if TYPE_CHECKING:
    from marginbn.solvers.branch_cut import BranchCutSolver

FIRST_COLUMNS = 20
"""Columns per variable at the root where columns are priced."""

ROUNDING = 1e-9
"""Relative difference between the arrays' value of a selection and that of the definition."""

INTEGRAL = 1e-6
"""Shares below this are zero to linear programming."""


@dataclass(frozen=True, eq=False)
class Shared:
    """What the workers share; safe to use from several threads.

    Attributes
    ----------
    problem
        The problem without dominated candidates.
    original
        Number of each of its candidates in the problem as it was given.
    memory
        How memory is used.
    instance, pool, costs
        Its arrays, the rows made so far, and what was learned about splits.
    """

    problem: StructureProblem
    original: IntArray
    memory: Division
    instance: Instance
    pool: RowPool
    costs: PseudoCosts

    def starts(self, known: IntArray | None) -> list[IntArray]:
        """Selections to start from; first a known one, if it is made of the candidates here."""
        starts = [initial_selection(self.problem), feasible_selection(self.problem.candidates)]
        places = {int(k): place for place, k in enumerate(self.original)}
        if known is not None and all(int(k) in places for k in known):
            starts.insert(0, np.array([places[int(k)] for k in known], dtype=np.int64))
        return starts

    def first_state(self, chosen: IntArray, allowed: BoolArray) -> Warm:
        """Labels of a selection; some or all columns."""
        instance = self.instance
        labels = labels_at(instance, chosen)
        warm = cold_start(instance, labels, np.flatnonzero(allowed), self.pool.class_rows())
        if instance.n_candidates <= ALL_COLUMNS:
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
    instance = build_instance(reduced, division.dense, poll, division.cache)
    pool = RowPool(instance)
    return Shared(reduced, _positions(reduced, problem), division, instance, pool, PseudoCosts())


def _positions(reduced: StructureProblem, original: StructureProblem) -> IntArray:
    """Flat index in the original problem of every candidate of the reduced one."""
    if reduced is original:
        return np.arange(original.candidates.n_candidates)
    pairs = zip(reduced.candidates.child, reduced.candidates.parents, strict=True)
    return np.array([original.candidates.index(int(i), p) for i, p in pairs], dtype=np.int64)


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
        self.relaxation = HybridRelaxation(shared.instance, shared.pool, self, seed)
        self.finder = IncumbentSearch(shared.instance, seed, self.team.stop)
        self.chooser = Chooser(self.relaxation, shared.costs, seed, solver.random_splits)

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
        self._learn(node, bound)
        self.team.claim(node, bound)
        if self.heuristics and relaxed.point is not None and relaxed.prices is not None:
            self._use_point(relaxed.point, relaxed.prices.values)
        if bound <= self.team.cutoff:
            self.team.discard(bound)
            return []
        if relaxed.prices is not None:
            self.fix(relaxed, allowed)
            if not propagate(self.instance.offsets, self.instance.members, allowed, present):
                return []
        return self._split(node, relaxed, bound, allowed, present)

    def _relax(self, node: Node, allowed: BoolArray, present: BoolArray) -> Relaxed:
        pool = self.shared.pool
        return self.relaxation.solve(
            node.warm,
            allowed,
            [pool.edge(int(i), int(j)) for i, j in zip(*np.nonzero(present), strict=True)],
            self.team.cutoff,
            effort_at(self.instance, node.depth),
            lambda bound: self.claim(node, bound),
        )

    def offer(self, chosen: IntArray) -> None:
        """A selection is scored from the definition if it may be better than the best."""
        best = self.team.value
        if self.instance.value(chosen) > best - ROUNDING * abs(best):
            self.adopt(self.shared.problem.evaluate(chosen), chosen)

    def _evaluate_leaf(self, chosen: IntArray) -> list[Node]:
        """A node with one candidate per variable: its value is its bound."""
        self.team.discard(self.shared.problem.evaluate(chosen))
        self.offer(chosen)
        return []

    def _learn(self, node: Node, bound: float) -> None:
        if node.origin is not None and math.isfinite(bound):
            origin = node.origin
            loss = origin.bound - bound
            self.shared.costs.learn(origin.split, origin.side, origin.value, loss)

    def _use_point(self, point: FloatArray, values: FloatArray) -> None:
        """An integral point always, a rounded one or a kick of the incumbent now and then."""
        integral = len(np.flatnonzero(point > INTEGRAL)) == self.instance.n_variables
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

    def kick(self, times: int) -> None:
        """Look around the best selection found so far."""
        chosen, value = self.team.best
        if chosen is not None:
            self.offer(self.finder.around(chosen, value, times))

    def fix(self, relaxed: Relaxed, allowed: BoolArray) -> None:
        """Remove candidates whose structures cannot beat the incumbent."""
        assert relaxed.prices is not None
        cutoff = self.team.cutoff
        if not math.isfinite(cutoff):
            return
        bounds = relaxed.prices.bounds_by_candidate(self.instance, allowed)
        removed = allowed & (bounds <= cutoff)
        if removed.any():
            self.team.discard(float(bounds[removed].max()))
            allowed[removed] = False

    def _split(
        self, node: Node, relaxed: Relaxed, bound: float, allowed: BoolArray, present: BoolArray
    ) -> list[Node]:
        """Make the children of a node; those that cannot be better are given up."""
        if int(allowed.sum()) == self.instance.n_variables:
            return self._evaluate_leaf(np.flatnonzero(allowed))
        cutoff = self.team.cutoff
        choice = self.chooser.choose(relaxed, bound, cutoff, allowed, present, node.depth)
        children: list[Node] = []
        for side, change in enumerate(sides(self.instance, choice.split, allowed)):
            child, edges = change.apply(allowed, present)
            if not propagate(self.instance.offsets, self.instance.members, child, edges):
                continue
            value = min(bound, choice.bounds[side])
            if relaxed.prices is not None:
                value = min(value, relaxed.prices.bound(self.instance, child))
            if value <= cutoff:
                self.team.discard(value)
                continue
            origin = Origin(choice.split, side, choice.value, bound)
            children.append(Node.of(value, node.depth + 1, child, edges, relaxed.warm, origin))
        return children
