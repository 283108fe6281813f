"""Gaps, statuses, and the judge that no forged result gets past."""

from __future__ import annotations

import math
import sys
import types
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginbn.exceptions import InputError, SolverError
from marginbn.problem.candidates import enumerate_candidates
from marginbn.problem.encoded import EncodedData
from marginbn.problem.problem import StructureProblem, margin_problem
from marginbn.problem.structure import Structure
from marginbn.solvers import result as result_module
from marginbn.solvers import solve as base
from marginbn.solvers.result import (
    PROOF_TOLERANCE,
    SolveResult,
    Status,
    TracePoint,
    allowance,
    check_result,
    fingerprint,
    relative_gap,
)
from marginbn.solvers.run import Limits, Run, Solver
from marginbn.solvers.solve import (
    AUTO_ORDER,
    choose_solver,
    get_solver,
    solve_structure,
    solver_names,
)
from strategies import random_data

NUMBERS = st.floats(-1e12, 1e12)
CHAIN = Structure(((), (0,), (0, 1)))


@pytest.mark.parametrize(
    ("objective", "bound", "gap"),
    [
        (99.0, 100.0, 0.01),
        (-100.0, -99.0, 0.01),
        (-1.0, 1.0, 2.0),
        (0.0, 1.0, 1.0),
        (-1.0, 0.0, 1.0),
        (0.0, 0.0, 0.0),
        (0.0, 1e-8, 1e-8),  # near zero the gap is absolute
        (5.0, 5.0, 0.0),
        (5.0, math.nextafter(5.0, 0.0), 0.0),  # a bound that rounding left a hair too low
        (-math.inf, 3.0, math.inf),
        (3.0, math.inf, math.inf),
        (-math.inf, math.inf, math.inf),
    ],
)
def test_relative_gaps_by_hand(objective: float, bound: float, gap: float) -> None:
    """(Z - z) / max(1, |Z|, |z|), zero where they meet and infinite while one is unknown."""
    assert relative_gap(objective, bound) == pytest.approx(gap, rel=1e-15)
    assert TracePoint(0.0, objective, bound).gap == relative_gap(objective, bound)


@given(NUMBERS, NUMBERS)
@settings(deadline=None, max_examples=200)
def test_the_gap_is_sane_for_every_sign(one: float, two: float) -> None:
    """At most 1 for equal signs, at most 2 otherwise, 0 exactly when the bound is met."""
    objective, bound = sorted((one, two))
    gap = relative_gap(objective, bound)
    assert 0 <= gap <= (2 if objective < 0 < bound else 1)
    assert (gap == 0) == (objective == bound)
    assert gap == relative_gap(-bound, -objective)


def test_the_allowance_grows_with_the_value() -> None:
    """1e-9 of the value, at least the problem's rounding; nothing for unknown values."""
    assert allowance(0.5, 1e-9) == 1e-9
    assert allowance(-2000.0, 1e-9) == pytest.approx(2e-6)
    assert allowance(math.inf, 1e-9) == 0.0


def test_small_gaps_are_relative_to_the_scale() -> None:
    """The same numbers in another unit have the same gap; without a scale a nat is the least."""
    assert relative_gap(1e-3, 2e-3) == 1e-3
    assert relative_gap(0.0, 2e-3, scale=1e-2) == pytest.approx(0.2)
    for unit in (2.0**-60, 1.0, 2.0**60):
        assert relative_gap(3.0 * unit, 4.0 * unit, scale=0.1 * unit) == 0.25
    assert relative_gap(0.0, 0.0, scale=0.0) == 0.0
    assert relative_gap(0.0, 1e-300, scale=0.0) == 1.0


@pytest.fixture(name="problem")
def make_problem() -> StructureProblem:
    return margin_problem(random_data(2, 20, (3, 2, 2)), enumerate_candidates(3, 2), gamma=0.5)


@pytest.fixture(name="honest")
def make_honest(problem: StructureProblem) -> SolveResult:
    """A true result of a solve that a limit ended: the bound lies well above."""
    value = problem.score(CHAIN)
    bound = value + 1.0
    return SolveResult(
        structure=CHAIN,
        selection=problem.candidates.selection(CHAIN),
        objective=value,
        bound=bound,
        status=Status.TIME_LIMIT,
        trace=(
            TracePoint(0.0, value - 2.0, math.inf),
            TracePoint(0.1, value - 2.0, bound + 3.0),
            TracePoint(0.2, value, bound),
        ),
        seconds=0.3,
        solver="forger",
    )


def test_an_honest_result_passes(problem: StructureProblem, honest: SolveResult) -> None:
    check_result(problem, honest)
    check_result(problem, replace(honest, trace=()))
    optimal = replace(honest, bound=honest.objective, status=Status.OPTIMAL, trace=())
    check_result(problem, optimal)
    assert optimal.is_optimal
    assert optimal.gap == 0.0
    assert not honest.is_optimal
    assert honest.gap == relative_gap(honest.objective, honest.bound)


@pytest.mark.parametrize("error", [1e-3, -1e-3, 1e-6, math.inf, -math.inf, math.nan])
def test_a_wrong_objective_is_found(
    problem: StructureProblem, honest: SolveResult, error: float
) -> None:
    with pytest.raises(SolverError, match="'forger'"):
        check_result(problem, replace(honest, objective=honest.objective + error, trace=()))


def test_rounding_of_the_objective_is_forgiven(
    problem: StructureProblem, honest: SolveResult
) -> None:
    check_result(problem, replace(honest, objective=honest.objective + 1e-12))


@pytest.mark.parametrize("bound", [-1e-3, -math.inf, math.nan])
def test_a_bound_below_the_objective_is_found(
    problem: StructureProblem, honest: SolveResult, bound: float
) -> None:
    with pytest.raises(SolverError, match="below the objective"):
        check_result(problem, replace(honest, bound=honest.objective + bound, trace=()))


def test_a_false_proof_is_found(problem: StructureProblem, honest: SolveResult) -> None:
    """Optimal means a gap within the proof tolerance; a wide gap contradicts the word."""
    with pytest.raises(SolverError, match="optimal"):
        check_result(problem, replace(honest, status=Status.OPTIMAL))
    hair = honest.objective + 0.5 * PROOF_TOLERANCE * abs(honest.objective)
    check_result(problem, replace(honest, status=Status.OPTIMAL, bound=hair, trace=()))


def test_a_cycle_is_found(problem: StructureProblem, honest: SolveResult) -> None:
    bent = Structure(((), (0,), (0,)))
    object.__setattr__(bent, "parents", ((1,), (0,), ()))
    with pytest.raises(SolverError, match="cyclic"):
        check_result(problem, replace(honest, structure=bent))


def test_strange_parent_sets_are_found(problem: StructureProblem, honest: SolveResult) -> None:
    for parents in ((), (), (1,)), ((), (0,)), ((), (), (), ()):
        with pytest.raises(SolverError):
            check_result(problem, replace(honest, structure=Structure(parents)))


def test_a_selection_of_something_else_is_found(
    problem: StructureProblem, honest: SolveResult
) -> None:
    other = problem.candidates.selection(Structure(((), (), ())))
    for selection in (other, honest.selection[:2], honest.selection[::-1]):
        with pytest.raises(SolverError, match="selection"):
            check_result(problem, replace(honest, selection=selection))


@pytest.mark.parametrize(
    "points",
    [
        [(-1, 5), (-2, 5)],  # the objective falls
        [(-1, 5), (-1, 6)],  # the bound rises
        [(-1, -1.5)],  # the bound lies below the objective of its own time
        [(-2, -1.5), (-1, -1.5)],  # ... and below a later objective
        [(-2, -1)],  # ... and below the objective of the result
        [(1, 5)],  # the incumbent is better than what is returned
        [(math.nan, 5)],
        [(-1, math.nan)],
        [(-1, 5), (-1, math.inf)],  # a bound once known is lost
    ],
)
def test_an_impossible_trace_is_found(
    problem: StructureProblem, honest: SolveResult, points: list[tuple[float, float]]
) -> None:
    value = honest.objective
    trace = tuple(
        TracePoint(float(i), value + z, value + above) for i, (z, above) in enumerate(points)
    )
    with pytest.raises(SolverError, match="'forger'"):
        check_result(problem, replace(honest, trace=trace))


def test_time_does_not_run_backwards(problem: StructureProblem, honest: SolveResult) -> None:
    first, second, third = honest.trace
    with pytest.raises(SolverError, match="trace"):
        check_result(problem, replace(honest, trace=(first, replace(second, seconds=9.0), third)))


class Liar(Solver):
    """A solver that claims an objective and a proof that it does not have."""

    name = "liar"

    def can_solve(self, problem: StructureProblem) -> str | None:
        return "it has too many candidates" if problem.candidates.n_candidates > 10 else None

    def run(self, run: Run) -> Status:
        self.request = run
        run.objective = run.bound = 1e9
        return Status.OPTIMAL


@pytest.fixture(name="_liar")
def register_liar(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("liar_module")
    module.Liar = Liar  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "liar_module", module)
    monkeypatch.setitem(base._REGISTRY, "liar", ("liar_module", "Liar"))


@pytest.mark.usefixtures("_liar")
def test_nobody_sees_a_lie(problem: StructureProblem) -> None:
    with pytest.raises(SolverError, match=r"'liar' claims the objective 1000000000\.0"):
        solve_structure(problem, "liar")


@pytest.mark.usefixtures("_liar")
def test_a_solver_that_cannot_says_why() -> None:
    problem = margin_problem(random_data(1), enumerate_candidates(4, 2))
    with pytest.raises(InputError, match="'liar' cannot solve this problem: it has too many"):
        solve_structure(problem, "liar")


@pytest.mark.usefixtures("_liar")
def test_registered_solvers_are_found_by_name() -> None:
    assert "liar" in solver_names()
    assert isinstance(get_solver("liar"), Liar)


@pytest.mark.usefixtures("_liar")
def test_auto_takes_the_first_that_can(
    problem: StructureProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "AUTO_ORDER", ("branch_bound", "liar", "branch_cut"))
    assert choose_solver(problem).name == "branch_bound"
    monkeypatch.setattr(base, "AUTO_ORDER", ("dp", "liar", "branch_cut"))
    assert choose_solver(problem).name == "liar"


def test_unknown_solvers_and_bad_limits_are_told(problem: StructureProblem) -> None:
    with pytest.raises(InputError, match=r"solver must be one of \['auto', .*got 'cplex'"):
        solve_structure(problem, "cplex")
    with pytest.raises(InputError, match="time_limit must be a positive number"):
        solve_structure(problem, time_limit=0)
    with pytest.raises(InputError, match="gap_tolerance"):
        solve_structure(problem, gap_tolerance=-1)


def test_auto_knows_only_registered_solvers() -> None:
    assert set(AUTO_ORDER) <= set(solver_names())
    assert {"highs", "dp", "branch_bound"} <= set(solver_names())


@pytest.mark.usefixtures("_liar")
def test_limits_start_and_workers_reach_the_solver(
    problem: StructureProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arguments arrive as the solver protocol names them; the start as a selection."""
    liar = Liar()
    monkeypatch.setattr(base, "choose_solver", lambda *_: liar)
    with pytest.raises(SolverError):
        solve_structure(problem, time_limit=5, node_limit=7, gap_tolerance=0.1, start=CHAIN, seed=3)
    assert liar.request.limits == Limits(time=5, nodes=7, gap=0.1)
    np.testing.assert_array_equal(liar.request.start, problem.candidates.selection(CHAIN))
    assert liar.request.seed == 3
    assert liar.request.n_jobs == 1


def test_a_fingerprint_is_made_of_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small codes and small pieces change nothing: it names the problem."""
    data = random_data(6, 30, (3, 2, 3))
    codes = np.ascontiguousarray(data.codes.T.astype(np.uint8)).T
    small = EncodedData(codes, data.weights, data.variables)
    candidates = enumerate_candidates(3, 2)
    usual = fingerprint(margin_problem(data, candidates))
    monkeypatch.setattr(result_module, "PIECE", 4)
    assert fingerprint(margin_problem(small, candidates)) == usual
