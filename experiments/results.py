"""From records to figures: accuracies with intervals by data set, method and seed; who beats whom.

Intervals and tests are the paper's. Over folds: Student t interval and one-sided paired t test.
On one test set: 1.96 sqrt(p (1 - p) / n) and a one-sided binomial test on the rows on which
exactly one of the two is right.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments import protocol
from experiments.methods import METHODS, SAME_PROBLEM
from experiments.records import Record, unit_of, unpack_bits
from experiments.significance import binomial_test, paired_t_test
from marginbn.classifiers.evaluation import binomial_interval, t_interval
from marginbn.exceptions import InputError

SIGNIFICANCE = {"68 %": 0.32, "95 %": 0.05}
"""Levels of table 3 and the p-value that a win must stay below."""
MEASURES = ("accuracy", "log_loss", "brier")
HIGHER_IS_BETTER = {"accuracy": True, "log_loss": False, "brier": False}


@dataclass(frozen=True, eq=False)
class Result:
    """One method on one data set with one seed, all folds done."""

    measures: dict[str, tuple[float, ...]]
    correct: tuple[NDArray[np.bool_], ...]
    digests: tuple[str, ...]
    seconds: dict[str, float]

    @property
    def accuracies(self) -> tuple[float, ...]:
        return self.measures["accuracy"]

    def mean(self, measure: str = "accuracy") -> float:
        """Over the folds."""
        return float(np.mean(self.measures[measure]))

    @property
    def half_width(self) -> float:
        """Of the 95 % interval of the accuracy."""
        if len(self.accuracies) > 1:
            return t_interval(self.accuracies)[1]
        return binomial_interval(self.accuracies[0], len(self.correct[0]))

    def p_value_over(self, other: Result) -> float:
        """One-sided p-value of being better than ``other`` on the same rows."""
        if self.digests != other.digests:
            raise InputError("records of different splits cannot be compared; run them again")
        if len(self.accuracies) > 1:
            return paired_t_test(self.accuracies, other.accuracies)
        mine, theirs = self.correct[0], other.correct[0]
        return binomial_test(int((mine & ~theirs).sum()), int((mine ^ theirs).sum()))


BySeed = dict[int, Result]
Results = dict[tuple[str, str], BySeed]
"""By data set and method; no entry is empty."""


def collect(records: Iterable[Record]) -> Results:
    """Results of all (data set, method, seed) of which every fold has its record.

    With two classes SBM is SM and is not run; here it gets SM's results.
    """
    folds: dict[tuple[str, str, int], list[Record]] = defaultdict(list)
    for record in records:
        unit = unit_of(record)
        if unit.kind == "accuracy" and unit.rows is None:
            folds[unit.dataset, unit.method, unit.seed].append(record)
    results: Results = defaultdict(dict)
    for (dataset, method, seed), group in sorted(folds.items()):
        if is_complete(group):
            results[dataset, method][seed] = _result(group)
    for name, spec in protocol.read_specs().items():
        for twin, original in SAME_PROBLEM.items():
            if spec.margins_are_one and (name, original) in results and twin in METHODS:
                results[name, twin] = results[name, original]
    return dict(results)


def is_complete(group: list[Record]) -> bool:
    """Whether all folds that were to be run are there."""
    wanted = group[0]["split"]["folds_run"]
    return {unit_of(r).fold for r in group} == set(range(wanted))


def _result(group: list[Record]) -> Result:
    ordered = sorted(group, key=lambda r: unit_of(r).fold)
    return Result(
        {measure: tuple(r[measure] for r in ordered) for measure in MEASURES},
        tuple(unpack_bits(r["correct"], r["n_test"]) for r in ordered),
        tuple(r["split"]["digest"] for r in ordered),
        {name: sum(r["seconds"][name] for r in ordered) for name in ("fit", "predict", "cpu")},
    )


# --- over seeds ---


def mean_over_seeds(runs: BySeed, measure: str = "accuracy") -> float:
    return float(np.mean([result.mean(measure) for result in runs.values()]))


def half_width_over_seeds(runs: BySeed) -> float:
    """What one run's interval is on average: it does not shrink with the number of seeds."""
    return float(np.mean([result.half_width for result in runs.values()]))


def seed_deviation(runs: BySeed, measure: str = "accuracy") -> float | None:
    """Standard deviation of the mean over folds between seeds; None for fewer than two."""
    means = [result.mean(measure) for result in runs.values()]
    return float(np.std(means, ddof=1)) if len(means) > 1 else None


def common_seeds(results: Results, dataset: str, methods: Iterable[str]) -> list[int]:
    """Seeds that all the methods have on this data set."""
    having = [set(results.get((dataset, m), {})) for m in methods]
    return sorted(set.intersection(*having)) if having else []


def paired_runs(
    results: Results, dataset: str, method: str, rival: str
) -> list[tuple[Result, Result]]:
    """The two methods' results, seed by seed."""
    seeds = common_seeds(results, dataset, (method, rival))
    return [(results[dataset, method][s], results[dataset, rival][s]) for s in seeds]


@dataclass(frozen=True)
class Wins:
    """On how many data sets one method beats another, for every seed.

    A data set with fewer seeds than the others counts with its first one in the remaining ones.
    """

    counts: tuple[int, ...]
    datasets: tuple[str, ...]

    @property
    def mean(self) -> float:
        return float(np.mean(self.counts)) if self.counts else 0.0

    @property
    def spread(self) -> tuple[int, int]:
        return min(self.counts, default=0), max(self.counts, default=0)


def count_wins(
    results: Results, method: str, rival: str, datasets: Iterable[str], level: float
) -> Wins:
    """Wins at a level over the data sets on which the two have a seed in common."""
    won = {}
    for name in datasets:
        pairs = paired_runs(results, name, method, rival)
        if pairs:
            won[name] = [one.p_value_over(other) < level for one, other in pairs]
    n_seeds = max(map(len, won.values()), default=0)
    counts = [sum(w[k] if k < len(w) else w[0] for w in won.values()) for k in range(n_seeds)]
    return Wins(tuple(counts), tuple(won))


# --- one figure per data set and method, on the rows that all methods share ---

Figures = dict[tuple[str, str], float]


def shared_figures(results: Results, methods: Sequence[str], measure: str) -> Figures:
    """Mean over the seeds that all of the methods have, on the data sets where there is one."""
    figures: Figures = {}
    for name in dict.fromkeys(dataset for dataset, _ in results):
        seeds = common_seeds(results, name, methods)
        for method in methods if seeds else ():
            runs = results[name, method]
            _check_same_rows(name, method, runs, results[name, methods[0]], seeds)
            figures[name, method] = float(np.mean([runs[s].mean(measure) for s in seeds]))
    return figures


def _check_same_rows(name: str, method: str, one: BySeed, other: BySeed, seeds: list[int]) -> None:
    if any(one[s].digests != other[s].digests for s in seeds):
        raise InputError(f"{method} was tested on other rows of {name}; run it again")


def common_sets(figures: Figures, methods: Sequence[str]) -> list[str]:
    """Data sets where all the methods have a figure, in the order of the figures."""
    names = dict.fromkeys(name for name, _ in figures)
    return [name for name in names if all((name, m) in figures for m in methods)]
