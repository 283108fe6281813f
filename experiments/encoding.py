"""Tables as number matrices, for the rivals that are not Bayesian networks.

Two views of the same rows:

``StateIndicators``  each feature as a 0/1 column per state, numeric features cut into the same
                     Fayyad-Irani bins as for the networks. The support vector machine gets this:
                     the paper discretised all data beforehand, so its machine and its networks
                     saw the same information, and between unordered states the only sensible
                     distance is equal or different (squared distance = 2 x features that differ).
``MixedMatrix``      numbers as they are, categories as codes. Gradient boosting and logistic
                     regression get this: it is what a user would feed them today.

Both learn from the rows given to ``fit`` only.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray

from marginbn import MDLPDiscretizer, Table
from marginbn.exceptions import InputError

Matrix = NDArray[np.float64]


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


class StateIndicators:
    """One 0/1 column per state seen in training; an unseen state is all zeros."""

    def fit(self, table: Table, labels: NDArray[np.str_]) -> Self:
        self._mixed = MixedMatrix().fit(table)
        self._numeric = np.flatnonzero(~self._mixed.categorical_)
        matrix = self._mixed.transform(table)
        if len(self._numeric):
            self._bins = MDLPDiscretizer().fit(matrix[:, self._numeric], labels)
        self._states = [np.unique(column) for column in self._codes(matrix).T]
        return self

    def transform(self, table: Table) -> Matrix:
        codes = self._codes(self._mixed.transform(table))
        blocks = [
            codes[:, [i]] == states
            for i, states in enumerate(self._states)
            if len(states) > 1  # a constant tells nothing
        ]
        return np.hstack([np.zeros((len(codes), 1)), *blocks]).astype(np.float64)

    def _codes(self, matrix: Matrix) -> Matrix:
        codes = matrix.copy()
        if len(self._numeric):
            codes[:, self._numeric] = self._bins.transform(matrix[:, self._numeric])
        return codes
