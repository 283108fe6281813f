"""Dates from anywhere become year, month and weekday."""

from __future__ import annotations

import calendar
import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from marginbn import NaiveBayesClassifier, load_model, save_model
from marginbn.data.table import as_column, as_table
from marginbn.data.texts import date_parts, kinds_of_dates
from marginbn.exceptions import DataWarning, InputError

DAYS = [datetime.date(2024, 5, 31), None, datetime.date(1999, 1, 1), datetime.date(2024, 5, 31)]
TEXTS = [None if day is None else day.isoformat() for day in DAYS]
SOURCES = {
    "list": [[day] for day in DAYS],
    "text": [[text] for text in TEXTS],
    "times": [[None if text is None else f"{text}T23:59:01"] for text in TEXTS],
    "numpy": np.array(TEXTS, dtype="datetime64[s]").reshape(-1, 1),
    "pandas": pd.DataFrame({"x0": pd.to_datetime(pd.Series(TEXTS))}),
    "polars": pl.DataFrame({"x0": DAYS}),
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_parts_are_the_calendar_s(source: Any) -> None:
    column = as_table(source, kinds={"x0": "date"}).column("x0")
    year, month, weekday = date_parts(column)
    assert [part.name for part in (year, month, weekday)] == ["x0 year", "x0 month", "x0 weekday"]
    for row, day in enumerate(DAYS):
        if day is None:
            assert np.isnan(year.numbers[row])
            assert (month.values[row], weekday.values[row]) == (None, None)
        else:
            assert (year.numbers[row], month.values[row]) == (day.year, day.month)
            assert weekday.values[row] == calendar.day_name[day.weekday()]


def test_what_is_no_date_is_refused_with_the_remedy() -> None:
    with pytest.raises(InputError, match=r"'x0'.*'31.5.2024'.*2024-05-31"):
        date_parts(as_table([["31.5.2024"]], kinds="date").columns[0])
    with pytest.raises(InputError, match=r"'x0' is to be of kind 'date', but row 1 .* 'soon'"):
        date_parts(as_table([["2024-05-31"], ["soon"]], kinds="date").columns[0])
    with pytest.raises(InputError, match="20240531"):
        date_parts(as_table([[20240531]], kinds="date").columns[0])


def test_text_that_looks_like_dates() -> None:
    """All of it or none; digits alone are numbers."""
    assert kinds_of_dates(["2024-05-31", "1999-01-01"]) == ["date"]
    assert not kinds_of_dates(["20240531"])
    assert not kinds_of_dates(["2024-05-31", "soon"])
    assert not kinds_of_dates([])


def test_slashes_between_year_month_and_day() -> None:
    """Nobody writes the day second after a year."""
    texts = ["2024/5/31", "2024/05/31", "2024/12/01 12:30"]
    assert date_parts(as_column(texts))[1].values.tolist() == [5, 5, 12]
    assert kinds_of_dates(["2012/01/01", "2012/01/02 12:00:00 AM GMT+2"]) == ["date"]
    assert not kinds_of_dates(["2012/13/01"])


def test_the_year_at_the_end_takes_a_word_on_day_and_month() -> None:
    """The column tells which of the two comes first, if any day is above twelve; dots mean days."""
    assert kinds_of_dates(["01/02/2012", "31/01/2012"]) == ["day-first"]
    assert kinds_of_dates(["01/02/2012 10:30", "01/31/2012 9:05"]) == ["month-first"]
    assert kinds_of_dates(["01/02/2012"]) == ["day-first", "month-first"]
    assert kinds_of_dates(["01.02.2012"]) == ["day-first"]
    assert kinds_of_dates(["31/01/2012", "01/31/2012"]) == []
    column = as_column(["5/6/2024", "2024-05-06"], kind="categorical")
    assert date_parts(column, "month-first")[1].values.tolist() == [5, 5]
    assert date_parts(column, "day-first")[1].values.tolist() == [6, 5]
    with pytest.raises(InputError, match=r"'day-first' means 31\.5\.2024"):
        date_parts(as_column(["5/31/2024"], name="d"), "day-first")


def test_dates_whose_day_and_month_are_open_are_left_out_with_the_remedy() -> None:
    """Both kinds are named."""
    rows = [[f"{1 + i % 12}/{1 + i // 12}/2024", i] for i in range(60)]
    remedy = r"column_kinds=\{'x0': 'day-first'\}, or 'month-first', makes year, month, weekday"
    with pytest.warns(DataWarning, match=rf"'x0' \(60 of 60 values differ, dates: {remedy}\)"):
        NaiveBayesClassifier(column_kinds={"x1": "numeric"}).fit(rows, [i // 30 for i in range(60)])


def test_a_classifier_reads_later_dates_as_those_of_training(tmp_path: Path) -> None:
    rows = [[f"{1 + i % 28}.{1 + i // 10}.20{20 + i % 3}", "a"] for i in range(60)]
    labels = [i // 30 for i in range(60)]
    fitted = NaiveBayesClassifier(column_kinds={"x0": "day-first"}).fit(rows, labels)
    save_model(fitted, tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert loaded.predict([["1.6.2021", "a"], ["6.1.2021", "a"]]).tolist() == [1, 0]
    with pytest.warns(DataWarning, match="taken apart into year, month and weekday: 'x0'"):
        found = NaiveBayesClassifier().fit(rows, labels)
    assert found.coding_ == fitted.coding_
