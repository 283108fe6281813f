"""The pruned search for parent sets keeps exactly what enumeration and comparison keep."""

from __future__ import annotations

import numpy as np
import pytest

from marginbn import (
    EncodedData,
    InputError,
    ProblemTooLargeError,
    Variable,
    drop_dominated,
    enumerate_candidates,
    linear_problem,
    local_scores,
    solve_structure,
)
from marginbn.problem.problem import StructureProblem
from marginbn.problem.scores import get_local_score

SCORES = ("bic", "mdl", "aic", "bdeu", "k2")


def random_data(seed: int, n_variables: int, weighted: bool = False) -> EncodedData:
    """Rows with some dependence, so that parents pay."""
    rng = np.random.default_rng(seed)
    arities = rng.integers(1 if seed % 3 == 0 else 2, 4, n_variables)
    arities[0] = max(arities[0], 2)
    n_rows = int(rng.integers(5, 200))
    codes = np.zeros((n_rows, n_variables), dtype=np.int32)
    for v in range(n_variables):
        noise = rng.integers(0, arities[v], n_rows)
        copied = codes[:, rng.integers(0, v)] % arities[v] if v else noise
        codes[:, v] = np.where(rng.random(n_rows) < 0.7, copied, noise)
    weights = rng.choice([0.5, 1.25, 3.0], n_rows) if weighted else np.ones(n_rows)
    names = (Variable(f"x{v}", tuple(map(str, range(a)))) for v, a in enumerate(arities))
    return EncodedData(codes, weights, tuple(names))


def enumerated(
    data: EncodedData, score: str, max_parents: int, **rules: object
) -> StructureProblem:
    """The second opinion: all candidates, scored one by one, then compared."""
    rules = {"class_restricted": False, "constant": data.constant} | rules
    candidates = enumerate_candidates(data.n_variables, max_parents, **rules)  # type: ignore[arg-type]
    return drop_dominated(linear_problem(data, candidates, get_local_score(score)))


def as_dict(problem: StructureProblem) -> dict[tuple[int, tuple[int, ...]], float]:
    candidates = problem.candidates
    pairs = zip(candidates.child.tolist(), candidates.parents, strict=True)
    return dict(zip(pairs, problem.linear.tolist(), strict=True))


def assert_equal(found: StructureProblem, expected: StructureProblem) -> None:
    own, other = as_dict(found), as_dict(expected)
    assert own.keys() == other.keys()
    assert all(abs(own[key] - other[key]) <= 1e-9 * (1 + abs(other[key])) for key in own)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("seed", range(12))
def test_exactly_the_undominated_sets_are_kept(score: str, seed: int) -> None:
    data = random_data(seed, n_variables=6)
    limit = None if seed % 2 else 3
    assert_equal(local_scores(data, score, limit), enumerated(data, score, limit or 5))


@pytest.mark.parametrize("score", ["bic", "bdeu"])
@pytest.mark.parametrize("seed", range(20, 26))
def test_rows_with_weights(score: str, seed: int) -> None:
    data = random_data(seed, n_variables=5, weighted=True)
    assert_equal(local_scores(data, score, 4), enumerated(data, score, 4))


@pytest.mark.parametrize("score", ["bic", "bdeu"])
@pytest.mark.parametrize("seed", range(31, 37))
def test_class_restriction_and_arcs(score: str, seed: int) -> None:
    data = random_data(seed, n_variables=5)
    if data.arities.min() < 2:
        data = random_data(seed + 100, n_variables=5)
    rules = {"class_restricted": True, "forbidden": [(3, 2)], "required": []}
    found = local_scores(data, score, 3, **rules)  # type: ignore[arg-type]
    assert_equal(found, enumerated(data, score, 3, **rules))
    required = {"class_restricted": False, "required": [(1, 2)], "forbidden": [(2, 1)]}
    found = local_scores(data, score, 3, **required)  # type: ignore[arg-type]
    assert_equal(found, enumerated(data, score, 3, **required))


def test_the_optimum_is_that_of_all_sets() -> None:
    data = random_data(5, n_variables=6)
    candidates = enumerate_candidates(6, 5, class_restricted=False, constant=data.constant)
    everything = linear_problem(data, candidates, get_local_score("bic"))
    best = solve_structure(everything).objective
    assert solve_structure(local_scores(data, "bic")).objective == pytest.approx(best, abs=1e-9)


def test_what_cannot_be_done_is_said() -> None:
    data = random_data(1, n_variables=4)
    with pytest.raises(InputError, match="max_parents must be given for score='loglik'"):
        local_scores(data, "loglik")
    with pytest.raises(InputError, match="score must be one of"):
        local_scores(data, "bick", 2)
    with pytest.raises(InputError, match="required and forbidden at once"):
        local_scores(data, "bic", 2, required=[(1, 2)], forbidden=[(1, 2)])
    with pytest.raises(InputError, match="max_parents must be at least 1"):
        local_scores(data, "bic", 0, required=[(1, 2)])
    many = EncodedData(
        np.zeros((3, 65)), np.ones(3), tuple(Variable(f"v{i}", ("0", "1")) for i in range(65))
    )
    with pytest.raises(ProblemTooLargeError, match="at most 64 variables"):
        local_scores(many, "bic", 1)
