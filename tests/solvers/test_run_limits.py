"""Limits and the clock that obeys them."""

from __future__ import annotations

import math
import threading

import pytest

from marginbn.exceptions import InputError
from marginbn.solvers.run import Deadline, Limits


def test_no_limits_by_default() -> None:
    deadline = Deadline(Limits())
    assert deadline.remaining() == math.inf
    assert not deadline.expired()
    assert deadline.elapsed() >= 0


@pytest.mark.parametrize("time", [0.0, -3.0, math.nan])
def test_time_must_be_positive(time: float) -> None:
    with pytest.raises(
        InputError, match=f"time_limit must be positive seconds or None, got {time}"
    ):
        Limits(time=time)


@pytest.mark.parametrize("nodes", [0, -1])
def test_nodes_must_be_positive(nodes: int) -> None:
    with pytest.raises(
        InputError, match=f"node_limit must be a positive integer or None, got {nodes}"
    ):
        Limits(nodes=nodes)


@pytest.mark.parametrize("memory", [0, -1])
def test_memory_must_be_positive(memory: int) -> None:
    with pytest.raises(
        InputError, match=f"memory_limit must be positive bytes or None, got {memory}"
    ):
        Limits(memory=memory)


@pytest.mark.parametrize("gap", [-1e-9, math.inf, math.nan])
def test_the_gap_must_be_a_number(gap: float) -> None:
    with pytest.raises(InputError, match="gap_tolerance must be a number of at least 0"):
        Limits(gap=gap)
    assert Limits(gap=0.0).gap == 0.0


def test_a_clock_that_started_long_ago_is_expired() -> None:
    started = Deadline(Limits(time=1e-3)).start - 10.0
    deadline = Deadline(Limits(time=1e-3), start=started)
    assert deadline.elapsed() >= 10.0
    assert deadline.remaining() == 0.0
    assert deadline.expired()


def test_a_long_limit_is_not_expired() -> None:
    deadline = Deadline(Limits(time=3600.0))
    assert 0 < deadline.remaining() <= 3600.0
    assert not deadline.expired()


def test_the_callback_is_called_when_the_time_is_up() -> None:
    rung = threading.Event()
    with Deadline(Limits(time=1e-3)).calling(rung.set):
        assert rung.wait(timeout=600)
    silent = threading.Event()
    with Deadline(Limits()).calling(silent.set), Deadline(Limits(time=3600)).calling(silent.set):
        pass
    assert not silent.is_set()
