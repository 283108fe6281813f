"""Seconds for each of several solves, by a clock that the tests move."""

from __future__ import annotations

import pytest

from clock import Clock
from marginbn.classifiers import budget as module
from marginbn.classifiers.budget import SHORTEST, Budget, part_used


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
    """Half of ten seconds; of no limit there is no half."""
    half = Budget(clock.now + 10).part(0.5)
    assert half.left() == pytest.approx(5)
    assert Budget(None).part(0.5).deadline is None


def test_a_late_solve_has_its_least(clock: Clock) -> None:
    """Workers load what they need for five seconds; the task should have ended after four."""
    budget = Budget(clock.now + 4, least=0.5)
    assert budget.share(4, None) == pytest.approx(1.0)
    clock.now += 5
    assert budget.share(4, None) == pytest.approx(0.5)
    assert budget.share(4, 0.2) == pytest.approx(0.2)
    assert budget.part(0.5).least == 0.5


def test_half_of_what_is_left() -> None:
    """Four of ten seconds are gone: after three more binning hurries."""
    now = [4.0]
    is_late = part_used(10.0, lambda: now[0])
    assert not is_late()
    now[0] = 7.01
    assert is_late()
    assert not part_used(None, lambda: 1e9)()
    assert not part_used(20.0, lambda: now[0], 0.75)()
    over = part_used(1.0, lambda: now[0])
    now[0] = 7.02
    assert over()
