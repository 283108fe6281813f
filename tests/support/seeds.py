"""Seeds of random tests: a few in the default run, the others in that of the slow tests."""

from __future__ import annotations

from typing import Any

import pytest


def seeds(few: int, many: int) -> list[Any]:
    """0 to many - 1, slow from the number of the few on."""
    return [*range(few), *(pytest.param(k, marks=pytest.mark.slow) for k in range(few, many))]


def slow(*values: Any) -> Any:
    """A case of a parametrised test that takes too long for the default run."""
    return pytest.param(*values, marks=pytest.mark.slow)
