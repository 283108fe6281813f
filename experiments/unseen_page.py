"""The page of the unseen tables, docs/unseen.rst: made from records, nothing is run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.critical import LEVEL, Duel, duel, holm, mean_ranks
from experiments.origin import mixture
from experiments.page import heading, to_rst
from experiments.protocol import HERE
from experiments.records import Record, unit_of
from experiments.render import MISSING, Cell, Grid
from experiments.results import Figures
from experiments.unseen import HIDDEN, LARGE, METHODS, N_BINS, N_FOLDS
from marginbn.files import write_text

PAGE = HERE.parent / "docs" / "unseen.rst"
OURS = "bn"
INTRODUCTION = (
    "Raw tables that played no part in the design of marginbn, and every method on them in its "
    "natural way. ``python -m experiments unseen FOLDER`` runs the suite, ``python -m experiments "
    "unseen-page`` makes this page from the records. ``experiments/unseen.py`` describes what each "
    "method gets. Nothing was changed after these tables were seen: the commit below names the "
    "design."
)
HIGHER = {"accuracy": True, "auc": True, "log_loss": False}
NAMES = {"log_loss": "log loss", "accuracy": "accuracy", "auc": "AUC"}

Groups = dict[tuple[str, str], list[Record]]
Value = Callable[[Record], float | None]


def group(records: Sequence[Record]) -> Groups:
    """Records by table and method, for the folds that all methods of the table have."""
    folds: dict[str, dict[str, set[int]]] = {}
    for record in records:
        unit = unit_of(record)
        folds.setdefault(unit.dataset, {}).setdefault(unit.method, set()).add(unit.fold)
    shared = {name: set.intersection(*by_method.values()) for name, by_method in folds.items()}
    groups: Groups = {}
    for record in records:
        unit = unit_of(record)
        if unit.fold in shared[unit.dataset]:
            groups.setdefault((unit.dataset, unit.method), []).append(record)
    return groups


def figures(groups: Groups, tables: Sequence[str], value: Value) -> Figures:
    """Mean over the folds of every table and method that has the value."""
    found = {}
    for (table, method), records in groups.items():
        values = [v for v in map(value, records) if v is not None]
        if table in tables and len(values) == len(records):
            found[table, method] = float(np.mean(values))
    return found


def of(name: str) -> Value:
    """The entry of a record with this name."""
    return lambda record: record[name]


def of_hidden(name: str) -> Value:
    """The same with values of the test rows hidden."""
    return lambda record: record["hidden"][str(HIDDEN)][name]


def write(records: list[Record], page: Path = PAGE) -> str:
    """Write the page; returns its text."""
    lines = [*heading("Unseen tables", "="), INTRODUCTION, ""]
    if records:
        lines += _sections(records)
    else:
        lines += ["Not run yet: ``python -m experiments unseen FOLDER``.", ""]
    text = "\n".join(lines).rstrip() + "\n"
    write_text(page, text)
    return text


def _sections(records: list[Record]) -> list[str]:
    groups = group(records)
    methods = [m for m in METHODS if any(method == m for _, method in groups)]
    sizes = {unit_of(r).dataset: r["split"]["n_rows"] for r in records}
    every = sorted(sizes, key=lambda name: (sizes[name], name))
    complete = [t for t in every if all((t, m) in groups for m in methods)]
    small = [t for t in complete if sizes[t] < LARGE]
    large = [t for t in complete if sizes[t] >= LARGE]
    lines = [part for line in mixture(r["origin"] for r in records) for part in (line, "")]
    lines += [told_folds(groups, complete), ""]
    if len(complete) < len(every):
        absent = ", ".join(t for t in every if t not in complete)
        lines += [f"Left out, because a method has no record: {absent}.", ""]
    for title, tables in (
        ("All tables", complete),
        (f"Tables below {LARGE} rows", small),
        (f"Tables of {LARGE} rows and more", large),
    ):
        if tables:
            lines += heading(f"{title} ({len(tables)})")
            lines += to_rst(overview(groups, tables, methods))
            lines += to_rst(duels(groups, tables, methods))
    lines += heading("Missing values at prediction")
    lines += to_rst(hidden(groups, complete, methods))
    lines += heading("Answers and shares")
    lines += to_rst(consistent(groups, every))
    lines += heading("By table")
    lines += to_rst(by_table(groups, every, methods, "log_loss", 4))
    lines += to_rst(by_table(groups, every, methods, "accuracy", 4))
    return lines + to_rst(origins(records, every))


def told_folds(groups: Groups, tables: Sequence[str]) -> str:
    """How many of the folds each table has; only folds that all methods have count."""
    counts = {table: len(groups[table, OURS]) for table in tables}
    parts = [
        f"{n} of {N_FOLDS}: {', '.join(t for t in tables if counts[t] == n)}"
        for n in sorted({*counts.values()}, reverse=True)
    ]
    return f"Folds that all methods have. {'. '.join(parts)}."


def overview(groups: Groups, tables: Sequence[str], methods: Sequence[str]) -> Grid:
    """One line per method: means and mean ranks, seconds and parameters."""
    by = {name: figures(groups, tables, of(name)) for name in HIGHER}
    ranks = {name: mean_ranks(by[name], methods, HIGHER[name]) for name in HIGHER}
    error = figures(groups, tables, of("calibration_error"))
    cpu = figures(groups, tables, lambda r: r["seconds"]["cpu"])
    predict = figures(groups, tables, lambda r: 1e6 * r["seconds"]["predict"] / r["n_test"])
    parameters = figures(groups, tables, of("parameters"))
    rows = []
    for method in methods:
        cells = []
        for name in HIGHER:
            cells.append(_mean(by[name], tables, method, 4))
            cells.append(Cell(f"{ranks[name][method]:.2f}"))
        cells.append(_mean(error, tables, method, 4))
        cells += [_median(cpu, tables, method, 2), _median(predict, tables, method, 0)]
        cells.append(_median(parameters, tables, method, 0))
        rows.append((METHODS[method].label, tuple(cells)))
    header = (
        "method", *(h for name in HIGHER for h in (NAMES[name], "rank")), "calibration error",
        "CPU s", "µs a row", "parameters",
    )  # fmt: skip
    notes = (
        "Means over tables; rank 1 is best.",
        "CPU s (fit and predict together), µs a row (to predict, by the clock) and parameters are "
        "medians over tables.",
        f"Calibration error: {N_BINS} bins of the predicted class's probability.",
    )
    return Grid("Measures", header, tuple(rows), notes)


def duels(groups: Groups, tables: Sequence[str], methods: Sequence[str]) -> Grid:
    """The default against every other method, with Holm's correction over them."""
    others = [m for m in methods if m != OURS]
    results: dict[str, dict[str, Duel]] = {}
    for name in HIGHER:
        found = figures(groups, tables, of(name))
        results[name] = {m: duel(found, OURS, m, HIGHER[name]) for m in others}
    rows = [
        (METHODS[m].label, tuple(Cell(str(results[name][m])) for name in HIGHER)) for m in others
    ]
    notes = []
    for name, by_method in results.items():
        p_values = {(OURS, m): d.p_value for m, d in by_method.items() if d.p_value is not None}
        differing = [m for _, m in holm(p_values)]
        won = [METHODS[m].label for m in differing if by_method[m].won > by_method[m].lost]
        lost = [METHODS[m].label for m in differing if by_method[m].won < by_method[m].lost]
        notes.append(
            f"{NAMES[name]}: significantly better than {', '.join(won) or 'none'}, significantly "
            f"worse than {', '.join(lost) or 'none'} (Wilcoxon, Holm, {100 * LEVEL:.0f} %)."
        )
    title = f"{METHODS[OURS].label} against each: tables won/tied/lost (Wilcoxon's p)"
    return Grid(title, ("against", *(NAMES[n] for n in HIGHER)), tuple(rows), tuple(notes))


def hidden(groups: Groups, tables: Sequence[str], methods: Sequence[str]) -> Grid:
    """Means with a share of the test values hidden, next to those with none hidden."""
    rows = []
    for method in methods:
        cells = []
        for name in ("log_loss", "accuracy"):
            for value in (of(name), of_hidden(name)):
                cells.append(_mean(figures(groups, tables, value), tables, method, 4))
        rows.append((METHODS[method].label, tuple(cells)))
    share = f"{100 * HIDDEN:.0f} % hidden"
    header = ("method", "log loss", share, "accuracy", share)
    note = (
        "The same random values are hidden for every method. Boosting gets missing values as they "
        "are; for logistic regression, SVM and forest see the introduction."
    )
    return Grid(f"{share}: means over tables", header, tuple(rows), (note,))


def consistent(groups: Groups, tables: Sequence[str]) -> Grid:
    """How far the default's answers are from the shares in the training rows."""
    rows = []
    for table in tables:
        records = groups.get((table, OURS), [])
        if records:
            rows.append((table, tuple(_consistency_cells(records))))
    words = ("one feature", "two features")
    parts = ("queries", "distance", "by chance", "without the query")
    header = ("table", *(f"{word}: {part}" for word in words for part in parts))
    notes = (
        "Every query with one and with two known features that training rows have; the distance "
        "is the total variation between the answer and the shares in the training rows, a mean "
        "weighted by rows.",
        "By chance: what sampling alone would give if the answers were true. Without the query: "
        "the distance of the overall class shares.",
    )
    return Grid(f"{METHODS[OURS].label}: answers to small queries", header, tuple(rows), notes)


def _consistency_cells(records: list[Record]) -> list[Cell]:
    cells = []
    for word in ("one", "two"):
        parts = [r["consistency"][word] for r in records]
        cells.append(Cell(f"{np.mean([p['queries'] for p in parts]):.0f}"))
        for name in ("distance", "chance", "classes"):
            cells.append(Cell(f"{np.mean([p[name] for p in parts]):.3f}"))
    return cells


def by_table(
    groups: Groups, tables: Sequence[str], methods: Sequence[str], name: str, digits: int
) -> Grid:
    """One line per table; the best in bold."""
    found = figures(groups, tables, of(name))
    rows = []
    for table in tables:
        values = {m: round(found[table, m], digits) for m in methods if (table, m) in found}
        best = max(values.values()) if HIGHER[name] else min(values.values())
        rows.append(
            (table, tuple(_value(values.get(m), digits, values.get(m) == best) for m in methods))
        )
    header = ("table", *(METHODS[m].label for m in methods))
    return Grid(f"{NAMES[name]} by table", header, tuple(rows))


def origins(records: Sequence[Record], tables: Sequence[str]) -> Grid:
    """Size and origin of every table."""
    one: dict[str, Any] = {unit_of(r).dataset: r for r in records}
    rows = []
    for table in tables:
        split = one[table]["split"]
        cells = [str(split[k]) for k in ("n_rows", "n_columns", "n_train", "n_removed")]
        cells.append(one[table].get("about", {}).get("origin") or MISSING)
        rows.append((table, tuple(map(Cell, cells))))
    header = ("table", "rows", "columns", "training rows", "rows left out", "origin")
    return Grid("Tables", header, tuple(rows))


def _value(value: float | None, digits: int, bold: bool) -> Cell:
    return Cell() if value is None else Cell(f"{value:.{digits}f}", bold=bold)


def _mean(found: Figures, tables: Sequence[str], method: str, digits: int) -> Cell:
    values = [found[t, method] for t in tables if (t, method) in found]
    return Cell(f"{np.mean(values):.{digits}f}") if values else Cell()


def _median(found: Figures, tables: Sequence[str], method: str, digits: int) -> Cell:
    values = [found[t, method] for t in tables if (t, method) in found]
    return Cell(f"{np.median(values):.{digits}f}") if values else Cell()
