"""Rows with numbers and categories in fine bins, for tests of the parameters."""

from __future__ import annotations

import numpy as np

from marginbn.classifiers.bn_classifier import BNClassifier
from marginbn.classifiers.validation import read_training_rows
from marginbn.data.ordinal import OrdinalData, OrdinalTraining, encode_ordinal
from marginbn.problem.encoded import EncodedData


def mixed_training(
    n: int = 300, n_classes: int = 3, seed: int = 0, weighted: bool = False
) -> OrdinalTraining:
    """Two numbers whose product tells the class, a category, and a number that is noise."""
    rng = np.random.default_rng(seed)
    a, b, noise = rng.normal(size=(3, n))
    category = rng.integers(0, 3, n)
    signal = a * b + 0.5 * a + 0.4 * (category == 1) + 0.3 * rng.normal(size=n)
    y = np.searchsorted(np.quantile(signal, np.arange(1, n_classes) / n_classes), signal)
    X = np.empty((n, 4), dtype=object)
    X[:, :3] = np.column_stack([a, b, noise])
    X[:, 3] = np.array(["u", "v", "w"])[category]
    weights = np.round(rng.uniform(0.5, 3.0, n), 2) if weighted else None
    return encode_ordinal(read_training_rows(BNClassifier(), X, y, weights, kinds="auto"), "drop")


def mixed_rows(
    n: int = 300, n_classes: int = 3, seed: int = 0, weighted: bool = False
) -> OrdinalData:
    """The rows above in fine bins."""
    return mixed_training(n, n_classes, seed, weighted).fine


def repeated(rows: OrdinalData, times: np.ndarray) -> OrdinalData:
    """Every row as often as ``times`` says, with weight one."""
    codes = np.repeat(rows.data.codes, times, axis=0)
    data = EncodedData(codes, np.ones(len(codes)), rows.data.variables)
    return OrdinalData(data, rows.groups, rows.positions)
