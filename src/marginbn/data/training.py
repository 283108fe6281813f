"""Rows to learn from: a table after one pass, prepared, weighted and encoded.

Tables in memory, files, folders and the partitions of a cluster take the same steps, so the same
rows give the same kinds, states, cuts and codes wherever they come from:

1. A *survey* is one pass. It finds what every column holds (``profile.py``), the class of every
   row, where values are missing, and draws the fixed sample (``labelled.py``).
2. What becomes of columns (``preparation.py``) follows from counts of all rows and from the sample;
   which rows stay follows from where values are missing.
3. Numbers are cut by the rows of the sample that stay, and all rows become codes, block by block.
   Those of more than :data:`IN_MEMORY_BYTES` are mapped from a nameless temporary file.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from time import monotonic
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from marginbn.data.columns import Kind, listed
from marginbn.data.encode import EncodedTraining, IsLate, TableCoding, learn_coding
from marginbn.data.guardrails import class_slip, find_slips
from marginbn.data.labelled import (
    CLASS_NAME,
    LabelledTable,
    MissingCost,
    MissingPolicy,
    SamplePart,
    class_factors,
    cost_of_places,
    join_sample,
    label_codes,
    largest_key,
    refuse_measured,
    report_cost,
    sample_block,
    sampled_rows,
)
from marginbn.data.preparation import Preparation, TableSettings, messages
from marginbn.data.profile import ColumnProfile, plain_array, profile_block
from marginbn.data.source import Source
from marginbn.data.table import Table, read_block, read_rows, resolve_kinds
from marginbn.data.texts import is_amount_kind, read_as
from marginbn.exceptions import DataWarning, InputError, OptimalityWarning, warn_user
from marginbn.problem.array_types import BoolArray, FloatArray, IndexArray, IntArray
from marginbn.problem.encoded import PIECE, EncodedData, Variable

IN_MEMORY_BYTES = 1 << 30
"""Codes that are kept in memory; more are mapped from a file."""

FORETOLD_AFTER = 1.0
"""Seconds of reading after which it is known how long the rest takes."""

ENOUGH_ROWS = 20_000
"""Rows, drawn at random, by which columns are cut when time is short."""

N_PASSES = 2
"""Passes over a table that is read in blocks."""

Places = dict[str, BoolArray]
"""Where values are missing: bool (n_rows,) of every column that lacks some."""

TableWork = Callable[[Table], Any]
"""A function of some rows of the feature columns."""


@dataclass(frozen=True, eq=False)
class Survey:
    """A table after one pass.

    Parameters
    ----------
    target
        Name of the class variable; None if there is none.
    drawn, positions
        The rows of the sample with their classes, and the numbers of these rows.
    missing
        Rows without a value, of every column that lacks some.
    classes, class_codes, weights
        Labels of the classes, sorted; the class and the weight of every row.
    each
        Answers of a function to all rows, block by block, of the columns of some names.
    """

    target: str | None
    drawn: LabelledTable
    positions: NDArray[np.integer]
    missing: Places
    classes: NDArray[Any]
    class_codes: NDArray[np.integer]
    weights: FloatArray
    each: Callable[[TableWork, Sequence[str]], Iterator[Any]]

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        return len(self.class_codes)

    @property
    def sample(self) -> Table:
        """The features of the rows of the sample."""
        return self.drawn.features

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return self.sample.names

    @property
    def is_whole(self) -> bool:
        """Whether the sample is the whole table."""
        return len(self.positions) == self.n_rows

    def cost(self, missing: Places, policy: str) -> MissingCost:
        """What a policy does to rows, by where values of the columns that are used are missing."""
        return cost_of_places(missing, self.class_codes, policy, self.classes)

    def fingerprint(self) -> str:
        """SHA-256 of the sample, and of counts, classes and weights where there are more rows."""
        if self.is_whole:
            return self.drawn.fingerprint()
        digest = hashlib.sha256(self.drawn.fingerprint().encode())
        for column in self.sample.columns:
            if column.kind == "categorical" and len(column.counts):
                counts = repr((column.name, column.counts.tolist()))
                digest.update(counts.encode("utf-8", errors="surrogatepass"))
        digest.update(self.class_codes.astype("<u2").tobytes())
        digest.update(self.weights.astype("<f8").tobytes())
        return digest.hexdigest()


def survey_rows(rows: LabelledTable, has_class: bool = True) -> Survey:
    """A survey of rows in memory, which are one block."""
    table, drawn, positions = rows.features, rows, np.arange(rows.n_rows)
    chosen = sampled_rows(len(rows.given_labels))
    if chosen is not None:
        positions = np.flatnonzero(np.isin(rows.positions, chosen, assume_unique=True))
        drawn = rows.take(positions)
        counts = {column.name: column.counts for column in table.columns}
        drawn = replace(drawn, features=_counted(drawn.features, counts))
    return Survey(
        rows.target if has_class else None,
        drawn,
        positions,
        {c.name: places for c in table.columns if (places := c.missing).any()},
        *label_codes(rows.labels),
        rows.weights,
        lambda work, names: iter([work(table.select(names))]),
    )


def _counted(sample: Table, counts: Mapping[str, IntArray]) -> Table:
    """A sample that knows how many rows of the whole table every category has."""
    none = np.zeros(0, dtype=np.int64)
    known = [None if c.kind == "numeric" else counts.get(c.name, none) for c in sample.columns]
    pairs = zip(sample.columns, known, strict=True)
    return Table(tuple(replace(column, all_counts=own) for column, own in pairs))


# --- the survey of a source -----------------------------------------------------------------------


@dataclass
class _Part:
    """What is known of some blocks: profiles by name, rows of the sample, and all labels."""

    profiles: dict[str, ColumnProfile]
    sample: list[SamplePart]
    labels: list[pa.Array]
    n_rows: int

    def merge(self, other: _Part) -> _Part:
        for name, profile in other.profiles.items():
            self.profiles[name].merge(profile)
        self.sample = join_sample([*self.sample, *other.sample])
        self.labels += other.labels
        self.n_rows += other.n_rows
        return self


def survey(
    source: Source, target: str | None, column_kinds: Any = "auto", time_limit: float | None = None
) -> Survey:
    """One pass over a table, a second one over columns in which texts follow on numbers.

    A warning says after a second if reading alone will take longer than ``time_limit``.
    """
    names = [name for name in source.names if name != target]
    if not names:
        raise InputError(f"there is no column besides the target {target!r}")
    wanted = zip(names, resolve_kinds(column_kinds, names), strict=True)
    kinds = {name: read_as(kind) or source.kinds.get(name) for name, kind in wanted}
    source = source.remembering()
    part = _look(source, kinds, target, time_limit)
    _count_again(source, part.profiles)
    readings, counts, missing = [], {}, {}
    for name, profile in part.profiles.items():
        reading = profile.decide()
        if reading.kind == "categorical" and not profile.is_overfull:
            found = profile.counts(reading)
            used = [c for c, n in zip(reading.categories, found, strict=True) if n]
            reading, counts[name] = replace(reading, categories=tuple(used)), found[found > 0]
        readings.append(reading)
        places = np.asarray(pa.chunked_array(profile.missing, pa.bool_()))
        if places.any():
            missing[name] = places

    def each(work: TableWork, names: Sequence[str]) -> Iterator[Any]:
        own = [reading for reading in readings if reading.name in names]
        return source.each(
            lambda block, first_row: work(read_block(block, first_row, own)), [r.name for r in own]
        )

    ((rows, positions),) = join_sample(part.sample, is_last=True)
    sample = _counted(source.answer(partial(read_block, readings=readings), rows), counts)
    classes, codes = _class_codes(part, target, source)
    weights, own = np.ones(part.n_rows), positions.astype(np.intp)
    drawn = LabelledTable(sample, target or CLASS_NAME, weights[own], own, classes[codes])
    return Survey(target, drawn, positions, missing, classes, codes, weights, each)


def check_target(source: Source, target: Any) -> str:
    """The name of the class column."""
    if not isinstance(target, str) or target not in source.names:
        got = target if isinstance(target, str) else type(target).__name__
        raise InputError(
            f"y must be the name of the class column of {source.origin}, one of "
            f"{listed(source.names)}; got {got!r}"
        )
    return target


def _look(
    source: Source, kinds: dict[str, Kind | None], target: str | None, time_limit: float | None
) -> _Part:
    n_rows, is_text = source.count(), source.is_text
    largest = largest_key(n_rows)

    def look(block: pa.Table, first_row: int) -> _Part:
        labels = []
        if target is not None:
            own = plain_array(target, block.column(target))
            labels.append(own if pa.types.is_dictionary(own.type) else own.dictionary_encode())
        sample = sample_block(block.select(list(kinds)), first_row, largest)
        return _Part(profile_block(block, kinds, is_text), [sample], labels, block.num_rows)

    began = monotonic()
    merged: _Part | None = None
    limit = time_limit if n_rows is not None else None
    for part in source.each(look, [*kinds, *([] if target is None else [target])]):
        merged = part if merged is None else merged.merge(part)
        seconds = monotonic() - began
        if limit is not None and n_rows is not None and seconds > FORETOLD_AFTER:
            expected = N_PASSES * seconds * n_rows / merged.n_rows
            if expected > limit:
                warn_user(
                    f"reading alone will take about {expected:.0f} s, more than "
                    f"time_limit={limit:g}: hardly any time is left to search; a larger "
                    "time_limit, or fewer rows, helps",
                    OptimalityWarning,
                )
            limit = None  # it is said once
    if merged is None:
        raise source.empty()
    return merged


def _count_again(source: Source, profiles: dict[str, ColumnProfile]) -> None:
    """Count the levels of columns that seemed to hold measurements and do not."""
    again = [n for n, own in profiles.items() if own.is_partial and own.kind() == "categorical"]
    for name in again:
        profiles[name].levels.clear()
        profiles[name].is_partial = False
    wanted: dict[str, Kind | None] = dict.fromkeys(again, "categorical")
    is_text = source.is_text
    blocks = source.each(lambda block, _: profile_block(block, wanted, is_text), again)
    for found in blocks if again else ():
        for name in again:
            profiles[name].levels.update(found[name].levels)


def _class_codes(
    part: _Part, target: str | None, source: Source
) -> tuple[NDArray[Any], NDArray[np.integer]]:
    """Classes, sorted, and the class of every row; all rows are of one where there is none."""
    if target is None:
        return np.zeros(1, dtype=np.int64), np.zeros(part.n_rows, dtype=np.uint8)
    labels = pa.table({target: pa.chunked_array(part.labels)})
    column = read_rows(labels, source, {target: "categorical"}).columns[0]
    if column.missing.any():
        raise InputError(f"column {target!r}, the class, must not have missing values")
    values = np.asarray(column.categories)
    refuse_measured(values, f"column {target!r}, the class,")
    used = np.flatnonzero(column.counts)
    classes, codes_of = np.unique(values[used], return_inverse=True)
    place = np.zeros(len(values), dtype=np.min_scalar_type(len(classes)))
    place[used] = codes_of
    return classes, place[column.codes]


# --- rows to learn from ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Rows to learn from; build them with :meth:`of`.

    Parameters
    ----------
    found, settings, preparation
        The table, how it becomes rows to learn from, and what becomes of its columns.
    missing, cost
        Where values of all rows are missing, and what becomes of these rows.
    said
        What was done and what should give pause, one line each, as the warnings said it.
    began
        When reading began, by :func:`time.monotonic`: limits of time count from then.
    """

    found: Survey
    settings: TableSettings
    preparation: Preparation
    missing: Places
    cost: MissingCost
    said: tuple[str, ...] = ()
    began: float = field(default_factory=monotonic)
    _codings: dict[int | None, TableCoding] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(
        cls,
        found: Survey,
        settings: TableSettings,
        began: float | None = None,
        is_lenient: bool = False,
    ) -> TrainingRows:
        """Columns left out, categories merged, dates taken apart, rows dropped; a warning each.

        Where a policy leaves no row of a class, all rows stay if this ``is_lenient``.
        """
        began = monotonic() if began is None else began
        preparation = settings.learn(found.sample, found.n_rows)
        said = messages(preparation, settings)
        if found.target is not None:
            said += class_slip(len(found.classes), found.n_rows)
        if found.target is not None or is_lenient:
            said += find_slips(found.drawn, preparation.used_names, found.target is not None)
        for line in said:
            warn_user(line, DataWarning)
        missing = _missing_of(found, preparation)
        cost = found.cost(missing, settings.missing)
        if is_lenient and not cost.kept.any():
            cost = found.cost(missing, "state")
        elif not is_lenient:
            report_cost(cost, missing, settings.missing)
        return cls(found, settings, preparation, missing, cost, tuple(said), began)

    @classmethod
    def complete(cls, rows: LabelledTable, missing: MissingPolicy) -> TrainingRows:
        """Rows that are prepared and weighted already, of which all stay."""
        found, policy = survey_rows(rows), "state" if missing in ("state", "auto") else "keep"
        plain, cost = Preparation.unchanged(rows.features.kinds), found.cost(found.missing, policy)
        return cls(found, TableSettings(missing=missing), plain, found.missing, cost)

    @cached_property
    def prepared(self) -> Table:
        """The sample with the columns that are learned from."""
        return self.preparation.apply_to_all(self.found.sample)

    @cached_property
    def weights(self) -> FloatArray:
        """Weights of the rows that stay."""
        found, wanted = self.found, self.settings.class_weight
        codes, weights = found.class_codes[self.cost.kept], found.weights[self.cost.kept]
        if wanted is not None:
            weights = weights * class_factors(wanted, found.classes, codes)[codes]
        return weights

    @cached_property
    def drawn(self) -> LabelledTable:
        """The rows of the sample that stay, prepared: by them is chosen and cut."""
        positions, kept = self.found.positions, self.cost.kept
        drawn = replace(self.found.drawn, features=self.prepared)
        in_sample = kept[positions]
        if not in_sample.all():
            drawn = drawn.take(np.flatnonzero(in_sample))
        return replace(drawn, weights=self.weights[np.cumsum(kept)[positions[in_sample]] - 1])

    @property
    def n_samples(self) -> int:
        """Rows that are used."""
        return len(self.weights)

    def elapsed(self) -> float:
        """Seconds since reading began."""
        return monotonic() - self.began

    def sample(self) -> LabelledTable:
        """Rows to choose settings by; where they are not all rows, a warning says so."""
        if self.drawn.n_rows < self.n_samples:
            warn_user(
                f"what is chosen by validation is chosen on {self.drawn.n_rows} of "
                f"{self.n_samples} rows, drawn at random with a fixed seed; counts are those of "
                "all rows",
                DataWarning,
            )
        return self.drawn

    def coding(self, is_late: IsLate = lambda: False, n_bins: int | None = None) -> TableCoding:
        """States of the columns: cuts of the sample, and categories, of a long table all that there
        are. ``n_bins`` cuts numbers at quantiles instead of by the class.
        """
        if n_bins not in self._codings:
            self._codings[n_bins] = self._learn_coding(is_late, n_bins)
        return self._codings[n_bins]

    def _learn_coding(self, is_late: IsLate, n_bins: int | None) -> TableCoding:
        """The same; before every numeric column of many rows it is asked whether it ``is_late``: if
        so the rest are cut by some of them.
        """
        found, drawn = self.found, self.drawn
        classes = found.class_codes[found.positions][self.cost.kept[found.positions]]
        codings, cut, hurried = [], list[str](), list[str]()
        few: IndexArray | None = None
        for column in drawn.features.columns:
            rows: Any = slice(None)
            if column.kind == "numeric":
                if few is None and drawn.n_rows > ENOUGH_ROWS and is_late():
                    draws = np.random.default_rng(0)
                    few = np.sort(draws.choice(drawn.n_rows, ENOUGH_ROWS, replace=False))
                (cut if few is None else hurried).append(column.name)
                rows = rows if few is None else few
            own = column if isinstance(rows, slice) else column.take(rows)
            has_state = column.name in self.cost.state_columns
            given = (own, classes[rows], drawn.weights[rows], len(found.classes), has_state)
            codings.append(learn_coding(*given, found.is_whole, n_bins))
        if hurried:
            warn_user(
                f"time_limit is short for these rows: the bins of {len(hurried)} numeric columns "
                f"({listed(hurried)}) come from {ENOUGH_ROWS} rows drawn at random; "
                "a larger time_limit cuts them by all rows",
                DataWarning,
            )
        if cut and not found.is_whole:
            warn_user(
                f"the bins of {len(cut)} numeric columns ({listed(cut)}) come from "
                f"{found.sample.n_rows} of {found.n_rows} rows, drawn at random with a fixed seed",
                DataWarning,
            )
        return TableCoding(tuple(codings))

    def encode(self, is_late: IsLate = lambda: False, n_bins: int | None = None) -> EncodedTraining:
        """All rows that stay as codes, class first; when it ``is_late``, the bins that are left
        come from few rows.
        """
        found, coding = self.found, self.coding(is_late, n_bins)
        labels = tuple(str(label) for label in found.classes)
        own = [] if found.target is None else [Variable(self.drawn.target, labels)]
        variables = (*own, *coding.variables)
        dtype = np.min_scalar_type(max(variable.arity for variable in variables) - 1)
        codes = _room((len(variables), self.n_samples), dtype)
        if own:
            codes[0] = found.class_codes[self.cost.kept]
        encode = partial(_codes_of, coding, self.cost.dropping_columns, dtype)
        prepare, names = self.preparation.apply, self.preparation.used_names
        if found.is_whole:
            blocks = iter([encode(self.prepared)])
        else:
            blocks = found.each(lambda table: encode(prepare(table)), names)
        end = 0
        for block in blocks:
            codes[len(own) :, end : end + block.shape[1]] = block
            end += block.shape[1]
        data = codes.T if self.n_samples > PIECE else np.ascontiguousarray(codes.T, np.int32)
        return EncodedTraining(coding, found.classes, EncodedData(data, self.weights, variables))


def encode_training(
    rows: LabelledTable, missing: MissingPolicy, is_late: IsLate = lambda: False
) -> EncodedTraining:
    """Codings and codes of rows that are prepared and weighted already."""
    return TrainingRows.complete(rows, missing).encode(is_late)


def _missing_of(found: Survey, preparation: Preparation) -> Places:
    """Where values of the prepared columns are missing; words among amounts are, too."""
    plans = preparation.used_plans
    pairs = [(name, found.missing.get(plan.name)) for plan in plans for name in plan.result_names]
    missing = {name: places for name, places in pairs if places is not None}
    wordy = Preparation(tuple(p for p in plans if is_amount_kind(p.kind) and p.merged))
    if names := wordy.used_names:
        masks = found.each(lambda t: [c.missing for c in wordy.apply(t).columns], names)
        for name, own in zip(names, zip(*masks, strict=True), strict=True):
            missing[name] = np.concatenate(own)
    return missing


def _room(shape: tuple[int, int], dtype: Any) -> NDArray[np.integer]:
    """An array in memory, or in a file that is removed with it."""
    if shape[0] * shape[1] * np.dtype(dtype).itemsize <= IN_MEMORY_BYTES:
        return np.empty(shape, dtype=dtype)
    with tempfile.TemporaryFile(prefix="marginbn-") as file:
        return np.memmap(file, dtype=dtype, mode="w+", shape=shape).view(np.ndarray)


def _codes_of(
    coding: TableCoding, dropping: Sequence[str], dtype: Any, table: Table
) -> NDArray[np.integer]:
    """Codes (n_features, n_rows) of the rows of a block that have values where they must."""
    kept = table.select(dropping).complete if dropping else np.ones(table.n_rows, np.bool_)
    codes = np.empty((len(coding.columns), int(kept.sum())), dtype=dtype)
    for out, own, column in zip(codes, coding.columns, table.columns, strict=True):
        found = own.encode(column)
        found = found if kept.all() else found[kept]
        if found.min(initial=0) < 0:  # would become another state
            if column.missing[kept].any():
                raise InputError(f"column {own.name!r} has missing values; set missing='state'")
            raise InputError(f"column {own.name!r} changed between two passes over the table")
        out[:] = found
    return codes
