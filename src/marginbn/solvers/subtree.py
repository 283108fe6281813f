"""Work on a part of a tree: some open nodes, given by somebody who counts their bounds meanwhile.

What comes back is a tree again: the nodes that are left, with the largest bound of anything that
was discarded on the way. So whoever hands parts out knows at every moment a bound of the whole: the
largest of the nodes that wait, of the parts that are out *as they were given*, and of what came
back. A part that never comes back is as if it had not been given.

The engine of a part, with the rows it uses, is kept for the next part of the same problem. The
pseudo-costs that a part adds go back with the answer, and the next part begins with those of all
workers: vehicle SM with two of them needs x0.88 and x0.95 of the nodes to a bound (two seeds).
"""

from __future__ import annotations

import hashlib
import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from marginbn import __version__
from marginbn.problem.array_types import FloatArray, IntArray
from marginbn.problem.problem import StructureProblem
from marginbn.solvers.branch_bound.engine import Search
from marginbn.solvers.branch_bound.workers import first_pool, gather, load
from marginbn.solvers.checkpoint import Arrays, OpenNodes, parse
from marginbn.solvers.result import Status, fingerprint, relative_gap
from marginbn.solvers.run import Limits, Run, Stopped
from marginbn.solvers.tree_search import initial_bound

if TYPE_CHECKING:
    from marginbn.solvers.branch_bound import BranchBoundSolver


MEAN = -5
"""Row of the pseudo-costs with the running mean."""


@dataclass(frozen=True, eq=False)
class Task:
    """Nodes to work on, the best structure known, and how long."""

    arrays: Mapping[str, NDArray[np.generic]]
    selection: IntArray
    seconds: float
    gap: float
    seed: int = 0
    memory: int | None = None
    pseudocosts: FloatArray | None = None  # of all workers


@dataclass(frozen=True, eq=False)
class Answer:
    """What is left of the nodes, the best structure, the number of nodes worked on, by which engine
    for which problem, and what this has added to the pseudo-costs.
    """

    arrays: Arrays
    selection: IntArray
    objective: float
    nodes: int
    stamp: str = ""
    pseudocosts: FloatArray | None = None


class PartSearch(Search):
    """A search whose nodes come from outside, one part after the other."""

    def __init__(self, run: Run, solver: BranchBoundSolver) -> None:
        super().__init__(run, solver, math.inf)  # it is made once, for many parts
        self._set_root()
        vertex = self._mean_vertex()
        self.rows.extend(self.rows.margins(self.main.work.bounding, vertex))
        self._known = vertex

    def take(self, run: Run, nodes: OpenNodes, pseudocosts: FloatArray | None = None) -> None:
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
        table = self.main.work.gains
        if pseudocosts is not None:
            mean = table[MEAN].copy()  # one's own: means do not add up
            table[:] = pseudocosts
            table[MEAN] = mean
        self.pseudocosts_before = table.copy()
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


@lru_cache(maxsize=2)
def stamp(problem: StructureProblem) -> str:
    """Version of the engine with a digest of its code, and digest of the problem."""
    code = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        code.update(path.read_bytes())
    return f"marginbn {__version__} {code.hexdigest()[:8]}, problem {fingerprint(problem)[:16]}"


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


def get_ready(solver: BranchBoundSolver, problem: StructureProblem, memory: int | None) -> str:
    """Make the engine of a problem before its first part comes; returns its stamp."""
    solver.prepare()
    run = Run(problem, Limits(memory=memory))
    kind = problem, solver
    _give_back(kind, _borrow(kind) or PartSearch(run, solver))
    return stamp(problem)


def solve_part(solver: BranchBoundSolver, problem: StructureProblem, task: Task) -> Answer:
    """Work on a part for some seconds, or until nothing of it is left."""
    solver.prepare()
    limits = Limits(task.seconds, None, task.gap, task.memory)
    run = Run(problem, limits, seed=task.seed)
    run.start_clock()
    run.offer(task.selection)
    run.improve_bound(initial_bound(problem))
    left: OpenNodes | None = None
    nodes, added = 0, None
    try:
        search = _borrow((problem, solver)) or PartSearch(run, solver)
        given = parse(dict(task.arrays), 8 * search.main.pool.words.shape[1])
        search.take(run, given, task.pseudocosts)
        _search(run, search)
        left, nodes = search.left, search.team.nodes
        added = search.main.work.gains - search.pseudocosts_before
        _give_back((problem, solver), search)
    except Stopped:  # the time was too short to begin
        pass
    arrays = dict(task.arrays) if left is None else left.arrays
    assert run.selection is not None  # the one of the task, at the least
    return Answer(arrays, run.selection, run.objective, nodes, stamp(problem), added)


def _search(run: Run, search: PartSearch) -> None:
    """Portions of work until the time is over or nothing is left."""
    ended: Status | None = None
    with run.deadline.ringing(search.interrupt):
        while ended is None:
            improved = search.report()
            if search.is_closed or run.limit is not None:
                break
            search.improve(improved)
            ended = search.advance()
    search.report()
