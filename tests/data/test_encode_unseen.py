"""Categories that training never saw are told once, with the likely reason."""

from __future__ import annotations

from marginbn.data.encode import Coding, describe_unseen, find_unseen
from marginbn.data.table import as_column

KNOWN = Coding("job", "categorical", (), ("retired", "student"))
NUMBERS = Coding("rooms", "categorical", (), (1, 2, 3))


def test_known_and_missing_values_are_no_news() -> None:
    """None for a column with nothing new, numeric ones included."""
    assert find_unseen(KNOWN, as_column(["retired", None], name="job")) is None
    assert find_unseen(Coding("x", "numeric"), as_column([1.5, 2.5], name="x")) is None


def test_declared_categories_that_no_row_has_do_not_count() -> None:
    """Only values count."""
    column = as_column(["retired", "nurse"], name="job").take([0])
    assert find_unseen(KNOWN, column) is None


def test_counts_and_examples_are_by_frequency() -> None:
    """The most frequent first."""
    column = as_column(["nurse"] + ["pilot"] * 3 + ["retired", None], name="job")
    found = find_unseen(KNOWN, column)
    assert found is not None
    assert (found.n_values, found.labels, found.lookalikes) == (4, ("pilot", "nurse"), {})
    text = describe_unseen([found])
    assert "'job' (4 values, such as 'pilot', 'nurse')" in text
    assert "slip" not in text


def test_slips_of_type_and_spelling_are_recognised() -> None:
    """'3.0' was 3, 'RETIRED ' was 'retired'."""
    decimals = find_unseen(NUMBERS, as_column(["3.0", "1.0"], name="rooms", kind="categorical"))
    upper = find_unseen(KNOWN, as_column(["RETIRED ", "Student"], name="job"))
    assert decimals is not None
    assert upper is not None
    assert decimals.lookalikes == {"3.0": "3", "1.0": "1"}
    assert upper.lookalikes == {"RETIRED ": "retired", "Student": "student"}
    assert "slip of types or spelling: '1.0' in 'rooms' was '1'" in describe_unseen([decimals])
