"""Smoothed parameters against the formula, written with fractions."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginbn.problem.encoded import EncodedData
from marginbn.problem.margins import estimate_log_tables, smoothed_log_table
from marginbn.problem.structure import Structure
from strategies import data_and_structure


def test_laplace_by_hand() -> None:
    """Counts (3, 1) and (0, 0) with one added: (4, 2) / 6 and (1, 1) / 2."""
    table = smoothed_log_table(np.array([[3.0, 1.0], [0.0, 0.0]]), 1.0)
    np.testing.assert_allclose(np.exp(table), [[4 / 6, 2 / 6], [0.5, 0.5]], rtol=1e-15)


@given(data_and_structure(class_restricted=False, min_samples=0), st.sampled_from([0.1, 1.0, 2.5]))
@settings(deadline=None, max_examples=80)
def test_parameters_are_the_formula(case: tuple[EncodedData, Structure], smoothing: float) -> None:
    """Each entry is (n(h, j) + s) / (n(h) + s r) in exact arithmetic, eq. 2 with smoothing."""
    data, structure = case
    tables = estimate_log_tables(data, structure, smoothing)
    rows = list(zip(data.codes.tolist(), data.weights.tolist(), strict=True))
    for child, parents in enumerate(structure.parents):
        assert tables[child].shape == tuple(data.arities[[*parents, child]])
        for state in itertools.product(*(range(n) for n in tables[child].shape)):
            under = [
                (row[child], Fraction(weight))
                for row, weight in rows
                if tuple(row[p] for p in parents) == state[:-1]
            ]
            hits = sum((w for j, w in under if j == state[-1]), Fraction(0))
            total = sum((w for _, w in under), Fraction(0))
            theta = (hits + Fraction(smoothing)) / (
                total + Fraction(smoothing) * int(data.arities[child])
            )
            assert math.exp(tables[child][state]) == pytest.approx(float(theta), rel=1e-12)


@given(
    st.lists(st.lists(st.floats(0, 1e9), min_size=3, max_size=3), min_size=1, max_size=4),
    st.sampled_from([5e-324, 1e-300, 1e-12, 1.0, 1e6, 1e300]),
)
@settings(deadline=None, max_examples=100)
def test_rows_sum_to_one_and_stay_finite(counts: list[list[float]], smoothing: float) -> None:
    table = smoothed_log_table(np.array(counts), smoothing)
    assert np.isfinite(table).all()
    assert (table <= 1e-12).all()
    np.testing.assert_allclose(np.exp(table).sum(axis=-1), 1.0, rtol=1e-12)
