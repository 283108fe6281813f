"""Arrays of problems in which some features are joined to nothing: those have no columns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from branch_bound_cases import random_encoded
from brute_force import brute_force
from certificates import certified, verify_certificate
from marginbn.problem.candidates import enumerate_candidates
from marginbn.problem.encoded import EncodedData, Variable
from marginbn.problem.problem import StructureProblem, margin_problem
from marginbn.problem.scores import get_local_score
from marginbn.scoring.local_scores import linear_problem
from marginbn.solvers import solve_structure
from marginbn.solvers.branch_bound.arrays import encode


def with_constants(seed: int) -> EncodedData:
    """Three features of several states among two of one state."""
    rng = np.random.default_rng(seed)
    data = random_encoded(rng, 3)
    places = np.sort(rng.integers(1, data.n_variables + 1, 2))
    codes = np.insert(data.codes, places, 0, axis=1)
    variables = list(data.variables)
    for k, place in enumerate(places):
        variables.insert(int(place) + k, Variable(f"constant{k}", ("0",)))
    return EncodedData(np.ascontiguousarray(codes), data.weights, tuple(variables))


def margins_of(seed: int) -> StructureProblem:
    """A margin over them."""
    data = with_constants(seed)
    candidates = enumerate_candidates(data.n_variables, 1 + seed % 2, constant=data.constant)
    return margin_problem(data, candidates, gamma=1.0)


@pytest.mark.parametrize("seed", range(8))
def test_the_answer_is_that_of_enumeration(seed: int) -> None:
    """Scores of the features that are left out count too."""
    rng = np.random.default_rng(seed)
    problem = margins_of(seed)
    problem = replace(problem, linear=rng.normal(size=problem.linear.size))
    encoding = encode(problem)
    assert encoding.n_features == 3
    result = solve_structure(problem, "branch_bound")
    best = brute_force(problem)
    assert result.objective == pytest.approx(best, rel=1e-6, abs=1e-6)
    assert result.bound >= best - 1e-9 * max(1.0, abs(best))
    selection = problem.candidates.selection(result.structure)
    assert encoding.selection(encoding.vertex(selection)).tolist() == selection.tolist()


@pytest.mark.parametrize("seed", range(4))
def test_certificates_name_the_features_of_the_table(seed: int, tmp_path: Path) -> None:
    """With margins, and with a decomposable score."""
    margins = margins_of(seed)
    certificate = certified(margins, tmp_path, solver="branch_bound")
    assert verify_certificate(certificate)
    data = with_constants(seed)
    problem = linear_problem(data, margins.candidates, get_local_score("bic"))
    assert verify_certificate(certified(problem, tmp_path, solver="branch_bound"))


def test_a_problem_without_any_arc() -> None:
    """One feature stays."""
    data = with_constants(0)
    problem = margin_problem(data, enumerate_candidates(data.n_variables, 0), gamma=1.0)
    result = solve_structure(problem, "branch_bound")
    assert result.objective == pytest.approx(problem.evaluate(np.arange(data.n_variables)))
