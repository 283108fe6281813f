"""parameters= and bins= of every network classifier."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics import log_loss
from sklearn.utils.estimator_checks import parametrize_with_checks

from marginbn import (
    BNClassifier,
    GenerativeBNClassifier,
    InputError,
    MaxMarginBNClassifier,
    MaxMarginBNClassifierCV,
    NaiveBayesClassifier,
    TANClassifier,
)
from trained import fitted, with_gaps

SMALL_GRID = MaxMarginBNClassifierCV(
    gammas=(0.5,), max_parents=(1,), inner_time_limit=None, time_limit=None
)
NETWORKS = [
    NaiveBayesClassifier(),
    TANClassifier(),
    GenerativeBNClassifier(time_limit=None),
    MaxMarginBNClassifier(time_limit=None),
    SMALL_GRID,
]
every_network = pytest.mark.parametrize("classifier", NETWORKS, ids=lambda c: type(c).__name__)


def trained(classifier: Any, **settings: Any) -> Any:
    """The classifier with trained parameters."""
    return clone(classifier).set_params(parameters="conditional", **settings)


def validated_on_other_rows(estimator: object) -> dict[str, str]:
    """A repeated row can be in two folds, a row of weight two cannot: then the ridge differs."""
    reason = validated_on_other_rows.__doc__ or ""
    return {"check_sample_weight_equivalence_on_dense_data": reason}


@parametrize_with_checks(
    [BNClassifier(bins="mdlp", structures=["naive"])],
    expected_failed_checks=validated_on_other_rows,
)
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    """All but the one whose reason is given."""
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        BNClassifier(),
        BNClassifier(bins="mdlp"),
        trained(NaiveBayesClassifier()),
        BNClassifier(average=True, structures=["naive", "forest"]),
        BNClassifier(parameters="margin", bins="mdlp"),
        *(trained(classifier, bins="ordinal") for classifier in NETWORKS),
        MaxMarginBNClassifier(parameters="margin", time_limit=None),
    ],
    expected_failed_checks=validated_on_other_rows,
)
def test_more_scikit_learn_checks(estimator: Any, check: Any) -> None:
    """Of every classifier with trained parameters."""
    check(estimator)


@pytest.fixture(scope="module")
def iris() -> tuple[np.ndarray, np.ndarray]:
    """Four numbers, three classes; every third row."""
    X, y = load_iris(return_X_y=True)
    return X[::3], y[::3]


@every_network
def test_they_predict_and_explain(classifier: Any, iris: tuple[np.ndarray, np.ndarray]) -> None:
    """Well; contributions add up to the log margin of the network on complete rows."""
    X, y = iris
    clf = trained(classifier, bins="ordinal").fit(X, y)
    assert clf.score(X, y) > 0.93
    assert clf.training_[0]["model"] == "main effects, lines"
    log_joint = clf.network_.log_joint_per_class(
        np.column_stack([np.zeros(len(X), int), clf.coding_.encode(clf._read_features(X))])
    )
    ordered = np.sort(log_joint, axis=1)
    margins = ordered[:, -1] - ordered[:, -2]
    for explanation, margin in zip(clf.explain(X), margins, strict=True):
        total = sum(part.value for part in explanation.contributions)
        assert total == pytest.approx(margin, abs=1e-9)


@every_network
def test_the_structure_stays(classifier: Any, iris: tuple[np.ndarray, np.ndarray]) -> None:
    """What is searched, its bound and its status are those of counted parameters."""
    counted = clone(classifier).fit(*iris)
    clf = trained(classifier).fit(*iris)
    assert clf.structure_ == counted.structure_
    assert (clf.objective_, clf.bound_) == (counted.objective_, counted.bound_)
    assert set(clf.structure_.arcs) <= set(clf.network_.structure.arcs)


def test_training_pays_where_naive_bayes_is_wrong() -> None:
    """A feature given ten times counts once."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    one = np.where(rng.random(300) < 0.7, y, 1 - y)
    other = np.where(rng.random(300) < 0.7, y, 1 - y)
    X = np.column_stack([*[one] * 10, other]).astype(str)
    losses = [
        log_loss(y, NaiveBayesClassifier(parameters=p).fit(X, y).predict_proba(X))
        for p in ("smoothed", "conditional", "margin")
    ]
    assert losses[1] < 0.6 * losses[0]
    assert losses[2] < 0.6 * losses[0]


def test_the_posterior_is_that_of_the_network_and_the_background(
    iris: tuple[np.ndarray, np.ndarray],
) -> None:
    """Complete rows; the network alone is what files and reports have."""
    X, y = iris
    clf = trained(TANClassifier()).fit(X, y)
    codes = clf.coding_.encode(clf._read_features(X))
    posterior = [
        clf.network_.posterior_array("class", dict(zip(clf.network_.names[1:], row, strict=True)))
        for row in (
            [v.states[c] for v, c in zip(clf.network_.variables[1:], row, strict=True)]
            for row in codes[:5]
        )
    ]
    shares = np.bincount(y) + 0.5
    expected = (1 - 1 / 51) * np.array(posterior) + shares / shares.sum() / 51
    np.testing.assert_allclose(clf.predict_proba(X[:5]), expected, atol=1e-10)


@pytest.mark.filterwarnings("ignore:categories never seen:marginbn.DataWarning")
@every_network
def test_frames_texts_and_missing_values(classifier: Any) -> None:
    """pandas and polars agree; missing and unseen values are answered."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=90), "b": rng.choice(["x", "y", "z"], 90)})
    y = np.where(frame.a + (frame.b == "x") > 0.3, "yes", "no")
    clf = trained(classifier).fit(frame, y)
    other = trained(classifier).fit(pl.from_pandas(frame), y)
    np.testing.assert_array_equal(
        clf.predict_proba(frame), other.predict_proba(pl.from_pandas(frame))
    )
    strange = pd.DataFrame({"a": [np.nan, 0.1, None], "b": ["x", "never", None]})
    proba = clf.predict_proba(strange)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert set(clf.predict(strange)) <= {"yes", "no"}
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.predict_proba(strange), proba)


@pytest.mark.parametrize("n_classes", [1, 2, 5])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 12])
def test_few_rows(n: int, n_classes: int) -> None:
    """Any number of rows and classes gives probabilities."""
    rng = np.random.default_rng(n)
    X, y = rng.normal(size=(n, 2)), np.arange(n) % n_classes
    clf = TANClassifier(parameters="conditional", bins="ordinal").fit(X, y)
    assert np.isfinite(clf.predict_log_proba(X)).all()


def test_a_second_fit_forgets_the_first(iris: tuple[np.ndarray, np.ndarray]) -> None:
    """Counted after trained: nothing of the training is left."""
    clf = trained(NaiveBayesClassifier()).fit(*iris)
    clf.set_params(parameters="smoothed").fit(*iris)
    assert not any(hasattr(clf, name) for name in ("trained_", "weights_", "training_"))
    plain = NaiveBayesClassifier().fit(*iris)
    np.testing.assert_array_equal(clf.predict_proba(iris[0]), plain.predict_proba(iris[0]))


def test_weights_move_the_posterior() -> None:
    """Features that tell nothing: the posterior is the share of the weight."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (200, 2)).astype(str), np.arange(200) % 2
    clf = trained(NaiveBayesClassifier()).fit(X, y, np.where(y == 1, 9.0, 1.0))
    np.testing.assert_allclose(clf.predict_proba(X)[:, 1], 0.9, atol=0.02)


@every_network
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"parameters": "best"}, "parameters must be 'smoothed', 'conditional' or 'margin'"),
        ({"bins": "fine", "parameters": "conditional"}, "bins must be 'mdlp' or 'ordinal'"),
        ({"bins": "ordinal", "parameters": "smoothed"}, "bins='ordinal' needs trained parameters"),
    ],
)
def test_wrong_settings_are_named(
    classifier: Any, settings: dict[str, str], message: str, iris: tuple[np.ndarray, np.ndarray]
) -> None:
    """With what they may be."""
    with pytest.raises(InputError, match=message):
        clone(classifier).set_params(**settings).fit(*iris)


def test_an_explanation_is_about_the_class_that_is_predicted() -> None:
    """With features missing the answer is not the network's alone, which is then said."""
    classifier, X = fitted("average"), with_gaps()
    explanations, answers = classifier.explain(X), classifier.predict_proba(X)
    frame = explanations.to_frame(as_frame=False)
    assert frame["predicted"] == classifier.predict(X).tolist()
    np.testing.assert_allclose(frame["probability"], answers.max(axis=1), rtol=1e-12)
    assert [e.probability for e in explanations] == pytest.approx(frame["probability"])
    differences = [abs(e.probability - e.network_probability) for e in explanations]
    notes = ["of the network alone" in str(e) for e in explanations]
    assert notes == [difference > 0.005 for difference in differences]
    assert any(notes)
    assert not all(notes)
