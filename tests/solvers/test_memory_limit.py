"""Limits on memory: told before, divided sensibly, and a smaller store instead of a crash."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest

from branch_bound_cases import larger_problem
from marginbn import GenerativeBNClassifier, MaxMarginBNClassifier, Search
from marginbn.exceptions import InputError, ProblemTooLargeError
from marginbn.problem.candidates import enumerate_candidates
from marginbn.problem.problem import margin_problem
from marginbn.problem.scores import get_local_score
from marginbn.scoring.local_scores import linear_problem
from marginbn.solvers import memory, solve_structure
from marginbn.solvers.branch_bound import BranchBoundSolver, workers
from marginbn.solvers.branch_bound import arrays as frank_wolfe
from marginbn.solvers.branch_bound.kernels.node_pool import new_pool
from marginbn.solvers.branch_bound.kernels.records import Instance
from marginbn.solvers.branch_cut import BranchCutSolver
from marginbn.solvers.branch_cut.node import Frontier
from marginbn.solvers.checkpoint import Checkpoint
from marginbn.solvers.dynamic import layers
from marginbn.solvers.dynamic.layers import LayerSearch
from marginbn.solvers.memory import (
    KEPT_VERTICES,
    BranchBoundShape,
    BranchCutShape,
    Division,
    Memory,
    Needs,
    available_memory,
    parse_memory,
)
from marginbn.solvers.orders.ascent import Ascent, dual_ascent
from marginbn.solvers.result import Status, TracePoint
from marginbn.solvers.run import Limits, Run
from marginbn.solvers.solve import choose_solver, get_solver, solve_with, solver_names
from order_cases import random_scores
from problems import random_table, small_linear_problem, small_margin_problem

# ---------------------------------------------------------------------- numbers


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, None),
        (1_000, 1_000),
        (1.5e9, 1_500_000_000),
        (np.int64(7), 7),
        ("2 GB", 2 * 10**9),
        ("2gb", 2 * 10**9),
        ("1.5 GiB", 3 * 2**29),
        ("512M", 512 * 10**6),
        (" 64 kB ", 64_000),
        ("800", 800),
    ],
)
def test_amounts_are_understood(given: Any, expected: int | None) -> None:
    assert parse_memory(given) == expected


@pytest.mark.parametrize(
    "given", [0, -1, math.nan, math.inf, "", "GB", "2 XB", "-2 GB", "2 GB!", True, [], 2**63]
)
def test_other_amounts_are_refused(given: Any) -> None:
    with pytest.raises(InputError, match=r"memory_limit must be .* got"):
        parse_memory(given)


def test_the_machine_is_asked() -> None:
    """Some memory is left, and a share of it is the limit of those who set none."""
    left = available_memory()
    assert left > 10**6
    assert Memory.probe(None).spendable <= memory.SHARE * available_memory() * 1.5
    assert Memory.probe(123).spendable == 123


def test_the_least_of_all_limits_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the system has left, unless a control group leaves less."""
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=7 * 10**6))
    monkeypatch.setattr(memory, "_control_groups", lambda: math.inf)
    assert available_memory() == 7 * 10**6
    monkeypatch.setattr(memory, "_control_groups", lambda: 5000.0)
    assert available_memory() == 5000


def write_group(folder: Path, **files: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(f"{content}\n")


def test_control_groups_count(tmp_path: Path) -> None:
    """The tightest group above the process decides; copies of files can be given up."""
    own = tmp_path / "own"
    own.write_text("0::/a/b\n")
    root = tmp_path / "root"
    write_group(root / "a", memory__max=1000, memory__current=900)
    write_group(root / "a" / "b", memory__max="max", memory__current=100)
    assert memory._control_groups(root, own) == 100
    (root / "a" / "memory.stat").write_text("anon 5\ninactive_file 50\n")
    assert memory._control_groups(root, own) == 150
    own.write_text("3:cpu:/\n")
    assert memory._control_groups(root, own) == math.inf
    assert memory._control_groups(root, tmp_path / "absent") == math.inf


# ---------------------------------------------------------------------- the formulas


def test_a_place_is_what_the_store_takes() -> None:
    """The formula of the engine's store against the arrays themselves."""
    problem = larger_problem()
    encoding = frank_wolfe.encode(problem)
    inst: Instance = encoding.instance
    shape = BranchBoundShape.of(problem)
    pool = new_pool(inst, 1000, 1000, KEPT_VERTICES)
    assert workers.nbytes(pool) / 1000 == pytest.approx(shape.place, rel=0.1)
    assert shape.n_columns == inst.linear.size
    assert shape.smallest_places == encoding.places == 3 * workers.RESERVE


def test_a_million_open_nodes_of_spambase_take_less_than_4_gb() -> None:
    """57 features, 1654 parent sets of the class."""
    assert 1e6 * BranchBoundShape(57, 1 + 57 + 57 * 56 // 2, 4601).place < 4e9


def test_memory_is_divided_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    shape = BranchBoundShape(10, 56, n_rows=1000, n_samples=1000, table_cells=500)
    assert shape.n_columns == 176
    assert shape.coefficients == 8 * 1000 * 176
    dense = shape.dense()
    assert dense == 7 * shape.coefficients + 8 * 138 * 1000
    assert shape.dense(3) - dense == 2 * 8 * 138 * 1000, "margins at vertices, of every worker"
    assert shape.coded(3) - shape.coded() == 2 * 2 * 8 * 1000, "of two points, of every worker"
    fixed, store = shape.fixed(1), 3072 * shape.place
    assert fixed == BranchBoundShape.BASE + 80 * 176 + 128 * 100
    needed = shape.needs()
    assert needed == Needs(fixed + store + dense, fixed + store + dense)
    plenty = shape.divide(Memory(None, 1e12))
    assert plenty == Division(shape.coefficients, 0, BranchBoundShape.LARGEST_TREE)
    asked = shape.divide(Memory(10**10, 1e10))
    assert asked == Division(shape.coefficients, 0, 10**10 - fixed - dense)
    short = shape.divide(Memory(needed.least, needed.least))
    assert short == Division(shape.coefficients, 0, store)
    monkeypatch.setattr(BranchBoundShape, "SMALLEST_ROWS", 0)
    monkeypatch.setattr(BranchBoundShape, "FEWEST_GROUPS", 8)
    needed = shape.needs()
    assert needed.least == fixed + store + shape.coded() + shape.least_rows < needed.full
    short = shape.divide(Memory(needed.least, needed.least))
    assert short == Division(0, 0, store, shape.least_rows)
    monkeypatch.setattr(BranchBoundShape, "LARGEST_DENSE", 0)
    wide = shape.divide(Memory(None, 1e12))
    assert wide.dense == 0, "more than usual is not held without being asked to"
    assert wide.rows == BranchBoundShape.LARGEST_ROWS


def test_coefficients_that_take_too_much_of_the_time_are_not_written() -> None:
    """30 000 rows of five classes and 30 features: a gigabyte, in one second or in a minute."""
    shape = BranchBoundShape(30, 466, 120_000, 30_000, 5, 100_000)
    plenty = Memory(None, 1e12)
    assert shape.coefficients > 5 * BranchBoundShape.BYTES_PER_SECOND
    assert shape.divide(plenty, 1, 60.0) == shape.divide(plenty)
    assert shape.divide(plenty).dense == shape.coefficients
    hurried = shape.divide(plenty, 1, 1.0)
    assert hurried.dense == 0 < hurried.rows
    small = BranchBoundShape(10, 56, n_rows=1000, n_samples=1000, table_cells=500)
    assert small.divide(plenty, 1, 1e-9) == small.divide(plenty)


@pytest.mark.parametrize(("n_features", "max_parents"), [(300, 1), (1000, 1), (300, 2), (1000, 2)])
def test_the_smallest_store_grows_with_the_problem(n_features: int, max_parents: int) -> None:
    """Not with 3072 times the square of the features: 38 GB for a thousand of them."""
    n_sets = sum(math.comb(n_features, k) for k in range(max_parents + 1))
    shape = BranchBoundShape(n_features, n_sets, 1000, 1000, has_arcs=max_parents > 1)
    if max_parents == 1:
        assert shape.n_columns == 3 * n_features + 1
    assert shape.smallest_places * shape.place <= max(4e8, 48 * shape.place)
    assert shape.needs().least < (2e9 if n_features == 300 else 9e9)


def test_branch_and_cut_divides_by_hand() -> None:
    """The matrix where all fits, else columns kept; open nodes get the rest."""
    shape = BranchCutShape(100, 1000)
    needed = shape.needs()
    assert needed.full - needed.least == 800_000
    fits = shape.divide(Memory.probe(needed.full + 77))
    assert fits == Division(800_000, 0, 77)
    tight = shape.divide(Memory.probe(needed.least + 100))
    assert tight == Division(0, 50, 50)
    assert shape.divide(Memory(None, math.inf)).tree == BranchCutShape.LARGEST_TREE


def test_the_machine_is_asked_once_per_solve(monkeypatch: pytest.MonkeyPatch) -> None:
    """Choosing a solver and dividing the memory use one answer."""
    for name in ("auto", "branch_cut"):
        solve_structure(small_margin_problem(0), name)  # loads kernels, by a solve of their own
    asked = []
    monkeypatch.setattr(memory, "available_memory", lambda: asked.append(1) or 1e10)
    for name in ("auto", "branch_cut"):
        solve_structure(small_margin_problem(0), name)
        assert asked.pop() == 1
        assert asked == []


# ---------------------------------------------------------------------- told before


@pytest.mark.parametrize("name", ["auto", *solver_names()])
def test_what_cannot_fit_is_told_before_the_start(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = small_linear_problem(0) if name == "dp" else small_margin_problem(0)
    chosen = choose_solver(problem, name)
    monkeypatch.setattr(type(chosen), "run", None)
    with pytest.raises(
        ProblemTooLargeError, match=r"needs at least .* memory_limit is 0\.0 MB"
    ) as told:
        solve_structure(problem, name, memory_limit=10)
    assert "needs at least" in str(told.value)
    assert "raise it, or use fewer features" in str(told.value)


def test_a_full_machine_is_told_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 1000.0)
    with pytest.raises(ProblemTooLargeError, match=r"the machine has .* to spare"):
        solve_structure(small_margin_problem(0))


def test_auto_takes_a_solver_that_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Coefficients, or codes and groups, do not fit into 62 MB; linear programmes do."""
    many = margin_problem(
        random_table(np.random.default_rng(0), 2000, 20, 2).encoded(), enumerate_candidates(21, 2)
    )
    assert choose_solver(many).name == "branch_bound"
    assert get_solver("branch_bound").needs(many).least > 62 * 10**6
    assert choose_solver(many, memory=Memory.probe(62 * 10**6)).name == "branch_cut"
    problem = small_margin_problem(0)
    expected = solve_structure(problem, "branch_bound").objective
    monkeypatch.setattr(BranchBoundShape, "BASE", 63 * 10**6)
    result = solve_structure(problem, memory_limit="62 MB")
    assert result.solver == "branch_cut"
    assert result.objective == pytest.approx(expected, rel=1e-6)


def test_dynamic_programming_starts_where_its_lists_fit() -> None:
    """Most sets of variables are left out, so all of them need not fit; branch and cut needs more.

    19 features: 16 MB and 48 bytes for each of 20 * 20 candidates; at the most 7 * 17 bytes for
    each of the 184756 sets of ten variables, and 9 for each of 2^20.
    """
    data = random_table(np.random.default_rng(0), 30, 19, 2).encoded()
    candidates = enumerate_candidates(20, 1, class_restricted=False)
    problem = linear_problem(data, candidates, get_local_score("bic"))
    least = 16_000_000 + 48 * 400
    assert get_solver("dp").needs(problem) == Needs(least, least + 119 * 184_756 + 9 * 2**20)
    expected = solve_structure(problem, "branch_cut").objective
    result = solve_structure(problem, memory_limit=least)
    assert result.solver == "dp"
    assert result.status in (Status.OPTIMAL, Status.MEMORY_LIMIT)
    assert result.objective <= expected + 1e-6 * abs(expected)
    assert result.bound >= expected - 1e-6 * abs(expected)


def test_auto_takes_dynamic_programming_where_nothing_else_fits() -> None:
    """40 variables are too many for it by itself, but branch and cut does not fit."""
    problem = random_scores(1, 40, max_parents=1)
    assert choose_solver(problem).name == "branch_cut"
    least = get_solver("dp").needs(problem).least
    assert least < get_solver("branch_cut").needs(problem).least
    assert choose_solver(problem, memory=Memory.probe(least)).name == "dp"
    assert solve_structure(problem, memory_limit=least, node_limit=20).solver == "dp"


def test_another_solver_goes_on_where_dynamic_programming_is_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Incumbent and bound are taken over; a solver that was named stops where it is."""
    monkeypatch.setattr(layers, "ROOM", 8)
    monkeypatch.setattr(layers, "TABLE_BYTES", 10**9)
    problem = small_linear_problem(0, n_features=6)
    monkeypatch.setattr(layers, "SMALL", 2)
    monkeypatch.setattr(layers.LayerSearch, "_bound", _nothing_known)
    expected = solve_structure(problem, "branch_cut").objective
    alone = solve_structure(problem, "dp", memory_limit="1 GB")
    assert alone.status is Status.MEMORY_LIMIT
    points: list[TracePoint] = []
    result = solve_structure(problem, memory_limit="1 GB", callback=points.append)
    assert result.solver == "branch_cut"
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(expected, rel=1e-6)
    assert [p.objective for p in points] == sorted(p.objective for p in points)


def _nothing_known(search: LayerSearch) -> Ascent:
    """The poorest bound, so that there are many sets."""
    return dual_ascent(search._parents, passes=0)


# ---------------------------------------------------------------------- and kept


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_least_memory_is_enough(n_jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Coefficients in a file and the smallest store: the optimum all the same."""
    problem = larger_problem()
    expected = solve_structure(problem).objective
    least = BranchBoundSolver().needs(problem, n_jobs).least
    divided = []
    begin = workers.BoxTeam.__init__

    def watch(self: workers.BoxTeam, *args: Any) -> None:
        begin(self, *args)
        divided.append(self.store_bytes)

    monkeypatch.setattr(workers.BoxTeam, "__init__", watch)
    fresh = larger_problem()  # its coefficients are not kept from before
    result = solve_structure(fresh, memory_limit=least, n_jobs=n_jobs)
    shape = BranchBoundShape.of(problem)
    assert divided == [n_jobs * shape.smallest_places * shape.place]
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(expected, rel=1e-6)


def test_a_store_that_cannot_grow_is_searched_depth_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that has less memory than it said ends nothing."""
    problem = larger_problem()
    expected = solve_structure(problem).objective
    begin, stores = workers.Worker.__init__, []

    def shrink(self: workers.Worker, encoding: frank_wolfe.Encoding) -> None:
        begin(self, encoding)
        self.pool = new_pool(encoding.instance, 8, 8, 4)
        self.inbox = new_pool(encoding.instance, 0, 0, 4)
        stores.append(self)

    def refuse(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(workers, "RESERVE", 40)
    monkeypatch.setattr(workers.Worker, "__init__", shrink)
    monkeypatch.setattr(workers, "grown", refuse)
    result = solve_with(BranchBoundSolver(heuristics=False), Run(problem))
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(expected, rel=1e-6)
    assert stores[0].reserve == 40


def test_branch_and_cut_goes_depth_first_when_its_tree_is_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A tiny budget for open nodes: the newest is visited next, the optimum is the same."""
    problem = small_margin_problem(4, n_rows=25, n_features=4, max_parents=3)
    solver = BranchCutSolver(heuristics=False)
    expected = solve_with(solver, Run(problem))
    begin, largest = Frontier.__init__, []

    def shrink(self: Frontier, *settings: Any) -> None:
        begin(self, *settings)
        self._budget = 20_000.0
        self.take = watched(self, largest)  # type: ignore[method-assign]

    monkeypatch.setattr(Frontier, "__init__", shrink)
    result = solve_with(solver, Run(problem))
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(expected.objective, rel=1e-6)
    assert 20_000 < max(largest) < 60_000


def watched(frontier: Frontier, sizes: list[int]) -> Any:
    take = frontier.take

    def taken() -> Any:
        sizes.append(frontier.nbytes)
        return take()

    return taken


def test_a_checkpoint_larger_than_the_store_is_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With less memory than before nodes share a family; nothing is lost.

    For want of room the search then goes deep, which may take very long to a proof.
    """
    problem = larger_problem()
    expected = solve_structure(problem).objective
    path = tmp_path / "c"
    first = solve_with(
        BranchBoundSolver(heuristics=False),
        Run(problem, limits=Limits(nodes=100), checkpoint=Checkpoint(path, problem)),
    )
    monkeypatch.setattr(BranchBoundShape, "LARGEST_TREE", 0)
    monkeypatch.setattr(workers, "RESERVE", 40)
    run = Run(problem, limits=Limits(nodes=1000), checkpoint=Checkpoint(path, problem))
    result = solve_with(BranchBoundSolver(heuristics=False), run)
    assert result.nodes > 100
    assert result.bound >= expected - 1e-9
    assert first.bound >= result.bound
    assert first.objective <= result.objective <= expected + 1e-9


def test_rows_all_is_refused_where_they_do_not_fit() -> None:
    """With the remedy; groups of rows take less."""
    data = random_table(np.random.default_rng(3), 20_000, 20, 3).encoded()
    problem = margin_problem(data, enumerate_candidates(21, 2), gamma=1.0)
    limit = BranchBoundShape.of(problem).coefficients - 1
    with pytest.raises(ProblemTooLargeError, match="use rows='groups'"):
        solve_with(BranchBoundSolver(rows="all"), Run(problem, limits=Limits(memory=limit)))


# ---------------------------------------------------------------------- users


@pytest.mark.parametrize("cls", [MaxMarginBNClassifier, GenerativeBNClassifier])
def test_classifiers_obey(cls: Any) -> None:
    """The parameter reaches the solver, and nonsense is refused by its name."""
    X, y = [["a"], ["b"], ["a"], ["b"]], [0, 1, 0, 1]
    assert cls(search=Search(memory_limit="1 GB")).fit(X, y).status_ == "optimal"
    with pytest.raises(ProblemTooLargeError, match="memory_limit is"):
        cls(search=Search(memory_limit=5)).fit(X, y)
    with pytest.raises(InputError, match="memory_limit must be"):
        cls(search=Search(memory_limit="much")).fit(X, y)


MEASURE = """
import json, re, sys
from pathlib import Path
sys.path.insert(0, "tests/support")
import numpy as np
from marginbn import solve_structure
from marginbn.problem.candidates import enumerate_candidates
from marginbn.problem.problem import margin_problem
from marginbn.problem.encoded import EncodedData, Variable
from problems import small_margin_problem

def memory(name):
    return 1024 * int(re.search(name + r":\\s*(\\d+)", Path("/proc/self/status").read_text())[1])

solve_structure(small_margin_problem(0), n_jobs=2)  # a compiler takes more than any search here
rng = np.random.default_rng(1)
codes = np.column_stack([rng.integers(0, 3, 90), rng.integers(0, 2, (90, 24))])
states = [Variable(f"v{i}", ("a", "b", "c")[: 3 if i == 0 else 2]) for i in range(25)]
data = EncodedData(codes, np.ones(90), tuple(states))
problem = margin_problem(data, enumerate_candidates(25, 2), gamma=1.0)
Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
before = memory("VmRSS")
result = solve_structure(problem, node_limit=int(sys.argv[1]), memory_limit=sys.argv[2])
print(json.dumps([memory("VmHWM") - before, result.nodes, result.gap, str(result.status)]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the system must tell peaks")
def test_the_limit_holds_for_the_process() -> None:
    """Measured by the system: the process grows by no more than the limit."""
    measured = {}
    for limit in ("32 MB", "2 GB"):  # it needs 30.3 MB at the least
        done = subprocess.run(
            [sys.executable, "-c", MEASURE, "13000", limit],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parents[2],
        )
        measured[limit] = json.loads(done.stdout)
    assert measured["32 MB"][0] <= 32 * 10**6, measured
    assert measured["2 GB"][0] > measured["32 MB"][0] + 2 * 10**6, "the limit was never felt"
