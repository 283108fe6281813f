"""What each state does to the log odds: the classifier's answers, counts, and honest bands."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from marginbn import MaxMarginBNClassifier, NaiveBayesClassifier, Search
from marginbn.data.encode import Coding
from marginbn.report.comparison import read_rows
from marginbn.report.effects import (
    Effect,
    _band_of_runs,
    band,
    count_by_class,
    counted_effect,
    effect_values,
    measure_effects,
    runs_of,
    strongest_states,
)


@pytest.fixture(scope="module")
def iris() -> tuple[pd.DataFrame, pd.Series]:
    return load_iris(return_X_y=True, as_frame=True)


def test_effects_are_differences_of_log_odds(iris: tuple[pd.DataFrame, pd.Series]) -> None:
    """One feature known, all others missing: what predict_proba says of that."""
    X, y = iris
    fitted = MaxMarginBNClassifier(max_parents=1, search=Search(solver="branch_bound")).fit(X, y)
    effects = measure_effects(fitted)
    assert effects is not None
    network = fitted.network_
    before = network.posterior_array(0)
    for effect in effects:
        for state in range(network.arities[effect.variable]):
            names = network.variables[effect.variable]
            after = network.posterior_array(0, {names.name: names.states[state]})
            moved = np.log(after / (1 - after)) - np.log(before / (1 - before))
            np.testing.assert_allclose(effect.values[state], moved, atol=1e-9)


def test_counts_and_counted_effects_by_hand() -> None:
    """Ten rows: 3 of 4 "a" rows are x, 1 of 6 "b" rows is; smoothed by one row per cell."""
    X = [["x"]] * 3 + [["y"]] + [["x"]] + [["y"]] * 5
    y = ["a"] * 4 + ["b"] * 6
    fitted = NaiveBayesClassifier().fit(X, y)
    (table,) = count_by_class(fitted, read_rows(fitted, X, y))
    assert table.tolist() == [[3, 1], [1, 5]]
    expected = np.log((4 / 6) / (2 / 8))  # P(x | a) / P(x | b)
    assert counted_effect(table)[0].tolist() == pytest.approx([expected, -expected])
    effects = measure_effects(fitted, read_rows(fitted, X, y))
    assert effects is not None
    assert effects[0].values[0, 0] == pytest.approx(expected)  # naive Bayes counts the same
    assert effects[0].counts is not None
    assert effects[0].counts.tolist() == [4, 6]
    assert effects[0].low is not None
    assert effects[0].high is not None
    assert effects[0].low[0, 0] < expected < effects[0].high[0, 0]


def test_bands_are_those_of_resampled_rows() -> None:
    """Drawing rows one by one gives the same quantiles, up to their own noise."""
    rng = np.random.default_rng(0)
    codes = rng.integers(3, size=400)
    classes = (rng.random(400) < 0.2 + 0.2 * codes).astype(int)
    table = np.array([np.bincount(codes[classes == c], minlength=3) for c in (0, 1)])
    drawn = []
    for _ in range(2000):
        rows = rng.integers(400, size=400)
        again = [np.bincount(codes[rows][classes[rows] == c], minlength=3) for c in (0, 1)]
        drawn.append(counted_effect(np.array(again)))
    low, high = np.percentile(drawn, (2.5, 97.5), axis=0)
    own = band(table)
    np.testing.assert_allclose(own[0], low, atol=0.12)
    np.testing.assert_allclose(own[1], high, atol=0.12)


def test_three_classes_against_the_rest() -> None:
    """The rest is weighted by the shares of its classes."""
    table = np.array([[8, 2], [1, 9], [10, 10]])
    given = (table + 1) / (table + 1).sum(axis=1, keepdims=True)
    rest = (given[1] * 10 + given[2] * 20) / 30
    np.testing.assert_allclose(counted_effect(table)[:, 0], np.log(given[0] / rest))


def test_fine_bins_share_the_band_of_their_run() -> None:
    """Sixty bins have ten bands, narrower than those of single bins; missing stands apart."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 30, size=60)
    runs = runs_of(rows)
    assert (np.diff(runs) >= 0).all()
    assert runs[0] == 0
    assert runs[-1] <= 9
    counts = np.array([rng.binomial(rows, 0.5), rows])
    counts[1] -= counts[0]
    counts = np.hstack([counts, [[7], [40]]])  # the missing state
    coding = Coding("x", "numeric", tuple(range(59)), (), True)
    low, high = _band_of_runs(counts, coding, seed=0)
    assert low.shape == (61, 2)
    for run in range(runs[-1] + 1):
        assert len(np.unique(low[:60][runs == run], axis=0)) == 1
    single = band(counts)
    assert (high - low)[:60].mean() < 0.6 * (single[1] - single[0])[:60].mean()
    assert low[60, 1] > 0  # many of the second class lack the number


def test_rare_states_speak_less_and_numbers_are_rounded() -> None:
    """A state of one row does not lead, however strong it looks."""
    values = np.array([[2.0, -2.0], [1.5, -1.5], [-1.0004, 1.0004]])
    effect = Effect(1, values, np.array([1, 100, 100]), values - 1, values + 1)
    assert strongest_states(effect, 0) == (1, 2)
    (record,) = effect_values([effect])
    assert record["values"] == [[2.0, 1.5, -1.0], [-2.0, -1.5, 1.0]]
    assert record["counts"] == [1, 100, 100]


def test_one_class_has_no_effects() -> None:
    """There is nothing to tell apart."""
    assert measure_effects(NaiveBayesClassifier().fit([["a"], ["b"]], ["c", "c"])) is None
