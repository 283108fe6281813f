"""Margins against probabilities multiplied out in plain Python (eq. 8 to 13 and 20 to 23)."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from marginbn.problem.candidates import enumerate_candidates
from marginbn.problem.encoded import EncodedData
from marginbn.problem.margins import MarginKind, MarginRows
from marginbn.problem.structure import Structure
from strategies import data_and_structure, encoded_data, make_data, random_data

KINDS: tuple[MarginKind, ...] = ("multiclass", "binary")
SMOOTHINGS = st.sampled_from([0.05, 0.5, 1.0, 3.0])

Case = tuple[EncodedData, Structure]


def margins_by_hand(
    data: EncodedData, structure: Structure, kind: MarginKind, smoothing: float
) -> list[list[float]]:
    """Log margins of every row, multiplied out with fractions."""
    weights = [Fraction(weight) for weight in data.weights.tolist()]
    raw = data.codes.tolist(), weights, data.arities.tolist(), Fraction(smoothing)
    graph, rows = structure.parents, raw[0]
    if kind == "multiclass":
        parameters = oracles.Parameters(*raw)
        return [oracles.log_odds(parameters, graph, row) for row in rows]
    rest = oracles.against_the_rest(*raw)
    return [oracles.log_odds(rest[row[0]], graph, [0, *row[1:]]) for row in rows]


def margin_rows(data: EncodedData, kind: MarginKind, smoothing: float = 1.0) -> MarginRows:
    return MarginRows(
        data, enumerate_candidates(data.n_variables, data.n_variables - 1), kind, smoothing
    )


def test_naive_bayes_margin_by_hand() -> None:
    """Rows (0,0) (0,0) (0,1) (1,1): P(0, x=0) = 4/6 * 3/5 and P(1, x=0) = 2/6 * 1/3."""
    data = make_data([[0, 0], [0, 0], [0, 1], [1, 1]])
    rows = margin_rows(data, "multiclass")
    margins = rows.at(rows.candidates.selection(Structure(((), (0,)))))
    first = math.log((4 / 6 * 3 / 5) / (2 / 6 * 1 / 3))
    third = math.log((4 / 6 * 2 / 5) / (2 / 6 * 2 / 3))
    np.testing.assert_allclose(margins, [[first], [first], [third], [-third]], rtol=1e-14)


def test_binary_margin_of_three_classes_by_hand() -> None:
    """Classes 0, 0, 1, 2 without features: class 0 against the rest 3 : 3, class 1 2 : 4."""
    data = make_data([[0], [0], [1], [2]])
    margins = margin_rows(data, "binary").at([0])
    np.testing.assert_allclose(margins, [[0.0], [0.0], [math.log(0.5)], [math.log(0.5)]])


def test_rivals_come_in_increasing_order() -> None:
    """Class 1 of three has the rows of class 0 and class 2, in this order."""
    data = make_data([[0], [0], [0], [1], [1], [2]])
    margins = margin_rows(data, "multiclass").at([0])
    np.testing.assert_allclose(margins[3], [math.log(3 / 4), math.log(3 / 2)])
    np.testing.assert_allclose(margins[5], [math.log(2 / 4), math.log(2 / 3)])
    assert margin_rows(data, "multiclass").rivals.tolist() == [[1, 2], [0, 2], [0, 1]]
    assert margin_rows(data, "binary").rivals.tolist() == [[0]] * 3  # a place for the rest


@pytest.mark.parametrize("kind", KINDS)
@given(data_and_structure(max_samples=8), SMOOTHINGS)
@settings(deadline=None, max_examples=100)
def test_margins_are_ratios_of_joint_probabilities(
    kind: MarginKind, case: Case, smoothing: float
) -> None:
    """Rows at a structure are log P(c, z) - log P(rival, z), multiplied out with fractions; for the
    binary margin (eq. 20 to 23) the rival is all other classes, with parameters of their own.
    """
    data, structure = case
    rows = margin_rows(data, kind, smoothing)
    margins = rows.at(rows.candidates.selection(structure))
    assert margins.shape == (data.n_samples, 1 if kind == "binary" else data.n_classes - 1)
    by_hand = margins_by_hand(data, structure, kind, smoothing)
    np.testing.assert_allclose(margins, by_hand, rtol=1e-11, atol=1e-12)


@given(data_and_structure(max_classes=2), SMOOTHINGS)
@settings(deadline=None, max_examples=100)
def test_two_classes_make_the_margins_one(case: Case, smoothing: float) -> None:
    data, _ = case
    soft, binary = (margin_rows(data, kind, smoothing) for kind in KINDS)
    np.testing.assert_allclose(soft.dense(), binary.dense(), rtol=0, atol=1e-12)


def test_two_classes_agree_also_for_weights_of_very_different_size() -> None:
    """Light rows are not rounded away beside heavy ones: the rest is added, never subtracted."""
    data = make_data([[0, 0], [1, 0], [0, 1], [1, 1]], None, [1e-9, 1e9, 3e8, 2e-7])
    soft, binary = (margin_rows(data, kind, 1e-12) for kind in KINDS)
    np.testing.assert_allclose(soft.dense(), binary.dense(), rtol=0, atol=1e-12)


def test_the_binary_rest_of_three_classes_is_exact_for_any_weights() -> None:
    """Three classes with weights from 1e-9 to 1e9 agree with exact fractions."""
    data = make_data(
        [[0, 0], [1, 0], [2, 0], [0, 1], [1, 1], [2, 1]], None, [1e-9, 1e9, 2e-9, 1e9, 3e-9, 1e-3]
    )
    rows = margin_rows(data, "binary", 1e-12)
    for parents in ((), (0,)), ((1,), ()), ((), ()):
        structure = Structure(parents)
        np.testing.assert_allclose(
            rows.at(rows.candidates.selection(structure)),
            margins_by_hand(data, structure, "binary", 1e-12),
            rtol=1e-11,
            atol=1e-11,
        )


@pytest.mark.parametrize("kind", KINDS)
@given(encoded_data(max_variables=3))
@settings(deadline=None, max_examples=40)
def test_dense_stacks_the_columns(kind: MarginKind, data: EncodedData) -> None:
    """dense()[k] is column(k), in the shape and size that are announced."""
    rows = margin_rows(data, kind)
    dense = rows.dense()
    assert dense.shape == (rows.n_candidates, rows.n_samples, rows.n_rivals)
    assert dense.nbytes == rows.nbytes_dense()
    assert np.isfinite(dense).all()
    for k in range(rows.n_candidates):
        assert rows.column(k).tolist() == dense[k].tolist()
    selection = rows.candidates.offsets[:-1]
    np.testing.assert_allclose(rows.at(selection), dense[selection].sum(axis=0), atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_factors_without_the_class_do_not_matter(kind: MarginKind) -> None:
    data = random_data(5)
    candidates = enumerate_candidates(4, 2, class_restricted=False)
    rows = MarginRows(data, candidates, kind, 1.0)
    for k, parents in enumerate(candidates.parents):
        without = candidates.child[k] != 0 and 0 not in parents
        assert (np.abs(rows.column(k)).max() == 0) == without


def test_tables_without_the_class_by_hand() -> None:
    """x2 below x1, rows (0,0) (0,0) (0,1) (1,1): the same log theta for every class, and no odds
    of a class against the rest.
    """
    data = make_data([[0, 0, 0], [1, 0, 0], [2, 0, 1], [0, 1, 1]], (3, 2, 2))
    candidates = enumerate_candidates(3, 2, class_restricted=False)
    k = candidates.index(2, (1,))
    thetas = np.log([3 / 5, 2 / 5, 1 / 3, 2 / 3])  # (x1, x2) = 00, 01, 10, 11
    soft = MarginRows(data, candidates, "multiclass", 1.0).table(k)
    np.testing.assert_allclose(soft, np.column_stack([thetas] * 3), rtol=1e-14)
    assert MarginRows(data, candidates, "binary", 1.0).table(k).tolist() == [[0.0] * 3] * 4


def test_a_single_class_has_no_rivals() -> None:
    rows = margin_rows(make_data([[0, 0], [0, 1]], (1, 2)), "multiclass")
    assert rows.n_rivals == 0
    assert rows.rivals.shape == (1, 0)
    assert rows.nbytes_dense() == 0


@pytest.mark.parametrize("kind", KINDS)
def test_constant_features_have_no_coefficients(kind: MarginKind) -> None:
    data = make_data([[0, 0, 1], [1, 0, 0], [2, 0, 1]], (3, 1, 2))
    rows = margin_rows(data, kind)
    for k in rows.candidates.group(1):
        assert np.abs(rows.column(k)).max() == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("smoothing", [1e-300, 1e-12, 1e12])
def test_extreme_smoothing_stays_finite(kind: MarginKind, smoothing: float) -> None:
    data = random_data(8, 12, (4, 3, 2))
    dense = margin_rows(data, kind, smoothing).dense()
    assert np.isfinite(dense).all()
    if smoothing > 1:
        assert np.abs(dense).max() < 1e-9
