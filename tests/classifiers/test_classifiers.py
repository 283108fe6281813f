"""The six classifiers: scikit-learn's own checks, hand cases, and what users do to them."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import CategoricalNB
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from marginbn import (
    BayesianNetworkLearner,
    BNClassifier,
    DataWarning,
    GenerativeBNClassifier,
    InputError,
    MaxMarginBNClassifier,
    MaxMarginBNClassifierCV,
    MDLPDiscretizer,
    NaiveBayesClassifier,
    OptimalityWarning,
    Search,
    TANClassifier,
    describe,
)

# Without limits of time: a check that fits twice must not depend on how busy the machine is. The
# grid is small; the one of the paper has its own tests.
SMALL_GRID = MaxMarginBNClassifierCV(
    gammas=(0.5, 2.0), max_parents=(1,), search=Search(inner_time_limit=None), time_limit=None
)
CLASSIFIERS = [
    NaiveBayesClassifier(),
    TANClassifier(),
    GenerativeBNClassifier(time_limit=None),
    MaxMarginBNClassifier(time_limit=None),
    SMALL_GRID,
]
by_name = pytest.mark.parametrize("classifier", CLASSIFIERS, ids=lambda c: type(c).__name__)


@parametrize_with_checks(CLASSIFIERS[:-1])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*determine each other")  # tables of scikit-learn are so
@pytest.mark.filterwarnings("ignore:.*are repetitions of others")
@parametrize_with_checks([SMALL_GRID])
def test_scikit_learn_checks_with_validation(estimator, check):
    check(estimator)


def _not_by_weights(estimator):
    """Folds are made of rows: where something is validated, weight two is not two rows."""
    return {"check_sample_weight_equivalence_on_dense_data": "folds are made of rows"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::marginbn.exceptions.DataWarning")
@parametrize_with_checks([BNClassifier()], expected_failed_checks=_not_by_weights)
def test_scikit_learn_checks_of_the_default(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True, as_frame=True)


def mixed_frame(n=120, seed=0):
    """Strings, numbers, categoricals, small integers and booleans; the class needs b and d."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "a": rng.choice(["x", "y"], n),
            "b": rng.normal(size=n),
            "c": pd.Categorical(rng.choice(["u", "v", "w"], n)),
            "d": rng.integers(0, 3, n),
            "e": rng.random(n) < 0.5,
        }
    )
    y = pd.Series(np.where((frame.b > 0) | (frame.d == 1), "yes", "no"), name="answer")
    return frame, y


def test_naive_bayes_by_hand():
    """Two rows a class, Laplace 1: P(a | red) = 3/4 * 1/2 over 3/4 * 1/2 + 1/4 * 1/2."""
    X = [["red"], ["red"], ["blue"], ["blue"]]
    clf = NaiveBayesClassifier().fit(X, ["a", "a", "b", "b"])
    assert clf.predict_proba([["red"]]) == pytest.approx(np.array([[0.75, 0.25]]))
    assert clf.structure_.parents == ((), (0,))


def test_naive_bayes_equals_scikit_learn():
    """The class posteriors are those of CategoricalNB with the same smoothing."""
    rng = np.random.default_rng(1)
    X, y = rng.integers(0, 4, (200, 5)), rng.integers(0, 3, 200)
    ours = NaiveBayesClassifier().fit(X, y)
    theirs = CategoricalNB(alpha=1.0).fit(X, y)
    # CategoricalNB does not smooth the class prior; put ours in its place.
    theirs.class_log_prior_ = ours.network_.log_tables[0]
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-10)


def test_tan_finds_the_tree_that_made_the_data():
    """With a chain x0 -> x1 -> x2 of strong arcs the Chow-Liu tree is that chain."""
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 2000)
    x0 = rng.integers(0, 2, 2000)
    x1 = np.where(rng.random(2000) < 0.9, x0, 1 - x0)
    x2 = np.where(rng.random(2000) < 0.9, x1, 1 - x1)
    clf = TANClassifier().fit(np.column_stack([x0, x1, x2]), y)
    assert clf.structure_.parents == ((), (0,), (0, 1), (0, 2))


@by_name
def test_fitted_attributes(classifier, iris):
    X, y = iris
    clf = clone(classifier)
    clf.fit(X, y)
    if isinstance(clf, NaiveBayesClassifier):
        assert (clf.status_, clf.result_, clf.objective_, clf.gap_) == ("fixed", None, None, None)
        return
    assert clf.status_ == "optimal"
    assert clf.gap_ <= 1e-6
    assert clf.bound_ >= clf.objective_
    assert clf.trace_[-1].objective == clf.objective_
    assert clf.structure_.n_variables == 5
    assert list(clf.feature_names_in_) == list(X.columns)
    assert clf.network_.variables[0].name == "target"
    assert clf.score(X, y) > 0.9


@by_name
def test_frames_agree(classifier):
    """pandas, polars and pyarrow give the same structure and probabilities."""
    frame, y = mixed_frame()
    base = clone(classifier).fit(frame, y)
    for other in (pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        clf = clone(classifier).fit(other, y)
        assert clf.structure_ == base.structure_
        np.testing.assert_array_equal(clf.predict_proba(other), base.predict_proba(frame))


@by_name
def test_missing_and_unseen_at_prediction(classifier):
    frame, y = mixed_frame()
    clf = clone(classifier).fit(frame, y)
    strange = frame.head(4).astype(object)
    strange.loc[0, "a"] = None
    strange.loc[1, "b"] = np.nan
    strange.loc[2, "c"] = "never seen"
    strange.loc[3, ["a", "b", "c", "d", "e"]] = None
    with pytest.warns(DataWarning, match="'c' .1 value, such as 'never seen'"):
        proba = clf.predict_proba(strange)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_allclose(
        proba[3], np.exp(clf.network_.log_joint_per_class(np.full((1, 6), -1))[0]), rtol=1e-9
    )


@pytest.mark.parametrize("classifier", CLASSIFIERS[:-1], ids=lambda c: type(c).__name__)
@pytest.mark.filterwarnings("ignore:.*are repetitions of others")
def test_weights_are_repetitions(classifier):
    """Integer weights give what repeated rows give (the CV variant has other folds then)."""
    frame, y = mixed_frame(60)
    weights = np.random.default_rng(3).integers(0, 4, len(y))
    weighted = clone(classifier).fit(frame, y, sample_weight=weights)
    repeated = clone(classifier).fit(
        frame.loc[frame.index.repeat(weights)], y.loc[y.index.repeat(weights)]
    )
    assert weighted.structure_ == repeated.structure_
    if weighted.result_ is not None:
        assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-12)


def test_grid_search_and_pipeline(iris):
    X, y = iris
    search = GridSearchCV(
        MaxMarginBNClassifier(), {"gamma": [0.5, 2.0], "max_parents": [1, 2]}, cv=3
    ).fit(X, y)
    assert search.best_score_ > 0.85
    pipeline = make_pipeline(MDLPDiscretizer(), NaiveBayesClassifier(column_kinds="categorical"))
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.85


@pytest.mark.parametrize("score", ["mdl", "bic", "aic", "loglik", "bdeu", "k2"])
@pytest.mark.parametrize("class_restricted", [True, False])
def test_every_generative_score(score, class_restricted, iris):
    X, y = iris
    clf = GenerativeBNClassifier(score=score, class_restricted=class_restricted).fit(X, y)
    assert clf.status_ == "optimal"


def test_required_and_forbidden_arcs():
    """Arcs by name are honoured; an impossible demand names the variable."""
    frame, y = mixed_frame()
    clf = MaxMarginBNClassifier(
        required_arcs=[("answer", "a"), ("a", "d")], forbidden_arcs=[("answer", "e")]
    ).fit(frame, y)
    assert clf.structure_.parents[4] == (0, 1)
    assert 0 in clf.structure_.parents[1]
    assert clf.structure_.parents[5] == ()
    for name, known in (("xyz", "known are 'answer', 'a'"), ("answr", "did you mean 'answer'?")):
        message = re.escape(f"required_arcs names the variable '{name}'; {known}")
        with pytest.raises(InputError, match=message):
            MaxMarginBNClassifier(required_arcs=[(name, "a")]).fit(frame, y)


def test_a_limit_is_a_normal_ending():
    rng = np.random.default_rng(5)
    X, y = rng.integers(0, 3, (400, 14)), rng.integers(0, 3, 400)
    with pytest.warns(OptimalityWarning, match="gap"):
        clf = MaxMarginBNClassifier(search=Search(callback=lambda point: True), gamma=0.5).fit(X, y)
    assert clf.status_ == "interrupted"
    assert clf.bound_ > clf.objective_
    assert clf.predict(X).shape == (400,)


def test_cross_validated_choice(iris):
    """The chosen setting has the best mean score; results cover the grid; jobs change nothing."""
    X, y = iris
    clf = MaxMarginBNClassifierCV(gammas=[0.1, 1.0, 3.0], max_parents=(0, 1)).fit(X, y)
    results = clf.cv_results_
    assert len(results["gamma"]) == 6
    assert clf.best_score_ == results["mean_test_score"].max()
    assert clf.max_parents_ == 1
    folds = np.array([results[f"split{f}_test_score"] for f in range(5)])
    np.testing.assert_allclose(folds.mean(axis=0), results["mean_test_score"])
    twice = clone(clf).set_params(n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(twice.cv_results_["mean_test_score"], results["mean_test_score"])


@by_name
def test_degenerate_tables(classifier):
    """Constant features, a single row class and a single feature are answered sanely."""
    X = np.array([[1, 0], [1, 1], [1, 0], [1, 1], [1, 1], [1, 0]])
    clf = clone(classifier).fit(X, [0, 1, 0, 1, 1, 0])
    assert (clf.predict(X) == [0, 1, 0, 1, 1, 0]).all()
    assert clf.network_.variables[1].arity == 1
    one_class = clone(classifier).fit(X, [7] * 6)
    assert (one_class.predict(X) == 7).all()


@by_name
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"class_weight": "fair"}, "class_weight must be"),
        ({"missing": "ignore"}, "missing must be"),
        ({"column_kinds": {"zz": "numeric"}}, "zz"),
    ],
)
def test_bad_settings_name_the_argument(classifier, settings, message, iris):
    with pytest.raises(InputError, match=message):
        clone(classifier).set_params(**settings).fit(*iris)


def test_a_measured_target_is_named_with_the_remedy(iris):
    """Numbers with fractions are no classes; whole ones in floats are."""
    X, y = iris
    price = pd.Series(np.arange(len(y)) / 4, name="price")
    with pytest.raises(
        InputError, match=r"y \('price'\) holds measured numbers such as 0\.25; give"
    ):
        NaiveBayesClassifier().fit(X, price)
    assert NaiveBayesClassifier().fit(X, np.floor(price / 20)).classes_.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gamma": -1}, "gamma must be"),
        ({"margin": "both"}, "margin must be"),
        ({"max_parents": -1}, "max_parents must be"),
        ({"max_parents": 1.5}, "max_parents must be"),
        ({"search": Search(solver="cplex")}, "solver must be one of"),
        ({"time_limit": 0}, "time_limit must be"),
        ({"search": Search(gap_tolerance=-1)}, "gap_tolerance must be"),
        ({"search": Search(memory_limit="much")}, "memory_limit must be"),
        ({"search": Search(rows="some")}, "rows must be"),
        ({"search": "highs"}, "search must be a marginbn.Search or None"),
        ({"class_arcs": "all", "required_arcs": [(1, 0)]}, "'free' .of MaxMarginBNClass"),
        ({"n_jobs": "all"}, "n_jobs must be a whole number of workers or None, got 'all'"),
        ({"random_state": "lucky"}, "random_state must be a whole number, a numpy RandomState"),
    ],
)
def test_bad_search_settings(settings, message, iris):
    with pytest.raises(InputError, match=message):
        MaxMarginBNClassifier(**settings).fit(*iris)


@pytest.mark.parametrize(("dtype", "values"), [("boolean", [True, False]), ("Int64", [1, 0])])
def test_classes_of_nullable_types_stay_what_they_are(dtype, values):
    """Booleans and whole numbers, where scikit-learn makes floats of them; none may be missing."""
    fitted = NaiveBayesClassifier().fit([["a"], ["b"]], pd.Series(values, dtype=dtype))
    assert fitted.predict([["a"], ["b"]]).tolist() == values
    assert type(fitted.classes_.tolist()[0]) is type(values[0])
    with pytest.raises(InputError, match="y must not contain missing values"):
        NaiveBayesClassifier().fit([["a"], ["b"]], pd.Series([values[0], None], dtype=dtype))


def test_mixed_lists_keep_their_types():
    X = [["rain", 9], ["rain", 9], ["sun", 4], ["sun", 4], ["rain", 9], ["sun", 4]]
    clf = NaiveBayesClassifier().fit(X, [0, 0, 1, 1, 0, 1])
    assert clf.network_.variables[2].states == ("4", "9")
    np.testing.assert_array_equal(
        clf.predict_proba([["rain", 9.0]]), clf.predict_proba([["rain", 9]])
    )
    assert clf.predict_proba([["rain", 9.0]])[0, 0] > clf.predict_proba([["rain", None]])[0, 0]


@pytest.mark.parametrize("model", [NaiveBayesClassifier(), BayesianNetworkLearner()])
def test_what_is_not_fitted_is_not_described(model):
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        describe(model)


def test_numbers_of_folds_and_of_rows_to_draw_are_checked(iris):
    with pytest.raises(InputError, match="n_splits=2 or more, got n_splits=1"):
        MaxMarginBNClassifierCV(cv=1).fit(*iris)
    with pytest.raises(InputError, match="n_samples must be an integer of at least 0, got -1"):
        BayesianNetworkLearner(max_parents=1).fit([["a"], ["b"]] * 9).sample(-1)
