"""Classifiers over the family in which the class is a parent of every feature."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from marginbn import (
    InputError,
    MaxMarginBNClassifier,
    MaxMarginBNClassifierCV,
    load_model,
    save_model,
    verify_certificate,
)
from marginbn.classifiers.claims import statement_of


def table() -> tuple[pd.DataFrame, np.ndarray]:
    """Two features that follow the class, one of noise, one with a single value."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 120)
    noisy = [np.where(rng.random(120) < 0.4, rng.integers(0, 3, 120), y) for _ in range(2)]
    columns = {"a": noisy[0], "b": noisy[1], "c": rng.integers(0, 2, 120), "d": np.zeros(120)}
    return pd.DataFrame(columns).astype(int).astype(str), y


@pytest.mark.parametrize(
    "classifier",
    [
        MaxMarginBNClassifier(class_arcs="all"),
        MaxMarginBNClassifier(class_arcs="all", margin="binary"),
        MaxMarginBNClassifierCV(class_arcs="all", gammas=[1.0, 2.0], cv=3),
    ],
    ids=["soft", "binary", "cv"],
)
def test_every_feature_has_the_class(classifier: Any, tmp_path: Path) -> None:
    """But those with one value; the certificate, the statement and the file say so."""
    X, y = table()
    path = tmp_path / "proof.cert"
    fitted = classifier.set_params(certificate=path).fit(X, y)
    assert fitted.status_ == "optimal"
    parents = dict(zip(fitted.network_.names, fitted.structure_.parents, strict=True))
    assert parents.pop("class") == ()
    assert parents.pop("d", ()) == ()
    assert all(0 in own for own in parents.values())
    verdict = verify_certificate(path, expect=statement_of(fitted))
    assert verdict, verdict.reason
    save_model(fitted, tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert loaded.class_arcs == "all"
    assert statement_of(loaded).class_arcs == "all"


def test_shares_of_the_rows() -> None:
    """P(class | one value) of the network is the share of the rows, but for smoothing."""
    X, y = table()
    clf = MaxMarginBNClassifier(class_arcs="all", smoothing=1e-9).fit(X, y)
    answer = clf.network_.posterior("class", {"b": "1"})
    shares = np.bincount(y[X["b"] == "1"], minlength=3) / (X["b"] == "1").sum()
    np.testing.assert_allclose([answer[str(c)] for c in range(3)], shares, atol=1e-6)


def test_other_words_are_refused() -> None:
    X, y = table()
    with pytest.raises(InputError, match="class_arcs"):
        MaxMarginBNClassifier(class_arcs="some").fit(X, y)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="max_parents must be at least 1 with class_arcs='all'"):
        MaxMarginBNClassifier(class_arcs="all", max_parents=0).fit(X, y)
