"""Small problems without a compiler: kernels as plain Python."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from branch_bound_cases import random_encoded, random_problem
from brute_force import brute_force
from marginbn import solve_structure, verify_certificate
from marginbn.problem.candidates import enumerate_candidates
from marginbn.problem.problem import StructureProblem, margin_problem
from marginbn.solvers import compile, interpreted
from marginbn.solvers.branch_bound import BranchBoundSolver, engine
from marginbn.solvers.interpreted import MODE, interpreting, is_small, leave_python, undisturbed
from marginbn.solvers.result import SolveResult
from marginbn.solvers.run import Run
from marginbn.solvers.solve import solve_with


def small(seed: int) -> StructureProblem:
    return random_problem(np.random.default_rng(seed), 3)


@pytest.fixture
def cold(monkeypatch: pytest.MonkeyPatch) -> None:
    """No machine code at hand, and nobody who could make any."""
    monkeypatch.setattr(engine, "is_at_hand", lambda *_: False)
    never = property(lambda _: pytest.fail("the compiler was called"))
    monkeypatch.setattr(compile.EntryKernel, "compile", never)


def facts(result: SolveResult) -> tuple[object, ...]:
    """What must not depend on how kernels run."""
    return result.status, pytest.approx(result.objective, rel=1e-6), result.solver


@pytest.mark.parametrize("seed", range(4))
def test_the_same_answer(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = solve_structure(small(seed), "branch_bound")
    monkeypatch.setattr(engine, "is_at_hand", lambda *_: False)
    result = solve_structure(small(seed), "branch_bound")
    assert facts(result) == facts(compiled)
    best = brute_force(small(seed))
    assert result.objective <= best + 1e-9 * abs(best) <= result.bound + 2e-9 * abs(best)


@pytest.mark.usefixtures("cold")
def test_nothing_is_compiled(tmp_path: Path) -> None:
    path = tmp_path / "proof.cert"
    data = random_encoded(np.random.default_rng(1), 3)
    problem = margin_problem(data, enumerate_candidates(4, 2))
    result = solve_structure(problem, "branch_bound", certificate=path)
    assert result.gap <= 1e-6
    assert verify_certificate(path).gap <= 1e-6
    assert not MODE.is_on


@pytest.mark.usefixtures("cold")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_who_needs_the_compiler(n_jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = small(0)
    assert engine.is_interpreted(problem, n_jobs) == (n_jobs == 1)
    monkeypatch.setattr(interpreted, "MOST_FEATURES", 2)
    assert not is_small(problem)
    assert not engine.is_interpreted(problem, n_jobs)


def test_a_long_search_goes_on_with_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the next batch on, with the same result; the compiler's time does not count."""
    expected = facts(solve_structure(small(2), "branch_bound"))
    threads = []
    monkeypatch.setattr(interpreted, "SHARE", -1.0)
    monkeypatch.setattr(engine, "is_at_hand", lambda *_: False)
    compile_seen = engine.compile_seen

    def compile_here(package: str) -> None:
        compile_seen(package)
        threads.append(threading.current_thread().name)

    monkeypatch.setattr(engine, "compile_seen", compile_here)
    assert facts(solve_with(BranchBoundSolver(), Run(small(2)))) == expected
    assert threads == ["marginbn compiler"]
    assert not MODE.is_on


def test_when_a_search_leaves_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 10 nodes visited: after a second by its open nodes, after six anyway, and late in a time
    limit, where it waits for the compiler.
    """
    told: list[object] = []
    start, inf = lambda _: told.append("start"), float("inf")
    compiler = SimpleNamespace(start=start, is_ready=lambda patiently: told.append(patiently))
    monkeypatch.setattr(interpreted, "COMPILER", compiler)
    for computed, n_open, clock, expected in (
        (0.5, 11, (3.5, 6.5), [False]),
        (1.5, 11, (3.5, 6.5), ["start", False]),
        (1.5, 7, (3.0, inf), [False]),
        (6.5, 7, (3.0, inf), ["start", False]),
        (0.5, 7, (4.5, 5.5), ["start", True]),
    ):
        told.clear()
        with interpreting():
            monkeypatch.setattr(MODE, "since", time.process_time() - computed)
            leave_python(10, n_open, *clock, lambda: None)
        assert told == expected


def test_ctrl_c_waits_for_the_kernel() -> None:
    """The flag ends the kernel, which is never left in the middle; then the interrupt comes."""
    done: list[bool] = []
    main = threading.main_thread().ident
    assert main is not None

    def body(stop: np.ndarray) -> None:
        signal.pthread_kill(main, signal.SIGINT)
        while stop[0] == 0:
            pass
        done.append(True)

    stop = np.zeros(1, dtype=np.int64)
    with pytest.raises(KeyboardInterrupt):
        undisturbed(body, (stop,), stop)
    assert done == [True]


@pytest.mark.usefixtures("cold")
def test_kernels_that_change_the_tree_are_undisturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their flag is a field of an argument. An interrupt in the middle of a change to the tree
    would lose nodes, and the bound with them.
    """
    names = set()

    def note(function: Any, args: tuple[Any, ...], stop: np.ndarray) -> Any:
        names.add(function.__name__)
        assert stop.shape == (1,)
        return undisturbed(function, args, stop)

    monkeypatch.setattr(interpreted, "undisturbed", note)
    solve_structure(small(1), "branch_bound")
    assert names == {"perform", "search_from"}


def test_errors_of_the_kernel_come_out() -> None:
    def body() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        undisturbed(body, (), np.zeros(1))
