"""Compiled sums over structural rows that are stored one after the other."""

from __future__ import annotations

from typing import NamedTuple

from marginbn.solvers.branch_cut.arrays import FloatArray, IntArray
from marginbn.solvers.compile import entry


class FlatRows(NamedTuple):
    """Row r has the entries ``starts[r]`` to ``starts[r + 1]``."""

    starts: IntArray  # (R + 1,) or longer
    columns: IntArray  # (E,) or longer
    coefficient: FloatArray


@entry
def activities(rows: FlatRows, point: FloatArray, found: FloatArray) -> None:
    """Left-hand sides at a point (K,), written to ``found`` (R,)."""
    for r in range(found.size):
        total = 0.0
        for e in range(rows.starts[r], rows.starts[r + 1]):
            total += rows.coefficient[e] * point[rows.columns[e]]
        found[r] = total


@entry
def combine(rows: FlatRows, numbers: IntArray, multipliers: FloatArray, total: FloatArray) -> None:
    """Add y_r times each listed row to ``total`` (K,); multipliers of zero are skipped."""
    for a in range(numbers.size):
        y = multipliers[a]
        if y > 0:
            for e in range(rows.starts[numbers[a]], rows.starts[numbers[a] + 1]):
                total[rows.columns[e]] += y * rows.coefficient[e]
