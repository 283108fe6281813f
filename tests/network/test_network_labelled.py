"""Evidence as the table has it, answers with labels: dicts, pandas and polars."""

import datetime

import numpy as np
import pandas as pd
import pytest

from marginbn import InputError, NaiveBayesClassifier, TANClassifier
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


def test_a_table_has_a_row_per_state_of_the_parents(pandas_clf):
    """The numbers of the table itself, by the labels of the states."""
    network = pandas_clf.network_
    for i, name in enumerate(network.names):
        numbers = np.exp(network.log_tables[i]).reshape(-1, network.arities[i])
        table = network.table(name)
        rows = [table] if not parents(network, i) else [*table.values()]
        assert all(tuple(row) == network.variables[i].states for row in rows)
        assert [list(row.values()) for row in rows] == numbers.tolist()


def test_labelled_joint_answers_agree_with_the_array(pandas_clf):
    network = pandas_clf.network_
    array = network.posterior_array(["ill", "sex"], {"age": 3})
    plain = network.posterior(["ill", "sex"], {"age": 3})
    assert list(plain) == [("no", "female"), ("no", "male"), ("yes", "female"), ("yes", "male")]
    assert list(plain.values()) == array.ravel().tolist()


def test_a_labelled_sample_is_the_sample(pandas_clf):
    network = pandas_clf.network_
    codes, table = network.sample_codes(20, 4), network.sample(20, 4)
    for i, variable in enumerate(network.variables):
        assert table[variable.name] == [variable.states[k] for k in codes[:, i]]


def parents(network, i):
    return network.structure.parents[i]


def test_dates_in_evidence_are_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
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
