"""Going on from a checkpoint: the tree, the incumbent and the bound are taken over."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from branch_bound_cases import larger_problem, random_problem
from brute_force import brute_force
from marginbn import MaxMarginBNClassifier, Search, load_model, save_model
from marginbn.exceptions import CheckpointWarning, InputError, OptimalityWarning
from marginbn.problem.problem import StructureProblem
from marginbn.solvers import solve_structure
from marginbn.solvers.branch_bound import BranchBoundSolver
from marginbn.solvers.branch_cut import BranchCutSolver
from marginbn.solvers.checkpoint import Checkpoint, Saved
from marginbn.solvers.result import SolveResult, Status, TracePoint
from marginbn.solvers.run import Limits, Run
from marginbn.solvers.solve import Solver, get_solver, solve_with
from problems import random_table, small_linear_problem, small_margin_problem


def solve_in_sittings(
    problem: StructureProblem, solver: Solver, path: Path, limits: Limits, n_jobs: Any = (1,)
) -> list[SolveResult]:
    """Solve a few nodes at a time, each sitting from the checkpoint of the one before."""
    results: list[SolveResult] = []
    workers = itertools.cycle(n_jobs)
    while not results or results[-1].status is not Status.OPTIMAL:
        kept = Checkpoint(path, problem)
        jobs = next(workers)
        results.append(
            solve_with(solver, Run(problem, limits=limits, n_jobs=jobs, checkpoint=kept))
        )
    return results


def assert_monotone(results: list[SolveResult]) -> None:
    """No sitting knows less than the one before, from its first moment on."""
    for before, after in itertools.pairwise(results):
        assert after.objective >= before.objective
        assert after.bound <= before.bound
        assert after.nodes >= before.nodes


@pytest.mark.parametrize("n_jobs", [(1,), (1, 3, 2)], ids=["one worker", "changing workers"])
@pytest.mark.parametrize("heuristics", [True, False])
def test_sittings_of_the_engine_end_at_the_optimum(
    tmp_path: Path, heuristics: bool, n_jobs: tuple[int, ...]
) -> None:
    """The tree is taken over whatever the number of workers."""
    problem, solver = larger_problem(), BranchBoundSolver(heuristics=heuristics)
    expected = solve_with(solver, Run(problem))
    results = solve_in_sittings(problem, solver, tmp_path / "c", Limits(nodes=40), n_jobs)
    assert_monotone(results)
    assert len(results) > 2
    assert results[-1].objective == pytest.approx(expected.objective, rel=1e-6)
    assert results[-1].bound == pytest.approx(expected.bound, rel=2e-6)
    assert results[-1].nodes < 3 * expected.nodes, "the tree was not taken over"


@pytest.mark.parametrize("seed", range(6))
def test_sittings_equal_enumeration(tmp_path: Path, seed: int) -> None:
    """One or two nodes at a time, against brute force, random splits and no heuristics too."""
    rng = np.random.default_rng(900 + seed)
    problem = random_problem(rng, int(rng.integers(2, 5)))
    best = brute_force(problem)
    if best == -np.inf:
        pytest.skip("no structure at all")
    engines: list[Solver] = [
        BranchBoundSolver(heuristics=bool(seed % 2)),
        BranchCutSolver(heuristics=bool(seed % 2)),
    ]
    for engine in engines:
        limits = Limits(nodes=1 + seed % 2)
        path = tmp_path / engine.name
        result = solve_in_sittings(problem, engine, path, limits, (1, 2))[-1]
        assert result.objective == pytest.approx(best, rel=1e-6, abs=1e-6)
        assert result.bound >= best - 1e-9 * max(1.0, abs(best))


def test_the_first_bound_of_a_resumed_solve_is_the_saved_one(tmp_path: Path) -> None:
    problem = larger_problem()
    before = solve_structure(problem, node_limit=40, checkpoint=tmp_path / "c")
    heard: list[TracePoint] = []
    solve_structure(
        problem, node_limit=1, checkpoint=tmp_path / "c", callback=lambda point: heard.append(point)
    )
    known = next(point for point in heard if point.bound <= before.bound)
    assert known.objective >= before.objective
    assert heard.index(known) <= 2


@pytest.mark.parametrize("solver", [BranchBoundSolver(), BranchCutSolver()], ids=lambda s: s.name)
def test_what_was_given_up_is_not_forgotten(tmp_path: Path, solver: Solver) -> None:
    """A wide gap gives up structures above the incumbent; the checkpoint says up to where."""
    problem = small_margin_problem(6, n_rows=60, n_features=5, gamma=2.0)
    kept = Checkpoint(tmp_path / "c", problem)
    stopped = solve_with(solver, Run(problem, limits=Limits(nodes=5, gap=0.1), checkpoint=kept))
    saved = Checkpoint(tmp_path / "c", problem).saved
    assert saved is not None
    assert -np.inf < saved.search.arrays["numbers"][0] <= stopped.bound + 1e-9


def test_a_finished_solve_returns_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = larger_problem()
    first = solve_structure(problem, checkpoint=tmp_path / "c")
    monkeypatch.setattr(BranchBoundSolver, "run", None)
    again = solve_structure(problem, checkpoint=tmp_path / "c")
    assert again.status is Status.OPTIMAL
    assert (again.objective, again.bound, again.nodes) == (
        first.objective,
        first.bound,
        first.nodes,
    )
    assert again.solver == "branch_bound"


def test_a_tighter_gap_starts_a_new_tree_but_keeps_what_is_known(tmp_path: Path) -> None:
    """What was given up at a wide gap cannot be taken back; incumbent and bound stay."""
    problem = larger_problem()
    wide = solve_structure(problem, gap_tolerance=0.2, checkpoint=tmp_path / "c")
    expected = solve_structure(problem)
    with pytest.warns(CheckpointWarning, match="wider gap_tolerance.*starts a new tree"):
        result = solve_with(
            BranchBoundSolver(heuristics=False),
            Run(problem, checkpoint=gave_up(tmp_path / "c", problem, wide.bound)),
        )
    assert result.objective == pytest.approx(expected.objective, rel=1e-6)
    assert result.bound <= wide.bound


def gave_up(path: Path, problem: StructureProblem, floor: float) -> Checkpoint:
    """The checkpoint of a search that has given up structures up to ``floor``."""
    kept = Checkpoint(path, problem)
    assert kept.saved is not None
    arrays = dict(kept.saved.search.arrays)
    arrays["numbers"] = np.array([floor, arrays["numbers"][1]])
    kept.saved = with_tree(kept.saved, arrays)
    return kept


def with_tree(saved: Saved, arrays: dict[str, Any]) -> Saved:
    return replace(saved, search=replace(saved.search, arrays=arrays))


@pytest.mark.parametrize("solver", [BranchBoundSolver(), BranchCutSolver()], ids=lambda s: s.name)
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("bound", lambda a: a * np.nan),
        ("bound", lambda a: a[:-1]),
        ("boxes", lambda a: a[:, :-1]),
        ("boxes", lambda a: a[:-1]),
        ("boxes", lambda a: a.astype(np.int64)),
        ("numbers", lambda a: a[:1]),
        ("numbers", lambda a: a * np.nan),
    ],
)
def test_impossible_trees_are_left_aside(
    tmp_path: Path, solver: Solver, name: str, change: Any
) -> None:
    """A hostile file with a right checksum reaches no kernel; the search starts a new tree."""
    problem = small_margin_problem(6, n_rows=60, n_features=5, gamma=2.0)
    expected = solve_with(solver, Run(problem))
    kept = Checkpoint(tmp_path / "c", problem)
    opened = solve_with(solver, Run(problem, limits=Limits(nodes=2), checkpoint=kept))
    assert opened.status is Status.NODE_LIMIT
    kept = Checkpoint(tmp_path / "c", problem)
    assert kept.saved is not None
    arrays = dict(kept.saved.search.arrays)
    arrays[name] = change(arrays[name])
    kept.saved = with_tree(kept.saved, arrays)
    with pytest.warns(CheckpointWarning, match="tree cannot be used"):
        result = solve_with(solver, Run(problem, checkpoint=kept))
    assert result.objective == pytest.approx(expected.objective, rel=1e-6)


@pytest.mark.parametrize("solver", [BranchBoundSolver(), BranchCutSolver()], ids=lambda s: s.name)
def test_boxes_of_any_bits_are_harmless(tmp_path: Path, solver: Solver) -> None:
    """Random boxes and bounds may hide structures, but never make a kernel fail."""
    problem = small_margin_problem(6, n_rows=60, n_features=5, gamma=2.0)
    solve_with(
        solver, Run(problem, limits=Limits(nodes=2), checkpoint=Checkpoint(tmp_path / "c", problem))
    )
    for seed in range(20):
        rng = np.random.default_rng(seed)
        kept = Checkpoint(tmp_path / "c", problem)
        assert kept.saved is not None
        arrays = dict(kept.saved.search.arrays)
        arrays["boxes"] = rng.integers(0, 256, arrays["boxes"].shape, dtype=np.uint8)
        kept.saved = with_tree(kept.saved, arrays)
        kept.path = str(tmp_path / f"elsewhere {seed}")
        result = solve_with(solver, Run(problem, checkpoint=kept))
        assert result.bound >= result.objective


@pytest.mark.parametrize("name", ["highs", "dp"])
def test_solvers_without_a_tree_keep_incumbent_and_bound(tmp_path: Path, name: str) -> None:
    """What they knew is the start of the next sitting, and a tree of others is kept for them."""
    problem = small_linear_problem(0) if name == "dp" else small_margin_problem(0)
    solver = get_solver(name)
    expected = solve_with(solver, Run(problem))
    path = tmp_path / "c"
    opening = Checkpoint(path, problem)
    engine = BranchCutSolver(heuristics=False)
    solve_with(engine, Run(problem, limits=Limits(nodes=1), checkpoint=opening))
    before = Checkpoint(path, problem).saved
    assert before is not None
    stopped = solve_with(
        solver, Run(problem, callback=lambda point: True, checkpoint=Checkpoint(path, problem))
    )
    saved = Checkpoint(path, problem).saved
    assert saved is not None
    assert saved.bound == stopped.bound <= before.bound
    assert set(saved.search.arrays) == set(before.search.arrays)
    again = solve_structure(problem, name, checkpoint=path)
    assert again.is_optimal
    assert again.objective == pytest.approx(expected.objective, rel=1e-6)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_saves_the_search(tmp_path: Path, n_jobs: int) -> None:
    problem = larger_problem()
    expected = solve_structure(problem)

    def interrupt(point: TracePoint) -> bool:
        if point.bound < 1.05 * expected.objective:
            raise KeyboardInterrupt
        return False

    stopped = solve_structure(problem, checkpoint=tmp_path / "c", callback=interrupt, n_jobs=n_jobs)
    assert stopped.status is Status.INTERRUPTED
    saved = Checkpoint(tmp_path / "c", problem).saved
    assert saved is not None
    assert saved.bound == stopped.bound
    assert len(saved.search.arrays["bound"]) > 0
    result = solve_structure(problem, checkpoint=tmp_path / "c")
    assert result.objective == pytest.approx(expected.objective, rel=1e-6)


@pytest.mark.parametrize(
    "solver",
    [BranchBoundSolver(heuristics=False), BranchCutSolver(heuristics=False)],
    ids=lambda solver: solver.name,
)
def test_an_interrupt_while_the_best_structure_is_handed_over(
    tmp_path: Path, solver: Solver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its leaf is no longer in the tree, so it must reach the run all the same."""
    problem = small_margin_problem(4, n_rows=25, n_features=4)
    best = solve_with(solver, Run(problem)).objective
    offer, interrupts = Run.offer, []

    def interrupt_once(self: Run, selection: Any) -> bool:
        if not interrupts and problem.evaluate(selection) >= best:
            interrupts.append(selection)
            raise KeyboardInterrupt
        return offer(self, selection)

    monkeypatch.setattr(Run, "offer", interrupt_once)
    kept = Checkpoint(tmp_path / "c", problem)
    stopped = solve_with(solver, Run(problem, checkpoint=kept))
    assert len(interrupts) == 1
    assert stopped.objective == best
    again = Checkpoint(tmp_path / "c", problem)
    result = solve_with(solver, Run(problem, checkpoint=again))
    assert result.objective == best <= result.bound


def test_saving_changes_nothing_in_the_search(tmp_path: Path) -> None:
    """One worker and a node limit: the same run with checkpoints all the time as without."""
    problem = larger_problem()
    plain = solve_with(BranchBoundSolver(), Run(problem, limits=Limits(nodes=150), seed=5))
    kept = Checkpoint(tmp_path / "c", problem, interval=0.0)
    saving = solve_with(
        BranchBoundSolver(), Run(problem, limits=Limits(nodes=150), seed=5, checkpoint=kept)
    )
    assert [(p.objective, p.bound) for p in saving.trace] == [
        (p.objective, p.bound) for p in plain.trace
    ]
    assert saving.nodes == plain.nodes


# ---------------------------------------------------------------------- classifiers


def test_a_classifier_goes_on_and_its_file_is_not_part_of_the_model(tmp_path: Path) -> None:
    """fit, limit, fit again: the second one starts from the bound of the first."""
    rng = np.random.default_rng(2)
    table = random_table(rng, 150, 9, 3)
    X, y = np.array(table.rows)[:, 1:].astype(str), np.array(table.rows)[:, 0]
    path = tmp_path / "c"

    def stop(point: TracePoint) -> bool:
        return len(heard) > 3 or heard.append(point) is not None

    heard: list[TracePoint] = []
    first = MaxMarginBNClassifier(gamma=1.0, search=Search(checkpoint=path, callback=stop))
    with pytest.warns(OptimalityWarning):
        first.fit(X, y)
    second = MaxMarginBNClassifier(
        gamma=1.0, search=Search(checkpoint=path, gap_tolerance=1e-6)
    ).fit(X, y)
    assert second.status_ == "optimal"
    assert second.bound_ <= first.bound_
    assert second.objective_ >= first.objective_
    save_model(second, tmp_path / "model.json")
    assert load_model(tmp_path / "model.json").search is None
    with pytest.raises(InputError, match="another problem"):
        MaxMarginBNClassifier(gamma=2.0, search=Search(checkpoint=path)).fit(X, y)
    with pytest.raises(InputError, match="checkpoint must be a path or None"):
        MaxMarginBNClassifier(search=Search(checkpoint=3)).fit(X, y)
