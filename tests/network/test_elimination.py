"""The elimination order, and the sizes it foretells."""

from __future__ import annotations

import pytest

from marginbn.exceptions import ProblemTooLargeError
from marginbn.network.elimination import (
    Step,
    check_cells,
    condition,
    eliminate,
    plan_elimination,
    sum_out,
)
from networks import random_network


def test_a_star_is_eliminated_from_its_leaves() -> None:
    """Removing the centre first would join all leaves; instead products stay at two variables."""
    plan = plan_elimination([(0, leaf) for leaf in range(1, 11)], [2] * 11, ())
    assert plan.largest == 4
    assert plan.order.index(0) >= 9


def test_kept_variables_are_not_eliminated() -> None:
    """What is asked for stays and counts towards the size."""
    plan = plan_elimination([(0, 1), (1, 2)], [5, 5, 5], (0, 2))
    assert plan.order == (1,)
    assert plan.largest == 125


def test_sizes_beyond_every_float_are_still_described() -> None:
    with pytest.raises(ProblemTooLargeError, match=r"about 2\*\*3321 cells"):
        check_cells(10**1000)
    with pytest.raises(ProblemTooLargeError, match="over 64 variables"):
        plan_elimination([tuple(range(64))], [1] * 64, ())


@pytest.mark.parametrize("seed", range(15))
def test_the_plan_foretells_the_size_of_every_product(seed: int) -> None:
    """Largest and total cells equal those of the products that elimination really builds."""
    network = random_network(seed, n_variables=9, max_arity=4)
    factors = [
        condition((*p, i), network.log_tables[i], {})
        for i, p in enumerate(network.structure.parents)
    ]
    plan = plan_elimination([f.scope for f in factors], network.arities, (0,))
    trail: list[Step] = []
    left = eliminate(factors, plan.order, sum_out, trail)
    sizes = [step.product.values.size for step in trail] + [left.values.size]
    assert (plan.largest, plan.total) == (max(sizes), sum(sizes))
