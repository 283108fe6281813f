"""When a solve must end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from marginbn.exceptions import InputError


@dataclass(frozen=True)
class Limits:
    """Limits of one solve; ``None`` means no limit.

    Parameters
    ----------
    time
        Wall-clock seconds.
    nodes
        Nodes of the search tree.
    memory
        Bytes that the solve may take (:mod:`marginbn.solvers.memory`); ``None`` means most of what
        the machine has left.
    gap
        Relative gap (:func:`marginbn.solvers.result.relative_gap`) at which the search may stop.
    """

    time: float | None = None
    nodes: int | None = None
    gap: float = 1e-6
    memory: int | None = None

    def __post_init__(self) -> None:
        if self.time is not None and not self.time > 0:
            raise InputError(f"time_limit must be positive seconds or None, got {self.time}")
        if self.nodes is not None and not self.nodes > 0:
            raise InputError(f"node_limit must be a positive integer or None, got {self.nodes}")
        if self.memory is not None and not self.memory > 0:
            raise InputError(f"memory_limit must be positive bytes or None, got {self.memory}")
        if not 0 <= self.gap < float("inf"):
            raise InputError(f"gap_tolerance must be a number of at least 0, got {self.gap}")


@dataclass(frozen=True)
class Deadline:
    """A clock that starts when it is made."""

    limits: Limits
    start: float = field(default_factory=time.perf_counter)

    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.start

    def remaining(self) -> float:
        """Seconds left; infinite without a time limit, never negative."""
        if self.limits.time is None:
            return float("inf")
        return max(0.0, self.limits.time - self.elapsed())

    def expired(self) -> bool:
        """Whether the time limit is reached."""
        return self.remaining() <= 0.0

    @contextmanager
    def ringing(self, ring: Callable[[], None]) -> Iterator[None]:
        """Call ``ring`` from a thread of its own when the time is up while the block still runs."""
        remaining = self.remaining()
        if remaining == float("inf"):
            yield
            return
        timer = threading.Timer(remaining, ring)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
