"""Exact queries against arithmetic on paper and against enumeration of all joint states."""

from __future__ import annotations

import math

import numpy as np
import pytest

from marginbn.exceptions import InputError, ProblemTooLargeError
from marginbn.network.elimination import draw_states
from marginbn.network.network import BayesianNetwork
from marginbn.problem.encoded import Variable
from marginbn.problem.structure import Structure
from networks import (
    all_states,
    brute_force_marginal,
    joint_probability,
    random_evidence,
    random_network,
    sprinkler,
)

SEEDS = range(40)


def test_posterior_of_rain_given_wet_grass_matches_the_textbook_sum() -> None:
    """P(rain | wet) = (0.2 * (0.99 * 0.8 + 0.01 * 0.99)) / (that + 0.8 * 0.4 * 0.9)."""
    rain = 0.2 * (0.99 * 0.8 + 0.01 * 0.99)
    dry = 0.8 * (0.6 * 0.0 + 0.4 * 0.9)
    answer = sprinkler().posterior_array("rain", {"grass": "wet"})
    np.testing.assert_allclose(answer, [dry / (dry + rain), rain / (dry + rain)], rtol=1e-14)
    assert sprinkler().log_evidence({"grass": "wet"}) == pytest.approx(math.log(dry + rain))


def test_most_probable_explanation_of_wet_grass_is_the_sprinkler() -> None:
    """Given wet grass, no rain with the sprinkler on (0.288) beats rain without it (0.1584)."""
    explanation, log_probability = sprinkler().most_probable_explanation({"grass": "wet"})
    assert explanation == {"rain": "no", "sprinkler": "on", "grass": "wet"}
    assert log_probability == pytest.approx(math.log(0.8 * 0.4 * 0.9))


@pytest.mark.parametrize("seed", SEEDS)
def test_posterior_equals_enumeration(seed: int) -> None:
    network = random_network(seed, n_variables=7, zeros=0.2)
    rng = np.random.default_rng(seed)
    observed, evidence = random_evidence(network, rng, int(rng.integers(0, 4)))
    query = [int(v) for v in rng.permutation(7)[: rng.integers(1, 4)]]
    expected = brute_force_marginal(network, query, observed)
    assert math.exp(network.log_evidence(evidence)) == pytest.approx(expected.sum(), abs=1e-15)
    if expected.sum() == 0:
        with pytest.raises(InputError, match="probability zero"):
            network.posterior_array(query, evidence)
    else:
        answer = network.posterior_array(query, evidence)
        np.testing.assert_allclose(answer, expected / expected.sum(), atol=1e-13)


@pytest.mark.parametrize("seed", SEEDS)
def test_marginals_equal_enumeration(seed: int) -> None:
    network = random_network(seed, n_variables=7, zeros=0.2)
    rng = np.random.default_rng(seed + 1000)
    observed, evidence = random_evidence(network, rng, int(rng.integers(0, 4)))
    total = brute_force_marginal(network, [], observed)
    if total == 0:
        with pytest.raises(InputError, match="probability zero"):
            network.marginals(evidence)
        return
    answer = network.marginals(evidence)
    assert list(answer) == list(network.names)
    for i, name in enumerate(network.names):
        expected = brute_force_marginal(network, [i], observed) / total
        np.testing.assert_allclose(answer[name], expected, atol=1e-13)


@pytest.mark.parametrize("seed", SEEDS)
def test_most_probable_explanation_equals_enumeration(seed: int) -> None:
    network = random_network(seed, n_variables=7, zeros=0.2)
    rng = np.random.default_rng(seed + 2000)
    observed, evidence = random_evidence(network, rng, int(rng.integers(0, 4)))
    agreeing = [s for s in all_states(network) if all(s[v] == c for v, c in observed.items())]
    best = max(agreeing, key=lambda state: joint_probability(network, state))
    if joint_probability(network, best) == 0:
        with pytest.raises(InputError, match="probability zero"):
            network.most_probable_explanation(evidence)
        return
    explanation, log_probability = network.most_probable_explanation(evidence)
    assert explanation == {
        v.name: v.states[code] for v, code in zip(network.variables, best, strict=True)
    }
    assert log_probability == pytest.approx(math.log(joint_probability(network, best)))


def _coins(tables: list[list[float]], parents: tuple[tuple[int, ...], ...]) -> BayesianNetwork:
    variables = tuple(Variable(f"x{i}", ("a", "b")) for i in range(len(parents)))
    shapes = [(2,) * (len(p) + 1) for p in parents]
    arrays = tuple(np.log(t).reshape(s) for t, s in zip(tables, shapes, strict=True))
    return BayesianNetwork(Structure(parents), variables, arrays)


def test_of_equally_probable_explanations_one_is_given() -> None:
    """If exactly one of two coins shows b, it is one of them, the same one every time."""
    unequal = [0.1, 0.9, 0.9, 0.1]
    network = _coins([[0.5, 0.5], unequal], ((), (0,)))
    explanation, log_probability = network.most_probable_explanation()
    assert {*explanation.values()} == {"a", "b"}
    assert log_probability == pytest.approx(math.log(0.45))
    assert network.most_probable_explanation()[0] == explanation


def test_samples_given_evidence_follow_the_posterior() -> None:
    network = random_network(3, n_variables=5, zeros=0.1)
    observed = {4: 0}
    evidence = {"x4": "s0"}
    draws = network.sample_codes(40_000, random_state=1, evidence=evidence)
    assert (draws[:, 4] == 0).all()
    expected = brute_force_marginal(network, [0, 1, 2, 3], observed)
    expected /= expected.sum()
    counts = np.zeros_like(expected)
    np.add.at(counts, tuple(draws[:, :4].T), 1)
    error = np.sqrt(expected * (1 - expected) / 40_000)
    assert (np.abs(counts / 40_000 - expected) <= 5 * error).all()


def test_a_long_chain_does_not_underflow() -> None:
    """Evidence of log probability near -3000 still gives the exact posterior of the class."""
    n = 600
    parents = ((), *((0,) for _ in range(n)))
    tables = [[0.5, 0.5], *([0.99, 0.01, 0.98, 0.02] for _ in range(n))]
    network = _coins(tables, parents)
    evidence = {f"x{i}": "b" for i in range(1, n + 1)}
    answer = network.posterior_array("x0", evidence)
    np.testing.assert_allclose(answer[0] / answer[1], 0.5**n, rtol=1e-9)
    assert network.log_evidence(evidence) == pytest.approx(
        math.log(0.5) + n * math.log(0.02), abs=1e-9
    )


def test_a_dense_query_is_refused_before_memory_is_allocated() -> None:
    """Thirty binary variables asked at once would be 2**30 cells: a clear error."""
    variables = tuple(Variable(f"x{i}", ("a", "b")) for i in range(40))
    coin = np.log([0.5, 0.5])
    network = BayesianNetwork(Structure(((),) * 40), variables, (coin,) * 40)
    with pytest.raises(ProblemTooLargeError, match="limit"):
        network.posterior_array([f"x{i}" for i in range(30)])
    with pytest.raises(ProblemTooLargeError, match="limit"):
        network.posterior_array([f"x{i}" for i in range(40)])
    with pytest.raises(ProblemTooLargeError, match="limit"):
        network.posterior_array(range(40), {f"x{i}": "a" for i in range(39)})


@pytest.mark.parametrize(
    ("query", "evidence", "message"),
    [
        ("snow", None, "unknown variable 'snow'; known are 'rain', 'sprinkler', 'grass'"),
        (3, None, "index must lie in 0..2, got 3"),
        (-1, None, "index must lie in 0..2"),
        ([], None, "at least one variable"),
        (["rain", 0], None, "none of them twice"),
        (["rain", 1.5], None, "name or index, got 1.5"),
        ("rain", {"grass": "damp"}, "unknown state 'damp' of variable 'grass'; its states are"),
        ("rain", {"grass": 1}, "unknown state 1"),
        ("rain", {"moss": "wet"}, "unknown variable 'moss'"),
        ("rain", {"grass": "wet", 2: "dry"}, "'grass' twice"),
        ("rain", ["grass"], "evidence must map"),
        ("rain", {"rain": "no", "sprinkler": "off", "grass": "wet"}, "probability zero"),
    ],
)
def test_bad_questions_get_clear_errors(query: object, evidence: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        sprinkler().posterior_array(query, evidence)


def test_an_observed_variable_may_be_queried() -> None:
    network = sprinkler()
    np.testing.assert_array_equal(network.posterior_array("grass", {"grass": "wet"}), [0.0, 1.0])
    joint = network.posterior_array(["grass", "rain"], {"grass": "wet"})
    np.testing.assert_array_equal(joint[1], network.posterior_array("rain", {"grass": "wet"}))
    np.testing.assert_array_equal(joint[0], [0.0, 0.0])


class _AlwaysZero(np.random.Generator):
    """The unluckiest generator: every uniform number is exactly zero."""

    def random(self, size: int) -> np.ndarray:  # type: ignore[override]
        return np.zeros(size)


def test_impossible_states_are_never_drawn() -> None:
    """Even a uniform number of exactly zero skips leading states of probability zero."""
    table = np.array([[-np.inf, -np.inf, 0.0], [-np.inf, 0.0, -np.inf]])
    rng = _AlwaysZero(np.random.PCG64(0))
    given = (np.array([0, 1], dtype=np.int32),)
    assert draw_states(table, given, 2, rng).tolist() == [2, 1]
