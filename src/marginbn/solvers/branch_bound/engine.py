"""The compiled tree for the search loop: opening, batches, incumbents, local search.

The tree runs in batches inside one compiled call without the interpreter lock. Between batches the
loop looks at the clock, tells the listener, and gives the local search its share. Batches and
shares are counted in iterations, never in seconds, so a run without a time limit depends on nothing
but the problem and the seed. A timer raises a flag that the kernels look at, so a time limit also
ends a batch of long iterations.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager

import numpy as np
from numpy.typing import NDArray

from marginbn.data.encode import EncodedData, Variable
from marginbn.exceptions import InputError
from marginbn.problem.candidates import enumerate_candidates
from marginbn.problem.problem import StructureProblem, margin_problem
from marginbn.solvers.branch_bound import arrays as frank_wolfe
from marginbn.solvers.branch_bound import workers
from marginbn.solvers.branch_bound.arrays import Encoding, encode
from marginbn.solvers.branch_bound.kernels.bound import UNTOUCHED, bound_error
from marginbn.solvers.branch_bound.kernels.box import propagate
from marginbn.solvers.branch_bound.kernels.climb import new_climber, search_from
from marginbn.solvers.branch_bound.kernels.combination import load_margins
from marginbn.solvers.branch_bound.kernels.oracle import maximise
from marginbn.solvers.branch_bound.kernels.records import FloatArray, IntArray, new_box
from marginbn.solvers.branch_bound.kernels.store import (
    drop_family,
    move_nodes,
    new_family,
    push,
)
from marginbn.solvers.branch_bound.kernels.tree import BATCH_DONE, EXHAUSTED, NODE_LIMIT, STOPPED
from marginbn.solvers.branch_bound.needs import KEPT_VERTICES, Division, Shape, divide
from marginbn.solvers.branch_bound.rows import WIDE_BAND, WORTH, Reduction, thinned
from marginbn.solvers.branch_bound.saved_tree import gather, load, parse
from marginbn.solvers.branch_bound.schedule import Pace, settings_for
from marginbn.solvers.branch_bound.starts import simple_starts
from marginbn.solvers.branch_bound.workers import UNLIMITED, Team, Worker
from marginbn.solvers.checkpoint import Checkpoint, SearchState
from marginbn.solvers.compile import prepare
from marginbn.solvers.memory import spendable
from marginbn.solvers.result import Majorant, SolveResult, name_without_gamma
from marginbn.solvers.run import Callback, Deadline, Limits, Tracker
from marginbn.solvers.tree_search import Progress, SearchTree, report, saved_tree, search

NAME = "branch_bound"

KICKS = (2, 2, 5)
"""Largest kicks of one run of the local search after the other: mostly small ones."""


def drive(
    problem: StructureProblem,
    limits: Limits,
    start: NDArray[np.int64] | None,
    callback: Callback | None,
    seed: int,
    heuristics: bool,
    random_splits: bool,
    n_jobs: int = 1,
    checkpoint: Checkpoint | None = None,
    neighbour: Majorant | None = None,
) -> SolveResult:
    """Solve one problem. The clock starts when the kernels are compiled or loaded."""
    warm_up()
    tracker = Tracker(problem, Deadline(limits), callback, checkpoint)
    return _drive(tracker, start, seed, heuristics, random_splits, n_jobs, neighbour)


def warm_up() -> None:
    """Compile or load every kernel by solving a tiny problem; later calls return at once."""
    prepare(__package__, _solve_tiny, "the search engine, once; this takes up to a minute")


def _solve_tiny() -> None:
    codes = np.array([[0, 0, 0], [0, 1, 0], [1, 1, 0], [2, 0, 1]], dtype=np.int32)
    variables = (Variable("class", ("a", "b", "c")), Variable("x", ("0", "1")))
    data = EncodedData(codes, np.ones(4), (*variables, Variable("y", ("0", "1"))))
    problem = margin_problem(data, enumerate_candidates(3, 2))
    _drive(Tracker(problem, Deadline(Limits())), None, 0, True, False)
    encoding = encode(problem)
    giver, taker = (Worker(encoding, seed) for seed in range(2))
    move_nodes(giver.pool, taker.pool, 1, True)  # too small a tree for two workers
    nothing = gather([giver.pool])
    load(taker.pool, encoding.instance, giver.work.box, nothing, nothing.family)


def _drive(
    tracker: Tracker,
    start: NDArray[np.int64] | None,
    seed: int,
    heuristics: bool,
    random_splits: bool,
    n_jobs: int = 1,
    neighbour: Majorant | None = None,
) -> SolveResult:
    def plant() -> Search:
        division = divide_memory(tracker, n_jobs)
        encoding = encode(tracker.problem, division.dense)
        flags = heuristics, random_splits
        return Search(encoding, tracker, start, seed, *flags, n_jobs, division.store, neighbour)

    return search(tracker, start, NAME, plant)


def divide_memory(tracker: Tracker, n_jobs: int) -> Division:
    """How the memory of a solve is divided between coefficients and open nodes."""
    problem, limit = tracker.problem, tracker.deadline.limits.memory
    shape = Shape.of(problem.candidates, problem.n_rows)
    usual = Division(frank_wolfe.DENSE_BYTES, workers.POOL_BYTES)
    return divide(shape, n_jobs, limit, spendable(limit), usual)


class Search(SearchTree):
    """State of one solve on the Python side."""

    def __init__(
        self,
        encoding: Encoding,
        tracker: Tracker,
        start: NDArray[np.int64] | None,
        seed: int,
        heuristics: bool,
        random_splits: bool,
        n_jobs: int,
        store_bytes: int | None = None,
        neighbour: Majorant | None = None,
    ) -> None:
        inst, limits = encoding.instance, tracker.deadline.limits
        self.encoding = encoding
        self.tracker = tracker
        self.start = start
        self.neighbour = neighbour
        self.heuristics = heuristics
        self.settings = settings_for(encoding, limits, heuristics, random_splits)
        node_limit = UNLIMITED if limits.nodes is None else limits.nodes
        self.team = Team(encoding, self.settings, n_jobs, seed, node_limit, store_bytes)
        self.main = self.team.workers[0]
        self.root = new_box(inst.n_features, inst.first.size)
        self.climber = new_climber(inst, seed)
        self.pace = Pace(inst)
        self.reduction = Reduction(inst, encoding.structure_magnitude)
        self.walking = Reduction(inst, encoding.structure_magnitude, WIDE_BAND)
        self.next_look = 1
        self.leaf_value = -np.inf
        self.is_open = False  # whether all nodes are in the stores
        self.earlier_nodes = 0  # of sittings before this one
        self.ending: int | None = None  # why the last batch ended

    @property
    def nodes(self) -> int:
        """Nodes processed, in earlier sittings too."""
        return self.earlier_nodes + self.team.nodes

    @property
    def bound(self) -> float:
        """The largest of everything open, everything ever discarded and the incumbent."""
        best = max(float(worker.incumbent.value[0]) for worker in self.team.workers)
        return max(self.team.bound, best) + self.encoding.constant

    def interrupt(self) -> None:
        """Ask the kernels to stop."""
        self.team.stop[0] = 1

    def open(self) -> None:
        """Begin with the start that the caller gave."""
        self.begin(self.start)

    def begin(self, start: NDArray[np.int64] | None) -> None:
        """Root box or the tree of an earlier sitting, first bound, first local search."""
        self.tracker.majorant = self.neighbour
        vertex = self._close_in()
        self.tracker.offer(self.encoding.selection(vertex))
        if self._resume():
            self._announce_tracked()
        else:
            self._open_root(vertex)
        self.is_open = True
        report(self, self.tracker)
        self._extend_rows(vertex)
        if not self.heuristics:
            return
        self._announce_tracked()
        if self.encoding.instance.weights.size == 0:
            return  # without margins the first vertex is the best of all
        starts = [vertex, *self._simple_starts()]
        if start is not None:
            starts.append(self.encoding.vertex(start))
        for candidate in starts:
            self.climb(candidate, 1, 4)
            self._widen()
            self.climb(self.climber.vertex.copy(), self.pace.root_effort // len(starts), 4)
            self._widen()
        self._extend_rows(self.main.incumbent.vertex)

    def _simple_starts(self) -> list[IntArray]:
        work, stop = self.main.work, self.team.stop
        return simple_starts(self.tracker.problem, self.encoding, self.root, work.oracle, stop)

    def _resume(self) -> bool:
        """Take over the tree of an earlier sitting, if there is one that can be used."""
        saved = saved_tree(
            self.tracker,
            NAME,
            lambda arrays: parse(arrays, self.encoding.instance),
            lambda tree: tree.floor + self.encoding.constant,
        )
        if saved is None:
            return False
        tree, self.earlier_nodes = saved
        self.team.load(self.root, tree)
        return True

    def snapshot(self) -> SearchState:
        """The tree as it is now, after everything that was found has been reported."""
        with self.team.at_rest() as pools:
            report(self, self.tracker)
            return SearchState(NAME, self.nodes, gather(pools).arrays)

    def _close_in(self) -> IntArray:
        """Set up the root box; returns the vertex of the mean margin."""
        inst, work = self.encoding.instance, self.main.work
        self.root.allowed[:] = self.encoding.slots
        self.root.classes[:] = True
        rivals = np.diff(inst.starts)
        mean = np.repeat(inst.weights / np.maximum(rivals, 1), rivals)
        gradient = inst.linear + inst.columns @ mean
        if (
            not propagate(inst, self.root)
            or maximise(inst, self.root, gradient, UNLIMITED, work.oracle)[0] == -np.inf
        ):
            raise InputError(
                "the candidate parent sets allow no acyclic structure; "
                "relax the required or forbidden arcs"
            )
        return work.oracle.vertex.copy()

    def _open_root(self, vertex: IntArray) -> None:
        """Push the root with the trivial majorant, or with that of another gamma."""
        inst, work, pool = self.encoding.instance, self.main.work, self.main.pool
        b = work.bounding
        upper, _ = maximise(inst, self.root, inst.linear, self.settings.cap, work.oracle)
        b.best_g[:] = inst.linear
        error = bound_error(inst, b.state, UNTOUCHED)
        b.state.unused = b.state.total_weight
        b.state.constant = inst.gamma * b.state.total_weight + error
        b.state.bound = b.state.constant + upper
        b.state.smoothing = self.settings.smoothing_start * inst.gamma
        b.vertices[0], b.share[0], b.state.n_active = vertex, 1.0, 1
        if self.neighbour is not None:
            self._adopt(self.neighbour, error)
        family = new_family(pool, b)
        push(pool, self.root, float(b.state.bound), family, 0)
        drop_family(pool, family)

    def _adopt(self, known: Majorant, error: float) -> None:
        """Relaxed solution of another gamma, and its majorant if it is better."""
        work, existing = self.main.work, self.encoding.candidate_of >= 0
        b = work.bounding
        for k, selection in enumerate(known.selections):
            b.vertices[k] = self.encoding.vertex(selection)
        b.state.n_active = len(known.shares)
        b.share[: len(known.shares)] = known.shares
        gradient = np.zeros(b.best_g.size)
        gradient[existing] = known.gradient[self.encoding.candidate_of[existing]]
        inst = self.encoding.instance
        constant = inst.gamma * known.unused + known.constant + error
        upper, _ = maximise(inst, self.root, gradient, self.settings.cap, work.oracle)
        if constant + upper < b.state.bound:
            b.state.unused, b.state.constant = known.unused, constant
            b.state.bound = constant + upper
            b.best_g[:] = gradient

    def _keep_majorant(self) -> None:
        """What the root knows about other gammas; as soon as the root is done."""
        inst, b = self.encoding.instance, self.main.work.bounding
        existing = self.encoding.candidate_of >= 0
        gradient = np.zeros(self.tracker.problem.candidates.n_candidates)
        gradient[self.encoding.candidate_of[existing]] = b.best_g[existing]
        heaviest = np.argsort(-b.share[: b.state.n_active], kind="stable")[:KEPT_VERTICES]
        self.tracker.majorant = Majorant(
            name_without_gamma(self.tracker.problem),
            float(b.state.unused),
            float(b.state.constant - inst.gamma * b.state.unused),
            gradient,
            np.array([self.encoding.selection(b.vertices[k]) for k in heaviest]),
            b.share[heaviest] / b.share[heaviest].sum(),
        )

    def advance(self) -> Progress:
        """One batch."""
        is_root = self.nodes == 0
        self.ending = code = self.team.batch(self.main, self.pace.next_stop)
        if is_root and self.main.nodes == 1:
            self._keep_majorant()
        if code == EXHAUSTED and self.team.is_finished:
            return Progress.FINISHED
        if code in (EXHAUSTED, NODE_LIMIT) and self.team.nodes >= self.team.node_limit:
            return Progress.NODE_LIMIT  # also if all that is open is with another worker
        return Progress.CUT_SHORT if code == STOPPED else Progress.MORE

    def between(self, improved: bool) -> None:
        """Wait for the others if they have all the nodes, else the turn of the local search."""
        if self.ending in (EXHAUSTED, NODE_LIMIT):
            self.team.rest()
        elif self.ending is not None:
            self._heuristics(improved, self.ending == BATCH_DONE)

    def at_work(self) -> AbstractContextManager[None]:
        """Threads of all workers but the first."""
        return self.team.helpers(self.pace.batch)

    def _heuristics(self, improved: bool, batch_done: bool) -> None:
        """Polish a new incumbent; after a full batch give the local search its share."""
        if improved and self.heuristics:
            self.climb(self.main.incumbent.vertex.copy(), self.pace.polish_effort, 2)
        if batch_done:
            effort = self.pace.advance(self._open_gap())
            self._look_at_rows()
            if self.heuristics and effort > 0:
                turn = self.pace.round // self.pace.EVERY
                self.climb(self._restart(turn), effort, KICKS[turn % len(KICKS)])

    def _open_gap(self) -> float:
        """The part of the root's gap that is left; 0 for the tree of an earlier sitting."""
        root, best = float(self.main.pool.state.root_bound), float(self.main.incumbent.value[0])
        return (self.team.bound - best) / (root - best) if 0.0 < root - best < math.inf else 0.0

    def _margins(self, vertex: IntArray) -> FloatArray:
        """All margins of a structure; the relaxed solution is forgotten."""
        b = self.main.work.bounding
        b.vertices[0], b.share[0], b.state.n_active = vertex, 1.0, 1
        load_margins(self.encoding.instance, b)
        return b.t

    def _extend_rows(self, vertex: IntArray) -> None:
        """Keep the rows that matter at a structure."""
        self._use_rows(self._margins(vertex))

    def _widen(self) -> None:
        """Let the local search see the rows that matter where it has arrived; what it climbs on
        the rows of another place is worth little.
        """
        self.walking.extend(self._margins(self.climber.vertex))
        self.pace.fit(self.team.instance, self.walking.instance)

    def _use_rows(self, margins: FloatArray) -> None:
        """Bound boxes with the rows that matter at these margins too from now on."""
        self.reduction.extend(margins)
        self.walking.extend(margins)
        self.team.instance = self.reduction.instance
        self.team.coarse = thinned(self.team.instance)
        self.pace.fit(self.team.instance, self.walking.instance)

    def _look_at_rows(self) -> None:
        """Keep more rows if the newest relaxed solution needs them; less and less often."""
        if self.pace.round < self.next_look:
            return
        self.next_look = self.pace.round + min(self.pace.round, 64)
        b = self.main.work.bounding
        load_margins(self.encoding.instance, b)
        gap = self.team.bound - float(self.main.incumbent.value[0])
        cost = self.reduction.cost(b.t)
        if cost > WORTH * gap:
            self._use_rows(b.t)

    def _restart(self, turn: int) -> IntArray:
        """Mostly the incumbent, sometimes the heaviest vertex of the newest relaxation."""
        if turn % 3 == 2:
            return np.array(self.main.work.bounding.vertices[0])
        return self.main.incumbent.vertex.copy()

    def climb(self, vertex: IntArray, effort: int, strength: int) -> None:
        """Local search from a vertex."""
        search_from(
            self.walking.instance,
            self.encoding.instance,
            self.root,
            vertex,
            self.climber,
            self.main.incumbent,
            effort,
            strength,
            self._guides(),
            self.team.stop,
        )
        self.hand_over()

    def _guides(self) -> IntArray:
        """Structures of the newest relaxed solution."""
        b = self.main.work.bounding
        return b.vertices[: b.state.n_active].copy()

    def hand_over(self) -> bool:
        """Hand what workers found to the tracker, which scores it from the definition."""
        improved = False
        for value, vertex in self.team.found:
            improved = self.tracker.offer(self.encoding.selection(vertex)) or improved
            self.team.forget()
            self._announce(value, vertex)
        if improved:
            self.pace.success = self.pace.round
        return improved

    def _announce(self, value: float, vertex: IntArray) -> None:
        """Tell all workers the best structure: with heuristics the tracker's, and the value that
        the definition gives; without them the best leaf.
        """
        if self.heuristics:
            self._announce_tracked()
        elif value >= self.leaf_value:
            self.leaf_value = value
            self.team.announce(value, vertex)

    def _announce_tracked(self) -> None:
        if self.tracker.selection is not None:
            value = self.tracker.objective - self.encoding.constant
            self.team.announce(value, self.encoding.vertex(self.tracker.selection))
