"""Training rows become codes: many rows, and little time."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

from marginbn.data import training
from marginbn.data.labelled import LabelledTable
from marginbn.data.table import as_table
from marginbn.data.training import encode_training
from marginbn.exceptions import DataWarning, InputError


def test_many_rows_are_encoded_by_column(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same codes as of few rows; a gap is refused, not taken for a state."""
    rng = np.random.default_rng(5)
    numbers = rng.normal(size=40)
    words = rng.choice(["a", "b", "c"], 40).tolist()
    table = as_table(list(zip(numbers.tolist(), words, strict=True)), names=["x", "y"])
    rows = LabelledTable.of(table, (numbers > 0.2).astype(int))
    usual = encode_training(rows, "drop")
    monkeypatch.setattr(training, "PIECE", 16)
    large = encode_training(rows, "drop")
    assert (usual.data.codes.dtype, large.data.codes.dtype) == (np.int32, np.uint8)
    assert np.array_equal(large.data.codes, usual.data.codes)
    assert large.coding == usual.coding
    numbers[3] = np.nan
    holes = as_table(numbers[:, np.newaxis], names=["x"])
    with pytest.raises(InputError, match="'x' has missing values"):
        encode_training(LabelledTable.of(holes, np.arange(40) % 2), "drop")


def test_when_it_is_late_columns_are_cut_by_some_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first column by all rows, the rest by 200 of them; kinds and gaps are those of all."""
    monkeypatch.setattr(training, "ENOUGH_ROWS", 200)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 3000)
    a, b = y + rng.normal(size=3000), y + rng.normal(size=3000)
    b[7] = np.nan
    features = pandas.DataFrame({"a": a, "b": b, "c": y.astype(str)})
    rows = LabelledTable.of(as_table(features), y)
    asked = iter([False, True])
    with pytest.warns(DataWarning, match=r"1 numeric columns \('b'\) come from 200 rows"):
        hurried = encode_training(rows, "state", lambda: next(asked)).coding
    whole = encode_training(rows, "state").coding
    assert hurried.columns[0] == whole.columns[0]
    assert hurried.columns[2] == whole.columns[2]
    few = np.sort(np.random.default_rng(0).choice(3000, 200, replace=False))
    some = encode_training(rows.take(few), "state").coding
    assert hurried.columns[1].cuts == some.columns[1].cuts != whole.columns[1].cuts
    assert hurried.columns[1].missing_state


def test_short_tables_are_never_hurried() -> None:
    """A limit that is over before anything began changes nothing there."""
    y = np.arange(60) % 2
    rows = LabelledTable.of(as_table((y + np.arange(60) / 100)[:, None]), y)
    hurried = encode_training(rows, "error", lambda: True)
    assert hurried.coding == encode_training(rows, "error").coding
