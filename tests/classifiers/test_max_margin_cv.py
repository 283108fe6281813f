"""Choosing gamma and parents: splits, scorings, the path to the final solve, averages."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

from clock import Clock
from marginbn import (
    InputError,
    MaxMarginBNClassifier,
    MaxMarginBNClassifierCV,
    OptimalityWarning,
    Search,
)
from marginbn.classifiers.max_margin_cv import SCORINGS
from marginbn.solvers.solve import solve_structure

GAMMAS = (0.5, 1.0, 2.0)


def rows(n: int = 90, n_classes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    y = rng.integers(n_classes, size=n)
    noisy = rng.random((n, 3)) < 0.5
    return np.where(noisy, y[:, None], rng.integers(n_classes, size=(n, 3))).astype(str), y


def classifier(**changes: Any) -> MaxMarginBNClassifierCV:
    settings: dict[str, Any] = {
        "gammas": GAMMAS,
        "max_parents": (1, 2),
        "cv": 3,
        "search": Search(inner_time_limit=None),
        "time_limit": None,
    }
    return MaxMarginBNClassifierCV(**settings | changes)


def scores_by_hand(clf: MaxMarginBNClassifierCV, X: Any, y: Any, measure: Any) -> np.ndarray:
    """Every setting fitted alone on every fold: (settings, folds)."""
    folds = list(StratifiedKFold(3).split(X, y))
    settings = zip(clf.cv_results_["max_parents"], clf.cv_results_["gamma"], strict=True)
    table = []
    for k, gamma in settings:
        alone = MaxMarginBNClassifier(max_parents=int(k), gamma=float(gamma), time_limit=None)
        table.append([measure(alone.fit(X[a], y[a]), X[b], y[b]) for a, b in folds])
    return np.array(table)


def mean_log_posterior(fitted: Any, X: Any, y: Any) -> float:
    return float(fitted.predict_log_proba(X)[np.arange(len(y)), y].mean())


def accuracy(fitted: Any, X: Any, y: Any) -> float:
    return float(fitted.score(X, y))


@pytest.mark.parametrize(
    ("scoring", "measure"),
    [("accuracy", accuracy), ("log_loss", mean_log_posterior)],
    ids=["accuracy", "log loss"],
)
def test_scores_are_those_of_fits_one_by_one(scoring: Any, measure: Any) -> None:
    """The path through gamma changes the time and nothing else (optima are unique here)."""
    X, y = rows()
    clf = classifier(scoring=scoring).fit(X, y)
    table = scores_by_hand(clf, X, y, measure)
    found = np.column_stack([clf.cv_results_[f"split{f}_test_score"] for f in range(3)])
    np.testing.assert_allclose(found, table, rtol=1e-9)
    assert clf.best_score_ == pytest.approx(table.mean(axis=1).max())


def test_the_final_solve_starts_from_larger_gammas(monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows, the largest first, each from the answer before; the final one with its limit."""
    X, y = rows()
    calls: list[tuple[float, Any, Any]] = []

    def solve(problem: Any, *args: Any, start: Any = None, **options: Any) -> Any:
        result = solve_structure(problem, *args, start=start, **options)
        calls.append((problem.gamma, start, result))
        return result

    monkeypatch.setattr("marginbn.classifiers.max_margin_cv.solve_structure", solve)
    monkeypatch.setattr(
        "marginbn.classifiers.max_margin_cv.choose", lambda *_: 0
    )  # the least gamma
    clf = classifier(max_parents=(2,)).fit(X, y)
    final = calls[-3:]
    gammas, starts, results = zip(*final, strict=True)
    assert gammas == (2.0, 1.0, 0.5)
    assert len(calls) == 3 * 3 + 3
    assert starts[0] is None
    assert starts[1] is results[0].structure
    assert starts[2] is results[1].structure
    assert clf.result_ is results[2]


def test_the_only_row_of_a_class_is_never_held_out() -> None:
    """Every fold knows every class, and log loss is that of rows that can be right."""
    X, y = rows(60, 2)
    X, y = np.vstack([X, X[:1]]), np.append(y, 7)
    clf = classifier(cv=None, scoring="log_loss", max_parents=(1,)).fit(X, y)
    assert min(clf.cv_results_["mean_test_score"]) > -5


# --- time ---


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    for module in ("classifiers.base", "classifiers.max_margin_cv", "data.training"):
        monkeypatch.setattr(f"marginbn.{module}.monotonic", made)
    return made


def test_the_whole_fit_keeps_the_total_limit(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every solve uses up what it is given: at the end no second is left and none was borrowed."""
    X, y = rows()
    begin, limits = clock.now, []

    def solve(*args: Any, time_limit: float | None = None, **options: Any) -> Any:
        limits.append(time_limit)
        clock.now += time_limit or math.inf
        return solve_structure(*args, time_limit=None, **options)

    monkeypatch.setattr("marginbn.classifiers.max_margin_cv.solve_structure", solve)
    monkeypatch.setattr(
        "marginbn.classifiers.max_margin_cv.choose", lambda *_: 0
    )  # the least gamma
    classifier(gammas=(1.0, 2.0, 4.0), time_limit=60.0).fit(X, y)
    assert len(limits) == 3 * 2 * 3 + 2 + 1
    assert sum(limits[:18]) == pytest.approx(30)
    assert sum(limits[18:-1]) == pytest.approx(15)
    assert clock.now - begin == pytest.approx(60)


def test_a_late_validation_chooses_from_what_it_tried(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fifth solve takes all the time: one of two settings of one fold is left out, and so are
    the other folds; nothing is solved between the choice and the final search."""
    X, y = rows()
    calls = []

    def solve(*args: Any, time_limit: float | None = None, **options: Any) -> Any:
        calls.append(time_limit)
        clock.now += 100.0 * (len(calls) == 5)
        return solve_structure(*args, time_limit=None, **options)

    monkeypatch.setattr("marginbn.classifiers.max_margin_cv.solve_structure", solve)
    clf = classifier(gammas=(1.0, 2.0, 4.0), time_limit=60.0)
    with pytest.warns(OptimalityWarning, match="5 of 6 settings are compared, on 1 of 3 folds"):
        clf.fit(X, y)
    assert len(calls) == 5 + 1
    means = clf.cv_results_["mean_test_score"]
    assert np.isnan(means).tolist() == [False] * 3 + [True, False, False]
    assert clf.best_score_ == np.nanmax(means)


def test_ctrl_c_on_the_path_leads_to_the_final_solve(monkeypatch: pytest.MonkeyPatch) -> None:
    """One gamma above the chosen one is solved, the next is interrupted, the final one is not."""
    X, y = rows()
    calls = []
    monkeypatch.setattr(
        "marginbn.classifiers.max_margin_cv.choose", lambda *_: 0
    )  # the least gamma

    def interrupt(*args: Any, **options: Any) -> Any:
        calls.append(args)
        if len(calls) == 3 * 2 * 3 + 2:
            options["callback"] = lambda point: True
            options["solver"] = "branch_bound"
            args = args[:1]
        return solve_structure(*args, **options)

    monkeypatch.setattr("marginbn.classifiers.max_margin_cv.solve_structure", interrupt)
    clf = classifier(gammas=(1.0, 2.0, 4.0)).fit(X, y)
    assert len(calls) == 3 * 2 * 3 + 2 + 1
    assert clf.status_ == "optimal"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"scoring": "accurate"}, "scoring must be 'accuracy' or 'log_loss', got 'accurate'"),
        ({"time_limit": 0}, "time_limit must be a positive number"),
    ],
)
def test_wrong_arguments_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        classifier(**changes).fit(*rows())


def test_every_scoring_is_documented() -> None:
    text = MaxMarginBNClassifierCV.__doc__ or ""
    assert all(f'"{name}"' in text for name in SCORINGS)
