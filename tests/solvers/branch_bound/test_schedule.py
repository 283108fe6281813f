"""How the tree and the local search share the time."""

from __future__ import annotations

import numpy as np
import pytest

from branch_bound_cases import random_problem
from marginbn.solvers.branch_bound.arrays import encode
from marginbn.solvers.branch_bound.rows import RowChoice
from marginbn.solvers.branch_bound.schedule import Schedule


def new_schedule() -> Schedule:
    return Schedule(RowChoice(encode(random_problem(np.random.default_rng(0), 4))))


def efforts(schedule: Schedule, open_gap: float, batches: int) -> list[int]:
    planned = [schedule.advance(open_gap) for _ in range(batches)]
    return [effort for effort in planned if effort]


def test_every_so_many_batches() -> None:
    """The same share in the beginning, whatever the gap, and batches of one length."""
    schedule = new_schedule()
    before = schedule.next_stop
    assert efforts(schedule, 1.0, Schedule.EARLY) == [schedule.share] * (
        Schedule.EARLY // Schedule.EVERY
    )
    assert schedule.next_stop - before == Schedule.EARLY * schedule.batch


@pytest.mark.parametrize(("open_gap", "factor"), [(0.9, 1), (0.1, 0.25)])
def test_the_share_follows_the_gap(open_gap: float, factor: float) -> None:
    """All of it while most is open; a quarter when the end is near and nothing turns up."""
    schedule = new_schedule()
    efforts(schedule, open_gap, Schedule.EARLY)
    assert efforts(schedule, open_gap, Schedule.EVERY) == [int(schedule.share * factor)]


def test_the_share_fades_where_nothing_is_found() -> None:
    """Half of it after twice the time, a quarter in the end."""
    schedule = new_schedule()
    early = Schedule.EARLY_IF_OPEN
    assert set(efforts(schedule, 0.9, early)) == {schedule.share}
    assert efforts(schedule, 0.9, early)[-1] == schedule.share // 2
    assert efforts(schedule, 0.9, 4 * early)[-1] == schedule.share // 4


def test_success_keeps_the_share() -> None:
    """For three times as long as it took."""
    schedule = new_schedule()
    efforts(schedule, 0.1, 100)
    schedule.success = 100
    assert set(efforts(schedule, 0.1, 300)) == {schedule.share}
    assert set(efforts(schedule, 0.1, 100)) == {schedule.share // 4}
