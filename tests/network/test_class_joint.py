"""Log joints per class: complete rows by lookup, missing features by exact summation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from marginbn.exceptions import InputError, ProblemTooLargeError
from marginbn.network import class_joint as classwise
from marginbn.network.network import BayesianNetwork
from marginbn.problem.encoded import Variable
from marginbn.problem.structure import Structure
from networks import brute_force_marginal, random_network, sprinkler


def slow_log_joint_per_class(network: BayesianNetwork, codes: np.ndarray) -> np.ndarray:
    """Row by row: add up the probabilities of all joint states that agree with the row."""
    rows = []
    for row in codes:
        observed = {v: int(c) for v, c in enumerate(row) if v > 0 and c >= 0}
        rows.append(brute_force_marginal(network, [0], observed))
    with np.errstate(divide="ignore"):
        return np.log(np.array(rows).reshape(len(codes), network.n_classes))


def random_rows(network: BayesianNetwork, n: int, missing: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, network.arities, (n, network.n_variables)).astype(np.int32)
    codes[rng.random(codes.shape) < missing] = -1
    codes[:, 0] = rng.integers(-1, network.n_classes, n)  # whatever stands here is ignored
    return codes


@pytest.mark.parametrize("missing", [0.0, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("seed", range(12))
def test_missing_features_are_summed_out_exactly(seed: int, missing: float) -> None:
    network = random_network(seed, n_variables=6, zeros=0.1)
    codes = random_rows(network, 25, missing, seed)
    np.testing.assert_allclose(
        np.exp(network.log_joint_per_class(codes)),
        np.exp(slow_log_joint_per_class(network, codes)),
        rtol=1e-11,
        atol=1e-300,
    )


@pytest.mark.parametrize(
    ("own", "pool", "cells"), [(1, 4096, 2**21), (99, 0, 2**21), (99, 2**20, 1)]
)
def test_batching_changes_no_answer(
    monkeypatch: pytest.MonkeyPatch, own: int, pool: int, cells: int
) -> None:
    """One batch per pattern, all patterns pooled, or single rows: the same numbers."""
    network = random_network(5, n_variables=8, max_arity=3)
    codes = random_rows(network, 60, 0.4, 0)
    expected = slow_log_joint_per_class(network, codes)
    monkeypatch.setattr(classwise, "_OWN_BATCH", own)
    monkeypatch.setattr(classwise, "_POOL_CELLS", pool)
    monkeypatch.setattr(classwise, "_BATCH_CELLS", cells)
    monkeypatch.setattr(classwise, "_CHUNK", 23)
    np.testing.assert_allclose(network.log_joint_per_class(codes), expected, rtol=1e-11)


def test_no_rows_give_no_answers() -> None:
    assert sprinkler().log_joint_per_class(np.empty((0, 3), dtype=int)).shape == (0, 2)


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        (np.array([[0, 2, 0]]), "variable 1 must lie in 0..1, got 2"),
        (np.array([[0, 0, -2]]), "variable 2 must lie in 0..1, got -2"),
        (np.array([[0, 0]]), r"shape \(n, 3\), got \(1, 2\)"),
        (np.array([[0.0, 1.0, 0.0]]), "must be integers, got dtype float64"),
    ],
)
def test_unusable_codes_are_refused(codes: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        sprinkler().log_joint_per_class(codes)


def test_a_hopeless_elimination_is_refused() -> None:
    """Six hidden features of forty states, joined pairwise by observed children, are too many."""
    arity, n = 40, 6
    states = tuple(str(s) for s in range(arity))
    variables = (
        Variable("class", ("a", "b")),
        *(Variable(f"x{i}", states) for i in range(n)),
        *(Variable(f"y{i}{j}", ("0", "1")) for i in range(n) for j in range(i)),
    )
    parents = ((), *((0,) for _ in range(n)), *((j + 1, i + 1) for i in range(n) for j in range(i)))
    tables = tuple(
        np.full([variables[v].arity for v in (*p, i)], -math.log(variables[i].arity))
        for i, p in enumerate(parents)
    )
    network = BayesianNetwork(Structure(parents), variables, tables)
    codes = np.zeros((2, network.n_variables), dtype=np.int32)
    assert network.log_joint_per_class(codes).shape == (2, 2)
    codes[1, 1 : n + 1] = -1
    with pytest.raises(ProblemTooLargeError, match="limit"):
        network.log_joint_per_class(codes)
