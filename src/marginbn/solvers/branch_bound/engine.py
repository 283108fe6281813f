"""The compiled tree for the search loop: opening, batches, incumbents, local search.

The tree runs in batches inside one compiled call without the interpreter lock. Between batches the
loop looks at the clock, reports, and gives the local search its share. Batches and shares are
counted in iterations, never in seconds, so a run without a time limit depends on nothing but the
problem and the seed. A timer raises a flag that the kernels poll, so a time limit also ends a batch
of long iterations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TYPE_CHECKING
from weakref import ReferenceType, ref

import numpy as np

from marginbn.exceptions import ProblemTooLargeError
from marginbn.problem.array_types import FloatArray, IntArray
from marginbn.problem.problem import StructureProblem
from marginbn.solvers.branch_bound.arrays import encode
from marginbn.solvers.branch_bound.kernels import tree
from marginbn.solvers.branch_bound.kernels.bound import UNTOUCHED, Context, bound_error
from marginbn.solvers.branch_bound.kernels.children import Workspace
from marginbn.solvers.branch_bound.kernels.climb import Ground, new_climber, search_from
from marginbn.solvers.branch_bound.kernels.combination import Bounding
from marginbn.solvers.branch_bound.kernels.node_pool import Pool
from marginbn.solvers.branch_bound.kernels.records import Box, Instance, count_rows, new_box
from marginbn.solvers.branch_bound.row_groups import GroupedRows, rows_of, wants_groups
from marginbn.solvers.branch_bound.schedule import Schedule, settings_for, simple_starts
from marginbn.solvers.branch_bound.workers import UNLIMITED, BoxTeam, Worker, first_pool, gather
from marginbn.solvers.checkpoint import SearchState
from marginbn.solvers.compile import compile_seen, is_at_hand
from marginbn.solvers.counts import threads_for
from marginbn.solvers.interpreted import is_small
from marginbn.solvers.memory import BranchBoundShape, describe_bytes
from marginbn.solvers.result import Status
from marginbn.solvers.run import Limits, Run
from marginbn.solvers.tree_search import SearchTree, saved_tree

if TYPE_CHECKING:
    from marginbn.solvers.branch_bound import BranchBoundSolver

KICKS = (2, 2, 5)
"""Largest kicks of one run of the local search after the other: mostly small ones."""

ROOT_KICK, POLISH_KICK = 4, 2
"""Largest kicks before the first batch, and around a new incumbent."""

COEFFICIENT = 1e-8
"""Seconds that a coefficient or its place in a table counts as work."""

EARLY_ITERATIONS = 24
"""Of the root, before the first local search."""

ROOT_SHARE, ROOT_BATCHES = 0.25, 10
"""Part of the time in which the root is bounded with groups before the first local search, and
batches between two looks at whether they lose.
"""


NO_KICKS = 1
"""Effort that the first climb uses up."""


LARGEST = tree.perform
"""The kernel whose machine code takes longest to make."""


def _look(search: ReferenceType[BoxSearch]) -> None:
    """Look at the clock of whatever run a search is on."""
    own = search()
    if own is not None:
        own.run.look()


def _time_to_search(limits: Limits) -> float:
    """Seconds of work where it is limited, so that no clock decides; else by the clock."""
    seconds = limits.time if limits.work is None else limits.work
    return math.inf if seconds is None else seconds


def is_interpreted(
    problem: StructureProblem, n_jobs: int = 1, largest: Callable[..., object] = LARGEST
) -> bool:
    """Whether kernels run as plain Python: machine code of the ``largest`` is not at hand, and the
    problem is so small, with one worker, that making it would take longer.
    """
    return n_jobs == 1 and is_small(problem) and not is_at_hand(largest)


class BoxSearch(SearchTree):
    """State of one solve on the Python side."""

    def __init__(self, run: Run, solver: BranchBoundSolver, seconds: float | None = None) -> None:
        shape = BranchBoundShape.of(run.problem)
        if seconds is None:
            seconds = math.inf if solver.rows == "all" else _time_to_search(run.limits)
        division = shape.divide(run.memory, run.n_jobs, seconds)
        is_grouped = wants_groups(solver.rows, run.problem, division)
        threads = threads_for(run.n_jobs) if is_grouped else 0
        if not is_grouped and shape.coefficients > run.memory.spendable:
            raise ProblemTooLargeError(
                f"rows={solver.rows!r} needs {describe_bytes(shape.coefficients)} for coefficients "
                f"alone, and there are {describe_bytes(run.memory.spendable)}; use rows='groups', "
                "fewer features or fewer rows"
            )
        encoding = encode(run.problem, threads, run.look)
        node_limit = UNLIMITED if run.limits.nodes is None else run.limits.nodes
        super().__init__(run)
        self.team = BoxTeam(encoding, run.n_jobs, node_limit, division.tree)
        self.stop = self.team.stop
        self.name = solver.name
        self.encoding = encoding
        self.heuristics = solver.heuristics
        self.settings = settings_for(run.limits, solver.heuristics)
        self.main = self.team.workers[0]
        self.root = new_box(encoding.n_features, encoding.instance.first.size)
        me = ref(self)  # a cycle would hold all memory until somebody collects it
        self.rows = rows_of(encoding, division.rows, lambda: _look(me), run.n_jobs > 1)
        self.climber = new_climber(encoding.instance, self.rows.n_climbing, run.seed)
        self.schedule = Schedule(self.rows)
        run.work += COEFFICIENT * encoding.candidate_of.size * count_rows(encoding.instance)
        self.leaf_value = -np.inf
        self.earlier_nodes = 0  # of calls before this one

    @property
    def nodes(self) -> int:
        """Nodes processed, in earlier calls too."""
        return self.earlier_nodes + self.team.nodes

    @property
    def bound(self) -> float:
        """The largest of everything open, everything ever discarded and the incumbent."""
        best = max(float(worker.incumbent.value[0]) for worker in self.team.workers)
        return max(self.team.bound, best) + self.encoding.constant

    # ------------------------------------------------------------------ the root

    def open(self) -> None:
        """Root box or the tree of an earlier call, first bound, first local search."""
        self._set_root()
        vertex = self._mean_vertex()
        self.run.offer(self.encoding.selection(vertex))
        if self._resume():
            self._announce_incumbent()
        else:
            self._open_root(vertex)
        self.set_open()
        self.report()
        b = self.main.work.bounding
        self.rows.extend(self._margins_at(b, vertex))
        if self.heuristics:
            self._announce_incumbent()  # how much groups may lose depends on what is known
        if isinstance(self.rows, GroupedRows):
            self._refine_root(self.rows)
        else:
            self._bound_early(vertex)
        if self.heuristics and not self.run.is_closed:
            self._announce_incumbent()
            if self.encoding.instance.weights.size:  # else the first vertex is the best of all
                self._climb_first(vertex)
                margins = self._margins_at(b, self.main.incumbent.vertex)
                self.rows.extend(margins, self._gap)
        self.team.is_sharing = True

    def _refine_root(self, rows: GroupedRows) -> None:
        """Bound the root and split groups in turn until they lose little; every round is a better
        bound. A tree of an earlier call has a root no more: its nodes refine the groups.
        """
        main = self.main
        if self.earlier_nodes or main.pool.state.open != 1:
            return
        while self.stop[0] == 0:
            most = int(main.pool.state.iterations) + ROOT_BATCHES * self.schedule.batch
            with self._counting(main):
                main.code = tree.perform(tree.SEARCH, *self._batch_of(main), 1, most, 0)
            if main.pool.state.open:
                self._push_root(first_pool(self.encoding))  # again, instead of its parts
            self.report()
            run = self.run
            used = run.deadline.elapsed() if run.limits.work is None else run.work
            if not main.pool.state.open or used > ROOT_SHARE * _time_to_search(run.limits):
                return
            if not rows.refine(self._margins(main.work.bounding), self._gap):
                return

    def _bound_early(self, vertex: IntArray) -> None:
        """A first bound of the root before the local search, which may take longer than there is
        time. Afterwards the root begins anew: vertices and a split that were found without a good
        structure cost twice the nodes later (vehicle 99 143 instead of 58 940).
        """
        main = self.main
        if not self.heuristics or not self.encoding.instance.weights.size or self.earlier_nodes:
            return
        self._announce_incumbent()
        self.leave_python_if_slow(1, partial(compile_seen, __package__))
        with self._counting(main) as node_limit:
            given = self._batch_of(main)
            main.code = tree.perform(
                tree.SEARCH, *given, node_limit, EARLY_ITERATIONS, main.reserve
            )
        self.report()
        if main.pool.state.open:
            main.pool = first_pool(self.encoding)
            main.work.gains[:] = 0.0
            self._open_root(vertex)
            self.set_open()
        main.code = tree.EXHAUSTED  # not a batch that the local search has its share of

    def _push_root(self, pool: Pool) -> None:
        """The root with the majorant and the vertices at hand, in an empty store."""
        self.main.pool = pool
        self._take_step(tree.PUSH, self.encoding.instance, self.root, self.main.work.bounding)

    def _climb_first(self, vertex: IntArray) -> None:
        """Local search from the first vertex, simple structures and the caller's start."""
        run = self.run
        starts = simple_starts(run.problem, self.encoding, self.root, self._best, self.stop)
        starts.insert(0, vertex)
        if run.start is not None:
            starts.append(self.encoding.vertex(run.start))
        for candidate in starts:
            self._climb(candidate, effort=NO_KICKS, kick=ROOT_KICK)
            self._see_around(self.climber.vertex)
            effort = self.schedule.root_effort // len(starts)
            self._climb(self.climber.vertex.copy(), effort=effort, kick=ROOT_KICK)
            self._see_around(self.climber.vertex)

    def _see_around(self, vertex: IntArray) -> None:
        """Let the local search see the rows that matter at a vertex."""
        self.rows.extend_climbing(self._margins_at(self.main.work.trial, vertex), self._gap)

    def _take_step(self, task: int, inst: Instance, box: Box, b: Bounding) -> int:
        """A step between batches; what it returns."""
        _, context, pool, work = self._batch_of(self.main)
        return tree.perform(task, inst, context, pool, work._replace(box=box, bounding=b), 0, 0, 0)

    def _best(self, box: Box, g: FloatArray) -> tuple[float, IntArray]:
        """The largest g . eta of a box, -inf if it is empty, and its vertex."""
        b = self.main.work.trial
        b.best_g[:] = g
        self._take_step(tree.MAXIMISE, self.encoding.instance, box, b)
        return float(b.state.bound), self.main.work.oracle.vertex.copy()

    def _margins_at(self, b: Bounding, vertex: IntArray) -> FloatArray:
        """All margins of a structure; the relaxed solution is forgotten."""
        b.vertices[0], b.share[0], b.state.n_active = vertex, 1.0, 1
        return self._margins(b)

    def _margins(self, b: Bounding) -> FloatArray:
        """All margins of a relaxed solution."""
        self._take_step(tree.LOAD_MARGINS, self.rows.full, self.root, b)
        return b.t

    def _resume(self) -> bool:
        """Take over the tree of an earlier call, if there is one that can be used."""
        width = 8 * self.main.pool.words.shape[1]
        saved = saved_tree(self.run, self.name, width, self.encoding.constant)
        if saved is None:
            return False
        nodes, self.earlier_nodes = saved
        self.team.load(self.encoding.instance, self.root, nodes)
        return True

    def snapshot(self) -> SearchState:
        """The tree as it is now, after everything that was found has been reported."""
        with self.team.at_rest() as pools:
            self.report()
            return SearchState(self.name, self.nodes, gather(pools).arrays)

    def _set_root(self) -> None:
        """Everything that the candidates allow."""
        self.root.allowed[:] = self.encoding.slots
        self.root.classes[:] = True
        inst, b = self.encoding.instance, self.main.work.bounding
        if not self._take_step(tree.PROPAGATE, inst, self.root, b):
            raise AssertionError("the first selection proves that the root is not empty")

    def _mean_vertex(self) -> IntArray:
        """The structure of the largest mean margin."""
        inst = self.encoding.instance
        rivals = np.diff(inst.starts)
        if self.encoding.coded is None:
            mean = np.repeat(inst.weights / np.maximum(rivals, 1), rivals)
            gradient = inst.linear + inst.columns @ mean
        else:
            gradient = inst.linear + self.encoding.coded.class_sums.sum(axis=0) / rivals[0]
        return self._best(self.root, gradient)[1]

    def _open_root(self, vertex: IntArray) -> None:
        """Push the root with the trivial majorant."""
        inst, b = self.encoding.instance, self.main.work.bounding
        upper, _ = self._best(self.root, inst.linear)
        b.best_g[:] = inst.linear
        error = bound_error(inst, b.state, UNTOUCHED)
        b.state.unused = b.state.total_weight
        b.state.constant = inst.gamma * b.state.total_weight + error
        b.state.bound = b.state.constant + upper
        b.state.smoothing = self.settings.smoothing_start * inst.gamma
        b.vertices[0], b.share[0], b.state.n_active = vertex, 1.0, 1
        self._push_root(self.main.pool)

    # ------------------------------------------------------------------ the search

    def helpers(self) -> AbstractContextManager[None]:
        """Threads of all workers but the first, for the time of the block."""
        return self.team.helpers(self.advance)

    def advance(self, worker: int = 0) -> Status | None:
        """One batch of a worker."""
        own = self.team.workers[worker]
        self.leave_python_if_slow(int(own.pool.state.open), partial(compile_seen, __package__))
        stop = self.schedule.next_stop
        if own is not self.main:
            stop = int(own.pool.state.iterations) + self.schedule.batch
        with self._counting(own) as node_limit:
            given = self._batch_of(own)
            own.code = tree.perform(tree.SEARCH, *given, node_limit, stop, own.reserve)
        return self._why_ended(own.code)

    def _batch_of(self, own: Worker) -> tuple[Instance, Context, Pool, Workspace]:
        """What a batch of a worker works with."""
        bounding, full, coarse = self.rows.in_use
        context = Context(full, coarse, self.settings, own.incumbent, self.stop)
        return bounding, context, own.pool, own.work

    @contextmanager
    def _counting(self, own: Worker) -> Iterator[int]:
        """Time of a batch of a worker; yields the number of nodes in total up to which it may go.
        Iterations of the first worker are counted as work: what they take on an idle core, very
        roughly.
        """
        before = int(own.pool.state.iterations)
        with self.team.batch(own) as node_limit:
            yield node_limit
        if own is self.main:
            iterations = int(own.pool.state.iterations) - before
            self.run.work += 1e-9 * iterations * self.schedule.iteration
            self.run.root_bound = float(own.pool.state.root_bound) + self.encoding.constant

    def _why_ended(self, code: int) -> Status | None:
        """A batch's code as a status; None if there is more to do. A worker without nodes waits for
        the others.
        """
        if code == tree.STOPPED:
            return Status.TIME_LIMIT
        if code not in (tree.EXHAUSTED, tree.NODE_LIMIT):
            return None
        if code == tree.EXHAUSTED and self.team.is_finished:
            return Status.OPTIMAL
        if self.team.nodes >= self.team.node_limit:
            return Status.NODE_LIMIT  # also if all that is open is with another worker
        self.team.rest()
        return None

    def improve(self, improved: bool) -> None:
        """Polish a new incumbent; after a full batch give the local search its share."""
        if self.main.code in (tree.EXHAUSTED, tree.NODE_LIMIT):
            return  # before the first batch, or all nodes are with others
        if improved and self.heuristics:
            vertex, effort = self.main.incumbent.vertex.copy(), self.schedule.polish_effort
            self._see_around(vertex)
            self._climb(vertex, effort=effort, kick=POLISH_KICK)
        if self.main.code != tree.BATCH_DONE:
            return
        root, best = float(self.main.pool.state.root_bound), float(self.main.incumbent.value[0])
        has_root = 0.0 < root - best < math.inf  # not the tree of an earlier call
        effort = self.schedule.advance(self._gap / (root - best) if has_root else 0.0)
        turn = self.schedule.round // self.schedule.EVERY
        newest = partial(self._margins, self.main.work.bounding)
        self.rows.check(newest, self.schedule.round, self._gap)
        if self.heuristics and effort > 0:
            vertices = self.main.work.bounding.vertices  # every third time the heaviest vertex
            start = vertices[0] if turn % 3 == 2 else self.main.incumbent.vertex
            self._climb(start.copy(), effort=effort, kick=KICKS[turn % len(KICKS)])

    @property
    def _gap(self) -> float:
        """Between what is known and the bound; infinite before there is a structure."""
        return self.team.bound - float(self.main.incumbent.value[0])

    def _climb(self, vertex: IntArray, *, effort: int, kick: int) -> None:
        """Local search from a vertex, guided by the newest relaxed solution."""
        b, main = self.main.work.bounding, self.main
        guides = b.vertices[: b.state.n_active].copy()
        rows = self.rows.climbing, self.rows.full
        ground = Ground(*rows, self.root, main.incumbent, guides, self.stop)
        search_from(ground, vertex, self.climber, effort, kick)
        self.run.work += 1e-9 * int(self.climber.state.effort) * self.schedule.evaluation
        self.hand_over()

    # ------------------------------------------------------------------ incumbents

    def hand_over(self) -> bool:
        """Offer what workers found; success keeps the local search going. All workers prune with
        the best structure: with heuristics the run's, and the value that the definition gives;
        without them the best leaf.
        """
        self.team.raise_failure()
        improved = False
        for value, vertex in self.team.found:
            improved = self.run.offer(self.encoding.selection(vertex)) or improved
            self.team.forget()
            if self.heuristics:
                self._announce_incumbent()
            elif value >= self.leaf_value:
                self.leaf_value = value
                self.team.announce(value, vertex)
        if improved:
            self.schedule.success = self.schedule.round
        return improved

    def _announce_incumbent(self) -> None:
        if self.run.selection is not None:
            value = self.run.objective - self.encoding.constant
            self.team.announce(value, self.encoding.vertex(self.run.selection))
