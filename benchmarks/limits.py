"""Whether limits are kept: of time on 24 shapes, of memory on 30 random ones.

python -m benchmarks run time-limits
python -m benchmarks run memory-limits

One process per shape, one at a time. Time: seconds of ``fit`` beyond the limit, and when the first
bound came that is better than gamma for every row (None where gamma for every row is a bound within
the tolerance, or none came). On a machine that is shared with others, ``MARGINBN_CLOCK=processor``
lets every clock count processor seconds, which an idle core has as many of as the wall.

Memory: the most that the process held, beyond what it held before ``fit``; a refusal is a good
answer if it says what to reduce. The address space is limited to :data:`NET`, so that a broken
limit ends the process and not the machine.
"""

from __future__ import annotations

import re
import resource
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import CLOCK
from benchmarks.growth import random_rows

MEMORY_LIMIT = 2 * 10**9
NET = 8 * 10**9
"""Bytes of address space; much of it is reserved and never touched."""

SEARCH_TIME = 10.0
"""Time limit where memory is measured."""


@dataclass(frozen=True)
class Limited:
    """A shape with its limit of time in seconds."""

    kind: str
    rows: int
    features: int
    classes: int
    parents: int
    seconds: float

    @property
    def key(self) -> str:
        """Name of the measurement."""
        shape = f"{self.rows}x{self.features}x{self.classes}"
        return f"{self.kind}-{shape}-{self.parents}-{self.seconds:g}s"


TIMES = [
    (1_000, 10, 2, 2, 0.1),
    (1_000, 30, 2, 2, 0.1),
    (10_000, 30, 2, 2, 0.1),
    (1_000, 100, 2, 1, 0.1),
    (10_000, 20, 10, 2, 0.3),
    (100_000, 10, 2, 2, 0.3),
    (1_000, 300, 2, 1, 0.5),
    (10_000, 57, 2, 2, 1.0),
    (100_000, 30, 2, 1, 1.0),
    (30_000, 30, 5, 2, 1.0),
    (10_000, 100, 2, 1, 2.0),
    (100_000, 30, 2, 2, 2.0),
    (3_000, 200, 2, 2, 3.0),
    (300_000, 20, 3, 2, 5.0),
    (10_000, 300, 2, 1, 5.0),
    (100_000, 50, 2, 2, 10.0),
    (10_000, 20, 50, 2, 10.0),
    (1_000_000, 10, 2, 2, 15.0),
    (1_000_000, 30, 2, 2, 30.0),
    (10_000, 1_000, 2, 1, 30.0),
]
BARS = [
    (100_000, 30, 2, 2, 30.0),
    (1_000_000, 30, 2, 2, 120.0),
    (1_000, 300, 2, 1, 10.0),
    (10_000, 1_000, 2, 1, 60.0),
]
"""Rows, features, classes, parents and seconds."""


def time_limits() -> list[Limited]:
    """20 shapes with limits of a tenth of a second to half a minute, and four that were out of
    reach once.
    """
    return [Limited("time", *shape) for shape in (*TIMES, *BARS)]


def memory_limits(count: int = 30) -> list[Limited]:
    """Random shapes up to 1e6 rows, 100 features and 20 classes; the largest corner among them."""
    rng = np.random.default_rng(18)
    shapes = [(1_000_000, 100, 20, 2)]
    while len(shapes) < count:
        rows, features = (int(10 ** rng.uniform(*ends)) for ends in ((3, 6), (1, 2)))
        shapes.append((rows, features, int(rng.integers(2, 21)), int(rng.integers(1, 3))))
    return [Limited("memory", *shape, SEARCH_TIME) for shape in shapes]


def measure(key: str) -> dict[str, Any]:
    """One measurement, in this process."""
    warnings.simplefilter("ignore")
    shape = next(s for s in (*time_limits(), *memory_limits()) if s.key == key)
    from marginbn import MaxMarginBNClassifier, Search

    few = random_rows(40, min(shape.features, 300), 2)
    for rows in ("all", "groups"):  # a compiler is not what is measured
        MaxMarginBNClassifier(
            max_parents=1,
            time_limit=0.1,
            search=Search(rows=rows),
            column_kinds="categorical",
        ).fit(*few)
    made = _time(shape) if shape.kind == "time" else _memory(shape)
    return {"key": key, "limit": shape.seconds} | made


def _time(shape: Limited) -> dict[str, Any]:
    from marginbn import MaxMarginBNClassifier, Search
    from marginbn.solvers import TracePoint

    X, y = random_rows(shape.rows, shape.features, shape.classes)
    seen: list[tuple[float, TracePoint]] = []
    classifier = MaxMarginBNClassifier(
        max_parents=shape.parents,
        time_limit=shape.seconds,
        column_kinds="categorical",
        search=Search(callback=lambda point: seen.append((time.perf_counter(), point))),
    )
    begin, used = time.perf_counter(), time.process_time()
    classifier.fit(X, y)
    seconds, result = time.perf_counter() - begin, classifier.result_
    trivial = classifier.gamma_ * shape.rows
    first = [moment for moment, point in seen if point.bound < trivial * (1 - 1e-9)]
    return {
        "clock": CLOCK,
        "seconds": seconds,
        "processor": time.process_time() - used,
        "overrun": seconds - shape.seconds,
        "before_search": seen[0][0] - begin - seen[0][1].seconds,
        "first_bound": first[0] - begin if first else None,
        "gap": result.gap,
        "nodes": result.nodes,
        "peak": _held("VmHWM") / 1e9,
    }


def _memory(shape: Limited) -> dict[str, Any]:
    from marginbn import MaxMarginBNClassifier, Search
    from marginbn.exceptions import ProblemTooLargeError

    X, y = random_rows(shape.rows, shape.features, shape.classes)
    resource.setrlimit(resource.RLIMIT_AS, (NET, NET))
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = _held("VmRSS")
    classifier = MaxMarginBNClassifier(
        max_parents=shape.parents,
        time_limit=shape.seconds,
        search=Search(memory_limit=MEMORY_LIMIT),
        column_kinds="categorical",
    )
    refusal, gap = None, None
    try:
        gap = classifier.fit(X, y).result_.gap
    except ProblemTooLargeError as error:
        refusal = str(error)
    peak = _held("VmHWM")
    return {"gigabytes": (peak - before) / 1e9, "peak": peak / 1e9, "gap": gap, "refusal": refusal}


def _held(name: str) -> int:
    """Bytes that the system counts for this process."""
    text = Path("/proc/self/status").read_text()
    found = re.search(name + r":\s*(\d+)", text)
    return 1024 * int(found[1]) if found else 0
