"""The best structure by looking at all of them, as array code that uses nothing of the package.

From the paper: theta(x | parents) = (n(x, parents) + a) / (n(parents) + a |X|); the margin of a
sample is the log joint of its class minus that of the strongest rival (SM), or of its class against
all others as one class (SBM); the objective is the sum of w min(gamma, margin). The margin against
one rival is a sum of one term per variable, so each candidate parent set has one array of terms
(samples, rivals), and a structure is a sum of such arrays.

With class-restricted parent sets a feature that is a parent of the class has no parents itself
(its set would hold the class), and then there is no cycle through the class. So structures are: an
acyclic choice of sets for the features, times the class's sets whose members have no parents. Where
the class is a parent of all features, its only set is the empty one.
Weights of a longer type than float64 make all arithmetic that long.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np

from oracles import has_cycle, parent_sets

CHUNK = 2_000_000
"""Numbers of one block of structures."""


@dataclass(frozen=True)
class Sample:
    """A table of codes, class first, and what the margin is made of."""

    codes: np.ndarray
    weights: np.ndarray
    arities: tuple[int, ...]
    smoothing: float
    binary: bool

    def terms(self, child: int, parents: tuple[int, ...]) -> np.ndarray:
        """What (child, parents) adds to the margins, float64 (samples, rivals)."""
        n_classes = self.arities[0]
        if not self.binary:
            logs = self._logs(self.codes, self.arities, child, parents)
            own = logs[np.arange(len(logs)), self.codes[:, 0]]
            rivals = np.array(
                [[c for c in range(n_classes) if c != code] for code in self.codes[:, 0]]
            )
            return own[:, None] - np.take_along_axis(logs, rivals.reshape(len(logs), -1), axis=1)
        result = np.empty((len(self.codes), 1), dtype=self.weights.dtype)
        for c in range(n_classes):
            codes = self.codes.copy()
            codes[:, 0] = self.codes[:, 0] != c
            logs = self._logs(codes, (2, *self.arities[1:]), child, parents)
            mine = self.codes[:, 0] == c
            result[mine, 0] = logs[mine, 0] - logs[mine, 1]
        return result

    def _logs(
        self, codes: np.ndarray, arities: tuple[int, ...], child: int, parents: tuple[int, ...]
    ) -> np.ndarray:
        """log theta of every sample with its class replaced by every class, (samples, classes)."""
        members = (*parents, child)
        counts = np.zeros([arities[v] for v in members], dtype=self.weights.dtype)
        np.add.at(counts, tuple(codes[:, v] for v in members), self.weights)
        above = counts.sum(axis=-1, keepdims=True)
        theta = (counts + self.smoothing) / (above + self.smoothing * arities[child])
        columns = []
        for c in range(arities[0]):
            changed = codes.copy()
            changed[:, 0] = c
            columns.append(np.log(theta[tuple(changed[:, v] for v in members)]))
        return np.column_stack(columns)


@cache
def feature_choices(n_features: int, max_parents: int, class_arcs: str = "free") -> np.ndarray:
    """All acyclic choices of the features' sets, as positions in their lists."""
    n = n_features + 1
    lists = [parent_sets(v, n, max_parents, True, class_arcs) for v in range(1, n)]
    among = [[tuple(p for p in s if p != 0) for s in sets] for sets in lists]
    found = [
        places
        for places in product(*(range(len(sets)) for sets in lists))
        if not has_cycle(((), *(among[i][k] for i, k in enumerate(places))))
    ]
    return np.array(found, dtype=np.int64)


def objectives(
    sample: Sample, max_parents: int, gamma: float, class_arcs: str = "free"
) -> Iterator[np.ndarray]:
    """Objectives of all structures, block by block."""
    n = len(sample.arities) - 1
    sets = [parent_sets(v, n + 1, max_parents, True, class_arcs) for v in range(n + 1)]
    terms = [np.array([sample.terms(v, s) for s in sets[v]]) for v in range(n + 1)]
    choices = feature_choices(n, max_parents, class_arcs)
    size = max(1, CHUNK // terms[0][0].size)
    for k, members in enumerate(sets[0]):
        free = choices
        for member in members:
            free = free[free[:, member - 1] == 0]  # the empty set comes first
        for start in range(0, len(free), size):
            block = free[start : start + size]
            margins = np.broadcast_to(terms[0][k], (len(block), *terms[0][k].shape)).copy()
            for i in range(n):
                margins += terms[i + 1][block[:, i]]
            yield np.minimum(gamma, margins.min(axis=2)) @ sample.weights


def best_objective(
    sample: Sample, max_parents: int, gamma: float, class_arcs: str = "free"
) -> float:
    """The optimum."""
    blocks = objectives(sample, max_parents, gamma, class_arcs)
    return max(float(block.max()) for block in blocks)
