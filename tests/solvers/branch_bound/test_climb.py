"""The local search; its kernels run as plain Python here, which compiles nothing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from branch_bound_cases import columns_of, random_encoded, random_problem
from marginbn.problem.array_types import IntArray
from marginbn.problem.candidates import enumerate_candidates
from marginbn.problem.problem import margin_problem
from marginbn.solvers.branch_bound.arrays import Encoding, encode
from marginbn.solvers.branch_bound.kernels import climb
from marginbn.solvers.branch_bound.kernels.box import is_member, propagate
from marginbn.solvers.branch_bound.kernels.oracle import maximise
from marginbn.solvers.branch_bound.kernels.records import (
    Box,
    Instance,
    column_of,
    count_rows,
    is_below,
    new_box,
    new_oracle,
)
from marginbn.solvers.branch_bound.rows import with_all_rows
from marginbn.solvers.interpreted import interpreting

NO_STOP = np.zeros(1, dtype=np.int64)
SEEDS = range(8)


@pytest.fixture(autouse=True)
def in_python() -> Iterator[None]:
    with interpreting():
        yield


def case(seed: int) -> tuple[Encoding, Instance, Box, IntArray]:
    """A problem, its instance, the root and a random structure."""
    rng = np.random.default_rng(seed)
    encoding = encode(random_problem(rng, 5))
    inst = with_all_rows(encoding.instance)
    box = new_box(inst.n_features, inst.first.size)
    box.allowed[:] = encoding.slots
    box.classes[:] = True
    propagate(inst, box)
    oracle = new_oracle(inst.n_features, inst.first.size)
    maximise(inst, box, rng.normal(size=inst.linear.size), oracle)
    return encoding, inst, box, oracle.vertex.copy()


def objective(inst: Instance, vertex: IntArray) -> float:
    """From the definition."""
    columns = columns_of(inst, vertex)
    margins = inst.columns[columns].sum(axis=0)
    lowest = np.minimum(np.minimum.reduceat(margins, inst.starts[:-1]), inst.gamma)
    return float(inst.linear[columns].sum() + inst.weights @ lowest)


def edges(vertex: IntArray) -> set[frozenset[int]]:
    """Pairs of features that are joined."""
    n = vertex.size - 1
    return {frozenset((i, int(vertex[i]))) for i in range(n) if vertex[i] < n}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_climb_ends_where_no_slot_is_better(seed: int) -> None:
    """Its value is that of the definition, and its supergradient belongs to the structure."""
    _, inst, box, start = case(seed)
    climber = climb.new_climber(inst, inst.weights.size, seed)
    climber.vertex[:] = start
    climb._forget_gradient(inst, climber)
    climb._climb(inst, box, climber, NO_STOP)
    vertex, value = climber.vertex.copy(), float(climber.state.value)
    assert value == pytest.approx(objective(inst, vertex), rel=1e-9)
    u = np.zeros(count_rows(inst))
    used = climber.lowest >= 0
    u[climber.lowest[used]] = inst.weights[used]
    small = 1e-9 * max(1.0, float(inst.weights.sum()))
    np.testing.assert_allclose(climber.g, inst.linear + inst.columns @ u, rtol=1e-9, atol=small)
    n = inst.n_features
    for i in range(n):
        for s in np.flatnonzero(box.allowed[i]):
            is_free = not is_member(inst, i, vertex[n]) and not (s < n and is_below(vertex, s, i))
            if is_free:
                other = vertex.copy()
                other[i] = s
                assert objective(inst, other) <= value + 1e-6 * max(1.0, abs(value))


@pytest.mark.parametrize("seed", SEEDS)
def test_an_evaluation_that_ends_early_is_right(seed: int) -> None:
    """A gain above what is needed is exact; below it nothing above it is returned."""
    _, inst, box, start = case(seed)
    n, climber = inst.n_features, climb.new_climber(inst, inst.weights.size, seed)
    climber.vertex[:] = start
    climb._forget_gradient(inst, climber)
    climb._arrive(inst, climber)
    here = objective(inst, start)
    scale = max(1.0, abs(here), inst.gamma * float(inst.weights.sum()))
    for i in range(n):
        climb._leave(inst, climber)
        linear = climb._exchange(inst, climber, column_of(inst, i, start[i]), -1.0)
        for s in np.flatnonzero(box.allowed[i]):
            other = start.copy()
            other[i] = s
            true = objective(inst, other) - here
            for need in (-np.inf, true - 0.1 * scale, true + 0.1 * scale):
                gain = climb._gain_with(inst, climber, column_of(inst, i, s), linear, need)
                if true > need:
                    assert gain == pytest.approx(true, abs=1e-8 * scale)
                else:
                    assert gain <= need


@pytest.mark.parametrize("seed", SEEDS)
def test_a_tree_hangs_on_another_feature(seed: int) -> None:
    """The same edges, the feature without parents, no cycle; or nothing where that is forbidden."""
    _, inst, box, start = case(seed)
    n = inst.n_features
    for i in range(n):
        vertex = start.copy()
        climb._hang_on(inst, box, vertex, i)
        if (vertex == start).all():
            continue
        assert vertex[i] == n + 1
        assert edges(vertex) == edges(start)
        assert all(box.allowed[j, vertex[j]] for j in range(n))
        assert all(vertex[j] == n + 1 for j in range(n) if is_member(inst, j, vertex[n]))
        for j in range(n):
            if vertex[j] < n:
                assert not is_below(vertex, int(vertex[j]), j)


def test_a_chain_is_turned_round() -> None:
    """By hand: 0 <- 1 <- 2 <- 3 becomes 0 -> 1 -> 2 -> 3, and feature 4 stays."""
    data = random_encoded(np.random.default_rng(0), 5)
    encoding = encode(margin_problem(data, enumerate_candidates(6, 2)))
    inst, box = encoding.instance, new_box(5, encoding.instance.first.size)
    box.allowed[:] = True
    alone = int(np.flatnonzero(inst.first < 0)[0])
    vertex = np.array([1, 2, 3, 5, 5, alone])
    climb._hang_on(inst, box, vertex, 0)
    assert vertex.tolist() == [6, 0, 1, 2, 5, alone]
