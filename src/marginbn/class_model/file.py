"""The class model in a model file.

::

    "class_model": {"cells": [{"cuts": [2.45, ...], "weights": [...], "positions": [...],
                               "family": [0, 0, 1, ...], "bin": [0, 1, 1, ...]}, ...],
                    "pairs": [[0, 3], ...], "precisions": [1.0, 3.0, "inf"],
                    "log_shares": [...], "parameters": [[...]], "objective": ..., "gap": ...}

Names, kinds, categories and states for missing values are those of the coding of the network, of
which the cells are parts. ``positions`` and ``cuts`` are empty for categories. Parameters are those
of :class:`marginbn.class_model.basis.Design`, row by row; tables follow from them.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import numpy as np

from marginbn.data.encode import Coding, TableCoding
from marginbn.files import Count, MisfitError, Shape

if TYPE_CHECKING:
    from marginbn.class_model.basis import FeatureCells
    from marginbn.class_model.trainer import ClassModel

Weight = Annotated[float, msgspec.Meta(ge=0)]
Precision = Annotated[float, msgspec.Meta(gt=0)]


class CellsShape(Shape, frozen=True):
    """Cells of one feature in a file."""

    cuts: tuple[float, ...]
    weights: Annotated[tuple[Weight, ...], msgspec.Meta(min_length=1)]
    positions: tuple[float, ...]
    family: tuple[Count, ...]
    bin: tuple[Count, ...]

    def __post_init__(self) -> None:
        if any(a >= b for a, b in pairwise(self.cuts)):
            raise ValueError("cuts must be increasing")
        if not len(self.weights) == len(self.family) == len(self.bin):
            raise ValueError("weights, family and bin must have an entry for every cell")
        if not sum(self.weights) > 0:
            raise ValueError("weights must not all be zero")
        if max(self.family) >= len(self.family):
            raise ValueError("family must name at most one family cell per cell")


class ModelShape(Shape, frozen=True):
    """The class model in a file."""

    cells: tuple[CellsShape, ...]
    pairs: tuple[tuple[Count, Count], ...]
    precisions: tuple[Precision, Precision, Precision | Literal["inf"]]
    log_shares: tuple[float, ...]
    parameters: tuple[tuple[float, ...], ...]
    objective: Weight
    gap: Weight


def write_class_model(model: ClassModel) -> dict[str, Any]:
    """The entry of the file."""
    line, effect, family = model.precisions
    return {
        "cells": [
            {
                "cuts": feature.coding.cuts,
                "weights": feature.weights,
                "positions": feature.positions,
                "family": feature.family,
                "bin": feature.bin,
            }
            for feature in model.design.cells.features
        ],
        "pairs": model.design.pairs,
        "precisions": [line, effect, family if np.isfinite(family) else "inf"],
        "log_shares": model.log_shares.tolist(),
        "parameters": model.parameters.tolist(),
        "objective": model.objective,
        "gap": model.gap,
    }


def read_class_model(shape: ModelShape, coding: TableCoding, n_classes: int) -> ClassModel:
    """The class model, which must fit the coding of the network."""
    from marginbn.class_model.basis import Design, TableCells
    from marginbn.class_model.trainer import ClassModel, Precisions

    if len(shape.cells) != len(coding.columns):
        raise MisfitError("$.class_model.cells: must have an entry for every feature")
    features = [
        _read_cells(cells, bins, f"$.class_model.cells[{i}]")
        for i, (cells, bins) in enumerate(zip(shape.cells, coding.columns, strict=True))
    ]
    n = len(features)
    if list(shape.pairs) != sorted({(i, j) for i, j in shape.pairs if i < j < n}):
        raise MisfitError("$.class_model.pairs: must be increasing pairs of features, sorted")
    design = Design(TableCells(tuple(features)), shape.pairs)
    n_scores = 1 if n_classes == 2 else n_classes
    if len(shape.log_shares) != n_scores:
        raise MisfitError(f"$.class_model.log_shares: must have {n_scores} entries")
    if [len(row) for row in shape.parameters] != [design.n_parameters] * n_scores:
        raise MisfitError(
            f"$.class_model.parameters: must be {n_scores} rows of {design.n_parameters} numbers"
        )
    return ClassModel(
        design,
        Precisions(*map(float, shape.precisions)),
        np.array(shape.log_shares),
        np.array(shape.parameters),
        shape.objective,
        shape.gap,
    )


def _read_cells(shape: CellsShape, bins: Coding, place: str) -> FeatureCells:
    from marginbn.class_model.basis import FeatureCells

    coding = replace(bins, cuts=shape.cuts, values=())
    is_number = bins.kind == "numeric"
    arity = len(shape.cuts) + 1 if is_number else len(bins.categories)
    if len(shape.weights) != arity + bins.missing_state:
        raise MisfitError(f"{place}: must have {arity + bins.missing_state} cells")
    if len(shape.positions) != (arity if is_number else 0):
        raise MisfitError(f"{place}.positions: must have an entry for every interval")
    if not is_number and shape.cuts:
        raise MisfitError(f"{place}.cuts: must be empty for a category")
    if list(shape.bin) != _bins_of(shape, bins):
        raise MisfitError(f"{place}.bin: the cells are not parts of the bins of the coding")
    return FeatureCells(coding, bins, shape.weights, shape.positions, shape.family, shape.bin)


def _bins_of(shape: CellsShape, bins: Coding) -> list[int]:
    """The bin of every cell, by where it ends; cells that cross a cut of a bin have none."""
    n_bins = len(bins.cuts) + 1
    if bins.kind != "numeric":
        own = list(range(len(bins.categories)))
        return own + [len(own)] * bins.missing_state
    if not set(bins.cuts) <= set(shape.cuts):
        return []
    own = [int(k) for k in np.searchsorted(bins.cuts, [*shape.cuts, np.inf])]
    return own + [n_bins] * bins.missing_state
