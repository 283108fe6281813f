"""Training: the kernels against the definition, the certified gap against a tighter solve."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.datasets import load_iris

from class_model_cases import CHAIN, COUPLED, designed, functions, hidden, mixed_rows
from class_model_oracle import objective
from marginbn import BNClassifier, save_model
from marginbn.class_model import trainer
from marginbn.class_model.basis import Design, family_pairs, learn_cells
from marginbn.class_model.trainer import (
    CERTIFIED,
    ClassModel,
    Precisions,
    Trainer,
    log_shares,
    train_class_model,
)
from marginbn.data.labelled import LabelledTable
from marginbn.data.table import as_table
from marginbn.problem.encoded import EncodedData

SOME = Precisions(line=0.5, effect=2.0, family=5.0)


def random_model(design: Design, data: EncodedData, seed: int = 0) -> ClassModel:
    shares = log_shares(data)
    shape = (len(shares), design.n_parameters)
    parameters = np.random.default_rng(seed).normal(size=shape) / 2.0
    return ClassModel(design, SOME, shares, parameters)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("structure", [CHAIN, COUPLED])
def test_kernels_equal_the_definition(n_classes: int, structure: object) -> None:
    """J and its gradient, with weights and more rows than a block."""
    design, data = designed(mixed_rows(700, n_classes), structure)
    weights = np.random.default_rng(1).integers(1, 4, 700).astype(float)
    data = EncodedData(data.codes, weights, data.variables)
    model = random_model(design, data)
    value, gradient = model.evaluate(data)
    values = functions(design, data.by_column[1:])
    expected = objective(
        values, data.codes[:, 0], weights, n_classes, model.precision, model.parameters
    )
    assert value == pytest.approx(expected[0], rel=1e-12)
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_of_unknown_values_leave_their_tables_out(n_classes: int) -> None:
    design, data = designed(mixed_rows(60, n_classes))
    model = random_model(design, data)
    codes = hidden(data.codes[:, 1:].astype(np.int32), 0.3)
    expected = (
        functions(design, design.cells.compact(codes)) @ model.parameters.T + model.log_shares
    )
    scores = model.scores(codes)
    assert scores.shape == (60, n_classes)
    np.testing.assert_allclose(scores[:, -expected.shape[1] :], expected, atol=1e-10)


def test_few_rows_need_no_compiler(tmp_path: Path) -> None:
    """A process that only answers does not load it, and gives the same answer."""
    X, y = load_iris(return_X_y=True)
    fitted = BNClassifier().fit(X, y)
    save_model(fitted, tmp_path / "m.json")
    program = (
        "import sys\nfrom marginbn import load_model\n"
        f"fitted = load_model({str(tmp_path / 'm.json')!r})\n"
        "print(*fitted.predict_proba([[5.0, 3.0, 1.5, 0.3], [6.0, 2.5, 5.0, 1.6]]).ravel())\n"
        "assert 'numba' not in sys.modules"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    expected = fitted.predict_proba([[5.0, 3.0, 1.5, 0.3], [6.0, 2.5, 5.0, 1.6]])
    np.testing.assert_allclose(np.array(told.stdout.split(), float), expected.ravel(), rtol=1e-12)


def test_more_than_256_cells_need_wider_codes() -> None:
    """A category of 300 values, and the code of unknown after 256 cells."""
    values = [f"c{n % 300}" for n in range(900)]
    table = as_table([[v] for v in values], kinds={"x0": "categorical"})
    cells, data = learn_cells(LabelledTable.of(table, np.arange(900) % 2), np.arange(2))
    model = random_model(Design(cells, ()), data)
    values = functions(model.design, data.by_column[1:])
    expected = values @ model.parameters[0] + model.log_shares
    np.testing.assert_allclose(model.scores(data.codes[:, 1:])[:, 1], expected)
    assert cells.compact(np.array([[-1]])).dtype == np.uint16


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_gradient_by_differences(n_classes: int) -> None:
    """Along random directions."""
    design, data = designed(mixed_rows(80, n_classes))
    model = random_model(design, data)
    gradient = model.evaluate(data)[1]
    rng = np.random.default_rng(2)
    for _ in range(5):
        step = rng.normal(size=model.parameters.shape) * 1e-5
        up, down = (
            replace(model, parameters=model.parameters + sign * step).evaluate(data)[0]
            for sign in (1.0, -1.0)
        )
        assert (up - down) / 2.0 == pytest.approx(float(np.vdot(gradient, step)), rel=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "precisions", [SOME, Precisions(0.01, 0.03, 0.1), Precisions(1, 3, math.inf)]
)
def test_the_gap_is_certified_and_true(n_classes: int, precisions: Precisions) -> None:
    """A solve of the definition by scipy ends no lower than J minus the gap."""
    design, data = designed(mixed_rows(150, n_classes))
    model = Trainer(design, data).fit(precisions, certify=True)
    assert model.gap <= CERTIFIED
    assert model.design.pairs == (() if math.isinf(precisions.family) else design.pairs)
    values = functions(model.design, data.by_column[1:])
    shape = model.parameters.shape

    def defined(flat: np.ndarray) -> tuple[float, np.ndarray]:
        scores = values @ flat.reshape(shape).T + model.log_shares
        if n_classes == 2:
            scores = np.column_stack([np.zeros(len(scores)), scores])
        posterior = softmax(scores, axis=1)
        own = posterior[np.arange(len(scores)), data.codes[:, 0]]
        posterior[np.arange(len(scores)), data.codes[:, 0]] -= 1.0
        pull = model.precision * flat.reshape(shape)
        value = -np.log(own).sum() + 0.5 * (pull * flat.reshape(shape)).sum()
        return value, (posterior[:, -shape[0] :].T @ values + pull).ravel()

    best = minimize(
        defined,
        np.zeros(model.parameters.size),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-15, "gtol": 1e-8},
    )
    assert best.fun <= model.objective * (1 + 1e-9)
    assert best.fun >= model.objective * (1 - model.gap) - 1e-9


def test_the_bound_holds_far_from_the_minimum() -> None:
    """At random parameters J exceeds its minimum by no more than the bound."""
    design, data = designed(mixed_rows(100))
    least = Trainer(design, data).fit(SOME, certify=True)
    for seed in range(5):
        model = random_model(design, data, seed)
        value, gradient = model.evaluate(data)
        gap = model.bound_gap(value, gradient)
        assert least.objective * (1 - least.gap) >= value * (1 - gap)
        assert gap > 1e-3


def test_the_gap_is_recomputed_from_the_rows() -> None:
    design, data = designed(mixed_rows(200, 3))
    model = Trainer(design, data).fit(SOME, certify=True)
    value, gradient = model.evaluate(data)
    assert value == pytest.approx(model.objective, rel=1e-9)
    assert model.bound_gap(value, gradient) == pytest.approx(model.gap, rel=1e-9)
    fewer = EncodedData(data.codes[:-1], data.weights[:-1], data.variables)
    assert model.bound_gap(*model.evaluate(fewer)) > CERTIFIED


def test_weights_count_as_repetitions() -> None:
    """A row of weight three trains as three rows do."""
    rows = mixed_rows(120)
    repeats = np.random.default_rng(4).integers(1, 4, 120)
    weighted = LabelledTable.of(rows.features, rows.labels, weights=repeats.astype(float))
    repeated = rows.take(np.repeat(np.arange(120), repeats))
    models = []
    for given in (weighted, repeated):
        cells, data = learn_cells(given, np.arange(2))
        models.append(train_class_model(cells, CHAIN, data, SOME))
    assert models[0].objective == pytest.approx(models[1].objective, rel=3e-6)
    codes = models[0].design.cells.coding.encode(rows.features)
    np.testing.assert_allclose(models[0].scores(codes), models[1].scores(codes), atol=0.02)


def test_training_is_deterministic() -> None:
    design, data = designed(mixed_rows(300, 3))
    first, second = (Trainer(design, data).fit(SOME, certify=True) for _ in range(2))
    np.testing.assert_array_equal(first.parameters, second.parameters)


def test_where_a_fit_starts_does_not_matter() -> None:
    """Warm and cold fits agree to their gaps."""
    design, data = designed(mixed_rows(300, 3))
    warm = Trainer(design, data)
    for precisions in (Precisions(1, 3, math.inf), Precisions(1, 1, 10), Precisions(0.1, 1, 1)):
        warm.fit(precisions)
    cold = Trainer(design, data)
    objectives = [t.fit(SOME, certify=True).objective for t in (warm, cold)]
    assert objectives[0] == pytest.approx(objectives[1], rel=CERTIFIED)


def test_more_parameters_than_rows() -> None:
    rng = np.random.default_rng(5)
    table = as_table(rng.normal(size=(40, 12)))
    rows = LabelledTable.of(table, rng.integers(0, 3, 40))
    cells, data = learn_cells(rows, np.arange(3))
    design = Design(cells, tuple((i, i + 1) for i in range(11)))
    assert design.n_parameters > 20 * 40
    assert Trainer(design, data).fit(SOME, certify=True).gap <= CERTIFIED


@pytest.mark.parametrize(("name", "value"), [("ROWS", 100), ("VALUES", 600)])
def test_curvature_from_some_of_the_rows_serves_as_well(
    name: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It only preconditions: the minimum is the same."""
    design, data = designed(mixed_rows(600))
    whole = Trainer(design, data).fit(SOME, certify=True)
    monkeypatch.setattr(trainer, f"CURVATURE_{name}", value)
    monkeypatch.setattr(trainer, "MOST_JOINT", 10)
    sampled = Trainer(design, data).fit(SOME, certify=True)
    assert sampled.objective == pytest.approx(whole.objective, rel=CERTIFIED)


def test_an_emergency_limit_ends_a_fit_with_the_gap_that_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Three looks at the time, none of them before the least number of steps."""
    monkeypatch.setattr(trainer, "LEAST_STEPS", 2)
    design, data = designed(mixed_rows(300))
    looks = iter([False] * 3 + [True] * 1000)
    model = Trainer(design, data).fit(SOME, certify=True, is_late=lambda: next(looks))
    assert CERTIFIED < model.gap < math.inf
    assert model.bound_gap(*model.evaluate(data)) == pytest.approx(model.gap)
    late = Trainer(design, data).fit(SOME, certify=True, is_late=lambda: True)
    assert late.parameters.any()
    assert late.gap > model.gap


def test_rows_of_one_class() -> None:
    """Certain of it, with nothing to train; a class that no row has is possible."""
    rows = mixed_rows(50)
    rows = LabelledTable.of(rows.features, np.zeros(50, dtype=int))
    cells, data = learn_cells(rows, np.arange(1))
    model = train_class_model(cells, CHAIN, data, SOME)
    np.testing.assert_array_equal(softmax(model.scores(data.codes[:, 1:]), axis=1), 1.0)
    assert model.gap == 0.0
    cells, data = learn_cells(rows, np.arange(3))
    model = train_class_model(cells, CHAIN, data, SOME)
    assert (softmax(model.scores(data.codes[:, 1:]), axis=1)[:, 0] > 0.9).all()


def test_a_table_without_features() -> None:
    """The class shares, half a row added to each."""
    rows = LabelledTable.of(as_table([["a"]] * 9, kinds={"x0": "categorical"}), np.arange(9) // 6)
    cells, data = learn_cells(rows, np.arange(2))
    assert family_pairs(CHAIN)
    model = Trainer(Design(cells, ()), data).fit(SOME, certify=True)
    posterior = softmax(model.scores(np.array([[0], [-1]])), axis=1)
    np.testing.assert_allclose(posterior, [[2 / 3, 1 / 3]] * 2, atol=1e-3)
