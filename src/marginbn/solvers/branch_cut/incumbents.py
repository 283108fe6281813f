"""Incumbents: rounding of fractional points and local search, for arbitrary candidates.

Effort is counted in kicks, never in seconds, so that a run depends on nothing but the problem and
the seed. The compiled search (:mod:`marginbn.solvers.branch_cut.kernels.climb`) needs the
margin matrix in memory; where it is too large, a plain sweep over columns made on demand takes
its place.
"""

from __future__ import annotations

import numpy as np

from marginbn.solvers.branch_cut.arrays import FloatArray, Instance, IntArray
from marginbn.solvers.branch_cut.kernels.climb import (
    Landscape,
    climb,
    descendants,
    holds_any,
    search_around,
)


class IncumbentSearch:
    """Finds good selections; one per worker."""

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
                np.ascontiguousarray(instance.linear),
                instance.weights,
                instance.gamma,
                instance.n_rivals,
                instance.offsets,
                instance.members,
            )

    @property
    def kicks_at_start(self) -> int:
        """About a third of a second of work."""
        return int(min(6e8 / self._work_of_climb, 100))

    @property
    def is_cheap(self) -> bool:
        """Whether climbs from several starts delay the first bound by less than a second."""
        return self._work_of_climb < 1e8

    @property
    def nodes_between(self) -> int:
        """Nodes between two searches, about a tenth of the time of the tree."""
        return int(np.clip(self._work_of_climb / 2e5, 5, 200))

    @property
    def _work_of_climb(self) -> float:
        """Coefficients read by one climb."""
        sweep = self._instance.n_candidates * (self._instance.coefficients.n_rows + 20)
        return 8.0 * sweep

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
