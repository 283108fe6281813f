"""The table with labels: rows, weights and positions go together, and nothing is built twice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from marginbn import MaxMarginBNClassifierCV, NaiveBayesClassifier, Search
from marginbn.classifiers import validation
from marginbn.classifiers.base import BaseBNClassifier
from marginbn.classifiers.validation import read_training_rows
from marginbn.cli import data
from marginbn.cli.options import ModelOptions, TableOptions, build_classifier
from marginbn.data.labelled import LabelledTable, MissingPolicy, validation_splits
from marginbn.data.preparation import TableSettings
from marginbn.data.table import Table, as_table
from marginbn.data.training import TrainingRows, survey_rows
from marginbn.exceptions import DataWarning, InputError

TABLE = as_table(
    [["red", 1.5], ["blue", None], ["red", 2.5], ["blue", 9.5]], names=["colour", "size"]
)
LABELS = np.array(["a", "b", "a", "b"])


def test_rows_weights_and_positions_go_together() -> None:
    """A part of a part knows which of the given rows it holds."""
    rows = LabelledTable.of(TABLE, LABELS, "y", weights=np.array([1.0, 2.0, 3.0, 4.0]))
    part = rows.take(np.array([3, 1, 0])).take(np.array([True, True, False]))
    assert part.positions.tolist() == [3, 1]
    assert part.labels.tolist() == ["b", "b"]
    assert part.weights.tolist() == [4.0, 2.0]
    assert part.features.column("colour").values.tolist() == ["blue", "blue"]
    assert part.given_labels is LABELS
    assert (part.n_rows, part.target) == (2, "y")


def test_the_target_s_name_is_free() -> None:
    """A feature of that name makes it longer."""
    assert LabelledTable.of(TABLE, LABELS, "size").target == "size_"


def test_missing_values_by_policy() -> None:
    rows = LabelledTable.of(TABLE, LABELS)
    assert kept_rows(rows, "state").n_rows == 4
    with pytest.warns(DataWarning, match="1 of 4 rows have missing values"):
        kept = kept_rows(rows, "drop")
    assert kept.positions.tolist() == [0, 2, 3]
    with pytest.raises(InputError, match=r"in the columns \['size'\]"):
        kept_rows(rows, "error")
    gaps = as_table([[None, 1.5], ["red", None]], names=["colour", "size"])
    with pytest.raises(InputError, match="every row"):
        kept_rows(LabelledTable.of(gaps, LABELS[:2]), "drop")


def kept_rows(rows: LabelledTable, missing: MissingPolicy) -> LabelledTable:
    return TrainingRows.of(survey_rows(rows), TableSettings(missing=missing)).drawn


def same_columns(first: Table, second: Table) -> bool:
    return all(a is b for a, b in zip(first.columns, second.columns, strict=True))


def test_columns_of_a_table_are_never_rebuilt() -> None:
    """Reading a table, fitting on it and predicting it hand on the columns that are there."""
    assert as_table(TABLE) is TABLE
    assert as_table(TABLE, kinds=TABLE.kinds) is TABLE
    renamed = as_table(TABLE, names=["colour", "width"])
    assert renamed.columns[0] is TABLE.columns[0]
    assert renamed.columns[1].numbers is TABLE.columns[1].numbers
    clf = NaiveBayesClassifier(missing="state").fit(TABLE, LABELS)
    rows = read_training_rows(clf, TABLE, LABELS, None, kinds="auto")
    assert rows.features is TABLE
    assert same_columns(clf.prepare(TABLE), TABLE)
    other = as_table(TABLE, kinds={"size": "categorical"})
    assert other.kinds == {"colour": "categorical", "size": "categorical"}


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How often labels were read and parameters checked."""
    calls = {"labels": 0, "parameters": 0}
    read, check = validation.read_training_rows, BaseBNClassifier.check_parameters

    def count_labels(*args: Any, **options: Any) -> LabelledTable:
        calls["labels"] += 1
        return read(*args, **options)

    def count_checks(self: BaseBNClassifier) -> None:
        calls["parameters"] += 1
        check(self)

    monkeypatch.setattr(validation, "read_training_rows", count_labels)
    monkeypatch.setattr(BaseBNClassifier, "check_parameters", count_checks)
    return calls


def test_fit_reads_labels_and_checks_parameters_once(counted: dict[str, int]) -> None:
    """Also where the user's own splits need the labels of all rows."""
    X, y = [["r", "s"], ["b", "t"], ["b", "s"], ["r", "t"]] * 3, ["a", "b", "b", "a"] * 3
    MaxMarginBNClassifierCV(
        gammas=[1.0], max_parents=(1,), cv=2, search=Search(solver="branch_bound")
    ).fit(X, y)
    assert counted == {"labels": 1, "parameters": 1}


def test_the_command_line_hands_its_rows_on(counted: dict[str, int]) -> None:
    """What ``marginbn fit`` has read and checked is not read and checked again."""
    classifier = build_classifier(ModelOptions(method="tan"))
    rows = data.load_rows(TableOptions("iris"))
    classifier.fit_rows(rows)
    assert counted == {"labels": 0, "parameters": 2}  # by the command line and by the fit
    assert list(classifier.feature_names_in_) == list(rows.features.names)
    assert classifier.network_.names[0] == "class"


@pytest.mark.parametrize(
    ("n_rows", "n_folds", "n_splits"), [(1000, 5, 5), (1001, 5, 1), (50, 1, 1)]
)
def test_validation_splits(n_rows: int, n_folds: int, n_splits: int) -> None:
    """More than 1000 rows: one split with 20 % of every class; else folds; all rows are used."""
    labels = np.array(["a", "b", "b", "b", "b"])[np.arange(n_rows) % 5]
    splits = validation_splits(labels, 0, n_folds)
    assert len(splits) == n_splits
    for train, test in splits:
        assert sorted([*train, *test]) == list(range(n_rows))
        assert abs((labels[test] == "a").sum() - n_rows / 25) < 1


def test_the_only_row_of_a_class_is_always_learned_from() -> None:
    """Rows 0 and 8 are alone; every other row is held out exactly once."""
    labels = np.array(["u", *"aaaaabb", "w", *"bbbaa"])
    splits = validation_splits(labels, 3)
    assert all({0, 8} <= set(train) for train, _ in splits)
    assert sorted(np.concatenate([test for _, test in splits])) == [*range(1, 8), *range(9, 14)]
    lonely = validation_splits(np.array(["a", "b", "c"]), 0)  # as they come
    assert all(len(train) and len(test) for train, test in lonely)


def test_one_row_cannot_be_split() -> None:
    with pytest.raises(InputError, match="at least 2 rows"):
        validation_splits(np.array(["a"]), 0)
