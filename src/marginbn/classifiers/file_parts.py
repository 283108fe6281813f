"""Parts of model files: constructor parameters, what becomes of columns, where a model comes from.

**Parameters.** Lists stay lists; tuples, mappings and non-finite floats are marked as such, so that
they come back as what they were. numpy scalars and arrays become Python numbers and lists.

**Preparation.** ::

    "preparation": [{"name": "customer", "kind": "categorical", "left_out": "7043 of 7043 values
                     differ", "merged": [], "other": "other"}, ...]   one per column of training

It is null where every column is used as it is. The names of rows do not get into the file: of a
column that is left out there is the reason, not a value.

**Class model.** ::

    "class_model": {"cells": [{"cuts": [2.45, ...], "weights": [...], "positions": [...],
                               "family": [0, 0, 1, ...]}, ...],
                    "pairs": [[0, 3], ...], "precisions": [1.0, 3.0, "inf"],
                    "log_shares": [...], "parameters": [[...]], "objective": ..., "gap": ...}

Names, kinds, categories and states for missing values are those of the coding of the network, of
which the cells are parts. ``positions`` and ``cuts`` are empty for categories. Parameters are those
of :class:`marginbn.class_model.basis.Design`, row by row; tables follow from them.

**Held-out rows.** The class of each row, as a place in the list of classes, its weight and its
probabilities, of which seven digits are kept.

**Provenance.** When, with which versions, from which data, how good. Nothing of it is checked,
except that it is well formed: like all of a file it is what its writer says.
"""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import pairwise
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import sklearn
from msgspec import structs
from numpy.typing import NDArray

from marginbn.class_model.basis import Design, FeatureCells, TableCells
from marginbn.class_model.trainer import ClassModel, Precisions
from marginbn.classifiers.measures import HeldOut
from marginbn.data.encode import Coding, TableCoding
from marginbn.data.preparation import ColumnPlan, Preparation
from marginbn.exceptions import InputError
from marginbn.files import Count, MisfitError, Shape, shorten


class NotPlainError(InputError):
    """A value that JSON cannot carry."""


def encode_value(value: Any) -> object:
    """A plain Python value for JSON; :func:`decode_value` is the inverse.

    Examples
    --------
    >>> encode_value({0: ("a", 1.5)})
    {'dict': [[0, {'tuple': ['a', 1.5]}]]}
    """
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, list):
        return [encode_value(v) for v in value]
    if isinstance(value, tuple):
        return {"tuple": [encode_value(v) for v in value]}
    if isinstance(value, Mapping) and all(isinstance(key, str | int) for key in value):
        return {"dict": [[key, encode_value(v)] for key, v in value.items()]}
    raise NotPlainError(f"{type(value).__name__} is not a plain value")


def decode_value(data: Any, place: str) -> Any:
    """The value that :func:`encode_value` made ``data`` of."""
    if isinstance(data, list):
        return [decode_value(v, place) for v in data]
    match data:
        case {"float": "inf" | "-inf" | "nan" as number, **rest} if not rest:
            return float(number)
        case {"tuple": [*items], **rest} if not rest:
            return tuple(decode_value(v, place) for v in items)
        case {"dict": [*pairs], **rest} if not rest:
            return dict(_decode_pair(pair, place) for pair in pairs)
        case dict():
            raise MisfitError(
                f"{place}: must be marked as float, tuple or dict, got {shorten(data)}"
            )
    return data


def _decode_pair(pair: object, place: str) -> tuple[str | int, Any]:
    match pair:
        case [str() | int() as key, value]:
            return key, decode_value(value, place)
    raise MisfitError(f"{place}: must be a key and a value, got {shorten(pair)}")


def read_preparation(plans: tuple[ColumnPlan, ...] | None, coding: TableCoding) -> Preparation:
    """What becomes of the columns, which must come out as those of the coding."""
    found = [(column.name, column.kind) for column in coding.columns]
    if plans is None:
        return Preparation.unchanged(dict(found))
    preparation = Preparation(plans)
    if preparation.results != found:
        raise MisfitError("$.preparation: does not make the columns of the coding")
    return preparation


EPOCH = "SOURCE_DATE_EPOCH"
"""Seconds since 1970 that stand for now, so that two builds are equal to the last byte."""

Digest = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]
_Time = Annotated[str, msgspec.Meta(pattern=r"\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\Z")]


class Provenance(Shape, frozen=True):
    """What a model file tells about its making; ``held_out`` are measures on rows not learned from.

    Examples
    --------
    >>> from marginbn.classifiers.file_parts import Provenance
    >>> Provenance(created="2026-01-31T12:00:00Z").held_out is None
    True
    """

    created: _Time | None = None
    versions: dict[str, str] | None = None
    data_sha256: Digest | None = None
    data_name: str | None = None
    held_out: dict[str, float | None] | None = None


def provenance_of(
    classifier: Any,
    held_out: Mapping[str, float | None] | None = None,
    data_name: str | None = None,
) -> Provenance:
    """That of a classifier that was loaded, or what can be said of one that was fitted here."""
    python, learn = platform.python_version(), sklearn.__version__
    versions = {"python": python, "numpy": np.__version__, "scikit-learn": learn}
    known: Provenance = classifier.provenance_ or Provenance(
        _now(), versions, classifier.data_fingerprint_
    )
    known = structs.replace(known, data_name=data_name or known.data_name)
    if held_out is None:
        return known
    measures = {k: v if v is not None and math.isfinite(v) else None for k, v in held_out.items()}
    return structs.replace(known, held_out=measures)


def _now() -> str:
    seconds = os.environ.get(EPOCH)
    if seconds is None:
        time = datetime.now(UTC)
    else:
        try:
            time = datetime.fromtimestamp(int(seconds), UTC)
        except (ValueError, OverflowError, OSError):
            raise InputError(
                f"the environment variable {EPOCH} must be whole seconds since 1970, "
                f"got {seconds!r}; correct it or unset it"
            ) from None
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


Weight = Annotated[float, msgspec.Meta(ge=0)]
Probability = Annotated[float, msgspec.Meta(ge=0, le=1)]
Precision = Annotated[float, msgspec.Meta(gt=0)]


class CellsShape(Shape, frozen=True):
    """Cells of one feature in a file."""

    cuts: tuple[float, ...]
    weights: Annotated[tuple[Weight, ...], msgspec.Meta(min_length=1)]
    positions: tuple[float, ...]
    family: tuple[Count, ...]

    def __post_init__(self) -> None:
        if any(a >= b for a, b in pairwise(self.cuts)):
            raise ValueError("cuts must be increasing")
        if len(self.weights) != len(self.family):
            raise ValueError("weights and family must have an entry for every cell")
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


class HeldOutShape(Shape, frozen=True):
    """Held-out rows in a file."""

    labels: Annotated[tuple[Count, ...], msgspec.Meta(min_length=1)]
    weights: tuple[Weight, ...]
    probabilities: tuple[tuple[Probability, ...], ...]


def write_held_out(held_out: HeldOut, classes: NDArray[Any]) -> dict[str, Any]:
    """The entry of the file."""
    return {
        "labels": np.searchsorted(classes, held_out.labels).tolist(),
        "weights": held_out.weights.tolist(),
        "probabilities": [[float(f"{p:.7g}") for p in row] for row in held_out.probabilities],
    }


def read_held_out(shape: HeldOutShape, classes: NDArray[Any]) -> HeldOut:
    """Held-out rows, which must fit the classes."""
    n_rows, n_classes = len(shape.labels), len(classes)
    if max(shape.labels) >= n_classes or {*map(len, shape.probabilities)} != {n_classes}:
        raise MisfitError("$.held_out: must have labels and probabilities of the classes")
    if not n_rows == len(shape.weights) == len(shape.probabilities):
        raise MisfitError("$.held_out: must have a label, a weight and probabilities per row")
    labels, weights = classes[list(shape.labels)], np.array(shape.weights)
    return HeldOut(labels, weights, np.array(shape.probabilities))


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
    try:
        coding = structs.replace(bins, cuts=shape.cuts, values=())
    except ValueError as error:
        raise MisfitError(f"{place}: {error}") from None
    is_number = bins.kind == "numeric"
    arity = len(shape.cuts) + 1 if is_number else len(bins.categories)
    if len(shape.weights) != arity + bins.missing_state:
        raise MisfitError(f"{place}: must have {arity + bins.missing_state} cells")
    if len(shape.positions) != (arity if is_number else 0):
        raise MisfitError(f"{place}.positions: must have an entry for every interval")
    if not {*bins.cuts} <= {*shape.cuts}:
        raise MisfitError(f"{place}.cuts: the cells are not parts of the bins of the coding")
    return FeatureCells(coding, bins, shape.weights, shape.positions, shape.family)
