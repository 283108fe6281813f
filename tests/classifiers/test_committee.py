"""Networks that answer together, against the sum written out."""

from __future__ import annotations

import numpy as np
import pytest

from marginbn import BayesianNetwork, EncodedData, InputError, Structure, Variable
from marginbn.classifiers.committee import Committee

VARIABLES = (
    Variable("class", ("a", "b", "c")),
    Variable("x", ("0", "1")),
    Variable("y", ("0", "1", "2")),
)
STRUCTURES = [Structure(((), (0,), (0,))), Structure(((), (0,), (0, 1))), Structure(((), (), ()))]


def data() -> EncodedData:
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.integers(v.arity, size=40) for v in VARIABLES])
    return EncodedData(codes, rng.random(40) + 0.5, VARIABLES)


def networks() -> list[BayesianNetwork]:
    return [BayesianNetwork.fit(data(), structure) for structure in STRUCTURES]


def test_the_posterior_is_the_weighted_mean_of_posteriors() -> None:
    """Two opinions: the committee in logarithms, and Bayes' rule network by network."""
    rows, weights = np.array([[0, 1, 2], [0, -1, 0], [0, -1, -1]]), np.array([0.5, 0.3, 0.2])
    expected = np.zeros((3, 3))
    for network, weight in zip(networks(), weights, strict=True):
        for i, (_, x, y) in enumerate(rows):
            evidence = {n: str(v) for n, v in (("x", x), ("y", y)) if v >= 0}
            expected[i] += weight * network.posterior_array("class", evidence)
    found = np.exp(Committee(tuple(networks()), weights).log_posterior(rows))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)


def test_equal_networks_share_a_member() -> None:
    """Three votes for one network and one for another predict as four members would."""
    first, second, _ = networks()
    committee = Committee.equal([first, second, first, networks()[0]])
    assert committee.networks == (first, second)
    assert committee.weights.tolist() == [0.75, 0.25]


@pytest.mark.parametrize(
    ("members", "weights", "words"),
    [
        ([], [], "one number per network"),
        (networks()[:2], [1.0], "one number per network"),
        (networks()[:2], [0.5, 0.6], "sum to one"),
        (networks()[:2], [1.5, -0.5], "positive"),
    ],
)
def test_wrong_weights_are_refused(
    members: list[BayesianNetwork], weights: list[float], words: str
) -> None:
    """The message says what weights are."""
    with pytest.raises(InputError, match=words):
        Committee(tuple(members), np.array(weights))


def test_members_have_the_same_variables() -> None:
    """Codes of one network mean nothing to another."""
    other = (Variable("class", ("a", "b", "c")), *VARIABLES[1:][::-1])
    strange = BayesianNetwork(
        Structure(((), (), ())), other, [np.log(np.full(v.arity, 1 / v.arity)) for v in other]
    )
    with pytest.raises(InputError, match="same variables"):
        Committee((networks()[0], strange), np.array([0.5, 0.5]))
