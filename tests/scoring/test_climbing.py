"""The rules that close parent sets, against the scores of all supersets.

The formulas share nothing with the package: counts are dictionaries, sets are tuples.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations

import numpy as np
import pytest

import oracles

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


def terms(rows: Rows, arities: Set, parents: Set) -> list[list[float]]:
    """Counts of the child's states for every state of the parents."""
    return oracles.local_terms(rows, np.ones(len(rows)).tolist(), arities, CHILD, parents)


def likelihood(rows: Rows, arities: Set, parents: Set) -> float:
    return oracles.log_likelihood(terms(rows, arities, parents))


def unknown(rows: Rows, v: int, given: Set) -> float:
    """M H(v | given)."""
    joint, less = counts(rows, (*given, v)), counts(rows, given)
    return sum(n * math.log(less[state[:-1]] / n) for state, n in joint.items())


def n_states(arities: Set, members: Set) -> int:
    return math.prod(arities[v] for v in members)


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
                table = terms(rows, arities, large)
                assert oracles.bayesian_dirichlet(table, cell) <= limit + 1e-9


@pytest.mark.parametrize("each", ["aic", "bic"])
@pytest.mark.parametrize("seed", range(20))
def test_supersets_pay_twice_the_price(seed: int, each: str) -> None:
    rows, arities = random_rows(seed)
    price = (1.0 if each == "aic" else 0.5 * math.log(len(rows))) * (arities[CHILD] - 1)
    for small in SETS:
        for large in SETS:
            if below(small, large):
                score = likelihood(rows, arities, large) - price * n_states(arities, large)
                assert score <= -2.0 * price * n_states(arities, small) + 1e-9


@pytest.mark.parametrize("each", ["aic", "bic"])
@pytest.mark.parametrize("seed", range(20))
def test_a_member_that_cannot_pay_never_pays(seed: int, each: str) -> None:
    """Without it every superset scores at least as well."""
    rows, arities = random_rows(seed)
    price = (1.0 if each == "aic" else 0.5 * math.log(len(rows))) * (arities[CHILD] - 1)
    score = {s: likelihood(rows, arities, s) - price * n_states(arities, s) for s in SETS}
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
