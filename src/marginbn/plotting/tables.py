"""Conditional probability tables as heat maps."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from marginbn.network.network import BayesianNetwork
from marginbn.plotting.axes import ink_on, label, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_ROWS, _MOST_COLUMNS = 30, 12
"""Larger tables are drawn without numbers, and with a colour bar instead."""

_ROW_LABEL = 34
_WIDEST = 14.0  # inches
_LETTER = 0.095
"""Inches per letter of a tick label."""


def plot_table(network: BayesianNetwork, variable: str | int, *, ax: Axes | None = None) -> Axes:
    """Heat map of P(variable | parents): a row per joint state of the parents.

    Parameters
    ----------
    network
        Its tables are shown as probabilities.
    variable
        Name or index.
    ax
        Axes to draw on; by default a figure that grows with the table.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from marginbn import NaiveBayesClassifier
    >>> from marginbn.plotting import plot_table
    >>> clf = NaiveBayesClassifier().fit([["red"], ["red"], ["blue"]], ["a", "a", "b"])
    >>> plot_table(clf.network_, "x0").get_title()
    'P(x0 | class)'
    >>> plt.close()
    """
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
        _write_numbers(ax, table)
    else:
        ax.figure.colorbar(image, ax=ax, label="probability")
    ax.set_xlabel(label(network.names[i], 40))
    if parents:
        ax.set_ylabel(label(", ".join(label(network.names[p], 24) for p in parents), 60))
    ax.set_title(_title(network, i, parents), fontsize="medium")
    return ax


def _title(network: BayesianNetwork, i: int, parents: Sequence[int]) -> str:
    given = ", ".join(network.names[p] for p in parents)
    return label(f"P({network.names[i]} | {given})" if given else f"P({network.names[i]})", 64)


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
        ax.tick_params(axis="x", labelrotation=40)
        for tick in ax.get_xticklabels():
            tick.set(ha="right", rotation_mode="anchor")
    ax.tick_params(length=0)


def _write_numbers(ax: Axes, table: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> None:
    for (row, column), value in np.ndenumerate(table):
        text = f"{value:.2f}" if value >= 0.005 or value == 0 else "<.01"
        ax.text(column, row, text, ha="center", va="center", fontsize="small", color=ink_on(value))
