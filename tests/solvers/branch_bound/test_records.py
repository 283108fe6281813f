"""Records that kernels change, and the numbering of columns."""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

import numpy as np
import pytest
from numba import njit

from marginbn.solvers.branch_bound.arrays import encode
from marginbn.solvers.branch_bound.kernels.records import (
    column_of,
    columns_of,
    new_box,
    new_record,
    slot_column,
)
from problems import small_margin_problem

pytestmark = pytest.mark.xdist_group("test_records")  # one process compiles


class Purse:
    """Numbers by name."""

    coins: int
    worth: float


class Person(NamedTuple):
    """A record among arrays, as kernels get it."""

    ages: np.ndarray
    purse: Purse


@njit
def spend(person, price):  # type: ignore[no-untyped-def]
    person.purse.coins -= 1
    person.purse.worth -= price
    return person.purse.coins


def test_what_a_kernel_writes_is_seen_by_python_and_the_other_way_round() -> None:
    """Fields begin at 0 or the value given; integers stay integers."""
    person = Person(np.zeros(2), new_record(Purse, worth=2.5))
    assert (person.purse.coins, person.purse.worth) == (0, 2.5)
    person.purse.coins = 2**53 + 1
    assert spend(person, 0.5) == 2**53
    assert (person.purse.coins, person.purse.worth) == (2**53, 2.0)


def test_a_copy_of_a_record_is_its_own() -> None:
    """Stores that grow rely on it."""
    purse = new_record(Purse, coins=3)
    other = copy(purse)
    other.coins = 1
    assert spend(Person(np.zeros(0), other), 0.0) == 0
    assert (purse.coins, other.coins) == (3, 0)


@pytest.mark.parametrize("max_parents", [1, 2])
def test_columns_are_numbered_one_feature_after_the_other(max_parents: int) -> None:
    """The slots that exist, then the class sets: with one parent three per feature, not n + 3."""
    problem = small_margin_problem(0, n_features=3, max_parents=max_parents)
    encoding = encode(problem)
    inst, n, skipped = encoding.instance, 3, 3 if max_parents == 1 else 0
    numbers = [column_of(inst, i, s) for i in range(n) for s in range(skipped, n + 2)]
    assert [*numbers, column_of(inst, n, 0)] == list(range(n * (n + 2 - skipped) + 1))
    assert inst.linear.size == n * (n + 2 - skipped) + len(problem.candidates.group(0))
    vertex = np.array([n, n + 1, n, 0])
    expected = [column_of(inst, i, s) for i, s in enumerate(vertex.tolist())]
    assert columns_of(inst, vertex).tolist() == expected
    box = new_box(n, inst.first.size)
    assert [slot_column(box, inst.linear, i, n) for i in range(n)] == [
        column_of(inst, i, n) for i in range(n)
    ]
    selection = encoding.selection(vertex)
    assert encoding.vertex(selection).tolist() == vertex.tolist()
    assert encoding.slots.sum() == len(problem.candidates.child) - len(problem.candidates.group(0))
