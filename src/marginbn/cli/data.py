"""From a table on the command line to features and labels."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray

from marginbn.classifiers import NaiveBayesClassifier
from marginbn.classifiers.evaluation import stratified_holdout
from marginbn.classifiers.training import encode_training, read_training_rows
from marginbn.cli.options import TableOptions
from marginbn.data.columns import Column
from marginbn.data.encode import EncodedData
from marginbn.data.readers import read_table
from marginbn.data.table import Table, as_table
from marginbn.datasets import load_dataset
from marginbn.exceptions import DataWarning, InputError


@dataclass(frozen=True, eq=False)
class Rows:
    """Feature columns with the class of every row."""

    features: Table
    target: Column

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.features.n_rows

    @property
    def labels(self) -> NDArray[Any]:
        """Class labels with their own type."""
        return np.asarray(self.target.values.tolist())

    def take(self, indices: NDArray[np.intp]) -> Rows:
        """Only the given rows."""
        return Rows(self.features.take(indices), self.target.take(indices))


@dataclass(frozen=True, eq=False)
class Source:
    """A table, the test part it comes with if any, and the name of the class column."""

    train: Table
    test: Table | None
    target: str
    drop: tuple[str, ...]

    def rows(self) -> Rows:
        """Rows to learn from."""
        return labelled_rows(self.train, self.target, self.drop)

    def test_rows(self) -> Rows | None:
        """Rows of the test part."""
        return None if self.test is None else labelled_rows(self.test, self.target, ())


def load_source(options: TableOptions) -> Source:
    """Read what the command line names; an existing file wins over a data set of that name."""
    kinds, drop = parse_kinds(options.kind), tuple(options.drop or ())
    if is_file_name(options.table):
        if options.target is None:
            raise typer.BadParameter(
                "say which column holds the class, as in --target class", param_hint="--target"
            )
        table = read_table(options.table, kinds=kinds, delimiter=options.delimiter)
        return Source(table, None, options.target, drop)
    dataset = load_dataset(options.table)
    test = None if dataset.test is None else as_table(dataset.test, kinds=kinds)
    target = options.target or dataset.target
    return Source(as_table(dataset.train, kinds=kinds), test, target, drop)


def load_table(name: str, delimiter: str | None) -> Table:
    """The table of a file, or the training part of a data set."""
    if is_file_name(name):
        return read_table(name, delimiter=delimiter)
    return load_dataset(name).train


def is_file_name(name: str) -> bool:
    """Whether a name on the command line means a file rather than a data set."""
    path = Path(name)
    return path.exists() or len(path.parts) > 1 or path.suffix.lower() in _SUFFIXES


_SUFFIXES = {".csv", ".tsv", ".txt", ".arff", ".parquet", ".gz"}


def parse_kinds(texts: list[str] | None) -> Any:
    """``COL=numeric`` and the like as a mapping; ``"auto"`` if there are none."""
    kinds: dict[str, str] = {}
    for text in texts or ():
        name, equals, kind = text.rpartition("=")
        if not (name and equals and kind in ("numeric", "categorical")):
            raise typer.BadParameter(
                f"write COL=numeric or COL=categorical, got {text!r}", param_hint="--kind"
            )
        kinds[name] = kind
    return kinds or "auto"


def labelled_rows(table: Table, target: str, drop: tuple[str, ...]) -> Rows:
    """Rows that have a class; the others are left out with a warning."""
    column = _class_column(table.column(target))
    features = table.drop(target)
    for name in drop:
        features = features.drop(name)
    if not features.columns:
        raise InputError(f"there is no column besides the target {target!r}")
    known = ~column.missing
    if not known.any():
        raise InputError(f"the target {target!r} is missing in every row")
    if not known.all():
        warnings.warn(
            f"{(~known).sum()} of {table.n_rows} rows have no {target!r} and are left out",
            DataWarning,
            stacklevel=2,
        )
        features, column = features.take(known), column.take(known)
    return Rows(features, column)


def _class_column(column: Column) -> Column:
    """The target as categories; a measured number is no class."""
    if column.kind == "numeric":
        present = column.numbers[~column.missing]
        if (present != np.floor(present)).any():
            raise InputError(
                f"the target {column.name!r} holds measured numbers such as "
                f"{present[present != np.floor(present)][0]:g}; choose a column of classes, or "
                f"write --kind '{column.name}=categorical' to make every number a class"
            )
    classes = column.as_kind("categorical")
    if any(isinstance(c, float) for c in classes.categories):  # 1.5 is a class only as a text
        return Column.categorical(classes.name, classes.codes, classes.labels)
    return classes


def hold_out(rows: Rows, fraction: float, seed: int) -> tuple[Rows, Rows | None]:
    """Rows to learn from, and a stratified part of the others to test on."""
    if fraction == 0:
        return rows, None
    train, test = stratified_holdout(rows.labels, fraction, seed)
    return rows.take(train), rows.take(test)


def encode_rows(rows: Rows, missing: Any) -> EncodedData:
    """Discretised and encoded, as a classifier would do before its search."""
    training = read_training_rows(
        NaiveBayesClassifier(), rows.features, rows.target, None, kinds="auto", missing=missing
    )
    return encode_training(training, missing).data
