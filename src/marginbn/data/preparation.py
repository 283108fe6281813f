"""Safe defaults for raw tables: what becomes of each column before anything is counted.

Learned from the training rows and applied to every later table alike:

- a column without a single value is left out;
- a column that names its rows is left out (``identifiers.py``), used, or refused;
- of a column with more than ``max_states`` categories, all but the ``max_states - 1`` most frequent
  ones become one state "other". A category that training never saw stays unknown: it is none of
  these;
- dates become year, month and weekday (``dates.py``);
- texts such as ``$1,234.50`` or ``80 kg`` become numbers (``amounts.py``), and a few words among
  them missing.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from marginbn.data.amounts import as_amounts, find_amounts, is_amount_kind
from marginbn.data.columns import Column, WantedKind
from marginbn.data.dates import (
    DateKind,
    as_dates,
    date_parts,
    is_date_kind,
    kind_of_dates,
    part_names,
)
from marginbn.data.identifiers import why_identifier, why_private
from marginbn.data.sampling import sampled_rows
from marginbn.data.table import Table, resolve_kinds
from marginbn.exceptions import DataWarning, InputError

Identifiers = Literal["ignore", "use", "error"]
OTHER_LABEL = "other"
MAX_STATES = 50
"""States of a categorical column at most, if nothing else is said."""


@dataclass(frozen=True)
class ColumnPlan:
    """What becomes of one column.

    Parameters
    ----------
    name, kind
        Of the column; ``kind`` may be one of dates or amounts.
    left_out
        Why it is left out; empty if it is used.
    merged
        Labels of the categories that become the state "other"; words of an amount that become
        missing.
    other
        Label of that state.
    """

    name: str
    kind: WantedKind
    left_out: str = ""
    merged: tuple[str, ...] = ()
    other: str = OTHER_LABEL

    def apply(self, column: Column) -> tuple[Column, ...]:
        """The column or columns that are learned from."""
        if is_date_kind(self.kind):
            return date_parts(as_dates(column, self.kind))
        if is_amount_kind(self.kind):
            return (as_amounts(column, self.kind, self.merged),)
        if not self.merged:
            return (column,)
        return (_with_other(column.as_kind("categorical"), frozenset(self.merged), self.other),)


@dataclass(frozen=True)
class Preparation:
    """What becomes of the columns of a table, in their order."""

    columns: tuple[ColumnPlan, ...]

    @classmethod
    def unchanged(cls, kinds: Mapping[str, WantedKind]) -> Preparation:
        """Every column as it is."""
        return cls(tuple(ColumnPlan(name, kind) for name, kind in kinds.items()))

    @property
    def used(self) -> list[int]:
        """Positions of the columns that are used."""
        return [i for i, plan in enumerate(self.columns) if not plan.left_out]

    @property
    def used_names(self) -> list[str]:
        """Names of the columns that are used."""
        return [plan.name for plan in self.columns if not plan.left_out]

    @property
    def used_kinds(self) -> list[str]:
        """Their kinds."""
        return [plan.kind for plan in self.columns if not plan.left_out]

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
    def kinds(self) -> list[str]:
        """Kind of each column, to read new rows alike."""
        return [plan.kind for plan in self.columns]

    @property
    def results(self) -> list[tuple[str, str]]:
        """Name and kind of every column that comes out."""
        pairs: list[tuple[str, str]] = []
        for plan in self.columns:
            if plan.left_out:
                continue
            if is_date_kind(plan.kind):
                kinds = ("numeric", "categorical", "categorical")
                pairs += zip(part_names(plan.name), kinds, strict=True)
            else:
                kind = "numeric" if is_amount_kind(plan.kind) else plan.kind
                pairs.append((plan.name, kind))
        return pairs

    @property
    def is_plain(self) -> bool:
        """Whether every column is used as it is."""
        plain = ("numeric", "categorical")
        return not any(p.left_out or p.merged or p.kind not in plain for p in self.columns)

    def apply(self, table: Table) -> Table:
        """The columns to learn from or to predict with, of a table of the used columns."""
        if self.is_plain:
            return table
        plans = [plan for plan in self.columns if not plan.left_out]
        parts = [plan.apply(c) for plan, c in zip(plans, table.columns, strict=True)]
        return Table(tuple(column for part in parts for column in part))

    def apply_to_all(self, table: Table) -> Table:
        """The same for a table that has the columns left out as well."""
        return self.apply(Table(tuple(table.columns[i] for i in self.used)))


@dataclass(frozen=True)
class PreparationSettings:
    """Of a preparation; ``max_states=None`` merges nothing."""

    identifiers: str = "ignore"
    max_states: int | None = MAX_STATES
    column_kinds: Any = "auto"

    def learn(
        self,
        features: Table,
        counts: Mapping[str, NDArray[np.int64]] | None = None,
        n_rows: int | None = None,
    ) -> Preparation:
        """What becomes of the columns; identifiers are refused here if they are to be.

        Of a long table ``features`` are the rows of its sample; ``counts`` are the numbers of rows
        of every category, and ``n_rows`` those of the table.
        """
        if counts is None:
            counts = {c.name: c.counts for c in features.columns if c.kind == "categorical"}
            n_rows = features.n_rows
            drawn = sampled_rows(n_rows)
            features = features if drawn is None else features.take(drawn)
        wanted = resolve_kinds(self.column_kinds, features.names)
        plans = [
            self._plan(c, kind, counts.get(c.name, np.zeros(0, dtype=np.int64)), n_rows)
            for c, kind in zip(features.columns, wanted, strict=True)
        ]
        if features.n_columns and all(plan.left_out for plan in plans):
            if all(column.missing.all() for column in features.columns):
                return Preparation.unchanged(features.kinds)  # others say what is wrong with that
            raise InputError(
                f"every column would be left out: {_listed(plans)}; identifiers='use' keeps them"
            )
        return Preparation(tuple(plans))

    def _plan(
        self,
        column: Column,
        wanted: WantedKind | None,
        counts: NDArray[np.int64],
        n_rows: int | None,
    ) -> ColumnPlan:
        if not counts.any() and column.missing.all():
            return ColumnPlan(column.name, column.kind, "it has no value in any row")
        date = wanted if is_date_kind(wanted) else _found_dates(column, counts, wanted)
        if date is not None:
            return ColumnPlan(column.name, date)
        private = why_private(column, counts) if self._asks(column, wanted) else None
        if private is not None:
            return ColumnPlan(column.name, column.kind, private)
        amount = _amount_plan(column, wanted, counts)
        reason = self._why_identifier(
            column if amount is None else amount.apply(column)[0], counts, n_rows
        )
        if reason is not None:
            return ColumnPlan(column.name, column.kind, reason)
        if amount is not None:
            return amount
        if column.kind == "numeric":
            return ColumnPlan(column.name, "numeric")
        return self._merging(column, counts)

    def _asks(self, column: Column, wanted: WantedKind | None) -> bool:
        """Whether a column is left out if it is about persons: not if the user wants it."""
        return wanted is None and self.identifiers != "use" and column.kind == "categorical"

    def _merging(self, column: Column, counts: NDArray[np.int64]) -> ColumnPlan:
        """A column of categories with its rare ones merged."""
        rare = rare_categories(counts, self.max_states)
        labels = column.labels
        other = OTHER_LABEL
        while other in labels:
            other += "_"
        return ColumnPlan(column.name, "categorical", "", tuple(labels[i] for i in rare), other)

    def _why_identifier(
        self, column: Column, counts: NDArray[np.int64], n_rows: int | None
    ) -> str | None:
        reason = why_identifier(column, counts, n_rows) if self.identifiers != "use" else None
        if reason and self.identifiers == "error":
            raise InputError(
                f"column {column.name!r} names its rows ({reason}); leave it out, or set "
                "identifiers='ignore' or 'use'"
            )
        return reason


def _found_dates(
    column: Column, counts: NDArray[np.int64], wanted: WantedKind | None
) -> DateKind | None:
    """The kind of dates that a column holds, where the user says nothing and no text leaves the
    order of day and month open.
    """
    if wanted is not None or column.kind == "numeric":
        return None
    used = [c for c, n in zip(column.categories, counts.tolist(), strict=True) if n]
    return kind_of_dates(used)


def _amount_plan(
    column: Column, wanted: WantedKind | None, counts: NDArray[np.int64]
) -> ColumnPlan | None:
    """How the texts of a column become numbers: as asked for, or as they are written."""
    if is_amount_kind(wanted):
        return ColumnPlan(column.name, wanted)
    is_open = wanted is None and column.kind == "categorical"
    found = find_amounts(column, counts) if is_open else None
    return None if found is None else ColumnPlan(column.name, found[0], merged=found[1])


def rare_categories(counts: NDArray[np.int64], max_states: int | None) -> list[int]:
    """Positions of the categories that become "other": none, or at least two. ``counts`` are the
    rows of every category.
    """
    used = np.flatnonzero(counts)
    if max_states is None or len(used) <= max_states:
        return []
    by_count = used[np.argsort(-counts[used], kind="stable")]
    return sorted(by_count[max_states - 1 :].tolist())


def _with_other(column: Column, merged: frozenset[str], other: str) -> Column:
    kept = [category for category in column.categories if str(category) not in merged]
    place = {str(category): i for i, category in enumerate(kept)}
    place.setdefault(other, len(kept))
    kept += [other] * (len(place) - len(kept))
    lookup = [place[other] if label in merged else place[label] for label in column.labels]
    return Column.categorical(column.name, np.array([*lookup, -1])[column.codes], kept)


def tell(preparation: Preparation, settings: PreparationSettings, stacklevel: int) -> None:
    """A warning for each thing that was done, in one line."""
    for text in messages(preparation, settings):
        warnings.warn(text, DataWarning, stacklevel=stacklevel)


def messages(preparation: Preparation, settings: PreparationSettings) -> list[str]:
    """One line for each thing that was done."""
    empty = [p for p in preparation.columns if p.left_out.startswith("it has no value")]
    named = [p for p in preparation.columns if p.left_out and p not in empty]
    lines = []
    if named:
        lines.append(
            f"left out as identifiers: {_listed(named)}; identifiers='use' keeps such columns"
        )
    if empty:
        names = ", ".join(repr(plan.name) for plan in empty)
        lines.append(f"left out, because no row has a value: {names}")
    amounts = [p for p in preparation.columns if is_amount_kind(p.kind) and not p.left_out]
    if amounts:
        lines.append(
            f"texts read as numbers: {', '.join(map(_amount_text, amounts))}; column_kinds="
            f"{{{amounts[0].name!r}: 'categorical'}} keeps them as texts"
        )
    dates = [p for p in preparation.columns if is_date_kind(p.kind) and not p.left_out]
    if dates and settings.column_kinds == "auto":
        names = ", ".join(repr(plan.name) for plan in dates)
        lines.append(
            f"dates taken apart into year, month and weekday: {names}; column_kinds="
            f"{{{dates[0].name!r}: 'categorical'}} keeps them as texts"
        )
    if preparation.merged:
        names = ", ".join(f"{n} of {name!r}" for name, n in preparation.merged.items())
        lines.append(
            f"rare categories merged into one state 'other': {names} "
            f"(max_states={settings.max_states})"
        )
    return lines


def _amount_text(plan: ColumnPlan) -> str:
    comma = " (decimal comma)" if plan.kind == "decimal-comma" else ""
    words = f" (missing where it says {', '.join(map(repr, plan.merged))})" if plan.merged else ""
    return f"{plan.name!r}{comma}{words}"


def _listed(plans: Sequence[ColumnPlan]) -> str:
    return ", ".join(f"{plan.name!r} ({plan.left_out})" for plan in plans)
