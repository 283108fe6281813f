"""Intervals and tests against scipy.stats, splits by counting, cross-validation by hand."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from scipy.stats import binomtest

from marginbn import MaxMarginBNClassifier, NaiveBayesClassifier, Search, TANClassifier
from marginbn.classifiers.base import Fitted
from marginbn.classifiers.evaluation import (
    FoldScore,
    FoldScores,
    accuracy_interval,
    binomial_interval,
    cross_validate,
    t_interval,
)
from marginbn.classifiers.measures import Quality
from marginbn.data.labelled import stratified_folds, stratified_holdout
from marginbn.data.table import Table, as_table
from marginbn.data.training import TrainingRows
from marginbn.exceptions import DataWarning, InputError, OptimalityWarning
from marginbn.solvers.result import Status, TracePoint

unit = st.floats(0, 1)


def small_table(n_rows: int = 40, seed: int = 0) -> tuple[Table, NDArray[Any]]:
    """Two classes, two informative features and one that is noise."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(2, size=n_rows)
    noisy = np.where(rng.random(n_rows) < 0.2, 1 - labels, labels)
    columns = np.column_stack([noisy, labels + rng.normal(size=n_rows), rng.normal(size=n_rows)])
    return as_table(columns, names=["a", "b", "c"]), np.array(["no", "yes"])[labels]


def test_half_of_four_hundred_rows_is_known_to_about_five_points() -> None:
    """1.96 sqrt(0.25 / 400) = 0.049, the paper's interval."""
    assert binomial_interval(0.5, 400) == pytest.approx(0.049, abs=1e-12)
    assert binomial_interval(1.0, 10) == 0.0


@pytest.mark.parametrize(("right", "n"), [(20, 20), (0, 20), (47, 50), (1, 3), (999, 1000)])
def test_an_accuracy_on_few_rows_is_never_told_as_certain(right: int, n: int) -> None:
    """Where fewer than five rows are right or wrong: the far end of scipy's Wilson interval."""
    low, high = binomtest(right, n).proportion_ci(0.95, method="wilson")
    far = max(right / n - low, high - right / n)
    assert accuracy_interval(right / n, n) == pytest.approx(far, rel=1e-4)


def test_an_accuracy_on_many_rows_is_told_as_in_the_paper() -> None:
    """Five of each are enough."""
    assert accuracy_interval(0.95, 100) == binomial_interval(0.95, 100)


@pytest.mark.parametrize(("p", "n"), [(1.1, 10), (-0.1, 10), (math.nan, 10), (0.5, 0)])
def test_impossible_accuracies_are_refused(p: float, n: int) -> None:
    with pytest.raises(InputError, match="must"):
        binomial_interval(p, n)


def test_two_folds_make_a_wide_interval() -> None:
    """With k = 2 the quantile is tan(0.475 pi) = 12.706, the standard error |a - b| / 2."""
    mean, half = t_interval([0.8, 0.9])
    assert mean == pytest.approx(0.85)
    assert half == pytest.approx(math.tan(0.475 * math.pi) * 0.05)
    with pytest.raises(InputError, match="at least two fold scores"):
        t_interval([0.5])


@settings(deadline=None)
@given(st.lists(unit, min_size=2, max_size=12))
def test_the_t_interval_agrees_with_scipy(scores: list[float]) -> None:
    first = np.round(scores, 3)
    error = stats.sem(first)
    expected = stats.t.interval(0.95, len(first) - 1, first.mean(), error) if error > 0 else None
    mean, half = t_interval(first)
    if expected is not None:
        assert (mean - half, mean + half) == pytest.approx(expected)


@settings(deadline=None)
@given(
    labels=st.lists(st.integers(0, 3), min_size=2, max_size=80),
    fraction=st.floats(0.01, 0.99),
    seed=st.integers(0, 5),
)
def test_holdout_is_a_stratified_partition(labels: list[int], fraction: float, seed: int) -> None:
    """Every row lands in one part, both have some, and class shares differ by one row at most."""
    array = np.array(labels)
    train, test = stratified_holdout(array, fraction, seed)
    assert sorted([*train, *test]) == list(range(len(labels)))
    assert len(train) > 0
    assert len(test) == min(max(round(fraction * len(labels)), 1), len(labels) - 1)
    for label in set(labels):
        share = len(test) / len(labels) * (array == label).sum()
        assert abs((array[test] == label).sum() - share) <= 1 + 1e-9


def test_a_seed_makes_the_holdout_reproducible() -> None:
    labels = np.arange(100) % 3
    first, again = stratified_holdout(labels, 0.3, 1)[1], stratified_holdout(labels, 0.3, 1)[1]
    assert (first == again).all()
    assert set(first) != set(stratified_holdout(labels, 0.3, 2)[1])


def test_cross_validation_is_the_loop_one_would_write() -> None:
    """Fit on the others, score on the fold; the classifier never sees its test rows."""
    table, labels = small_table()
    seen: list[FoldScore] = []
    result = cross_validate(NaiveBayesClassifier, table, labels, 4, seed=3, on_fold=seen.append)
    expected = []
    for train, test in stratified_folds(labels, 4, 3):
        fitted = NaiveBayesClassifier().fit(table.take(train), labels[train])
        expected.append(np.mean(fitted.predict(table.take(test)) == labels[test]))
    assert result.accuracies == pytest.approx(expected)
    assert result.mean == pytest.approx(np.mean(expected))
    assert tuple(seen) == result.folds
    assert result.all_proved
    assert [fold.n_train + fold.n_test for fold in seen] == [len(labels)] * 4


def test_workers_change_nothing() -> None:
    table, labels = small_table()
    alone = cross_validate(NaiveBayesClassifier, table, labels, 3)
    together = cross_validate(NaiveBayesClassifier, table, labels, 3, n_jobs=2)
    assert alone.accuracies == together.accuracies


class StoppedClassifier(TANClassifier):
    """A tree that claims to have stopped with a gap."""

    def _learn(self, rows: TrainingRows) -> Fitted:
        warnings.warn("out of time", OptimalityWarning, stacklevel=2)
        fitted = super()._learn(rows)
        assert fitted.result is not None
        bound = fitted.result.objective + 1
        return replace(fitted, result=replace(fitted.result, bound=bound, status=Status.TIME_LIMIT))


def test_open_searches_are_told_once() -> None:
    table, labels = small_table()
    with pytest.warns(OptimalityWarning, match="in 3 of 3 folds, such as: out of time") as caught:
        result = cross_validate(StoppedClassifier, table, labels, 3)
    assert len(caught) == 1
    assert not result.all_proved
    assert result.max_gap == max(fold.gap for fold in result.folds) > 0


def test_dropped_rows_are_told_once() -> None:
    """Rows with missing values are left out of training in every fold, with one warning."""
    table, labels = small_table()
    holes = [
        [None if i == 0 else v for v in column.values] for i, column in enumerate(table.columns)
    ]
    holes[0][5:] = list(table.columns[0].values[5:])
    make = partial(NaiveBayesClassifier, missing="drop")
    with pytest.warns(DataWarning, match="in 4 of 4 folds, such as: "):
        cross_validate(make, as_table(list(zip(*holes, strict=True))), labels, 4)


def test_an_interrupt_is_not_averaged_over() -> None:
    """A search that somebody stopped ends the whole cross-validation."""
    table, labels = small_table()

    def stop(_: TracePoint) -> bool:
        return True

    def make() -> MaxMarginBNClassifier:
        return MaxMarginBNClassifier(search=Search(solver="highs", callback=stop))

    with pytest.raises(KeyboardInterrupt):
        cross_validate(make, table, labels, 3)


@pytest.mark.parametrize("n_folds", [1, 41])
def test_impossible_folds_are_refused(n_folds: int) -> None:
    """Between two folds and one per row."""
    table, labels = small_table(40)
    with pytest.raises(InputError, match="n_folds must lie between 2"):
        cross_validate(NaiveBayesClassifier, table, labels, n_folds)


def test_labels_must_fit_the_table() -> None:
    table, labels = small_table(40)
    with pytest.raises(InputError, match="one entry per row"):
        cross_validate(NaiveBayesClassifier, table, labels[:-1], 3)


def test_fold_scores_summarise_their_folds() -> None:
    good = FoldScore(0.9, 8, 2, "optimal", 0.0, 1.0)
    quality = Quality.measure(["a", "b"], ["a"], [[0.9, 0.1]])
    scores = FoldScores((good, FoldScore(0.7, 8, 2, "time_limit", 0.25, 1.0)), quality)
    assert (scores.max_gap, scores.all_proved) == (0.25, False)
    assert scores.mean == pytest.approx(0.8)
    assert scores.half_width == t_interval([0.9, 0.7])[1]
