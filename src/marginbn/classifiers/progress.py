"""What ``verbose=1`` shows: lines on stderr, or in a notebook a bar that moves.

A search is told by its objective, bound and gap whenever one of them improves; its bar shows how
much of the time limit is used. Work in steps, such as the folds of a validation, is told step by
step with the time that is left if all steps take as long.

What follows the search of a fit tells its phases, to whom listens (:func:`hearing_phases`).
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from html import escape
from typing import Any

from marginbn.network.wording import number, percent, seconds
from marginbn.solvers.result import SolveResult, TracePoint
from marginbn.solvers.run import ConsoleListener

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


class SearchProgress:
    """A listener to one search; call :meth:`close` with its result."""

    def __init__(self, time_limit: float | None) -> None:
        self._time_limit = time_limit or math.inf
        self._console = ConsoleListener()
        self._bar = ProgressBar("search") if in_notebook() else None

    def __call__(self, point: TracePoint) -> None:
        """Tell where the search is."""
        if self._bar is None:
            self._console(point)
        else:
            self._bar.show(point.seconds / self._time_limit, _describe(point))

    def close(self, result: SolveResult) -> None:
        """The bar is full when the search is over, and says how it ended."""
        if self._bar is not None:
            point = TracePoint(result.seconds, result.objective, result.bound, result.scale)
            ending = str(result.status).replace("_", " ")
            self._bar.show(1.0, f"{ending}; {_describe(point)}", last=True)


def _describe(point: TracePoint) -> str:
    values = f"objective {number(point.objective)}, bound {number(point.bound)}"
    more = [point.details] if point.details else []
    return ", ".join([values, f"gap {percent(point.gap)}", *more, seconds(point.seconds)])


class StepProgress:
    """Steps of about equal length, told as they are done.

    Parameters
    ----------
    what
        What is under way.
    n_steps
        Number of steps.
    """

    def __init__(self, what: str, n_steps: int) -> None:
        self._what, self._n_steps, self._done = what, n_steps, 0
        self._begin = time.monotonic()
        self._bar = ProgressBar(what) if in_notebook() else None
        if self._bar is not None:
            self._bar.show(0.0, f"0 of {n_steps}", last=True)

    def step(self, words: str) -> None:
        """One more step is done; say what came out."""
        self._done += 1
        text = f"{words} ({self._done} of {self._n_steps}{self._left()})"
        if self._bar is not None:
            self._bar.show(self._done / self._n_steps, text, last=True)
        else:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()

    def _left(self) -> str:
        spent, left = time.monotonic() - self._begin, self._n_steps - self._done
        if not left:
            return f", {seconds(spent)}"
        return f", about {seconds(spent / self._done * left)} left"


# --- notebooks ---

_REFRESH = 0.25
"""Seconds between two pictures of a bar."""


def in_notebook() -> bool:
    """Whether the program runs in a Jupyter kernel, where HTML can be shown."""
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return hasattr(shell, "kernel")


class ProgressBar:
    """A live bar below the running cell, redrawn a few times a second.

    Parameters
    ----------
    what
        What is under way.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._handle: Any = None
        self._last = -float("inf")

    def show(self, share: float, words: str, *, last: bool = False) -> None:
        """Show how much is done, between 0 and 1, and a line of words; the last is always shown."""
        now = time.monotonic()
        if now - self._last < _REFRESH and not last:
            return
        self._last = now
        display = sys.modules["IPython"].display  # in a notebook it is loaded already
        content = display.HTML(bar_html(self._what, share, words))
        if self._handle is None:
            self._handle = display.display(content, display_id=True)
        else:
            self._handle.update(content)


def bar_html(what: str, share: float, words: str) -> str:
    """A bar with words, readable on white and on black.

    Examples
    --------
    >>> "width:50.0%" in bar_html("search", 0.5, "gap 3 %")
    True
    """
    done = 100 * min(max(share, 0.0), 1.0)
    return (
        '<div role="progressbar" aria-valuemin="0" aria-valuemax="100" '
        f'aria-valuenow="{done:.0f}" aria-label="{escape(what)}" '
        'style="font:13px system-ui,sans-serif;max-width:42rem">'
        '<div style="height:8px;border-radius:4px;background:#8883;overflow:hidden">'
        f'<div style="height:100%;width:{done:.1f}%;background:#3b82c4"></div></div>'
        '<div style="font-variant-numeric:tabular-nums">'
        f"{escape(what)}: {escape(words)}</div></div>"
    )
