"""Structural rows ``coefficient . eta[index] >= rhs``: cluster rows, class rows, present edges.

Rows are made once, kept in a pool and named by their number; nodes store numbers only.

* cluster K: inequality (7), see :mod:`marginbn.solvers.branch_cut.clusters`;
* class row of feature j, for class-restricted candidates: a parent of the class has no parents,
  eta_{j,{}} >= sum of eta_{C,S} over S containing j. It implies every cluster with the class in it;
* edge {i, j}: sum of the candidates of i with j and of j with i, at least 1 where the edge is
  decided to be present (it is 0 or 1 in every structure).
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np

from marginbn.problem.candidates import CandidateSets
from marginbn.solvers.branch_cut.arrays import FloatArray, Instance, IntArray
from marginbn.solvers.branch_cut.clusters import Cluster, cluster_row


@dataclass(frozen=True)
class Row:
    """``coefficient . eta[index] >= rhs``, coefficients 1 or -1."""

    index: IntArray
    coefficient: FloatArray
    rhs: float

    def activity(self, point: FloatArray) -> float:
        """Left-hand side at a point (K,)."""
        return float(self.coefficient @ point[self.index])


class RowPool:
    """All rows made so far; a number once given stays, so several workers may use one pool."""

    def __init__(self, instance: Instance, candidates: CandidateSets) -> None:
        self._instance = instance
        self._candidates = candidates
        self._lock = threading.RLock()
        self._rows: list[Row] = []
        self._clusters: dict[Cluster, int] = {}
        self._edges: dict[tuple[int, int], int] = {}
        none = np.zeros(0, dtype=np.int64)
        self._flat = (none, np.zeros(0), none, np.zeros(0))
        self.shared: list[int] = []
        """Numbers of the rows that hold at every node: clusters and class rows."""

    def __getitem__(self, number: int) -> Row:
        return self._rows[number]

    def __len__(self) -> int:
        return len(self._rows)

    def cluster(self, members: Cluster) -> int:
        """Number of a cluster row."""
        with self._lock:
            if members not in self._clusters:
                made = cluster_row(self._candidates, members)
                row = Row(made.index, np.full(len(made.index), made.coefficient), made.bound)
                self._clusters[members] = self._append(row, shared=True)
            return self._clusters[members]

    def edge(self, i: int, j: int) -> int:
        """Number of the row "edge {i, j} is present"."""
        key = (min(i, j), max(i, j))
        with self._lock:
            if key not in self._edges:
                index = np.concatenate([self._instance.holding(i, j), self._instance.holding(j, i)])
                index.sort()
                self._edges[key] = self._append(Row(index, np.ones(len(index)), 1.0), shared=False)
            return self._edges[key]

    def class_rows(self) -> list[int]:
        """Numbers of the class rows, made on the first call."""
        if not self._instance.restricted:
            return []
        return [
            self._append(row, shared=True)
            for j in range(1, self._instance.n_variables)
            if (row := self._class_row(j)) is not None
        ]

    def _class_row(self, feature: int) -> Row | None:
        """None where nothing would be forbidden."""
        with_feature = self._instance.holding(0, feature)
        if len(with_feature) == 0:
            return None
        first = self._instance.group(feature).start
        is_empty = self._instance.members[first, 0] < 0  # smallest set first
        empty = np.array([first] if is_empty else [], dtype=np.int64)
        index = np.concatenate([with_feature, empty])
        signs = np.concatenate([-np.ones(len(with_feature)), np.ones(len(empty))])
        return Row(index, signs, 0.0)

    def _append(self, row: Row, *, shared: bool) -> int:
        self._rows.append(row)
        if shared:
            self.shared.append(len(self._rows) - 1)
        return len(self._rows) - 1

    def violations(self, point: FloatArray) -> FloatArray:
        """rhs - left-hand side of every shared row so far, in the order of ``shared``."""
        with self._lock:
            index, coefficient, starts, rhs = self._flattened()
        if len(starts) == 0:
            return np.zeros(0)
        return np.asarray(rhs - np.add.reduceat(coefficient * point[index], starts))

    def _flattened(self) -> tuple[IntArray, FloatArray, IntArray, FloatArray]:
        """Shared rows one after the other: indices, coefficients, starts, right-hand sides.

        Each row ends in an extra entry of coefficient zero, so that none is empty.
        """
        index, coefficient, starts, rhs = self._flat
        new = [self._rows[number] for number in self.shared[len(starts) :]]
        if new:
            lengths = [len(row.index) + 1 for row in new]
            first = len(index) + np.cumsum([0, *lengths[:-1]])
            nothing = np.zeros(1, dtype=np.int64)
            parts = [part for row in new for part in (row.index, nothing)]
            signs = [part for row in new for part in (row.coefficient, np.zeros(1))]
            self._flat = (
                np.concatenate([index, *parts]),
                np.concatenate([coefficient, *signs]),
                np.concatenate([starts, first]),
                np.concatenate([rhs, [row.rhs for row in new]]),
            )
        return self._flat

    def combine(self, numbers: tuple[int, ...], multipliers: FloatArray) -> FloatArray:
        """rows^T y, (K,)."""
        total = np.zeros(self._instance.n_candidates)
        for number, multiplier in zip(numbers, multipliers, strict=True):
            if multiplier > 0:
                row = self._rows[number]
                total[row.index] += multiplier * row.coefficient
        return total

    def rhs(self, numbers: tuple[int, ...]) -> FloatArray:
        """Right-hand sides."""
        return np.array([self._rows[number].rhs for number in numbers])
