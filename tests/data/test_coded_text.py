"""New rows are read as training was, whatever else stands in their chunk."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from marginbn.data.coded_text import FeatureRows, WantedColumn, find_categories, read_texts
from marginbn.data.delimited import TextTable
from marginbn.data.splitting import ArrowTexts
from marginbn.data.table import as_table
from marginbn.data.text import Origin
from marginbn.exceptions import FormatError

ORIGIN = Origin("new.csv", [2, 3, 4, 5])


def as_arrow(texts: list[str]) -> Any:
    """The same as an array of pyarrow."""
    return ArrowTexts(pytest.importorskip("pyarrow").chunked_array([texts]))


@pytest.mark.parametrize("wrap", [list, as_arrow])
def test_categories_are_those_of_training(wrap: Any) -> None:
    """Text stays text even if a chunk holds numbers only; numbers match by value."""
    texts = wrap(["1.0", " x ", "?", "y"])
    column = read_texts(WantedColumn("u", "categorical", ("1.0", "x")), texts, ORIGIN)
    assert column.values.tolist() == ["1.0", "x", None, "y"]
    assert column.codes.tolist() == [0, 1, -1, 2]
    ints = read_texts(
        WantedColumn("u", "categorical", (1, 2)), wrap(["2.0", "1", "01", ""]), ORIGIN
    )
    assert ints.codes.tolist() == [1, 0, 2, -1]
    floats = WantedColumn("u", "categorical", (0.5, 2))
    assert read_texts(floats, wrap(["0.50", "2", "2.0", "NA"]), ORIGIN).codes.tolist() == [
        0,
        1,
        1,
        -1,
    ]
    flags = WantedColumn("u", "categorical", (False, True))
    assert read_texts(flags, wrap(["True", "False", "1", "0"]), ORIGIN).codes.tolist() == [
        1,
        0,
        2,
        3,
    ]


@pytest.mark.parametrize("wrap", [list, as_arrow])
def test_numbers_with_and_without_missing_values(wrap: Any) -> None:
    """Spaces around them are nothing; what is none is named with its line."""
    wanted = WantedColumn("u", "numeric")
    assert read_texts(wanted, wrap(["1", "2.5", "-3", "0"]), ORIGIN).numbers.tolist() == [
        1,
        2.5,
        -3,
        0,
    ]
    column = read_texts(wanted, wrap(["1", " 2.5 ", "", "nan"]), ORIGIN)
    np.testing.assert_array_equal(column.numbers, [1, 2.5, np.nan, np.nan])
    with pytest.raises(FormatError, match=r"new\.csv, line 4: column 'u' is to be numeric"):
        read_texts(wanted, wrap(["1", "2", "abc", "3"]), ORIGIN)
    with pytest.raises(FormatError, match="line 3: column 'u' holds inf"):
        read_texts(wanted, wrap(["1", "inf", "2", "3"]), ORIGIN)


def test_chunks_of_every_sort() -> None:
    """Text, a table of our own, one of pyarrow: the same columns, the absent ones empty."""
    pa = pytest.importorskip("pyarrow")
    wanted = [
        WantedColumn("c", "categorical", ("a", "b")),
        WantedColumn("gone", "numeric"),
        WantedColumn("n", "numeric"),
        WantedColumn("lost", "categorical", ("z",)),
    ]
    text = TextTable(("n", "c"), (("1", "2"), ("b", "?")), ORIGIN, 2)
    frame = {"n": [1.0, 2.0], "c": ["b", None], "more": [0, 0]}
    own = as_table([[1.0, "b"], [2.0, None]], names=["n", "c"])
    for chunk in (text, own, pa.table(frame)):
        rows = FeatureRows.read(chunk, wanted)
        assert rows.table.names == ("c", "gone", "n", "lost")
        assert rows.absent == ("gone", "lost")
        assert rows.table.columns[0].values.tolist() == ["b", None]
        assert rows.table.columns[2].values.tolist() == [1.0, 2.0]
        assert rows.table.columns[1].missing.all()
        assert rows.table.columns[3].missing.all()
    assert FeatureRows.read(pa.table({"more": [1]}), wanted).absent == ("c", "gone", "n", "lost")


def test_equal_texts_find_one_place() -> None:
    """Levels that differ by spaces only come here as equals."""
    places, unseen = find_categories(("a",), ["x", "a", "x"])
    assert places.tolist() == [1, 0, 1]
    assert unseen == ["x"]
