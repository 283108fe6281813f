"""Cuts of pairs against all cuts that there are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from marginbn.parameters.kernels.cuts import best_cuts

RIDGE, PRICE = 3.0, 0.4


def table_gain(g: np.ndarray, h: np.ndarray, rows: tuple, columns: tuple) -> float:
    """Gain of the table with these cuts, straight from the formula."""
    row_of = np.concatenate([[0], np.cumsum(rows)]).astype(int)
    column_of = np.concatenate([[0], np.cumsum(columns)]).astype(int)
    total = 0.0
    for c in range(len(g)):
        for i, j in itertools.product(range(row_of[-1] + 1), range(column_of[-1] + 1)):
            cell = np.ix_(row_of == i, column_of == j)
            a, b = g[c][cell].sum(), h[c][cell].sum()
            total += a**2 * (b + 2 * RIDGE) / (2 * (b + RIDGE) ** 2) - PRICE * b / (b + RIDGE)
    return float(total)


def all_gains(
    g: np.ndarray, h: np.ndarray, free: tuple[bool, bool], most: int
) -> dict[tuple[tuple, tuple], float]:
    """Gain of every choice of at least one cut per free axis, with at most so many groups."""

    def choices(n: int, axis: bool) -> list[tuple]:
        if not axis:
            return [(True,) * n]
        every = itertools.product([False, True], repeat=n)
        return [cuts for cuts in every if 1 <= sum(cuts) < most]

    rows, columns = choices(g.shape[1] - 1, free[0]), choices(g.shape[2] - 1, free[1])
    return {(a, b): table_gain(g, h, a, b) for a in rows for b in columns}


def grids(seed: int, shape: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Sums of residuals that are large in a corner, and of curvatures."""
    rng = np.random.default_rng(seed)
    g = rng.normal(scale=2.0, size=shape)
    g[:, : shape[1] // 2, shape[2] // 2 :] += 4.0
    return g, rng.uniform(0.5, 6.0, shape)


FREE = pytest.mark.parametrize("free", list(itertools.product([True, False], repeat=2)))


@FREE
@pytest.mark.parametrize("seed", range(4))
def test_one_cut_each_is_the_best_one(free: tuple[bool, bool], seed: int) -> None:
    """With at most two groups there is nothing greedy about it."""
    g, h = grids(seed, (1 + seed % 3, 4, 5))
    gain, rows, columns = best_cuts(g, h, *free, 2, RIDGE, PRICE)
    every = all_gains(g, h, free, 2)
    assert gain == pytest.approx(max(every.values()), rel=1e-12)
    assert every[tuple(rows), tuple(columns)] == pytest.approx(gain, rel=1e-12)


@FREE
@pytest.mark.parametrize("seed", range(4))
def test_more_cuts_gain_more_and_at_most_the_best(free: tuple[bool, bool], seed: int) -> None:
    """The gain is that of its cuts, at least that of one cut each, at most that of any."""
    g, h = grids(seed, (1 + seed % 3, 5, 4))
    gain, rows, columns = best_cuts(g, h, *free, 4, RIDGE, PRICE)
    every = all_gains(g, h, free, 4)
    assert every[tuple(rows), tuple(columns)] == pytest.approx(gain, rel=1e-12)
    assert gain <= max(every.values()) + 1e-9
    assert gain >= max(all_gains(g, h, free, 2).values()) - 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_no_single_cut_is_left_that_gains(seed: int) -> None:
    """It ends where one more cut gains nothing."""
    g, h = grids(seed, (2, 5, 5))
    gain, rows, columns = best_cuts(g, h, True, True, 99, RIDGE, PRICE)
    for cuts in (rows, columns):
        for k in np.flatnonzero(~cuts):
            cuts[k] = True
            assert table_gain(g, h, tuple(rows), tuple(columns)) <= gain + 1e-8
            cuts[k] = False


def test_nothing_to_gain_costs_the_price() -> None:
    """Residuals of zero: one cut each, and the gain is negative."""
    h = np.ones((1, 3, 3))
    gain, rows, columns = best_cuts(np.zeros_like(h), h, True, True, 5, RIDGE, PRICE)
    assert gain < 0
    assert rows.sum() == columns.sum() == 1


def test_a_table_of_two_by_two_has_one_choice() -> None:
    """By hand."""
    g = np.array([[[2.0, -2.0], [-2.0, 2.0]]])
    h = np.full((1, 2, 2), 1.0)
    gain, rows, columns = best_cuts(g, h, True, True, 5, RIDGE, PRICE)
    assert gain == pytest.approx(4 * (4 * 7 / (2 * 16) - PRICE / 4))
    assert (rows.tolist(), columns.tolist()) == ([True], [True])
