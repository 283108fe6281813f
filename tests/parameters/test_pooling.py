"""Validated paths, and the weights of several models."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.metrics import log_loss

from marginbn.data.labelled import stratified_folds
from marginbn.parameters import pooling
from marginbn.parameters.design import LINES, STEPS, Design
from marginbn.parameters.pooling import (
    CAUTION,
    Judges,
    held_out,
    pool,
    take_parts,
    validate_model,
)
from marginbn.parameters.training import (
    ITERATIONS,
    LEAST_ITERATIONS,
    RIDGES,
    Trainer,
    conditional_loss,
    margin_loss,
)
from ordinal_rows import mixed_rows

ROWS = mixed_rows(200, weighted=True)
PARTS = take_parts(ROWS, stratified_folds(ROWS.data.codes[:, 0], 3, 0))


def make(profile: Any = STEPS) -> Any:
    """A model of main effects."""
    return partial(Design, profile=profile)


def judged(seed: int, n: int = 80) -> tuple[Judges, list[np.ndarray]]:
    """Rows, and three models: good, weak, and of no use."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, 3, n)
    truth = np.eye(3)[classes]
    scores = [s * truth + rng.normal(size=(n, 3)) for s in (1.5, 0.7, 0.0)]
    return Judges(classes, rng.uniform(0.5, 2.0, n)), scores


def pool_objective(w: np.ndarray, scores: list[np.ndarray], judges: Judges) -> float:
    """Mean log loss by scikit-learn, and the price of weights that do not sum to one."""
    total = np.tensordot(w, np.array(scores), axes=1)
    posterior = np.exp(total - np.logaddexp.reduce(total, axis=1, keepdims=True))
    loss = log_loss(judges.classes, posterior, sample_weight=judges.weights)
    return float(loss + CAUTION / judges.weights.sum() * (w.sum() - 1) ** 2)


@pytest.mark.parametrize("seed", range(5))
def test_weights_are_the_optimum(seed: int) -> None:
    """Against another method without derivatives of ours."""
    judges, scores = judged(seed)
    found = pool(scores, judges)
    other = minimize(
        pool_objective,
        np.full(3, 1 / 3),
        (scores, judges),
        method="SLSQP",
        bounds=[(0, None)] * 3,
        options={"ftol": 1e-12},
    )
    assert (found.weights >= 0).all()
    assert pool_objective(found.weights, scores, judges) <= other.fun + 1e-6
    np.testing.assert_allclose(found.weights, other.x, atol=5e-3)
    np.testing.assert_allclose(found.scores, np.tensordot(found.weights, scores, axes=1))
    best_alone = min(np.average(judges.losses(s), weights=judges.weights) for s in scores)
    assert found.loss < best_alone


def test_the_objective_is_convex() -> None:
    """On lines between random weights."""
    judges, scores = judged(0)
    rng = np.random.default_rng(1)
    for _ in range(30):
        a, b = rng.uniform(0, 3, (2, 3))
        ends = pool_objective(a, scores, judges) + pool_objective(b, scores, judges)
        assert 2 * pool_objective((a + b) / 2, scores, judges) <= ends + 1e-12


def test_a_model_of_no_use_weighs_nothing() -> None:
    """Scores that are wrong on every row."""
    judges, scores = judged(0)
    wrong = -np.eye(3)[judges.classes]
    assert pool([scores[0], wrong], judges).weights[1] == 0
    assert pool([wrong], judges).weights[0] == 0


def test_one_model_gets_its_temperature() -> None:
    """Scores a hundred times too large are divided by about a hundred."""
    judges, scores = judged(0, 800)
    plain, loud = pool(scores[:1], judges), pool([100 * scores[0]], judges)
    assert loud.weights[0] * 100 == pytest.approx(plain.weights[0], rel=0.05)


@pytest.mark.parametrize("loss", [conditional_loss, margin_loss])
def test_the_path_is_judged_by_what_it_has_not_seen(loss: Any) -> None:
    """Ridge and scores, fold by fold, by hand."""
    found = validate_model(make(), "main", PARTS, loss)
    judges = held_out(PARTS)
    scores = []
    for part in PARTS:
        trainer = Trainer(Design(part.train, STEPS), loss)
        for ridge in RIDGES:
            if ridge >= found.ridge:
                trainer.step(ridge)
        scores.append(trainer.class_scores().evaluate(part.codes))
    np.testing.assert_allclose(found.scores, np.concatenate(scores), atol=1e-8)
    assert found.losses[RIDGES.index(found.ridge)] == min(found.losses)
    if loss is conditional_loss:
        mean = np.average(judges.losses(found.scores), weights=judges.weights)
    else:
        mean = pool([found.scores], judges).loss
    assert min(found.losses) == pytest.approx(mean)


@pytest.mark.parametrize(
    ("losses", "length"),
    [
        ([5, 4, 3, 2, 1, 1.5, 0.5, 0.4], 8),  # one rise is forgiven
        ([5, 4, 3, 2, 2.5, 2.6, 0.1, 0.1], 6),  # two end it
        ([5, 6, 7, 8, 9, 9, 9, 9], 4),  # but not above a ridge of 3
        ([5, 6, 7, 3, 4, 5, 9, 9], 6),
    ],
)
def test_two_rises_end_the_path(
    losses: list[float], length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The best ridge so far is taken."""
    answers = iter(losses)
    monkeypatch.setattr(pooling, "_path_loss", lambda *_: next(answers))
    monkeypatch.setattr(Trainer, "step", lambda *_: None)
    found = validate_model(make(), "main", PARTS)
    assert list(found.losses) == losses[:length]
    assert found.ridge == RIDGES[int(np.argmin(losses[:length]))]


def test_refitting_goes_along_the_path_to_the_ridge() -> None:
    """On all rows."""
    found = validate_model(make(LINES), "main", PARTS)
    direct = Trainer(Design(ROWS, LINES))
    for ridge in RIDGES[: RIDGES.index(found.ridge) + 1]:
        direct.step(ridge)
    np.testing.assert_array_equal(found.refit(ROWS).parameters, direct.parameters)


def test_parts_keep_bins_and_weights() -> None:
    """Every row is held out once; equal rows of the training part are one."""
    assert sum(len(part.codes) for part in PARTS) == 200
    total = ROWS.data.weights.sum()
    for part in PARTS:
        assert part.train.data.variables == ROWS.data.variables
        assert part.train.data.total_weight + part.weights.sum() == pytest.approx(total)


def test_a_model_that_is_needed_is_cut_short_instead_of_given_up() -> None:
    """The whole path with the least iterations, and training on all rows as it was validated."""
    with pytest.raises(TimeoutError):
        validate_model(make(), "late", PARTS, deadline=0.0)
    late = validate_model(make(), "late", PARTS, deadline=0.0, needed=True)
    whole = validate_model(make(), "whole", PARTS, deadline=math.inf, needed=True)
    assert (late.cut_short, whole.cut_short) == (True, False)
    assert min(late.iterations) == LEAST_ITERATIONS
    assert set(whole.iterations) == {ITERATIONS}
    by_hand = Trainer(Design(ROWS, STEPS))
    for ridge, iterations in zip(RIDGES, late.iterations, strict=False):
        if ridge >= late.ridge:
            by_hand.step(ridge, iterations=iterations)
    np.testing.assert_array_equal(late.refit(ROWS).parameters, by_hand.parameters)


def test_time_that_is_left_is_shared_by_the_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock that stands still each step gets its share of what is left."""
    given = []

    def step(self: Trainer, ridge: float, deadline: float) -> None:
        given.append(deadline)

    monkeypatch.setattr(pooling.time, "monotonic", lambda: 0.0)
    monkeypatch.setattr(Trainer, "step", step)
    monkeypatch.setattr(pooling, "FIRST_STOP", 0.0)
    validate_model(make(), "shared", PARTS, deadline=24.0, needed=True)
    assert given == [24.0 / left for left in range(3 * len(RIDGES), 0, -1)]
