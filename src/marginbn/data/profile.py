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

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as types

from marginbn.data.columns import (
    GLANCE,
    MAX_CODE_VALUES,
    MISSING_TEXTS,
    CellError,
    Column,
    Kind,
    Scalar,
    few_values,
    parse_number,
    refuse,
    tidy,
    whole_number,
)
from marginbn.problem.array_types import FloatArray, IntArray

MOST_LEVELS = 1 << 20
"""Distinct texts of a column that are kept: those of a longer one name its rows."""

_WIDE_BYTES = 1 << 30  # texts beyond need offsets of 64 bits


# --- Arrow arrays ---------------------------------------------------------------------------------


def plain_array(name: str, array: Any) -> pa.Array:
    """One Arrow array of a column: numbers, booleans, texts or a dictionary of these; dates become
    ISO texts.
    """
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.cast(array.type.storage_type)
    kind = array.type
    family = _family(name, kind)
    if types.is_dictionary(kind):
        array = array.unify_dictionaries() if isinstance(array, pa.ChunkedArray) else array
    elif family == "date":
        array = pc.strftime(array.cast(pa.date32()), format="%Y-%m-%d")
    elif family == "text" and (not types.is_string(kind) or array.nbytes > _WIDE_BYTES):
        array = array.cast(pa.large_string())
    if not isinstance(array, pa.ChunkedArray):
        return array
    joined = array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()
    return pa.concat_arrays(joined.chunks) if isinstance(joined, pa.ChunkedArray) else joined


def _family(name: str, kind: pa.DataType) -> str:
    """What an Arrow type holds: numbers, dates, texts or something else; what cannot be used is
    refused.
    """
    if types.is_dictionary(kind):
        return _family(name, kind.value_type)
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_date(kind) or types.is_timestamp(kind):
        return "date"
    if types.is_temporal(kind):
        refuse(name, "time")
    if types.is_nested(kind):
        refuse(name, "nested")
    return "other" if types.is_null(kind) or types.is_boolean(kind) else "text"


def encoded_texts(name: str, column: Any) -> pa.Array:
    """One array of a column, texts as a dictionary: they are compared once."""
    is_text = column.type in (pa.string(), pa.large_string(), pa.string_view())
    array = plain_array(name, column.dictionary_encode() if is_text else column)
    return array.dictionary_encode() if types.is_string(array.type) else array  # dates


def levels_of(array: pa.Array) -> tuple[list[Any], IntArray]:
    """Distinct values of an array as Python values, and the place of every row among them; -1
    where it is null.
    """
    encoded = array if types.is_dictionary(array.type) else array.dictionary_encode()
    indices = encoded.indices
    if types.is_unsigned_integer(indices.type) or indices.type.bit_width < 32:
        indices = indices.cast(pa.int64())
    places = indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return encoded.dictionary.to_pylist(), places


def numbers_of(array: pa.Array) -> FloatArray:
    """float64 of an array of numbers, booleans or nulls, NaN where it is null."""
    if types.is_boolean(array.type):
        array = array.cast(pa.int8())
    if types.is_decimal(array.type):
        array = array.cast(pa.string())  # its own way to floats errs in the last digit
    if not types.is_float64(array.type):
        array = array.cast(pa.float64(), safe=False)
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.float64)


def may_be_numbers(fields: Any) -> bool:
    """Whether the first fields of a file are numbers or missing: words show in a few rows, and are
    refused slowly where there are many.
    """
    try:
        _trimmed(fields[:GLANCE]).cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def numbers_of_fields(array: pa.Array) -> FloatArray | None:
    """Fields of a file as finite numbers, NaN where missing; None if that takes a closer look."""
    if types.is_dictionary(array.type) or not may_be_numbers(array):
        return None
    try:
        try:
            numbers = numbers_of(array)
        except pa.ArrowInvalid:
            numbers = numbers_of(_trimmed(array))
    except pa.ArrowInvalid:
        return None
    return (
        None if np.isinf(numbers).any() or np.isnan(numbers).sum() > array.null_count else numbers
    )


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
    name, wanted, is_text
        Of the column, the kind that the user wants (None: to be found out), and whether the values
        are fields of a text file.
    is_numeric, few
        Whether every value is a number; the distinct ones while they are whole and at most ten,
        None afterwards.
    levels, declared
        Distinct values with their numbers of rows, in the order in which they turn up, and
        categories in declared order, if anything declares one.
    missing
        Of every block, which of its rows have no value.
    is_partial, is_overfull
        Whether `levels` lacks rows, because the column seemed to hold measurements, and whether
        there are more levels than are kept; then none are.
    """

    name: str
    wanted: Kind | None = None
    is_text: bool = False
    is_numeric: bool = True
    few: set[float] | None = field(default_factory=set)
    levels: Counter[Any] = field(default_factory=Counter)
    declared: list[Any] | None = None
    missing: list[pa.Array] = field(default_factory=list)
    is_partial: bool = False
    is_overfull: bool = False

    def add(self, column: Any) -> None:
        """Look at some more rows."""
        array = plain_array(self.name, column)
        if types.is_dictionary(array.type):
            self.is_numeric &= not self.is_text  # words, or fields that take a closer look
            if self.declared is None and array.type.ordered:
                self.declared = array.dictionary.to_pylist()
        elif self.wanted != "categorical" and self._add_numbers(array):
            return
        values, places = levels_of(array)
        counts = np.bincount(places + 1, minlength=len(values) + 1)[1:].tolist()
        is_absent = [is_no_value(value, self.is_text) for value in values]
        for value, count, absent in zip(values, counts, is_absent, strict=True):
            if count and not absent:
                self.levels[value] += count
        self.missing.append(pa.array(np.array([*is_absent, True])[places]))  # place -1 is the last
        self._give_up_counting()

    def _add_numbers(self, array: pa.Array) -> bool:
        """Whether these rows are numbers, and not to be counted one by one."""
        if types.is_null(array.type):
            self.missing.append(array.is_null())
            return True
        is_number = _family(self.name, array.type) == "number"
        if self.is_text and self.is_numeric:
            numbers = numbers_of_fields(array)
        else:
            numbers = numbers_of(array) if is_number else None
        self.is_numeric &= numbers is not None
        if numbers is None or not self.is_numeric:
            return False
        is_missing = np.isnan(numbers)
        if self.few is not None:
            self.few = few_values(numbers[~is_missing], self.few)
        if self.wanted != "numeric" and self.few is not None:
            return False
        self.missing.append(pa.array(is_missing))
        self.is_partial |= not is_missing.all()
        return True

    def _give_up_counting(self) -> None:
        """Keep no levels where there are too many: memory must not grow with the rows."""
        self.is_overfull |= len(self.levels) > MOST_LEVELS
        if self.is_overfull:
            self.levels.clear()

    def merge(self, other: ColumnProfile) -> None:
        """Add what is known of other rows."""
        self.is_numeric &= other.is_numeric
        self.is_partial |= other.is_partial
        self.is_overfull |= other.is_overfull
        self.missing += other.missing
        self.declared = self.declared if self.declared is not None else other.declared
        both = None if self.few is None or other.few is None else self.few | other.few
        self.few = None if both is None or len(both) > MAX_CODE_VALUES else both
        self.levels.update(other.levels)
        self._give_up_counting()

    def kind(self) -> Kind:
        """What the column turned out to be."""
        if self.wanted is not None:
            return self.wanted
        if self.declared is not None:
            return "categorical"
        if not (self.levels or self.is_partial or self.is_overfull):  # there is no value
            return "numeric"
        if not self.is_text or self.is_numeric:
            return "numeric" if self.is_numeric and self.few is None else "categorical"
        # fields that pyarrow does not read as finite numbers: +1, inf, or words
        numbers = {parse_number(text.strip()) for text in self.levels}
        if None in numbers or self.is_partial:
            return "categorical"
        whole = all(np.isfinite(n) and n == np.floor(n) for n in numbers if n is not None)
        return "categorical" if whole and len(numbers) <= MAX_CODE_VALUES else "numeric"

    def decide(self) -> ColumnReading:
        """How all rows are to be read: texts as written, but ints where all are whole numbers."""
        kind = self.kind()
        if kind == "numeric":
            return ColumnReading(self.name, kind, self.is_text)
        found: list[Any] = [tidy(value) for value in self.levels]
        if self.is_text:
            found = [text.strip() for text in self.levels]
            numbers = [whole_number(text) for text in found]
            found = found if None in numbers else numbers
        declared = [tidy(value) for value in self.declared or () if not is_no_value(value, False)]
        by_label: dict[str, Scalar] = {}
        for value in (*declared, *sorted(set(found))):
            by_label.setdefault(str(value), value)
        return ColumnReading(self.name, kind, self.is_text, tuple(by_label.values()))

    def counts(self, reading: ColumnReading) -> IntArray:
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


def profile_block(
    block: pa.Table, wanted: Mapping[str, Kind | None], is_text: bool = False
) -> dict[str, ColumnProfile]:
    """Profiles of columns of one block, of the wanted kinds."""
    profiles = {name: ColumnProfile(name, kind, is_text) for name, kind in wanted.items()}
    for profile in profiles.values():
        profile.add(block.column(profile.name))
    return profiles


# --- reading --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ColumnReading:
    """How the values of a column become numbers or categories, block after block.

    Values are matched by label, fields of a file also by number where the categories are numbers.
    A value that is no category gets a place after them.
    """

    name: str
    kind: Kind
    is_text: bool = False
    categories: tuple[Scalar, ...] = ()

    def read(self, column: Any) -> Column:
        """The column of a block; a :class:`CellError` says which row cannot be used."""
        array = plain_array(self.name, column)
        if self.kind == "numeric":
            return self._read_numbers(array)
        levels, places = levels_of(array)
        uses = np.bincount(places + 1, minlength=len(levels) + 1)[1:].tolist()
        codes: list[int] = []
        more: dict[str, int] = {}
        for place, (value, n_uses) in enumerate(zip(levels, uses, strict=True)):
            if self.is_text and value and "\0" in value:
                reason = "holds a NUL byte; this is not a text file"
                raise CellError(int((places == place).argmax()), f"column {self.name!r}", reason)
            code = self.code_of(value) if n_uses else -1
            if code is None:
                code = more.setdefault(self.label_of(value), len(self.categories) + len(more))
            codes.append(code)
        lookup = np.array([*codes, -1], dtype=np.int32)  # place -1 is the last
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

    def _read_numbers(self, array: pa.Array) -> Column:
        if types.is_dictionary(array.type) or _family(self.name, array.type) == "text":
            numbers = numbers_of_fields(array) if self.is_text else None
            numbers = self._numbers_of_levels(array) if numbers is None else numbers
        else:
            numbers = numbers_of(array)
        return Column.numeric(self.name, numbers)

    def _numbers_of_levels(self, array: pa.Array) -> FloatArray:
        """Numbers of texts and categories, each looked at once."""
        levels, places = levels_of(array)
        parsed = np.full(len(levels) + 1, np.nan)
        for i, value in enumerate(levels):
            if is_no_value(value, self.is_text):
                continue
            number = parse_number(value.strip() if self.is_text else tidy(value))
            if number is not None:
                parsed[i] = number
            elif i in places:
                raise CellError(
                    int((places == i).argmax()),
                    f"column {self.name!r} is to be numeric, but",
                    f"holds {value!r}, which is no number; correct it, make it missing, or "
                    "declare the column categorical, or an amount ($1,234.50, 80 kg)",
                )
        return parsed[places]
