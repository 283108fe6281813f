"""The table with labels that is learned from and measured on.

Rows with missing values become what a policy says:

- ``"drop"`` leaves them out;
- ``"state"`` keeps them: missing is a state of the column;
- ``"auto"`` does one or the other column by column: a state where more than one row in twenty
  misses a value, rows left out elsewhere, as long as all of them together are at most one row in
  twenty and no class loses more than one row in five. So no class is ever lost;
- ``"error"`` refuses them.

A class that would have no row left is an error whatever the policy.

What is decided by some of the rows is decided by a fixed sample: the rows of the smallest keys,
which are hashes of their numbers in the table. So it is the same whether a table is in memory, in a
file or on a cluster. A share estimated from the sample has a standard error of at most
1 / (2 sqrt(250 000)) = 0.1 %.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from marginbn.data.columns import listed
from marginbn.data.source import KEPT_BYTES
from marginbn.data.table import Table, as_column
from marginbn.exceptions import DataWarning, InputError, warn_user
from marginbn.problem.array_types import BoolArray, FloatArray, IndexArray, IntArray, WordArray

CLASS_NAME = "class"
"""Name of the class column in every data set of this package."""

Split = tuple[IndexArray, IndexArray]
"""Rows to learn from and rows to measure on."""


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """Feature columns with the class and the weight of every row; build it with :meth:`of`.

    Parameters
    ----------
    features, target
        The feature columns, and the name of the class variable, which no feature has.
    weights, positions
        Of every row a positive weight, and its number among all rows that were given.
    given_labels
        Class labels of all rows that were given, none missing: the user's own splits count in them.
    """

    features: Table
    target: str
    weights: FloatArray
    positions: IndexArray
    given_labels: NDArray[Any]

    @classmethod
    def of(
        cls,
        features: Table,
        labels: NDArray[Any],
        target: str = CLASS_NAME,
        *,
        weights: FloatArray | None = None,
        kept: IndexArray | None = None,
    ) -> LabelledTable:
        """Rows of weight one, or of the given weights; `kept` if only some labels have a row."""
        while target in features.names:
            target += "_"
        positions = np.arange(len(labels)) if kept is None else kept
        weights = np.ones(len(positions)) if weights is None else weights
        return cls(features, target, weights, positions, labels)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.positions)

    @cached_property
    def labels(self) -> NDArray[Any]:
        """Class label of every row, with the type it was given."""
        return self.given_labels[self.positions]

    def fingerprint(self) -> str:
        """SHA-256 of all that is learned from: names, kinds, values, labels and weights.

        A column of categories counts with all that its source declares, used or not.
        """
        digest = hashlib.sha256()
        columns = [as_column(self.labels.astype(str).tolist(), name=self.target)]
        for column in (*columns, *self.features.columns):
            parts = [column.name, column.kind, *map(repr, column.categories)]
            digest.update(repr(parts).encode("utf-8", errors="surrogatepass"))
            digest.update(column.codes.astype("<i4").tobytes())
            numbers = np.where(np.isnan(column.numbers), np.nan, column.numbers + 0.0)  # no -0.0
            digest.update(numbers.astype("<f8").tobytes())
        digest.update(self.weights.astype("<f8").tobytes())
        return digest.hexdigest()

    def take(self, rows: NDArray[Any]) -> LabelledTable:
        """Only the given rows."""
        return replace(
            self,
            features=self.features.take(rows),
            weights=self.weights[rows],
            positions=self.positions[rows],
        )


def label_codes(labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.integer]]:
    """The classes, sorted, and the class of every row as a number."""
    try:
        encoded = pa.array(labels).dictionary_encode()
    except (pa.ArrowException, UnicodeEncodeError):
        classes, codes = np.unique(labels, return_inverse=True)
        return classes, codes.reshape(-1)
    found = np.asarray(encoded.dictionary.to_pylist(), dtype=labels.dtype)
    order = np.argsort(found, kind="stable")
    place = np.empty(len(found), dtype=np.min_scalar_type(max(len(found) - 1, 0)))
    place[order] = np.arange(len(found))
    return found[order], place[encoded.indices.to_numpy(zero_copy_only=False)]


def class_factors(
    class_weight: ClassWeight, classes: NDArray[Any], codes: NDArray[np.integer]
) -> FloatArray:
    """Factor of the weight of every class: None, "balanced", or a mapping from labels or their
    texts; classes that are not named weigh one.
    """
    if class_weight is None:
        return np.ones(len(classes))
    if not isinstance(class_weight, Mapping):
        counts = np.bincount(codes, minlength=len(classes))
        return len(codes) / (np.count_nonzero(counts) * np.maximum(counts, 1))
    by_text = {str(label): float(weight) for label, weight in class_weight.items()}
    texts = [str(label) for label in classes]
    unknown = [label for label in by_text if label not in texts]
    if unknown:
        raise InputError(
            f"class_weight names classes that no row has: {listed(unknown)}; use {listed(texts)}"
        )
    return np.array([by_text.get(text, 1.0) for text in texts])


def refuse_measured(labels: NDArray[Any], what: str) -> None:
    """Numbers with fractions are no classes; the message begins as scikit-learn's."""
    if labels.dtype.kind != "f":
        return
    measured = labels[labels != np.floor(labels)]
    if measured.size:
        raise InputError(
            f"Unknown label type: continuous. {what} holds measured numbers such as "
            f"{measured[0]:g}; give classes, such as whether it is above {np.median(labels):g}, or "
            "pandas.qcut of it, or texts to make every number a class"
        )


def stratified_folds(labels: NDArray[Any], n_folds: int, seed: int) -> list[Split]:
    """Folds with every class dealt out in turn; works for classes of any size."""
    fold = np.empty(len(labels), dtype=np.intp)
    n_folds = min(n_folds, len(labels))
    fold[_shuffled_by_class(labels, seed)] = np.arange(len(labels)) % n_folds
    return [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(n_folds)]


def stratified_holdout(labels: NDArray[Any], fraction: float, seed: int = 0) -> Split:
    """Rows to learn from and rows to hold out, at least one each, every class in nearly the same
    proportion: rows are shuffled, sorted by class and dealt out at even distances.

    Examples
    --------
    >>> import numpy as np
    >>> train, held_out = stratified_holdout(np.array(["a"] * 6 + ["b"] * 4), 0.5)
    >>> len(train), len(held_out)
    (5, 5)
    """
    n_rows = len(labels)
    if not 0 < fraction < 1:
        raise InputError(f"fraction must lie strictly between 0 and 1, got {fraction}")
    if n_rows < 2:
        raise InputError(f"holding out rows needs at least 2 of them, got {n_rows}")
    n_out = min(max(round(fraction * n_rows), 1), n_rows - 1)
    places = (np.arange(n_out) * n_rows + n_rows // 2) // n_out
    held_out = np.sort(_shuffled_by_class(labels, seed)[places])
    return np.setdiff1d(np.arange(n_rows), held_out), held_out


LARGE_TRAINING_SET = 1000
"""Above this many rows one 20 % validation split replaces the folds (section 6 of the paper)."""


def validation_splits(labels: NDArray[Any], seed: int, n_folds: int = 5) -> list[Split]:
    """Splits for choosing settings: stratified folds, or one stratified 20 % split above 1000 rows
    or with ``n_folds=1``. A row whose class has no other is never held out.
    """
    if len(labels) < 2:
        raise InputError("choosing by validation needs at least 2 rows, got n_samples = 1")
    if len(labels) > LARGE_TRAINING_SET or n_folds == 1:
        splits = [stratified_holdout(labels, 0.2, seed)]
    else:
        splits = stratified_folds(labels, n_folds, seed)
    _, classes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    alone = np.flatnonzero(counts[classes] == 1)
    kept = [(np.union1d(train, alone), np.setdiff1d(test, alone)) for train, test in splits]
    return [split for split in kept if len(split[1])] or splits  # if every row is a class


def _shuffled_by_class(labels: NDArray[Any], seed: int) -> IndexArray:
    """All rows, one class after the other, in random order within a class."""
    shuffled = np.random.default_rng(seed).permutation(len(labels))
    return shuffled[np.argsort(labels[shuffled], kind="stable")]


# --- missing values -------------------------------------------------------------------------------

ClassWeight: TypeAlias = Literal["balanced"] | Mapping[Any, float] | None

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
        The rows that stay, (n_rows,).
    state_columns, dropping_columns
        Columns in which missing becomes a state, and columns that cost rows.
    lost_classes
        Classes of which no row stays.
    """

    kept: BoolArray
    state_columns: tuple[str, ...]
    dropping_columns: tuple[str, ...]
    lost_classes: tuple[Any, ...]

    @property
    def n_dropped(self) -> int:
        """Rows left out."""
        return int((~self.kept).sum())


def cost_of_places(
    missing: Mapping[str, BoolArray], codes: NDArray[np.integer], policy: str, classes: NDArray[Any]
) -> MissingCost:
    """What a policy would do, by the columns that miss values and the places where they do.

    ``codes`` are the classes of the rows. "error" counts as "drop"; "keep" leaves out no row.
    """
    states = []
    if policy in ("state", "auto"):
        states = list(missing) if policy == "state" else _columns_with_state(missing, codes)
    dropping = [name for name in missing if name not in states and policy != "keep"]
    kept = ~reduce(np.logical_or, [missing[n] for n in dropping], np.zeros(len(codes), np.bool_))
    is_lost = (np.bincount(codes) > 0) & (np.bincount(codes[kept], minlength=codes.max() + 1) == 0)
    lost = classes[np.flatnonzero(is_lost)].tolist()
    return MissingCost(kept, tuple(states), tuple(dropping), tuple(lost))


def _columns_with_state(missing: Mapping[str, BoolArray], codes: NDArray[np.integer]) -> list[str]:
    """Columns whose missing values become a state under "auto", in their order."""
    few = [name for name, places in missing.items() if places.mean() <= MOST_ROWS]
    few.sort(key=lambda name: int(missing[name].sum()))
    counts = np.bincount(codes)
    while few:
        dropped = reduce(np.logical_or, [missing[name] for name in few])
        of_class = np.bincount(codes[dropped], minlength=len(counts)) / np.maximum(counts, 1)
        if dropped.mean() <= MOST_ROWS and of_class.max() <= MOST_OF_A_CLASS:
            break
        few.pop()  # the column that costs most
    return [name for name in missing if name not in few]


def report_cost(cost: MissingCost, missing: Mapping[str, BoolArray], policy: str) -> None:
    """Warn of rows that are left out, or refuse to leave them out."""
    if not cost.n_dropped:
        return
    found = f"{cost.n_dropped} of {len(cost.kept)} rows have missing values"
    if policy == "error":
        raise InputError(
            f"{found}, in the columns {list(cost.dropping_columns)}; use missing='drop', 'state' "
            "or 'auto', or fill them in"
        )
    if cost.lost_classes:
        counts = {name: int(places.sum()) for name, places in missing.items()}
        worst = sorted(counts, key=counts.__getitem__, reverse=True)[:3]
        noun = "class" if len(cost.lost_classes) == 1 else "classes"
        loss = f"missing={policy!r} leaves no row of the {noun} {listed(cost.lost_classes)}"
        if not cost.kept.any():
            loss = f"every row has a missing value, so missing={policy!r} leaves none"
        raise InputError(
            f"{loss}; use missing='auto' or missing='state', or leave out the columns that miss "
            f"most: {', '.join(f'{name!r} ({counts[name]} rows)' for name in worst)}"
        )
    names = f" in {listed(cost.dropping_columns)}" if policy == "auto" else ""
    warn_user(
        f"{found}{names} and are left out (missing={policy!r}); missing='state' keeps them",
        DataWarning,
    )


# --- the sample -----------------------------------------------------------------------------------

SAMPLE_ROWS = 250_000
"""Rows of the sample; a table of no more rows is its own sample."""


def row_keys(first_row: int, n_rows: int) -> WordArray:
    """Keys of consecutive rows."""
    return mixed_bits(np.arange(first_row + 1, first_row + n_rows + 1, dtype=np.uint64))


def mixed_bits(keys: WordArray) -> WordArray:
    """Hashes of numbers: the finaliser of splitmix64, a bijection of 64 bits."""
    keys = keys * np.uint64(0x9E3779B97F4A7C15)
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))


def sampled_rows(n_rows: int, most: int | None = None) -> IndexArray | None:
    """Rows of a sample of so many rows, in their order; None if it is all of them."""
    most = SAMPLE_ROWS if most is None else most
    if n_rows <= most:
        return None
    keys = row_keys(0, n_rows)
    return np.flatnonzero(keys <= np.partition(keys, most - 1)[most - 1])


SamplePart = tuple[pa.Table, IntArray]
"""Rows that belong to the sample as far as is known, and their numbers."""


def sample_block(block: pa.Table, first_row: int, largest: np.uint64 | None = None) -> SamplePart:
    """Rows of a block, only those of keys up to the ``largest`` if it is known."""
    rows = np.arange(first_row, first_row + block.num_rows)
    if largest is None:
        return block, rows
    chosen = row_keys(first_row, block.num_rows) <= largest
    return block.filter(pa.array(chosen)), rows[chosen]


def join_sample(parts: list[SamplePart], is_last: bool = False) -> list[SamplePart]:
    """The parts; a single one that is no longer than the sample if they are many rows, of more
    bytes than those that are kept between two passes, or all.
    """
    n_rows = sum(len(rows) for _, rows in parts)
    is_long = n_rows > 2 * SAMPLE_ROWS and sum(part.nbytes for part, _ in parts) > KEPT_BYTES
    if not (is_last or is_long):
        return parts
    table = pa.concat_tables([part for part, _ in parts], promote_options="permissive")
    rows = np.concatenate([rows for _, rows in parts])
    if n_rows <= SAMPLE_ROWS:
        return [(table, rows)]
    keys = mixed_bits(rows.astype(np.uint64) + np.uint64(1))
    chosen = keys <= np.partition(keys, SAMPLE_ROWS - 1)[SAMPLE_ROWS - 1]
    return [(table.filter(pa.array(chosen)), rows[chosen])]


def largest_key(n_rows: int | None) -> np.uint64 | None:
    """A key that nearly surely no row of the sample exceeds; None if the number of rows is not
    known, or all rows belong to it.
    """
    if n_rows is None or n_rows <= SAMPLE_ROWS:
        return None
    expected, spread = SAMPLE_ROWS / n_rows, 10 * np.sqrt(SAMPLE_ROWS) / n_rows
    return np.uint64(min(expected + spread, 1.0) * (2**64 - 1025))
