"""Categories that training never saw are told once, with the likely reason."""

from __future__ import annotations

import pytest

from marginbn.data.columns import Column
from marginbn.data.encode import Coding, TableCoding, UnseenCategories
from marginbn.data.table import Table, as_column
from marginbn.exceptions import DataWarning

KNOWN = Coding("job", "categorical", (), ("retired", "student"))
NUMBERS = Coding("rooms", "categorical", (), (1, 2, 3))


def text_of(coding: Coding, *columns: Column) -> str:
    """The warning about some blocks of a column; empty if there is none."""
    unseen = UnseenCategories(TableCoding((coding,)))
    for column in columns:
        unseen.encode(Table((column,)))
    try:
        unseen.warn()
    except DataWarning as warning:  # warnings are errors here
        return str(warning)
    return ""


def test_known_and_missing_values_are_no_news() -> None:
    assert text_of(KNOWN, as_column(["retired", None], name="job")) == ""
    assert text_of(Coding("x", "numeric"), as_column([1.5, 2.5], name="x")) == ""


def test_declared_categories_that_no_row_has_do_not_count() -> None:
    assert text_of(KNOWN, as_column(["retired", "nurse"], name="job").take([0])) == ""


def test_counts_and_examples_are_by_frequency() -> None:
    """The most frequent of all blocks first."""
    first = as_column(["nurse", "pilot", "retired", None], name="job")
    text = text_of(KNOWN, first, as_column(["pilot"] * 2, name="job"))
    assert "'job' (4 values, such as 'pilot', 'nurse')" in text
    assert "slip" not in text
    assert "'job' (1 value, such as 'x')" in text_of(KNOWN, as_column(["x"], name="job"))


def test_at_most_five_columns_are_named() -> None:
    codings = tuple(Coding(f"u{i}", "categorical", (), ("a",)) for i in range(7))
    unseen = UnseenCategories(TableCoding(codings))
    unseen.encode(Table(tuple(as_column(["b"], name=coding.name) for coding in codings)))
    assert "'u4' (1 value, such as 'b') and 2 more columns" in unseen.text()


@pytest.mark.parametrize(
    ("coding", "labels", "slip"),
    [
        (NUMBERS, ["3.0", "1.0"], "'1.0' in 'rooms' was '1'"),
        (KNOWN, ["RETIRED ", "Student"], "'RETIRED ' in 'job' was 'retired'"),
    ],
)
def test_slips_of_type_and_spelling_are_recognised(
    coding: Coding, labels: list[str], slip: str
) -> None:
    """'3.0' was 3, 'RETIRED ' was 'retired'."""
    column = as_column(labels, name=coding.name, kind="categorical")
    assert f"slip of types or spelling: {slip} in training" in text_of(coding, column)
