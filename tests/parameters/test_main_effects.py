"""Main effects against another package, and what follows from them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from marginbn.data.encode import EncodedData
from marginbn.parameters.main_effects import fit_main_effects
from problems import random_table


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_posteriors_are_those_of_scikit_learn(n_classes: int, weighted: bool) -> None:
    """The gradient of the penalised loss vanishes, and a large ridge-less fit agrees."""
    rng = np.random.default_rng(n_classes)
    data = random_table(rng, 300, 4, n_classes, weighted).encoded()
    own = fit_main_effects(data, penalty=1e-3).posterior
    states = np.hstack([np.eye(int(a))[c] for a, c in zip(data.arities, data.codes.T, strict=True)])
    other = LogisticRegression(C=1e3, fit_intercept=False, tol=1e-10, max_iter=5000)
    other.fit(
        np.column_stack([np.ones(300), states[:, n_classes:]]), data.codes[:, 0], data.weights
    )
    theirs = other.predict_proba(np.column_stack([np.ones(300), states[:, n_classes:]]))
    np.testing.assert_allclose(own, theirs, atol=2e-3)


def test_residuals_balance_in_every_state() -> None:
    """At the optimum the residuals of a state add up to penalty times its parameter, about 0."""
    data = random_table(np.random.default_rng(0), 400, 3, 3).encoded()
    effects = fit_main_effects(data, penalty=1e-6)
    for i in range(1, 4):
        for state in range(int(data.arities[i])):
            rows = data.codes[:, i] == state
            assert np.abs(effects.residuals[rows].sum(axis=0)).max() < 0.01
    np.testing.assert_allclose(effects.residuals.sum(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(
        effects.curvatures, np.abs(effects.residuals) * (1 - np.abs(effects.residuals))
    )


def test_a_weight_is_a_number_of_rows() -> None:
    """Twice the row or twice the weight."""
    data = random_table(np.random.default_rng(1), 60, 3, 2).encoded()
    twice = EncodedData(np.tile(data.codes, (2, 1)), np.ones(120), data.variables)
    double = EncodedData(data.codes, 2 * data.weights, data.variables)
    np.testing.assert_allclose(
        fit_main_effects(twice).posterior[:60], fit_main_effects(double).posterior, atol=1e-5
    )
