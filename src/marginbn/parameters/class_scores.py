"""Scores of the classes that are a sum of tables: what discriminative training learns.

    s_c(x) = bias[c]  +  sum_i effects[i][c, x_i]  +  sum_F tables[F][c, g(x_F)]
    P(c | x) = softmax_c s_c(x)

Each feature i has a main effect over its states. A family F of features has an interaction table
over *groups* of states: a numeric feature has many fine bins for its main effect, of which several
together are one coarse bin in its interactions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from marginbn.data.encode import Variable

FloatArray = NDArray[np.float64]
Groups = tuple[NDArray[np.intp] | None, ...]
"""Per variable the group of each of its states, 0, 1, ...; None where every state is its own."""


@dataclass(frozen=True, eq=False)
class ClassScores:
    """The sum above.

    Parameters
    ----------
    variables
        The class first, then the features.
    groups
        One entry per variable, as in :class:`~marginbn.network.network.BayesianNetwork`.
    bias
        float64 (n_classes,).
    effects
        One float64 (n_classes, arity) per feature; ``effects[i - 1]`` belongs to variable i.
    tables
        By family, a sorted tuple of feature variables: float64 (n_classes, groups of each member).
    """

    variables: tuple[Variable, ...]
    groups: Groups
    bias: FloatArray
    effects: tuple[FloatArray, ...]
    tables: Mapping[tuple[int, ...], FloatArray]

    def evaluate(self, codes: NDArray[np.integer]) -> FloatArray:
        """Scores (n, n_classes) of complete rows of codes (n, n_variables); column 0 is ignored."""
        total = np.tile(self.bias, (len(codes), 1))
        for i, effect in enumerate(self.effects, start=1):
            total += effect.T[codes[:, i]]
        for family, table in self.tables.items():
            index = tuple(self.group_codes(v, codes[:, v]) for v in family)
            total += np.moveaxis(table, 0, -1)[index]
        return total

    def group_codes(self, variable: int, codes: NDArray[np.integer]) -> NDArray[np.integer]:
        """Groups of the states of one variable."""
        groups = self.groups[variable]
        return codes if groups is None else groups[codes]

    def log_posterior(self, codes: NDArray[np.integer]) -> FloatArray:
        """log P(c | x), (n, n_classes)."""
        scores = self.evaluate(codes)
        posterior: FloatArray = scores - logsumexp(scores, axis=1, keepdims=True)
        return posterior
