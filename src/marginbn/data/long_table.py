"""A table that need not fit into memory becomes codes, block by block.

1. A survey: profiles of all columns (``profile.py``), the class of every row, and the fixed sample
   (``labelled.py``). A table that is no longer than the sample is then in memory as a whole.
2. What becomes of the columns (``preparation.py``) follows from counts of all rows and from the
   sample, as it does in memory; where values are missing, one more pass over those columns tells
   which rows the policy leaves out.
3. Numbers are cut by the rows of the sample that stay, and every block is encoded.

All of it gives what the same rows give in memory: the same kinds, states, cuts and rows. Codes of
more than :data:`IN_MEMORY_BYTES` go to a nameless temporary file that is mapped into memory.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from marginbn.data.amounts import is_amount_kind, read_as
from marginbn.data.columns import Column, Kind, WantedKind
from marginbn.data.dates import DateKind, as_dates, is_date_kind
from marginbn.data.discretize import mdlp_cuts
from marginbn.data.encode import Coding, EncodedTraining, TableCoding, quantile_coding
from marginbn.data.labelled import (
    LabelledTable,
    MissingCost,
    MissingPolicy,
    RowSample,
    cost_of_places,
    largest_key,
    refuse_measured,
    report_cost,
)
from marginbn.data.preparation import Preparation, TableSettings
from marginbn.data.profile import (
    ColumnProfile,
    ColumnReading,
    levels_of,
    plain_array,
    profile_block,
)
from marginbn.data.source import Source
from marginbn.data.table import Table, resolve_kinds
from marginbn.exceptions import InputError
from marginbn.problem.encoded import EncodedData, Variable

IN_MEMORY_BYTES = 1 << 30
"""Codes that are kept in memory; more are mapped from a file."""

FloatArray = NDArray[np.float64]


# --- the survey -----------------------------------------------------------------------------------


@dataclass
class _Part:
    """What is known of some blocks: profiles by name, rows of the sample, and the classes of the
    rows as levels with the place of every row among them.
    """

    profiles: dict[str, ColumnProfile]
    sample: RowSample
    labels: list[tuple[list[Any], NDArray[np.integer]]]
    n_rows: int

    def merge(self, other: _Part) -> None:
        for name, profile in other.profiles.items():
            self.profiles[name].merge(profile)
        self.sample.merge(other.sample)
        self.labels += other.labels
        self.n_rows += other.n_rows


@dataclass(frozen=True, eq=False)
class Survey:
    """A table after one pass.

    Parameters
    ----------
    source, target
        The table, and the name of its class column, None if it has none.
    wanted
        The kinds that the user wants, by the name of the column.
    readings
        How each feature column is read.
    counts
        Rows of every category of the categorical ones, but for those of too many values to count.
    n_missing
        Rows without a value, by the name of the column.
    sample, positions
        The features of the rows of the sample, and the numbers of these rows.
    classes, class_codes
        Class labels, sorted, and the class of every row.
    """

    source: Source
    target: str | None
    wanted: Mapping[str, WantedKind | None]
    readings: tuple[ColumnReading, ...]
    counts: dict[str, NDArray[np.int64]]
    n_missing: dict[str, int]
    sample: Table
    positions: NDArray[np.int64]
    classes: NDArray[Any]
    class_codes: NDArray[np.integer]

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        return len(self.class_codes)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return self.sample.names

    @property
    def is_whole(self) -> bool:
        """Whether the sample is the whole table."""
        return len(self.positions) == self.n_rows

    @cached_property
    def drawn(self) -> LabelledTable:
        """The rows of the sample with their classes."""
        labels = self.classes[self.class_codes[self.positions]]
        return LabelledTable.of(self.sample, labels, self.target or "class")


def survey(source: Source, target: str | None, column_kinds: Any = "auto") -> Survey:
    """One pass over a table, a second one over columns in which texts follow on numbers."""
    names = [name for name in source.names if name != target]
    if not names:
        raise InputError(f"there is no column besides the target {target!r}")
    wanted = dict(zip(names, resolve_kinds(column_kinds, names), strict=True))
    kinds: dict[str, Kind | None] = {
        name: read_as(kind) or source.kinds.get(name) for name, kind in wanted.items()
    }
    if target is not None:
        kinds[target] = "categorical"
    part = _merged(source, kinds, target)
    _count_again(source, part.profiles)
    return _finished(source, target, wanted, part)


def check_target(source: Source, target: Any) -> str:
    """The name of the class column."""
    if not isinstance(target, str) or target not in source.names:
        listed = ", ".join(map(repr, source.names[:20]))
        raise InputError(
            f"y must be the name of the class column of {source.origin}, one of {listed}; "
            f"got {target if isinstance(target, str) else type(target).__name__!r}"
        )
    return target


def _merged(source: Source, kinds: Mapping[str, Kind | None], target: str | None) -> _Part:
    look = partial(
        _survey_block,
        kinds=dict(kinds),
        target=target,
        is_text=source.is_text,
        declares=source.declares,
        largest=largest_key(source.count()),
    )
    merged: _Part | None = None
    for part in source.each(look, list(kinds)):
        if merged is None:
            merged = part
        else:
            merged.merge(part)
    if merged is None:
        raise source.empty()
    merged.sample.prune()
    return merged


def _survey_block(
    block: pa.Table,
    first_row: int,
    kinds: dict[str, Kind | None],
    target: str | None,
    is_text: bool,
    declares: str,
    largest: np.uint64 | None,
) -> _Part:
    profiles = profile_block(block, first_row, kinds, is_text, declares)
    sample = RowSample()
    sample.add(block, first_row, largest)
    labels = []
    if target is not None:
        levels, places = levels_of(plain_array(target, block.column(target)))
        labels.append((levels, places.astype(np.min_scalar_type(-max(len(levels), 1)))))
    return _Part(profiles, sample, labels, block.num_rows)


def _count_again(source: Source, profiles: dict[str, ColumnProfile]) -> None:
    """Count the levels of columns that seemed to hold measurements and do not."""
    again = [name for name, profile in profiles.items() if profile.needs_levels]
    if not again:
        return
    kinds: dict[str, Kind | None] = dict.fromkeys(again, "categorical")
    look = partial(profile_block, wanted=kinds, is_text=source.is_text)
    for name in again:
        profiles[name].levels, profiles[name].is_partial = {}, False
    for found in source.each(look, again):
        for name in again:
            for value, count in found[name].levels.items():
                profiles[name].levels[value] = profiles[name].levels.get(value, 0) + count


def _finished(
    source: Source, target: str | None, wanted: Mapping[str, WantedKind | None], part: _Part
) -> Survey:
    readings = tuple(part.profiles[name].decide() for name in wanted)
    counted = [r for r in readings if not part.profiles[r.name].is_overfull]
    counts = {r.name: part.profiles[r.name].counts(r) for r in counted if r.kind == "categorical"}
    positions, rows = part.sample.positions, part.sample.table
    order = np.argsort(positions, kind="stable")
    rows = rows.take(pa.array(order)) if (np.diff(positions) < 0).any() else rows
    sample = _read_block(rows, readings, wanted, source, 0)
    for name, kind in wanted.items():
        if is_date_kind(kind) and name in counts:
            reading = next(r for r in readings if r.name == name)
            counts[name] = _counts_of_days(sample.column(name), reading, counts[name], kind)
    classes, class_codes = _class_codes(part, target, source)
    return Survey(
        source,
        target,
        wanted,
        readings,
        counts,
        {name: part.profiles[name].n_missing for name in wanted},
        sample,
        positions[order],
        classes,
        class_codes,
    )


def _counts_of_days(
    column: Column, reading: ColumnReading, counts: NDArray[np.int64], kind: DateKind
) -> NDArray[np.int64]:
    """Rows of every day, where several texts may mean the same one."""
    places = np.arange(len(reading.categories))
    days = as_dates(Column.categorical(reading.name, places, reading.categories), kind)
    found = dict(zip(days.labels, np.bincount(days.codes, counts).astype(int), strict=True))
    return np.array([found.get(label, 0) for label in column.labels], dtype=np.int64)


def _class_codes(
    part: _Part, target: str | None, source: Source
) -> tuple[NDArray[Any], NDArray[np.integer]]:
    """Classes, sorted, and the class of every row; all rows are of one where there is none."""
    if target is None:
        return np.zeros(1, dtype=np.int64), np.zeros(part.n_rows, dtype=np.uint8)
    profile = part.profiles[target]
    if profile.n_missing:
        raise InputError(f"column {target!r}, the class, must not have missing values")
    reading = profile.decide()
    refuse_measured(np.asarray(reading.categories), f"column {target!r}, the class,")
    values = np.asarray(reading.categories)
    used = np.flatnonzero(profile.counts(reading))
    classes, codes_of = np.unique(values[used], return_inverse=True)
    place = np.full(len(values) + 1, -1, dtype=np.int64)
    place[used] = codes_of
    dtype = np.min_scalar_type(len(classes))
    codes = []
    for levels, places in part.labels:
        own = [code for level in levels if (code := reading.code_of(level)) is not None]
        codes.append(place[np.array(own, dtype=np.intp)][places])
    return classes, np.concatenate(codes).astype(dtype)


def _read_block(
    block: pa.Table,
    readings: Sequence[ColumnReading],
    wanted: Mapping[str, WantedKind | None],
    source: Source | None,
    first_row: int,
) -> Table:
    columns = []
    for reading in readings:
        column = reading.read(block.column(reading.name), source, first_row)
        kind = wanted[reading.name]
        columns.append(as_dates(column, kind) if is_date_kind(kind) else column)
    return Table(tuple(columns))


# --- codes ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LongTraining:
    """What is learned from a long table before its structure."""

    coding: TableCoding
    classes: NDArray[Any]
    data: EncodedData
    preparation: Preparation
    n_dropped: int
    sampled: tuple[str, ...]  # numeric columns that are cut by the sample
    fingerprint: str

    @property
    def training(self) -> EncodedTraining:
        """Codings, classes and codes."""
        return EncodedTraining(self.coding, self.classes, self.data)


@dataclass(frozen=True, eq=False)
class Plan:
    """What becomes of the columns and rows of a long table.

    Parameters
    ----------
    preparation, cost
        What becomes of columns, and of rows with missing values.
    weights
        Of the rows that stay.
    rows
        The rows of the sample that stay, prepared: what is chosen or cut is chosen and cut by them.
    """

    preparation: Preparation
    cost: MissingCost
    weights: FloatArray
    rows: LabelledTable


def plan_survey(found: Survey, settings: TableSettings) -> Plan:
    """Decide what becomes of columns and rows; one more pass where values are missing."""
    preparation = settings.learn(found.sample, found.counts, found.n_rows)
    cost = _cost(found, preparation, settings.missing)
    kept = np.flatnonzero(cost.kept)
    labels = found.classes[found.class_codes]
    unweighted = LabelledTable.of(Table(()), labels, found.target or "class", kept=kept)
    weights = unweighted.reweighted(settings.class_weight).weights
    in_sample = cost.kept[found.positions]
    features = preparation.apply_to_all(found.sample).take(in_sample)
    positions = found.positions[in_sample].astype(np.intp)
    own = weights[np.searchsorted(kept, positions)]
    rows = LabelledTable(features, unweighted.target, own, positions, labels)
    return Plan(preparation, cost, weights, rows)


def encode_plan(found: Survey, plan: Plan, n_bins: int | None = None) -> LongTraining:
    """Encode all rows that stay; ``n_bins`` cuts numbers at quantiles instead of by the class."""
    coding = _learn_codings(found, plan, n_bins)
    return _encode(found, plan.preparation, coding, plan.cost, plan.weights)


def _cost(found: Survey, preparation: Preparation, missing: MissingPolicy) -> MissingCost:
    """What becomes of rows with missing values: one more pass over the columns that have some."""
    plans = [
        plan
        for plan in preparation.columns
        if not plan.left_out
        and (found.n_missing[plan.name] or (is_amount_kind(plan.kind) and plan.merged))
    ]
    places: dict[str, list[NDArray[np.bool_]]] = {}
    if plans:
        readings = tuple(r for r in found.readings if r.name in {plan.name for plan in plans})
        look = partial(
            _missing_of_block,
            readings=readings,
            wanted=dict(found.wanted),
            preparation=Preparation(tuple(plans)),
        )
        for part in found.source.each(look, [reading.name for reading in readings]):
            for name, is_missing in part.items():
                places.setdefault(name, []).append(is_missing)
    joined = {name: np.concatenate(parts) for name, parts in places.items()}
    joined = {name: is_missing for name, is_missing in joined.items() if is_missing.any()}
    cost = cost_of_places(joined, found.class_codes, missing)
    lost = tuple(found.classes[code] for code in cost.lost_classes)
    report_cost(replace(cost, lost_classes=lost), joined, missing)
    return cost


def _missing_of_block(
    block: pa.Table,
    first_row: int,
    readings: tuple[ColumnReading, ...],
    wanted: dict[str, WantedKind | None],
    preparation: Preparation,
) -> dict[str, NDArray[np.bool_]]:
    table = preparation.apply(_read_block(block, readings, wanted, None, first_row))
    return {column.name: column.missing for column in table.columns}


def _learn_codings(found: Survey, plan: Plan, n_bins: int | None) -> TableCoding:
    """States of the columns that are used: categories of all rows, cuts of the sample."""
    condensed = plan.preparation.apply_to_all(Table(tuple(_levels_columns(found))))
    classes, weights = found.class_codes[plan.rows.positions], plan.rows.weights
    codings = []
    for column, levels in zip(plan.rows.features.columns, condensed.columns, strict=True):
        name, with_state = column.name, column.name in plan.cost.state_columns
        known = ~column.missing
        if column.kind != "numeric":
            used = zip(levels.categories, levels.counts, strict=True)
            categories = tuple(category for category, n in used if n)
            codings.append(Coding(name, "categorical", (), categories, with_state))
        elif n_bins is not None:
            values = column.numbers[known]
            codings.append(quantile_coding(name, values, weights[known], n_bins, with_state))
        else:
            cuts = mdlp_cuts(column.numbers, classes, weights, len(found.classes))
            codings.append(Coding(name, "numeric", tuple(map(float, cuts)), (), with_state))
    return TableCoding(tuple(codings))


def _levels_columns(found: Survey) -> list[Column]:
    """Every feature with each category that occurs once; numbers with none."""
    n_levels = max([1, *(len(counts) for counts in found.counts.values())])
    columns = []
    for column in found.sample.columns:
        if column.kind == "numeric":
            columns.append(Column.numeric(column.name, np.full(n_levels, np.nan)))
            continue
        codes = np.full(n_levels, -1)
        used = np.flatnonzero(found.counts.get(column.name, ()))
        codes[: len(used)] = used
        columns.append(Column.categorical(column.name, codes, column.categories))
    return columns


def _encode(
    found: Survey,
    preparation: Preparation,
    coding: TableCoding,
    cost: MissingCost,
    weights: FloatArray,
) -> LongTraining:
    """All rows that stay, one column after the other in as few bytes as hold them."""
    own = [Variable(found.target, tuple(map(str, found.classes)))] if found.target else []
    variables = (*own, *coding.variables)
    n_rows = int(cost.kept.sum())
    dtype = np.min_scalar_type(max(variable.arity for variable in variables) - 1)
    codes = _room((len(variables), n_rows), dtype)
    if own:
        codes[0] = found.class_codes[cost.kept]
    used = {plan.name for plan in preparation.columns if not plan.left_out}
    readings = tuple(reading for reading in found.readings if reading.name in used)
    look = partial(
        _codes_of_block,
        readings=readings,
        wanted=dict(found.wanted),
        preparation=preparation,
        coding=coding,
        dtype=dtype,
        source=found.source if found.source.elsewhere is None else None,
    )
    begin = end = 0
    for block in found.source.each(look, [reading.name for reading in readings]):
        kept = cost.kept[begin : begin + block.shape[1]]
        begin += block.shape[1]
        block = block if kept.all() else block[:, kept]
        codes[len(own) :, end : end + block.shape[1]] = block
        end += block.shape[1]
    coding, codes, variables = _without_unused(coding, codes, variables, len(own))
    digest = hashlib.sha256(repr((variables, coding)).encode("utf-8", errors="surrogatepass"))
    digest.update(np.ascontiguousarray(codes).data)
    data = EncodedData(codes.T, weights, variables)
    sampled = tuple(c.name for c in coding.columns if c.kind == "numeric" and not found.is_whole)
    return LongTraining(
        coding, found.classes, data, preparation, cost.n_dropped, sampled, digest.hexdigest()
    )


def _room(shape: tuple[int, int], dtype: Any) -> NDArray[np.integer]:
    """An array in memory, or in a file that is removed with it."""
    if shape[0] * shape[1] * np.dtype(dtype).itemsize <= IN_MEMORY_BYTES:
        return np.empty(shape, dtype=dtype)
    with tempfile.TemporaryFile(prefix="marginbn-") as file:
        return np.memmap(file, dtype=dtype, mode="w+", shape=shape).view(np.ndarray)


def _codes_of_block(
    block: pa.Table,
    first_row: int,
    readings: tuple[ColumnReading, ...],
    wanted: dict[str, WantedKind | None],
    preparation: Preparation,
    coding: TableCoding,
    dtype: Any,
    source: Source | None,
) -> NDArray[np.integer]:
    """Codes of one block, (n_features, n_rows); what is missing without a state is any code, for
    such rows are left out.
    """
    table = preparation.apply(_read_block(block, readings, wanted, source, first_row))
    codes = np.empty((len(coding.columns), table.n_rows), dtype=dtype)
    for i, (own, column) in enumerate(zip(coding.columns, table.columns, strict=True)):
        found = own.encode(column)
        if ((found < 0) & ~column.missing).any():
            raise InputError(f"column {own.name!r} changed between two passes over the table")
        codes[i] = np.maximum(found, 0)
    return codes


def _without_unused(
    coding: TableCoding,
    codes: NDArray[np.integer],
    variables: tuple[Variable, ...],
    n_before: int,
) -> tuple[TableCoding, NDArray[np.integer], tuple[Variable, ...]]:
    """Without categories that only rows have that are left out."""
    columns = list(coding.columns)
    for i, column in enumerate(columns, start=n_before):
        counts = np.bincount(codes[i], minlength=variables[i].arity)[: len(column.categories)]
        if column.kind == "categorical" and not counts.all():
            kept = np.flatnonzero(counts)
            place = np.zeros(variables[i].arity, dtype=codes.dtype)
            place[kept] = np.arange(len(kept))
            place[len(column.categories) :] = len(kept)  # the state for missing values
            codes[i] = place[codes[i]]
            left = tuple(column.categories[k] for k in kept)
            columns[i - n_before] = replace(column, categories=left)
    learned = TableCoding(tuple(columns))
    return learned, codes, (*variables[:n_before], *learned.variables)
