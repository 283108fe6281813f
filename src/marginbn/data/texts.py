"""Texts that mean more: amounts (``$1,234.50``, ``80 kg``) are numbers, dates are year, month and
weekday. Both are recognised on the distinct values of a column.

A column of such texts stays categorical until it is prepared. The user may declare its kind:

- ``"amount"``: the decimal sign is a point, thousands are set apart by commas;
- ``"decimal-comma"``: the other way round, as in most of Europe;
- ``"date"``: ISO 8601 (2024-05-31T12:30) or 2024/5/31; the time of day is ignored;
- ``"day-first"`` and ``"month-first"``: dates that end with the year (31.5.2024, 5/31/2024).

A sign of currency may stand before or after the number, a unit or per cent sign after it: it must
be the same in the whole column. ``k``, ``M`` and ``B`` multiply, brackets mean below zero, per
cents count as written. A number with a leading zero is a code, and no amount.
"""

from __future__ import annotations

import calendar
import datetime
import re
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, TypeGuard, get_args

import numpy as np

from marginbn.data.columns import (
    CellError,
    Column,
    Kind,
    WantedKind,
    few_values,
    parse_number,
    tidy,
)
from marginbn.exceptions import InputError

AmountKind: TypeAlias = Literal["amount", "decimal-comma"]
DateKind: TypeAlias = Literal["date", "day-first", "month-first"]


def read_as(kind: WantedKind | None) -> Kind | None:
    """The kind that a column is read as, None where it is inferred; all but numbers are texts."""
    return kind if kind is None or kind == "numeric" else "categorical"


def is_amount_kind(kind: object) -> TypeGuard[AmountKind]:
    """Whether a column of this kind is one of amounts."""
    return kind in get_args(AmountKind)


def is_date_kind(kind: object) -> TypeGuard[DateKind]:
    """Whether a column of this kind is one of dates."""
    return kind in get_args(DateKind)


# --- amounts --------------------------------------------------------------------------------------

MOST_WORDS = 0.05
"""Share of the values that may be words, such as "unknown": they count as missing."""

MOST_DIFFERENT_WORDS = 5
"""And how many of them at most: more are a list of names."""

_GLANCE = 100  # texts looked at first: names betray themselves here
_MULTIPLIERS = {"k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9, "bn": 1e9}  # m is for metres
_SIGN = "$£€¥¢₹₽₩₺₪₫₴₦฿"
_CODES = r"USD|EUR|GBP|CHF|JPY|CNY|INR|CAD|AUD|BRL|SEK|NOK|DKK|PLN|CZK|Rs\.?"
_WORD = r"[^\W\d_][^\W_]*(?:[ ./-]?[^\W\d_][^\W_]*){0,2}"


def _amount_pattern(thousands: str, decimal: str) -> re.Pattern[str]:
    separators = (thousands, "['’]", r"[ \xa0\u202f\u2009]")
    groups = "".join(rf"\d{{1,3}}(?:{mark}\d{{3}})+|" for mark in separators)
    return re.compile(
        rf"(?P<bracket>\()?\s*(?P<sign>[-+−])?\s*(?P<before>[^\W\d_]{{0,3}}[{_SIGN}]|{_CODES})?\s*"
        rf"(?P<minus>[-−])?\s*(?P<whole>{groups}\d+)?(?P<fraction>{decimal}\d*)?"
        rf"(?P<power>[eE][-+]?\d{{1,3}})?\s*(?P<after>°?{_WORD}|[%‰°+{_SIGN}])?\s*(?P<closed>\))?"
    )


_AMOUNTS = {"amount": _amount_pattern(",", r"\."), "decimal-comma": _amount_pattern(r"\.", ",")}


def _parse_amount(text: str, kind: AmountKind) -> tuple[float, str, str] | None:
    """The number in a text with what stands before and after it; None if it is none."""
    found = _AMOUNTS[kind].fullmatch(text.strip())
    if found is None or bool(found["bracket"]) != bool(found["closed"]):
        return None
    digits, fraction = re.sub(r"\D", "", found["whole"] or ""), (found["fraction"] or "")[1:]
    is_code = len(digits) > 1 and digits.startswith("0")
    n_below = sum(bool(part) and part != "+" for part in found.group("sign", "minus", "bracket"))
    if is_code or not (digits + fraction) or not (digits + fraction).isascii() or n_below > 1:
        return None
    after = found["after"] or ""
    number = float(f"{digits or 0}.{fraction or 0}{found['power'] or ''}")
    number *= _MULTIPLIERS.get(after, 1.0)
    if not np.isfinite(number):
        return None
    after = "" if after in _MULTIPLIERS else after
    return -number if n_below else number, found["before"] or "", after


def parse_amount(text: str, kind: AmountKind) -> float | None:
    """The number of an amount; None if the text is none."""
    found = _parse_amount(text, kind)
    return found and found[0]


def _amounts(texts: Sequence[str], kind: AmountKind) -> list[float | None]:
    """The number of every text, None where it is none; all None if units differ."""
    found = [_parse_amount(text, kind) for text in texts]
    before = {amount[1].casefold() for amount in found if amount} - {""}
    after = {amount[2].casefold().removesuffix("s") for amount in found if amount} - {""}
    is_mixed = len(before) > 1 or len(after) > 1
    return [None if is_mixed else amount and amount[0] for amount in found]


def find_amounts(column: Column) -> tuple[AmountKind, tuple[str, ...]] | None:
    """The kind of a column of texts that are amounts, and the few words among them.

    Texts that both kinds can read (``1,234``) are amounts, unless another text says otherwise
    (``950,5``). None for plain numbers as text, and for so few numbers that they may be codes.
    """
    counts = column.counts[column.counts > 0].tolist()
    texts = [c for c in column.used if isinstance(c, str)]
    if not texts or len(texts) < len(counts) or all(parse_number(t) is not None for t in texts):
        return None
    found: list[tuple[AmountKind, tuple[str, ...]]] = []
    for kind in get_args(AmountKind):
        glance = [_parse_amount(text, kind) for text in texts[:_GLANCE]]
        if 2 * glance.count(None) > max(len(glance), 2 * MOST_DIFFERENT_WORDS):
            continue
        numbers = _amounts(texts, kind)
        words = tuple(t for t, number in zip(texts, numbers, strict=True) if number is None)
        n_words = sum(n for n, number in zip(counts, numbers, strict=True) if number is None)
        values = np.array([number for number in numbers if number is not None])
        is_list = len(words) > MOST_DIFFERENT_WORDS or n_words > MOST_WORDS * sum(counts)
        if not is_list and len(values) and not few_values(values, set()):  # few may be codes
            found.append((kind, words))
    return min(found, key=lambda pair: len(pair[1]), default=None)


def as_amounts(column: Column, kind: AmountKind, words: Sequence[str] = ()) -> Column:
    """The numbers of a column of texts; `words` are missing, other texts are refused."""
    if column.kind == "numeric":
        return column
    texts = [c for c in column.categories if isinstance(c, str)]
    known = dict(zip(texts, _amounts(texts, kind), strict=True))
    found = [known[c] if isinstance(c, str) else float(c) for c in column.categories]
    values = np.array([*found, None], dtype=np.float64)  # the last is what code -1 points to
    bad = [i for i, c in enumerate(column.categories) if found[i] is None and c not in words]
    rows = np.flatnonzero(np.isin(column.codes, bad))
    if len(rows):
        example = "1,234.50" if kind == "amount" else "1.234,50"
        raise CellError(
            int(rows[0]),
            f"column {column.name!r} is of kind {kind!r}, but",
            f"holds {column.categories[column.codes[rows[0]]]!r}; write amounts as in {example}, "
            "in one unit or currency, and leave missing ones empty",
        )
    return Column.numeric(column.name, values[column.codes])


# --- dates ----------------------------------------------------------------------------------------

_TIME = r"(?:[ T]+(\d{1,2}:\d{2}.*))?"
_YEAR_FIRST = re.compile(rf"(\d{{4}})([-/.])(\d{{1,2}})\2(\d{{1,2}}){_TIME}")
_YEAR_LAST = re.compile(rf"(\d{{1,2}})([-/.])(\d{{1,2}})\2(\d{{4}}){_TIME}")


def part_names(name: str) -> tuple[str, str, str]:
    """Names of the columns that a date becomes."""
    return f"{name} year", f"{name} month", f"{name} weekday"


def date_parts(column: Column, kind: DateKind = "date") -> tuple[Column, Column, Column]:
    """Year (a number), month and weekday of a column of dates."""
    days = [_day_of(category, kind) for category in column.categories]
    bad = np.flatnonzero(np.isin(column.codes, [i for i, day in enumerate(days) if day is None]))
    if len(bad):
        value = column.categories[column.codes[bad[0]]]
        raise CellError(int(bad[0]), *_no_date(column.name, value, kind))
    parts = [(d.year, d.month - 1, d.weekday()) if d else (np.nan, -1, -1) for d in [*days, None]]
    year, month, weekday = np.array(parts)[column.codes].T
    names = part_names(column.name)
    return (
        Column.numeric(names[0], year),
        Column.categorical(names[1], month, range(1, 13)),
        Column.categorical(names[2], weekday, tuple(calendar.day_name)),
    )


def parts_of_date(name: str, value: Any, kind: DateKind = "date") -> dict[str, Any]:
    """Year, month and weekday of one date, by the names of the columns that dates become.

    Examples
    --------
    >>> parts_of_date("signed", "2024-05-31")
    {'signed year': 2024, 'signed month': 5, 'signed weekday': 'Friday'}
    """
    day = _day_of(value, kind)
    if day is None:
        raise InputError(" ".join(_no_date(name, tidy(value), kind)))
    parts = (day.year, day.month, calendar.day_name[day.weekday()])
    return dict(zip(part_names(name), parts, strict=True))


def kinds_of_dates(categories: Sequence[Any]) -> list[DateKind]:
    """The kinds of dates that all of them may be as text: two where the order of day and month is
    open, none if one is no date. Digits alone are numbers.
    """
    if not categories or not all(isinstance(category, str) for category in categories):
        return []
    possible: list[DateKind] = [
        kind for kind in get_args(DateKind) if all(_day_of(text, kind) for text in categories)
    ]
    if len(possible) == 2:  # day and month may be either way round
        return ["day-first"] if all("." in text for text in categories) else possible
    return possible[:1]  # that of the year first, where all kinds are possible


def _day_of(value: Any, kind: str) -> datetime.date | None:
    """The day that a text or a date means; None if it means none."""
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[D]").item()
    if isinstance(value, datetime.date):
        return value.date() if isinstance(value, datetime.datetime) else value
    if not isinstance(value, str):
        return None
    text = value.strip()
    try:
        if found := _YEAR_FIRST.fullmatch(text):
            return datetime.date(int(found[1]), int(found[3]), int(found[4]))
        if found := _YEAR_LAST.fullmatch(text):
            day, month = (found[1], found[3]) if kind == "day-first" else (found[3], found[1])
            return None if kind == "date" else datetime.date(int(found[4]), int(month), int(day))
        return None if text.isdigit() else datetime.datetime.fromisoformat(text).date()
    except ValueError:
        return None


def _no_date(name: str, value: Any, kind: DateKind) -> tuple[str, str]:
    """What is wrong with a value that is no date: what it is, and the reason."""
    examples = {"day-first": "31.5.2024", "month-first": "5/31/2024"}
    remedy = "; ".join(f"{k!r} means {e}" for k, e in examples.items() if kind in (k, "date"))
    reason = (
        f"holds {value!r}; write dates as 2024-05-31, or give the column as dates of pandas, "
        f"polars or Python; {remedy}"
    )
    return f"column {name!r} is to be of kind {kind!r}, but", reason
