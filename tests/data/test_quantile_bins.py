"""Bins of about equal weight."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from marginbn.data.quantile_bins import quantile_cuts


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.integers(-20, 20), min_size=1, max_size=60),
    st.integers(1, 12),
)
def test_quantile_cuts_separate_values_evenly(values: list[int], n_bins: int) -> None:
    """Never an empty bin, at most n_bins of them, and none much too heavy but for one value."""
    array = np.array(values, dtype=float)
    weights = np.ones(len(array))
    cuts = quantile_cuts(array, weights, n_bins)
    bins = np.searchsorted(cuts, array, side="left")
    counts = np.bincount(bins, minlength=len(cuts) + 1)
    assert (counts > 0).all()
    distinct = len(np.unique(array))
    assert len(counts) == distinct if distinct <= n_bins else len(counts) <= n_bins
    heaviest = np.unique(array, return_counts=True)[1].max()
    assert distinct <= n_bins or counts.max() <= len(array) / n_bins + 2 * heaviest
