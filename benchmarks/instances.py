"""Named problems from the data folder and from generators.

An instance is written ``NAME:MARGIN:P:PARENTS``, for example ``vehicle:sm:0.9:2``,
``vehicle:sbm:0.99:2``, ``chess:mdl:-:2`` (class-restricted MDL) or ``vehicle:mdl-general:-:3``
(unrestricted MDL). NAME is a data set of the folder (training part, rows with missing values
dropped and with them classes that have no complete row, numeric columns discretised on it) or
``random-ROWS-FEATURES-CLASSES-SEED``.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from marginbn import (
    EncodedData,
    NaiveBayesClassifier,
    StructureProblem,
    Variable,
    enumerate_candidates,
    linear_problem,
    margin_problem,
)
from marginbn.classifiers.validation import read_training_rows
from marginbn.data.training import encode_training
from marginbn.datasets import load_dataset, load_folder_dataset
from marginbn.problem.problem import drop_dominated
from marginbn.problem.scores import SCORES


@dataclass(frozen=True)
class Instance:
    """One problem by name."""

    name: str
    kind: str
    p: float | None
    max_parents: int

    @classmethod
    def parse(cls, text: str) -> Instance:
        name, kind, p, parents = text.split(":")
        return cls(name, kind, None if p == "-" else float(p), int(parents))

    def __str__(self) -> str:
        p = "-" if self.p is None else f"{self.p:g}"
        return f"{self.name}:{self.kind}:{p}:{self.max_parents}"

    def problem(self, folder: Path | None) -> StructureProblem:
        """Build the problem; this is part of the measured time."""
        return build_problem(self, encoded(self.name, folder))


def build_problem(instance: Instance, data: EncodedData) -> StructureProblem:
    """The problem of an instance on encoded data."""
    candidates = enumerate_candidates(
        data.n_variables,
        instance.max_parents,
        class_restricted=instance.kind != "mdl-general",
        constant=data.constant,
    )
    if instance.kind.startswith("mdl"):
        return drop_dominated(linear_problem(data, candidates, SCORES["mdl"].function))
    assert instance.p is not None
    return margin_problem(
        data,
        candidates,
        margin="binary" if instance.kind == "sbm" else "multiclass",
        gamma=math.log(instance.p / (1 - instance.p)),
    )


def encoded(name: str, folder: Path | None) -> EncodedData:
    """Encoded training rows of a data set, or random ones."""
    if name.startswith("random-"):
        return random_data(*(int(part) for part in name.split("-")[1:]))
    dataset = load_dataset(name) if folder is None else load_folder_dataset(name, folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # dropped rows are expected here
        rows = read_training_rows(
            NaiveBayesClassifier(),
            dataset.train.drop(dataset.target),
            dataset.train.column(dataset.target).values,
            None,
            kinds="auto",
        )
        # as in the paper: classes that lose all their rows (soybean-large) are no longer there
        rows = rows.take(rows.features.complete)
        return encode_training(rows, "drop").data


def random_data(n_rows: int, n_features: int, n_classes: int, seed: int) -> EncodedData:
    """Features that copy the class or a neighbour with noise; three states each."""
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, n_classes, n_rows)]
    for feature in range(n_features):
        source = columns[0] if feature == 0 or rng.random() < 0.5 else columns[feature]
        noisy = rng.random(n_rows) < 0.5
        columns.append(np.where(noisy, rng.integers(0, 3, n_rows), source % 3))
    variables = (
        Variable("class", tuple(str(c) for c in range(n_classes))),
        *(Variable(f"x{i}", ("0", "1", "2")) for i in range(n_features)),
    )
    codes = np.column_stack(columns).astype(np.int32)
    return EncodedData(codes, np.ones(n_rows), variables)
