"""Rows for a classifier, read as in training: block by block, or a single one.

What a column of a training table holds is found in all of its values. A block of new rows must not
be read by what happens to stand in it: a column that was text in training stays text where all
fields of a block look like numbers. So every value is compared with training: a number by its
value; a category by its text as written, and where the categories of training are numbers by its
value too (``2`` and ``2.0`` are one).

A single row, as a service gets it, does not need tables: :class:`RowCoder` looks every value up.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from marginbn.data.columns import Column, Scalar, tidy
from marginbn.data.encode import Coding, TableCoding
from marginbn.data.preparation import ColumnPlan, Preparation
from marginbn.data.profile import ColumnReading
from marginbn.data.source import Source, source_of_table
from marginbn.data.table import Table
from marginbn.data.texts import as_dates, is_date_kind, read_as
from marginbn.exceptions import InputError


def results_of(preparation: Preparation) -> dict[str, list[int]]:
    """Positions of the coded columns that each used column becomes; a date becomes several."""
    positions: dict[str, list[int]] = {}
    next_one = 0
    for plan in preparation.columns:
        if not plan.left_out:
            count = len(Preparation((plan,)).results)
            positions[plan.name] = list(range(next_one, next_one + count))
            next_one += count
    return positions


def reading_of(plan: ColumnPlan, coding: Coding | None, is_text: bool) -> ColumnReading:
    """How a column is read that training had, with all categories that training saw."""
    categories: tuple[Scalar, ...] = ()
    if coding is not None and plan.kind == "categorical":
        categories = (*coding.categories, *plan.merged)  # those that share a state as well
    return ColumnReading(plan.name, read_as(plan.kind) or "categorical", is_text, categories)


class FeatureRows:
    """The columns that a classifier uses; those that a source lacks hold no value."""

    def __init__(self, preparation: Preparation, coding: TableCoding, source: Source) -> None:
        codings = {c.name: c for c in coding.columns}
        self._plans = [plan for plan in preparation.columns if not plan.left_out]
        self._readings = {
            p.name: reading_of(p, codings.get(p.name), source.is_text) for p in self._plans
        }
        self._source = source
        self.absent = tuple(p.name for p in self._plans if p.name not in source.names)

    def read(self, block: pa.Table, first_row: int) -> Table:
        """The columns of a block, in the order of training."""
        return Table(tuple(self._column(plan, block, first_row) for plan in self._plans))

    def _column(self, plan: ColumnPlan, block: pa.Table, first_row: int) -> Column:
        reading = self._readings[plan.name]
        if plan.name in self.absent:
            if reading.kind == "numeric":
                return Column.numeric(plan.name, np.full(block.num_rows, np.nan))
            return Column.categorical(plan.name, np.full(block.num_rows, -1), reading.categories)
        column = reading.read(block.column(plan.name), self._source, first_row)
        return as_dates(column, plan.kind) if is_date_kind(plan.kind) else column


def feature_blocks(
    preparation: Preparation, coding: TableCoding, source: Source
) -> Iterator[Table]:
    """The prepared columns of all rows of a source that has all columns."""
    rows = FeatureRows(preparation, coding, source)
    if rows.absent:
        raise InputError(f"{source.origin} lacks columns of training: {list(rows.absent[:10])}")
    first_row = 0
    for block in source.blocks(preparation.used_names):
        yield preparation.apply(rows.read(block, first_row))
        first_row += block.num_rows


class RowCoder:
    """Codes of one row: a look-up or a bisection per column.

    It knows what is usual: numbers for numbers, known categories, missing values. Of anything else,
    such as a new category, a date or an amount, :meth:`encode` returns None, and the row takes the
    way of a table, with its messages.
    """

    def __init__(self, preparation: Preparation, coding: TableCoding) -> None:
        self._columns: list[tuple[int, str, Any, int]] = []
        plans = [(i, plan) for i, plan in enumerate(preparation.columns) if not plan.left_out]
        self.is_usable = all(plan.kind in ("numeric", "categorical") for _, plan in plans)
        if not self.is_usable:
            return
        for (i, plan), own in zip(plans, coding.columns, strict=True):
            missing = own.variable.arity - 1 if own.missing_state else -1
            if own.kind == "numeric":
                self._columns.append((i, plan.name, own.cuts, missing))
                continue
            codes = {str(category): code for code, category in enumerate(own.categories)}
            if plan.other in codes:
                codes |= dict.fromkeys(plan.merged, codes[plan.other])
            self._columns.append((i, plan.name, codes, missing))

    def encode(self, row: Mapping[str, Any] | Sequence[Any]) -> NDArray[np.int32] | None:
        """Codes (1, n_features) of the values of a row by name, or in the order of training."""
        codes = np.empty((1, len(self._columns)), dtype=np.int32)
        by_name = row if isinstance(row, Mapping) else None
        for k, (position, name, known, missing) in enumerate(self._columns):
            value = row[position] if by_name is None else by_name.get(name)  # type: ignore[index]
            if value is None or value != value:
                codes[0, k] = missing
            elif isinstance(known, dict):
                code = known.get(value if type(value) is str else _label_of(value))
                if code is None:
                    return None
                codes[0, k] = code
            elif isinstance(value, (int, float, np.integer, np.floating)) and isfinite(value):
                codes[0, k] = bisect_left(known, value)
            else:
                return None
        return codes


def encode_row(
    preparation: Preparation, coding: TableCoding, row: Mapping[str, Any] | Sequence[Any]
) -> NDArray[np.int32] | None:
    """Codes of one row, None if it takes a closer look; the coder is kept with the coding."""
    kept = coding.__dict__.get("_row_coder")
    if kept is None or kept[0] is not preparation:
        kept = coding.__dict__["_row_coder"] = preparation, RowCoder(preparation, coding)
    coder: RowCoder = kept[1]
    return coder.encode(row) if coder.is_usable else None


def _label_of(value: Any) -> str | None:
    """The label of a number or a boolean; None of what is to be looked at more closely."""
    return str(tidy(value)) if isinstance(value, (int, float, np.generic)) else None


def source_of_typed(table: Table) -> Source:
    """A table that is read already, as a source."""
    arrays = [_array_of_column(column) for column in table.columns]
    return source_of_table(pa.Table.from_arrays(arrays, names=list(table.names)), "all")


def _array_of_column(column: Column) -> pa.Array:
    if column.kind == "numeric":
        return pa.array(column.numbers)
    values = pa.array(list(column.categories))
    return pa.DictionaryArray.from_arrays(pa.array(column.codes, mask=column.codes < 0), values)
