"""Fits that are checked from the table to the model, and tampered with."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from benchmarks.end_to_end import judge


def check(total: Counter[str]) -> None:
    """No honest fit is refused, and no tampering accepted."""
    assert total["honest refused"] == 0
    assert {name for name, n in total.items() if n and name.startswith("accepted")} == set()


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_one_fit_of_each_kind(seed: int, tmp_path: Path) -> None:
    """Counted with merged categories and weights, trained, and trained with dates and amounts."""
    found = judge(seed, tmp_path)
    check(found)
    assert found["tamperings"] == 5 + (seed > 0)


@pytest.mark.slow
def test_forty_fits(tmp_path: Path) -> None:
    total: Counter[str] = Counter()
    for seed in range(40):
        total += judge(seed, tmp_path)
    check(total)
    assert total["fits"] == 40
