"""Scheduler and workers as programs of their own: whatever one of them does, there is a result."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from test_cluster import problem_of

import marginbn
from marginbn import OptimalityWarning, Search, SolveResult, solve_structure
from marginbn.solvers import cluster
from marginbn.solvers.result import check_result

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.slow


class Programs:
    """A scheduler and workers on the loopback interface."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._running = folder, []
        file = folder / "scheduler.json"
        self.scheduler = self._start("scheduler", "--scheduler-file", str(file), "--port", "0")
        self._file = file

    def _start(self, *words: str, **environment: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", *words, "--host", "127.0.0.1"]
        command += ["--no-dashboard"]
        made = subprocess.Popen(
            command,
            env={**os.environ, **environment},
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._running.append(made)
        return made

    def worker(self, name: str, **environment: str) -> subprocess.Popen[bytes]:
        words = ["worker", "--scheduler-file", str(self._file), "--nthreads", "1", "--no-nanny"]
        return self._start(*words, "--name", name, **environment)

    def client(self, n_workers: int) -> Any:
        made = distributed.Client(scheduler_file=str(self._file), set_as_default=False, timeout=120)
        made.wait_for_workers(n_workers, timeout=120)
        return made

    def address(self, n_workers: int) -> str:
        with self.client(n_workers) as client:
            return str(client.scheduler.address)

    def end(self) -> None:
        """End the programs, frozen ones too."""
        for program in reversed(self._running):
            program.kill()
            program.wait()


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    made = Programs(tmp_path)
    yield made
    made.end()


def solve_while(
    happens: Callable[[], object], dask: Any, monkeypatch: pytest.MonkeyPatch, **limits: Any
) -> tuple[SolveResult, list[str]]:
    """A search in which something happens once parts are with the workers; and its warnings."""
    monkeypatch.setattr(cluster, "RAMP_UP", 4)
    hand_out = cluster.Coordinator._hand_out
    done = threading.Event()

    def then(coordinator: cluster.Coordinator) -> None:
        hand_out(coordinator)
        if len(coordinator.out) == coordinator.n_workers and not done.is_set():
            done.set()
            happens()

    monkeypatch.setattr(cluster.Coordinator, "_hand_out", then)
    problem = problem_of(14, seed=3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = solve_structure(problem, Search(dask=dask), **limits)
    assert done.is_set()
    check_result(problem, result)
    return result, [str(w.message) for w in caught if w.category is OptimalityWarning]


def test_without_its_scheduler_a_search_returns_what_it_has(
    programs: Programs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    """Incumbent, bound and checkpoint, one line, and nothing of what distributed prints, also while
    the client is closed.
    """
    for name in "ab":
        programs.worker(name)
    address = programs.address(2)
    path = tmp_path / "tree"
    capfd.readouterr()
    result, told = solve_while(
        programs.scheduler.kill, address, monkeypatch, time_limit=60.0, checkpoint=path
    )
    assert not capfd.readouterr().err
    assert result.status == "interrupted"
    assert result.gap < 1.0
    assert len(told) == 1
    assert "scheduler does not answer" in told[0]
    assert path.exists()
    again = solve_structure(problem_of(14, seed=3), checkpoint=path, time_limit=0.5)
    assert again.bound <= result.bound + 1e-9
    assert again.nodes >= result.nodes


def test_the_part_of_a_frozen_worker_goes_to_another(
    programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the bound falls below those of the nodes that it had."""
    monkeypatch.setattr(cluster, "LATE_SECONDS", 2.0)
    monkeypatch.setattr(cluster, "LOADING", 2.0)
    workers = [programs.worker("a"), programs.worker("b")]
    client = programs.client(2)
    late: list[float] = []
    take_back = cluster.Coordinator._take_back_late

    def noted(coordinator: cluster.Coordinator) -> None:
        late.extend(
            float(part.nodes.bound.max())
            for part in coordinator.out.values()
            if time.monotonic() > part.late
        )
        take_back(coordinator)

    monkeypatch.setattr(cluster.Coordinator, "_take_back_late", noted)
    result, told = solve_while(
        lambda: workers[0].send_signal(signal.SIGSTOP), client, monkeypatch, time_limit=30.0
    )
    assert len(late) == 1
    assert result.bound < late[0]
    assert len([line for line in told if "does not answer" in line]) == 1
    client.close(timeout=1)


def test_a_worker_of_another_version_is_left_out(
    programs: Programs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its address and version are named; the other worker does the work."""
    other = tmp_path / "other" / "marginbn"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(marginbn.__file__).parent, other, ignore=ignored)
    text = (other / "__init__.py").read_text()
    (other / "__init__.py").write_text(text.replace(marginbn.__version__, "0.1.7"))
    programs.worker("a")
    programs.worker("old", PYTHONPATH=str(other.parent))
    client = programs.client(2)
    monkeypatch.setattr(cluster, "RAMP_UP", 4)
    with pytest.warns(OptimalityWarning, match=r"worker tcp://127.*0\.1\.7"):
        result = solve_structure(problem_of(14, seed=3), Search(dask=client), time_limit=30.0)
    assert result.nodes > 100
    client.close(timeout=1)
