"""smoothing="auto": the value of smallest validated log loss."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import log_loss

from marginbn import (
    GenerativeBNClassifier,
    InputError,
    MaxMarginBNClassifier,
    MaxMarginBNClassifierCV,
    NaiveBayesClassifier,
    TANClassifier,
    describe,
    load_model,
    save_model,
)
from marginbn.classifiers.smoothing import SMOOTHINGS
from marginbn.data.labelled import validation_splits

GENERATIVE = [
    NaiveBayesClassifier(),
    TANClassifier(),
    GenerativeBNClassifier(solver="dp", time_limit=None),
]


def rows(n: int = 120) -> tuple[np.ndarray, np.ndarray]:
    """Four features of three states that know a little about three classes."""
    rng = np.random.default_rng(5)
    y = rng.integers(3, size=n)
    X = np.where(rng.random((n, 4)) < 0.5, y[:, None], rng.integers(3, size=(n, 4)))
    return X.astype(str), np.array(["a", "b", "c"])[y]


@pytest.mark.parametrize("classifier", GENERATIVE, ids=lambda c: type(c).__name__)
def test_the_choice_is_that_of_a_grid_search(classifier: Any) -> None:
    """Fitting every value on every split with fixed smoothing gives the same winner."""
    X, y = rows()
    losses = np.zeros(len(SMOOTHINGS))
    for train, test in validation_splits(y, seed=0):
        for i, smoothing in enumerate(SMOOTHINGS):
            clf = classifier.set_params(smoothing=smoothing).fit(X[train], y[train])
            losses[i] += len(test) * log_loss(y[test], clf.predict_proba(X[test]))
    auto = classifier.set_params(smoothing="auto").fit(X, y)
    assert auto.smoothing_ == SMOOTHINGS[losses.argmin()]
    fixed = type(classifier)(**auto.get_params() | {"smoothing": auto.smoothing_}).fit(X, y)
    np.testing.assert_array_equal(auto.predict_proba(X), fixed.predict_proba(X))
    assert fixed.smoothing_ == auto.smoothing_


def test_weights_count() -> None:
    """Rows of noise that weigh next to nothing do not ask for more smoothing."""
    X, y = rows()
    noise = np.random.default_rng(0).permutation(y)
    doubled, labels = np.vstack([X, X]), np.concatenate([y, noise])
    weights = np.repeat([1.0, 1e-6], len(y))
    light = NaiveBayesClassifier(smoothing="auto").fit(doubled, labels, weights)
    heavy = NaiveBayesClassifier(smoothing="auto").fit(doubled, labels)
    assert light.smoothing_ < heavy.smoothing_


def test_the_report_and_the_file_say_which(tmp_path: Path) -> None:
    """After loading too."""
    X, y = rows()
    clf = TANClassifier(smoothing="auto").fit(X, y)
    save_model(clf, tmp_path / "m.json")
    for known in (clf, load_model(tmp_path / "m.json")):
        assert known.smoothing_ == clf.smoothing_
        assert f"smoothing   {clf.smoothing_:g}, chosen by validated log loss" in describe(known)


def test_validation_writes_no_files(tmp_path: Path) -> None:
    """The searches on the splits leave checkpoint, certificate and callback alone."""
    X, y = rows()
    points: list[Any] = []
    clf = GenerativeBNClassifier(
        smoothing="auto",
        max_parents=1,
        certificate=tmp_path / "proof.cert",
        checkpoint=tmp_path / "search.ckpt",
        callback=points.append,
        time_limit=None,
    ).fit(X, y)
    assert clf.evidence_.certificate_sha256 is not None
    assert {point.objective for point in points} <= {point.objective for point in clf.trace_}


@pytest.mark.parametrize("smoothing", ["automatic", 0, -1.0, None, True])
def test_wrong_values_are_refused(smoothing: object) -> None:
    """The message names both possibilities."""
    with pytest.raises(InputError, match="smoothing must be a positive number or 'auto', got"):
        NaiveBayesClassifier(smoothing=smoothing).fit(*rows())


@pytest.mark.parametrize("cls", [MaxMarginBNClassifier, MaxMarginBNClassifierCV])
def test_the_margin_has_its_smoothing(cls: Any) -> None:
    """There it decides which structure is optimal, so it is part of the problem."""
    with pytest.raises(InputError, match="smoothing must be a positive number, got 'auto'"):
        cls(smoothing="auto").fit(*rows())
