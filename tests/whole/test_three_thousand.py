"""A sample of ``three_thousand.py``: random networks, every cut and bound on and off."""

from __future__ import annotations

from itertools import permutations

import pytest

from marginbn.solvers import solve_structure
from order_cases import best_with_order, optimum, random_scores
from three_thousand import COUNT, PARTS, SCORES, faults, judge, make

SAMPLE = range(12)


CHUNK = 100


@pytest.mark.parametrize("seed", SAMPLE)
def test_a_sample_is_right(seed: int) -> None:
    assert judge(seed)["wrong"] == []


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, COUNT, CHUNK))
def test_three_thousand_networks_are_right(first: int) -> None:
    judged = [judge(seed) for seed in range(first, first + CHUNK)]
    assert [fault for record in judged for fault in record["wrong"]] == []


def test_the_sample_meets_every_part_score_and_size() -> None:
    assert len({seed % len(PARTS) for seed in SAMPLE}) == len(PARTS)
    assert {make(seed).n_variables for seed in SAMPLE} == {3, 4, 5, 6, 7}
    assert {seed % len(SCORES) for seed in SAMPLE} == set(range(len(SCORES)))


def test_the_recursion_equals_all_orders() -> None:
    problem = random_scores(1, 5)
    assert optimum(problem) == pytest.approx(
        max(best_with_order(problem, order) for order in permutations(range(5)))
    )


def test_faults_are_named() -> None:
    problem = make(0)
    result = solve_structure(problem)
    assert len(faults("it", result, result.objective + 1.0)) == 2
    assert faults("it", result, result.objective) == []
