"""Fine ordinal bins: a refinement of the entropy cuts that knows its order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginbn.classifiers.naive_bayes import NaiveBayesClassifier
from marginbn.classifiers.validation import read_training_rows
from marginbn.data.labelled import LabelledTable
from marginbn.data.ordinal import (
    FINE_BINS,
    OrdinalData,
    OrdinalTraining,
    encode_ordinal,
    quantile_cuts,
)


def labelled(X: Any, y: Any, weights: Any = None) -> LabelledTable:
    """Rows as a classifier reads them."""
    return read_training_rows(NaiveBayesClassifier(), X, y, weights, kinds="auto")


def mixed_rows(n: int = 400, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """A number that separates the classes, one that does not, few values, a constant, a text."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    frame = pd.DataFrame(
        {
            "telling": y + rng.normal(size=n),
            "noise": rng.normal(size=n),
            "few": rng.choice([0.5, 1.5, 4.0], n),
            "constant": 2.5,
            "text": rng.choice(["a", "b"], n),
        }
    )
    return frame, y


def encode(X: Any, y: Any, weights: Any = None, **options: Any) -> OrdinalTraining:
    """Both encodings of the rows."""
    return encode_ordinal(labelled(X, y, weights), options.pop("missing", "drop"), **options)


def test_fine_bins_refine_the_coarse_ones() -> None:
    """Every entropy cut is among the fine cuts, and groups lead from fine codes to coarse ones."""
    training = encode(*mixed_rows())
    fine, coarse = training.fine.data, training.coarse.data
    for own, other in zip(training.coding.columns, training.coarse.coding.columns, strict=True):
        assert set(other.cuts) <= set(own.cuts)
    for i, groups in enumerate(training.fine.groups):
        column = fine.codes[:, i]
        assert ((column if groups is None else groups[column]) == coarse.codes[:, i]).all()
        if groups is not None:
            assert (np.diff(groups) >= 0).all()
            assert set(groups) == set(range(coarse.arities[i]))


def test_what_is_refined_and_what_is_not() -> None:
    """About 64 bins of a number, every value if there are few, categories as they are."""
    training = encode(*mixed_rows())
    _, telling, noise, few, constant, text = training.fine.data.arities
    assert FINE_BINS <= telling <= FINE_BINS + 5
    assert noise == FINE_BINS
    assert (few, constant, text) == (3, 1, 2)
    assert training.coarse.data.arities[2] == 1  # the noise has no entropy cut
    assert training.fine.positions[5] is None


def test_coarse_rows_are_those_of_the_entropy_cuts() -> None:
    """Codes and weights; labels are numbers."""
    training = encode(*mixed_rows(), np.arange(400) % 3 + 0.5)
    again = training.fine.coarse()
    np.testing.assert_array_equal(again.codes, training.coarse.data.codes)
    np.testing.assert_array_equal(again.weights, training.coarse.data.weights)
    assert tuple(again.arities) == tuple(training.coarse.data.arities)


def test_positions_are_the_mean_values_of_the_bins() -> None:
    """Against pandas: values clipped to the central 98 %, standardised, averaged by bin."""
    frame, y = mixed_rows()
    training = encode(frame, y)
    values = frame["telling"].to_numpy()
    inner = np.sort(values)[[3, 395]]
    clipped = np.clip(values, *inner)
    standard = pd.Series((clipped - clipped.mean()) / clipped.std())
    expected = standard.groupby(training.fine.data.codes[:, 1]).mean()
    np.testing.assert_allclose(training.fine.positions[1], expected, atol=1e-12)
    assert (np.diff(training.fine.positions[1]) >= 0).all()


def test_weights_are_repetitions() -> None:
    """Cuts, groups and positions of weighted rows are those of repeated rows."""
    frame, y = mixed_rows(150)
    times = np.random.default_rng(1).integers(1, 4, len(y))
    weighted = encode(frame, y, times)
    repeated = encode(frame.loc[frame.index.repeat(times)], np.repeat(y, times))
    assert weighted.coding == repeated.coding
    for a, b in zip(weighted.fine.positions, repeated.fine.positions, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_allclose(a, b, atol=1e-12)


def test_missing_values_have_a_state_of_their_own() -> None:
    """The last one: no position, and a coarse bin that it shares with no number."""
    frame, y = mixed_rows()
    frame.loc[::7, "telling"] = np.nan
    training = encode(frame, y, missing="state")
    positions, groups = training.fine.positions[1], training.fine.groups[1]
    assert np.isnan(positions).tolist() == [False] * (len(positions) - 1) + [True]
    assert (groups == groups[-1]).sum() == 1
    assert (training.fine.data.codes[::7, 1] == len(positions) - 1).all()
    np.testing.assert_array_equal(training.fine.coarse().codes, training.coarse.data.codes)


def test_mdlp_bins_are_the_coarse_ones() -> None:
    """Then nothing has an order."""
    training = encode(*mixed_rows(), bins="mdlp")
    assert training.coding is training.coarse.coding
    assert set(training.fine.positions) == set(training.fine.groups) == {None}


def test_classes_that_the_rows_lack_have_codes() -> None:
    """A fold without a class still knows it."""
    frame, y = mixed_rows(60)
    training = encode(frame, np.where(y == 1, 2, y), classes=np.array([0, 1, 2]))
    assert training.fine.data.n_classes == 3
    assert set(training.fine.data.codes[:, 0]) == {0, 2}


def test_taking_and_merging_keep_the_bins() -> None:
    """Rows in the same states; equal ones become one."""
    fine = encode(*mixed_rows(), bins="mdlp").fine
    part = fine.take(np.arange(100))
    assert part.data.variables == fine.data.variables
    np.testing.assert_array_equal(part.data.codes, fine.data.codes[:100])
    assert part.merged().data.total_weight == 100
    assert part.merged().data.n_samples < 100


@pytest.mark.parametrize("scale", [1e300, 1e-300, 5e-324])
def test_extreme_numbers_keep_their_positions(scale: float) -> None:
    """Squares of such numbers are infinite or zero."""
    rng = np.random.default_rng(0)
    values = rng.integers(-9, 10, 200).astype(float)
    plain, extreme = (encode(v[:, None], values > 0).fine for v in (values, values * scale))
    np.testing.assert_allclose(extreme.positions[1], plain.positions[1], atol=1e-9)


def test_outliers_do_not_move_the_others() -> None:
    """One value of a million among 200."""
    values = np.random.default_rng(0).normal(size=200)
    wild = np.where(values == values.max(), 1e6, values)
    plain, with_outlier = (encode(v[:, None], values > 0).fine for v in (values, wild))
    np.testing.assert_allclose(plain.positions[1], with_outlier.positions[1], atol=0.05)


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


def test_plain_rows_have_no_order() -> None:
    """For tables that are codes already."""
    data = encode(*mixed_rows(20)).coarse.data
    plain = OrdinalData.plain(data)
    assert plain.data is data
    assert plain.groups == plain.positions == (None,) * 6
