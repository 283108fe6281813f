"""What a column holds: its kind and its categories, from all rows, in one pass.

A profile of a column is made block by block and profiles of different blocks are merged, so a
block, a file and a partition of a cluster are the same thing. Kinds are decided from the merged
profile:

- text, booleans, dates and dictionaries are categorical;
- numbers are numeric, except that whole numbers with at most ten distinct values are categorical:
  these are nearly always codes, and the user can say otherwise with ``kinds``;
- a column of a text file is made of numbers if every value present is one;
- a column without a single value is numeric.

Categories are sorted, unless the source declares an order. Numbers and booleans keep their type,
whole numbers become ints (1.0 and 1 are one category "1"); texts of a file stay as written, except
that a column of plain whole numbers (no leading zero, ``2`` and ``2.0`` alike) has ints.

Texts are looked at once per distinct value, never once per cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as types
from numpy.typing import NDArray

from marginbn.data.columns import (
    MAX_CODE_VALUES,
    MISSING_TEXTS,
    Column,
    Kind,
    Scalar,
    few_values,
    is_code_like,
    parse_number,
    refuse,
    tidy,
    tidy_categories,
    whole_number,
)
from marginbn.data.source import Source

MOST_LEVELS = 1 << 20
"""Distinct texts of a column that are kept: those of a longer one name its rows."""

_GLANCE = 256  # rows looked at first; nearly every measured column betrays itself here
_WIDE_BYTES = 1 << 30  # texts beyond need offsets of 64 bits


# --- Arrow arrays ---------------------------------------------------------------------------------


def plain_array(name: str, array: Any) -> pa.Array:
    """One Arrow array of a column: numbers, booleans, texts or a dictionary of these; dates become
    ISO texts.
    """
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        array = array.cast(kind.storage_type)
    if types.is_dictionary(kind):
        if isinstance(array, pa.ChunkedArray):
            array = array.unify_dictionaries()
        return _joined(array)
    family = _family(name, kind)
    if family == "date":
        return _joined(pc.strftime(array.cast(pa.date32()), format="%Y-%m-%d"))
    if family == "text" and not types.is_string(kind) and not types.is_large_string(kind):
        return _joined(array.cast(pa.large_string()))
    if types.is_string(kind) and array.nbytes > _WIDE_BYTES:
        array = array.cast(pa.large_string())
    return _joined(array)


def _joined(array: Any) -> pa.Array:
    if not isinstance(array, pa.ChunkedArray):
        return array
    joined = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
    return pa.concat_arrays(joined.chunks) if isinstance(joined, pa.ChunkedArray) else joined


def _family(name: str, kind: pa.DataType) -> str:
    """What an Arrow type holds; what cannot be used is refused."""
    if types.is_null(kind):
        return "missing"
    if types.is_boolean(kind):
        return "boolean"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_date(kind) or types.is_timestamp(kind):
        return "date"
    if types.is_temporal(kind):
        refuse(name, "time")
    if types.is_nested(kind):
        refuse(name, "nested")
    if types.is_dictionary(kind):
        return _family(name, kind.value_type)
    return "text"


def levels_of(array: pa.Array) -> tuple[list[Any], NDArray[np.int64]]:
    """Distinct values of an array as Python values, and the place of every row among them; -1
    where it is null.
    """
    encoded = array if types.is_dictionary(array.type) else array.dictionary_encode()
    places = encoded.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    values = encoded.dictionary
    if getattr(types, "is_string_view", lambda _: False)(values.type):
        values = values.cast(pa.large_string())
    return values.to_pylist(), places


def numbers_of(array: pa.Array) -> NDArray[np.float64]:
    """float64 of an array of numbers or booleans, NaN where it is null."""
    if types.is_boolean(array.type):
        array = array.cast(pa.int8())
    if types.is_decimal(array.type):
        array = array.cast(pa.string())  # its own way to floats errs in the last digit
    if not types.is_float64(array.type):
        array = array.cast(pa.float64(), safe=False)
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.float64)


def numbers_of_fields(array: pa.Array) -> NDArray[np.float64] | None:
    """Fields of a file as finite numbers, NaN where missing; None if that takes a closer look."""
    if types.is_null(array.type):
        return np.full(len(array), np.nan)
    if types.is_dictionary(array.type):
        return None
    try:  # words betray themselves in a few rows, and are refused slowly where there are many
        _trimmed(array[:_GLANCE]).cast(pa.float64())
    except pa.ArrowInvalid:
        return None
    try:
        parsed = array.cast(pa.float64())
    except pa.ArrowInvalid:
        try:
            parsed = _trimmed(array).cast(pa.float64())
        except pa.ArrowInvalid:
            return None
    numbers = np.asarray(parsed.to_numpy(zero_copy_only=False), dtype=np.float64)
    is_finite = np.isfinite(numbers).sum() == len(numbers) - parsed.null_count
    return numbers if is_finite else None


def _trimmed(array: pa.Array) -> pa.Array:
    """Texts without surrounding spaces; what then means missing is null."""
    trimmed = pc.utf8_trim_whitespace(array)
    is_missing = pc.is_in(trimmed, value_set=pa.array(sorted(MISSING_TEXTS), trimmed.type))
    return pc.if_else(is_missing, pa.scalar(None, trimmed.type), trimmed)


# --- profiles -------------------------------------------------------------------------------------


@dataclass
class ColumnProfile:
    """What all rows so far tell about a column.

    Parameters
    ----------
    name
        Of the column.
    wanted
        The kind that the user wants, None if it is to be found out.
    is_text
        Whether the values are fields of a text file.
    n_rows, n_missing
        Rows, and those without a value.
    is_numeric
        Whether every value is a number.
    few
        The distinct numbers while these are whole and at most ten; None afterwards.
    levels
        Distinct values with their numbers of rows, in the order in which they turn up.
    declared
        Categories in declared order; None if nothing declares one.
    places
        Of every block its number of rows, and packed bits that say which of them have no value;
        None where all have one.
    is_partial
        Whether `levels` lacks rows, because the column seemed to hold measurements.
    is_overfull
        Whether there are more levels than are kept; then none are.
    """

    name: str
    wanted: Kind | None = None
    is_text: bool = False
    n_rows: int = 0
    n_missing: int = 0
    is_numeric: bool = True
    few: set[float] | None = field(default_factory=set)
    levels: dict[Any, int] = field(default_factory=dict)
    declared: list[Any] | None = None
    is_partial: bool = False
    is_overfull: bool = False
    places: list[tuple[int, NDArray[np.uint8] | None]] = field(default_factory=list)

    def add(self, column: Any, declares: str = "none") -> None:
        """Look at some more rows."""
        array = plain_array(self.name, column)
        self.n_rows += len(array)
        family = _family(self.name, column.type)
        is_dictionary = types.is_dictionary(array.type)
        if family == "missing":
            self._add_missing(np.ones(len(array), dtype=np.bool_))
            return
        self.is_numeric &= not (is_dictionary and self.is_text)
        is_open = is_dictionary and self.declared is None
        if is_open and (declares == "all" or (declares == "ordered" and array.type.ordered)):
            self.declared = array.dictionary.to_pylist()
        if self.wanted != "categorical" and not is_dictionary and self._add_numbers(array, family):
            return
        self._add_levels(array)

    def _add_numbers(self, array: pa.Array, family: str) -> bool:
        """Whether these rows are numbers, and not to be counted one by one."""
        if self.is_text and self.is_numeric:
            numbers = numbers_of_fields(array)
            self.is_numeric = numbers is not None
        else:
            numbers = numbers_of(array) if family == "number" else None
            self.is_numeric &= family == "number"
        if numbers is None or not self.is_numeric:
            return False
        present = numbers[~np.isnan(numbers)]
        if self.few is not None:
            self.few = few_values(present, self.few)
        if self.wanted != "numeric" and self.few is not None:
            return False
        self._add_missing(np.isnan(numbers))
        self.is_partial |= len(present) > 0
        return True

    def _add_missing(self, is_missing: NDArray[np.bool_]) -> None:
        n_missing = int(np.count_nonzero(is_missing))
        self.n_missing += n_missing
        self.places.append((len(is_missing), np.packbits(is_missing) if n_missing else None))

    def missing(self) -> NDArray[np.bool_] | None:
        """Which rows have no value; None if all have one."""
        if not self.n_missing:
            return None
        empty = np.empty(0, dtype=np.bool_)
        parts = [
            np.zeros(n, np.bool_) if bits is None else np.unpackbits(bits, count=n).view(np.bool_)
            for n, bits in self.places
        ]
        return np.concatenate([empty, *parts])

    def _add_levels(self, array: pa.Array) -> None:
        values, places = levels_of(array)
        counts = np.bincount(places + 1, minlength=len(values) + 1)
        is_absent = np.ones(len(values) + 1, dtype=np.bool_)  # the last is what place -1 points to
        for i, (value, count) in enumerate(zip(values, counts[1:].tolist(), strict=True)):
            is_absent[i] = is_no_value(value, self.is_text)
            if count and not is_absent[i]:
                self.levels[value] = self.levels.get(value, 0) + count
        self._add_missing(is_absent[places])
        self._give_up_counting()

    def _give_up_counting(self) -> None:
        """Keep no levels where there are too many: memory must not grow with the rows."""
        self.is_overfull |= len(self.levels) > MOST_LEVELS
        if self.is_overfull:
            self.levels = {}

    def merge(self, other: ColumnProfile) -> None:
        """Add what is known of other rows."""
        self.n_rows += other.n_rows
        self.n_missing += other.n_missing
        self.is_numeric &= other.is_numeric
        self.is_partial |= other.is_partial
        self.is_overfull |= other.is_overfull
        self.places += other.places
        self.declared = self.declared if self.declared is not None else other.declared
        if self.few is not None:
            both = None if other.few is None else self.few | other.few
            self.few = both if both is not None and len(both) <= MAX_CODE_VALUES else None
        for value, count in other.levels.items():
            self.levels[value] = self.levels.get(value, 0) + count
        self._give_up_counting()

    def kind(self) -> Kind:
        """What the column turned out to be."""
        if self.wanted is not None:
            return self.wanted
        if self.n_missing == self.n_rows:
            return "numeric" if self.declared is None else "categorical"
        if self.declared is not None:
            return "categorical"
        if self.is_text and not self.is_numeric:
            return self._kind_of_fields()
        return "numeric" if self.is_numeric and self.few is None else "categorical"

    def _kind_of_fields(self) -> Kind:
        """Fields that pyarrow does not read as finite numbers: +1, inf, or words."""
        texts = (text.strip() for text in self.levels)
        numbers = [parse_number(text) for text in texts]
        if any(number is None for number in numbers) or self.is_partial:
            return "categorical"
        whole = all(np.isfinite(n) and n == np.floor(n) for n in numbers if n is not None)
        return "categorical" if whole and len(set(numbers)) <= MAX_CODE_VALUES else "numeric"

    def decide(self) -> ColumnReading:
        """How all rows of the column are to be read."""
        kind = self.kind()
        if kind == "numeric":
            return ColumnReading(self.name, kind, self.is_text)
        by_label: dict[str, int] = {}
        values = self._categories(self.declared or self.levels)
        categories: list[Scalar] = []
        for value in values:
            if str(value) not in by_label:
                by_label[str(value)] = len(categories)
                categories.append(value)
        reading = ColumnReading(self.name, kind, self.is_text, tuple(categories))
        if self.declared is None:
            return reading
        more = [v for v in self._categories(self.levels) if str(v) not in by_label]
        return ColumnReading(self.name, kind, self.is_text, (*categories, *more))

    def _categories(self, levels: Iterable[Any]) -> list[Scalar]:
        """Values as categories, sorted unless they are declared. Texts stay as written; where all
        are plain whole numbers they become ints.
        """
        if self.is_text:
            texts = [text.strip() for text in levels]
            numbers = [whole_number(text) for text in texts]
            if texts and None not in numbers:
                return sorted({number for number in numbers if number is not None})
            return sorted(set(texts))
        found = tidy_categories([value for value in levels if not is_no_value(value, False)])
        return (
            found if self.declared is not None and levels is self.declared else sorted(set(found))
        )

    def counts(self, reading: ColumnReading) -> NDArray[np.int64]:
        """Rows of every category of a reading."""
        counts = np.zeros(len(reading.categories), dtype=np.int64)
        for value, count in self.levels.items():
            counts[reading.code_of(value)] += count
        return counts


def is_no_value(value: Any, is_text: bool) -> bool:
    """Whether a level means missing."""
    if value is None or (isinstance(value, float) and value != value):
        return True
    return is_text and value.strip() in MISSING_TEXTS


# --- reading --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ColumnReading:
    """How the values of a column become numbers or categories, block after block.

    Values are matched with categories by their label, fields of a file also by their number where
    the categories are numbers (``2`` and ``2.0`` are one). A value that is no category gets a
    place after them.
    """

    name: str
    kind: Kind
    is_text: bool = False
    categories: tuple[Scalar, ...] = ()

    def read(self, column: Any, source: Source | None = None, first_row: int = 0) -> Column:
        """The column of a block that begins with row ``first_row`` of the source."""
        place = source or _NOWHERE
        array = plain_array(self.name, column)
        if self.kind == "numeric":
            return self._read_numbers(array, place, first_row)
        levels, places = levels_of(array)
        if self.is_text:
            self._refuse_nul(levels, places, place, first_row)
        found = [self.code_of(value) for value in levels]
        labels = [self.label_of(v) for v, code in zip(levels, found, strict=True) if code is None]
        more = {label: len(self.categories) + i for i, label in enumerate(dict.fromkeys(labels))}
        lookup = np.full(len(levels) + 1, -1, dtype=np.int32)  # place -1 is the last
        for i, (value, code) in enumerate(zip(levels, found, strict=True)):
            lookup[i] = more[self.label_of(value)] if code is None else code
        return Column.categorical(self.name, lookup[places], (*self.categories, *more))

    def label_of(self, value: Any) -> str:
        """The label of a value."""
        return value.strip() if self.is_text else str(tidy(value))

    def code_of(self, value: Any) -> int | None:
        """Place of a value among the categories: -1 if missing, None if it is none of them."""
        if is_no_value(value, self.is_text):
            return -1
        label = self.label_of(value)
        code = self._by_label.get(label)
        if code is not None or not self.is_text or not self._by_number:
            return code
        number = parse_number(label) if self._has_fractions else whole_number(label)
        return None if number is None else self._by_number.get(number)

    @cached_property
    def _by_label(self) -> dict[str, int]:
        return {str(c): i for i, c in enumerate(self.categories)}

    @cached_property
    def _by_number(self) -> dict[float, int]:
        return {float(c): i for i, c in enumerate(self.categories) if type(c) in (int, float)}

    @cached_property
    def _has_fractions(self) -> bool:
        return any(type(c) is float for c in self.categories)

    def _read_numbers(self, array: pa.Array, source: Source, first_row: int) -> Column:
        family = _family(self.name, array.type)
        if types.is_dictionary(array.type) or family == "text":
            numbers = numbers_of_fields(array) if self.is_text else None
            if numbers is None:
                numbers = self._parse_levels(array, source, first_row)
        else:
            numbers = numbers_of(array) if family != "missing" else np.full(len(array), np.nan)
        infinite = np.flatnonzero(np.isinf(numbers))
        if len(infinite):
            raise source.error(
                first_row + int(infinite[0]),
                f"column {self.name!r}",
                f"holds {numbers[infinite[0]]:g}, but numbers must be finite; make it missing, or "
                "declare the column categorical",
            )
        return Column.numeric(self.name, numbers)

    def _parse_levels(self, array: pa.Array, source: Source, first_row: int) -> NDArray[np.float64]:
        """Numbers of texts and categories, each looked at once."""
        levels, places = levels_of(array)
        parsed = np.full(len(levels) + 1, np.nan)
        is_bad = np.zeros(len(levels) + 1, dtype=np.bool_)
        for i, value in enumerate(levels):
            if not is_no_value(value, self.is_text):
                number = parse_number(value.strip() if self.is_text else tidy(value))
                is_bad[i] = number is None
                parsed[i] = np.nan if number is None else number
        rows = np.flatnonzero(is_bad[places])
        if len(rows):
            value = levels[places[rows[0]]]
            raise source.error(
                first_row + int(rows[0]),
                f"column {self.name!r} is to be numeric, but",
                f"holds {value!r}, which is no number; correct it, make it missing, or declare the "
                "column categorical, or an amount ($1,234.50, 80 kg)",
            )
        return parsed[places]

    def _refuse_nul(
        self, levels: list[Any], places: NDArray[np.int64], source: Source, first_row: int
    ) -> None:
        bad = [i for i, text in enumerate(levels) if text and "\0" in text]
        if bad:
            row = int(np.flatnonzero(places == bad[0])[0])
            raise source.error(
                first_row + row,
                f"column {self.name!r}",
                "holds a NUL byte; this is not a text file",
            )


_NOWHERE = Source((), lambda names: iter(()))


def profile_block(
    block: pa.Table,
    first_row: int,
    wanted: Mapping[str, Kind | None],
    is_text: bool = False,
    declares: str = "none",
) -> dict[str, ColumnProfile]:
    """Profiles of columns of one block, of the wanted kinds; a `Work` of a source."""
    profiles = {}
    for name, kind in wanted.items():
        profiles[name] = ColumnProfile(name, kind, is_text)
        profiles[name].add(block.column(name), declares)
    return profiles


def read_whole(table: pa.Table, source: Source, wanted: Mapping[str, Kind | None]) -> list[Column]:
    """Columns of a table that is in memory as a whole; each is looked at once."""
    columns = []
    for name in table.column_names:
        array = plain_array(name, table.column(name))
        kind = wanted.get(name)
        if source.is_text and kind != "categorical":
            numbers = numbers_of_fields(array)
            if numbers is not None and (kind == "numeric" or not is_code_like(numbers)):
                columns.append(Column.numeric(name, numbers))
                continue
        if _family(name, array.type) == "text" and not types.is_dictionary(array.type):
            array = array.dictionary_encode()
        profile = ColumnProfile(name, kind, source.is_text)
        is_dictionary = types.is_dictionary(table.schema.field(name).type)
        profile.add(array, source.declares if is_dictionary else "none")
        columns.append(profile.decide().read(array, source))
    return columns
