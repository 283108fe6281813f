"""The extended comparison: accuracy, log loss and Brier score of all methods.

On each data set the seeds that all methods have are used, so all are judged on the same rows. Means
and mean ranks (1 is best, ties share) are over the data sets that all methods have. One method
against another: won, tied and lost by the set's figure, with Wilcoxon's two-sided p-value.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from experiments.critical import compare, duel, mean_ranks, statement
from experiments.methods import LABELS, METHODS
from experiments.protocol import read_specs
from experiments.render import MISSING, Cell, Grid
from experiments.results import (
    HIGHER_IS_BETTER,
    MEASURES,
    Results,
    common_sets,
    shared_figures,
)

NAMES = {"accuracy": "Accuracy in %", "log_loss": "Log loss", "brier": "Brier score"}
OURS = ("bn", "sm")
"""Whose wins are counted: the default and the classifier of the paper."""


def methods_of(results: Results, methods: Sequence[str] | None = None) -> list[str]:
    """The methods that have a result, in the order of the registry; `methods` if given."""
    found = {method for _, method in results}
    return [m for m in (methods or METHODS) if m in found]


def grids(results: Results, methods: Sequence[str] | None = None) -> dict[str, Grid]:
    """All tables of the comparison by name."""
    methods = methods_of(results, methods)
    if not methods:
        return {}
    made = {"extended": overview(results, methods)}
    if len(methods) > 1:
        made |= {f"duels-{own}": duels(results, methods, own) for own in OURS if own in methods}
    return made | {measure: by_set(results, methods, measure) for measure in MEASURES}


def overview(results: Results, methods: Sequence[str]) -> Grid:
    """One line per method: means and ranks over the data sets that all have."""
    figures = {m: shared_figures(results, methods, m) for m in MEASURES}
    sets = common_sets(figures["accuracy"], methods)
    ranks = {m: mean_ranks(figures[m], methods, HIGHER_IS_BETTER[m]) for m in MEASURES}
    rows = []
    for method in methods:
        cells = []
        for measure, factor, digits in (("accuracy", 100, 2), ("log_loss", 1, 4), ("brier", 1, 4)):
            values = [figures[measure][name, method] for name in sets]
            cells.append(_cell(factor * float(np.mean(values)) if sets else None, digits))
            if measure != "brier":
                cells.append(_cell(ranks[measure].get(method), 2))
        cells += [_cell(_mean_seconds(results, sets, method, s), 2) for s in ("fit", "predict")]
        rows.append((LABELS[method], tuple(cells)))
    absent = [n for n in read_specs() if n not in sets]
    notes = [f"Over the {len(sets)} data sets that all {len(methods)} methods have."]
    if absent:
        notes.append(f"Left out, since a method lacks them: {', '.join(absent)}.")
    notes.append(
        "Seconds are those of all folds of a data set together, validation included, on one thread."
    )
    for measure in ("accuracy", "log_loss"):
        result = compare(figures[measure], methods, HIGHER_IS_BETTER[measure])
        if result is not None:
            of = NAMES[measure].removesuffix(" in %")
            notes += [statement(result, own, LABELS, of) for own in OURS if own in methods]
    header = ("method", "accuracy", "rank", "log loss", "rank", "Brier", "fit s", "predict s")
    return Grid("Extended comparison", header, tuple(rows), tuple(notes))


def _mean_seconds(results: Results, sets: list[str], method: str, stage: str) -> float | None:
    values = [r.seconds[stage] for name in sets for r in results[name, method].values()]
    return float(np.mean(values)) if values else None


def duels(results: Results, methods: Sequence[str], own: str) -> Grid:
    """One of ours against every other method on the data sets that the two have."""
    rows = []
    for other in methods:
        if other == own:
            continue
        cells = []
        for measure in ("accuracy", "log_loss"):
            figures = shared_figures(results, [own, other], measure)
            if not cells:
                cells.append(Cell(str(len(common_sets(figures, [own, other])))))
            cells.append(Cell(str(duel(figures, own, other, HIGHER_IS_BETTER[measure]))))
        rows.append((LABELS[other], tuple(cells)))
    title = f"{LABELS[own]} against each: data sets won/tied/lost (Wilcoxon's p)"
    return Grid(title, ("against", "data sets", "accuracy", "log loss"), tuple(rows))


def by_set(results: Results, methods: Sequence[str], measure: str) -> Grid:
    """One line per data set; the best in bold."""
    factor, digits = (100, 2) if measure == "accuracy" else (1, 4)
    sign = 1 if HIGHER_IS_BETTER[measure] else -1
    rows = []
    for name in read_specs():
        present = [m for m in methods if (name, m) in results]
        figures = shared_figures(
            {k: v for k, v in results.items() if k[0] == name}, present, measure
        )
        values = {m: round(factor * figures[name, m], digits) for m in present if figures}
        best = max((sign * v for v in values.values()), default=None)
        rows.append(
            (
                name,
                tuple(
                    Cell(f"{values[m]:.{digits}f}", bold=sign * values[m] == best)
                    if m in values
                    else Cell()
                    for m in methods
                ),
            )
        )
    title = f"{NAMES[measure]} by data set, all methods"
    notes = ("Mean over the seeds that all methods of the row have.",)
    return Grid(title, ("data set", *(LABELS[m] for m in methods)), tuple(rows), notes)


def _cell(value: float | None, digits: int) -> Cell:
    return Cell(MISSING if value is None else f"{value:.{digits}f}")
