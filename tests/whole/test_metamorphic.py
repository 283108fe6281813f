"""The optimum changes as theory says when the data change in known ways.

Let OPT(data, a, gamma) be the largest objective, theta = (n + a) / (n' + a |X|) the parameters with
counts n, n' that are sums of weights, and a the smoothing.

- *Permuting* features, classes or rows and *relabelling* states renames the structures and changes
  no count: OPT stays. (A permutation of the classes permutes rivals, whose minimum is taken.)
- *Doubling the weights and the smoothing* doubles numerator and denominator of every theta, so
  margins stay, and every sample counts twice: OPT doubles. Any positive factor does the same, and
  for the decomposable scores too where their formula allows it (log likelihood).
- *Doubling the weights alone* is the table written twice: OPT is that of the doubled table.
- *Splitting weights* (one row of weight w into rows of weights that sum to w) changes neither
  counts nor the sum over samples: OPT stays.
- *A constant feature* has one state and theta = (n + a) / (n + a) = 1 whatever its parents are, so
  its own margin terms are 0; as a parent it splits no count. Every structure with it has the
  objective of one without it, except that a parent set may waste a place on it: OPT stays.
- *A copy of a feature* only adds structures (leaving the copy without parents keeps its margin
  terms at 0): OPT does not fall. With one parent per variable the copy of a feature of no parents
  adds nothing, and hanging it on the class adds its terms once more.
- *More parents*: OPT does not fall. *Gamma to gamma + d*: OPT does not fall and rises by at most d
  times the total weight, since min(gamma, x) does so for every sample of every structure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest

from marginbn.problem.candidates import enumerate_candidates
from marginbn.problem.encoded import EncodedData
from marginbn.problem.problem import margin_problem
from marginbn.problem.scores import get_local_score
from marginbn.scoring.local_scores import linear_problem
from marginbn.solvers import solve_structure
from marginbn.solvers.result import SolveResult, Status
from problems import random_table
from strategies import make_variables

DEFAULT_SEEDS = 6
SLOW_SEEDS = 150


@dataclass(frozen=True)
class Setting:
    """Data and everything else an optimum depends on."""

    data: EncodedData
    gamma: float
    smoothing: float
    max_parents: int
    margin: str

    def solve(self) -> SolveResult:
        """Proved by the default solver."""
        result = solve_structure(
            margin_problem(
                self.data,
                enumerate_candidates(self.data.n_variables, self.max_parents),
                margin=self.margin,  # type: ignore[arg-type]
                gamma=self.gamma,
                smoothing=self.smoothing,
            )
        )
        assert result.status is Status.OPTIMAL
        return result


def encode(codes: np.ndarray, weights: np.ndarray, arities: list[int]) -> EncodedData:
    """Data with plain names."""
    return EncodedData(
        np.ascontiguousarray(codes, dtype=np.int32), weights, make_variables(arities)
    )


def arities_of(data: EncodedData) -> list[int]:
    return [variable.arity for variable in data.variables]


def random_setting(seed: int, n_features: int) -> Setting:
    """A table with some structure in it."""
    rng = np.random.default_rng([seed, n_features])
    n_classes, n_rows = int(rng.integers(2, 5)), int(rng.integers(10, 80))
    table = random_table(rng, n_rows, n_features, n_classes, weighted=seed % 2 == 0)
    return Setting(
        table.encoded(),
        gamma=float(np.exp(rng.uniform(np.log(0.05), np.log(5)))),
        smoothing=float(rng.choice([0.5, 1.0, 2.0])),
        max_parents=2 if seed % 3 else 1,
        margin="binary" if rng.random() < 0.5 else "multiclass",
    )


# --- changes and what they do to the optimum ------------------------------------------------------

Change = Callable[[Setting, np.random.Generator], Setting]


def permute_features(setting: Setting, rng: np.random.Generator) -> Setting:
    data = setting.data
    order = [0, *(1 + rng.permutation(data.n_variables - 1))]
    arities = arities_of(data)
    return replace(
        setting, data=encode(data.codes[:, order], data.weights, [arities[i] for i in order])
    )


def permute_rows(setting: Setting, rng: np.random.Generator) -> Setting:
    data = setting.data
    order = rng.permutation(len(data.codes))
    return replace(setting, data=encode(data.codes[order], data.weights[order], arities_of(data)))


def relabel(setting: Setting, rng: np.random.Generator, variables: list[int]) -> Setting:
    data = setting.data
    codes, arities = data.codes.copy(), arities_of(data)
    for v in variables:
        codes[:, v] = rng.permutation(arities[v])[codes[:, v]]
    return replace(setting, data=encode(codes, data.weights, arities))


def permute_classes(setting: Setting, rng: np.random.Generator) -> Setting:
    return relabel(setting, rng, [0])


def relabel_states(setting: Setting, rng: np.random.Generator) -> Setting:
    return relabel(setting, rng, list(range(1, setting.data.n_variables)))


def split_weights(setting: Setting, rng: np.random.Generator) -> Setting:
    data = setting.data
    share = rng.choice([0.25, 0.5, 0.75], len(data.codes))
    codes = np.vstack([data.codes, data.codes])
    weights = np.concatenate([data.weights * share, data.weights * (1 - share)])
    return replace(setting, data=encode(codes, weights, arities_of(data)))


def add_constant(setting: Setting, rng: np.random.Generator) -> Setting:
    data = setting.data
    place = int(rng.integers(1, data.n_variables + 1))
    codes = np.insert(data.codes, place, 0, axis=1)
    arities = arities_of(data)
    return replace(
        setting, data=encode(codes, data.weights, [*arities[:place], 1, *arities[place:]])
    )


SAME: dict[str, Change] = {
    "permute features": permute_features,
    "permute classes": permute_classes,
    "permute rows": permute_rows,
    "relabel states": relabel_states,
    "split weights": split_weights,
    "add a constant feature": add_constant,
}


def close(found: float, expected: float) -> bool:
    """Equal up to the gap tolerance of two proofs."""
    return found == pytest.approx(expected, rel=2.1e-6, abs=1e-9)


def check_changes(seed: int, n_features: int) -> None:
    """All changes that leave the optimum as it is, and those that scale or raise it."""
    rng = np.random.default_rng(seed)
    setting = random_setting(seed, n_features)
    first = setting.solve()
    for name, change in SAME.items():
        changed = change(setting, rng).solve()
        assert close(changed.objective, first.objective), name
        slack = 1e-9 * max(1.0, abs(first.objective))
        assert changed.bound >= first.objective - slack, name
        assert first.bound >= changed.objective - slack, name
    check_scaling(setting, first)
    check_repetition(setting)
    check_growth(setting, first, rng)


def check_scaling(setting: Setting, first: SolveResult) -> None:
    """Weights and smoothing times a factor: the optimum times the factor."""
    for factor in (2.0, 0.125, 1e3, 1e-9):
        data = encode(setting.data.codes, factor * setting.data.weights, arities_of(setting.data))
        scaled = replace(setting, data=data, smoothing=factor * setting.smoothing)
        assert close(scaled.solve().objective / factor, first.objective)


def check_repetition(setting: Setting) -> None:
    """Weights twice as large are the table written twice."""
    data, arities = setting.data, arities_of(setting.data)
    heavy = replace(setting, data=encode(data.codes, 2 * data.weights, arities))
    codes = np.vstack([data.codes, data.codes])
    twice = replace(setting, data=encode(codes, np.tile(data.weights, 2), arities))
    assert close(twice.solve().objective, heavy.solve().objective)


def check_growth(setting: Setting, first: SolveResult, rng: np.random.Generator) -> None:
    """Copies, parents and gamma only ever help, and gamma by no more than the weights allow."""
    data = setting.data
    slack = 2.1e-6 * max(1.0, abs(first.objective))
    copied = int(rng.integers(1, data.n_variables))
    codes = np.column_stack([data.codes, data.codes[:, copied]])
    arities = arities_of(data)
    larger = replace(setting, data=encode(codes, data.weights, [*arities, arities[copied]]))
    assert larger.solve().bound >= first.objective - slack
    if setting.max_parents == 1:
        more = replace(setting, max_parents=2).solve()
        assert more.bound >= first.objective - slack
    double = replace(setting, gamma=2 * setting.gamma).solve()
    assert double.objective >= first.objective - slack
    assert double.objective <= first.bound + setting.gamma * data.weights.sum() + slack


CASES = [
    *(pytest.param(seed, 3 + seed % 2) for seed in range(DEFAULT_SEEDS)),
    *(
        pytest.param(seed, 3 + seed % 5, marks=pytest.mark.slow)
        for seed in range(DEFAULT_SEEDS, SLOW_SEEDS)
    ),
]


def test_a_copy_by_hand() -> None:
    """Two rows, one feature that equals the class: each copy adds log 2 to both margins.

    P(x = y | y) = 2/3 and P(x != y | y) = 1/3 with smoothing 1, so a feature below the class adds
    log 2 per row. With one parent per variable its copy does the same.
    """
    codes = np.array([[0, 0], [1, 1]])
    one = Setting(encode(codes, np.ones(2), [2, 2]), 50.0, 1.0, 1, "multiclass")
    two = replace(one, data=encode(codes[:, [0, 1, 1]], np.ones(2), [2, 2, 2]))
    assert one.solve().objective == pytest.approx(2 * np.log(2))
    assert two.solve().objective == pytest.approx(4 * np.log(2))


@pytest.mark.parametrize(("seed", "n_features"), CASES)
def test_margin_optima_change_as_theory_says(seed: int, n_features: int) -> None:
    check_changes(seed, n_features)


@pytest.mark.parametrize("score", ["loglik", "mdl", "aic", "bdeu", "k2"])
@pytest.mark.parametrize("seed", range(4))
def test_linear_optima_change_as_theory_says(score: str, seed: int) -> None:
    """The decomposable scores under the same changes; a constant feature adds nothing to any.

    A constant feature has the likelihood 1 and no free parameter, and as a parent it leaves every
    count table as it was, so all five scores stay. The log likelihood doubles with the weights.
    """
    rng = np.random.default_rng(seed)
    setting = random_setting(seed, 3)
    first = linear_optimum(setting.data, score)
    for name, change in SAME.items():
        assert close(linear_optimum(change(setting, rng).data, score), first), name
    if score == "loglik":
        data = encode(setting.data.codes, 2 * setting.data.weights, arities_of(setting.data))
        assert close(linear_optimum(data, score), 2 * first)


def linear_optimum(data: EncodedData, score: str) -> float:
    candidates = enumerate_candidates(data.n_variables, 2, class_restricted=False)
    return solve_structure(linear_problem(data, candidates, get_local_score(score))).objective
