"""Tables 1-3 of the paper from records, the published figures in brackets.

Nothing is solved and nothing filled in here: a cell whose records are not complete is missing.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from experiments.methods import LABELS, METHODS
from experiments.protocol import TABLE1_SETS, read_specs
from experiments.records import Record, unit_of
from experiments.render import MISSING, Cell, Grid, to_csv, to_html, to_markdown
from experiments.results import Key, Result, collect, count_wins, mean_ranks, read_paper
from marginbn.files import write_text

Results = dict[Key, Result]
QUICK_REMARK = (
    "From a QUICK run: few folds, rows, parameters and seconds. A smoke test, no reproduction."
)
ONE_FOLD_REMARK = (
    "Of a cross-validated set a quick run has one fold, which is treated like a test set."
)
HEADING = "Experiments of section 6: ours, and in brackets the paper's"


def write(records: list[Record], output: Path) -> str:
    """Write all tables as Markdown, CSV and HTML into a folder; returns the Markdown."""
    grids = {
        "table1": table1(records),
        "table2": table2(records),
        "table3": table3(records),
        "summary": summary(records),
    }
    remarks = [QUICK_REMARK] if any(r["quick"] for r in records) else []
    text = "\n".join([f"## {HEADING}\n", *(f"{r}\n" for r in remarks)])
    text += "\n" + "\n".join(to_markdown(grid) for grid in grids.values())
    write_text(output / "tables.md", text)
    page = to_html(list(grids.values()), HEADING, remarks)
    write_text(output / "tables.html", page)
    for name, grid in grids.items():
        write_text(output / f"{name}.csv", to_csv(grid))
    return text


# --- table 1 ---


def table1(records: list[Record]) -> Grid:
    """Worst-case sub-optimality; in bold where ours is not above the published one."""
    found = {
        (unit_of(r).method.removeprefix("gap-"), unit_of(r).dataset): r
        for r in records
        if unit_of(r).is_table1
    }
    published = read_paper()["table1"]
    rows = tuple(
        (
            LABELS[method],
            tuple(_gap_cell(found.get((method, n)), published[method][n]) for n in TABLE1_SETS),
        )
        for method in ("sm", "sbm")
    )
    title = "Table 1. Worst-case sub-optimality 100 (bound - objective) / bound, in %"
    return Grid(title, ("", *TABLE1_SETS), rows, tuple(_table1_notes(list(found.values()))))


def _gap_cell(record: Record | None, published: float) -> Cell:
    paper = "∞" if math.isinf(published) else f"{published:.2f}"
    if record is None:
        return Cell(published=paper)
    gap = record["search"]["paper_gap"]
    if gap is None:
        return Cell("∞", paper)
    mark = "†" if record["search"]["status"] == "optimal" else ""
    # On a quick run's few rows a small gap is no achievement.
    return Cell(f"{gap:.2f}{mark}", paper, bold=round(gap, 2) <= published and not record["quick"])


def _table1_notes(records: list[Record]) -> list[str]:
    limits = sorted({r["settings"]["table1_limit"] for r in records})
    chosen = sorted({r["settings"]["table1_probability"] for r in records})
    notes = ["† proven optimal. Bold: not above the paper's figure.", f"{MISSING} not run."]
    if limits:
        told = ", ".join(f"{x:g} s" for x in limits)
        notes.insert(
            0,
            f"Ours: {told} per search on one core, two parents, p = {chosen[0]:g}, the training "
            "part (all rows of the cross-validated soybean-large and vehicle). Paper: 2 hours.",
        )
    return notes


# --- table 2 ---


def table2(records: list[Record]) -> Grid:
    """Mean accuracies with 95 % intervals, the best of a row in bold."""
    results, published, specs = collect(records), read_paper()["table2"], read_specs()
    rows = tuple((name, _accuracy_row(name, results, published[name])) for name in specs)
    deviations = [f"{name}: {spec.deviation}" for name, spec in specs.items() if spec.deviation]
    notes = (
        "± is the 95 % interval: Student t over folds, or 1.96 sqrt(p (1 - p) / n) on a test set.",
        "Bold: best of the row, ours among all our methods and the paper's among its own.",
        f"{MISSING} not run, or not all folds finished.",
        *deviations,
        *sorted(_svm_notes(records)),
    )
    header = ("data set", *(LABELS[m] for m in METHODS))
    return Grid("Table 2. Mean classification accuracy in %", header, rows, notes)


def _accuracy_row(
    name: str, results: Results, published: dict[str, list[float]]
) -> tuple[Cell, ...]:
    ours = {m: results[name, m] for m in METHODS if (name, m) in results}
    best = max((round(r.mean, 2) for r in ours.values()), default=None)
    best_published = max(mean for mean, _ in published.values())
    cells = []
    for method in METHODS:
        result, paper = ours.get(method), published.get(method)
        cells.append(
            Cell(
                _interval(result.mean, result.half_width) if result else MISSING,
                _interval(*paper) if paper else "",
                bold=result is not None and round(result.mean, 2) == best,
                published_bold=paper is not None and paper[0] == best_published,
            )
        )
    return tuple(cells)


def _interval(mean: float, half_width: float) -> str:
    return f"{mean:.2f} ± {half_width:.2f}"


def _svm_notes(records: list[Record]) -> set[str]:
    return {f"SVM on {unit_of(r).dataset}: {n}" for r in records for n in r["notes"]}


# --- table 3 ---


def table3(records: list[Record]) -> Grid:
    """How often the method of the row beats that of the column."""
    results, published, names = collect(records), read_paper()["table3"], list(read_specs())
    rows = []
    compared = set()
    for method in METHODS:
        cells = []
        for rival in METHODS:
            paper = published.get(method, {}).get(rival)
            wins = count_wins(results, method, rival, names) if method != rival else (0, 0, 0)
            cells.append(_wins_cell(wins, paper))
            compared.add(wins[2])
        rows.append((LABELS[method], tuple(cells)))
    counted = sorted(compared - {0})
    how_many = f"{counted[0]} to {counted[-1]}" if counted else "no"
    notes = (
        "a/b: wins at the 68 % and the 95 % level. One-sided paired t test over folds, one-sided "
        "binomial test on test sets.",
        f"Pairs were compared on {how_many} data sets; the paper's SM had 29, its others 31.",
        *([ONE_FOLD_REMARK] if any(r["quick"] for r in records) else []),
    )
    header = ("row beats column", *(LABELS[m] for m in METHODS))
    return Grid("Table 3. Significant wins", header, tuple(rows), notes)


def _wins_cell(wins: tuple[int, int, int], paper: list[int] | None) -> Cell:
    published = f"{paper[0]}/{paper[1]}" if paper else ""
    return Cell(f"{wins[0]}/{wins[1]}" if wins[2] else MISSING, published)


# --- summary ---


def summary(records: list[Record]) -> Grid:
    """One line per method."""
    results, paper, names = collect(records), read_paper()["table2"], list(read_specs())
    present = [m for m in METHODS if any((n, m) in results for n in names)]
    ranks, n_common = mean_ranks(results, present, names)
    rows = tuple((LABELS[m], _summary_row(m, results, ranks, paper, names)) for m in METHODS)
    header = (
        "method",
        "data sets",
        f"mean rank ({n_common} sets)",
        "inside the paper's interval",
        "hours",
    )
    hours = sum(r["seconds"]["total"] for r in records) / 3600
    note = f"All records together took {hours:.2f} hours of one core."
    return Grid("Summary", header, rows, (note,))


def _summary_row(
    method: str, results: Results, ranks: dict[str, float], paper: dict[str, Any], names: list[str]
) -> tuple[Cell, ...]:
    mine = {n: results[n, method] for n in names if (n, method) in results}
    shared = {n: r for n, r in mine.items() if method in paper[n]}
    inside = sum(
        abs(round(r.mean, 2) - paper[n][method][0]) <= paper[n][method][1] + 1e-9
        for n, r in shared.items()
    )
    rank, hours = ranks.get(method), sum(r.seconds for r in mine.values()) / 3600
    return (
        Cell(str(len(mine))),
        Cell(f"{rank:.2f}" if rank else MISSING),
        Cell(f"{inside} of {len(shared)}" if shared else MISSING),
        Cell(f"{hours:.2f}" if mine else MISSING),
    )
