"""Codings: how the values of a column become states, learned once and applied for ever.

A numeric column is cut into bins (Fayyad-Irani, on the training rows only); a categorical column
has the categories seen in training. Code -1 stands for "not known": a missing value, or a
category that training never saw. With the policy ``missing="state"`` a column that has missing
values in training gets one more state for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from marginbn.data.columns import Column, Kind, Scalar
from marginbn.data.discretize import assign_bins, mdlp_cuts, name_bins
from marginbn.data.encode import Variable
from marginbn.data.table import Table
from marginbn.exceptions import InputError

MissingPolicy = Literal["drop", "state", "error"]
UnseenPolicy = Literal["missing", "error"]
MISSING_LABEL = "(missing)"


@dataclass(frozen=True)
class Coding:
    """States of one feature column.

    Parameters
    ----------
    name, kind
        Of the column.
    cuts
        Bin edges of a numeric column, increasing; values up to and including a cut lie left.
    categories
        Values of a categorical column, in the order of their codes.
    missing_state
        Whether the last state stands for a missing value.
    """

    name: str
    kind: Kind
    cuts: tuple[float, ...] = ()
    categories: tuple[Scalar, ...] = ()
    missing_state: bool = False

    @property
    def variable(self) -> Variable:
        """The variable that the coded column is."""
        if self.kind == "numeric":
            labels = name_bins(np.array(self.cuts))
        else:
            labels = tuple(str(c) for c in self.categories)
        if self.missing_state:
            missing = MISSING_LABEL
            while missing in labels:
                missing += "_"
            labels = (*labels, missing)
        return Variable(self.name, labels)

    def encode(self, column: Column, unseen: UnseenPolicy = "missing") -> NDArray[np.int32]:
        """Codes of a column, read as the kind it had in training; -1 where not known."""
        column = column.as_kind(self.kind)
        if self.kind == "numeric":
            codes = assign_bins(column.numbers, np.array(self.cuts))
        else:
            codes = self._encode_categories(column, unseen)
        if self.missing_state:
            last = self.variable.arity - 1
            codes = np.where(column.missing, np.int32(last), codes)
        return codes

    def _encode_categories(self, column: Column, unseen: UnseenPolicy) -> NDArray[np.int32]:
        known = {label: code for code, label in enumerate(str(c) for c in self.categories)}
        lookup = np.array([known.get(label, -1) for label in column.labels] + [-1], dtype=np.int32)
        codes: NDArray[np.int32] = lookup[column.codes]  # code -1 picks the last entry
        if unseen == "error":
            strange = (codes < 0) & ~column.missing
            if strange.any():
                row = int(np.flatnonzero(strange)[0])
                raise InputError(
                    f"column {self.name!r} holds {column.values[row]!r} in row {row}, a category "
                    "never seen in training; set unseen='missing' to treat it as missing"
                )
        return codes


def learn_coding(
    column: Column,
    class_codes: NDArray[np.integer],
    weights: NDArray[np.float64],
    n_classes: int,
    missing: MissingPolicy,
) -> Coding:
    """Coding of one training column; numeric ones are discretised against the class."""
    with_state = missing == "state" and bool(column.missing.any())
    if column.kind == "numeric":
        cuts = mdlp_cuts(column.numbers, class_codes, weights, n_classes)
        return Coding(column.name, "numeric", tuple(float(c) for c in cuts), (), with_state)
    used = np.bincount(column.codes[column.codes >= 0], minlength=len(column.categories)) > 0
    categories = tuple(c for c, seen in zip(column.categories, used, strict=True) if seen)
    return Coding(column.name, "categorical", (), categories, with_state)


@dataclass(frozen=True)
class TableCoding:
    """Codings of all feature columns of a table."""

    columns: tuple[Coding, ...]

    @property
    def variables(self) -> tuple[Variable, ...]:
        """One variable per feature."""
        return tuple(c.variable for c in self.columns)

    @property
    def kinds(self) -> dict[str, Kind]:
        """Column kinds by name: what a table at prediction must be read as."""
        return {c.name: c.kind for c in self.columns}

    def encode(self, table: Table, unseen: UnseenPolicy = "missing") -> NDArray[np.int32]:
        """Codes (n_rows, n_features), -1 where not known; columns are matched by position."""
        if table.n_columns != len(self.columns):
            raise InputError(
                f"the table must have the {len(self.columns)} columns of the training table, "
                f"got {table.n_columns}"
            )
        codes = np.empty((table.n_rows, len(self.columns)), dtype=np.int32)
        for i, (coding, column) in enumerate(zip(self.columns, table.columns, strict=True)):
            codes[:, i] = coding.encode(column, unseen)
        return codes


def learn_table_coding(
    table: Table,
    class_codes: NDArray[np.integer],
    weights: NDArray[np.float64],
    n_classes: int,
    missing: MissingPolicy,
) -> TableCoding:
    """Codings of all columns from the training rows."""
    return TableCoding(
        tuple(learn_coding(c, class_codes, weights, n_classes, missing) for c in table.columns)
    )
