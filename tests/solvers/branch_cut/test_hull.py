"""Nodes of few variables: dynamic programming over sets, and bounds over the hull of structures."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import oracles
from brute_force import brute_force
from marginbn.problem.problem import StructureProblem
from marginbn.solvers.branch_bound.kernels import subsets
from marginbn.solvers.branch_cut import PARTS, BranchCutSolver, hull
from marginbn.solvers.branch_cut.arrays import Instance, build_instance
from marginbn.solvers.branch_cut.kernels.propagate import propagate
from marginbn.solvers.branch_cut.visit import prepare
from marginbn.solvers.dynamic import DynamicProgrammingSolver
from marginbn.solvers.result import Status, check_result
from marginbn.solvers.run import Limits, Run
from marginbn.solvers.solve import solve_with
from problems import margin_case, random_case, small_linear_problem, small_margin_problem
from seeds import seeds, slow

pytestmark = pytest.mark.xdist_group("test_hull")  # one process compiles

STOP = np.zeros(1, dtype=np.int64)


def all_selections(problem: StructureProblem) -> np.ndarray:
    """Every acyclic selection of a tiny problem."""
    candidates = problem.candidates
    groups = [list(candidates.group(i)) for i in range(problem.n_variables)]
    kept = [
        s for s in product(*groups) if not oracles.has_cycle([candidates.parents[k] for k in s])
    ]
    return np.array(kept)


def random_node(
    instance: Instance, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray] | None:
    """Some candidates and some edges that must be present, propagated; None if that is empty."""
    n = instance.n_variables
    allowed = rng.random(instance.n_candidates) < rng.uniform(0.4, 1.1)
    present = np.triu(rng.random((n, n)) < rng.choice([0.0, 0.15, 0.4]), 1)
    if not propagate(instance.offsets, instance.members, allowed, present):
        return None
    return allowed, present


def is_inside(
    problem: StructureProblem, selection: np.ndarray, allowed: np.ndarray, present: np.ndarray
) -> bool:
    """Whether a structure belongs to a node, by the definition."""
    parents = problem.candidates.parents
    joined = all(
        j in parents[selection[i]] or i in parents[selection[j]]
        for i, j in zip(*np.nonzero(present), strict=True)
    )
    return bool(allowed[selection].all()) and joined


def best_of_node(
    model: hull.HullModel, allowed: np.ndarray, present: np.ndarray, values: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """Largest value, its structure, and the largest value with each candidate."""
    c, n = model.candidates, model.instance.n_variables
    layout = subsets.lay_out(c, allowed, present)
    tables = subsets.new_tables(n)
    vertex, through = np.zeros(n, dtype=np.int64), np.zeros(len(values))
    value = subsets.maximise_over_orders(c, layout, allowed, values, tables, vertex)
    again = subsets.values_through(c, layout, allowed, values, tables, through)
    assert again == pytest.approx(value, rel=1e-12)
    return value, vertex, through


# ---------------------------------------------------------------- dynamic programming over sets


def test_two_features_by_hand() -> None:
    """The class and two features, each of which gains most with the other as a parent: one way
    round only.
    """
    problem = small_margin_problem(0, n_rows=20, n_features=2, max_parents=2)
    model = hull.HullModel(build_instance(problem))
    values = np.zeros(problem.candidates.n_candidates)
    values[problem.candidates.index(1, (0, 2))] = 3.0
    values[problem.candidates.index(2, (0, 1))] = 2.0
    values[problem.candidates.index(2, (0,))] = 0.5
    every = np.ones(len(values), dtype=bool)
    value, vertex, through = best_of_node(model, every, np.zeros((3, 3), dtype=bool), values)
    assert value == 3.5
    assert vertex[1] == problem.candidates.index(1, (0, 2))
    assert vertex[2] == problem.candidates.index(2, (0,))
    assert through[problem.candidates.index(2, (0, 1))] == 2.0
    assert through[problem.candidates.index(1, ())] == 2.0
    assert through[problem.candidates.index(0, (1,))] == 2.0  # 1 -> class -> 2 and 1 -> 2
    assert through[problem.candidates.index(0, (1, 2))] == 0.0  # both without parents


@pytest.mark.parametrize("seed", range(20))
def test_sets_of_variables_give_the_best_of_all_structures(seed: int) -> None:
    """For random values, candidates and edges: the maximum, its structure, and the maximum with
    each candidate are those of the list of all structures.
    """
    problem = margin_case(random_case(seed), "multiclass")
    model = hull.HullModel(build_instance(problem))
    rng = np.random.default_rng(seed)
    selections = all_selections(problem)
    for _ in range(5):
        node = random_node(model.instance, rng)
        if node is None:
            continue
        inside = [s for s in selections if is_inside(problem, s, *node)]
        values = rng.normal(size=len(node[0]))
        value, vertex, through = best_of_node(model, *node, values)
        if not inside:
            assert value == -np.inf
            continue
        assert value == pytest.approx(max(values[s].sum() for s in inside), rel=1e-12)
        assert any((vertex == s).all() for s in inside)
        assert values[vertex].sum() == pytest.approx(value, rel=1e-12)
        expected = np.full(len(values), -np.inf)
        for s in inside:
            expected[s] = np.maximum(expected[s], values[s].sum())
        np.testing.assert_allclose(through[node[0]], expected[node[0]], rtol=1e-10)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("max_parents", [2, 3, 4])
def test_more_variables_agree_with_dynamic_programming_by_layers(
    seed: int, max_parents: int
) -> None:
    """Nine variables without a class: more than one block of sets."""
    problem = small_linear_problem(seed, n_features=8, max_parents=max_parents, score="k2")
    instance = build_instance(problem)
    model = hull.HullModel(instance)
    every = np.ones(instance.n_candidates, dtype=bool)
    none = np.zeros((9, 9), dtype=bool)
    value, vertex, through = best_of_node(model, every, none, np.array(problem.linear))
    expected = solve_with(DynamicProgrammingSolver(), Run(problem, limits=Limits()))
    assert value == pytest.approx(expected.objective, rel=1e-9)
    assert problem.evaluate(vertex) == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(through[vertex], value, rtol=1e-12)
    assert through.max() == pytest.approx(value, rel=1e-12)


def test_a_required_edge_costs_what_leaving_it_out_gains() -> None:
    """Seven features: with an edge present, the best is the better of its two directions."""
    problem = small_margin_problem(3, n_rows=60, n_features=7, max_parents=3)
    model = hull.HullModel(build_instance(problem))
    rng = np.random.default_rng(0)
    values = rng.normal(size=problem.candidates.n_candidates)
    every, none = np.ones(len(values), dtype=bool), np.zeros((8, 8), dtype=bool)
    for i, j in ((0, 3), (2, 6), (1, 7)):
        present = none.copy()
        present[i, j] = True
        value, _, through = best_of_node(model, every, present, values)
        ways = []
        for child, parent in ((i, j), (j, i)):
            allowed = every.copy()
            for k in problem.candidates.group(child):
                allowed[k] = parent in problem.candidates.parents[k]
            if propagate(model.instance.offsets, model.instance.members, allowed, none.copy()):
                ways.append(best_of_node(model, allowed, none, values))
        assert value == pytest.approx(max(way[0] for way in ways), rel=1e-12)
        both = np.maximum.reduce([way[2] for way in ways])
        np.testing.assert_allclose(through, both, rtol=1e-12)


# ---------------------------------------------------------------- bounds of nodes


@pytest.mark.parametrize("seed", range(20))
def test_bounds_hold_for_every_structure_of_a_node(seed: int) -> None:
    """The bound of a node, and the bound with each candidate, whenever the iterations end; and the
    point is a mixture of structures of the node with the value that is said.
    """
    problem = margin_case(random_case(seed), "binary" if seed % 2 else "multiclass")
    instance = build_instance(problem)
    relaxation = hull.HullRelaxation(hull.HullModel(instance), STOP)
    rng = np.random.default_rng(seed)
    selections = all_selections(problem)
    values = np.array([problem.evaluate(s) for s in selections])
    for iterations in (1, 2, 5, 40):
        node = random_node(instance, rng)
        if node is None or not instance.n_samples:
            continue
        inside = np.array([is_inside(problem, s, *node) for s in selections])
        state = relaxation.first_state(selections[0])
        relaxed = relaxation.solve(
            state, *node, -np.inf, -np.inf, 1e-3, iterations, lambda bound: None
        )
        if not inside.any():
            assert relaxed.bound == -np.inf
            continue
        best = float(values[inside].max())
        assert relaxed.bound >= best
        assert relaxed.bound >= relaxed.value
        assert relaxed.prices is not None
        assert relaxed.point is not None
        assert not relaxed.point[~node[0]].any()
        np.testing.assert_allclose(
            np.add.reduceat(relaxed.point, instance.offsets[:-1]), 1.0, rtol=1e-9
        )
        for s, value in zip(selections[inside], values[inside], strict=True):
            assert (relaxed.prices.through[s] >= value - 1e-12 * abs(value)).all()
        if iterations == 40:
            assert relaxed.bound - relaxed.value < 0.05 * max(1.0, abs(best))


def test_bounds_are_no_weaker_than_those_of_linear_programmes() -> None:
    """The hull is inside every set of cuts: the root's bound, iterated long enough."""
    problem = small_margin_problem(0, n_rows=150, n_features=8, max_parents=3, gamma=1.0)
    limits = Limits(nodes=1)
    by_hull = solve_with(BranchCutSolver(), Run(problem, limits=limits))
    by_programme = solve_with(BranchCutSolver(parts=PARTS - {"hull"}), Run(problem, limits=limits))
    assert by_hull.bound <= by_programme.bound + 0.02 * abs(by_programme.bound)


# ---------------------------------------------------------------- the whole solver


@pytest.mark.parametrize("max_parents", [3, 4])
@pytest.mark.parametrize("margin", ["multiclass", "binary"])
def test_required_and_forbidden_arcs(max_parents: int, margin: str) -> None:
    """Arcs that must be there and arcs that must not, with and without heuristics."""
    problem = small_margin_problem(
        4,
        n_rows=40,
        n_features=3,
        max_parents=max_parents,
        margin=margin,
        required=((0, 1), (1, 2)),
        forbidden=((3, 1), (0, 3)),
    )
    best = brute_force(problem)
    for heuristics in (True, False):
        result = solve_with(BranchCutSolver(heuristics=heuristics), Run(problem, limits=Limits()))
        check_result(problem, result)
        assert result.status is Status.OPTIMAL
        assert result.objective == pytest.approx(best, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("seed", seeds(0, 2))
def test_both_relaxations_find_the_same_optimum(seed: int) -> None:
    """Problems that are too large for a list of all structures."""
    problem = small_margin_problem(seed, n_rows=40, n_features=6, max_parents=3, gamma=1.0)
    parts = (PARTS, PARTS - {"hull"})
    found = [solve_with(BranchCutSolver(parts=own), Run(problem, limits=Limits())) for own in parts]
    assert found[0].objective == pytest.approx(found[1].objective, rel=1e-6)
    assert found[0].status is found[1].status is Status.OPTIMAL


@pytest.mark.parametrize("n_jobs", [1, slow(3)])
@pytest.mark.parametrize("seed", seeds(1, 3))
def test_the_optimum_is_never_cut_off(
    seed: int, n_jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every node that contains the optimum is bounded above it, whoever visits it."""
    problem = small_margin_problem(seed, n_rows=60, n_features=6, max_parents=3, gamma=1.0)
    optimum = solve_with(BranchCutSolver(), Run(problem, limits=Limits()))
    original, seen = hull.HullRelaxation.solve, []

    def solve(self, warm, allowed, present, *others):
        relaxed = original(self, warm, allowed, present, *others)
        if is_inside(problem, optimum.selection, allowed, present):
            seen.append(relaxed.bound)
        return relaxed

    monkeypatch.setattr(hull.HullRelaxation, "solve", solve)
    run = Run(problem, limits=Limits(), seed=seed, n_jobs=n_jobs)
    result = solve_with(BranchCutSolver(heuristics=False), run)
    assert seen
    assert min(seen) >= optimum.objective
    assert result.objective == pytest.approx(optimum.objective, rel=1e-6)


def test_tables_are_part_of_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where they do not fit, nodes are linear programmes."""
    problem = small_margin_problem(0, n_features=4, max_parents=3)
    assert prepare(problem, by_hull=True).hull is not None
    assert prepare(problem).hull is None  # as certificates want it
    free, tight = prepare(problem), prepare(problem, by_hull=True)
    assert tight.memory.tree == free.memory.tree - hull.needed_bytes(free.instance, 1)
    monkeypatch.setattr(hull, "needed_bytes", lambda *_: 10**12)
    assert prepare(problem, by_hull=True).hull is None


def test_gains_are_learned_by_object_and_by_kind() -> None:
    """A ratio of its own where an object was seen, that of its kind before."""
    instance = build_instance(small_margin_problem(0, n_features=3, max_parents=3))
    gains = hull.Gains(instance)
    objects = np.array([[0, 1, 2], [0, 1, 3], [1, 2, 1]])
    drops = np.ones((3, 2))
    assert (gains.expected(objects, drops) == 1.0).all()
    gains.learn(hull.Split("edge", 1, 2), 0, 2.0, 1.0)
    gains.learn(hull.Split("edge", 1, 2), 0, 2.0, 0.5)
    # (1.5 + 2 * 2 * 0.375) / (4 + 2 * 2), where 0.375 is 1.5 / 4
    assert gains.expected(objects, drops)[:, 0].tolist() == [0.375, 0.375, 1.0]
    assert gains.observations(objects).tolist() == [0.0, 0.0, 0.0]  # of the less known side
    gains.learn(hull.Split("edge", 1, 2), 1, 1.0, 0.25)
    assert gains.observations(objects).tolist() == [1.0, 0.0, 0.0]
    assert gains.recent == pytest.approx(((1.0 - 0.02 * 0.5) * 0.98) + 0.02 * 0.25)
