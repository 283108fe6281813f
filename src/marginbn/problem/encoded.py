"""Encoded data: integer codes, weights and the names behind them.

Variable 0 is always the class. A sample is a row of codes with a positive weight; rows that are
equal are the same sample with the sum of their weights, which changes no count, no score and no
margin but makes every later step cheaper.

Single contingency tables are counted here, those of many pairs in ``solvers/counts.py``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbn.exceptions import InputError, ProblemTooLargeError
from marginbn.problem.array_types import CodeArray, FloatArray, IntArray


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Read-only view of an array; the caller's own stays writeable."""
    view = array.view()
    view.flags.writeable = False
    return view


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
        Unsigned ones of 8 or 16 bits stay as they are: a long table takes a quarter of the memory.
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
    >>> data.merged().codes.tolist(), data.merged().weights.tolist()
    ([[0, 0], [1, 1]], [1.0, 2.0])
    """

    codes: NDArray[np.integer]
    weights: FloatArray
    variables: tuple[Variable, ...]

    def __post_init__(self) -> None:
        codes: NDArray[np.integer] = self.codes
        if getattr(codes, "dtype", None) not in COMPACT:
            with np.errstate(invalid="ignore"):  # what the cast bends is refused below
                codes = np.ascontiguousarray(codes, dtype=np.int32)
        weights = np.ascontiguousarray(self.weights, dtype=np.float64)
        if codes.ndim != 2 or codes.shape[1] != len(self.variables):
            raise InputError(
                f"codes must have shape (n_samples, {len(self.variables)}), got {codes.shape}"
            )
        if weights.shape != codes.shape[:1]:
            raise InputError(f"weights must have shape {codes.shape[:1]}, got {weights.shape}")
        if len(codes) and not (np.isfinite(weights).all() and (weights > 0).all()):
            raise InputError("weights must be positive and finite; leave out rows of weight zero")
        if codes is not self.codes and not np.array_equal(codes, self.codes):
            raise InputError("codes must be integers of 32 bits")
        if codes.size and (codes.min() < 0 or (codes.max(axis=0) >= self.arities).any()):
            raise InputError("codes must lie between 0 and the arity of their variable minus one")
        for name, array in (("codes", codes), ("weights", weights)):
            object.__setattr__(self, name, frozen(array))

    def __getstate__(self) -> dict[str, Any]:
        """For another process: the codes once, in as few bytes as hold them."""
        kept = {name: value for name, value in vars(self).items() if name != "by_column"}
        return kept | {"codes": self.by_column.T}

    @cached_property
    def arities(self) -> IntArray:
        """Number of states of each variable."""
        return np.array([v.arity for v in self.variables], dtype=np.int64)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the variables."""
        return tuple(v.name for v in self.variables)

    @cached_property
    def by_column(self) -> NDArray[np.unsignedinteger[Any]]:
        """The codes again, (n_variables, n_samples), in as few bytes as hold them: passes over
        single variables are much faster this way.
        """
        dtype = np.min_scalar_type(int(self.arities.max(initial=1)) - 1)
        if self.codes.dtype == dtype and self.codes.T.flags.c_contiguous:
            return frozen(self.codes.T)
        out = np.empty((self.n_variables, self.n_samples), dtype=dtype)
        for begin in range(0, self.n_samples, PIECE):
            out[:, begin : begin + PIECE] = self.codes[begin : begin + PIECE].T
        return frozen(out)

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

    @cached_property
    def has_equal_weights(self) -> bool:
        """Whether all weights are one."""
        return bool((self.weights == 1.0).all())

    @property
    def constant(self) -> tuple[int, ...]:
        """Features with a single state; they can influence nothing."""
        return tuple(i for i, v in enumerate(self.variables) if i > 0 and v.arity <= 1)

    def merged(self) -> EncodedData:
        """Equal rows merged, weights added; rows come out in lexicographic order.

        A long table in which nearly all rows differ stays as it is.
        """
        return self._distinct or self

    @cached_property
    def _distinct(self) -> EncodedData | None:
        """The merged rows; None where a second copy would spare nothing."""
        if self.n_samples == 0:
            return None
        if self.n_samples >= MANY_ROWS:
            keys = np.sort(row_keys(self.codes, self.arities))
            n_distinct = 1 + np.count_nonzero(keys[1:] != keys[:-1])
            if n_distinct > WORTH_MERGING * self.n_samples:
                return None
        first, group = distinct_rows(self.codes, self.arities)
        weights = np.bincount(group, self.weights, len(first)).astype(np.float64, copy=False)
        merged = EncodedData(self.codes[first], weights, self.variables)
        merged.__dict__["_distinct"] = None
        return merged


def distinct_rows(codes: NDArray[np.integer], arities: IntArray) -> tuple[IntArray, IntArray]:
    """Index of the first row of each distinct kind, and the kind of every row.

    Kinds are in lexicographic order.
    """
    keys = row_keys(codes, arities)
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    return first.astype(np.int64), group.reshape(-1).astype(np.int64)


def row_keys(codes: NDArray[np.integer], arities: IntArray) -> IntArray:
    """An integer for every row that compares as the row does; where it would overflow, the kinds of
    the columns so far are numbered, which keeps their order.
    """
    keys, size = np.zeros(len(codes), dtype=np.int64), 1
    for column, arity in enumerate(arities):
        if size * int(arity) >= 2**62:
            distinct, keys = np.unique(keys, return_inverse=True)
            keys, size = keys.reshape(-1).astype(np.int64), len(distinct)
        keys *= int(arity)
        keys += codes[:, column]
        size *= int(arity)
    return keys


PIECE = 65_536
"""Rows that are copied at a time."""

CACHED_ROWS = 16_384
"""Rows that are counted at a time."""

COMPACT = (np.dtype(np.uint8), np.dtype(np.uint16))
"""Types of codes that are kept as they are."""

MANY_ROWS, WORTH_MERGING = 1_000_000, 0.9
"""In a table of so many rows, equal ones are merged if no more than this part of them differs."""


def with_class_column(features: CodeArray) -> CodeArray:
    """Feature codes with a column 0 for the class, which prediction ignores."""
    return np.column_stack([np.zeros(len(features), dtype=np.int32), features])


MAX_JOINT_STATES = 2**31
"""A table with more cells than this is refused: it could neither be stored nor estimated."""


def check_joint_states(data: EncodedData, columns: Sequence[int]) -> int:
    """Number of joint states of ``columns``, refused above :data:`MAX_JOINT_STATES`."""
    size = math.prod(int(data.arities[c]) for c in columns)
    if size > MAX_JOINT_STATES:
        names = ", ".join(repr(data.names[c]) for c in columns)
        raise ProblemTooLargeError(
            f"the table over {names} would have {size} joint states, more than 2^31; "
            "reduce max_parents, or the number of states of these columns"
        )
    return size


def joint_codes(data: EncodedData, columns: Sequence[int], rows: slice = slice(None)) -> IntArray:
    """Mixed-radix code of the joint state of ``columns`` in every sample, last column fastest."""
    check_joint_states(data, columns)
    code = np.zeros(len(data.weights[rows]), dtype=np.int64)
    for column in columns:
        code *= int(data.arities[column])
        code += data.by_column[column, rows]
    return code


def contingency(data: EncodedData, columns: Sequence[int]) -> FloatArray:
    """Weighted counts of the joint states of ``columns``; shape ``arities[columns]``."""
    check_joint_states(data, columns)
    arities = [int(data.arities[c]) for c in columns]
    if not arities:
        return np.array(data.total_weight)
    weights = None if data.has_equal_weights else data.weights
    return count_states([data.by_column[c] for c in columns], arities, weights)


def count_states(
    codes: Sequence[NDArray[np.integer]],
    arities: Sequence[int],
    weights: FloatArray | None = None,
) -> FloatArray:
    """Weighted counts of the joint states of columns of codes; shape ``arities``.

    Rows are taken in blocks whose joint codes stay in the cache, which takes half of the time. Rows
    of weight one (``weights=None``) are counted in integers.
    """
    size = math.prod(arities)
    counts: Any = 0.0
    block = max(CACHED_ROWS, 4 * size)  # adding up the cells of a block must not dominate
    for begin in range(0, max(len(codes[0]), 1), block):
        rows = slice(begin, begin + block)
        joint = codes[0][rows].astype(np.intp)
        for column, arity in zip(codes[1:], arities[1:], strict=True):
            joint *= arity
            joint += column[rows]
        counts = counts + np.bincount(joint, None if weights is None else weights[rows], size)
    return np.asarray(counts, dtype=np.float64).reshape(arities)
