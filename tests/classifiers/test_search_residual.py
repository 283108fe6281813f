"""Classifiers with score="residual": fit, file, proof."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from marginbn import GenerativeBNClassifier, load_model, save_model, verify_model
from marginbn.cli import app
from marginbn.data.ordinal import OrdinalData
from marginbn.exceptions import InputError
from marginbn.parameters.trained import main_posterior
from marginbn.problem.encoded import EncodedData
from marginbn.problem.interactions import residual_forest


def exclusive_or(n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Two bits that say nothing alone, and one that is noise."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (n, 3))
    y = X[:, 0] ^ X[:, 1] ^ (rng.random(n) < 0.1)
    return np.where(X == 1, "on", "off").astype(object), y


def test_it_finds_the_pair_that_generative_scores_do_not_need() -> None:
    """Optimal, with every feature under the class; the objective is that of the best forest."""
    X, y = exclusive_or()
    fitted = GenerativeBNClassifier(score="residual").fit(X, y)
    assert fitted.status_ == "optimal"
    assert fitted.score(X, y) > 0.85
    assert all(0 in parents for parents in fitted.structure_.parents[1:])
    assert {(1, 2), (2, 1)} & set(fitted.structure_.arcs)
    assert 3 not in {p for p, _ in fitted.structure_.arcs}


def test_the_objective_is_that_of_the_best_forest() -> None:
    """The same numbers by hand: main effects, residuals, forest."""
    X, y = exclusive_or()
    fitted = GenerativeBNClassifier(score="residual").fit(X, y)
    codes = np.column_stack([y, fitted.coding_.encode(fitted._read_features(X))])
    data = EncodedData(codes, np.ones(len(y)), fitted.network_.variables)
    posterior = main_posterior(OrdinalData.plain(data))
    residuals = np.eye(2)[y] - posterior
    forest = residual_forest(data, residuals, posterior * (1 - posterior))
    assert fitted.objective_ == pytest.approx(forest.gain)


def test_model_and_certificate_belong_together(tmp_path: Path) -> None:
    """Saved, read and verified; arcs of the user are part of the statement."""
    X, y = exclusive_or()
    options = {"required_arcs": [("x0", "x2")], "forbidden_arcs": [("x1", "class"), ("x2", "x1")]}
    fitted = GenerativeBNClassifier(score="residual", certificate=tmp_path / "proof", **options)
    fitted.fit(X, y)
    save_model(fitted, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    verdict = verify_model(loaded, tmp_path / "proof")
    assert verdict, verdict.reason
    other = GenerativeBNClassifier(score="residual").fit(X, y)
    assert not verify_model(other, tmp_path / "proof")


def test_three_parents() -> None:
    """The class and two features."""
    X, y = exclusive_or()
    fitted = GenerativeBNClassifier(score="residual", max_parents=3).fit(X, y)
    assert fitted.status_ == "optimal"


def test_what_makes_no_sense_is_refused() -> None:
    """With the name of the argument."""
    X, y = exclusive_or(20)
    with pytest.raises(InputError, match="class_restricted must be True"):
        GenerativeBNClassifier(score="residual", class_restricted=False).fit(X, y)
    with pytest.raises(InputError, match="max_parents must be at least 1"):
        GenerativeBNClassifier(score="residual", max_parents=0).fit(X, y)


def test_one_class_is_no_error() -> None:
    """Nothing is left unexplained, so nothing is gained."""
    X, _ = exclusive_or(20)
    fitted = GenerativeBNClassifier(score="residual").fit(X, np.zeros(20, int))
    assert fitted.objective_ == 0.0


def test_the_command_line_fits_and_verifies(tmp_path: Path) -> None:
    """marginbn fit --score residual, verify --strict with the table."""
    run = CliRunner().invoke
    proof, model = str(tmp_path / "proof"), str(tmp_path / "model")
    fit = ["fit", "monks-1", "--method", "generative", "--score", "residual", "--holdout", "0"]
    done = run(app, [*fit, "--output", model, "--certificate", proof])
    assert done.exit_code == 0, done.output
    check = ["verify", proof, "--data", "monks-1", "--holdout", "0"]
    done = run(app, [*check, "--model", model, "--score", "residual", "--strict"])
    assert done.exit_code == 0, done.output
    assert "residual score, ridge 3, price 0.5, relative to given residuals" in done.output
