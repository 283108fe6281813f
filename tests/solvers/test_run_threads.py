"""Threads of workers: started, sent home and waited for, whatever ends the search."""

from __future__ import annotations

import threading

import pytest

from marginbn.solvers import run as threads
from marginbn.solvers.run import NAME, running


def left() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(NAME)]


def test_bodies_run_while_the_block_does() -> None:
    home, here = threading.Event(), threading.Barrier(3)

    def body() -> None:
        here.wait(600.0)
        home.wait(600.0)

    with running([body, body], home.set):
        here.wait(600.0)
        assert sorted(left()) == [f"{NAME} 1", f"{NAME} 2"]
    assert left() == []


def test_without_bodies_nothing_happens() -> None:
    with running([], lambda: pytest.fail("there is nobody")):
        assert left() == []


@pytest.mark.parametrize("nth", [1, 2])
def test_an_interrupt_during_the_start_leaves_nobody(
    nth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads that have begun are sent home; those that have not are not waited for."""
    home, started = threading.Event(), []

    class Interrupted(threading.Thread):
        def start(self) -> None:
            started.append(self)
            if len(started) == nth:
                raise KeyboardInterrupt
            super().start()

    monkeypatch.setattr(threads.threading, "Thread", Interrupted)
    with pytest.raises(KeyboardInterrupt), running([lambda: None, home.wait] * 2, home.set):
        pytest.fail("it never gets here")
    assert home.is_set()
    assert left() == []


def test_an_interrupt_of_the_end_ends_all_the_same() -> None:
    """The word that it is over is given again."""
    home, words = threading.Event(), []

    def send_home() -> None:
        words.append(1)
        if len(words) == 1:
            raise KeyboardInterrupt
        home.set()

    with pytest.raises(KeyboardInterrupt), running([lambda: bool(home.wait(600.0))], send_home):
        pass
    assert home.is_set()
