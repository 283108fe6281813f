"""Several fits at once, in threads and in processes: the answers of one after the other."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from joblib import Parallel, delayed

from marginbn import GenerativeBNClassifier, MaxMarginBNClassifier, MaxMarginBNClassifierCV
from marginbn.classifiers import BaseBNClassifier
from marginbn.solvers import solve_structure
from problems import small_linear_problem, small_margin_problem

Answer = tuple[object, float, float, str, bytes]


def table(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Eight columns of codes and measurements, three classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 120)
    X = (y[:, None] + rng.integers(0, 3, (120, 8))) % 3 + rng.normal(0, 0.1, (120, 8))
    return X.round(1), y


CLASSIFIERS: list[BaseBNClassifier] = [
    MaxMarginBNClassifier(),
    MaxMarginBNClassifier(margin="binary", gamma=0.5),
    MaxMarginBNClassifier(max_parents=3, gamma=1.0, time_limit=None),
    GenerativeBNClassifier(score="bdeu", class_restricted=False),
    MaxMarginBNClassifierCV(gammas=[0.5, 2.0], max_parents=(1,), cv=2),
]


def answer(number: int) -> Answer:
    """Fit classifier ``number`` on its own table: structure, objective, bound, probabilities."""
    X, y = table(number)
    features = X[:, :5] if number % 5 == 2 else X  # three parents are slow
    classifier = CLASSIFIERS[number % 5]
    fitted = type(classifier)(**classifier.get_params()).fit(features, y)
    probabilities = fitted.predict_proba(features)
    return (
        fitted.structure_,
        fitted.objective_,
        fitted.bound_,
        fitted.status_,
        probabilities.tobytes(),
    )


@pytest.fixture(scope="module")
def alone() -> list[Answer]:
    """The answers one after the other."""
    return [answer(number) for number in range(10)]


def test_threads_give_the_same_answers(alone: list[Answer]) -> None:
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(answer, range(10))) == alone


def test_two_fits_of_one_problem_at_once(alone: list[Answer]) -> None:
    barrier = threading.Barrier(2)

    def together(number: int) -> Answer:
        barrier.wait()
        return answer(number)

    for number in (0, 1, 2):
        with ThreadPoolExecutor(2) as pool:
            assert list(pool.map(together, [number] * 2)) == [alone[number]] * 2


def test_one_problem_object_shared_by_threads() -> None:
    """Solvers keep nothing in the problem that another thread could see half done."""
    margin, linear = small_margin_problem(3, n_features=5), small_linear_problem(3, n_features=5)
    jobs = [
        (margin, "branch_bound"),
        (margin, "branch_cut"),
        (linear, "dp"),
        (linear, "branch_cut"),
    ]

    def solve(job: int) -> tuple[object, float, float]:
        problem, solver = jobs[job % 4]
        result = solve_structure(problem, solver)
        return result.structure, result.objective, result.bound

    expected = [solve(job) for job in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(solve, range(24))) == expected * 6


@pytest.mark.parametrize("gamma_path", [(0.3, 1.0), (2.0, 0.1)])
def test_problems_that_share_coefficients(gamma_path: tuple[float, float]) -> None:
    """Two gammas of one problem share their arrays; solved in two threads each has its own."""
    problem = small_margin_problem(8, n_features=6, n_rows=80)

    def solve(gamma: float) -> tuple[object, float, float]:
        result = solve_structure(problem.with_gamma(gamma), "branch_bound")
        return result.structure, result.objective, result.bound

    expected = [solve(gamma) for gamma in gamma_path]
    for _ in range(3):
        with ThreadPoolExecutor(2) as pool:
            assert list(pool.map(solve, gamma_path)) == expected


@pytest.mark.slow
def test_joblib_workers_give_the_same_answers(alone: list[Answer]) -> None:
    assert Parallel(n_jobs=2)(delayed(answer)(number) for number in range(5)) == alone[:5]


def test_joblib_threads_give_the_same_answers(alone: list[Answer]) -> None:
    found = Parallel(n_jobs=3, backend="threading")(delayed(answer)(n) for n in range(10))
    assert found == alone
