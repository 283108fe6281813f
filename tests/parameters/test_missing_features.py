"""Posteriors of incomplete rows: exact, by draws, and as a blend with the twin's own."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest

from marginbn.exceptions import InputError
from marginbn.network.network import BayesianNetwork
from marginbn.parameters import missing_features
from marginbn.parameters.missing_features import HALF, MOST, MissingFeatures
from marginbn.parameters.normalise import normalised_network
from marginbn.parameters.twin import fit_twin
from marginbn.problem.encoded import EncodedData
from marginbn.problem.structure import Structure
from score_tables import GROUPS, dependent_rows, hide_features, make_scores
from strategies import make_variables

DATA = dependent_rows()
STRUCTURE = Structure(((), (0,), (0, 1), (0,), (0, 3)))


def make_network() -> BayesianNetwork:
    """A network from random scores over the rows' groups."""
    scores = make_scores(STRUCTURE, DATA.arities.tolist(), groups=GROUPS)
    return normalised_network(scores, STRUCTURE, DATA)


NETWORK = make_network()


def posterior(network: BayesianNetwork, row: np.ndarray) -> np.ndarray:
    """P(c | row) of one row."""
    joint = np.exp(network.log_joint_per_class(row[np.newaxis])[0])
    return joint / joint.sum()


def expectation(answers: MissingFeatures, row: np.ndarray) -> np.ndarray:
    """Mean of the network's posterior over all fillings, weighted by the twin: the definition."""
    free = [v for v in range(1, len(row)) if row[v] < 0]
    total = np.zeros(answers.network.n_classes)
    for states in itertools.product(*(range(answers.network.arities[v]) for v in free)):
        filled = row.copy()
        filled[free] = states
        weight = np.exp(answers.twin.log_joint_per_class(filled[np.newaxis])).sum()
        total += weight * posterior(answers.network, filled)
    return total / total.sum()


def test_complete_rows_get_the_posterior_of_the_network() -> None:
    """To the last bit of rounding."""
    answers = MissingFeatures.fit(NETWORK, DATA)
    expected = [posterior(NETWORK, row) for row in DATA.codes]
    np.testing.assert_allclose(np.exp(answers.log_posterior(DATA.codes)), expected, atol=1e-12)


@pytest.mark.parametrize("share", [0.2, 0.6, 1.0])
def test_the_answer_is_the_blend_of_both_experts(
    share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against the formula, with the expectation from the definition and all states enumerated."""
    monkeypatch.setattr(missing_features, "EXACT_STATES", 1000)
    answers = MissingFeatures.fit(NETWORK, DATA, blend=(0.7, 0.2))
    codes = hide_features(DATA.codes[:15], share)
    for row, found in zip(codes, np.exp(answers.log_posterior(codes)), strict=True):
        s = (row[1:] < 0).mean()
        w = 0.7 * s / (s + 0.2)
        expected = expectation(answers, row) ** (1 - w) * posterior(answers.twin, row) ** w
        np.testing.assert_allclose(found, expected / expected.sum(), atol=1e-9)


def test_draws_come_near_the_exact_expectation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many draws much nearer than the few of the default, and these near enough."""
    codes = hide_features(DATA.codes[:20], 0.6)
    codes = codes[(codes < 0).any(axis=1)]
    exact = [expectation(MissingFeatures.fit(NETWORK, DATA, blend=(0.0, 1.0)), r) for r in codes]
    monkeypatch.setattr(missing_features, "EXACT_STATES", 0)
    errors = []
    for n_draws in (missing_features.N_DRAWS, 4000):
        answers = MissingFeatures.fit(NETWORK, DATA, blend=(0.0, 1.0), n_draws=n_draws)
        errors.append(np.abs(np.exp(answers.log_posterior(codes)) - exact))
    assert errors[0].mean() < 0.05
    assert errors[1].max() < 0.02


def test_a_row_does_not_depend_on_its_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Alone, in another order or in small chunks: the same answer."""
    monkeypatch.setattr(missing_features, "EXACT_STATES", 6)
    answers = MissingFeatures.fit(NETWORK, DATA)
    codes = hide_features(DATA.codes, 0.5)
    together = answers.log_posterior(codes)
    np.testing.assert_allclose(answers.log_posterior(codes[::-1])[::-1], together, atol=1e-12)
    np.testing.assert_allclose(answers.log_posterior(codes[7:8])[0], together[7], atol=1e-12)
    monkeypatch.setattr(missing_features, "_CELLS", 1)
    np.testing.assert_allclose(answers.log_posterior(codes), together, atol=1e-12)


def test_the_class_column_is_ignored() -> None:
    """Whatever it holds."""
    answers = MissingFeatures.fit(NETWORK, DATA)
    codes = hide_features(DATA.codes[:20], 0.5)
    other = codes.copy()
    other[:, 0] = -1
    assert np.array_equal(answers.log_posterior(codes), answers.log_posterior(other))


def test_validation_takes_the_pair_of_least_loss() -> None:
    """A sure and wrong network leaves all to the twin; a twin that knows nothing gets little."""
    wrong = make_scores(STRUCTURE, DATA.arities.tolist(), groups=GROUPS, scale=20.0, seed=3)
    sure = MissingFeatures.fit(normalised_network(wrong, STRUCTURE, DATA), DATA)
    assert (sure.most, sure.half) == (MOST[-1], HALF[0])
    good = BayesianNetwork.fit(DATA, Structure(((), (0,), (0, 1), (0, 2), (0, 3))))
    nothing = BayesianNetwork.fit(DATA, Structure(((), (), (), (), ())))
    kept = MissingFeatures.fit(good, DATA, twin=nothing)
    assert (kept.most, kept.half) == (MOST[0], HALF[-1])


def test_other_rows_can_be_used_for_validation() -> None:
    """The choice depends on them, and on them only."""
    wrong = make_scores(STRUCTURE, DATA.arities.tolist(), groups=GROUPS, scale=20.0, seed=3)
    network = normalised_network(wrong, STRUCTURE, DATA)
    drawn = network.sample_codes(300, 0)
    own = EncodedData(drawn, np.ones(300), DATA.variables)
    trusting = MissingFeatures.fit(network, DATA, unseen=own)
    assert trusting.most < MissingFeatures.fit(network, DATA).most


def test_the_twin_may_have_groups_of_its_own() -> None:
    """A network without interactions has no groups; its twin is estimated on those given."""
    structure = Structure(((), (0,), (0,), (0,), (0,)))
    scores = make_scores(structure, DATA.arities.tolist())
    network = normalised_network(scores, structure, DATA)
    assert network.groups is None
    assert MissingFeatures.fit(network, DATA).twin == fit_twin(DATA, None)
    assert MissingFeatures.fit(network, DATA, groups=GROUPS).twin == fit_twin(DATA, GROUPS)


def test_features_that_cancel_are_no_trap() -> None:
    """Two copies of a feature with opposite weights: without one of them the network is wrong."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 4, 400)
    y = (rng.random(400) < np.array([0.1, 0.4, 0.6, 0.9])[x]).astype(int)
    codes = np.column_stack([y, x, x])
    data = EncodedData(codes, np.ones(400), make_variables((2, 4, 4)))
    structure = Structure(((), (0,), (0,)))
    scores = make_scores(structure, (2, 4, 4), scale=0.0)
    slope = np.outer([-1, 1], np.arange(4) - 1.5)
    effects = 5.7 * slope, -5.0 * slope
    scores = type(scores)(scores.variables, scores.groups, np.zeros(2), effects, {})
    network = normalised_network(scores, structure, data)
    hidden = codes.copy()
    hidden[:, 2] = -1
    answers = MissingFeatures.fit(network, data)

    def loss(log_posterior: np.ndarray) -> float:
        return -float(log_posterior[np.arange(400), y].mean())

    joint = network.log_joint_per_class(hidden)
    plain = joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)
    assert loss(answers.log_posterior(hidden)) < 1.05 * loss(answers.log_posterior(codes))
    assert loss(plain) > 1.2 * loss(answers.log_posterior(hidden))


def test_it_survives_pickling_and_plain_numbers() -> None:
    """Two networks and three numbers are all there is."""
    answers = MissingFeatures.fit(NETWORK, DATA)
    codes = hide_features(DATA.codes[:20], 0.5)
    rebuilt = MissingFeatures(
        answers.network, answers.twin, answers.most, answers.half, answers.n_draws
    )
    for copy in (pickle.loads(pickle.dumps(answers)), rebuilt):
        assert np.array_equal(copy.log_posterior(codes), answers.log_posterior(codes))


def test_nothing_to_answer() -> None:
    """No rows, and no feature at all."""
    answers = MissingFeatures.fit(NETWORK, DATA)
    assert answers.log_posterior(DATA.codes[:0]).shape == (0, 3)
    alone = EncodedData(DATA.codes[:, :1], DATA.weights, DATA.variables[:1])
    network = BayesianNetwork.fit(alone, Structure(((),)))
    found = MissingFeatures.fit(network, alone).log_posterior([[0]])
    np.testing.assert_allclose(found[0], network.log_tables[0])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"most": 1.5}, "most must lie between 0 and 1, got 1.5"),
        ({"half": 0.0}, "half must be a positive number, got 0.0"),
        ({"n_draws": 0}, "n_draws must be at least 1, got 0"),
    ],
)
def test_unusable_arguments_are_refused(changes: dict, message: str) -> None:
    """Each names itself."""
    arguments = {"network": NETWORK, "twin": NETWORK, "most": 0.5, "half": 0.1, **changes}
    with pytest.raises(InputError, match=message):
        MissingFeatures(**arguments)


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        ([[0, 0]], r"codes must have shape \(n, 5\), got \(1, 2\)"),
        ([[0.0, 0, 0, 0, 0]], "codes must be integers, got dtype float64"),
        ([[0, 5, 0, 0, 0]], "codes must lie between 0 and the arity"),
        ([[0, -2, 0, 0, 0]], "codes must lie between 0 and the arity"),
    ],
)
def test_unusable_rows_are_refused(codes: list, message: str) -> None:
    """Shape, type and range."""
    with pytest.raises(InputError, match=message):
        MissingFeatures.fit(NETWORK, DATA).log_posterior(codes)


def test_a_twin_of_other_variables_is_refused() -> None:
    """It could not fill in anything."""
    other = BayesianNetwork.fit(
        EncodedData(DATA.codes[:, :4], DATA.weights, DATA.variables[:4]),
        Structure(((), (0,), (0,), (0,))),
    )
    with pytest.raises(InputError, match="twin must have the variables of the network"):
        MissingFeatures(NETWORK, other, 0.5, 0.1)
