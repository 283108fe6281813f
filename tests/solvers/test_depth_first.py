"""Depth-first search over orders: right with every part of its memory, and a bound at any time."""

from __future__ import annotations

import math

import numpy as np
import pytest

from marginbn import solve_structure
from marginbn.problem.problem import StructureProblem
from marginbn.solvers import depth_first
from marginbn.solvers.depth_first import DepthFirstSolver, thresholds
from marginbn.solvers.depth_first.thresholds import Descent
from marginbn.solvers.memory import Memory
from marginbn.solvers.orders.ascent import dual_ascent
from marginbn.solvers.orders.kernels.descent import DONE, FOUND
from marginbn.solvers.orders.parent_lists import ParentLists
from marginbn.solvers.result import Status, TracePoint
from marginbn.solvers.run import Limits, Run
from marginbn.solvers.solve import choose_solver, solve_with
from order_cases import optimum, random_scores


def best_cost(parents: ParentLists, memory: float, upper: float) -> float:
    """Search for less and less until nothing is left; the cost of the last that was found."""
    descent = Descent(parents, dual_ascent(parents, passes=1), upper, memory, 0)
    descent.begin(upper)
    while (ending := descent.advance(10**6, 10**9)) != DONE:
        assert ending == FOUND
        order, upper, before = descent.order, 0.0, np.zeros(parents.n_words, np.uint64)
        lists = parents.lists
        for i in order:
            own = slice(lists.offsets[i], lists.offsets[i + 1])
            inside = ~(lists.masks[own] & ~before).any(axis=1)
            upper += float(lists.cost[own][inside].min())
            before[i // 64] |= np.uint64(1 << (int(i) % 64))
        descent.lower(upper)
    return upper


def listed(problem: StructureProblem) -> ParentLists:
    return ParentLists.of(problem.candidates, problem.linear)


@pytest.mark.parametrize("memory", [0.0, 1e9])
@pytest.mark.parametrize("seed", range(12))
def test_every_order_is_searched_with_and_without_room(seed: int, memory: float) -> None:
    """Without memory to spare every node below the first starts from the lists of the root."""
    problem = random_scores(seed, 4 + seed % 4)
    parents = listed(problem)
    found = best_cost(parents, memory, 2.0 * parents.size)
    assert math.fsum(parents.top) - found == pytest.approx(optimum(problem), rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_more_variables_than_a_word_has_bits(seed: int) -> None:
    """Copies of small problems side by side: the optimum is that of one, so many times."""
    small = random_scores(seed, 5)
    n, copies, gap = 5, 14, 1e-9
    parents = tuple(
        tuple(n * c + j for j in own)
        for c in range(copies)
        for i in range(n)
        for own in (small.candidates.parents[k] for k in small.candidates.group(i))
    )
    child = np.concatenate([small.candidates.child + n * c for c in range(copies)])
    names = tuple(small.variables[0] for _ in range(n * copies))
    large = StructureProblem(
        type(small.candidates)(n * copies, child, parents), np.tile(small.linear, copies), names
    )
    result = solve_with(DepthFirstSolver(heuristics=False), Run(large, Limits(gap=gap)))
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(copies * optimum(small), rel=1e-8)


def test_bounds_hold_at_any_time() -> None:
    """Deepening gives many bounds; none is below the optimum, and the last one meets it."""
    problem, points = random_scores(3, 14, 3), list[TracePoint]()
    best = solve_structure(problem, "dp").objective
    run = Run(problem, Limits(gap=1e-9), callback=points.append)
    result = solve_with(DepthFirstSolver(), run)
    assert len({point.bound for point in points}) > 3
    assert all(point.bound >= best - 1e-9 * abs(best) for point in points)
    assert result.objective == pytest.approx(best, rel=1e-9)


def test_a_node_limit_ends_the_search_with_a_bound_and_runs_are_the_same() -> None:
    problem = random_scores(3, 14, 3)
    results = [solve_structure(problem, "depth_first", node_limit=50) for _ in range(2)]
    assert results[0].status is Status.NODE_LIMIT
    assert results[0].nodes == 50
    assert [r.bound for r in results] == [results[0].bound] * 2
    assert results[0].bound > results[0].objective


def test_sets_that_do_not_fit_the_table_are_only_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of eight places: sets are met again and searched again."""
    problem = random_scores(3, 14, 3)
    expected = solve_structure(problem, "dp", gap_tolerance=1e-9)
    large = solve_structure(problem, "depth_first", gap_tolerance=1e-9)
    monkeypatch.setattr(thresholds, "MOST_PLACES", 8)
    small = solve_structure(problem, "depth_first", gap_tolerance=1e-9)
    assert small.nodes > large.nodes
    assert small.objective == pytest.approx(expected.objective, rel=1e-9)


def test_auto_takes_it_for_very_many_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Candidates that a subset outdoes do not count."""
    problem = random_scores(0, 40, 1)
    kept = int(problem.undominated.sum())
    assert kept < problem.candidates.n_candidates
    assert choose_solver(problem).name == "branch_cut"
    monkeypatch.setattr(depth_first, "MANY_CANDIDATES", kept)
    assert choose_solver(problem).name == "depth_first"
    monkeypatch.setattr(depth_first, "MANY_CANDIDATES", kept + 1)
    assert choose_solver(problem).name == "branch_cut"


def test_auto_takes_it_where_nothing_else_fits() -> None:
    problem = random_scores(0, 40, 1)
    least = DepthFirstSolver().needs(problem).least
    assert choose_solver(problem, memory=Memory.probe(least)).name == "depth_first"
    assert solve_structure(problem, memory_limit=least, node_limit=20).solver == "depth_first"
