"""Small classifiers with trained parameters, each fitted once."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from marginbn import (
    BNClassifier,
    GenerativeBNClassifier,
    MaxMarginBNClassifier,
    MaxMarginBNClassifierCV,
    NaiveBayesClassifier,
)
from marginbn.classifiers import BaseBNClassifier

CLASSIFIERS: dict[str, BaseBNClassifier] = {
    "chosen": BNClassifier(structures=("naive",), random_state=0),
    "average": BNClassifier(structures=("naive", "forest"), average=True, random_state=0),
    "naive": NaiveBayesClassifier(parameters="conditional", bins="ordinal"),
    "margin": MaxMarginBNClassifier(parameters="margin", max_parents=1),
    "path": MaxMarginBNClassifierCV(
        parameters="conditional",
        bins="ordinal",
        gammas=[1.0, 2.2],
        max_parents=(1,),
        cv=2,
        average=True,
    ),
    "unrestricted": GenerativeBNClassifier(
        parameters="conditional", bins="ordinal", class_restricted=False, max_parents=2
    ),
}


def rows(n_rows: int = 60) -> tuple[list[list[Any]], list[str]]:
    """Two numbers of which the product decides, a number that helps, and a colour."""
    rng = np.random.default_rng(7)
    numbers = rng.normal(size=(n_rows, 3)).round(3)
    signal = numbers[:, 0] * numbers[:, 1] + 0.5 * numbers[:, 2] + 0.3 * rng.normal(size=n_rows)
    colours = rng.choice(["red", "green"], n_rows)
    X = [[*map(float, row), str(colour)] for row, colour in zip(numbers, colours, strict=True)]
    return X, np.array(["low", "high"])[(signal > 0).astype(int)].tolist()


def with_gaps() -> list[list[Any]]:
    """The rows, complete, and with features missing."""
    X = rows()[0]
    rng = np.random.default_rng(8)
    hidden = rng.random((len(X), len(X[0]))) < 0.4
    gaps = [
        [None if h else v for v, h in zip(r, g, strict=True)]
        for r, g in zip(X, hidden, strict=True)
    ]
    return [*X, *gaps, [None] * len(X[0])]


@cache
def fitted(name: str) -> BaseBNClassifier:
    """One of the classifiers, fitted; never change it."""
    return CLASSIFIERS[name].fit(*rows())
