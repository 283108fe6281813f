"""A look at a table before anything is learned from it.

With k classes and features of a_i states, naive Bayes has (k - 1) + k sum_i (a_i - 1) free
parameters, and a network in which every feature has one more parent up to max_j a_j times the sum.
Without a class k is 1.
"""

from __future__ import annotations

import html
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from marginbn.data.columns import SHOWN, Column, listed
from marginbn.data.discretize import N_BINS
from marginbn.data.guardrails import class_slip
from marginbn.data.labelled import LabelledTable, MissingPolicy, refuse_measured
from marginbn.data.preparation import (
    ColumnPlan,
    TableSettings,
    may_be_identifier,
    what_else,
    why_identifier,
)
from marginbn.data.table import Kinds, as_column, as_table
from marginbn.data.texts import is_amount_kind, is_date_kind
from marginbn.data.training import TrainingRows, survey_rows
from marginbn.exceptions import DataWarning, InputError

RARE_COUNT = 5
"""A category or class with fewer rows is called rare."""

DOMINANT_SHARE = 0.9
"""A class with a larger share of the rows is told."""

LIKE_MISSING = frozenset({*"?-.", "", "--", "na", "n/a", "#n/a", "nan", "nat", "null", "none"})
"""Texts, in lower case, that often mean missing. In text files some of them do."""

POLICIES = ("drop", "auto", "state")


@dataclass(frozen=True)
class ColumnReport:
    """One column that is not the class: rows without a value, distinct values, categories with
    fewer than 5 rows, states that are learned from (0 if it is left out), and a remark in a few
    words if something should give pause.
    """

    name: str
    kind: str
    n_missing: int
    n_distinct: int
    n_rare: int
    n_states: int
    remark: str


@dataclass(frozen=True)
class PolicyReport:
    """What a way to treat missing values costs: rows, and classes of which none is left."""

    n_rows_lost: int
    lost_classes: tuple[Any, ...]


@dataclass(frozen=True)
class DataReport:
    """What a table holds, what a fit will make of it, and what should give pause.

    Parameters
    ----------
    target, n_rows, n_without_class, classes
        Name of the class (None if no column is one), rows, rows that have no class, and rows of
        each class.
    columns, policies
        One entry per column that is not the class, and the cost of each ``missing`` policy.
    n_parameters, n_parameters_tree
        Free parameters of naive Bayes, and at most with one more parent per feature. Without a
        class: of a network without arcs, and at most with one parent per column.
    done, hints
        What a fit does with columns and the slips of the table, which a fit gives as warnings; and
        what else should give pause, one line each.

    Examples
    --------
    >>> from marginbn import inspect_data
    >>> X = [[f"n{i}", "red" if i % 3 else "blue", None] for i in range(30)]
    >>> report = inspect_data(X, [i % 2 for i in range(30)])
    >>> {column.name: column.remark for column in report.columns if column.remark}
    {'x0': 'left out: 30 of 30 values differ', 'x2': 'left out: it has no value in any row'}
    >>> report.classes, report.n_parameters
    ({0: 15, 1: 15}, 3)

    Without a class:

    >>> inspect_data(X).n_parameters
    1
    """

    target: str | None
    n_rows: int
    n_without_class: int
    classes: dict[Any, int]
    columns: tuple[ColumnReport, ...]
    policies: dict[str, PolicyReport]
    n_parameters: int
    n_parameters_tree: int
    done: tuple[str, ...]
    hints: tuple[str, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """Everything that should be read before the verdict, one line each."""
        return (*self.done, *self.hints)

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON values; classes by their text."""
        record = asdict(self)
        record["classes"] = {str(label): n for label, n in self.classes.items()}
        for policy in record["policies"].values():
            policy["lost_classes"] = [str(label) for label in policy["lost_classes"]]
        return record

    def __str__(self) -> str:
        columns = [["column", "kind", "missing", "distinct", "states", "remark"]]
        columns += [
            [c.name, c.kind, str(c.n_missing), str(c.n_distinct), str(c.n_states), c.remark]
            for c in self.columns
        ]
        policies = [["missing", "rows lost", "classes lost"]]
        policies += [
            [name, str(p.n_rows_lost), ", ".join(map(str, p.lost_classes)) or "none"]
            for name, p in self.policies.items()
        ]
        if self.target is None:
            about, small = f"{len(self.columns)} columns, no class", _WITHOUT_ARCS
            large, tables = "one with a parent per column", [columns, [row[:2] for row in policies]]
        else:
            about, small = f"{len(self.columns)} features, class {self.target!r}", _NAIVE
            total = max(sum(self.classes.values()), 1)
            shares = [[str(c), str(n), f"{100 * n / total:.1f} %"] for c, n in self.classes.items()]
            large = "a network with one more parent per feature"
            tables = [[[self.target, "rows", "share"], *shares], columns, policies]
        rows = f"{self.n_rows} row{'s'[: self.n_rows != 1]}"
        lines = [f"{rows}, {about}", "", *(f"! {note}" for note in self.notes)]
        lines += [""] * bool(self.notes)
        for table in tables:
            widths = [max(map(len, column)) for column in zip(*table, strict=True)]
            padded = [map(str.ljust, row, widths) for row in table]
            lines += [*("  ".join(row).rstrip() for row in padded), ""]
        lines.append(
            f"{small} would have {self.n_parameters} free parameters, {large} at most "
            f"{self.n_parameters_tree}"
        )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self), quote=False)}</pre>"


_NAIVE = "naive Bayes"
_WITHOUT_ARCS = "a network without arcs"


def inspect_data(
    X: Any,
    y: Any = None,
    *,
    column_kinds: Kinds = "auto",
    missing: MissingPolicy | None = None,
    n_bins: int = N_BINS,
) -> DataReport:
    """Look at a table before learning from it.

    There is an example in :class:`~marginbn.data.inspection.DataReport`.

    Parameters
    ----------
    X, y
        As for ``fit``; rows without a class are counted and left out. Without `y` no column is a
        class, as for :class:`marginbn.BayesianNetworkLearner`.
    column_kinds, missing
        As of the classifiers and of the learner; ``missing=None`` is their default, "auto" with a
        class and "drop" without.
    n_bins
        Of the learner; only without `y`.
    """
    settings = TableSettings(column_kinds, missing or ("drop" if y is None else "auto"))
    if n_bins < 1:
        raise InputError(f"n_bins must be at least 1, got {n_bins}")
    table = as_table(X, kinds=column_kinds)
    if y is None:
        rows = LabelledTable.of(table, np.zeros(table.n_rows, dtype=np.int64))
        return inspect_rows(prepare_quietly(rows, settings, has_class=False), n_bins=n_bins)
    labels = as_column(y, name=str(getattr(y, "name", None) or "class"), kind="categorical")
    known = ~labels.missing
    if not known.any():
        raise InputError("y must hold a class in at least one row")
    if table.n_rows != labels.n_rows:
        raise InputError(f"X and y must be of equal length, got {table.n_rows} and {labels.n_rows}")
    values = np.asarray(labels.take(known).values.tolist())
    refuse_measured(values, "y")
    rows = LabelledTable.of(table.take(known), values, labels.name)
    return inspect_rows(prepare_quietly(rows, settings), n_without_class=int((~known).sum()))


def prepare_quietly(
    rows: LabelledTable, settings: TableSettings, has_class: bool = True
) -> TrainingRows:
    """Rows as a fit prepares them; what it warns of stands in the report."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return TrainingRows.of(survey_rows(rows, has_class), settings, is_lenient=True)


def inspect_rows(
    rows: TrainingRows, n_without_class: int = 0, n_bins: int | None = None
) -> DataReport:
    """The same for rows that are prepared already; ``n_bins`` where none is a class."""
    found, has_class = rows.found, rows.found.target is not None
    states = {v.name: v.arity for v in rows.coding(n_bins=n_bins).variables}
    columns = tuple(_inspect_column(column, rows, states) for column in found.sample.columns)
    n_classes = len(found.classes)
    counts = np.bincount(found.class_codes, minlength=n_classes).tolist()
    by_class = dict(zip(found.classes.tolist(), counts, strict=True)) if has_class else {}
    free, widest = sum(states.values()) - len(states), max(states.values(), default=1)
    plain, tree = (n_classes - 1 + n_classes * k * free for k in (1, widest))
    costs = {name: found.cost(rows.missing, name) for name in POLICIES}
    policies = {
        name: PolicyReport(cost.n_dropped, cost.lost_classes if has_class else ())
        for name, cost in costs.items()
    }
    hints = [
        *_class_hints(by_class),
        *_column_hints(columns, has_class, rows.cost.state_columns),
        *(hint for c in rows.prepared.columns for hint in _missing_code_hints(c)),
        *_missing_hints(rows, policies),
    ]
    lost = policies.get(rows.settings.missing)
    n_left = found.n_rows - (0 if lost is None else lost.n_rows_lost)
    if plain > n_left:
        hints.append(
            f"even {_NAIVE if has_class else _WITHOUT_ARCS} would have more parameters ({plain}) "
            f"than there are rows ({n_left}): leave columns out"
        )
    about = (found.target, found.n_rows, n_without_class, by_class)
    return DataReport(*about, columns, policies, plain, tree, rows.said, tuple(hints))


def _inspect_column(column: Column, rows: TrainingRows, states: dict[str, int]) -> ColumnReport:
    plan = next(plan for plan in rows.preparation.columns if plan.name == column.name)
    places = rows.missing.get(plan.result_names[0], rows.found.missing.get(column.name))
    read = column
    if is_amount_kind(plan.kind) and not plan.left_out:
        (read,) = plan.apply(column)
    n_rare = 0
    if read.kind == "numeric":
        counts = np.unique(read.numbers[~read.missing], return_counts=True)[1]
    else:
        counts = read.counts
        n_rare = int(((counts > 0) & (counts < RARE_COUNT)).sum())
    n_distinct = int(np.count_nonzero(counts)) if len(counts) else len(read.categories)
    return ColumnReport(
        column.name,
        plan.kind,
        0 if places is None else int(places.sum()),
        n_distinct,
        n_rare,
        sum(states.get(name, 0) for name in plan.result_names),
        _remark(column, plan, n_distinct, n_rare),
    )


def _remark(column: Column, plan: ColumnPlan, n_distinct: int, n_rare: int) -> str:
    if plan.left_out:
        return f"left out: {plan.left_out}"
    if is_date_kind(plan.kind):
        return "becomes year, month and weekday"
    if is_amount_kind(plan.kind):
        return f"numbers as in {next(c for c in column.categories if c not in plan.merged)!r}"
    if reason := why_identifier(column):
        return f"names its rows: {reason}"
    if n_distinct == 1:
        return "constant"
    if column.kind == "categorical" and (likelier := what_else(column)):
        return likelier
    if may_be_identifier(column):
        return "called an identifier"
    if plan.merged:
        return f"{len(plan.merged)} rare categories become 'other'"
    return f"{n_rare} with fewer than {RARE_COUNT} rows" if n_rare else ""


def _class_hints(classes: dict[Any, int]) -> list[str]:
    total, hints = sum(classes.values()), []
    if not classes:
        return []
    if len(classes) == 1:
        return [f"there is only one class, {next(iter(classes))!r}: nothing can be learned"]
    rare = {label: n for label, n in classes.items() if n < RARE_COUNT}
    if rare and not class_slip(len(classes), total):
        more = f" and {len(rare) - SHOWN} more" if len(rare) > SHOWN else ""
        rarest = ", ".join(f"{label!r} ({n})" for label, n in list(rare.items())[:SHOWN]) + more
        hints.append(f"classes with fewer than {RARE_COUNT} rows can hardly be learned: {rarest}")
    label, largest = max(classes.items(), key=lambda item: item[1])
    if largest > DOMINANT_SHARE * total:
        hints.append(
            f"{100 * largest / total:.1f} % of the rows are of class {label!r}: judge by balanced "
            "accuracy, or set class_weight='balanced'"
        )
    return hints


def _column_hints(
    columns: Sequence[ColumnReport], has_class: bool, state_columns: Sequence[str]
) -> list[str]:
    uncut = [
        c.name
        for c in columns
        if has_class and (c.kind == "numeric" or is_amount_kind(c.kind)) and c.n_distinct > 1
        if c.n_states - (c.name in state_columns) == 1
    ]
    lines = {
        "constant, so without influence: {}": _remarked(columns, "constant"),
        "columns that name their rows are used: {}": _remarked(columns, "names its rows"),
        "used, though they are called identifiers: {}; drop what names people or groups of rows": (
            _remarked(columns, "called an identifier")
        ),
        "numbers that do not separate the classes alone, so the default model cuts them at "
        "quartiles and other methods do not cut them: {}": uncut,
    }
    hints = [line.format(listed(names)) for line, names in lines.items() if names]
    mistaken = _remarked(columns, "dates:", "numbers as text", "numbers but for")
    found = [c for c in columns if c.name in mistaken]
    return [*hints, *(f"{c.name!r} is read as categories, but holds {c.remark}" for c in found)]


def _remarked(columns: Sequence[ColumnReport], *begins: str) -> list[str]:
    """Names of the columns whose remark begins so."""
    return [c.name for c in columns if c.remark.startswith(begins)]


def _missing_code_hints(column: Column) -> list[str]:
    """Texts such as null that are categories, and extremes such as -999 and 9999 that occur more
    than once, farther from the next value than all others are from one another.
    """
    remedy = "if it means missing, leave it empty"
    if column.kind != "numeric":
        counted = zip(column.labels, column.counts.tolist(), strict=True)
        return [
            f"{label!r} is a category of {column.name!r} ({n} rows): {remedy}"
            for label, n in counted
            if n and label.strip().casefold() in LIKE_MISSING
        ]
    values, counts = np.unique(column.numbers[~column.missing], return_counts=True)
    if len(values) < RARE_COUNT:
        return []
    ends = ((0, values[1], values[-1] - values[1]), (-1, values[-2], values[-2] - values[0]))
    return [
        f"{values[end]:g} in {column.name!r} is far from all other values: {remedy}"
        for end, next_one, spread in ends
        if set(f"{abs(values[end]):g}") == {"9"}
        and counts[end] > 1
        and abs(values[end] - next_one) > spread
    ]


def _missing_hints(rows: TrainingRows, policies: dict[str, PolicyReport]) -> list[str]:
    n_rows, states, lost = rows.found.n_rows, rows.cost.state_columns, policies["drop"]
    hints = [f"missing is a state of its own in {listed(states)}"] if states else []
    is_large = lost.lost_classes or lost.n_rows_lost > 0.05 * n_rows
    if rows.settings.missing == "drop" and is_large:
        hints.append(
            f"missing='drop' leaves out {lost.n_rows_lost} of {n_rows} rows; "
            f"missing='auto' leaves out {policies['auto'].n_rows_lost}"
        )
    return hints
