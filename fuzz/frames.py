"""Estimator inputs made from bytes: tables of any content, labels, weights and parameters.

The bytes are a script: each decision (how many rows, what a column holds, which container, which
parameters) reads the next byte or two, and zero where they end. So every input is valid for the
fuzzer, small changes of the bytes are small changes of the call, and a kept input replays without
the fuzzer.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.guard import FindingError
from marginbn import Search
from marginbn.classifiers import (
    BaseBNClassifier,
    GenerativeBNClassifier,
    MaxMarginBNClassifier,
    NaiveBayesClassifier,
    TANClassifier,
)

_NUMBERS: tuple[Any, ...] = (
    0, 1, 2, 3, -1, 0.5, -0.0, math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, 1e-300,
    2**31, 2**53 + 1, 2**63, 2**64, 10**400, True, False, Decimal("1.5"), Decimal("NaN"),
    Decimal("1e999"), Fraction(1, 3), np.float32(0.1), np.int8(-128), np.uint64(2**64 - 1),
)  # fmt: skip
_TEXTS: tuple[Any, ...] = (
    "a", "b", "", " ", "1", "1.0", "nan", "None", "é", "\0", "\n", "\U0001f600", "x" * 300, "-1e5",
    b"a", b"\xff", "inf", "True", "\ud800", "a\u0301",
)  # fmt: skip
_ODD: tuple[Any, ...] = (
    None, math.nan, 1j, (1, 2), [1], {}, set(), object, datetime.date(2020, 1, 1),
    datetime.timedelta(1), np.datetime64("NaT", "D"), np.array([1, 2]), range(3), frozenset((1,)),
)  # fmt: skip
_WEIGHTS: tuple[Any, ...] = (
    1.0, 0.5, 2.0, 0.0, 1e-6, 1e9, -1.0, math.nan, math.inf, 1e300, 5e-324, "1", None, 3, True,
)  # fmt: skip
_SETTINGS: dict[str, tuple[Any, ...]] = {
    "smoothing": (1.0, 0.5, 1e-6, 1e6, 1e-300, 1e300, 0, -1, math.nan, math.inf, "1", None,
                  True, "auto"),
    "missing": ("drop", "state", "error", "x", None, 3),
    "column_kinds": ("auto", "numeric", "categorical", {0: "categorical"}, {"x0": "numeric"},
                     {99: "auto"}, {0: "x"}, 3, None, ["auto"]),
    "max_parents": (1, 2, 0, 3, -1, 2.0, "2", None, True, 10**9),
    "gamma": (1.0, 0.004, 50.0, 1e-3, 1e300, 5e-324, 0, -1, math.nan, math.inf, "1", None),
    "margin": ("multiclass", "binary", "x", None, ["binary"]),
    "score": ("mdl", "bic", "aic", "bdeu", "k2", "loglik", "x", None, 3),
    "class_restricted": (True, False, None, "x"),
    "equivalent_sample_size": (1.0, 1e-6, 1e9, 0, -1, math.nan, "1", None),
    "search": (None, Search(gap_tolerance=0.5), Search(gap_tolerance=-1), Search(solver="x"),
               Search(gap_tolerance=math.nan), Search(memory_limit="x"), "auto", 3),
    "random_state": (0, None, 2**40, -1, "x", 1.5),
    "required_arcs": (None, [("x0", "x1")], [(0, 1)], [("x0",)], "ab", 3, [("class", "x0")],
                      [(1, 0), (2, 0), (3, 0)], [(1, 1)], [(1, 2), (2, 1)]),
    "forbidden_arcs": (None, [("x0", "x1")], [(0, 1)], [(0, 99)], [[]], [(0, 1), (0, 2)]),
}  # fmt: skip
_ESTIMATORS: tuple[type[BaseBNClassifier], ...] = (
    NaiveBayesClassifier,
    TANClassifier,
    MaxMarginBNClassifier,
    GenerativeBNClassifier,
)


class Script:
    """Decisions read from bytes; zero for ever after their end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def number(self, below: int) -> int:
        """A whole number from 0 to ``below - 1``, at most 256."""
        at, self._position = self._position, self._position + 1
        return self._data[at] % below if at < len(self._data) else 0

    def choose(self, options: Sequence[Any]) -> Any:
        """One of the options; the first where the bytes have ended."""
        return options[self.number(len(options))]


def fit_and_predict(data: bytes, _folder: Path) -> None:
    """Fit an estimator on what the bytes say and use it; a result must be a distribution."""
    script = Script(data)
    estimator = _estimator(script)
    n_rows, n_columns = script.number(14), script.number(6)
    columns = [_column(script, n_rows) for _ in range(n_columns)]
    labels = _column(script, max(0, n_rows - script.choose((0, 0, 0, 0, 0, 0, 0, 1))))
    weights = script.choose((None, None, "own"))
    if weights is not None:
        weights = [script.choose(_WEIGHTS) for _ in range(n_rows)]
    X = _container(script, columns)
    estimator.fit(X, labels, weights)
    _use(estimator, X)
    _use(estimator, _container(script, [_column(script, 3) for _ in range(n_columns)]))


def fit_everything() -> None:
    """Every estimator on every container, so that all packages are imported and compiled."""
    columns = [[0, 1, 0, 1, 1, 0, 2, 2], [0.5, 1.5, 0.25, 3, 1, 2, 7, 9], list("abbabaab")]
    settings: list[BaseBNClassifier] = [
        NaiveBayesClassifier(),
        TANClassifier(),
        MaxMarginBNClassifier(),
        MaxMarginBNClassifier(max_parents=3, margin="binary"),
        GenerativeBNClassifier(),
        GenerativeBNClassifier(class_restricted=False, score="bdeu", max_parents=3),
    ]
    for estimator in settings:
        for kind in range(5):
            X = _container(Script(bytes([kind])), columns)
            _use(estimator.fit(X, columns[2]), X)
    MaxMarginBNClassifier(time_limit=1e-9).fit(X, columns[2])


def _use(estimator: BaseBNClassifier, X: Any) -> None:
    probabilities = estimator.predict_proba(X)
    assert not np.isnan(probabilities).any()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-9)
    assert len(estimator.predict(X)) == len(probabilities)
    if estimator.result_ is not None:
        assert not np.isnan([estimator.objective_, estimator.bound_]).any()
        assert estimator.bound_ >= estimator.objective_


def _estimator(script: Script) -> BaseBNClassifier:
    cls = script.choose(_ESTIMATORS)
    known = cls().get_params(deep=False)
    settings = {"time_limit": 0.05} if "time_limit" in known else {}
    names = [name for name in _SETTINGS if name in known]
    for _ in range(script.number(4)):
        name = script.choose(names)
        settings[name] = script.choose(_SETTINGS[name])
    return cls(**settings)


def _column(script: Script, n_rows: int) -> list[Any]:
    make: Callable[[], Any] = script.choose(
        (
            lambda: script.number(3),
            lambda: script.number(256) / 7,
            lambda: "abcd"[script.number(4)],
            lambda: script.choose(_NUMBERS),
            lambda: script.choose(_TEXTS),
            lambda: script.choose((True, False)),
            lambda: script.choose((None, math.nan, 1, "a", 2.5)),
            lambda: script.choose((*_NUMBERS, *_TEXTS, *_ODD)),
            lambda: 1,
        )
    )
    return [make() for _ in range(n_rows)]


def _container(script: Script, columns: Sequence[Sequence[Any]]) -> Any:
    """Rows as lists, an array of objects or floats, or a data frame."""
    rows = [list(row) for row in zip(*columns, strict=True)]
    kind = script.number(6)
    if kind == 1:
        cells = np.empty((len(rows), len(columns)), dtype=object)
        for i, row in enumerate(rows):
            for j, cell in enumerate(row):
                cells[i, j] = cell
        return cells
    if kind in (2, 3):
        return _frame(kind, columns) if columns else rows
    if kind == 4:
        flat = [c for row in rows for c in row]
        if all(type(c) in (int, float, bool) and abs(c) < 2**62 for c in flat):
            return np.array(rows, dtype=np.float64)
    return rows


def _frame(kind: int, columns: Sequence[Sequence[Any]]) -> Any:
    """A data frame if the package can make one of these cells, else plain rows."""
    named = {f"x{i}": list(column) for i, column in enumerate(columns)}
    try:
        if kind == 2:
            import pandas as pd

            return pd.DataFrame(named)
        import polars as pl

        if any(isinstance(cell, Decimal) for column in columns for cell in column):
            return [list(row) for row in zip(*columns, strict=True)]  # some make polars panic
        return pl.DataFrame(named, strict=False)
    except FindingError:
        raise
    except BaseException:  # their errors are not ours, nor are the panics of polars
        return [list(row) for row in zip(*columns, strict=True)]
