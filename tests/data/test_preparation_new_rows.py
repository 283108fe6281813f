"""New rows are read as training was, whatever else stands in their block, one by one too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from marginbn import NaiveBayesClassifier
from marginbn.classifiers import validation
from marginbn.data import preparation
from marginbn.data.preparation import RowCoder, coded_blocks
from marginbn.data.profile import ColumnReading
from marginbn.data.source import Source, source_of_memory
from marginbn.data.table import as_table, source_of_typed
from marginbn.exceptions import DataWarning, FormatError, InputError

NEW = Source((), lambda names: iter(()), "new.csv", is_text=True, line_of=lambda row: row + 2)


def codes(categories: tuple[Any, ...], texts: list[str]) -> list[int]:
    reading = ColumnReading("u", "categorical", True, categories)
    found: list[int] = reading.read(pa.array(texts)).codes.tolist()
    return found


def test_categories_are_those_of_training() -> None:
    """Text stays text even if a block holds numbers only; numbers match by value."""
    assert codes(("1.0", "x"), ["1.0", " x ", "?", "y"]) == [0, 1, -1, 2]
    assert codes((1, 2), ["2.0", "1", "01", ""]) == [1, 0, 2, -1]
    assert codes((0.5, 2), ["0.50", "2", "2.0", "NA"]) == [0, 1, 1, -1]
    assert codes((False, True), ["True", "False", "1", "0"]) == [1, 0, 2, 3]
    assert codes(("a",), ["x", "a", "x"]) == [1, 0, 1]


def answer(reading: ColumnReading, texts: list[str], first_row: int = 0) -> None:
    block = pa.table({"u": pa.array(texts)})
    NEW.answer(lambda table, _: reading.read(table.column("u")), block, first_row)


def test_numbers_with_and_without_missing_values() -> None:
    """Spaces around them are nothing; what is none is named with its line."""
    reading = ColumnReading("u", "numeric", True)
    assert reading.read(pa.array(["1", "2.5", "-3"])).numbers.tolist() == [1, 2.5, -3]
    column = reading.read(pa.array(["1", " 2.5 ", "", "nan"]))
    np.testing.assert_array_equal(column.numbers, [1, 2.5, np.nan, np.nan])
    with pytest.raises(FormatError, match=r"new\.csv, line 4: column 'u' is to be numeric"):
        answer(reading, ["1", "2", "abc", "3"])
    with pytest.raises(FormatError, match="line 13: column 'u' holds inf"):
        answer(reading, ["1", "inf", "2"], first_row=10)


FRAME = pd.DataFrame(
    {
        "colour": ["red", "blue", None, "red", "green", "blue"] * 5,
        "size": [0.5, 1.5, 2.5, np.nan, 4.5, 5.5] * 5,
        "code": [1, 2, 3, 1, 2, 3] * 5,
        "flag": [True, False, True, True, False, False] * 5,
    }
)
LABELS = np.array([0, 1, 0, 0, 1, 1] * 5)


@pytest.fixture
def fitted() -> NaiveBayesClassifier:
    return NaiveBayesClassifier(missing="state").fit(FRAME, LABELS)


def test_columns_that_a_source_lacks_hold_no_value(fitted: NaiveBayesClassifier) -> None:
    source = source_of_memory(FRAME[["size", "colour"]])
    with pytest.raises(InputError, match=r"lacks columns of training: \['code', 'flag'\]"):
        next(coded_blocks(fitted.preparation_, fitted.coding_, source))
    ((_, codes),) = coded_blocks(fitted.preparation_, fitted.coding_, source, may_lack=True)
    expected = fitted.encode(FRAME)
    np.testing.assert_array_equal(codes[:, :2], expected[:, :2])
    assert (codes[:, 2:] == -1).all()


def test_one_row_has_the_answer_of_a_table(fitted: NaiveBayesClassifier) -> None:
    """As a dict, in a list, as an array and as a frame, with and without missing values."""
    expected = fitted.predict_proba(FRAME)
    for i in range(6):
        row = FRAME.iloc[[i]]
        values = row.iloc[0].tolist()
        named = dict(zip(FRAME.columns, values, strict=True))
        table = pa.Table.from_pandas(row, preserve_index=False)
        frames = [row, table, pl.from_arrow(table)]
        given = [named, [named], [values], np.array([values], dtype=object), *frames]
        for X in given:
            np.testing.assert_array_equal(fitted.predict_proba(X), expected[i : i + 1])
    for missing in (pd.NA, pd.NaT, np.nan, None):
        row = {"colour": missing, "size": missing, "code": 3, "flag": False}
        np.testing.assert_array_equal(
            fitted.predict_proba(pd.DataFrame([row], dtype=object)),
            fitted.predict_proba({"code": 3, "flag": False}),
        )
    two = [dict(FRAME.iloc[i]) for i in range(2)]
    np.testing.assert_allclose(fitted.predict_proba(two), expected[:2])
    lacking = fitted.predict_proba({"colour": "red"})
    empty = {"colour": "red", "size": None, "code": None, "flag": None}
    np.testing.assert_array_equal(lacking, fitted.predict_proba(empty))


def test_what_is_unusual_takes_the_way_of_a_table(fitted: NaiveBayesClassifier) -> None:
    """With the same answers, warnings and errors."""
    coder = RowCoder(fitted.preparation_, fitted.coding_)
    assert coder.encode({"colour": "violet"}) is None
    assert coder.encode({"size": "1.5"}) is None
    assert coder.encode({"code": 2.0}) is not None
    with pytest.warns(DataWarning, match="'colour' .1 value, such as 'violet'"):
        fitted.predict({"colour": "violet"})
    with pytest.raises(InputError, match=r"'size'.*inf"):
        fitted.predict({"size": float("inf")})
    with pytest.raises(InputError, match="no row has a value of the columns of training"):
        fitted.predict({"color": "red"})


def test_rare_categories_of_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Share the state that training gave them; dates and amounts are no single look-up."""
    words = np.repeat([f"w{i}" for i in range(12)], np.arange(12) + 3)
    labels = np.arange(len(words)) % 2
    monkeypatch.setattr(preparation, "MAX_STATES", 5)
    with pytest.warns(DataWarning, match="rare categories"):
        found = NaiveBayesClassifier().fit([[w] for w in words], labels)
    rows = [[f"w{i}"] for i in range(12)]
    expected = found.predict_proba(rows)
    for i, row in enumerate(rows):
        np.testing.assert_array_equal(found.predict_proba([row]), expected[i : i + 1])


def test_predicting_leaves_the_classifier_as_it_was(fitted: NaiveBayesClassifier) -> None:
    before = dict(fitted.__dict__)
    fitted.predict({"colour": "red"})
    assert fitted.__dict__ == before
    assert validation.single_row(fitted, FRAME) is None


def test_a_typed_table_is_a_source() -> None:
    """With categories, numbers and missing values."""
    table = as_table([["b", 0.5], [None, None], ["a", 2.5]], names=["w", "n"])
    again = as_table(source_of_typed(table))
    assert again.column("w").values.tolist() == ["b", None, "a"]
    assert again.column("w").categories == table.column("w").categories
    np.testing.assert_array_equal(again.column("n").values, [0.5, np.nan, 2.5])
