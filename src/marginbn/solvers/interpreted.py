"""Kernels as plain Python: for solves that are over before a compiler would be.

Every kernel is a Python function. Where its machine code is not at hand and the problem is small,
the function itself is called (:mod:`marginbn.solvers.compile` asks :data:`MODE`): the same
operations on the same numbers, some hundred times slower. Only sums that no bound depends on may be
added in another order by machine code (``REORDERED``), so a search takes the same way up to ties,
and its bounds carry the same allowance for rounding. It may change from one to the other between
two batches. If it will not end soon a compiler starts in the background, and the search goes on
with machine code as soon as that is there (:func:`leave_python`).

*Ctrl-C.* Machine code is never left in the middle of a change to the tree. Python is, in its main
thread, after any step. So kernels that work on the tree, which have a flag ``stop`` to end them,
run in a thread of their own while the main thread waits; an interrupt raises the flag, and is
raised again when the kernel has come back (:func:`undisturbed`).
"""

from __future__ import annotations

import _thread
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from marginbn.problem.problem import StructureProblem

MOST_FEATURES, MOST_ROWS = 11, 4000
"""Features and margin rows of a small problem (2000 samples of three classes)."""

FIRST_LOOK, PATIENCE = 1.0, 6.0
"""Seconds of computing after which a search looks whether it will end soon, and after which it is
worth the compiler anyway.
"""

HARDLY_PRUNED = 0.9
"""Open nodes per visited node above which a search will not end soon. Of nine problems that take 2
to 40 s in Python those above 6 s have .95 to 1.1 at the first look, the others .3 to .7.
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


class Compiler:
    """The compiler of this process. While it works and somebody waits for it clocks stand still."""

    def __init__(self) -> None:
        self.done = self.total = 0
        """Functions of a package compiled, and those that were missing before; not all of them
        may be needed.
        """
        self._lock = threading.RLock()
        self._waiting = 0  # threads that compile or wait
        self._since = 0.0
        self._seconds = 0.0
        self._package = ""
        self._count_left: Callable[[], int] = lambda: 0
        self._background: threading.Thread | None = None

    @property
    def seconds(self) -> float:
        """Seconds for which it was waited for."""
        with self._lock:
            running = time.perf_counter() - self._since if self._waiting else 0.0
            return self._seconds + running

    @property
    def text(self) -> str | None:
        """How far it is; None when nobody waits for it, or for a function that loads at once."""
        if not (self._waiting and self.total):
            return None
        bar = "#" * (BAR * self.done // self.total)
        return f"compiling, once [{bar:.<{BAR}}] {self.done} of {self.total} functions"

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Time that does not count."""
        with self._lock:
            if not self._waiting:
                self._since = time.perf_counter()
            self._waiting += 1
        try:
            yield
        finally:
            with self._lock:
                self._waiting -= 1
                if not self._waiting:
                    self._seconds += time.perf_counter() - self._since

    @contextmanager
    def working(self, package: str, count_left: Callable[[], int]) -> Iterator[None]:
        """Time in which functions of a package are compiled; ``count_left`` counts them."""
        in_background = threading.current_thread() is self._background
        if in_background or not self._waiting:
            if package != self._package:
                self._package, self.done, self.total = package, 0, 0
            self._count_left = count_left
        if in_background or self._waiting:
            yield
            return
        with self.waiting():
            try:
                yield
            finally:
                self._show("\r\x1b[K" if self.total and sys.stderr.isatty() else "")

    def step(self) -> None:
        """A further function is compiled; the thread in the background leaves after the last one
        of the program.
        """
        in_background = threading.current_thread() is self._background
        if in_background and not threading.main_thread().is_alive():
            raise SystemExit
        if not self.total:
            self.total = max(1, self._count_left())
            if self.total >= MANY and not (sys.stderr.isatty() or in_background):
                self._show(f"marginbn: compiling {self.total} functions, once\n")
        self.done = min(self.done + 1, self.total)
        if sys.stderr.isatty() and not in_background:
            self._show(f"\rmarginbn: {self.text}\x1b[K")

    def _show(self, text: str) -> None:
        with suppress(OSError):  # the terminal may be gone
            sys.stderr.write(text)
            sys.stderr.flush()

    def start(self, body: Callable[[], None]) -> None:
        """Compile in the background, unless that is going on."""
        if self._background is None:
            self._background = threading.Thread(target=body, name="marginbn compiler")
            self._background.start()

    def is_ready(self, patiently: bool) -> bool:
        """Whether that is done; patiently: after waiting for it."""
        background = self._background
        if background is None:
            return False
        if patiently:
            with self.waiting():
                background.join()
        if not background.is_alive():
            self._background = None
        return self._background is None


COMPILER = Compiler()

BAR = 20  # characters of the bar of compiling
MANY = 10
"""Functions whose compilation a line on stderr announces."""


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


def leave_python(
    nodes: int, n_open: int, elapsed: float, remaining: float, compile_seen: Callable[[], None]
) -> None:
    """Let ``compile_seen`` make machine code in the background if a search in plain Python will not
    end soon, with so many nodes visited and open, and go on with it as soon as it is there. Late,
    with so many seconds behind the search and left, it is waited for.
    """
    if not MODE.is_on:
        return
    computed = time.process_time() - MODE.since
    is_late = elapsed > SHARE * (elapsed + remaining)
    is_hard = computed > FIRST_LOOK and n_open > HARDLY_PRUNED * nodes
    if is_late or is_hard or computed > PATIENCE:
        COMPILER.start(compile_seen)
    if COMPILER.is_ready(patiently=is_late):
        MODE.is_on = False


def interpret(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Call a kernel that Python calls; its flag ``stop`` is an argument or a field of one."""
    code = function.__code__
    named = dict(zip(code.co_varnames[: code.co_argcount], args, strict=True))
    flags = [named.get("stop"), *(getattr(arg, "stop", None) for arg in args)]
    stop = next((flag for flag in flags if flag is not None), None)
    if stop is None or MODE.is_undisturbed:
        return function(*args)
    return undisturbed(function, args, stop)


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
