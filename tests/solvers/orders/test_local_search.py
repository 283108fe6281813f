"""Search over orders: the optimum of small problems, and nothing depends on the clock."""

from __future__ import annotations

import numpy as np
import pytest

from marginbn import solve_structure
from marginbn.problem.structure import is_acyclic
from marginbn.solvers.orders.local_search import OrderSearch
from marginbn.solvers.orders.parent_lists import ParentLists
from order_cases import optimum, random_scores


@pytest.mark.parametrize("seed", range(8))
def test_small_problems_are_solved(seed: int) -> None:
    problem = random_scores(seed, 6)
    search = OrderSearch(ParentLists.of(problem.candidates, problem.linear), seed)
    chosen = search.search(200_000)
    problem.candidates.structure(chosen)  # checks that it is acyclic
    assert problem.evaluate(chosen) == pytest.approx(optimum(problem))


def test_equal_seeds_go_the_same_way_and_more_effort_is_never_worse() -> None:
    problem = random_scores(5, 12, 2)
    parents = ParentLists.of(problem.candidates, problem.linear)
    runs = []
    for _ in range(2):
        search = OrderSearch(parents, 3)
        runs.append([search.search(effort).tolist() for effort in (1, 1_000, 50_000)])
    assert runs[0] == runs[1]
    values = [problem.evaluate(chosen) for chosen in runs[0]]
    assert values == sorted(values)


def test_an_order_takes_the_best_sets_before_each_variable() -> None:
    problem = random_scores(2, 5)
    search = OrderSearch(ParentLists.of(problem.candidates, problem.linear), 0)
    order = np.array([3, 1, 4, 0, 2])
    chosen = search.selection(order)
    for place, i in enumerate(order):
        before = set(order[:place].tolist())
        group = problem.candidates.group(int(i))
        inside = [k for k in group if before.issuperset(problem.candidates.parents[k])]
        assert problem.linear[chosen[i]] == max(problem.linear[k] for k in inside)


def test_the_order_of_a_selection_gives_it_back_or_better() -> None:
    problem = random_scores(7, 6)
    search = OrderSearch(ParentLists.of(problem.candidates, problem.linear), 0)
    chosen = search.selection(np.array([5, 0, 3, 2, 1, 4]))
    parents = [problem.candidates.parents[k] for k in chosen]
    order = search.order_of(chosen)
    assert is_acyclic(parents)
    place = {int(v): p for p, v in enumerate(order)}
    assert all(place[j] < place[i] for i, own in enumerate(parents) for j in own)
    assert problem.evaluate(search.selection(order)) >= problem.evaluate(chosen)


def test_orders_that_join_are_climbed_from() -> None:
    problem = random_scores(9, 8, 2)
    parents = ParentLists.of(problem.candidates, problem.linear)
    good = OrderSearch(parents, 1).search(300_000)
    other = OrderSearch(parents, 2)
    other.join(other.order_of(good))
    assert problem.evaluate(other.search(1)) >= problem.evaluate(good)


def test_a_raised_flag_ends_the_search() -> None:
    problem = random_scores(4, 8, 2)
    parents = ParentLists.of(problem.candidates, problem.linear)
    stop = np.zeros(1, dtype=np.int64)
    search = OrderSearch(parents, 0, stop)
    first = search.search(1)
    stop[0] = 1
    assert search.search(2**62).tolist() == first.tolist()


ARCS = ([(0, i) for i in range(1, 6)], [(5, 4), (4, 3), (3, 2), (2, 1), (1, 0)], [(1, 0), (1, 4)])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("arcs", ARCS)
def test_required_arcs_never_leave_an_order_stuck(arcs: list[tuple[int, int]], seed: int) -> None:
    """Most random orders place a variable before a parent that it must have."""
    problem = random_scores(seed, 6, required=arcs)
    search = OrderSearch(ParentLists.of(problem.candidates, problem.linear), seed)
    problem.candidates.structure(search.search(0))  # checks that it is acyclic
    search.join(np.random.default_rng(seed).permutation(6))
    chosen = search.search(200_000)
    problem.candidates.structure(chosen)
    assert problem.evaluate(chosen) == pytest.approx(optimum(problem))


@pytest.mark.parametrize("solver", ["dp", "branch_cut"])
@pytest.mark.parametrize("arcs", ARCS)
def test_exact_solvers_keep_required_arcs(arcs: list[tuple[int, int]], solver: str) -> None:
    problem = random_scores(3, 6, required=arcs)
    result = solve_structure(problem, solver, gap_tolerance=1e-6)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(optimum(problem))
    assert all(p in result.structure.parents[c] for p, c in arcs)
