"""Figures from records: anytime curves, accuracy scatter, critical differences.

Each drawing function takes axes, returns them and computes nothing beyond what it draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from experiments.methods import LABELS, METHODS
from experiments.protocol import read_specs
from experiments.records import Record, unit_of
from experiments.results import Key, Result, collect, mean_ranks
from marginbn.exceptions import MissingDependencyError
from marginbn.files import replacing

Axes = Any
FIRST_SECOND = 0.05
"""Where the logarithmic time axis begins; whatever happened before is drawn there."""
COLOURS = {"objective": "#1f77b4", "bound": "#d62728"}


def write(records: list[Record], output: Path) -> list[Path]:
    """Draw what the records allow as SVG files; returns their paths."""
    pyplot = _pyplot()
    drawings: dict[str, Callable[[Any, list[Record]], Any]] = {
        "anytime": draw_anytime,
        "scatter": draw_scatter,
        "critical_difference": draw_ranks,
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
            'figures need matplotlib: pip install "marginbn[experiments]"'
        ) from error
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "marginbn"  # the same records give the same file
    from matplotlib import pyplot

    return pyplot


# --- anytime curves ---


def draw_anytime(pyplot: Any, records: list[Record]) -> Any:
    """Objective and bound over time of the problems behind table 1."""
    hard = sorted((r for r in records if unit_of(r).is_table1), key=lambda r: str(unit_of(r)))
    if not hard:
        return None
    n_columns = min(4, len(hard))
    figure, axes = _grid(pyplot, len(hard), n_columns, 3.0)
    for ax, record in zip(axes, hard, strict=True):
        unit = unit_of(record)
        title = f"{unit.dataset}, {LABELS[unit.method.removeprefix('gap-')]}"
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
    rivals = [m for m in METHODS if m != "sm" and _common(results, m, names)]
    if not rivals:
        return None
    figure, axes = _grid(pyplot, len(rivals), min(4, len(rivals)), 3.0)
    for ax, rival in zip(axes, rivals, strict=True):
        common = _common(results, rival, names)
        ours, theirs = ([results[n, m].mean for n in common] for m in ("sm", rival))
        plot_accuracies(ours, theirs, LABELS[rival], ax)
    return figure


def _common(results: dict[Key, Result], rival: str, names: list[str]) -> list[str]:
    return [n for n in names if (n, "sm") in results and (n, rival) in results]


def plot_accuracies(ours: list[float], theirs: list[float], rival: str, ax: Axes) -> Axes:
    """Points above the diagonal are data sets on which SM is better."""
    low = min(ours + theirs) - 2
    ax.plot([low, 101], [low, 101], color="#999999", lw=0.8)
    ax.scatter(theirs, ours, s=14, color=COLOURS["objective"])
    better = sum(a > b for a, b in zip(ours, theirs, strict=True))
    worse = sum(a < b for a, b in zip(ours, theirs, strict=True))
    ax.set(xlabel=f"{rival}, %", ylabel="SM, %", title=f"better {better}, worse {worse}")
    ax.set_aspect("equal")
    return ax


# --- critical differences ---


def draw_ranks(pyplot: Any, records: list[Record]) -> Any:
    """Mean ranks over the data sets that all methods finished (Demsar 2006)."""
    results, names = collect(records), list(read_specs())
    methods = [m for m in METHODS if any((n, m) in results for n in names)]
    ranks, n_sets = mean_ranks(results, methods, names)
    if n_sets < 2 or len(methods) < 3:
        return None
    figure, ax = pyplot.subplots(figsize=(8, 1.2 + 0.25 * len(methods)))
    labelled = {LABELS[m]: rank for m, rank in ranks.items()}
    plot_ranks(labelled, critical_difference(len(methods), n_sets), ax)
    ax.set_title(f"mean ranks over {n_sets} data sets", fontsize=9, pad=14)
    return figure


def critical_difference(n_methods: int, n_sets: int, level: float = 0.05) -> float:
    """Nemenyi: q / sqrt(2) sqrt(k (k + 1) / (6 n)), q of the studentised range."""
    from scipy.stats import studentized_range

    quantile = studentized_range.ppf(1 - level, n_methods, np.inf) / math.sqrt(2)
    return float(quantile * math.sqrt(n_methods * (n_methods + 1) / (6 * n_sets)))


def cliques(ranks: list[float], difference: float) -> list[tuple[int, int]]:
    """Maximal runs (first, last) of sorted ranks that do not differ by the critical difference."""
    runs: list[tuple[int, int]] = []
    for first, rank in enumerate(ranks):
        last = max(j for j, other in enumerate(ranks) if other - rank <= difference)
        if last > first and (not runs or last > runs[-1][1]):
            runs.append((first, last))
    return runs


def plot_ranks(ranks: dict[str, float], difference: float, ax: Axes) -> Axes:
    """Ranks on a line, the best on the left; bars join methods that do not differ."""
    ordered = sorted(ranks.items(), key=lambda item: item[1])
    n, half = len(ordered), math.ceil(len(ordered) / 2)
    bars = cliques([rank for _, rank in ordered], difference)
    top = -0.25 * len(bars) - 0.4
    for i, (name, rank) in enumerate(ordered):
        left = i < half
        level = top - 0.5 * (i if left else n - 1 - i)
        edge = 0.6 if left else n + 0.4
        ax.plot([rank, rank, edge], [0, level, level], color="black", lw=0.8)
        side = "right" if left else "left"
        ax.text(edge, level, f" {name} ({rank:.2f}) ", ha=side, va="center", fontsize=9)
    for i, (first, last) in enumerate(bars):
        height = -0.25 * (i + 1)
        ax.plot([ordered[first][1], ordered[last][1]], [height, height], color="black", lw=3)
    ax.plot([1, 1 + difference], [0.9, 0.9], color=COLOURS["bound"], lw=2)
    ax.text(1 + difference / 2, 1.0, f"critical difference {difference:.2f}", fontsize=8)
    ax.plot([1, n], [0, 0], color="black", lw=1)
    for k in range(1, n + 1):
        ax.text(k, 0.15, str(k), ha="center", fontsize=8)
    ax.axis("off")
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
