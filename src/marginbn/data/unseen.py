"""Categories that training never saw: one warning per prediction, with the likely reason.

They count as missing, which is right for a new colour and wrong for a column that has become text,
lost its upper case or been written with decimals on its way: then every prediction is made without
it. A label that differs from one of training by nothing but that looks like a slip.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass

import numpy as np

from marginbn.data.columns import Column, parse_number
from marginbn.data.encode import Coding, TableCoding
from marginbn.data.table import Table
from marginbn.exceptions import DataWarning

EXAMPLES = 3
MOST_COLUMNS = 5


@dataclass(frozen=True)
class UnseenCategories:
    """Of one column: how many values, some of the labels, and known ones that look alike."""

    name: str
    n_values: int
    labels: tuple[str, ...]
    lookalikes: dict[str, str]

    def text(self) -> str:
        """As in ``'job' (12 values, such as 'RETIRED')``."""
        shown = ", ".join(map(repr, self.labels[:EXAMPLES]))
        noun = "value" if self.n_values == 1 else "values"
        return f"{self.name!r} ({self.n_values} {noun}, such as {shown})"


def find_unseen(coding: Coding, column: Column) -> UnseenCategories | None:
    """The values of a column that training never saw; None if there are none."""
    if coding.kind != "categorical":
        return None
    column = column.as_kind("categorical")
    known = {str(category) for category in coding.categories}
    strange = np.array([label not in known for label in column.labels] + [False])
    if not strange.any():
        return None
    counts = np.bincount(column.codes[strange[column.codes]], minlength=len(column.categories))
    if not counts.any():
        return None
    labels = [column.labels[i] for i in np.argsort(-counts, kind="stable") if counts[i]]
    plain = {_plain(label): label for label in known}
    alike = {label: plain[_plain(label)] for label in labels if _plain(label) in plain}
    return UnseenCategories(coding.name, int(counts.sum()), tuple(labels), alike)


def _plain(label: str) -> str:
    """What is left of a label without decimals, upper case and spaces."""
    text = label.strip().casefold()
    number = parse_number(text)
    return text if number is None else repr(number)


def add_unseen(tally: dict[str, UnseenCategories], coding: TableCoding, table: Table) -> None:
    """Add what a chunk of rows holds to what those before it held, by column."""
    for one, column in zip(coding.columns, table.columns, strict=True):
        found = find_unseen(one, column)
        before = tally.get(one.name)
        if found is not None and before is not None:
            labels = tuple(dict.fromkeys([*before.labels, *found.labels]))
            n_values = before.n_values + found.n_values
            alike = before.lookalikes | found.lookalikes
            found = UnseenCategories(one.name, n_values, labels, alike)
        if found is not None:
            tally[one.name] = found


def tell_unseen(coding: TableCoding, table: Table) -> None:
    """One warning about all columns."""
    tally: dict[str, UnseenCategories] = {}
    add_unseen(tally, coding, table)
    tell_tally(tally)


def tell_tally(tally: dict[str, UnseenCategories]) -> None:
    """One warning about all columns of all pieces of a table."""
    found = list(tally.values())
    if found:
        warnings.warn(describe_unseen(found), DataWarning, stacklevel=_level_of_caller())


def describe_unseen(found: list[UnseenCategories]) -> str:
    """The warning: columns, counts, examples, and whether it looks like a slip."""
    listed = ", ".join(unseen.text() for unseen in found[:MOST_COLUMNS])
    more = f" and {len(found) - MOST_COLUMNS} more columns" if len(found) > MOST_COLUMNS else ""
    text = f"categories never seen in training count as missing: {listed}{more}"
    slips = [unseen for unseen in found if 2 * len(unseen.lookalikes) >= len(unseen.labels)]
    if not slips:
        return text
    label, known = next(iter(slips[0].lookalikes.items()))
    return (
        f"{text}. This looks like a slip of types or spelling: {label!r} in {slips[0].name!r} was "
        f"{known!r} in training; give the columns the types they had there"
    )


def _level_of_caller() -> int:
    """Level of the first frame outside this package, for a warning of the function that asks."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("marginbn"):
        frame, level = frame.f_back, level + 1
    return level
