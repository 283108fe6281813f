"""The accuracy comparison as Markdown, from the records of one or several journals.

A data set counts where every listed method has every fold. Its figure is the mean over the folds;
means and mean ranks (1 is best, ties share the mean of their places) are over those data sets. One
method against another: all data sets that both have; won, tied and lost by the set's figure, and
the two-sided p-value of Wilcoxon's signed-rank test over the sets that are not tied.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata, wilcoxon

from experiments.contenders import CONTENDERS
from experiments.records import Record, Unit
from marginbn.exceptions import InputError

HIGHER_IS_BETTER = {"accuracy": True, "log_loss": False, "brier": False}
SAME = 1e-9
"""Figures closer than this are tied: rounding, not skill."""

Records = dict[Unit, Record]
Figures = dict[tuple[str, str], float]
"""Mean over the folds by (data set, method), where all folds are there."""


def check_same_rows(records: Records) -> None:
    """All methods must speak of the same rows."""
    seen: dict[tuple[str, int], tuple[Unit, str]] = {}
    for unit, record in records.items():
        first, digest = seen.setdefault(
            (unit.dataset, unit.fold), (unit, record["split"]["digest"])
        )
        if record["split"]["digest"] != digest:
            raise InputError(
                f"RECORDS: {unit} and {first} were tested on other rows; give records of one seed"
            )


def mean_over_folds(records: Records, entry: Sequence[str]) -> Figures:
    """An entry of the records, such as ("seconds", "fit"), averaged over complete sets of folds."""
    found: dict[tuple[str, str], list[float]] = {}
    n_folds: dict[str, int] = {}
    for unit, record in records.items():
        n_folds[unit.dataset] = record["split"]["folds_run"]
        value: Any = record
        for name in entry:
            value = value[name]
        if value is not None:
            found.setdefault((unit.dataset, unit.method), []).append(value)
    return {
        key: float(np.mean(values))
        for key, values in found.items()
        if len(values) == n_folds[key[0]]
    }


def methods_with(figures: Figures, methods: Iterable[str]) -> list[str]:
    """Those of the methods that have the figure at all: an SVM has no log loss."""
    return [m for m in methods if any(method == m for _, method in figures)]


def common_sets(figures: Figures, methods: Sequence[str]) -> list[str]:
    """Data sets where all the methods have a figure."""
    return sorted({s for s, _ in figures if all((s, m) in figures for m in methods)})


def mean_ranks(figures: Figures, methods: Sequence[str], higher: bool) -> dict[str, float]:
    """Mean rank of each method over the common data sets."""
    sets = common_sets(figures, methods)
    if not sets:
        return {}
    values = np.array([[figures[s, m] for m in methods] for s in sets])
    values = np.round(values / SAME) * (-1 if higher else 1)  # ties are ties
    return dict(zip(methods, rankdata(values, axis=1).mean(axis=0).tolist(), strict=True))


@dataclass(frozen=True)
class Duel:
    """One method against another; ``p_value`` None where all sets are tied."""

    won: int
    tied: int
    lost: int
    p_value: float | None

    def __str__(self) -> str:
        p_value = "" if self.p_value is None else f" ({_p_text(self.p_value)})"
        return f"{self.won}/{self.tied}/{self.lost}{p_value}"


def _p_text(p_value: float) -> str:
    return "<0.001" if p_value < 0.001 else f"{p_value:.3f}"


def duel(figures: Figures, one: str, other: str, higher: bool) -> Duel:
    """Won, tied and lost by `one`."""
    sets = common_sets(figures, [one, other])
    gains = np.array([figures[s, one] - figures[s, other] for s in sets]) * (1 if higher else -1)
    decided = gains[np.abs(gains) > SAME]
    won, lost = int((decided > 0).sum()), int((decided < 0).sum())
    p_value = float(wilcoxon(decided).pvalue) if len(decided) else None
    return Duel(won, len(sets) - won - lost, lost, p_value)


def render(records: Records, methods: Sequence[str], of: str) -> str:
    """The whole table."""
    absent = sorted({of, *methods} - {unit.method for unit in records})
    if absent:
        raise InputError(f"RECORDS has no record of {', '.join(absent)}")
    records = {unit: record for unit, record in records.items() if unit.method in {of, *methods}}
    check_same_rows(records)
    measures = {m: mean_over_folds(records, (m,)) for m in HIGHER_IS_BETTER}
    seconds = {s: mean_over_folds(records, ("seconds", s)) for s in ("fit", "predict")}
    parts = [
        _summary(measures, seconds, methods),
        _duels(measures, methods, of),
        *(_by_set(measures, m, methods) for m in ("accuracy", "log_loss")),
    ]
    return "\n\n".join(parts) + "\n"


def _summary(measures: dict[str, Figures], seconds: dict[str, Figures], methods: Any) -> str:
    sets = common_sets(measures["accuracy"], methods)
    everything = sorted({s for s, _ in measures["accuracy"]})
    lines = [f"Means and mean ranks over the {len(sets)} data sets that all {len(methods)} have."]
    if len(sets) < len(everything):
        lines[0] += f" Incomplete: {', '.join(s for s in everything if s not in sets)}."
    columns = ["accuracy", "rank", "log loss", "rank", "Brier", "fit s", "predict s"]
    ranks = {
        m: mean_ranks(figures, methods_with(figures, methods), HIGHER_IS_BETTER[m])
        for m, figures in measures.items()
    }
    rows = []
    for method in methods:
        accuracy, log_loss, brier, fit, predict = (
            _mean(figures, sets, method) for figures in (*measures.values(), *seconds.values())
        )
        rows.append(
            [
                CONTENDERS[method].label,
                _text(None if accuracy is None else 100 * accuracy, 2),
                _text(ranks["accuracy"].get(method), 2),
                _text(log_loss, 4),
                _text(ranks["log_loss"].get(method), 2),
                _text(brier, 4),
                _text(fit, 2),
                _text(predict, 3),
            ]
        )
    return "\n".join([*lines, "", markdown(["method", *columns], rows)])


def _mean(figures: Figures, sets: list[str], method: str) -> float | None:
    values = [figures[s, method] for s in sets if (s, method) in figures]
    return float(np.mean(values)) if sets and len(values) == len(sets) else None


def _duels(measures: dict[str, Figures], methods: Sequence[str], of: str) -> str:
    rows = []
    for other in (m for m in methods if m != of):
        row = [CONTENDERS[other].label, str(len(common_sets(measures["accuracy"], [of, other])))]
        for name in ("accuracy", "log_loss"):
            has_figure = len(methods_with(measures[name], [of, other])) == 2
            result = duel(measures[name], of, other, HIGHER_IS_BETTER[name])
            row.append(str(result) if has_figure else "-")
        rows.append(row)
    head = f"{CONTENDERS[of].label}: sets won/tied/lost against each, with Wilcoxon's p."
    return f"{head}\n\n" + markdown(["against", "sets", "accuracy", "log loss"], rows)


def _by_set(measures: dict[str, Figures], measure: str, methods: Sequence[str]) -> str:
    figures = measures[measure]
    factor, digits, title = {
        "accuracy": (100, 2, "Accuracy in per cent"),
        "log_loss": (1, 4, "Log loss"),
    }[measure]
    shown = methods_with(figures, methods)
    rows = []
    for name in sorted({s for s, _ in figures}):
        values = [figures.get((name, m)) for m in shown]
        rows.append([name, *(_text(None if v is None else factor * v, digits) for v in values)])
    return f"{title} by data set.\n\n" + markdown(
        ["data set", *(CONTENDERS[m].label for m in shown)], rows
    )


def _text(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, numbers to the right."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, rule, *rows))
