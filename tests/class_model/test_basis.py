"""Cells of features, the functions of them, and designs."""

from __future__ import annotations

import numpy as np
import pytest

from class_model_cases import CHAIN, COUPLED, designed, functions, learned, mixed_rows
from class_model_oracle import walk
from marginbn.class_model.basis import (
    EFFECT,
    FAMILY,
    LINE,
    MOST_CATEGORIES,
    Design,
    family_pairs,
    learn_cells,
)
from marginbn.data.labelled import LabelledTable
from marginbn.data.table import as_table
from marginbn.exceptions import InputError
from marginbn.problem.structure import Structure


def one_column(values: list, kind: str, labels: list[int]) -> LabelledTable:
    table = as_table([[v] for v in values], kinds={"x0": kind})
    return LabelledTable.of(table, np.array(labels))


def test_cells_are_as_fine_as_any_table_needs() -> None:
    """Family cells and bins are unions of cells, in order; a missing value has its own."""
    cells, data = learned(mixed_rows(600))
    x, z, a, _ = cells.features
    assert 48 <= x.n_cells <= 60
    assert not x.coding.missing_state
    assert z.coding.missing_state
    for feature in (x, z):
        for groups in (feature.family, feature.bin):
            assert np.all(np.diff(groups) >= 0)
            assert sorted(set(groups)) == list(range(groups[-1] + 1))
        assert max(feature.family) < feature.n_cells - 1
    assert z.bin.count(z.bin[-1]) == 1
    assert a.family == a.bin == (0, 1, 2)
    np.testing.assert_allclose(
        x.weights, np.bincount(data.codes[:, 1], data.weights, x.n_cells), atol=1e-9
    )


def test_codes_of_cells_lead_to_the_bins_of_the_network() -> None:
    rows = mixed_rows(300)
    cells, data = learned(rows)
    counted = cells.count(data)
    np.testing.assert_array_equal(counted.codes[:, 1:], cells.bins.encode(rows.features))
    assert counted.names == data.names


def test_a_number_without_a_cut_has_quartiles() -> None:
    """Noise has no Fayyad-Irani cut, yet four bins of equal weight."""
    rng = np.random.default_rng(1)
    rows = one_column(rng.normal(size=400).tolist(), "numeric", rng.integers(0, 2, 400).tolist())
    cells, data = learned(rows)
    counts = np.bincount(cells.count(data).codes[:, 1])
    np.testing.assert_allclose(counts, 100, atol=1)


def test_functions_of_a_number_by_definition() -> None:
    """Line, walk and missing as in the oracle; the row of unknown is zero."""
    feature = learned(mixed_rows(300))[0].features[1]
    n = feature.n_cells - 1
    shares = np.array(feature.weights[:n]) / sum(feature.weights[:n])
    basis = feature.effect.basis
    np.testing.assert_allclose(basis[:n, 0], feature.positions)
    np.testing.assert_allclose(basis[:n, 1:n], walk(shares), atol=1e-12)
    np.testing.assert_array_equal(basis[n, :-1], 0.0)
    assert basis[n, -1] == 1.0
    np.testing.assert_array_equal(basis[n + 1], 0.0)
    assert feature.effect.groups.tolist() == [LINE] + [EFFECT] * (basis.shape[1] - 1)
    assert shares @ basis[:n, 0] == pytest.approx(0.0, abs=1e-9)
    assert shares @ basis[:n, 0] ** 2 == pytest.approx(1.0, abs=0.05)


def test_an_atom_has_a_function_of_its_own() -> None:
    """Zeros are half of the values: one more column than line and walk."""
    rng = np.random.default_rng(2)
    values = np.where(rng.random(400) < 0.5, 0.0, rng.normal(size=400))
    rows = one_column(values.tolist(), "numeric", rng.integers(0, 2, 400).tolist())
    feature = learned(rows)[0].features[0]
    assert feature.effect.basis.shape[1] == feature.n_cells + 1
    atom = int(np.argmax(feature.weights))
    assert np.argmax(feature.effect.basis[:, -1]) == atom


def test_smooth_functions_span_the_walk_from_smooth_to_rough() -> None:
    """Orthogonal under the shares, of falling variance, with one more change of sign each."""
    feature = learned(mixed_rows(600))[0].features[0]
    weights = np.bincount(feature.family, feature.weights)
    basis = feature.side.basis[:-1]
    products = basis.T @ (basis * (weights / weights.sum())[:, np.newaxis])
    sizes = np.diag(products)
    np.testing.assert_allclose(products, np.diag(sizes), atol=1e-12)
    assert np.all(np.diff(sizes) < 0.0)
    changes = (np.diff(np.sign(basis), axis=0) != 0).sum(axis=0)
    assert changes.tolist() == list(range(1, basis.shape[1] + 1))
    assert feature.side.orders.tolist() == list(range(1, 17))
    assert np.all(basis[-1] > 0.0)


def test_categories_have_their_centred_identity() -> None:
    """Weights sum to zero in every column, variances to one in family tables."""
    feature = learned(mixed_rows(300))[0].features[2]
    weights = np.array(feature.weights)
    np.testing.assert_allclose(weights @ feature.effect.basis[:-1], 0.0, atol=1e-10)
    np.testing.assert_allclose(np.diff(feature.effect.basis[:3], axis=0)[0, :2], [-1.0, 1.0])
    assert (weights @ feature.side.basis[:-1] ** 2).sum() == pytest.approx(weights.sum())


def test_the_rarest_of_many_categories_are_one_in_family_tables() -> None:
    """The most frequent keep cells of their own."""
    rng = np.random.default_rng(3)
    values = [f"c{min(int(v), 19)}" for v in rng.exponential(5.0, 2000)]
    rows = one_column(values, "categorical", rng.integers(0, 2, 2000).tolist())
    feature = learned(rows)[0].features[0]
    assert max(feature.family) == MOST_CATEGORIES - 1
    alone = [k for k in range(feature.n_cells) if feature.family.count(feature.family[k]) == 1]
    shared = [k for k in range(feature.n_cells) if k not in alone]
    assert len(alone) == MOST_CATEGORIES - 1
    assert min(feature.weights[k] for k in alone) >= max(feature.weights[k] for k in shared)


@pytest.mark.parametrize("values", [[None] * 8, [3.0] * 8, [None, 3.0] * 4, [1.0, 2.0] * 4])
def test_columns_with_little_to_say(values: list) -> None:
    """All missing, constant, known or not, two values: finite functions, all tables buildable."""
    table = as_table(
        [[v, float(n)] for n, v in enumerate(values)], kinds={"x0": "numeric", "x1": "numeric"}
    )
    cells, data = learn_cells(LabelledTable.of(table, np.arange(8) % 2), np.arange(2))
    assert np.isfinite(functions(Design(cells, ((0, 1),)), data.by_column[1:])).all()
    has_effect = cells.features[0].effect.basis.shape[1] > 0
    assert has_effect == (len(set(values)) > 1)


def test_products_of_a_family_table() -> None:
    """Orders k l up to 16: 50 for two numbers."""
    design, _ = designed(mixed_rows(2000), Structure(((), (0,), (0, 1), (0,), (0,))))
    numbers = design.products[-1]
    orders = design.cells.features[0].side.orders
    missing = int((numbers[:, 1] == 16).sum())
    assert len(numbers) - missing == 50
    assert missing == 16
    assert all(orders[k] * (orders[m] if m < 16 else 1) <= 16 for k, m in numbers)
    assert (design.groups == FAMILY).sum() == len(numbers)


def test_functions_of_rows_multiply_those_of_the_features() -> None:
    """A row by hand; what is unknown is zero in effect and pair."""
    design, data = designed(mixed_rows(200))
    cells = design.cells
    codes = data.codes[:3, 1:].astype(np.int32)
    codes[1, 1] = -1
    values = functions(design, cells.compact(codes))
    layout = design.layout
    a, b = cells.features[0], cells.features[1]
    first = layout.first_parameter[4]
    k, m = design.products[4][7]
    expected = a.side.basis[a.family[codes[0, 0]], k] * b.side.basis[b.family[codes[0, 1]], m]
    assert values[0, first + 7] == pytest.approx(expected)
    for table, uses in ((1, True), (4, True), (5, True), (6, False)):
        own = values[1, layout.first_parameter[table] : layout.first_parameter[table + 1]]
        assert (own == 0.0).all() == uses
    assert values[:, 0].tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("codes", [np.zeros(4, int), np.zeros((2, 3), int), np.full((1, 4), 99)])
def test_codes_that_no_cell_has_are_refused(codes: np.ndarray) -> None:
    with pytest.raises(InputError, match=r"codes must be \(rows, 4\)"):
        learned(mixed_rows(50))[0].compact(codes)


def test_pairs_of_families() -> None:
    """Arcs between features; with two feature parents the parents are a pair as well."""
    assert family_pairs(CHAIN) == ((0, 1), (1, 2), (2, 3))
    assert family_pairs(COUPLED) == ((0, 1), (0, 2), (1, 2), (1, 3), (2, 3))
    assert family_pairs(Structure(((), (0,), (1,)))) == ()


def test_weights_count_as_repetitions() -> None:
    """A row of weight three has the cells of three rows."""
    rows = mixed_rows(120)
    repeats = np.random.default_rng(4).integers(1, 4, 120)
    weighted = LabelledTable.of(rows.features, rows.labels, weights=repeats.astype(float))
    repeated = rows.take(np.repeat(np.arange(120), repeats))
    pairs = zip(learned(weighted)[0].features, learned(repeated)[0].features, strict=True)
    for one, other in pairs:
        assert (one.coding, one.bins) == (other.coding, other.bins)
        assert (one.family, one.bin) == (other.family, other.bin)
        np.testing.assert_allclose(one.weights, other.weights)
        np.testing.assert_allclose(one.positions, other.positions, atol=1e-12)
