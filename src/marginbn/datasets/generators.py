"""Synthetic data sets by their published rules; the same seed gives the same rows.

All features of corral, mofn, monks and LED are categorical with every possible value declared;
those of waveform are numeric.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from marginbn.data.columns import Column
from marginbn.data.labelled import CLASS_NAME
from marginbn.data.table import Table
from marginbn.datasets.local import Dataset
from marginbn.exceptions import InputError
from marginbn.problem.array_types import BoolArray, IntArray

_MONKS_ARITIES = (3, 3, 2, 3, 4, 2)
"""Values of the six attributes of the MONK's problems."""

_MONKS_TRAIN_SIZES = {1: 124, 2: 169, 3: 122}
"""Training rows of each of the MONK's problems, as published."""

_MONKS_NOISE = 0.05
"""Share of the training labels of MONK's problem 3 that are flipped, as published."""

# Rows: digits 0 to 9.
# Columns: top, upper left, upper right, middle, lower left, lower right, bottom.
_LED_SEGMENTS = np.array(
    [
        [1, 1, 1, 0, 1, 1, 1],
        [0, 0, 1, 0, 0, 1, 0],
        [1, 0, 1, 1, 1, 0, 1],
        [1, 0, 1, 1, 0, 1, 1],
        [0, 1, 1, 1, 0, 1, 0],
        [1, 1, 0, 1, 0, 1, 1],
        [1, 1, 0, 1, 1, 1, 1],
        [1, 0, 1, 0, 0, 1, 0],
        [1, 1, 1, 1, 1, 1, 1],
        [1, 1, 1, 1, 0, 1, 1],
    ]
)


def make_corral() -> Dataset:
    """Corral: (A0 and A1) or (B0 and B1), one irrelevant and one correlated bit, 128 rows.

    Each setting of A0, A1, B0, B1 and Irrelevant occurs four times; Correlated equals the class
    in the first three of the four. Nothing is random.

    References
    ----------
    John, Kohavi & Pfleger (1994), Irrelevant features and the subset selection problem, ICML.

    Examples
    --------
    >>> make_corral().train.names
    ('A0', 'A1', 'B0', 'B1', 'Irrelevant', 'Correlated', 'class')
    """
    bits = np.repeat(_all_settings((2,) * 5), 4, axis=0)
    label = (bits[:, 0] & bits[:, 1]) | (bits[:, 2] & bits[:, 3])
    agrees = np.arange(len(bits)) % 4 < 3
    features = np.column_stack([bits, np.where(agrees, label, 1 - label)])
    names = ("A0", "A1", "B0", "B1", "Irrelevant", "Correlated")
    train = _categorical_table(names, features, label, arities=(2,) * 6)
    return Dataset("corral", train, None, CLASS_NAME)


def make_mofn(n_train: int = 300, seed: int = 0) -> Dataset:
    """3-of-7 among ten bits: true if at least three of Bit-2 to Bit-8 are set.

    Training rows are `n_train` distinct settings, drawn by `seed`; the test part is all 1024.

    References
    ----------
    Murphy & Pazzani (1991), ID2-of-3: constructive induction of M-of-N concepts, ICML; the
    version with ten bits is mofn-3-7-10 of the MLC++ collection (Kohavi et al.).

    Examples
    --------
    >>> mofn = make_mofn(100, seed=1)
    >>> mofn.train.n_rows, mofn.test.n_rows
    (100, 1024)
    """
    if not 1 <= n_train <= 1024:
        raise InputError(f"n_train must be between 1 and 1024, got {n_train}")
    bits = _all_settings((2,) * 10)
    label = (bits[:, 2:9].sum(axis=1) >= 3).astype(np.int64)
    names = [f"Bit-{i}" for i in range(10)]
    test = _categorical_table(names, bits, label, arities=(2,) * 10)
    chosen = np.random.default_rng(seed).choice(len(bits), size=n_train, replace=False)
    return Dataset("mofn-3-7-10", test.take(chosen), test, CLASS_NAME)


def make_waveform(n: int = 5000, seed: int = 0) -> Dataset:
    """Waveform-21: three classes of noisy mixtures of two triangular waves, 21 features.

    ::

        h1(i) = max(6 - |i - 11|, 0),  h2(i) = h1(i - 4),  h3(i) = h1(i + 4),  i = 1..21
        x_i = u h_a(i) + (1 - u) h_b(i) + e_i,  u ~ U(0, 1) once per row,  e_i ~ N(0, 1)

    with the pair (a, b) = (2, 3), (1, 3), (1, 2) in class 0, 1, 2, all equally likely. The labels
    are those of the file in the UCI repository, whose values are rounded to two decimals.

    References
    ----------
    Breiman, Friedman, Olshen & Stone (1984), Classification and regression trees, sec. 2.6.2.

    Examples
    --------
    >>> make_waveform(50).train.n_columns  # 21 features and the class
    22
    """
    _require_positive("n", n)
    rng = np.random.default_rng(seed)
    position = np.arange(1, 22)
    waves = np.array([np.maximum(6 - np.abs(position - peak), 0) for peak in (11, 15, 7)])
    label = rng.integers(3, size=n)
    first, second = np.array([[1, 2], [0, 2], [0, 1]])[label].T
    u = rng.random((n, 1))
    values = u * waves[first] + (1 - u) * waves[second] + rng.standard_normal((n, 21))
    columns = [Column.numeric(f"x{i + 1}", values[:, i]) for i in range(21)]
    train = Table((*columns, _class_column(label, 3)))
    return Dataset("waveform-21", train, None, CLASS_NAME)


def make_monks(problem: int, seed: int = 0) -> Dataset:
    """The three MONK's problems: rules over six attributes, tested on all 432 settings.

    ::

        1: a1 = a2 or a5 = 1
        2: exactly two of the six attributes have their first value
        3: (a5 = 3 and a4 = 1) or (a5 != 4 and a2 != 3), 5 % of the training labels flipped

    Training rows are 124, 169 and 122 distinct settings, drawn by `seed` (the published files
    fixed one such draw).

    References
    ----------
    Thrun et al. (1991), The MONK's problems: a performance comparison of different learning
    algorithms, CMU-CS-91-197.

    Examples
    --------
    >>> make_monks(3).train.n_rows
    122
    """
    if problem not in _MONKS_TRAIN_SIZES:
        raise InputError(f"problem must be 1, 2 or 3, got {problem!r}")
    values = _all_settings(_MONKS_ARITIES) + 1
    label = _monks_label(problem, values)
    rng = np.random.default_rng(seed)
    chosen = rng.choice(len(values), size=_MONKS_TRAIN_SIZES[problem], replace=False)
    train_label = label[chosen]
    if problem == 3:
        flipped = rng.choice(len(chosen), size=round(_MONKS_NOISE * len(chosen)), replace=False)
        train_label[flipped] = 1 - train_label[flipped]
    names = [f"a{i}" for i in range(1, 7)]
    train = _categorical_table(names, values[chosen], train_label, _MONKS_ARITIES, first=1)
    test = _categorical_table(names, values, label, _MONKS_ARITIES, first=1)
    return Dataset(f"monks-{problem}", train, test, CLASS_NAME)


def make_led(n: int = 1000, noise: float = 0.1, seed: int = 0) -> Dataset:
    """LED display: the digit shown by seven segments, each inverted with probability `noise`.

    With the usual ``noise=0.1`` the best possible accuracy is about 74 %.

    References
    ----------
    Breiman, Friedman, Olshen & Stone (1984), Classification and regression trees, sec. 2.6.1.

    Examples
    --------
    >>> make_led(20, noise=0.0).train.column("class").categories
    (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
    """
    _require_positive("n", n)
    if not 0 <= noise <= 1:
        raise InputError(f"noise must be a probability between 0 and 1, got {noise}")
    rng = np.random.default_rng(seed)
    digit = rng.integers(10, size=n)
    inverted = rng.random((n, 7)) < noise
    segments = np.where(inverted, 1 - _LED_SEGMENTS[digit], _LED_SEGMENTS[digit])
    names = [f"segment{i}" for i in range(1, 8)]
    train = _categorical_table(names, segments, digit, arities=(2,) * 7, n_classes=10)
    return Dataset("led-7", train, None, CLASS_NAME)


def _monks_label(problem: int, values: IntArray) -> IntArray:
    a1, a2, _, a4, a5, _ = values.T
    label: BoolArray
    if problem == 1:
        label = (a1 == a2) | (a5 == 1)
    elif problem == 2:
        label = (values == 1).sum(axis=1) == 2
    else:
        label = ((a5 == 3) & (a4 == 1)) | ((a5 != 4) & (a2 != 3))
    return label.astype(np.int64)


def _all_settings(arities: Sequence[int]) -> IntArray:
    """Every combination of values 0..arity-1, in lexicographic order."""
    return np.array(list(itertools.product(*map(range, arities))), dtype=np.int64)


def _categorical_table(
    names: Sequence[str],
    values: IntArray,
    label: IntArray,
    arities: Sequence[int],
    *,
    first: int = 0,
    n_classes: int = 2,
) -> Table:
    """Features with values first..first+arity-1, and the class."""
    columns = [
        Column.categorical(name, values[:, j] - first, range(first, first + arities[j]))
        for j, name in enumerate(names)
    ]
    return Table((*columns, _class_column(label, n_classes)))


def _class_column(label: IntArray, n_classes: int) -> Column:
    return Column.categorical(CLASS_NAME, label, range(n_classes))


def _require_positive(name: str, value: Any) -> None:
    if value < 1:
        raise InputError(f"{name} must be at least 1, got {value}")
