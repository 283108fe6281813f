"""Which of many methods differ, over many data sets (Demsar 2006; Benavoli, Corani, Mangili 2016).

Friedman's test asks whether the mean ranks could come from equal methods. Which pairs differ is
asked by Wilcoxon's signed-rank test for every pair, with Holm's correction for their number: the
m p-values in rising order p_(1), p_(2), ... are compared with level / m, level / (m - 1), ... up to
the first that is not below. Nemenyi's critical difference of mean ranks is told beside it; it is
weaker and depends on which other methods take part.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, studentized_range, wilcoxon

from experiments.results import Figures, common_sets

LEVEL = 0.05
SAME = 1e-9
"""Figures closer than this are tied: rounding, not skill."""


@dataclass(frozen=True)
class Duel:
    """One method against another over data sets; ``p_value`` None where all sets are tied."""

    won: int
    tied: int
    lost: int
    p_value: float | None

    def __str__(self) -> str:
        p_value = "" if self.p_value is None else f" ({p_text(self.p_value)})"
        return f"{self.won}/{self.tied}/{self.lost}{p_value}"


def p_text(p_value: float) -> str:
    return "<0.001" if p_value < 0.001 else f"{p_value:.3f}"


def duel(figures: Figures, one: str, other: str, higher: bool) -> Duel:
    """Won, tied and lost by `one`; the two-sided p-value over the sets that are not tied."""
    sets = common_sets(figures, [one, other])
    gains = np.array([figures[s, one] - figures[s, other] for s in sets]) * (1 if higher else -1)
    decided = gains[np.abs(gains) > SAME]
    won, lost = int((decided > 0).sum()), int((decided < 0).sum())
    p_value = float(wilcoxon(decided).pvalue) if len(decided) else None
    return Duel(won, len(sets) - won - lost, lost, p_value)


def mean_ranks(figures: Figures, methods: Sequence[str], higher: bool) -> dict[str, float]:
    """Mean rank of each method over the common data sets, 1 the best; ties share."""
    sets = common_sets(figures, methods)
    if not sets:
        return {}
    ranks = rankdata(_values(figures, methods, sets, higher), axis=1).mean(axis=0)
    return dict(zip(methods, ranks.tolist(), strict=True))


def _values(figures: Figures, methods: Sequence[str], sets: list[str], higher: bool) -> np.ndarray:
    """The smaller the better, (sets, methods), rounded so that ties are ties."""
    values = np.array([[figures[s, m] for m in methods] for s in sets])
    return np.round(values / SAME) * (-1 if higher else 1)


@dataclass(frozen=True)
class Comparison:
    """Methods from best to worst with their mean ranks, and the pairs that differ.

    ``friedman`` is the p-value of equal methods; ``nemenyi`` the critical difference of mean ranks;
    ``differing`` holds pairs of names, the better first.
    """

    ranks: dict[str, float]
    n_sets: int
    friedman: float
    nemenyi: float
    differing: frozenset[tuple[str, str]]

    def cliques(self) -> list[tuple[int, int]]:
        """Longest runs (first, last) of neighbours in rank no two of which differ."""
        names = list(self.ranks)
        runs: list[tuple[int, int]] = []
        for first in range(len(names)):
            last = first
            while last + 1 < len(names) and not any(
                (names[i], names[last + 1]) in self.differing for i in range(first, last + 1)
            ):
                last += 1
            if last > first and (not runs or last > runs[-1][1]):
                runs.append((first, last))
        return runs


def compare(figures: Figures, methods: Sequence[str], higher: bool) -> Comparison | None:
    """None with fewer than three methods or data sets."""
    sets = common_sets(figures, methods)
    if len(sets) < 3 or len(methods) < 3:
        return None
    values = _values(figures, methods, sets, higher)
    ranks = mean_ranks(figures, methods, higher)
    ordered = dict(sorted(ranks.items(), key=lambda item: item[1]))
    return Comparison(
        ordered,
        len(sets),
        float(friedmanchisquare(*values.T).pvalue),
        critical_difference(len(methods), len(sets)),
        _differing(figures, list(ordered), sets, higher),
    )


def _differing(
    figures: Figures, methods: list[str], sets: list[str], higher: bool
) -> frozenset[tuple[str, str]]:
    """Pairs whose difference survives Holm's correction."""
    shared = {key: value for key, value in figures.items() if key[0] in sets}
    pairs = list(itertools.combinations(methods, 2))
    duels = {pair: duel(shared, *pair, higher) for pair in pairs}
    p_values = {pair: 1.0 if d.p_value is None else d.p_value for pair, d in duels.items()}
    return frozenset(pair for pair in holm(p_values))


def holm(p_values: dict[tuple[str, str], float], level: float = LEVEL) -> list[tuple[str, str]]:
    """The hypotheses that are rejected together at this level."""
    rejected = []
    for place, pair in enumerate(sorted(p_values, key=lambda p: p_values[p])):
        if p_values[pair] >= level / (len(p_values) - place):
            break
        rejected.append(pair)
    return rejected


def critical_difference(n_methods: int, n_sets: int, level: float = LEVEL) -> float:
    """Nemenyi: q / sqrt(2) sqrt(k (k + 1) / (6 n)), q of the studentised range."""
    quantile = studentized_range.ppf(1 - level, n_methods, np.inf) / math.sqrt(2)
    return float(quantile * math.sqrt(n_methods * (n_methods + 1) / (6 * n_sets)))


def statement(comparison: Comparison, of: str, labels: dict[str, str], measure: str) -> str:
    """What may be claimed about one method, in a sentence."""
    better = [labels[b] for a, b in sorted(comparison.differing) if a == of]
    worse = [labels[a] for a, b in sorted(comparison.differing) if b == of]
    rest = [labels[m] for m in comparison.ranks if m != of and labels[m] not in (*better, *worse)]
    place = list(comparison.ranks).index(of) + 1
    return (
        f"{measure}, {comparison.n_sets} data sets: {labels[of]} has mean rank "
        f"{comparison.ranks[of]:.2f}, place {place} of {len(comparison.ranks)}; better than "
        f"{', '.join(better) or 'none'}; worse than {', '.join(worse) or 'none'}; no difference "
        f"shown to {', '.join(rest) or 'none'} (Wilcoxon with Holm's correction, 5 %; Friedman "
        f"p {p_text(comparison.friedman)})."
    )
