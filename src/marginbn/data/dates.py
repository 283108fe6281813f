"""Dates: a column of them becomes year, month and weekday, which a table of counts can use.

A column is made of dates only where the user says so (``column_kinds={"signed": "date"}``). It is
kept as a categorical column of ISO texts ("2024-05-31"), so that files, data frames and arrays look
alike; :func:`date_parts` takes these apart. The time of day is ignored.
"""

from __future__ import annotations

import calendar
import datetime
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from marginbn.data.columns import Column, categorical_column, factorize, tidy
from marginbn.exceptions import InputError

PARTS = ("year", "month", "weekday")
_SLASHED = re.compile(r"(\d{4})/(\d{1,2})/(\d{1,2})(?!\d)")
_WEEKDAYS = tuple(calendar.day_name)


def column_from_dates(name: str, values: Sequence[Any]) -> Column:
    """Categorical column of ISO dates; text must be ISO 8601 (2024-05-31T12:30) or 2024/5/31."""
    codes, levels = factorize(list(values), missing=_is_missing)
    return categorical_column(name, codes, [_parsed(name, v).isoformat() for v in levels], None)


def as_dates(column: Column) -> Column:
    """The same for a column that is read already."""
    column = column.as_kind("categorical")
    days = [_parsed(column.name, category).isoformat() for category in column.categories]
    if list(column.categories) == days:
        return column
    return categorical_column(column.name, column.codes.astype(np.int64), days, None)


def part_names(name: str) -> tuple[str, ...]:
    """Names of the columns that a date becomes."""
    return tuple(f"{name} {part}" for part in PARTS)


def date_parts(column: Column) -> tuple[Column, Column, Column]:
    """Year (a number), month and weekday of a column of ISO dates."""
    days = [datetime.date.fromisoformat(str(category)) for category in column.categories]
    year, month, weekday = part_names(column.name)
    years = np.array([float(day.year) for day in days] + [np.nan])
    months = np.array([day.month - 1 for day in days] + [-1])
    weekdays = np.array([day.weekday() for day in days] + [-1])
    return (
        Column.numeric(year, years[column.codes]),
        Column.categorical(month, months[column.codes], range(1, 13)),
        Column.categorical(weekday, weekdays[column.codes], _WEEKDAYS),
    )


def looks_like_dates(categories: Sequence[Any]) -> bool:
    """Whether all of them are dates as text, ISO or 2024/5/31; digits alone are numbers."""
    texts = [category for category in categories if isinstance(category, str)]
    return bool(texts) and len(texts) == len(categories) and all(map(_is_date_text, texts))


def _is_date_text(text: str) -> bool:
    if text.isdigit():
        return False
    try:
        datetime.datetime.fromisoformat(_as_iso(text))
    except ValueError:
        return False
    return True


def _is_missing(value: Any) -> bool:
    if isinstance(value, np.datetime64):
        return bool(np.isnat(value))
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def _parsed(name: str, value: Any) -> datetime.date:
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[D]").item()
    if isinstance(value, datetime.datetime):
        return value.date()
    if isinstance(value, datetime.date):
        return value
    text = tidy(value)
    if not isinstance(text, str) or not _is_date_text(text):
        _refuse(name, text)
    return datetime.datetime.fromisoformat(_as_iso(str(text))).date()


def _as_iso(text: str) -> str:
    """2024/5/31 as 2024-05-31; other orders of day and month are a matter of opinion."""
    found = _SLASHED.match(text.strip())
    if found is None:
        return text.strip()
    year, month, day = found.groups()
    return f"{year}-{int(month):02}-{int(day):02}{text.strip()[found.end() :]}"


def _refuse(name: str, value: Any) -> None:
    raise InputError(
        f"column {name!r} is to be a date, but holds {value!r}; write dates as 2024-05-31, "
        "or give the column as dates of pandas, polars or Python"
    )
