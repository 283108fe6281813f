"""Tables as number matrices, for the rivals that are not Bayesian networks.

Three views of the same rows:

``MixedMatrix``      numbers as they are, categories as codes: what a user feeds to boosting today
``StateNumbers``     every feature as the number of its state, numeric features cut into the same
                     Fayyad-Irani bins as for the networks
``StateIndicators``  the same states, a 0/1 column each (squared distance of two rows = 2 x features
                     in which they differ)

All learn from the rows given to ``fit`` only.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray

from experiments.fitted import Matrix
from marginbn import MDLPDiscretizer
from marginbn.data.table import Table
from marginbn.exceptions import InputError


class MixedMatrix:
    """Numbers and category codes side by side; all tables must be rows of one and the same.

    What is missing is not a number.
    """

    def fit(self, table: Table) -> Self:
        self.categorical_ = np.array([c.kind == "categorical" for c in table.columns])
        self._categories = [c.categories for c in table.columns]
        return self

    def transform(self, table: Table) -> Matrix:
        if [c.categories for c in table.columns] != self._categories:
            raise InputError("the table must code its categories as the one that was learned from")
        return np.column_stack(
            [
                np.where(c.missing, np.nan, c.codes) if is_code else c.numbers
                for c, is_code in zip(table.columns, self.categorical_, strict=True)
            ]
        )


class StateNumbers:
    """The number of every feature's state: of the bin, or of the category in alphabetical order."""

    def fit(self, table: Table, labels: NDArray[np.str_]) -> Self:
        self._mixed = MixedMatrix().fit(table)
        self._numeric = np.flatnonzero(~self._mixed.categorical_)
        if len(self._numeric):
            matrix = self._mixed.transform(table)
            self._bins = MDLPDiscretizer().fit(matrix[:, self._numeric], labels)
        return self

    def transform(self, table: Table) -> Matrix:
        numbers = self._mixed.transform(table)
        if len(self._numeric):
            numbers[:, self._numeric] = self._bins.transform(numbers[:, self._numeric])
        return numbers


class StateIndicators:
    """One 0/1 column per state seen in training; an unseen state is all zeros."""

    def fit(self, table: Table, labels: NDArray[np.str_]) -> Self:
        self._numbers = StateNumbers().fit(table, labels)
        self._states = [np.unique(column) for column in self._numbers.transform(table).T]
        return self

    def transform(self, table: Table) -> Matrix:
        numbers = self._numbers.transform(table)
        blocks = [
            numbers[:, [i]] == states
            for i, states in enumerate(self._states)
            if len(states) > 1  # a constant tells nothing
        ]
        return np.hstack([np.zeros((len(numbers), 1)), *blocks]).astype(np.float64)
