"""Counts of the compiled pass are those of numpy."""

from __future__ import annotations

import numpy as np
import pytest

from marginbn.problem.encoded import count_states
from marginbn.solvers import counts


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("threads", [1, 2])
def test_pairs_single_features_and_the_class_alone(dtype: type, threads: int) -> None:
    """More samples than a block; weights of quarters leave no rounding."""
    rng = np.random.default_rng(0)
    n = counts.BLOCK + 100
    codes = np.stack([rng.integers(0, a, n) for a in (3, 5, 2)]).astype(dtype)  # class last
    weights = rng.integers(1, 9, n) / 4
    sets = np.array([(0, 1, 5, 40, 15), (1, -1, 1, 70, 5), (-1, -1, 1, 80, 1)], dtype=np.int64)
    found = counts.count_sets(codes, sets, weights, 2, threads)
    a, b, c = codes
    expected = (count_states((a, b, c), (3, 5, 2), weights), count_states((b, c), (5, 2), weights))
    assert np.array_equal(found[:30], expected[0].ravel())
    assert np.array_equal(found[30:40], expected[1].ravel())
    assert np.array_equal(found[40:], count_states((c,), (2,), weights))


def test_blocks_hold_so_many_cells_and_at_least_one_set() -> None:
    starts = [0, 10, 20, 500, 510]
    sets = np.array([(0, 1, 1, start, 5) for start in starts])
    assert counts.blocks_of(sets, 15) == [(0, 2), (2, 3), (3, 5)]
