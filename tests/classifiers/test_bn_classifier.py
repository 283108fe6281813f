"""The default classifier: proved structure, trained tables, one answer everywhere."""

from __future__ import annotations

import json
import sqlite3
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.metrics import log_loss

from javascript import run_javascript
from marginbn import (
    BNClassifier,
    GenerativeBNClassifier,
    MaxMarginBNClassifier,
    NaiveBayesClassifier,
    OptimalityWarning,
    Search,
    TANClassifier,
    export_model,
    load_model,
    save_model,
)
from marginbn.class_model import choose
from marginbn.class_model.basis import learn_cells
from marginbn.class_model.choose import START
from marginbn.class_model.trainer import train_class_model
from marginbn.classifiers.budget import reporting_phases
from marginbn.cli.options import in_options
from marginbn.data.labelled import LabelledTable
from marginbn.data.table import as_table
from marginbn.exceptions import FormatError
from marginbn.report.page import model_values
from marginbn.report.summary import describe_trained
from marginbn.solvers.result import Status


def shop(n: int = 700, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    """Customers: contract and months decide whether they leave, and the plan by the region."""
    rng = np.random.default_rng(seed)
    months = rng.integers(1, 60, n).astype(float)
    contract = rng.choice(["month", "year"], n, p=[0.6, 0.4])
    plan, region = rng.choice(["a", "b", "c"], n), rng.choice(["n", "s"], n)
    odds = 1.5 * (contract == "month") - 0.05 * months + 1.5 * ((plan == "a") == (region == "n"))
    leaves = rng.random(n) < 1 / (1 + np.exp(0.6 - odds))
    frame = pd.DataFrame({"months": months, "contract": contract, "plan": plan, "region": region})
    return frame, pd.Series(np.where(leaves, "yes", "no"), name="leaves")


@pytest.fixture(scope="module")
def fitted() -> tuple[BNClassifier, pd.DataFrame, pd.Series]:
    X, y = shop()
    return BNClassifier().fit(X, y), X, y


def only(X: pd.DataFrame, column: str, value: object) -> pd.DataFrame:
    """One row in which nothing else is known."""
    row = pd.DataFrame([dict.fromkeys(X.columns)], dtype=object)
    row.loc[0, column] = value
    return row.astype(X.dtypes.to_dict())


def test_the_structure_is_proved_and_the_class_points_at_every_feature(fitted):
    clf, _, _ = fitted
    assert clf.status_ == "optimal"
    assert clf.gap_ <= 1e-6
    assert clf.structure_.parents[0] == ()
    assert all(0 in parents for parents in clf.structure_.parents[1:])
    assert clf.class_model_.gap <= 1e-6


@pytest.mark.parametrize("column", ["contract", "plan", "region"])
def test_with_one_value_known_the_answer_is_the_share_in_the_data(fitted, column):
    clf, X, y = fitted
    for value in sorted(X[column].unique()):
        share = float((y[X[column] == value] == "yes").mean())
        answer = clf.posterior({column: value})
        assert answer["yes"] == pytest.approx(share, abs=0.01)
        assert list(answer) == ["no", "yes"]
        predicted = clf.predict_proba(only(X, column, value))[0]
        np.testing.assert_allclose(predicted, list(answer.values()), rtol=0, atol=1e-12)


def test_with_everything_known_the_trained_tables_answer(fitted):
    clf, X, _ = fitted
    scores = clf.class_model_.scores(clf.encode(X))
    expected = np.exp(scores - scores.max(axis=1, keepdims=True))
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(clf.predict_proba(X), expected, rtol=0, atol=1e-12)
    row = X.iloc[3]
    answer = clf.posterior(row.to_dict())
    np.testing.assert_allclose(list(answer.values()), expected[3], rtol=0, atol=1e-12)


def test_it_learns_an_interaction_that_counting_alone_does_not_show(fitted):
    clf, X, y = fitted
    test, labels = shop(2000, seed=1)
    naive = NaiveBayesClassifier().fit(X, y)
    own = clf.predict_proba(test)[np.arange(2000), (labels == "yes").astype(int)]
    other = naive.predict_proba(test)[np.arange(2000), (labels == "yes").astype(int)]
    assert -np.log(own).mean() < -np.log(other).mean() - 0.02


def test_the_page_gives_the_same_answers(fitted):
    """Cells, bins and unknown features at random; the numbers of the scripts are the library's."""
    clf, _, _ = fitted
    rng, rows, compact = np.random.default_rng(5), [], []
    features = clf.class_model_.design.cells.features
    for _ in range(25):
        codes = [
            int(rng.choice([-1, rng.integers(f.n_cells), f.code_of_bin(rng.integers(f.n_bins))]))
            for f in features
        ]
        rows.append(codes)
        pairs = zip(codes, features, strict=True)
        compact.append([f.n_cells if c < 0 else c + (c >= f.n_cells) for c, f in pairs])
    values = json.dumps(model_values(clf.answers_))
    program = f"{json.dumps(compact)}.map((codes) => [...answerCase(model, codes)])"
    found = run_javascript(f"(() => {{ const model = readModel({values}); "
                           f"return JSON.stringify({program}); }})()")  # fmt: skip
    np.testing.assert_allclose(
        json.loads(found), clf.answers_.posterior(np.array(rows)), rtol=0, atol=1e-9
    )


def test_contributions_start_at_the_base_rate_and_add_up(fitted):
    clf, X, _ = fitted
    for row in (X.iloc[:1], only(X, "contract", "month")):
        explanation = clf.explain(row)[0]
        posterior = dict(zip(clf.classes_, clf.predict_proba(row)[0], strict=True))
        odds = np.log(posterior[explanation.label] / posterior[explanation.rival])
        total = sum(part.value for part in explanation.contributions)
        assert explanation.log_margin == pytest.approx(odds, abs=1e-9)
        assert total == pytest.approx(odds, abs=1e-9)
        base = clf.posterior({})
        start = next(p.value for p in explanation.contributions if p.variable == "leaves")
        expected = np.log(base[explanation.label] / base[explanation.rival])
        assert start == pytest.approx(expected, abs=1e-9)


def test_a_saved_model_is_the_same_and_so_is_a_second_fit(fitted, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")
    clf, X, y = fitted
    save_model(clf, tmp_path / "one.json")
    save_model(BNClassifier().fit(X, y), tmp_path / "two.json")
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()
    again = load_model(tmp_path / "one.json")
    assert isinstance(again, BNClassifier)
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    assert again.posterior({"months": 3}) == clf.posterior({"months": 3})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m: m["class_model"]["parameters"][0].pop(), "parameters"),
        (lambda m: m["class_model"].update(pairs=[[1, 0]]), "pairs"),
        (lambda m: m["class_model"]["cells"][0]["cuts"].reverse(), "cuts"),
        (lambda m: m["class_model"]["cells"][1].update(cuts=[0.5]), "cuts or categories"),
        (lambda m: m["class_model"]["cells"][0].update(bin=[0]), "bin"),
        (lambda m: m["coding"][0].update(cuts=[c + 0.1 for c in m["coding"][0]["cuts"]]), "bins"),
        (lambda m: m["class_model"]["cells"][1].update(weights=[0.0, 0.0]), "weights"),
        (lambda m: m.update(class_model=None), "class_model"),
    ],
)
def test_a_model_file_that_does_not_fit_is_refused(fitted, tmp_path, change, words):
    from marginbn import FormatError

    path = tmp_path / "model.json"
    save_model(fitted[0], path)
    model = json.loads(path.read_text())
    change(model)
    path.write_text(json.dumps(model))
    with pytest.raises(FormatError, match=words):
        load_model(path)


def test_the_sql_export_does_not_answer_rows_that_miss_a_value(fitted, tmp_path):
    clf, X, _ = fitted
    export_model(clf, tmp_path / "model.sql")
    database = sqlite3.connect(":memory:")
    X[:0].to_sql("data", database, index=False)
    database.execute("INSERT INTO data VALUES (NULL, 'month', 'a', 'n')")
    row = database.execute((tmp_path / "model.sql").read_text()).fetchone()
    assert row[-3:] == (None, None, None)
    database.close()


@pytest.mark.parametrize(
    "classifier",
    [
        NaiveBayesClassifier(parameters="trained"),
        TANClassifier(parameters="trained"),
        GenerativeBNClassifier(parameters="trained", time_limit=None),
        MaxMarginBNClassifier(parameters="trained", time_limit=None),
    ],
    ids=lambda c: type(c).__name__,
)
def test_tables_are_trained_on_every_kind_of_structure(classifier):
    X, y = shop(300)
    classifier.fit(X, y)
    assert classifier.class_model_.gap <= 1e-6
    counted = type(classifier)().fit(X, y)
    assert classifier.structure_ == counted.structure_ or classifier.network_ is not None
    rows = X.astype(object).mask(np.random.default_rng(0).random(X.shape) < 0.4, None)
    for table in (X, rows):
        P = classifier.predict_proba(table)
        np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=0, atol=1e-9)


def test_a_class_with_parents_is_answered_like_the_joint_distribution():
    """The network part of the answer, G, for a structure in which the class is no root."""
    X, y = shop(300)
    clf = MaxMarginBNClassifier(
        parameters="trained", required_arcs=[("contract", "leaves")], time_limit=None
    ).fit(X, y)
    assert clf.structure_.parents[0] != ()
    for column, value in (("plan", "a"), ("contract", "year")):
        expected = clf.network_.posterior("leaves", {column: value})
        assert clf.posterior({column: value}) == pytest.approx(expected, abs=1e-9)


def test_missing_values_tell_something_only_where_training_had_them():
    X, y = shop(400)
    rng = np.random.default_rng(0)
    X["months"] = X["months"].where((y == "no") | (rng.random(400) < 0.3))  # absent if they leave
    clf = BNClassifier().fit(X, y)
    known = {"contract": "month", "plan": "a", "region": "n"}
    only_months_missing = clf.predict_proba(pd.DataFrame([{**known, "months": np.nan}])[X.columns])
    assert only_months_missing[0, 1] > 0.9  # the state of training
    nothing = pd.DataFrame([dict.fromkeys(X.columns)], dtype=object)
    np.testing.assert_allclose(
        clf.predict_proba(nothing)[0], list(clf.posterior({}).values()), rtol=0, atol=1e-12
    )


def test_a_number_without_a_cut_has_quartiles_so_that_its_interaction_is_found():
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.normal(size=(1600, 3)), columns=["a", "b", "c"])
    y = np.sign(X["a"] * X["b"]).astype(int)
    test = pd.DataFrame(rng.normal(size=(500, 3)), columns=["a", "b", "c"])
    clf = BNClassifier().fit(X, y)
    assert clf.score(test, np.sign(test["a"] * test["b"]).astype(int)) > 0.9
    assert MaxMarginBNClassifier(time_limit=None).fit(X, y).network_.arities[1:] == (1, 1, 1)


def test_the_quality_it_reports_is_that_of_rows_not_learned_from(fitted):
    clf, _, y = fitted
    held_out = clf.held_out_
    assert sorted(held_out.labels) == sorted(y)  # below 1500 rows every row is held out once
    accuracy = (clf.classes_[held_out.probabilities.argmax(axis=1)] == held_out.labels).mean()
    test, labels = shop(3000, seed=9)
    assert accuracy == pytest.approx(clf.score(test, labels), abs=0.06)


def test_the_model_file_keeps_the_held_out_rows(fitted, tmp_path):
    clf, _, _ = fitted
    save_model(clf, tmp_path / "m.json")
    kept = load_model(tmp_path / "m.json").held_out_
    assert kept.labels.tolist() == clf.held_out_.labels.tolist()
    np.testing.assert_array_equal(kept.weights, clf.held_out_.weights)
    np.testing.assert_allclose(kept.probabilities, clf.held_out_.probabilities, rtol=1e-6)
    record = json.loads((tmp_path / "m.json").read_text())
    for change in ({"labels": [9]}, {"weights": [1.0]}, {"probabilities": [[0.5]]}):
        broken = record | {"held_out": record["held_out"] | change}
        (tmp_path / "bad.json").write_text(json.dumps(broken))
        with pytest.raises(FormatError, match=r"\$\.held_out"):
            load_model(tmp_path / "bad.json")


def braked(X, y):
    """A fit without time for one step, and its warnings about the training; whether the search ends
    before the clock is looked at is another matter.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", OptimalityWarning)
        clf = BNClassifier(time_limit=1e-9).fit(X, y)
    said = [str(w.message) for w in caught if w.category is OptimalityWarning]
    return clf, [text for text in said if "training" in text]


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_an_emergency_brake_costs_quality_never_sense(load):
    X, y = load(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[len(y) // 3 :], order[: len(y) // 3]
    clf, _ = braked(X[train], y[train])
    naive = NaiveBayesClassifier().fit(X[train], y[train])
    own, other = (log_loss(y[test], model.predict_proba(X[test])) for model in (clf, naive))
    assert own <= other + 0.01
    quality = clf.held_out_.quality(clf.classes_)
    assert quality.log_loss < 0.5 * np.log(len(clf.classes_))


def test_a_large_table_that_is_late_is_not_judged(monkeypatch):
    """Its usual amount of smoothing is taken: a first trial would exceed the limit by far."""
    monkeypatch.setattr(choose, "QUICK_VALUES", 0)
    X, y = shop(300)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", OptimalityWarning)
        clf = BNClassifier(time_limit=1e-9).fit(X, y)
    assert any("left no time to choose the smoothing" in str(w.message) for w in caught)
    assert clf.held_out_ is None
    assert clf.class_model_.precisions == START
    assert np.mean(clf.predict(X) == y) > np.mean(y == y.mode()[0])


def test_an_emergency_brake_says_what_it_cost():
    """The gaps that are told are true ones, and nothing is called proved that is not."""
    X, y = shop(300)
    clf, (said,) = braked(X, y)
    model, loss = clf.class_model_, clf.held_out_.quality(clf.classes_).log_loss
    assert "time_limit cut the training short: 1 amount of smoothing tried" in said
    assert model.nearness in said
    assert f"log loss {loss:.3g} on held-out rows" in said
    cells, data = learn_cells(LabelledTable.of(as_table(X), y.to_numpy()), clf.classes_)
    best = train_class_model(cells, clf.structure_, data, model.precisions)
    assert best.gap <= 1e-6
    assert model.objective - best.objective <= model.gap * model.objective
    clf.result_ = replace(clf.result_, bound=1.1 * clf.objective_, status=Status.TIME_LIMIT)
    clf.class_model_ = replace(model, gap=0.25)
    told = " ".join(describe_trained(clf))
    assert "Structure (best found): proved to be within 9.09 % of the largest soft margin" in told
    assert "trained on this structure, within 25.00 % of their optimum" in told
    clf.class_model_ = replace(model, gap=7.0)
    assert "with no bound on the distance to their optimum" in describe_trained(clf)[1]


def test_a_search_that_ends_by_its_budget_of_work_blames_no_time_limit():
    """What ended it, and what helps, in the warning and in the headline."""
    rng = np.random.default_rng(1)
    X, y = rng.integers(0, 3, (500, 16)).astype(str), rng.integers(0, 2, 500)
    with pytest.warns(OptimalityWarning, match="work limit") as caught:
        clf = BNClassifier(search=Search(work_limit=0.001)).fit(X, y)
    (said,) = [str(w.message) for w in caught]
    assert clf.status_ == "work_limit"
    assert "time" not in said
    assert "search=Search(work_limit=...) searches for longer" in said
    told = " ".join(describe_trained(clf))
    assert "(stopped by its budget of work, not by a time limit)" in told
    assert "(proved)" not in told
    assert "--method max-margin --time-limit SECONDS searches for longer" in in_options(said)


def test_phases_after_the_search_are_told() -> None:
    """Choosing and training tell what they do, to whom listens; verbose writes it on stderr."""
    X, y = load_iris(return_X_y=True)
    heard: list[str] = []
    with reporting_phases(heard.append):
        BNClassifier().fit(X, y)
    assert heard[:5] == [f"validation, fold {k} of 5" for k in range(1, 6)]
    assert heard[5] == "validation, trial 1 of the smoothing"
    assert heard[-1] == "training the probabilities"
    before = len(heard)
    BNClassifier().fit(X, y)
    assert len(heard) == before  # nobody listens any more
