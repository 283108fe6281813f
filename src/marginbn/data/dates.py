"""Dates: a column of them becomes year, month and weekday, which a table of counts can use.

A column is made of dates only where the user says so (``column_kinds={"signed": "date"}``). It is
kept as a categorical column of ISO texts ("2024-05-31"), so that files, data frames and arrays look
alike; :func:`date_parts` takes these apart. The time of day is ignored.

Texts that end with the year (31.5.2024, 5/31/2024) are dates of kind ``"day-first"`` or
``"month-first"``: which of the two, a single one often does not tell, so the user says it, advised
by what the whole column tells (:func:`kind_of_dates`).
"""

from __future__ import annotations

import calendar
import datetime
import re
from collections.abc import Sequence
from typing import Any, Literal, NoReturn, TypeAlias, TypeGuard, get_args

import numpy as np

from marginbn.data.columns import Column, categorical_column, tidy
from marginbn.exceptions import InputError

DateKind: TypeAlias = Literal["date", "day-first", "month-first"]

PARTS = ("year", "month", "weekday")
_TIME = r"(?:[ T]+(\d{1,2}:\d{2}.*))?"
_YEAR_FIRST = re.compile(rf"(\d{{4}})([-/.])(\d{{1,2}})\2(\d{{1,2}}){_TIME}")
_YEAR_LAST = re.compile(rf"(\d{{1,2}})([-/.])(\d{{1,2}})\2(\d{{4}}){_TIME}")
_WEEKDAYS = tuple(calendar.day_name)


def is_date_kind(kind: object) -> TypeGuard[DateKind]:
    """Whether a column of this kind is one of dates."""
    return kind in get_args(DateKind)


def as_dates(column: Column, kind: DateKind = "date") -> Column:
    """Categorical column of ISO dates; text must be ISO 8601 (2024-05-31T12:30) or 2024/5/31, or
    end with the year if the kind says how.
    """
    column = column.as_kind("categorical")
    days = [_parsed(column.name, category, kind).isoformat() for category in column.categories]
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


def parts_of_date(name: str, value: Any, kind: DateKind = "date") -> dict[str, Any]:
    """Year, month and weekday of one date, by the names of the columns that dates become.

    Examples
    --------
    >>> parts_of_date("signed", "2024-05-31")
    {'signed year': 2024, 'signed month': 5, 'signed weekday': 'Friday'}
    """
    day = _parsed(name, value, kind).isoformat()
    parts = date_parts(Column.categorical(name, np.zeros(1), [day]))
    return {part.name: tidy(part.values[0]) for part in parts}


def kind_of_dates(categories: Sequence[Any]) -> DateKind | None:
    """The kind of dates that all of them are as text; None if one is none, or the order of day and
    month is open. Digits alone are numbers.

    Examples
    --------
    >>> kind_of_dates(["2024-05-31", "2023/1/2"]), kind_of_dates(["5/6/2024", "5/31/2024 10:30"])
    ('date', 'month-first')
    """
    texts = [category for category in categories if isinstance(category, str)]
    if not texts or len(texts) < len(categories):
        return None
    kinds: tuple[DateKind, ...] = get_args(DateKind)
    for kind in kinds:
        if all(_day_of(text, kind) is not None for text in texts):
            other = {"day-first": "month-first", "month-first": "day-first"}.get(kind)
            is_open = other is not None and all(_day_of(text, other) is not None for text in texts)
            if not is_open:
                return kind
            return "day-first" if all("." in text for text in texts) else None
    return None


def _day_of(text: str, kind: str) -> datetime.date | None:
    """The day that a text means; None if it means none."""
    text = text.strip()
    try:
        if found := _YEAR_FIRST.fullmatch(text):
            return datetime.date(int(found[1]), int(found[3]), int(found[4]))
        if found := _YEAR_LAST.fullmatch(text):
            if kind == "date":
                return None
            day, month = (found[1], found[3]) if kind == "day-first" else (found[3], found[1])
            return datetime.date(int(found[4]), int(month), int(day))
        return None if text.isdigit() else datetime.datetime.fromisoformat(text).date()
    except ValueError:
        return None


def _parsed(name: str, value: Any, kind: DateKind) -> datetime.date:
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[D]").item()
    if isinstance(value, datetime.datetime):
        return value.date()
    if isinstance(value, datetime.date):
        return value
    text = tidy(value)
    day = _day_of(text, kind) if isinstance(text, str) else None
    if day is None:
        _refuse(name, text, kind)
    return day


def _refuse(name: str, value: Any, kind: DateKind) -> NoReturn:
    if kind == "date":
        remedy = "the kinds for 31.5.2024 and 5/31/2024 are 'day-first' and 'month-first'"
    else:
        remedy = f"{kind!r} means {'31.5.2024' if kind == 'day-first' else '5/31/2024'}"
    raise InputError(
        f"column {name!r} is to be of kind {kind!r}, but holds {value!r}; write dates as "
        f"2024-05-31, or give the column as dates of pandas, polars or Python; {remedy}"
    )
