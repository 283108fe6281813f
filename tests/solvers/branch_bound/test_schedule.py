"""How the tree and the local search share the time."""

from __future__ import annotations

import numpy as np
import pytest

from branch_bound_cases import random_problem
from marginbn.solvers.branch_bound.arrays import encode
from marginbn.solvers.branch_bound.schedule import Pace


def new_pace() -> Pace:
    return Pace(encode(random_problem(np.random.default_rng(0), 4)).instance)


def efforts(pace: Pace, open_gap: float, batches: int) -> list[int]:
    """Effort of every run of the local search."""
    planned = [pace.advance(open_gap) for _ in range(batches)]
    return [effort for effort in planned if effort]


def test_every_so_many_batches() -> None:
    """The same share in the beginning, whatever the gap, and batches of one length."""
    pace = new_pace()
    before = pace.next_stop
    assert efforts(pace, 1.0, Pace.EARLY) == [pace.share] * (Pace.EARLY // Pace.EVERY)
    assert pace.next_stop - before == Pace.EARLY * pace.batch


@pytest.mark.parametrize(("open_gap", "factor"), [(0.9, 2), (0.1, 0.25)])
def test_the_share_follows_the_gap(open_gap: float, factor: float) -> None:
    """Twice while most is open; a quarter when the search is nearly over and nothing turns up."""
    pace = new_pace()
    efforts(pace, open_gap, Pace.EARLY)
    assert efforts(pace, open_gap, Pace.EVERY) == [int(pace.share * factor)]


def test_success_keeps_the_share() -> None:
    """For three times as long as it took."""
    pace = new_pace()
    efforts(pace, 0.1, 100)
    pace.success = 100
    assert set(efforts(pace, 0.1, 300)) == {pace.share}
    assert set(efforts(pace, 0.1, 100)) == {pace.share // 4}
