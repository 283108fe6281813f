"""What makes a good score worthless: columns that give the class away, and other slips of a table.

Looked at are up to :data:`LOOKED_AT` rows of the fixed sample. Every line names the column, the
evidence and what to do about it. ``fit`` warns of the same lines that ``inspect_data`` shows.

- A column *gives the class away* if it alone is right in nearly all held-out rows: the class of a
  value is learned from one half of the rows and compared with the other half.
- Columns *determine each other* if every value of one goes with one value of the other.
- A *class* of which most rows have one for themselves is an identifier or a measurement.
- A *second header* is a first row of words above columns of numbers.
- *Repeated rows* are told where measured numbers make equal rows unlikely.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbn.data.columns import SHOWN, Column, listed, parse_number
from marginbn.data.discretize import assign_bins, mdlp_cuts
from marginbn.data.labelled import LabelledTable, label_codes, mixed_bits, row_keys, sampled_rows
from marginbn.data.preparation import LEAST_VALUES
from marginbn.data.table import Table
from marginbn.problem.array_types import BoolArray, IntArray
from marginbn.problem.encoded import count_states

LOOKED_AT = 20_000
"""Rows that are looked at: a share of errors of 1 % has a standard error of 0.1 % in one half."""

LEAST_ROWS = 50
"""Rows that a table must have: in fewer, columns agree with the class by chance."""

MOST_ERRORS, MOST_EXPECTED = 0.02, 0.05
"""Errors of a column that is named, and errors to be expected of it, as shares of those that the
most frequent class makes."""

GLANCE_ROWS, GLANCE_SHARES = 1000, np.linspace(0.0, 1.0, 33)[1:-1]
"""Rows that are looked at first, and the quantiles between which numbers are alike there."""

REPEATED = 0.01
"""Share of the rows that must be repeated to be told."""


def find_slips(rows: LabelledTable, used: Sequence[str], has_class: bool = True) -> list[str]:
    """One line for each slip of the columns that are used, before they are prepared."""
    if rows.n_rows < LEAST_ROWS:
        return []
    few = sampled_rows(rows.n_rows, LOOKED_AT)
    if few is not None:
        rows = rows.take(few)
    table = rows.features.select(used)
    y = label_codes(rows.labels)[1].astype(np.int64) if has_class else np.zeros(0, dtype=np.int64)
    leaks = [(c.name, _leak(c, y)) for c in table.columns if has_class and _may_leak(c, y)]
    lines = [
        f"{name!r} alone gives the class away: right in {found[0]} of {found[1]} held-out rows; "
        f"drop it, {drop_of([name])}, unless it is known before the class is"
        for name, found in leaks
        if found is not None
    ]
    lines += [
        f"{listed(names[1:])} and {names[0]!r} determine each other in all {table.n_rows} rows: "
        f"drop all but one of them, {drop_of(names[1:])}"
        for names in _one_to_one(table)
    ]
    header = _second_header(table)
    if header:
        lines.append(header)
    n_repeated = _repeated_rows(table)
    if n_repeated > REPEATED * table.n_rows:
        lines.append(
            f"{n_repeated} of {table.n_rows} rows are repetitions of others: a held-out part may "
            "hold rows that were learned from; remove them, or hold out by group"
        )
    return lines


def class_slip(n_classes: int, n_rows: int) -> list[str]:
    """The line about a class that most rows have for themselves."""
    if not 2 * n_classes > n_rows >= LEAST_VALUES:
        return []
    return [
        f"{n_classes} classes in {n_rows} rows: is this the column to predict? It looks like an "
        "identifier or a measurement"
    ]


def drop_of(names: Sequence[str]) -> str:
    """What leaves columns out, in Python; the command line has ``--drop`` in its place."""
    return f"X.drop(columns={list(names)!r})"


# --- the class ------------------------------------------------------------------------------------


def _may_leak(column: Column, y: IntArray) -> bool:
    """Whether some rows leave it open that the column gives the class away: the majority classes of
    its values, or of as many bins of them, are then wrong in few of these rows.
    """
    few, own = column.take(np.arange(min(len(y), GLANCE_ROWS))), y[:GLANCE_ROWS]
    codes = few.codes
    if few.kind == "numeric":
        known = few.numbers[~few.missing]
        codes = assign_bins(few.numbers, np.quantile(known, GLANCE_SHARES) if len(known) else [])
    own, codes = own[codes >= 0], codes[codes >= 0]
    counts = count_states((codes, own), (int(codes.max(initial=0)) + 1, int(y.max()) + 1))
    wrong, rare = counts.sum() - counts.max(axis=1).sum(), counts.sum() - counts.sum(axis=0).max()
    return bool(rare < LEAST_ROWS or 2 * wrong <= rare)


def _leak(column: Column, y: IntArray) -> tuple[int, int] | None:
    """Held-out rows that the column alone gets right, and how many there are; None if it gets some
    wrong. Each half of the rows is judged by the other. With e errors, e + 3 bounds the number that
    is to be expected with a confidence of 95 % if e is 0, so that a small table is no proof.
    """
    n_classes = int(y.max()) + 1
    if n_classes < 2 or n_classes > len(y) // 2:
        return None
    first = row_keys(0, len(y)) % np.uint64(2) == 0
    right = judged = rare = 0
    for half in (first, ~first):
        own, guess = _judge(column, y, half, n_classes)
        right += int((own == guess).sum())
        judged += len(own)
        rare += len(own) - int(np.bincount(own, minlength=1).max())
    wrong = judged - right
    if 2 * judged < len(y) or wrong > MOST_ERRORS * rare or wrong + 3 > MOST_EXPECTED * rare:
        return None
    return right, judged


def _judge(
    column: Column, y: NDArray[np.integer], half: BoolArray, n_classes: int
) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
    """Classes of the rows that are not in the half, and the most frequent class of their value, or
    of their bin by cuts of the half, in the half; rows whose value it does not have are left out.
    """
    codes = column.codes
    if column.kind == "numeric":
        cuts = mdlp_cuts(column.numbers[half], y[half], np.ones(int(half.sum())), n_classes)
        codes = assign_bins(column.numbers, cuts)
    known = codes >= 0
    arities = int(codes.max(initial=0)) + 1, n_classes
    counts = count_states((codes[half & known], y[half & known]), arities)
    judged = ~half & known & (counts.sum(axis=1) > 0)[codes]
    return y[judged], counts.argmax(axis=1)[codes[judged]]


# --- columns --------------------------------------------------------------------------------------


def _one_to_one(table: Table) -> list[list[str]]:
    """Groups of columns whose values go together: numbered in the order in which they turn up they
    are equal. Columns of nearly nothing but different values are so by chance.
    """
    begun: dict[bytes, list[Column]] = {}  # most columns differ in the first rows already
    for column in table.columns:
        begun.setdefault(_order_of_values(_values(column)[:LEAST_ROWS]), []).append(column)
    groups: dict[bytes, list[str]] = {}
    for column in (column for columns in begun.values() if len(columns) > 1 for column in columns):
        values = _values(column)
        n_distinct = len(np.unique(values))
        is_by_chance = n_distinct > len(values) // 2  # but equal columns are told even so
        if n_distinct > 1:
            key = values.tobytes() if is_by_chance else _order_of_values(values)
            groups.setdefault(key, []).append(column.name)
    return [names for names in groups.values() if len(names) > 1]


def _values(column: Column) -> NDArray[Any]:
    return column.codes if column.kind == "categorical" else column.numbers


def _order_of_values(values: NDArray[Any]) -> bytes:
    """Numbers of values in the order in which they turn up."""
    distinct, first, place = np.unique(values, return_index=True, return_inverse=True)
    order = np.empty(len(distinct), dtype=np.int32)
    order[np.argsort(first)] = np.arange(len(distinct))
    return order[place.reshape(-1)].tobytes()


def _second_header(table: Table) -> str:
    """The line about a first row of words above numbers; empty if there is none."""
    words = {}
    for column in table.columns:
        if column.kind != "categorical" or column.codes[0] < 0 or len(column.categories) < 3:
            continue
        first = column.categories[column.codes[0]]
        others = [c for c in column.categories if c != first]
        is_alone = int((column.codes == column.codes[0]).sum()) == 1
        is_word = is_alone and isinstance(first, str) and parse_number(first) is None
        if is_word and all(not isinstance(c, str) or parse_number(c) is not None for c in others):
            words[column.name] = first
    if len(words) < 2:
        return ""
    cells = ", ".join(f"{word!r} in {name!r}" for name, word in list(words.items())[:SHOWN])
    return f"the first row looks like a second header ({cells}): remove it, it is read as a row"


def _repeated_rows(table: Table) -> int:
    """Rows that another one equals, where most different rows have a number of their own and more
    rows are equal than if the columns were independent; else 0. Rows that miss that number do not
    count.
    """
    numeric = [c for c in table.columns if c.kind == "numeric"]
    if not numeric:
        return 0
    measured = max(numeric, key=lambda column: len(np.unique(column.numbers)))
    known = table.take(~measured.missing)
    keys = np.zeros(known.n_rows, dtype=np.uint64)
    for column in known.columns:
        keys = mixed_bits(keys ^ (_values(column) + 0.0).view(np.uint64))
    n_different = len(np.unique(keys))
    n_numbers = len(np.unique(known.column(measured.name).numbers))
    if 4 * n_numbers < 3 * n_different:
        return 0
    by_chance = float(known.n_rows - n_numbers)  # where the numbers are equal, the others are too
    for column in known.drop(measured.name).columns:
        shares = np.unique(_values(column), return_counts=True)[1] / known.n_rows
        by_chance *= float((shares**2).sum())
    n_repeated = known.n_rows - n_different
    return n_repeated if n_repeated > by_chance + 5.0 * by_chance**0.5 else 0
