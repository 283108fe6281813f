"""The inference in the page: the same posteriors as the library's, without a browser."""

from __future__ import annotations

import json
import math
from itertools import product

import numpy as np
import pytest

from javascript import infer_in_javascript, run_javascript
from marginbn.network.network import BayesianNetwork
from marginbn.problem.encoded import Variable
from marginbn.problem.structure import Structure
from marginbn.report.page import network_values
from networks import brute_force_marginal, random_evidence, random_network, sprinkler

CLOSE = 1e-9


def chain_of_margins(n_features: int, seed: int) -> BayesianNetwork:
    """A classifier as they are learned: every feature below the class and one other feature."""
    rng = np.random.default_rng(seed)
    arities = [3, *rng.integers(2, 6, n_features).tolist()]
    parents = [(), (0,), *((0, int(rng.integers(1, i))) for i in range(2, n_features + 1))]
    tables = []
    for i, family in enumerate(parents):
        shape = [arities[p] for p in family]
        tables.append(np.log(rng.dirichlet(np.full(arities[i], 0.2), shape) + 1e-12))
        tables[-1] -= np.log(np.exp(tables[-1]).sum(axis=-1, keepdims=True))
    variables = [Variable(f"x{i}", tuple(map(str, range(a)))) for i, a in enumerate(arities)]
    return BayesianNetwork(Structure(tuple(parents)), tuple(variables), tuple(tables))


def assert_same(network: BayesianNetwork, answer: dict, labels: dict[str, str]) -> None:
    """All marginals and the probability of the evidence."""
    expected = network.marginals(labels).values()
    for found, marginal in zip(answer["posteriors"], expected, strict=True):
        np.testing.assert_allclose(found, marginal, rtol=0, atol=CLOSE)
    assert float(answer["logProbability"]) == pytest.approx(network.log_evidence(labels), abs=1e-8)


def test_the_sprinkler_by_hand() -> None:
    """P(rain | wet) = 0.16038 / (0.288 + 0.16038 ...) is what one gets on paper."""
    (answer,) = infer_in_javascript(sprinkler(), [{2: 1}])
    wet_dry_day = 0.8 * 0.4 * 0.9
    wet_rainy_day = 0.2 * (0.99 * 0.8 + 0.01 * 0.99)
    total = wet_dry_day + wet_rainy_day
    assert answer["posteriors"][0] == pytest.approx([wet_dry_day / total, wet_rainy_day / total])
    assert answer["posteriors"][2] == [0, 1]
    assert float(answer["logProbability"]) == pytest.approx(math.log(total))


def test_impossible_evidence_is_told() -> None:
    impossible, possible = infer_in_javascript(sprinkler(), [{0: 0, 1: 0, 2: 1}, {0: 0, 1: 0}])
    assert impossible == {"logProbability": "-Infinity", "posteriors": None}
    assert possible["posteriors"][2] == [1, 0]


@pytest.mark.parametrize("seed", range(12))
def test_random_networks_agree_with_the_library(seed: int) -> None:
    """Any structure, some probabilities zero, none to many states observed."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 14))
    network = random_network(seed, n, max_parents=4, max_arity=4, zeros=0.1 * (seed % 2))
    asked = [random_evidence(network, rng, size) for size in range(0, n + 1, 2)]
    answers = infer_in_javascript(network, [codes for codes, _ in asked])
    for (codes, labels), answer in zip(asked, answers, strict=True):
        if network.log_evidence(labels) == -math.inf:
            assert answer["posteriors"] is None, codes
        else:
            assert_same(network, answer, labels)


@pytest.mark.parametrize("seed", range(4))
def test_small_networks_agree_with_all_joint_states(seed: int) -> None:
    network = random_network(seed, 5, max_parents=3)
    codes, _ = random_evidence(network, np.random.default_rng(seed), 2)
    (answer,) = infer_in_javascript(network, [codes])
    for i, posterior in enumerate(answer["posteriors"]):
        joint = brute_force_marginal(network, [i], codes)
        np.testing.assert_allclose(posterior, joint / joint.sum(), rtol=0, atol=CLOSE)


@pytest.mark.parametrize("n_features", [57, 300])
def test_large_classifiers_agree_with_the_library(n_features: int) -> None:
    """Products of hundreds of small numbers stay exact, because they are kept as logarithms."""
    network = chain_of_margins(n_features, seed=n_features)
    rng = np.random.default_rng(1)
    asked = [random_evidence(network, rng, size) for size in (0, 3, n_features)]
    answers = infer_in_javascript(network, [codes for codes, _ in asked])
    for (_, labels), answer in zip(asked, answers, strict=True):
        assert_same(network, answer, labels)


def test_a_hopeless_network_is_told_and_evidence_helps() -> None:
    """Tangled parents need tables that no page can hold, until most variables are observed."""
    network = random_network(3, 120, max_parents=4, max_arity=3)
    codes, labels = random_evidence(network, np.random.default_rng(0), 100)
    hopeless, helped = infer_in_javascript(network, [{}, codes])
    assert hopeless == {"tooLarge": True}
    assert_same(network, helped, labels)


@pytest.mark.parametrize("seed", range(3))
def test_rows_of_tables_name_states(seed: int) -> None:
    """A row per joint state of the parents, the last parent fastest, as in the library's tables."""
    network = random_network(seed)
    i = max(range(network.n_variables), key=lambda v: len(network.structure.parents[v]))
    labels = [network.variables[p].states for p in network.structure.parents[i]]
    expected = [list(context) for context in product(*labels)]
    asked = f"""JSON.stringify([...Array({len(expected)}).keys()].map((row) =>
        parentStates(readNetwork({json.dumps(network_values(network))}), {i}, row)))"""
    assert json.loads(run_javascript(asked, "format", "elements", "cards", "picture")) == expected
