"""The rules that close parent sets, against the scores of all supersets.

The formulas here share nothing with the package: counts are dictionaries, sets are tuples.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations

import numpy as np
import pytest

Set = tuple[int, ...]
Rows = list[Set]

N_VARIABLES = 5
CHILD = 0
OTHERS = tuple(range(1, N_VARIABLES))
SETS = [s for size in range(N_VARIABLES) for s in combinations(OTHERS, size)]


def random_rows(seed: int) -> tuple[Rows, Set]:
    """Rows with some dependence and many repetitions, and the numbers of states."""
    rng = np.random.default_rng(seed)
    arities = tuple(int(a) for a in rng.integers(2, 4, N_VARIABLES))
    rows = []
    for _ in range(int(rng.integers(3, 60))):
        row = [int(rng.integers(a)) for a in arities]
        for v in range(1, N_VARIABLES):
            if rng.random() < 0.6:
                row[v] = row[v - 1] % arities[v]
        if rng.random() < 0.7:
            row[CHILD] = (row[1] + row[2]) % arities[CHILD]
        rows.append(tuple(row))
    return rows, arities


def counts(rows: Rows, members: Set) -> Counter[Set]:
    return Counter(tuple(row[v] for v in members) for row in rows)


def likelihood(rows: Rows, parents: Set) -> float:
    """Log likelihood of the child with these parents."""
    joint, given = counts(rows, (*parents, CHILD)), counts(rows, parents)
    return sum(n * math.log(n / given[state[:-1]]) for state, n in joint.items())


def unknown(rows: Rows, v: int, given: Set) -> float:
    """M H(v | given)."""
    joint, less = counts(rows, (*given, v)), counts(rows, given)
    return sum(n * math.log(less[state[:-1]] / n) for state, n in joint.items())


def n_states(arities: Set, members: Set) -> int:
    return math.prod(arities[v] for v in members)


def dirichlet(rows: Rows, arities: Set, parents: Set, cell: float) -> float:
    """Log marginal likelihood of the child with the prior count ``cell`` of every joint state."""
    joint, given = counts(rows, (*parents, CHILD)), counts(rows, parents)
    total = cell * arities[CHILD]
    value = sum(math.lgamma(cell + n) - math.lgamma(cell) for n in joint.values())
    return value - sum(math.lgamma(total + n) - math.lgamma(total) for n in given.values())


def below(small: Set, large: Set) -> bool:
    return set(small) < set(large)


@pytest.mark.parametrize("size", [0.01, 1.0, 10.0, 1000.0, None])
@pytest.mark.parametrize("seed", range(20))
def test_a_marginal_likelihood_pays_log_r_for_every_joint_state(
    seed: int, size: float | None
) -> None:
    """BDeu of several sample sizes, and K2 (None)."""
    rows, arities = random_rows(seed)
    r = arities[CHILD]
    for small in SETS:
        limit = -math.log(r) * len(counts(rows, (*small, CHILD)))
        for large in SETS:
            if small == large or below(small, large):
                cell = 1.0 if size is None else size / (n_states(arities, large) * r)
                assert dirichlet(rows, arities, large, cell) <= limit + 1e-9


@pytest.mark.parametrize("each", ["aic", "bic"])
@pytest.mark.parametrize("seed", range(20))
def test_supersets_pay_twice_the_price(seed: int, each: str) -> None:
    rows, arities = random_rows(seed)
    price = (1.0 if each == "aic" else 0.5 * math.log(len(rows))) * (arities[CHILD] - 1)
    for small in SETS:
        for large in SETS:
            if below(small, large):
                score = likelihood(rows, large) - price * n_states(arities, large)
                assert score <= -2.0 * price * n_states(arities, small) + 1e-9


@pytest.mark.parametrize("each", ["aic", "bic"])
@pytest.mark.parametrize("seed", range(20))
def test_a_member_that_cannot_pay_never_pays(seed: int, each: str) -> None:
    """Without it every superset scores at least as well."""
    rows, arities = random_rows(seed)
    price = (1.0 if each == "aic" else 0.5 * math.log(len(rows))) * (arities[CHILD] - 1)
    score = {s: likelihood(rows, s) - price * n_states(arities, s) for s in SETS}
    n_closed = 0
    for small in SETS:
        for v in small:
            rest = tuple(u for u in small if u != v)
            gain = min(unknown(rows, CHILD, rest), unknown(rows, v, rest))
            if gain <= price * n_states(arities, rest) * (arities[v] - 1):
                n_closed += 1
                for large in SETS:
                    if small == large or below(small, large):
                        without = tuple(u for u in large if u != v)
                        assert score[large] <= score[without] + 1e-9
    assert n_closed > 0
