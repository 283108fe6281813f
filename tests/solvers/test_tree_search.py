"""The one search loop, with a tree of a few numbers in place of an engine."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from marginbn.exceptions import CheckpointWarning
from marginbn.problem.candidates import enumerate_candidates
from marginbn.problem.encoded import Variable
from marginbn.problem.problem import StructureProblem
from marginbn.problem.structure import is_acyclic
from marginbn.solvers.checkpoint import Checkpoint, OpenNodes, SearchState
from marginbn.solvers.result import SolveResult, Status
from marginbn.solvers.run import Limits, Run, Stopped
from marginbn.solvers.solve import solve_with
from marginbn.solvers.tree_search import SearchTree, TreeSolver, saved_tree


def selections(problem: StructureProblem) -> list[tuple[float, tuple[int, ...]]]:
    """Every acyclic selection with its value, the best first."""
    candidates = problem.candidates
    found = [
        (problem.evaluate(chosen), chosen)
        for chosen in itertools.product(*(candidates.group(i) for i in range(problem.n_variables)))
        if is_acyclic([candidates.parents[k] for k in chosen])
    ]
    return sorted(found, reverse=True)


class ListTree(SearchTree):
    """All structures in a list, in halves; a node is a slice of it.

    The bound of a slice is a little above its first and best value.
    """

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.everything = selections(run.problem)
        self.open_slices: list[tuple[int, int]] = []
        self.visited = 0
        self.log: list[str] = []
        self.fate: Status | BaseException | None = None
        self.when = 0

    def bound_of(self, node: tuple[int, int]) -> float:
        first, last = node
        return self.everything[first][0] + 0.1 * (last - first - 1)

    @property
    def nodes(self) -> int:
        return self.visited

    @property
    def bound(self) -> float:
        bounds = [self.bound_of(node) for node in self.open_slices]
        return max([self.run.objective, *bounds])

    def open(self) -> None:
        if self.when < 0:
            self._meet()
        self.open_slices = [(0, len(self.everything))]
        self.set_open()

    def _meet(self) -> Status:
        if isinstance(self.fate, BaseException):
            raise self.fate
        assert self.fate is not None
        return self.fate

    @contextmanager
    def helpers(self) -> Iterator[None]:
        self.log.append("begin work")
        try:
            yield
        finally:
            self.log.append("end work")

    def advance(self) -> Status | None:
        self.log.append("advance")
        if self.fate is not None and self.visited == self.when:
            return self._meet()
        if not self.open_slices:
            return Status.OPTIMAL
        node = max(self.open_slices, key=self.bound_of)
        self.visited += 1
        self.open_slices.remove(node)
        middle = sum(node) // 2
        if middle == node[0]:
            self.run.offer(self.everything[middle][1])
        else:
            self.open_slices += [(node[0], middle), (middle, node[1])]
        return None

    def hand_over(self) -> bool:
        self.log.append("report")
        return self.visited % 2 == 1

    def improve(self, improved: bool) -> None:
        self.log.append(f"improve {improved}")

    def snapshot(self) -> SearchState:
        boxes = np.array(self.open_slices, dtype=np.uint8).reshape(-1, 2)
        bound = np.array([self.bound_of(node) for node in self.open_slices])
        nodes = OpenNodes(boxes, bound, np.array([-math.inf, math.inf]))
        return SearchState("list", self.visited, nodes.arrays)

    def interrupt(self) -> None:
        self.log.append("interrupt")


def tiny() -> StructureProblem:
    """Two features gain 1 from one another: both together would be a cycle."""
    candidates = enumerate_candidates(3, 1, class_restricted=False)
    linear = np.zeros(candidates.n_candidates)
    linear[[candidates.index(1, (2,)), candidates.index(2, (1,))]] = 1.0
    variables = tuple(Variable(name, ("no", "yes")) for name in ("class", "x", "y"))
    return StructureProblem(candidates, linear, variables)


def run_list(
    problem: StructureProblem,
    limits: Limits | None = None,
    *,
    fate: Status | BaseException | None = None,
    when: int = 0,
    checkpoint: Checkpoint | None = None,
) -> tuple[SolveResult, ListTree]:
    solver = ListSolver()
    solver.fate, solver.when = fate, when
    return solve_with(solver, Run(problem, limits or Limits(), checkpoint=checkpoint)), solver.made


class ListSolver(TreeSolver):
    """Makes a tree that ends as it is told."""

    name = "list"
    fate: Status | BaseException | None
    when: int
    made: ListTree

    def tree(self, run: Run) -> ListTree:
        self.made = ListTree(run)
        self.made.fate, self.made.when = self.fate, self.when
        return self.made


def test_a_tree_is_searched_to_its_end() -> None:
    """The optimum of a list of structures, with every portion between two reports."""
    problem = tiny()
    result, tree = run_list(problem, Limits(gap=0.0))
    assert result.status is Status.OPTIMAL
    assert result.objective == result.bound == 1.0
    assert result.nodes == tree.visited > 3
    assert result.solver == "list"
    assert tree.log[:5] == ["begin work", "report", "improve False", "advance", "report"]
    assert tree.log[5] == "improve True", "what the report says is passed on"
    assert tree.log[-2:] == ["end work", "report"], "the last report comes when nobody works"


def test_nothing_is_done_when_the_first_bound_is_good_enough() -> None:
    result, tree = run_list(tiny(), Limits(gap=1e3))
    assert result.status is Status.GAP_LIMIT
    assert result.nodes == 0
    assert "advance" not in tree.log


@pytest.mark.parametrize(
    ("fate", "status"),
    [
        (Status.NODE_LIMIT, Status.NODE_LIMIT),
        (Status.MEMORY_LIMIT, Status.MEMORY_LIMIT),
        (Status.TIME_LIMIT, Status.TIME_LIMIT),
        (KeyboardInterrupt(), Status.INTERRUPTED),
        (Stopped(Status.TIME_LIMIT), Status.TIME_LIMIT),
    ],
    ids=str,
)
@pytest.mark.parametrize("when", [0, 2])
def test_every_ending_is_a_normal_one(
    fate: Status | BaseException, status: Status, when: int
) -> None:
    """The result has the nodes and the bound of that moment, true for every structure."""
    result, tree = run_list(tiny(), fate=fate, when=when)
    assert result.status is status
    assert result.nodes == when
    assert tree.everything[0][0] == 1.0 <= result.bound == min(2.0, tree.bound)
    assert tree.log[-2:] == ["end work", "report"]


def test_an_interrupt_that_the_interpreter_wraps_is_an_interrupt() -> None:
    """Compiled code that returns a result and an exception at once is no error of ours."""
    wrapped = SystemError("returned a result with an exception set")
    wrapped.__cause__ = SystemError("returned a result with an exception set")
    wrapped.__cause__.__cause__ = KeyboardInterrupt()
    for fate in (wrapped, wrapped.__cause__):
        assert run_list(tiny(), fate=fate, when=1)[0].status is Status.INTERRUPTED
    with pytest.raises(SystemError, match="something else"):
        run_list(tiny(), fate=SystemError("something else"))


def test_other_errors_are_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        run_list(tiny(), fate=ZeroDivisionError(), when=1)


def test_time_is_watched_between_portions() -> None:
    result, tree = run_list(tiny(), Limits(time=1e-9))
    assert result.status is Status.TIME_LIMIT
    assert "advance" not in tree.log


def test_how_work_ends() -> None:
    run = Run(tiny())
    with run.ending():
        run.stopped = Status.NODE_LIMIT
    assert run.stopped is Status.NODE_LIMIT
    with run.ending():
        raise KeyboardInterrupt
    assert run.stopped is Status.INTERRUPTED
    expired = Run(tiny(), Limits(time=1e-9))
    assert expired.remaining() == 0.0
    with expired.ending():
        expired.poll()
    assert expired.stopped is Status.TIME_LIMIT


# ---------------------------------------------------------------------- checkpoints


def test_the_tree_is_saved_once_it_is_open(tmp_path: Path) -> None:
    """Before, the tree of an earlier call stays as it is."""
    problem = tiny()
    kept = Checkpoint(tmp_path / "c", problem)
    run_list(problem, fate=KeyboardInterrupt(), when=2, checkpoint=kept)
    saved = Checkpoint(tmp_path / "c", problem).saved
    assert saved is not None
    assert saved.search.nodes == 2
    assert len(saved.search.arrays["boxes"]) == 3
    early = Checkpoint(tmp_path / "c", problem)
    result, _ = run_list(problem, fate=KeyboardInterrupt(), when=-1, checkpoint=early)
    assert result.status is Status.INTERRUPTED
    again = Checkpoint(tmp_path / "c", problem).saved
    assert again is not None
    assert again.search.nodes == 2
    assert (again.search.arrays["boxes"] == saved.search.arrays["boxes"]).all()


def test_a_saved_tree_is_used_only_if_it_fits(tmp_path: Path) -> None:
    """Of the same solver, readable, and searched with a gap at most as wide."""
    problem = tiny()
    kept = Checkpoint(tmp_path / "c", problem)
    run_list(problem, fate=Status.NODE_LIMIT, when=2, checkpoint=kept)
    run = Run(problem, checkpoint=Checkpoint(tmp_path / "c", problem))
    assert run.saved is not None
    run.offer(run.saved.selection)

    found = saved_tree(run, "list", 2, 0.0)
    assert found is not None
    assert len(found[0].bound) == 3
    assert found[1] == 2
    assert saved_tree(run, "another", 2, 0.0) is None
    assert saved_tree(Run(problem), "list", 2, 0.0) is None
    with pytest.warns(CheckpointWarning, match="'boxes' does not fit"):
        assert saved_tree(run, "list", 3, 0.0) is None
    run.saved.search.arrays["numbers"][0] = run.objective + 1.0
    with pytest.warns(CheckpointWarning, match="wider gap_tolerance"):
        assert saved_tree(run, "list", 2, 0.0) is None
