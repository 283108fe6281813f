"""Small tables for the tests of the class model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marginbn.class_model.basis import Design, TableCells, family_pairs, learn_cells
from marginbn.data.labelled import LabelledTable
from marginbn.data.table import as_table
from marginbn.problem.encoded import EncodedData
from marginbn.problem.structure import Structure

CHAIN = Structure(((), (0,), (0, 1), (0, 2), (0, 3)))
"""The class above four features, which are a chain."""

COUPLED = Structure(((), (0,), (0, 1), (0, 1, 2), (0, 2, 3)))
"""The same with two further arcs: two feature parents each."""


def mixed_rows(n_rows: int, n_classes: int = 2, seed: int = 0) -> LabelledTable:
    """Two numbers, one of them with missing values, and two categories; an interaction."""
    rng = np.random.default_rng(seed)
    x, z = rng.normal(size=n_rows).round(2), rng.exponential(size=n_rows).round(1)
    a = rng.integers(0, 3, n_rows)
    b = np.where(rng.random(n_rows) < 0.7, a, rng.integers(0, 3, n_rows))
    score = x * (a - 1) + 0.5 * z + rng.normal(size=n_rows)
    cuts = np.quantile(score, np.arange(1, n_classes) / n_classes)
    labels = np.searchsorted(cuts, score)
    is_missing = rng.random(n_rows) < 0.15
    table = [
        [float(x[n]), None if is_missing[n] else float(z[n]), "uvw"[a[n]], "rst"[b[n]]]
        for n in range(n_rows)
    ]
    kinds = {"x0": "numeric", "x1": "numeric", "x2": "categorical", "x3": "categorical"}
    return LabelledTable.of(as_table(table, kinds=kinds), labels)


def learned(rows: LabelledTable) -> tuple[TableCells, EncodedData]:
    return learn_cells(rows, np.unique(rows.labels))


def designed(rows: LabelledTable, structure: Structure = CHAIN) -> tuple[Design, EncodedData]:
    cells, data = learned(rows)
    return Design(cells, family_pairs(structure)), data


def functions(design: Design, codes: NDArray[np.integer]) -> NDArray[np.float64]:
    """All functions of the design for compact codes, (rows, parameters), the constant first."""
    tables = [design.table_rows(codes, t) for t in range(len(design.tables))]
    return np.concatenate([np.ones((codes.shape[1], 1)), *tables], axis=1)


def hidden(codes: NDArray[np.int32], share: float, seed: int = 0) -> NDArray[np.int32]:
    """Codes with some of them unknown."""
    return np.where(np.random.default_rng(seed).random(codes.shape) < share, -1, codes)
