"""Trained networks: the posterior is that of the scores, whatever the structure."""

from __future__ import annotations

from functools import cache, lru_cache

import numpy as np
import pytest

from data_folder import data_folder
from marginbn.classifiers import bn_classifier
from marginbn.classifiers.bn_classifier import STRUCTURES, BNClassifier
from marginbn.classifiers.validation import read_training_rows
from marginbn.data.labelled import stratified_folds
from marginbn.data.ordinal import OrdinalData, encode_ordinal
from marginbn.data.table import Table
from marginbn.datasets import load_dataset
from marginbn.datasets.local import load_folder_dataset
from marginbn.parameters.class_scores import ClassScores
from marginbn.parameters.design import STEPS, Design
from marginbn.parameters.normalise import normalised_network
from marginbn.parameters.pooling import held_out, take_parts
from marginbn.parameters.trained import (
    PooledModels,
    TrainedNetwork,
    main_posterior,
    model_tasks,
    no_interactions,
    profiles_for,
    structure_interactions,
    train_structure,
)
from marginbn.parameters.training import Trainer, conditional_loss, margin_loss
from marginbn.problem.encoded import EncodedData
from marginbn.problem.structure import Structure
from ordinal_rows import mixed_rows
from score_tables import posterior_error
from strategies import make_variables

BUNDLED = ["iris", "wine", "monks-1", "corral"]
MANY = [
    *("abalone", "australian", "breast", "car", "chess", "cleve", "corral", "crx", "diabetes"),
    *("flare", "german", "glass", "glass2", "heart", "hepatitis", "iris", "lymphography"),
    *("mofn-3-7-10", "segment", "shuttle-small", "soybean-large", "vehicle", "vote"),
]


def in_fine_bins(table: Table) -> OrdinalData:
    """Encoded with the state that missing values have."""
    X, y = table.drop("class"), table.column("class").values
    rows = read_training_rows(BNClassifier(), X, y, None, kinds="auto")
    return encode_ordinal(rows, "state").fine


@cache
def rows_of(name: str) -> OrdinalData:
    """A bundled data set in fine bins."""
    return in_fine_bins(load_dataset(name).train)


@lru_cache(maxsize=1)
def folder_rows(name: str) -> OrdinalData:
    """The training part of a data set of the folder; missing values are a state."""
    return in_fine_bins(load_folder_dataset(name, data_folder()).train)


def trained_scores(rows: OrdinalData, structure: str, ridge: float = 0.75) -> ClassScores:
    """At one ridge."""
    trainer = Trainer(Design(rows, STEPS, STRUCTURES[structure](rows)))
    trainer.step(ridge)
    return trainer.class_scores()


def naive(rows: OrdinalData) -> Structure:
    """No arcs between features."""
    return Structure(((), *[(0,)] * (rows.data.n_variables - 1)))


def check_network(rows: OrdinalData, structure: str) -> None:
    """The posterior to 1e-10 on every row, tables that sum to one to 1e-12."""
    scores = trained_scores(rows, structure)
    network = normalised_network(scores, naive(rows), rows.data.merged())
    assert posterior_error(network, scores, rows.data.codes) < 1e-10
    assert max(np.abs(np.exp(t).sum(-1) - 1).max() for t in network.log_tables) < 1e-12


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("name", BUNDLED)
def test_the_network_has_the_posterior_of_the_scores(
    name: str, structure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever structure the short search for the margin comes to."""
    monkeypatch.setattr(bn_classifier, "MARGIN_SECONDS", 0.2)
    check_network(rows_of(name), structure)


@pytest.mark.slow
@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("name", MANY)
def test_the_same_on_many_data_sets(name: str, structure: str) -> None:
    """More than twenty of the folder; all rows of the training part."""
    check_network(folder_rows(name), structure)


@pytest.mark.slow
@pytest.mark.parametrize("name", MANY)
def test_a_class_with_parents_keeps_its_posterior(name: str) -> None:
    """Two features above the class, the others in a chain below it."""
    rows = folder_rows(name)
    n = rows.data.n_variables
    chain = [(0, i - 1) if i > 3 else (0,) for i in range(3, n)]
    structure = Structure(((1, 2), (), (), *chain))
    trainer = Trainer(Design(rows, STEPS, structure_interactions(rows, structure)))
    trainer.step(0.75)
    scores = trainer.class_scores()
    network = normalised_network(scores, structure, rows.data.merged())
    assert posterior_error(network, scores, rows.data.codes) < 1e-10
    assert max(np.abs(np.exp(t).sum(-1) - 1).max() for t in network.log_tables) < 1e-12


def test_the_background_is_a_share_of_one_row() -> None:
    """(1 - doubt) posterior + doubt shares, with doubt = 1 / (rows + 1)."""
    rows = mixed_rows(weighted=True)
    scores = trained_scores(rows, "forest")
    trained = TrainedNetwork.of(scores, naive(rows), rows)
    data = rows.data
    shares = np.bincount(data.codes[:, 0], data.weights) + 0.5
    doubt = 1 / (data.total_weight + 1)
    expected = (1 - doubt) * np.exp(scores.log_posterior(data.codes))
    expected += doubt * shares / shares.sum()
    found = np.exp(trained.log_posterior(data.codes))
    np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-12)


def test_no_row_costs_more_than_the_background() -> None:
    """However wrong and sure the scores are."""
    rows = mixed_rows()
    scores = trained_scores(rows, "naive")
    sure = ClassScores(
        scores.variables,
        scores.groups,
        1e3 * scores.bias,
        tuple(1e3 * effect for effect in scores.effects),
        {},
    )
    found = TrainedNetwork.of(sure, naive(rows), rows).log_posterior(rows.data.codes)
    assert found.min() > -np.log(301) - np.log(3) - 0.1


def test_missing_features_are_answered_by_both_networks() -> None:
    """A posterior for any pattern; nothing known is the class shares, nearly."""
    rows = mixed_rows(weighted=True)
    trained = TrainedNetwork.of(trained_scores(rows, "2-tree"), naive(rows), rows)
    codes = rows.data.codes[:20].copy()
    codes[:, 1:][np.random.default_rng(0).random((20, 4)) < 0.5] = -1
    found = np.exp(trained.log_posterior(codes))
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-12)
    nothing = np.exp(trained.log_posterior(np.full((1, 5), -1)))[0]
    np.testing.assert_allclose(nothing, trained.background, atol=0.05)


@pytest.mark.parametrize("loss", [conditional_loss, margin_loss])
def test_a_pool_is_the_weighted_sum_of_its_models(loss: object) -> None:
    """Scores of the refit against those of every model alone."""
    rows = mixed_rows(80)
    parts = take_parts(rows, stratified_folds(rows.data.codes[:, 0], 2, 0))
    tasks = model_tasks("main", no_interactions, parts, loss)
    tasks += model_tasks("forest", STRUCTURES["forest"], parts, loss)
    models = [task() for task in tasks]
    pooled = PooledModels.of(models, held_out(parts))
    codes = rows.data.codes
    used = pooled.pool.weights > 1e-3 * pooled.pool.weights.sum()
    expected = sum(
        w * model.refit(rows).scores(codes)
        for w, model, kept in zip(pooled.pool.weights, models, used, strict=True)
        if kept
    )
    np.testing.assert_allclose(pooled.refit(rows).evaluate(codes), expected, atol=1e-8)
    described = pooled.describe()
    assert [d["model"] for d in described] == [
        f"{name}, {profile}" for name in ("main", "forest") for profile in ("lines", "steps")
    ]
    assert sum(float(d["weight"]) for d in described) == pytest.approx(pooled.pool.weights.sum())


def test_a_pool_without_weights_knows_nothing() -> None:
    """Models that are wrong about every row they have not seen."""
    codes = np.array([[0, 0], [1, 0], [0, 1], [1, 1]] * 3)
    data = EncodedData(codes, np.ones(12), make_variables((2, 2)))
    rows = OrdinalData.plain(data)
    splits = [(np.arange(12)[codes[:, 0] == c], np.arange(12)[codes[:, 0] != c]) for c in (0, 1)]
    pooled, scores = train_structure(
        rows, take_parts(rows, splits), Structure(((), (0,))), conditional_loss
    )
    assert not pooled.pool.weights.any()
    np.testing.assert_allclose(scores.evaluate(codes), 0, atol=1e-12)


@pytest.mark.parametrize(
    ("parents", "families"),
    [
        (((), (0,), (0,), (0,), (0,)), []),
        (((), (0,), (0, 1), (0, 2), (0,)), [(1, 2), (2, 3)]),
        (((1, 4), (), (0, 1), (0,), ()), [(1, 2), (1, 4)]),  # the parents of the class
        (((), (0,), (0, 1), (0, 1, 2), (1,)), [(1, 2), (1, 2, 3)]),  # 4 has no class
    ],
)
def test_families_with_the_class_interact(
    parents: tuple[tuple[int, ...], ...], families: list[tuple[int, ...]]
) -> None:
    """A table for each, over coarse bins; features with one bin are left out."""
    rows = mixed_rows()
    several = [v for v in range(1, 5) if rows.groups[v] is None or rows.groups[v].max() > 0]
    found = structure_interactions(rows, Structure(parents))
    kept = [tuple(v for v in family if v in several) for family in families]
    assert sorted(i.family for i in found) == sorted({f for f in kept if len(f) > 1})


def test_profiles_are_for_numbers() -> None:
    """Categories have one."""
    assert [p.name for p in profiles_for(mixed_rows())] == ["lines", "steps"]
    assert [p.name for p in profiles_for(rows_of("monks-1"))] == ["steps"]


def test_main_effects_of_categories_are_one_short_path() -> None:
    """48, then 3; the mean of the profiles is that of one."""
    rows = rows_of("corral")
    trainer = Trainer(Design(rows, STEPS))
    trainer.step(48.0)
    trainer.step(3.0)
    scores = trainer.scores()
    expected = np.exp(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))
    np.testing.assert_allclose(main_posterior(rows), expected, atol=1e-12)


def test_training_a_structure_is_pooling_main_effects_and_structure() -> None:
    """The posterior of what comes out is better than main effects where it matters."""
    rows = rows_of("monks-1")
    xor = Structure(((), (0,), (0, 1), *[(0,)] * 4))
    parts = take_parts(rows, stratified_folds(rows.data.codes[:, 0], 3, 0))
    with_pair, scores = train_structure(rows, parts, xor, conditional_loss)
    alone, _ = train_structure(rows, parts, naive(rows), conditional_loss)
    assert len(with_pair.models) == 2 * len(alone.models)
    assert with_pair.pool.loss < 0.5 * alone.pool.loss
    assert (scores.evaluate(rows.data.codes).argmax(1) == rows.data.codes[:, 0]).mean() > 0.97
