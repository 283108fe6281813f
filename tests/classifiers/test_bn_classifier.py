"""BNClassifier: the candidates, the choice among them, and what users do to it."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from joblib import parallel_config
from scipy.special import softmax
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics import accuracy_score, log_loss

from marginbn import (
    BNClassifier,
    InputError,
    OptimalityWarning,
    as_table,
    describe,
    load_model,
    save_model,
)
from marginbn.classifiers import bn_classifier
from marginbn.classifiers.bn_classifier import (
    STRUCTURES,
    accuracy_of,
    calibration_error,
    standard_error,
)
from marginbn.data.labelled import LabelledTable
from marginbn.parameters.pooling import Judges

QUICK: dict[str, Any] = {"bins": "mdlp"}
"""Few parameters, one profile: for everything that has nothing to do with fine bins."""


def exclusive_or(n: int = 120, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The class is whether two numbers have the same sign; a third is noise."""
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return X, np.where(X[:, 0] * X[:, 1] > 0, "same", "other")


def exclusive_or_of_texts(n: int = 100, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two of three features, with some noise."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n, 3))
    return X.astype(str), X[:, 0] ^ X[:, 1] ^ (rng.random(n) < 0.1)


@pytest.fixture(scope="module")
def iris() -> tuple[np.ndarray, np.ndarray]:
    """Every third row."""
    X, y = load_iris(return_X_y=True)
    return X[::3], y[::3]


@pytest.fixture(scope="module")
def fitted() -> BNClassifier:
    """On the exclusive or, with candidates in any order."""
    return BNClassifier(structures=["2-tree", "naive", "forest"]).fit(*exclusive_or())


def test_it_finds_what_no_feature_tells_alone(fitted: BNClassifier) -> None:
    """The pair of numbers, although neither has an entropy cut."""
    X, y = exclusive_or(500, seed=1)
    assert fitted.score(X, y) > 0.85
    assert fitted.chosen_ in ("forest", "2-tree")
    pairs = {frozenset(arc) for arc in fitted.structure_.arcs if 0 not in arc}
    assert frozenset({1, 2}) in pairs
    naive = BNClassifier(structures=["naive"]).fit(*exclusive_or())
    assert naive.score(X, y) < 0.7


def test_results_are_listed_from_simple_to_complex(fitted: BNClassifier) -> None:
    """One row per candidate; the chosen one is within half a standard error of the best."""
    results = fitted.cv_results_
    assert results["structure"].tolist() == ["naive", "forest", "2-tree"]
    assert {len(values) for values in results.values()} == {3}
    loss, error = results["log_loss"], results["standard_error"]
    allowed = np.flatnonzero(loss - loss.min() <= 0.5 * error)
    assert fitted.chosen_ == results["structure"][allowed[0]]
    assert (results["calibration_error"] >= 0).all()
    assert results["accuracy"].max() > 0.8


def test_the_network_is_one_and_says_what_was_pooled(fitted: BNClassifier) -> None:
    """Weights of the models, and a bound on the gain of any tree."""
    assert len(fitted.trained_) == 1
    assert fitted.weights_.tolist() == [1.0]
    names = {entry["model"].split(",")[0] for entry in fitted.training_}
    assert names == {"naive", fitted.chosen_}
    assert fitted.structure_ == fitted.network_.structure
    assert 0 < fitted.objective_ <= fitted.bound_
    assert fitted.status_ == ("optimal" if fitted.gap_ <= 1e-6 else "heuristic")


def test_explanations_add_up(fitted: BNClassifier) -> None:
    """To the log margin of the network."""
    X, _ = exclusive_or(50, seed=2)
    for explanation in fitted.explain(X):
        total = sum(part.value for part in explanation.contributions)
        assert total == pytest.approx(explanation.log_margin, abs=1e-9)
        assert total >= 0


@pytest.mark.parametrize("structure", STRUCTURES)
def test_every_structure_alone(
    structure: str, iris: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list of one is no choice; probabilities are those of network and background."""
    monkeypatch.setattr(bn_classifier, "MARGIN_SECONDS", 0.5)
    X, y = iris
    clf = BNClassifier(structures=[structure], **QUICK).fit(X, y)
    assert clf.chosen_ == structure
    assert clf.cv_results_["structure"].tolist() == [structure]
    codes = np.column_stack([np.zeros(50, int), clf.coding_.encode(clf._read_features(X))])
    posterior = softmax(clf.network_.log_joint_per_class(codes), axis=1)
    shares = np.bincount(y) + 0.5
    expected = (1 - 1 / 51) * posterior + shares / shares.sum() / 51
    np.testing.assert_allclose(clf.predict_proba(X), expected, atol=1e-10)


def test_interactions_without_weight_leave_a_naive_network() -> None:
    """Then the gain of the tree that was sought is not that of the network."""
    X, y = load_iris(return_X_y=True)
    clf = BNClassifier(structures=["forest"], **QUICK).fit(X, y)
    assert clf.chosen_ == "forest"
    assert clf.training_[1]["weight"] == 0
    assert all(0 in arc for arc in clf.structure_.arcs)
    naive = BNClassifier(structures=["naive"], **QUICK).fit(X, y)
    assert clf.objective_ == naive.objective_


def test_the_rule_best_takes_the_best() -> None:
    """Where a simpler one is as good but for noise, the half standard error takes that."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 80)
    X = np.where(rng.random((80, 4)) < 0.7, y[:, None], rng.integers(0, 3, (80, 4))).astype(str)
    half = BNClassifier().fit(X, y)
    best = BNClassifier(rule="best").fit(X, y)
    assert half.chosen_ == "naive"
    assert best.chosen_ == best.cv_results_["structure"][best.cv_results_["log_loss"].argmin()]


def test_the_average_is_the_mean_of_the_candidates() -> None:
    """Weights fall with the log loss; network_ stays the chosen one."""
    X, y = exclusive_or_of_texts(60)
    clf = BNClassifier(average=True, structures=["naive", "forest"]).fit(X, y)
    single = BNClassifier(structures=["naive", "forest"]).fit(X, y)
    assert clf.network_ == single.network_
    assert len(clf.trained_) == 2
    losses = np.array(clf.cv_results_["log_loss"])
    expected = np.exp(-40 * (losses - losses.min()))
    order = [list(clf.cv_results_["structure"]).index(clf.chosen_)]
    order.append(1 - order[0])
    np.testing.assert_allclose(clf.weights_, (expected / expected.sum())[order], atol=1e-6)
    codes = np.column_stack([np.zeros(60, int), clf.coding_.encode(clf._read_features(X))])
    members = [np.exp(member.log_posterior(codes)) for member in clf.trained_]
    mean = np.tensordot(clf.weights_, members, axes=1)
    np.testing.assert_allclose(clf.predict_proba(X), mean, atol=1e-9)


def test_fits_are_reproducible(iris: tuple[np.ndarray, np.ndarray]) -> None:
    """The same seed, the same numbers; jobs change nothing; another seed has other folds."""
    X, y = iris
    base = BNClassifier(random_state=1, **QUICK).fit(X, y)
    with parallel_config(backend="threading"):
        parallel = BNClassifier(random_state=1, n_jobs=2, **QUICK).fit(X, y)
    for clf in (clone(base).fit(X, y), parallel):
        np.testing.assert_array_equal(clf.predict_proba(X), base.predict_proba(X))
        for name, values in base.cv_results_.items():
            np.testing.assert_array_equal(clf.cv_results_[name], values)
    other = BNClassifier(random_state=2, **QUICK).fit(X, y)
    assert (other.cv_results_["log_loss"] != base.cv_results_["log_loss"]).any()


def test_a_time_limit_leaves_candidates_out(iris: tuple[np.ndarray, np.ndarray]) -> None:
    """The first is always tried; the warning names those that are not."""
    with pytest.warns(OptimalityWarning, match="time_limit ended the validation before 2-tree"):
        clf = BNClassifier(time_limit=1e-9, **QUICK).fit(*iris)
    assert clf.cv_results_["structure"].tolist() == ["naive"]
    assert clf.score(*iris) > 0.9


def test_a_time_limit_cuts_training_short_and_says_so(iris: tuple[np.ndarray, np.ndarray]) -> None:
    """Naive is had in any case, with fewer iterations; a long limit changes no number."""
    with pytest.warns(OptimalityWarning) as told:
        BNClassifier(time_limit=1e-9).fit(*iris)
    first, second = (str(warning.message) for warning in told)
    assert first.startswith("time_limit=1e-09 is short for these rows")
    assert "as few as 10 iterations a step instead of up to 100" in first
    assert second.startswith("time_limit ended the validation before 2-tree")
    long, endless = (BNClassifier(time_limit=t, **QUICK).fit(*iris) for t in (1e6, None))
    np.testing.assert_array_equal(long.predict_proba(iris[0]), endless.predict_proba(iris[0]))


def test_nothing_is_begun_that_cannot_end_in_time(
    iris: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another candidate takes longer than naive; the last training has its share of the limit."""
    now, clock = [0.0], iter([0.0])

    def validate(self: BNClassifier, name: str, parts: Any, deadline: float) -> Any:
        assert deadline == pytest.approx(10.0 * 5 / 6.25)  # five parts of four fifths, then all
        found = original(self, name, parts, np.inf)
        now[0] += next(clock)
        return found

    original = BNClassifier._validate_structure
    monkeypatch.setattr(BNClassifier, "_validate_structure", validate)
    monkeypatch.setattr(bn_classifier.time, "monotonic", lambda: now[0])
    monkeypatch.setattr("marginbn.classifiers.base.monotonic", lambda: now[0])
    for seconds, tried in ((3.9, ["naive", "2-tree"]), (4.1, ["naive"])):
        now[0], clock = 0.0, iter([seconds, 1.0])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OptimalityWarning)
            clf = BNClassifier(**QUICK).fit(*iris)
        assert clf.cv_results_["structure"].tolist() == tried


def test_only_asked_for_candidates_count(iris: tuple[np.ndarray, np.ndarray]) -> None:
    """Naive is trained first even if it is no candidate; if nothing else is, it is all there is."""
    with pytest.warns(OptimalityWarning, match="before forest: the network is chosen among naive"):
        clf = BNClassifier(structures=["forest"], time_limit=1e-9, **QUICK).fit(*iris)
    assert clf.chosen_ == "naive"


def interrupt_at(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Ctrl-C comes while this structure is validated."""
    validate = BNClassifier._validate_structure

    def interrupted(self: Any, structure: str, parts: Any, deadline: float) -> Any:
        if structure == name:
            raise KeyboardInterrupt
        return validate(self, structure, parts, deadline)

    monkeypatch.setattr(BNClassifier, "_validate_structure", interrupted)


def test_an_interrupt_keeps_what_is_there(
    iris: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    """During the second candidate the first is kept."""
    interrupt_at(monkeypatch, "2-tree")
    with pytest.warns(OptimalityWarning, match="an interrupt ended the validation before 2-tree"):
        clf = BNClassifier(**QUICK).fit(*iris)
    assert clf.chosen_ == "naive"
    assert clf.score(*iris) > 0.9


def test_an_interrupt_before_anything_is_an_interrupt(
    iris: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is nothing to keep."""
    interrupt_at(monkeypatch, "naive")
    with pytest.raises(KeyboardInterrupt):
        BNClassifier().fit(*iris)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 9, 10, 12])
def test_few_rows(n: int, n_classes: int) -> None:
    """Below ten nothing is validated, and the network is naive."""
    rng = np.random.default_rng(n)
    X, y = rng.normal(size=(n, 2)), np.arange(n) % n_classes
    clf = BNClassifier().fit(X, y)
    assert np.isfinite(clf.predict_log_proba(X)).all()
    assert n >= 10 or (clf.chosen_ == "naive" and clf.cv_results_ == {})


def test_one_class_is_certain(iris: tuple[np.ndarray, np.ndarray]) -> None:
    """After another fit too: nothing of it is left."""
    X, y = iris
    clf = BNClassifier(**QUICK).fit(X, y)
    clf.fit(X, ["only"] * len(X))
    assert (clf.predict(X) == "only").all()
    assert (clf.chosen_, clf.cv_results_) == ("naive", {})
    assert not hasattr(clf, "trained_")


def test_rare_classes(iris: tuple[np.ndarray, np.ndarray]) -> None:
    """A class with a single row is unknown to the fold that holds it out."""
    X, y = iris
    labels = y.astype(object)
    labels[7] = 9
    clf = BNClassifier(**QUICK).fit(X, labels.astype(int))
    assert clf.classes_.tolist() == [0, 1, 2, 9]
    assert clf.predict_proba(X).shape == (50, 4)
    assert clf.score(X, labels.astype(int)) > 0.9


def test_weights_count(iris: tuple[np.ndarray, np.ndarray]) -> None:
    """Rows of weight zero are not there; constant factors of all weights are rows."""
    X, y = iris
    shuffled = np.random.default_rng(0).permutation(y)
    twice, labels = np.vstack([X, X]), np.concatenate([y, shuffled])
    clean = BNClassifier(**QUICK).fit(X, y)
    muted = BNClassifier(**QUICK).fit(twice, labels, np.repeat([1.0, 0.0], 50))
    np.testing.assert_array_equal(muted.predict_proba(X), clean.predict_proba(X))
    sure = BNClassifier(**QUICK).fit(X, y, np.full(50, 100.0))
    assert log_loss(y, sure.predict_proba(X)) < log_loss(y, clean.predict_proba(X))


@pytest.mark.filterwarnings("ignore:categories never seen:marginbn.DataWarning")
def test_frames_agree_and_texts_are_labels() -> None:
    """pandas, polars and lists of rows; numbers, texts and missing values."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=50), "b": rng.choice(["x", "y", "z"], 50)})
    y = np.where(frame.a + (frame.b == "x") > 0.3, "yes", "no")
    clf = BNClassifier(structures=["naive"]).fit(frame, y)
    other = BNClassifier(structures=["naive"]).fit(pl.from_pandas(frame), y)
    np.testing.assert_array_equal(
        clf.predict_proba(frame), other.predict_proba(pl.from_pandas(frame))
    )
    assert set(clf.predict(frame)) == {"yes", "no"}
    strange = pd.DataFrame({"a": [np.nan, 0.1, None], "b": ["x", "never", None]})
    np.testing.assert_allclose(clf.predict_proba(strange).sum(axis=1), 1)
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.predict_proba(strange), clf.predict_proba(strange))


def test_missing_values_in_training() -> None:
    """Dropped with a warning, or a state that tells something."""
    X, y = exclusive_or(50)
    X[y == "same", 2] = np.nan
    clf = BNClassifier(missing="state", structures=["naive"]).fit(X, y)
    assert clf.score(X, y) == 1.0
    assert clf.network_.variables[3].states[-1] == "(missing)"


def test_categories_of_many_states() -> None:
    """Hundreds of cells in an interaction: training time goes with the cells that are there."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 40, (150, 3)).astype(str)
    clf = BNClassifier(structures=["2-tree"]).fit(X, rng.integers(0, 2, 150))
    assert clf.predict(X).shape == (150,)


def test_numbers_against_scikit_learn() -> None:
    """Accuracy, calibration error by hand, standard error of a mean."""
    rng = np.random.default_rng(0)
    scores, weights = rng.normal(size=(60, 3)), rng.uniform(size=60)
    classes = rng.integers(0, 3, 60)
    judges = Judges(classes, weights)
    expected = accuracy_score(classes, scores.argmax(axis=1), sample_weight=weights)
    assert accuracy_of(scores, judges) == pytest.approx(expected)
    values = rng.normal(size=40)
    assert standard_error(values, np.ones(40)) == pytest.approx(values.std(ddof=1) / np.sqrt(40))
    posterior = softmax(scores, axis=1)
    confidence, right = posterior.max(axis=1), posterior.argmax(axis=1) == classes
    error = 0.0
    for k in range(10):
        here = (confidence >= k / 10) & (confidence < (k + 1) / 10)
        if here.any():
            gap = np.average(right[here], weights=weights[here])
            gap -= np.average(confidence[here], weights=weights[here])
            error += abs(gap) * weights[here].sum() / weights.sum()
    assert calibration_error(scores, judges) == pytest.approx(error)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"structures": "naive"}, "structures must be a list of names, got 'naive'"),
        ({"structures": ["naive", "star"]}, "every entry of structures must be"),
        ({"structures": []}, "structures"),
        ({"rule": "one_se"}, "rule must be"),
        ({"average": "yes"}, "average must be"),
        ({"parameters": "smoothed"}, "parameters must be"),
        ({"bins": "fine"}, "bins must be"),
        ({"time_limit": 0}, "time_limit must be"),
        ({"missing": "ignore"}, "missing must be"),
    ],
)
def test_wrong_settings_are_named(
    settings: dict[str, Any], message: str, iris: tuple[np.ndarray, np.ndarray]
) -> None:
    """With what they may be."""
    with pytest.raises(InputError, match=message):
        BNClassifier(**settings).fit(*iris)


def test_progress_is_told(
    iris: tuple[np.ndarray, np.ndarray], capsys: pytest.CaptureFixture[str]
) -> None:
    """One line per candidate on stderr, and nothing without verbose."""
    BNClassifier(verbose=1, **QUICK).fit(*iris)
    told = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in told] == ["naive", "2-tree"]
    BNClassifier(**QUICK).fit(*iris)
    assert capsys.readouterr().err == ""


def test_rare_classes_are_judged_by_folds() -> None:
    """Where one part would hold a handful of their rows; otherwise large tables have one part."""
    rng = np.random.default_rng(0)
    table = as_table(rng.normal(size=(20_000, 10)))
    even = LabelledTable.of(table, np.arange(20_000) % 2)
    rare = LabelledTable.of(table, (np.arange(20_000) < 50).astype(int))
    assert len(BNClassifier()._splits(even)) == 1
    assert len(BNClassifier()._splits(rare)) == 5


@pytest.mark.parametrize("scoring", ["accuracy", "ramp_margin", "roc_auc", "balanced_accuracy"])
def test_scoring_judges_the_candidates(scoring: str, tmp_path: Path) -> None:
    """The table has the score, and the best candidate by it is chosen; files keep it."""
    rng = np.random.default_rng(2)
    X = rng.integers(0, 3, (120, 3)).astype(str)
    y = np.where((X[:, 0] == X[:, 1]) ^ (rng.random(120) < 0.1), "same", "other")
    clf = BNClassifier(scoring=scoring, rule="best", random_state=0, **QUICK).fit(X, y)
    scores = clf.cv_results_["score"]
    assert clf.chosen_ == "2-tree"
    assert scores[1] == scores.max() > scores[0]
    if scoring == "accuracy":
        np.testing.assert_allclose(scores, clf.cv_results_["accuracy"])
    save_model(clf, tmp_path / "m.json")
    np.testing.assert_array_equal(load_model(tmp_path / "m.json").cv_results_["score"], scores)
    assert f"Chosen by validated {scoring.replace('_', ' ')} among 2" in describe(clf)


def test_a_scorer_of_one_s_own(iris: tuple[np.ndarray, np.ndarray]) -> None:
    """It is given something that answers for the held-out rows, those rows and their labels."""
    seen = []

    def score(answers: Any, X: Any, y: Any) -> float:
        seen.append((X.n_rows, len(y), answers.predict_proba(X).shape))
        assert (answers.predict(X) == y).mean() > 0.8
        return -float(len(seen))  # the first candidate is best

    clf = BNClassifier(scoring=score, **QUICK).fit(*iris)
    assert clf.chosen_ == "naive"
    n_rows = len(iris[1])
    assert seen == [(n_rows, n_rows, (n_rows, 3))] * 2
    assert clf.cv_results_["score"].tolist() == [-1.0, -2.0]
    with pytest.raises(InputError, match="scoring must be one of"):
        BNClassifier(scoring="nonsense").fit(*iris)
