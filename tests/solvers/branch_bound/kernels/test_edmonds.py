"""Edmonds' arborescence: by hand, by brute force, against networkx, and the compiled kernel against
the plain one.
"""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest

from arborescence import Arborescence, maximum_arborescence, solve_arborescence
from marginbn.exceptions import InputError
from seeds import seeds

pytestmark = pytest.mark.xdist_group("test_arborescence")  # one process compiles


def random_weights(rng: np.random.Generator, n: int, forbidden: float = 0.0) -> np.ndarray:
    """Weights with ties (rounded) in half of the cases; the root arc of node 0 always exists."""
    weights = rng.normal(size=(n, n + 1)) * 10
    if rng.random() < 0.5:
        weights = np.round(weights / 5)
    weights[rng.random((n, n + 1)) < forbidden] = -np.inf
    weights[0, n] = 1.0
    return weights


def brute_force(weights: np.ndarray) -> float:
    """Best sum over all parent choices without a cycle; -inf if there is none."""
    n = weights.shape[0]
    best = -np.inf
    for parent in itertools.product(range(n + 1), repeat=n):
        if all(parent[i] != i for i in range(n)) and reaches_root(parent):
            best = max(best, sum(weights[i, parent[i]] for i in range(n)))
    return best


def reaches_root(parent: tuple[int, ...]) -> bool:
    n = len(parent)
    for node in range(n):
        steps = 0
        while node != n and steps <= n:
            node, steps = parent[node], steps + 1
        if node != n:
            return False
    return True


def networkx_value(weights: np.ndarray) -> float:
    n = weights.shape[0]
    graph = nx.DiGraph()
    for i, j in itertools.product(range(n), range(n + 1)):
        if i != j and weights[i, j] > -np.inf:
            graph.add_edge(j, i, weight=weights[i, j])
    tree = nx.maximum_spanning_arborescence(graph)
    return sum(weights[i, j] for j, i in tree.edges)


def test_two_nodes_by_hand() -> None:
    """Both nodes prefer each other (5 and 4); entering at node 1 costs 3 less than at node 0, so 1
    hangs on the root.
    """
    weights = np.array([[-np.inf, 5.0, 1.0], [4.0, -np.inf, 3.0]])
    parent, value = maximum_arborescence(weights)
    assert parent.tolist() == [1, 2]
    assert value == 8.0


def test_prices_by_hand() -> None:
    """The cycle {0, 1} has prices 5 and 4, entering it changes the value by -1: 5 + 4 - 1 = 8."""
    weights = np.array([[-np.inf, 5.0, 1.0], [4.0, -np.inf, 3.0]])
    prices = solve_arborescence(weights).prices
    assert prices == {frozenset([0]): 5.0, frozenset([1]): 4.0, frozenset([0, 1]): -1.0}


@pytest.mark.parametrize("seed", range(60))
def test_equals_brute_force(seed: int) -> None:
    """On up to five nodes the value is that of the best acyclic choice of parents."""
    rng = np.random.default_rng(seed)
    weights = random_weights(rng, int(rng.integers(1, 6)), forbidden=0.2)
    expected = brute_force(weights)
    if expected == -np.inf:
        with pytest.raises(InputError, match="allow no arborescence"):
            maximum_arborescence(weights)
        return
    parent, value = maximum_arborescence(weights)
    assert reaches_root(tuple(parent))
    assert value == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(20))
def test_equals_networkx(seed: int) -> None:
    """On larger graphs the value is that of networkx."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 25))
    weights = random_weights(rng, n, forbidden=0.3)
    weights[:, n] = np.where(np.isinf(weights[:, n]), -5.0, weights[:, n])
    assert maximum_arborescence(weights)[1] == pytest.approx(networkx_value(weights))


def reduced_costs(result: Arborescence, weights: np.ndarray) -> np.ndarray:
    """How much each arc [head, tail] costs if forced in; infinite where forbidden."""
    n = len(weights)
    covered = np.zeros_like(weights)
    for members, price in result.prices.items():
        inside = np.zeros(n + 1, dtype=bool)
        inside[list(members)] = True
        covered[np.ix_(inside[:n], ~inside)] += price
    costs = covered - weights
    costs[np.arange(n), np.arange(n)] = np.inf
    return costs


@pytest.mark.parametrize("seed", range(40))
def test_prices_prove_the_value(seed: int) -> None:
    """Reduced costs are not negative, prices add up to the value, contracted sets have prices of at
    most 0.
    """
    rng = np.random.default_rng(seed)
    weights = random_weights(rng, int(rng.integers(2, 15)))
    result = solve_arborescence(weights)
    costs = reduced_costs(result, weights)
    assert costs.min() >= -1e-9
    assert sum(result.prices.values()) == pytest.approx(result.value)
    assert all(price <= 1e-9 for members, price in result.prices.items() if len(members) > 1)
    assert np.allclose(costs[np.arange(len(weights)), result.parent], 0.0)


@pytest.mark.parametrize("seed", seeds(50, 150))
def test_kernel_equals_plain_version(seed: int) -> None:
    """The compiled arborescence has the same value, valid parents and prices that prove it."""
    from marginbn.solvers.branch_bound.kernels.edmonds import arborescence, prices_between
    from marginbn.solvers.branch_bound.kernels.records import new_tree

    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    weights = random_weights(rng, n, forbidden=float(rng.choice([0.0, 0.5])))
    tree = new_tree(n)
    finite = np.where(np.isinf(weights), -1e30, weights)
    feasible = arborescence(finite, n, tree)
    try:
        expected = maximum_arborescence(weights)[1]
    except InputError:
        assert not feasible
        return
    assert feasible
    parent = tuple(int(p) for p in tree.parent)
    assert reaches_root(parent)
    assert sum(weights[i, parent[i]] for i in range(n)) == pytest.approx(expected)
    assert tree.price[: tree.size[0]].sum() == pytest.approx(expected)
    around = [containing(tree.above, x) for x in range(n)]
    between = np.empty(n + 1)
    for x in range(n):
        prices_between(x, n, tree, between)
        for y in range(n + 1):
            outside = around[y] if y < n else []
            price = sum(tree.price[z] for z in around[x] if z not in outside)
            assert between[y] == pytest.approx(price)
            if y != x:
                assert weights[x, y] <= between[y] + 1e-9


def containing(above: np.ndarray, x: int) -> list[int]:
    """A node and all contracted nodes that it lies in."""
    found = []
    while x >= 0:
        found.append(int(x))
        x = above[x]
    return found


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.zeros((2, 2)), "shape"),
        (np.array([[np.nan, 0.0]]), "NaN"),
        (np.array([[0.0, np.inf]]), "NaN or"),
    ],
)
def test_refuses_bad_weights(weights: np.ndarray, message: str) -> None:
    """Wrong shapes, NaN and +inf are refused with a message that names the trouble."""
    with pytest.raises(InputError, match=message):
        maximum_arborescence(weights)
