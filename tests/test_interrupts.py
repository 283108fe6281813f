"""Interrupts to end: when they raise, when they wait, and that none gets lost."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterable
from types import SimpleNamespace

import pytest

from marginbn import interrupts
from marginbn.interrupts import Interrupts, as_keyboard_interrupt, without_interrupting_children
from marginbn.solvers.result import Status
from marginbn.solvers.run import Run
from marginbn.solvers.solve import get_solver, solve_with
from problems import small_margin_problem


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Interrupts:
    """Those of a process of its own."""
    fresh = Interrupts()
    for module in (
        "solvers.run",
        "solvers.solve",
        "proof.write",
        "interrupts",
    ):  # last: others import it
        monkeypatch.setattr(f"marginbn.{module}.INTERRUPTS", fresh)
    return fresh


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_signal_before_a_result_raises(requests: Interrupts, name: str, code: int) -> None:
    """There is nothing to lose; the exit code is that of shells."""
    with pytest.raises(KeyboardInterrupt):
        requests.handle(getattr(signal, name))
    assert requests.exit_code == code
    with pytest.raises(KeyboardInterrupt):
        requests.raise_if_requested()


def test_a_signal_after_the_search_waits(requests: Interrupts) -> None:
    """A result that is being written is written."""
    requests.has_result = True
    requests.handle(signal.SIGTERM)
    requests.raise_if_requested()
    assert requests.requested


def test_a_search_is_interrupted_once(requests: Interrupts) -> None:
    """So that its end is not disturbed."""
    requests.has_result = True
    with requests.raising():
        with pytest.raises(KeyboardInterrupt):
            requests.handle(signal.SIGINT)
        requests.handle(signal.SIGTERM)
        requests.handle(signal.SIGINT)


def test_a_second_ctrl_c_is_a_hurry(requests: Interrupts, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless it is the first one, passed on by another program; SIGTERM stays patient."""
    now = [0.0]
    monkeypatch.setattr(interrupts.time, "perf_counter", lambda: now[0])
    requests.has_result = True
    requests.handle(signal.SIGINT)
    now[0] = 0.5
    requests.handle(signal.SIGINT)
    now[0] = 5.0
    requests.handle(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        requests.handle(signal.SIGINT)


def test_a_dropped_interrupt_is_raised_again(
    requests: Interrupts, capsys: pytest.CaptureFixture[str]
) -> None:
    """A KeyboardInterrupt inside a finaliser is raised again; other errors are printed as usual."""
    with pytest.raises(KeyboardInterrupt):
        requests.handle(signal.SIGTERM)
    requests.keep_unraisable(SimpleNamespace(exc_type=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        requests.handle(signal.SIGTERM)
    requests.handle(signal.SIGTERM)
    assert capsys.readouterr().err == ""


def test_callbacks_are_called_within_their_blocks(requests: Interrupts) -> None:
    """Compiled code comes back at once."""
    called: list[str] = []
    with requests.calling(lambda: called.append("outer")):
        with requests.calling(lambda: called.append("inner")):
            requests.call_back()
        requests.call_back()
    requests.call_back()
    assert called == ["outer", "inner", "outer"]


def test_an_interrupt_inside_an_extension_is_recognised(requests: Interrupts) -> None:
    """Extension modules turn a KeyboardInterrupt into an ImportError."""
    with pytest.raises(ImportError), as_keyboard_interrupt():
        raise ImportError
    requests.number = signal.SIGINT
    with pytest.raises(KeyboardInterrupt), as_keyboard_interrupt():
        raise ImportError
    requests.has_result = True
    with pytest.raises(ImportError), as_keyboard_interrupt():
        raise ImportError


def test_a_later_search_ends_with_its_first_structure(requests: Interrupts) -> None:
    """The request came between two searches of one command."""
    requests.has_result = True
    requests.handle(signal.SIGTERM)
    result = solve_with(get_solver("branch_bound"), Run(small_margin_problem()))
    assert result.status is Status.INTERRUPTED
    assert result.nodes == 0


def test_a_lost_exception_still_ends_a_search(requests: Interrupts) -> None:
    """The search looks by itself, too."""

    def swallow(_: object) -> None:
        requests.count += 1  # as if the exception had been swallowed

    result = solve_with(get_solver("branch_bound"), Run(small_margin_problem(), callback=swallow))
    assert result.status is Status.INTERRUPTED


def test_the_library_leaves_signals_alone() -> None:
    """Only the command line handles signals; here Ctrl-C stays Python's."""
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with interrupts.handling_signals():
        assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == before
    assert sys.unraisablehook is not interrupts.INTERRUPTS.keep_unraisable


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="masks of POSIX")
def test_children_leave_ctrl_c_to_their_parent() -> None:
    """A terminal sends it to all of them; the parent still receives it."""
    code = "import signal; print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))"

    def start(tasks: Iterable[str]) -> list[str]:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # as the helper of pools does
        return [subprocess.check_output([sys.executable, "-c", t], text=True) for t in tasks]

    assert without_interrupting_children(start, [code]) == ["True\n"]
    assert start([code]) == ["False\n"]
    late = without_interrupting_children(iter, [code])  # as a pool without processes does
    assert start(late) == ["False\n"]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
