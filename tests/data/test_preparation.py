"""What becomes of the columns of a raw table, in training and later."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginbn.data.preparation import PreparationSettings, messages, rare_categories, tell
from marginbn.data.table import Table, as_column
from marginbn.exceptions import DataWarning, InputError


def table(**columns: Any) -> Table:
    return Table(tuple(as_column(values, name=name) for name, values in columns.items()))


RAW = table(
    name=[f"n{i}" for i in range(60)],
    city=["A"] * 30 + ["B"] * 20 + ["C"] * 4 + ["D"] * 3 + ["E"] * 3,
    size=[i % 7 + 0.5 for i in range(60)],
    empty=[None] * 60,
)


def test_defaults_leave_out_and_say_so() -> None:
    """Identifiers and empty columns; the rest as it is."""
    preparation = PreparationSettings().learn(RAW)
    assert preparation.used_names == ["city", "size"]
    assert set(preparation.left_out) == {"name", "empty"}
    prepared = preparation.apply_to_all(RAW)
    assert prepared.column("city") is RAW.column("city")
    with pytest.warns(DataWarning) as caught:
        tell(preparation, PreparationSettings(), stacklevel=2)
    assert ["identifiers: 'name'" in str(w.message) for w in caught] == [True, False]
    assert "no row has a value: 'empty'" in str(caught[1].message)
    assert caught[0].filename == __file__


def test_identifiers_can_be_used_or_refused() -> None:
    """The other two answers."""
    assert "name" in PreparationSettings(identifiers="use", max_states=None).learn(RAW).used_names
    with pytest.raises(InputError, match=r"'name' names its rows.*identifiers='ignore'"):
        PreparationSettings(identifiers="error").learn(RAW)
    with pytest.raises(InputError, match=r"every column would be left out.*\{'name': 'categor"):
        PreparationSettings().learn(RAW.select(["name", "empty"]))


def test_a_declared_kind_keeps_an_identifier() -> None:
    """One by one; a kind for the whole table declares nothing about a column."""
    declared = PreparationSettings(column_kinds={"name": "categorical"}).learn(RAW)
    assert "name" in declared.used_names
    assert "name" not in PreparationSettings(column_kinds="categorical").learn(RAW).used_names


def test_a_table_without_a_single_value_is_left_to_others() -> None:
    """Whoever drops rows says that none is left."""
    assert PreparationSettings().learn(RAW.select(["empty"])).is_plain


@pytest.mark.parametrize(
    ("settings_", "merged"),
    [
        (PreparationSettings(max_states=3), ("C", "D", "E")),
        (PreparationSettings(max_states=4), ("D", "E")),
        (PreparationSettings(max_states=5), ()),
    ],
)
def test_rare_categories_become_other(
    settings_: PreparationSettings, merged: tuple[str, ...]
) -> None:
    """The rarest ones, as many as it takes."""
    preparation = settings_.learn(RAW)
    assert preparation.merged == ({"city": len(merged)} if merged else {})
    states = Counter(preparation.apply_to_all(RAW).column("city").values.tolist())
    for city, n in Counter(RAW.column("city").values.tolist()).items():
        assert city in merged or states[city] == n
    assert sum(states.values()) == 60
    assert (states["other"] > 0) == bool(merged)
    assert ("'other'" in " ".join(messages(preparation, settings_))) == bool(merged)


def test_later_rows_are_treated_alike() -> None:
    """A rare category of training is other, one that training never saw stays what it is."""
    preparation = PreparationSettings(max_states=3).learn(RAW)
    later = table(city=["E", "Z", None, "A"], size=[1.5, 2.5, None, 1.5])
    prepared = preparation.apply(later)
    assert prepared.column("city").values.tolist() == ["other", "Z", None, "A"]


def test_other_does_not_swallow_a_category_of_that_name() -> None:
    """The merged state gets another label where the table has an "other" itself."""
    column = table(x=["other"] * 9 + ["a"] * 9 + ["b", "c"])
    preparation = PreparationSettings(max_states=3).learn(column)
    values = preparation.apply_to_all(column).column("x").values.tolist()
    assert Counter(values) == {"other": 9, "a": 9, "other_": 2}


def test_numbers_can_be_merged_too() -> None:
    """Categories that are integers keep their type."""
    column = table(x=[1] * 9 + [2] * 9 + [3, 4])
    preparation = PreparationSettings(max_states=3).learn(column)
    assert preparation.apply_to_all(column).column("x").categories == (1, 2, "other")


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=40),
    st.integers(2, 6) | st.none(),
)
def test_rare_by_the_definition(values: list[str], limit: int | None) -> None:
    """At most so many states are left, and more frequent ones stay."""
    column = as_column(values, name="x")
    merged = {column.labels[i] for i in rare_categories(column.counts, limit)}
    counts = Counter(values)
    kept = set(counts) - merged
    assert len(merged) != 1
    if limit is not None:
        assert len(kept) + bool(merged) <= limit
    if len(merged) > 1:
        assert min((counts[k] for k in kept), default=99) >= max(counts[m] for m in merged)
    if limit is None or len(counts) <= limit:
        assert not merged
