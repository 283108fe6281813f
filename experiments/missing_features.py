"""Features missing at prediction: which method loses least when values are not there.

Methods learn from complete rows. Of the test rows a share of all values is hidden at random, the
same ones for every method, and what a larger share hides includes what a smaller one hides.
Networks sum the hidden features out; HistGradientBoosting and LightGBM get NaN and do with it
what they do by default; logistic regression gets the mean or the mode of the training rows.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.accuracy import SEED, Comparison, make_settings
from experiments.accuracy_table import (
    Figures,
    Records,
    check_same_rows,
    common_sets,
    markdown,
    mean_over_folds,
)
from experiments.contenders import CONTENDERS
from experiments.forecast import judge
from experiments.protocol import Task
from experiments.records import Record, Unit
from marginbn import Table
from marginbn.data.columns import Column
from marginbn.exceptions import InputError

SETS = ("heart", "diabetes", "lymphography", "vehicle", "glass", "segment", "chess", "nursery")
METHODS = ("bn", "bn-average", "tan", "nb", "hgb", "lightgbm", "logistic")
SHARES = (0.0, 0.1, 0.3, 0.5)
YARDSTICKS = ("tan", "hgb")
"""The better of these two is what a network with missing features is measured against."""


def compare_missing(seed: int = SEED) -> Comparison:
    return Comparison(measure_missing, make_settings(seed), {"seed": seed, "shares": list(SHARES)})


def measure_missing(unit: Unit, task: Task) -> Record:
    """Fit once, predict the test rows with every share of their values hidden."""
    start = time.perf_counter()
    fitted = CONTENDERS[unit.method].fit(task)
    seconds = {"fit": round(time.perf_counter() - start, 3)}
    levels = hiding_levels(task.test, task.settings.seed + unit.fold)
    shares: dict[str, Any] = {}
    for share in SHARES:
        before = time.perf_counter()
        answer = fitted.answer(hide(task.test, levels < share))
        seconds[f"predict {share}"] = round(time.perf_counter() - before, 3)
        shares[str(share)] = judge(fitted, answer, task.test_labels)
    seconds["total"] = round(time.perf_counter() - start, 3)
    accuracy = shares[str(SHARES[0])]["accuracy"]
    return {"accuracy": accuracy, "shares": shares, "seconds": seconds, "chosen": fitted.chosen}


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


def render(records: Records, methods: Sequence[str], of: str) -> str:
    """One Markdown table per share, and `of` beside the better of the yardsticks."""
    absent = sorted({of, *methods} - {unit.method for unit in records})
    if absent:
        raise InputError(f"RECORDS has no record of {', '.join(absent)}")
    check_same_rows(records)
    shares = [str(s) for s in SHARES]
    losses = {s: mean_over_folds(records, ("shares", s, "log_loss")) for s in shares}
    hits = {s: mean_over_folds(records, ("shares", s, "accuracy")) for s in shares}
    parts = [_share_table(s, hits[s], losses[s], methods) for s in shares]
    if set(YARDSTICKS) <= set(methods):
        parts.append(_against_yardsticks(losses, of))
    return "\n\n".join(parts) + "\n"


def _share_table(share: str, hits: Figures, losses: Figures, methods: Sequence[str]) -> str:
    sets = common_sets(losses, methods)
    rows = [[name, *(_cell(hits[name, m], losses[name, m]) for m in methods)] for name in sets]
    if sets:
        means = [
            _cell(*(float(np.mean([f[name, m] for name in sets])) for f in (hits, losses)))
            for m in methods
        ]
        rows.append(["mean", *means])
    head = f"{_percent(share)} of the values missing: accuracy / log loss."
    return f"{head}\n\n" + markdown(["data set", *(CONTENDERS[m].label for m in methods)], rows)


def _percent(share: str) -> str:
    return f"{100 * float(share):.0f} %"


def _cell(hit_rate: float, loss: float) -> str:
    return f"{100 * hit_rate:.2f} / {loss:.3f}"


def _against_yardsticks(losses: dict[str, Figures], of: str) -> str:
    """Mean log loss of `of` and of the better yardstick on every set, and their ratio."""
    rows = []
    for share, figures in losses.items():
        sets = common_sets(figures, [of, *YARDSTICKS])
        if not sets:
            continue
        own = np.array([figures[s, of] for s in sets])
        best = np.array([min(figures[s, m] for m in YARDSTICKS) for s in sets])
        cells = [str(len(sets)), f"{own.mean():.4f}", f"{best.mean():.4f}"]
        excess = (own.mean() / best.mean() - 1, np.mean(own / best) - 1)
        rows.append([_percent(share), *cells, *(f"{100 * e:+.1f} %" for e in excess)])
    names = " and ".join(CONTENDERS[m].label for m in YARDSTICKS)
    columns = ["missing", "sets", CONTENDERS[of].label, "better", "of means", "mean by set"]
    return f"Log loss beside the better of {names} on each set.\n\n" + markdown(columns, rows)
