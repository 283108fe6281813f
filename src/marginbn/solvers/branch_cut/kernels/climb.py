"""Compiled local search over selections of arbitrary candidates.

``rows`` (R, K) holds the margin coefficients, R = samples x rivals, one contiguous row of all
candidates per margin row, so that all candidates of one variable are scored in one pass: with
``margins`` the margin rows of the selection,

    value(k) = linear_k + sum_m w_m min(gamma, min_c margins_mc - rows[mc, k_i] + rows[mc, k]).

Moves: the best candidate of one variable that closes no cycle; the reversal of one arc j -> i
(the best candidate of i without j, then the best of j with i). Kicks are random feasible
candidates of a few variables. ``stop`` (1,) is a flag that another thread may raise.

:class:`IncumbentSearch` finds incumbents by it, and by rounding fractional points. Effort is
counted in kicks, never in seconds, so that a run depends on nothing but the problem and the seed.
The compiled search needs the margin matrix in memory; where it is too large, a plain sweep over
columns made on demand takes its place.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np

from marginbn.problem.array_types import BoolArray, FloatArray, IntArray
from marginbn.solvers.branch_cut.arrays import Instance
from marginbn.solvers.branch_cut.kernels.propagate import holds, holds_any
from marginbn.solvers.compile import entry, kernel
from marginbn.solvers.orders.kernels.word_sets import next_random

Array = TypeVar("Array", FloatArray, IntArray)

ANY = -1
"""In place of a parent that a candidate must or must not have: no condition."""

SMALLEST_KICK, LARGEST_KICK = 2, 5
"""Variables that a kick changes, in turn: one alone is undone by the first climb."""

SWEEPS = 8.0
"""Passes over all candidates that a climb takes, by experience."""

READ_AT_START, READ_BETWEEN_NODES, CHEAP = 6e8, 2e5, 1e8
"""Coefficients that the first kicks may read (a third of a second), that a kick may read for every
node (a tenth of the tree's time), and below which a climb is cheap.
"""


class Landscape(NamedTuple):
    """What the objective is made of."""

    rows: FloatArray  # (R, K)
    linear: FloatArray  # (K,)
    weights: FloatArray  # (M,)
    gamma: float
    n_rivals: int
    offsets: IntArray  # (n + 1,)
    members: IntArray  # (K, P), padded with -1


class Trial(NamedTuple):
    """A selection that is being improved."""

    chosen: IntArray  # (n,)
    margins: FloatArray  # (R,), its margin rows
    values: FloatArray  # (largest group,), for group_values
    below: BoolArray  # (n,), for descendants


@kernel
def _is_better(value: float, than: float) -> bool:
    """By more than rounding: equal values must not be exchanged for ever."""
    return value > than + 1e-9 * abs(than)


@kernel
def margins_of(land: Landscape, chosen: IntArray, margins: FloatArray) -> None:
    """Margin rows of a selection."""
    for r in range(margins.size):
        total = 0.0
        for i in range(chosen.size):
            total += land.rows[r, chosen[i]]
        margins[r] = total


@kernel
def value_of(land: Landscape, chosen: IntArray, margins: FloatArray) -> float:
    """Objective of a selection with these margins."""
    total = 0.0
    for i in range(chosen.size):
        total += land.linear[chosen[i]]
    for m in range(land.weights.size):
        least = land.gamma
        for r in range(m * land.n_rivals, (m + 1) * land.n_rivals):
            least = min(least, margins[r])
        total += land.weights[m] * least
    return total


@kernel
def group_values(
    land: Landscape, chosen: IntArray, margins: FloatArray, i: int, values: FloatArray
) -> None:
    """Objective after exchanging the candidate of i, for each of its candidates."""
    first, last = land.offsets[i], land.offsets[i + 1]
    size = last - first
    least = np.empty(size)
    base = 0.0
    for j in range(chosen.size):
        if j != i:
            base += land.linear[chosen[j]]
    for a in range(size):
        values[a] = base + land.linear[first + a]
    for m in range(land.weights.size):
        least[:] = land.gamma
        for r in range(m * land.n_rivals, (m + 1) * land.n_rivals):
            row = land.rows[r]
            rest = margins[r] - row[chosen[i]]
            for a in range(size):
                least[a] = min(least[a], rest + row[first + a])
        weight = land.weights[m]
        for a in range(size):
            values[a] += weight * least[a]


@entry
def descendants(members: IntArray, chosen: IntArray, i: int, below: BoolArray) -> None:
    """Mark i and everything reached from it."""
    below[:] = False
    below[i] = True
    changed = True
    while changed:
        changed = False
        for v in range(chosen.size):
            if not below[v] and holds_any(members, chosen[v], below):
                below[v] = True
                changed = True


@kernel
def exchange(land: Landscape, trial: Trial, i: int, k: int) -> None:
    """Give variable i the candidate k."""
    old = trial.chosen[i]
    for r in range(trial.margins.size):
        trial.margins[r] += land.rows[r, k] - land.rows[r, old]
    trial.chosen[i] = k


@kernel
def _best_of(land: Landscape, trial: Trial, i: int, with_: int, without: int) -> int:
    """Best candidate of i that closes no cycle, with and without given parents; -1 if none.

    The values of all candidates of i are left in the trial.
    """
    group_values(land, trial.chosen, trial.margins, i, trial.values)
    descendants(land.members, trial.chosen, i, trial.below)
    best, best_value = -1, -np.inf
    for k in range(land.offsets[i], land.offsets[i + 1]):
        value = trial.values[k - land.offsets[i]]
        if value <= best_value or holds_any(land.members, k, trial.below):
            continue
        if with_ != ANY and not holds(land.members, k, with_):
            continue
        if without != ANY and holds(land.members, k, without):
            continue
        best, best_value = k, value
    return best


@kernel
def _improve_variable(land: Landscape, trial: Trial, i: int) -> bool:
    """Take the best feasible candidate of i."""
    best, first = _best_of(land, trial, i, ANY, ANY), land.offsets[i]
    now = trial.values[trial.chosen[i] - first]
    if best < 0 or not _is_better(trial.values[best - first], now):
        return False
    exchange(land, trial, i, best)
    return True


@kernel
def _reverse_arc(land: Landscape, trial: Trial, j: int, i: int) -> bool:
    """Try i -> j instead of j -> i; undone unless it is an improvement."""
    before = value_of(land, trial.chosen, trial.margins)
    old = trial.chosen[i]
    k = _best_of(land, trial, i, ANY, j)
    if k < 0:
        return False
    exchange(land, trial, i, k)
    k = _best_of(land, trial, j, i, ANY)
    if k >= 0 and _is_better(trial.values[k - land.offsets[j]], before):
        exchange(land, trial, j, k)
        return True
    exchange(land, trial, i, old)
    return False


@kernel
def _reverse_arcs(land: Landscape, trial: Trial, stop: IntArray) -> bool:
    """Try every arc, one improvement per variable."""
    improved = False
    for i in range(trial.chosen.size):
        for p in range(land.members.shape[1]):
            j = land.members[trial.chosen[i], p]
            if j < 0 or stop[0] != 0:
                break
            if _reverse_arc(land, trial, j, i):
                improved = True
                break
    return improved


@entry
def climb(land: Landscape, chosen: IntArray, margins: FloatArray, stop: IntArray) -> float:
    """Improve ``chosen`` to a local optimum; returns its value."""
    largest = (land.offsets[1:] - land.offsets[:-1]).max()
    trial = Trial(chosen, margins, np.empty(largest), np.zeros(chosen.size, dtype=np.bool_))
    margins_of(land, chosen, margins)
    improved = True
    while improved and stop[0] == 0:
        improved = False
        for i in range(chosen.size):
            if stop[0] == 0 and _improve_variable(land, trial, i):
                improved = True
        if not improved:
            improved = _reverse_arcs(land, trial, stop)
    margins_of(land, chosen, margins)
    return value_of(land, chosen, margins)


@kernel
def kick(land: Landscape, chosen: IntArray, size: int, state: IntArray) -> None:
    """Give ``size`` random variables random candidates that close no cycle."""
    below = np.zeros(chosen.size, dtype=np.bool_)
    for _ in range(size):
        i = next_random(state) % chosen.size
        first = land.offsets[i]
        k = first + next_random(state) % (land.offsets[i + 1] - first)
        descendants(land.members, chosen, i, below)
        if not holds_any(land.members, k, below):
            chosen[i] = k


@entry
def search_around(
    land: Landscape, best: IntArray, best_value: float, kicks: int, state: IntArray, stop: IntArray
) -> float:
    """Iterated local search from ``best``, which is overwritten; returns its value."""
    margins = np.zeros(land.rows.shape[0])
    trial = best.copy()
    for round_ in range(kicks):
        if stop[0] != 0:
            break
        trial[:] = best
        size = SMALLEST_KICK + round_ % (LARGEST_KICK - SMALLEST_KICK + 1)
        kick(land, trial, size, state)
        value = climb(land, trial, margins, stop)
        if _is_better(value, best_value):
            best[:] = trial
            best_value = value
    return best_value


def _own(array: Array) -> Array:
    """A copy: machine code for arrays that may be written to is not that for others."""
    return np.array(array, order="C")


class IncumbentSearch:
    """Finds good selections; one per search."""

    def __init__(self, instance: Instance, seed: int, stop: IntArray | None = None) -> None:
        self._instance = instance
        self._random = np.array([2 * seed + 1_181_783_497_276_652_981], dtype=np.int64)
        self.stop = np.zeros(1, dtype=np.int64) if stop is None else stop
        """Flag that ends a running search, for timers."""
        dense = instance.coefficients.dense
        self._land: Landscape | None = None
        if dense is not None:
            self._land = Landscape(
                dense,
                _own(instance.linear),
                _own(instance.weights),
                instance.gamma,
                instance.n_rivals,
                _own(instance.offsets),
                _own(instance.members),
            )

    @property
    def kicks_at_start(self) -> int:
        """About a third of a second of work."""
        return int(min(READ_AT_START / self._work_of_climb, 100))

    @property
    def is_cheap(self) -> bool:
        """Whether climbs from several starts delay the first bound by less than a second."""
        return self._work_of_climb < CHEAP

    @property
    def nodes_between(self) -> int:
        """Nodes between two searches, about a tenth of the time of the tree."""
        return int(np.clip(self._work_of_climb / READ_BETWEEN_NODES, 5, 200))

    @property
    def _work_of_climb(self) -> float:
        """Coefficients read by one climb; a candidate costs as much as 20 rows besides."""
        return SWEEPS * self._instance.n_candidates * (self._instance.coefficients.n_rows + 20)

    def improved(self, chosen: IntArray) -> IntArray:
        """A local optimum near a selection."""
        better = np.array(chosen, dtype=np.int64)
        if self._land is None:
            _sweep(self._instance, better, self.stop)
        else:
            climb(self._land, better, np.zeros(self._land.rows.shape[0]), self.stop)
        return better

    def around(self, chosen: IntArray, value: float, kicks: int) -> IntArray:
        """The best local optimum found by kicking a selection of that value."""
        better = np.array(chosen, dtype=np.int64)
        if self._land is not None:
            search_around(
                self._land, better, value - self._instance.constant, kicks, self._random, self.stop
            )
        return better

    def rounded(self, point: FloatArray, values: FloatArray) -> IntArray | None:
        """An acyclic selection near a fractional point; ``None`` if the rule gets stuck.

        Variables with a clear favourite come first; each takes the candidate of the largest mass,
        then of the largest value, that closes no cycle with what is already chosen.
        """
        instance = self._instance
        order = np.argsort(-instance.group_maxima(point), kind="stable")
        empty = np.full((1, instance.members.shape[1]), -1, dtype=np.int64)
        members = np.vstack([instance.members, empty])  # one more: "not chosen yet"
        chosen = np.full(instance.n_variables, instance.n_candidates, dtype=np.int64)
        below = np.zeros(instance.n_variables, dtype=bool)
        for i in order:
            group = np.arange(instance.offsets[i], instance.offsets[i + 1])
            descendants(members, chosen, int(i), below)
            for k in group[np.lexsort((-values[group], -np.round(point[group], 6)))]:
                if not holds_any(members, int(k), below):
                    chosen[i] = k
                    break
            else:
                return None
        return chosen


def _sweep(instance: Instance, chosen: IntArray, stop: IntArray) -> None:
    """One pass of best single exchanges over all variables, columns made on demand."""
    margins = instance.coefficients.margins_at(chosen, np.ones(len(chosen)))
    below = np.zeros(len(chosen), dtype=bool)
    for i in range(len(chosen)):
        descendants(instance.members, chosen, i, below)
        rest = margins - instance.coefficients.column(int(chosen[i]))
        best, best_value = int(chosen[i]), -np.inf
        for k in range(int(instance.offsets[i]), int(instance.offsets[i + 1])):
            if stop[0] or holds_any(instance.members, k, below):
                continue
            rows = (rest + instance.coefficients.column(k)).reshape(instance.n_samples, -1)
            least = rows.min(axis=1, initial=instance.gamma)
            value = float(instance.linear[k] + instance.weights @ least)
            if value > best_value:
                best, best_value = k, value
        margins = rest + instance.coefficients.column(best)
        chosen[i] = best
