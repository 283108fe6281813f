"""Ctrl-C while gamma is chosen: the folds that are complete decide, or nobody."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from marginbn import MaxMarginBNClassifierCV, Search
from marginbn.classifiers.max_margin_cv import FoldPath
from marginbn.exceptions import OptimalityWarning
from marginbn.interrupts import Interrupts
from marginbn.solvers.result import TracePoint


def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    X = np.where(rng.random((60, 3)) < 0.7, y[:, None], rng.integers(0, 2, (60, 3)))
    return X.astype(str), y


def interrupted_after(monkeypatch: pytest.MonkeyPatch, n_paths: int) -> None:
    """Ctrl-C comes when so many paths are complete."""
    validate, done = MaxMarginBNClassifierCV._validate_fold, []

    def interrupt(self: Any, *args: Any) -> FoldPath:
        if len(done) == n_paths:
            raise KeyboardInterrupt
        done.append(args)
        return validate(self, *args)

    monkeypatch.setattr(MaxMarginBNClassifierCV, "_validate_fold", interrupt)


def test_complete_folds_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two and a half of three folds are done: two decide, and the final solve is run."""
    X, y = rows()
    interrupted_after(monkeypatch, 5)
    clf = MaxMarginBNClassifierCV(gammas=[0.5, 2.0], max_parents=(1, 2), cv=3)
    with pytest.warns(OptimalityWarning, match="chosen by 2 of 3 folds"):
        clf.fit(X, y)
    assert clf.status_ in ("optimal", "gap_limit")
    assert "split1_test_score" in clf.cv_results_
    assert "split2_test_score" not in clf.cv_results_
    assert clf.predict(X).shape == y.shape


def test_before_the_first_fold_there_is_no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the interrupt passes through."""
    X, y = rows()
    interrupted_after(monkeypatch, 1)
    clf = MaxMarginBNClassifierCV(gammas=[0.5, 2.0], max_parents=(1, 2), cv=3)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, y)
    assert not hasattr(clf, "gamma_")


def test_a_solve_that_is_interrupted_ends_the_validation(monkeypatch: pytest.MonkeyPatch) -> None:
    """The solver swallows Ctrl-C and returns its best; the grid must not go on by itself."""
    from marginbn.solvers.solve import solve_structure as solve

    X, y = rows()
    calls = []

    def interrupt(*args: Any, **options: Any) -> Any:
        calls.append(args)
        if len(calls) == 6:  # two gammas, two limits: the second fold has begun
            options["callback"] = lambda point: True
        return solve(*args, **options)

    monkeypatch.setattr("marginbn.classifiers.max_margin_cv.solve_structure", interrupt)
    clf = MaxMarginBNClassifierCV(
        gammas=[0.5, 2.0], max_parents=(1, 2), cv=3, search=Search(solver="branch_bound")
    )
    with pytest.warns(OptimalityWarning, match="chosen by 1 of 3 folds"):
        clf.fit(X, y)
    assert len(calls) == 6 + 1  # and the final one


def test_a_listener_stays_in_its_process() -> None:
    """The last search reports to it; workers in other processes need not, and could not."""
    X, y = rows()
    lock, heard = threading.Lock(), []

    def listen(point: TracePoint) -> None:
        with lock:  # which no other process can have
            heard.append(point)

    clf = MaxMarginBNClassifierCV(
        gammas=[0.5], max_parents=(1,), cv=2, n_jobs=2, time_limit=None,
        search=Search(callback=listen, inner_time_limit=None),
    )  # fmt: skip
    assert clf.fit(X, y).status_ == "optimal"
    assert heard
    assert clf.search.callback is listen


@pytest.mark.parametrize(("done", "kept"), [(3, True), (1, False)])
def test_complete_folds_of_other_processes_are_something_to_lose(
    done: int, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal then ends the validation, not the program."""
    X, y = rows()
    requests = Interrupts()
    monkeypatch.setattr("marginbn.classifiers.max_margin_cv.INTERRUPTS", requests)
    interrupted_after(monkeypatch, done)
    clf = MaxMarginBNClassifierCV(gammas=[0.5], max_parents=(1, 2), cv=3)
    with pytest.raises(KeyboardInterrupt) if not kept else pytest.warns(OptimalityWarning):
        clf.fit(X, y)
    assert requests.has_result == kept
