"""Scores of the classes that are a sum of tables: what discriminative training learns.

    s_c(x) = bias[c]  +  sum_i effects[i][c, x_i]  +  sum_F tables[F][c, g(x_F)]
    P(c | x) = softmax_c s_c(x)

Each feature i has a main effect over its states. A family F of features has an interaction table
over *groups* of states: a numeric feature has many fine bins for its main effect, of which several
together are one coarse bin in its interactions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from marginbn.problem.encoded import Groups, Variable

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


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


def weighted_sum(
    parts: Sequence[ClassScores], weights: Sequence[float] | None = None
) -> ClassScores:
    """The scores w_1 s_1 + w_2 s_2 + ... of scores over the same variables: tables again.

    A variable that has different groups in several parts has their common refinement in the sum.
    """
    factors = [1.0] * len(parts) if weights is None else list(weights)
    first = parts[0]
    groups = tuple(
        _refine([part.groups[v] for part in parts if _interacts(part, v)])
        for v in range(len(first.variables))
    )
    tables: dict[tuple[int, ...], FloatArray] = {}
    for part, factor in zip(parts, factors, strict=True):
        for family, table in part.tables.items():
            known = tables.get(family, 0.0)
            tables[family] = known + factor * _expand(table, family, part.groups, groups)
    bias = np.tensordot(factors, [part.bias for part in parts], axes=1)
    effects = (
        np.tensordot(factors, [part.effects[i] for part in parts], axes=1)
        for i in range(len(first.effects))
    )
    return ClassScores(first.variables, groups, bias, tuple(effects), tables)


def _interacts(part: ClassScores, variable: int) -> bool:
    return any(variable in family for family in part.tables)


def _refine(groups: Sequence[IntArray | None]) -> IntArray | None:
    """Groups of states that are in one group everywhere; None if a state is its own somewhere."""
    if not groups or any(own is None for own in groups):
        return None
    together = np.column_stack([own for own in groups if own is not None])
    return np.unique(together, axis=0, return_inverse=True)[1].reshape(-1).astype(np.intp)


def _expand(table: FloatArray, family: tuple[int, ...], old: Groups, new: Groups) -> FloatArray:
    """A table over old groups as one over the finer new groups."""
    for axis, variable in enumerate(family, start=1):
        coarse, fine = old[variable], new[variable]
        if coarse is None:
            continue
        if fine is not None:  # any state of a new group tells its old group
            coarse = coarse[np.unique(fine, return_index=True)[1]]
        table = np.take(table, coarse, axis=axis)
    return table
