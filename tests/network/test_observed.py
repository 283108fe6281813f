"""Values of the table as states: numbers in bins, codes, truth values, dates, missing values."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marginbn import InputError, Variable
from marginbn.data.columns import Column
from marginbn.data.encode import Coding
from marginbn.network.observed import state_of

DAY = Variable("day", ("2024-05-31", "2024-06-01"))


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=0, max_size=6, unique=True),
    st.floats(-1e7, 1e7),
    st.booleans(),
)
def test_a_number_falls_where_the_coding_of_its_column_puts_it(cuts, number, missing_state):
    """The labels alone say the same as the cuts behind them, to the last bit."""
    cuts = tuple(sorted(cut + 0.0 for cut in cuts))
    coding = Coding("size", "numeric", cuts, (), missing_state)
    for value in (number, *cuts):
        column = Column.numeric("size", np.array([value]))
        assert state_of(coding.variable, value) == coding.encode(column)[0]


@pytest.mark.parametrize(
    ("states", "value", "state"),
    [
        (("1", "2", "3"), 3, 2),
        (("1", "2", "3"), 3.0, 2),
        (("1", "2", "3"), np.int8(2), 1),
        (("1", "2", "3"), Decimal("1"), 0),
        (("0.5", "0.50"), "0.50", 1),
        (("1.0", "2.0"), 2, 1),
        (("False", "True"), True, 1),
        (("False", "True"), np.bool_(False), 0),
        (("any number", "(missing)"), 53, 0),
        (("any number", "(missing)"), None, 1),
        (("<= 4", "> 4", "(missing)"), float("nan"), 2),
        (("<= 4", "> 4", "(missing)"), pd.NA, 2),
        (("a", "(missing)", "(missing)_"), None, 2),
        (("<= 4", "(4, 9]", "> 9"), "5", 1),
        (("<= 4", "(4, 9]", "> 9"), "(4, 9]", 1),
        (("<= -0.5", "> -0.5"), np.float32(-0.5), 0),
    ],
)
def test_values_of_a_table_find_their_state(states, value, state):
    assert state_of(Variable("x", states), value) == state


@pytest.mark.parametrize(
    "value",
    [
        datetime.date(2024, 6, 1),
        datetime.datetime(2024, 6, 1),
        pd.Timestamp("2024-06-01"),
        np.datetime64("2024-06-01"),
        "2024-06-01",
    ],
)
def test_a_date_finds_its_text(value):
    """Of any library."""
    assert state_of(DAY, value) == 1


@pytest.mark.parametrize(
    ("states", "value"),
    [(("1", "0"), True), (("True", "False"), 1), (("<= 4", "> 4"), "four"), (("a", "b"), ["a"])],
)
def test_what_is_no_state_is_refused_with_the_states(states, value):
    """A truth value is no number, and text no bin."""
    with pytest.raises(InputError, match=r"unknown state .* of variable 'x'; its states are"):
        state_of(Variable("x", states), value)


def test_a_missing_value_without_a_state_is_refused_with_the_remedy():
    """Evidence that is not there is left out."""
    with pytest.raises(InputError, match=r"'x'.*leave the variable out of the evidence"):
        state_of(Variable("x", ("a", "b")), None)
