"""What each policy does to rows, columns and classes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginbn.data.labelled import (
    MOST_OF_A_CLASS,
    MOST_ROWS,
    LabelledTable,
    MissingCost,
    cost_of_places,
    label_codes,
)
from marginbn.data.preparation import TableSettings
from marginbn.data.table import Table, as_column
from marginbn.data.training import TrainingRows, survey_rows
from marginbn.exceptions import DataWarning, InputError


def table(**columns: list[str | None]) -> Table:
    return Table(tuple(as_column(values, name=name) for name, values in columns.items()))


def missing_cost(features: Table, labels: Any, policy: str) -> MissingCost:
    classes, codes = label_codes(np.asarray(labels))
    missing = {c.name: c.missing for c in features.columns if c.missing.any()}
    return cost_of_places(missing, codes, policy, classes)


def test_auto_drops_few_rows_and_gives_a_state_to_the_rest() -> None:
    """One row in a hundred is left out, a column that misses half of its values gets a state."""
    few: list[str | None] = [None, *["a"] * 99]
    much = [None, "b"] * 50
    cost = missing_cost(table(few=few, much=much), np.arange(100) % 2, "auto")
    assert (cost.n_dropped, cost.dropping_columns, cost.state_columns) == (1, ("few",), ("much",))


def test_auto_never_loses_a_class() -> None:
    values: list[str | None] = ["a"] * 200
    values[:3] = [None] * 3
    labels = np.array(["rare"] * 3 + ["usual"] * 197)
    features = table(x=values)
    assert missing_cost(features, labels, "auto").n_dropped == 0
    assert missing_cost(features, labels, "drop").lost_classes == ("rare",)


def kept_rows(rows: LabelledTable, missing: Any) -> LabelledTable:
    return TrainingRows.of(survey_rows(rows), TableSettings(missing=missing)).drawn


def test_a_class_that_would_vanish_is_named() -> None:
    X = table(x=["a", "b"] * 10 + [None] * 5)
    rows = LabelledTable.of(X, np.array(["A", "B"] * 10 + ["C"] * 5))
    with pytest.raises(InputError, match=r"no row of the class 'C'.*'auto'.*'x' \(5 rows\)"):
        kept_rows(rows, "drop")
    assert kept_rows(rows, "auto").n_rows == 25


def test_what_auto_leaves_out_is_told() -> None:
    rows = LabelledTable.of(table(x=[None, *["a", "b"] * 50]), np.arange(101) % 2)
    with pytest.warns(DataWarning, match="1 of 101 rows .*in 'x' .*'auto'") as caught:
        assert kept_rows(rows, "auto").n_rows == 100
    assert caught[0].filename == __file__


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(5, 150), st.integers(1, 4))
def test_auto_keeps_its_promises(seed: int, n_rows: int, n_columns: int) -> None:
    """Few rows in all, few of each class, and only rows that miss something it cannot keep."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(3, n_rows, p=[0.7, 0.25, 0.05])
    shares = rng.choice([0.0, 0.01, 0.04, 0.3], n_columns)
    columns = {
        f"x{i}": [None if rng.random() < share else "a" for _ in range(n_rows)]
        for i, share in enumerate(shares)
    }
    cost = missing_cost(table(**columns), labels, "auto")
    assert cost.n_dropped <= MOST_ROWS * n_rows
    for label in np.unique(labels):
        assert (~cost.kept[labels == label]).mean() <= MOST_OF_A_CLASS
    misses = [any(columns[c][r] is None for c in cost.dropping_columns) for r in range(n_rows)]
    assert (~cost.kept).tolist() == misses
    assert {c for c, v in columns.items() if None in v} == {
        *cost.state_columns,
        *cost.dropping_columns,
    }


def test_nothing_is_said_of_complete_rows() -> None:
    rows = LabelledTable.of(table(x=["a", "b"]), np.array([0, 1]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for policy in ("auto", "drop", "state", "error"):
            assert kept_rows(rows, policy).n_rows == 2
