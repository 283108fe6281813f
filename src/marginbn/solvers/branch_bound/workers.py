"""Several workers on one tree.

Every worker has a store of open nodes of its own and runs batches on it, without the interpreter
lock. Between two batches, under the lock of the team, it takes what others put into its inbox,
donates nodes to workers that have none or only worse ones, reports what it found and learns the
best structure known.

*Bound.* A worker claims the largest bound it holds before each batch; bounds below a node never
exceed its own, so the claim stays true while the batch runs. Nodes change hands only between
batches. So the maximum over all claims and inboxes is an upper bound at every moment.

*Failures.* An exception inside a batch may have left its node half done, in no store any more. The
worker then keeps its claim and counts as busy for good: nothing that was lost is taken for done,
whatever still looks at the bound while the exception ends the search.

A single worker takes no part in any of this, and its run depends on nothing but the problem and the
seed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

import numpy as np

from marginbn.problem.array_types import IntArray
from marginbn.solvers.branch_bound.arrays import Encoding
from marginbn.solvers.branch_bound.kernels import node_pool, records
from marginbn.solvers.branch_bound.kernels.bound import Incumbent
from marginbn.solvers.branch_bound.kernels.branching import new_pseudocosts
from marginbn.solvers.branch_bound.kernels.children import Workspace
from marginbn.solvers.branch_bound.kernels.combination import new_bounding
from marginbn.solvers.branch_bound.kernels.node_pool import Pool, grown
from marginbn.solvers.branch_bound.kernels.records import Box, Instance
from marginbn.solvers.branch_bound.kernels.tree import EXHAUSTED, POOL_FULL
from marginbn.solvers.checkpoint import OpenNodes, join
from marginbn.solvers.memory import ACTIVE_VERTICES, KEPT_VERTICES
from marginbn.solvers.result import Status
from marginbn.solvers.run import Stopped, is_interrupt, running

REST = 0.02
"""Seconds that a worker without nodes waits before it looks again."""

RESERVE = 1024
"""Free places below which a full store is searched depth first, fewer where a place is large; a
path that is longer gets more.
"""


def first_pool(encoding: Encoding) -> Pool:
    """A new store, which doubles when it is full."""
    places = encoding.places // 3
    return node_pool.new_pool(encoding.instance, places, max(places // 2, 4), KEPT_VERTICES)


SMALLEST_GROWTH = 1.2
"""Copying a store is not worth less."""

LARGEST_DONATION = 128
"""Nodes that change hands at a time when a worker has none."""

SMALL_DONATION = 32
"""Nodes that change hands at a time when a worker has only worse ones."""

WORSE = 0.01
"""Nodes are worse if their bounds lie below the best by more than this part of the gap."""

UNLIMITED = 2**62
"""Nodes of a search without a limit of nodes; twice as many still fit into an int64."""


class Worker:
    """Open nodes and the scratch to process them."""

    def __init__(self, encoding: Encoding) -> None:
        inst = encoding.instance
        n, n_sets = inst.n_features, inst.first.size
        self.pool = first_pool(encoding)
        self._least = min(RESERVE, encoding.places // 3)
        self.inbox = node_pool.new_pool(inst, 0, 0, KEPT_VERTICES)
        self.work = Workspace(
            records.new_box(n, n_sets),
            records.new_oracle(n, n_sets),
            new_bounding(inst, ACTIVE_VERTICES, encoding.structure_magnitude),
            new_bounding(inst, ACTIVE_VERTICES, encoding.structure_magnitude),
            new_pseudocosts(n),
        )
        self.incumbent = Incumbent(
            np.zeros(n + 1, dtype=np.int64), np.array([-np.inf]), np.zeros(1, dtype=np.int64)
        )
        self.reported = 0  # improvements that the team knows of
        self.code = EXHAUSTED  # why the last batch ended
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
            self.claim = max(node_pool.top_bound(self.pool), float(self.pool.state.floor))
        return max(self.claim, node_pool.top_bound(self.inbox))

    def receive(self) -> None:
        """Take the nodes that others donated."""
        count = int(self.inbox.state.open)
        if count:
            self.pool = node_pool.with_room(self.pool, count)
            node_pool.move_nodes(self.inbox, self.pool, count, False)

    def donate(self, other: Worker, count: int) -> None:
        """Put every second of the best nodes into another worker's inbox."""
        count = min(count, int(self.pool.state.open) // 2)
        if count > 0:
            other.inbox = node_pool.with_room(other.inbox, count)
            node_pool.move_nodes(self.pool, other.inbox, count, True)
            other.pool.state.root_bound = self.pool.state.root_bound

    def grow(self, budget: int) -> None:
        """Double the store, or take what is left of the budget; from then on search depth first
        where little room is left.
        """
        factor = min(2.0, budget / nbytes(self.pool))
        if self.reserve == 0 and factor >= SMALLEST_GROWTH:
            with suppress(MemoryError):  # less than was promised: make do with what there is
                sizes = self.pool.bound.size, self.pool.smoothing.size
                self.pool = grown(self.pool, *(int(factor * size) for size in sizes))
                return
        self.pool = node_pool.with_room(self.pool, 2 * self._least)
        self.reserve = self._least


def gather(pools: Iterable[Pool]) -> OpenNodes:
    """The open nodes of all stores."""
    return join(
        [
            OpenNodes(
                pool.words[pool.heap[: pool.state.open]].view(np.uint8),
                pool.bound[pool.heap[: pool.state.open]],
                np.array([pool.state.floor, pool.state.root_bound]),
            )
            for pool in pools
        ]
    )


def load(pool: Pool, inst: Instance, root: Box, tree: OpenNodes, chosen: IntArray) -> Pool:
    """Put some of the nodes into a store; returns the store, enlarged if it had no room.

    Boxes are cut to the root and tightened, so nothing impossible gets in. All nodes share a family
    without vertices: each starts at a vertex of its own box.
    """
    pool = node_pool.with_room(pool, len(chosen) + 4)
    words = np.ascontiguousarray(tree.boxes[chosen]).view(np.uint64)
    node_pool.push_all(pool, inst, root, words, tree.bound[chosen])
    pool.state.floor, pool.state.root_bound = tree.numbers
    return pool


def nbytes(pool: Pool) -> int:
    """Memory of a store."""
    return sum(np.asarray(part).nbytes for part in pool)


class BoxTeam:
    """The workers, what they share, and the threads of all but the first."""

    def __init__(
        self, encoding: Encoding, n_workers: int, node_limit: int, store_bytes: int
    ) -> None:
        self.node_limit = node_limit
        self.store_bytes = store_bytes
        self.workers = [Worker(encoding) for _ in range(n_workers)]
        for worker in self.workers[1:]:  # what one learns about splits is known to all
            worker.work = worker.work._replace(gains=self.workers[0].work.gains)
        self.stop = np.zeros(1, dtype=np.int64)
        """Flag that ends compiled code."""
        self._lock = threading.RLock()  # entered by itself: an interrupt cannot leave it locked
        self._change = threading.Condition(self._lock)
        self._failure: BaseException | None = None
        self._is_resting = False
        self.is_sharing = False  # nodes; not before the root has its place: it may begin anew
        self._found: list[tuple[float, IntArray]] = []  # vertices with their values
        self._best: tuple[float, IntArray] | None = None

    def rest(self) -> None:
        """Wait a moment for something to change."""
        with self._lock:
            self._change.wait(REST)

    def raise_failure(self) -> None:
        """Raise in the caller's thread what went wrong in another."""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    @contextmanager
    def helpers(self, advance: Callable[[int], Status | None]) -> Iterator[None]:
        """Threads of all workers but the first, for the time of the block; ``advance`` does a
        portion of the work of the worker with that number.
        """

        def end() -> None:
            with self._lock:
                self.stop[0] = 1
                self._change.notify_all()

        bodies = [partial(self._help, advance, k) for k in range(1, len(self.workers))]
        with running(bodies, end):
            yield
        self.raise_failure()

    def _help(self, advance: Callable[[int], Status | None], number: int) -> None:
        """Body of a thread: portions while there are nodes, until the flag is raised."""
        try:
            while self.stop[0] == 0:
                if advance(number) is not None:
                    self.rest()
        except Stopped:
            pass  # its node stays among those in progress
        except BaseException as error:  # raised again in the caller's thread
            self._failure = error
            self.stop[0] = 1

    def load(self, inst: Instance, root: Box, tree: OpenNodes) -> None:
        """Deal out the nodes of an earlier call, the best ones first."""
        order = np.argsort(-tree.bound, kind="stable")
        for k, worker in enumerate(self.workers):
            own = order[k :: len(self.workers)]
            worker.pool = load(worker.pool, inst, root, tree, own)

    @property
    def nodes(self) -> int:
        """Nodes processed by all workers."""
        return sum(worker.nodes for worker in self.workers)

    @property
    def is_finished(self) -> bool:
        """Whether no worker has or holds a node."""
        with self._lock:
            return all(worker.is_out_of_work for worker in self.workers)

    @property
    def bound(self) -> float:
        """Largest bound of everything open, in progress or ever discarded."""
        with self._lock:
            return max(worker.bound for worker in self.workers)

    @property
    def found(self) -> list[tuple[float, IntArray]]:
        """Improvements that the run has not seen yet, the oldest first."""
        with self._lock:
            self._note(self.workers[0])
            return list(self._found)

    def forget(self) -> None:
        """The run has seen the oldest improvement. Not before: an interrupt must not lose a
        structure whose leaf is no longer in the tree.
        """
        with self._lock:
            del self._found[:1]

    def _note(self, worker: Worker) -> None:
        if worker.incumbent.found[0] != worker.reported:
            value, vertex = float(worker.incumbent.value[0]), worker.incumbent.vertex.copy()
            self._found.append((value, vertex))
            worker.reported = int(worker.incumbent.found[0])

    def announce(self, value: float, vertex: IntArray) -> None:
        """The best structure known, for every worker at its next batch."""
        with self._lock:
            self._best = (value, vertex.copy())
            self._adopt(self.workers[0])

    def _adopt(self, worker: Worker) -> None:
        if self._best is not None and not any(
            value > self._best[0] for value, _ in self._found
        ):  # what the run has not seen yet is kept
            worker.incumbent.value[0], worker.incumbent.vertex[:] = self._best

    @contextmanager
    def batch(self, worker: Worker) -> Iterator[int]:
        """Time of a batch of a worker, which has nodes and incumbent of others before, and shares
        its own afterwards; yields the number of nodes in total up to which it may go.
        """
        with self._lock:
            while self._is_resting and worker is not self.workers[0]:
                self._change.wait(REST)
            worker.receive()
            self._adopt(worker)
            worker.granted = UNLIMITED // 2
            if self.node_limit != UNLIMITED:  # a fair part of what is left and promised to nobody
                promised = sum(other.granted for other in self.workers if other is not worker)
                left = max(self.node_limit - self.nodes - promised, 0)
                worker.granted = -(-left // len(self.workers))
            limit = worker.nodes + worker.granted
            worker.claim = worker.bound
            worker.code = EXHAUSTED
            worker.is_busy = True
        try:
            yield limit
        except BaseException as error:
            if is_interrupt(error):  # it came before the kernel or after it: nothing is half done
                self._settle(worker)
            raise
        self._settle(worker)

    def _settle(self, worker: Worker) -> None:
        """A batch is over."""
        with self._lock:
            worker.is_busy = False
            worker.granted = 0
            if worker.code == POOL_FULL:
                worker.grow(self.store_bytes // len(self.workers))
            self._share(worker)
            self._change.notify_all()

    def _share(self, worker: Worker) -> None:
        """Post improvements; donate nodes to workers without any, or with worse ones only."""
        if worker is not self.workers[0]:
            self._note(worker)
        if not self.is_sharing:
            return
        best = node_pool.top_bound(worker.pool)
        incumbent = float(worker.incumbent.value[0])
        for other in self.workers:
            if other is worker or other.inbox.state.open > 0:
                continue
            if other.is_out_of_work:
                worker.donate(other, LARGEST_DONATION)
            elif best - other.bound > WORSE * (best - incumbent):
                worker.donate(other, SMALL_DONATION)

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
                    self.raise_failure()  # a worker that failed stays busy
                yield [pool for worker in self.workers for pool in (worker.pool, worker.inbox)]
            finally:
                self._is_resting = False
                self._change.notify_all()
