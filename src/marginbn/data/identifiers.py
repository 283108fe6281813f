"""Columns that name a row instead of describing it: numbers of rows and customers, names, tickets.

Nothing can be learned from a value that no other row has, but a table of counts takes each of them
for a state. A column is an identifier if

- it is categorical, and more than half of its values are values of their own;
- it holds whole numbers, no two of them equal, which go up (or down) from row to row, or leave
  out at most every second number;
- it holds whole numbers, more than half of them different, and is called an id.

Short columns are never identifiers: among a dozen rows distinct values are no wonder.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from marginbn.data.columns import Column, parse_number
from marginbn.data.dates import kind_of_dates

LEAST_VALUES = 20
"""A column with fewer values is never taken for an identifier."""

LEAST_DENSE_VALUES = 50
"""The same for whole numbers in any order: a few ages may well be distinct by chance."""

FREE_TEXT_WORDS = 6
"""Words on average from which texts are no categories."""

_GLANCE = 200  # texts looked at
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[A-Za-z]{2,}")
_PERSON_NAME = re.compile(r"(?:^|[ _.-])(?:sur|first|last|full|given|family)?[ _-]?name$", re.I)
_ID_WORDS = "id|ids|uid|guid|uuid|index|key|nr|no|num|number|row"
_ID_ITSELF = re.compile(r"(?:^|[^A-Za-z])(?:(?i:u?ids?|guid|uuid)|Unnamed: \d+)$|[a-z]I[dD]$")
_ID_NAME = re.compile(rf"(?:^|[^a-z])(?:{_ID_WORDS}|unnamed: ?\d*)$|^$|[a-z]I[dD]$")


def why_identifier(
    column: Column, counts: NDArray[np.integer] | None = None, n_rows: int | None = None
) -> str | None:
    """In a few words why a column names its rows; None if it does not.

    Where the column holds a sample of the rows of a table, ``counts`` are those of every category
    in the whole table, and ``n_rows`` its number of rows.
    """
    if column.kind == "categorical":
        return _of_categories(column, column.counts if counts is None else counts)
    return _of_numbers(column, 1.0 if n_rows is None else n_rows / max(column.n_rows, 1))


def why_private(column: Column, counts: NDArray[np.integer]) -> str | None:
    """Why a column of texts is about persons or no list of categories; None if it is not."""
    texts = [c for c, n in zip(column.categories, counts.tolist(), strict=True) if n]
    if len(texts) < LEAST_VALUES or not all(isinstance(text, str) for text in texts):
        return None
    glance = [str(text) for text in texts[:_GLANCE]]
    if sum(bool(_EMAIL.fullmatch(text.strip())) for text in glance) > 0.9 * len(glance):
        return f"{len(texts)} e-mail addresses such as {glance[0]!r}"
    if _PERSON_NAME.search(column.name.strip()) and _are_words(glance):
        return f"{len(texts)} names of persons such as {glance[0]!r}"
    n_words = sum(len(text.split()) for text in glance) / len(glance)
    if n_words >= FREE_TEXT_WORDS and len(texts) > 2 * LEAST_VALUES:
        return f"{len(texts)} different texts of {n_words:.0f} words on average"
    return None


def _are_words(texts: list[str]) -> bool:
    """Whether texts begin with capitals and hold no digits, as names of persons do."""
    named = [t for t in texts if t[:1].isupper() and not any(c.isdigit() for c in t)]
    return len(named) > 0.9 * len(texts)


def _of_categories(column: Column, counts: NDArray[np.integer]) -> str | None:
    n_values, n_distinct = int(counts.sum()), int(np.count_nonzero(counts))
    if n_values < LEAST_VALUES or 2 * n_distinct <= n_values:
        return None
    remedy = what_else(column, counts)
    return f"{n_distinct} of {n_values} values differ{f', {remedy}' if remedy else ''}"


def what_else(column: Column, counts: NDArray[np.integer]) -> str:
    """What a column of many categories is more likely: dates, numbers, or numbers but for a few
    words; empty if it is what it seems.
    """
    seen = [c for c, n in zip(column.categories, counts.tolist(), strict=True) if n]
    if dates := kind_of_dates(seen):
        return f"dates: column_kinds={{{column.name!r}: {dates!r}}} makes year, month, weekday"
    words = [c for c in seen if isinstance(c, str) and parse_number(c) is None]
    if len(seen) <= LEAST_VALUES or not any(isinstance(c, str) for c in seen):
        return ""
    if not words:
        return f"numbers as text: column_kinds={{{column.name!r}: 'numeric'}} reads them"
    if LEAST_VALUES * len(words) <= len(seen):
        return f"numbers but for {words[0]!r}: make that missing, and the column numeric"
    return ""


def _of_numbers(column: Column, rows_per_value: float) -> str | None:
    values = column.numbers[~column.missing]
    if len(values) < LEAST_VALUES or (values != np.floor(values)).any():
        return None
    ordered = np.sort(values)
    n_distinct = len(np.unique(ordered))
    if is_id_name(column.name) and 2 * n_distinct > len(values) > n_distinct:
        return f"{n_distinct} of {len(values)} whole numbers differ, in a column of that name"
    if n_distinct < len(values):
        return None
    steps = np.diff(values)
    if (steps > 0).all() or (steps < 0).all():
        return f"{len(values)} whole numbers in order, no two equal"
    if len(values) >= LEAST_DENSE_VALUES and ordered[-1] - ordered[0] < (
        2 * len(values) * rows_per_value
    ):
        return f"{len(values)} whole numbers with few gaps, no two equal"
    if is_id_name(column.name):
        return f"{len(values)} whole numbers, no two equal, in a column of that name"
    return None


def may_be_identifier(column: Column) -> bool:
    """Whether a column that is none by its values is called one, as numbers of customers with
    several rows each are.
    """
    n_values = len(np.unique(column.codes if column.kind == "categorical" else column.numbers))
    return n_values > LEAST_VALUES and bool(_ID_ITSELF.search(column.name.strip()))


def is_id_name(name: str) -> bool:
    """Whether a column is called like an identifier.

    Examples
    --------
    >>> [is_id_name(name) for name in ("id", "PassengerId", "row_no", "Unnamed: 0", "valid")]
    [True, True, True, True, False]
    """
    return bool(_ID_NAME.search(name.strip()) or _ID_NAME.search(name.strip().lower()))
