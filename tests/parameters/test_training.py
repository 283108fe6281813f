"""Trained parameters against scikit-learn, derivatives against differences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import check_grad, minimize
from sklearn.linear_model import LogisticRegression

from marginbn.data.ordinal import OrdinalData
from marginbn.parameters import training
from marginbn.parameters.design import LINES, STEPS, Design, coarse_interaction
from marginbn.parameters.training import (
    RIDGES,
    Loss,
    Trainer,
    conditional_loss,
    log_class_shares,
    margin_loss,
)
from marginbn.problem.encoded import EncodedData
from ordinal_rows import mixed_rows, repeated
from strategies import make_variables


def make_design(n_classes: int, weighted: bool = True) -> Design:
    """Main effects and one interaction."""
    rows = mixed_rows(n_classes=n_classes, weighted=weighted)
    return Design(rows, STEPS, [coarse_interaction(rows, (1, 2))])


PATIENT = {"maxiter": 20_000, "maxcor": 30, "gtol": 1e-9, "ftol": 1e-16, "maxfun": 10**6}


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Train to the last digit."""

    def minimise(*args: Any, **options: Any) -> Any:
        return minimize(*args, **(options | {"options": PATIENT}))

    monkeypatch.setattr(training, "minimize", minimise)


def objective(trainer: Trainer, ridge: float) -> float:
    """J of the newest parameters."""
    data = trainer.design.rows.data
    loss, _ = trainer.loss(trainer.scores(), trainer.classes, data.weights)
    return loss + ridge / 2 * float((trainer.parameters**2).sum())


def theirs(design: Design, ridge: float) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients (parameters, classes) and posterior of scikit-learn.

    It knows no offset, so the bias is left free there and here: a column that costs nothing.
    """
    X, data = (design.cells @ design.basis).toarray()[:, 1:], design.rows.data
    model = LogisticRegression(C=1 / ridge, tol=1e-10, max_iter=20_000)
    model.fit(X, data.codes[:, 0], data.weights)
    return model.coef_.T, model.predict_proba(X)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("ridge", [3.0, 0.2])
def test_it_is_logistic_regression(n_classes: int, ridge: float) -> None:
    """The same ridge on the same matrix."""
    design = make_design(n_classes)
    # A bias a thousand times as easy to move is as good as free, as it is over there.
    design.basis[0, 0] = 1e3
    design.transposed_basis = design.basis.T.tocsr()
    trainer = Trainer(design)
    trainer.step(ridge)
    scores = trainer.scores()
    posterior = np.exp(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))
    # With two classes scikit-learn has one column, the difference of ours, at half the price.
    coefficients, expected = theirs(design, ridge if n_classes > 2 else ridge / 2)
    np.testing.assert_allclose(posterior, expected, atol=1e-5)
    own = trainer.parameters[1:]
    if n_classes == 2:
        own = own[:, [1]] - own[:, [0]]
    np.testing.assert_allclose(own, coefficients, atol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_usual_tolerance_is_near_the_optimum(
    n_classes: int, request: pytest.FixtureRequest
) -> None:
    """At every ridge of the path J is at most a thousandth above its minimum."""
    trainer, exact = Trainer(make_design(n_classes)), Trainer(make_design(n_classes))
    found = []
    for ridge in RIDGES:
        trainer.step(ridge)
        found.append(objective(trainer, ridge))
    request.getfixturevalue("patient")
    for ridge, value in zip(RIDGES, found, strict=True):
        exact.step(ridge)
        assert value <= objective(exact, ridge) * (1 + 1e-3)


@pytest.mark.parametrize("loss", [conditional_loss, margin_loss])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_derivatives_are_differences(loss: Loss, n_classes: int) -> None:
    """At scores on all parts of the hinge."""
    rng = np.random.default_rng(n_classes)
    shape = (12, n_classes)
    classes, weights = rng.integers(0, n_classes, 12), rng.uniform(0.5, 2.0, 12)
    for scale in (0.1, 1.0, 3.0):
        start = scale * rng.normal(size=shape).ravel()
        error = check_grad(
            lambda s: loss(s.reshape(shape), classes, weights)[0],
            lambda s: loss(s.reshape(shape), classes, weights)[1].ravel(),
            start,
        )
        assert error < 2e-5


def test_the_margin_loss_is_a_rounded_hinge() -> None:
    """Zero from a margin of 1.25 on, 1 - margin below 0.75, and never far from the hinge."""
    margins = np.linspace(-2, 3, 101)
    scores = np.column_stack([margins, np.zeros(101)])
    one = np.ones(1)
    found = [margin_loss(s[None], np.array([0]), one)[0] for s in scores]
    hinge = np.maximum(0, 1 - margins)
    np.testing.assert_allclose(found, hinge, atol=0.0626)
    outside = np.abs(margins - 1) >= 0.25
    np.testing.assert_allclose(np.array(found)[outside], hinge[outside], atol=1e-12)


@pytest.mark.parametrize("loss", [conditional_loss, margin_loss])
def test_losses_are_convex(loss: Loss) -> None:
    """On lines between random scores."""
    rng = np.random.default_rng(0)
    classes, weights = rng.integers(0, 4, 30), rng.uniform(size=30)
    for _ in range(20):
        a, b = 2 * rng.normal(size=(2, 30, 4))
        ends = loss(a, classes, weights)[0] + loss(b, classes, weights)[0]
        assert 2 * loss((a + b) / 2, classes, weights)[0] <= ends + 1e-9


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("loss", [conditional_loss, margin_loss])
def test_both_scalings_reach_the_same_optimum(loss: Loss, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole second derivative or its diagonal."""
    found = []
    for most in (0, 10_000):
        monkeypatch.setattr(training, "MOST_FACTORISED", most)
        trainer = Trainer(make_design(2), loss)
        trainer.step(1.0)
        found.append(trainer.parameters)
    np.testing.assert_allclose(*found, atol=1e-4)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_gradient_vanishes(n_classes: int) -> None:
    """X' (y - p) = ridge v, and parameters of the classes sum to zero."""
    design = make_design(n_classes)
    trainer = Trainer(design)
    trainer.step(0.5)
    scores, w = trainer.scores(), design.rows.data.weights[:, None]
    posterior = np.exp(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))
    residuals = np.eye(n_classes)[trainer.classes] - posterior
    X = (design.cells @ design.basis).toarray()
    np.testing.assert_allclose(X.T @ (w * residuals), 0.5 * trainer.parameters, atol=1e-5)
    np.testing.assert_allclose(trainer.parameters.sum(axis=1), 0, atol=1e-6)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("loss", [conditional_loss, margin_loss])
def test_weights_are_repetitions(loss: Loss) -> None:
    """Twice the row or twice the weight."""
    rows = mixed_rows(120)
    times = np.random.default_rng(0).integers(1, 4, 120)
    weighted = OrdinalData(
        EncodedData(rows.data.codes, times.astype(float), rows.data.variables),
        rows.groups,
        rows.positions,
    )
    found = []
    for each in (weighted, repeated(rows, times), weighted.merged()):
        trainer = Trainer(Design(each, LINES), loss)
        trainer.step(1.0)
        found.append(trainer.scores(rows.data.codes))
    np.testing.assert_allclose(found[1], found[0], atol=1e-4)
    np.testing.assert_allclose(found[2], found[0], atol=1e-4)


@pytest.mark.usefixtures("patient")
def test_the_path_does_not_matter() -> None:
    """The optimum at a ridge is the same from zero and from other ridges."""
    direct, along = Trainer(make_design(3)), Trainer(make_design(3))
    direct.step(1.0)
    for ridge in (100.0, 0.1, 1.0):
        along.step(ridge)
    np.testing.assert_allclose(direct.parameters, along.parameters, atol=1e-4)


def test_a_strong_ridge_leaves_the_class_shares() -> None:
    """Half a row is added to each class, so that a class without rows has a share too."""
    trainer = Trainer(make_design(3))
    trainer.step(1e9)
    shares = np.exp(log_class_shares(trainer.design.rows.data))
    np.testing.assert_allclose(np.exp(trainer.scores()), np.tile(shares, (300, 1)), atol=1e-5)
    data = EncodedData(np.array([[0, 0], [0, 1]]), np.ones(2), make_variables((2, 2)))
    np.testing.assert_allclose(np.exp(log_class_shares(data)), [2.5 / 3, 0.5 / 3])


@pytest.mark.parametrize("loss", [conditional_loss, margin_loss])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_tables_are_the_scores(loss: Loss, n_classes: int) -> None:
    """Of rows it was trained on, and of rows with unknown values."""
    trainer = Trainer(make_design(n_classes), loss)
    trainer.step(1.0)
    codes = trainer.design.rows.data.codes
    np.testing.assert_allclose(trainer.scores(codes), trainer.scores(), atol=1e-12)
    np.testing.assert_allclose(trainer.class_scores().evaluate(codes), trainer.scores(), atol=1e-9)
    unknown = trainer.scores(np.full((1, 5), -1))
    np.testing.assert_allclose(unknown, trainer.offset + trainer.parameters[[0]], atol=1e-12)


def test_one_class_is_no_error() -> None:
    """Its posterior is one."""
    data = EncodedData(np.array([[0, 0], [0, 1]]), np.ones(2), make_variables((1, 2)))
    trainer = Trainer(Design(OrdinalData.plain(data), STEPS))
    trainer.step(3.0)
    assert trainer.scores().shape == (2, 1)


@pytest.mark.parametrize("n_classes", [2, 3, 7, 8, 30])
def test_classes_are_reduced_to_the_last_bit(n_classes: int) -> None:
    """Class by class or row by row: the same numbers."""
    scores = np.random.default_rng(n_classes).normal(size=(50, n_classes))
    assert np.array_equal(training.over_classes(np.maximum, scores), scores.max(axis=1))
    assert np.array_equal(training.over_classes(np.add, scores), scores.sum(axis=1))


def test_a_step_after_the_deadline_makes_the_least_iterations() -> None:
    """It is the step of as many iterations, and better than none."""
    late, counted, whole = (Trainer(make_design(3)) for _ in range(3))
    assert late.step(0.01, deadline=-math.inf) == training.LEAST_ITERATIONS
    assert counted.step(0.01, iterations=training.LEAST_ITERATIONS) is None
    np.testing.assert_array_equal(late.parameters, counted.parameters)
    assert whole.step(0.01, deadline=math.inf) is None
    weights = late.design.rows.data.weights
    losses = [conditional_loss(t.scores(), t.classes, weights)[0] for t in (late, whole)]
    nothing = conditional_loss(Trainer(late.design).scores(), late.classes, weights)[0]
    assert losses[1] < losses[0] < nothing
