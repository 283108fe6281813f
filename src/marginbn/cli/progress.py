"""The line on stderr that tells how a search goes."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from marginbn.solvers.result import TracePoint

_TICK = 0.2  # seconds between two looks at the clock
_LONGEST_PAUSE = 60.0  # seconds between two lines of a log


class ProgressLine:
    """Objective, bound, gap and time; a callback for solvers and a context manager.

    On a terminal one line is rewritten in place and wiped at the end. Elsewhere lines are added,
    after 1, 2, 4, ... seconds and then every minute, so that a log stays short.
    """

    def __init__(self, enabled: bool = True) -> None:
        self._enabled = enabled
        self._on_terminal = sys.stderr.isatty()
        self._point: TracePoint | None = None
        self._start = time.perf_counter()
        self._next_line = 1.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def __call__(self, point: TracePoint) -> None:
        """Remember the latest numbers; the thread shows them."""
        self._point = point

    def __enter__(self) -> ProgressLine:
        self._start = time.perf_counter()
        if self._enabled:
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop.set()
        if self._enabled:
            self._thread.join()
            if self._on_terminal:
                _write("\r\x1b[K")

    def _work(self) -> None:
        while not self._stop.wait(_TICK):
            elapsed = time.perf_counter() - self._start
            if self._on_terminal:
                columns = shutil.get_terminal_size().columns
                _write(f"\r{self.text(elapsed, hint=True)[: columns - 1]}\x1b[K")
            elif elapsed >= self._next_line:
                _write(f"{self.text(elapsed)}\n")
                self._next_line = elapsed + min(elapsed, _LONGEST_PAUSE)

    def text(self, elapsed: float, *, hint: bool = False) -> str:
        """The line, at most 79 characters for scores of usual size."""
        from marginbn.network.wording import number, percent

        if self._point is None:
            return f"{elapsed:6.1f} s  preparing"
        line = (
            f"{elapsed:6.1f} s  objective {number(self._point.objective)}  "
            f"bound {number(self._point.bound)}  gap {percent(self._point.gap)}"
        )
        return f"{line}  (Ctrl-C keeps it)" if hint else line


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
