"""Answers of networks against enumerations of raw rows that use nothing of the package."""

from __future__ import annotations

import numpy as np
import pytest

import oracles
from marginbn.network.network import BayesianNetwork
from marginbn.problem.encoded import EncodedData, Variable
from marginbn.problem.structure import Structure


def random_graph(rng: np.random.Generator, n: int) -> oracles.Graph:
    """Arcs from earlier to later variables of a random order."""
    order = rng.permutation(n).tolist()
    place = {v: k for k, v in enumerate(order)}
    return tuple(
        tuple(p for p in range(n) if place[p] < place[v] and rng.random() < 0.5) for v in range(n)
    )


@pytest.mark.parametrize("seed", range(25))
def test_posteriors_are_those_of_the_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    arities = [int(r) for r in rng.integers(2, 4, n)]
    rows = np.column_stack([rng.integers(0, r, 30) for r in arities]).astype(np.int32)
    weights, smoothing = rng.uniform(0.5, 3.0, 30), float(rng.uniform(0.1, 2.0))
    variables = tuple(Variable(f"v{i}", tuple(map(str, range(r)))) for i, r in enumerate(arities))
    graph = random_graph(rng, n)
    data = EncodedData(rows, weights, variables)
    network = BayesianNetwork.fit(data, Structure(graph), smoothing)
    own = oracles.Parameters(rows.tolist(), weights.tolist(), arities, smoothing)
    for query in range(n):
        known = {
            v: int(rng.integers(arities[v])) for v in range(n) if v != query and rng.random() < 0.5
        }
        evidence = {f"v{v}": str(state) for v, state in known.items()}
        found = network.posterior_array(f"v{query}", evidence)
        assert found == pytest.approx(oracles.posterior(own, graph, query, known), abs=1e-12)


@pytest.mark.parametrize("seed", range(40))
def test_d_separation_is_that_of_all_paths(seed: int) -> None:
    """By the definition, path by path."""
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, 6)
    structure = Structure(graph)
    for _ in range(25):
        places = rng.integers(0, 4, 6)
        a, b, given = (set(np.flatnonzero(places == k).tolist()) for k in range(3))
        if a and b:
            assert structure.d_separated(a, b, given) == oracles.d_separated(graph, a, b, given)
