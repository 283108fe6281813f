"""One mutant before its tests, in a forked process.

The process that forks has imported what takes long, and of the package only what does not lead to
the module in question. So a child imports the rest, with the mutant in place of that module, and
runs pytest until the first test fails. It may use a few times the processor time that the tests
need without a mutant; one that uses more, waits forever or takes all memory counts as noticed.
"""

from __future__ import annotations

import gc
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import resource
import signal
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Literal, NoReturn

Verdict = Literal["killed", "timeout", "survived"]

PRELOADED = (
    "numpy", "scipy.special", "scipy.optimize", "scipy.sparse", "sklearn.base", "sklearn.utils",
    "hypothesis.strategies", "hypothesis.extra.numpy", "narwhals", "numba", "joblib", "highspy",
    "pytest",
)  # fmt: skip
"""Imported once, before forking."""

MEMORY = 8 * 2**30
"""Bytes of address space of a child; a mutant that wants more is noticed by that."""

WAITING = 10
"""A child may take so many times its processor time on the clock: others use the machine too."""


PIPE = 60_000
"""Bytes that a pipe takes without anybody reading."""


@dataclass(frozen=True)
class Outcome:
    """How a trial ended.

    Attributes
    ----------
    killer
        The test that failed first.
    seconds
        Processor time.
    beneath
        Modules of the package that were complete before the one in question was imported.
    """

    verdict: Verdict
    killer: str
    seconds: float
    beneath: tuple[str, ...] = ()


def preload(names: Sequence[str] = PRELOADED) -> None:
    """Import what every child would import."""
    for name in names:
        with suppress(ImportError):
            importlib.import_module(name)


def wake_compiler() -> None:
    """Compile something: numba imports most of itself only then."""
    with suppress(ImportError):
        compiler: Any = importlib.import_module("numba")
        compiler.njit(_next)(1)


def _next(number: int) -> int:
    return number + 1


class Replacement(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from a code object instead of its file."""

    def __init__(self, name: str, path: Path, code: CodeType) -> None:
        self.name, self.path, self.code = name, path, code
        self.beneath: list[str] = []

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        """The module if it is the one."""
        if fullname != self.name:
            return None
        return importlib.util.spec_from_file_location(fullname, self.path, loader=self)

    def exec_module(self, module: ModuleType) -> None:
        """Run the code."""
        self.beneath = [name for name in list(sys.modules) if _is_complete(name)]
        exec(self.code, module.__dict__)


def _is_complete(name: str) -> bool:
    """Whether a module of the package and all that it is part of are imported to the end."""
    parts = name.split(".")
    chain = [sys.modules.get(".".join(parts[: depth + 1])) for depth in range(len(parts))]
    unfinished = (getattr(getattr(m, "__spec__", None), "_initializing", True) for m in chain)
    return parts[0] == "marginbn" and not any(unfinished)


def run_trial(replacement: Replacement, tests: Sequence[str], limit: float) -> Outcome:
    """Fork, run the tests, wait; ``limit`` is in seconds of processor time."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _be_the_child(replacement, tests, limit, writing)
    os.close(writing)
    _, status, usage = os.wait4(child, 0)
    with suppress(ProcessLookupError):  # processes that a test started
        os.killpg(child, signal.SIGKILL)
    killer, beneath = _read_report(reading)
    return Outcome(_verdict(status), killer, usage.ru_utime + usage.ru_stime, tuple(beneath))


def _read_report(reading: int) -> tuple[str, list[str]]:
    """What the child has written, if it lived long enough."""
    os.set_blocking(reading, False)
    try:
        killer, beneath = json.loads(os.read(reading, PIPE))
    except (BlockingIOError, ValueError):
        killer, beneath = "", []
    os.close(reading)
    return killer, beneath


def _verdict(status: int) -> Verdict:
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGPROF, signal.SIGALRM):
        return "timeout"
    return "survived" if status == 0 else "killed"


def _be_the_child(
    replacement: Replacement, tests: Sequence[str], limit: float, writing: int
) -> NoReturn:
    """Run the tests and end the process with 0 if all passed."""
    code = 1
    try:
        _confine(limit)
        sys.meta_path.insert(0, replacement)
        killer, code = run_tests(tests)
        os.write(writing, json.dumps([killer[:1000], replacement.beneath]).encode()[:PIPE])
    except BaseException:
        os.write(writing, json.dumps([traceback.format_exc(limit=-1)[-1000:], []]).encode())
    finally:
        os._exit(code)


def _confine(limit: float) -> None:
    """Silence, a session of its own, and an end to time and memory."""
    gc.freeze()  # pytest collects garbage twice: what the parent has imported is none
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, limit)
    signal.setitimer(signal.ITIMER_REAL, WAITING * limit)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run_tests(tests: Sequence[str]) -> tuple[str, int]:
    """Name of the first test that fails, if any, and pytest's exit code.

    Random tests draw the same numbers every time, and what they find is neither made smaller, which
    takes long, nor kept for later runs.
    """
    import pytest
    from hypothesis import Phase, settings

    settings.register_profile(
        "mutation", derandomize=True, database=None, phases=[Phase.explicit, Phase.generate]
    )
    settings.load_profile("mutation")
    watcher = _Watcher()
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "_hypothesis_pytestplugin", "--tb=no"]
    quiet = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # imported before forking
    code = int(pytest.main([*options, *quiet, *tests], plugins=[watcher]))
    return watcher.killer, code


class _Watcher:
    """A plugin of pytest that remembers the first failure."""

    killer = ""

    def pytest_runtest_logreport(self, report: object) -> None:
        if getattr(report, "failed", False):
            self.killer = self.killer or str(getattr(report, "nodeid", ""))

    def pytest_collectreport(self, report: object) -> None:
        self.pytest_runtest_logreport(report)
