"""Kernels as plain Python: for solves that are over before a compiler would be.

Every kernel is a Python function. Where its machine code is not at hand and the problem is small,
the function itself is called (:mod:`marginbn.solvers.compile` asks :data:`MODE`): the same
operations on the same numbers, some hundred times slower. Only sums that no bound depends on may be
added in another order by machine code (``reordered``), so a search takes the same way up to ties,
and its bounds carry the same allowance for rounding. It may change from one to the other between
two batches: after :data:`PATIENCE` seconds it does.

*Ctrl-C.* Machine code is never left in the middle of a change to the tree. Python is, in its main
thread, after any step. So kernels that work on the tree, which have a flag ``stop`` to end them,
run in a thread of their own while the main thread waits; an interrupt raises the flag, and is
raised again when the kernel has come back (:func:`undisturbed`).
"""

from __future__ import annotations

import _thread
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from marginbn.problem.problem import StructureProblem

MOST_FEATURES, MOST_ROWS = 11, 4000
"""Features and margin rows of a small problem (2000 samples of three classes)."""

PATIENCE = 6.0
"""Seconds of computing after which a search is worth the compiler, which takes many times that:
small problems end before, and others lose little.
"""

WAKE = 0.05
"""Seconds after which the waiting main thread looks for signals. One that comes between its last
look and its falling asleep does not wake it.
"""

SHARE = 0.4
"""The same as a part of a time limit: a batch in Python may take as long again, and machine code
does in what is left many times what Python did before.
"""


class Mode(threading.local):
    """How kernels run in this thread."""

    is_on = False
    """Whether kernels are interpreted."""

    is_undisturbed = False
    """Whether no interrupt can come."""

    since = 0.0
    """Seconds that the process had computed before."""


MODE = Mode()


def is_small(problem: StructureProblem) -> bool:
    """Whether Python is fast enough for a problem."""
    margins = problem.margins
    rows = 0 if margins is None else margins.n_samples * margins.n_rivals
    return problem.n_variables - 1 <= MOST_FEATURES and rows <= MOST_ROWS


@contextmanager
def interpreting(wanted: bool = True) -> Iterator[None]:
    """Time in which kernels called by this thread are interpreted, if that is wanted."""
    if not wanted:
        yield
        return
    before = MODE.is_on
    MODE.is_on, MODE.since = True, time.process_time()
    try:
        with np.errstate(all="ignore"):  # machine code says nothing either
            yield
    finally:
        MODE.is_on = before


def is_slow(elapsed: float, remaining: float) -> bool:
    """Whether a search in plain Python, with so many seconds behind it and left, should go on with
    machine code.
    """
    computed = time.process_time() - MODE.since
    return MODE.is_on and (computed > PATIENCE or elapsed > SHARE * (elapsed + remaining))


def interpret(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Call a kernel that Python calls."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    if "stop" in names and not MODE.is_undisturbed:
        return undisturbed(function, args, args[names.index("stop")])
    return function(*args)


def undisturbed(function: Callable[..., Any], args: tuple[Any, ...], stop: Any) -> Any:
    """Call a kernel in another thread; Ctrl-C raises its flag and comes out when it is back."""
    results: list[Any] = []
    failures: list[BaseException] = []
    is_back = threading.Event()

    def body() -> None:
        MODE.is_on = MODE.is_undisturbed = True
        try:
            with np.errstate(all="ignore"):
                results.append(function(*args))
        except BaseException as error:  # raised again in the caller's thread
            failures.append(error)
        finally:
            is_back.set()

    is_begun = False
    while not is_back.is_set():
        try:
            if not is_begun:
                is_begun = True
                _thread.start_new_thread(body, ())  # waits for nothing, unlike Thread.start
            is_back.wait(WAKE)  # unlike Thread.join it may be interrupted and called again
        except KeyboardInterrupt as error:
            stop[0] = 1
            failures.append(error)
    if failures:
        raise failures[0]
    return results[0]
