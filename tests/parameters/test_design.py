"""The matrix from parameters to scores, built a second time row by row."""

from __future__ import annotations

import numpy as np
import pytest

from marginbn.data.ordinal import OrdinalData
from marginbn.parameters.design import (
    CELLS,
    KNOTS,
    LINES,
    STEPS,
    Design,
    Interaction,
    Profile,
    coarse_groups,
    coarse_interaction,
    effect_basis,
    pair_interaction,
)
from marginbn.problem.encoded import EncodedData
from ordinal_rows import mixed_rows
from strategies import make_variables

ROWS = mixed_rows(weighted=True)
PROFILES = pytest.mark.parametrize("profile", [LINES, STEPS], ids=lambda p: p.name)


def interactions() -> list[Interaction]:
    """Two numbers with a product, a number with a category, three features."""
    halves = [np.repeat([0, 1], [a // 2, a - a // 2]) for a in ROWS.data.arities]
    return [
        pair_interaction(ROWS, (1, 2), (halves[1], halves[2])),
        pair_interaction(ROWS, (1, 4), (halves[1], np.arange(3))),
        coarse_interaction(ROWS, (4, 1, 2)),
    ]


def slow_matrix(profile: Profile) -> np.ndarray:
    """A row of the design for every row of codes, table by table."""
    lines = []
    for row in ROWS.data.codes:
        parts = [np.ones(1)]
        parts += [effect_basis(ROWS, v, profile)[row[v]] for v in range(1, 5)]
        for table in interactions():
            index = [int(g[row[v]]) for v, g in zip(table.family, table.groups, strict=True)]
            cell = 0
            for place, size in zip(index, table.shape, strict=True):
                cell = cell * size + place
            part = np.zeros(table.n_cells)
            part[cell] = CELLS
            if table.product is not None:
                part = np.append(part, profile.product * table.product[cell])
            parts.append(part)
        lines.append(np.concatenate(parts))
    return np.array(lines)


@PROFILES
def test_the_matrix_is_the_product_of_its_parts(profile: Profile) -> None:
    """Cells times basis, the curvature and the second derivative."""
    design = Design(ROWS, profile, interactions())
    X, w = slow_matrix(profile), ROWS.data.weights
    np.testing.assert_allclose((design.cells @ design.basis).toarray(), X, atol=1e-12)
    assert design.n_parameters == X.shape[1]
    np.testing.assert_allclose(design.curvature, 2 / 9 * w @ X**2, rtol=1e-12)
    h = np.random.default_rng(0).uniform(size=len(X))
    expected = (X.T * h) @ X + 0.7 * np.eye(X.shape[1])
    np.testing.assert_allclose(design.second_derivative(h, 0.7), expected, atol=1e-9)


@PROFILES
def test_nothing_is_stored_that_is_zero(profile: Profile) -> None:
    """Or a table of a thousand cells has a million numbers."""
    design = Design(ROWS, profile, interactions())
    assert (design.basis.data != 0).all()
    big = Interaction((1, 2), (np.arange(70), np.arange(70)))
    assert big.basis(profile).nnz == 4900


@PROFILES
def test_tables_say_what_the_matrix_says(profile: Profile) -> None:
    """Class scores of random parameters on all rows."""
    design = Design(ROWS, profile, interactions())
    rng = np.random.default_rng(1)
    parameters = rng.normal(size=(design.n_parameters, 3))
    offset = rng.normal(size=3)
    scores = design.class_scores(parameters, offset)
    expected = slow_matrix(profile) @ parameters + offset
    np.testing.assert_allclose(scores.evaluate(ROWS.data.codes), expected, atol=1e-10)
    assert set(scores.tables) == {(1, 2), (1, 4), (1, 2, 4)}


def test_unknown_values_add_nothing() -> None:
    """A row of nothing but -1 has the bias alone; one unknown member silences a table."""
    design = Design(ROWS, STEPS, interactions())
    codes = np.full((2, 5), -1)
    codes[1, 1] = 3
    cells = design.encode(codes).toarray()
    assert cells.sum(axis=1).tolist() == [1.0, 2.0]


@PROFILES
@pytest.mark.parametrize("variable", [1, 2, 3])
def test_effects_of_numbers_are_centred_walks_and_lines(profile: Profile, variable: int) -> None:
    """At most 15 steps, each up once; one line; a column for each coarse bin; all of mean zero."""
    basis = effect_basis(ROWS, variable, profile)
    counts = np.bincount(ROWS.data.codes[:, variable], ROWS.data.weights)
    np.testing.assert_allclose(counts @ basis, 0, atol=1e-9)
    height = profile.steps * np.sqrt(2 / KNOTS)
    steps, line, rest = basis[:, :KNOTS], basis[:, KNOTS], basis[:, KNOTS + 1 :]
    jumps = np.diff(steps, axis=0)
    assert np.allclose(jumps.sum(axis=0), height)
    assert ((np.abs(jumps) > 1e-9).sum(axis=0) == 1).all()
    positions = ROWS.positions[variable]
    centred = positions - counts @ positions / counts.sum()
    np.testing.assert_allclose(line, 3 * profile.line * centred, atol=1e-9)
    n_bins = coarse_groups(ROWS, variable).max() + 1
    assert rest.shape[1] == (n_bins if profile.coarse and n_bins > 1 else 0)


def test_knots_share_the_rows_evenly() -> None:
    """Sixteen pieces of about the same weight."""
    basis = effect_basis(ROWS, 1, LINES)[:, :KNOTS]
    piece = np.concatenate([[0], (np.abs(np.diff(basis, axis=0)) > 1e-9).any(axis=1).cumsum()])
    weight = np.bincount(piece[ROWS.data.codes[:, 1]], ROWS.data.weights)
    assert len(weight) == KNOTS + 1
    assert weight.max() < 2.5 * weight.min()


def test_a_missing_value_has_a_parameter_of_its_own() -> None:
    """And nothing of the others."""
    data = EncodedData(
        np.array([[0, 0], [1, 1], [0, 2], [1, 3]]), np.ones(4), make_variables((2, 4))
    )
    rows = OrdinalData(data, (None, None), (None, np.array([-1.0, 0.0, 1.0, np.nan])))
    basis = effect_basis(rows, 1, STEPS)
    assert basis[3].tolist() == [0.0] * (basis.shape[1] - 1) + [1.0]
    assert (basis[:3, -1] == 0).all()
    only_missing = rows.take(np.array([3]))
    assert np.isfinite(effect_basis(only_missing, 1, STEPS)).all()


def test_categories_and_pairs_of_states_are_plain() -> None:
    """One parameter per state."""
    np.testing.assert_array_equal(effect_basis(ROWS, 4, LINES), np.eye(3))


def test_products_are_those_of_mean_positions() -> None:
    """Two numbers in two groups each; a category has no product."""
    product, plain = interactions()[:2]
    assert plain.product is None
    means = []
    for v, groups in zip(product.family, product.groups, strict=True):
        codes, w = ROWS.data.codes[:, v], ROWS.data.weights
        here = [groups[codes] == g for g in range(2)]
        means.append([np.average(ROWS.positions[v][codes[h]], weights=w[h]) for h in here])
    np.testing.assert_allclose(product.product, np.outer(*means).ravel(), atol=1e-12)


def test_constant_features_have_no_table() -> None:
    """Their effect is zero."""
    data = EncodedData(np.array([[0, 0, 1], [1, 0, 0]]), np.ones(2), make_variables((2, 1, 2)))
    design = Design(OrdinalData.plain(data), STEPS)
    assert design.features == [2]
    scores = design.class_scores(np.ones((3, 2)), np.zeros(2))
    assert scores.effects[0].tolist() == [[0.0], [0.0]]
