"""From records to figures: mean accuracies with intervals, and who beats whom.

Intervals and tests are the paper's. Over folds: Student t interval and one-sided paired t test.
On one test set: 1.96 sqrt(p (1 - p) / n) and a one-sided binomial test on the rows on which
exactly one of the two is right.
"""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.protocol import HERE
from experiments.records import Record, unit_of, unpack_bits
from marginbn.classifiers.evaluation import (
    binomial_interval,
    binomial_test,
    paired_t_test,
    t_interval,
)
from marginbn.exceptions import InputError

Key = tuple[str, str]
"""Data set and method."""

SIGNIFICANCE = {"68 %": 0.32, "95 %": 0.05}
"""Levels of table 3 and the p-value that a win must stay below."""


@dataclass(frozen=True, eq=False)
class Result:
    """One method on one data set, all folds done; figures in per cent."""

    accuracies: tuple[float, ...]
    correct: tuple[NDArray[np.bool_], ...]
    digests: tuple[str, ...]
    seconds: float

    @property
    def mean(self) -> float:
        return 100 * float(np.mean(self.accuracies))

    @property
    def half_width(self) -> float:
        """Of the 95 % interval."""
        if len(self.accuracies) > 1:
            return 100 * t_interval(self.accuracies)[1]
        return 100 * binomial_interval(self.accuracies[0], len(self.correct[0]))

    def p_value_over(self, other: Result) -> float:
        """One-sided p-value of being better than ``other`` on the same rows."""
        if self.digests != other.digests:
            raise InputError("records of different splits cannot be compared; run them again")
        if len(self.accuracies) > 1:
            return paired_t_test(self.accuracies, other.accuracies)
        mine, theirs = self.correct[0], other.correct[0]
        return binomial_test(int((mine & ~theirs).sum()), int((mine ^ theirs).sum()))


def collect(records: Iterable[Record]) -> dict[Key, Result]:
    """Results of all (data set, method) pairs of which every fold has its record."""
    folds: dict[Key, list[Record]] = defaultdict(list)
    for record in records:
        unit = unit_of(record)
        if not unit.is_table1:
            folds[unit.dataset, unit.method].append(record)
    return {key: _result(group) for key, group in folds.items() if is_complete(group)}


def is_complete(group: list[Record]) -> bool:
    """Whether all folds that were to be run are there."""
    wanted = group[0]["split"]["folds_run"]
    return {unit_of(r).fold for r in group} == set(range(wanted))


def _result(group: list[Record]) -> Result:
    ordered = sorted(group, key=lambda r: unit_of(r).fold)
    return Result(
        tuple(r["accuracy"] for r in ordered),
        tuple(unpack_bits(r["correct"], r["n_test"]) for r in ordered),
        tuple(r["split"]["digest"] for r in ordered),
        sum(r["seconds"]["total"] for r in ordered),
    )


def count_wins(
    results: dict[Key, Result], method: str, rival: str, datasets: Iterable[str]
) -> tuple[int, int, int]:
    """Wins at 68 % and at 95 %, and on how many data sets the two could be compared."""
    p_values = [
        results[name, method].p_value_over(results[name, rival])
        for name in datasets
        if (name, method) in results and (name, rival) in results
    ]
    counts = [sum(p < limit for p in p_values) for limit in SIGNIFICANCE.values()]
    return counts[0], counts[1], len(p_values)


def mean_ranks(
    results: dict[Key, Result], methods: list[str], datasets: Iterable[str]
) -> tuple[dict[str, float], int]:
    """Mean rank of each method, 1 the best, over the data sets that all methods finished."""
    from scipy.stats import rankdata

    common = [n for n in datasets if all((n, m) in results for m in methods)]
    if not common:
        return {}, 0
    table = [[-round(results[n, m].mean, 6) for m in methods] for n in common]
    ranks = rankdata(table, axis=1).mean(axis=0)
    return dict(zip(methods, map(float, ranks), strict=True)), len(common)


def read_paper(path: Path = HERE / "paper_numbers.toml") -> dict[str, Any]:
    """The published tables."""
    return tomllib.loads(path.read_text(encoding="utf-8"))
