"""The generative twin: its tables, its posterior and its draws against other ways to get them."""

from __future__ import annotations

import numpy as np
import pytest

from marginbn.exceptions import InputError
from marginbn.network.network import BayesianNetwork
from marginbn.parameters.twin import TwinTree, fit_twin, spread_points
from marginbn.problem.augmented_tree import augmented_tree
from marginbn.problem.structure import Structure
from score_tables import GROUPS, dependent_rows, hide_features

DATA = dependent_rows()
FOREST = Structure(((), (), (0, 1), (0, 1), (0,)))


def normalise(log_joint: np.ndarray) -> np.ndarray:
    """Rows that sum to one."""
    shifted = np.exp(log_joint - log_joint.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def test_without_groups_it_is_the_smoothed_tree() -> None:
    """Laplace smoothing on the best tree."""
    assert fit_twin(DATA, None) == BayesianNetwork.fit(DATA, augmented_tree(DATA), smoothing=1.0)


def test_a_state_inside_its_group_has_its_share_whatever_the_class() -> None:
    """P(x | c, pa) = P(group | c, pa) * P(x | group), counted by hand."""
    twin = fit_twin(DATA, GROUPS, FOREST)
    counts = np.bincount(DATA.codes[:, 3], DATA.weights, 4)
    share = (counts + 0.5) / np.bincount(GROUPS[3], counts + 0.5)[GROUPS[3]]
    groups, parents = GROUPS[3][DATA.codes[:, 3]], GROUPS[1][DATA.codes[:, 1]]
    for c in range(3):
        for g in range(2):
            here = (DATA.codes[:, 0] == c) & (parents == g)
            table = np.bincount(groups[here], DATA.weights[here], 2) + 1.0
            expected = (table / table.sum())[GROUPS[3]] * share
            np.testing.assert_allclose(np.exp(twin.log_tables[3][c, g]), expected, atol=1e-12)


@pytest.mark.parametrize("structure", [None, FOREST])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.8, 1.0])
def test_messages_give_the_posterior_of_the_network(
    structure: Structure | None, share: float
) -> None:
    """Against the variable elimination of the network itself."""
    twin = fit_twin(DATA, GROUPS, structure)
    codes = hide_features(DATA.codes, share)
    posterior, _ = TwinTree.of(twin).ascend(codes)
    np.testing.assert_allclose(
        posterior, normalise(twin.log_joint_per_class(codes)), rtol=1e-9, atol=1e-15
    )


@pytest.mark.parametrize("structure", [None, FOREST])
def test_draws_follow_the_twin_given_what_is_seen(structure: Structure | None) -> None:
    """Shares of joint states among many draws against the probabilities of all of them."""
    twin = fit_twin(DATA, GROUPS, structure)
    codes = np.array([[0, -1, 2, -1, 1], [0, 4, -1, -1, -1]])
    tree, n_draws = TwinTree.of(twin), 20_000
    points = np.random.default_rng(0).random((n_draws, 5))
    drawn = tree.descend(codes, *tree.ascend(codes), points)
    for row, states in zip(codes, drawn, strict=True):
        free = [0, *(np.flatnonzero(row[1:] < 0) + 1)]
        shape = [twin.arities[v] for v in free]
        every = np.tile(row, (int(np.prod(shape)), 1))
        every[:, free] = np.indices(shape).reshape(len(shape), -1).T
        expected = normalise(twin.log_joint(every)[np.newaxis])[0]
        cells = np.ravel_multi_index([states[:, v] for v in free], shape)
        found = np.bincount(cells, minlength=len(expected)) / n_draws
        error = np.sqrt(expected * (1 - expected) / n_draws)
        assert (np.abs(found - expected) < 5 * error + 1e-9).all()
        seen = [v for v in range(5) if v not in free]
        assert (states[:, seen] == row[seen]).all()


def test_points_are_spread_over_every_column() -> None:
    """One point in each n-th of the unit interval, and always the same points."""
    points = spread_points(32, 7)
    assert (np.sort((points * 32).astype(int), axis=0) == np.arange(32)[:, np.newaxis]).all()
    assert np.array_equal(points, spread_points(32, 7))
    assert np.abs(np.corrcoef(points.T) - np.eye(7)).max() < 0.6


@pytest.mark.parametrize("parents", [((1,), (), (), (), ()), ((), (0,), (0,), (0, 1, 2), ())])
def test_only_forests_are_twins(parents: tuple[tuple[int, ...], ...]) -> None:
    """A class with parents, or a feature with two of them."""
    with pytest.raises(InputError, match="must be a forest"):
        fit_twin(DATA, GROUPS, Structure(parents))
