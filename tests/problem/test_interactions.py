"""Best structures for residuals: every way to find them against all structures in a list."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import minimum_spanning_tree

from brute_force import brute_force
from marginbn.exceptions import InputError
from marginbn.problem import interactions
from marginbn.problem.candidates import enumerate_candidates
from marginbn.problem.encoded import EncodedData, Variable
from marginbn.problem.interactions import (
    FamilyGains,
    features_of,
    forest_of,
    gain_problem,
    residual_forest,
    residual_problem,
    two_tree,
)
from marginbn.problem.problem import drop_dominated
from marginbn.problem.residuals import pair_gains, residual_score
from marginbn.problem.structure import Structure, is_acyclic
from marginbn.solvers import solve_structure
from problems import residual_case, small_residual_problem


def best_by_listing(
    case: tuple[EncodedData, np.ndarray, np.ndarray],
    most: int,
    required: tuple[tuple[int, int], ...] = (),
    forbidden: tuple[tuple[int, int], ...] = (),
) -> float:
    """The best sum of gains over all acyclic choices of at most so many feature parents."""
    merged, score = residual_score(*case)
    features = range(1, merged.n_variables)
    sets = {
        i: [
            s
            for size in range(most + 1)
            for s in itertools.combinations([v for v in features if v != i], size)
            if all(p in s for p, c in required if c == i)
            and not any(p in s for p, c in forbidden if c == i)
        ]
        for i in features
    }

    def gain(*family: int) -> float:
        return score.gain_and_error(merged, sorted(family))[0] if len(family) > 1 else 0.0

    worth = {(i, s): gain(i, *s) - max(0.0, gain(*s)) for i in features for s in sets[i]}
    return max(
        sum(worth[i, s] for i, s in zip(features, choice, strict=True))
        for choice in itertools.product(*sets.values())
        if is_acyclic([(), *choice])
    )


@pytest.mark.parametrize("seed", range(6))
def test_forests_are_the_best_of_all(seed: int) -> None:
    """Listing, Edmonds, a maximum spanning tree of another package, and two solvers."""
    case = residual_case(seed, n_classes=2 + seed % 3)
    best = best_by_listing(case, 1)
    forest = residual_forest(*case)
    assert forest.gain == pytest.approx(best)
    assert forest.gain <= forest.bound <= forest.gain + 1e-9
    data = case[0]
    gains = pair_gains(data.codes[:, 1:], data.arities[1:], data.weights, *case[1:])
    tree = minimum_spanning_tree(csr_array(-np.triu(np.maximum(gains, 0.0))))
    assert forest.gain == pytest.approx(-tree.sum())
    problem = residual_problem(*case)
    for solver in ("branch_bound", "dp"):
        result = solve_structure(problem, solver)
        assert result.objective == pytest.approx(best)
        assert result.is_optimal
        assert all(0 in own for own in result.structure.parents[1:])


@pytest.mark.parametrize("seed", range(4))
def test_two_feature_parents_are_the_best_of_all(seed: int) -> None:
    """Listing against dynamic programming and branch and cut; a 2-tree is no better."""
    case = residual_case(10 + seed, n_features=3 + seed % 2, n_classes=2 + seed % 2)
    best = best_by_listing(case, 2)
    problem = residual_problem(*case, 3)
    for solver in ("dp", "branch_cut"):
        for asked in (problem, drop_dominated(problem)):
            result = solve_structure(asked, solver)
            assert result.objective == pytest.approx(best)
            assert result.is_optimal
    greedy = two_tree(*case)
    assert residual_forest(*case).gain - 1e-9 <= greedy.gain <= best + 1e-9
    assert greedy.gain == pytest.approx(problem.score(greedy.structure))


def test_every_parent_set_of_a_two_tree_is_married() -> None:
    """Two feature parents are joined by an arc."""
    found = 0
    for seed in range(8):
        case = residual_case(seed, n_features=6, n_rows=200)
        structure = two_tree(*case, ridge=0.01, price=0.0).structure
        for own in structure.parents:
            features = [p for p in own if p > 0]
            assert len(features) <= 2
            if len(features) == 2:
                a, b = features
                assert a in structure.parents[b] or b in structure.parents[a]
                found += 1
    assert found > 3


def test_arcs_that_are_asked_for() -> None:
    """Required and forbidden arcs between features, and to and from the class."""
    case = residual_case(2)
    required, forbidden = ((1, 2),), ((3, 4), (4, 3), (1, 4))
    options = {"required": required, "forbidden": forbidden}
    best = best_by_listing(case, 1, **options)
    forest = residual_forest(*case, **options)
    assert forest.gain == pytest.approx(best)
    assert solve_structure(residual_problem(*case, **options)).objective == pytest.approx(best)
    assert 1 in forest.structure.parents[2]
    assert {(3, 4), (4, 3), (1, 4)}.isdisjoint(forest.structure.arcs)
    assert {(3, 4), (4, 3), (1, 4)}.isdisjoint(two_tree(*case, **options).structure.arcs)
    alone = residual_forest(*case, forbidden=[(0, 3)]).structure
    assert alone.parents[3] == ()
    above = solve_structure(residual_problem(*case, required=[(3, 0)])).structure
    assert above.parents[0] == (3,)
    assert above.parents[3] == ()


def test_nothing_is_lost_by_a_class_without_parents() -> None:
    """All class-restricted structures, class parents included: the same optimum."""
    for seed in range(6):
        case = residual_case(seed, n_features=3, n_classes=2 + seed % 2)
        gains = FamilyGains(*residual_score(*case))
        for most in (2, 3):
            every = gain_problem(gains, enumerate_candidates(4, most))
            own = residual_problem(*case, most)
            assert brute_force(every) == pytest.approx(brute_force(own))


def test_families_need_the_class_and_two_features() -> None:
    """Others have no table beyond main effects; a table is worth what it adds."""
    assert features_of((2, 0, 1)) == (1, 2)
    assert features_of((2, 1)) == ()  # without the class
    gains = FamilyGains(*residual_score(*residual_case(0)))
    assert gains.local_score(2, (0,)) == gains.local_score(2, (1, 3)) == (0.0, 0.0)
    pair, triple = gains.with_error((1, 3))[0], gains.with_error((1, 2, 3))[0]
    assert gains.local_score(3, (0, 1))[0] == gains.local_score(0, (1, 3))[0] == pair
    assert gains.local_score(2, (0, 1, 3))[0] == pytest.approx(triple - max(0.0, pair))


def test_a_two_tree_finds_three_features_of_which_no_two_gain() -> None:
    """The parity of three bits: two of them are married although their table gains nothing."""
    bits = np.array(list(itertools.product((0, 1), repeat=4)) * 20)
    codes = np.column_stack([bits[:, :3].sum(axis=1) % 2, bits])
    variables = tuple(Variable(name, ("0", "1")) for name in "cxyzn")
    data = EncodedData(codes, np.ones(len(codes)), variables)
    p = np.full((len(codes), 2), 0.5)
    found = two_tree(data, np.eye(2)[codes[:, 0]] - p, p * (1 - p))
    assert sorted(len(own) for own in found.structure.parents) == [0, 1, 1, 2, 3]
    assert found.structure.parents[4] == (0,)
    assert residual_forest(data, np.eye(2)[codes[:, 0]] - p, p * (1 - p)).gain == 0.0


def test_few_triples_or_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """With many features only triples around the forest are looked at: no better, and a 2-tree."""
    case = residual_case(3, n_features=6, n_rows=300)
    every = two_tree(*case, price=0.1)
    monkeypatch.setattr(interactions, "MOST_TRIPLES", 0)
    some = two_tree(*case, price=0.1)
    assert residual_forest(*case, price=0.1).gain <= some.gain <= every.gain + 1e-9


def test_a_strong_pair_is_counted_once() -> None:
    """With two feature parents allowed, a third feature of pure noise gains nothing by the pair."""
    rng = np.random.default_rng(0)
    codes = np.column_stack([np.zeros(2000, int), rng.integers(0, 2, (2000, 5))])
    codes[:, 0] = codes[:, 1] ^ codes[:, 2]
    variables = tuple(Variable(name, ("0", "1")) for name in "cabdef")
    data = EncodedData(codes, np.ones(2000), variables)
    p = np.full((2000, 2), 0.5)
    case = data, np.eye(2)[codes[:, 0]] - p, p * (1 - p)
    best = solve_structure(residual_problem(*case, 3))
    assert best.objective == pytest.approx(residual_forest(*case).gain, rel=0.01)
    assert two_tree(*case).gain == pytest.approx(best.objective, rel=0.01)


def test_no_arcs_where_nothing_gains() -> None:
    """Zero is the best score, and its gap is zero beside the residuals."""
    rng = np.random.default_rng(0)
    data, _, _ = residual_case(0, n_rows=300, n_classes=2)
    codes = np.column_stack([rng.integers(0, 2, 300), data.codes[:, 1:]])
    noise = EncodedData(codes, np.ones(300), data.variables)
    p = np.full((300, 2), 0.5)
    problem = residual_problem(noise, np.eye(2)[codes[:, 0]] - p, p * (1 - p), price=5.0)
    result = solve_structure(problem)
    assert result.objective == 0.0
    assert result.gap < 1e-9
    assert result.is_optimal
    assert result.structure == Structure(((), (0,), (0,), (0,), (0,)))
    assert problem.scale == pytest.approx(0.01 * 150)


def test_constant_features_stay_out() -> None:
    """One state says nothing: no parents, nobody's parent."""
    data, residuals, curvatures = residual_case(4)
    codes = np.column_stack([data.codes, np.zeros(data.n_samples, int)])
    more = EncodedData(codes, data.weights, (*data.variables, Variable("one", ("x",))))
    forest = residual_forest(more, residuals, curvatures)
    assert forest.structure.parents[5] == ()
    assert forest.gain == pytest.approx(residual_forest(data, residuals, curvatures).gain)


def test_wrong_arguments_are_named() -> None:
    """With the remedy."""
    case = residual_case(0)
    with pytest.raises(InputError, match="max_parents must be at least 1"):
        residual_problem(*case, 0)
    with pytest.raises(InputError, match="two_tree starts from a forest"):
        two_tree(*case, required=[(1, 3), (2, 3)])
    with pytest.raises(InputError, match="a forest needs max_parents=2"):
        forest_of(small_residual_problem(max_parents=3))
