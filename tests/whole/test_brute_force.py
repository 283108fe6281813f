"""Brute force, the reference for all solvers, against a loop over all selections."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from brute_force import best_selection, brute_force
from marginbn.problem.candidates import CandidateSets
from marginbn.problem.encoded import Variable
from marginbn.problem.problem import StructureProblem
from marginbn.problem.structure import is_acyclic
from problems import small_linear_problem, small_margin_problem


def test_two_variables_by_hand() -> None:
    """Both arcs together would score best but close a cycle; the better single arc wins."""
    candidates = CandidateSets(2, np.array([0, 0, 1, 1], dtype=np.int32), ((), (1,), (), (0,)))
    variables = (Variable("c", ("a", "b")), Variable("x", ("a", "b")))
    problem = StructureProblem(candidates, np.array([0.0, 5.0, 0.0, 7.0]), variables)
    assert candidates.structure(best_selection(problem)).parents == ((), (0,))
    assert brute_force(problem) == 7.0


@pytest.mark.parametrize("seed", range(4))
def test_equals_a_loop_over_the_product(seed: int) -> None:
    """The incremental walk finds what evaluating every acyclic selection finds."""
    for problem in (
        small_margin_problem(seed, n_features=3, n_rows=15),
        small_linear_problem(seed, n_features=3),
    ):
        groups = [problem.candidates.group(i) for i in range(problem.n_variables)]
        best = max(
            problem.evaluate(np.array(chosen))
            for chosen in itertools.product(*groups)
            if is_acyclic([problem.candidates.parents[k] for k in chosen])
        )
        assert brute_force(problem) == pytest.approx(best, rel=1e-13)
