"""Factor arithmetic by hand, and the elimination order."""

from __future__ import annotations

import numpy as np
import pytest

from marginbn.exceptions import ProblemTooLargeError
from marginbn.network.elimination import (
    Factor,
    Step,
    check_cells,
    condition,
    eliminate,
    max_out,
    multiply,
    plan_elimination,
    sum_out,
)
from networks import random_network

F = Factor((0, 1), np.log([[[1.0], [2.0]], [[3.0], [4.0]]]))
G = Factor((1,), np.log([[5.0], [6.0]]))


def test_product_sum_and_maximum_by_hand() -> None:
    """f = [[1, 2], [3, 4]], g = [5, 6]: sum_y f g = [17, 39], max_y f g = [12, 24]."""
    product = multiply([F, G])
    np.testing.assert_allclose(np.exp(product.values[..., 0]), [[5, 12], [15, 24]])
    np.testing.assert_allclose(np.exp(sum_out(product, 1).values[:, 0]), [17, 39])
    np.testing.assert_allclose(np.exp(max_out(product, 1).values[:, 0]), [12, 24])
    np.testing.assert_allclose(np.exp(eliminate([F, G], [1, 0]).values), [56])


def test_summing_zeros_gives_zero_not_nan() -> None:
    """The logarithm of 0 + 0 is -inf."""
    zero = Factor((0,), np.full((2, 1), -np.inf))
    assert sum_out(zero, 0).values.tolist() == [-np.inf]


def test_extreme_logarithms_keep_their_digits() -> None:
    """exp(-2000) underflows, but its sum with itself is -2000 + log 2."""
    tiny = Factor((0,), np.full((2, 1), -2000.0))
    np.testing.assert_allclose(sum_out(tiny, 0).values, -2000 + np.log(2), rtol=1e-15)


def test_conditioning_sorts_the_axes() -> None:
    """A table over (2, 0, 1) with 0 observed becomes a factor over (1, 2)."""
    table = np.arange(24.0).reshape(2, 3, 4)
    factor = condition((2, 0, 1), table, {0: 1})
    assert factor.scope == (1, 2)
    np.testing.assert_array_equal(factor.values[..., 0], table[:, 1, :].T)


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
