"""The first structure and the first bounds."""

from __future__ import annotations

import numpy as np
import pytest

from brute_force import brute_force
from marginbn.exceptions import InputError
from marginbn.problem.candidates import enumerate_candidates
from marginbn.solvers.tree_search import feasible_selection, initial_bound, initial_selection
from problems import small_linear_problem, small_margin_problem


def test_smallest_parent_sets_by_hand() -> None:
    """Without required arcs everything stays empty; required arcs are kept."""
    free = enumerate_candidates(3, 2)
    assert free.structure(feasible_selection(free)).arcs == ()
    bound = enumerate_candidates(4, 2, class_restricted=False, required=((3, 0), (2, 3)))
    assert bound.structure(feasible_selection(bound)).arcs == ((3, 0), (2, 3))


def test_candidates_that_allow_no_graph_are_told() -> None:
    """2 -> 1 brings the class along, which needs 1 itself: the variables wait for one another."""
    stuck = enumerate_candidates(3, 2, required=((1, 0), (2, 1)))
    with pytest.raises(InputError, match=r"variables \[0, 1\] wait for one another"):
        feasible_selection(stuck)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("required", [(), ((2, 0),), ((0, 1), (1, 2))])
def test_first_bounds_are_above_and_first_structures_below_the_optimum(seed, required) -> None:
    """Trivial bound >= optimum >= first structure, which is acyclic."""
    for problem in (
        small_margin_problem(seed, n_features=3, required=required),
        small_linear_problem(seed, n_features=3, required=required),
    ):
        best = brute_force(problem)
        first = initial_selection(problem)
        arcs = set(problem.candidates.structure(first).arcs)
        assert arcs.issuperset(required)
        assert problem.evaluate(first) <= best + 1e-9
        assert best <= initial_bound(problem) + 1e-9


def test_the_first_structure_is_at_least_as_good_as_naive_bayes() -> None:
    """Margin problems start from the class as only parent where that is better than nothing."""
    problem = small_margin_problem(1)
    naive = [problem.candidates.index(0, ())]
    naive += [problem.candidates.index(i, (0,)) for i in range(1, problem.n_variables)]
    assert problem.evaluate(initial_selection(problem)) >= problem.evaluate(np.array(naive))
