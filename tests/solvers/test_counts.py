"""Counts of either way are those of single tables."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from marginbn.problem.encoded import count_states
from marginbn.solvers import counts


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("threads", [0, 1, 2])
def test_pairs_single_features_and_the_class_alone(
    dtype: type, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More samples than a block, by numpy without threads; weights are quarters."""
    monkeypatch.setattr(counts, "MANY_SETS", 0 if threads else 4)
    rng = np.random.default_rng(0)
    n = counts.BLOCK + 100
    codes = np.stack([rng.integers(0, a, n) for a in (3, 5, 2)]).astype(dtype)
    weights = rng.integers(1, 9, n) / 4
    sets = np.array([(0, 1, 5, 40, 15), (1, -1, 1, 70, 5), (-1, -1, 1, 80, 1)], dtype=np.int64)
    found = counts.count_sets(codes[:2], codes[2], sets, weights, 2, threads)
    a, b, c = codes
    expected = (count_states((a, b, c), (3, 5, 2), weights), count_states((b, c), (5, 2), weights))
    assert np.array_equal(found[:30], expected[0].ravel())
    assert np.array_equal(found[30:40], expected[1].ravel())
    assert np.array_equal(found[40:], count_states((c,), (2,), weights))


def test_few_sets_load_no_compiler() -> None:
    """In a process that counts a small table numba is not imported."""
    program = (
        "import sys, numpy as np; from marginbn.solvers.counts import count_sets; "
        "sets = np.array([(0, -1, 1, 0, 2)]); codes = np.array([[0, 1, 1], [0, 0, 1]]); "
        "assert count_sets(codes[:1], codes[1], sets, np.ones(3), 2).tolist() == [1, 0, 1, 1]; "
        "assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_blocks_hold_so_many_cells_and_at_least_one_set() -> None:
    starts = [0, 10, 20, 500, 510]
    sets = np.array([(0, 1, 1, start, 5) for start in starts])
    assert counts.blocks_of(sets, 15) == [(0, 2), (2, 3), (3, 4), (4, 5)]
    assert counts.blocks_of(sets[:0], 15) == []
