"""Budgets of work: what a limited search finds depends on no clock and no number of jobs."""

from __future__ import annotations

import time

import numpy as np
import pytest
from joblib import parallel_config

from marginbn import (
    EncodedData,
    InputError,
    MaxMarginBNClassifierCV,
    Search,
    StructureProblem,
    Variable,
    enumerate_candidates,
    margin_problem,
    solve_structure,
)
from marginbn.solvers import TracePoint
from marginbn.solvers.result import Status


def hard_rows(n_rows: int = 200, n_features: int = 16) -> EncodedData:
    """Noise: a search over it takes long."""
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 3, (n_rows, n_features + 1))
    names = [Variable(f"v{i}", ("a", "b", "c")) for i in range(n_features + 1)]
    return EncodedData(codes, np.ones(n_rows), tuple(names))


def hard_problem() -> StructureProblem:
    data = hard_rows()
    return margin_problem(data, enumerate_candidates(data.n_variables, 2))


def test_the_same_work_finds_the_same_however_long_it_takes() -> None:
    """Somebody who listens slowly changes nothing."""

    def listen_slowly(_: TracePoint) -> None:
        time.sleep(0.01)

    problem = hard_problem()
    quick = solve_structure(problem, Search(work_limit=0.2))
    slow = solve_structure(problem, Search(work_limit=0.2), callback=listen_slowly)
    assert quick.status is Status.WORK_LIMIT
    assert (quick.nodes, quick.objective, quick.bound) == (slow.nodes, slow.objective, slow.bound)
    assert quick.work == slow.work >= 0.2
    longer = solve_structure(problem, Search(work_limit=0.4))
    assert longer.nodes > quick.nodes
    assert longer.bound < quick.bound


def test_no_work_is_no_limit() -> None:
    with pytest.raises(InputError, match="work_limit must be a positive number"):
        solve_structure(hard_problem(), Search(work_limit=0.0))


def test_two_jobs_give_the_scores_of_one() -> None:
    data = hard_rows(120, 12)
    X, y = data.codes[:, 1:], data.codes[:, 0]

    def scores(n_jobs: int) -> np.ndarray:
        cv = MaxMarginBNClassifierCV(
            gammas=(0.5, 1.0),
            max_parents=(2,),
            cv=2,
            search=Search(inner_time_limit=0.05, time_limit=0.1),
            time_limit=None,
            n_jobs=n_jobs,
            column_kinds="categorical",
        )
        with parallel_config(backend="threading"), pytest.warns(match="gap"):
            cv.fit(X, y)
        assert cv.cv_results_["max_gap"].max() > 1e-3
        return np.array([cv.cv_results_["mean_test_score"], cv.cv_results_["max_gap"]])

    np.testing.assert_array_equal(scores(1), scores(2))
