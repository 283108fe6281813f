"""What becomes of rows with missing values, and what that costs.

- ``"drop"`` leaves them out;
- ``"state"`` keeps them: missing is a state of the column;
- ``"auto"`` does one or the other column by column: a state where more than one row in twenty
  misses a value, rows left out elsewhere, as long as all of them together are at most one row in
  twenty and no class loses more than one row in five. So no class is ever lost;
- ``"error"`` refuses them.

A class that would have no row left is an error whatever the policy.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from marginbn.data.table import Table
from marginbn.exceptions import DataWarning, InputError

MissingPolicy = Literal["auto", "drop", "state", "error"]

MOST_ROWS = 0.05
"""Share of the rows that "auto" leaves out, at most; columns that miss more get a state."""

MOST_OF_A_CLASS = 0.2
"""Share of the rows of any class that "auto" leaves out, at most."""


@dataclass(frozen=True, eq=False)
class MissingCost:
    """What a policy does to rows, columns and classes.

    Parameters
    ----------
    kept
        bool (n_rows,), the rows that stay.
    state_columns
        Columns in which missing becomes a state.
    dropping_columns
        Columns that cost rows.
    lost_classes
        Classes of which no row stays.
    """

    kept: NDArray[np.bool_]
    state_columns: tuple[str, ...]
    dropping_columns: tuple[str, ...]
    lost_classes: tuple[Any, ...]

    @property
    def n_dropped(self) -> int:
        """Rows left out."""
        return int((~self.kept).sum())


def missing_cost(features: Table, labels: NDArray[Any], policy: str) -> MissingCost:
    """What a policy would do; "error" counts as "drop"."""
    missing = {c.name: c.missing for c in features.columns if c.missing.any()}
    return cost_of_places(missing, labels, policy)


def cost_of_places(
    missing: Mapping[str, NDArray[np.bool_]], labels: NDArray[Any], policy: str
) -> MissingCost:
    """The same of the columns that miss values, and the places where they do."""
    if policy == "state":
        states = list(missing)
    elif policy == "auto":
        states = _columns_with_state(missing, labels)
    else:
        states = []
    dropping = [name for name in missing if name not in states]
    kept = ~_any([missing[name] for name in dropping], len(labels))
    lost = np.setdiff1d(labels, labels[kept])
    return MissingCost(kept, tuple(states), tuple(dropping), tuple(lost.tolist()))


def _columns_with_state(
    missing: Mapping[str, NDArray[np.bool_]], labels: NDArray[Any]
) -> list[str]:
    """Columns whose missing values become a state under "auto", in their order."""
    few = [name for name, places in missing.items() if places.mean() <= MOST_ROWS]
    few.sort(key=lambda name: int(missing[name].sum()))
    while few and not _is_bearable(_any([missing[name] for name in few], len(labels)), labels):
        few.pop()  # the column that costs most
    return [name for name in missing if name not in few]


def _is_bearable(dropped: NDArray[np.bool_], labels: NDArray[Any]) -> bool:
    _, classes = np.unique(labels, return_inverse=True)
    of_class = np.bincount(classes, dropped) / np.bincount(classes)
    return bool(dropped.mean() <= MOST_ROWS and of_class.max() <= MOST_OF_A_CLASS)


def _any(places: Sequence[NDArray[np.bool_]], n_rows: int) -> NDArray[np.bool_]:
    found = np.zeros(n_rows, dtype=np.bool_)
    for one in places:
        found |= one
    return found


def rows_to_keep(
    features: Table, labels: NDArray[Any], policy: str, stacklevel: int = 2
) -> NDArray[np.bool_]:
    """Rows that the policy leaves, bool (n_rows,); what is left out is told in a warning."""
    missing = {c.name: c.missing for c in features.columns if c.missing.any()}
    cost = cost_of_places(missing, labels, policy)
    report_cost(cost, missing, policy, stacklevel + 1)
    return cost.kept


def report_cost(
    cost: MissingCost, missing: Mapping[str, NDArray[np.bool_]], policy: str, stacklevel: int
) -> None:
    """Warn of rows that are left out, or refuse to leave them out."""
    if not cost.n_dropped:
        return
    n_rows = len(cost.kept)
    if policy == "error":
        raise InputError(
            f"{cost.n_dropped} of {n_rows} rows have missing values, in the columns "
            f"{list(cost.dropping_columns)}; use missing='drop', 'state' or 'auto', or fill them in"
        )
    if cost.lost_classes:
        raise InputError(_lost_text(cost, policy, missing))
    names = f", which miss {_quoted(cost.dropping_columns)}" if policy == "auto" else ""
    warnings.warn(
        f"{cost.n_dropped} of {n_rows} rows have missing values and are left out "
        f"(missing={policy!r}){names}; missing='state' keeps them",
        DataWarning,
        stacklevel=stacklevel,
    )


def _lost_text(cost: MissingCost, policy: str, missing: Mapping[str, NDArray[np.bool_]]) -> str:
    remedy = (
        "use missing='auto' or missing='state', or leave out the columns that miss most: "
        f"{_worst_columns(missing)}"
    )
    if not cost.kept.any():
        return f"every row has a missing value, so missing={policy!r} leaves none; {remedy}"
    noun = "class" if len(cost.lost_classes) == 1 else "classes"
    return f"missing={policy!r} leaves no row of the {noun} {_quoted(cost.lost_classes)}; {remedy}"


def _worst_columns(missing: Mapping[str, NDArray[np.bool_]], most: int = 3) -> str:
    """The columns with the most missing values, and how many."""
    counts = {name: int(places.sum()) for name, places in missing.items()}
    worst = sorted(counts, key=counts.__getitem__, reverse=True)[:most]
    return ", ".join(f"{name!r} ({counts[name]} rows)" for name in worst)


def _quoted(values: Sequence[Any], most: int = 5) -> str:
    return ", ".join(map(repr, values[:most])) + (", ..." if len(values) > most else "")
