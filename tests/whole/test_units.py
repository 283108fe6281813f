"""Weights and smoothing in another unit are the same problem: same structure, status and gap.

A few problems at powers of two from -60 to 60.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from marginbn import (
    EncodedData,
    SolveResult,
    StructureProblem,
    enumerate_candidates,
    linear_problem,
    margin_problem,
    solve_structure,
    verify_certificate,
)
from marginbn.problem.scores import get_local_score
from seeds import seeds
from strategies import make_variables


@dataclass(frozen=True)
class Case:
    """A random problem that can be weighed in any unit."""

    seed: int

    @property
    def solver(self) -> str:
        """Mostly the two engines."""
        return ("branch_bound", "branch_cut", "branch_bound", "auto")[self.seed % 4]

    def problem(self, power: int) -> StructureProblem:
        """With weights and smoothing times 2^power."""
        rng = np.random.default_rng([self.seed, 13])
        n_features, rows = int(rng.integers(3, 7)), int(rng.integers(20, 120))
        arities = (int(rng.integers(2, 4)), *(int(a) for a in rng.integers(2, 4, n_features)))
        codes = np.column_stack([rng.integers(0, a, rows) for a in arities])
        for i in range(1, codes.shape[1]):
            copied = rng.random(rows) < 0.4
            codes[copied, i] = codes[copied, rng.integers(0, i)] % arities[i]
        weights = rng.uniform(0.1, 3.0, rows) if self.seed % 3 else np.ones(rows)
        unit = 2.0**power
        data = EncodedData(codes.astype(np.int32), weights * unit, make_variables(arities))
        if self.seed % 4 == 3:
            every = enumerate_candidates(len(arities), 2, class_restricted=False)
            return linear_problem(data, every, get_local_score("loglik"))
        most = 3 if self.solver == "branch_cut" else 2
        return margin_problem(
            data,
            enumerate_candidates(len(arities), most),
            margin="binary" if rng.random() < 0.3 else "multiclass",
            gamma=float(10.0 ** rng.uniform(-2.5, 1.0)),
            smoothing=float(rng.choice([0.3, 1.0, 2.5])) * unit,
        )

    def solve(self, power: int) -> SolveResult:
        """To the default tolerance or a number of nodes, without a clock."""
        return solve_structure(self.problem(power), self.solver, node_limit=400)

    def difference(self, power: int, at_one: SolveResult) -> str:
        """What changed, or nothing."""
        result, unit = self.solve(power), 2.0**power
        told = {
            "structure": result.structure == at_one.structure,
            "status": result.status == at_one.status,
            "objective": result.objective == at_one.objective * unit,
            "gap": result.gap == at_one.gap,
            "trace": [p.gap for p in result.trace] == [p.gap for p in at_one.trace],
        }
        wrong = [name for name, same in told.items() if not same]
        return f"{self} at 2^{power}: {', '.join(wrong)} differ" if wrong else ""


@pytest.mark.parametrize("seed", seeds(4, 8))
def test_another_unit_of_weight_changes_nothing(seed: int) -> None:
    case = Case(seed)
    at_one = case.solve(0)
    assert at_one.is_optimal
    for power in (-60, -31, -7, 20, 60):
        assert case.difference(power, at_one) == ""


@pytest.mark.slow
def test_highs_gives_the_same_result_in_every_unit() -> None:
    case = Case(2)
    results = [solve_structure(case.problem(k), "highs") for k in (-60, 0, 60)]
    assert len({r.structure for r in results}) == len({r.status for r in results}) == 1
    assert all(
        r.scale == pytest.approx(results[1].scale * 2.0**k)
        for r, k in zip(results, (-60, 0, 60), strict=True)
    )


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_certificates_prove_the_same_gap_in_every_unit(seed: int, tmp_path: Path) -> None:
    gaps = []
    for power in (-60, 0, 60):
        problem, path = Case(seed).problem(power), tmp_path / f"{power}.cert"
        result = solve_structure(problem, certificate=path)
        verdict = verify_certificate(path)
        assert verdict
        assert result.is_optimal
        assert verdict.scale == pytest.approx(problem.scale)
        gaps.append(verdict.gap)
    assert max(gaps) < 2e-6
    assert gaps == pytest.approx([gaps[1]] * 3, rel=1e-6)
