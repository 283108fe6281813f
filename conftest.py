"""Doctests: examples of methods go on with the example of their class; figures are closed."""

from __future__ import annotations

import doctest
import sys

import pytest

collect_ignore = ["conftest.py"]  # docs/ and tests/ have a file of this name too


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Run the example of the class first, so that no method repeats its set-up."""
    if isinstance(item, pytest.DoctestItem) and item.dtest is not None:
        path, _, _ = item.dtest.name.rpartition(".")
        owner = item.dtest.globs.get(path.rpartition(".")[2])
        if isinstance(owner, type) and path == f"{owner.__module__}.{owner.__qualname__}":
            for example in doctest.DocTestParser().get_examples(owner.__doc__ or ""):
                exec(compile(example.source, path, "single"), item.dtest.globs)


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Examples draw figures as users do, who close none of them."""
    if isinstance(item, pytest.DoctestItem) and "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
