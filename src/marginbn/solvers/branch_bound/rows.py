"""The rows that matter: few rows whose objective is nowhere smaller (without them x1.31, at worst
x2.3).

A sample adds ``w_m min(gamma, t_1, ..., t_C)`` to f. Leaving terms out of a minimum can only make
it larger, so any non-empty choice of terms per sample gives an objective ``F >= f``, and every
bound of F over a box is a bound of f. Three choices are cheap:

    saturated    {gamma}              a constant
    linear       {one row}            goes into the linear scores
    explicit     {gamma, some rows}   stays a sample with fewer rows

In terms of dual weights: u = 0 on the rows left out and u = w on the row of a linear sample, so the
bounds are those of the whole problem with some weights fixed.

Which terms matter shows at the relaxed solutions eta: those within a *band* above the smallest.
Near the optimum of the relaxation this leaves 3 % of the rows of segment and 4 % of letter's.
The choice is only ever extended: when the newest eta has ``F(eta) - f(eta)`` above a small part of
the open gap, its terms join. Structures are always scored with all rows.

The coefficients of a choice are written by column and by row, from those of all rows or from codes
and tables, where these are all there is. They go to the memory of the choice before, as new memory
is slow to begin with. Several workers would still read from there: they get new memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from marginbn.problem.array_types import EPS, BoolArray, FloatArray, IntArray
from marginbn.solvers.branch_bound.arrays import Encoding
from marginbn.solvers.branch_bound.kernels.records import WITHOUT_CODES, Instance, count_rows
from marginbn.solvers.branch_bound.pair_tables import fill_columns, sum_rows
from marginbn.solvers.counts import Poll

BAND = 1.0
"""Terms this much above the smallest of their sample stay (nats)."""

NARROW = 0.5
"""They need not reach further than this part of gamma: the smoothing does not either."""

WIDE_BAND = 3.0
"""The same for the local search, which moves further."""

UNSEEN = 0.01
"""Part of the open gap by which the local search may believe a structure better than it is."""

WORTH = 0.02
"""The choice is extended when it costs more than this part of the open gap."""

ENOUGH = 4000
"""Rows that are enough to compare splits."""

RAREST_CHECK = 64
"""Rounds between two looks at whether the choice is wide enough; at first they are fewer."""


class InUse(NamedTuple):
    """One problem three times, as the search needs it. Workers look here before every batch, so a
    new choice replaces all three at once, by the hand of the first worker alone.
    """

    bounding: Instance
    full: Instance
    coarse: Instance  # to compare splits with


class RowChoice:
    """The rows in use: to bound boxes, to choose splits and to climb."""

    def __init__(
        self, encoding: Encoding, poll: Poll = lambda: None, is_shared: bool = False
    ) -> None:
        self.full = encoding.instance
        magnitude = encoding.structure_magnitude
        self._bounding = Reduction(self.full, magnitude, None, poll, is_shared)
        self._climbing = Reduction(self.full, magnitude, WIDE_BAND, poll)
        self.in_use = InUse(self.full, self.full, self.full)
        self._next_check = 1

    @property
    def bounding(self) -> Instance:
        """Boxes are bounded with these rows."""
        return self.in_use.bounding

    @property
    def climbing(self) -> Instance:
        """The local search climbs on these rows."""
        return self._climbing.instance

    @property
    def n_climbing(self) -> int:
        """Samples that it climbs on at the most."""
        return int(self.full.weights.size)

    def extend(self, margins: FloatArray, gap: float = np.inf) -> None:
        """Use the rows that matter at these margins too from now on."""
        self._bounding.extend(margins)
        self.extend_climbing(margins, gap)
        self._use()

    def _use(self) -> None:
        """Let all workers have the present choice, once its copies are made."""
        bounding = self._bounding.instance
        self.in_use = InUse(bounding, self.full, thinned(bounding))

    def extend_climbing(self, margins: FloatArray, gap: float) -> None:
        """The same for the local search alone: what it climbs on the rows of another place is worth
        little. Copying takes a while, so not for the last few, and not before it climbs.
        """
        if self._climbing.is_whole or self._climbing.cost(margins) > UNSEEN * gap:
            self._climbing.extend(margins)

    def check(self, newest: Callable[[], FloatArray], turn: int, gap: float) -> None:
        """Use more rows if the newest relaxed solution needs them, by its margins; less and less
        often.
        """
        if turn < self._next_check:
            return
        self._next_check = turn + min(turn, RAREST_CHECK)
        margins = newest()
        if self._bounding.cost(margins) > WORTH * gap:
            self.extend(margins, gap)


class Reduction:
    """Which terms of each sample are kept, and the instance made of them; ``poll`` is called
    between pieces of the copies and may raise. The instance of an earlier choice is of no use any
    more, unless it ``is_shared`` with others. A choice of more than ``most`` explicit rows is not
    made: the one before stays.
    """

    def __init__(
        self,
        full: Instance,
        structure_magnitude: float,
        band: float | None = None,
        poll: Poll = lambda: None,
        is_shared: bool = False,
        most: float = np.inf,
    ) -> None:
        self.full = full
        self.structure_magnitude = structure_magnitude
        self.most = most
        n_rows = count_rows(full)
        self._rows: BoolArray = np.zeros(n_rows, dtype=np.bool_)
        self._caps: BoolArray = np.zeros(full.weights.size, dtype=np.bool_)
        self._band = min(BAND, NARROW * full.gamma) if band is None else band
        self._copies = Copies(full, poll, is_shared, most)
        self._instance: Instance | None = full

    @property
    def instance(self) -> Instance:
        """The instance of the present choice; all rows before the first one."""
        if self._instance is None:
            self._instance = self._build()
        return self._instance

    @property
    def is_whole(self) -> bool:
        """Whether nothing has been chosen yet."""
        return self._instance is self.full

    def extend(self, t: FloatArray) -> None:
        """Keep the terms near the smallest at these margins too; copies are made when somebody asks
        for the instance.
        """
        full = self.full
        if full.weights.size == 0:
            return
        limit = self._smallest(t) + self._band
        rows = self._rows | (t < np.repeat(limit, np.diff(full.starts)))
        caps = self._caps | (full.gamma < limit)
        is_same = np.array_equal(rows, self._rows) and np.array_equal(caps, self._caps)
        if is_same and not self.is_whole:
            return
        before = self._rows, self._caps
        self._rows, self._caps = rows, caps
        if self.n_rows > self.most:
            self._rows, self._caps = before
        else:
            self._instance = None

    @property
    def n_rows(self) -> int:
        """Explicit rows of the present choice."""
        return int(self._counts()[self._explicit()].sum())

    def inherit(self, other: Reduction, origin: IntArray) -> None:
        """Keep what another choice keeps: sample m here has the terms of its sample origin[m]."""
        starts, counts = other.full.starts[origin], np.diff(self.full.starts)
        within = np.arange(self._rows.size) - np.repeat(self.full.starts[:-1], counts)
        self._rows = other._rows[np.repeat(starts, counts) + within]
        self._caps = other._caps[origin]

    def cost(self, t: FloatArray) -> float:
        """F - f at these margins."""
        if self.full.weights.size == 0:
            return 0.0
        kept = np.where(self._rows, t, np.inf)
        lowest = np.minimum.reduceat(kept, self.full.starts[:-1])
        lowest = np.where(self._linear(), lowest, np.minimum(lowest, self.full.gamma))
        return float((self.full.weights * (lowest - self._smallest(t))).sum())

    def _smallest(self, t: FloatArray) -> FloatArray:
        """min(gamma, all margins) of every sample."""
        return np.minimum(np.minimum.reduceat(t, self.full.starts[:-1]), self.full.gamma)

    def _counts(self) -> FloatArray:
        """Rows kept of every sample."""
        return np.add.reduceat(self._rows.astype(np.float64), self.full.starts[:-1])

    def _saturated(self) -> BoolArray:
        return np.asarray(self._counts() == 0)

    def _linear(self) -> BoolArray:
        return np.asarray((self._counts() == 1) & ~self._caps)

    def _explicit(self) -> BoolArray:
        return ~self._saturated() & ~self._linear()

    def _build(self) -> Instance:
        full, explicit = self.full, self._explicit()
        sample_of = np.repeat(np.arange(full.weights.size), np.diff(full.starts))
        chosen = np.flatnonzero(self._rows & explicit[sample_of])
        single = np.flatnonzero(self._rows & self._linear()[sample_of])
        saturated = full.weights[self._saturated()]
        columns, rows = self._copies.of(chosen)
        counts = self._counts()[explicit].astype(np.int64)
        terms = 2.0 * (single.size + 4) * self.structure_magnitude
        terms += 2.0 * (saturated.size + 4) * full.gamma * float(full.weights.sum())
        return full._replace(
            offset=float(full.gamma * saturated.sum()),
            error=full.error + float(2.0 * EPS * terms),
            rows=rows,
            columns=columns,
            linear=full.linear + self._copies.sums(single, full.weights[sample_of[single]]),
            weights=full.weights[explicit],
            starts=np.append(0, np.cumsum(counts)).astype(np.int64),
            **WITHOUT_CODES,
        )


class Copies:
    """Coefficients of some rows, by column and by row."""

    def __init__(self, full: Instance, poll: Poll, is_shared: bool, most: float = np.inf) -> None:
        self._full = full
        self._is_coded = full.keys.size > 0
        self._poll = poll
        self._is_shared = is_shared
        least = 0 if is_shared or most == np.inf else int(most) * full.linear.size
        self._by_column, self._by_row = np.empty(least), np.empty(least)  # taken as it is used

    def of(self, chosen: IntArray) -> tuple[FloatArray, FloatArray]:
        """The coefficients of these rows; those of an earlier call are overwritten."""
        n_columns = self._full.linear.size
        size = n_columns * chosen.size
        self._by_column = self._room(self._by_column, size)
        self._by_row = self._room(self._by_row, size)
        columns = self._by_column[:size].reshape(n_columns, chosen.size)
        rows = self._by_row[:size].reshape(chosen.size, n_columns)
        if self._is_coded:
            fill_columns(self._full, chosen, columns, 1, self._poll)
        else:
            for part in _blocks(*columns.shape):
                self._poll()
                np.take(self._full.columns[part], chosen, axis=1, out=columns[part], mode="clip")
        turn(columns, rows, self._poll)
        return columns, rows

    def _room(self, memory: FloatArray, size: int) -> FloatArray:
        """The same memory if it is large enough and no other worker reads there."""
        if self._is_shared:
            return np.empty(size)
        return memory if memory.size >= size else np.empty(int(SPARE * size))

    def sums(self, chosen: IntArray, weights: FloatArray) -> FloatArray:
        """Weighted sums of some rows, (K,)."""
        if self._is_coded:
            return sum_rows(self._full, chosen, weights, 1, self._poll)
        out = np.zeros(self._full.linear.size)
        if chosen.size:
            for part in _blocks(out.size, chosen.size):
                self._poll()
                out[part] = self._full.columns[part][:, chosen] @ weights
        return out


SPARE = 1.25
"""Memory of copies that may become more."""

PIECE = 2_000_000
"""Coefficients that are copied between two looks at the clock."""


def _blocks(count: int, width: int) -> list[slice]:
    """Parts of ``range(count)``, each of some million coefficients."""
    step = max(1, PIECE // max(width, 1))
    return [slice(begin, min(begin + step, count)) for begin in range(0, count, step)]


def turned(columns: FloatArray) -> FloatArray:
    """Coefficients by row, of those by column."""
    out = np.empty(columns.shape[::-1])
    turn(columns, out)
    return out


def turn(columns: FloatArray, rows: FloatArray, poll: Poll = lambda: None) -> None:
    """Write coefficients by column to where they are by row."""
    for part in _blocks(*rows.shape):
        poll()
        rows[part] = columns[:, part].T


def with_all_rows(full: Instance) -> Instance:
    """The whole problem, ready to bound boxes with."""
    return full._replace(rows=np.ascontiguousarray(full.columns.T))


def thinned(inst: Instance) -> Instance:
    """Some samples with larger weights, to compare splits with (letter's gap without them x1.03):
    every so many-th, its weight multiplied accordingly. Not for bounds.
    """
    stride = -(-count_rows(inst) // ENOUGH)
    if stride <= 1:
        return inst
    samples = np.arange(0, inst.weights.size, stride)
    counts = np.diff(inst.starts)
    kept = np.zeros(inst.weights.size, dtype=np.bool_)
    kept[samples] = True
    columns = np.ascontiguousarray(inst.columns[:, np.repeat(kept, counts)])
    return inst._replace(
        rows=np.ascontiguousarray(columns.T),
        columns=columns,
        weights=stride * inst.weights[samples],
        starts=np.append(0, np.cumsum(counts[samples])).astype(np.int64),
    )
