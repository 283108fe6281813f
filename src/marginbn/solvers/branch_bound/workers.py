"""Several workers on one tree.

Every worker has a store of open nodes of its own and runs batches on it, without the interpreter
lock. Between two batches, under the lock of the team, it takes what others put into its inbox,
gives nodes away to workers that have none or only worse ones, tells what it found and learns the
best structure known.

*Bound.* A worker claims the largest bound it holds before each batch; bounds below a node never
exceed its own, so the claim stays true while the batch runs. Nodes change hands only between
batches. So the maximum over all claims and inboxes is an upper bound at every moment.

The first worker runs in the caller's thread, the only one that speaks to the tracker and hears
Ctrl-C; the others run in threads of their own. A single worker takes no part in any of this, and
its run depends on nothing but the problem and the seed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial

import numpy as np

from marginbn.solvers.branch_bound.arrays import Encoding
from marginbn.solvers.branch_bound.kernels.bound import Incumbent, Settings
from marginbn.solvers.branch_bound.kernels.combination import new_bounding
from marginbn.solvers.branch_bound.kernels.records import Box, IntArray, new_box, new_oracle
from marginbn.solvers.branch_bound.kernels.store import (
    Pool,
    grown,
    move_nodes,
    new_pool,
    top_bound,
    with_room,
)
from marginbn.solvers.branch_bound.kernels.tree import (
    BATCH_DONE,
    EXHAUSTED,
    IMPROVED,
    POOL_FULL,
    Workspace,
    run_batch,
)
from marginbn.solvers.branch_bound.needs import KEPT_VERTICES
from marginbn.solvers.branch_bound.saved_tree import OpenNodes, load
from marginbn.solvers.run import running

ACTIVE_VERTICES = 128
"""Vertices of one convex combination; the lightest leaves when there are more."""

POOL_BYTES = 1_200_000_000
"""Storage for the open nodes of all workers; beyond it the search goes depth first."""

RESERVE = 1024
"""Free places below which a full store is searched depth first; a path is never this long."""

LARGEST_GIFT = 128
"""Nodes that change hands at a time when a worker has none."""

SMALL_GIFT = 8
"""Nodes that change hands at a time when a worker has only worse ones."""

UNLIMITED = 2**62

REST = 0.02
"""Seconds that a worker without nodes waits before it looks again."""


class Worker:
    """Open nodes and the scratch to process them."""

    def __init__(self, encoding: Encoding, seed: int) -> None:
        inst = encoding.instance
        n, n_sets = inst.n_features, inst.first.size
        self.pool = new_pool(inst, 1024, 512, KEPT_VERTICES)
        self.inbox = new_pool(inst, 0, 0, KEPT_VERTICES)
        self.work = Workspace(
            new_box(n, n_sets),
            new_oracle(n, n_sets),
            new_bounding(inst, ACTIVE_VERTICES, encoding.structure_magnitude),
            np.array([2 * seed + 1], dtype=np.int64),
        )
        self.incumbent = Incumbent(
            np.zeros(n + 1, dtype=np.int64), np.array([-np.inf]), np.zeros(1, dtype=np.int64)
        )
        self.told = 0  # improvements that the team knows of
        self.reserve = 0
        self.is_busy = False
        self.claim = np.inf
        self.granted = 0

    @property
    def nodes(self) -> int:
        """Nodes processed."""
        return int(self.pool.state.nodes)

    @property
    def is_out_of_work(self) -> bool:
        """Neither at work nor with anything to work on."""
        return not (self.is_busy or self.pool.state.open or self.inbox.state.open)

    @property
    def bound(self) -> float:
        """Largest bound of anything it holds or ever discarded."""
        if not self.is_busy:
            self.claim = max(top_bound(self.pool), float(self.pool.state.floor))
        return max(self.claim, top_bound(self.inbox))

    def receive(self) -> None:
        """Take the nodes that others gave."""
        count = int(self.inbox.state.open)
        if count:
            self.pool = with_room(self.pool, count)
            move_nodes(self.inbox, self.pool, count, False)

    def give(self, other: Worker, count: int) -> None:
        """Put every second of the best nodes into another worker's inbox."""
        count = min(count, int(self.pool.state.open) // 2)
        if count > 0:
            other.inbox = with_room(other.inbox, count)
            move_nodes(self.pool, other.inbox, count, True)
            other.pool.state.root_bound = self.pool.state.root_bound

    def grow(self, budget: int) -> None:
        """Double the store, or from now on search depth first where little room is left."""
        if self.reserve == 0 and 2 * nbytes(self.pool) <= budget:
            with suppress(MemoryError):  # less than was promised: make do with what there is
                self.pool = grown(self.pool, 2 * self.pool.bound.size, 2 * self.pool.constant.size)
                return
        self.pool = with_room(self.pool, 2 * RESERVE)
        self.reserve = RESERVE

    @property
    def has_news(self) -> bool:
        """Whether it found something that the team does not know of."""
        return bool(self.incumbent.found[0] != self.told)


def nbytes(pool: Pool) -> int:
    """Memory of a store."""
    return sum(np.asarray(part).nbytes for part in pool)


class Team:
    """The workers, what they share, and the threads of all but the first."""

    def __init__(
        self,
        encoding: Encoding,
        settings: Settings,
        n_workers: int,
        seed: int,
        node_limit: int,
        store_bytes: int | None = None,
    ) -> None:
        self.full = encoding.instance
        self.instance = encoding.instance  # with the rows that matter now, see rows.py
        self.coarse = encoding.instance  # with some of them
        self.settings = settings
        self.node_limit = node_limit
        self.store_bytes = POOL_BYTES if store_bytes is None else store_bytes
        self.workers = [Worker(encoding, seed + 7919 * k) for k in range(n_workers)]
        self.stop = np.zeros(1, dtype=np.int64)
        self._lock = threading.RLock()  # entered by itself: an interrupt cannot leave it locked
        self._change = threading.Condition(self._lock)
        self._is_resting = False
        self._found: list[tuple[float, IntArray]] = []
        self._best: tuple[float, IntArray] | None = None
        self._failure: BaseException | None = None

    def load(self, root: Box, tree: OpenNodes) -> None:
        """Deal out the nodes of an earlier sitting, the best ones first.

        Where there is not the memory for all their families they share an empty one.
        """
        place = nbytes(self.workers[0].pool) / self.workers[0].pool.constant.size
        if place * len(tree.bound) > self.store_bytes:
            tree = tree.with_one_family()
        order = np.argsort(-tree.bound, kind="stable")
        for k, worker in enumerate(self.workers):
            own = order[k :: len(self.workers)]
            worker.pool = load(worker.pool, self.instance, root, tree, own)

    @property
    def nodes(self) -> int:
        """Nodes processed by all workers."""
        return sum(worker.nodes for worker in self.workers)

    @property
    def is_finished(self) -> bool:
        """Whether no worker has or holds a node."""
        with self._lock:
            self._raise_failure()
            return all(worker.is_out_of_work for worker in self.workers)

    @property
    def bound(self) -> float:
        """Largest bound of everything open, in progress or ever discarded."""
        with self._lock:
            return max(worker.bound for worker in self.workers)

    @property
    def found(self) -> list[tuple[float, IntArray]]:
        """Improvements that nobody has judged yet, the oldest first."""
        with self._lock:
            self._note(self.workers[0])
            return list(self._found)

    def forget(self) -> None:
        """The oldest improvement has been judged. Not before: an interrupt must not lose a
        structure whose leaf is no longer in the tree.
        """
        with self._lock:
            del self._found[:1]

    def _note(self, worker: Worker) -> None:
        if worker.has_news:
            value, vertex = float(worker.incumbent.value[0]), worker.incumbent.vertex.copy()
            self._found.append((value, vertex))
            worker.told = int(worker.incumbent.found[0])

    def announce(self, value: float, vertex: IntArray) -> None:
        """The best structure known, for every worker at its next batch."""
        with self._lock:
            self._best = (value, vertex.copy())
            self._adopt(self.workers[0])

    def _adopt(self, worker: Worker) -> None:
        if self._best is not None and not any(
            value > self._best[0] for value, _ in self._found
        ):  # what waits to be judged is kept
            worker.incumbent.value[0], worker.incumbent.vertex[:] = self._best

    def batch(self, worker: Worker, iterations: int) -> int:
        """One batch of a worker up to that number of iterations in total; why it ended."""
        with self._lock:
            while self._is_resting and worker is not self.workers[0]:
                self._change.wait(REST)
            worker.receive()
            self._adopt(worker)
            worker.granted = self._grant(worker)
            limit = worker.nodes + worker.granted
            worker.claim = worker.bound
            worker.is_busy = True
        code = EXHAUSTED
        try:
            code = run_batch(
                self.instance,
                self.full,
                self.coarse,
                self.settings,
                worker.pool,
                worker.work,
                worker.incumbent,
                limit,
                iterations,
                worker.reserve,
                self.stop,
            )
        finally:
            with self._lock:
                worker.is_busy = False
                worker.granted = 0
                if code == POOL_FULL:
                    worker.grow(self.store_bytes // len(self.workers))
                self._share(worker)
                self._change.notify_all()
        return code

    def _grant(self, worker: Worker) -> int:
        """A fair part of the nodes that are left and promised to nobody."""
        if self.node_limit == UNLIMITED:
            return UNLIMITED // 2
        others = [other for other in self.workers if other is not worker]
        left = self.node_limit - self.nodes - sum(other.granted for other in others)
        return -(-max(left, 0) // len(self.workers))

    def _share(self, worker: Worker) -> None:
        """Post improvements; give nodes to workers without any, or with worse ones only."""
        if worker is not self.workers[0]:
            self._note(worker)
        best = top_bound(worker.pool)
        incumbent = float(worker.incumbent.value[0])
        for other in self.workers:
            if other is worker or other.inbox.state.open > 0:
                continue
            if other.is_out_of_work:
                worker.give(other, LARGEST_GIFT)
            elif best - other.bound > 0.1 * (best - incumbent):
                worker.give(other, SMALL_GIFT)

    def rest(self) -> None:
        """Wait a moment for something to change."""
        with self._lock:
            self._change.wait(REST)

    @contextmanager
    def at_rest(self) -> Iterator[list[Pool]]:
        """All stores, with nobody at work on them for the time of the block; for the first worker.

        Batches that run are waited for, new ones wait.
        """
        with self._lock:
            self._is_resting = True
            try:
                while any(worker.is_busy for worker in self.workers[1:]):
                    self._change.wait(REST)
                yield [pool for worker in self.workers for pool in (worker.pool, worker.inbox)]
            finally:
                self._is_resting = False
                self._change.notify_all()

    @contextmanager
    def helpers(self, batch: int) -> Iterator[None]:
        """Threads of all workers but the first, for the time of the block."""
        bodies = [partial(self._help, worker, batch) for worker in self.workers[1:]]
        with running(bodies, self._send_home):
            yield
        self._raise_failure()

    def _send_home(self) -> None:
        self.stop[0] = 1

    def _help(self, worker: Worker, batch: int) -> None:
        """Body of a thread: batches while there are nodes, until somebody says stop."""
        try:
            while self.stop[0] == 0:
                code = self.batch(worker, int(worker.pool.state.iterations) + batch)
                if code not in (BATCH_DONE, IMPROVED, POOL_FULL):
                    self.rest()
        except BaseException as error:  # raised again in the caller's thread
            self._failure = error
            self.stop[0] = 1

    def _raise_failure(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
