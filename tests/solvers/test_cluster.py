"""One search over many processes: same optimum, bounds that hold, nothing lost with a worker."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from marginbn import (
    EncodedData,
    InputError,
    MaxMarginBNClassifierCV,
    OptimalityWarning,
    Search,
    StructureProblem,
    Variable,
    enumerate_candidates,
    margin_problem,
    solve_structure,
)
from marginbn.problem.candidates import ClassArcs
from marginbn.solvers import cluster, subtree
from marginbn.solvers.branch_bound import BranchBoundSolver
from marginbn.solvers.branch_bound.kernels.branching import new_pseudocosts, observe, recent_gain
from marginbn.solvers.checkpoint import OpenNodes
from marginbn.solvers.result import Status
from marginbn.solvers.run import Limits, Run, Stopped
from marginbn.solvers.subtree import Task, solve_part
from marginbn.solvers.tree_search import begin

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")


def problem_of(
    n_features: int = 9, seed: int = 1, class_arcs: ClassArcs = "free"
) -> StructureProblem:
    """Noise, so that there is a tree."""
    rng = np.random.default_rng(seed)
    arities = [3, *[2] * n_features]
    codes = np.column_stack([rng.integers(0, a, 70) for a in arities])
    names = [Variable(f"v{i}", ("a", "b", "c")[:a]) for i, a in enumerate(arities)]
    data = EncodedData(codes, np.ones(70), tuple(names))
    candidates = enumerate_candidates(n_features + 1, 2, class_arcs=class_arcs)
    return margin_problem(data, candidates, gamma=1.0)


@pytest.fixture(scope="module")
def problem() -> StructureProblem:
    return problem_of()


@pytest.fixture(scope="module")
def optimum(problem: StructureProblem) -> float:
    return solve_structure(problem).objective


@pytest.fixture(scope="module")
def open_nodes(problem: StructureProblem) -> OpenNodes:
    """The tree after a few nodes."""
    run = Run(problem, Limits(nodes=12))
    begin(run)
    BranchBoundSolver().run(run)
    return OpenNodes(**run.snapshot().arrays)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Two workers as threads of this process: quick to start. A worker makes its own connection the
    usual one of its process, which must not outlive it.
    """
    settings = {"processes": False, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        dask.config.set(scheduler="threads"),
        distributed.LocalCluster(n_workers=2, **settings) as made,
        distributed.Client(made, set_as_default=False) as client,
    ):
        yield client


def part_of(nodes: OpenNodes, worker: str = "w", late: float = math.inf) -> cluster.Part:
    """Nodes that a worker has."""
    return cluster.Part(f"{worker} 0", worker, nodes, 0.0, late)


# ---------------------------------------------------------------------- parts


def test_the_bound_of_a_part_is_none_of_the_whole(
    problem: StructureProblem, optimum: float, open_nodes: OpenNodes
) -> None:
    """The local search may find what lies in another part and is better than anything here."""
    nodes = replace(open_nodes.some(np.arange(1)), bound=np.array([optimum - 1.0]))
    nodes = replace(nodes, numbers=np.array([-np.inf, optimum + 1.0]))
    run = Run(problem)
    begin(run)
    search = subtree.PartSearch(run, BranchBoundSolver())
    search.take(run, nodes)
    search.report()
    assert run.offer(solve_structure(problem).selection)
    search._announce_incumbent()
    assert search.is_closed


def test_pseudocosts_of_all_workers_add_up(
    problem: StructureProblem, open_nodes: OpenNodes
) -> None:
    """A part begins with the sums of all, and adds its own; the running mean stays one's own."""
    run = Run(problem)
    begin(run)
    solver = BranchBoundSolver()
    coordinator = cluster.Coordinator(run, solver, None)
    n = problem.n_variables - 1
    first, second = new_pseudocosts(n), new_pseudocosts(n)
    observe(first, n, 3, 0, 2.0, 4.0)
    observe(second, n, 3, 0, 1.0, 1.0)
    observe(second, n, 9, 1, 5.0, 6.0)
    for added in (first, second):
        answer = solve_part(solver, problem, Task(open_nodes.arrays, run.selection, 1e-9, 1e-6))
        coordinator._accept(part_of(open_nodes), replace(answer, pseudocosts=added))
    task = replace(coordinator._task(part_of(open_nodes), open_nodes, False), seconds=1e-9)
    assert task.pseudocosts[3, 0].tolist() == [3.0, 5.0, 2.0]
    search = subtree.PartSearch(run, solver)
    search.main.work.gains[subtree.MEAN, 0, 0] = 7.0
    search.take(run, open_nodes, task.pseudocosts)
    assert recent_gain(search.main.work.gains) == 7.0
    expected = first + second
    expected[subtree.MEAN] = search.main.work.gains[subtree.MEAN]
    np.testing.assert_array_equal(search.main.work.gains, expected)
    many = 1e6 * task.pseudocosts
    made = solve_part(solver, problem, replace(task, seconds=30.0, pseudocosts=many))
    assert 0 < made.pseudocosts[: subtree.MEAN, :, 2].sum() < 1e6


def test_everybody_has_as_many_nodes(problem: StructureProblem, open_nodes: OpenNodes) -> None:
    """What waits, divided by those who have nothing; good ones for each."""
    coordinator = cluster.Coordinator(Run(problem), BranchBoundSolver(), None)
    coordinator.waiting.put(open_nodes)
    half = -(-len(open_nodes.bound) // 2)
    part = coordinator._nodes_for("w 0", 2)
    assert part is not None
    assert len(part.bound) == half
    best = np.sort(open_nodes.bound)[::-1]
    assert part.bound.max() == best[0]
    assert coordinator.waiting.bound == best[1]


def test_a_part_stays_with_its_worker(problem: StructureProblem, open_nodes: OpenNodes) -> None:
    """The turns of one slot are one search; what was asked for comes back and is there no more."""
    solver = BranchBoundSolver(heuristics=False)
    start = solve_structure(problem, node_limit=1).selection
    nothing = open_nodes.some(np.arange(0)).arrays
    subtree.get_ready(solver, problem, None)
    task = Task(open_nodes.arrays, start, 1e-9, 1e-6, slot="s", is_copied=True)
    first = solve_part(solver, problem, task)
    whole = OpenNodes(**first.arrays)  # type: ignore[arg-type]
    assert (len(whole.bound), whole.bound.max()) == (first.count, first.bound)
    turn = replace(task, arrays=nothing, goes_on=True, is_copied=False, surplus=3)
    given = solve_part(solver, problem, turn)
    assert len(given.arrays["bound"]) == 3
    assert given.count == first.count - 3
    assert given.bound == first.bound
    back = replace(turn, arrays=given.arrays, surplus=0)
    assert solve_part(solver, problem, back).count == first.count
    with pytest.raises(subtree.PartLostError):
        solve_part(solver, problem, replace(turn, slot="another"))
    last = solve_part(solver, problem, replace(turn, seconds=60.0))
    assert (last.count, last.bound) == (0, -math.inf)
    floor = float(last.arrays["numbers"][0])
    assert max(floor, last.objective) >= solve_structure(problem).objective - 1e-6


def test_a_copy_has_the_bound_of_its_part(problem: StructureProblem, open_nodes: OpenNodes) -> None:
    """What a worker has proved since stays proved when the worker is lost."""
    run = Run(problem)
    begin(run)
    coordinator = cluster.Coordinator(run, BranchBoundSolver(), None)
    part = part_of(open_nodes)
    low = float(np.median(open_nodes.bound))
    assert run.selection is not None
    nothing = open_nodes.some(np.arange(0)).arrays
    answer = subtree.Answer(
        nothing, run.selection, run.objective, 5, subtree.stamp(problem), None, 9, low
    )
    coordinator._accept(part, answer)
    assert coordinator.held == {"w 0": part}
    assert (part.count, coordinator.waiting.count) == (9, 0)
    assert coordinator.bound == max(low, open_nodes.floor) + coordinator._constant
    saved = coordinator.snapshot().arrays["bound"]
    np.testing.assert_array_equal(saved, np.minimum(open_nodes.bound, low))
    coordinator._take_back_late()  # its worker is gone
    assert not coordinator.held
    assert coordinator.waiting.bound == low


def test_an_engine_made_in_advance_works_for_every_part(
    problem: StructureProblem, open_nodes: OpenNodes
) -> None:
    """It is the one that parts use, and what it copies looks at the clock of the present part."""
    solver = BranchBoundSolver(rows="groups")
    subtree.get_ready(solver, problem, None)
    kind, _, made = subtree._KEPT[""]
    assert kind == subtree.stamp(problem)
    start = solve_structure(problem, node_limit=1).selection
    answer = solve_part(solver, problem, Task(open_nodes.arrays, start, 60.0, 1e-6))
    assert [kept[2] for kept in subtree._KEPT.values()] == [made]
    assert answer.nodes > 0
    made.run = Run(problem)
    made.rows._poll()  # type: ignore[attr-defined]
    made.run.stop_requested = True
    with pytest.raises(Stopped):
        made.rows._poll()  # type: ignore[attr-defined]


# ---------------------------------------------------------------------- the cluster


@pytest.mark.parametrize("class_arcs", ["free", "all"])
def test_two_workers_find_the_optimum(
    class_arcs: ClassArcs, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "RAMP_UP", 4)
    monkeypatch.setattr(cluster, "FIRST_TURN", 0.1)
    problem = problem_of(class_arcs=class_arcs)
    optimum = solve_structure(problem).objective
    result = solve_structure(problem, Search(dask=client))
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(optimum, rel=1e-6)
    assert result.bound >= optimum - 1e-9
    assert class_arcs == "free" or all(0 in own for own in result.structure.parents[1:])
    assert result.nodes > 8 or class_arcs == "all"


def test_a_stopped_search_goes_on_without_a_cluster(
    problem: StructureProblem,
    optimum: float,
    client: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The checkpoint of the whole is an ordinary one."""
    monkeypatch.setattr(cluster, "RAMP_UP", 4)
    monkeypatch.setattr(cluster, "FIRST_TURN", 0.05)
    path = tmp_path / "tree"
    first = solve_structure(problem, Search(dask=client), node_limit=20, checkpoint=path)
    assert first.bound >= optimum - 1e-9
    alone = solve_structure(problem, checkpoint=path)
    assert alone.objective == pytest.approx(optimum, rel=1e-6)
    assert alone.nodes >= first.nodes
    again = solve_structure(problem, Search(dask=client), checkpoint=path)
    assert again.status is Status.OPTIMAL


class Lost:
    """A part whose worker is gone."""

    status = "cancelled"


class Broken:
    """A part in which something went wrong."""

    status = "error"

    def exception(self) -> Exception:
        return ZeroDivisionError("in the worker")


def test_a_lost_part_waits_again(problem: StructureProblem, open_nodes: OpenNodes) -> None:
    """Its bounds never stop to count; what went wrong inside a part is raised."""
    run = Run(problem)
    begin(run)
    coordinator = cluster.Coordinator(run, BranchBoundSolver(), None)
    coordinator.waiting.put(open_nodes)
    before, count = coordinator.bound, coordinator.waiting.count
    part = coordinator.waiting.take(1)
    assert part is not None
    coordinator.out[Lost] = part_of(part)
    assert coordinator.bound == before
    assert len(coordinator.snapshot().arrays["bound"]) == count
    coordinator._lose(Lost(), coordinator.out.pop(Lost))
    assert (coordinator.bound, coordinator.waiting.count) == (before, count)
    with pytest.raises(ZeroDivisionError):
        coordinator._lose(Broken(), part_of(part))


class Pending:
    """A part without an answer."""

    status = "pending"

    def __init__(self, status: str = "pending") -> None:
        self.status = status


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_late_part_is_handed_out_again(
    problem: StructureProblem, open_nodes: OpenNodes, is_gone: bool
) -> None:
    """Its worker gets nothing while it owes an answer, which is ignored then; the bound holds."""
    run = Run(problem)
    begin(run)
    coordinator = cluster.Coordinator(run, BranchBoundSolver(), None)
    coordinator.waiting.put(open_nodes)
    before, count = coordinator.bound, coordinator.waiting.count
    part = coordinator.waiting.take(2)
    assert part is not None
    coordinator.checks = {} if is_gone else {"w": None}
    future = Pending()
    coordinator.out[future] = part_of(part, late=math.inf if is_gone else 0.0)
    with nullcontext() if is_gone else pytest.warns(OptimalityWarning, match="worker w does not"):
        coordinator._take_back_late()
    assert (coordinator.bound, coordinator.waiting.count) == (before, count)
    assert not coordinator.out
    assert coordinator.late == ({} if is_gone else {future: "w 0"})
    assert len(coordinator.losses) == is_gone
    future.status = "finished"
    coordinator._take_back_late()
    assert not coordinator.late
    assert coordinator.waiting.count == count


def test_a_first_part_has_time_to_compile_the_engine(
    problem: StructureProblem, open_nodes: OpenNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once a worker has answered it is late sooner."""
    run = Run(problem)
    begin(run)
    answer = solve_part(
        BranchBoundSolver(), problem, Task(open_nodes.arrays, run.selection, 1e-9, 1e-6)
    )
    monkeypatch.setattr(cluster.time, "monotonic", lambda: 0.0)
    client = SimpleNamespace(submit=lambda *_, **__: Pending())
    coordinator = cluster.Coordinator(run, BranchBoundSolver(), client)
    monkeypatch.setattr(coordinator, "_check_workers", lambda: {"w": 1})
    monkeypatch.setattr(coordinator, "_scattered", lambda _: problem)
    late = []
    for _ in range(2):
        coordinator.waiting.put(open_nodes)
        coordinator._hand_out()
        _, part = coordinator.out.popitem()
        late.append(part.late)
        coordinator._accept(part, answer)
    most = cluster.LATE_TURNS * cluster.LONGEST_TURN
    assert cluster.LOADING < late[0] < cluster.LOADING + most
    assert cluster.LATE_SECONDS < late[1] < cluster.LATE_SECONDS + most < cluster.LOADING


def test_an_answer_of_another_engine_is_refused_once_by_name(
    problem: StructureProblem, open_nodes: OpenNodes
) -> None:
    """Its part waits again with the bounds that it had."""
    run = Run(problem)
    begin(run)
    coordinator = cluster.Coordinator(run, BranchBoundSolver(), None)
    part = part_of(open_nodes, "tcp://there:1")
    answer = solve_part(
        BranchBoundSolver(), problem, Task(open_nodes.arrays, run.selection, 1e-9, 1e-6)
    )
    assert answer.stamp == subtree.stamp(problem) != subtree.stamp(problem_of(6))
    wrong = replace(answer, stamp="marginbn 9.9", arrays={}, nodes=7)
    with pytest.warns(OptimalityWarning, match=r"tcp://there:1.*marginbn 9\.9"):
        coordinator._accept(part, wrong)
    coordinator._accept(part, wrong)
    assert run.nodes == 0
    assert coordinator.waiting.bound == open_nodes.bound.max()
    assert not coordinator.answered
    coordinator._accept(part, answer)
    assert coordinator.answered == {"tcp://there:1"}


def test_losses_end_a_search_by_their_rate(
    problem: StructureProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty in all are none too many; more than twenty in ten minutes are."""
    now = [0.0]
    monkeypatch.setattr(cluster.time, "monotonic", lambda: now[0])
    coordinator = cluster.Coordinator(Run(problem), BranchBoundSolver(), None)
    for _ in range(100):
        now[0] += 40.0
        coordinator._count_loss()
    for _ in range(cluster.MOST_LOSSES - 15):
        coordinator._count_loss()
    with pytest.warns(OptimalityWarning, match="more than 20"), pytest.raises(Stopped):
        coordinator._count_loss()


def test_what_is_wrong_is_told(
    problem: StructureProblem, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "PATIENCE", 0.2)
    with pytest.raises(InputError, match="dask must be an address"):
        solve_structure(problem, Search(dask=7))
    with pytest.raises(InputError, match="'branch_bound'"):
        solve_structure(problem, Search("highs", dask=client))
    with pytest.raises(InputError, match="certificate must be None"):
        solve_structure(problem, Search(dask=client), certificate="x")
    with pytest.raises(InputError, match="no scheduler answers"):
        solve_structure(problem, Search(dask="tcp://127.0.0.1:9"))


def test_what_distributed_logs_while_a_client_is_closed_is_not_shown(
    problem: StructureProblem, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Closing:
        """A client of a scheduler that is gone; it logs pages then."""

        scheduler = SimpleNamespace(ncores=None)

        def __init__(self, *_: Any, **__: Any) -> None:
            pass

        def __enter__(self) -> Closing:
            return self

        def __exit__(self, *_: Any) -> None:
            logging.getLogger("distributed.client").error("Failed to reconnect")

        def sync(self, *_: Any, **__: Any) -> None:
            raise TimeoutError

    monkeypatch.setattr(distributed, "Client", Closing)
    with pytest.warns(OptimalityWarning, match="scheduler does not answer"):
        result = solve_structure(problem, Search(dask="tcp://there:1"))
    assert result.status is Status.INTERRUPTED
    assert not caplog.records


def test_classifiers_validate_and_search_on_a_cluster(client: Any) -> None:
    """Scores are those of this process: what ends the searches is their work."""
    data = problem_of(6).margins.data  # type: ignore[union-attr]
    X, y = data.codes[:, 1:], data.codes[:, 0]
    settings: dict[str, Any] = {
        "gammas": (0.5, 1.0),
        "max_parents": (1, 2),
        "cv": 2,
        "time_limit": None,
        "column_kinds": "categorical",
    }
    found = MaxMarginBNClassifierCV(search=Search(dask=client), **settings).fit(X, y)
    usual = MaxMarginBNClassifierCV(**settings).fit(X, y)
    for name, values in usual.cv_results_.items():
        np.testing.assert_array_equal(found.cv_results_[name], values, err_msg=name)
    assert found.objective_ == pytest.approx(usual.objective_, rel=1e-6)
