"""Which rows are learned from, validated on and tested on: section 6 of the paper.

A data set becomes one table of all usable rows. An outer split names the training rows and the
test rows; inner splits, told in positions of the training part, are for choosing parameters.
Both depend on the data set, the seed and the fold only, so all methods see the same rows.
Discretisation is no business of this file: every estimator learns it from the rows it is given.

The folds are the paper's. A printed mean and half width must come from counts of right rows per
fold, and this rule fits all columns of its cross-validated sets but lymphography, equal folds do
not: the n_c rows of class c, in random order, give floor(n_c / 5) rows to each of the first four
folds and the rest to the fifth. Lymphography's figures fit 34, 34, 34, 34 and 36 rows of a set of
148: there the six rows of the two rare classes are in every test fold (and, by naive Bayes, in
every training part), a leak that is not copied.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.settings import Settings
from marginbn.data.columns import Column
from marginbn.data.labelled import stratified_holdout, validation_splits
from marginbn.data.table import Table, as_column
from marginbn.datasets import load_folder_dataset
from marginbn.exceptions import InputError

HERE = Path(__file__).parent
N_FOLDS = 5
SMALL_SET = 2000
"""Up to so many training rows a data set is small: fast methods get several seeds there."""
SPLITS = ("folder", "holdout", "tail", "folds")
TABLE1_SETS = (
    "letter", "satimage", "segment", "soybean-large", "vehicle", "adult", "spambase",
)  # fmt: skip
"""The sets that the paper's solver did not finish."""
MISSING_VALUE = "?"
"""The value that stands for a missing one where missing counts as a state."""

Rows = NDArray[np.intp]
RowSplit = tuple[Rows, Rows]


@dataclass(frozen=True)
class Spec:
    """One entry of datasets.toml."""

    name: str
    split: str
    missing: str
    target: str
    expect: tuple[int, int] | None = None
    test_rows: int | None = None
    drop: tuple[str, ...] = ()
    classes: int | None = None
    deviation: str = ""

    @property
    def is_cross_validated(self) -> bool:
        return self.split == "folds"

    @property
    def is_small(self) -> bool:
        return self.expect is not None and self.expect[0] <= SMALL_SET

    @property
    def margins_are_one(self) -> bool:
        """With two classes soft margin and binary soft margin are the same problem."""
        return self.classes == 2


@lru_cache(maxsize=1)
def read_specs(path: Path = HERE / "datasets.toml") -> dict[str, Spec]:
    """All data sets by name, in the paper's order."""
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    return {
        name: _spec(name, content["defaults"] | entry) for name, entry in content["sets"].items()
    }


def wanted_specs(names: Iterable[str] | None) -> dict[str, Spec]:
    """The data sets of these names, in the paper's order; all if None."""
    specs = read_specs()
    unknown = [name for name in names or () if name not in specs]
    if unknown:
        raise SystemExit(f"unknown data sets {unknown}; there are {', '.join(specs)}")
    return {name: spec for name, spec in specs.items() if not names or name in names}


def _spec(name: str, entry: dict[str, Any]) -> Spec:
    lists = {k: tuple(v) for k, v in entry.items() if isinstance(v, list)}
    spec = Spec(name, **(entry | lists))
    if spec.split not in SPLITS:
        raise InputError(f"split of {name} must be one of {SPLITS}, got {spec.split!r}")
    if spec.missing not in ("remove", "state"):
        raise InputError(f"missing of {name} must be remove or state, got {spec.missing!r}")
    if (spec.split in ("holdout", "tail")) != (spec.test_rows is not None):
        raise InputError(f"{name} needs test_rows exactly if its split is holdout or tail")
    return spec


@dataclass(frozen=True, eq=False)
class Data:
    """All usable rows of a data set; the folder's test part, if any, comes last.

    labels : str array (n_rows,); n_train : rows of the folder's training part
    n_removed : rows left out because of missing values
    """

    spec: Spec
    features: Table
    labels: NDArray[np.str_]
    n_train: int
    n_removed: int


@lru_cache(maxsize=2)
def load(spec: Spec, folder: Path) -> Data:
    """Read a data set; the last two are kept, since units of one set follow one another."""
    dataset = load_folder_dataset(spec.name, folder)
    parts = [dataset.train]
    if spec.split == "folder":
        if dataset.test is None:
            raise InputError(f"{spec.name} needs a test part, {spec.name}.test.csv, in {folder}")
        parts.append(dataset.test)
    kept = [_usable(part, spec) for part in parts]
    sizes = (kept[0].n_rows, sum(part.n_rows for part in kept[1:]))
    if spec.expect is not None and sizes != spec.expect:
        raise InputError(
            f"{spec.name} must have {spec.expect} usable rows (training, test), got {sizes}; "
            "see experiments/README.md for how the folder is made"
        )
    n_removed = sum(part.n_rows for part in parts) - sum(sizes)
    labels = np.concatenate([part.column(spec.target).values for part in kept]).astype(str)
    if spec.classes not in (None, len(np.unique(labels))):
        raise InputError(f"{spec.name} must have {spec.classes} classes, got {np.unique(labels)}")
    names = [n for n in dataset.train.names if n != spec.target and n not in spec.drop]
    features = Table(tuple(_stack([part.column(name) for part in kept]) for name in names))
    return Data(spec, features, labels, sizes[0], n_removed)


def _usable(part: Table, spec: Spec) -> Table:
    return part.take(part.complete) if spec.missing == "remove" else part


def _stack(parts: list[Column]) -> Column:
    """One column of several parts; what is still missing becomes a value of its own."""
    kind = parts[0].kind
    values = np.concatenate([part.values for part in parts])
    if kind == "categorical":
        values = np.array([MISSING_VALUE if v is None else v for v in values], dtype=object)
    return as_column(values, name=parts[0].name, kind=kind)


@dataclass(frozen=True, eq=False)
class Task:
    """What a method gets: training rows, inner splits of them, and test rows.

    ``labels`` and ``test_labels`` are str arrays; ``inner`` holds positions in the training part;
    ``seed`` is for whatever a method draws; ``scratch`` a folder that survives a kill, or None.
    """

    train: Table
    labels: NDArray[np.str_]
    test: Table
    test_labels: NDArray[np.str_]
    inner: list[RowSplit]
    settings: Settings
    seed: int = 0
    about: dict[str, Any] = field(default_factory=dict)
    scratch: Path | None = None


def n_folds(spec: Spec, settings: Settings) -> int:
    """Outer folds that are run."""
    return min(settings.outer_folds, N_FOLDS) if spec.is_cross_validated else 1


def make_task(
    data: Data, seed: int, fold: int, settings: Settings, rows: int | None = None
) -> Task:
    """The task of one outer fold, with at most `rows` training rows."""
    split = outer_split(data, fold, seed)
    wanted = [most for most in (rows, settings.max_train) if most is not None]
    about = {
        "split": data.spec.split,
        "fold": fold,
        "folds_run": n_folds(data.spec, settings),
        "n_removed": data.n_removed,
    }
    return task_of(data, split, seed, settings, min(wanted, default=None), about)


def task_of(
    data: Data,
    split: RowSplit,
    seed: int,
    settings: Settings,
    max_train: int | None = None,
    about: dict[str, Any] | None = None,
) -> Task:
    """The task of a given outer split."""
    train = subsample(split[0], data.labels, max_train, seed)
    test = subsample(split[1], data.labels, settings.max_test, seed)
    labels = data.labels[train]
    inner = validation_splits(labels, seed + 1, settings.validation_folds)
    told = {
        "n_train": len(train),
        "n_test": len(test),
        "digest": digest([train, test]),
        "validation": "folds" if len(inner) > 1 else "holdout",
        "validation_splits": len(inner),
        "validation_digest": digest([part for split in inner for part in split]),
    }
    return Task(
        data.features.take(train),
        labels,
        data.features.take(test),
        data.labels[test],
        inner,
        settings,
        seed,
        (about or {}) | told,
    )


def outer_split(data: Data, fold: int, seed: int) -> RowSplit:
    """Training rows and test rows of the data set."""
    spec, n_rows = data.spec, len(data.labels)
    if spec.split == "folder":
        return np.arange(data.n_train), np.arange(data.n_train, n_rows)
    if spec.split == "tail":
        n_train = n_rows - (spec.test_rows or 0)
        return np.arange(n_train), np.arange(n_train, n_rows)
    if spec.test_rows is not None:
        return stratified_holdout(data.labels, spec.test_rows / n_rows, seed)
    return paper_folds(data.labels, seed)[fold]


def paper_folds(labels: NDArray[np.str_], seed: int) -> list[RowSplit]:
    """Of each class floor(n_c / 5) random rows in each of folds 1 to 4, the rest in fold 5."""
    random, fold = np.random.default_rng(seed), np.full(len(labels), N_FOLDS - 1)
    for name in np.unique(labels):
        rows = random.permutation(np.flatnonzero(labels == name))
        size = len(rows) // N_FOLDS
        fold[rows[: (N_FOLDS - 1) * size]] = np.repeat(np.arange(N_FOLDS - 1), size)
    return [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(N_FOLDS)]


def subsample(rows: Rows, labels: NDArray[np.str_], most: int | None, seed: int) -> Rows:
    """At most so many of the rows, every class in proportion; all of them if there are fewer."""
    if most is None or len(rows) <= most:
        return rows
    _, chosen = stratified_holdout(labels[rows], most / len(rows), seed)
    return rows[chosen]


def digest(parts: list[Rows]) -> str:
    """Short fingerprint of row numbers, to see that two records speak of the same rows."""
    sha = hashlib.sha256()
    for part in parts:
        sha.update(np.ascontiguousarray(part, dtype="<i8").tobytes() + b"|")
    return sha.hexdigest()[:16]
