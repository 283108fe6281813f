"""Contingency tables against counting one row at a time."""

from __future__ import annotations

import itertools
import math
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginbn.exceptions import InputError, ProblemTooLargeError
from marginbn.problem.candidates import enumerate_candidates
from marginbn.problem.encoded import (
    MAX_JOINT_STATES,
    EncodedData,
    check_joint_states,
    contingency,
    count_states,
    joint_codes,
)
from marginbn.problem.problem import margin_problem
from strategies import encoded_data, make_data, make_variables

TABLE = make_data([[0, 1], [0, 1], [1, 2], [1, 0]], (2, 3), [1.0, 2.0, 0.5, 1.0])


def test_joint_codes_by_hand() -> None:
    """The last column runs fastest: code = 3 * class + x1."""
    assert joint_codes(TABLE, (0, 1)).tolist() == [1, 1, 5, 3]
    assert joint_codes(TABLE, (1, 0)).tolist() == [2, 2, 5, 1]
    assert joint_codes(TABLE, ()).tolist() == [0, 0, 0, 0]


@given(st.data(), encoded_data(min_samples=0))
@settings(deadline=None, max_examples=100)
def test_every_cell_adds_the_weights_of_its_rows(draw: st.DataObject, data: EncodedData) -> None:
    columns = draw.draw(st.permutations(range(data.n_variables)))
    columns = columns[: draw.draw(st.integers(0, len(columns)))]
    counts = contingency(data, columns)
    assert counts.shape == tuple(data.variables[c].arity for c in columns)
    for state in itertools.product(*(range(n) for n in counts.shape)):
        rows = [
            weight
            for row, weight in zip(data.codes.tolist(), data.weights.tolist(), strict=True)
            if tuple(row[c] for c in columns) == state
        ]
        assert counts[state] == pytest.approx(math.fsum(rows), abs=1e-12)


@pytest.mark.parametrize("is_weighted", [False, True])
def test_blocks_of_rows_add_up(is_weighted: bool) -> None:
    rng = np.random.default_rng(0)
    codes = [rng.integers(0, k, 50_000).astype(np.uint8) for k in (2, 5, 3)]
    weights = rng.random(50_000) if is_weighted else np.ones(50_000)
    expected = np.zeros((2, 5, 3))
    np.add.at(expected, tuple(codes), weights)
    found = count_states(codes, (2, 5, 3), weights if is_weighted else None)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def wide(arities: tuple[int, ...]) -> EncodedData:
    return EncodedData(np.zeros((1, len(arities)), np.int32), np.ones(1), make_variables(arities))


def test_tables_above_the_limit_are_refused_by_name_and_size() -> None:
    """65536 x 32769 states are more than 2^31: the message tells columns, number and remedy."""
    data = wide((2, 65536, 32769))
    with pytest.raises(ProblemTooLargeError) as caught:
        contingency(data, (1, 2))
    message = str(caught.value)
    assert "'x1', 'x2'" in message
    assert "'class'" not in message
    assert str(65536 * 32769) in message
    assert "max_parents" in message
    assert isinstance(caught.value, InputError)


def test_the_limit_itself_is_allowed() -> None:
    """Exactly 2^31 joint states pass the check, and their codes do not overflow."""
    arities = (2, 65536, 32768)
    data = EncodedData(np.array([[1, 65535, 32767]], np.int32), np.ones(1), make_variables(arities))
    assert check_joint_states(data, (1, 2)) == MAX_JOINT_STATES == 2**31
    assert joint_codes(data, (1, 2)).tolist() == [2**31 - 1]


def test_a_margin_problem_refuses_the_sets_that_are_too_large() -> None:
    """Below the limit it is made; one more state is too many."""
    for last, is_refused in ((32768, True), (16384, False)):
        variables = make_variables((2, 65536, last))
        data = EncodedData(np.array([[1, 1, 1], [0, 0, 0]], np.int32), np.ones(2), variables)
        with pytest.raises(ProblemTooLargeError) if is_refused else nullcontext():
            margin_problem(data, enumerate_candidates(3, 2))


def test_sizes_beyond_sixty_four_bits_do_not_wrap() -> None:
    """Twenty columns of 60000 states have 10^95 joint states, not a small number modulo 2^64."""
    data = EncodedData(np.zeros((1, 20), np.int32), np.ones(1), (make_variables((60000,))[0],) * 20)
    with pytest.raises(ProblemTooLargeError, match=str(60000**20)):
        joint_codes(data, range(20))
