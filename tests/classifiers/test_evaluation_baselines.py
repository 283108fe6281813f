"""Majority and logistic regression on a table."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from marginbn.classifiers.evaluation import (
    LogisticBaseline,
    MajorityBaseline,
    cross_validate,
    logistic_accuracy,
)
from marginbn.data.labelled import LabelledTable
from marginbn.data.preparation import TableSettings
from marginbn.data.table import as_table

RNG = np.random.default_rng(0)
LABELS = RNG.integers(2, size=90)
NUMBERS = RNG.normal(LABELS, 1.0)
COLOURS = np.where(RNG.random(90) < 0.7, np.where(LABELS == 1, "red", "blue"), "grey")
ROWS = [
    [f"row {i}", None if i == 5 else float(x), str(c)]
    for i, (x, c) in enumerate(zip(NUMBERS, COLOURS, strict=True))
]
TABLE = as_table(ROWS)


def test_majority_gives_the_shares() -> None:
    found = MajorityBaseline().fit(TABLE, LABELS).predict_proba(TABLE)
    assert found[0] == pytest.approx([1 - LABELS.mean(), LABELS.mean()])
    assert np.ptp(found, axis=0) == pytest.approx([0, 0])


def test_logistic_regression_by_hand() -> None:
    """Standardised numbers with the median for missing ones, indicators; the name is left out."""
    x = NUMBERS.copy()
    x[5] = np.median(np.delete(NUMBERS, 5))
    columns = [(x - x.mean()) / x.std(), *(c == COLOURS for c in ("blue", "grey", "red"))]
    X = np.column_stack(columns)
    expected = LogisticRegression(max_iter=300).fit(X, LABELS).predict_proba(X)
    found = LogisticBaseline().fit(TABLE, LABELS).predict_proba(TABLE)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    weighted = (
        LogisticBaseline(TableSettings(class_weight={"1": 3}))
        .fit(TABLE, LABELS)
        .predict_proba(TABLE)
    )
    own = LogisticRegression(max_iter=300, class_weight={1: 3}).fit(X, LABELS).predict_proba(X)
    np.testing.assert_allclose(weighted, own, atol=1e-4)


def test_new_categories_and_missing_values_are_answered() -> None:
    model = LogisticBaseline().fit(TABLE, LABELS)
    rows = as_table([["new", 0.5, "violet"], ["new", None, None]])
    assert np.isfinite(model.predict_proba(rows)).all()


def test_baselines_can_be_cross_validated() -> None:
    scores = cross_validate(LogisticBaseline, TABLE, LABELS, 3)
    assert scores.all_proved
    assert scores.quality is not None
    assert scores.quality.n_rows == 90
    assert scores.quality.accuracy == pytest.approx(
        np.average(scores.accuracies, weights=[fold.n_test for fold in scores.folds])
    )


def test_a_fold_with_a_single_class() -> None:
    """Its class is certain; the other classes of the data get nothing."""
    alone = LogisticBaseline(TableSettings(class_weight={"1": 3})).fit(
        TABLE, np.ones(90, dtype=int)
    )
    assert alone.classes_.tolist() == [1]
    assert alone.predict_proba(TABLE).tolist() == [[1.0]] * 90
    labels = np.array([0] * 89 + [1])  # the one is held out by one of the folds
    assert min(cross_validate(LogisticBaseline, TABLE, labels, 2).accuracies) == 44 / 45


def test_logistic_regression_is_judged_by_the_rows_of_the_default_classifier() -> None:
    """A row that is left out for a missing value is left out of both."""
    rows = LabelledTable.of(TABLE.drop(TABLE.names[0]), LABELS)
    known = rows.take(np.flatnonzero(np.arange(90) != 5))
    settings = TableSettings()
    assert logistic_accuracy(rows, settings) == logistic_accuracy(known, settings)
    assert (89 * logistic_accuracy(rows, settings)) == pytest.approx(
        round(89 * logistic_accuracy(rows, settings))
    )
    state = 90 * logistic_accuracy(rows, TableSettings(missing="state"))
    assert state == pytest.approx(round(state))
