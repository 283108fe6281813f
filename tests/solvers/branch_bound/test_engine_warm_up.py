"""What is compiled before a search, so that no compiler works while its clock runs."""

from __future__ import annotations

import numpy as np
import pytest

from marginbn.problem.candidates import enumerate_candidates
from marginbn.problem.encoded import EncodedData, Variable
from marginbn.problem.problem import StructureProblem, margin_problem
from marginbn.solvers.branch_bound import BranchBoundSolver, engine
from problems import small_margin_problem


def wide_problem(n_features: int) -> StructureProblem:
    codes = np.random.default_rng(0).integers(0, 2, (8, n_features + 1))
    names = tuple(Variable(f"v{i}", ("a", "b")) for i in range(n_features + 1))
    data = EncodedData(codes, np.ones(8), names)
    return margin_problem(data, enumerate_candidates(n_features + 1, 1))


@pytest.mark.parametrize(
    ("problem", "rows", "expected"),
    [
        (small_margin_problem(0), "auto", []),
        (small_margin_problem(0), "groups", [engine.GROUPS_READY]),
        (wide_problem(254), "auto", []),
        (wide_problem(255), "auto", [engine.WIDE_READY]),
    ],
)
def test_what_a_problem_needs_besides(
    problem: StructureProblem, rows: str, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wider numbers from 255 features on, groups where they will be used."""
    marks: list[str] = []
    monkeypatch.setattr(engine, "prepare", lambda *given: marks.append(given[3]))
    engine.warm_up_for(BranchBoundSolver(rows=rows), problem)  # type: ignore[arg-type]
    assert marks == expected
