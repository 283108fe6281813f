"""Tables and columns from everything in memory that is tabular."""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginbn.data.columns import Column
from marginbn.data.table import Table, as_column, as_table
from marginbn.exceptions import InputError

# --- by hand --------------------------------------------------------------------------------------


def test_array_of_codes_and_measurements() -> None:
    """Small whole numbers become categories, measurements stay numbers, names are x0, x1."""
    table = as_table(np.array([[2.0, 0.5], [7.0, 1.5], [2.0, np.nan]]))
    codes, sizes = table.columns
    assert table.names == ("x0", "x1")
    assert (codes.kind, codes.categories, codes.codes.tolist()) == (
        "categorical",
        (2, 7),
        [0, 1, 0],
    )
    assert codes.labels == ("2", "7")
    assert sizes.kind == "numeric"
    np.testing.assert_array_equal(sizes.values, [0.5, 1.5, np.nan])
    np.testing.assert_array_equal(table.complete, [True, True, False])


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (np.arange(10), "categorical"),
        (np.arange(11), "numeric"),
        (np.arange(10) * 1e6, "categorical"),
        (np.arange(11) * 1e12, "numeric"),
        (np.array([0.0, np.nan, 1.0]), "categorical"),
        (np.array([0.0, 0.5]), "numeric"),
        (np.array([np.nan, np.nan]), "numeric"),
        (np.array([], dtype=np.int64), "numeric"),
        (np.array([True, False]), "categorical"),
        (np.array(["1", "2"]), "categorical"),
        (np.array([-128, 127], dtype=np.int8), "categorical"),
        (np.array([0, 2**64 - 1], dtype=np.uint64), "categorical"),
        (np.append(np.zeros(5000), 0.5), "numeric"),
        (np.append(np.zeros(5000, dtype=np.int64), np.arange(11)), "numeric"),
    ],
)
def test_inferred_kind(values: np.ndarray, kind: str) -> None:
    assert as_column(values).kind == kind


@pytest.mark.parametrize(
    ("values", "categories"),
    [
        (["b", None, "a"], ("a", "b")),
        ([True, None, False], (False, True)),
        ([True, float("nan")], (True,)),
        ([1, "1", "a"], ("1", "a")),
        ([1.0, "x"], ("1", "x")),
        ([True, 1], ("1", "True")),
        ([2.0, 1, None], (1, 2)),
        (["", "a"], ("", "a")),
        ([b"a", "a"], ("a",)),
        ([np.int8(1), np.float32(2)], (1, 2)),
        ([Decimal("1"), Fraction(2)], (1, 2)),
        ([pd.NA, pd.NaT, "a"], ("a",)),
        ([Path("b"), Path("a")], ("a", "b")),
    ],
)
def test_categories_of_objects(values: list[object], categories: tuple[object, ...]) -> None:
    column = as_column(values)
    assert column.kind == "categorical"
    assert column.categories == categories
    assert [type(c) for c in column.categories] == [type(c) for c in categories]


def test_objects_that_are_numbers_are_numeric() -> None:
    column = as_column(np.array([Decimal("0.5"), Fraction(1, 4), None], dtype=object))
    np.testing.assert_array_equal(column.values, [0.5, 0.25, np.nan])


def test_column_without_values_is_numeric() -> None:
    assert as_column([None, None]).kind == "numeric"
    assert as_column([None, float("nan")]).missing.all()


def test_table_operations() -> None:
    table = as_table([["a", 0.5], ["b", 1.5], ["a", 2.5]], names=["letter", "size"])
    assert table.n_rows == 3
    assert table.column("size").kind == "numeric"
    assert table.drop("size").names == ("letter",)
    assert table.select(["size", "letter"]).names == ("size", "letter")
    assert table.take([2, 0]).column("size").values.tolist() == [2.5, 0.5]
    assert table.take(np.array([False, True, False])).column("letter").values.tolist() == ["b"]
    assert table.take([]).n_rows == 0
    assert table.take([0]).column("letter").categories == ("a", "b")


def test_arrays_of_a_table_cannot_be_changed() -> None:
    X = np.array([[0.5], [1.5]])
    table = as_table(X)
    with pytest.raises(ValueError, match="read-only"):
        table.columns[0].numbers[0] = 1.0
    X[0, 0] = 3.0


# --- kinds ----------------------------------------------------------------------------------------


def test_kinds_by_name_position_and_for_all() -> None:
    X = np.array([[0, 1], [1, 0]])
    assert as_table(X, kinds="numeric").kinds == {"x0": "numeric", "x1": "numeric"}
    assert as_table(X, kinds={"x0": "numeric"}).kinds == {"x0": "numeric", "x1": "categorical"}
    assert as_table(X, kinds={-1: "numeric"}).kinds == {"x0": "categorical", "x1": "numeric"}
    assert as_table(X, kinds={0: "auto"}).kinds["x0"] == "categorical"


def test_integer_labels_of_a_frame_count_before_positions() -> None:
    frame = pd.DataFrame([[0, 1]], columns=[1, 0])
    assert as_table(frame, kinds={1: "numeric"}).kinds == {"1": "numeric", "0": "categorical"}


def test_forced_categorical_numbers() -> None:
    """Forced categories are exact: whole floats become ints, huge integers stay distinct."""
    assert as_column([1.0, 2.5], kind="categorical").categories == (1, 2.5)
    huge = [2**60, 2**60 + 1]
    assert as_column(np.array(huge), kind="categorical").categories == tuple(huge)
    assert as_column(np.array([2**64 - 1], dtype=np.uint64)).categories == (2**64 - 1,)
    assert as_column([2**70, 2**70 + 1], kind="categorical").categories == (2**70, 2**70 + 1)


def test_forced_numeric_text() -> None:
    assert as_column(["1.5", None, "2"], kind="numeric").values[0] == 1.5
    assert as_column([True, False], kind="numeric").values.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("bad", ["x", "1_000", "nan", "١"])
def test_forced_numeric_names_the_culprit(bad: str) -> None:
    with pytest.raises(InputError, match=rf"'size'.* row 2 .*{bad!r}"):
        as_column(["1", None, bad, "zzz"], name="size", kind="numeric")


def test_fitted_kinds_apply_to_new_rows() -> None:
    kinds = as_table(np.array([[0, 0.5], [1, 1.0]])).kinds
    assert as_table(np.array([[1.0, 2.0]]), kinds=kinds).kinds == kinds


def test_table_of_a_table() -> None:
    table = as_table([["1", 2.0], ["10", 3.0]], names=["a", "b"])
    assert as_table(table).kinds == table.kinds
    other = as_table(table, kinds={"a": "numeric"})
    assert other.column("a").values.tolist() == [1.0, 10.0]
    assert as_table(table, names=["c", "d"]).names == ("c", "d")
    unused = pd.DataFrame({"a": pd.Categorical(["1", "2"], ["1", "2", "never"])})
    assert as_table(unused, kinds="numeric").column("a").values.tolist() == [1.0, 2.0]


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.array([[1.0, np.inf]]), "'x1' row 0 .* holds inf"),
        (np.array([[1.0], [-np.inf]]), "'x0' row 1 .* holds -inf"),
        (np.array([[1j]]), "Complex data not supported"),
        (np.array([[1j]], dtype=object), "Complex data not supported"),
        ([[datetime.timedelta(1)]], "'x0' holds times, durations"),
        (np.array([[1]], dtype="timedelta64[s]"), "'x0' holds times, durations"),
        ([[[1, 2]]], "'x0' holds lists"),
        ([[{"a": 1}]], "must be a string or a number"),
        (np.array([1.0, 2.0]), "Reshape your data"),
        ([1.0, 2.0], "Reshape your data"),
        (np.zeros((2, 2, 2)), "got 3D array"),
        ("text", "got 0D array"),
        ({"a": [1]}, "got 0D array"),
        ([[1, 2], [3]], "row 1 has 1"),
        ([], "empty list"),
        (np.zeros((3, 0)), r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is required"),
        ([[10**400]], "inf"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "'a'"),
        (pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]), "'a'"),
        (
            pd.DataFrame({"p": pd.period_range("2020", periods=1, freq="M")}),
            "'p' holds times, durations or periods",
        ),
        (pl.DataFrame({"l": [[1]]}), "'l' holds lists"),
        (pl.LazyFrame({"a": [1]}), "collect"),
        (pd.DataFrame(index=range(3)), r"0 feature\(s\)"),
    ],
)
def test_refused_with_a_reason(X: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        as_table(X)


@pytest.mark.parametrize(
    "X",
    [
        np.array([["2020-01-31"]], dtype="datetime64[D]"),
        [[datetime.datetime(2020, 1, 31, 10, 30)]],
        pd.DataFrame({"x0": pd.to_datetime(["2020-01-31 10:30"])}),
        pl.DataFrame({"x0": [datetime.date(2020, 1, 31)]}),
    ],
)
def test_dates_become_iso_texts(X: object) -> None:
    """Of every library; what becomes of them is a matter of the preparation."""
    assert as_table(X).column("x0").values.tolist() == ["2020-01-31"]


def test_sparse_is_refused() -> None:
    from scipy.sparse import csr_array

    with pytest.raises(InputError, match="toarray"):
        as_table(csr_array(np.eye(2)))


def test_nested_cells_are_a_type_error_too() -> None:
    with pytest.raises(TypeError, match=r"argument must be .* string.* number"):
        as_table(np.array([[{"foo": "bar"}]], dtype=object))


def test_names_and_kinds_are_checked() -> None:
    X = np.zeros((2, 2))
    with pytest.raises(InputError, match=r"'petals'.*did you mean 'petal'"):
        as_table(X, names=["petal", "sepal"], kinds={"petals": "numeric"})
    with pytest.raises(InputError, match=r"column 5.*'x0', 'x1'"):
        as_table(X, kinds={5: "numeric"})
    with pytest.raises(InputError, match="'number'"):
        as_table(X, kinds="number")
    with pytest.raises(InputError, match="2 entries, one per column"):
        as_table(X, kinds=["numeric"])
    with pytest.raises(InputError, match=r"distinct.*'a'"):
        as_table(X, names=["a", "a"])
    with pytest.raises(InputError, match="2 entries"):
        as_table(X, names=["a"])
    with pytest.raises(InputError, match="'clas'; did you mean 'class'"):
        as_table(X, names=["class", "b"]).column("clas")
    with pytest.raises(InputError, match="one-dimensional"):
        as_column(X)


def test_columns_of_unequal_length_are_refused() -> None:
    columns = (Column.numeric("a", np.zeros(2)), Column.numeric("b", np.zeros(3)))
    with pytest.raises(InputError, match=r"equal length.*'a': 2.*'b': 3"):
        Table(columns)


# --- data frames ----------------------------------------------------------------------------------


def test_declared_categories_of_pandas_survive() -> None:
    frame = pd.DataFrame(
        {
            "c": pd.Categorical(["b", None, "a"], categories=["b", "a", "z"]),
            "o": pd.Categorical([3, 1, 3], categories=[3, 2, 1], ordered=True),
            "cut": pd.cut([1, 2, 3], [0, 2, 4]),
            "mix": pd.Categorical([1, "1", "a"]),
        }
    )
    table = as_table(frame)
    assert table.column("c").categories == ("b", "a", "z")
    assert table.column("c").codes.tolist() == [0, -1, 1]
    assert table.column("o").categories == (3, 2, 1)
    assert table.column("cut").categories == ("(0, 2]", "(2, 4]")
    assert len(set(table.column("mix").labels)) == 2


def test_declared_categories_of_polars() -> None:
    frame = pl.DataFrame(
        {
            "e": pl.Series(["b", None, "a"], dtype=pl.Enum(["b", "a", "z"])),
            "c": pl.Series(["b", None, "a"], dtype=pl.Categorical),
        }
    )
    table = as_table(frame)
    assert table.column("e").categories == ("b", "a", "z")
    assert table.column("c").categories == ("a", "b")


def test_three_frame_libraries_agree() -> None:
    data = {
        "code": [1, None, 3],
        "size": [0.5, None, 2.0],
        "word": ["x", None, ""],
        "flag": [True, None, False],
        "none": [None, None, None],
    }
    nullable = pd.DataFrame(data).astype({"code": "Int64", "flag": "boolean"})
    tables = [as_table(frame) for frame in (nullable, pl.DataFrame(data), pa.table(data))]
    for table in tables:
        assert table.names == tuple(data)
        assert table.column("code").categories == (1, 3)
        assert table.column("code").values.tolist() == [1, None, 3]
        np.testing.assert_array_equal(table.column("size").values, [0.5, np.nan, 2.0])
        assert table.column("word").values.tolist() == ["x", None, ""]
        assert table.column("flag").values.tolist() == [True, None, False]
        assert table.column("none").missing.all()


def test_series_as_column() -> None:
    for series in (pd.Series(["b", "a"]), pl.Series(["b", "a"]), pa.chunked_array([["b", "a"]])):
        assert as_column(series).codes.tolist() == [1, 0]
    assert as_column(pd.Index(["b", "a"])).categories == ("a", "b")


def test_masked_cells_are_missing() -> None:
    mask = [[True], [False], [False]]
    for values in ([[0.5], [1.5], [2.5]], [[5], [1], [2]]):
        column = as_table(np.ma.array(values, mask=mask)).columns[0]
        assert column.missing.tolist() == [True, False, False]
    assert column.categories == (1, 2)


# --- properties -----------------------------------------------------------------------------------

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_infinity=False), st.text(max_size=3)
)


@settings(deadline=None, max_examples=200)
@given(st.lists(scalars, max_size=12))
def test_categories_show_every_value_by_its_label(values: list[object]) -> None:
    column = as_column(values, kind="categorical")

    def label(value: object) -> str | None:
        if value is None or value != value:
            return None
        whole = isinstance(value, float) and value.is_integer()
        return str(int(value)) if whole else str(value)

    shown = [None if value is None else str(value) for value in column.values]
    assert shown == [label(value) for value in values]
    assert len(set(column.labels)) == len(column.labels)


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.integers(-(2**62), 2**62) | st.integers(-5, 300), min_size=1, max_size=30),
    st.sampled_from([np.int64, np.float64]),
)
def test_codes_of_numbers_equal_a_naive_ranking(values: list[int], dtype: type) -> None:
    array = np.array(values, dtype=dtype)
    column = as_column(array, kind="categorical")
    distinct = sorted({int(v) for v in array})
    assert column.categories == tuple(distinct)
    assert column.codes.tolist() == [distinct.index(int(v)) for v in array]
