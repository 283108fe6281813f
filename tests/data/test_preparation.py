"""What becomes of the columns of a raw table, in training and later."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginbn.data import preparation as module
from marginbn.data.labelled import LabelledTable
from marginbn.data.preparation import TableSettings, messages, rare_categories
from marginbn.data.table import Table, as_column
from marginbn.data.training import TrainingRows, survey_rows
from marginbn.exceptions import DataWarning, InputError


def table(**columns: Any) -> Table:
    return Table(tuple(as_column(values, name=name) for name, values in columns.items()))


RAW = table(
    name=[f"n{i}" for i in range(60)],
    city=["A"] * 30 + ["B"] * 20 + ["C"] * 4 + ["D"] * 3 + ["E"] * 3,
    size=[i % 7 + 0.5 for i in range(60)],
    empty=[None] * 60,
)


@pytest.fixture
def few_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three at most."""
    monkeypatch.setattr(module, "MAX_STATES", 3)


def test_defaults_leave_out_and_say_so() -> None:
    """Identifiers and empty columns; the rest as it is."""
    preparation = TableSettings().learn(RAW)
    assert preparation.used_names == ["city", "size"]
    assert set(preparation.left_out) == {"name", "empty"}
    prepared = preparation.apply_to_all(RAW)
    assert prepared.column("city") is RAW.column("city")
    rows = LabelledTable.of(RAW, np.arange(RAW.n_rows) % 2)
    with pytest.warns(DataWarning) as caught:
        TrainingRows.of(survey_rows(rows), TableSettings())
    assert ["identifiers: 'name'" in str(w.message) for w in caught][:2] == [True, False]
    assert "no row has a value: 'empty'" in str(caught[1].message)
    assert caught[0].filename == __file__


def test_identifiers_can_be_used() -> None:
    """All of them; else a table of nothing else is refused."""
    assert "name" in TableSettings(keep_identifiers=True).learn(RAW).used_names
    with pytest.raises(InputError, match=r"every column would be left out.*\{'name': 'categor"):
        TableSettings().learn(RAW.select(["name", "empty"]))


def test_a_declared_kind_keeps_an_identifier() -> None:
    """One by one; a kind for the whole table declares nothing about a column."""
    declared = TableSettings(column_kinds={"name": "categorical"}).learn(RAW)
    assert "name" in declared.used_names
    assert "name" not in TableSettings(column_kinds="categorical").learn(RAW).used_names


def test_a_table_without_a_single_value_is_left_to_others() -> None:
    """Whoever drops rows says that none is left."""
    assert TableSettings().learn(RAW.select(["empty"])).is_plain


@pytest.mark.parametrize(("most", "merged"), [(3, ("C", "D", "E")), (4, ("D", "E")), (5, ())])
def test_rare_categories_become_other(
    most: int, merged: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_STATES", most)
    preparation = TableSettings().learn(RAW)
    assert preparation.merged == ({"city": len(merged)} if merged else {})
    states = Counter(preparation.apply_to_all(RAW).column("city").values.tolist())
    for city, n in Counter(RAW.column("city").values.tolist()).items():
        assert city in merged or states[city] == n
    assert sum(states.values()) == 60
    assert (states["other"] > 0) == bool(merged)
    assert ("'other'" in " ".join(messages(preparation, TableSettings()))) == bool(merged)


def test_later_rows_are_treated_alike(few_states: None) -> None:
    """A rare category of training is other, one that training never saw stays what it is."""
    preparation = TableSettings().learn(RAW)
    later = table(city=["E", "Z", None, "A"], size=[1.5, 2.5, None, 1.5])
    prepared = preparation.apply(later)
    assert prepared.column("city").values.tolist() == ["other", "Z", None, "A"]


def test_other_does_not_swallow_a_category_of_that_name(few_states: None) -> None:
    column = table(x=["other"] * 9 + ["a"] * 9 + ["b", "c"])
    preparation = TableSettings().learn(column)
    values = preparation.apply_to_all(column).column("x").values.tolist()
    assert Counter(values) == {"other": 9, "a": 9, "other_": 2}


def test_numbers_can_be_merged_too(few_states: None) -> None:
    column = table(x=[1] * 9 + [2] * 9 + [3, 4])
    preparation = TableSettings().learn(column)
    assert preparation.apply_to_all(column).column("x").categories == (1, 2, "other")


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=40), st.integers(2, 6))
def test_rare_by_the_definition(values: list[str], limit: int) -> None:
    column = as_column(values, name="x")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_STATES", limit)
        merged = {column.labels[i] for i in rare_categories(column.counts)}
    counts = Counter(values)
    kept = set(counts) - merged
    assert len(merged) != 1
    assert len(kept) + bool(merged) <= limit
    if len(merged) > 1:
        assert min((counts[k] for k in kept), default=99) >= max(counts[m] for m in merged)
    if len(counts) <= limit:
        assert not merged
