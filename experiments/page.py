"""The page of results, docs/results.rst, with its figures: made from records, nothing is run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from experiments import comparison, figures, learning_curves, missing_features, tables
from experiments.methods import LABELS
from experiments.origin import mixture
from experiments.protocol import HERE
from experiments.records import Record, unit_of
from experiments.render import MISSING, Cell, Grid
from experiments.results import collect
from marginbn.files import write_text

PAGE = HERE.parent / "docs" / "results.rst"
FIGURES = "_static/experiments"
CAPTIONS = {
    "critical_accuracy": "Mean ranks by accuracy; bars join methods that do not differ",
    "critical_log_loss": "Mean ranks by log loss",
    "learning_curves": "Accuracy and log loss against training rows",
    "anytime": "Objective and bound over time on the sets of table 1",
}
INTRODUCTION = (
    "Section 6 of the paper and a comparison with today's classifiers, on its 31 data sets. This "
    "page is made from the records in ``experiments/results/full`` by ``python -m experiments "
    "page``; :doc:`reproduction` tells the protocol in short and ``experiments/README.md`` in "
    "full. ``python -m experiments audit`` recomputes random records."
)


def write(
    records: list[Record], curves: list[Record], hidden: list[Record], page: Path = PAGE
) -> str:
    """Write the page and its figures; returns its text."""
    lines = [*heading("Results", "="), INTRODUCTION, ""]
    if records:
        lines += _sections(records, curves, hidden, page.parent / FIGURES)
    else:
        lines += ["Not run yet: ``python -m experiments run --data FOLDER --jobs 2``.", ""]
    text = "\n".join(lines).rstrip() + "\n"
    write_text(page, text)
    return text


def _sections(
    records: list[Record], curves: list[Record], hidden: list[Record], folder: Path
) -> list[str]:
    results = collect(records)
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {path.stem for path in figures.write(records, curves, folder)}
    more = comparison.grids(results)
    lines = [part for line in mixture(r["origin"] for r in records) for part in (line, "")]
    lines += [part for line in commits(records) for part in (line, "")]
    lines += heading("Networks and today's classifiers")
    of_ours = (f"duels-{own}" for own in comparison.OURS)
    lines += _grids(more[name] for name in ("extended", *of_ours) if name in more)
    lines += _pictures(drawn, "critical_accuracy", "critical_log_loss")
    lines += heading("Tables of the paper")
    lines += _grids([tables.table1(records)])
    lines += _pictures(drawn, "anytime")
    lines += _grids(
        [
            tables.table2(records, results),
            tables.table3(records, results),
            tables.common_wins(results),
            tables.lost_wins(results),
            tables.summary(records, results),
            tables.seeds(results),
        ]
    )
    lines += heading("Learning curves")
    lines += _pictures(drawn, "learning_curves") or ["Not run yet.", ""]
    lines += _grids(learning_curves.grids(curves))
    lines += heading("Features missing at prediction")
    lines += _grids(missing_features.grids(hidden, LABELS)) if hidden else ["Not run yet.", ""]
    lines += heading("By data set")
    return lines + _grids(more[name] for name in ("accuracy", "log_loss", "brier") if name in more)


def commits(records: Iterable[Record]) -> list[str]:
    """A sentence for each commit: the methods whose records it made."""
    methods: dict[str, set[str]] = {}
    for record in records:
        name = unit_of(record).method
        methods.setdefault(str(record["origin"]["commit"]), set()).add(LABELS.get(name, "table 1"))
    return [f"Records of commit {c}: {', '.join(sorted(m))}." for c, m in sorted(methods.items())]


def heading(title: str, line: str = "-") -> list[str]:
    return [title, line * len(title), ""]


def _pictures(drawn: set[str], *names: str) -> list[str]:
    lines: list[str] = []
    for name in names:
        if name in drawn:
            lines += [f".. figure:: {FIGURES}/{name}.svg", "   :alt: " + CAPTIONS[name], ""]
            lines += [f"   {CAPTIONS[name]}", ""]
    return lines


def _grids(grids: Iterable[Grid]) -> list[str]:
    return [line for grid in grids for line in to_rst(grid)]


def to_rst(grid: Grid) -> list[str]:
    """A titled table with its notes."""
    lines = heading(grid.title, "~")
    if grid.rows:
        lines += [".. list-table::", "   :header-rows: 1", ""]
        for row in (grid.header, *([name, *map(_text, cells)] for name, cells in grid.rows)):
            lines += [f"   {'*' if i == 0 else ' '} - {cell}" for i, cell in enumerate(row)]
        lines.append("")
    else:
        lines += [f"{MISSING} nothing to show yet.", ""]
    return [*lines, *(f"- {note}" for note in grid.notes), ""]


def _text(cell: Cell) -> str:
    ours = f"**{cell.ours}**" if cell.bold else cell.ours
    return f"{ours} ({cell.published})" if cell.published else ours
