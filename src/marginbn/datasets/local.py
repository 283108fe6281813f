"""Data sets on this machine: small ones that scikit-learn carries, and a folder of CSV files.

The folder: ``NAME.csv`` (or ``.csv.gz``) with the class last, in a column named ``class``;
``NAME.test.csv`` (or ``.csv.gz``) where there is a test part; ``schema.json`` with one entry per
data set that says which features are continuous and which categorical. An empty field is missing
and nothing else is; categorical values are text, exactly as written.

The folder is given, or named by the environment variable ``MARGINBN_DATA``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from marginbn.data.columns import Column, Kind
from marginbn.data.labelled import CLASS_NAME
from marginbn.data.table import Table, read_rows
from marginbn.data.text_files import format_error, load_text, source_of_text
from marginbn.exceptions import InputError


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

    def __post_init__(self) -> None:
        self.train.column(self.target)
        if self.test is not None and self.test.names != self.train.names:
            raise InputError(
                f"train and test of {self.name!r} must have the same columns, got "
                f"{self.train.names} and {self.test.names}"
            )


def load_bundled(name: str) -> Dataset:
    """A data set that scikit-learn carries."""
    bunch: Any = getattr(import_module("sklearn.datasets"), f"load_{name}")()
    features = [
        Column.numeric(str(feature), bunch.data[:, j])
        for j, feature in enumerate(bunch.feature_names)
    ]
    labels = [str(label) for label in bunch.target_names]
    target = Column.categorical(CLASS_NAME, np.asarray(bunch.target), labels)
    return Dataset(name, Table((*features, target)), None, CLASS_NAME)


VARIABLE = "MARGINBN_DATA"
"""Environment variable that names the folder."""

_KINDS = ("continuous", "categorical")
_MISSING = frozenset({""})


def load_folder_dataset(name: str, folder: str | PathLike[str] | None = None) -> Dataset:
    """Load data set `name` from a folder (default: where ``MARGINBN_DATA`` points).

    Raises
    ------
    InputError
        If there is no folder or no such data set in it.
    FormatError
        If its files are malformed or disagree with the schema.

    Examples
    --------
    >>> from marginbn.datasets import load_folder_dataset
    >>> load_folder_dataset("vote", "folder/with/data").train.n_rows  # doctest: +SKIP
    435
    """
    path = data_folder(folder)
    schema = _load_schema(path)
    if name not in schema:
        known = ", ".join(sorted(schema))
        raise InputError(f"there is no data set {name!r} in {str(path)!r}; there are: {known}")
    kinds = _kinds_of(schema[name], name, path)
    train_file = _find_file(path, name)
    if train_file is None:
        raise InputError(f"{name}.csv or {name}.csv.gz is not in {str(path)!r}")
    train = _read_part(train_file, kinds)
    test_file = _find_file(path, f"{name}.test")
    test = None if test_file is None else _read_part(test_file, kinds)
    return Dataset(name, train, test, CLASS_NAME)


def list_folder_datasets(folder: str | PathLike[str] | None = None) -> list[str]:
    """Names of the data sets in a folder, sorted.

    Examples
    --------
    >>> from marginbn.datasets import list_folder_datasets
    >>> list_folder_datasets("folder/with/data")  # doctest: +SKIP
    ['corral', 'vote']
    """
    return sorted(_load_schema(data_folder(folder)))


def data_folder(folder: str | PathLike[str] | None = None) -> Path:
    """The folder given, or the one that ``MARGINBN_DATA`` names; an error if neither is one."""
    chosen = os.environ.get(VARIABLE, "") if folder is None else os.fspath(folder)
    if not chosen:
        raise InputError(
            f"no data folder: set the environment variable {VARIABLE} to a folder that holds "
            f"schema.json and the CSV files (export {VARIABLE}=/path/to/datasets), or give folder="
        )
    if not (Path(chosen) / "schema.json").is_file():
        source = VARIABLE if folder is None else "folder"
        raise InputError(f"{source} must name a folder with a schema.json, got {chosen!r}")
    return Path(chosen)


def _load_schema(folder: Path) -> dict[str, Any]:
    path = folder / "schema.json"
    try:
        schema = json.loads(load_text(path))
    except json.JSONDecodeError as error:
        raise format_error(str(path), error.lineno, error.msg) from error
    if not isinstance(schema, dict):
        raise format_error(str(path), None, "expected an object with one entry per data set")
    return schema


def _kinds_of(entry: Any, name: str, folder: Path) -> dict[str, str]:
    """Kind of each feature in schema.json, in order."""
    try:
        kinds = {feature["name"]: feature["kind"] for feature in entry["features"]}
    except (TypeError, KeyError) as error:
        reason = f"the entry {name!r} must list features with name and kind"
        raise format_error(str(folder / "schema.json"), None, reason) from error
    for feature, kind in kinds.items():
        if kind not in _KINDS:
            reason = f"the kind of {feature!r} in {name!r} must be one of {_KINDS}, got {kind!r}"
            raise format_error(str(folder / "schema.json"), None, reason)
    return kinds


def _find_file(folder: Path, stem: str) -> Path | None:
    for path in (folder / f"{stem}.csv", folder / f"{stem}.csv.gz"):
        if path.parent == folder and path.is_file():  # a name with a slash leads nowhere
            return path
    return None


def _read_part(path: Path, kinds: Mapping[str, str]) -> Table:
    """Numbers, and all else as the very texts of the file."""
    source = source_of_text(path, ".csv", delimiter=",", missing=_MISSING)
    expected = (*kinds, CLASS_NAME)
    if source.names != expected:
        reason = f"the columns must be those of schema.json, {expected}, got {source.names}"
        raise format_error(str(path), 1, reason)
    rows, exact = source.whole(), replace(source, is_text=False)
    columns: list[Column] = []
    for name in expected:
        is_number = kinds.get(name) == "continuous"
        kind: Kind = "numeric" if is_number else "categorical"
        part = read_rows(rows.select([name]), source if is_number else exact, {name: kind})
        columns += part.columns
    return Table(tuple(columns))
