"""Rows for a classifier, a chunk of a file at a time, read as in training.

A training table is read as a whole, and what a column holds is inferred from all of its fields. A
chunk of new rows must not be read by what happens to stand in it: a column that was text in
training stays text where all fields of a chunk look like numbers. So every field is compared with
training: a number by its value; a category by its text as written, and where the categories of
training are numbers by its value too (``2`` and ``2.0`` are one).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginbn.data.amounts import is_amount_kind
from marginbn.data.columns import Column, Scalar, WantedKind, parse_number
from marginbn.data.dates import is_date_kind
from marginbn.data.delimited import TextTable
from marginbn.data.encode import Coding, TableCoding
from marginbn.data.preparation import ColumnPlan, Preparation
from marginbn.data.table import Table, as_table
from marginbn.data.text import (
    Origin,
    Texts,
    column_from_text,
    distinct_texts,
    plain_numbers,
    whole_number,
)


class WantedColumn(NamedTuple):
    """A column as training saw it; categories are known of a categorical one only."""

    name: str
    kind: WantedKind
    categories: tuple[Scalar, ...] = ()


def wanted_columns(preparation: Preparation, coding: TableCoding) -> list[WantedColumn]:
    """The columns of a table that predictions need, with all categories that training saw."""
    codings = {c.name: c for c in coding.columns}
    return [
        WantedColumn(plan.name, plan.kind, _categories(plan, codings.get(plan.name)))
        for plan in preparation.columns
        if not plan.left_out
    ]


def _categories(plan: ColumnPlan, coding: Coding | None) -> tuple[Scalar, ...]:
    """Those with a state of their own, and the rare ones that share one."""
    if coding is None or plan.kind != "categorical":
        return ()
    return (*coding.categories, *plan.merged)


def results_of(preparation: Preparation) -> dict[str, list[int]]:
    """Positions of the coded columns that each wanted column becomes; a date becomes several."""
    positions: dict[str, list[int]] = {}
    next_one = 0
    for plan in preparation.columns:
        if not plan.left_out:
            count = len(Preparation((plan,)).results)
            positions[plan.name] = list(range(next_one, next_one + count))
            next_one += count
    return positions


@dataclass(frozen=True)
class FeatureRows:
    """The wanted columns in their order; those that a file lacks hold no value."""

    table: Table
    absent: tuple[str, ...]

    @classmethod
    def read(cls, chunk: Any, wanted: Sequence[WantedColumn]) -> FeatureRows:
        """The features of a chunk: a table of text, of our own, or of pyarrow."""
        if isinstance(chunk, TextTable):
            n_rows, columns = chunk.n_rows, _columns_of_text(chunk, wanted)
        else:
            n_rows, columns = _n_rows(chunk), _columns_of_table(chunk, wanted)
        absent = tuple(c.name for c in wanted if c.name not in columns)
        filled = [columns.get(c.name) or _empty_column(c, n_rows) for c in wanted]
        return cls(Table(tuple(filled)), absent)


def _n_rows(table: Any) -> int:
    return table.n_rows if isinstance(table, Table) else len(table)


def _columns_of_text(text: TextTable, wanted: Sequence[WantedColumn]) -> dict[str, Column]:
    fields = dict(zip(text.names, text.columns, strict=True))
    there = [column for column in wanted if column.name in fields]
    return {c.name: read_texts(c, fields[c.name], text.origin) for c in there}


def _columns_of_table(table: Any, wanted: Sequence[WantedColumn]) -> dict[str, Column]:
    known = table.names if isinstance(table, Table) else table.column_names
    kinds = {column.name: column.kind for column in wanted if column.name in known}
    if not kinds:
        return {}
    read = as_table(table.select(list(kinds)), kinds=kinds)
    return {column.name: column for column in read.columns}


def _empty_column(wanted: WantedColumn, n_rows: int) -> Column:
    if wanted.kind == "numeric":
        return Column.numeric(wanted.name, np.full(n_rows, np.nan))
    return Column.categorical(wanted.name, np.full(n_rows, -1), wanted.categories)


def read_texts(wanted: WantedColumn, texts: Texts, origin: Origin) -> Column:
    """Column of fields, of the kind of training and with its categories first."""
    if is_date_kind(wanted.kind) or is_amount_kind(wanted.kind):
        return column_from_text(wanted.name, texts, wanted.kind, origin)
    if wanted.kind == "numeric":
        numbers = plain_numbers(texts)
        if numbers is not None:
            return Column.numeric(wanted.name, numbers)
        return column_from_text(wanted.name, texts, "numeric", origin)
    codes, levels = distinct_texts(texts)
    places, unseen = find_categories(wanted.categories, levels)
    return Column.categorical(
        wanted.name, np.append(places, -1)[codes], (*wanted.categories, *unseen)
    )


def find_categories(
    categories: Sequence[Scalar], texts: Sequence[str]
) -> tuple[NDArray[np.int64], list[str]]:
    """Position of each text among the categories, followed by the texts that are none of them.

    Examples
    --------
    >>> places, unseen = find_categories((1, 2), ["2.0", "1", "x", "02"])
    >>> places.tolist(), unseen
    ([1, 0, 2, 3], ['x', '02'])
    """
    by_label = {str(c): i for i, c in enumerate(categories)}
    by_number = {c: i for i, c in enumerate(categories) if type(c) in (int, float)}
    has_fractions = any(type(c) is float for c in categories)

    def find(text: str) -> int | None:
        if text in by_label or not by_number:
            return by_label.get(text)
        number = parse_number(text) if has_fractions else whole_number(text)
        return None if number is None else by_number.get(number)

    found = {text: find(text) for text in dict.fromkeys(texts)}
    unseen = [text for text, place in found.items() if place is None]
    found |= {text: len(categories) + i for i, text in enumerate(unseen)}
    return np.array([found[text] for text in texts], dtype=np.int64), unseen
