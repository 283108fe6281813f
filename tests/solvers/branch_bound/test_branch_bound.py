"""The engine against exhaustive search, with and without heuristics; limits, interrupts."""

from __future__ import annotations

import gc
import pickle
import threading
import weakref
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from branch_bound_cases import random_linear_problem, random_problem, random_slots
from brute_force import brute_force
from marginbn.exceptions import InputError
from marginbn.problem.candidates import enumerate_candidates
from marginbn.problem.encoded import EncodedData, Variable
from marginbn.problem.margins import MarginKind
from marginbn.problem.problem import StructureProblem, margin_problem
from marginbn.solvers.branch_bound import BranchBoundSolver, engine, workers
from marginbn.solvers.branch_bound import arrays as frank_wolfe
from marginbn.solvers.branch_bound.arrays import Encoding
from marginbn.solvers.branch_bound.engine import BoxSearch
from marginbn.solvers.branch_bound.kernels.node_pool import Pool, new_pool
from marginbn.solvers.branch_bound.kernels.tree import BATCH_DONE, EXHAUSTED, NODE_LIMIT, STOPPED
from marginbn.solvers.branch_bound.row_groups import Groups
from marginbn.solvers.branch_bound.rows import with_all_rows
from marginbn.solvers.memory import BranchBoundShape
from marginbn.solvers.result import Status, TracePoint
from marginbn.solvers.run import Limits, RowsInUse, Run
from marginbn.solvers.solve import solve_with
from marginbn.solvers.tree_search import begin
from strategies import random_data


def check_against_enumeration(
    problem: StructureProblem, solver: BranchBoundSolver, seed: int, n_jobs: int = 1
) -> None:
    expected = brute_force(problem)
    if expected == -np.inf:
        with pytest.raises(InputError, match="no acyclic structure"):
            solve_with(solver, Run(problem, seed=seed, n_jobs=n_jobs))
        return
    result = solve_with(solver, Run(problem, seed=seed, n_jobs=n_jobs))
    rounding = 1e-11 * max(1.0, abs(expected))
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(expected, rel=1.01e-6, abs=rounding)
    assert result.objective <= expected + rounding
    assert result.bound >= expected - rounding


def solver_for(seed: int) -> BranchBoundSolver:
    """Half without heuristics (only leaves give incumbents), a third with random splits."""
    return BranchBoundSolver(heuristics=seed % 2 == 0)


@pytest.mark.parametrize("seed", range(90))
def test_equals_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    check_against_enumeration(random_problem(rng, 2 + seed % 3), solver_for(seed), seed)


@pytest.mark.parametrize("seed", range(40))
def test_linear_problems_equal_enumeration(seed: int) -> None:
    """Without margins the joint oracle is exact."""
    rng = np.random.default_rng(seed)
    check_against_enumeration(random_linear_problem(rng, 2 + seed % 3), solver_for(seed), seed)


def larger_data() -> EncodedData:
    return random_data(3, n_samples=150, arities=(3, 3, 2, 3, 2, 3, 3, 2, 3, 2))


def larger_problem() -> StructureProblem:
    data = larger_data()
    candidates = enumerate_candidates(data.n_variables, 2)
    return margin_problem(data, candidates, gamma=1.0)


@pytest.mark.parametrize("heuristics", [True, False])
@pytest.mark.parametrize("n_jobs", [2, 3])
def test_workers_share_one_tree(n_jobs: int, heuristics: bool) -> None:
    solver = BranchBoundSolver(heuristics=heuristics)
    alone = solve_with(solver, Run(larger_problem()))
    together = solve_with(solver, Run(larger_problem(), n_jobs=n_jobs))
    assert alone.status is together.status is Status.OPTIMAL
    assert together.objective == pytest.approx(alone.objective, rel=1e-6)
    assert together.bound >= alone.objective


@pytest.mark.parametrize("rows", ["all", "groups"])
def test_a_root_that_begins_again_is_not_shared(rows: RowsInUse) -> None:
    """The root is bounded early and put back; its parts are shared only afterwards."""
    search = opened(rows)
    first, second = search.team.workers
    assert first.pool.state.open == 1
    assert second.is_out_of_work
    while first.nodes == 0:
        search.improve(improved=False)
        search.advance()
    assert not second.is_out_of_work


@pytest.mark.parametrize("rows", ["all", "groups"])
def test_other_workers_never_see_rows_half_copied(
    rows: RowsInUse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While copies of more rows are made, what is in use stays as it is, with all that it holds;
    then all of it is replaced.
    """
    search = opened(rows)
    in_use = search.rows.in_use
    held = pickle.dumps(in_use)
    looks: list[bool] = []

    def look(run: Run) -> None:
        looks.append(search.rows.in_use is in_use and pickle.dumps(in_use) == held)

    monkeypatch.setattr(Run, "look", look)
    monkeypatch.setattr(Groups, "split", lambda *_: False)  # new groups would have new memory
    rng = np.random.default_rng(1)
    while search.rows.bounding is in_use.bounding:
        vertex = np.array(random_slots(rng, search.encoding.instance))
        search.rows.extend(search._margins_at(search.main.work.bounding, vertex))
    assert looks
    assert all(looks)
    assert pickle.dumps(in_use) == held


def opened(rows: RowsInUse) -> BoxSearch:
    """A search of two workers before its first batch."""
    run = Run(larger_problem(), n_jobs=2)
    begin(run)
    search = BoxSearch(run, BranchBoundSolver(rows=rows))
    search.open()
    return search


@pytest.mark.parametrize("seed", range(40))
def test_two_workers_equal_enumeration(seed: int) -> None:
    problem = random_problem(np.random.default_rng(300 + seed), 2 + seed % 3)
    check_against_enumeration(problem, solver_for(seed), seed, n_jobs=2)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_limits_with_workers(n_jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Node and time limits end all workers, with a bracket of the optimum. In the second call the
    alarm of the clock rings before the first batch and is heard inside it.
    """
    problem = larger_problem()
    best = solve_with(BranchBoundSolver(), Run(problem)).objective
    solver = BranchBoundSolver(heuristics=False)
    result = solve_with(solver, Run(problem, limits=Limits(nodes=20), n_jobs=n_jobs))
    assert result.status is Status.NODE_LIMIT
    assert result.nodes <= 20
    assert result.objective <= best <= result.bound + 1e-9
    advance = BoxSearch.advance

    def ring(self: BoxSearch, worker: int = 0) -> Status | None:
        self.interrupt()
        return advance(self, worker)

    monkeypatch.setattr(BoxSearch, "advance", ring)
    result = solve_with(solver, Run(problem, limits=Limits(time=3600.0), n_jobs=n_jobs))
    assert result.status is Status.TIME_LIMIT
    assert result.objective <= best <= result.bound + 1e-9


@pytest.mark.parametrize(
    ("code", "finished", "nodes", "expected"),
    [
        (EXHAUSTED, True, 20, Status.OPTIMAL),
        (EXHAUSTED, False, 20, Status.NODE_LIMIT),
        (EXHAUSTED, False, 19, None),
        (NODE_LIMIT, False, 20, Status.NODE_LIMIT),
        (NODE_LIMIT, False, 19, None),
        (STOPPED, False, 3, Status.TIME_LIMIT),
        (BATCH_DONE, False, 3, None),
    ],
)
def test_why_a_batch_ended(code: int, finished: bool, nodes: int, expected: Status | None) -> None:
    """A first worker without nodes sees the node limit too when another holds all that is open."""
    search, rests = BoxSearch.__new__(BoxSearch), []
    search.team = SimpleNamespace(
        is_finished=finished, nodes=nodes, node_limit=20, rest=lambda: rests.append(1)
    )
    assert search._why_ended(code) is expected
    assert len(rests) == (code in (EXHAUSTED, NODE_LIMIT) and expected is None)


def test_interrupt_with_workers() -> None:
    def interrupt(point: TracePoint) -> bool:
        if np.isfinite(point.bound) and point.gap < 0.1:
            raise KeyboardInterrupt
        return False

    before = set(threading.enumerate())
    result = solve_with(BranchBoundSolver(), Run(larger_problem(), callback=interrupt, n_jobs=2))
    assert result.status is Status.INTERRUPTED
    assert set(threading.enumerate()) <= before


def test_a_failing_worker_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    receive = workers.Worker.receive

    def fail(self: workers.Worker) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise MemoryError("no room for the inbox")
        receive(self)

    solve_with(
        BranchBoundSolver(), Run(larger_problem(), limits=Limits(nodes=2))
    )  # kernels are loaded
    monkeypatch.setattr(workers.Worker, "receive", fail)
    with pytest.raises(MemoryError, match="inbox"):
        solve_with(BranchBoundSolver(), Run(larger_problem(), n_jobs=2))


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_failing_kernel_ends_the_search(
    n_jobs: int, is_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error in the middle of a batch, of the first worker or of another, loses the nodes that it
    has taken: the error ends the call, and no bound is claimed as if they were done.
    """
    if n_jobs == 1 and not is_first:
        return
    problem = larger_problem()
    best = solve_with(BranchBoundSolver(), Run(problem)).objective
    perform = engine.tree.perform

    def fail(*args: Any) -> int:
        pool = args[3]
        in_main = threading.current_thread() is threading.main_thread()
        if in_main is is_first and pool.state.open > 0 and pool.state.nodes > 0:
            pool.state.open = 0
            raise FloatingPointError("broken kernel")
        return int(perform(*args))

    monkeypatch.setattr(engine.tree, "perform", fail)
    bounds: list[float] = []
    before = set(threading.enumerate())
    run = Run(problem, callback=lambda point: bounds.append(point.bound), n_jobs=n_jobs)
    with pytest.raises(FloatingPointError, match="broken kernel"):
        solve_with(BranchBoundSolver(heuristics=False), run)
    assert min(bounds) >= best
    assert set(threading.enumerate()) <= before


def test_nobody_waits_for_a_worker_that_failed() -> None:
    """It counts as busy for good; a checkpoint that waits for it raises its error."""
    team = workers.BoxTeam(frank_wolfe.encode(larger_problem()), 2, workers.UNLIMITED, 1 << 20)
    helper = team.workers[1]

    def fail(_: int) -> None:
        with team.batch(helper):
            raise FloatingPointError("broken kernel")

    team._help(fail, 1)
    assert not team.is_finished
    with pytest.raises(FloatingPointError, match="broken kernel"), team.at_rest():
        pytest.fail("there is no rest")


@pytest.mark.parametrize("heuristics", [True, False])
def test_a_full_store_is_searched_depth_first(
    heuristics: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without memory for more open nodes the optimum is proved all the same."""
    solver = BranchBoundSolver(heuristics=heuristics)
    expected = solve_with(solver, Run(larger_problem())).objective
    stores = []
    monkeypatch.setattr(BranchBoundShape, "LARGEST_TREE", 0)
    monkeypatch.setattr(workers, "RESERVE", 40)
    small_store(monkeypatch, stores)
    result = solve_with(solver, Run(larger_problem()))
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(expected, rel=1e-6)
    assert stores[0].reserve == 40, "the store was never full"
    assert stores[0].pool.bound.size <= 100


def small_store(monkeypatch: pytest.MonkeyPatch, stores: list[workers.Worker]) -> None:
    """Stores begin with room for 8 nodes; the workers are listed."""
    begin = workers.Worker.__init__

    def shrink(self: workers.Worker, encoding: Encoding) -> None:
        begin(self, encoding)
        self.pool = small_pool(encoding)
        self.inbox = new_pool(encoding.instance, 0, 0, 4)
        stores.append(self)

    def small_pool(encoding: Encoding) -> Pool:
        return new_pool(encoding.instance, 8, 8, 4)

    monkeypatch.setattr(workers.Worker, "__init__", shrink)
    monkeypatch.setattr(engine, "first_pool", small_pool)


def test_a_path_of_gammas_computes_coefficients_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Problems that differ in gamma share their arrays; another problem does not get them."""
    built = []
    make = frank_wolfe.Coefficients
    monkeypatch.setattr(
        frank_wolfe, "Coefficients", lambda *arrays: built.append(1) or make(*arrays)
    )
    problem, other = larger_problem(), larger_problem()
    first = frank_wolfe.encode(problem)
    second = frank_wolfe.encode(problem.with_gamma(0.3))
    assert first.instance.columns is second.instance.columns
    assert (first.instance.gamma, second.instance.gamma) == (1.0, 0.3)
    assert len(built) == 1
    assert frank_wolfe.encode(other).instance.columns is not first.instance.columns
    assert frank_wolfe.encode(problem).instance.columns is first.instance.columns
    assert len(built) == 2
    frank_wolfe.encode(replace(problem, weights=2.0 * problem.sample_weights))
    assert len(built) == 3  # other weights, other magnitudes
    copy = pickle.loads(pickle.dumps(problem))
    assert copy.margins.derived == {}


@pytest.mark.parametrize("kind", ["multiclass", "binary"])
def test_coefficients_equal_the_definition(kind: MarginKind) -> None:
    problem = margin_problem(larger_data(), enumerate_candidates(10, 2), margin=kind)
    encoding = frank_wolfe.encode(problem)
    inst = encoding.instance
    assert np.array_equal(with_all_rows(inst).rows, inst.columns.T)
    for v, k in enumerate(encoding.candidate_of):
        column = np.zeros(inst.columns.shape[1])
        if k >= 0:
            column = problem.margins.column(k).ravel()
        assert np.array_equal(inst.columns[v], column)
        largest = np.abs(column).reshape(inst.weights.size, -1).max(axis=1)
        assert encoding.magnitude[v] == pytest.approx(float(inst.weights @ largest))


def test_coefficients_are_forgotten_with_their_problem() -> None:
    """Nothing large outlives the problem it belongs to."""
    problem = larger_problem()
    columns = weakref.ref(frank_wolfe.encode(problem).instance.columns)
    gc.collect()
    assert columns() is not None
    del problem
    gc.collect()
    assert columns() is None


def test_refuses_what_it_cannot_solve() -> None:
    variables = tuple(Variable(f"v{i}", ("0", "1")) for i in range(5))
    for options in ({"max_parents": 3}, {"max_parents": 2, "class_restricted": False}):
        candidates = enumerate_candidates(5, **options)
        problem = StructureProblem(candidates, np.zeros(candidates.n_candidates), variables)
        assert BranchBoundSolver().can_solve(problem) is not None
