"""Several workers on one tree of linear programmes: the same optimum, a bound at every moment."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from brute_force import best_selection, brute_force
from clock import Clock
from marginbn.problem.problem import StructureProblem
from marginbn.solvers import solve_structure
from marginbn.solvers.branch_cut import BranchCutSolver, visit
from marginbn.solvers.branch_cut.arrays import build_instance
from marginbn.solvers.branch_cut.relaxation import HybridRelaxation
from marginbn.solvers.branch_cut.rows import RowPool, cluster_row
from marginbn.solvers.branch_cut.shape import BranchCutShape
from marginbn.solvers.branch_cut.tree import Node, Tree
from marginbn.solvers.branch_cut.visit import Team, Visitor
from marginbn.solvers.checkpoint import Checkpoint
from marginbn.solvers.result import SolveResult, Status, TracePoint, check_result
from marginbn.solvers.run import NAME, Limits, Run
from marginbn.solvers.solve import solve_with
from problems import linear_case, margin_case, random_case, small_margin_problem
from random_splits import RandomChooser

MAIN = threading.main_thread()


def random_problem(seed: int) -> StructureProblem:
    """Soft margin, binary margin or a decomposable score, in turn."""
    case = random_case(700 + seed)
    if seed % 3 == 0:
        return linear_case(case, ("mdl", "bdeu", "k2", "aic")[seed // 3 % 4])
    return margin_case(case, "multiclass" if seed % 3 == 1 else "binary")


def hard_problem() -> StructureProblem:
    """Some hundred nodes without heuristics."""
    return small_margin_problem(4, n_rows=25, n_features=4, max_parents=3)


def node(bound: float) -> Node:
    """A node that nobody looks into."""
    bits = np.zeros(1, dtype=np.uint8)
    return Node(bound, 0, bits, bits, FakeWarm(), None)  # type: ignore[arg-type]


class FakeWarm:
    nbytes = 100


@pytest.fixture
def helped(monkeypatch: pytest.MonkeyPatch) -> set[threading.Thread]:
    """Threads that visit nodes for the caller, who waits for them where there is a node to take."""
    visitors: set[threading.Thread] = set()
    visit = Visitor.visit

    def watch(self: Visitor, node: Node) -> list[Node]:
        if threading.current_thread() is not MAIN:
            visitors.add(threading.current_thread())
            return visit(self, node)
        tree = self.team.tree
        while len(visitors) < len(helpers_left()) and (len(tree) or len(tree.taken) > 1):
            time.sleep(0.001)
        return visit(self, node)

    monkeypatch.setattr(Visitor, "visit", watch)
    return visitors


def helpers_left() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith(NAME)]


def hold_helpers(monkeypatch: pytest.MonkeyPatch, release: threading.Event) -> list[Node]:
    """Nodes below the root that helpers keep until released; with one of them Ctrl-C comes."""
    visit, held, is_held = Visitor.visit, [], threading.Event()

    def hold(self: Visitor, node: Node) -> list[Node]:
        if node.depth > 0 and threading.current_thread() is MAIN:
            is_held.wait()
            raise KeyboardInterrupt
        if node.depth > 0:
            held.append(node)
            is_held.set()
            release.wait()
        return visit(self, node)

    monkeypatch.setattr(Visitor, "visit", hold)
    return held


def let_go(release: threading.Event) -> None:
    """Helpers held by a test leave before the next one begins."""
    release.set()
    for thread in helpers_left():
        thread.join(600.0)


# ---------------------------------------------------------------------- the books, by hand


def test_a_node_in_progress_counts_until_its_children_are_there() -> None:
    """Taken, better bounded, settled: the bound covers it all the time."""
    team = Team(Tree(), Limits(), 0)
    for bound in (10.0, 7.0):
        team.tree.push(node(bound))
    first, second = team.take(), team.take()
    assert first is not None
    assert second is not None
    assert team.take() is None
    assert (first.bound, second.bound, team.bound) == (10.0, 7.0, 10.0)
    team.claim(first, 8.0)
    assert team.bound == 8.0
    team.claim(first, 9.0)  # no worse again
    assert team.bound == 8.0
    team.settle(first, [node(6.0)])
    assert team.bound == 7.0
    assert sorted(n.bound for n in team.tree.nodes()) == [6.0, 7.0]
    team.discard(6.5)
    team.settle(second, [])
    assert team.bound == 6.5
    assert team.nodes == 2


def test_the_end_is_seen_when_nobody_works() -> None:
    """The first worker waits for others; then the tree is finished, or a limit is reached."""
    team = Team(Tree(), Limits(nodes=1), 0)
    for bound in (3.0, 2.0):
        team.tree.push(node(bound))
    taken = team.take()
    assert taken is not None
    assert team.take() is None, "one node may be visited"
    assert team.pause() is None, "somebody is at work"
    team.settle(taken, [])
    assert team.pause() is Status.NODE_LIMIT
    assert Team(Tree(), Limits(), 0).pause() is Status.OPTIMAL


def test_only_the_best_selection_is_kept_for_the_run() -> None:
    """Worse ones are not posted; what was handed over is forgotten, news are not."""
    team = Team(Tree(), Limits(), 0)
    for value in (1.0, 3.0, 2.0):
        team.adopt(value, np.array([int(value)]))
    found = team.found
    assert [int(chosen[0]) for chosen in found] == [1, 3]
    team.adopt(4.0, np.array([4]))
    for _ in found:
        team.forget()
    assert [int(chosen[0]) for chosen in team.found] == [4]
    assert team.value == 4.0 < team.cutoff < 4.0001


def test_rows_made_by_several_threads_have_one_number_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks for a cluster or an edge gets the number of that row."""

    def slowly(*args: Any) -> Any:
        time.sleep(0.001)  # long enough for others to come in between
        return cluster_row(*args)

    monkeypatch.setattr("marginbn.solvers.branch_cut.rows.cluster_row", slowly)
    problem = small_margin_problem(0, n_features=5)
    pool = RowPool(build_instance(problem))
    pairs = list(itertools.combinations(range(6), 2))
    answers: list[dict[Any, int]] = [{} for _ in range(4)]

    def ask(own: dict[Any, int], seed: int) -> None:
        for p in np.random.default_rng(seed).permutation(len(pairs)):
            own[pairs[p]] = pool.edge(*pairs[p])
            own[frozenset(pairs[p])] = pool.cluster(frozenset(pairs[p]))
            pool.violations(np.zeros(problem.candidates.n_candidates))

    threads = [threading.Thread(target=ask, args=(own, k)) for k, own in enumerate(answers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(own == answers[0] for own in answers)
    assert sorted(answers[0].values()) == list(range(2 * len(pairs))) == list(range(len(pool)))
    lasting = pool.violations(np.zeros(problem.candidates.n_candidates)) > -np.inf
    assert np.count_nonzero(lasting) == len(pairs)  # edges hold at some nodes only


# ---------------------------------------------------------------------- the optimum


@pytest.mark.parametrize("seed", range(20))
def test_any_number_of_workers_finds_the_optimum(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One, two and three workers against exhaustive search, without heuristics every other time."""
    problem = random_problem(seed)
    best = brute_force(problem)
    if seed % 4 == 3:
        monkeypatch.setattr(visit, "Chooser", RandomChooser)
    solver = BranchCutSolver(heuristics=seed % 2 == 0)
    for n_jobs in (1, 2, 3):
        result = solve_with(solver, Run(problem, seed=seed, n_jobs=n_jobs))
        check_result(problem, result)
        assert result.status is Status.OPTIMAL
        assert result.objective == pytest.approx(best, rel=1e-6, abs=1e-9)
        assert result.bound >= best - 1e-9 * max(1.0, abs(best))


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_helpers_help(n_jobs: int, helped: set[threading.Thread]) -> None:
    """A tree of some size is searched by all, to the same optimum."""
    problem = hard_problem()
    solver = BranchCutSolver(heuristics=False)
    alone = solve_with(solver, Run(problem))
    assert not helped
    together = solve_with(solver, Run(problem, n_jobs=n_jobs))
    assert len(helped) == n_jobs - 1
    assert alone.status is together.status is Status.OPTIMAL
    assert together.objective == pytest.approx(alone.objective, rel=1e-6)
    assert together.bound >= alone.objective


@pytest.mark.parametrize("seed", range(4))
def test_no_worker_cuts_off_the_optimum(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With three workers too, every node that contains the optimum has a bound above it."""
    problem = small_margin_problem(seed, n_rows=30, n_features=4, max_parents=3, gamma=1.0)
    best = best_selection(problem)
    objective = problem.evaluate(best)
    seen: list[float] = []
    solve = HybridRelaxation.solve

    def watch(self: HybridRelaxation, warm: Any, allowed: Any, edges: Any, *rest: Any) -> Any:
        result = solve(self, warm, allowed, edges, *rest)
        point = np.zeros(len(allowed))
        point[best] = 1.0
        rows = [self.pool[number] for number in edges]
        if allowed[best].all() and all(row.activity(point) >= 1 for row in rows):
            seen.append(result.bound)
        return result

    monkeypatch.setattr(HybridRelaxation, "solve", watch)
    solver = BranchCutSolver(heuristics=False)
    result = solve_with(solver, Run(problem, seed=seed, n_jobs=3))
    assert seen
    assert min(seen) >= objective
    assert result.objective == pytest.approx(objective, rel=1e-6)


# ---------------------------------------------------------------------- limits


def assert_bracket(result: SolveResult, best: float) -> None:
    assert result.objective <= best + 1e-9
    assert result.bound >= best - 1e-9


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_limits_end_all_workers(n_jobs: int) -> None:
    """The node limit is met exactly, and every limit leaves a bracket of the optimum."""
    problem = hard_problem()
    best = solve_with(BranchCutSolver(), Run(problem)).objective
    solver = BranchCutSolver(heuristics=False)
    for nodes in (1, 2, 7, 30):
        result = solve_with(solver, Run(problem, limits=Limits(nodes=nodes), n_jobs=n_jobs))
        assert result.status is Status.NODE_LIMIT
        assert result.nodes == nodes
        assert_bracket(result, best)


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_the_clock_ends_all_workers(
    n_jobs: int, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An hour passes during the seventh visit: a bracket of the optimum, and nobody is left."""
    problem = hard_problem()
    best = solve_with(BranchCutSolver(), Run(problem)).objective
    visit, visits = Visitor.visit, itertools.count(1)

    def take_long(self: Visitor, node: Node) -> list[Node]:
        if next(visits) == 7:
            clock.now += 3600.0
        return visit(self, node)

    monkeypatch.setattr(Visitor, "visit", take_long)
    monkeypatch.setattr("marginbn.solvers.branch_cut.visit.PATIENCE", 60.0)
    result = solve_with(
        BranchCutSolver(heuristics=False),
        Run(problem, limits=Limits(time=1800.0), n_jobs=n_jobs),
    )
    assert result.status is Status.TIME_LIMIT
    assert_bracket(result, best)
    assert helpers_left() == []


def test_bounds_are_true_at_every_moment() -> None:
    """Whatever the helpers do, no bound told falls below the optimum, and only one thread tells."""
    problem = hard_problem()
    best = solve_with(BranchCutSolver(), Run(problem)).objective
    tellers, bounds = set(), []

    def hear(point: TracePoint) -> None:
        tellers.add(threading.current_thread())
        bounds.append(point.bound)

    solve_with(BranchCutSolver(heuristics=False), Run(problem, callback=hear, n_jobs=3))
    assert tellers == {MAIN}
    assert len(bounds) > 3
    assert min(bounds) >= best - 1e-9 * abs(best)


def test_a_callback_ends_all_workers(helped: set[threading.Thread]) -> None:
    """A true answer in the middle is an interrupt for everybody."""

    def stop(point: TracePoint) -> bool:
        return bool(helped) and point.gap > 1e-3

    result = solve_with(
        BranchCutSolver(heuristics=False), Run(hard_problem(), callback=stop, n_jobs=2)
    )
    assert result.status is Status.INTERRUPTED
    assert result.bound > result.objective


def test_a_real_signal_ends_all_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C is heard by the caller's thread, and no thread is left behind."""
    visit, sent = Visitor.visit, threading.Event()

    def kill(self: Visitor, node: Node) -> list[Node]:
        if threading.current_thread() is not MAIN:
            os.kill(os.getpid(), signal.SIGINT)
            sent.set()
            while not self.team.is_over:  # with its node open no proof can come first
                time.sleep(0.001)
            return []
        if node.depth > 0:  # there is a sibling for the helper
            sent.wait()
        return visit(self, node)

    monkeypatch.setattr(Visitor, "visit", kill)
    monkeypatch.setattr("marginbn.solvers.branch_cut.visit.PATIENCE", 600.0)
    result = solve_with(BranchCutSolver(heuristics=False), Run(hard_problem(), n_jobs=2))
    assert result.status is Status.INTERRUPTED
    assert result.bound > result.objective
    assert helpers_left() == []


def test_a_helper_that_hangs_does_not_hold_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller leaves after a while; the node of the other stays open in the bound."""
    release, problem = threading.Event(), hard_problem()
    best = solve_with(BranchCutSolver(), Run(problem)).objective
    stuck = hold_helpers(monkeypatch, release)
    monkeypatch.setattr("marginbn.solvers.branch_cut.visit.PATIENCE", 0.1)
    result = solve_with(BranchCutSolver(heuristics=False), Run(problem, n_jobs=2))
    assert stuck
    assert result.status is Status.INTERRUPTED
    assert result.bound >= max(best, stuck[0].bound) - 1e-9
    assert len(helpers_left()) == 1
    let_go(release)
    assert helpers_left() == []


def test_a_failing_helper_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error in another thread is raised by the call, not swallowed."""
    visit = Visitor.visit

    def fail(self: Visitor, node: Node) -> list[Node]:
        if threading.current_thread() is not MAIN:
            raise MemoryError("no room for the programme")
        return visit(self, node)

    monkeypatch.setattr(Visitor, "visit", fail)
    solver, limits = BranchCutSolver(heuristics=False), Limits(time=60.0)
    with pytest.raises(MemoryError, match="programme"):
        solve_with(solver, Run(hard_problem(), limits=limits, n_jobs=2))
    assert helpers_left() == []


# ---------------------------------------------------------------------- checkpoints and memory


def test_a_checkpoint_contains_what_others_are_visiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Saved in the middle with a helper at work: nothing that it holds is lost."""
    problem = hard_problem()
    expected = solve_with(BranchCutSolver(), Run(problem))
    solver = BranchCutSolver(heuristics=False)
    release = threading.Event()
    with monkeypatch.context() as patch:
        held = hold_helpers(patch, release)
        patch.setattr("marginbn.solvers.branch_cut.visit.PATIENCE", 0.1)
        kept = Checkpoint(tmp_path / "c", problem)
        stopped = solve_with(solver, Run(problem, n_jobs=2, checkpoint=kept))
        let_go(release)
    assert stopped.status is Status.INTERRUPTED
    saved = Checkpoint(tmp_path / "c", problem).saved
    assert saved is not None
    bits = saved.search.arrays["allowed"].tolist()
    assert held[0].allowed_bits.tolist() in bits
    again = Checkpoint(tmp_path / "c", problem)
    result = solve_with(solver, Run(problem, n_jobs=2, checkpoint=again))
    assert result.objective == pytest.approx(expected.objective, rel=1e-6)
    assert result.bound >= expected.objective - 1e-9


@pytest.mark.parametrize("heuristics", [True, False])
def test_sittings_with_changing_workers(tmp_path: Path, heuristics: bool) -> None:
    """A few nodes at a time, checkpoints all the time, one to three workers: the optimum."""
    problem = hard_problem()
    best = brute_force(problem)
    solver = BranchCutSolver(heuristics=heuristics)
    bounds = [np.inf]
    for n_jobs in itertools.cycle((2, 3, 1)):
        kept = Checkpoint(tmp_path / "c", problem, interval=0.0)
        limits = Limits(nodes=25)
        result = solve_with(solver, Run(problem, limits=limits, n_jobs=n_jobs, checkpoint=kept))
        assert best - 1e-9 <= result.bound <= bounds[-1]
        bounds.append(result.bound)
        if result.status is Status.OPTIMAL:
            break
    assert len(bounds) > 2
    assert result.objective == pytest.approx(best, rel=1e-6)


def test_every_worker_needs_memory() -> None:
    """A programme each; the margin matrix is shared."""
    shape = BranchCutShape(100, 1000)
    one, three = shape.needs(), shape.needs(3)
    programme = 100 * shape.PER_CANDIDATE + 1000 * shape.PER_ROW
    assert three.least - one.least == 2 * (shape.PER_WORKER + programme)
    assert three.full - three.least == one.full - one.least == 8 * 1000 * 100
    problem = small_margin_problem(0, max_parents=3)
    solver = BranchCutSolver()
    least = solver.needs(problem, 2).least
    assert least > solver.needs(problem).least
    result = solve_structure(problem, "branch_cut", memory_limit=least, n_jobs=2)
    assert result.status is Status.OPTIMAL
