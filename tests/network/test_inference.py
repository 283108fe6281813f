"""Questions to networks with groups of states: the same answers as from plain tables."""

from __future__ import annotations

import math

import numpy as np
import pytest

from marginbn.network import class_joint
from marginbn.network.elimination import MAX_CELLS
from marginbn.network.network import BayesianNetwork
from marginbn.problem.encoded import Variable
from marginbn.problem.structure import Structure
from networks import (
    all_states,
    brute_force_marginal,
    grouped_network,
    joint_probability,
    random_evidence,
    ungrouped,
)

SEEDS = range(60)


def families(kind: str) -> Structure:
    """Shapes that classifiers have: the class on top or in the middle, chains, many parents."""
    return {
        "class below": Structure(((1, 2), (), (1,), (0, 2), (0,))),
        "chain": Structure(((), (0,), (0, 1), (0, 2), (0, 3))),
        "two parents": Structure(((), (0,), (0, 1), (0, 1, 2), (0, 2, 3))),
        "three parents": Structure(((), (), (0,), (0, 1, 2), (1, 2, 3))),
    }[kind]


def classifier_network(kind: str, seed: int) -> BayesianNetwork:
    """Five fine states in two or three groups of neighbours."""
    structure = families(kind)
    rng = np.random.default_rng(seed)
    arities = [3, 5, 4, 5, 5]
    groups = [None, *(np.sort(rng.permutation([*range(3), 0, 2])[:a]) for a in arities[1:])]
    groups = [None if g is None else np.unique(g, return_inverse=True)[1] for g in groups]
    seen = [3, *(int(g.max()) + 1 for g in groups if g is not None)]
    tables = [
        np.log(rng.dirichlet(np.ones(arities[i]), [seen[p] for p in parents]))
        for i, parents in enumerate(structure.parents)
    ]
    variables = [Variable(f"x{i}", tuple(map(str, range(a)))) for i, a in enumerate(arities)]
    return BayesianNetwork(structure, tuple(variables), tuple(tables), tuple(groups))


def assert_same_answers(network: BayesianNetwork, plain: BayesianNetwork, seed: int) -> None:
    """Every question, with evidence on none to all variables."""
    rng = np.random.default_rng(seed)
    for size in (0, 1, 2, network.n_variables):
        _, evidence = random_evidence(network, rng, size)
        log_evidence = plain.log_evidence(evidence)
        if log_evidence == -math.inf:
            assert network.log_evidence(evidence) == -math.inf
            continue
        assert network.log_evidence(evidence) == pytest.approx(log_evidence, abs=1e-11)
        expected = plain.marginals(evidence)
        for name, marginal in network.marginals(evidence).items():
            np.testing.assert_allclose(marginal, expected[name], rtol=0, atol=1e-12)
        query = [int(v) for v in rng.choice(network.n_variables, 2, replace=False)]
        found = network.posterior_array(query, evidence)
        np.testing.assert_allclose(
            found, plain.posterior_array(query, evidence), rtol=0, atol=1e-12
        )
        states, log_probability = network.most_probable_explanation(evidence)
        assert states == plain.most_probable_explanation(evidence)[0]
        codes = np.array([list(network.encode_evidence(states).values())])
        assert log_probability == pytest.approx(float(plain.log_joint(codes)[0]), abs=1e-11)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_networks_answer_as_with_plain_tables(seed: int) -> None:
    """Groups of neighbours or not, of the class or of features, some probabilities zero."""
    network = grouped_network(seed, zeros=0.1 * (seed % 2))
    assert_same_answers(network, ungrouped(network), seed)


@pytest.mark.parametrize("kind", ["class below", "chain", "two parents", "three parents"])
@pytest.mark.parametrize("seed", range(10))
def test_classifiers_answer_as_with_plain_tables(kind: str, seed: int) -> None:
    """The structures that classifiers have."""
    network = classifier_network(kind, seed)
    assert network.groups is not None
    assert_same_answers(network, ungrouped(network), seed)


@pytest.mark.parametrize("missing", [0.0, 0.2, 0.7])
@pytest.mark.parametrize("pooled", [True, False])
def test_missing_features_are_summed_out(
    monkeypatch: pytest.MonkeyPatch, missing: float, pooled: bool
) -> None:
    """A pool mixes rows that observe a feature with rows that hide it: both stay exact."""
    monkeypatch.setattr(class_joint, "_OWN_BATCH", 99 if pooled else 1)
    monkeypatch.setattr(class_joint, "_POOL_CELLS", 2**20)
    for seed in range(30):
        network = grouped_network(seed, zeros=0.1 * (seed % 2))
        rng = np.random.default_rng(seed)
        codes = rng.integers(0, network.arities, (30, network.n_variables))
        codes[rng.random(codes.shape) < missing] = -1
        found = network.log_joint_per_class(codes)
        expected = ungrouped(network).log_joint_per_class(codes)
        np.testing.assert_allclose(np.exp(found), np.exp(expected), rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("seed", range(6))
def test_answers_agree_with_all_joint_states(seed: int) -> None:
    """Adding up joint states knows nothing of elimination and its groups."""
    network = grouped_network(seed, n_variables=5)
    plain = ungrouped(network)
    codes, evidence = random_evidence(network, np.random.default_rng(seed), 2)
    for i, marginal in enumerate(network.marginals(evidence).values()):
        joint = brute_force_marginal(plain, [i], codes)
        np.testing.assert_allclose(marginal, joint / joint.sum(), rtol=0, atol=1e-12)
    agreeing = [s for s in all_states(plain) if all(s[v] == c for v, c in codes.items())]
    best = max(agreeing, key=lambda state: joint_probability(plain, state))
    states, _ = network.most_probable_explanation(evidence)
    assert [*network.encode_evidence(states).values()] == [*best]


def test_draws_follow_the_posterior_of_states() -> None:
    """Within five standard errors, for every pair of states of two variables."""
    network = classifier_network("two parents", seed=1)
    evidence, n = {"x4": "2"}, 40_000
    draws = network.sample_codes(n, random_state=0, evidence=evidence)
    assert (draws[:, 4] == 2).all()
    for pair in ((0, 1), (1, 3), (2, 3)):
        expected = ungrouped(network).posterior_array(pair, evidence)
        counts = np.zeros_like(expected)
        np.add.at(counts, tuple(draws[:, v] for v in pair), 1)
        error = np.sqrt(expected * (1 - expected) / n) + 1e-9
        assert (np.abs(counts / n - expected) < 5 * error).all()


def test_draws_without_evidence_are_those_of_plain_tables() -> None:
    """One random number decides the same state."""
    for seed in range(10):
        network = grouped_network(seed)
        expected = ungrouped(network).sample_codes(50, random_state=seed)
        np.testing.assert_array_equal(network.sample_codes(50, random_state=seed), expected)


def test_ties_go_to_the_first_state_of_any_group() -> None:
    """Group 0 holds the later states: the order of states decides, not that of groups."""
    variables = Variable("class", ("a", "b")), Variable("x", ("0", "1", "2", "3"))
    tables = np.log(np.full((2, 2), 0.5)), np.log(np.full(4, 0.25))
    network = BayesianNetwork(
        Structure(((1,), ())), variables, tables, (None, np.array([1, 1, 0, 0]))
    )
    assert network.most_probable_explanation()[0] == {"class": "a", "x": "0"}
    within = BayesianNetwork(
        network.structure,
        variables,
        (np.log([[0.9, 0.1], [0.4, 0.6]]), np.log([0.1, 0.1, 0.4, 0.4])),
        network.groups,
    )
    assert within.most_probable_explanation()[0] == {"class": "a", "x": "2"}


def test_fine_states_of_many_parents_cost_no_more_than_their_groups() -> None:
    """Plain tables of three parents with a thousand states would have more cells than allowed."""
    arity, n_groups = 1000, 3
    groups = np.arange(arity) * n_groups // arity
    structure = Structure(((), (0,), (0, 1), (0, 1, 2), (1, 2, 3)))
    names = tuple(map(str, range(arity)))
    variables = [Variable("class", ("a", "b")), *(Variable(f"x{i}", names) for i in range(1, 5))]
    seen = [2, *[n_groups] * 4]
    rng = np.random.default_rng(0)
    tables = [
        np.log(rng.dirichlet(np.ones(v.arity), [seen[p] for p in parents]))
        for v, parents in zip(variables, structure.parents, strict=True)
    ]
    network = BayesianNetwork(structure, tuple(variables), tuple(tables), (None, *[groups] * 4))
    assert arity**4 > MAX_CELLS
    marginals = network.marginals({"x4": "7"})
    np.testing.assert_allclose(
        network.posterior_array("x2", {"x4": "7"}), marginals["x2"], atol=1e-12
    )
    codes = np.array([[0, -1, -1, -1, 7], [0, 3, -1, 999, -1]])
    log_joint = network.log_joint_per_class(codes)
    total = np.logaddexp.reduce(log_joint, axis=1)
    assert total[0] == pytest.approx(network.log_evidence({"x4": "7"}), abs=1e-12)
    assert total[1] == pytest.approx(network.log_evidence({"x1": "3", "x3": "999"}), abs=1e-12)
    np.testing.assert_allclose(np.exp(log_joint[0] - total[0]), marginals["class"], atol=1e-12)
