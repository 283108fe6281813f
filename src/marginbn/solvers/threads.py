"""Threads of workers for the time of a search."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

NAME = "marginbn worker"
"""Of the threads, with a number."""


@contextmanager
def running(
    bodies: Sequence[Callable[[], None]], send_home: Callable[[], None], patience: float = math.inf
) -> Iterator[None]:
    """A thread for each body while the block runs.

    Whatever ends the block, Ctrl-C in the middle of the start too, ``send_home`` must make the
    bodies return. They are waited for, up to ``patience`` seconds in all.
    """
    threads = [
        threading.Thread(target=body, name=f"{NAME} {k}", daemon=True)
        for k, body in enumerate(bodies, 1)
    ]
    try:
        for thread in threads:
            thread.start()
        yield
    finally:
        if threads:
            _end(threads, send_home, patience)


def _end(threads: list[threading.Thread], send_home: Callable[[], None], patience: float) -> None:
    try:
        send_home()
    except KeyboardInterrupt:  # nobody may be left who has not heard of the end
        send_home()
        raise
    leave = time.perf_counter() + patience
    for thread in threads:
        if thread.is_alive():  # an interrupt may have come before its start
            thread.join(None if math.isinf(leave) else max(0.0, leave - time.perf_counter()))
