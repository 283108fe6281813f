"""How many calls lie between the user and the compiled loop."""

from __future__ import annotations

import inspect
from types import FrameType
from typing import Any

import pytest

from marginbn import MaxMarginBNClassifier
from marginbn.solvers.branch_bound.kernels import tree

MOST = 8
"""With ``fit`` and the compiled call."""


def test_few_calls_from_fit_to_the_compiled_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader who follows them meets one idea at each."""
    perform, stacks = tree.perform, []

    def watched(*args: Any) -> int:
        frame: FrameType | None = inspect.currentframe()
        names = []
        while frame is not None and "fit" not in names:
            names.append(frame.f_code.co_name)
            frame = frame.f_back
        if args[0] == tree.SEARCH:
            stacks.append(names)
        return int(perform(*args))

    X = [[str(i % 3), str(i % 5), str(i * i % 7)] for i in range(60)]
    y = [str(i * 7 % 11 % 3) for i in range(60)]
    MaxMarginBNClassifier().fit(X, y)  # kernels are loaded
    monkeypatch.setattr(tree, "perform", watched)
    MaxMarginBNClassifier().fit(X, y)
    assert stacks
    for names in stacks:
        assert names[-1] == "fit"
        assert len(names) <= MOST, " <- ".join(names)
