"""Ctrl-C, SIGTERM and SIGHUP: signals that ask the program to end.

The library does not touch signals. The command line calls :func:`exit_on_signals` at its start and
:func:`handling_signals` while it works. From then on all three signals mean the same:

- *before the first structure* a signal raises KeyboardInterrupt, and the command ends;
- *during a search* (:meth:`Interrupts.raising`) it raises KeyboardInterrupt once, which ends the
  search with its best structure;
- *afterwards* it raises nothing: proof, model and summary are written, and a further search ends
  with its first structure. A second Ctrl-C after more than :data:`HURRY` seconds raises again.

Python drops exceptions that are raised inside a finaliser or a callback, and raises none while the
main thread runs compiled code. So a thread reads every signal from a pipe: it stops compiled code,
raises dropped interrupts again, and ends a program that has no result after :data:`PATIENCE`.
"""

from __future__ import annotations

import _thread
import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

PATIENCE = 1.0  # seconds that a program without a result may take to end by itself
HURRY = 1.0  # seconds after which a second Ctrl-C counts; some programs pass the first on twice
_TICK = 0.05  # seconds between two checks of whether the program has ended

T = TypeVar("T")
R = TypeVar("R")


class Interrupts:
    """The signals that this process has received so far."""

    def __init__(self) -> None:
        self.number: int | None = None  # the first signal that came
        self.count = 0
        self.has_result = False  # there is a structure to save
        self.is_program = False  # the command line, not a program that imported marginbn
        self.is_over = False  # the program has finished its work and is about to end
        self.message_written = False  # the last line
        self._first = 0.0
        self._may_raise = False  # inside a block that a KeyboardInterrupt ends normally
        self._was_dropped = False  # Python dropped a KeyboardInterrupt
        self._callbacks: list[Callable[[], None]] = []

    @property
    def requested(self) -> bool:
        """Whether the program should end."""
        return self.number is not None

    @property
    def exit_code(self) -> int:
        """Exit code of a program that ends without a result, as shells have it."""
        return 128 + (signal.SIGINT if self.number is None else self.number)

    @property
    def message(self) -> str:
        """Last line of a program that ends without a result."""
        name = signal.Signals(self.exit_code - 128).name
        cause = "interrupted" if name == "SIGINT" else f"ended by {name}"
        return f"{cause} before there was a result"

    def raise_if_requested(self) -> None:
        """Raise KeyboardInterrupt if the program should end and has no result."""
        if self.requested and not self.has_result:
            raise KeyboardInterrupt

    def handle(self, number: int, _: object = None) -> None:
        """Signal handler; Python calls it in the main thread."""
        now = time.perf_counter()
        self.count += 1
        if self.number is None:
            self.number, self._first = number, now
            wanted = self._may_raise or not self.has_result
        else:
            wanted = number == signal.SIGINT and now - self._first > HURRY
        if wanted or self._was_dropped:
            self._may_raise = self._was_dropped = False
            raise KeyboardInterrupt

    @contextmanager
    def raising(self) -> Iterator[None]:
        """Let one signal raise KeyboardInterrupt within the block, although there is a result."""
        self._may_raise = True
        try:
            yield
        finally:
            self._may_raise = False

    @contextmanager
    def calling(self, callback: Callable[[], None]) -> Iterator[None]:
        """Call ``callback`` from another thread if a signal comes within the block."""
        self._callbacks.append(callback)
        try:
            yield
        finally:
            self._callbacks.remove(callback)

    def call_back(self) -> None:
        """Call the callbacks of all active blocks, which stops compiled code."""
        for callback in list(self._callbacks):
            callback()

    def keep_unraisable(self, unraisable: Any) -> None:
        """Replacement of ``sys.unraisablehook`` that remembers a KeyboardInterrupt."""
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            self._was_dropped = True
        else:
            sys.__unraisablehook__(unraisable)

    def watch(self, pipe: int) -> None:
        """Body of the thread: wait for the first signal, and make sure that the program ends."""
        number = int.from_bytes(os.read(pipe, 1), "little")
        if number not in _SIGNALS:
            return  # the pipe is closed
        end = time.perf_counter() + PATIENCE
        self.call_back()
        while not (self.has_result or self.is_over):
            time.sleep(_TICK)
            if self._was_dropped:
                _thread.interrupt_main(signal.Signals(number))
            if time.perf_counter() > end and not (self.has_result or self.is_over):
                self.number = number
                exit_now(self)


@contextmanager
def as_keyboard_interrupt() -> Iterator[None]:
    """Turn any error of the block into KeyboardInterrupt if the program should end without result.

    Extension modules turn a KeyboardInterrupt that is raised inside them into other exceptions.
    """
    try:
        yield
    except Exception:
        INTERRUPTS.raise_if_requested()
        raise


def without_interrupting_children(run: Callable[[Iterable[T]], R], tasks: Iterable[T]) -> R:
    """Return ``run(tasks)``; the processes that it starts ignore Ctrl-C.

    A terminal sends Ctrl-C to all processes. The parent ends its children; otherwise each of them
    would print a traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):  # not on Windows
        return run(tasks)
    from multiprocessing import resource_tracker  # only where there are processes

    is_starting = True

    def one_by_one() -> Iterator[T]:
        for task in tasks:
            if is_starting:  # which unblocks the signal when it starts, so it must start first
                resource_tracker.ensure_running()
                signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            yield task

    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # children inherit it
    try:
        return run(one_by_one())
    finally:
        is_starting = False
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_children() -> None:
    """Kill the children of a process that ends at once; they would wait for ever."""
    processes = sys.modules.get("multiprocessing")
    if processes is not None:
        number = getattr(signal, "SIGKILL", signal.SIGTERM)  # as abrupt, on Windows
        for child in processes.active_children():
            with suppress(OSError):  # it has ended already
                os.kill(child.pid, number)  # children of some pools have no kill()


def exit_now(interrupts: Interrupts) -> None:
    """Print the last line and end the process at once."""
    _end_children()
    if not interrupts.message_written:
        with suppress(OSError):
            os.write(2, f"marginbn: {interrupts.message}\n".encode())
    os._exit(interrupts.exit_code)


INTERRUPTS = Interrupts()
"""Signals of this process; none are recorded unless :func:`exit_on_signals` was called."""

_SIGNALS = [getattr(signal, n) for n in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, n)]
"""The three signals, where the platform has them."""


def exit_on_signals() -> None:
    """Let signals end this process at once, with one line; it has done nothing yet.

    Signals that are ignored, as under ``nohup``, stay ignored.
    """
    INTERRUPTS.is_program = True

    def handler(number: int, _: object) -> None:
        INTERRUPTS.number = number
        exit_now(INTERRUPTS)

    _handle(handler)


def exit_if_interrupted(code: object) -> None:
    """End an interrupted program without the slow clean-up of interpreter and compiler."""
    if INTERRUPTS.requested and isinstance(code, int):
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        _end_children()  # their pool would do it in a step that is left out here
        atexit._run_exitfuncs()
        os._exit(code)


@contextmanager
def handling_signals() -> Iterator[None]:
    """Handle signals as described above; after the block the process ends and ignores them."""
    if not INTERRUPTS.is_program:
        yield
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    threading.Thread(target=INTERRUPTS.watch, args=(reading,), daemon=True).start()
    sys.unraisablehook = INTERRUPTS.keep_unraisable
    if sys.platform != "win32":  # where only sockets are accepted
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    _handle(INTERRUPTS.handle)
    try:
        yield
        INTERRUPTS.is_over = True
    finally:
        _handle(signal.SIG_IGN)


def _handle(handler: Any) -> None:
    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)
