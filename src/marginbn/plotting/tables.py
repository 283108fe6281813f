"""What decides: contributions of the variables as bars, conditional tables as heat maps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from marginbn.exceptions import InputError
from marginbn.network import explain
from marginbn.network.explain import Explanation, FittedClassifier, network_of
from marginbn.network.network import BayesianNetwork
from marginbn.network.wording import counted
from marginbn.plotting.axes import (
    AGAINST,
    FOR,
    GREY,
    is_classifier,
    label,
    new_axes,
    require_rows,
    turn_labels,
    write_numbers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NAME = 40  # columns of a row's label
_BAR_INCHES = 0.4
_ROOM = 0.16
"""Share of the width kept free on both sides for the numbers."""

_MOST_ROWS, _MOST_COLUMNS = 30, 12
"""Larger tables are drawn without numbers, and with a colour bar instead."""

_ROW_LABEL = 34
_WIDEST = 14.0  # inches
_LETTER = 0.095
"""Inches per letter of a tick label."""


def plot_explanation(
    explanation: Any, X: Any = None, *, most: int = 10, ax: Axes | None = None
) -> Axes:
    """Waterfall of a log margin: each bar begins where the one above it ended.

    Parameters
    ----------
    explanation
        From ``classifier.explain(X)[i]``; or a fitted classifier.
    X
        The row to explain, with a classifier; of several the first is shown.
    most
        Variables shown one by one; the others share a bar.
    ax
        Axes to draw on.

    Examples
    --------
    >>> from marginbn import NaiveBayesClassifier
    >>> from marginbn.plotting import plot_explanation
    >>> clf = NaiveBayesClassifier().fit([["red"], ["red"], ["blue"]], ["a", "a", "b"])
    >>> plot_explanation(clf.explain(["red"])[0]).get_title()
    'row 0: a (p = 0.771) against b'
    """
    if is_classifier(explanation):
        require_rows("plot_explanation", X, True)
        explanation = explanation.explain(X)[0]
    names, values = _bars(explanation, most)
    ax = new_axes(ax, (7.4, 1.1 + _BAR_INCHES * (len(names) + 1)))
    ends = [math.fsum(values[: k + 1]) for k in range(len(values))]
    starts = [0.0, *ends[:-1]]
    span = max(*ends, 0.0) - min(*ends, 0.0) or 1.0
    for row, (start, value) in enumerate(zip(starts, values, strict=True)):
        _bar(ax, row, start, value, span)
        if row + 1 < len(values):  # leads the eye to the next bar
            ax.plot([start + value] * 2, [row - 0.35, row + 1.35], color=GREY, linewidth=0.7)
    _bar(ax, len(values), 0.0, explanation.log_margin, span, bold=True)
    ax.axhline(len(values) - 0.5, color=GREY, linewidth=0.7)
    ax.axvline(0.0, color=GREY, linewidth=0.9, zorder=0)
    _name_rows(ax, [*names, "log margin"])
    low, high = min(*ends, 0.0), max(*ends, 0.0)
    ax.set_xlim(low - _ROOM * span, high + _ROOM * span)
    own, rival = label(str(explanation.label), 24), label(str(explanation.rival), 24)
    ax.set_xlabel(f"nats: to the left for {rival}, to the right for {own}")
    title = f"row {explanation.row}: {own} (p = {explanation.probability:.3g}) against {rival}"
    ax.set_title(title, fontsize="medium")
    return ax


def plot_mean_contributions(
    mean: Any, X: Any = None, y: Any = None, *, most: int = 20, ax: Axes | None = None
) -> Axes:
    """Bars of the mean size of the contributions, most important first; dots are the means.

    Parameters
    ----------
    mean
        From :func:`marginbn.network.explain.mean_contributions`; or a fitted classifier.
    X, y
        Rows and their labels, with a classifier.
    most
        Variables shown.
    ax
        Axes to draw on.

    Examples
    --------
    >>> from marginbn import MeanContributions
    >>> from marginbn.plotting import plot_mean_contributions
    >>> mean = MeanContributions(("hue", "class"), (0.8, -0.1), (1.2, 0.4), 60, "true class")
    >>> [tick.get_text() for tick in plot_mean_contributions(mean).get_yticklabels()]
    ['hue', 'class']
    """
    if most < 1:
        raise InputError(f"most must be at least 1, got {most}")
    if is_classifier(mean):
        require_rows("plot_mean_contributions", X, True)
        mean = explain.mean_contributions(mean, X, y)
    names, sizes, means = mean.variables[:most], mean.mean_absolute[:most], mean.mean[:most]
    ax = new_axes(ax, (6.4, 1.1 + _BAR_INCHES * len(names)))
    rows = range(len(names))
    ax.barh(rows, sizes, color=FOR, alpha=0.6, height=0.7, label="mean size")
    ax.plot(means, rows, "o", color=AGAINST, markersize=5, label="mean")
    ax.axvline(0.0, color=GREY, linewidth=0.9)
    _name_rows(ax, [label(name) for name in names])
    left_out = len(mean.variables) - len(names)
    more = f", {counted(left_out, 'smaller variable')} not shown" if left_out else ""
    about = f"{counted(mean.n_samples, 'row')}{more}"
    ax.set_xlabel(f"contribution for the {mean.argued_for} (nats)\n{about}")
    ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, frameon=False)
    return ax


def _bars(explanation: Explanation, most: int) -> tuple[list[str], list[float]]:
    """Name and value of each bar: the largest contributions, then the rest together."""
    shown, rest = explain.split_largest(explanation.contributions, most)
    bars = [*((_name(c), c.value) for c in shown), *explain.sum_rest(rest)]
    return [name for name, _ in bars], [value for _, value in bars]


def _name(contribution: explain.Contribution) -> str:
    """The variable's own state, and its parents' on a second line."""
    own = label(contribution.assignment, _NAME)
    return f"{own}\n{label('given ' + contribution.given, _NAME)}" if contribution.parents else own


def _bar(
    ax: Axes, row: int, start: float, value: float, span: float, *, bold: bool = False
) -> None:
    """A bar from start to start + value, with its number beyond the end."""
    ax.barh(row, value, left=start, height=0.7, color=FOR if value >= 0 else AGAINST)
    place = start + value + (0.012 if value >= 0 else -0.012) * span
    side = "left" if value >= 0 else "right"
    weight = "bold" if bold else "normal"
    ax.text(place, row, f"{value:+.2f}", ha=side, va="center", fontsize="small", weight=weight)


def _name_rows(ax: Axes, names: Sequence[str]) -> None:
    ax.set_yticks(range(len(names)), labels=list(names), fontsize="small", linespacing=1.25)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)


def plot_table(
    network: BayesianNetwork | FittedClassifier, variable: str | int, *, ax: Axes | None = None
) -> Axes:
    """Heat map of P(variable | parents): a row per joint state of the parents.

    Parameters
    ----------
    network
        A network or a fitted classifier; its tables are shown as probabilities.
    variable
        Name or index.
    ax
        Axes to draw on; by default a figure that grows with the table.

    Examples
    --------
    >>> from marginbn import NaiveBayesClassifier
    >>> from marginbn.plotting import plot_table
    >>> clf = NaiveBayesClassifier().fit([["red"], ["red"], ["blue"]], ["a", "a", "b"])
    >>> plot_table(clf.network_, "x0").get_title()
    'P(x0 | class)'
    """
    network = network_of(network)
    i = network.variable_index(variable)
    parents = network.structure.parents[i]
    table = np.exp(network.log_tables[i]).reshape(-1, network.arities[i])
    states = [network.variables[p].states for p in parents]
    contexts = [label(", ".join(context), _ROW_LABEL) for context in product(*states)]
    columns = [label(state, 16) for state in network.variables[i].states]
    ax = new_axes(ax, _figure_size(table.shape, contexts, columns))
    image = ax.imshow(table, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    _mark_states(ax, columns, contexts)
    if len(table) <= _MOST_ROWS and len(columns) <= _MOST_COLUMNS:
        write_numbers(ax, table, np.vectorize(_probability)(table), "small")
    else:
        ax.figure.colorbar(image, ax=ax, label="probability")
    ax.set_xlabel(label(network.names[i], 40))
    if parents:
        ax.set_ylabel(label(", ".join(label(network.names[p], 24) for p in parents), 60))
    given = f" | {', '.join(network.names[p] for p in parents)}" if parents else ""
    ax.set_title(label(f"P({network.names[i]}{given})", 64), fontsize="medium")
    return ax


def _figure_size(
    shape: tuple[int, ...], contexts: Sequence[str], columns: Sequence[str]
) -> tuple[float, float]:
    widest = max(map(len, columns))
    margin = 0.9 + _LETTER * max(map(len, contexts))
    width = margin + min(shape[1], 24) * max(0.55, _LETTER * min(widest + 2, 12))
    turned = _LETTER * 0.7 * widest if widest > 10 else 0.0
    return min(max(width, 4.2), _WIDEST), 1.4 + 0.3 * min(shape[0], 40) + turned


def _mark_states(ax: Axes, columns: Sequence[str], contexts: Sequence[str]) -> None:
    step = -(-len(contexts) // 40)  # at most 40 labels
    ax.set_yticks(range(0, len(contexts), step), labels=list(contexts[::step]))
    across = -(-len(columns) // 40)
    room = ax.get_window_extent().width / ax.figure.dpi / len(columns)
    turned = max(map(len, columns)) * _LETTER * across > room
    ax.set_xticks(range(0, len(columns), across), labels=list(columns[::across]))
    if turned:
        turn_labels(ax)
    ax.tick_params(length=0)


def _probability(value: float) -> str:
    return f"{value:.2f}" if value >= 0.005 or value == 0 else "<.01"
