"""Codings: how the values of a column become states, learned once and applied to other rows.

A numeric column is cut into bins (Fayyad-Irani, on the training rows only); a categorical column
has the categories seen in training. Code -1 stands for "not known": a missing value, or a
category that training never saw. With the policies ``missing="state"`` and ``"auto"`` a column that
has missing values in training gets one more state for them.

Categories that training never saw count as missing, and one warning per prediction names them. A
label that differs from one of training by no more than case, spaces or decimals looks like a slip.

Tables without a class have bins of about equal weight; weights count as repetitions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbn.data.columns import Column, Kind, Scalar, parse_number
from marginbn.data.discretize import (
    assign_bins,
    kept_values,
    mdlp_cuts,
    name_bins,
    quantile_cuts,
)
from marginbn.data.table import Table, as_kind
from marginbn.exceptions import DataWarning, InputError, warn_user
from marginbn.files import Shape
from marginbn.problem import MISSING_LABEL
from marginbn.problem.array_types import CodeArray, FloatArray
from marginbn.problem.encoded import EncodedData, Variable


class Coding(Shape, frozen=True):
    """States of one feature column, as it stands in model files too.

    Parameters
    ----------
    name, kind
        Of the column.
    cuts, categories
        Bin edges of a numeric column, increasing, where a value up to and including a cut lies
        left; or values of a categorical column, in the order of their codes.
    missing_state
        Whether the last state stands for a missing value.
    values
        Training values of each bin to draw from; empty where nothing is drawn.
    """

    name: str
    kind: Kind
    cuts: tuple[float, ...] = ()
    categories: tuple[Scalar, ...] = ()
    missing_state: bool = False
    values: tuple[tuple[float, ...], ...] = ()

    def __post_init__(self) -> None:
        if any(a >= b for a, b in pairwise(self.cuts)):
            raise ValueError("cuts must be increasing")
        if len({*map(str, self.categories)}) < len(self.categories):
            raise ValueError("categories must be distinct")
        if self.categories if self.kind == "numeric" else self.cuts:
            raise ValueError(f"a {self.kind} column has either cuts or categories")
        if self.values and (not all(self.values) or len(self.values) != len(self.cuts) + 1):
            raise ValueError("values must be empty or have values of every bin")

    @property
    def variable(self) -> Variable:
        """The variable that the coded column is."""
        labels = tuple(map(str, self.categories))
        if self.kind == "numeric":
            labels = name_bins(self.cuts)
        if self.missing_state:
            missing = MISSING_LABEL
            while missing in labels:
                missing += "_"
            labels = (*labels, missing)
        return Variable(self.name, labels)

    def encode(self, column: Column) -> CodeArray:
        """Codes of a column, read as the kind it had in training; -1 where not known."""
        column = as_kind(column, self.kind)
        if self.kind == "numeric":
            codes = assign_bins(column.numbers, np.array(self.cuts))
        else:
            known = {str(category): code for code, category in enumerate(self.categories)}
            lookup = [known.get(label, -1) for label in column.labels]
            codes = np.array([*lookup, -1], dtype=np.int32)[column.codes]  # code -1: the last entry
        if self.missing_state:
            last = self.variable.arity - 1
            codes = np.where(column.missing, np.int32(last), codes)
        return codes

    def draw(self, codes: CodeArray, rng: np.random.Generator) -> NDArray[Any]:
        """Values of codes: categories as they were given, training values of a bin at random, None
        for a missing value.
        """
        drawn = np.full(len(codes), None, dtype=object)
        for state, values in enumerate(self.values or [(c,) for c in self.categories]):
            rows = np.flatnonzero(codes == state)
            drawn[rows] = np.array(values, dtype=object)[rng.integers(len(values), size=len(rows))]
        return drawn


def learn_coding(
    column: Column,
    class_codes: NDArray[np.integer],
    weights: FloatArray,
    n_classes: int,
    missing_state: bool,
    is_whole: bool = True,
    n_bins: int | None = None,
) -> Coding:
    """Coding of one training column; numeric ones are cut against the class, or into so many bins.
    Categories that no row has are left out if these are all rows.
    """
    if column.kind == "numeric":
        kept: tuple[tuple[float, ...], ...] = ()
        if n_bins is None:
            cuts = mdlp_cuts(column.numbers, class_codes, weights, n_classes)
        else:
            values, weights = column.numbers[~column.missing], weights[~column.missing]
            cuts = quantile_cuts(values, weights, n_bins)
            kept = kept_values(values, weights, cuts)
        return Coding(column.name, "numeric", tuple(cuts.tolist()), (), missing_state, kept)
    used = column.counts > 0 if is_whole else np.ones(len(column.categories), np.bool_)
    categories = tuple(c for c, seen in zip(column.categories, used, strict=True) if seen)
    return Coding(column.name, "categorical", (), categories, missing_state)


@dataclass(frozen=True)
class TableCoding:
    """Codings of all feature columns of a table."""

    columns: tuple[Coding, ...]

    @property
    def variables(self) -> tuple[Variable, ...]:
        """One variable per feature."""
        return tuple(c.variable for c in self.columns)

    def encode(self, table: Table) -> CodeArray:
        """Codes (n_rows, n_features), -1 where not known; columns are matched by position."""
        if table.n_columns != len(self.columns):
            raise InputError(
                f"the table must have the {len(self.columns)} columns of the training table, "
                f"got {table.n_columns}"
            )
        codes = np.empty((table.n_rows, len(self.columns)), dtype=np.int32)
        for i, (coding, column) in enumerate(zip(self.columns, table.columns, strict=True)):
            codes[:, i] = coding.encode(column)
        return codes


@dataclass(frozen=True, eq=False)
class EncodedTraining:
    """Training data with what is needed to encode more rows alike."""

    coding: TableCoding
    classes: NDArray[Any]
    data: EncodedData


IsLate = Callable[[], bool]
"""Whether cuts have taken as much time as they may."""


# --- categories never seen ------------------------------------------------------------------------

EXAMPLES, MOST_COLUMNS = 3, 5
"""Labels of a column and columns that the warning names."""


class UnseenCategories:
    """Codes of tables, and one warning for all of them about values that training never saw."""

    def __init__(self, coding: TableCoding) -> None:
        self._coding = coding
        self._counts: dict[str, Counter[str]] = defaultdict(Counter)

    def encode(self, table: Table) -> CodeArray:
        """Codes of a table as of :meth:`TableCoding.encode`; what is new in it is counted."""
        codes = self._coding.encode(table)
        for coding, column in zip(self._coding.columns, table.columns, strict=True):
            if coding.kind == "categorical":
                known = {str(category) for category in coding.categories}
                column = as_kind(column, "categorical")
                for label, n in zip(column.labels, column.counts.tolist(), strict=True):
                    if n and label not in known:
                        self._counts[coding.name][label] += n
        return codes

    def warn(self) -> None:
        """One warning about all columns of all tables so far, if there is anything to say."""
        if self._counts:
            warn_user(self.text(), DataWarning)

    def text(self) -> str:
        """Columns, counts, examples, and whether it looks like a slip: as in ``'job' (12 values,
        such as 'RETIRED')``.
        """
        listed = ", ".join(
            f"{name!r} ({counts.total()} {'value' if counts.total() == 1 else 'values'}, such as "
            f"{', '.join(repr(label) for label, _ in counts.most_common(EXAMPLES))})"
            for name, counts in list(self._counts.items())[:MOST_COLUMNS]
        )
        n_more = len(self._counts) - MOST_COLUMNS
        more = f" and {n_more} more columns" if n_more > 0 else ""
        text = f"categories never seen in training count as missing: {listed}{more}"
        for coding in self._coding.columns:
            labels = [label for label, _ in self._counts.get(coding.name, Counter()).most_common()]
            known = {_plain(str(category)): str(category) for category in coding.categories}
            alike = [label for label in labels if _plain(label) in known]
            if alike and 2 * len(alike) >= len(labels):
                return (
                    f"{text}. This looks like a slip of types or spelling: {alike[0]!r} in "
                    f"{coding.name!r} was {known[_plain(alike[0])]!r} in training; give the "
                    "columns the types they had there"
                )
        return text


def _plain(label: str) -> str:
    """What is left of a label without decimals, upper case and spaces."""
    text = label.strip().casefold()
    number = parse_number(text)
    return text if number is None else repr(number)
