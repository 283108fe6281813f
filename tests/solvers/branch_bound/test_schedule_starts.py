"""Naive Bayes and TAN as starts of the local search."""

from __future__ import annotations

import numpy as np
import pytest

from branch_bound_cases import random_encoded, random_linear_problem
from marginbn import StructureProblem, enumerate_candidates, margin_problem
from marginbn.classifiers.naive_bayes import augmented_tree
from marginbn.problem.encoded import EncodedData
from marginbn.problem.scores import get_local_score
from marginbn.scoring.local_scores import linear_problem
from marginbn.solvers.branch_bound.arrays import Encoding, encode
from marginbn.solvers.branch_bound.kernels.box import propagate
from marginbn.solvers.branch_bound.kernels.oracle import maximise
from marginbn.solvers.branch_bound.kernels.records import Box, new_box, new_oracle
from marginbn.solvers.branch_bound.schedule import simple_starts

GO, STOP = np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64)


def root_of(problem: StructureProblem) -> tuple[Encoding, Box]:
    encoding = encode(problem)
    box = new_box(encoding.n_features, encoding.instance.first.size)
    box.allowed[:], box.classes[:] = encoding.slots, True
    assert propagate(encoding.instance, box)
    return encoding, box


def starts_of(problem: StructureProblem, stop: np.ndarray = GO) -> list[np.ndarray]:
    encoding, box = root_of(problem)
    oracle = new_oracle(encoding.n_features, encoding.instance.first.size)

    def best(box: Box, g: np.ndarray) -> tuple[float, np.ndarray]:
        value, _ = maximise(encoding.instance, box, g, oracle)
        return value, oracle.vertex.copy()

    found = simple_starts(problem, encoding, box, best, stop)
    return [encoding.selection(vertex) for vertex in found]


def encoded(seed: int) -> EncodedData:
    return random_encoded(np.random.default_rng(seed), 5)


@pytest.mark.parametrize("seed", range(20))
def test_naive_bayes_and_tan(seed: int) -> None:
    """TAN has the likelihood of the classifier's tree, which is computed in another way."""
    data = encoded(seed)
    candidates = enumerate_candidates(data.n_variables, 2)
    naive, tan = starts_of(margin_problem(data, candidates))
    assert [candidates.parents[k] for k in naive] == [(), *[(0,)] * 5]
    likelihood = linear_problem(data, candidates, get_local_score("loglik")).linear
    structure = augmented_tree(data)
    known = {
        (int(child), tuple(parents)): float(value)
        for child, parents, value in zip(
            candidates.child, candidates.parents, likelihood, strict=True
        )
    }
    tree = sum(known[i, p] for i, p in enumerate(structure.parents))
    assert likelihood[tan].sum() == pytest.approx(tree)


def test_one_parent_allows_naive_bayes_only() -> None:
    """Both starts are then the same."""
    data = encoded(1)
    naive, tan = starts_of(margin_problem(data, enumerate_candidates(data.n_variables, 1)))
    assert naive.tolist() == tan.tolist()


def test_a_raised_flag_costs_the_tree() -> None:
    """Counting for it may take long."""
    data = encoded(2)
    problem = margin_problem(data, enumerate_candidates(data.n_variables, 2))
    assert len(starts_of(problem, STOP)) == 1


def test_scores_without_data_give_no_tree() -> None:
    """There is nothing to count."""
    for seed in range(10):
        assert len(starts_of(random_linear_problem(np.random.default_rng(seed), 4))) <= 1


def test_a_class_that_needs_parents_has_neither() -> None:
    """Where () is no candidate of the class."""
    data = encoded(3)
    candidates = enumerate_candidates(data.n_variables, 2, required=[(1, 0)])
    assert starts_of(margin_problem(data, candidates)) == []
