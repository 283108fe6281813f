"""The look at a table before the verdict."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from marginbn import BayesianNetworkLearner, NaiveBayesClassifier, inspect_data
from marginbn.data import preparation
from marginbn.exceptions import DataWarning, InputError

RNG = np.random.default_rng(0)
N = 200
FRAME = pd.DataFrame(
    {
        "id": np.arange(N),
        "customer": [f"c-{i}" for i in range(N)],
        "plan": RNG.choice(["a", "b", "c"], N),
        "city": [f"town {i % 70}" for i in range(N)],
        "age": np.where(RNG.random(N) < 0.3, np.nan, RNG.normal(40, 9, N)),
        "phone": np.where(np.arange(N) < 3, None, "yes"),
        "same": "x",
        "nothing": np.nan,
        "since": [f"2024-01-{i % 28 + 1:02}" for i in range(N)],
    }
)
LABELS = pd.Series(["no"] * (N - 12) + ["yes"] * 9 + ["rare"] * 3, name="left")


def test_every_column_is_judged() -> None:
    """Kinds, counts and remarks against the frame's own."""
    report = inspect_data(FRAME, LABELS)
    by_name = {column.name: column for column in report.columns}
    for name in FRAME.columns:
        assert by_name[name].n_missing == FRAME[name].isna().sum()
        assert by_name[name].n_distinct == FRAME[name].nunique()
    assert by_name["customer"].remark.startswith("left out: 200 of 200")
    assert by_name["id"].n_states == 0
    assert by_name["same"].remark == "constant"
    assert "no value" in by_name["nothing"].remark
    assert "become 'other'" in by_name["city"].remark
    assert by_name["city"].n_states == 50
    assert by_name["since"].remark == "becomes year, month and weekday"
    assert by_name["plan"].n_states == 3


def test_classes_policies_and_parameters() -> None:
    """Against pandas, and against a fit of naive Bayes."""
    report = inspect_data(FRAME, LABELS)
    assert report.target == "left"
    assert report.classes == {"no": 188, "rare": 3, "yes": 9}
    used = FRAME.drop(columns=["id", "customer", "nothing"])
    assert report.policies["drop"].n_rows_lost == used.isna().any(axis=1).sum()
    assert report.policies["auto"].n_rows_lost == FRAME["phone"].isna().sum()
    assert report.policies["state"].n_rows_lost == 0
    with pytest.warns(DataWarning):
        fitted = NaiveBayesClassifier(missing="auto").fit(FRAME, LABELS)
    assert report.n_parameters == fitted.network_.n_parameters
    notes = " ".join(report.notes)
    for words in ("'rare' (3)", "94.0 % of the rows are of class 'no'", "constant", "of its own"):
        assert words in notes


def test_more_parameters_than_rows_are_told() -> None:
    """Titanic's 33 969 parameters from 141 rows."""
    few = FRAME.iloc[:60]
    kinds: Any = {"plan": "categorical", "city": "categorical"}
    report = inspect_data(few[["plan", "city"]], LABELS.iloc[140:], column_kinds=kinds)
    assert report.n_parameters > 60
    assert "more parameters" in " ".join(report.hints)


def test_a_tidy_table_says_nothing() -> None:
    report = inspect_data(FRAME[["plan"]], ["a", "b"] * (N // 2))
    assert report.notes == ()


def test_text_json_and_html_hold_the_same() -> None:
    """Names and notes in all of them, escaped where it matters."""
    frame = FRAME.rename(columns={"same": "<b>"})
    report = inspect_data(frame, LABELS)
    record = json.loads(json.dumps(report.to_dict()))
    assert [column["name"] for column in record["columns"]] == list(frame.columns)
    text, page = str(report), report._repr_html_()
    for note in record["done"] + record["hints"]:
        assert note in text
    assert "<b>" not in page
    assert "&lt;b&gt;" in page
    assert record["n_parameters"] == report.n_parameters


def test_labels_may_be_missing_but_not_all() -> None:
    """Rows without a class are counted; arguments that do not fit are refused."""
    labels = LABELS.copy()
    labels[:5] = None
    assert inspect_data(FRAME, labels).n_without_class == 5
    with pytest.raises(InputError, match="y must hold"):
        inspect_data(FRAME, [None] * N)
    with pytest.raises(InputError, match="equal length"):
        inspect_data(FRAME, LABELS[:5])


def test_numbers_spoiled_by_words_are_told() -> None:
    """Merging all but fifty of them into "other" would be nonsense in silence."""
    weights = [f"{i % 60}.5" for i in range(N - 4)] + ["unknown"] * 4
    table, labels = FRAME[["plan"]].assign(weight=weights), ["a", "b"] * (N // 2)
    report = inspect_data(table, labels)
    said = "texts read as numbers: 'weight' (missing: 'unknown')"
    assert any(line.startswith(said) for line in report.done)
    report = inspect_data(table, labels, column_kinds={"weight": "categorical"})
    assert any("'weight'" in hint and "but for 'unknown'" in hint for hint in report.hints)


def test_one_class_is_told() -> None:
    assert "only one class" in inspect_data(FRAME[["plan"]], ["a"] * N).hints[0]


def test_a_column_called_an_identifier_is_not_used_in_silence() -> None:
    """Customers with many rows each are no identifier by their values, only by name."""
    rng = np.random.default_rng(0)
    columns = {"customer_id": np.tile(np.arange(30.0), 4), "spent": rng.normal(size=120)}
    X = pd.DataFrame(columns)
    report = inspect_data(X, rng.integers(0, 2, 120))
    assert any(h.startswith("used, though they are called identifiers") for h in report.hints)
    quiet = inspect_data(X.rename(columns={"customer_id": "customers"}), np.arange(120) % 2)
    assert not any("called identifiers" in hint for hint in quiet.hints)


def test_without_a_class_it_says_what_the_learner_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """States are those that are learned from; parameters are those of a network without arcs."""
    monkeypatch.setattr(preparation, "MAX_STATES", 20)
    report = inspect_data(FRAME)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        learner = BayesianNetworkLearner(max_parents=0).fit(FRAME)
    arities = {v.name: v.arity for v in learner.network_.variables}
    states = {c.name: c.n_states for c in report.columns if c.n_states}
    parts = [arities[f"since {part}"] for part in ("year", "month", "weekday")]
    assert states.pop("since") == sum(parts)
    assert states == {n: a for n, a in arities.items() if not n.startswith("since")}
    assert arities["age"] == 4
    assert report.n_parameters == sum(a - 1 for a in arities.values())
    assert report.n_parameters_tree == max(arities.values()) * report.n_parameters
    assert report.policies["drop"].n_rows_lost == learner.n_dropped_ > 0
    assert all(policy.lost_classes == () for policy in report.policies.values())
    assert {str(w.message) for w in caught} >= set(report.done)
    assert any("missing='drop' leaves out" in hint for hint in report.hints)


def test_without_a_class_in_words() -> None:
    """No table of classes; every row lost is no class lost; bins as many as asked for."""
    rows = [[i + 0.5, None if i % 2 else "a", "b" if i % 2 else None] for i in range(10)]
    report = inspect_data(rows, n_bins=5, missing="state")
    assert [c.n_states for c in report.columns] == [5, 2, 2]
    assert report.policies["drop"].n_rows_lost == 10
    assert report.policies["drop"].lost_classes == ()
    text = str(report)
    assert text.startswith("10 rows, 3 columns, no class\n")
    assert text.endswith(
        "a network without arcs would have 6 free parameters, one with a parent per column at most "
        "30"
    )
    assert "no class" in report._repr_html_()
    crowded = inspect_data([[f"{letter}{i // 2}" for letter in "abcdef"] for i in range(10)])
    assert crowded.hints[-1].startswith(
        "even a network without arcs would have more parameters (24) than there are rows (10)"
    )
    with pytest.raises(InputError, match="n_bins must be at least 1"):
        inspect_data(rows, n_bins=0)


def test_texts_that_often_mean_missing_are_told() -> None:
    """Where they are categories: in memory all of them, in files those that are not documented."""
    words = [["", "?", "NULL", "a", "b"][i % 5] for i in range(100)]
    hints = inspect_data([[word] for word in words], [i // 5 % 2 for i in range(100)]).hints
    expected = "is a category of 'x0' (20 rows): if it means missing, leave it empty"
    assert [hint for hint in hints if "means missing" in hint] == [
        f"{text!r} {expected}" for text in ("", "?", "NULL")
    ]


def test_amounts_without_a_cut_are_told() -> None:
    """As all numbers are."""
    prices = [[f"${1000 + i * 37 % 101}.50"] for i in range(100)]
    (hint,) = inspect_data(prices, np.arange(100) // 2 % 2).hints
    assert hint.startswith("numbers that do not separate the classes alone")
    assert "'x0'" in hint


def test_measured_classes_are_refused_as_by_fit() -> None:
    with pytest.raises(InputError, match=r"class must be one-dimensional, got .* \(2, 1\)"):
        inspect_data([[1], [2]], pd.DataFrame({"y": ["a", "b"]}))
    with pytest.raises(InputError, match=r"y holds measured numbers such as 0\.5"):
        inspect_data([[i] for i in range(N)], np.arange(N) / 2)


def test_copies_and_codes_for_missing_values_are_told() -> None:
    """A column twice counts twice; -999 years are no age."""
    rng = np.random.default_rng(0)
    age = np.where(rng.random(N) < 0.1, -999.0, rng.integers(20, 80, N))
    X = pd.DataFrame({"age": age, "again": age, "height": rng.normal(170, 9, N), "one": 1.5})
    hints = inspect_data(X.assign(another=1.5), ["a", "b"] * (N // 2)).notes
    assert any("'again' and 'age' determine each other" in hint for hint in hints)
    assert any(hint.startswith("-999 in 'age' is far from all other values") for hint in hints)
    told = [hint for hint in hints if "do not separate the classes alone" not in hint]
    assert not any("height" in hint or "'one' determine" in hint for hint in told)
    assert any("separate the classes alone" in hint and "'height'" in hint for hint in hints)
    scores = pd.DataFrame({"score": np.r_[rng.integers(20, 99, N - 3), 99, 99, 99].astype(float)})
    assert not any("far from" in h for h in inspect_data(scores, ["a", "b"] * (N // 2)).hints)
