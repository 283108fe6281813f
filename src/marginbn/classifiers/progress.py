"""What ``verbose=1`` shows besides the search: phases of a fit, and steps of a validation.

What follows the search of a fit tells its phases, to whom listens (:func:`hearing_phases`). Work in
steps, such as the folds of a validation, is told step by step with the time that is left if all
steps take as long.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from marginbn.network.wording import seconds

_LISTENER: ContextVar[Callable[[str], object] | None] = ContextVar("listener", default=None)


@contextmanager
def hearing_phases(listener: Callable[[str], object]) -> Iterator[None]:
    """Call the listener with every phase that begins."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def tell_phase(text: str) -> None:
    """A phase begins, or goes on."""
    listener = _LISTENER.get()
    if listener is not None:
        listener(text)


class StepProgress:
    """So many steps of about equal length, told on stderr as they are done."""

    def __init__(self, n_steps: int) -> None:
        self._n_steps, self._done = n_steps, 0
        self._begin = time.monotonic()

    def step(self, words: str) -> None:
        """One more step is done; say what came out."""
        self._done += 1
        spent, left = time.monotonic() - self._begin, self._n_steps - self._done
        rest = f"about {seconds(spent / self._done * left)} left" if left else seconds(spent)
        sys.stderr.write(f"{words} ({self._done} of {self._n_steps}, {rest})\n")
        sys.stderr.flush()
