"""Bins of about equal weight."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginbn.data.discretize import KEPT_VALUES, kept_values, quantile_cuts


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(-20, 20), min_size=1, max_size=60), st.integers(1, 12))
def test_quantile_cuts_separate_values_evenly(values: list[int], n_bins: int) -> None:
    """Never an empty bin, n_bins of them, and none much too heavy but for one value."""
    array = np.array(values, dtype=float)
    weights = np.ones(len(array))
    cuts = quantile_cuts(array, weights, n_bins)
    bins = np.searchsorted(cuts, array, side="left")
    counts = np.bincount(bins, minlength=len(cuts) + 1)
    assert (counts > 0).all()
    distinct = len(np.unique(array))
    assert len(counts) == min(distinct, n_bins)
    kept = kept_values(array, weights, cuts)
    assert [np.searchsorted(cuts, own, side="left").tolist() for own in kept] == [
        [k] * len(own) for k, own in enumerate(kept)
    ]
    assert all(len(own) == min(n, KEPT_VALUES) for own, n in zip(kept, counts, strict=True))
    heaviest = np.unique(array, return_counts=True)[1].max()
    assert distinct <= n_bins or counts.max() <= len(array) / n_bins + 2 * heaviest


@pytest.mark.parametrize(
    ("below", "heavy", "above", "counts"),
    [
        (0, 90, 30, [90, 10, 10, 10]),
        (30, 90, 0, [10, 10, 10, 90]),
        (10, 90, 20, [10, 90, 10, 10]),
        (1, 90, 30, [91, 10, 10, 10]),  # one value is too little for a bin
        (2, 90, 1, [1, 1, 90, 1]),
    ],
)
def test_a_heavy_value_has_a_bin(below: int, heavy: int, above: int, counts: list[int]) -> None:
    """The others share what is left; by hand."""
    values = np.concatenate([-1.0 - np.arange(below), np.zeros(heavy), 1.0 + np.arange(above)])
    cuts = quantile_cuts(values, np.ones(len(values)), 4)
    assert np.bincount(np.searchsorted(cuts, values, side="left")).tolist() == counts


def test_kept_values_stand_for_the_weight() -> None:
    """Of many values the ones in the middle of equal shares of the weight."""
    values = np.arange(1000.0)
    kept = kept_values(values, np.where(values < 500, 3.0, 1.0), np.array([]))
    assert len(kept[0]) == KEPT_VALUES
    assert sum(v < 500 for v in kept[0]) == 3 * KEPT_VALUES // 4
