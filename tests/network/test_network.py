"""The network value: checks on construction, estimation, likelihood, sampling, names."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from marginbn.exceptions import InputError
from marginbn.network.network import BayesianNetwork
from marginbn.problem.encoded import EncodedData, Variable
from marginbn.problem.structure import Structure
from networks import all_states, brute_force_marginal, joint_probability, random_network, sprinkler

COIN = Variable("coin", ("head", "tail"))
DIE = Variable("die", ("1", "2", "3"))


@pytest.mark.parametrize("seed", range(10))
def test_log_joint_equals_the_product_of_entries_and_sums_to_one(seed: int) -> None:
    """All joint states get the product of their table entries; together they are certain."""
    network = random_network(seed, zeros=0.1)
    states = list(all_states(network))
    answer = np.exp(network.log_joint(np.array(states)))
    np.testing.assert_allclose(answer, [joint_probability(network, s) for s in states], rtol=1e-12)
    assert answer.sum() == pytest.approx(1.0)


def small_data(weights: list[float] | None = None) -> EncodedData:
    codes = np.array([[0, 0], [0, 1], [0, 1], [1, 2]], dtype=np.int32)
    return EncodedData(codes, np.array(weights or [1.0] * 4), (COIN, DIE))


def test_fit_counts_and_smooths() -> None:
    """Three heads, one tail: (3 + 1) / (4 + 2); the die under head: (1, 2, 0) + 1 over 6."""
    network = BayesianNetwork.fit(small_data(), Structure(((), (0,))))
    np.testing.assert_allclose(np.exp(network.log_tables[0]), [4 / 6, 2 / 6])
    np.testing.assert_allclose(
        np.exp(network.log_tables[1]), [[2 / 6, 3 / 6, 1 / 6], [1 / 4, 1 / 4, 2 / 4]]
    )
    assert network.n_parameters == 1 + 2 * 2


def test_maximum_likelihood_beats_smoothing_on_its_own_data() -> None:
    """No parameters have a higher log-likelihood than the relative frequencies."""
    data, structure = small_data([1.0, 2.5, 0.5, 3.0]), Structure(((), (0,)))
    exact = BayesianNetwork.fit(data, structure, smoothing=0.0)
    smoothed = BayesianNetwork.fit(data, structure, smoothing=1.0)
    assert exact.log_likelihood(data) > smoothed.log_likelihood(data)
    expected = 4 * math.log(4 / 7) + 3 * math.log(3 / 7) + math.log(1 / 4) + 3 * math.log(3 / 4)
    assert exact.log_likelihood(data) == pytest.approx(expected)


def test_undefined_rows_without_smoothing_are_explained() -> None:
    """A parent state that never occurs has no maximum-likelihood row."""
    with pytest.raises(InputError, match=r"P\(coin \| parents\) undefined .* smoothing > 0"):
        BayesianNetwork.fit(
            EncodedData(np.array([[0, 0]], dtype=np.int32), np.ones(1), (COIN, DIE)),
            Structure(((1,), ())),
            smoothing=0,
        )


@pytest.mark.parametrize("smoothing", [-1.0, math.nan, math.inf])
def test_smoothing_must_be_a_finite_number(smoothing: float) -> None:
    with pytest.raises(InputError, match="smoothing must be"):
        BayesianNetwork.fit(small_data(), Structure(((), (0,))), smoothing)


def test_log_likelihood_refuses_other_variables() -> None:
    """Data with the columns swapped would silently mean something else."""
    network = BayesianNetwork.fit(small_data(), Structure(((), (0,))))
    other = EncodedData(np.zeros((1, 2), dtype=np.int32), np.ones(1), (DIE, COIN))
    with pytest.raises(InputError, match="variables of the network"):
        network.log_likelihood(other)


FAIR = np.log([0.5, 0.5])


@pytest.mark.parametrize(
    ("parents", "variables", "tables", "message"),
    [
        ((), (), (), "at least one variable"),
        (((),), (COIN, DIE), (FAIR,), "agree in length"),
        (((),), (COIN,), (np.log([0.5, 0.4]),), "'coin' must sum to 1; the largest error is 0.1"),
        (((),), (COIN,), (np.array([math.nan, 0.0]),), "log probabilities, got NaN"),
        (((),), (COIN,), (np.array([math.inf, 0.0]),), "log probabilities, got NaN or inf"),
        (((),), (COIN,), (np.array([800.0, 0.0]),), "must sum to 1"),
        (((),), (COIN,), (np.log([0.2, 0.3, 0.5]),), r"shape \(2,\), got \(3,\)"),
        (((), ()), (COIN, COIN), (FAIR, FAIR), "variable names must be unique, repeated: 'coin'"),
        (((),), (Variable("c", ("a", "a")),), (FAIR,), "state labels of 'c' must be unique"),
        (((),), (Variable("c", ()),), (np.empty(0),), "at least one state"),
    ],
)
def test_inconsistent_networks_are_refused(
    parents: tuple[tuple[int, ...], ...],
    variables: tuple[Variable, ...],
    tables: tuple[np.ndarray, ...],
    message: str,
) -> None:
    with pytest.raises(InputError, match=message):
        BayesianNetwork(Structure(parents), variables, tables)


def test_tables_are_private_and_read_only() -> None:
    mine = FAIR.copy()
    network = BayesianNetwork(Structure(((),)), (COIN,), (mine,))
    mine[0] = 0.0
    assert network.log_tables[0][0] == FAIR[0]
    with pytest.raises(ValueError, match="read-only"):
        network.log_tables[0][0] = 0.0


def test_pickling_keeps_the_value_and_its_protection() -> None:
    network = sprinkler()
    network.log_joint_per_class(np.zeros((1, 3), dtype=int))
    copy = pickle.loads(pickle.dumps(network))
    assert copy == network
    assert hash(copy) == hash(network)
    assert not copy.log_tables[0].flags.writeable
    tables = (np.log([0.7, 0.3]), *network.log_tables[1:])
    assert BayesianNetwork(network.structure, network.variables, tables) != network
    assert network != "network"


@pytest.mark.parametrize("seed", range(5))
def test_sample_frequencies_match_exact_probabilities(seed: int) -> None:
    """Every cell of 40 000 ancestral draws lies within five standard errors of the exact joint."""
    network = random_network(seed, n_variables=4, zeros=0.2)
    draws = network.sample_codes(40_000, random_state=seed)
    assert draws.dtype == np.int32
    expected = brute_force_marginal(network, [0, 1, 2, 3], {})
    counts = np.zeros_like(expected)
    np.add.at(counts, tuple(draws.T), 1)
    error = np.sqrt(expected * (1 - expected) / 40_000)
    assert (np.abs(counts / 40_000 - expected) <= 5 * error + 1e-12).all()


def test_sampling_is_reproducible_and_large_draws_are_whole() -> None:
    """Equal seeds give equal draws, generators advance, and more than one block is filled."""
    network = sprinkler()
    first = network.sample_codes(70_000, random_state=7)
    np.testing.assert_array_equal(first, network.sample_codes(70_000, random_state=7))
    generator = np.random.default_rng(7)
    np.testing.assert_array_equal(first, network.sample_codes(70_000, generator))
    assert (network.sample_codes(100, generator) != first[:100]).any()
    assert set(np.unique(first[65_536:])) == {0, 1}
    assert network.sample_codes(0, random_state=0).shape == (0, 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1,), "n must be"),
        ((1.5,), "n must be"),
        ((1, "seed"), "random_state must be"),
        ((1, -1), "random_state must be"),
    ],
)
def test_sample_refuses_odd_arguments(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        sprinkler().sample_codes(*arguments)


@pytest.mark.parametrize("codes", [[[0, -1, 0]], [[0, 2, 0]]])
def test_log_joint_refuses_incomplete_rows(codes: list[list[int]]) -> None:
    """The joint of an incomplete row is another question, and the message says which."""
    with pytest.raises(InputError, match="log_joint_per_class"):
        sprinkler().log_joint(codes)


def test_a_long_list_of_names_is_cut_short() -> None:
    variables = tuple(Variable(f"x{i}", ("a", "b")) for i in range(500))
    network = BayesianNetwork(Structure(((),) * 500), variables, (FAIR,) * 500)
    with pytest.raises(InputError, match=r"'x19', \.\.\. \(500 in all\)"):
        network.variable_index("y")
    assert repr(network) == "BayesianNetwork(500 variables, 0 arcs, 500 parameters)"
