"""Every classifier with a raw table: identifiers, rare states, missing values, dates, weights."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.utils.class_weight import compute_sample_weight

from marginbn import (
    GenerativeBNClassifier,
    MaxMarginBNClassifier,
    MaxMarginBNClassifierCV,
    NaiveBayesClassifier,
    TANClassifier,
    load_model,
    save_model,
)
from marginbn.data import preparation
from marginbn.data.table import as_table
from marginbn.exceptions import DataWarning, FormatError, InputError

CLASSIFIERS: dict[str, dict[str, Any]] = {
    "GenerativeBNClassifier": {"max_parents": 1},
    "MaxMarginBNClassifier": {"max_parents": 1},
    "MaxMarginBNClassifierCV": {"max_parents": (1,), "gammas": [1.0]},
    "NaiveBayesClassifier": {},
    "TANClassifier": {},
}
MAKERS: dict[str, Any] = {
    cls.__name__: cls
    for cls in (
        GenerativeBNClassifier,
        MaxMarginBNClassifier,
        MaxMarginBNClassifierCV,
        NaiveBayesClassifier,
        TANClassifier,
    )
}


def raw_frame(n_rows: int = 120) -> tuple[pd.DataFrame, pd.Series]:
    """A table as people have it: the class is seen in plan and age, and in no identifier."""
    rng = np.random.default_rng(3)
    labels = rng.choice(["no", "yes"], n_rows, p=[0.7, 0.3])
    is_yes = labels == "yes"
    plan = np.where(rng.random(n_rows) < 0.8, np.where(is_yes, "gold", "basic"), "trial")
    city = rng.choice(["A", "B"], n_rows).astype(object)
    city[:3] = ["X", "Y", "Z"]
    age = np.where(rng.random(n_rows) < 0.2, np.nan, rng.normal(30 + 30 * is_yes, 5))
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 700, n_rows), unit="D")
    frame = pd.DataFrame(
        {
            "row": np.arange(1, n_rows + 1),
            "name": [f"n{i}" for i in range(n_rows)],
            "plan": plan,
            "city": city,
            "age": age,
            "since": days,
            "nothing": np.nan,
        }
    )
    return frame, pd.Series(labels, name="left")


FRAME, LABELS = raw_frame()


@pytest.fixture(autouse=True)
def few_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the five cities are too many."""
    monkeypatch.setattr(preparation, "MAX_STATES", 3)


SETTINGS = {"missing": "auto", "column_kinds": {"since": "date"}}
USED = ["plan", "city", "age", "since year", "since month", "since weekday"]


def fitted(name: str, **more: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return MAKERS[name](**CLASSIFIERS[name], **{**SETTINGS, **more}).fit(FRAME, LABELS)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_classifier_prepares_keeps_and_applies(name: str, tmp_path: Path) -> None:
    """Columns left out and said; the file keeps the settings and predicts the same."""
    with pytest.warns(DataWarning) as caught:
        clf = MAKERS[name](**CLASSIFIERS[name], **SETTINGS).fit(FRAME, LABELS)
    texts = [str(w.message) for w in caught if issubclass(w.category, DataWarning)]
    assert any("'row'" in text and "'name'" in text for text in texts)
    assert any("'nothing'" in text for text in texts)
    assert any("3 of 'city'" in text for text in texts)
    assert list(clf.network_.names) == ["left", *USED]
    assert clf.n_features_in_ == FRAME.shape[1]
    save_model(clf, tmp_path / "m.json")
    text = (tmp_path / "m.json").read_text()
    assert "n17" not in text  # no name of a row gets into the file
    loaded = load_model(tmp_path / "m.json")
    assert loaded.preparation_ == clf.preparation_
    np.testing.assert_array_equal(loaded.predict_proba(FRAME), clf.predict_proba(FRAME))


def test_the_columns_left_out_need_not_be_there() -> None:
    """A table is matched by name; frames must have the columns, with anything in them."""
    clf = fitted("TANClassifier")
    table = as_table(FRAME.drop(columns=["row", "name", "nothing"]), kinds={"since": "date"})
    expected = clf.predict_proba(FRAME)
    np.testing.assert_array_equal(clf.predict_proba(table), expected)
    strange = FRAME.assign(row=[["nested"]] * len(FRAME), name=pd.Timestamp("2024-01-01"))
    np.testing.assert_array_equal(clf.predict_proba(strange), expected)
    with pytest.raises(InputError, match=r"lacks columns.*'since'"):
        clf.predict(as_table(FRAME[["plan", "city", "age"]]))


def test_left_out_is_as_good_as_never_there() -> None:
    clean = NaiveBayesClassifier(**SETTINGS)
    with pytest.warns(DataWarning):
        clean.fit(FRAME.drop(columns=["row", "name", "nothing"]), LABELS)
    clf = fitted("NaiveBayesClassifier")
    for ours, theirs in zip(clf.network_.log_tables, clean.network_.log_tables, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_columns_are_matched_by_position_whatever_their_names() -> None:
    """Names that are numbers in another order do not mix up the kinds."""
    X = pd.DataFrame({1: ["a", "b"] * 30, 0: np.linspace(0, 1, 60)})
    y = np.arange(60) // 30
    clf = NaiveBayesClassifier().fit(X, y)
    assert [c.kind for c in clf.coding_.columns] == ["categorical", "numeric"]
    assert clf.score(X, y) == 1.0


def test_no_class_is_lost_by_default() -> None:
    """missing="auto" without a word; no class is lost and few rows are."""
    X = pd.DataFrame({"a": ["x", "y"] * 12 + [None], "b": [*["u"] * 12, *["v"] * 12, None]})
    y = [*"AB" * 12, "C"]
    clf = NaiveBayesClassifier().fit(X, y)
    assert clf.classes_.tolist() == ["A", "B", "C"]
    assert clf.n_dropped_ == 0


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.filterwarnings("ignore:.*are repetitions of others")
def test_class_weights_are_sample_weights(name: str) -> None:
    """As scikit-learn computes them, in every classifier; labels by themselves or as text."""
    X = FRAME[["plan", "age"]].assign(age=FRAME["age"].fillna(0.5))
    y = np.where(LABELS == "yes", 1, 0)
    make = lambda **more: MAKERS[name](**CLASSIFIERS[name], **more)  # noqa: E731
    for weight in ("balanced", {1: 5.0}, {"1": 5.0, "0": 1}):
        by_text = {int(k): v for k, v in weight.items()} if isinstance(weight, dict) else weight
        sample_weight = compute_sample_weight(by_text, y)
        found = make(class_weight=weight).fit(X, y).predict_proba(X)
        expected = make().fit(X, y, sample_weight=sample_weight).predict_proba(X)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"class_weight": "even"}, "class_weight must be None, 'balanced' or a mapping"),
        ({"class_weight": {"yes": -1}}, r"class_weight\['yes'\] must be a positive number"),
        ({"class_weight": {"maybe": 2}}, "class_weight names classes that no row has"),
    ],
)
def test_wrong_settings_are_refused(params: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        fitted("NaiveBayesClassifier", **params)


def test_unseen_categories_warn_once_per_call() -> None:
    clf = fitted("NaiveBayesClassifier")
    upper = FRAME.assign(plan=FRAME["plan"].str.upper())
    for call in (clf.predict, clf.predict_proba, clf.decision_function, clf.explain):
        with pytest.warns(DataWarning, match=r"'plan' \(120 values.*slip") as caught:
            call(upper)
        assert len(caught) == 1
        assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf.predict(FRAME)


def test_files_with_another_preparation_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    save_model(fitted("NaiveBayesClassifier"), path)
    text = path.read_text()
    path.write_text(text.replace('"left_out": "it has no value in any row"', '"left_out": ""'))
    with pytest.raises(FormatError, match=r"\$\.preparation"):
        load_model(path)


def test_a_class_with_a_parent_of_many_states_keeps_its_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Smoothing pulls sparse rows of a table to a half each; merged states have enough rows."""
    rng = np.random.default_rng(0)
    sex = rng.choice(["male", "female"], 700, p=[0.65, 0.35])
    survived = np.where(rng.random(700) < np.where(sex == "male", 0.19, 0.74), "yes", "no")
    ticket = [f"t{k}" for k in rng.integers(0, 900, 700)]
    frame = pd.DataFrame({"sex": sex, "ticket": ticket})
    arcs = [("sex", "survived"), ("ticket", "survived")]
    away = []
    for most in (preparation.MAX_STATES, 1000):
        monkeypatch.setattr(preparation, "MAX_STATES", most)
        clf = MaxMarginBNClassifier(required_arcs=arcs, column_kinds={"ticket": "categorical"})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            clf.fit(frame, pd.Series(survived, name="survived"))
        assert clf.network_.structure.parents[0] == (1, 2)
        away.append(abs(clf.network_.posterior_array("survived")[0] - (survived == "no").mean()))
    assert away[0] < 0.02
    assert away[1] > 0.05  # as it is without merging


def shop(n_rows: int = 150) -> tuple[pd.DataFrame, pd.Series]:
    """Dates, amounts and rare categories: columns that a fit makes others of."""
    rng = np.random.default_rng(8)
    spent = rng.uniform(0, 5000, n_rows)
    days = pd.Timestamp("2022-01-01") + pd.to_timedelta(rng.integers(0, 900, n_rows), unit="D")
    items = [f"item {i}" for i in range(60)]
    likely = np.r_[[0.1] * 8, [0.2 / 52] * 52]
    frame = pd.DataFrame(
        {
            "spent": [f"${value:,.2f}" for value in spent],
            "on": days.strftime("%d.%m.%Y"),
            "item": rng.choice(items, n_rows, p=likely),
            "age": np.where(rng.random(n_rows) < 0.2, np.nan, rng.normal(40, 9, n_rows)),
            "empty": np.nan,
        }
    )
    return frame, pd.Series(np.where(spent > 2500, "big", "small"), name="basket")


@pytest.mark.filterwarnings("ignore::marginbn.DataWarning")
@pytest.mark.parametrize("classifier", [TANClassifier(), TANClassifier(parameters="trained")])
def test_questions_take_the_values_of_the_table(classifier: TANClassifier) -> None:
    """A date by its text, an amount, a rare category, NaN: as in a row of the table."""
    X, y = shop()
    clf = classifier.fit(X, y)
    rare = next(p for p in clf.preparation_.columns if p.name == "item").merged[0]
    questions: list[Any] = [{"spent": "$1,234.50"}, {"on": "31.05.2022"}, {"item": rare}]
    for known in [*questions, {"age": 41.5}]:
        is_gone = clf.class_model_ is None and "age" not in known  # a state, wherever it is missing
        answer = [*clf.posterior({**known, "age": None} if is_gone else known).values()]
        assert np.allclose(answer, clf.predict_proba([known])[0], rtol=0, atol=1e-9), known
    assert clf.posterior({"spent": "$1,234.50"}) == clf.posterior({"spent": 1234.5})
    assert clf.posterior({"age": np.nan}) == clf.posterior({"age": None})
    for i in range(0, 150, 10):
        row = X.iloc[i].drop("empty").to_dict()
        answer = [*clf.posterior(row).values()]
        assert np.allclose(answer, clf.predict_proba(X[i : i + 1])[0], rtol=0, atol=1e-9)
    with pytest.raises(InputError, match=r"'empty' was left out of the training .* leave it out"):
        clf.posterior({"empty": 1})
    with pytest.raises(InputError, match=r"must map columns to values, got list; give it as in"):
        clf.posterior(["31.05.2022"])  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore::marginbn.DataWarning")
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_one_row_may_hold_any_values() -> None:
    """A plain list with a date among its values is a row to explain, as a table of it is."""
    X, y = shop()
    clf = TANClassifier().fit(X.assign(on=pd.to_datetime(X["on"], dayfirst=True)), y)
    row = X.assign(on=pd.to_datetime(X["on"], dayfirst=True)).iloc[3]
    assert str(clf.explain(row.tolist())[0]) == str(clf.explain(row)[0])


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1.0, -2.0, 1.0, 1.0], "at least 0, got -2.0 for row 1"),
        ([1.0, np.nan, 1.0, 1.0], "at least 0, got nan for row 1"),
        ([1.0, 1.0], "sample_weight must have one entry for each of the 4 rows"),
        (["a"] * 4, "sample_weight must hold numbers, got"),
        ([0.0] * 4, "sample_weight must be positive for at least one row"),
    ],
)
def test_wrong_weights_are_named(weights: list[Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        NaiveBayesClassifier().fit([["a"], ["b"], ["a"], ["b"]], [0, 1, 0, 1], weights)


def test_weights_that_amount_to_no_rows_warn() -> None:
    """Weights count copies: what adds up to one row of 200 teaches nothing."""
    X, y = [["a"], ["b"]] * 100, [0, 1, 1, 0] * 50
    with pytest.warns(DataWarning, match="multiply the weights by 200 to make their mean 1"):
        NaiveBayesClassifier().fit(X, y, np.full(200, 1 / 200))


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ("plan", r"give X\['plan'\] as y"),
        ([0, 1], "y must have a label for each of the 4 rows of X, got 2"),
        ([np.datetime64("2024-01-01").item()] * 4, "Unknown label type: date. .* make texts"),
        (pd.Series(["a", None, "b", "b"], dtype="string"), "y must not contain missing values"),
    ],
)
def test_a_wrong_class_is_named_with_the_remedy(y: Any, words: str) -> None:
    X = pd.DataFrame({"plan": ["a", "b", "a", "b"]})
    with pytest.raises(InputError, match=words):
        NaiveBayesClassifier().fit(X, y)


def test_columns_in_another_order_come_with_the_remedy() -> None:
    X = pd.DataFrame({"a": ["x", "y"] * 5, "b": [1, 2] * 5})
    clf = NaiveBayesClassifier().fit(X, [0, 1] * 5)
    for other in (X[["b", "a"]], X.assign(c=1)):
        with pytest.raises(InputError, match=r"Give X\[clf.feature_names_in_\]"):
            clf.predict(other)
        clf.predict(other[clf.feature_names_in_])
