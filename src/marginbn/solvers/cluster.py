"""One search over many processes, on Dask: a coordinator that hands out parts of a tree.

*Ramp-up.* The coordinator searches alone until there are some nodes for every worker, which makes
its arrays meanwhile. Then workers get parts, the best bounds first (``subtree.py``), for a second
or some; what is left of a part comes back, joins what waits, and the worker gets the best again. A
part is a value: nodes, incumbent, seconds. So a worker that is lost loses nothing but time: Dask
gives its part to another, and should it give up, the coordinator does.

*Bound.* The largest of all that waits, of all parts that are out *as they were given*, of all that
was ever discarded, and of the incumbent: an upper bound at every moment.

*Incumbents* go round at once, by a variable that every worker looks at and writes to; what a part
has found comes back with it in any case.

*Checkpoint.* Everything that waits or is out, as one tree in the ordinary file: a search goes on
from it on the same cluster, on another, or on none.

Ideas: UG of Shinano et al. (ramp-up, a supervisor that does not search, best nodes first).
"""

from __future__ import annotations

import heapq
import itertools
import math
import os
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from marginbn.exceptions import InputError, MissingDependencyError, OptimalityWarning
from marginbn.interrupts import REQUESTS
from marginbn.problem.problem import StructureProblem
from marginbn.solvers.branch_bound import BranchBoundSolver
from marginbn.solvers.branch_bound.saved_tree import OpenNodes, join
from marginbn.solvers.checkpoint import SearchState
from marginbn.solvers.result import SolveResult, Status
from marginbn.solvers.run import Run, Solver, Stopped
from marginbn.solvers.subtree import Answer, Learned, Task, get_ready, solve_part
from marginbn.solvers.tree_search import SEED_STEP, begin

T = TypeVar("T")

LOCAL = "local"
"""In place of an address: processes on this machine."""

RAMP_UP = 24
"""Nodes that the coordinator works on for every worker before it hands out."""

FIRST_TURN, LONGEST_TURN, GROWTH = 0.5, 4.0, 1.3
"""Seconds for which a worker keeps a part: few at first, so that all get something to do soon."""

PORTION = 16_000_000
"""Bytes of a part at the most, if they are more than one node."""

LOOK = 0.2
"""Seconds between two looks at the clock, at what was found and at the checkpoint."""

NEWS = 0.3
"""Seconds between two looks of a worker at what others have found."""

PATIENCE = 10.0
"""Seconds in which a scheduler has to answer."""

LOADING = 120.0
"""Seconds in which workers have to load or compile the engine, before the clock starts."""

MOST_LOSSES = 20
"""Parts that may get lost before the search is given up."""


def _distributed() -> Any:
    try:
        return import_module("distributed")
    except ImportError:
        raise MissingDependencyError(
            'dask needs distributed: pip install "marginbn[dask]"'
        ) from None


@contextmanager
def connected(dask: Any, n_jobs: int = 1) -> Iterator[Any]:
    """A client of the cluster that is named: a client, an address, or ``"local"`` for processes on
    this machine, as many as ``n_jobs`` or cores.
    """
    distributed = _distributed()
    if isinstance(dask, distributed.Client):
        yield dask
        return
    if not isinstance(dask, str):
        raise InputError(
            f"dask must be an address, 'local', a distributed.Client or None, got {dask!r}"
        )
    if dask == LOCAL:
        count = n_jobs if n_jobs > 1 else os.cpu_count() or 1
        with (
            distributed.LocalCluster(
                n_workers=count, threads_per_worker=1, dashboard_address="127.0.0.1:0"
            ) as cluster,
            distributed.Client(cluster, set_as_default=False) as client,
        ):
            yield client
        return
    try:
        client = distributed.Client(dask, set_as_default=False, timeout=PATIENCE)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(f"dask: no scheduler answers at {dask!r} ({error})") from None
    with client:
        yield client


def map_on_cluster(
    client: Any, work: Callable[..., T], shared: Any, calls: Iterable[tuple[Any, ...]]
) -> Iterator[T]:
    """``work(shared, *call)`` of every call, in any order; what they share goes out once. A worker
    that is lost costs time: Dask repeats its calls elsewhere.
    """
    distributed = _distributed()
    here = client.scatter(shared, broadcast=True, hash=False)
    futures = [client.submit(work, here, *call, pure=False) for call in calls]
    try:
        for future in distributed.as_completed(futures, loop=client.loop):
            yield future.result()
    finally:
        for future in futures:
            future.cancel()


def count_workers(client: Any) -> int:
    """Calls that a cluster can work on at a time: one per thread."""
    return max(1, sum(int(count) for count in client.ncores().values()))


def work_on(solver: BranchBoundSolver, problem: StructureProblem, task: Task, news: str) -> Answer:
    """What a worker does with a part; it hears of incumbents by the variable of this name."""
    distributed = _distributed()
    client = distributed.get_worker()._get_client()
    board = Board(distributed.Variable(news, client=client))
    with board.listening():
        return solve_part(solver, problem, task, board.look, board.write)


class Board:
    """Where the best selection stands that anybody knows."""

    def __init__(self, variable: Any) -> None:
        self._variable = variable
        self._heard: NDArray[np.int64] | None = None

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Ask for news now and then while the block runs, in a thread of its own: nobody waits for
        the network.
        """
        is_over = threading.Event()

        def listen() -> None:
            while not is_over.wait(NEWS):
                with suppress(Exception):  # without news a search goes on
                    written = self._variable.get(timeout=1.0)
                    if written:
                        self._heard = np.array(written, dtype=np.int64)

        threading.Thread(target=listen, name="marginbn news", daemon=True).start()
        try:
            yield
        finally:
            is_over.set()

    def look(self) -> NDArray[np.int64] | None:
        """The selection there; None if there is no news."""
        heard, self._heard = self._heard, None
        return heard

    def write(self, selection: NDArray[np.int64]) -> None:
        """Tell everybody."""
        with suppress(Exception):
            self._variable.set([int(k) for k in selection], timeout=1.0)


@dataclass
class Waiting:
    """Nodes that nobody works on, in chunks by their best bound."""

    floor: float = -math.inf
    _chunks: list[tuple[float, int, OpenNodes]] = field(default_factory=list)
    _order: Iterator[int] = field(default_factory=itertools.count)

    def put(self, nodes: OpenNodes) -> None:
        """Some more."""
        self.floor = max(self.floor, nodes.floor)
        if len(nodes.bound):
            heapq.heappush(self._chunks, (-float(nodes.bound.max()), next(self._order), nodes))

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(len(nodes.bound) for _, _, nodes in self._chunks)

    @property
    def bound(self) -> float:
        """The largest of all, and of what was ever discarded."""
        return max(self.floor, -self._chunks[0][0] if self._chunks else -math.inf)

    @property
    def nodes(self) -> list[OpenNodes]:
        """All chunks."""
        return [nodes for _, _, nodes in self._chunks]

    def take(self, size: int) -> OpenNodes | None:
        """So many nodes of the best chunks, or as many as a part may have: every second one of the
        best, so that those who come next get equally good ones.
        """
        if not self._chunks:
            return None
        taken = [heapq.heappop(self._chunks)[2]]
        while self._chunks and sum(len(nodes.bound) for nodes in taken) < 2 * size:
            taken.append(heapq.heappop(self._chunks)[2])
        nodes = join(taken)
        size = max(1, min(size, int(PORTION / nodes.bytes_per_node)))
        order = np.argsort(-nodes.bound, kind="stable")
        chosen = np.sort(order[: 2 * size : 2]) if len(order) > size else order
        rest = np.setdiff1d(order, chosen)
        if len(rest):
            self.put(nodes.some(rest))
        return nodes.some(chosen)


class Coordinator:
    """One search: what waits, what is out, and what is known."""

    def __init__(self, run: Run, solver: BranchBoundSolver, client: Any) -> None:
        self.run, self.solver, self.client = run, solver, client
        self.waiting = Waiting()
        self.out: dict[Any, OpenNodes] = {}
        self.losses = 0
        self._turn = FIRST_TURN
        self._seeds = itertools.count(1)
        self._news = f"marginbn-{uuid.uuid4().hex}"
        self._told = -math.inf
        self._problem: Any = None
        self._readiness: list[Any] = []
        self._board: Board | None = None
        self._learned = Learned.nothing()

    # ------------------------------------------------------------------ ramp-up

    def ramp_up(self) -> bool:
        """Search alone until there are nodes for everybody; returns whether anything is left."""
        self._let_get_ready()
        run = self.run
        if run.saved is None or not run.saved.search.arrays:
            run.look()  # connecting may have taken all the time
            limits = replace(run.limits, nodes=RAMP_UP * self.n_workers, time=run.remaining())
            if limits.time == math.inf:
                limits = replace(limits, time=None)
            alone = replace(run, limits=limits, checkpoint=None)
            begin(alone)
            alone.stopped = self.solver.run(alone)
            state = alone.snapshot()
            assert alone.selection is not None
            run.offer(alone.selection)
            run.nodes = alone.nodes
            run.stop_requested = alone.stop_requested
            run.recall_bound(alone.bound)
        else:
            state = run.saved.search
            run.nodes = state.nodes
        if not state.arrays:
            return not run.is_closed
        self.waiting.put(OpenNodes(**state.arrays))
        return not run.is_closed and self.waiting.count > 0

    def _let_get_ready(self) -> None:
        """Every worker makes its arrays before there is anything to search; nobody waits for it."""
        problem = self._scattered()
        if problem is None:
            return
        limit = self.run.limits.memory
        self._readiness = [
            self.client.submit(
                get_ready, self.solver, problem, limit, workers=[address], pure=False
            )
            for address in self.client.ncores()
        ]

    @property
    def n_workers(self) -> int:
        """Parts that can be worked on at a time: one per thread."""
        return count_workers(self.client)

    # ------------------------------------------------------------------ the search

    def search(self) -> Status:
        """Hand out parts until nothing is left or a limit is reached."""
        run = self.run
        run.snapshot = self.snapshot
        variable = _distributed().Variable(self._news, client=self.client)
        self._board = Board(variable)
        self._board.write(np.zeros(0, dtype=np.int64))
        try:
            while True:
                self._tell()
                run.improve_bound(self.bound)
                if run.is_closed or not (self.out or self.waiting.count):
                    return Status.OPTIMAL
                limit = run.limit
                if limit is not None:
                    return limit
                if self._nodes_are_done:
                    return Status.NODE_LIMIT
                run.save_if_due()
                self._hand_out()
                self._collect()
        finally:
            self._end()

    @property
    def _nodes_are_done(self) -> bool:
        limit = self.run.limits.nodes
        return limit is not None and self.run.nodes >= limit

    @property
    def bound(self) -> float:
        """Of everything, as said above."""
        given = [float(nodes.bound.max()) for nodes in self.out.values()]
        open_ones = max(max(given, default=-math.inf), self.waiting.bound) + self._constant
        return max(open_ones, self.run.objective)

    @property
    def _constant(self) -> float:
        """What the objective adds to the bounds of nodes: samples without rivals."""
        margins = self.run.problem.margins
        if margins is None or margins.n_rivals:
            return 0.0
        return float(self.run.problem.gamma * self.run.problem.sample_weights.sum())

    def snapshot(self) -> SearchState:
        """Everything that is not decided, as one tree."""
        nodes = [*self.waiting.nodes, *self.out.values()]
        if not nodes:
            return SearchState(self.solver.name, self.run.nodes)
        whole = join(nodes)
        numbers = np.array([max(self.waiting.floor, whole.floor), whole.numbers[1]])
        return SearchState(self.solver.name, self.run.nodes, replace(whole, numbers=numbers).arrays)

    def _tell(self) -> None:
        if self.run.selection is not None and self.run.objective > self._told:
            self._told = self.run.objective
            if self._board is not None:
                self._board.write(self.run.selection)

    def _hand_out(self) -> None:
        """A part for every worker that has none."""
        workers = self.n_workers
        while len(self.out) < workers:
            problem = self._scattered()
            if problem is None:
                return
            nodes = self.waiting.take(self._fair_share(workers))
            if nodes is None:
                return
            future = self.client.submit(
                work_on,
                self.solver,
                problem,
                self._task(nodes),
                self._news,
                pure=False,
                key=f"{self._news}-{next(self._seeds)}",
            )
            self.out[future] = nodes

    def _fair_share(self, workers: int) -> int:
        """Nodes for the next part: with all that waits or is out everybody has as many. A worker
        that has all its nodes at hand searches the best first; with a few it would go deep.
        """
        out = sum(len(nodes.bound) for nodes in self.out.values())
        return -(-(self.waiting.count + out) // workers)

    def _task(self, nodes: OpenNodes) -> Task:
        run = self.run
        assert run.selection is not None
        seconds = max(0.05, min(self._turn, run.remaining()))
        self._turn = min(LONGEST_TURN, self._turn * GROWTH ** (1.0 / self.n_workers))
        seed = run.seed + SEED_STEP * next(self._seeds)
        limits = run.limits
        return Task(
            nodes.arrays, run.selection, seconds, limits.gap, seed, limits.memory, self._learned
        )

    def _scattered(self) -> Any:
        """The problem on all workers; None if one of them is just being lost."""
        if self._problem is None or self._problem.status != "finished":
            try:
                self._problem = self.client.scatter(self.run.problem, broadcast=True, hash=False)
            except (OSError, TimeoutError):  # a connection was closed: the next time without it
                self._count_loss()
                time.sleep(LOOK)
                return None
        return self._problem

    def _collect(self) -> None:
        """Take back what is done, or look again soon."""
        with suppress(TimeoutError), self.client.as_current():
            _distributed().wait(list(self.out), timeout=LOOK, return_when="FIRST_COMPLETED")
        for future in [f for f in self.out if f.status != "pending"]:
            nodes = self.out[future]
            if future.status == "finished":
                self._accept(future.result())
            else:
                self._lose(future, nodes)
            del self.out[future]  # only now: an interrupt must not lose a node
            future.release()

    def _accept(self, answer: Answer) -> None:
        self.waiting.put(OpenNodes(**answer.arrays))
        self.run.nodes += answer.nodes
        self._learned += answer.learned
        self.run.offer(answer.selection)

    def _lose(self, future: Any, nodes: OpenNodes) -> None:
        """A part whose worker is gone waits again; what went wrong inside of one is raised."""
        if future.status == "error":
            error = future.exception()
            if not isinstance(error, _distributed().KilledWorker):
                raise error
        self.waiting.put(nodes)
        self._problem = None  # it may have gone with them
        self._count_loss()

    def _count_loss(self) -> None:
        """Give up after too many."""
        self.losses += 1
        if self.losses > MOST_LOSSES:
            warnings.warn(
                f"{self.losses} parts of the search got lost on the cluster: it is given up, with "
                "the gap reached so far; look at the logs of the workers",
                OptimalityWarning,
                stacklevel=2,
            )
            raise Stopped(Status.INTERRUPTED)

    def _end(self) -> None:
        """Nothing of ours goes on at the workers; what is out waits again."""
        for future in self._readiness:
            with suppress(Exception):
                future.cancel()
        for future, nodes in list(self.out.items()):
            with suppress(Exception):
                future.cancel()
            self.waiting.put(nodes)
        self.out.clear()


def solve_on_cluster(solver: Solver, run: Run, dask: Any) -> SolveResult:
    """Search on a cluster; the counterpart of :func:`marginbn.solvers.solve.solve_with`."""
    if not isinstance(solver, BranchBoundSolver):
        raise InputError(
            f"dask is for the solver 'branch_bound' (at most two parents), and {solver.name!r} "
            "would be used; leave dask out"
        )
    with connected(dask, run.n_jobs) as client:
        run.n_jobs = 1
        loading = [
            client.submit(BranchBoundSolver.prepare, solver, workers=[address], pure=False)
            for address in client.ncores()
        ]
        solver.prepare()
        with suppress(TimeoutError), client.as_current():  # who comes later does not wait for it
            _distributed().wait(loading, timeout=LOADING)
        REQUESTS.raise_if_asked()
        run.start_clock()
        coordinator = Coordinator(run, solver, client)
        with run.ending():
            begin(run)
            REQUESTS.has_result = True
            if coordinator.ramp_up():
                run.stopped = coordinator.search()
    return run.finish(solver.name)
