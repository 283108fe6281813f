"""Settings of the whole suite."""

import os
import signal

import pytest

from clock import Clock

# scikit-learn skips its array-API check unless SciPy was told to support it before its import.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

# A suite started in the background by a shell script inherits that Ctrl-C is ignored (POSIX), and
# so would the processes it starts: a real SIGINT of a test would go unheard.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

collect_ignore = ["conftest.py"]  # no doctests here, and docs/ has a file of this name too


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """In place of the clock by which time limits are measured."""
    stopped = Clock()
    monkeypatch.setattr("marginbn.solvers.run.time.perf_counter", stopped)
    return stopped
