"""Figures from records: anytime curves, scatter, critical differences, learning curves.

Each drawing function takes axes, returns them and computes nothing beyond what it draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from experiments import learning_curves
from experiments.comparison import NAMES, methods_of
from experiments.critical import Comparison, compare, p_text
from experiments.methods import LABELS, TABLE1_METHODS
from experiments.protocol import read_specs
from experiments.records import Record, unit_of
from experiments.results import (
    HIGHER_IS_BETTER,
    Results,
    collect,
    common_seeds,
    shared_figures,
)
from marginbn.exceptions import MissingDependencyError
from marginbn.files import replacing

Axes = Any
FIRST_SECOND = 0.05
"""Where the logarithmic time axis begins; whatever happened before is drawn there."""
COLOURS = {"objective": "#1f77b4", "bound": "#d62728"}


def write(records: list[Record], curves: list[Record], output: Path) -> list[Path]:
    """Draw what records and those of learning curves allow as SVG files; returns their paths."""
    pyplot = _pyplot()
    drawings: dict[str, Callable[[Any, list[Record]], Any]] = {
        "anytime": draw_anytime,
        "scatter": draw_scatter,
        "critical_accuracy": lambda pyplot, records: draw_ranks(pyplot, records, "accuracy"),
        "critical_log_loss": lambda pyplot, records: draw_ranks(pyplot, records, "log_loss"),
        "learning_curves": lambda pyplot, _: draw_learning(pyplot, curves),
    }
    written = []
    for name, draw in drawings.items():
        figure = draw(pyplot, records)
        if figure is not None:
            path = output / f"{name}.svg"
            with replacing(path, ".svg") as draft:
                figure.savefig(draft, bbox_inches="tight", metadata={"Date": None})
            pyplot.close(figure)
            written.append(path)
    return written


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError as error:
        raise MissingDependencyError(
            "figures need matplotlib: pip install --group experiments"
        ) from error
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "marginbn"  # the same records give the same file
    from matplotlib import pyplot

    return pyplot


# --- anytime curves ---


def draw_anytime(pyplot: Any, records: list[Record]) -> Any:
    """Objective and bound over time of the problems behind table 1."""
    hard = sorted((r for r in records if unit_of(r).kind == "gap"), key=lambda r: str(unit_of(r)))
    if not hard:
        return None
    n_columns = min(4, len(hard))
    figure, axes = _grid(pyplot, len(hard), n_columns, 3.0)
    for ax, record in zip(axes, hard, strict=True):
        unit = unit_of(record)
        title = f"{unit.dataset}, {TABLE1_METHODS[unit.method].label}"
        plot_trace(record["search"]["trace"], ax).set_title(title, fontsize=9)
    axes[0].legend(fontsize=8)
    return figure


def plot_trace(trace: list[list[Any]], ax: Axes) -> Axes:
    """Steps of (seconds, objective, bound); unknown values are left out."""
    for place, name in enumerate(COLOURS, 1):
        points = [(max(p[0], FIRST_SECOND), p[place]) for p in trace if p[place] is not None]
        if points:
            seconds, values = zip(*points, strict=True)
            ax.step(seconds, values, where="post", color=COLOURS[name], label=name, lw=1.2)
    ax.set_xscale("log")
    ax.set_xlim(left=FIRST_SECOND)
    _show_the_gap(trace, ax)
    ax.set_xlabel("seconds", fontsize=8)
    ax.tick_params(labelsize=7)
    return ax


def _show_the_gap(trace: list[list[Any]], ax: Axes) -> None:
    """Leave the first structure, far below all others, outside the picture."""
    objectives = [p[1] for p in trace if p[1] is not None]
    bounds = [p[2] for p in trace if p[2] is not None]
    if objectives and bounds and bounds[0] > objectives[-1]:
        height = bounds[0] - objectives[-1]
        ax.set_ylim(objectives[-1] - height, bounds[0] + 0.1 * height)


# --- scatter ---


def draw_scatter(pyplot: Any, records: list[Record]) -> Any:
    """Accuracy of SM against every rival, one point per data set."""
    results, names = collect(records), list(read_specs())
    rivals = [
        m
        for m in methods_of(results)
        if m != "sm" and any(common_seeds(results, n, ("sm", m)) for n in names)
    ]
    if not rivals:
        return None
    figure, axes = _grid(pyplot, len(rivals), min(4, len(rivals)), 3.2)
    for ax, rival in zip(axes, rivals, strict=True):
        plot_scatter(results, "sm", rival, ax)
    return figure


def plot_scatter(results: Results, method: str, rival: str, ax: Axes) -> Axes:
    """Points above the diagonal are data sets on which `method` is better."""
    figures = shared_figures(results, [method, rival], "accuracy")
    sets = sorted({name for name, _ in figures})
    ours, theirs = (np.array([100 * figures[n, m] for n in sets]) for m in (method, rival))
    low = min(ours.min(), theirs.min()) - 2
    ax.plot([low, 101], [low, 101], color="0.7", lw=1)
    ax.scatter(theirs, ours, s=12, color=COLOURS["objective"])
    ax.set_xlabel(f"{LABELS[rival]}, accuracy in %", fontsize=8)
    ax.set_ylabel(f"{LABELS[method]}, accuracy in %", fontsize=8)
    ax.tick_params(labelsize=7)
    better, worse = int((ours > theirs + 1e-9).sum()), int((ours < theirs - 1e-9).sum())
    ax.set_title(f"better {better}, worse {worse}", fontsize=9)
    ax.set_aspect("equal")
    return ax


# --- critical differences ---


def draw_ranks(pyplot: Any, records: list[Record], measure: str) -> Any:
    """Mean ranks over the data sets that all methods have."""
    results = collect(records)
    methods = methods_of(results)
    figures = shared_figures(results, methods, measure)
    comparison = compare(figures, methods, HIGHER_IS_BETTER[measure])
    if comparison is None:
        return None
    figure, ax = pyplot.subplots(figsize=(9, 1.4 + 0.22 * len(methods)))
    plot_ranks(comparison, ax)
    ax.set_title(
        f"{NAMES[measure].removesuffix(' in %')}: mean ranks over {comparison.n_sets} data sets, "
        f"Friedman p {p_text(comparison.friedman)}; bars join methods that do not differ\n"
        "(Wilcoxon with Holm's correction, 5 %)",
        fontsize=8,
        pad=14,
    )
    return figure


def plot_ranks(comparison: Comparison, ax: Axes) -> Axes:
    """Ranks on a line, the best on the left; bars join methods that do not differ."""
    ordered = list(comparison.ranks.items())
    n, half = len(ordered), math.ceil(len(ordered) / 2)
    bars = comparison.cliques()
    top = -0.25 * len(bars) - 0.4
    for i, (name, rank) in enumerate(ordered):
        left = i < half
        level = top - 0.5 * (i if left else n - 1 - i)
        edge = 0.6 if left else n + 0.4
        ax.plot([rank, rank, edge], [0, level, level], color="black", lw=0.8)
        side = "right" if left else "left"
        ax.text(edge, level, f" {LABELS[name]} ({rank:.2f}) ", ha=side, va="center", fontsize=9)
    for i, (first, last) in enumerate(bars):
        height = -0.25 * (i + 1)
        ax.plot([ordered[first][1], ordered[last][1]], [height, height], color="black", lw=3)
    difference = comparison.nemenyi
    ax.plot([1, 1 + difference], [0.9, 0.9], color=COLOURS["bound"], lw=2)
    ax.text(1, 1.0, f"Nemenyi's critical difference {difference:.2f}", fontsize=8)
    ax.plot([1, n], [0, 0], color="black", lw=1)
    for k in range(1, n + 1):
        ax.text(k, 0.15, str(k), ha="center", fontsize=8)
    ax.axis("off")
    return ax


# --- learning curves ---


def draw_learning(pyplot: Any, records: list[Record]) -> Any:
    """Accuracy and log loss against training rows, one column per data set."""
    curves = learning_curves.collect(records)
    sets = list(dict.fromkeys(name for name, _ in curves))
    if not sets:
        return None
    figure, axes = pyplot.subplots(
        2, len(sets), figsize=(3.4 * len(sets), 6), squeeze=False, sharex="col"
    )
    for column, name in enumerate(sets):
        for row, measure in enumerate(learning_curves.MEASURES):
            plot_learning(curves, name, measure, axes[row][column])
        axes[0][column].set_title(name, fontsize=9)
        axes[1][column].set_xlabel("training rows", fontsize=8)
    figure.set_layout_engine("constrained")
    lines, names = axes[0][0].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside lower center", ncols=len(names), fontsize=8)
    return figure


def plot_learning(curves: learning_curves.Curves, name: str, measure: str, ax: Axes) -> Axes:
    """One line per method."""
    factor = 100 if measure == "accuracy" else 1
    for (dataset, method), points in curves.items():
        if dataset == name:
            rows = sorted(points)
            values = [factor * points[r][measure] for r in rows]
            ax.plot(rows, values, marker="o", ms=3, lw=1.2, label=LABELS[method])
    ax.set_xscale("log")
    ax.set_ylabel(NAMES[measure], fontsize=8)
    ax.tick_params(labelsize=7)
    return ax


def _grid(pyplot: Any, n: int, n_columns: int, size: float) -> tuple[Any, list[Axes]]:
    n_rows = math.ceil(n / n_columns)
    figure, axes = pyplot.subplots(
        n_rows, n_columns, figsize=(size * n_columns, size * n_rows), squeeze=False
    )
    flat = list(axes.flat)
    for ax in flat[n:]:
        ax.axis("off")
    figure.set_layout_engine("constrained")
    return figure, flat[:n]
