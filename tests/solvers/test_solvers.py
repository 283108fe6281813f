"""One problem list, every solver: the protocol and the agreement with brute force."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

import oracles
from brute_force import MAX_SELECTIONS, brute_force
from marginbn.exceptions import InputError
from marginbn.problem.candidates import enumerate_candidates
from marginbn.problem.problem import StructureProblem, margin_problem
from marginbn.problem.scores import get_local_score
from marginbn.scoring.local_scores import linear_problem
from marginbn.solvers import get_solver, solver_names
from marginbn.solvers.result import PROOF_TOLERANCE, SolveResult, Status, check_result
from marginbn.solvers.run import Limits, Run
from marginbn.solvers.solve import Solver, solve_with
from marginbn.solvers.tree_search import feasible_selection
from problems import (
    Case,
    linear_case,
    margin_case,
    random_case,
    random_table,
    small_linear_problem,
    small_margin_problem,
)
from seeds import seeds

LINEAR_SCORES = ("mdl", "aic", "loglik", "bdeu", "k2")

PROBLEMS: dict[str, Callable[[], StructureProblem]] = {
    "multiclass": lambda: small_margin_problem(1),
    "binary": lambda: small_margin_problem(2, margin="binary"),
    "two classes": lambda: small_margin_problem(3, n_classes=2),
    "naive or nothing": lambda: small_margin_problem(4, max_parents=1),
    "no parents at all": lambda: small_margin_problem(5, max_parents=0),
    "tiny gamma": lambda: small_margin_problem(6, gamma=0.004),
    "large gamma": lambda: small_margin_problem(7, gamma=7.0),
    "large weights": lambda: small_margin_problem(8, weight=1e6),
    "required arc": lambda: small_margin_problem(9, required=((2, 0),)),
    "one feature": lambda: small_margin_problem(10, n_features=1),
    "general network": lambda: small_linear_problem(11, score="bdeu"),
    "restricted MDL": lambda: small_linear_problem(12, score="mdl", class_restricted=True),
    "linear with required arcs": lambda: small_linear_problem(13, required=((1, 0), (2, 1))),
}


@pytest.fixture(params=solver_names())
def solver(request: pytest.FixtureRequest) -> Solver:
    return get_solver(request.param)


@cache
def reference(name: str) -> float:
    return brute_force(PROBLEMS[name]())


def solvable(solver: Solver, problem: StructureProblem) -> StructureProblem:
    """The problem, or a skip with the solver's own reason."""
    reason = solver.can_solve(problem)
    if reason is not None:
        pytest.skip(f"{solver.name}: {reason}")
    return problem


def some_problem(solver: Solver) -> StructureProblem:
    problems = (PROBLEMS[name]() for name in ("multiclass", "restricted MDL"))
    return next(problem for problem in problems if solver.can_solve(problem) is None)


def assert_proves(result: SolveResult, best: float) -> None:
    """The result has the best value and says so."""
    size = max(1.0, abs(best))
    assert result.objective == pytest.approx(best, rel=1e-9, abs=1e-9)
    assert result.bound >= best - 1e-9 * size
    if result.status is Status.GAP_LIMIT:  # their own tolerances do not shrink with the objective
        assert result.solver == "highs"
        assert result.bound - best <= PROOF_TOLERANCE * size
        return
    assert result.status is Status.OPTIMAL
    assert result.gap <= PROOF_TOLERANCE


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_solver_proves_the_optimum(solver: Solver, name: str) -> None:
    problem = solvable(solver, PROBLEMS[name]())
    result = solve_with(solver, Run(problem))
    check_result(problem, result)
    assert_proves(result, reference(name))
    assert result.solver == solver.name


def test_the_trace_is_monotone_and_heard(solver: Solver) -> None:
    problem = some_problem(solver)
    heard = []
    result = solve_with(solver, Run(problem, callback=lambda p: heard.append(p)))
    assert tuple(heard) == result.trace
    for before, after in zip(result.trace, result.trace[1:], strict=False):
        assert before.seconds <= after.seconds
        assert before.objective <= after.objective
        assert before.bound >= after.bound
    assert (result.trace[-1].objective, result.trace[-1].bound) == (result.objective, result.bound)


def test_a_start_is_the_first_point_of_the_trace(solver: Solver) -> None:
    problem = some_problem(solver)
    start = solve_with(solver, Run(problem)).selection
    again = solve_with(solver, Run(problem, start=start))
    first = next(point for point in again.trace if math.isfinite(point.objective))
    assert first.objective == problem.evaluate(start) == again.objective


def test_a_poor_start_does_no_harm(solver: Solver) -> None:
    problem = some_problem(solver)
    best = solve_with(solver, Run(problem)).objective
    poor = feasible_selection(problem.candidates)
    result = solve_with(solver, Run(problem, start=poor))
    assert result.objective == pytest.approx(best, rel=1e-9)


def test_a_true_answer_of_the_callback_stops(solver: Solver) -> None:
    problem = some_problem(solver)
    best = solve_with(solver, Run(problem)).objective
    result = solve_with(solver, Run(problem, callback=lambda point: True))
    check_result(problem, result)
    assert result.status in (Status.INTERRUPTED, Status.OPTIMAL)
    assert result.objective <= best + 1e-9 * abs(best)
    assert best - 1e-9 * abs(best) <= result.bound < math.inf


def test_a_time_limit_is_a_normal_ending(solver: Solver) -> None:
    problem = some_problem(solver)
    best = solve_with(solver, Run(problem)).objective
    result = solve_with(solver, Run(problem, limits=Limits(time=1e-9)))
    check_result(problem, result)
    assert result.status in (Status.TIME_LIMIT, Status.OPTIMAL)
    assert best - 1e-9 * abs(best) <= result.bound < math.inf


def test_a_wide_gap_may_end_early(solver: Solver) -> None:
    problem = some_problem(solver)
    result = solve_with(solver, Run(problem, limits=Limits(gap=0.5)))
    check_result(problem, result)
    assert result.status in (Status.OPTIMAL, Status.GAP_LIMIT)
    assert result.gap <= 0.5


def test_candidates_without_any_graph_are_an_input_error(solver: Solver) -> None:
    data = random_table(np.random.default_rng(0), 20, 2, 2).encoded()
    stuck = enumerate_candidates(3, 2, required=((1, 0), (2, 1)))
    problem = solvable(solver, margin_problem(data, stuck))
    with pytest.raises(InputError):
        solve_with(solver, Run(problem))


@pytest.mark.parametrize("seed", seeds(1, 3))
def test_the_same_problem_gives_the_same_structure(solver: Solver, seed: int) -> None:
    problem = small_margin_problem(seed)
    if solver.can_solve(problem) is not None:
        problem = small_linear_problem(seed)
    first, second = (solve_with(solver, Run(problem)) for _ in range(2))
    assert first.structure == second.structure


# --- brute force that shares no code with the package ------------------------------------------


def best_of_all(case: Case, kind: str) -> float:
    """The optimum over all graphs, probabilities multiplied out."""
    table = case.table
    raw = (table.rows, table.weights, table.arities)
    if kind == "multiclass":
        score = oracles.soft_margin(*raw, case.smoothing, case.gamma)
    elif kind == "binary":
        score = oracles.soft_binary_margin(*raw, case.smoothing, case.gamma)
    else:
        score = oracles.decomposable(kind, *raw)
    return oracles.best_score(score, len(table.arities), case.max_parents, case.class_restricted)


def build(case: Case, kind: str) -> StructureProblem:
    return linear_case(case, kind) if kind in LINEAR_SCORES else margin_case(case, kind)


@cache
def brute_forced(seed: int) -> tuple[tuple[str, float], ...]:
    """The optima of both margins and of one linear score of a random case."""
    case = random_case(seed)
    kinds = ("multiclass", "binary", LINEAR_SCORES[seed % len(LINEAR_SCORES)])
    return tuple((kind, best_of_all(case, kind)) for kind in kinds)


def assert_agreement(solver: Solver, seeds: range) -> None:
    """Every problem of these cases that the solver can solve has the brute-force optimum."""
    solved = 0
    for seed in seeds:
        for kind, best in brute_forced(seed):
            problem = build(random_case(seed), kind)
            if solver.can_solve(problem) is None:
                assert_proves(solve_with(solver, Run(problem)), best)
                solved += 1
    assert solved >= len(seeds)


def test_agrees_with_brute_force(solver: Solver) -> None:
    """20 random data sets, all graphs, probabilities multiplied out from the definition."""
    assert_agreement(solver, range(20))


# --- a pool of larger problems, on which the solvers are each other's judges ---------------------

POOL = 300
POOL_SECONDS = 60.0


def pool_problem(number: int) -> StructureProblem:
    """Three to eight features: soft and binary margins, restricted and general scores."""
    rng = np.random.default_rng([number, 300])
    n_features = 3 + number % 6
    n_rows = int(rng.integers(10, 50))
    data = random_table(rng, n_rows, n_features, int(rng.integers(2, 5)), number % 2 == 1)
    max_parents = 3 if n_features <= 4 and rng.random() < 0.4 else int(rng.integers(1, 3))
    if number % 4 == 3:
        restricted = bool(rng.random() < 0.4)
        candidates = enumerate_candidates(n_features + 1, max_parents, class_restricted=restricted)
        score = get_local_score(LINEAR_SCORES[int(rng.integers(len(LINEAR_SCORES)))])
        return linear_problem(data.encoded(), candidates, score)
    return margin_problem(
        data.encoded(),
        enumerate_candidates(n_features + 1, max_parents),
        margin="binary" if rng.random() < 0.5 else "multiclass",
        gamma=float(np.exp(rng.uniform(np.log(0.05), np.log(7.0)))),
        smoothing=float(rng.choice([0.5, 1.0, 2.0])),
    )


def assert_solvers_agree(problem: StructureProblem) -> None:
    """Proved optima are equal, no bound lies below any objective, own engines always prove."""
    results = {}
    for name in solver_names():
        solver = get_solver(name)
        if solver.can_solve(problem) is None:
            results[name] = solve_with(solver, Run(problem, limits=Limits(time=POOL_SECONDS)))
            check_result(problem, results[name])
    assert len(results) >= 2
    best = max(result.objective for result in results.values())
    size = max(1.0, abs(best))
    if math.prod(np.diff(problem.candidates.offsets).tolist()) <= MAX_SELECTIONS:
        assert best >= brute_force(problem) - 1.01e-6 * size
    for name, result in results.items():
        assert result.bound >= best - 1e-9 * size, name
        if result.status is Status.OPTIMAL:
            assert result.objective >= best - 1.01e-6 * max(size, abs(result.bound)), name
        else:
            assert name == "highs", f"{name} ended as {result.status}"


@pytest.mark.parametrize("number", [0, 1, 2, 7, 9, 13])
def test_solvers_agree_on_the_first_of_the_pool(number: int) -> None:
    """Margins and scores, up to six features."""
    assert_solvers_agree(pool_problem(number))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(POOL))
def test_all_solvers_agree_on_the_pool(number: int) -> None:
    """300 problems with up to eight features."""
    assert_solvers_agree(pool_problem(number))


def test_random_cases_cover_what_they_promise() -> None:
    cases = [random_case(seed) for seed in range(60)]
    assert {case.table.arities[0] for case in cases} == {2, 3, 4}
    assert {case.max_parents for case in cases} == {0, 1, 2, 3}
    assert {case.class_restricted for case in cases} == {True, False}
    assert any(len(set(case.table.arities[1:])) > 1 for case in cases)
    assert any(len(set(case.table.weights)) > 1 for case in cases)
    gammas = [case.gamma for case in cases]
    assert 0.004 <= min(gammas) < 0.02
    assert 3 < max(gammas) <= 7
