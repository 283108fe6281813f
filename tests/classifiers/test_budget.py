"""Seconds for each of several solves, by a clock that the tests move."""

from __future__ import annotations

import pickle

import pytest

from clock import Clock
from marginbn.classifiers import budget as module
from marginbn.classifiers.budget import SHORTEST, Budget, half_used, task_budgets


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module, "monotonic", made)
    return made


def test_solves_share_what_is_left(clock: Clock) -> None:
    """Ten seconds for four solves are 2.5 each; a quick one leaves more to the others."""
    budget = Budget(clock.now + 10)
    assert budget.share(4, None) == pytest.approx(2.5)
    assert budget.share(4, 1.0) == 1.0
    clock.now += 1
    assert budget.share(3, None) == pytest.approx(3.0)
    clock.now += 20
    assert budget.share(2, 5.0) == SHORTEST
    assert Budget(None).share(2, 5.0) == 5.0
    assert Budget(None).share(2, None) is None


def test_parts_of_a_budget(clock: Clock) -> None:
    """Six tasks by two workers are three rounds."""
    half = Budget(clock.now + 10).part(0.5)
    assert half.left() == pytest.approx(5)
    ends = [budget.left() for budget in task_budgets(6, 4, 2, Budget(clock.now + 9))]
    assert ends == pytest.approx([3, 3, 6, 6, 9, 9])
    assert Budget(None).part(0.5).deadline is None


def test_a_late_start_costs_a_task_half_its_part_at_most(clock: Clock) -> None:
    """Three rounds of four solves in twelve seconds: one second each, or half a second if late."""
    first, *_, last = task_budgets(6, 4, 2, Budget(clock.now + 12))
    clock.now += 5  # workers load what they need; the first task should have ended after 4
    assert first.share(4, None) == pytest.approx(0.5)
    assert first.share(4, 0.2) == pytest.approx(0.2)
    assert last.share(4, None) == pytest.approx(7 / 4)
    assert task_budgets(2, 4, 1, Budget(None))[0].share(4, 5.0) == 5.0


def test_a_budget_reaches_another_machine_by_the_time_of_day(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose clock counts from elsewhere."""
    monkeypatch.setattr(module.time, "time", lambda: 1e9)
    sent = pickle.dumps([Budget(clock.now + 10, 0.5), Budget(None)])
    clock.now += 5000
    monkeypatch.setattr(module.time, "time", lambda: 1e9 + 3)
    ending, endless = pickle.loads(sent)
    assert ending.left() == pytest.approx(7)
    assert ending.least == 0.5
    assert endless.deadline is None


def test_half_of_what_is_left() -> None:
    """Four of ten seconds are gone: after three more binning hurries."""
    now = [4.0]
    is_late = half_used(10.0, lambda: now[0])
    assert not is_late()
    now[0] = 7.01
    assert is_late()
    assert not half_used(None, lambda: 1e9)()
    over = half_used(1.0, lambda: now[0])
    now[0] = 7.02
    assert over()
