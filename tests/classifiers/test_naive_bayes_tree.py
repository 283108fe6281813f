"""The tree over the features given the class: the likeliest of all."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest

from marginbn.classifiers import naive_bayes
from marginbn.classifiers.naive_bayes import _information, _spanning_tree, augmented_tree
from marginbn.problem.encoded import EncodedData, contingency
from marginbn.problem.scores import log_likelihood
from marginbn.problem.structure import Structure, is_acyclic
from marginbn.solvers import counts
from strategies import make_variables


def dependent_rows(n: int, seed: int) -> EncodedData:
    """Features that depend on the class and on the one before, with weights."""
    rng = np.random.default_rng(seed)
    arities = (3, 5, 3, 4, 2)
    columns = [rng.integers(0, arities[0], n)]
    for arity in arities[1:]:
        columns.append((columns[-1] + rng.integers(0, 2, n) + columns[0]) % arity)
    codes = np.column_stack(columns)
    return EncodedData(codes, rng.uniform(0.5, 2.0, n), make_variables(arities))


def likelihood(data: EncodedData, structure: Structure) -> float:
    """Largest log likelihood of a structure."""
    total = 0.0
    for child, parents in enumerate(structure.parents):
        counts = contingency(data, (*parents, child))
        total += log_likelihood(counts.reshape(-1, counts.shape[-1]), data.total_weight)
    return total


def test_no_other_tree_is_likelier() -> None:
    for seed in range(5):
        data = dependent_rows(40, seed)
        best = -np.inf
        for tails in itertools.product(range(5), repeat=4):
            parents = [(), *((0, t) if t else (0,) for t in tails)]
            if all(i not in p for i, p in enumerate(parents)) and is_acyclic(parents):
                best = max(best, likelihood(data, Structure(tuple(parents))))
        assert likelihood(data, augmented_tree(data)) >= best - 1e-9


def test_features_with_a_single_state_get_no_arc() -> None:
    codes = np.array([[0, 0, 0], [1, 0, 1], [1, 0, 0]])
    data = EncodedData(codes, np.ones(3), make_variables((2, 1, 2)))
    assert augmented_tree(data).parents == ((), (), (0,))


def test_pairs_that_are_many_are_counted_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the compiled kernel, also in small blocks; whole weights leave no rounding."""
    data = dependent_rows(300, 0)
    data = EncodedData(data.codes, np.rint(4 * data.weights), data.variables)
    expected = _information(data, [1, 2, 3, 4])
    monkeypatch.setattr(counts, "MANY_SETS", 0)
    assert np.array_equal(_information(data, [1, 2, 3, 4]), expected)
    monkeypatch.setattr(naive_bayes, "MOST_CELLS", 50)
    assert np.array_equal(_information(data, [1, 2, 3, 4]), expected)


def test_the_tree_weighs_as_much_as_networkx_says() -> None:
    """Ties or not, however many features."""
    for n in (1, 2, 7, 40):
        rng = np.random.default_rng(n)
        weights = np.round(rng.random((n, n)), 1)
        weights = weights + weights.T
        parents = _spanning_tree(weights)
        assert parents[0] == -1
        found = sum(weights[i, p] for i, p in enumerate(parents) if p >= 0)
        graph = nx.from_numpy_array(weights + 1)  # no weight of zero, which would be no edge
        tree = nx.maximum_spanning_tree(graph)
        wanted = sum(d["weight"] - 1 for u, v, d in tree.edges(data=True) if u != v)
        assert abs(found - wanted) < 1e-9
    assert _spanning_tree(np.zeros((0, 0))) == []
