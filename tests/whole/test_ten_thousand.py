"""Random small problems against exhaustive search: every solver right, every bound valid."""

from __future__ import annotations

import numpy as np
import pytest

import oracles
from exhaustive_search import Sample, best_objective, feature_choices, objectives
from ten_thousand import CHUNK, COUNT, faults, judge, make


def test_two_rows_by_hand() -> None:
    """One feature that tells the classes apart: with it log 2 per row, without it nothing.

    With a = 1 both classes have probability 1/2, P(x = y | y) = 2/3 and P(x != y | y) = 1/3, so the
    margin of both rows is log 2 if the feature hangs on the class, or the class on the feature.
    """
    sample = Sample(np.array([[0, 0], [1, 1]]), np.ones(2), (2, 2), 1.0, binary=False)
    assert best_objective(sample, 1, gamma=5.0) == pytest.approx(2 * np.log(2))
    assert best_objective(sample, 0, gamma=5.0) == 0.0
    assert best_objective(sample, 1, gamma=0.1) == pytest.approx(0.2)


@pytest.mark.parametrize("seed", range(1, 9))
def test_the_search_agrees_with_the_slow_one(seed: int) -> None:
    """All objectives, in any order, equal those of the definition graph by graph."""
    problem = make(seed)
    sample = problem.sample
    if len(sample.arities) > 4:
        pytest.skip("too many graphs for the slow one")
    score = (oracles.soft_binary_margin if sample.binary else oracles.soft_margin)(
        sample.codes.tolist(), sample.weights.tolist(), sample.arities, sample.smoothing,
        problem.gamma,
    )  # fmt: skip
    family = (problem.max_parents, problem.gamma, problem.class_arcs)
    graphs = oracles.all_graphs(len(sample.arities), problem.max_parents, True, problem.class_arcs)
    slow = sorted(score(graph) for graph in graphs)
    fast = np.sort(np.concatenate(list(objectives(sample, *family))))
    np.testing.assert_allclose(fast, slow, rtol=1e-11, atol=1e-11)


def test_forests_are_counted() -> None:
    """With two parents the features form rooted forests whose roots are of two kinds.

    A root's set is empty or the class alone; every other feature has the class and its parent. So
    these are the trees on n + 2 labelled nodes in which two nodes are joined: a root hangs on one
    or the other of them. There are 2 (n + 2)^(n - 1).
    """
    for n in (1, 2, 3, 4):
        assert len(feature_choices(n, 2)) == 2 * (n + 2) ** (n - 1)


def test_forests_of_features_that_all_have_the_class_are_counted() -> None:
    """Rooted forests on n labelled nodes: (n + 1)^(n - 1), by Cayley's formula."""
    for n in (1, 2, 3, 4):
        assert len(feature_choices(n, 2, "all")) == (n + 1) ** (n - 1)


def test_problems_cover_what_they_promise() -> None:
    """Features, classes, margins, weights, gammas and parents of the first 400 problems."""
    problems = [make(seed) for seed in range(400)]
    assert {len(p.sample.arities) - 1 for p in problems} == {2, 3, 4, 5}
    assert {p.sample.arities[0] for p in problems} == {2, 3, 4}
    assert {p.max_parents for p in problems} == {1, 2, 3}
    families = {(p.class_arcs, p.sample.binary, p.sample.arities[0]) for p in problems}
    assert len(families) == 2 * 2 * 3
    assert {p.sample.binary for p in problems} == {True, False}
    assert min(p.gamma for p in problems) < 0.006
    assert max(p.gamma for p in problems) > 6.5
    weighted = [len(set(p.sample.weights.tolist())) > 1 for p in problems]
    assert 0.4 < np.mean(weighted) < 0.6


def test_faults_are_seen() -> None:
    record = judge(1)
    assert record["wrong"] == []
    from marginbn.solvers import solve_structure

    result = solve_structure(make(1).build())
    size = max(1.0, abs(result.bound))
    assert faults("x", result, result.bound + 1e-6 * size)[0].startswith("x: bound")
    assert faults("x", result, result.objective - 1e-6 * size)[0].startswith("x: objective")
    assert len(faults("x", result, result.objective + 1e-3 * size)) == 2


@pytest.mark.parametrize("seed", range(1, 41))
def test_a_few_problems(seed: int) -> None:
    """Every way of solving gives the optimum and a bound not below it."""
    assert judge(seed)["wrong"] == []


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, COUNT, CHUNK))
def test_ten_thousand_problems(first: int) -> None:
    records = [judge(seed) for seed in range(first, first + CHUNK)]
    assert [fault for record in records for fault in record["wrong"]] == []
    assert max(record["overrun"] for record in records) <= 1.0
