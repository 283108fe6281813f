"""Encoded data: integer codes, weights and the names behind them.

Variable 0 is always the class. A sample is a row of codes with a positive weight; rows that are
equal are the same sample with the sum of their weights, which changes no count, no score and no
margin but makes every later step cheaper.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from marginbn.exceptions import InputError


@dataclass(frozen=True)
class Variable:
    """A discrete random variable: its name and the labels of its states.

    Examples
    --------
    >>> Variable("petal length", ("<= 2.45", "> 2.45")).arity
    2
    """

    name: str
    states: tuple[str, ...]

    @property
    def arity(self) -> int:
        """Number of states."""
        return len(self.states)


@dataclass(frozen=True, eq=False)
class EncodedData:
    """Complete discrete data, class first.

    Parameters
    ----------
    codes
        int32 (n_samples, n_variables), ``0 <= codes[:, i] < arity of i``; no missing values.
    weights
        float64 (n_samples,), positive.
    variables
        One :class:`Variable` per column; variable 0 is the class.

    Examples
    --------
    >>> import numpy as np
    >>> from marginbn import EncodedData, Variable
    >>> variables = (Variable("class", ("no", "yes")), Variable("colour", ("red", "blue")))
    >>> data = EncodedData(np.array([[0, 0], [1, 1], [1, 1]]), np.ones(3), variables)
    >>> data.n_samples, data.n_classes, data.total_weight
    (3, 2, 3.0)
    """

    codes: NDArray[np.int32]
    weights: NDArray[np.float64]
    variables: tuple[Variable, ...]

    def __post_init__(self) -> None:
        with np.errstate(invalid="ignore"):  # what the cast bends is refused below
            codes = np.ascontiguousarray(self.codes, dtype=np.int32)
        weights = np.ascontiguousarray(self.weights, dtype=np.float64)
        if codes.ndim != 2 or codes.shape[1] != len(self.variables):
            raise InputError(
                f"codes must have shape (n_samples, {len(self.variables)}), got {codes.shape}"
            )
        if weights.shape != codes.shape[:1]:
            raise InputError(f"weights must have shape {codes.shape[:1]}, got {weights.shape}")
        if len(codes) and not (np.isfinite(weights).all() and (weights > 0).all()):
            raise InputError("weights must be positive and finite; leave out rows of weight zero")
        if not np.array_equal(codes, self.codes):
            raise InputError("codes must be integers of 32 bits")
        arities = np.array([v.arity for v in self.variables], dtype=np.int64)
        if len(codes) and ((codes < 0).any() or (codes >= arities).any()):
            raise InputError("codes must lie between 0 and the arity of their variable minus one")
        for name, array in (("codes", codes), ("weights", weights)):
            view = array.view()  # the caller's own array stays writeable
            view.flags.writeable = False
            object.__setattr__(self, name, view)

    @cached_property
    def arities(self) -> NDArray[np.int64]:
        """Number of states of each variable."""
        return np.array([v.arity for v in self.variables], dtype=np.int64)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the variables."""
        return tuple(v.name for v in self.variables)

    @property
    def n_samples(self) -> int:
        """Number of (distinct, if merged) rows."""
        return len(self.codes)

    @property
    def n_variables(self) -> int:
        """Number of variables, class included."""
        return len(self.variables)

    @property
    def n_classes(self) -> int:
        """Number of states of the class."""
        return self.variables[0].arity

    @property
    def total_weight(self) -> float:
        """Sum of the weights: the number of rows behind the samples if all weigh one."""
        return float(self.weights.sum())

    @property
    def constant(self) -> tuple[int, ...]:
        """Features with a single state; they can influence nothing."""
        return tuple(i for i, v in enumerate(self.variables) if i > 0 and v.arity <= 1)

    def merged(self) -> EncodedData:
        """Equal rows merged, weights added; rows come out in lexicographic order.

        Examples
        --------
        >>> import numpy as np
        >>> from marginbn import EncodedData, Variable
        >>> variables = (Variable("class", ("no", "yes")), Variable("colour", ("red", "blue")))
        >>> merged = EncodedData(np.array([[0, 0], [1, 1], [1, 1]]), np.ones(3), variables).merged()
        >>> merged.codes.tolist(), merged.weights.tolist()
        ([[0, 0], [1, 1]], [1.0, 2.0])
        """
        if self.n_samples == 0:
            return self
        first, group = _distinct_rows(self.codes, self.arities)
        weights = np.bincount(group, self.weights, len(first)).astype(np.float64, copy=False)
        return EncodedData(self.codes[first], weights, self.variables)


def _distinct_rows(
    codes: NDArray[np.int32], arities: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Index of the first row of each distinct kind, and the kind of every row."""
    if math.prod(int(a) for a in arities) < 2**62:  # one integer per row is enough to compare
        keys = np.zeros(len(codes), dtype=np.int64)
        for column, arity in enumerate(arities):
            keys *= int(arity)
            keys += codes[:, column]
        _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    else:
        _, first, group = np.unique(codes, axis=0, return_index=True, return_inverse=True)
    return first.astype(np.int64), group.reshape(-1).astype(np.int64)
