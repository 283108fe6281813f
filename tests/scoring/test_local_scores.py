"""The pruned search for parent sets keeps exactly what enumeration and comparison keep."""

from __future__ import annotations

import numpy as np
import pytest

import oracles
from marginbn import (
    EncodedData,
    InputError,
    Variable,
    enumerate_candidates,
    linear_problem,
    local_scores,
    solve_structure,
)
from marginbn.exceptions import ProblemTooLargeError
from marginbn.problem.masks import masks_of
from marginbn.problem.problem import StructureProblem, drop_dominated
from marginbn.problem.scores import SCORES as SCORES_BY_NAME
from marginbn.problem.scores import get_local_score
from marginbn.scoring import climbing, sums

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
    """The second opinion: all candidates, scored one by one by the plain formula, then compared."""
    rules = {"class_restricted": False, "constant": data.constant} | rules
    candidates = enumerate_candidates(data.n_variables, max_parents, **rules)  # type: ignore[arg-type]
    formula = get_local_score(score)
    return drop_dominated(linear_problem(data, candidates, lambda *table: formula(*table)))


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
    with pytest.raises(InputError, match="no candidate parent set left"):
        local_scores(data, "bic", 0, required=[(1, 2)])
    with pytest.raises(InputError, match="max_parents must be an integer"):
        local_scores(data, "bic", -1)


@pytest.mark.parametrize("score", ["bic", "bdeu"])
def test_more_variables_than_a_word_has_bits(score: str) -> None:
    few = random_data(4, n_variables=5)
    idle = np.zeros((few.n_samples, 70), dtype=np.int32)  # two states, of which one never occurs
    codes = np.hstack([few.codes[:, :2], idle, few.codes[:, 2:]])
    variables = (
        *few.variables[:2],
        *(Variable(f"idle{i}", ("0", "1")) for i in range(70)),
        *few.variables[2:],
    )
    place = [0, 1, 72, 73, 74]
    expected = {
        (place[child], tuple(place[p] for p in parents)): value
        for (child, parents), value in as_dict(enumerated(few, score, 2)).items()
    }
    found = as_dict(local_scores(EncodedData(codes, few.weights, variables), score, 2))
    own = {key: value for key, value in found.items() if key[0] in place}
    assert own.keys() == expected.keys()
    assert all(abs(own[key] - expected[key]) < 1e-9 for key in own)


def many_alike(seed: int) -> EncodedData:
    """400 rows of nine variables, most of them alike."""
    data = random_data(seed, n_variables=9)
    rows = np.random.default_rng(seed).integers(0, data.n_samples, 400)
    codes = data.codes[rows]
    codes[:, 0] = np.arange(400) % data.arities[0]
    return EncodedData(codes, np.ones(400), data.variables)


@pytest.mark.parametrize("weights", ["whole", "broken"])
def test_sums_over_sets(weights: str) -> None:
    data = many_alike(4)
    half = 1.0 if weights == "whole" else 0.5
    data = EncodedData(data.codes, np.full(400, half), data.variables)
    counted = sums.SetSums(data, "bic", 1.0)
    sets = [tuple(v for v in range(9) if k >> v & 1) for k in range(512)]
    numbers = counted.count(masks_of(sets, 9))
    own = counted.entropies(numbers)
    for members, value, cells in zip(sets, own, counted.cells(numbers), strict=True):
        columns = data.codes[:, list(members)]
        counts = (
            half * np.unique(columns, axis=0, return_counts=True)[1] if members else [400 * half]
        )
        assert value == pytest.approx(np.sum(counts * np.log(counts)), abs=1e-9)
        assert cells == len(counts)


@pytest.mark.parametrize("score", ["bic", "bdeu"])
def test_scores_of_rows_that_are_alike(score: str) -> None:
    data = many_alike(5)
    assert_equal(local_scores(data, score), enumerated(data, score, 8))


def limit_of(problem: StructureProblem) -> int:
    assert problem.candidates.rule is not None
    return problem.candidates.rule.max_parents


@pytest.mark.parametrize("score", ["bic", "bdeu"])
@pytest.mark.parametrize(("name", "value"), [("WORK", 50_000), ("BYTES", 12_000), ("KEPT", 40)])
def test_the_largest_limit_that_fits(
    name: str, value: int, score: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within the limit of the result, exactly the undominated sets; without one, all of them."""
    tables = [random_data(seed, n_variables=8) for seed in range(50, 56)]
    assert {limit_of(local_scores(data, score)) for data in tables} == {7}
    monkeypatch.setattr(climbing, f"MAX_{name}", value)
    limits = set()
    for data in tables:
        found = local_scores(data, score)
        limits.add(limit_of(found))
        assert found.candidates.max_parents <= limit_of(found)
        assert_equal(found, enumerated(data, score, limit_of(found)))
    assert 1 <= min(limits) < 7


def test_required_parents_are_never_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_data(50, n_variables=6)
    monkeypatch.setattr(climbing, "MAX_WORK", 0)
    required = [(1, 0), (2, 0), (3, 0)]
    found = local_scores(data, "bdeu", required=required)
    assert limit_of(found) == 3
    assert_equal(found, enumerated(data, "bdeu", 3, required=required))


def test_a_limit_of_the_users_own_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_data(50, n_variables=6)
    monkeypatch.setattr(climbing, "MAX_CANDIDATES", 20)
    with pytest.raises(ProblemTooLargeError, match="more than 20 sets of at most 3 parents"):
        local_scores(data, "bdeu", 3)


@pytest.mark.parametrize("score", [*SCORES, "loglik"])
@pytest.mark.parametrize("weighted", [False, True])
def test_exact_values_are_the_textbook_scores(score: str, weighted: bool) -> None:
    """Compiled scores against loops over raw codes that use nothing of the package."""
    data = random_data(31, 5, weighted)
    raw = data.codes.tolist(), data.weights.tolist(), data.arities.tolist()
    found = as_dict(local_scores(data, score, 3))
    assert len(found) > 5
    for (child, parents), value in found.items():
        table = oracles.local_terms(*raw, child, parents)
        assert value == pytest.approx(oracles.local_score(score, table, sum(raw[1])), rel=1e-10)


def test_threads_change_nothing() -> None:
    data = random_data(8, n_variables=6)
    assert_equal(local_scores(data, "bdeu", n_jobs=2), local_scores(data, "bdeu"))


def test_a_score_without_compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """A score of one's own in the registry: all its parent sets are enumerated."""
    monkeypatch.setitem(SCORES_BY_NAME, "own", SCORES_BY_NAME["aic"])
    data = random_data(2, n_variables=5)
    assert_equal(local_scores(data, "own", 2), local_scores(data, "aic", 2))
    with pytest.raises(InputError, match="max_parents must be given for score='own'"):
        local_scores(data, "own")


@pytest.mark.parametrize("score", ["bic", "aic", "bdeu", "k2"])
@pytest.mark.parametrize("class_restricted", [False, True])
def test_what_is_not_scored_in_time_counts_in_the_bound(class_restricted: bool, score: str) -> None:
    """Wherever the scores end: of sets of one free member some are there, and the bound holds for
    all."""
    data = random_data(5, n_variables=6)
    limit = 1 + class_restricted
    every = enumerated(data, score, limit, class_restricted=class_restricted)
    best, known = solve_structure(every).objective, as_dict(every)
    n_partial, looks = 0, 0
    while True:
        late = iter([False] * looks)
        found = local_scores(
            data,
            score,
            limit,
            class_restricted=class_restricted,
            is_late=lambda late=late: next(late, True),  # type: ignore[misc]
        )
        result = solve_structure(found)
        assert result.bound >= best - 1e-9 * abs(best)
        if not found.unscored:
            break
        own = as_dict(found)
        assert own == pytest.approx({key: known[key] for key in own})
        assert {child for child, _ in own} == set(range(6))
        assert result.status == "time_limit"
        assert found.unscored == pytest.approx(result.bound - result.objective, rel=1e-6)
        looks, n_partial = looks + 1, n_partial + 1
    assert n_partial > 3
    assert_equal(found, every)
