"""The paper's gap and significance tests, by hand."""

from __future__ import annotations

import math

import pytest
from experiments.significance import binomial_test, paired_t_test, paper_gap

from marginbn.exceptions import InputError


def test_equal_differences_have_a_plain_answer() -> None:
    """Always better is certain, always worse is hopeless, always equal says nothing."""
    assert paired_t_test([0.9, 0.8], [0.8, 0.7]) == 0.0
    assert paired_t_test([0.8, 0.7], [0.9, 0.8]) == 1.0
    assert paired_t_test([0.9, 0.8], [0.9, 0.8]) == 0.5
    with pytest.raises(InputError, match="one score per fold"):
        paired_t_test([1, 2], [1, 2, 3])


def test_the_paired_test_by_hand() -> None:
    """Differences .1, .2, .2: t = 5, two degrees of freedom, P = (1 - t / sqrt(t^2 + 2)) / 2."""
    expected = 0.5 * (1 - 5 / math.sqrt(27))
    assert paired_t_test([0.9, 0.8, 0.9], [0.8, 0.6, 0.7]) == pytest.approx(expected)


def test_five_wins_out_of_five_happen_once_in_thirty_two() -> None:
    assert binomial_test(5, 5) == 1 / 32
    assert binomial_test(0, 5) == 1.0
    assert binomial_test(1, 2) == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("objective", "bound", "gap"),
    [
        (98.0, 100.0, 2.0),
        (-2.0, -1.0, -100.0),  # the formula as printed: of the wrong sign below zero
        (-1.0, 1.0, 200.0),
        (0.0, 0.0, 0.0),
        (1.0, math.inf, math.inf),
        (-math.inf, 1.0, math.inf),
    ],
)
def test_the_papers_gap(objective: float, bound: float, gap: float) -> None:
    """100 (Z - z) / Z, as in table 1."""
    assert paper_gap(objective, bound) == pytest.approx(gap)


def test_the_papers_gap_has_no_value_at_a_bound_of_zero() -> None:
    """A division by zero is no number."""
    assert math.isnan(paper_gap(-1.0, 0.0))
