"""The part of a model file that says what becomes of the columns of a raw table.

::

    "preparation": [{"name": "customer", "kind": "categorical", "left_out": "7043 of 7043 values
                     differ", "merged": [], "other": "other"}, ...]   one per column of training

It is there only where a column is not used as it is. The names of rows do not get into the file:
of a column that is left out there is the reason, not a value.
"""

from __future__ import annotations

from dataclasses import dataclass

from marginbn.classifiers.base import BaseBNClassifier
from marginbn.data.columns import WantedKind
from marginbn.data.encode import TableCoding
from marginbn.data.preparation import ColumnPlan, Preparation
from marginbn.files import MisfitError


@dataclass(frozen=True)
class PlanShape:
    """One column in the file."""

    name: str
    kind: WantedKind
    left_out: str
    merged: tuple[str, ...]
    other: str


def write_preparation(classifier: BaseBNClassifier) -> dict[str, object]:
    """The entry of the file; nothing where every column is used as it is."""
    preparation = classifier._preparation
    if preparation.is_plain:
        return {}
    plans = [vars(plan) | {"merged": list(plan.merged)} for plan in preparation.columns]
    return {"preparation": plans}


def read_preparation(shapes: tuple[PlanShape, ...] | None, coding: TableCoding) -> Preparation:
    """What becomes of the columns, which must come out as those of the coding."""
    found = [(column.name, column.kind) for column in coding.columns]
    if shapes is None:
        return Preparation.unchanged(dict(found))
    preparation = Preparation(tuple(ColumnPlan(**vars(shape)) for shape in shapes))
    if preparation.results != found:
        raise MisfitError("$.preparation: does not make the columns of the coding")
    return preparation
