"""Settings of the whole suite."""

import os
import signal

import pytest
from hypothesis import settings

from clock import Clock

# scikit-learn skips its array-API check unless SciPy was told to support it before its import.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

# A suite started in the background by a shell script inherits that Ctrl-C is ignored (POSIX), one
# started by nohup that SIGHUP is, and so would the processes it starts: a real signal of a test
# would go unheard, and the test would wait for ever.
for _name, _handler in (
    ("SIGINT", signal.default_int_handler),
    ("SIGTERM", signal.SIG_DFL),
    ("SIGHUP", signal.SIG_DFL),
):
    if hasattr(signal, _name) and signal.getsignal(getattr(signal, _name)) is signal.SIG_IGN:
        signal.signal(getattr(signal, _name), _handler)

# The default run sees the same examples everywhere; `--hypothesis-profile=new` looks for others.
settings.register_profile("same", derandomize=True)
settings.register_profile("new", print_blob=True)
settings.load_profile("same")

collect_ignore = ["conftest.py"]  # no doctests here, and docs/ has a file of this name too


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """In place of the clock by which time limits are measured."""
    stopped = Clock()
    monkeypatch.setattr("marginbn.solvers.run.time.perf_counter", stopped)
    return stopped
