"""Slips of a table are named, with the evidence; sound tables are left in peace."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from marginbn import NaiveBayesClassifier, inspect_data
from marginbn.data.guardrails import LOOKED_AT, find_slips
from marginbn.data.labelled import LabelledTable
from marginbn.data.table import as_table
from marginbn.datasets import load_dataset
from marginbn.exceptions import DataWarning

N = 600
RNG = np.random.default_rng(0)
LABELS = np.array(["stays", "leaves"])[(RNG.random(N) < 0.3).astype(int)]
SOUND = pd.DataFrame(
    {
        "age": RNG.normal(40, 9, N) + 5 * (LABELS == "leaves"),
        "plan": RNG.choice(["basic", "gold", "free"], N),
    }
)


def slips(frame: Any, labels: Any = LABELS) -> list[str]:
    """Lines of a table of which all columns are used."""
    table = as_table(frame)
    return find_slips(LabelledTable.of(table, np.asarray(labels)), table.names)


def test_a_sound_table_has_none() -> None:
    """Nor has one that is too short to tell."""
    assert slips(SOUND) == []
    assert slips(SOUND.assign(copy=LABELS)[:40], LABELS[:40]) == []


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "corral", "monks-1", "led-7"])
def test_no_false_alarm_on_data_sets(name: str) -> None:
    """Good columns are no leaks, and small tables no proof."""
    known = load_dataset(name)
    labels = known.train.column(known.target).values
    table = known.train.drop(known.target)
    found = find_slips(LabelledTable.of(table, labels.astype(str)), table.names)
    assert not any("gives the class away" in line for line in found)


@pytest.mark.parametrize(
    ("leak", "is_told"),
    [
        (np.where(LABELS == "leaves", "no", "yes"), True),
        (np.where(LABELS == "leaves", 1.0, 0.0) + RNG.random(N) / 2, True),
        (np.array([f"{a}{i % 40}" for i, a in enumerate(LABELS)]), True),
        (np.where(RNG.random(N) < 0.02, "no", LABELS), False),
        (np.array([f"{a}{i}" for i, a in enumerate(LABELS)]), False),
    ],
    ids=["its name", "a number", "many values", "two per cent wrong", "identifiers"],
)
def test_columns_that_give_the_class_away(leak: Any, is_told: bool) -> None:
    """Whatever they hold, if nearly all held-out rows agree."""
    found = slips(SOUND.assign(leak=leak))
    told = [line for line in found if line.startswith("'leak' alone gives the class away")]
    assert bool(told) == is_told
    assert all("drop it, X.drop(columns=['leak']), unless it is known" in line for line in told)


def test_long_tables_are_looked_at_in_part() -> None:
    labels = RNG.integers(0, 2, 3 * LOOKED_AT)
    (line,) = slips(pd.DataFrame({"x": labels.astype(str)}), labels)
    assert f"right in {LOOKED_AT} of {LOOKED_AT} held-out rows" in line


def test_columns_that_determine_each_other() -> None:
    """By whatever names; measured numbers do so by chance."""
    codes = SOUND["plan"].map({"basic": 3, "gold": 1, "free": 2})
    (line,) = slips(SOUND.assign(code=codes, size=RNG.normal(size=N)))
    assert line == (
        "'code' and 'plan' determine each other in all 600 rows: drop all but one of them, "
        "X.drop(columns=['code'])"
    )


def test_repeated_rows() -> None:
    twice = pd.concat([SOUND, SOUND[:60]])
    (line,) = slips(twice, np.r_[LABELS, LABELS[:60]])
    assert line.startswith("60 of 660 rows are repetitions of others")
    assert slips(SOUND[["plan"]]) == []
    rounded = SOUND.assign(age=SOUND["age"].round(1))
    assert rounded.duplicated().sum() > 0.02 * N  # by chance
    assert slips(rounded) == []


def test_a_second_header() -> None:
    """Units below the names make texts of numbers."""
    rows = [["kg", "cm"], *([str(i % 37), str(i % 41)] for i in range(N - 1))]
    found = slips(pd.DataFrame(rows, columns=["weight", "height"]))
    assert any(line.startswith("the first row looks like a second header ('kg'") for line in found)


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("contact", [f"a{i % 90}@mail.example" for i in range(N)], "90 e-mail addresses"),
        ("last_name", [f"Name{chr(97 + i % 26)}{chr(97 + i % 3)}" for i in range(N)], "names of"),
        (
            "note",
            [f"the customer called again about order {'x' * (i % 50)} and more" for i in range(N)],
            "different texts of",
        ),
    ],
)
def test_persons_and_free_text_are_left_out(name: str, values: list[str], reason: str) -> None:
    """Unless the user wants the column; inspect and fit agree."""
    frame = SOUND.assign(**{name: values})
    with pytest.warns(DataWarning, match=rf"'{name}' .*{reason}"):
        fitted = NaiveBayesClassifier().fit(frame, LABELS)
    assert not any(value in fitted.preparation_.left_out[name] for value in values)
    report = inspect_data(frame, LABELS)
    assert next(c for c in report.columns if c.name == name).n_states == 0
    kinds = {name: "categorical"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        kept = NaiveBayesClassifier(column_kinds=kinds).fit(frame, LABELS)
    assert name not in kept.preparation_.left_out


def test_fit_and_inspect_say_the_same() -> None:
    frame = SOUND.assign(leak=LABELS)
    with pytest.warns(DataWarning, match="'leak' alone gives the class away") as caught:
        NaiveBayesClassifier().fit(frame, LABELS)
    report = inspect_data(frame, LABELS)
    assert {str(w.message) for w in caught} <= set(report.notes)


def test_fit_and_inspect_leave_out_the_same_columns() -> None:
    """Whatever the number of rows: titles are kept where enough of them repeat."""
    rng, decided = np.random.default_rng(4), set()
    for n_rows in range(40, 401, 40):
        titles = [f"title {i}" for i in np.minimum(rng.integers(0, 260, n_rows), 180)]
        frame = pd.DataFrame({"title": titles, "x": rng.integers(0, 3, n_rows).astype(str)})
        labels = rng.integers(0, 2, n_rows)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            fitted = NaiveBayesClassifier().fit(frame, labels)
        is_left_out = "title" in fitted.preparation_.left_out
        (told,) = [c for c in inspect_data(frame, labels).columns if c.name == "title"]
        assert (told.n_states == 0) == is_left_out
        decided.add(is_left_out)
    assert decided == {False, True}


def test_fit_doubts_a_class_that_most_rows_have_for_themselves() -> None:
    """As a warning, in the words of the inspection; half as many classes as rows are in order."""
    X, names = SOUND[:40], np.arange(40).astype(str)
    with pytest.warns(DataWarning, match="40 classes in 40 rows: is this the column") as caught:
        NaiveBayesClassifier().fit(X, names)
    assert {str(w.message) for w in caught} == set(inspect_data(X, names).done)
    NaiveBayesClassifier().fit(X, names[np.arange(40) // 2])


def test_columns_of_different_values_are_no_pair_in_short_tables() -> None:
    rng = np.random.default_rng(0)
    for n_rows in (50, 51, 80):
        X = rng.normal(size=(n_rows, 3))
        report = inspect_data(X, np.arange(n_rows) % 2)
        assert not any("determine each other" in note for note in report.notes)
