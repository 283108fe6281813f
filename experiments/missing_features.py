"""Features missing at prediction: which method loses least when values are not there.

Methods learn from complete rows. Of the test rows a share of all values is hidden at random, the
same ones for every method, and what a larger share hides includes what a smaller one hides.
Networks sum the hidden features out; HistGradientBoosting and LightGBM get NaN and do with it
what they do by default; logistic regression gets the mean or the mode of the training rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.fitted import Fitted, judge
from experiments.protocol import Task
from experiments.records import Record, unit_of
from experiments.render import MISSING, Cell, Grid
from marginbn.data.columns import Column
from marginbn.data.table import Table

SETS = ("heart", "diabetes", "lymphography", "vehicle", "glass", "segment", "chess", "nursery")
METHODS = ("sm", "tan", "nb", "hgb", "lightgbm", "logistic")
SHARES = (0.1, 0.3, 0.5)
YARDSTICKS = ("tan", "hgb")
"""The better of these two is what a network with missing features is measured against."""


def predict_with_hidden(fitted: Fitted, task: Task) -> dict[str, Any]:
    """The measures with every share of the test values hidden."""
    levels = hiding_levels(task.test, task.seed + task.about.get("fold", 0))
    found = {}
    for share in task.settings.hidden_shares:
        posterior, labels = fitted.predict(hide(task.test, levels < share))
        found[str(share)] = judge(fitted.classes, posterior, labels, task.test_labels)
    return found


def hiding_levels(table: Table, seed: int) -> NDArray[np.float64]:
    """One number in [0, 1) per value, (n_rows, n_columns); a share s hides those below s."""
    return np.random.default_rng(seed).random((table.n_rows, table.n_columns))


def hide(table: Table, hidden: NDArray[np.bool_]) -> Table:
    """The table with the marked values, bool (n_rows, n_columns), missing."""
    pairs = zip(table.columns, hidden.T, strict=True)
    return Table(tuple(_hide_in_column(column, mask) for column, mask in pairs))


def _hide_in_column(column: Column, hidden: NDArray[np.bool_]) -> Column:
    if column.kind == "numeric":
        return Column.numeric(column.name, np.where(hidden, np.nan, column.numbers))
    return Column.categorical(column.name, np.where(hidden, -1, column.codes), column.categories)


Losses = dict[tuple[str, str], dict[str, float]]
"""Accuracy and log loss by data set and method."""


def grids(records: list[Record], labels: dict[str, str], of: str = "sm") -> list[Grid]:
    """One table per share, none hidden first, and `of` beside the better of the yardsticks."""
    by_share = {share: _means(records, share) for share in ("0", *map(str, SHARES))}
    found = {method for _, method in by_share["0"]}
    methods = [m for m in METHODS if m in found]
    made = [_share_grid(share, means, methods, labels) for share, means in by_share.items()]
    if {of, *YARDSTICKS} <= found:
        made.append(_against_yardsticks(by_share, of, labels))
    return made


def _means(records: list[Record], share: str) -> Losses:
    """Mean over folds and seeds of every (data set, method) that has all its folds."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        if "hidden" in record:
            unit = unit_of(record)
            groups.setdefault((unit.dataset, unit.method), []).append(record)
    means = {}
    for key, group in groups.items():
        if len(group) % group[0]["split"]["folds_run"] == 0:
            entries = [r if share == "0" else r["hidden"][share] for r in group]
            means[key] = {
                m: float(np.mean([e[m] for e in entries])) for m in ("accuracy", "log_loss")
            }
    return means


def _common(means: Losses, methods: Sequence[str]) -> list[str]:
    names = dict.fromkeys(name for name, _ in means)
    return [name for name in names if all((name, m) in means for m in methods)]


def _share_grid(share: str, means: Losses, methods: list[str], labels: dict[str, str]) -> Grid:
    sets = _common(means, methods)
    rows = [(name, tuple(_cell([means[name, m]]) for m in methods)) for name in sets]
    rows.append(("mean", tuple(_cell([means[name, m] for name in sets]) for m in methods)))
    title = f"{_percent(share)} of the values missing: accuracy / log loss"
    return Grid(title, ("data set", *(labels[m] for m in methods)), tuple(rows))


def _percent(share: str) -> str:
    return f"{100 * float(share):.0f} %"


def _cell(entries: list[dict[str, float]]) -> Cell:
    if not entries:
        return Cell(MISSING)
    hit_rate, loss = (float(np.mean([e[m] for e in entries])) for m in ("accuracy", "log_loss"))
    return Cell(f"{100 * hit_rate:.2f} / {loss:.3f}")


def _against_yardsticks(by_share: dict[str, Losses], of: str, labels: dict[str, str]) -> Grid:
    """Mean log loss of `of` and of the better yardstick on every set, and their ratio."""
    rows = []
    for share, means in by_share.items():
        sets = _common(means, [of, *YARDSTICKS])
        if not sets:
            continue
        own = np.array([means[s, of]["log_loss"] for s in sets])
        best = np.array([min(means[s, m]["log_loss"] for m in YARDSTICKS) for s in sets])
        cells = [str(len(sets)), f"{own.mean():.4f}", f"{best.mean():.4f}"]
        excess = (own.mean() / best.mean() - 1, np.mean(own / best) - 1)
        cells += [f"{100 * e:+.1f} %" for e in excess]
        rows.append((_percent(share), tuple(map(Cell, cells))))
    names = " and ".join(labels[m] for m in YARDSTICKS)
    header = ("missing", "data sets", labels[of], "better", "of means", "mean by set")
    return Grid(f"Log loss beside the better of {names} on each set", header, tuple(rows))
