"""What one known value makes of the probabilities: answers, bands, axes and groups."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from marginbn import (
    BNClassifier,
    MaxMarginBNClassifier,
    NaiveBayesClassifier,
    Search,
    make_report,
)
from marginbn.report.comparison import read_rows
from marginbn.report.effects import (
    BARS,
    MOST_GROUPS,
    Effect,
    axis_of_bins,
    axis_of_numbers,
    count_by_class,
    effect_values,
    group_states,
    is_weighted,
    measure_effects,
    wilson,
)


@pytest.fixture(scope="module")
def iris() -> tuple[pd.DataFrame, pd.Series]:
    return load_iris(return_X_y=True, as_frame=True)


@pytest.mark.parametrize(
    "classifier",
    [MaxMarginBNClassifier(max_parents=1, search=Search(solver="branch_bound")), BNClassifier()],
    ids=["counted", "trained"],
)
def test_effects_are_the_classifiers_answers(classifier, iris):
    """One state known and nothing else: posterior has the same numbers."""
    fitted = classifier.fit(*iris)
    effects = measure_effects(fitted)
    assert effects is not None
    for effect in effects:
        variable = fitted.network_.variables[effect.variable]
        for s, state in enumerate(variable.states):
            answer = list(fitted.posterior({variable.name: state}).values())
            np.testing.assert_allclose(effect.values[:, s], answer, rtol=0, atol=1e-9)


def test_counts_points_and_bands_by_hand() -> None:
    """Ten rows: 3 of 4 "a" rows are x, 1 of 6 "b" rows is."""
    X = [["x"]] * 3 + [["y"]] + [["x"]] + [["y"]] * 5
    y = ["a"] * 4 + ["b"] * 6
    fitted = NaiveBayesClassifier().fit(X, y)
    (table,) = count_by_class(fitted, fitted.prepare(X), np.array(y))
    assert table.tolist() == [[3, 1], [1, 5]]
    effect = Effect(1, table / 10, table)
    assert effect.points == pytest.approx(0.4 * abs(0.75 - 0.4) + 0.6 * abs(1 / 6 - 0.4))
    low, high = effect.band
    assert low[0, 0] < 0.75 < high[0, 0]
    assert wilson(np.array(0.0), np.array(0.0))[1] == pytest.approx(1.0)
    (effects,) = measure_effects(fitted, read_rows(fitted, X, y)) or ()
    assert effects.counts.tolist() == [[3, 1], [1, 5]]


def test_bands_of_weighted_rows_hold_the_curve(iris):
    """Counted rows know nothing of weights, so that their bands would miss the probabilities."""
    X, y = iris
    X, y = X[40:], y[40:]  # ten of a class against fifty each
    for fitted in (
        NaiveBayesClassifier(class_weight="balanced").fit(X, y),
        NaiveBayesClassifier().fit(X, y, sample_weight=np.where(y == y.iloc[0], 5.0, 1.0)),
    ):
        assert is_weighted(fitted)
        for effect in measure_effects(fitted, read_rows(fitted, X, y)) or ():
            low, high = effect.band
            assert ((low <= effect.values) & (effect.values <= high)).all()
        assert "They are weighted: probabilities and numbers" in make_report(fitted, X, y).html
    plain = NaiveBayesClassifier().fit(X, y)
    assert not is_weighted(plain)
    assert "weighted" not in make_report(plain, X, y).html.partition('id="details"')[0]


def test_without_rows_the_network_says_how_many_there_are(iris):
    """Expected rows are close to counted ones, so the bands are too."""
    fitted = BNClassifier().fit(*iris)
    alone, counted = measure_effects(fitted), measure_effects(fitted, read_rows(fitted, *iris))
    assert alone is not None
    assert counted is not None
    for a, b in zip(alone, counted, strict=True):
        np.testing.assert_allclose(a.counts, b.counts, atol=1.0)


def test_an_axis_has_the_true_values() -> None:
    """Ends at the 1 and 99 % quantiles or at the cuts; whole numbers have a column each."""
    rng = np.random.default_rng(0)
    axis = axis_of_numbers(rng.normal(size=2000), [-1.0, 5.0])
    assert axis.low == pytest.approx(-2.33, abs=0.2)
    assert axis.high == 5.0
    assert len(axis.heights) == BARS
    assert axis.heights.max() == 1.0
    whole = axis_of_numbers(np.array([1.0, 2.0, 2.0, 3.0] * 50), [1.5])
    assert (whole.low, whole.high) == (0.5, 3.5)
    assert whole.heights.tolist() == [0.5, 1.0, 0.5]
    assert axis_of_numbers(np.full(9, 2.0), [2.0]).high > 2.0


def test_an_axis_of_bins_spreads_their_weight() -> None:
    """Two bins of one unit with weights 1 and 3: the density is three times as high."""
    axis = axis_of_bins([0.0, 1.0, 2.0], np.array([0.0, 1.0, 3.0, 0.0]))
    assert (axis.low, axis.high) == (-1.0, 3.0)
    assert axis.heights[BARS // 4 + 1] == pytest.approx(1 / 3)
    assert axis.heights[BARS // 2 + 1] == 1.0
    assert axis_of_bins([4.0], np.array([1.0, 1.0])).low == 0.0


def test_many_states_become_eight_groups() -> None:
    """Runs of neighbouring bins with about equal shares; a missing state of its own."""
    states = ["<= 1", *(f"({k}, {k + 1}]" for k in range(1, 20)), "> 20", "(missing)"]
    groups = group_states(states, np.full(22, 1 / 22), 21)
    assert len(groups) == MOST_GROUPS
    assert [s for g in groups for s in g["states"]] == list(range(22))
    assert all(len(g["states"]) <= 4 for g in groups)
    assert groups[0]["name"] == f"<= {len(groups[0]['states'])}"
    assert groups[-1] == {"name": "(missing)", "states": [21]}
    skewed = group_states(states, np.array([0.9, *[0.1 / 21] * 21]), 21)
    assert len(skewed) == MOST_GROUPS
    assert skewed[0] == {"name": "<= 1", "states": [0]}
    few = group_states(["a", "b"], np.array([0.5, 0.5]), 0)
    assert few == [{"name": "a", "states": [0]}, {"name": "b", "states": [1]}]


def test_numbers_are_rounded_for_the_page() -> None:
    counts = np.array([[1.0, 3.0], [3.0, 1.0]])
    (record,) = effect_values([Effect(1, counts / 8, counts)])
    assert record["values"] == [[0.25, 0.75], [0.75, 0.25]]
    assert record["counts"] == [4, 4]
    assert record["axis"] is None


def test_one_class_has_no_effects() -> None:
    assert measure_effects(NaiveBayesClassifier().fit([["a"], ["b"]], ["c", "c"])) is None
