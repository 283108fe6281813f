"""Branch and cut: safe bounds, propagation, and the whole solver against exhaustive search."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import oracles
from brute_force import brute_force
from marginbn.problem.problem import StructureProblem
from marginbn.problem.structure import is_acyclic
from marginbn.solvers.branch_cut import BranchCutSolver, engine
from marginbn.solvers.branch_cut.arrays import build_instance
from marginbn.solvers.branch_cut.bound import feasible_multipliers, lagrangian
from marginbn.solvers.branch_cut.cuts import RowPool
from marginbn.solvers.branch_cut.engine import CutSearch
from marginbn.solvers.branch_cut.incumbents import IncumbentSearch, _Climb
from marginbn.solvers.branch_cut.kernels.propagate import propagate
from marginbn.solvers.branch_cut.relaxation import Effort, HybridRelaxation, effort_at
from marginbn.solvers.branch_cut.warm import BASIC, EXPLICIT, cold_start, labels_at, refresh_cost
from marginbn.solvers.dynamic import DynamicProgrammingSolver
from marginbn.solvers.memory import BranchCutShape, Division
from marginbn.solvers.result import Status, check_result
from marginbn.solvers.run import Limits, Run
from marginbn.solvers.solve import solve_with
from problems import (
    linear_case,
    margin_case,
    random_case,
    small_linear_problem,
    small_margin_problem,
)
from random_splits import RandomChooser
from seeds import seeds

EVERYTHING = Limits()
THOROUGH = Effort(rounds=20, patience=5, progress=0.0, rows=10, violation=1e-4)


def random_problem(seed: int) -> StructureProblem:
    """Soft margin, binary margin or a decomposable score, in turn."""
    case = random_case(seed)
    if seed % 3 == 0:
        return linear_case(case, ("mdl", "bdeu", "k2", "aic")[seed // 3 % 4])
    return margin_case(case, "multiclass" if seed % 3 == 1 else "binary")


def all_selections(problem: StructureProblem) -> np.ndarray:
    candidates = problem.candidates
    graphs = np.array(
        np.meshgrid(*(list(candidates.group(i)) for i in range(problem.n_variables)))
    ).reshape(problem.n_variables, -1)
    kept = [s for s in graphs.T if not oracles.has_cycle([candidates.parents[k] for k in s])]
    return np.array(kept)


def holds_edge(problem: StructureProblem, selection: np.ndarray, i: int, j: int) -> bool:
    """Whether the graph of a selection joins i and j."""
    parents = problem.candidates.parents
    return j in parents[selection[i]] or i in parents[selection[j]]


def tracked_relaxation(problem: StructureProblem) -> tuple[HybridRelaxation, RowPool]:
    instance = build_instance(problem)
    pool = RowPool(instance)
    return HybridRelaxation(instance, pool, Run(problem), 0), pool


# ---------------------------------------------------------------- safe bounds


def test_multipliers_are_feasible_in_exact_arithmetic():
    rng = np.random.default_rng(0)
    for _ in range(50):
        weights = rng.uniform(0.1, 5.0, 4)
        samples = np.sort(rng.integers(0, 4, 12))
        raw = rng.normal(1.0, 2.0, 12) * rng.choice([1e-9, 1.0, 1e6], 12)
        raw[0] = np.nan
        multipliers, _ = feasible_multipliers(raw, samples, weights)
        assert multipliers[0] == 0
        assert (multipliers >= 0).all()
        for m in range(4):
            exact = sum((Fraction(float(u)) for u in multipliers[samples == m]), Fraction(0))
            assert exact <= Fraction(float(weights[m]))


def test_feasible_multipliers_stay_as_they_are():
    multipliers, sums = feasible_multipliers(
        np.array([0.5, 0.25]), np.array([0, 0]), np.array([1.0])
    )
    assert multipliers.tolist() == [0.5, 0.25]
    assert sums.tolist() == [0.75]


def random_prices(problem, rng, edges=()):
    """Prices of random multipliers on all margin rows, some clusters, class rows and edges."""
    instance = build_instance(problem)
    pool = RowPool(instance)
    numbers = [*pool.class_rows(), *(pool.edge(i, j) for i, j in edges)]
    for _ in range(3):
        size = int(rng.integers(2, problem.n_variables + 1)) if problem.n_variables > 1 else 0
        if size:
            members = rng.choice(problem.n_variables, size=size, replace=False)
            numbers.append(pool.cluster(frozenset(int(v) for v in members)))
    numbers = list(dict.fromkeys(numbers))
    n_rows = instance.coefficients.n_rows
    scale = 10.0 ** rng.uniform(-2, 1)
    samples = np.arange(n_rows) // instance.n_rivals
    u, sums = feasible_multipliers(rng.exponential(scale, n_rows), samples, instance.weights)
    gradient = instance.linear + instance.coefficients.combine(np.arange(n_rows), u)
    y = rng.exponential(scale, len(numbers))
    prices = lagrangian(
        instance,
        gradient,
        float((instance.weights - sums).sum()),
        n_rows,
        pool.combine(tuple(numbers), y),
        y,
        pool.rhs(tuple(numbers)),
    )
    return instance, prices


@pytest.mark.parametrize("seed", range(30))
def test_random_multipliers_bound_every_structure(seed):
    problem = random_problem(seed)
    rng = np.random.default_rng(seed)
    selections = all_selections(problem)
    edges = []
    if problem.n_variables > 2 and seed % 2:
        i, j = sorted(int(v) for v in rng.choice(problem.n_variables, 2, replace=False))
        edges = [(i, j)]
        selections = [s for s in selections if holds_edge(problem, s, i, j)]
    for _ in range(3):
        instance, prices = random_prices(problem, rng, edges)
        allowed = np.ones(instance.n_candidates, dtype=bool)
        bound = prices.bound(instance, allowed)
        by_candidate = prices.bounds_by_candidate(instance, allowed)
        for selection in selections:
            value = problem.evaluate(selection)
            assert value <= bound
            assert (value <= by_candidate[selection]).all()


def test_multipliers_at_the_cap_are_shrunk():
    """Ten shares of 0.1 add up to more than one in exact arithmetic, not in floating point."""
    raw = np.full(10, 0.1)
    assert raw.sum() <= 1.0 < 10 * Fraction(0.1)
    multipliers, sums = feasible_multipliers(raw, np.zeros(10, dtype=np.int64), np.ones(1))
    assert sum(Fraction(float(u)) for u in multipliers) <= 1
    assert sums == pytest.approx(1.0, abs=1e-13)


@pytest.mark.parametrize("seed", range(5))
def test_the_allowance_is_the_documented_one(seed):
    """4 eps ((T + 2 q + n + 8) (G + n Y + |rhs part|) + (M + 8) gamma W)."""
    instance = build_instance(random_problem(seed))
    rng = np.random.default_rng(seed)
    terms, n_rows = (int(v) for v in rng.integers(1, 50, 2))
    y, rhs = rng.exponential(3.0, n_rows), rng.choice([-1.0, 1.0], n_rows)
    size = instance.magnitude + instance.n_variables * y.sum() + y.sum()
    exact = (terms + 2 * n_rows + instance.n_variables + 8) * size
    exact += (instance.n_samples + 8) * instance.gamma * instance.weights.sum()
    none = np.zeros(instance.n_candidates)
    prices = lagrangian(instance, none, 0.0, terms, none, y, rhs)
    assert prices.error == pytest.approx(4 * 2.0**-53 * exact, rel=1e-12, abs=0)


def test_prices_by_hand():
    """0.5 times 10 stays unused, two rows cost 1 and give 2 back, the best values are 3 and 4; who
    chooses another candidate loses the difference, and what is not allowed does not count.
    """
    problem = small_margin_problem(n_rows=10, n_features=1, gamma=0.5, max_parents=1)
    instance = build_instance(problem)
    values, row_values = np.array([1.0, 2.0, 4.0, -1.0]), np.array([0.0, 1.0, 0.0, 0.0])
    y, rhs = np.array([1.0, 2.0]), np.array([1.0, -1.0])
    prices = lagrangian(instance, values, 10.0, 7, row_values, y, rhs)
    assert prices.constant == 5.0 - 1.0 + 2.0
    assert 0 < prices.error < 1e-10
    every = np.ones(4, dtype=bool)
    assert prices.best(instance, every).tolist() == [3.0, 4.0]
    assert prices.bound(instance, every) == 7.0 + 6.0 + prices.error
    found = prices.bounds_by_candidate(instance, every)
    assert found - prices.error == pytest.approx([11.0, 13.0, 13.0, 8.0], abs=1e-13)
    assert (found > [11.0, 13.0, 13.0, 8.0]).all()
    assert prices.best(instance, np.array([True, False, False, False])).tolist() == [1.0, -np.inf]


@pytest.mark.parametrize("seed", range(12))
def test_relaxation_bounds_every_allowed_structure(seed):
    problem = random_problem(3 * seed + 1)
    rng = np.random.default_rng(seed)
    selections = all_selections(problem)
    relaxation, pool = tracked_relaxation(problem)
    instance = relaxation.instance
    kept = selections[int(rng.integers(len(selections)))]
    allowed = rng.random(instance.n_candidates) < 0.7
    allowed[kept] = True
    labels = labels_at(instance, selections[0])
    warm = cold_start(instance, labels, np.flatnonzero(allowed), pool.class_rows())
    result = relaxation.solve(warm, allowed, [], -np.inf, THOROUGH)
    values = [problem.evaluate(s) for s in selections if allowed[s].all()]
    assert result.bound >= max(values)
    assert result.prices is not None
    assert result.prices.bound(instance, allowed) == result.bound


def test_empty_nodes_are_proven_empty():
    """Two present edges that the rows contradict give an infeasible programme with a proof."""
    problem = small_linear_problem(n_features=2, max_parents=1, n_rows=20)
    relaxation, _ = tracked_relaxation(problem)
    instance = relaxation.instance
    allowed = np.ones(instance.n_candidates, dtype=bool)
    for k, parents in enumerate(problem.candidates.parents):  # only the cycle 0 -> 1 -> 2 -> 0
        allowed[k] = parents == ((int(instance.child[k]) + 2) % 3,)
    warm = cold_start(instance, np.zeros(0, dtype=np.int16), np.flatnonzero(allowed), [])
    result = relaxation.solve(warm, allowed, [], -np.inf, THOROUGH)
    assert result.bound == -np.inf


# ---------------------------------------------------------------- states of the relaxation


def test_states_stay_consistent_over_a_solve():
    """Labels, rows, cost vector and basis of the children's state fit together."""
    for seed in range(6):
        problem = small_margin_problem(seed, n_rows=60, n_features=5, max_parents=3, gamma=1.5)
        relaxation, pool = tracked_relaxation(problem)
        instance = relaxation.instance
        allowed = np.ones(instance.n_candidates, dtype=bool)
        first = np.array([problem.candidates.group(i)[0] for i in range(6)])
        warm = cold_start(
            instance, labels_at(instance, first), np.flatnonzero(allowed), pool.class_rows()
        )
        longer = replace(THOROUGH, rounds=50, patience=50)
        result = relaxation.solve(warm, allowed, [], -np.inf, longer)
        state = result.warm
        assert state.basis is not None
        owners = np.unique(state.explicit // instance.n_rivals)
        assert (owners == np.flatnonzero(state.labels == EXPLICIT)).all()
        np.testing.assert_allclose(state.cost, refresh_cost(instance, state).cost, atol=1e-9)
        blocks = state.basis
        columns = np.concatenate([blocks.eta, blocks.tau])
        rows = np.concatenate([blocks.convexity, blocks.structural, blocks.explicit])
        assert len(blocks.tau) == len(owners)
        assert len(rows) == instance.n_variables + len(state.rows) + len(state.explicit)
        assert (columns == BASIC).sum() + (rows == BASIC).sum() == len(rows)


# ---------------------------------------------------------------- propagation


@pytest.mark.parametrize("seed", range(25))
def test_propagation_removes_only_what_no_structure_uses(seed):
    """Removed candidates occur in no allowed structure, and empty nodes contain none."""
    problem = random_problem(seed)
    rng = np.random.default_rng(seed)
    instance = build_instance(problem)
    n = instance.n_variables
    for _ in range(4):
        allowed = rng.random(instance.n_candidates) < rng.uniform(0.3, 1.0)
        present = np.triu(rng.random((n, n)) < 0.2, 1)
        edges = list(zip(*np.nonzero(present), strict=True))
        inside = [
            s
            for s in all_selections(problem)
            if allowed[s].all() and all(holds_edge(problem, s, i, j) for i, j in edges)
        ]
        tightened, left = allowed.copy(), present.copy()
        possible = propagate(instance.offsets, instance.members, tightened, left)
        assert possible or not inside
        if possible:
            assert not (tightened & ~allowed).any()
            assert all(tightened[s].all() for s in inside)


def test_forced_arcs_forbid_the_way_back():
    """If 1 must be a parent of 2 then 2 is no parent of 1 any more."""
    problem = small_linear_problem(n_features=2, max_parents=1)
    instance = build_instance(problem)
    allowed = np.ones(instance.n_candidates, dtype=bool)
    allowed[list(problem.candidates.group(2))] = False
    allowed[problem.candidates.index(2, (1,))] = True
    assert propagate(instance.offsets, instance.members, allowed, np.zeros((3, 3), dtype=bool))
    assert not allowed[problem.candidates.index(1, (2,))]
    assert allowed[problem.candidates.index(1, (0,))]


# ---------------------------------------------------------------- incumbents


@pytest.mark.parametrize("seed", range(8))
def test_exchange_values_equal_the_definition(seed):
    problem = random_problem(seed)
    instance = build_instance(problem)
    selection = all_selections(problem)[0]
    climb = _Climb(instance, selection, np.zeros(1, dtype=np.int64))
    for i in range(problem.n_variables):
        for k, value in zip(problem.candidates.group(i), climb.values(i), strict=True):
            exchanged = selection.copy()
            exchanged[i] = k
            assert value == pytest.approx(problem.evaluate(exchanged))


@pytest.mark.parametrize("dense_bytes", [10**9, 0])
def test_local_search_returns_better_acyclic_selections(dense_bytes):
    """Climbing and kicking never lose value nor close a cycle, with and without matrix."""
    problem = small_margin_problem(3, n_features=5, max_parents=3, gamma=1.0)
    instance = build_instance(problem, dense_bytes)
    finder = IncumbentSearch(instance, 7)
    start = np.array([problem.candidates.group(i)[0] for i in range(6)])
    climbed = finder.improved(start)
    value = problem.evaluate(climbed)
    kicked = finder.around(climbed, value, 10)
    for selection in (climbed, kicked):
        assert is_acyclic([problem.candidates.parents[k] for k in selection])
    assert problem.evaluate(start) < value <= problem.evaluate(kicked) + 1e-9


def test_rounding_keeps_an_integral_point():
    problem = small_linear_problem(n_features=3)
    instance = build_instance(problem)
    finder = IncumbentSearch(instance, 0)
    for selection in all_selections(problem)[::50]:
        point = np.zeros(instance.n_candidates)
        point[selection] = 1.0
        rounded = finder.rounded(point, instance.linear)
        assert rounded is not None
        assert (rounded == selection).all()


# ---------------------------------------------------------------- the whole solver

MODES = {
    "full": BranchCutSolver(),
    "bare": BranchCutSolver(heuristics=False),
    "random": BranchCutSolver(heuristics=False),
}


def assert_exact(problem: StructureProblem, solver: BranchCutSolver, seed: int) -> None:
    """The solver's optimum and bound are those of exhaustive search."""
    best = brute_force(problem)
    result = solve_with(solver, Run(problem, limits=EVERYTHING, seed=seed))
    check_result(problem, result)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(best, rel=1e-6, abs=1e-9)
    assert result.bound >= best - 1e-9 * max(1.0, abs(best))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(24))
def test_random_problems_are_solved_exactly(seed, mode, monkeypatch):
    if mode == "random":
        monkeypatch.setattr(engine, "Chooser", RandomChooser)
    assert_exact(random_problem(seed), MODES[mode], seed)


def test_columns_priced_in_give_the_same_optimum(monkeypatch):
    from marginbn.solvers.branch_cut import engine, relaxation

    monkeypatch.setattr(relaxation, "ALL_COLUMNS", 0)
    monkeypatch.setattr(engine, "FIRST_COLUMNS", 1)
    for seed in range(12):
        solver = BranchCutSolver(heuristics=seed % 2 == 0)
        assert_exact(random_problem(seed), solver, seed)


def test_columns_on_demand_give_the_same_optimum(monkeypatch):
    problem = small_margin_problem(2, n_features=3, max_parents=3)
    best = brute_force(problem)
    monkeypatch.setattr(BranchCutShape, "divide", lambda *_: Division(0, 0, 10**9))
    result = solve_with(BranchCutSolver(), Run(problem, limits=EVERYTHING))
    assert result.objective == pytest.approx(best, rel=1e-6)
    assert result.status is Status.OPTIMAL


@pytest.mark.parametrize("seed", seeds(1, 4))
def test_planted_optimum_is_never_cut_off(seed, monkeypatch):
    """Every relaxation of a node that contains the optimum bounds it, and one leaf holds it."""
    problem = small_margin_problem(
        seed, n_rows=60, n_features=6 - seed % 2, max_parents=2 + seed % 2, gamma=1.0
    )
    optimum = solve_with(BranchCutSolver(), Run(problem, limits=EVERYTHING))
    value = optimum.objective
    original = HybridRelaxation.solve
    seen = []

    def solve(self, warm, allowed, edges, cutoff, effort, tell):
        result = original(self, warm, allowed, edges, cutoff, effort, tell)
        rows = [self.pool[number] for number in edges]
        point = np.zeros(len(allowed))
        point[optimum.selection] = 1.0
        if allowed[optimum.selection].all() and all(r.activity(point) >= 1 for r in rows):
            seen.append(result.bound)
        return result

    monkeypatch.setattr(HybridRelaxation, "solve", solve)
    solver = BranchCutSolver(heuristics=False)
    result = solve_with(solver, Run(problem, limits=EVERYTHING, seed=seed))
    assert seen
    assert min(seen) >= value
    assert result.objective == pytest.approx(value, rel=1e-6)


def test_fixing_keeps_every_better_structure():
    """With an incumbent below the optimum, nodes on the way to the optimum keep its candidates."""
    problem = small_margin_problem(5, n_rows=60, n_features=5, max_parents=3, gamma=1.0)
    optimum = solve_with(BranchCutSolver(), Run(problem, limits=EVERYTHING))
    run = Run(problem)
    run.offer(np.array([problem.candidates.group(i)[0] for i in range(6)]))
    tree = CutSearch(run, heuristics=False)
    tree.frontier.value = optimum.objective - 1e-3 * abs(optimum.objective)
    tree.open()
    node = tree.frontier.take()
    instance = tree.instance
    allowed = node.allowed(instance.n_candidates)
    cutoff = tree.frontier.cutoff
    relaxation = HybridRelaxation(instance, tree.shared.pool, run, 0)
    relaxed = relaxation.solve(node.warm, allowed, [], cutoff, effort_at(instance, 0))
    tree.fix(relaxed.prices, allowed)
    assert allowed[optimum.selection].all()


# ---------------------------------------------------------------- starts and refusals


def test_start_comes_first_even_if_its_candidates_are_dominated():
    problem = small_linear_problem(1, n_rows=30, n_features=4, score="mdl")
    start = all_selections_worst(problem)
    result = solve_with(BranchCutSolver(), Run(problem, limits=EVERYTHING, start=start))
    assert result.trace[0].objective == problem.evaluate(start)
    best = solve_with(DynamicProgrammingSolver(), Run(problem, limits=EVERYTHING)).objective
    assert result.objective == pytest.approx(best)


def all_selections_worst(problem: StructureProblem) -> np.ndarray:
    """A full graph in index order: everything with as many parents as allowed."""
    candidates = problem.candidates
    graph = [tuple(range(i))[:2] for i in range(problem.n_variables)]
    return np.array([candidates.index(i, p) for i, p in enumerate(graph)])
