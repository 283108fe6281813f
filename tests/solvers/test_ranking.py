"""The n best structures against a sorted list of everything."""

import itertools

import numpy as np
import pytest

from marginbn import InputError, best_structures, enumerate_candidates, linear_problem
from marginbn import margin_problem as make_margin_problem
from marginbn.problem.problem import StructureProblem
from marginbn.problem.scores import get_local_score
from marginbn.problem.structure import is_acyclic
from strategies import random_data


def everything(problem: StructureProblem) -> list[float]:
    """Objective of every acyclic selection, best first, by plain enumeration."""
    candidates = problem.candidates
    groups = [candidates.group(i) for i in range(candidates.n_variables)]
    values = [
        problem.evaluate(selection)
        for selection in itertools.product(*groups)
        if is_acyclic([candidates.parents[k] for k in selection])
    ]
    return sorted(values, reverse=True)


def problems(seed: int) -> list[StructureProblem]:
    """A margin problem, a restricted and a general linear one on the same data."""
    data = random_data(seed)
    restricted = enumerate_candidates(4, 2)
    general = enumerate_candidates(4, 2, class_restricted=False)
    bic = get_local_score("bic")
    return [
        make_margin_problem(data, restricted, gamma=1.0),
        linear_problem(data, restricted, bic),
        linear_problem(data, general, bic),
    ]


@pytest.mark.parametrize("seed", range(4))
def test_the_n_best_are_the_n_best(seed: int) -> None:
    """Values equal the head of the sorted list, and every structure has the value it claims."""
    for problem in problems(seed):
        values = everything(problem)
        for n in (1, 7, 40):
            ranked = best_structures(problem, n_best=n)
            np.testing.assert_allclose([r.objective for r in ranked], values[:n], rtol=1e-9)
            assert len({r.structure for r in ranked}) == len(ranked)
            for r in ranked:
                assert problem.score(r.structure) == r.objective


@pytest.mark.parametrize("seed", range(4))
def test_everything_within_a_distance(seed: int) -> None:
    """Exactly the structures at most that far below the best are listed."""
    for problem in problems(seed):
        values = everything(problem)
        distance = (values[0] - values[min(20, len(values) - 1)]) * 1.0001 + 1e-6
        wanted = sum(value >= values[0] - distance for value in values)
        ranked = best_structures(problem, within=distance)
        assert len(ranked) == wanted
        assert len(best_structures(problem, within=distance, n_best=3)) == 3


def test_a_request_without_a_size_is_refused() -> None:
    """One of the two numbers must be given, and must make sense."""
    problem = problems(0)[1]
    with pytest.raises(InputError, match="n_best"):
        best_structures(problem)
    with pytest.raises(InputError, match="at least 1"):
        best_structures(problem, n_best=0)
    with pytest.raises(InputError, match="within"):
        best_structures(problem, within=-1.0)
