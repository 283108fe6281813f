"""Numerical extremes: no NaN, no wrong optimum, no bound below the optimum.

The optimum is that of :mod:`exhaustive_search` in extended precision. Sums of the size S = (total
weight) x (largest margin term + gamma) carry rounding errors of some 1e-16 S per step on the
package's side, hence the tolerance of 1e-12 S.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from exhaustive_search import Sample, best_objective
from marginbn import MaxMarginBNClassifier, NaiveBayesClassifier, TANClassifier
from marginbn.exceptions import DataWarning
from marginbn.problem.candidates import enumerate_candidates
from marginbn.problem.encoded import EncodedData
from marginbn.problem.problem import StructureProblem, margin_problem
from marginbn.solvers import solve_structure
from marginbn.solvers.result import Status
from oracles import parent_sets
from strategies import make_variables

SOLVERS = ("branch_bound", "branch_cut")


@dataclass(frozen=True)
class Extreme:
    """Data at the edge of what numbers can do."""

    codes: np.ndarray
    weights: np.ndarray
    arities: tuple[int, ...]
    gamma: float = 1.0
    smoothing: float = 1.0
    max_parents: int = 2

    def sample(self, binary: bool) -> Sample:
        """For the search through all structures, in extended precision."""
        weights = self.weights.astype(np.longdouble)
        return Sample(self.codes, weights, self.arities, self.smoothing, binary)

    def problem(self, binary: bool) -> StructureProblem:
        """For the solvers."""
        return margin_problem(
            EncodedData(self.codes.astype(np.int32), self.weights, make_variables(self.arities)),
            enumerate_candidates(len(self.arities), self.max_parents),
            margin="binary" if binary else "multiclass",
            gamma=self.gamma,
            smoothing=self.smoothing,
        )

    def size(self, binary: bool) -> float:
        """S of the module docstring."""
        sample, n = self.sample(binary), len(self.arities)
        sets = [(v, s) for v in range(n) for s in parent_sets(v, n, self.max_parents, True)]
        largest = max(float(np.abs(sample.terms(v, s)).max()) for v, s in sets)
        return float(self.weights.sum()) * (largest + self.gamma)


def table(seed: int, n_rows: int, arities: tuple[int, ...]) -> np.ndarray:
    """Codes with some dependence on the class."""
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, arities[0], n_rows)]
    for arity in arities[1:]:
        follows = rng.random(n_rows) < 0.5
        columns.append(np.where(follows, columns[0] % arity, rng.integers(0, arity, n_rows)))
    return np.column_stack(columns)


def wide_weights(seed: int, n_rows: int) -> np.ndarray:
    """From 1e-6 to 1e9 in one table."""
    return 10.0 ** np.random.default_rng(seed).uniform(-6, 9, n_rows)


FOUR = (3, 2, 3, 2, 2)
FIFTY = (3, 50, 50, 50)
CASES: dict[str, Extreme] = {
    "one row": Extreme(np.array([[1, 0, 1]]), np.ones(1), (2, 2, 2)),
    "one row, large weight": Extreme(np.array([[1, 0, 1]]), np.array([1e9]), (2, 2, 2)),
    "one row, tiny weight": Extreme(np.array([[1, 0, 1]]), np.array([1e-6]), (2, 2, 2)),
    "two equal rows of two classes": Extreme(np.array([[0, 0], [1, 0]]), np.ones(2), (2, 2)),
    "weights over fifteen decades": Extreme(table(1, 40, FOUR), wide_weights(1, 40), FOUR),
    "the same, tiny smoothing": Extreme(
        table(2, 40, FOUR), wide_weights(2, 40), FOUR, smoothing=1e-6
    ),
    "tiny weights": Extreme(table(3, 30, FOUR), np.full(30, 1e-6), FOUR),
    "large weights": Extreme(table(4, 30, FOUR), np.full(30, 1e9), FOUR),
    "fifty states": Extreme(table(5, 60, FIFTY), np.ones(60), FIFTY),
    "fifty states, tiny smoothing": Extreme(
        table(6, 60, FIFTY), np.ones(60), FIFTY, gamma=50.0, smoothing=1e-6
    ),
    "gamma 0.001": Extreme(table(7, 40, FOUR), np.ones(40), FOUR, gamma=1e-3),
    "gamma 50": Extreme(table(8, 40, FOUR), np.ones(40), FOUR, gamma=50.0),
    "smoothing 1e-6": Extreme(table(9, 40, FOUR), np.ones(40), FOUR, smoothing=1e-6),
    "everything": Extreme(
        table(10, 40, FOUR), wide_weights(10, 40), FOUR, gamma=50.0, smoothing=1e-6
    ),
    "everything, small gamma": Extreme(
        table(11, 40, FOUR), wide_weights(11, 40), FOUR, gamma=1e-3, smoothing=1e-6
    ),
    "three parents": Extreme(
        table(12, 30, FOUR), wide_weights(12, 30), FOUR, gamma=5.0, smoothing=1e-6, max_parents=3
    ),
    "a class that never occurs": Extreme(
        table(13, 20, (2, 2, 3)), np.ones(20), (4, 2, 3), smoothing=1e-6
    ),
}


def check(case: Extreme, binary: bool, solver: str) -> None:
    """Objective and bound enclose the optimum of extended precision."""
    problem = case.problem(binary)
    best = best_objective(case.sample(binary), case.max_parents, case.gamma)
    slack = 1e-12 * case.size(binary)
    result = solve_structure(problem, solver)
    assert not np.isnan([result.objective, result.bound]).any()
    assert result.status is Status.OPTIMAL
    assert result.bound >= best - slack
    assert result.objective <= best + slack
    assert result.objective >= best - slack - 1.01e-6 * max(1.0, abs(best), abs(result.bound))


@pytest.mark.parametrize("binary", [False, True], ids=["SM", "SBM"])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", CASES)
def test_optima_and_bounds_at_the_extremes(name: str, solver: str, binary: bool) -> None:
    """Both relaxations and the reference, against extended precision."""
    case = CASES[name]
    if solver == "branch_bound" and case.max_parents > 2:
        pytest.skip("branch_bound has two parents at most")
    check(case, binary, solver)


@pytest.mark.parametrize(
    "classifier",
    [NaiveBayesClassifier(), TANClassifier(), MaxMarginBNClassifier(gamma=50.0)],
    ids=lambda c: type(c).__name__,
)
@pytest.mark.parametrize("smoothing", [1e-6, 1.0, 1e9])
def test_predictions_are_distributions(classifier: object, smoothing: float) -> None:
    codes, weights = table(20, 60, FOUR), wide_weights(20, 60)
    fitted = type(classifier)(**{**classifier.get_params(), "smoothing": smoothing})  # type: ignore[attr-defined]
    fitted.fit(codes[:, 1:], codes[:, 0], weights)
    probabilities = fitted.predict_proba(codes[:, 1:])
    assert not np.isnan(probabilities).any()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-12)


def test_one_row_is_enough() -> None:
    for classifier in (NaiveBayesClassifier(), TANClassifier(), MaxMarginBNClassifier()):
        fitted = classifier.fit([["a", 1.5]], ["yes"])
        with pytest.warns(DataWarning, match="never seen"):
            assert fitted.predict([["b", 2.5]]).tolist() == ["yes"]
        assert fitted.predict_proba([["a", 1.5]]).tolist() == [[1.0]]


@pytest.mark.slow
@pytest.mark.parametrize("binary", [False, True], ids=["SM", "SBM"])
def test_a_million_rows(binary: bool) -> None:
    codes = table(30, 1_000_000, FOUR)
    rows, counts = np.unique(codes, axis=0, return_counts=True)
    case = Extreme(rows, counts.astype(np.float64), FOUR, gamma=2.0)
    check(case, binary, "branch_bound")
    whole = Extreme(codes, np.ones(len(codes)), FOUR, gamma=2.0)
    merged = solve_structure(case.problem(binary))
    result = solve_structure(whole.problem(binary))
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(merged.objective, rel=1.1e-6)
    fitted = MaxMarginBNClassifier(gamma=2.0, margin="binary" if binary else "multiclass")
    fitted.fit(codes[:, 1:], codes[:, 0])
    assert fitted.status_ == "optimal"
    assert fitted.objective_ == pytest.approx(merged.objective, rel=1.1e-6)
