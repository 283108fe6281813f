"""Where to cut two features so that their table gains most.

For a pair of features there is a grid of sums g and h per class and cell (``pairs.py``). The
cells of a coarser table are unions of grid cells, and its gain is a sum over its cells. An ordered
axis begins with a single cut, both axes together at the best place; then the cut that gains most is
added to either axis, for as long as it gains. An axis of categories is never united.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marginbn.solvers.compile import entry, kernel

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]


@kernel
def cell_gain(g: float, h: float, ridge: float, price: float) -> float:
    """What a free parameter for a cell gains in log likelihood (a Newton step), minus its price."""
    return 0.5 * g * g * (h + 2.0 * ridge) / (h + ridge) ** 2 - price * h / (h + ridge)


@kernel
def number_groups(cuts: BoolArray, groups: IntArray) -> int:
    """Group of each state; cuts[k] says whether a cut lies after state k. Returns how many."""
    last = 0
    groups[0] = 0
    for k in range(len(cuts)):
        if cuts[k]:
            last += 1
        groups[k + 1] = last
    return last + 1


@kernel
def table_gain(
    g: FloatArray,
    h: FloatArray,
    rows: BoolArray,
    columns: BoolArray,
    sums: FloatArray,
    ridge: float,
    price: float,
) -> float:
    """Gain of the table with these cuts; ``sums`` is space for two tables."""
    n_classes, n_rows, n_columns = g.shape
    row_of = np.empty(n_rows, np.int64)
    column_of = np.empty(n_columns, np.int64)
    a = number_groups(rows, row_of)
    b = number_groups(columns, column_of)
    total = 0.0
    for c in range(n_classes):
        sums[:, :a, :b] = 0.0
        for i in range(n_rows):
            for j in range(n_columns):
                sums[0, row_of[i], column_of[j]] += g[c, i, j]
                sums[1, row_of[i], column_of[j]] += h[c, i, j]
        for i in range(a):
            for j in range(b):
                total += cell_gain(sums[0, i, j], sums[1, i, j], ridge, price)
    return total


@kernel
def add_best_cut(
    g: FloatArray,
    h: FloatArray,
    rows: BoolArray,
    columns: BoolArray,
    on_rows: bool,
    sums: FloatArray,
    ridge: float,
    price: float,
    best: float,
) -> tuple[float, int]:
    """Best gain after one more cut of one axis, and its place (-1: none gains)."""
    cuts = rows if on_rows else columns
    place = -1
    for k in range(len(cuts)):
        if cuts[k]:
            continue
        cuts[k] = True
        gain = table_gain(g, h, rows, columns, sums, ridge, price)
        cuts[k] = False
        if gain > best + 1e-9:
            best = gain
            place = k
    return best, place


@kernel
def start_cuts(
    g: FloatArray,
    h: FloatArray,
    rows: BoolArray,
    columns: BoolArray,
    free_rows: bool,
    free_columns: bool,
    sums: FloatArray,
    ridge: float,
    price: float,
) -> float:
    """The best first cut of the free axes, set in place; returns the gain."""
    best = -np.inf
    first = 0
    second = 0
    for i in range(len(rows) if free_rows else 1):
        for j in range(len(columns) if free_columns else 1):
            if free_rows:
                rows[i] = True
            if free_columns:
                columns[j] = True
            gain = table_gain(g, h, rows, columns, sums, ridge, price)
            if free_rows:
                rows[i] = False
            if free_columns:
                columns[j] = False
            if gain > best:
                best = gain
                first = i
                second = j
    if free_rows:
        rows[first] = True
    if free_columns:
        columns[second] = True
    return best


@entry
def best_cuts(
    g: FloatArray,
    h: FloatArray,
    free_rows: bool,
    free_columns: bool,
    most_groups: int,
    ridge: float,
    price: float,
) -> tuple[float, BoolArray, BoolArray]:
    """Gain, cuts of the rows, cuts of the columns, for sums g, h (classes, rows, columns)."""
    rows = np.full(g.shape[1] - 1, not free_rows)
    columns = np.full(g.shape[2] - 1, not free_columns)
    sums = np.empty((2, g.shape[1], g.shape[2]))
    best = start_cuts(g, h, rows, columns, free_rows, free_columns, sums, ridge, price)
    while True:
        row = -1
        column = -1
        if free_rows and rows.sum() + 1 < most_groups:
            best, row = add_best_cut(g, h, rows, columns, True, sums, ridge, price, best)
        if free_columns and columns.sum() + 1 < most_groups:
            best, column = add_best_cut(g, h, rows, columns, False, sums, ridge, price, best)
        if column >= 0:
            columns[column] = True
        elif row >= 0:
            rows[row] = True
        else:
            return best, rows, columns
