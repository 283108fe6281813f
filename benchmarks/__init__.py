"""Speed: instances, one record per run, tables with ratios. See ``python -m benchmarks --help``."""

from __future__ import annotations

import os
import time

CLOCK = os.environ.get("MARGINBN_CLOCK", "wall")
"""By which limits of time are measured: "wall", or "processor" on a machine that others use too."""


def _count_processor_time() -> None:
    """In place of the clocks by which limits are measured; before anything of ours is loaded. What
    sleeps has other clocks.
    """
    import concurrent.futures
    import queue
    import threading

    import numba
    import sklearn

    del concurrent, queue, threading, numba, sklearn  # they know the clocks now
    time.perf_counter = time.monotonic = time.process_time


if CLOCK == "processor":
    _count_processor_time()
