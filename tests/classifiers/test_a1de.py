"""A1DE against the formula written as loops over rows, classes and features."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from marginbn import A1DEClassifier, NaiveBayesClassifier, describe

IntArray = NDArray[np.int64]


def posterior_by_loops(
    X: IntArray, y: IntArray, weights: NDArray[np.float64], row: IntArray, smoothing: float
) -> NDArray[np.float64]:
    """sum_i P(c) P(x_i | c) prod_j P(x_j | c, x_i) over known i and j; -1 is missing."""
    arities = X.max(axis=0) + 1
    known = [i for i in range(X.shape[1]) if row[i] >= 0 and arities[i] > 1]
    total = np.zeros(y.max() + 1)
    for c in range(len(total)):
        in_class = weights[y == c].sum()
        prior = (in_class + smoothing) / (weights.sum() + smoothing * len(total))
        for i in known:
            with_i = weights[(y == c) & (X[:, i] == row[i])].sum()
            term = prior * (with_i + smoothing) / (in_class + smoothing * arities[i])
            for j in known:
                if j != i:
                    both = (y == c) & (X[:, i] == row[i]) & (X[:, j] == row[j])
                    term *= (weights[both].sum() + smoothing) / (with_i + smoothing * arities[j])
            total[c] += term
        if not known:
            total[c] = prior
    return total / total.sum()


@pytest.mark.parametrize("smoothing", [1.0, 0.2])
def test_equals_the_formula(smoothing: float) -> None:
    """Weights, missing features, a constant feature, and a row that knows nothing."""
    rng = np.random.default_rng(1)
    y = rng.integers(3, size=60)
    X = (rng.integers(4, size=(60, 4)) + y[:, None]) % [2, 3, 4, 1]
    weights = rng.random(60) + 0.5
    clf = A1DEClassifier(smoothing=smoothing, column_kinds="categorical").fit(X, y, weights)
    rows = np.array([[0, 1, 2, 0], [1, -1, 3, 0], [-1, 2, -1, -1], [-1, -1, -1, -1]])
    given = np.where(rows < 0, np.nan, rows)
    expected = [posterior_by_loops(X, y, weights, row, smoothing) for row in rows]
    np.testing.assert_allclose(clf.predict_proba(given), expected, rtol=1e-10)
    assert len(clf.networks_) == 3


@pytest.mark.filterwarnings("ignore:categories never seen")
def test_one_feature_is_naive_bayes() -> None:
    """With nobody to be a parent of, P(c) P(x | c) is all there is."""
    X, y = [["r"], ["r"], ["b"], ["g"]], ["u", "u", "v", "v"]
    ours, theirs = A1DEClassifier().fit(X, y), NaiveBayesClassifier().fit(X, y)
    rows = [["r"], ["b"], [None], ["never seen"]]
    np.testing.assert_allclose(ours.predict_proba(rows), theirs.predict_proba(rows), rtol=1e-12)


def test_constant_features_leave_the_class_shares() -> None:
    """Nothing to learn from: the smoothed shares of the classes."""
    clf = A1DEClassifier().fit([["r"], ["r"], ["r"]], ["u", "u", "v"])
    np.testing.assert_allclose(clf.predict_proba([["r"], [None]]), [[0.6, 0.4]] * 2, rtol=1e-12)


def test_it_sees_what_naive_bayes_cannot() -> None:
    """The class is the parity of two features."""
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(400, 3))
    y = X[:, 0] ^ X[:, 1]
    assert A1DEClassifier().fit(X, y).score(X, y) == 1.0
    assert NaiveBayesClassifier().fit(X, y).score(X, y) < 0.7


def test_the_network_to_read_is_the_likeliest_member() -> None:
    """Its objective is the log likelihood, as for every structure that is not searched for."""
    rng = np.random.default_rng(3)
    y = rng.integers(2, size=200)
    hub = rng.integers(3, size=200)
    X = np.column_stack([(hub + rng.integers(2, size=200)) % 3, hub, (hub + y) % 3])
    clf = A1DEClassifier().fit(X, y)
    assert clf.network_ in clf.networks_
    assert clf.structure_.parents == ((), (0, 2), (0,), (0, 2))
    assert "the average of 3 networks" in " ".join(describe(clf).split())


def test_its_networks_are_counted() -> None:
    """Trained parameters belong to one structure, so there is no such argument here."""
    with pytest.raises(TypeError, match="parameters"):
        A1DEClassifier(parameters="conditional")  # type: ignore[call-arg]
