"""What a solve knows about other gammas: true for every structure, and used."""

from __future__ import annotations

import numpy as np
import pytest

from branch_bound_cases import all_selections, best_by_enumeration, random_problem
from marginbn.exceptions import InputError
from marginbn.problem.candidates import enumerate_candidates
from marginbn.problem.problem import StructureProblem, margin_problem
from marginbn.solvers import solve_structure
from marginbn.solvers.result import Majorant, name_without_gamma
from marginbn.solvers.tree_search import initial_bound
from problems import random_table

GAMMAS = (0.01, 0.3, 1.0, 2.5, 9.0)


def majorant_of(problem: StructureProblem) -> Majorant:
    """The majorant that a solve leaves behind; at this gamma the root is never closed at once."""
    majorant = solve_structure(problem.with_gamma(2.5), "branch_bound").majorant
    assert majorant is not None
    return majorant


def random_margin_problem(seed: int) -> StructureProblem:
    """A small problem with margins, forbidden and required arcs."""
    return random_problem(np.random.default_rng(seed), 2 + seed % 3)


@pytest.mark.parametrize("seed", range(12))
def test_majorant_is_above_every_structure_at_every_gamma(seed):
    """gamma * unused + constant + gradient . eta is at least f(eta), whatever gamma."""
    problem = random_margin_problem(seed)
    known = majorant_of(problem)
    for gamma in GAMMAS:
        other = problem.with_gamma(gamma)
        for chosen in all_selections(problem.candidates):
            claim = gamma * known.unused + known.constant + known.gradient[list(chosen)].sum()
            assert claim >= other.evaluate(np.array(chosen)) - 1e-12


@pytest.mark.parametrize("seed", range(12, 30))
def test_a_path_of_gammas_finds_every_optimum(seed):
    """Each gamma from the result before it: the optimum of exhaustive search, proved."""
    problem, result = random_margin_problem(seed), None
    for gamma in GAMMAS if seed % 2 else reversed(GAMMAS):
        here = problem.with_gamma(gamma)
        result = solve_structure(here, "branch_bound", start=result)
        best = best_by_enumeration(here)
        assert result.is_optimal
        assert result.objective == pytest.approx(best, rel=2e-6, abs=1e-9)
        assert result.bound >= best - 1e-10 * max(1.0, abs(best))


def larger(gamma: float) -> StructureProblem:
    """Soft margin of a table with seven features."""
    data = random_table(np.random.default_rng(5), 120, 7, 3).encoded()
    return margin_problem(data, enumerate_candidates(data.n_variables, 2), gamma=gamma)


def test_the_first_bound_is_that_of_the_neighbour():
    """A solve beside a result is below the bound that needs no weights before its first iteration;
    one that has the structure alone only after some.
    """
    before = solve_structure(larger(2.0), "branch_bound")
    problem = larger(1.9)
    plain = initial_bound(problem)
    alone, beside = (
        solve_structure(
            problem, "branch_bound", start=start, callback=lambda point: point.bound < plain
        )
        for start in (before.structure, before)
    )
    assert beside.work < alone.work
    assert solve_structure(problem).objective <= beside.bound < plain


def test_a_result_of_another_problem_is_refused():
    """Other data, weights or candidates: the weights would prove nothing."""
    before = solve_structure(random_margin_problem(3), "branch_bound")
    with pytest.raises(InputError, match="same problem at another gamma"):
        solve_structure(larger(1.0), "branch_bound", start=before)


def test_the_name_does_not_depend_on_gamma():
    """Two gammas share the name, two data sets do not."""
    assert name_without_gamma(larger(1.0)) == name_without_gamma(larger(2.0))
    assert name_without_gamma(larger(1.0)) != name_without_gamma(random_margin_problem(0))


def test_other_solvers_use_the_structure_alone():
    """A result may start any solver."""
    before = solve_structure(larger(2.0), "branch_bound")
    result = solve_structure(larger(1.5), "highs", start=before)
    assert result.is_optimal
