"""Notebooks: whether this is one, and what changes there while one looks on.

Nothing is imported: in a notebook IPython is loaded already.
"""

from __future__ import annotations

import sys
import time
from html import escape
from typing import Any

_REFRESH = 0.25
"""Seconds between two pictures of a bar."""


def in_notebook() -> bool:
    """Whether the program runs in a Jupyter kernel, where HTML can be shown."""
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return hasattr(shell, "kernel")


def show_html(text: str) -> None:
    """Show HTML below the cell that is running."""
    LiveHTML().show(text)


class LiveHTML:
    """A piece of HTML below the running cell that can be replaced."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, text: str) -> None:
        """Show the text in place of the last one."""
        display = sys.modules["IPython"].display
        content = display.HTML(text)
        if self._handle is None:
            self._handle = display.display(content, display_id=True)
        else:
            self._handle.update(content)


class ProgressBar:
    """A live bar below the running cell, redrawn a few times a second.

    Parameters
    ----------
    what
        What is under way.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._live = LiveHTML()
        self._last = -float("inf")

    def show(self, share: float, words: str, *, last: bool = False) -> None:
        """Show how much is done, between 0 and 1, and a line of words; the last is always shown."""
        now = time.monotonic()
        if now - self._last < _REFRESH and not last:
            return
        self._last = now
        self._live.show(bar_html(self._what, share, words))


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
