"""From a table on the command line to features and labels."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray

from marginbn.classifiers import BaseBNClassifier, NaiveBayesClassifier
from marginbn.classifiers.preparation import encode_training, read_training_rows
from marginbn.cli.options import TableOptions
from marginbn.columns import Column
from marginbn.datasets import load_dataset
from marginbn.encode import EncodedData
from marginbn.evaluation import stratified_holdout
from marginbn.exceptions import DataWarning, InputError
from marginbn.plaintext import counted
from marginbn.readers import read_table
from marginbn.table import Table, as_table


class Labels(np.ndarray[Any, np.dtype[Any]]):
    """Class labels that know the name of their column, as a data-frame series does."""

    name: str

    @classmethod
    def of(cls, values: NDArray[Any], name: str) -> Labels:
        """Labels of a column called ``name``."""
        labels = values.view(cls)
        labels.name = name
        return labels

    def __array_finalize__(self, source: Any) -> None:
        self.name = getattr(source, "name", "class")

    def __reduce__(self) -> Any:  # numpy's own would lose the name on the way to a worker
        return Labels.of, (np.asarray(self), self.name)


@dataclass(frozen=True, eq=False)
class Rows:
    """Feature columns with the class of every row."""

    features: Table
    labels: Labels

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.labels)

    def take(self, indices: NDArray[np.intp]) -> Rows:
        """Only the given rows."""
        return Rows(self.features.take(indices), Labels.of(self.labels[indices], self.labels.name))


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


def load_features(
    classifier: BaseBNClassifier, name: str, delimiter: str | None
) -> Table | NDArray[Any]:
    """The columns of a table that a fitted classifier knows."""
    table = load_table(name, delimiter)
    wanted = [coding.name for coding in classifier.coding_.columns]
    absent = [column for column in wanted if column not in table.names]
    if absent:
        raise InputError(
            f"{name} lacks {counted(len(absent), 'column')} that the classifier was trained with: "
            f"{', '.join(map(repr, absent[:10]))}{', ...' if len(absent) > 10 else ''}"
        )
    features = table.select(wanted)
    if hasattr(classifier, "feature_names_in_"):
        return features
    return np.array([c.values for c in features.columns], dtype=object).T  # fitted on an array


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
    return Rows(features, Labels.of(_label_array(column), target))


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
    return column.as_kind("categorical")


def _label_array(column: Column) -> NDArray[Any]:
    """Labels with their own type; numbers with decimals become text."""
    values = column.values.tolist()
    if any(isinstance(value, float) for value in column.categories):
        values = [str(value) for value in values]
    return np.asarray(values)


def hold_out(rows: Rows, fraction: float, seed: int) -> tuple[Rows, Rows | None]:
    """Rows to learn from, and a stratified part of the others to test on."""
    if fraction == 0:
        return rows, None
    train, test = stratified_holdout(np.asarray(rows.labels), fraction, seed)
    return rows.take(train), rows.take(test)


def encode_rows(rows: Rows, missing: Any) -> EncodedData:
    """Discretised and encoded, as a classifier would do before its search."""
    training = read_training_rows(
        NaiveBayesClassifier(), rows.features, rows.labels, None, kinds="auto", missing=missing
    )
    return encode_training(training, missing).data
