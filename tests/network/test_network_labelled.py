"""Evidence as the table has it, answers with labels: dicts, pandas and polars."""

import datetime
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

from marginbn import (
    InputError,
    MaxMarginBNClassifierCV,
    NaiveBayesClassifier,
    TANClassifier,
    load_model,
    save_model,
)
from marginbn.data import preparation

ROWS = 60
AGE = np.arange(ROWS) + 0.5
SEX = np.array(["male", "female"])[np.arange(ROWS) % 2]
SMOKES = np.arange(ROWS) % 3 == 0
GRADE = np.arange(ROWS) % 4
ILL = np.where((AGE > 30) ^ (SMOKES & (GRADE == 3)), "yes", "no")
COLUMNS = {"age": AGE, "sex": SEX, "smokes": SMOKES, "grade": GRADE}


@pytest.fixture(scope="module")
def pandas_clf():
    """A tree on a pandas frame."""
    return TANClassifier().fit(pd.DataFrame(COLUMNS), pd.Series(ILL, name="ill"))


def test_evidence_takes_the_values_of_the_table(pandas_clf):
    """Values and labels of the states say the same, in every question."""
    network = pandas_clf.network_
    values = {"age": 53, "smokes": True, "grade": 3, "ill": "yes"}
    states = [network.variables[i].states[k] for i, k in network.encode_evidence(values).items()]
    labels = dict(zip(values, states, strict=True))
    assert labels["age"].startswith("> ")
    assert (labels["smokes"], labels["grade"]) == ("True", "3")
    assert (
        network.posterior_array("sex", values).tolist()
        == network.posterior_array("sex", labels).tolist()
    )
    assert network.log_evidence(values) == network.log_evidence(labels)
    best, _ = network.most_probable_explanation(values)
    assert {name: best[name] for name in labels} == labels
    assert (network.sample_codes(5, 0, values) == network.sample_codes(5, 0, labels)).all()
    marginals = network.marginals(values)
    assert all((marginals[name] == p).all() for name, p in network.marginals(labels).items())


def test_a_posterior_by_values_is_a_prediction(pandas_clf):
    """The network is asked about a whole row, the classifier predicts it."""
    row = {"age": 53.0, "sex": "male", "smokes": False, "grade": 1}
    asked = pandas_clf.network_.posterior_array("ill", row)
    assert asked == pytest.approx(pandas_clf.predict_proba(pd.DataFrame([row]))[0], abs=1e-12)


def test_answers_come_in_the_frames_of_the_training_table(pandas_clf):
    """Series and frames of pandas, frames of polars, else dicts."""
    network = pandas_clf.network_
    posterior = network.posterior("ill", {"age": 53})
    assert isinstance(posterior, pd.Series)
    assert posterior["yes"] == network.posterior_array("ill", {"age": 53})[1]
    assert isinstance(network.sample(3, 0), pd.DataFrame)
    polars_clf = TANClassifier().fit(pl.DataFrame(COLUMNS), pl.Series("ill", ILL))
    for answer in (
        polars_clf.network_.posterior("ill"),
        polars_clf.network_.table("sex"),
        polars_clf.network_.sample(3, 0),
    ):
        assert isinstance(answer, pl.DataFrame)
    rows = [list(row) for row in zip(*COLUMNS.values(), strict=True)]
    plain = TANClassifier().fit(rows, ILL).network_
    for answer in (plain.posterior("class"), plain.table("x1"), plain.sample(3, 0)):
        assert isinstance(answer, dict)


def test_a_frame_can_be_asked_for_and_declined(pandas_clf):
    """By name of the library, or False for dicts."""
    network = pandas_clf.network_
    assert isinstance(network.posterior("ill", as_frame=False), dict)
    assert isinstance(network.table("age", as_frame="polars"), pl.DataFrame)
    assert isinstance(network.with_frames(None).sample(2, 0, as_frame=True), pd.DataFrame)
    with pytest.raises(InputError, match="as_frame must be"):
        network.table("age", as_frame="excel")


def test_a_table_has_a_row_per_state_of_the_parents(pandas_clf):
    """As dict and as frame the numbers of the table itself."""
    network = pandas_clf.network_
    for i, name in enumerate(network.names):
        numbers = np.exp(network.log_tables[i]).reshape(-1, network.arities[i])
        frame = network.table(name)
        states = list(network.variables[i].states)
        assert np.array_equal(frame[states].to_numpy(), numbers)
        assert list(frame.columns) == [*(network.names[p] for p in parents(network, i)), *states]
        plain = network.table(name, as_frame=False)
        rows = [plain] if not parents(network, i) else plain.values()
        assert [list(row.values()) for row in rows] == numbers.tolist()


def test_a_state_with_the_name_of_a_parent_keeps_its_column():
    """No column of the frame is lost."""
    X = pd.DataFrame({"b": ["yes", "no"] * 10, "yes": ["u", "v"] * 10})
    network = NaiveBayesClassifier().fit(X, pd.Series(["yes", "no"] * 10, name="yes_")).network_
    assert list(network.table("b").columns) == ["yes_", "no", "yes"]
    X = pd.DataFrame({"b": ["y", "no"] * 10})
    network = NaiveBayesClassifier().fit(X, pd.Series(["yes", "no"] * 10, name="y")).network_
    assert list(network.table("b").columns) == ["y", "no", "state = y"]


def test_labelled_joint_answers_agree_with_the_array(pandas_clf):
    """Tuples of states, or a column per variable, in the order of the query."""
    network = pandas_clf.network_
    array = network.posterior_array(["ill", "sex"], {"age": 3})
    plain = network.posterior(["ill", "sex"], {"age": 3}, as_frame=False)
    assert list(plain) == [("no", "female"), ("no", "male"), ("yes", "female"), ("yes", "male")]
    assert list(plain.values()) == array.ravel().tolist()
    frame = network.posterior(["ill", "sex"], {"age": 3})
    assert list(frame.columns) == ["ill", "sex", "probability"]
    assert frame["probability"].tolist() == array.ravel().tolist()


def test_a_labelled_sample_is_the_sample(pandas_clf):
    """The same draws for the same seed, as labels."""
    network = pandas_clf.network_
    codes, table = network.sample_codes(20, 4), network.sample(20, 4)
    for i, variable in enumerate(network.variables):
        assert table[variable.name].tolist() == [variable.states[k] for k in codes[:, i]]


def test_the_frames_survive_copies_but_take_no_part_in_comparisons(pandas_clf):
    """A pickled network answers alike; equal networks are equal."""
    network = pandas_clf.network_
    assert pickle.loads(pickle.dumps(network)).frames == "pandas"
    assert network == network.with_frames(None)


def test_values_are_understood_after_reading_a_model_file(pandas_clf, tmp_path):
    """The labels are in the file, so are the bins."""
    save_model(pandas_clf, tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json").network_
    evidence = {"age": 53, "smokes": True}
    expected = pandas_clf.network_.posterior("ill", evidence, as_frame=False)
    assert loaded.posterior("ill", evidence) == expected


@pytest.mark.parametrize(
    "clf", [TANClassifier(), MaxMarginBNClassifierCV(gammas=[1.0], max_parents=[1], cv=2)]
)
def test_other_classifiers_know_the_library_too(clf):
    """Trained tables, chosen settings."""
    network = clf.fit(pd.DataFrame(COLUMNS), pd.Series(ILL, name="ill")).network_
    assert isinstance(network.posterior("ill", {"age": 53}), pd.Series)


def parents(network, i):
    return network.structure.parents[i]


def test_dates_in_evidence_are_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """As their columns were."""
    rows = [
        [f"2024-{1 + i % 12:02}-11", f"s{i % 40 if i % 2 else 0}", f"${17 * i + 1000:,}.50"]
        for i in range(120)
    ]
    monkeypatch.setattr(preparation, "MAX_STATES", 5)
    classifier = NaiveBayesClassifier(column_kinds={0: "date"})
    with pytest.warns(UserWarning, match="texts read as numbers|rare categories"):
        classifier.fit(rows, [i // 60 for i in range(120)])
    network = classifier.network_
    parts = {"x0 year": 2024, "x0 month": 5, "x0 weekday": "Saturday"}
    day = datetime.date(2024, 5, 11)
    assert network.posterior("class", {"x0": day}) == network.posterior("class", parts)
    assert network.posterior("class", {"x0": "2024-05-11"}) == network.posterior("class", parts)
    with pytest.raises(InputError, match="unknown variable 'x9'"):
        network.posterior("class", {"x9": day})
