"""The way of a row through a fit and a prediction: no value on it is made twice.

Calls are counted, not seconds.
"""

from __future__ import annotations

import inspect
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType, FunctionType
from typing import Any

import numpy as np
import pytest

from marginbn import BNClassifier, InputError, MaxMarginBNClassifier, NaiveBayesClassifier
from marginbn.class_model.basis import learn_cells
from marginbn.class_model.choose import N_FOLDS, split_rows
from marginbn.class_model.trainer import log_shares
from marginbn.classifiers import validation
from marginbn.data.discretize import mdlp_cuts
from marginbn.data.encode import TableCoding, learn_coding
from marginbn.data.labelled import LabelledTable
from marginbn.data.preparation import Preparation, TableSettings
from marginbn.data.training import survey_rows
from marginbn.network.network import BayesianNetwork
from marginbn.problem.candidates import enumerate_candidates
from marginbn.problem.encoded import contingency, distinct_rows
from marginbn.problem.problem import margin_problem
from marginbn.report.comparison import read_rows
from marginbn.report.effects import count_by_class, measure_effects
from marginbn.solvers import solve_structure

N_NUMBERS, N_CATEGORIES = 2, 2
N_COLUMNS = N_NUMBERS + N_CATEGORIES


def _code(function: Any) -> CodeType:
    """What runs when a function is called, under its decorators."""
    plain: FunctionType = inspect.unwrap(getattr(function, "__func__", function))
    return plain.__code__


@contextmanager
def counting(*functions: Callable[..., Any]) -> Iterator[Counter[str]]:
    """How often each function is called, whoever calls it and by whatever name."""
    names = {_code(f): f.__qualname__ for f in functions}
    found: Counter[str] = Counter()

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code in names:
            found[names[frame.f_code]] += 1

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        yield found
    finally:
        sys.setprofile(before)


@pytest.fixture(scope="module")
def rows() -> tuple[list[list[Any]], list[str]]:
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(120, N_NUMBERS)).round(2)
    labels = [rng.choice(list(letters), 120) for letters in ("xyz", "pq")]
    X = [[*n, a, b] for n, a, b in zip(numbers.tolist(), *labels, strict=True)]
    y = ["yes" if (row[0] > 0) != (row[2] == "x") else "no" for row in X]
    return X, y


READ_ONCE = (
    validation.read_training_rows,
    survey_rows,
    TableSettings.learn,
    Preparation.apply,
    LabelledTable.fingerprint,
)


def test_a_margin_fit_makes_everything_once(rows: tuple[list[list[Any]], list[str]]) -> None:
    """Reading, bins, codes, distinct rows, candidates, the search and the tables."""
    once = (
        *READ_ONCE,
        distinct_rows,
        enumerate_candidates,
        margin_problem,
        solve_structure,
        BayesianNetwork.fit,
    )
    with counting(*once, learn_coding, mdlp_cuts) as found:
        MaxMarginBNClassifier().fit(*rows)
    assert found.pop("learn_coding") == N_COLUMNS
    assert found.pop("mdlp_cuts") == N_NUMBERS
    assert found == {function.__qualname__: 1 for function in once}


def test_the_default_fit_makes_everything_once_per_fold(
    rows: tuple[list[list[Any]], list[str]],
) -> None:
    """And once for all rows; folds are drawn once, tables are counted once."""
    once = (*READ_ONCE, split_rows, BayesianNetwork.fit)
    per_fold = (learn_cells, distinct_rows, enumerate_candidates, margin_problem, solve_structure)
    with counting(*once, *per_fold, log_shares, learn_coding) as found:
        BNClassifier().fit(*rows)
    assert found.pop("learn_coding") == N_COLUMNS * (1 + N_FOLDS)
    expected = {f.__qualname__: 1 + N_FOLDS for f in (*per_fold, log_shares)}
    assert found == expected | {function.__qualname__: 1 for function in once}


def test_a_prediction_reads_and_encodes_once(rows: tuple[list[list[Any]], list[str]]) -> None:
    """And counts nothing."""
    for classifier in (BNClassifier(), MaxMarginBNClassifier()):
        classifier.fit(*rows)
        once = (validation.source_of_rows, Preparation.apply, TableCoding.encode)
        with counting(*once, contingency, learn_coding) as found:
            classifier.predict_proba(rows[0])
        assert found == {function.__qualname__: 1 for function in once}


def test_the_effects_of_a_report_prepare_rows_once(
    rows: tuple[list[list[Any]], list[str]],
) -> None:
    """For the counts of the bands and for the axes."""
    fitted = NaiveBayesClassifier().fit(*rows)
    labelled = read_rows(fitted, *rows)
    once = (count_by_class, Preparation.apply)
    with counting(*once) as found:
        measure_effects(fitted, labelled)
    assert found == {function.__qualname__: 1 for function in once}


def test_counting_sees_calls() -> None:
    """Otherwise the tests above could not fail."""
    with counting(validation.check_positive) as found, pytest.raises(InputError):
        validation.check_positive("gamma", -1.0)
    assert found == {"check_positive": 1}
