"""Codings: learned from the training rows, applied to others, unknown values told apart."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginbn.data.columns import Column
from marginbn.data.encode import MISSING_LABEL, Coding, TableCoding, learn_coding
from marginbn.data.labelled import LabelledTable, MissingPolicy
from marginbn.data.table import Table, as_column, as_table
from marginbn.data.training import encode_training
from marginbn.exceptions import InputError

CLASSES = np.array([0, 0, 0, 0, 1, 1, 1, 1])
LOW_HIGH = [1.0, 2.0, 3.0, 4.0, 11.0, 12.0, 13.0, 14.0]


def learn(column: Column, missing: MissingPolicy = "drop") -> Coding:
    half = column.n_rows // 2
    classes = np.array([0] * half + [1] * (column.n_rows - half))
    has_state = missing in ("state", "auto") and bool(column.missing.any())
    return learn_coding(column, classes, np.ones(column.n_rows), 2, has_state)


def letters(*values: str | None) -> Column:
    return as_column(list(values), name="letter", kind="categorical")


def numbers(*values: float) -> Column:
    return Column.numeric("size", np.array(values))


def test_a_numeric_column_by_hand() -> None:
    """The classes part between 4 and 11: one cut at 8, and the cut itself lies left."""
    coding = learn(numbers(*LOW_HIGH))
    assert coding.cuts == (8.0,)
    assert coding.variable.name == "size"
    assert coding.variable.states == ("<= 8", "> 8")
    assert coding.encode(numbers(-1e9, 8.0, 8.1, 1e9, np.nan)).tolist() == [0, 0, 1, 1, -1]


def test_a_categorical_column_by_hand() -> None:
    """Categories seen in training are the states, in sorted order; missing is -1."""
    coding = learn(letters("b", "a", "b", "c"))
    assert coding.variable.states == ("a", "b", "c")
    codes = coding.encode(letters("c", None, "a"))
    assert codes.tolist() == [2, -1, 0]
    assert codes.dtype == np.int32


def test_weights_count_in_the_cuts() -> None:
    """A row of weight zero is absent: without its neighbours the cut moves to the next pair."""
    column, weights = numbers(*LOW_HIGH), np.ones(8)
    weights[3] = 0.0
    assert learn_coding(column, CLASSES, weights, 2, False).cuts == (7.0,)  # between 3 and 11


def test_a_column_that_tells_nothing_is_one_state() -> None:
    """Without a worthwhile cut everything falls into one bin, and missing stays unknown."""
    coding = learn(numbers(5.0, 5.0, 5.0, 5.0))
    assert coding.variable.states == ("any number",)
    assert coding.encode(numbers(-3.0, np.nan)).tolist() == [0, -1]


def test_declared_categories_that_no_row_uses_are_no_states() -> None:
    declared = Column.categorical("letter", np.array([0, 2, 2, 0]), ["a", "b", "c"])
    coding = learn(declared)
    assert coding.categories == ("a", "c")
    assert coding.encode(declared.take(np.array([0, 1]))).tolist() == [0, 1]
    assert coding.encode(Column.categorical("letter", np.array([1]), ["a", "b"])).tolist() == [-1]


def test_categories_are_matched_by_label_not_by_code() -> None:
    coding = learn(letters("a", "b"))
    assert coding.encode(Column.categorical("letter", np.array([0, 1]), ["b", "a"])).tolist() == [
        1,
        0,
    ]


def test_missing_values_become_a_state_of_their_own() -> None:
    coding = learn(letters("a", None, "b", "b"), "state")
    assert coding.variable.states == ("a", "b", MISSING_LABEL)
    assert coding.encode(letters(None, "b", "z")).tolist() == [2, 1, -1]
    sizes = learn(numbers(*LOW_HIGH[:4], np.nan, *LOW_HIGH[4:], np.nan), "state")
    assert sizes.variable.states == ("<= 8", "> 8", MISSING_LABEL)
    codes = sizes.encode(numbers(np.nan, 1.0, 99.0))
    assert codes.tolist() == [2, 0, 1]
    assert codes.dtype == np.int32


def test_a_category_called_missing_keeps_its_name() -> None:
    coding = learn(letters("(missing)", "(missing)_", None, "a"), "state")
    states = coding.variable.states
    assert states == ("(missing)", "(missing)_", "a", "(missing)__")
    assert coding.encode(letters(None, "(missing)", "a")).tolist() == [3, 0, 2]


def test_a_column_with_nothing_but_missing_values_is_encoded() -> None:
    for column in (
        Column.numeric("size", np.full(4, np.nan)),
        Column.categorical("letter", np.full(4, -1), []),
    ):
        coding = learn(column, "state")
        assert coding.encode(column).tolist() == [coding.variable.arity - 1] * 4
        assert coding.variable.states[-1] == MISSING_LABEL


def test_columns_of_the_other_kind_are_read_as_the_fitted_one() -> None:
    sizes = learn(numbers(*LOW_HIGH))
    assert sizes.encode(Column.categorical("size", np.array([1, 0, -1]), [3, 12])).tolist() == [
        1,
        0,
        -1,
    ]
    codes = learn(as_column([1, 2, 2, 1], name="size", kind="categorical"))
    assert codes.encode(numbers(2.0, 1.0, 3.0, np.nan)).tolist() == [1, 0, -1, -1]
    with pytest.raises(InputError, match=r"'size' is to be numeric.*'huge'"):
        sizes.encode(Column.categorical("size", np.array([0]), ["huge"]))


@given(
    st.lists(st.one_of(st.none(), st.sampled_from(["a", "b", "c", "(missing)", ""])), min_size=2),
    st.sampled_from(["drop", "state"]),
)
@settings(deadline=None, max_examples=80)
def test_codes_and_states_read_back_as_the_values(
    values: list[str | None], policy: MissingPolicy
) -> None:
    column = as_column(values, name="letter", kind="categorical")
    coding = learn(column, policy)
    states = coding.variable.states
    assert len(set(states)) == len(states)
    for value, code in zip(values, coding.encode(column), strict=True):
        if value is not None:
            assert states[code] == value
        else:
            assert code == (len(states) - 1 if policy == "state" else -1)


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=30),
    st.lists(st.floats(-1e7, 1e7), max_size=10),
    st.randoms(use_true_random=False),
)
@settings(deadline=None, max_examples=50)
def test_numeric_codes_count_the_cuts_below(
    training: list[float], later: list[float], random: object
) -> None:
    classes = np.array([random.randint(0, 2) for _ in training])  # type: ignore[attr-defined]
    column = Column.numeric("size", np.array(training))
    coding = learn_coding(column, classes, np.ones(len(training)), 3, False)
    expected = [sum(cut < x for cut in coding.cuts) for x in later]
    assert coding.encode(Column.numeric("size", np.array(later))).tolist() == expected
    assert coding.variable.arity == len(coding.cuts) + 1


def mixed_table() -> Table:
    rows = list(zip("aabbabab", LOW_HIGH, strict=True))
    return as_table(rows, names=["letter", "size"], kinds={"size": "numeric"})


def learn_table(table: Table) -> TableCoding:
    return encode_training(LabelledTable.of(table, CLASSES), "drop").coding


def test_a_table_is_coded_column_by_column() -> None:
    table = mixed_table()
    coding = learn_table(table)
    assert isinstance(coding, TableCoding)
    kinds = {c.name: c.kind for c in coding.columns}
    assert kinds == {"letter": "categorical", "size": "numeric"} == table.kinds
    assert [v.name for v in coding.variables] == ["letter", "size"]
    assert coding.encode(table).tolist() == [
        [code, int(size > 7.5)]
        for code, size in zip([0, 0, 1, 1] + [0, 1] * 2, LOW_HIGH, strict=True)
    ]


def test_rows_with_another_number_of_columns_are_refused() -> None:
    coding = learn_table(mixed_table())
    with pytest.raises(InputError, match="2 columns"):
        coding.encode(mixed_table().drop("size"))
