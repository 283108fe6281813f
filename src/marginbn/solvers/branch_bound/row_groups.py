"""Groups of rows: a bound for all rows from a few of their means (adult without them x1.61).

``min(gamma, min_r t_r)`` is concave in the margins t, and the margins of a sample are linear in
eta. So for samples of one class, which share their rivals, with total weight W and weighted mean a
of their coefficients,

    W min(gamma, min_r a_r . eta)  >=  sum_m w_m min(gamma, min_r a_mr . eta)      for every eta:

a group counts as one sample, and an instance of groups has an objective F >= f, like any choice of
terms in ``rows.py``. At a relaxed solution a group that loses is split by which term is smallest in
its members there; then it loses nothing at this point. It begins with one group per class; every
round is one pass over the codes (``kernels/coded.py``). Of a group that is split only the small
parts are added up; the largest is what they leave of the whole.

*Rounding.* A sum over q joint states errs by less than ``(q + 4) eps`` of the sum of the absolute
values, and by as many eps more as there are samples where weights are not whole numbers, whose
sums are exact. Over all groups these add up to less than the structure magnitude G
(``kernels/bound.py``); what a difference takes over from the whole counts once for each round.

The local search climbs on a sample, drawn evenly from the weights of each class: what it finds is
scored with all rows.

*Back to rows.* With many classes a few rows of each sample are near its smallest term, and a group
has all its rivals, so the rows that matter (``rows.py``) may be fewer than those of the groups.
Then, or when there is no room for more groups, bounds go on with the rows that matter, whose
coefficients are made from the codes. Letter with 5 s: gap 10.3 % instead of 20.6 %; with 24 s a
lower bound than with all coefficients written (27 378 and 27 397) in a third of the memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from marginbn.problem.array_types import EPS, BoolArray, CodeArray, FloatArray, IntArray
from marginbn.problem.problem import StructureProblem
from marginbn.solvers.branch_bound.arrays import Encoding
from marginbn.solvers.branch_bound.kernels.records import WITHOUT_CODES, Instance, count_rows
from marginbn.solvers.branch_bound.pair_tables import Coded, fill_columns, group_rows
from marginbn.solvers.branch_bound.rows import (
    NARROW,
    RAREST_CHECK,
    SPARE,
    UNSEEN,
    WIDE_BAND,
    WORTH,
    Reduction,
    RowChoice,
    turned,
)
from marginbn.solvers.counts import Poll
from marginbn.solvers.memory import BranchBoundShape, Division
from marginbn.solvers.run import RowsInUse

SPLIT_PART = 0.999
"""The groups that lose most are split, until so much of the loss is gone."""

PASS_TIME = 5.0
"""Nanoseconds per row and feature of looking whether groups lose, very roughly."""

BATCH = 3e7
"""Nanoseconds of a batch, as in ``schedule.py``; looking takes no longer than that between two."""

FEW = 4
"""Roundings of a mean besides its additions."""

PIECE = 1_000_000
"""Samples that are looked at in one go."""

FULL = 0.9
"""Part of the room for groups from which on rows are taken instead, if there is room for those."""

NEAR = 0.5
"""Band of these rows (nats): half of ``rows.BAND``, as they take more room than groups."""


@dataclass(frozen=True)
class Losses:
    """What groups lose at some margins."""

    smallest: npt.NDArray[np.uint16]  # (M,) each sample's smallest term, 0 for gamma
    by_group: FloatArray  # (G,) F - f
    means: FloatArray  # (G x rivals,) margins of the groups

    @property
    def total(self) -> float:
        """F - f of all groups."""
        return float(self.by_group.sum())


@dataclass(frozen=True)
class Parts:
    """Groups after some were divided."""

    group_of: CodeArray  # (M,)
    numbers: IntArray  # of the new groups, in order
    origin: IntArray  # the groups that they were split from

    @property
    def n_groups(self) -> int:
        """Number of groups, new ones included."""
        return int(self.numbers[-1]) + 1


class Groups:
    """A partition of the samples, each part of one class, and the instance of its means."""

    def __init__(self, encoding: Encoding, coded: Coded, most_rows: int) -> None:
        self.full = encoding.instance
        self._coded = coded
        self._structure = encoding.structure_magnitude
        self._rivals = count_rows(self.full) // self.full.weights.size
        self.most = max(most_rows // self._rivals, int(self.full.n_classes))
        present = np.bincount(coded.codes[-1], minlength=int(self.full.n_classes)) > 0
        classes, number_of = np.flatnonzero(present), np.cumsum(present) - 1
        self.group_of: CodeArray = number_of.astype(np.int32)[coded.codes[-1]]
        self.weights = _totals(self.group_of, self.full.weights, classes.size)
        self.origin = np.arange(classes.size)  # of every group: its number before the last split
        self._depth = 0
        states = int(coded.families.sets[:, 4].max(initial=1))
        are_counts = bool((self.full.weights == np.floor(self.full.weights)).all())
        self._additions = states if are_counts else states + self.full.weights.size
        sums = coded.class_sums.reshape(-1, self._rivals, self.full.linear.size)[classes]
        means = sums / self.weights[:, None, None]
        self.instance = self._with(means.reshape(-1, self.full.linear.size))

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return int(self.weights.size)

    def losses(self, t: FloatArray) -> Losses:
        """F - f of every group at the margins of all rows."""
        full, n_groups = self.full, self.n_groups
        by_sample = t[: count_rows(full)].reshape(-1, self._rivals)
        smallest = np.zeros(by_sample.shape[0], dtype=np.uint16)
        means, own = np.zeros((n_groups, self._rivals)), np.zeros(n_groups)
        for begin in range(0, by_sample.shape[0], PIECE):  # a long table has no room for copies
            part = slice(begin, begin + PIECE)
            group_of, weights, margins = self.group_of[part], full.weights[part], by_sample[part]
            lowest, nearest = np.full(len(weights), full.gamma), smallest[part]
            for r in range(self._rivals):
                margin = margins[:, r]
                nearest[margin < lowest] = r + 1
                np.minimum(lowest, margin, out=lowest)
                means[:, r] += _totals(group_of, weights * margin, n_groups)
            own += _totals(group_of, weights * lowest, n_groups)
        means /= self.weights[:, None]
        mean = means.min(axis=1, initial=full.gamma)
        lost = np.maximum(self.weights * mean - own, 0.0)
        return Losses(smallest, lost, means.reshape(-1))

    def split(self, losses: Losses, poll: Poll) -> bool:
        """Divide the groups that lose most by their smallest terms; returns whether any was."""
        chosen = self._choose(losses)
        if not chosen.any():
            return False
        parts = self._divide(chosen, losses.smallest)
        if parts.numbers.size == 0:
            return False  # what they lose is rounding
        weights = _totals(parts.group_of, self.full.weights, parts.n_groups)
        rows = self._rows_of(parts, weights, poll)
        self.group_of, self.weights = parts.group_of, weights
        self.origin = np.append(np.arange(self.instance.weights.size), parts.origin)
        self._depth += 1
        self.instance = self._with(rows)
        return True

    def _rows_of(self, parts: Parts, weights: FloatArray, poll: Poll) -> FloatArray:
        """Means of all groups: the small parts are added up, the largest is what they leave."""
        n_old, n_columns, rivals = self.n_groups, self.full.linear.size, self._rivals
        rows = np.empty((parts.n_groups, rivals, n_columns))
        rows[:n_old] = self.instance.rows.reshape(n_old, rivals, n_columns)
        for old in np.unique(parts.origin):
            rows[old] *= self.weights[old]
        members, starts = self._members(parts)
        means = group_rows(self.full, self._coded, members, starts, poll)
        means = means.reshape(-1, rivals, n_columns)
        for new, old, mean in zip(parts.numbers, parts.origin, means, strict=True):
            rows[new] = mean
            rows[old] -= weights[new] * mean
        for old in np.unique(parts.origin):
            rows[old] /= weights[old]
        return rows.reshape(-1, n_columns)

    def _members(self, parts: Parts) -> tuple[IntArray, IntArray]:
        """Samples of the new groups, one group after the other, and where each begins."""
        inside = np.flatnonzero(parts.group_of >= self.n_groups)
        members = inside[np.argsort(parts.group_of[inside], kind="stable")]
        starts = np.searchsorted(parts.group_of[members], parts.numbers)
        return members, np.append(starts, members.size).astype(np.int64)

    def _choose(self, losses: Losses) -> BoolArray:
        """The fewest groups with most of the loss, as many as there is room for."""
        order = np.argsort(-losses.by_group, kind="stable")
        lost = np.cumsum(losses.by_group[order])
        chosen = np.zeros(self.n_groups, dtype=np.bool_)
        if lost[-1] <= 0.0:
            return chosen
        enough = int(np.searchsorted(lost, SPLIT_PART * lost[-1])) + 1
        room = (self.most - self.n_groups) // self._rivals
        chosen[order[: max(0, min(enough, room))]] = True
        return chosen & (losses.by_group > 0.0)

    def _divide(self, chosen: BoolArray, smallest: npt.NDArray[np.uint16]) -> Parts:
        """The largest part of a group keeps its number, the others get new ones."""
        terms = self._rivals + 1
        keys = self.group_of * np.int32(terms)
        keys += smallest
        keys[~chosen[self.group_of]] = -1
        counts = np.zeros(self.n_groups * terms, dtype=np.int64)
        for part in np.array_split(keys, max(1, len(keys) // PIECE)):
            counts += np.bincount(part[part >= 0], minlength=counts.size)
        parts = np.flatnonzero(counts)
        old, sizes = parts // terms, counts[parts]
        order = np.lexsort((-sizes, old))  # by group, the largest part first
        is_largest = np.zeros(parts.size, dtype=np.bool_)
        is_largest[order[np.append(True, old[order][1:] != old[order][:-1])]] = True
        number = np.where(is_largest, old, self.n_groups - 1 + np.cumsum(~is_largest))
        number_of = np.zeros(counts.size, dtype=np.int32)
        number_of[parts] = number
        group_of = np.where(keys >= 0, number_of[keys], self.group_of)
        return Parts(group_of, number[~is_largest], old[~is_largest])

    def _with(self, rows: FloatArray) -> Instance:
        """The instance of these means."""
        additions = (self._depth + 1) * (self._additions + FEW)
        return self.full._replace(
            error=float(2.0 * EPS * additions * self._structure),
            rows=rows,
            columns=turned(rows),
            weights=self.weights,
            starts=np.arange(self.weights.size + 1, dtype=np.int64) * self._rivals,
            **WITHOUT_CODES,
        )


def _totals(group_of: CodeArray, values: FloatArray, n_groups: int) -> FloatArray:
    """Sum of the values in every group."""
    return np.bincount(group_of, values, n_groups).astype(np.float64, copy=False)


class GroupedRows(RowChoice):
    """Groups to bound boxes and choose splits with, of which only the terms that matter; a sample
    to climb on.
    """

    def __init__(
        self, encoding: Encoding, coded: Coded, budget: int, poll: Poll, is_shared: bool = False
    ) -> None:
        self.full = encoding.instance
        per_row = 8 * 8 * self.full.linear.size  # of groups, their terms that matter, new ones
        self._poll = poll
        self._structure = encoding.structure_magnitude
        self.groups: Groups | None = Groups(encoding, coded, budget // 2 // per_row)
        self._coded = coded
        self._most_rows = budget // int(2 * 8 * SPARE * self.full.linear.size)
        most = budget // 4 // (per_row // 4)
        self._sample = Sample.draw(self.full, coded, most)
        self._seen = np.zeros(self._sample.rows.size)  # its margins where groups were split last
        self._is_shared = is_shared
        self._bounding = self._reduction(self.groups.instance)
        self._use()
        self._next_check = 1
        self._shortest = 1 + int(PASS_TIME * count_rows(self.full) * self.full.n_features / BATCH)
        self._interval = self._shortest

    def _reduction(self, inst: Instance) -> Reduction:
        """All terms of the present groups."""
        return Reduction(inst, self._structure, poll=self._poll, is_shared=self._is_shared)

    @cached_property
    def _reduced_sample(self) -> Reduction:
        """Made when the local search begins: bounds come first."""
        sample = self._sample.instance(self.full, self._coded, self._poll)
        reduced = Reduction(sample, self._structure, WIDE_BAND, self._poll)
        reduced.extend(self._seen)
        return reduced

    @property
    def climbing(self) -> Instance:
        """The local search climbs on the terms of the sample that matter, then on rows."""
        return self._reduced_sample.instance if self.groups is not None else self.bounding

    @property
    def n_climbing(self) -> int:
        """Samples that it climbs on at the most."""
        return int(self.full.weights.size)

    def extend(self, margins: FloatArray, gap: float = np.inf) -> None:
        """Split the groups that lose at these margins, and use their terms near the smallest; or
        the rows that matter there.
        """
        self._seen = margins[self._sample.rows]
        if self.groups is not None and not self._hand_over(self.groups, margins):
            losses = self.groups.losses(margins)
            if self.groups.split(losses, self._poll):
                before = self._bounding
                self._bounding = self._reduction(self.groups.instance)
                self._bounding.inherit(before, self.groups.origin)
                losses = self.groups.losses(margins)
            margins = losses.means
        self._bounding.extend(margins)
        self._use()

    def _hand_over(self, groups: Groups, margins: FloatArray) -> bool:
        """Take rows instead of groups if they are fewer, or if there is no room for more groups."""
        if self._sample.rivals == 1:
            return False
        band = min(NEAR, NARROW * self.full.gamma)
        most = self._most_rows
        by_row = Reduction(self.full, self._structure, band, self._poll, self._is_shared, most)
        by_row.extend(margins)
        is_full = groups.n_groups > FULL * groups.most
        is_better = is_full or by_row.n_rows <= count_rows(groups.instance)
        if by_row.is_whole or not is_better:
            return False
        self._bounding, self.groups = by_row, None
        return True

    def extend_climbing(self, margins: FloatArray, gap: float) -> None:
        """Of the sample, the terms near the smallest where the local search has arrived."""
        if self.groups is not None:
            self._reduced_sample.extend(margins[self._sample.rows])
        elif self._bounding.cost(margins) > UNSEEN * gap:
            self.extend(margins, gap)

    def refine(self, newest: FloatArray, gap: float) -> bool:
        """Split groups if they lose too much at the margins of the newest relaxed solution; whether
        they did.
        """
        lost, margins = 0.0, newest[: count_rows(self.full)]
        if self.groups is not None:
            losses = self.groups.losses(margins)
            lost, margins = losses.total, losses.means
        if lost + self._bounding.cost(margins) <= WORTH * gap:
            return False
        before = self.bounding
        self.extend(newest, gap)
        return self.bounding is not before

    def check(self, newest: Callable[[], FloatArray], turn: int, gap: float) -> None:
        """The same: more often when groups were split the last time, else less."""
        if turn < self._next_check:
            return
        if self.refine(newest(), gap):
            self._interval = max(self._interval // 2, self._shortest)
        else:
            self._interval = min(2 * self._interval, RAREST_CHECK * self._shortest)
        self._next_check = turn + self._interval


def wants_groups(rows: RowsInUse, problem: StructureProblem, division: Division) -> bool:
    """Whether the problem is searched with groups."""
    if problem.margins is None or problem.margins.n_rivals == 0:
        return False
    return rows == "groups" or (rows == "auto" and division.rows > 0)


def rows_of(encoding: Encoding, budget: int, poll: Poll, is_shared: bool = False) -> RowChoice:
    """The rows that matter, or groups where there are codes; whether several workers look at them
    at a time.
    """
    if encoding.coded is None:
        return RowChoice(encoding, poll, is_shared)
    budget = budget or BranchBoundShape.LARGEST_ROWS
    return GroupedRows(encoding, encoding.coded, budget, poll, is_shared)


@dataclass(frozen=True)
class Sample:
    """Some samples, with weights that add up to those of their class."""

    chosen: IntArray
    weights: FloatArray
    rivals: int

    @classmethod
    def draw(cls, full: Instance, coded: Coded, n_rows: int) -> Sample:
        """So many rows, or all where they are few."""
        rivals = count_rows(full) // full.weights.size
        return cls(*even_sample(coded.codes[-1], full.weights, max(n_rows // rivals, 1)), rivals)

    @property
    def rows(self) -> IntArray:
        """Its rows among all."""
        return (self.chosen[:, None] * self.rivals + np.arange(self.rivals)).reshape(-1)

    def instance(self, full: Instance, coded: Coded, poll: Poll = lambda: None) -> Instance:
        """Its coefficients, by column only: they are to be reduced."""
        columns = np.empty((full.linear.size, self.rows.size))
        fill_columns(full, self.rows, columns, coded.threads, poll)
        return full._replace(
            columns=columns,
            weights=self.weights,
            starts=np.arange(self.chosen.size + 1, dtype=np.int64) * self.rivals,
            **WITHOUT_CODES,
        )


def even_sample(
    classes: npt.NDArray[np.uint16], weights: FloatArray, count: int
) -> tuple[IntArray, FloatArray]:
    """About ``count`` samples, and their weights: from each class those at even distances on the
    line of its weights, so that heavy ones come more often and all add up.
    """
    if count >= weights.size:
        return np.arange(weights.size), weights.copy()
    chosen, shares = [], []
    step = float(weights.sum()) / count
    for c in np.flatnonzero(np.bincount(classes)):
        own = np.flatnonzero(classes == c)
        line = np.cumsum(weights[own])
        picks = max(1, round(float(line[-1]) / step))
        places = (np.arange(picks) + 0.5) * (line[-1] / picks)
        found = own[np.minimum(np.searchsorted(line, places), own.size - 1)]
        distinct, times = np.unique(found, return_counts=True)
        chosen.append(distinct)
        shares.append(times * (line[-1] / picks))
    order = np.argsort(np.concatenate(chosen))
    return np.concatenate(chosen)[order], np.concatenate(shares)[order]
