"""Columns that name their rows are found, columns that describe them are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginbn.data.columns import Column
from marginbn.data.preparation import LEAST_VALUES, may_be_identifier, why_identifier
from marginbn.data.table import as_column

RANDOM = np.random.default_rng(0)
SHUFFLED = RANDOM.permutation(np.arange(1000, 1200))[:150]

IDENTIFIERS: list[tuple[str, Any, str]] = [
    ("Name", [f"passenger {i}" for i in range(40)], "40 of 40 values differ"),
    ("Cabin", [f"C{i // 1.5:.0f}" if i < 30 else None for i in range(90)], "values differ"),
    ("number", np.arange(1, 41), "in order"),
    ("backwards", np.arange(500, 100, -7), "in order"),
    ("shuffled", SHUFFLED, "few gaps"),
    ("patient_id", RANDOM.permutation(np.arange(10**6, 10**7, 99_991)), "column of that name"),
]
DESCRIPTIONS: list[tuple[str, Any]] = [
    ("colour", ["red", "blue"] * 40),
    ("half", [f"v{i // 2}" for i in range(80)]),
    ("short", [f"v{i}" for i in range(LEAST_VALUES - 1)]),
    ("size", np.linspace(0, 1, 100)),
    ("amount", RANDOM.permutation(np.arange(10**6, 10**7, 99_991))),
    ("age", np.arange(200) % 80),
    ("patient_id", np.arange(200) // 2 * 17),
]


@pytest.mark.parametrize(("name", "values", "reason"), IDENTIFIERS, ids=lambda v: str(v)[:12])
def test_identifiers_are_found(name: str, values: Any, reason: str) -> None:
    assert reason in str(why_identifier(as_column(values, name=name)))


@pytest.mark.parametrize(("name", "values"), DESCRIPTIONS, ids=lambda v: str(v)[:12])
def test_descriptions_are_left_alone(name: str, values: Any) -> None:
    assert why_identifier(as_column(values, name=name)) is None


@pytest.mark.parametrize(
    ("values", "remedy"),
    [
        ([f"2024-{m:02}-{d:02}" for m in (1, 2) for d in range(1, 29)], "'date'"),
        ([f"{i}.5" for i in range(60)], "'numeric'"),
        ([f"{i}.5" for i in range(60)] + [" "], "numbers but for ' '"),
    ],
)
def test_the_reason_says_what_the_column_may_be(values: list[str], remedy: str) -> None:
    """Dates and numbers that came as text are no identifiers to be lost."""
    assert remedy in str(why_identifier(as_column(values, name="x")))


@settings(deadline=None, max_examples=50)
@given(st.lists(st.sampled_from("abcdefghijklmnopqrstuvwxyz"), min_size=20, max_size=60))
def test_categories_by_the_definition(values: list[str]) -> None:
    """More than half of the values are distinct: counted by a set."""
    found = why_identifier(as_column(values, name="x")) is not None
    assert found == (len(set(values)) > len(values) / 2)


def test_numbers_called_an_id_may_repeat() -> None:
    """Patients with two rows each; the same numbers by another name are a measurement."""
    patients = np.repeat(np.arange(40.0), 2)[:-15] * 97
    assert why_identifier(Column.numeric("patient", patients)) is None
    found = why_identifier(Column.numeric("ID", patients))
    assert found == "33 of 65 whole numbers differ, in a column of that name"
    often = Column.numeric("customer_id", np.tile(patients, 3))
    assert why_identifier(often) is None
    assert may_be_identifier(often)
    assert not may_be_identifier(Column.numeric("paid", np.tile(patients, 3)))
    assert not may_be_identifier(Column.numeric("id", np.tile([1.0, 2.0], 50)))
