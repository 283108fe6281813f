"""Settings of all tests and doctests."""

from __future__ import annotations

import doctest
import os
import signal
import subprocess
import sys

import pytest
from hypothesis import settings

from clock import Clock

# scikit-learn skips its array-API check unless SciPy was told to support it before its import.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

# A suite started in the background by a shell script inherits that Ctrl-C is ignored (POSIX), one
# started by nohup that SIGHUP is, and so would the processes it starts: a real signal of a test
# would have no effect, and the test would wait for ever.
for _name, _handler in (
    ("SIGINT", signal.default_int_handler),
    ("SIGTERM", signal.SIG_DFL),
    ("SIGHUP", signal.SIG_DFL),
):
    if hasattr(signal, _name) and signal.getsignal(getattr(signal, _name)) is signal.SIG_IGN:
        signal.signal(getattr(signal, _name), _handler)

# The default run uses the same examples everywhere; `--hypothesis-profile=new` draws others.
settings.register_profile("same", derandomize=True)
settings.register_profile("new", print_blob=True)
settings.load_profile("same")

collect_ignore = ["conftest.py"]  # docs/ has a file of this name too


def pytest_configure(config: pytest.Config) -> None:
    """Compile the kernels before a suite in several processes. Otherwise each would compile them,
    and a search in plain Python might be repeated by machine code that another has just made.
    """
    if not getattr(config.option, "numprocesses", None) or hasattr(config, "workerinput"):
        return
    from marginbn.solvers.branch_bound.engine import LARGEST
    from marginbn.solvers.compile import is_at_hand

    if not is_at_hand(LARGEST):
        subprocess.run([sys.executable, str(config.rootpath / "tests" / "compile_kernels.py")])


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """In place of the clock by which time limits are measured."""
    stopped = Clock()
    monkeypatch.setattr("marginbn.solvers.run.time.perf_counter", stopped)
    return stopped


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Run the example of the class first, so that no method repeats its set-up."""
    if isinstance(item, pytest.DoctestItem) and item.dtest is not None:
        path, _, _ = item.dtest.name.rpartition(".")
        owner = item.dtest.globs.get(path.rpartition(".")[2])
        if isinstance(owner, type) and path == f"{owner.__module__}.{owner.__qualname__}":
            for example in doctest.DocTestParser().get_examples(owner.__doc__ or ""):
                exec(compile(example.source, path, "single"), item.dtest.globs)


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Close the figures that the examples of docstrings leave open."""
    if isinstance(item, pytest.DoctestItem) and "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
