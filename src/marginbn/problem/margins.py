"""Counts to log parameters. Margins and final networks both come through here.

With n(h, j) the weighted count of child state j under parent state h, smoothing s and child
arity r, the Laplace-smoothed maximum-likelihood parameter (eq. 2 with n + 1 for s = 1) is

    theta(j | h) = (n(h, j) + s) / (n(h) + s r),        n(h) = sum_j n(h, j).

Counts and smoothing are divided by the power of two below s first, which is exact: rows weighed in
another unit (weights and s times 2^k) have the same parameters, digit by digit.

Margin coefficients: eq. 10 to 13 (soft margin) and eq. 20 to 25 (binary soft margin).

For candidate k = (i, S) let F be the features among {X_i} and S, f their joint state in a sample
and c a class. The candidate's factor in log P(c, z) is s_k[f, c], a table look-up:

    multiclass   s_k[f, c] = log theta(x_i | S with class c)
                 alpha(m, c) = s_k[f_m, c_m] - s_k[f_m, c]              one row per rival c != c_m
    binary       class c against the rest: counts n_1 = n(f, c), n_2 = n(f) - n(f, c) give
                 s_k[f, c] = log theta_1 - log theta_2
                 alpha(m) = s_k[f_m, c_m]                               one row per sample

Only the tables are stored; a column of coefficients is made when asked for. With two classes
both kinds give the same numbers: theta_1 and theta_2 are then the parameters of the two classes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginbn.problem.array_types import FloatArray, IntArray
from marginbn.problem.candidates import CandidateSets
from marginbn.problem.encoded import PIECE, EncodedData, contingency, joint_codes
from marginbn.problem.structure import Structure


def smoothed_log_table(counts: FloatArray, smoothing: float) -> FloatArray:
    """Log parameters from counts; the child's states are the last axis, rows sum to one."""
    smoothed = _smoothed(counts, smoothing)
    table: FloatArray = np.log(smoothed) - np.log(smoothed.sum(axis=-1, keepdims=True))
    return table


def _smoothed(counts: FloatArray, smoothing: float) -> FloatArray:
    """n + s in units of the power of two below s, or of as small a one as has room."""
    room = 1000 - math.frexp(counts.max(initial=0.0))[1]
    exponent = min(1 - math.frexp(smoothing)[1], room)
    return np.ldexp(counts, exponent) + math.ldexp(smoothing, exponent)


def estimate_log_tables(
    data: EncodedData, structure: Structure, smoothing: float
) -> tuple[FloatArray, ...]:
    """Log tables of every variable: table i has shape (*arities of its parents, its arity)."""
    return tuple(
        smoothed_log_table(contingency(data, (*parents, child)), smoothing)
        for child, parents in enumerate(structure.parents)
    )


MarginKind = Literal["multiclass", "binary"]

SMALL_TABLE, KEPT_TABLES = 16_000, 512
"""Bytes of a table that is kept for the next look, and how many are."""


def counts_over(by_state: FloatArray, axes: tuple[int, ...], data: EncodedData) -> FloatArray:
    """Counts (joint states of the features in index order, class) as an array over ``axes``, which
    name the class too.
    """
    features = sorted(v for v in axes if v != 0)
    shape = [*(int(data.arities[v]) for v in features), data.n_classes]
    order = [*features, 0]
    return np.transpose(by_state.reshape(shape), [order.index(v) for v in axes])


def _sum_of_others(counts: FloatArray, axis: int) -> FloatArray:
    """Counts of all classes but one, added up from both ends along ``axis``.

    Subtracting from the total would round light rows away next to heavy ones, and with two
    classes the binary margin would no longer be the soft margin to the last digits.
    """
    own = np.moveaxis(counts, axis, -1)
    nothing = np.zeros((*own.shape[:-1], 1))
    before = np.concatenate([nothing, np.cumsum(own[..., :-1], axis=-1)], axis=-1)
    after = np.concatenate([nothing, np.cumsum(own[..., :0:-1], axis=-1)], axis=-1)[..., ::-1]
    return np.moveaxis(before + after, -1, axis)


def _class_last(table: FloatArray, axes: tuple[int, ...], data: EncodedData) -> FloatArray:
    """Reorder axes to (features in index order, class) and flatten the features."""
    moved = np.transpose(table, sorted(range(len(axes)), key=lambda a: (axes[a] == 0, axes[a])))
    if 0 not in axes:
        return np.repeat(moved.reshape(-1, 1), data.n_classes, axis=1)
    return np.ascontiguousarray(moved.reshape(-1, data.n_classes))


@dataclass(frozen=True, eq=False)
class MarginRows:
    """All margin rows of a problem as look-up tables; nothing dense is stored.

    Row (m, r) belongs to sample m and its r-th rival class (in increasing order); the binary
    margin has the single row r = 0.
    """

    data: EncodedData
    candidates: CandidateSets
    kind: MarginKind
    smoothing: float
    derived: dict[type, Any] = field(default_factory=dict, init=False, repr=False)
    """What a solver has made of the rows, by type: problems that differ in gamma share it."""

    _kept: dict[int, FloatArray] = field(default_factory=dict, init=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"derived": {}, "_kept": {}}  # large, and quickly made again

    @property
    def n_samples(self) -> int:
        """Number of (merged) samples M."""
        return self.data.n_samples

    @property
    def n_rivals(self) -> int:
        """Rows per sample: classes - 1, or 1 for the binary margin."""
        return 1 if self.kind == "binary" else max(self.data.n_classes - 1, 0)

    @property
    def n_candidates(self) -> int:
        """Number of columns K."""
        return self.candidates.n_candidates

    def nbytes_dense(self) -> int:
        """Bytes that :meth:`dense` would take."""
        return 8 * self.n_samples * self.n_rivals * self.n_candidates

    @cached_property
    def rivals(self) -> IntArray:
        """Rival classes of each true class, int64 (n_classes, n_rivals)."""
        n = self.data.n_classes
        if self.kind == "binary":
            return np.zeros((n, 1), dtype=np.int64)
        others = [[c for c in range(n) if c != true] for true in range(n)]
        return np.array(others, dtype=np.int64).reshape(n, max(n - 1, 0))

    def _axes(self, k: int) -> tuple[int, ...]:
        """Parents and child of candidate k."""
        return (*self.candidates.parents[k], int(self.candidates.child[k]))

    def table(self, k: int) -> FloatArray:
        """s_k, the class-score table of candidate k; small ones of late are kept."""
        kept = self._kept.get(k)
        if kept is not None:
            return kept
        axes = self._axes(k)
        if self.kind == "binary" and 0 not in axes:
            made = np.zeros(
                (math.prod(self.data.arities[list(axes)].tolist()), self.data.n_classes)
            )
        else:
            made = self._scores(contingency(self.data, axes), axes)
        if made.nbytes <= SMALL_TABLE:
            if len(self._kept) >= KEPT_TABLES:
                self._kept.clear()
            self._kept[k] = made
        return made

    def table_from_counts(self, k: int, by_state: FloatArray) -> FloatArray:
        """The same from the counts (joint states of its features in index order, class), for a
        candidate whose family has the class.
        """
        axes = self._axes(k)
        return self._scores(counts_over(by_state, axes, self.data), axes)

    def _scores(self, counts: FloatArray, axes: tuple[int, ...]) -> FloatArray:
        """s_k, (joint states of the features, n_classes), from counts over ``axes``, child last.

        Of the binary margin these are log odds of class c against the rest.
        """
        smoothing = self.smoothing
        if self.kind == "multiclass":
            table = smoothed_log_table(counts, smoothing)
        else:
            rest = _sum_of_others(counts, axes.index(0))
            if axes[-1] == 0:  # P(C = 1 | S): two states after merging the other classes
                table = np.log(_smoothed(counts, smoothing)) - np.log(_smoothed(rest, smoothing))
            else:
                table = smoothed_log_table(counts, smoothing) - smoothed_log_table(rest, smoothing)
        return _class_last(table, axes, self.data)

    def features(self, k: int) -> list[int]:
        """Features whose joint state indexes the rows of :meth:`table`."""
        return sorted(v for v in self._axes(k) if v != 0)

    def lookup(self, k: int) -> tuple[FloatArray, IntArray]:
        """Distinct coefficient rows of candidate k, (T, n_rivals), and the row of every sample.

        There is one row per joint state and true class, unless the samples are fewer than that.
        """
        return self._look_up(self._coefficient_table(k), slice(None))

    def _coefficient_table(self, k: int) -> _CoefficientTable | None:
        """What the coefficients of candidate k are looked up in; None where all are zero."""
        if 0 not in self._axes(k):  # the factor does not depend on the class
            return None
        table, n_classes = self.table(k), self.data.n_classes
        by_class = table.size <= self.n_samples
        if by_class:  # coefficients of every (state, true class), in this order
            true = np.arange(table.size) % n_classes
            table = self._rows(np.repeat(table, n_classes, axis=0), true)
        return _CoefficientTable(tuple(self.features(k)), table, by_class)

    def _look_up(self, found: _CoefficientTable | None, rows: slice) -> tuple[FloatArray, IntArray]:
        """Distinct coefficient rows, and the one of every sample."""
        if found is None:
            count = len(self.data.weights[rows])
            return np.zeros((1, self.n_rivals)), np.zeros(count, dtype=np.int64)
        states, true = joint_codes(self.data, found.features, rows), self.data.by_column[0, rows]
        if found.by_class:
            states *= self.data.n_classes
            states += true
            return found.table, states
        return self._rows(found.table[states], true), np.arange(len(states))

    def _rows(self, scores: FloatArray, true: NDArray[np.integer]) -> FloatArray:
        """Coefficients from the class scores and the true class of each row (eq. 12 and 24)."""
        own = np.take_along_axis(scores, true[:, None].astype(np.int64), axis=1)
        if self.kind == "binary":
            return own
        difference: FloatArray = own - np.take_along_axis(scores, self.rivals[true], axis=1)
        return difference

    def column(self, k: int) -> FloatArray:
        """Coefficients of candidate k, shape (n_samples, n_rivals)."""
        table, rows = self.lookup(k)
        return table.take(rows, axis=0)

    def dense(self) -> FloatArray:
        """Every coefficient, shape (n_candidates, n_samples, n_rivals)."""
        return np.array([self.column(k) for k in range(self.n_candidates)])

    def at(self, selection: Sequence[int] | IntArray) -> FloatArray:
        """Log margins of a structure against each rival (eq. 13), (n_samples, n_rivals)."""
        pieces = list(self.pieces_at(selection))
        return np.concatenate(pieces) if pieces else np.zeros((0, self.n_rivals))

    def pieces_at(self, selection: Sequence[int] | IntArray) -> Iterator[FloatArray]:
        """The same of some rows at a time: few enough to stay in the cache."""
        tables = [self._coefficient_table(int(k)) for k in selection]
        for begin in range(0, self.n_samples, PIECE):
            rows = slice(begin, begin + PIECE)
            total = np.zeros((len(self.data.weights[rows]), self.n_rivals))
            for found in tables:
                if found is not None:
                    table, place = self._look_up(found, rows)
                    total += table.take(place, axis=0)
            yield total


class _CoefficientTable(NamedTuple):
    """Coefficients by state and class, or class scores by state where these are more than rows."""

    features: tuple[int, ...]
    table: FloatArray
    by_class: bool
