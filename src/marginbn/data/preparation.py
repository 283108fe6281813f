"""Safe defaults for raw tables: what becomes of each column before anything is counted.

Learned from the training rows and applied to every later table alike:

- a column without a single value, or that names its rows, is left out;
- of a column with more than 50 categories, all but the 49 most frequent ones become one state
  "other". A category that training never saw stays unknown: it is none of these;
- dates become year, month and weekday, and texts such as ``$1,234.50`` numbers (``texts.py``).

Nothing can be learned from a value that no other row has. A column is an identifier if

- it is categorical, and more than half of its values are values of their own;
- it holds whole numbers, no two of them equal, which go up (or down) from row to row, or leave
  out at most every second number;
- it holds whole numbers, more than half of them different, and is called an id.

New rows are read as in training: a column that was text stays text where all fields look like
numbers. Numbers are compared by value, categories by their text; where the categories of training
are numbers, ``2`` and ``2.0`` are one.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np
import pyarrow as pa

from marginbn.data.columns import Column, Scalar, WantedKind, is_missing, parse_number, tidy
from marginbn.data.encode import Coding, TableCoding, UnseenCategories
from marginbn.data.labelled import ClassWeight, MissingPolicy
from marginbn.data.profile import ColumnReading
from marginbn.data.source import Source
from marginbn.data.table import Table, as_kind, resolve_kinds
from marginbn.data.texts import (
    as_amounts,
    date_parts,
    find_amounts,
    is_amount_kind,
    is_date_kind,
    kinds_of_dates,
    parse_amount,
    part_names,
    parts_of_date,
    read_as,
)
from marginbn.exceptions import InputError
from marginbn.files import Shape
from marginbn.problem.array_types import CodeArray, IntArray

OTHER_LABEL = "other"
MAX_STATES = 50
"""States of a categorical column, at most."""


class ColumnPlan(Shape, frozen=True):
    """What becomes of one column, as it stands in model files too.

    Parameters
    ----------
    name, kind, left_out
        Of the column; the kind may be one of dates or amounts. Why it is left out, if it is.
    merged, other
        Labels of the categories that become one state, and the label of that state; or words of an
        amount that become missing.
    """

    name: str
    kind: WantedKind
    left_out: str = ""
    merged: tuple[str, ...] = ()
    other: str = OTHER_LABEL

    @property
    def result_names(self) -> tuple[str, ...]:
        """Names of the column or columns that are learned from."""
        return part_names(self.name) if is_date_kind(self.kind) else (self.name,)

    def apply(self, column: Column) -> tuple[Column, ...]:
        """The column or columns that are learned from."""
        if is_date_kind(self.kind):
            return date_parts(as_kind(column, "categorical"), self.kind)
        if is_amount_kind(self.kind):
            return (as_amounts(column, self.kind, self.merged),)
        if not self.merged:
            return (column,)
        categories = as_kind(column, "categorical")
        return (_with_other(categories, {*self.merged}, self.other),)


@dataclass(frozen=True)
class Preparation:
    """What becomes of the columns of a table, in their order."""

    columns: tuple[ColumnPlan, ...]

    @classmethod
    def unchanged(cls, kinds: Mapping[str, WantedKind]) -> Preparation:
        """Every column as it is."""
        return cls(tuple(ColumnPlan(name, kind) for name, kind in kinds.items()))

    @cached_property
    def used_plans(self) -> tuple[ColumnPlan, ...]:
        """Plans of the columns that are used."""
        return tuple(plan for plan in self.columns if not plan.left_out)

    @property
    def used_names(self) -> list[str]:
        """Names of the columns that are used."""
        return [plan.name for plan in self.used_plans]

    @property
    def used_kinds(self) -> list[str]:
        """Their kinds."""
        return [plan.kind for plan in self.used_plans]

    @property
    def left_out(self) -> dict[str, str]:
        """Why each column that is not used is left out."""
        return {plan.name: plan.left_out for plan in self.columns if plan.left_out}

    @property
    def merged(self) -> dict[str, int]:
        """How many categories of each column become "other"."""
        merging = [p for p in self.columns if p.merged and not is_amount_kind(p.kind)]
        return {plan.name: len(plan.merged) for plan in merging}

    @property
    def results(self) -> list[tuple[str, str]]:
        """Name and kind of every column that comes out."""
        return [
            (name, "categorical" if part or plan.kind == "categorical" else "numeric")
            for plan in self.used_plans
            for part, name in enumerate(plan.result_names)
        ]

    @property
    def is_plain(self) -> bool:
        """Whether every column is used as it is."""
        plain = ("numeric", "categorical")
        return not any(p.left_out or p.merged or p.kind not in plain for p in self.columns)

    def apply(self, table: Table) -> Table:
        """The columns to learn from or to predict with, of a table of the used columns."""
        pairs = zip(self.used_plans, table.columns, strict=True)
        return Table(tuple(column for plan, given in pairs for column in plan.apply(given)))

    def apply_to_all(self, table: Table) -> Table:
        """The same for a table that has the columns left out as well."""
        return self.apply(table.select(self.used_names))

    def apply_to_values(
        self, values: Mapping[str | int, Any], variables: Sequence[str]
    ) -> dict[str | int, Any]:
        """Single values by the columns that are learned from: dates taken apart, amounts as
        numbers, rare categories as "other". ``variables`` may be named themselves.
        """
        found = dict(values)
        for plan in self.columns:
            if plan.name not in values:
                continue
            value = values[plan.name]
            if plan.left_out:
                raise InputError(
                    f"{plan.name!r} was left out of the training ({plan.left_out}): leave it out "
                    "of what is known, too"
                )
            if is_date_kind(plan.kind) and plan.name not in variables:
                del found[plan.name]
                if is_missing(value):
                    found.update(dict.fromkeys(plan.result_names))
                else:
                    found.update(parts_of_date(plan.name, value, plan.kind))
            elif is_amount_kind(plan.kind) and isinstance(value, str):
                number = parse_amount(value, plan.kind)
                found[plan.name] = value if number is None else number
                if value in plan.merged:
                    found[plan.name] = None
            elif str(value) in plan.merged:
                found[plan.name] = plan.other
        return found


@dataclass(frozen=True)
class TableSettings:
    """How a raw table becomes rows to learn from.

    Parameters
    ----------
    column_kinds
        "auto", a kind for all columns, or kinds by name or index. A column whose own kind is given
        is never left out as an identifier.
    missing, class_weight
        What becomes of rows with missing values, and None, "balanced", or weights by class.
    keep_identifiers
        Whether columns that name their rows are used like all others.
    """

    column_kinds: Any = "auto"
    missing: MissingPolicy = "auto"
    class_weight: ClassWeight = None
    keep_identifiers: bool = False

    def learn(self, features: Table, n_rows: int | None = None) -> Preparation:
        """What becomes of the columns of a table, or of the sample of one of ``n_rows`` rows."""
        wanted = resolve_kinds(self.column_kinds, features.names)
        given = zip(features.columns, wanted, strict=True)
        plans = tuple(self._plan(column, kind, n_rows) for column, kind in given)
        if plans and all(plan.left_out for plan in plans):
            if all(column.missing.all() for column in features.columns):
                return Preparation.unchanged(features.kinds)  # others say what is wrong with that
            raise InputError(
                f"every column would be left out: {_listed(plans)}; {_how_to_keep(plans)}"
            )
        return Preparation(plans)

    def _plan(self, column: Column, wanted: WantedKind | None, n_rows: int | None) -> ColumnPlan:
        """What becomes of a column; one whose own kind is declared is meant to be used."""
        name, kind, counts = column.name, column.kind, column.counts
        if kind == "categorical" and len(counts) < len(column.categories):
            return ColumnPlan(name, kind, "it has too many different values to count")
        if not counts.any() and column.missing.all():
            return ColumnPlan(name, kind, "it has no value in any row")
        is_open = wanted is None and kind == "categorical"
        dates = [wanted] if is_date_kind(wanted) else kinds_of_dates(column.used) if is_open else []
        if len(dates) == 1:  # no text is ambiguous
            return ColumnPlan(name, dates[0])
        amount = ColumnPlan(name, wanted) if is_amount_kind(wanted) else None
        if is_open and (found := find_amounts(column)) is not None:
            amount = ColumnPlan(name, found[0], merged=found[1])
        is_declared = wanted is not None and not isinstance(self.column_kinds, str)
        if not (is_declared or self.keep_identifiers):
            values = column if amount is None else amount.apply(column)[0]
            private = why_private(column) if kind == "categorical" else None
            reason = private or why_identifier(values, n_rows)
            if reason is not None:
                return ColumnPlan(name, kind, reason)
        if amount is not None or kind == "numeric":
            return amount or ColumnPlan(name, kind)
        labels, other = column.labels, OTHER_LABEL
        while other in labels:
            other += "_"
        return ColumnPlan(name, kind, "", tuple(labels[i] for i in rare_categories(counts)), other)


def rare_categories(counts: IntArray) -> list[int]:
    """Positions of the categories that become "other", by their rows: none, or at least two."""
    used = np.flatnonzero(counts)
    if len(used) <= MAX_STATES:
        return []
    by_count = used[np.argsort(-counts[used], kind="stable")]
    return sorted(by_count[MAX_STATES - 1 :].tolist())


def _with_other(column: Column, merged: Collection[str], other: str) -> Column:
    kept = [category for category in column.categories if str(category) not in merged]
    place = {str(category): i for i, category in enumerate(kept)}
    if other not in place:
        kept.append(other)
    shared = place.setdefault(other, len(place))
    lookup = [place.get(label, shared) for label in column.labels]
    return Column.categorical(column.name, np.array([*lookup, -1])[column.codes], kept)


def messages(preparation: Preparation, settings: TableSettings) -> list[str]:
    """One line for each thing that was done."""
    empty = [p for p in preparation.columns if p.left_out.startswith("it has no value")]
    named = [p for p in preparation.columns if p.left_out and p not in empty]
    amounts = [p for p in preparation.used_plans if is_amount_kind(p.kind)]
    dates = [p for p in preparation.used_plans if is_date_kind(p.kind)]
    merged = [f"{n} of {name!r}" for name, n in preparation.merged.items()]
    lines = []
    if named:
        lines.append(f"left out as identifiers: {_listed(named)}; {_how_to_keep(named)}")
    if empty:
        lines.append(f"left out, because no row has a value: {_names(empty)}")
    if amounts:
        texts = ", ".join(map(_amount_text, amounts))
        lines.append(f"texts read as numbers: {texts}; {_as_texts(amounts)}")
    if dates and settings.column_kinds == "auto":
        lines.append(
            f"dates taken apart into year, month and weekday: {_names(dates)}; {_as_texts(dates)}"
        )
    if merged:
        lines.append(
            f"rare categories merged into one state 'other': {', '.join(merged)}, which have more "
            f"than {MAX_STATES}"
        )
    return lines


def _amount_text(plan: ColumnPlan) -> str:
    comma = " (decimal comma)" if plan.kind == "decimal-comma" else ""
    words = f" (missing: {', '.join(map(repr, plan.merged))})" if plan.merged else ""
    return f"{plan.name!r}{comma}{words}"


def _as_texts(plans: Sequence[ColumnPlan]) -> str:
    return f"column_kinds={{{plans[0].name!r}: 'categorical'}} keeps them as texts"


def _how_to_keep(plans: Sequence[ColumnPlan]) -> str:
    which = "it" if len(plans) == 1 else "the first of them"
    return f"column_kinds={{{plans[0].name!r}: {plans[0].kind!r}}} keeps {which}"


def _listed(plans: Sequence[ColumnPlan]) -> str:
    return ", ".join(f"{plan.name!r} ({plan.left_out})" for plan in plans)


def _names(plans: Sequence[ColumnPlan]) -> str:
    return ", ".join(repr(plan.name) for plan in plans)


# --- new rows -------------------------------------------------------------------------------------


def reading_of(plan: ColumnPlan, coding: Coding | None, is_text: bool) -> ColumnReading:
    """How a column is read that training had, with all categories that training saw."""
    categories: tuple[Scalar, ...] = ()
    if coding is not None and plan.kind == "categorical":
        categories = (*coding.categories, *plan.merged)  # those that share a state as well
    return ColumnReading(plan.name, read_as(plan.kind) or "categorical", is_text, categories)


def coded_blocks(
    preparation: Preparation,
    coding: TableCoding,
    source: Source,
    kept: Sequence[str] = (),
    *,
    may_lack: bool = False,
) -> Iterator[tuple[pa.Table, CodeArray]]:
    """Blocks of a source, with the ``kept`` columns too, and their codes (n_rows, n_features).

    Code -1 is unknown: values that training never saw, of which a warning tells at the end, and
    columns that the source lacks, if it ``may_lack`` some.
    """
    plans, own = preparation.used_plans, {c.name: c for c in coding.columns}
    readings = [reading_of(plan, own.get(plan.name), source.is_text) for plan in plans]
    absent = [plan.name for plan in plans if plan.name not in source.names]
    if absent and not may_lack:
        raise InputError(f"{source.origin} lacks columns of training: {absent[:10]}")
    owners = [plan.name for plan in plans for _ in plan.result_names]
    unknown = [i for i, name in enumerate(owners) if name in absent]

    def read(block: pa.Table, _: int) -> Table:
        nothing = pa.nulls(block.num_rows)
        columns = (nothing if r.name in absent else block.column(r.name) for r in readings)
        return preparation.apply(Table(tuple(map(ColumnReading.read, readings, columns))))

    unseen, first_row = UnseenCategories(coding), 0
    try:
        for block in source.blocks([n for n in source.names if n in {*kept, *owners}]):
            codes = unseen.encode(source.answer(read, block, first_row))
            codes[:, unknown] = -1
            yield block, codes
            first_row += block.num_rows
    finally:
        unseen.warn()
    if first_row == 0:
        raise source.empty()


class RowCoder:
    """Codes of one row: a look-up or a bisection per column.

    It knows what is usual: numbers for numbers, known categories, missing values. Of anything else,
    such as a new category, a date or an amount, :meth:`encode` returns None, and the row takes the
    way of a table, with its messages.
    """

    def __init__(self, preparation: Preparation, coding: TableCoding) -> None:
        self._columns: list[tuple[int, str, Any, int]] = []
        used = [(i, plan) for i, plan in enumerate(preparation.columns) if not plan.left_out]
        self.is_usable = all(plan.kind in ("numeric", "categorical") for _, plan in used)
        pairs = zip(used, coding.columns, strict=True) if self.is_usable else ()
        for (i, plan), own in pairs:
            known: Any = own.cuts
            if own.kind == "categorical":
                known = {str(category): code for code, category in enumerate(own.categories)}
                if plan.other in known:
                    known |= dict.fromkeys(plan.merged, known[plan.other])
            missing = own.variable.arity - 1 if own.missing_state else -1
            self._columns.append((i, plan.name, known, missing))

    def encode(self, row: Mapping[str, Any] | Sequence[Any]) -> CodeArray | None:
        """Codes (1, n_features) of the values of a row by name, or in the order of training."""
        codes = np.empty((1, len(self._columns)), dtype=np.int32)
        by_name = row if isinstance(row, Mapping) else None
        for k, (position, name, known, missing) in enumerate(self._columns):
            value = row[position] if by_name is None else by_name.get(name)  # type: ignore[index]
            if is_missing(value):
                codes[0, k] = missing
            elif isinstance(known, dict):
                if isinstance(value, (int, float, np.generic)):
                    value = str(tidy(value))
                code = known.get(value) if type(value) is str else None
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
) -> CodeArray | None:
    """Codes of one row, None if it takes a closer look; the coder is kept with the coding."""
    kept = coding.__dict__.get("_row_coder")
    if kept is None or kept[0] is not preparation:
        kept = coding.__dict__["_row_coder"] = preparation, RowCoder(preparation, coding)
    coder: RowCoder = kept[1]
    return coder.encode(row) if coder.is_usable else None


# --- identifiers ----------------------------------------------------------------------------------

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


def why_identifier(column: Column, n_rows: int | None = None) -> str | None:
    """In a few words why a column names its rows, of ``n_rows`` in all; None if it does not."""
    if column.kind == "numeric":
        return _of_numbers(column, 1.0 if n_rows is None else n_rows / max(column.n_rows, 1))
    n_values, n_distinct = int(column.counts.sum()), int(np.count_nonzero(column.counts))
    if n_values < LEAST_VALUES or 2 * n_distinct <= n_values:
        return None
    remedy = what_else(column)
    return f"{n_distinct} of {n_values} values differ{f', {remedy}' if remedy else ''}"


def why_private(column: Column) -> str | None:
    """Why a column of texts is about persons or no list of categories; None if it is not."""
    texts = [text for text in column.used if isinstance(text, str)]
    if len(texts) < max(LEAST_VALUES, len(column.used)):
        return None
    glance = texts[:_GLANCE]
    if sum(bool(_EMAIL.fullmatch(text.strip())) for text in glance) > 0.9 * len(glance):
        return f"{len(texts)} e-mail addresses"
    words = [t for t in glance if t[:1].isupper() and not any(c.isdigit() for c in t)]
    if _PERSON_NAME.search(column.name.strip()) and len(words) > 0.9 * len(glance):
        return f"{len(texts)} names of persons or places"
    n_words = sum(len(text.split()) for text in glance) / len(glance)
    if n_words >= FREE_TEXT_WORDS and len(texts) > 2 * LEAST_VALUES:
        return f"{len(texts)} different texts of {n_words:.0f} words on average"
    return None


def what_else(column: Column) -> str:
    """What a column of many categories is more likely: dates, numbers, or numbers but for a few
    words; empty if it is what it seems.
    """
    seen = column.used
    if kinds := kinds_of_dates(seen):
        wanted = f"column_kinds={{{column.name!r}: {kinds[0]!r}}}"
        either = "" if len(kinds) == 1 else f", or {kinds[1]!r},"
        return f"dates: {wanted}{either} makes year, month, weekday"
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
    n_values, n_distinct = len(values), len(np.unique(values))
    if is_id_name(column.name) and 2 * n_distinct > n_values > n_distinct:
        return f"{n_distinct} of {n_values} whole numbers differ, in a column of that name"
    if n_distinct < n_values:
        return None
    steps = np.diff(values)
    if (steps > 0).all() or (steps < 0).all():
        return f"{n_values} whole numbers in order, no two equal"
    if n_values >= LEAST_DENSE_VALUES and np.ptp(values) < 2 * n_values * rows_per_value:
        return f"{n_values} whole numbers with few gaps, no two equal"
    if is_id_name(column.name):
        return f"{n_values} whole numbers, no two equal, in a column of that name"
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
