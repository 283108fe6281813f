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

from marginbn.data.dates import column_from_dates, date_parts, looks_like_dates
from marginbn.data.readers import read_table
from marginbn.data.table import as_table
from marginbn.exceptions import InputError

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
    """Against Python's own calendar, from every container."""
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


def test_files_have_dates_too(tmp_path: Path) -> None:
    """As text in CSV, as strings in ARFF."""
    csv, arff = tmp_path / "t.csv", tmp_path / "t.arff"
    csv.write_text("d,e\n2024-05-31,1\n,2\n")
    arff.write_text(
        "@relation r\n@attribute d string\n@attribute e numeric\n@data\n2024-05-31,1\n?,2\n"
    )
    for path in (csv, arff):
        assert read_table(path, kinds={"d": "date"}).column("d").values.tolist() == [
            "2024-05-31",
            None,
        ]


def test_what_is_no_date_is_refused_with_the_remedy() -> None:
    """Other ways to write dates, numbers, and dates that nobody declared."""
    with pytest.raises(InputError, match=r"'x0'.*'31.5.2024'.*2024-05-31"):
        as_table([["31.5.2024"]], kinds="date")
    with pytest.raises(InputError, match="20240531"):
        as_table([[20240531]], kinds="date")
    with pytest.raises(InputError, match=r"column_kinds=\{'x0': 'date'\}"):
        as_table([[datetime.date(2024, 5, 31)]])


def test_text_that_looks_like_dates() -> None:
    """ISO text only; digits alone are numbers."""
    assert looks_like_dates(["2024-05-31", "1999-01-01"])
    assert not looks_like_dates(["20240531"])
    assert not looks_like_dates(["2024-05-31", "soon"])
    assert not looks_like_dates([])


def test_slashes_between_year_month_and_day() -> None:
    """Nobody writes the day second after a year; every other order stays a matter of opinion."""
    column = column_from_dates("d", ["2024/5/31", "2024/05/31", "2024/12/01 12:30"])
    assert column.categories == ("2024-05-31", "2024-12-01")
    assert looks_like_dates(["2012/01/01", "2012/01/02"])
    assert not looks_like_dates(["01/02/2012"])
    assert not looks_like_dates(["2012/13/01"])
