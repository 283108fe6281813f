"""Signals that ask a program for its end: Ctrl-C, SIGTERM, SIGHUP.

A library leaves signals alone: in Python, Ctrl-C is a KeyboardInterrupt, and ``Run.ending`` makes a
normal ending of it. The command line calls :func:`start_up` and :func:`listening`; from then on the
three signals mean the same, and what they do depends on what there is to lose.

*Before the first structure* a signal raises KeyboardInterrupt, and the command ends.

*During a search* (:meth:`Requests.heeding`) it raises KeyboardInterrupt once, which the search
takes as its end.

*Afterwards* nothing is raised: proof, model and summary are written undisturbed. A further search
of the same command ends with its first structure. Whoever presses Ctrl-C a second time, and not
just twice in a row, is in a hurry: that raises again.

An exception alone can get lost: Python forgets those that are raised inside a finaliser or a
callback, and raises none while the main thread is inside a compiler or a kernel. So a thread hears
every signal at once, through a pipe. It rings the bells that bring compiled code back, raises again
what Python forgot, and if nothing has come of it after :data:`PATIENCE` seconds it ends a program
that has no result to lose.
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

PATIENCE = 1.0
"""Seconds that a program without a result has to end by itself."""

HURRY = 1.0
"""Seconds after which a second Ctrl-C is meant; some programs pass the first one on twice."""

_TICK = 0.05
"""Seconds between two looks at whether a thread has ended."""

Bell = Callable[[], None]
T = TypeVar("T")
R = TypeVar("R")


class Requests:
    """What signals have asked of this process so far."""

    def __init__(self) -> None:
        self.number: int | None = None
        """The first signal that came."""
        self.count = 0
        self.has_result = False
        """Whether there is a structure to write down."""
        self.is_over = False
        """Whether the program has done its work and is about to end."""
        self.is_told = False
        """Whether the last line is written."""
        self._first = 0.0
        self._may_raise = False  # inside a block that a KeyboardInterrupt ends normally
        self._is_forgotten = False  # Python has dropped a KeyboardInterrupt
        self._bells: list[Bell] = []

    @property
    def asked(self) -> bool:
        """Whether the program should end."""
        return self.number is not None

    @property
    def exit_code(self) -> int:
        """Of a program that ends without a result, as shells count."""
        return 128 + (signal.SIGINT if self.number is None else self.number)

    @property
    def words(self) -> str:
        """What such a program has to say."""
        told = "interrupted" if self.exit_code == 130 else f"ended by {self._name}"
        return f"{told} before there was a result"

    @property
    def _name(self) -> str:
        return signal.Signals(self.exit_code - 128).name

    def raise_if_asked(self) -> None:
        """End here, if the program should end and has no result; for the time between two steps."""
        if self.asked and not self.has_result:
            raise KeyboardInterrupt

    def hear(self, number: int, _: object = None) -> None:
        """Handler in the main thread, between two steps of the interpreter."""
        now = time.perf_counter()
        self.count += 1
        if self.number is None:
            self.number, self._first = number, now
            wanted = self._may_raise or not self.has_result
        else:
            wanted = number == signal.SIGINT and now - self._first > HURRY
        if wanted or self._is_forgotten:
            self._may_raise = self._is_forgotten = False
            raise KeyboardInterrupt

    @contextmanager
    def heeding(self) -> Iterator[None]:
        """Time in which a signal raises although there is a result: the block ends normally by it.
        Only once, so that what follows is not disturbed.
        """
        self._may_raise = True
        try:
            yield
        finally:
            self._may_raise = False

    @contextmanager
    def bell(self, ring: Bell) -> Iterator[None]:
        """Call ``ring``, from another thread, when a signal comes while the block runs."""
        self._bells.append(ring)
        try:
            yield
        finally:
            self._bells.remove(ring)

    def ring(self) -> None:
        """Bring compiled code back."""
        for ring in list(self._bells):
            ring()

    def forgot(self, unraisable: Any) -> None:
        """In place of ``sys.unraisablehook``: a KeyboardInterrupt must not get lost."""
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            self._is_forgotten = True
        else:
            sys.__unraisablehook__(unraisable)

    def attend(self, pipe: int) -> None:
        """Body of the thread: hear signals at once, and see that something comes of the first."""
        number = int.from_bytes(os.read(pipe, 1), "little")
        if number not in _signals():
            return  # the pipe is closed
        end = time.perf_counter() + PATIENCE
        self.ring()
        while not (self.has_result or self.is_over):
            time.sleep(_TICK)
            if self._is_forgotten:
                _thread.interrupt_main(signal.Signals(number))
            if time.perf_counter() > end and not (self.has_result or self.is_over):
                self.number = number
                leave(self)


@contextmanager
def undisguised() -> Iterator[None]:
    """A KeyboardInterrupt inside an extension module may come out as another exception: where an
    end was asked for and there is no result, whatever ends the block is that interrupt.
    """
    try:
        yield
    except Exception as error:
        if REQUESTS.asked and not REQUESTS.has_result:
            raise KeyboardInterrupt from error
        raise


def in_deaf_children(run: Callable[[Iterable[T]], R], tasks: Iterable[T]) -> R:
    """``run(tasks)``; processes that it starts do not hear Ctrl-C, which a terminal sends to all:
    whoever started them ends them. Otherwise each of them tells in its own words what happened,
    over many lines while it is still starting.
    """
    if not hasattr(signal, "pthread_sigmask"):  # not on Windows
        return run(tasks)
    from multiprocessing import resource_tracker  # only where there are processes

    is_starting = True

    def one_by_one() -> Iterator[T]:
        for task in tasks:
            if is_starting:  # starting the helper of all pools unblocks it: so that comes first
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
    """Of a process that ends at once: they have nothing left to do, and would wait for ever."""
    processes = sys.modules.get("multiprocessing")
    if processes is not None:
        number = getattr(signal, "SIGKILL", signal.SIGTERM)  # which is as hard on Windows
        for child in processes.active_children():
            with suppress(OSError):  # it has ended, or is not ours
                os.kill(child.pid, number)  # its own method is missing in some pools


def leave(requests: Requests) -> None:
    """End the process here and now, with the line that tells why; whatever it waits for."""
    _end_children()
    if not requests.is_told:
        with suppress(OSError):
            os.write(2, f"marginbn: {requests.words}\n".encode())
    os._exit(requests.exit_code)


REQUESTS = Requests()
"""Of this process. Nothing is ever asked where :func:`start_up` was not called."""

_is_program = False


def _signals() -> list[int]:
    """Those that ask for an end, on this platform."""
    return [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if name in _NAMES]


_NAMES = dir(signal)


def start_up() -> None:
    """Let signals end this process at once and without a word too many; it has done nothing yet.

    Signals that are ignored, as under ``nohup``, stay so.
    """
    global _is_program
    _is_program = True

    def leave_at_once(number: int, _: object) -> None:
        REQUESTS.number = number
        leave(REQUESTS)

    _handle(leave_at_once)


def is_program() -> bool:
    """Whether this process is the command line, and not one that imported it."""
    return _is_program


def end_quickly(code: object) -> None:
    """End a program that was asked to: taking an interpreter with a compiler in it apart lasts."""
    if REQUESTS.asked and isinstance(code, int):
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        _end_children()  # a pool is told to end by a step that is left out here
        atexit._run_exitfuncs()
        os._exit(code)


@contextmanager
def listening() -> Iterator[None]:
    """Hear signals as described above; afterwards the process is about to end and hears none."""
    if not _is_program:
        yield
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    threading.Thread(target=REQUESTS.attend, args=(reading,), daemon=True).start()
    sys.unraisablehook = REQUESTS.forgot
    if sys.platform != "win32":  # there it takes a socket
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    _handle(REQUESTS.hear)
    try:
        yield
        REQUESTS.is_over = True
    finally:
        _handle(signal.SIG_IGN)


def _handle(handler: Any) -> None:
    for number in _signals():
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)
