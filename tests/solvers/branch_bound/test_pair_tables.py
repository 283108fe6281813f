"""Codes and tables say the same as coefficients."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from marginbn.problem.candidates import enumerate_candidates
from marginbn.problem.encoded import EncodedData, Variable
from marginbn.problem.problem import StructureProblem, margin_problem
from marginbn.problem.scores import candidate_score, log_likelihood
from marginbn.solvers.branch_bound import pair_tables as tables
from marginbn.solvers.branch_bound.arrays import encode
from marginbn.solvers.branch_bound.kernels.duals import objective_of_vertex
from marginbn.solvers.result import Status
from marginbn.solvers.run import Stopped

CASES = [
    (margin, classes, parents)
    for margin, classes in (("multiclass", 2), ("multiclass", 4), ("binary", 2), ("binary", 3))
    for parents in (1, 2)
]


def problem_of(margin: str, n_classes: int, max_parents: int) -> StructureProblem:
    rng = np.random.default_rng(n_classes)
    arities = [n_classes, 2, 5, 3, 1]
    codes = np.stack([rng.integers(0, a, 150) for a in arities], axis=1)
    names = [Variable(str(i), tuple(map(str, range(a)))) for i, a in enumerate(arities)]
    data = EncodedData(codes, rng.uniform(0.5, 2.0, 150), tuple(names))
    candidates = enumerate_candidates(5, max_parents)
    return margin_problem(data, candidates, margin=margin, gamma=1.1)  # type: ignore[arg-type]


@pytest.mark.parametrize(("margin", "n_classes", "max_parents"), CASES)
def test_equal_to_the_dense_coefficients(margin: str, n_classes: int, max_parents: int) -> None:
    problem = problem_of(margin, n_classes, max_parents)
    dense, coded = encode(problem), encode(problem, threads=2)
    made, inst = coded.coded, coded.instance
    assert made is not None
    assert problem.margins is not None
    some = np.arange(0, problem.n_rows, 2)
    columns = np.empty((inst.linear.size, some.size))
    tables.fill_columns(inst, some, columns, 2)
    assert np.array_equal(columns, dense.instance.columns[:, some])
    weights = np.random.default_rng(1).random(some.size)
    assert np.allclose(tables.sum_rows(inst, some, weights, 2), columns @ weights, atol=1e-9)
    assert np.allclose(coded.magnitude, dense.magnitude, rtol=1e-12)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        selection = [rng.choice(problem.candidates.group(i)) for i in range(5)]
        vertex = dense.vertex(np.array(selection))
        value = objective_of_vertex(inst, vertex, np.empty(problem.n_rows))
        assert value == pytest.approx(problem.evaluate(selection), rel=1e-12)


def test_tables_hold_what_the_first_structures_need() -> None:
    problem = problem_of("multiclass", 4, 2)
    encoding = encode(problem, threads=1)
    made = encoding.coded
    assert made is not None
    assert problem.margins is not None
    dense = encode(problem).instance
    classes = problem.margins.data.codes[:, 0]
    by_sample = dense.columns.reshape(dense.linear.size, -1, 3)
    for c in range(4):
        sums = (by_sample[:, classes == c] * dense.weights[classes == c, None]).sum(axis=1)
        assert np.allclose(made.class_sums[3 * c : 3 * c + 3], sums.T, atol=1e-10)
    for v in np.flatnonzero(made.keys[:20, 3] >= 0):
        k = int(encoding.candidate_of[v])
        expected = candidate_score(problem.margins.data, problem.candidates, k, log_likelihood)
        assert made.likelihood[v] == pytest.approx(expected, rel=1e-12)


def test_margins_may_weigh_otherwise_than_counts() -> None:
    problem = problem_of("multiclass", 4, 2)
    heavier = replace(problem, weights=np.arange(1.0, problem.n_samples + 1))
    made, dense = encode(heavier, threads=1), encode(heavier)
    assert made.coded is not None
    assert np.allclose(made.magnitude, dense.magnitude, rtol=1e-12)
    assert np.allclose(
        made.coded.class_sums.sum(axis=0),
        dense.instance.columns @ np.repeat(heavier.sample_weights, 3),
    )


def test_counts_in_small_blocks_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problem_of("multiclass", 4, 2)
    whole = encode(problem, threads=1).coded
    monkeypatch.setattr(tables, "BLOCK_CELLS", 1)
    parts = encode(problem, threads=1)
    assert whole is not None
    assert parts.coded is not None
    assert np.array_equal(whole.tables, parts.coded.tables)


@pytest.mark.parametrize("threads", [0, 1, 2])
def test_the_clock_is_looked_at(threads: int) -> None:
    def expired() -> None:
        raise Stopped(Status.TIME_LIMIT)

    with pytest.raises(Stopped):
        encode(problem_of("multiclass", 2, 2), threads, expired)
