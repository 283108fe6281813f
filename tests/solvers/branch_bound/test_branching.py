"""What splits have gained: sums, ratios and midpoints by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numba import njit

from marginbn.solvers.branch_bound.kernels import branching
from marginbn.solvers.branch_bound.kernels.branching import (
    EDGE,
    MEMBER,
    RELEVANCE,
    SLOT,
    kind_of,
    midpoint,
    new_pseudocosts,
    observe,
    recent_gain,
    row_of,
)

pytestmark = pytest.mark.xdist_group("test_gains")  # one process compiles

N = 4


# kernels have no wrapper for Python; this one has
@njit
def ratio_of(table, n, row, side):  # type: ignore[no-untyped-def]
    return branching.ratio_of(table, n, row, side)


def test_every_object_has_a_row_of_its_own() -> None:
    """And the row tells the kind."""
    rows = {}
    for i in range(N):
        rows.update({row_of(N, SLOT, i, s): SLOT for s in range(N + 2)})
        rows.update({row_of(N, EDGE, i, j): EDGE for j in range(i)})
        rows[row_of(N, RELEVANCE, i, 0)] = RELEVANCE
        rows[row_of(N, MEMBER, i, 0)] = MEMBER
    assert len(rows) == N * (N + 2) + N * (N - 1) // 2 + 2 * N
    assert 0 <= min(rows) <= max(rows) < len(new_pseudocosts(N)) - 5
    assert all(kind_of(N, row) == kind for row, kind in rows.items())


def test_ratios_by_hand() -> None:
    """Nothing known: 1; another candidate of the kind: its ratio; then a mixture of both."""
    table = new_pseudocosts(N)
    edge, other = row_of(N, EDGE, 2, 1), row_of(N, EDGE, 3, 0)
    assert ratio_of(table, N, edge, 0) == 1.0
    observe(table, N, other, 0, 3.0, 6.0)
    assert ratio_of(table, N, edge, 0) == 0.5
    assert ratio_of(table, N, edge, 1) == 1.0  # the other side
    assert ratio_of(table, N, row_of(N, SLOT, 2, 1), 0) == 1.0  # another kind
    observe(table, N, edge, 0, 2.0, 2.0)
    usual = (3 + 2) / (6 + 2)
    assert ratio_of(table, N, edge, 0) == pytest.approx((2 + 2 * 2 * usual) / (2 + 2 * 2))


def test_the_running_mean_begins_with_the_first_gain() -> None:
    """Gains below zero, which rounding makes, count as none; infinite ones are not known."""
    table = new_pseudocosts(N)
    assert recent_gain(table) == 0.0
    observe(table, N, 0, 1, 5.0, 1.0)
    assert recent_gain(table) == 5.0
    observe(table, N, 0, 1, np.inf, 1.0)
    assert recent_gain(table) == 5.0
    observe(table, N, 0, 1, -1.0, 1.0)
    assert recent_gain(table) == pytest.approx(0.98 * 5.0)
    assert table[0, 1].tolist() == [5.0, 2.0, 2.0]


@pytest.mark.parametrize(
    ("bound", "relaxed", "cutoff", "expected"),
    [
        (10.0, 6.0, 2.0, 8.0),
        (10.0, 1.0, 2.0, 6.0),  # f(eta) below the cutoff says nothing
        (1.0, 0.0, 2.0, 2.0),  # pruned
        (10.0, 6.0, -np.inf, 8.0),
        (10.0, -np.inf, -np.inf, 10.0),
    ],
)
def test_midpoints(bound: float, relaxed: float, cutoff: float, expected: float) -> None:
    """(D + max(f(eta), cutoff)) / 2, never below the cutoff."""
    state: Any = SimpleNamespace(bound=bound, relaxed=relaxed)
    assert midpoint(state, cutoff) == expected
