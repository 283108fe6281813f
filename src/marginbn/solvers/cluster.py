"""One search over many processes, on Dask: a coordinator that hands out parts of a tree.

*Ramp-up.* The coordinator searches alone until there are some nodes for every worker, which makes
its arrays meanwhile. Then workers get parts, the best bounds first (``subtree.py``).

*Turns.* A part stays with its worker. After every turn of a second or some the answer holds the
best structure, the bound of the part, and a surplus of nodes where another worker has none or only
worse ones. So bounds travel, and few nodes. Incumbents come back with an answer, and every turn
begins with the best: after one turn all know it.

*Losses.* The coordinator has a copy of every part, as it was given or as of the last
:data:`COPY_EVERY` seconds. The part of a worker that is gone waits again at once, and one that does
not come back within some turns, too; a later answer is ignored. A worker gets nothing more while it
owes an answer. Without a scheduler the search ends with all that the coordinator has.

*Versions.* A worker begins with its stamp (engine and problem), and every answer carries one. What
has another stamp is refused: a proof must not rest on another engine.

*Bound.* The largest of all that waits, of all parts as of their last answer, of all that was ever
discarded, and of the incumbent: an upper bound at every moment. The nodes of a copy have bounds of
their own and that of the part. What the worker has finished since is in them once more, and what it
gave to others: a part that is lost costs time, never a structure.

*Checkpoint.* Everything that waits and the copies of all parts, as one tree in the ordinary file: a
search goes on from it on the same cluster, on another, or on none. The last turn before a time
limit brings copies of everything.

Ideas: UG of Shinano et al. (ramp-up, a supervisor that does not search, best nodes first).
"""

from __future__ import annotations

import heapq
import itertools
import logging
import math
import os
import time
import uuid
import warnings
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, NoReturn

import numpy as np

from marginbn.exceptions import InputError, MissingDependencyError, OptimalityWarning
from marginbn.interrupts import INTERRUPTS
from marginbn.problem.array_types import FloatArray
from marginbn.solvers.branch_bound import BranchBoundSolver
from marginbn.solvers.checkpoint import OpenNodes, SearchState, join
from marginbn.solvers.result import SolveResult, Status
from marginbn.solvers.run import Run, Solver, Stopped
from marginbn.solvers.subtree import Answer, PartLostError, Task, get_ready, solve_part, stamp
from marginbn.solvers.tree_search import begin

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

PATIENCE = 10.0
"""Seconds in which a scheduler has to answer."""

LOADING = 120.0
"""Seconds in which workers have to load or compile the engine: at the start, and in one part."""

MOST_LOSSES, LOSSES_WITHIN = 20, 600.0
"""Parts that may get lost within so many seconds before the search is given up."""

LATE_TURNS, LATE_SECONDS = 4, 15.0
"""Turns, and seconds besides, after which a part is handed out again: making arrays takes some."""

COPY_EVERY, COPY_RATE = 60.0, 1_000_000
"""Seconds between two copies of a part, and bytes of them per second at the most."""

SEED_STEP = 7919
"""Between the seeds of two turns; a prime, so that theirs and those of other calls differ."""

SMALL_SURPLUS, WORSE = 32, 0.01
"""Nodes that change hands where a worker has worse ones: its bound lies below the best by more than
this part of the gap.
"""


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


@contextmanager
def _quiet() -> Iterator[None]:
    """Losses are reported in one line each, not by the pages that distributed logs of them; it logs
    some while a client without a scheduler is closed.
    """
    _distributed()  # makes its loggers
    names = [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    levels = {name: logging.getLogger(name).level for name in names}
    try:
        for name in names:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


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
        size = max(1, min(size, PORTION // (nodes.boxes.shape[1] + 8)))
        order = np.argsort(-nodes.bound, kind="stable")
        chosen = np.sort(order[: 2 * size : 2]) if len(order) > size else order
        rest = np.setdiff1d(order, chosen)
        if len(rest):
            self.put(nodes.some(rest))
        return nodes.some(chosen)


@dataclass(eq=False)
class Part:
    """Nodes that a worker has in a slot, as the coordinator knows them."""

    slot: str
    worker: str
    copy: OpenNodes  # as they were given, or came back
    copied: float  # when, on the clock
    late: float = math.inf  # when the part is handed out again
    is_copied: bool = False  # whether this turn brings a copy

    def __post_init__(self) -> None:
        self.count = len(self.copy.bound)  # as of the last answer
        self.bound = float(self.copy.bound.max(initial=-math.inf))

    @property
    def nodes(self) -> OpenNodes:
        """The copy, with bounds as far as they are known."""
        return replace(self.copy, bound=np.minimum(self.copy.bound, self.bound))

    def add(self, more: OpenNodes) -> None:
        """Nodes that come in."""
        self.copy = join([self.nodes, more])
        self.count += len(more.bound)
        self.bound = max(self.bound, float(more.bound.max()))


class Coordinator:
    """One search: what waits, what is out, and what is known."""

    def __init__(self, run: Run, solver: BranchBoundSolver, client: Any) -> None:
        self.run, self.solver, self.client = run, solver, client
        self.waiting = Waiting()
        self.out: dict[Any, Part] = {}
        self.held: dict[str, Part] = {}  # between two turns, by slot
        self.late: dict[Any, str] = {}  # slots of futures that are not waited for any more
        self.checks: dict[str, Any] = {}  # what every worker says of its engine
        self.refused: set[str] = set()
        self.answered: set[str] = set()  # workers that have compiled the engine
        self.pseudocosts: FloatArray | None = None  # sums of all workers
        self.n_workers = 1  # parts that all workers together may have
        self.losses: list[float] = []
        self._stamp = stamp(run.problem)
        self._turn = FIRST_TURN
        self._seeds = itertools.count(1)
        self._name = f"marginbn-{uuid.uuid4().hex}"
        self._problem: Any = None

    # ------------------------------------------------------------------ ramp-up

    def ramp_up(self) -> bool:
        """Search alone until there are nodes for everybody; returns whether anything is left."""
        self._check_workers()
        run = self.run
        if run.saved is None or not run.saved.search.arrays:
            limits = replace(run.limits, nodes=RAMP_UP * self.n_workers)
            alone = replace(run, limits=limits, checkpoint=None)
            alone.deadline = run.deadline
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

    def _check_workers(self) -> dict[str, int]:
        """Parts that every worker may have: of those here whose engine is the one of this process.
        A new worker makes its arrays and tells which it has; nothing waits for it.
        """
        try:
            there = self.client.sync(self.client.scheduler.ncores, callback_timeout=PATIENCE)
        except (OSError, TimeoutError, ValueError, RuntimeError, CancelledError) as error:
            self._give_up(f"the scheduler does not answer ({type(error).__name__})")
        self.n_workers = max(1, sum(there.values()))
        for address in self.checks.keys() - there.keys():
            del self.checks[address]
        for address in there.keys() - self.checks.keys():
            problem = self._scattered(list(there))
            if problem is not None:
                given = self.solver, problem, self.run.limits.memory
                self.checks[address] = self.client.submit(
                    get_ready, *given, workers=[address], pure=False
                )
        known = [address for address in there if address in self.checks]
        ours = {address: int(there[address]) for address in known if self._is_ours(address)}
        if there and self.refused >= there.keys():
            self._give_up("all workers are left out")
        return ours

    def _is_ours(self, address: str) -> bool:
        """Whether a worker has the engine of this process, as far as it has answered."""
        check = self.checks[address]
        if not isinstance(check, str):
            if check.status == "pending":
                return False
            try:
                check = str(check.result(timeout=PATIENCE))
            except Exception as error:  # whatever it is, this worker cannot do the work
                check = f"{type(error).__name__}: {error}".splitlines()[0]
            self.checks[address] = check
        if check != self._stamp:
            self._refuse(address, check)
        return bool(check == self._stamp)

    def _refuse(self, address: str, told: str) -> None:
        """Say once which worker is left out, and why."""
        if address not in self.refused:
            self.refused.add(address)
            warnings.warn(
                f"worker {address} is left out: it has another marginbn or problem ({told}; here "
                f"{self._stamp}); install the same version there",
                OptimalityWarning,
                stacklevel=2,
            )

    def _give_up(self, why: str) -> NoReturn:
        """End the search with what is known."""
        warnings.warn(
            f"the search on the cluster ended early: {why}; the best structure so far and its "
            "bound are returned, and a checkpoint is kept where one was asked for",
            OptimalityWarning,
            stacklevel=2,
        )
        raise Stopped(Status.INTERRUPTED)

    # ------------------------------------------------------------------ the search

    def search(self) -> Status:
        """Hand out parts until nothing is left or a limit is reached."""
        run = self.run
        run.snapshot = self.snapshot
        try:
            while True:
                run.improve_bound(self.bound)
                if run.is_closed or not (self._parts or self.waiting.count):
                    return Status.OPTIMAL
                limit = run.limit
                if limit is not None:
                    return limit
                if run.limits.nodes is not None and run.nodes >= run.limits.nodes:
                    return Status.NODE_LIMIT
                run.save_if_due()
                self._hand_out()
                self._collect()
        finally:
            self._end()

    @property
    def _parts(self) -> list[Part]:
        """All that workers have."""
        return [*self.out.values(), *self.held.values()]

    @property
    def bound(self) -> float:
        """Of everything, as said above."""
        open_ones = max([self.waiting.bound, *(part.bound for part in self._parts)])
        return max(open_ones + self._constant, self.run.objective)

    @property
    def _constant(self) -> float:
        """What the objective adds to the bounds of nodes: samples without rivals."""
        margins = self.run.problem.margins
        if margins is None or margins.n_rivals:
            return 0.0
        return float(self.run.problem.gamma * self.run.problem.sample_weights.sum())

    def snapshot(self) -> SearchState:
        """Everything that is not decided, as one tree."""
        nodes = [*self.waiting.nodes, *(part.nodes for part in self._parts)]
        if not nodes:
            return SearchState(self.solver.name, self.run.nodes)
        whole = join(nodes)
        numbers = np.array([max(self.waiting.floor, whole.floor), whole.numbers[1]])
        return SearchState(self.solver.name, self.run.nodes, replace(whole, numbers=numbers).arrays)

    def _hand_out(self) -> None:
        """A turn for every worker that has none."""
        self._take_back_late()
        workers = self._check_workers()
        slots = {f"{worker} {k}": worker for worker in workers for k in range(workers[worker])}
        busy = {*self.late.values(), *(part.slot for part in self.out.values())}
        idle = [slot for slot in slots if slot not in busy]
        hungry = [slot for slot in idle if slot not in self.held]
        for slot in idle:
            problem = self._scattered(sorted({slots[other] for other in idle}))
            if problem is None:
                return
            goes_on = slot in self.held
            nodes = self._nodes_for(slot, len(hungry))
            if not goes_on:
                if nodes is None:
                    continue
                hungry.remove(slot)
                self.held[slot] = Part(slot, slots[slot], nodes, time.monotonic())
            elif nodes is not None:
                self.held[slot].add(nodes)
            task = self._task(self.held[slot], nodes, goes_on)
            if not self.waiting.count:
                share = self.held[slot].count * len(hungry) // len(slots)
                bounds = [part.bound for part in self._parts]
                if max(bounds) == self.held[slot].bound > min(bounds) + self._much:
                    share = share or SMALL_SURPLUS  # for a worker that has worse ones only
                task = replace(task, surplus=share)
            given = self.solver, problem, task
            key = f"{self._name}-{next(self._seeds)}"
            future = self.client.submit(
                solve_part, *given, workers=[slots[slot]], pure=False, key=key
            )
            self.out[future] = self.held[slot]
            del self.held[slot]  # only now: an interrupt must not lose a node

    def _nodes_for(self, slot: str, n_hungry: int) -> OpenNodes | None:
        """New nodes for a slot: a fair share of those that wait if it has none, so that the worker
        has good ones at hand and does not go deep; some if it has only worse ones.
        """
        if slot not in self.held:
            return self.waiting.take(-(-self.waiting.count // n_hungry))
        is_worse = self.waiting.bound - self.held[slot].bound > self._much
        return self.waiting.take(SMALL_SURPLUS) if is_worse else None

    @property
    def _much(self) -> float:
        """Nodes whose bounds lie so far below the best are worse."""
        return WORSE * (self.run.bound - self.run.objective)

    def _task(self, part: Part, nodes: OpenNodes | None, goes_on: bool) -> Task:
        run, now = self.run, time.monotonic()
        assert run.selection is not None
        seconds = max(0.05, min(self._turn, run.remaining()))
        self._turn = min(LONGEST_TURN, self._turn * GROWTH ** (1.0 / self.n_workers))
        pause = max(COPY_EVERY, part.copy.boxes.nbytes / COPY_RATE)
        part.is_copied = now - part.copied > pause or self._turn > run.remaining()
        spare = LATE_SECONDS if part.worker in self.answered else LOADING
        part.late = now + LATE_TURNS * seconds + spare
        return Task(
            (part.copy.some(np.arange(0)) if nodes is None else nodes).arrays,
            run.selection,
            seconds,
            run.limits.gap,
            run.seed + SEED_STEP * next(self._seeds),
            run.limits.memory,
            self.pseudocosts,
            f"{self._name} {part.slot}",
            goes_on,
            is_copied=part.is_copied,
        )

    def _take_back_late(self) -> None:
        """Parts of workers that are gone or late wait again."""
        for slot, part in list(self.held.items()):
            if part.worker not in self.checks:
                self._wait_again(self.held.pop(slot), is_lost=True)
        for future, part in list(self.out.items()):
            is_gone = part.worker not in self.checks
            if is_gone or time.monotonic() > part.late:
                self._wait_again(part, is_lost=is_gone)
                del self.out[future]
                if not is_gone:
                    self.late[future] = part.slot
                    warnings.warn(
                        f"worker {part.worker} does not answer: its part of the search goes to "
                        "another one",
                        OptimalityWarning,
                        stacklevel=2,
                    )
        for future in [future for future in self.late if future.status != "pending"]:
            del self.late[future]  # the part has been handed out again: the answer is ignored

    def _wait_again(self, part: Part, is_lost: bool) -> None:
        """The copy of a part takes its place."""
        self.waiting.put(part.nodes)
        if is_lost:
            self._problem = None  # it may have gone with the worker
            self._count_loss()

    def _scattered(self, workers: list[str]) -> Any:
        """The problem on these workers; None if one of them is just being lost."""
        if self._problem is None or self._problem.status != "finished":
            try:
                self._problem = self.client.scatter(
                    self.run.problem, workers=workers, broadcast=True, hash=False
                )
            except (OSError, TimeoutError):  # a connection was closed: the next time without it
                self._count_loss()
                time.sleep(LOOK)
                return None
        return self._problem

    def _collect(self) -> None:
        """Take back what is done, or look again soon."""
        with suppress(TimeoutError, CancelledError), self.client.as_current():
            if self.out:
                _distributed().wait(list(self.out), timeout=LOOK, return_when="FIRST_COMPLETED")
            else:  # all workers are late or new
                time.sleep(LOOK)
        for future in [f for f in self.out if f.status != "pending"]:
            part = self.out[future]
            answer = None
            with suppress(TimeoutError, CancelledError, OSError):  # it may be lost on its way
                answer = future.result(timeout=PATIENCE) if future.status == "finished" else None
            if answer is None:
                self._lose(future, part)
            else:
                self._accept(part, answer)
            del self.out[future]  # only now: an interrupt must not lose a node
            future.release()

    def _accept(self, part: Part, answer: Answer) -> None:
        if answer.stamp != self._stamp:
            self._refuse(part.worker, answer.stamp)
            self._wait_again(part, is_lost=False)
            return
        self.answered.add(part.worker)
        nodes = OpenNodes(**answer.arrays)
        part.count, part.bound = answer.count, answer.bound
        if answer.count and part.is_copied:
            part.copy, part.copied = nodes, time.monotonic()
            nodes = nodes.some(np.arange(0))  # what was discarded counts
        self.waiting.put(nodes)
        if answer.count:
            self.held[part.slot] = part
        if answer.pseudocosts is not None:
            known = 0.0 if self.pseudocosts is None else self.pseudocosts
            self.pseudocosts = known + answer.pseudocosts
        self.run.nodes += answer.nodes
        self.run.offer(answer.selection)

    def _lose(self, future: Any, part: Part) -> None:
        """A part whose worker is gone waits again; what went wrong inside of one is raised."""
        if future.status == "error":
            error = future.exception()
            if not isinstance(error, (_distributed().KilledWorker, PartLostError)):
                raise error
        self._wait_again(part, is_lost=True)

    def _count_loss(self) -> None:
        """Give up after too many."""
        now = time.monotonic()
        self.losses = [loss for loss in self.losses if now - loss < LOSSES_WITHIN] + [now]
        if len(self.losses) > MOST_LOSSES:
            minutes = LOSSES_WITHIN / 60
            self._give_up(f"more than {MOST_LOSSES} parts were lost in {minutes:.0f} minutes")

    def _end(self) -> None:
        """Nothing of ours goes on at the workers; what is out waits again."""
        for part in self._parts:
            self.waiting.put(part.nodes)
        for future in [*self.checks.values(), *self.late, *self.out]:  # checks that are over: text
            with suppress(Exception):
                future.cancel()
        self.out.clear()
        self.held.clear()


def solve_on_cluster(solver: Solver, run: Run, dask: Any) -> SolveResult:
    """Search on a cluster; the counterpart of :func:`marginbn.solvers.solve.solve_with`."""
    if not isinstance(solver, BranchBoundSolver):
        raise InputError(
            f"dask is for the solver 'branch_bound' (at most two parents), and {solver.name!r} "
            "would be used; leave dask out"
        )
    with _quiet(), connected(dask, run.n_jobs) as client:
        run.n_jobs = 1
        solver.prepare()
        INTERRUPTS.raise_if_requested()
        run.start_clock()
        coordinator = Coordinator(run, solver, client)
        with run.ending():
            begin(run)
            INTERRUPTS.has_result = True
            if coordinator.ramp_up():
                run.stopped = coordinator.search()
    return run.finish(solver.name)
