"""Edmonds' arborescence: by hand, by brute force, against networkx, and proved by its prices."""

from __future__ import annotations

import itertools
from typing import Any

import networkx as nx
import numpy as np
import pytest

from marginbn.solvers.branch_bound.kernels.edmonds import arborescence, prices_between
from marginbn.solvers.branch_bound.kernels.records import new_tree
from oracles import arborescences, reaches_root
from seeds import seeds


def solve(weights: np.ndarray) -> Any:
    """The tree of the kernel; None if the weights allow no arborescence."""
    tree = new_tree(len(weights))
    finite = np.where(np.isinf(weights), -1e30, weights)
    return tree if arborescence(finite, len(weights), tree) else None


def value_of(tree: Any) -> float:
    """The sum of the prices, which is the largest weight of any arborescence."""
    return float(tree.price[: tree.size[0]].sum())


def random_weights(rng: np.random.Generator, n: int, forbidden: float = 0.0) -> np.ndarray:
    """Weights with ties (rounded) in half of the cases; the root arc of node 0 always exists."""
    weights = rng.normal(size=(n, n + 1)) * 10
    if rng.random() < 0.5:
        weights = np.round(weights / 5)
    weights[rng.random((n, n + 1)) < forbidden] = -np.inf
    weights[0, n] = 1.0
    return weights


def brute_force(weights: np.ndarray) -> float:
    """Best sum over all trees; -inf if there is none."""
    trees = arborescences(len(weights))
    return max(sum(weights[i, parent] for i, parent in enumerate(tree)) for tree in trees)


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
    hangs on the root. The cycle has prices 5 and 4, entering it changes the value by -1.
    """
    tree = solve(np.array([[-np.inf, 5.0, 1.0], [4.0, -np.inf, 3.0]]))
    assert tree.parent.tolist() == [1, 2]
    assert tree.price[: tree.size[0]].tolist() == [5.0, 4.0, -1.0]


@pytest.mark.parametrize("seed", range(60))
def test_equals_brute_force(seed: int) -> None:
    """On up to five nodes the value is that of the best acyclic choice of parents."""
    rng = np.random.default_rng(seed)
    weights = random_weights(rng, int(rng.integers(1, 6)), forbidden=0.2)
    expected, tree = brute_force(weights), solve(weights)
    assert (tree is None) == (expected == -np.inf)
    if tree is not None:
        assert value_of(tree) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(20))
def test_equals_networkx(seed: int) -> None:
    """On larger graphs the value is that of networkx."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 25))
    weights = random_weights(rng, n, forbidden=0.3)
    weights[:, n] = np.where(np.isinf(weights[:, n]), -5.0, weights[:, n])
    assert value_of(solve(weights)) == pytest.approx(networkx_value(weights))


@pytest.mark.parametrize("seed", seeds(50, 150))
def test_prices_prove_the_value(seed: int) -> None:
    """The parents form a tree that weighs what the prices add up to, and no arc is worth more than
    the prices of the sets that it enters; those of contracted sets are at most 0.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    weights = random_weights(rng, n, forbidden=float(rng.choice([0.0, 0.5])))
    tree = solve(weights)
    if tree is None:
        return
    parent = tuple(int(p) for p in tree.parent)
    assert reaches_root(parent)
    assert sum(weights[i, parent[i]] for i in range(n)) == pytest.approx(value_of(tree))
    assert (tree.price[n : tree.size[0]] <= 1e-9).all()
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
