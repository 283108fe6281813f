"""Bounds by dual ascent lie above every structure, and a case by hand is exact."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest

from marginbn.problem.array_types import WordArray
from marginbn.problem.candidates import enumerate_candidates
from marginbn.problem.encoded import Variable
from marginbn.problem.masks import ParentSets, masks_of
from marginbn.problem.problem import StructureProblem
from marginbn.solvers.orders.ascent import Ascent, dual_ascent
from marginbn.solvers.orders.parent_lists import ParentLists
from order_cases import best_with_order, optimum, random_scores


def lists_of(problem: StructureProblem) -> ParentLists:
    return ParentLists.of(problem.candidates, problem.linear)


def test_lists_are_sorted_and_cost_what_they_lose() -> None:
    problem = random_scores(0, 5)
    parents = lists_of(problem)
    lists = parents.lists
    for i in range(5):
        cost = lists.cost[lists.offsets[i] : lists.offsets[i + 1]]
        assert cost[0] == 0
        assert (np.diff(cost) >= 0).all()
    scores = problem.linear[parents.index]
    assert np.allclose(parents.top[problem.candidates.child] - lists.cost, scores)
    for members, k in zip(ParentSets(lists.masks), parents.index, strict=True):
        assert members == problem.candidates.parents[k]


def test_two_variables_that_want_each_other_pay_the_smaller_loss() -> None:
    variables = (Variable("a", ()), Variable("b", ()))
    candidates = enumerate_candidates(2, 1, class_restricted=False)
    problem = StructureProblem(candidates, np.array([-5.0, -1.0, -9.0, -2.0]), variables)
    ascent = dual_ascent(lists_of(problem), passes=1)
    assert ParentSets(ascent.clusters) == [(0, 1)]
    assert ascent.multipliers.tolist() == [4.0]
    assert ascent.bound == pytest.approx(-7.0)
    assert ascent.bound >= -7.0


@pytest.mark.parametrize("seed", range(12))
def test_no_structure_is_above_the_bound(seed: int) -> None:
    problem = random_scores(seed, 5)
    best, parents = optimum(problem), lists_of(problem)
    one = dual_ascent(parents, passes=1, seed=seed)
    more = dual_ascent(parents, passes=6, rounds=20, seed=seed)
    assert best <= more.bound <= one.bound + 1e-9
    assert more.bound < parents.top.sum()
    assert (more.reduced > -1e-9).all()
    late = dual_ascent(parents, passes=6, rounds=20, seed=seed, is_late=lambda: True)
    assert late.bound == one.bound
    again = dual_ascent(parents, passes=6, rounds=20, seed=seed)
    assert again.bound == more.bound


def rest(ascent: Ascent, placed: WordArray) -> float:
    """What the variables outside ``placed`` cost at least when these come first."""
    outside = np.logical_not(np.any(ascent.clusters & placed, axis=1))
    return math.fsum(ascent.multipliers[outside]) - ascent.slack


@pytest.mark.parametrize("seed", range(4))
def test_rest_bounds_what_is_left_after_some_variables(seed: int) -> None:
    problem = random_scores(seed, 5)
    parents = lists_of(problem)
    ascent = dual_ascent(parents, passes=3, rounds=10)
    for order in permutations(range(5)):
        for first in range(6):
            top = sum(parents.top[v] for v in order[first:])
            least = rest(ascent, masks_of([order[:first]], 5))
            assert best_with_order(problem, order, first) <= top - least


def test_forbidden_candidates_raise_the_bound_or_end_the_search() -> None:
    problem = random_scores(3, 5)
    parents = lists_of(problem)
    free = parents.lists.masks[:, 0] == 0
    alone = dual_ascent(parents, passes=1, allowed=free)
    assert alone.bound == pytest.approx(problem.linear[problem.candidates.offsets[:-1]].sum())
    assert dual_ascent(parents, passes=1, allowed=~free).bound == -np.inf


def test_more_than_one_word_of_variables() -> None:
    n = 70
    candidates = enumerate_candidates(n, 1, class_restricted=False)
    rng = np.random.default_rng(1)
    scores = rng.normal(0.0, 1.0, candidates.n_candidates)
    problem = StructureProblem(candidates, scores, tuple(Variable(str(i), ()) for i in range(n)))
    ascent = dual_ascent(lists_of(problem), passes=2)
    clusters = [set(cluster) for cluster in ParentSets(ascent.clusters)]
    assert any(max(cluster) >= 64 for cluster in clusters)
    values = scores.copy()
    for inside, y in zip(clusters, ascent.multipliers, strict=True):
        for k, parents in enumerate(candidates.parents):
            if candidates.child[k] in inside and inside.isdisjoint(parents):
                values[k] += y
    again = np.maximum.reduceat(values, candidates.offsets[:-1]).sum() - ascent.multipliers.sum()
    assert again == pytest.approx(ascent.bound)
