"""The paper's tables, and what its table 2 says about its wins on a part of the data sets.

Table 3 counts wins over all data sets. Ours may lack some, so counts are compared on common sets;
for these the printed means and half widths bound what the paper's tests can have said.

Cross-validated sets: a printed half width is t s / sqrt(5), with s the standard deviation of the
fold accuracies and t Student's quantile. Let d be the difference of the two means and s1, s2 the
deviations. The deviation of the fold differences lies between |s1 - s2| and s1 + s2
(Cauchy-Schwarz), so the paired t statistic lies between

    sqrt(5) d / (s1 + s2)   and   sqrt(5) d / |s1 - s2|                               for d > 0.

Test sets: with k1 and k2 right rows of n, D = k1 - k2, and c rows on which only the second is
right, 0 <= c <= min(k2, n - k1), the binomial test sees D + c wins among D + 2 c rows. Its p-value
grows with c.

Printed figures are rounded, which widens both ranges; equal printed means count as equal.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from scipy.stats import t as student

from experiments.protocol import HERE, N_FOLDS, Spec, read_specs
from experiments.significance import binomial_test

ROUNDING = 0.005
"""Of printed per cents."""


@lru_cache(maxsize=1)
def read_paper(path: Path = HERE / "paper_numbers.toml") -> dict[str, Any]:
    """The published tables; not to be changed."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Range:
    """At least and at most."""

    least: int
    most: int

    def __str__(self) -> str:
        return str(self.least) if self.least == self.most else f"{self.least}-{self.most}"


def win(spec: Spec, one: list[float], other: list[float], level: float) -> Range:
    """0 or 1: whether `one`, mean and half width in per cent, beats `other` on a data set."""
    if one[0] <= other[0]:
        return Range(0, 0)
    p_least, p_most = (
        _fold_p_values(one, other) if spec.is_cross_validated else _test_p_values(spec, one, other)
    )
    return Range(int(p_most < level), int(p_least < level))


def _fold_p_values(one: list[float], other: list[float]) -> tuple[float, float]:
    to_deviation = math.sqrt(N_FOLDS) / student.ppf(0.975, N_FOLDS - 1)
    s1, s2 = one[1] * to_deviation, other[1] * to_deviation
    slack = 2 * ROUNDING * to_deviation
    gain, root = one[0] - other[0], math.sqrt(N_FOLDS)
    narrow = max(abs(s1 - s2) - slack, 1e-12)
    largest = root * (gain + 2 * ROUNDING) / narrow
    smallest = root * max(gain - 2 * ROUNDING, 0.0) / max(s1 + s2 + slack, 1e-12)
    return float(student.sf(largest, N_FOLDS - 1)), float(student.sf(smallest, N_FOLDS - 1))


def _test_p_values(spec: Spec, one: list[float], other: list[float]) -> tuple[float, float]:
    n_rows = spec.test_rows or (spec.expect or (0, 0))[1]
    k1, k2 = (_counts(mean, n_rows) for mean in (one[0], other[0]))
    most, least = k1.most - k2.least, k1.least - k2.most
    against = min(k2.most, n_rows - k1.least)
    largest = binomial_test(least + against, least + 2 * against) if least > 0 else 1.0
    return binomial_test(most, most), max(largest, binomial_test(max(least, 0), max(least, 0)))


def _counts(mean: float, n_rows: int) -> Range:
    """Right rows that print as this per cent."""
    least = math.ceil((mean - ROUNDING) / 100 * n_rows - 1e-9)
    most = math.floor((mean + ROUNDING) / 100 * n_rows + 1e-9)
    nearest = round(mean / 100 * n_rows)
    return Range(min(least, nearest), max(most, nearest))


def wins_allowed(method: str, rival: str, level: float, names: Iterable[str]) -> Range:
    """Wins on these data sets that table 2 alone allows."""
    table, specs = read_paper()["table2"], read_specs()
    ranges = [
        win(specs[n], table[n][method], table[n][rival], level)
        for n in names
        if method in table[n] and rival in table[n]
    ]
    return Range(sum(r.least for r in ranges), sum(r.most for r in ranges))


def wins_on(method: str, rival: str, place: int, level: float, names: Iterable[str]) -> Range:
    """Wins on these data sets that tables 2 and 3 together allow; `place` of the level in table 3.

    On the other sets the paper won at least and at most so many, and the total is printed.
    """
    wanted = set(names)
    total = read_paper()["table3"][method][rival][place]
    here = wins_allowed(method, rival, level, wanted)
    elsewhere = wins_allowed(method, rival, level, set(read_specs()) - wanted)
    return Range(max(here.least, total - elsewhere.most), min(here.most, total - elsewhere.least))


def sets_of(method: str, rival: str) -> list[str]:
    """Data sets on which the paper has both."""
    return [n for n, row in read_paper()["table2"].items() if method in row and rival in row]
