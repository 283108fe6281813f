"""Work on a part of a tree: some open nodes, given by somebody who counts their bounds meanwhile.

What comes back is a tree again: the nodes that are left, with the largest bound of anything that
was discarded on the way. So whoever hands parts out knows at every moment a bound of the whole: the
largest of the nodes that wait, of the parts that are out *as they were given*, and of what came
back. A part that never comes back is as if it had not been given.

The engine of a part, with the rows it uses, is kept for the next part of the same problem. What it
has learned about splits (``kernels/gains.py``) goes back with the answer, and comes with the next
part together with what others have learned.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from marginbn.problem.problem import StructureProblem
from marginbn.solvers.branch_bound.engine import Search
from marginbn.solvers.branch_bound.kernels.records import FloatArray, IntArray
from marginbn.solvers.branch_bound.saved_tree import OpenNodes, gather, load, parse
from marginbn.solvers.branch_bound.workers import first_pool
from marginbn.solvers.checkpoint import Arrays
from marginbn.solvers.result import Status, relative_gap
from marginbn.solvers.run import Limits, Run, Stopped
from marginbn.solvers.tree_search import initial_bound

if TYPE_CHECKING:
    from marginbn.solvers.branch_bound import BranchBoundSolver

Selection = NDArray[np.int64]
Listen = Callable[[], Selection | None]
Tell = Callable[[Selection], None]


@dataclass(frozen=True, eq=False)
class Learned:
    """What splits have gained: the rows of the table that are not empty. Tables add up."""

    places: IntArray
    sums: FloatArray  # (places, 2, 3)

    @classmethod
    def of(cls, table: FloatArray) -> Learned:
        """Of a table, but for its running mean, which is everybody's own."""
        kept = np.asarray(table.any(axis=(1, 2)))
        kept[len(table) - MEAN] = False
        places = np.flatnonzero(kept)
        return cls(places, table[places])

    @classmethod
    def nothing(cls) -> Learned:
        """Before the first split."""
        return cls(np.zeros(0, dtype=np.int64), np.zeros((0, 2, 3)))

    def __add__(self, other: Learned) -> Learned:
        places = np.union1d(self.places, other.places)
        sums = np.zeros((places.size, 2, 3))
        for one in (self, other):
            sums[np.searchsorted(places, one.places)] += one.sums
        return Learned(places, sums)

    def write(self, table: FloatArray) -> None:
        """Put it into an engine's table, in place of everything but the running mean."""
        mean = table[len(table) - MEAN].copy()
        table[:] = 0.0
        table[self.places] = self.sums
        table[len(table) - MEAN] = mean


MEAN = 5
"""Place of the running mean in the table of gains, from its end."""


@dataclass(frozen=True, eq=False)
class Task:
    """Nodes to work on, the best structure known, and how long."""

    arrays: Mapping[str, NDArray[np.generic]]
    selection: Selection
    seconds: float
    gap: float
    seed: int = 0
    memory: int | None = None
    learned: Learned = field(default_factory=Learned.nothing)


@dataclass(frozen=True, eq=False)
class Answer:
    """What is left of the nodes, the best structure, the number of nodes worked on, and what these
    have taught.
    """

    arrays: Arrays
    selection: Selection
    objective: float
    nodes: int
    learned: Learned


class PartSearch(Search):
    """A search whose nodes come from outside, one part after the other."""

    def __init__(self, run: Run, solver: BranchBoundSolver) -> None:
        super().__init__(run, solver, math.inf)  # it is made once, for many parts
        self._set_root()
        vertex = self._mean_vertex()
        self.rows.extend(self.rows.margins(self.main.work.bounding, vertex))
        self._known = vertex

    def take(self, run: Run, nodes: OpenNodes, learned: Learned) -> None:
        """Begin with a part; everything that is left of an earlier one is forgotten."""
        self.run, self.is_open = run, False
        self.team.stop[0] = 0
        self.main.reserve = 0
        empty = first_pool(self.encoding)
        order = np.argsort(-nodes.bound, kind="stable")
        self.main.pool = load(empty, self.encoding.instance, self.root, nodes, order)
        self.schedule.next_stop = self.schedule.batch
        self.main.incumbent.found[0] = self.main.reported
        self.leaf_value = -np.inf
        learned.write(self.main.work.gains)
        self._before = self.main.work.gains.copy()
        self._announce_incumbent()
        self._see_incumbent()
        self.set_open()

    def _see_incumbent(self) -> None:
        """Use the rows that matter at the best structure, too: with those of another place bounds
        are weak, and the tree becomes twice as large.
        """
        vertex = self.main.incumbent.vertex.copy()
        if not np.array_equal(vertex, self._known):
            self.rows.extend(self.rows.margins(self.main.work.bounding, vertex))
            self._known = vertex

    @property
    def learned(self) -> Learned:
        """What this part has taught."""
        return Learned.of(self.main.work.gains - self._before)

    @property
    def left(self) -> OpenNodes:
        """The nodes that are open now."""
        with self.team.at_rest() as pools:
            return gather(pools)

    def report(self) -> bool:
        """Structures alone: the bound of a part is none of the whole problem, in all of which the
        local search looks for better ones.
        """
        self.team.raise_failure()
        self.run.nodes = self.nodes
        return self.hand_over()

    @property
    def is_closed(self) -> bool:
        """Whether nothing in the part is better than the best structure known, but for the gap."""
        gap = relative_gap(self.run.objective, self.bound, self.run.problem.scale)
        return gap <= self.run.limits.gap

    def hear(self) -> None:
        """Take over a better structure that somebody else has found."""
        found = None if self.run.listen is None else self.run.listen()
        if found is not None and self.run.offer(found):
            self._announce_incumbent()


Kind = tuple[StructureProblem, "BranchBoundSolver"]
_KEPT: list[tuple[Kind, PartSearch]] = []
_LOCK = threading.Lock()


def _borrow(kind: Kind) -> PartSearch | None:
    """The engine of this problem and solver, if it is here and unused; others are given up."""
    with _LOCK:
        kept = [own for known, own in _KEPT if known[0] is kind[0] and known[1] == kind[1]]
        _KEPT.clear()
        return kept[0] if kept else None


def _give_back(kind: Kind, search: PartSearch) -> None:
    with _LOCK:
        _KEPT[:] = [(kind, search)]


def get_ready(solver: BranchBoundSolver, problem: StructureProblem, memory: int | None) -> None:
    """Make the engine of a problem before its first part comes."""
    solver.prepare()
    run = Run(problem, Limits(memory=memory))
    kind = problem, solver
    _give_back(kind, _borrow(kind) or PartSearch(run, solver))


def solve_part(
    solver: BranchBoundSolver,
    problem: StructureProblem,
    task: Task,
    listen: Listen | None = None,
    tell: Tell | None = None,
) -> Answer:
    """Work on a part for some seconds, or until nothing of it is left; ``tell`` hears of better
    structures at once.
    """
    solver.prepare()
    limits = Limits(task.seconds, None, task.gap, task.memory)
    run = Run(problem, limits, seed=task.seed, listen=listen)
    run.start_clock()
    run.offer(task.selection)
    known = run.objective  # whoever gave the part knows this one, and maybe not what is kept here
    run.improve_bound(initial_bound(problem))
    left: OpenNodes | None = None
    nodes, learned = 0, Learned.nothing()
    try:
        search = _borrow((problem, solver)) or PartSearch(run, solver)
        given = parse(dict(task.arrays), search.encoding.instance)
        search.take(run, given, task.learned)
        _search(run, search, known, tell)
        left, nodes, learned = search.left, search.team.nodes, search.learned
        _give_back((problem, solver), search)
    except Stopped:  # the time was too short to begin
        pass
    arrays = dict(task.arrays) if left is None else left.arrays
    assert run.selection is not None  # the one of the task, at the least
    return Answer(arrays, run.selection, run.objective, nodes, learned)


def _search(run: Run, search: PartSearch, told: float, tell: Tell | None) -> None:
    """Portions of work until the time is over or nothing is left."""
    ended: Status | None = None
    with run.deadline.ringing(search.interrupt):
        while ended is None:
            improved = search.report()
            told = _tell(run, told, tell)
            search.hear()
            if search.is_closed or run.limit is not None:
                break
            search.improve(improved)
            ended = search.advance()
    search.report()
    _tell(run, told, tell)


def _tell(run: Run, told: float, tell: Tell | None) -> float:
    """Pass a better structure on; returns the best value that was."""
    if run.objective > told and tell is not None and run.selection is not None:
        tell(run.selection)
    return max(told, run.objective)
