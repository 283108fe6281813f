"""Problems in which features between others are decided already: their bounds.

The engine sums the margins of decided features once and keeps gradients for the others only. If
something of a decided feature also got into a gradient, its margins would count twice, and a bound
could fall below the optimum. Boxes with decided features between live ones arise deep in every
tree; here they are made at the root by leaving some features a single candidate.
"""

from __future__ import annotations

import numpy as np
import pytest

from branch_bound_cases import random_encoded
from brute_force import brute_force
from marginbn.problem.candidates import CandidateSets, enumerate_candidates
from marginbn.problem.problem import StructureProblem, margin_problem
from marginbn.solvers.branch_bound import BranchBoundSolver
from marginbn.solvers.result import Status
from marginbn.solvers.run import Limits, Run
from marginbn.solvers.solve import solve_with


def keep_one_of(candidates: CandidateSets, decided: dict[int, tuple[int, ...]]) -> CandidateSets:
    """The candidates, with just the given set for the decided variables."""
    kept = [
        k
        for k, (child, parents) in enumerate(
            zip(candidates.child.tolist(), candidates.parents, strict=True)
        )
        if decided.get(child, parents) == parents
    ]
    return CandidateSets(
        candidates.n_variables, candidates.child[kept], tuple(candidates.parents[k] for k in kept)
    )


def decided_problem(seed: int) -> StructureProblem:
    """Three to five features; some between the first and the last have one set left."""
    rng = np.random.default_rng(seed)
    n = 3 + seed % 3
    decided: dict[int, tuple[int, ...]] = {}
    for feature in range(2, n):
        if feature == 2 or rng.random() < 0.5:
            other = int(rng.choice([i for i in (1, n) if i not in decided]))
            decided[feature] = [(), (0,), (0, other)][int(rng.integers(0, 3))]
    if rng.random() < 0.3:
        decided[0] = ()
    candidates = keep_one_of(enumerate_candidates(n + 1, 2), decided)
    kind = "binary" if rng.random() < 0.5 else "multiclass"
    gamma = float(np.exp(rng.uniform(np.log(0.05), np.log(7))))
    return margin_problem(random_encoded(rng, n), candidates, margin=kind, gamma=gamma)


@pytest.mark.parametrize("seed", range(45))
def test_the_first_bound_is_not_below_the_optimum(seed: int) -> None:
    """The bound of the root box alone, and the proof, enclose what enumeration finds."""
    problem = decided_problem(seed)
    best = brute_force(problem)
    rounding = 1e-11 * max(1.0, abs(best))
    solver = BranchBoundSolver(heuristics=False)
    root = solve_with(solver, Run(problem, limits=Limits(nodes=1)))
    assert root.bound >= best - rounding
    proof = solve_with(solver, Run(problem))
    assert proof.status is Status.OPTIMAL
    assert proof.bound >= best - rounding
    assert proof.objective == pytest.approx(best, rel=1.01e-6, abs=rounding)
