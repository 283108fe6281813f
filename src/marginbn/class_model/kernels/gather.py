"""Scores of rows from tables, and gradients by tables from rows.

A row has one code per feature, and its score for a class is a sum of entries, one of each table.
Nothing of the size rows x states is built: rows are taken in blocks, the scores of a block are
gathered table by table, and what its rows add to the gradient is scattered back to the same
entries. Tables and parameters have a row for every class, but for the first of two classes, whose
score is always zero.
"""

from __future__ import annotations

import math

import numpy as np

from marginbn.class_model.kernels.inputs import Codes, TableLayout
from marginbn.problem.array_types import CodeArray, FloatArray
from marginbn.solvers.compile import entry, kernel

BLOCK = 512
"""Rows of a block: their scores and their places in the tables stay in the cache."""


@kernel
def side(layout: TableLayout, t: int, which: int) -> FloatArray:
    """The matrix A or B of a table."""
    s = layout.sides[t, which]
    matrix = layout.bases[layout.base_start[s] : layout.base_start[s + 1]]
    return matrix.reshape((layout.shapes[s, 0], layout.shapes[s, 1]))


@entry
def expand(layout: TableLayout, parameters: FloatArray, tables: FloatArray) -> None:
    """Fill in the tables (scores, entries) of parameters (scores, parameters)."""
    for t in range(len(layout.sides)):
        a, b = side(layout, t, 0), side(layout, t, 1)
        values = np.zeros((a.shape[1], b.shape[1]))
        for k in range(len(parameters)):
            for j in range(layout.first_parameter[t], layout.first_parameter[t + 1]):
                values[layout.products[j, 0], layout.products[j, 1]] = parameters[k, j]
            table = tables[k, layout.first_entry[t] : layout.first_entry[t + 1]]
            table.reshape((len(a), len(b)))[:] = np.dot(np.dot(a, values), b.T)


@entry
def contract(layout: TableLayout, tables: FloatArray, gradient: FloatArray) -> None:
    """Fill in the gradient by the parameters from that by the tables; not by the offset."""
    for t in range(len(layout.sides)):
        a, b = side(layout, t, 0), side(layout, t, 1)
        for k in range(len(tables)):
            table = tables[k, layout.first_entry[t] : layout.first_entry[t + 1]]
            values = np.dot(np.dot(a.T, table.reshape((len(a), len(b)))), b)
            for j in range(layout.first_parameter[t], layout.first_parameter[t + 1]):
                gradient[k, j] = values[layout.products[j, 0], layout.products[j, 1]]


@kernel
def find_entry(layout: TableLayout, t: int, x: int, y: int) -> int:
    """Entry of a table for codes x and y of its two features."""
    s, other = layout.sides[t]
    row = layout.cell_of[layout.cell_start[s] + x]
    column = layout.cell_of[layout.cell_start[other] + y]
    return int(layout.first_entry[t] + row * layout.shapes[other, 0] + column)


@kernel
def add_up(
    layout: TableLayout,
    codes: Codes,
    offset: FloatArray,
    tables: FloatArray,
    entries: CodeArray,
    scores: FloatArray,
) -> None:
    """Fill in the scores (classes, rows) of a block, and the entries (tables, rows) it uses."""
    n, first = codes.shape[1], len(offset) - len(tables)
    for c in range(len(offset)):
        scores[c, :n] = offset[c]
    for t in range(len(layout.sides)):
        i, j = layout.features[t]
        for r in range(n):
            entries[t, r] = find_entry(layout, t, codes[i, r], codes[j, r])
        for k in range(len(tables)):
            for r in range(n):
                scores[first + k, r] += tables[k, entries[t, r]]


@kernel
def take_loss(scores: FloatArray, classes: Codes, weights: FloatArray) -> float:
    """Weighted log loss of a block; its scores become their derivatives."""
    loss = 0.0
    for r in range(len(classes)):
        peak, total = scores[:, r].max(), 0.0
        own = scores[classes[r], r] - peak
        for c in range(len(scores)):
            scores[c, r] = math.exp(scores[c, r] - peak)
            total += scores[c, r]
        loss += weights[r] * (math.log(total) - own)
        for c in range(len(scores)):
            scores[c, r] *= weights[r] / total
        scores[classes[r], r] -= weights[r]
    return loss


@entry
def gather(
    layout: TableLayout, codes: Codes, offset: FloatArray, tables: FloatArray, scores: FloatArray
) -> None:
    """Fill in the scores (classes, rows): the offset plus one entry of each table."""
    entries = np.empty((len(layout.sides), BLOCK), np.int32)
    for start in range(0, codes.shape[1], BLOCK):
        part = slice(start, start + BLOCK)
        add_up(layout, codes[:, part], offset, tables, entries, scores[:, part])


@entry
def loss_gradient(
    layout: TableLayout,
    codes: Codes,
    classes: Codes,
    weights: FloatArray,
    offset: FloatArray,
    tables: FloatArray,
    by_offset: FloatArray,
    by_tables: FloatArray,
) -> float:
    """Weighted log loss of the rows; adds its gradients by the offset and by the tables."""
    entries = np.empty((len(layout.sides), BLOCK), np.int32)
    scores = np.empty((len(offset), BLOCK))
    loss, first = 0.0, len(offset) - len(tables)
    for start in range(0, len(classes), BLOCK):
        part = slice(start, start + BLOCK)
        n = len(classes[part])
        add_up(layout, codes[:, part], offset, tables, entries, scores)
        loss += take_loss(scores, classes[part], weights[part])
        for c in range(len(offset)):
            by_offset[c] += scores[c, :n].sum()
        for t in range(len(layout.sides)):
            for k in range(len(tables)):
                for r in range(n):
                    by_tables[k, entries[t, r]] += scores[first + k, r]
    return loss
