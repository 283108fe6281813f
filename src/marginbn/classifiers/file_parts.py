"""Parts of model files: constructor parameters, what becomes of columns, where a model comes from.

**Parameters.** Lists stay lists; tuples, mappings and non-finite floats are marked as such, so that
they come back as what they were. numpy scalars and arrays become Python numbers and lists.

**Preparation.** ::

    "preparation": [{"name": "customer", "kind": "categorical", "left_out": "7043 of 7043 values
                     differ", "merged": [], "other": "other"}, ...]   one per column of training

It is null where every column is used as it is. The names of rows do not get into the file: of a
column that is left out there is the reason, not a value.

**Provenance.** When, with which versions, from which data, how good. Nothing of it is checked,
except that it is well formed: like all of a file it is what its writer says.
"""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
import numpy as np
import sklearn

from marginbn.data.columns import WantedKind
from marginbn.data.encode import TableCoding
from marginbn.data.preparation import ColumnPlan, Preparation
from marginbn.exceptions import InputError
from marginbn.files import MisfitError, Shape, shorten


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


class PlanShape(Shape, frozen=True):
    """One column in the file."""

    name: str
    kind: WantedKind
    left_out: str
    merged: tuple[str, ...]
    other: str


def write_preparation(preparation: Preparation) -> list[dict[str, object]] | None:
    """The entry of the file; None where every column is used as it is."""
    return None if preparation.is_plain else [vars(plan) for plan in preparation.columns]


def read_preparation(shapes: tuple[PlanShape, ...] | None, coding: TableCoding) -> Preparation:
    """What becomes of the columns, which must come out as those of the coding."""
    found = [(column.name, column.kind) for column in coding.columns]
    if shapes is None:
        return Preparation.unchanged(dict(found))
    preparation = Preparation(
        tuple(ColumnPlan(**msgspec.structs.asdict(shape)) for shape in shapes)
    )
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
    held_out: dict[str, float | None] | None = None


def provenance_of(
    classifier: Any, held_out: Mapping[str, float | None] | None = None
) -> Provenance:
    """That of a classifier that was loaded, or what can be said of one that was fitted here."""
    known: Provenance = classifier.provenance_ or Provenance(
        _now(), _versions(), classifier.data_fingerprint_
    )
    if held_out is None:
        return known
    measures = {k: v if v is not None and math.isfinite(v) else None for k, v in held_out.items()}
    return msgspec.structs.replace(known, held_out=measures)


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


def _versions() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
    }
