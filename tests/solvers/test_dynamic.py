"""Dynamic programming over subsets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from brute_force import brute_force
from marginbn.problem.candidates import CandidateSets, enumerate_candidates
from marginbn.problem.encoded import Variable
from marginbn.problem.problem import StructureProblem, drop_dominated
from marginbn.solvers.dynamic import DynamicProgrammingSolver, layers
from marginbn.solvers.result import Status
from marginbn.solvers.run import Limits, Run
from marginbn.solvers.solve import solve_with
from order_cases import optimum
from problems import small_linear_problem, small_margin_problem


def scored(candidates: CandidateSets, linear: np.ndarray) -> StructureProblem:
    variables = tuple(Variable(f"v{i}", ("a", "b")) for i in range(candidates.n_variables))
    return StructureProblem(candidates, linear, variables)


def solve(problem: StructureProblem):
    return solve_with(DynamicProgrammingSolver(), Run(problem))


def test_three_variables_by_hand() -> None:
    """A cycle of three best arcs must lose its cheapest arc."""
    candidates = enumerate_candidates(3, 1, class_restricted=False)
    linear = np.zeros(candidates.n_candidates)
    for child, parent, value in ((1, 0, 5.0), (2, 1, 4.0), (0, 2, 3.0)):
        linear[candidates.index(child, (parent,))] = value
    result = solve(scored(candidates, linear))
    assert result.structure.parents == ((), (0,), (1,))
    assert (result.objective, result.bound, result.status) == (9.0, 9.0, Status.OPTIMAL)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(0, 3), st.booleans())
@example(85142, 4, 2, True)  # the best order costs nothing, and climbing to it has to end
def test_equals_enumeration_for_any_candidates(
    seed: int, n: int, max_parents: int, restricted: bool
) -> None:
    """Random scores on random parts of the candidate list: the optimum of the enumeration."""
    rng = np.random.default_rng(seed)
    everything = enumerate_candidates(n, min(max_parents, 2), class_restricted=restricted)
    kept = rng.random(everything.n_candidates) < 0.7
    kept[everything.offsets[:-1]] = True  # the empty sets keep the problem feasible
    candidates = everything.keep(kept)
    problem = scored(candidates, rng.normal(size=candidates.n_candidates))
    expected = brute_force(problem)
    result = solve(problem)
    assert result.objective == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert result.status is Status.OPTIMAL


def hard_problem(seed: int, n: int) -> StructureProblem:
    rng = np.random.default_rng(seed)
    candidates = enumerate_candidates(n, 3, class_restricted=False)
    linear = rng.normal(size=candidates.n_candidates) + 0.5 * candidates.sizes
    return drop_dominated(scored(candidates, linear))


@pytest.mark.parametrize("seed", range(3))
def test_layers_and_bounds_keep_the_optimum(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the dual ascent and the search over orders from the first variable on."""
    monkeypatch.setattr(layers, "SMALL", 0)
    problem = hard_problem(seed, 9)
    result = solve(problem)
    assert result.objective == pytest.approx(optimum(problem), rel=1e-12)
    assert result.status is Status.OPTIMAL


def test_a_small_memory_ends_with_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a table may not grow, incumbent and bound of the layers so far are the result."""
    monkeypatch.setattr(layers, "ROOM", 16)
    monkeypatch.setattr(layers, "SHARE", 0)
    monkeypatch.setattr(layers, "SMALL", 20)
    problem = hard_problem(4, 13)
    best = solve(problem)
    solver = DynamicProgrammingSolver()
    result = solve_with(solver, Run(problem, Limits(memory=solver.needs(problem).least + 500)))
    assert result.status is Status.MEMORY_LIMIT
    assert result.objective <= best.objective <= result.bound
    limited = solve_with(DynamicProgrammingSolver(), Run(problem, Limits(nodes=5)))
    assert limited.status is Status.NODE_LIMIT


def test_what_it_cannot_solve_is_told() -> None:
    """Margin rows, or too many variables with the memory they would take."""
    solver = DynamicProgrammingSolver()
    assert "decomposable" in (solver.can_solve(small_margin_problem(0)) or "")
    wide = CandidateSets(65, np.arange(65, dtype=np.int32), ((),) * 65)
    assert "more than 64" in (solver.can_solve(scored(wide, np.zeros(65))) or "")
    assert solver.can_solve(small_linear_problem(0)) is None
