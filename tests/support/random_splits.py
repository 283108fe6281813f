"""Branch and cut that splits nodes at random: whatever is split on, results are right."""

from __future__ import annotations

from typing import Any

import numpy as np

from marginbn.problem.array_types import BoolArray
from marginbn.solvers.branch_cut.arrays import Instance
from marginbn.solvers.branch_cut.branching import Choice, Chooser, Split


class RandomChooser(Chooser):
    """Any branching candidate instead of the best one; put in the place of ``engine.Chooser``."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._random = np.random.default_rng(0)

    def choose(
        self,
        relaxed: Any,
        bound: float,
        cutoff: float,
        allowed: BoolArray,
        present: BoolArray,
        depth: int,
    ) -> Choice:
        splits = every_split(self._instance, allowed, present)
        return Choice(splits[int(self._random.integers(len(splits)))])


def every_split(instance: Instance, allowed: BoolArray, present: BoolArray) -> list[Split]:
    """All branching candidates that really split the allowed candidates."""
    n = instance.n_variables
    sizes = np.add.reduceat(allowed.astype(np.int64), instance.offsets[:-1])
    found: list[Split] = []
    for i in range(n):
        for j in range(n):
            count = int(allowed[instance.holding(i, j)].sum())
            if 0 < count < sizes[i]:
                found.append(Split("arc", i, j))
                back = int(allowed[instance.holding(j, i)].sum())
                if back < sizes[j] and not present[min(i, j), max(i, j)]:
                    found.append(Split("edge", min(i, j), max(i, j)))
    open_ = allowed & (sizes[instance.child] > 1)
    return found + [Split("candidate", int(k), -1) for k in np.flatnonzero(open_)]
