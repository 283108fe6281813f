"""Sums over sets of variables, each counted once and shared by all children.

With n(F) the counts of the joint states of a set F of variables, the score of a child i with
parents T, F = T + {i}, is a difference of two sums over sets:

    log likelihood    L(F) - L(T),                        L(F)    = sum n log n
    BDeu              A(F, s/|F|) - A(T, s/|T|),          A(F, a) = sum log Gamma(a + n)/Gamma(a)
    K2                A(F, 1) - A(T, r_i)

with |F| the number of joint states. Differences lose digits: they decide what is looked at, within
a tolerance. What is kept is scored again (:func:`exact_values`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from marginbn.problem.array_types import EPS, FloatArray, IntArray, WordArray
from marginbn.problem.encoded import EncodedData
from marginbn.problem.masks import member_order, n_words
from marginbn.scoring.kernels.counting import (
    CodedRows,
    Divisions,
    count_states,
    exact_scores,
    sum_sets,
)
from marginbn.scoring.kernels.levels import enrol, new_table

IsLate = Callable[[], bool]
"""Whether the scores have taken as long as they may."""

KNOWN_BYTES = 16_000_000
"""For values of log Gamma that were computed already."""

ROUNDINGS = 64.0
"""Roundings of a term: its factors, its logarithm, and a sum of any length."""

PORTION = 50_000_000
"""Rows times sets that one call of compiled code counts: a tenth of a second at most."""


def states_of(masks: WordArray, arities: IntArray) -> FloatArray:
    """Number of joint states of each set, as a float: it may be huge."""
    return np.asarray(count_states(masks, arities))


def counts_are_exact(data: EncodedData) -> bool:
    """Whether sums of weights have no rounding: all are multiples of a power of two that goes less
    than 2^53 times into the total.
    """
    fraction, exponent = np.frexp(data.weights)
    digits = np.ldexp(fraction, 53).astype(np.int64)  # of weights times 2^(53 - exponent)
    lowest = exponent + np.frexp((digits & -digits).astype(np.float64))[1] - 54
    return math.frexp(data.total_weight)[1] - int(lowest.min()) <= 53


def in_portions(
    work: Callable[[slice], None], n_sets: int, n_rows: int, n_jobs: int, is_late: IsLate
) -> None:
    """Let ``work`` do slices of the sets, which Ctrl-C can come between, on ``n_jobs`` threads;
    ``TimeoutError`` when it is late before a slice.
    """

    def do(part: slice) -> None:
        if is_late():
            raise TimeoutError
        work(part)

    step = max(64, PORTION // max(n_rows, 1))
    step = max(1, min(step, -(-n_sets // n_jobs)))
    slices = [slice(first, first + step) for first in range(0, n_sets, step)]
    if n_jobs == 1 or len(slices) < 2:
        for part in slices:
            do(part)
        return
    with ThreadPoolExecutor(n_jobs) as pool:
        for _ in pool.map(do, slices):
            pass


class SetSums:
    """The sums of the sets that were asked for, over merged rows.

    ``whole``: weights are whole numbers, and counted in integers. ``roundings`` of a score are in
    units of the size of its terms. ``work`` is the number of rows counted so far, over all sets; a
    level of parent sets adds to it. ``is_late`` is asked before every portion of work, which then
    ends with ``TimeoutError``; sets of which the sums were asked for are not known afterwards.
    """

    def __init__(
        self, data: EncodedData, score: str, equivalent_sample_size: float, n_jobs: int = 1
    ) -> None:
        self.score = score
        self.prior = equivalent_sample_size
        self.n_jobs = n_jobs
        self.total = data.total_weight
        self.n_rows = data.n_samples
        self.work = 0
        self.is_late: IsLate = lambda: False
        self.arities = data.arities
        self.roundings = ROUNDINGS + (0.0 if counts_are_exact(data) else 2.0 * self.n_rows)
        # rows that are alike stand apart, so that no counter waits for itself
        mixed = np.random.default_rng(0).permutation(self.n_rows)
        self._columns = data.by_column[:, mixed].astype(np.int32)
        self._weights = np.ascontiguousarray(data.weights[mixed])
        self.whole = bool((data.weights == np.rint(data.weights)).all()) and self.total < 2**31
        self._child_arities = np.unique(self.arities)
        self._known: dict[float, int] = {}
        self._values = np.empty((0, 0))
        n_kinds = 1 + len(self._child_arities) if score == "k2" else 1
        self.size = 0
        self._masks = np.empty((16, n_words(data.n_variables)), np.uint64)
        self._sums = np.empty((16, n_kinds))
        self._observed = np.empty(16, np.int64)
        self._places = np.full(32, -1)

    def prepared(self, dtype: DTypeLike) -> tuple[Divisions, CodedRows, NDArray[Any]]:
        """The rows for compiled code, and room for the counts of cells of that type."""
        n, n_rows = self._columns.shape
        largest = n_rows * int(self.arities.max(initial=1))
        divisions = Divisions(
            path=np.full(n + 1, -1, dtype=np.int64),
            counts=np.ones(n + 1, dtype=np.int64),
            groups=np.empty((n + 1, n_rows), dtype=np.int32),
            label=np.empty(largest, dtype=np.int32),
            members=np.empty(n + 1, dtype=np.int64),
        )
        divisions.groups[0] = 0
        rows = CodedRows(self._columns, self.arities, self._weights.astype(dtype, copy=False))
        return divisions, rows, np.zeros(largest, dtype)

    def _priors(self, masks: WordArray) -> FloatArray:
        """Prior of each sum, (sets, kinds); zero stands for n log n."""
        if self.score == "bdeu":
            return np.asarray(self.prior / states_of(masks, self.arities))[:, np.newaxis]
        if self.score == "k2":
            return np.tile([1.0, *self._child_arities.astype(float)], (len(masks), 1))
        return np.zeros((len(masks), 1))

    def _number_priors(self, priors: FloatArray) -> IntArray:
        """The place of each prior among all so far; makes room for the values of new ones."""
        if self.score in ("mdl", "bic", "aic", "loglik") and len(self._values):
            return np.zeros(priors.shape, dtype=np.int64)  # there is but one
        different, numbers = np.unique(priors, return_inverse=True)
        for prior in different.tolist():
            self._known.setdefault(prior, len(self._known))
        if len(self._known) > len(self._values):
            room = max(2, int(self.total) + 1) if self.whole else 1
            room = min(room, max(16, KNOWN_BYTES // (8 * len(self._known))))
            old, self._values = self._values, np.full((len(self._known), room), np.nan)
            self._values[: len(old), : old.shape[1]] = old[:, :room]
        own = np.array([self._known[prior] for prior in different.tolist()], dtype=np.int64)
        return own[numbers.reshape(priors.shape)]

    def count(self, masks: WordArray) -> IntArray:
        """The numbers of these sets; sums of sets with a number are known."""
        self._reserve(self.size + len(masks))
        numbers: IntArray = enrol(self._places, self._masks, self.size, masks)
        first, last = self.size, max(self.size, int(numbers.max(initial=-1)) + 1)
        self.size = last
        if first == last:
            return numbers
        self.work += (last - first) * self.n_rows
        order = first + member_order(self._masks[first:last])
        fresh = self._masks[order]
        sums, observed = self._sums[order], self._observed[order]
        kinds = self._number_priors(self._priors(fresh))
        priors = np.array(list(self._known))
        dtype = np.int32 if self.whole else np.float64

        def work(part: slice) -> None:
            sum_sets(
                *self.prepared(dtype),
                self.whole,
                fresh[part],
                kinds[part],
                priors,
                self._values,
                sums[part],
                observed[part],
            )

        in_portions(work, len(fresh), self.n_rows, self.n_jobs, self.is_late)
        self._sums[order], self._observed[order] = sums, observed
        return numbers

    def _reserve(self, size: int) -> None:
        if size > len(self._masks):
            room = max(size, 2 * len(self._masks))
            for name in ("_masks", "_sums", "_observed"):
                old = getattr(self, name)
                new = np.empty((room, *old.shape[1:]), old.dtype)
                new[: self.size] = old[: self.size]
                setattr(self, name, new)
        if 2 * size > len(self._places):
            self._places = new_table(self._masks[: self.size], size)

    def scores(self, child: int, parents: IntArray, family: IntArray) -> FloatArray:
        """Score of a child with parent sets, given by their numbers and those with the child;
        without what states cost.
        """
        r = int(self.arities[child])
        kind = 1 + int(np.searchsorted(self._child_arities, r)) if self.score == "k2" else 0
        scores: FloatArray = self._sums[family, 0] - self._sums[parents, kind]
        return scores

    def entropies(self, numbers: IntArray) -> FloatArray:
        """The sum of n log n of sets, for scores that are made of it."""
        return np.asarray(self._sums[numbers, 0])

    @property
    def n_bytes(self) -> int:
        """Bytes of the sums."""
        kinds = (self._masks, self._sums, self._observed, self._places)
        return sum(array.nbytes for array in kinds)

    def cells(self, numbers: IntArray) -> FloatArray:
        """The number of joint states that occur."""
        return self._observed[numbers].astype(np.float64)

    def price(self, child: int) -> float:
        """What a parent state costs."""
        half = 0.5 * math.log(self.total)
        each = {"aic": 1.0, "bic": half, "mdl": half}.get(self.score, 0.0)
        return each * (int(self.arities[child]) - 1)


def exact_values(sums: SetSums, child: int, masks: WordArray) -> tuple[FloatArray, FloatArray]:
    """Scores of a child with parent sets, and how far rounding can have moved them."""
    order = member_order(masks)
    sets = np.ascontiguousarray(masks[order])
    states = states_of(sets, sums.arities)
    priors = np.zeros(len(sets))
    if sums.score == "bdeu":
        priors = sums.prior / (states * sums.arities[child])
    elif sums.score == "k2":
        priors = np.ones(len(sets))
    penalties = sums.price(child) * states
    values, sizes = np.empty(len(sets)), np.empty(len(sets))

    def work(part: slice) -> None:
        divisions, coded, cells = sums.prepared(np.float64)
        exact_scores(
            divisions,
            coded,
            child,
            cells,
            sets[part],
            priors[part],
            penalties[part],
            values[part],
            sizes[part],
        )

    in_portions(work, len(sets), sums.n_rows, sums.n_jobs, sums.is_late)
    back = np.argsort(order)
    return values[back], (EPS * sums.roundings * sizes)[back]
