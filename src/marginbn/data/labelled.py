"""The table with labels: what is learned from and measured on, whoever brought it.

Data sets, the command line, ``fit`` and the report differ in where rows come from; from here on
they all hand over a :class:`LabelledTable`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_sample_weight

from marginbn.data.missing_values import rows_to_keep
from marginbn.data.sampling import sampled_rows
from marginbn.data.table import Table, as_column
from marginbn.exceptions import InputError

CLASS_NAME = "class"
"""Name of the class column in every data set of this package."""

Split = tuple[NDArray[np.intp], NDArray[np.intp]]
"""Rows to learn from and rows to measure on."""


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """Feature columns with the class and the weight of every row; build it with :meth:`of`.

    Parameters
    ----------
    features
        The feature columns.
    target
        Name of the class variable; no feature has it.
    weights
        float64 (n_rows,), positive.
    positions
        int (n_rows,), the number of each row among all rows that were given.
    given_labels
        Class labels of all rows that were given, none missing: the user's own splits count in them.
    """

    features: Table
    target: str
    weights: NDArray[np.float64]
    positions: NDArray[np.intp]
    given_labels: NDArray[Any]

    @classmethod
    def of(
        cls,
        features: Table,
        labels: NDArray[Any],
        target: str = CLASS_NAME,
        *,
        weights: NDArray[np.float64] | None = None,
        kept: NDArray[np.intp] | None = None,
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

    def sample(self) -> NDArray[np.intp] | slice:
        """The rows that belong to the sample of all rows that were given."""
        drawn = sampled_rows(len(self.given_labels))
        if drawn is None:
            return slice(None)
        return np.flatnonzero(np.isin(self.positions, drawn, assume_unique=True))

    def sampled(self) -> LabelledTable:
        """Only these rows."""
        rows = self.sample()
        return self if isinstance(rows, slice) else self.take(rows)

    def reweighted(self, class_weight: Any) -> LabelledTable:
        """Weights multiplied by that of the class: None, "balanced", or a mapping.

        Classes are named by their label or its text; those that are not named weigh one.
        """
        if class_weight is None:
            return self
        if not isinstance(class_weight, Mapping):
            factors = compute_sample_weight(class_weight, self.labels)
            return replace(self, weights=self.weights * factors)
        classes, codes = np.unique(self.labels, return_inverse=True)
        by_text = {str(label): float(weight) for label, weight in class_weight.items()}
        texts = [str(label) for label in classes]
        unknown = [label for label in by_text if label not in texts]
        if unknown:
            raise InputError(f"class_weight names classes that no row has: {unknown}; use {texts}")
        factors = np.array([by_text.get(text, 1.0) for text in texts])[codes]
        return replace(self, weights=self.weights * factors)

    def without_missing(self, missing: str, stacklevel: int = 2) -> LabelledTable:
        """Rows with missing values left out with a warning, kept, or refused (policy `missing`)."""
        kept = rows_to_keep(self.features, self.labels, missing, stacklevel + 1)
        return self if kept.all() else self.take(kept)


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


@dataclass(frozen=True, eq=False)
class Dataset:
    """A classification data set.

    Parameters
    ----------
    name
        Name by which it was asked for.
    train, test
        Rows to learn from, and the rows set aside where the set comes with a split (else None).
        Both include the class column.
    target
        Name of the class column.
    description
        One line about the set.

    Examples
    --------
    >>> from marginbn.datasets import load_dataset
    >>> corral = load_dataset("corral")
    >>> corral.target, corral.train.n_rows, corral.test
    ('class', 128, None)
    """

    name: str
    train: Table
    test: Table | None
    target: str
    description: str

    def __post_init__(self) -> None:
        self.train.column(self.target)
        if self.test is not None and self.test.names != self.train.names:
            raise InputError(
                f"train and test of {self.name!r} must have the same columns, got "
                f"{self.train.names} and {self.test.names}"
            )


def stratified_folds(labels: NDArray[Any], n_folds: int, seed: int) -> list[Split]:
    """Folds with every class dealt out in turn; works for classes of any size."""
    n_folds = min(n_folds, len(labels))
    fold = np.empty(len(labels), dtype=np.intp)
    fold[_shuffled_by_class(labels, seed)] = np.arange(len(labels)) % n_folds
    return [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(n_folds)]


def stratified_holdout(labels: NDArray[Any], fraction: float, seed: int = 0) -> Split:
    """Rows to learn from and rows to hold out, every class in nearly the same proportion.

    Rows are shuffled, sorted by class and dealt out at even distances. Both parts get at least
    one row.

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
    """Splits for choosing settings: stratified folds, above 1000 rows one stratified 20 % split.

    With ``n_folds=1`` there is one split whatever the number of rows. The row of a class that has
    no other is always learned from and never validated on: no choice could get it right.

    Examples
    --------
    >>> import numpy as np
    >>> labels = np.array(["a"] * 9 + ["b"] * 5 + ["rare"])
    >>> [len(held_out) for _, held_out in validation_splits(labels, seed=0)]
    [3, 3, 3, 3, 2]
    """
    if len(labels) < 2:
        raise InputError("choosing by validation needs at least 2 rows, got n_samples = 1")
    if len(labels) > LARGE_TRAINING_SET or n_folds == 1:
        splits = [stratified_holdout(labels, 0.2, seed)]
    else:
        splits = stratified_folds(labels, n_folds, seed)
    return _without_singletons(splits, labels)


def _without_singletons(splits: list[Split], labels: NDArray[Any]) -> list[Split]:
    """Rows whose class has no other row move to the part that is learned from."""
    _, classes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    alone = np.flatnonzero(counts[classes] == 1)
    kept = [(np.union1d(train, alone), test[~np.isin(test, alone)]) for train, test in splits]
    usable = [split for split in kept if len(split[1])]
    return usable or splits  # every row a class of its own: then as they come


def _shuffled_by_class(labels: NDArray[Any], seed: int) -> NDArray[np.intp]:
    """All rows, one class after the other, in random order within a class."""
    shuffled = np.random.default_rng(seed).permutation(len(labels))
    return shuffled[np.argsort(labels[shuffled], kind="stable")]
