"""Answers of networks against enumerations of raw rows that use nothing of the package."""

from __future__ import annotations

from collections import Counter
from itertools import product

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


def random_pair(
    rng: np.random.Generator, n: int
) -> tuple[BayesianNetwork, oracles.Parameters, oracles.Graph]:
    """A network of random rows, and its parameters and graph without the package."""
    arities = [int(r) for r in rng.integers(2, 4, n)]
    rows = np.column_stack([rng.integers(0, r, 30) for r in arities]).astype(np.int32)
    weights, smoothing = rng.uniform(0.5, 3.0, 30), float(rng.uniform(0.1, 2.0))
    variables = tuple(Variable(f"v{i}", tuple(map(str, range(r)))) for i, r in enumerate(arities))
    graph = random_graph(rng, n)
    data = EncodedData(rows, weights, variables)
    network = BayesianNetwork.fit(data, Structure(graph), smoothing)
    return network, oracles.Parameters(rows.tolist(), weights.tolist(), arities, smoothing), graph


@pytest.mark.parametrize("seed", range(25))
def test_posteriors_are_those_of_the_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    network, own, graph = random_pair(rng, n)
    for query in range(n):
        others = [v for v in range(n) if v != query and rng.random() < 0.5]
        known = {v: int(rng.integers(own.arities[v])) for v in others}
        evidence = {f"v{v}": str(state) for v, state in known.items()}
        found = network.posterior_array(f"v{query}", evidence)
        assert found == pytest.approx(oracles.posterior(own, graph, query, known), abs=1e-12)


@pytest.mark.parametrize("evidence", [{}, {"v1": "0"}])
def test_draws_have_the_shares_of_all_states(evidence: dict[str, str]) -> None:
    """Within five standard deviations of the joint probabilities, for every state."""
    network, own, graph = random_pair(np.random.default_rng(5), 4)
    states = [x for x in product(*map(range, own.arities)) if not evidence or x[1] == 0]
    joint = np.array([own.joint(graph, x) for x in states])
    shares, n = joint / joint.sum(), 40_000
    drawn = Counter(map(tuple, network.sample_codes(n, 1, evidence).tolist()))
    assert drawn.keys() <= set(states)
    errors = np.array([drawn[x] / n for x in states]) - shares
    assert (np.abs(errors) <= 5 * np.sqrt(shares * (1 - shares) / n)).all()


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
