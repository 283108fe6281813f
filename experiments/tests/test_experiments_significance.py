"""The paper's gap and significance tests, by hand."""

from __future__ import annotations

import math

import pytest
from experiments.significance import paired_t_test, paper_gap

from marginbn.exceptions import InputError


def test_equal_differences_have_a_plain_answer() -> None:
    """Always better is certain, always worse is hopeless, always equal says nothing."""
    assert paired_t_test([0.9, 0.8], [0.8, 0.7]) == 0.0
    assert paired_t_test([0.8, 0.7], [0.9, 0.8]) == 1.0
    assert paired_t_test([0.9, 0.8], [0.9, 0.8]) == 0.5
    with pytest.raises(InputError, match="one score per fold"):
        paired_t_test([1, 2], [1, 2, 3])


@pytest.mark.parametrize(
    ("objective", "bound", "gap"),
    [
        (98.0, 100.0, 2.0),
        (-2.0, -1.0, -100.0),  # the formula as printed: of the wrong sign below zero
        (-1.0, 1.0, 200.0),
        (0.0, 0.0, 0.0),
        (1.0, math.inf, math.inf),
        (-math.inf, 1.0, math.inf),
        (-1.0, 0.0, math.nan),
    ],
)
def test_the_papers_gap(objective: float, bound: float, gap: float) -> None:
    """100 (Z - z) / Z, as in table 1."""
    assert paper_gap(objective, bound) == pytest.approx(gap, nan_ok=True)
