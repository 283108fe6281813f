"""Local search over selections of arbitrary candidates, for problems with margins.

All candidates of one variable are scored in one pass: with ``margins`` the margin rows of the
selection and A the coefficients,

    value(k) = linear_k + sum_m w_m min(gamma, min_c margins_mc - A[mc, k_i] + A[mc, k]).

Moves: the best candidate of one variable that closes no cycle; the reversal of one arc j -> i (the
best candidate of i without j, then the best of j with i). Kicks are random feasible candidates of a
few variables. Effort is counted in coefficients read, never in seconds, so that a search depends on
nothing but the problem and the seed.
"""

from __future__ import annotations

import math

import numpy as np

from marginbn.problem.array_types import BoolArray, FloatArray, IntArray
from marginbn.solvers.branch_cut.arrays import Instance

SMALLEST_KICK, LARGEST_KICK = 2, 5
"""Variables that a kick changes, in turn: one alone is undone by the first climb."""

SWEEPS = 8.0
"""Passes over all candidates that a climb takes, by experience."""

READ_AT_START, READ_BETWEEN_NODES, CHEAP = 1e8, 5e4, 3e7
"""Coefficients that the first kicks may read (a third of a second), that a kick may read for every
node (a tenth of the tree's time), and below which a climb is cheap.
"""

PIECE = 2_000_000
"""Coefficients that are worked on at a time."""


def is_better(value: float, than: float) -> bool:
    """By more than rounding: equal values must not be exchanged for ever."""
    return value > (than + 1e-9 * abs(than) if math.isfinite(than) else than)


def descendants(members: IntArray, chosen: IntArray, i: int) -> BoolArray:
    """Marks i and everything reached from it, (n + 1,); the last entry belongs to no variable."""
    below = np.zeros(len(chosen) + 1, dtype=bool)
    below[i] = True
    parents = members[chosen]
    while True:
        reached = below[:-1] | below[parents].any(axis=1)
        if (reached == below[:-1]).all():
            return below
        below[:-1] = reached


class IncumbentSearch:
    """Finds good selections; one per search. ``seed`` is that of the kicks, ``stop`` (1,) a flag
    that ends a running search.
    """

    def __init__(self, instance: Instance, seed: int, stop: IntArray | None = None) -> None:
        self._instance = instance
        self._random = np.random.default_rng(seed)
        self.stop = np.zeros(1, dtype=np.int64) if stop is None else stop
        # coefficients read by one climb; a candidate costs as much as 20 rows besides
        work = SWEEPS * instance.n_candidates * (instance.coefficients.n_rows + 20)
        self.is_cheap = work < CHEAP  # climbs from several starts delay the first bound hardly
        self.kicks_at_start = int(min(READ_AT_START / work, 100))
        self.nodes_between = int(np.clip(work / READ_BETWEEN_NODES, 5, 500))

    def improved(self, chosen: IntArray) -> IntArray:
        """A local optimum near a selection."""
        climb = _Climb(self._instance, chosen, self.stop)
        climb.run()
        return climb.chosen

    def around(self, chosen: IntArray, value: float, kicks: int) -> IntArray:
        """The best local optimum found by kicking a selection of that value."""
        best = np.array(chosen, dtype=np.int64)
        for turn in range(kicks):
            if self.stop[0]:
                break
            size = SMALLEST_KICK + turn % (LARGEST_KICK - SMALLEST_KICK + 1)
            found = self.improved(self._kicked(best, size))
            reached = self._instance.value(found)
            if is_better(reached, value):
                best, value = found, reached
        return best

    def _kicked(self, chosen: IntArray, size: int) -> IntArray:
        """The selection with random candidates that close no cycle, of ``size`` variables."""
        instance, kicked = self._instance, chosen.copy()
        for i in self._random.integers(instance.n_variables, size=size):
            group = instance.group(int(i))
            k = int(self._random.integers(group.start, group.stop))
            below = descendants(instance.members, kicked, int(i))
            if not below[instance.members[k]].any():
                kicked[i] = k
        return kicked

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
        for i in order:
            below = descendants(members, chosen, int(i))
            group = np.arange(instance.offsets[i], instance.offsets[i + 1])
            free = group[~below[members[group]].any(axis=1)]
            if not len(free):
                return None
            chosen[i] = free[np.lexsort((-values[free], -np.round(point[free], 6)))[0]]
        return chosen


class _Climb:
    """A selection that is being improved, with its margin rows (R,)."""

    def __init__(self, instance: Instance, chosen: IntArray, stop: IntArray) -> None:
        self._instance, self._stop = instance, stop
        self.chosen = np.array(chosen, dtype=np.int64)
        self._margins = instance.coefficients.margins_at(self.chosen, np.ones(len(chosen)))

    def run(self) -> None:
        """Exchange candidates, then reverse arcs, until neither is an improvement."""
        improved = True
        while improved and not self._stop[0]:
            improved = False
            for i in range(len(self.chosen)):
                improved |= self._improve_variable(i)
            if not improved:
                improved = self._reverse_arcs()

    def values(self, i: int) -> FloatArray:
        """Objective after exchanging the candidate of i, for each of its candidates."""
        instance, group = self._instance, self._instance.group(i)
        rest = self._margins - instance.coefficients.column(int(self.chosen[i]))
        others = float(instance.linear[np.delete(self.chosen, i)].sum()) + instance.constant
        values = np.full(group.stop - group.start, -np.inf)
        step = max(1, PIECE // max(1, len(rest)))
        for first in range(group.start, group.stop, step):
            last = min(first + step, group.stop)
            if self._stop[0]:
                break
            rows = instance.coefficients.columns(first, last) + rest[:, None]
            rows = rows.reshape(instance.n_samples, instance.n_rivals, last - first)
            gained = instance.weights @ rows.min(axis=1, initial=instance.gamma)
            place = slice(first - group.start, last - group.start)
            values[place] = gained + instance.linear[first:last] + others
        return values

    def _best_of(self, i: int, values: FloatArray, with_: int, without: int) -> int:
        """Best candidate of i that closes no cycle, with and without given parents; -1 if none."""
        group, all_members = self._instance.group(i), self._instance.members
        members = all_members[group]
        below = descendants(all_members, self.chosen, i)
        fits = np.logical_not(below[members].any(axis=1))
        if with_ >= 0:
            fits &= (members == with_).any(axis=1)
        if without >= 0:
            fits &= (members != without).all(axis=1)
        best = int(np.argmax(np.where(fits, values, -np.inf)))
        return group.start + best if fits[best] else -1

    def _exchange(self, i: int, k: int) -> None:
        """Give variable i the candidate k."""
        column = self._instance.coefficients.column
        self._margins += column(k) - column(int(self.chosen[i]))
        self.chosen[i] = k

    def _improve_variable(self, i: int) -> bool:
        """Take the best feasible candidate of i."""
        values, first = self.values(i), self._instance.group(i).start
        best = self._best_of(i, values, -1, -1)
        if best < 0 or not is_better(values[best - first], values[self.chosen[i] - first]):
            return False
        self._exchange(i, best)
        return True

    def _reverse_arcs(self) -> bool:
        """Try every arc, one improvement per variable."""
        improved = False
        for i in range(len(self.chosen)):
            parents = [int(j) for j in self._instance.members[self.chosen[i]] if j >= 0]
            values = self.values(i) if parents else np.zeros(0)
            for j in parents:
                if self._stop[0]:
                    break
                if self._reverse_arc(j, i, values):
                    improved = True
                    break
        return improved

    def _reverse_arc(self, j: int, i: int, values: FloatArray) -> bool:
        """Try i -> j instead of j -> i, with the values of i; undone unless it is better."""
        old = int(self.chosen[i])
        before = values[old - self._instance.group(i).start]
        k = self._best_of(i, values, -1, j)
        if k < 0:
            return False
        self._exchange(i, k)
        values = self.values(j)
        k = self._best_of(j, values, i, -1)
        if k >= 0 and is_better(values[k - self._instance.group(j).start], before):
            self._exchange(j, k)
            return True
        self._exchange(i, old)
        return False
