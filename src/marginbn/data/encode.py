"""Codings: how the values of a column become states, learned once and applied to other rows.

A numeric column is cut into bins (Fayyad-Irani, on the training rows only); a categorical column
has the categories seen in training. Code -1 stands for "not known": a missing value, or a
category that training never saw. With the policies ``missing="state"`` and ``"auto"`` a column that
has missing values in training gets one more state for them.

Categories that training never saw are told in one warning per prediction, with the likely reason.
They count as missing, which is right for a new colour and wrong for a column that has become text,
lost its upper case or been written with decimals on its way: then every prediction is made without
it. A label that differs from one of training by nothing but that looks like a slip.

Tables without a class have bins of about equal weight; weights count as repetitions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbn.data.columns import Column, Kind, Scalar, parse_number
from marginbn.data.discretize import assign_bins, mdlp_cuts, name_bins, short_cut
from marginbn.data.labelled import LabelledTable, MissingPolicy
from marginbn.data.table import Table
from marginbn.exceptions import DataWarning, InputError, warn_user
from marginbn.problem.encoded import EncodedData, Variable
from marginbn.problem.labels import MISSING_LABEL


@dataclass(frozen=True)
class Coding:
    """States of one feature column.

    Parameters
    ----------
    name, kind
        Of the column.
    cuts
        Bin edges of a numeric column, increasing; values up to and including a cut lie left.
    categories
        Values of a categorical column, in the order of their codes.
    missing_state
        Whether the last state stands for a missing value.
    values
        Training values of each bin to draw from; empty where nothing is drawn.
    """

    name: str
    kind: Kind
    cuts: tuple[float, ...] = ()
    categories: tuple[Scalar, ...] = ()
    missing_state: bool = False
    values: tuple[tuple[float, ...], ...] = ()

    @property
    def variable(self) -> Variable:
        """The variable that the coded column is."""
        if self.kind == "numeric":
            labels = name_bins(np.array(self.cuts))
        else:
            labels = tuple(str(c) for c in self.categories)
        if self.missing_state:
            missing = MISSING_LABEL
            while missing in labels:
                missing += "_"
            labels = (*labels, missing)
        return Variable(self.name, labels)

    def encode(self, column: Column) -> NDArray[np.int32]:
        """Codes of a column, read as the kind it had in training; -1 where not known."""
        column = column.as_kind(self.kind)
        if self.kind == "numeric":
            codes = assign_bins(column.numbers, np.array(self.cuts))
        else:
            codes = self._encode_categories(column)
        if self.missing_state:
            last = self.variable.arity - 1
            codes = np.where(column.missing, np.int32(last), codes)
        return codes

    def draw(self, codes: NDArray[np.int32], rng: np.random.Generator) -> NDArray[Any]:
        """Values of codes: categories as they were given, training values of a bin at random, None
        for a missing value.
        """
        drawn = np.full(len(codes), None, dtype=object)
        for state, values in enumerate(self.values or [(c,) for c in self.categories]):
            rows = np.flatnonzero(codes == state)
            drawn[rows] = np.array(values, dtype=object)[rng.integers(len(values), size=len(rows))]
        return drawn

    def _encode_categories(self, column: Column) -> NDArray[np.int32]:
        known = {label: code for code, label in enumerate(str(c) for c in self.categories)}
        lookup = np.array([known.get(label, -1) for label in column.labels] + [-1], dtype=np.int32)
        codes: NDArray[np.int32] = lookup[column.codes]  # code -1 picks the last entry
        return codes


def learn_coding(
    column: Column,
    class_codes: NDArray[np.integer],
    weights: NDArray[np.float64],
    n_classes: int,
    missing: MissingPolicy,
) -> Coding:
    """Coding of one training column; numeric ones are discretised against the class."""
    with_state = missing in ("state", "auto") and bool(column.missing.any())
    if column.kind == "numeric":
        cuts = mdlp_cuts(column.numbers, class_codes, weights, n_classes)
        return Coding(column.name, "numeric", tuple(float(c) for c in cuts), (), with_state)
    used = np.bincount(column.codes[column.codes >= 0], minlength=len(column.categories)) > 0
    categories = tuple(c for c, seen in zip(column.categories, used, strict=True) if seen)
    return Coding(column.name, "categorical", (), categories, with_state)


@dataclass(frozen=True)
class TableCoding:
    """Codings of all feature columns of a table."""

    columns: tuple[Coding, ...]

    @property
    def variables(self) -> tuple[Variable, ...]:
        """One variable per feature."""
        return tuple(c.variable for c in self.columns)

    def encode(self, table: Table) -> NDArray[np.int32]:
        """Codes (n_rows, n_features), -1 where not known; columns are matched by position."""
        if table.n_columns != len(self.columns):
            raise InputError(
                f"the table must have the {len(self.columns)} columns of the training table, "
                f"got {table.n_columns}"
            )
        codes = np.empty((table.n_rows, len(self.columns)), dtype=np.int32)
        for i, (coding, column) in enumerate(zip(self.columns, table.columns, strict=True)):
            codes[:, i] = coding.encode(column)
        return codes


@dataclass(frozen=True, eq=False)
class EncodedTraining:
    """Training data with what is needed to encode more rows alike."""

    coding: TableCoding
    classes: NDArray[Any]
    data: EncodedData


ENOUGH_ROWS = 20_000
"""Rows, drawn at random, by which columns are cut when time is short."""

IsLate = Callable[[], bool]
"""Whether cuts have taken as much time as they may."""


def learn_codings(
    rows: LabelledTable,
    class_codes: NDArray[np.integer],
    n_classes: int,
    state_columns: Collection[str],
    n_bins: int | None = None,
    *,
    is_whole: bool = True,
    is_late: IsLate = lambda: False,
) -> tuple[TableCoding, list[str]]:
    """Codings of all columns, and the names of those that were cut by few rows.

    Parameters
    ----------
    rows, class_codes, n_classes
        Prepared rows with their classes; none of them lacks a value in a column that has no state
        for it.
    state_columns
        Columns in which missing is a state.
    n_bins
        Cuts numbers at quantiles, into bins of about equal weight, instead of by the class.
    is_whole
        Whether these are all rows; otherwise other rows may have categories that these have not.
    is_late
        Asked before every numeric column of many rows: then the rest are cut by some of the rows,
        with a :class:`DataWarning`.
    """
    codings, hurried = [], list[str]()
    few: NDArray[np.intp] | None = None
    for column in rows.features.columns:
        with_state = column.name in state_columns
        if column.kind == "categorical":
            used = column.counts > 0 if is_whole else np.ones(len(column.categories), np.bool_)
            categories = tuple(c for c, seen in zip(column.categories, used, strict=True) if seen)
            codings.append(Coding(column.name, "categorical", (), categories, with_state))
            continue
        if few is None and rows.n_rows > ENOUGH_ROWS and is_late():
            few = np.sort(np.random.default_rng(0).choice(rows.n_rows, ENOUGH_ROWS, replace=False))
        values, classes, weights = column.numbers, class_codes, rows.weights
        if few is not None:
            hurried.append(column.name)
            values, classes, weights = values[few], classes[few], weights[few]
        if n_bins is None:
            cuts = tuple(mdlp_cuts(values, classes, weights, n_classes).tolist())
            codings.append(Coding(column.name, "numeric", cuts, (), with_state))
        else:
            known = ~np.isnan(values)
            own = (values[known], weights[known], n_bins, with_state)
            codings.append(quantile_coding(column.name, *own))
    if hurried:
        warn_user(
            f"time_limit is short for these rows: the bins of {len(hurried)} numeric columns "
            f"({', '.join(map(repr, hurried[:10]))}) come from {ENOUGH_ROWS} rows drawn at random; "
            "a larger time_limit cuts them by all rows",
            DataWarning,
        )
    return TableCoding(tuple(codings)), hurried


# --- categories never seen ------------------------------------------------------------------------

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
        warn_user(describe_unseen(found), DataWarning)


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


# --- tables without a class -----------------------------------------------------------------------

FloatArray = NDArray[np.float64]

N_BINS = 4
"""Bins of a numeric column without a class, unless another number is asked for."""

KEPT_VALUES = 64
"""Training values of a bin, at most, that are kept to draw from."""


def quantile_cuts(values: FloatArray, weights: FloatArray, n_bins: int) -> FloatArray:
    """Cuts between the values, all of them if there are few, else at about equal total weight.

    A value that is too heavy for a bin is a bin of its own, and the values below and above it share
    the other bins; a side that is too light for a bin joins the heavy value.

    Examples
    --------
    >>> import numpy as np
    >>> quantile_cuts(np.array([1.0, 2.0, 2.0, 5.0]), np.ones(4), 8).tolist()
    [1.5, 4.0]
    >>> quantile_cuts(np.arange(100.0), np.ones(100), 4).tolist()
    [24.5, 49.5, 74.5]
    >>> zeros = np.repeat([0.0, 1.0, 2.0, 3.0, 4.0], [90, 2, 2, 1, 1])
    >>> quantile_cuts(zeros, np.ones(96), 4).tolist()
    [0.5, 1.5, 2.5]
    """
    distinct, place = np.unique(values, return_inverse=True)
    heavy = np.bincount(place, weights, len(distinct)).astype(np.float64)
    first = _bin_starts(heavy, n_bins)
    cuts = [short_cut(float(distinct[k - 1]), float(distinct[k])) for k in first]
    return np.array(cuts, dtype=np.float64)


def _bin_starts(weights: FloatArray, n_bins: int) -> list[int]:
    """Where bins begin but the first one, for values in order with these weights."""
    if len(weights) <= n_bins:
        return list(range(1, len(weights)))
    if n_bins < 2:
        return []
    heavy, total = int(weights.argmax()), float(weights.sum())
    if weights[heavy] * n_bins <= total:
        shares = np.arange(1, n_bins) * (total / n_bins)
        return [int(k) for k in np.searchsorted(np.cumsum(weights), shares, side="right")]
    below, above = weights[:heavy], weights[heavy + 1 :]
    n_below = min(round((n_bins - 1) * float(below.sum() / (total - weights[heavy]))), len(below))
    n_above = min(n_bins - 1 - n_below, len(above))
    n_below = n_bins - 1 - n_above
    starts = []
    if n_below:
        starts += [*_bin_starts(below, n_below), heavy]
    if n_above:
        starts += [heavy + 1, *(heavy + 1 + k for k in _bin_starts(above, n_above))]
    return starts


def kept_values(
    values: FloatArray, weights: FloatArray, cuts: FloatArray
) -> tuple[tuple[float, ...], ...]:
    """Up to :data:`KEPT_VALUES` of the values in each bin, each of about the same weight.

    Examples
    --------
    >>> import numpy as np
    >>> kept_values(np.array([3.0, 1.0, 2.0, 9.0]), np.ones(4), np.array([2.5]))
    ((1.0, 2.0), (3.0, 9.0))
    """
    order = np.argsort(values, kind="stable")
    kept = []
    for part in np.split(order, np.searchsorted(values[order], cuts, side="right")):
        n_kept = min(len(part), KEPT_VALUES)
        reached = np.cumsum(weights[part])
        middles = (np.arange(n_kept) + 0.5) * (reached[-1] / n_kept)
        kept.append(tuple(values[part[np.searchsorted(reached, middles)]].tolist()))
    return tuple(kept)


def quantile_coding(
    name: str, values: FloatArray, weights: FloatArray, n_bins: int, with_state: bool
) -> Coding:
    """Coding of a numeric column by its values, none of them missing."""
    cuts = quantile_cuts(values, weights, n_bins)
    kept = kept_values(values, weights, cuts)
    return Coding(name, "numeric", tuple(cuts.tolist()), (), with_state, kept)
