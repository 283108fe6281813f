"""Answers to any evidence, against enumeration of all states."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from class_model_cases import CHAIN, COUPLED, hidden, learned, mixed_rows
from class_model_oracle import CountedNetwork, drawn_mean, expected_mean, lehmer_points
from marginbn.class_model import answers
from marginbn.class_model.answers import Answers, spread_points
from marginbn.class_model.trainer import Precisions, train_class_model
from marginbn.data.labelled import LabelledTable
from marginbn.data.table import as_table
from marginbn.exceptions import ProblemTooLargeError
from marginbn.network.network import BayesianNetwork
from marginbn.problem.encoded import EncodedData, contingency
from marginbn.problem.structure import Structure

PRECISIONS = Precisions(line=0.3, effect=1.0, family=1.0)
FORKED = Structure(((), (0, 3), (0, 3), (0,), (0, 2)))
"""A tree whose features are not in the order of their numbers."""
STRUCTURES = {"chain": CHAIN, "coupled": COUPLED, "forked": FORKED}


@cache
def fitted(structure: Structure, n_classes: int = 2) -> tuple[Answers, EncodedData]:
    cells, data = learned(mixed_rows(80, n_classes))
    network = BayesianNetwork.fit(cells.count(data), structure, smoothing=0.5)
    return Answers(network, train_class_model(cells, structure, data, PRECISIONS)), data


def oracle_of(answered: Answers) -> CountedNetwork:
    network = answered.network
    return CountedNetwork(network.structure.parents, [np.exp(t) for t in network.log_tables])


def cells_of(answered: Answers) -> list:
    """Per feature and bin the cells with their shares, for the oracle."""
    result = []
    for feature in answered.model.design.cells.features:
        bins: list[list[tuple[int, float]]] = [[] for _ in range(feature.n_bins)]
        for cell, weight in enumerate(feature.weights):
            bins[feature.bin[cell]].append((cell, weight))
        result.append([[(c, w / sum(v for _, v in b)) for c, w in b] for b in bins])
    return result


def class_model_of(answered: Answers):
    """P(class | all cells)."""
    return lambda cells: softmax(answered.model.scores(np.array([cells])), axis=1)[0]


def known_of(row: np.ndarray) -> dict[int, int]:
    return {i: int(cell) for i, cell in enumerate(row) if cell >= 0}


def incomplete(data: EncodedData, n_rows: int, share: float) -> np.ndarray:
    """Rows of cells with something known and something unknown."""
    rows = hidden(data.codes[:, 1:].astype(np.int32), share)
    n_known = (rows >= 0).sum(axis=1)
    return rows[(n_known > 1) & (n_known < rows.shape[1])][:n_rows]


@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_known_feature_or_none_is_answered_by_the_network(name: str, n_classes: int) -> None:
    """G by adding up all states, also with two feature parents."""
    answered, _ = fitted(STRUCTURES[name], n_classes)
    oracle, features = oracle_of(answered), answered.model.design.cells.features
    rows, expected = [np.full(4, -1)], [oracle.posterior({})]
    for i, feature in enumerate(features):
        for cell in (0, feature.n_cells - 1):
            row = np.full(4, -1)
            row[i] = cell
            rows.append(row)
            expected.append(oracle.posterior({i + 1: feature.bin[cell]}))
    np.testing.assert_allclose(answered.posterior(np.array(rows)), expected, atol=1e-12)


@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_answer_by_definition(name: str, n_classes: int) -> None:
    """G and E by enumeration, feature by feature and draw by draw, blended."""
    answered, data = fitted(STRUCTURES[name], n_classes)
    oracle, cells = oracle_of(answered), cells_of(answered)
    features, points = answered.model.design.cells.features, lehmer_points(64, 5)
    order = answered.buckets.order.tolist()
    rows = incomplete(data, 6, 0.5)
    for row, answer in zip(rows, answered.posterior(rows), strict=True):
        known = known_of(row)
        network = oracle.posterior({i + 1: features[i].bin[c] for i, c in known.items()})
        drawn = drawn_mean(oracle, cells, class_model_of(answered), known, order, points)
        u = (len(known) - 1) / 3
        expected = network ** (1 - u) * drawn**u
        np.testing.assert_allclose(answer, expected / expected.sum(), atol=1e-9)


@pytest.mark.parametrize("name", ["chain", "coupled"])
def test_draws_come_from_the_network_given_what_is_known(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With many draws E is the expectation over all cells of the unknown features."""
    answered, data = fitted(STRUCTURES[name])
    oracle, cells = oracle_of(answered), cells_of(answered)
    row = incomplete(data, 1, 0.3)
    known = known_of(row[0])
    assert len(known) == 3
    monkeypatch.setattr(answers, "N_DRAWS", 4096)
    spread_points.cache_clear()
    answer = answered.posterior(row)[0]
    spread_points.cache_clear()
    features = answered.model.design.cells.features
    network = oracle.posterior({i + 1: features[i].bin[c] for i, c in known.items()})
    drawn = expected_mean(oracle, cells, class_model_of(answered), known)
    expected = network ** (1 / 3) * drawn ** (2 / 3)
    np.testing.assert_allclose(answer, expected / expected.sum(), atol=2e-3)


def test_complete_rows_are_answered_by_the_class_model() -> None:
    answered, data = fitted(CHAIN)
    codes = data.codes[:, 1:].astype(np.int32)
    np.testing.assert_array_equal(
        answered.posterior(codes), softmax(answered.model.scores(codes), axis=1)
    )


def test_an_answer_does_not_depend_on_the_rows_next_to_it() -> None:
    """All rows at once, or one by one; twice the same."""
    answered, data = fitted(COUPLED, 3)
    rows = hidden(data.codes[:, 1:].astype(np.int32), 0.4)
    together = answered.posterior(rows)
    np.testing.assert_array_equal(together, answered.posterior(rows))
    alone = np.concatenate([answered.posterior(row[np.newaxis]) for row in rows])
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_allclose(together.sum(axis=1), 1.0)


@pytest.mark.parametrize("structure", [CHAIN, FORKED])
def test_one_feature_parent_keeps_the_shares_of_the_data(structure: Structure) -> None:
    """P(c, x_i) and P(c, x_i, x_parent) of the counted network are those of the rows."""
    cells, data = learned(mixed_rows(400, 3))
    counted = cells.count(data)
    network = BayesianNetwork.fit(counted, structure, smoothing=1e-9)
    for child, parents in enumerate(structure.parents):
        for variables in {(0, child), (*parents, child)} if child else ():
            shares = contingency(counted, variables) / counted.total_weight
            others = np.delete(np.arange(5), variables)
            rows = np.array(list(np.ndindex(shares.shape)))
            codes = np.full((len(rows), 5), -1, dtype=np.int32)
            codes[:, variables] = rows
            joint = network.log_joint_per_class(codes)[np.arange(len(rows)), rows[:, 0]]
            assert len(others) + len(variables) == 5
            np.testing.assert_allclose(np.exp(joint), shares.ravel(), atol=1e-7)


def test_points_are_as_documented() -> None:
    """By a generator written from the documentation; each column has one point per 64th."""
    np.testing.assert_array_equal(spread_points(7), lehmer_points(64, 7))
    np.testing.assert_array_equal(np.sort(spread_points(7) * 64, axis=0)[:, 3], np.arange(64) + 0.5)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_contributions_lead_from_the_base_rate_to_the_answer(n_classes: int) -> None:
    """For complete rows, incomplete ones, and nothing known; what is unknown adds nothing."""
    answered, data = fitted(CHAIN, n_classes)
    rows = data.codes[:3, 1:].astype(np.int32)
    rows[1, [0, 2]] = -1
    rows[2] = -1
    base = log_odds(answered.posterior(np.full((1, 4), -1)))
    for row in rows:
        start, parts = answered.contributions(row, 1, 0)
        assert start == pytest.approx(base)
        end = log_odds(answered.posterior(row[np.newaxis]))
        assert start + parts.sum() == pytest.approx(end)
        assert (parts[row < 0] == 0.0).all()
    only = np.array([-1, -1, 1, -1])
    start, parts = answered.contributions(only, 1, 0)
    assert parts[2] == pytest.approx(log_odds(answered.posterior(only[np.newaxis])) - start)


def log_odds(posterior: np.ndarray) -> float:
    """Of the second class to the first."""
    return float(np.log(posterior[0, 1] / posterior[0, 0]))


def test_of_a_bin_whose_cell_is_unknown_the_cell_is_drawn_by_its_share() -> None:
    """With everything else known, E is the mean over the cells of the bin, by their weight."""
    answered, data = fitted(CHAIN, 2)
    row = data.codes[:1, 1:].astype(np.int32)
    feature = answered.model.design.cells.features[0]
    state = feature.bin[row[0, 0]]
    cells = [c for c, own in enumerate(feature.bin) if own == state]
    assert len(cells) > 3
    each = np.repeat(row, len(cells), axis=0)
    each[:, 0] = cells
    weights = np.array(feature.weights)[cells]
    expected = np.average(answered.posterior(each), axis=0, weights=weights)
    row[0, 0] = feature.code_of_bin(state)
    np.testing.assert_allclose(answered.posterior(row)[0], expected, rtol=0, atol=0.01)


def test_features_of_one_cell_count_for_nothing() -> None:
    rows = mixed_rows(60)
    table = [[*(column.values[n] for column in rows.features.columns), "k"] for n in range(60)]
    kinds = {"x0": "numeric", "x1": "numeric"}
    wider = LabelledTable.of(as_table(table, kinds=kinds), rows.labels)
    found = []
    for given, parents in ((rows, CHAIN.parents), (wider, (*CHAIN.parents, ()))):
        cells, data = learned(given)
        structure = Structure(parents)
        network = BayesianNetwork.fit(cells.count(data), structure)
        answered = Answers(network, train_class_model(cells, structure, data, PRECISIONS))
        codes = hidden(data.codes[:, 1:5].astype(np.int32), 0.3)
        for further in ([], [0], [-1]) if given is wider else ([],):
            if given is rows or further:
                wide = np.column_stack([codes, *(np.full(60, code) for code in further)])
                found.append(answered.posterior(wide))
    np.testing.assert_allclose(found[1], found[0], atol=1e-4)
    np.testing.assert_array_equal(found[1], found[2])


def test_a_thousand_features_stay_in_range() -> None:
    """Products of many small probabilities; half of the features unknown."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 40)
    values = np.where(
        rng.random((40, 1000)) < 0.3, labels[:, np.newaxis], rng.integers(0, 2, (40, 1000))
    )
    rows = LabelledTable.of(as_table(values.astype(str).tolist()), labels)
    cells, data = learned(rows)
    structure = Structure(((), (0,), *((0, v) for v in range(1, 1000))))
    network = BayesianNetwork.fit(cells.count(data), structure)
    answered = Answers(network, train_class_model(cells, structure, data, PRECISIONS))
    codes = hidden(data.codes[:, 1:].astype(np.int32), 0.5)
    posterior = answered.posterior(codes)
    assert np.isfinite(posterior).all()
    assert (posterior.argmax(axis=1) == labels).mean() > 0.9
    log_joint = network.log_joint_per_class(np.column_stack([labels, codes]).astype(np.int32))
    one = np.full((1, 1000), -1, dtype=np.int32)
    one[0, 999] = codes[0, 999] if codes[0, 999] >= 0 else 1
    expected = network.log_joint_per_class(np.column_stack([[0], one]).astype(np.int32))
    np.testing.assert_allclose(
        answered.posterior(one), np.exp(expected - logsumexp(expected, axis=1, keepdims=True))
    )
    assert np.isfinite(log_joint).all()


def test_a_network_that_is_too_large_for_exact_draws_is_refused_when_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answered, data = fitted(COUPLED)
    fresh = Answers(answered.network, answered.model)
    monkeypatch.setattr(answers, "MOST_CELLS", 50)
    codes = data.codes[:2, 1:].astype(np.int32)
    assert fresh.posterior(codes).shape == (2, 2)
    codes[0, 0] = -1
    with pytest.raises(ProblemTooLargeError, match="smaller max_parents"):
        fresh.posterior(codes)
