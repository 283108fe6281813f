"""Encoded data: what is refused, and merging of equal rows."""

from __future__ import annotations

import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings

from marginbn.exceptions import InputError
from marginbn.problem.encoded import EncodedData, contingency
from marginbn.proof.definition import define_data
from strategies import encoded_data, make_data, make_variables


def test_properties_by_hand() -> None:
    data = make_data([[0, 2, 0], [1, 0, 0], [0, 2, 0]], (2, 6, 1), [1.0, 0.5, 2.0])
    assert data.arities.tolist() == [2, 6, 1]
    assert data.names == ("class", "x1", "x2")
    assert (data.n_samples, data.n_variables, data.n_classes) == (3, 3, 2)
    assert data.total_weight == 3.5
    assert data.constant == (2,)
    assert data.codes.dtype == np.int32
    assert data.weights.dtype == np.float64


def test_a_single_class_is_no_constant_feature() -> None:
    assert make_data([[0, 0]], (1, 1)).constant == (1,)


@given(encoded_data(min_samples=0))
@settings(deadline=None, max_examples=30)
def test_another_process_gets_the_same_data_in_a_byte_for_each_code(data: EncodedData) -> None:
    copy, many = pickle.loads(pickle.dumps(data)), make_data([[0] * 5] * 4000, (2,) * 5)
    for name in ("codes", "by_column", "weights"):
        assert np.array_equal(getattr(copy, name), getattr(data, name))
    assert copy.variables == data.variables
    assert len(pickle.dumps(many)) < many.by_column.nbytes + many.weights.nbytes + 2_000


@given(encoded_data(min_samples=0))
@settings(deadline=None, max_examples=100)
def test_merging_keeps_the_weight_of_every_row(data: EncodedData) -> None:
    """Weights per distinct row are as a dictionary adds them up, and merging twice is once."""
    expected: Counter[tuple[int, ...]] = Counter()
    for row, weight in zip(data.codes.tolist(), data.weights.tolist(), strict=True):
        expected[tuple(row)] += weight  # type: ignore[assignment]
    merged = data.merged()
    rows = [tuple(row) for row in merged.codes.tolist()]
    assert rows == sorted(expected)
    assert merged.weights.tolist() == pytest.approx([expected[row] for row in rows])
    again = merged.merged()
    assert again.codes.tolist() == merged.codes.tolist()
    assert again.weights.tolist() == merged.weights.tolist()


def test_merging_with_more_joint_states_than_an_integer_holds() -> None:
    """Seventy binary columns have 2^70 joint states; equal rows are still found, in order."""
    rng = np.random.default_rng(0)
    distinct = rng.integers(0, 2, (5, 70))
    codes = distinct[[0, 1, 0, 2, 3, 4, 4]]
    merged = make_data(codes.tolist(), [2] * 70).merged()
    assert merged.codes.tolist() == sorted(distinct.tolist())
    assert sorted(merged.weights.tolist()) == [1.0, 1.0, 1.0, 2.0, 2.0]


def test_zero_rows_are_data_too() -> None:
    data = EncodedData(np.empty((0, 2), np.int32), np.empty(0), make_variables((2, 3)))
    assert data.merged().n_samples == 0
    assert data.total_weight == 0.0


@pytest.mark.parametrize("weight", [0.0, -1.0, np.nan, np.inf])
def test_weights_must_be_positive_and_finite(weight: float) -> None:
    with pytest.raises(InputError, match="weights must be positive and finite"):
        make_data([[0, 0], [1, 1]], None, [1.0, weight])


@pytest.mark.parametrize("code", [-1, 2, 2**31 - 1])
def test_codes_must_be_states(code: int) -> None:
    with pytest.raises(InputError, match="codes must lie between 0 and the arity"):
        make_data([[0, code]], (2, 2))


@pytest.mark.parametrize("code", [2**32, 0.5, np.nan])
def test_codes_are_not_bent_into_states(code: float) -> None:
    with pytest.raises(InputError, match="codes must"):
        EncodedData(np.array([[0, code]]), np.ones(1), make_variables((2, 2)))


def test_shapes_must_match() -> None:
    variables = make_variables((2, 2))
    with pytest.raises(InputError, match=r"codes must have shape \(n_samples, 2\), got \(1, 3\)"):
        EncodedData(np.zeros((1, 3), np.int32), np.ones(1), variables)
    with pytest.raises(InputError, match=r"codes must have shape \(n_samples, 2\), got \(2,\)"):
        EncodedData(np.zeros(2, np.int32), np.ones(2), variables)
    with pytest.raises(InputError, match=r"weights must have shape \(1,\), got \(2,\)"):
        EncodedData(np.zeros((1, 2), np.int32), np.ones(2), variables)


def test_data_cannot_be_written_but_the_callers_arrays_can() -> None:
    codes, weights = np.zeros((2, 2), np.int32), np.ones(2)
    data = EncodedData(codes, weights, make_variables((2, 2)))
    with pytest.raises(ValueError, match="read-only"):
        data.codes[0, 0] = 1
    with pytest.raises(ValueError, match="read-only"):
        data.weights[0] = 2.0
    assert codes.flags.writeable
    assert weights.flags.writeable


def test_codes_are_stored_row_by_row() -> None:
    """Column-major or strided input comes out C-contiguous, as compiled code expects."""
    data = EncodedData(
        np.asfortranarray(np.array([[0, 1], [1, 0]], np.int64)),
        np.arange(1.0, 5.0)[::2],
        make_variables((2, 2)),
    )
    assert data.codes.flags.c_contiguous
    assert data.weights.flags.c_contiguous
    assert data.codes.tolist() == [[0, 1], [1, 0]]


def test_small_codes_stay_small_and_mean_the_same() -> None:
    """A table by columns of bytes is neither copied nor counted, merged or hashed otherwise."""
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 3, (50, 4))
    usual = make_data(codes.tolist(), (3, 3, 3, 3))
    store = np.ascontiguousarray(codes.T.astype(np.uint8))
    small = EncodedData(store.T, usual.weights, usual.variables)
    assert np.shares_memory(small.codes, store)
    assert np.shares_memory(small.by_column, store)
    assert small.codes.dtype == np.uint8
    assert np.array_equal(contingency(small, (2, 0, 3)), contingency(usual, (2, 0, 3)))
    assert np.array_equal(small.merged().codes, usual.merged().codes)
    assert define_data(small).fingerprint() == define_data(usual).fingerprint()
    with pytest.raises(InputError, match="must lie between"):
        EncodedData(store.T + np.uint8(1), usual.weights, usual.variables)
    with pytest.raises(InputError, match="must lie between"):
        EncodedData(codes.astype(np.int8) - np.int8(1), usual.weights, usual.variables)
