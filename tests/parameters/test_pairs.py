"""Gains of pairs, and the trees that are made of them."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest
from scipy.sparse.csgraph import minimum_spanning_tree

from marginbn.data.ordinal import OrdinalData
from marginbn.parameters import pairs as pairs_module
from marginbn.parameters.normalise import normalised_network
from marginbn.parameters.pairs import (
    GRID,
    MOST_GROUPS,
    MOST_STATES,
    PRICE,
    RIDGE,
    Pairs,
    _grid,
    best_tree,
    choose_interactions,
    find_pairs,
    tree_bound,
)
from marginbn.parameters.trained import main_posterior
from marginbn.problem.encoded import EncodedData, Variable
from marginbn.problem.residuals import pair_gains
from marginbn.problem.structure import Structure
from ordinal_rows import mixed_rows, repeated
from problems import random_table
from score_tables import make_scores
from strategies import make_variables


def random_gains(seed: int, n: int = 7) -> np.ndarray:
    """Symmetric, about half of them positive."""
    gains = np.random.default_rng(seed).normal(size=(n, n))
    gains = np.triu(gains, 1)
    return gains + gains.T


def variables_of(codes: np.ndarray) -> tuple[Variable, ...]:
    """With as many states as there are codes."""
    return make_variables(tuple(int(c) + 1 for c in codes.max(axis=0)))


def residuals_of(data: EncodedData, posterior: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the residual score is made of."""
    return np.eye(data.n_classes)[data.codes[:, 0]] - posterior, posterior * (1 - posterior)


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_gains_of_categories_are_those_of_the_residual_score(n_classes: int) -> None:
    """The same formula, written for the structure search with exact sums."""
    data = random_table(np.random.default_rng(n_classes), 200, 5, n_classes, True).encoded()
    posterior = np.random.default_rng(0).dirichlet(np.ones(n_classes), 200)
    found = find_pairs(OrdinalData.plain(data), posterior).gains
    expected = pair_gains(
        data.codes[:, 1:],
        data.arities[1:],
        data.weights,
        *residuals_of(data, posterior),
        ridge=RIDGE,
        price=PRICE,
    )
    upper = np.triu_indices(5, 1)
    np.testing.assert_allclose(found[upper], expected[upper], rtol=1e-9)


def test_gains_of_numbers_are_those_of_their_groups() -> None:
    """Cut as they are found, the pair is a pair of categories with the same gain."""
    rows = mixed_rows(weighted=True)
    posterior = main_posterior(rows)
    pairs = find_pairs(rows, posterior)
    for (i, j), (first, second) in pairs.groups.items():
        own = rows.data.codes
        codes = np.column_stack([own[:, 0], first[own[:, i + 1]], second[own[:, j + 1]]])
        table = EncodedData(codes, rows.data.weights, variables_of(codes))
        gain = find_pairs(OrdinalData.plain(table), posterior).gains[0, 1]
        assert gain == pytest.approx(pairs.gains[i, j], rel=1e-9)
        for groups, v in ((first, i + 1), (second, j + 1)):
            assert (np.diff(groups) >= 0).all()
            assert rows.positions[v] is None or groups.max() < MOST_GROUPS
    assert (pairs.gains == pairs.gains.T).all()


def test_the_pair_that_interacts_is_found_without_a_cut_of_its_own() -> None:
    """The class depends on a product: b has no entropy cut, and still gains most with a."""
    rows = mixed_rows(n_classes=2)
    pairs = find_pairs(rows, main_posterior(rows))
    upper = np.triu(np.where(np.isfinite(pairs.gains), pairs.gains, 0), 1)
    assert np.unravel_index(upper.argmax(), upper.shape) == (0, 1)
    assert upper[0, 1] > 5 * np.delete(upper[0], 1).max()


def test_weights_are_repetitions() -> None:
    """In the gains and in the grids."""
    rows = mixed_rows(150)
    times = np.random.default_rng(0).integers(1, 4, 150)
    weighted = OrdinalData(
        EncodedData(rows.data.codes, times.astype(float), rows.data.variables),
        rows.groups,
        rows.positions,
    )
    posterior = np.random.default_rng(1).dirichlet(np.ones(3), 150)
    one = find_pairs(weighted, posterior)
    other = find_pairs(repeated(rows, times), np.repeat(posterior, times, axis=0))
    np.testing.assert_allclose(one.gains, other.gains, rtol=1e-9)


def test_of_very_many_rows_some_stand_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every second of rows that are there twice, with twice the weight."""
    rows = mixed_rows(100)
    twice = repeated(rows, np.full(100, 2))
    posterior = np.random.default_rng(1).dirichlet(np.ones(3), 100)
    full = find_pairs(twice, np.repeat(posterior, 2, axis=0))
    monkeypatch.setattr(pairs_module, "MOST_ROWS", 100)
    thinned = find_pairs(twice, np.repeat(posterior, 2, axis=0))
    np.testing.assert_allclose(thinned.gains, full.gains, rtol=1e-9)


def test_constant_features_have_no_pair() -> None:
    """Their gain is minus infinity, and no tree holds them."""
    codes = np.array([[0, 0, 1, 0], [1, 0, 0, 1], [1, 0, 1, 1], [0, 0, 0, 1]])
    data = EncodedData(codes, np.ones(4), variables_of(codes))
    pairs = find_pairs(OrdinalData.plain(data), np.full((4, 2), 0.5))
    assert np.isneginf(pairs.gains[0]).all()
    assert list(pairs.groups) == [(1, 2)]


def test_names_of_things_have_no_pairs() -> None:
    """A category with a state for every row would need a table as large as all rows squared."""
    n = MOST_STATES + 1
    codes = np.column_stack([np.arange(n) % 2, np.arange(n), np.arange(n) % 3, np.arange(n) % 5])
    pairs = find_pairs(
        OrdinalData.plain(EncodedData(codes, np.ones(n), variables_of(codes))), np.full((n, 2), 0.5)
    )
    assert list(pairs.groups) == [(1, 2)]


def test_one_feature_has_no_pairs() -> None:
    """And a bound of zero."""
    data = EncodedData(np.array([[0, 0], [1, 1]]), np.ones(2), variables_of(np.array([[1, 1]])))
    rows = OrdinalData.plain(data)
    pairs = find_pairs(rows, np.full((2, 2), 0.5))
    assert choose_interactions(rows, pairs, 2) == ()
    assert tree_bound(pairs, 2) == 0.0


@pytest.mark.parametrize("seed", range(20))
def test_width_one_is_the_maximum_spanning_forest(seed: int) -> None:
    """Against scipy, on positive gains."""
    gains = random_gains(seed)
    total = sum(gains[pair] for pair in best_tree(gains, 1))
    positive = np.where(gains > 0, gains, 0.0)
    assert total == pytest.approx(-minimum_spanning_tree(-np.triu(positive)).sum())


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("seed", range(10))
def test_trees_are_chordal_and_narrow(seed: int, width: int) -> None:
    """Pairs of positive gain, each once, in cliques of at most width + 1; wider gains no less."""
    gains = random_gains(seed, 9)
    pairs = best_tree(gains, width)
    graph = nx.Graph(pairs)
    assert len(set(pairs)) == len(pairs)
    assert all(i < j and gains[i, j] > 0 for i, j in pairs)
    assert nx.is_chordal(graph)
    assert max(map(len, nx.find_cliques(graph))) <= width + 1
    total = sum(gains[pair] for pair in pairs)
    assert total >= sum(gains[pair] for pair in best_tree(gains, width - 1 or 1)) - 1e-12


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_the_network_needs_no_further_arcs(seed: int, width: int) -> None:
    """Its tables are the arcs of the network, and features alone have the class only."""
    pairs = [(i + 1, j + 1) for i, j in best_tree(random_gains(seed, 6), width)]
    naive = Structure(((), *[(0,)] * 6))
    scores = make_scores(naive, (2, *[2] * 6), extra=pairs)
    codes = np.random.default_rng(0).integers(0, 2, (50, 7))
    data = EncodedData(codes, np.ones(50), scores.variables)
    network = normalised_network(scores, naive, data)
    between = {tuple(sorted(arc)) for arc in network.structure.arcs if 0 not in arc}
    assert between == set(pairs)
    assert max(len(parents) for parents in network.structure.parents) <= width + 1


def narrow_graphs(width: int) -> list[tuple[tuple[int, int], ...]]:
    """The edges of all chordal graphs of five vertices with cliques of at most width + 1."""
    edges = list(itertools.combinations(range(5), 2))
    sizes = range(1, len(edges) + 1)
    every = itertools.chain.from_iterable(itertools.combinations(edges, n) for n in sizes)
    return [
        chosen
        for chosen in every
        if nx.is_chordal(graph := nx.Graph(chosen))
        and max(map(len, nx.find_cliques(graph))) <= width + 1
    ]


@pytest.mark.parametrize("width", [1, 2])
def test_no_tree_exceeds_the_bound(width: int) -> None:
    """Nor does the greedy tree exceed the best; with width 1 it is the best."""
    graphs = narrow_graphs(width)
    for seed in range(5):
        gains = random_gains(seed, 5)
        best = max(sum(gains[edge] for edge in graph) for graph in graphs)
        greedy = sum(gains[pair] for pair in best_tree(gains, width))
        assert greedy <= best + 1e-12
        assert best <= tree_bound(Pairs(gains, {}), width) + 1e-12
        assert width > 1 or greedy == pytest.approx(best)


def test_interactions_are_those_of_the_tree() -> None:
    """With the groups of their pair, and a product where both are numbers."""
    rows = mixed_rows()
    pairs = find_pairs(rows, main_posterior(rows))
    chosen = choose_interactions(rows, pairs, 2)
    assert [i.family for i in chosen] == [(i + 1, j + 1) for i, j in best_tree(pairs.gains, 2)]
    for interaction in chosen:
        i, j = interaction.family
        for own, groups in zip(interaction.groups, pairs.groups[i - 1, j - 1], strict=True):
            np.testing.assert_array_equal(own, groups)
        numbers = rows.positions[i] is not None and rows.positions[j] is not None
        assert (interaction.product is not None) == numbers


def test_the_grid_has_coarse_bins_and_eighths() -> None:
    """No more candidates than that."""
    rows = mixed_rows()
    for v in (1, 2, 3):
        grid = _grid(rows, v)
        coarse = rows.groups[v]
        assert grid.max() + 1 <= GRID + coarse.max()
        counts = np.bincount(grid[rows.data.codes[:, v]])
        assert counts.max() <= 300 / GRID + 10
        for g in range(grid.max() + 1):
            assert len(set(coarse[grid == g])) == 1
