"""Work on a part of a tree, turn by turn: open nodes that a coordinator has handed out.

A part stays with its worker between turns, with everything that its engine has found: vertices,
rows that matter, pseudo-costs. An answer holds the best structure, the largest bound of what stays,
and the nodes that the coordinator has asked for: a surplus for other workers, or now and then a
copy of all. A node found again from its box alone costs its first iterations once more, so nodes
that stay are worth more than nodes that travel.

The pseudo-costs that a turn adds go back with the answer, and the next turn begins with those of
all workers: vehicle SM with two of them needs x0.88 and x0.95 of the nodes to a bound (two seeds).
"""

from __future__ import annotations

import hashlib
import math
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from marginbn import __version__
from marginbn.problem.array_types import FloatArray, IntArray
from marginbn.problem.problem import StructureProblem
from marginbn.solvers.branch_bound.engine import BoxSearch
from marginbn.solvers.branch_bound.kernels.node_pool import (
    move_nodes,
    new_pool,
    top_bound,
    with_room,
)
from marginbn.solvers.branch_bound.workers import first_pool, gather, load
from marginbn.solvers.checkpoint import Arrays, OpenNodes, parse
from marginbn.solvers.memory import KEPT_VERTICES
from marginbn.solvers.result import Status, fingerprint, relative_gap
from marginbn.solvers.run import Limits, Run, Stopped
from marginbn.solvers.tree_search import initial_bound

if TYPE_CHECKING:
    from marginbn.solvers.branch_bound import BranchBoundSolver


MEAN = -5
"""Row of the pseudo-costs with the running mean."""


@dataclass(frozen=True, eq=False)
class Task:
    """A turn: new nodes, the best structure known, and how long."""

    arrays: Mapping[str, NDArray[np.generic]]
    selection: IntArray
    seconds: float
    gap: float
    seed: int = 0
    memory: int | None = None
    pseudocosts: FloatArray | None = None  # of all workers
    slot: str = ""  # names the part: the worker has one part for every slot
    goes_on: bool = False  # with what the worker has in the slot, besides the new nodes
    surplus: int = 0  # nodes to give back, every second one of the best
    is_copied: bool = False  # whether all nodes are wanted; they stay all the same


@dataclass(frozen=True, eq=False)
class Answer:
    """What a turn has found, and which engine worked on which problem.

    ``arrays`` are the nodes that were asked for, or all of them where nothing stays; ``count`` and
    ``bound`` are about the nodes that stay.
    """

    arrays: Arrays
    selection: IntArray
    objective: float
    nodes: int
    stamp: str = ""
    pseudocosts: FloatArray | None = None
    count: int = 0
    bound: float = -math.inf


class PartLostError(Exception):
    """A worker has nothing in the slot that a turn goes on with."""


class PartSearch(BoxSearch):
    """A search whose nodes come from outside, one part after the other."""

    def __init__(self, run: Run, solver: BranchBoundSolver) -> None:
        super().__init__(run, solver, math.inf)  # it is made once, for many parts
        self._set_root()
        vertex = self._mean_vertex()
        self.rows.extend(self._margins_at(self.main.work.bounding, vertex))
        self._known = vertex

    def take(
        self,
        run: Run,
        nodes: OpenNodes,
        pseudocosts: FloatArray | None = None,
        goes_on: bool = False,
    ) -> None:
        """Begin a turn with more nodes; what is left of an earlier part is forgotten, unless the
        turn ``goes_on`` with it.
        """
        self.run, self.is_open = run, False
        self.stop[0] = 0
        main = self.main
        main.reserve = 0
        floor = float(main.pool.state.floor) if goes_on else -math.inf
        if not goes_on:
            main.pool = first_pool(self.encoding)
            self.schedule.next_stop = self.schedule.batch
        if len(nodes.bound) or not goes_on:
            order = np.argsort(-nodes.bound, kind="stable")
            main.pool = load(main.pool, self.encoding.instance, self.root, nodes, order)
            main.pool.state.floor = max(floor, nodes.floor)
        self.nodes_before = self.team.nodes
        main.incumbent.found[0] = main.reported
        self.leaf_value = -np.inf
        table = main.work.gains
        if pseudocosts is not None:
            mean = table[MEAN].copy()  # one's own: means do not add up
            table[:] = pseudocosts
            table[MEAN] = mean
        self.pseudocosts_before = table.copy()
        self.set_open()
        self._announce_incumbent()
        self._see_incumbent()

    def _see_incumbent(self) -> None:
        """Use the rows that matter at the best structure, too: with those of another place bounds
        are weak, and the tree becomes twice as large.
        """
        vertex = self.main.incumbent.vertex.copy()
        if not np.array_equal(vertex, self._known):
            self.rows.extend(self._margins_at(self.main.work.bounding, vertex))
            self._known = vertex

    def give(self, surplus: int, is_copied: bool) -> OpenNodes:
        """The nodes that are asked for; what is within the gap is none any more."""
        main = self.main
        if self.is_closed:
            floor = max(float(main.pool.state.floor), top_bound(main.pool))
            main.pool = first_pool(self.encoding)
            main.pool.state.floor = floor
        if is_copied:
            return gather([main.pool])
        count = min(surplus, int(main.pool.state.open) // 2)
        given = with_room(new_pool(self.encoding.instance, 0, 0, KEPT_VERTICES), count)
        if count:
            move_nodes(main.pool, given, count, True)
        given.state.floor, given.state.root_bound = (
            main.pool.state.floor,
            main.pool.state.root_bound,
        )
        return gather([given])

    def report(self) -> bool:
        """Structures alone: the bound of a part is none of the whole problem, in all of which the
        local search looks for better ones.
        """
        self.run.nodes = self.nodes
        return self.hand_over()

    @property
    def is_closed(self) -> bool:
        """Whether nothing in the part is better than the best structure known, but for the gap."""
        gap = relative_gap(self.run.objective, self.bound, self.run.problem.scale)
        return gap <= self.run.limits.gap


@cache
def _code_digest() -> str:
    """Of the whole package, as bounds rest on more than the engine; files may change later."""
    code = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        code.update(path.read_bytes())
    return code.hexdigest()[:8]


@lru_cache(maxsize=2)
def stamp(problem: StructureProblem) -> str:
    """Version of the engine with a digest of its code, and digest of the problem."""
    return f"marginbn {__version__} {_code_digest()}, problem {fingerprint(problem)[:16]}"


_KEPT: dict[str, tuple[str, BranchBoundSolver, PartSearch]] = {}
"""Engines by slot, with the stamp of their problem; made in advance under an empty name. The first
word of a slot names the search.
"""

_LOCK = threading.Lock()


def _borrow(slot: str, kind: str, solver: BranchBoundSolver) -> PartSearch | None:
    """The engine of a slot, or one made in advance; those of other searches are given up."""
    searches = ("", slot.partition(" ")[0])
    with _LOCK:
        for name, (known, _, _) in list(_KEPT.items()):
            if known != kind or name.partition(" ")[0] not in searches:
                del _KEPT[name]
        kept = _KEPT.pop(slot, None) or _KEPT.pop("", None)
    return kept[2] if kept is not None and kept[1] == solver else None


def get_ready(solver: BranchBoundSolver, problem: StructureProblem, memory: int | None) -> str:
    """Make the engine of a problem before its first part comes; returns its stamp."""
    solver.prepare()
    kind = stamp(problem)
    made = _borrow("", kind, solver) or PartSearch(Run(problem, Limits(memory=memory)), solver)
    with _LOCK:
        _KEPT[""] = kind, solver, made
    return kind


def solve_part(solver: BranchBoundSolver, problem: StructureProblem, task: Task) -> Answer:
    """Work on a part for some seconds, or until nothing of it is left."""
    solver.prepare()
    kind = stamp(problem)
    run = Run(problem, Limits(task.seconds, None, task.gap, task.memory), seed=task.seed)
    run.start_clock()
    run.offer(task.selection)
    run.improve_bound(initial_bound(problem))
    if task.goes_on and task.slot not in _KEPT:
        raise PartLostError
    try:
        search = _borrow(task.slot, kind, solver) or PartSearch(run, solver)
    except Stopped:  # the time was too short to begin
        return Answer(dict(task.arrays), task.selection, run.objective, 0, kind)
    given = parse(dict(task.arrays), 8 * search.main.pool.words.shape[1])
    with suppress(Stopped):
        search.take(run, given, task.pseudocosts, task.goes_on)
        ended: Status | None = None
        with run.deadline.calling(search.interrupt):
            while ended is None:
                improved = search.report()
                if search.is_closed or run.limit is not None:
                    break
                search.improve(improved)
                ended = search.advance()
        search.report()
    nodes = search.team.nodes - search.nodes_before
    arrays = search.give(task.surplus, task.is_copied).arrays
    pool = search.main.pool
    added = search.main.work.gains - search.pseudocosts_before
    with _LOCK:
        _KEPT[task.slot] = kind, solver, search
    assert run.selection is not None  # the one of the task, at the least
    found = run.selection, run.objective, nodes, kind, added
    return Answer(arrays, *found, int(pool.state.open), top_bound(pool))
