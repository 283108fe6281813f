"""What one pass over a long table keeps of a column: its values by class, exact or nearly.

Codings are learned from weighted values of a column with their classes (``encode.learn_coding``),
never from rows. So a pass keeps, for every column, the distinct values with their number of rows in
each class; these give the same categories and the same cuts as the whole column.

A numeric column with more than :data:`EXACT` distinct values becomes a *sketch*: values next to
each other are united, whatever their classes, until at most :data:`POINTS` are left, each with the
rows of every class that it stands for. (With points of its own for every class, neighbours would
be of one class each, and every gap between two a good cut.) Sketches of different pieces are added
up and united again, in any order. Each time a rank moves by at most one part in :data:`POINTS`;
cuts made of a sketch are approximate, and whoever uses them says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbn.data.columns import Column, Kind, Scalar
from marginbn.exceptions import InputError

EXACT = 16_384
"""Distinct numbers of a column that are kept as they are."""

POINTS = 8_192
"""Points of a sketch."""

MOST_CATEGORIES = 65_536
"""Distinct categories of a column that are counted."""

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass
class ColumnSummary:
    """Rows of one column by value and class."""

    name: str
    kind: Kind
    n_missing: int = 0
    is_exact: bool = True
    is_overfull: bool = False
    """Whether there were more categories than are counted."""
    _categories: dict[Scalar, int] = field(default_factory=dict)
    _values: FloatArray = field(default_factory=lambda: np.empty(0))
    _classes: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    _counts: FloatArray = field(default_factory=lambda: np.empty(0))

    def add(self, column: Column, classes: IntArray) -> None:
        """One more piece of the column, with the class of every row."""
        self.n_missing += int(column.missing.sum())
        known = ~column.missing
        if self.kind == "numeric":
            self._add_values(*_counted(column.numbers[known], classes[known]))
            return
        numbers = [self._number(category) for category in column.categories]
        if len(self._categories) > MOST_CATEGORIES:
            self.is_overfull = True
            return
        if numbers:
            places = np.array(numbers)[column.codes[known]].astype(np.float64)
            self._add_values(*_counted(places, classes[known]))

    def _number(self, category: Scalar) -> int:
        return self._categories.setdefault(category, len(self._categories))

    def _add_values(self, values: FloatArray, classes: IntArray, counts: FloatArray) -> None:
        values = np.concatenate([self._values, values])
        classes = np.concatenate([self._classes, classes])
        counts = np.concatenate([self._counts, counts])
        merged = _unite_equal(values, classes, counts)
        if self.kind == "numeric" and np.unique(merged[0]).size > EXACT:
            self.is_exact = False
            merged = _unite_neighbours(*merged)
        self._values, self._classes, self._counts = merged

    def absorb(self, other: ColumnSummary, classes: IntArray) -> None:
        """Take over what another summary of the same column knows of other rows; ``classes`` are
        its numbers of classes as they are here.
        """
        self.n_missing += other.n_missing
        self.is_exact &= other.is_exact
        self.is_overfull |= other.is_overfull
        values = other._values
        if self.kind != "numeric":
            own = np.array([self._number(c) for c in other._categories], dtype=np.float64)
            values = own[values.astype(np.int64)] if values.size else values
            self.is_overfull |= len(self._categories) > MOST_CATEGORIES
        if not self.is_overfull:
            self._add_values(values, classes[other._classes], other._counts)

    @property
    def categories(self) -> list[Scalar]:
        """Different values of a column of categories, as far as they are counted."""
        return _sorted(self._categories)

    @property
    def n_rows(self) -> int:
        """Rows with a value."""
        return round(float(self._counts.sum()))

    def condensed(self) -> tuple[Column, IntArray, FloatArray]:
        """The column with one row per value and class, their classes and numbers of rows; one row
        more stands for missing values, if there are any.
        """
        classes, counts, values = self._classes, self._counts, self._values
        if self.n_missing:
            classes = np.append(classes, 0)
            counts = np.append(counts, float(self.n_missing))
            values = np.append(values, np.nan)
        if self.kind == "numeric":
            return Column.numeric(self.name, values), classes, counts
        order = self.categories
        place = np.empty(len(order) + 1, dtype=np.int64)
        for rank, category in enumerate(order):
            place[self._categories[category]] = rank
        place[-1] = -1
        codes = place[np.where(np.isnan(values), -1, values).astype(np.int64)]
        return Column.categorical(self.name, codes, order), classes, counts


def _sorted(categories: Iterable[Scalar]) -> list[Scalar]:
    """In the order of a column that is read as a whole."""
    given = list(categories)
    try:
        return sorted(given)
    except TypeError:
        return sorted(given, key=str)


def _counted(values: FloatArray, classes: IntArray) -> tuple[FloatArray, IntArray, FloatArray]:
    """One row per value and class of rows that count once each."""
    parts = [np.empty((2, 0))]
    of_class = [np.empty(0, dtype=np.int64)]
    for c in np.flatnonzero(np.bincount(classes)):
        distinct, rows = np.unique(values[classes == c], return_counts=True)
        parts.append(np.array([distinct, rows]))
        of_class.append(np.full(distinct.size, c))
    joined = np.concatenate(parts, axis=1)
    return joined[0], np.concatenate(of_class), joined[1]


def _unite_equal(
    values: FloatArray, classes: IntArray, counts: FloatArray
) -> tuple[FloatArray, IntArray, FloatArray]:
    """One row per value and class."""
    order = np.lexsort((values, classes))
    values, classes, counts = values[order], classes[order], counts[order]
    if values.size == 0:
        return values, classes, counts
    is_new = np.append(True, (values[1:] != values[:-1]) | (classes[1:] != classes[:-1]))
    starts = np.flatnonzero(is_new)
    return values[starts], classes[starts], np.add.reduceat(counts, starts)


def _unite_neighbours(
    values: FloatArray, classes: IntArray, counts: FloatArray
) -> tuple[FloatArray, IntArray, FloatArray]:
    """At most :data:`POINTS` values, each the middle of about equally many rows."""
    distinct, place = np.unique(values, return_inverse=True)
    own = np.bincount(place, counts, distinct.size)
    reached = np.cumsum(own)
    cell = ((reached - 0.5 * own) * (POINTS / reached[-1])).astype(np.int64)
    first = np.flatnonzero(np.append(True, cell[1:] != cell[:-1]))
    ends = np.append(first[1:], distinct.size) - 1
    middle = 0.5 * (reached[first] - own[first] + reached[ends])
    points = distinct[np.clip(np.searchsorted(reached, middle), first, ends)]
    number = np.cumsum(np.append(False, cell[1:] != cell[:-1]))
    return _unite_equal(points[number[place]], classes, counts)


class ClassCounts:
    """Classes in the order in which they turn up, and their numbers of rows."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._counts: list[int] = []

    def add(self, labels: NDArray[Any], target: str) -> IntArray:
        """Numbers of the classes of some rows."""
        distinct, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
        numbers = []
        for label, count in zip(distinct.tolist(), counts.tolist(), strict=True):
            number = self._numbers.setdefault(label, len(self._numbers))
            if number == len(self._counts):
                self._counts.append(0)
            self._counts[number] += count
            numbers.append(number)
        if len(self._numbers) > MOST_CATEGORIES:
            raise InputError(f"column {target!r} has more than {MOST_CATEGORIES} classes")
        return np.array(numbers, dtype=np.int64)[codes.reshape(-1)]

    def absorb(self, other: ClassCounts, target: str) -> IntArray:
        """Take over another's counts; its numbers of classes as they are here."""
        names = np.array(list(other._numbers))
        numbers = self.add(np.repeat(names, other._counts), target)
        ends = np.cumsum(other._counts)
        return np.asarray(numbers[ends - 1])

    @property
    def labels(self) -> NDArray[Any]:
        """All classes, sorted."""
        return np.unique(np.array(list(self._numbers)))

    @property
    def ranks(self) -> IntArray:
        """Place in the sorted order of every class, in the order in which they turned up."""
        return np.searchsorted(self.labels, np.array(list(self._numbers))).astype(np.int64)

    @property
    def n_rows(self) -> int:
        """Rows of all classes."""
        return sum(self._counts)
