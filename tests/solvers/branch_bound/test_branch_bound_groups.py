"""Groups of rows: nowhere smaller than all rows, tight where they were split, same optimum."""

from __future__ import annotations

import numpy as np
import pytest

from branch_bound_cases import random_problem
from brute_force import brute_force
from marginbn import InputError, Search, solve_structure
from marginbn.problem.array_types import FloatArray, IntArray
from marginbn.problem.candidates import enumerate_candidates
from marginbn.problem.encoded import EncodedData, Variable
from marginbn.problem.problem import StructureProblem, margin_problem
from marginbn.solvers.branch_bound import BranchBoundSolver, engine, row_groups
from marginbn.solvers.branch_bound.arrays import Encoding, encode
from marginbn.solvers.branch_bound.engine import BoxSearch
from marginbn.solvers.branch_bound.kernels.box import is_member
from marginbn.solvers.branch_bound.kernels.climb import Climber, Ground, search_from
from marginbn.solvers.branch_bound.kernels.records import count_rows
from marginbn.solvers.branch_bound.row_groups import GroupedRows, Groups, Sample, even_sample
from marginbn.solvers.branch_bound.rows import Reduction
from marginbn.solvers.memory import BranchBoundShape
from marginbn.solvers.result import Status
from marginbn.solvers.run import Limits, RowsInUse, Run
from marginbn.solvers.solve import solve_with
from marginbn.solvers.tree_search import begin, initial_bound

ROOM = 10_000
KINDS = [("multiclass", 2), ("multiclass", 3), ("binary", 4)]


def problem_of(
    rng: np.random.Generator, margin: str, n_classes: int, *, whole: bool = True
) -> StructureProblem:
    """120 rows of 4 features, with weights that are whole numbers or not."""
    arities = [n_classes, 2, 3, 4, 2]
    codes = np.stack([rng.integers(0, a, 120) for a in arities], axis=1)
    weights = rng.integers(1, 4, 120).astype(float) if whole else rng.uniform(0.3, 2.0, 120)
    names = [Variable(str(i), tuple(map(str, range(a)))) for i, a in enumerate(arities)]
    data = EncodedData(codes, weights, tuple(names))
    return margin_problem(data, enumerate_candidates(5, 2), margin=margin, gamma=0.7)  # type: ignore[arg-type]


def grouped(problem: StructureProblem) -> tuple[Encoding, Groups]:
    encoding = encode(problem, threads=1)
    assert encoding.coded is not None
    return encoding, Groups(encoding, encoding.coded, ROOM)


def random_eta(rng: np.random.Generator, encoding: Encoding) -> FloatArray:
    """A convex combination of a few choices of one column per variable."""
    eta = np.zeros(encoding.instance.linear.size)
    existing = encoding.candidate_of >= 0
    blocks = np.split(np.arange(eta.size), np.arange(1, 5) * 6)
    for share in rng.dirichlet(np.ones(3)):
        for block in blocks:
            eta[rng.choice(block[existing[block]])] += share
    return eta


def value(weights: FloatArray, margins: FloatArray, gamma: float) -> float:
    """sum_m w_m min(gamma, margins of m)."""
    return float(weights @ margins.min(axis=1, initial=gamma))


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(("margin", "n_classes"), KINDS)
def test_groups_are_nowhere_smaller_and_tight_where_split(
    margin: str, n_classes: int, whole: bool
) -> None:
    rng = np.random.default_rng(5)
    problem = problem_of(rng, margin, n_classes, whole=whole)
    encoding, groups = grouped(problem)
    dense = encode(problem).instance
    rivals = dense.starts[1]
    for round_ in range(6):
        eta = random_eta(rng, encoding)
        t = eta @ dense.columns
        f = value(dense.weights, t.reshape(-1, rivals), dense.gamma)
        inst = groups.instance
        means = (inst.rows @ eta).reshape(-1, rivals)
        over = value(inst.weights, means, inst.gamma)
        losses = groups.losses(t)
        assert over >= f - 1e-9
        assert losses.total == pytest.approx(over - f, abs=1e-9)
        assert groups.split(losses, lambda: None) == (losses.total > 1e-9), round_
        assert groups.losses(t).total <= 0.002 * losses.total
    assert groups.n_groups > n_classes


@pytest.mark.parametrize(("margin", "n_classes"), KINDS)
def test_means_are_those_of_the_members(margin: str, n_classes: int) -> None:
    """Also after several splits, in which the largest parts were never added up."""
    rng = np.random.default_rng(7)
    problem = problem_of(rng, margin, n_classes, whole=False)
    encoding, groups = grouped(problem)
    dense = encode(problem).instance
    rivals = int(dense.starts[1])
    for _ in range(4):
        groups.split(groups.losses(random_eta(rng, encoding) @ dense.columns), lambda: None)
    columns = dense.columns.reshape(dense.linear.size, -1, rivals)
    for g in range(groups.n_groups):
        own = groups.group_of == g
        assert len(set(problem.margins.data.codes[own, 0].tolist())) == 1  # type: ignore[union-attr]
        mean = np.average(columns[:, own], axis=1, weights=dense.weights[own])
        rows = groups.instance.rows[g * rivals : (g + 1) * rivals]
        assert np.allclose(rows, mean.T, atol=1e-12)
        assert groups.weights[g] == pytest.approx(dense.weights[own].sum())


def test_there_are_no_more_groups_than_there_is_room_for() -> None:
    rng = np.random.default_rng(1)
    encoding = encode(problem_of(rng, "multiclass", 3), threads=1)
    assert encoding.coded is not None
    groups = Groups(encoding, encoding.coded, most_rows=12)
    dense = encode(problem_of(np.random.default_rng(1), "multiclass", 3)).instance
    for _ in range(20):
        groups.split(groups.losses(random_eta(rng, encoding) @ dense.columns), lambda: None)
    assert 3 < groups.n_groups <= 6


def test_a_sample_weighs_as_much_as_its_class() -> None:
    classes = np.array([0, 0, 0, 0, 1, 1, 2], dtype=np.uint16)
    weights = np.array([1.0, 1.0, 9.0, 1.0, 2.0, 2.0, 0.5])
    chosen, shares = even_sample(classes, weights, 4)
    assert 2 in chosen  # the heavy one
    for c in range(3):
        assert shares[classes[chosen] == c].sum() == pytest.approx(weights[classes == c].sum())
    everything, same = even_sample(classes, weights, 7)
    assert everything.tolist() == list(range(7))
    assert same.tolist() == weights.tolist()


def test_a_sample_of_everything_has_all_coefficients() -> None:
    problem = problem_of(np.random.default_rng(2), "multiclass", 3)
    encoding = encode(problem, threads=2)
    assert encoding.coded is not None
    whole = Sample.draw(encoding.instance, encoding.coded, ROOM)
    inst = whole.instance(encoding.instance, encoding.coded)
    assert np.array_equal(inst.columns, encode(problem).instance.columns)
    assert whole.rows.tolist() == list(range(problem.n_rows))
    few = Sample.draw(encoding.instance, encoding.coded, 4)
    columns = few.instance(encoding.instance, encoding.coded).columns
    assert np.array_equal(columns, inst.columns[:, few.rows])
    assert 2 <= few.rows.size < problem.n_rows


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("seed", range(8))
def test_same_optimum_with_groups(seed: int, n_jobs: int) -> None:
    problem = random_problem(np.random.default_rng(seed), 3 + seed % 2)
    run = Run(problem, n_jobs=n_jobs)
    result = solve_with(BranchBoundSolver(heuristics=seed % 4 > 0, rows="groups"), run)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(brute_force(problem), rel=1e-6)
    assert result.bound >= result.objective


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("seed", range(6))
def test_same_optimum_after_the_rows_have_taken_over(
    seed: int, n_jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups that are full at once give way to rows made from the codes: their instance is the one
    of the written coefficients, and the optimum stays.
    """
    monkeypatch.setattr(row_groups, "FULL", 0.0)
    problem = problem_of(np.random.default_rng(seed), "multiclass", 3, whole=seed % 2 == 0)
    dense = Reduction(encode(problem).instance, 30.0, 0.35)
    run = Run(problem, n_jobs=n_jobs)
    begin(run)
    search = BoxSearch(run, BranchBoundSolver(rows="groups"))
    search.open()
    assert isinstance(search.rows, GroupedRows)
    assert search.rows.groups is None
    vertex = search.main.incumbent.vertex
    coded = Reduction(search.rows.full, 30.0, 0.35)
    margins = search._margins_at(search.main.work.trial, vertex).copy()
    for choice in (dense, coded):
        choice.extend(margins)
    assert 0 < dense.n_rows < problem.n_rows
    for name in ("columns", "rows", "weights", "starts", "offset"):
        np.testing.assert_array_equal(
            getattr(coded.instance, name), getattr(dense.instance, name), err_msg=name
        )
    np.testing.assert_allclose(coded.instance.linear, dense.instance.linear, atol=1e-9)
    result = solve_with(BranchBoundSolver(rows="groups"), Run(problem, n_jobs=n_jobs))
    assert result.objective == pytest.approx(solve_structure(problem).objective, rel=1e-6)
    assert result.status is Status.OPTIMAL


@pytest.mark.parametrize("rows", ["all", "groups"])
def test_the_local_search_has_the_coefficients_it_needs(
    rows: RowsInUse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By row and by column: after every call its supergradient is the sum of the rows in use, what
    it claims is the objective, and no slot is better in the end.
    """
    problem = problem_of(np.random.default_rng(8), "multiclass", 3)
    calls: list[int] = []

    def searched(ground: Ground, start: IntArray, climber: Climber, *effort: int) -> None:
        search_from(ground, start, climber, *effort)
        inst, u = ground.inst, np.zeros(count_rows(ground.inst))
        used = np.flatnonzero(climber.lowest[: inst.weights.size] >= 0)
        u[climber.lowest[used]] = inst.weights[used]
        np.testing.assert_allclose(climber.g, inst.linear + inst.columns @ u, atol=1e-9)
        calls.append(used.size)

    monkeypatch.setattr(engine, "search_from", searched)
    run = Run(problem, Limits(nodes=1))
    begin(run)
    search = BoxSearch(run, BranchBoundSolver(rows=rows))
    search.open()
    found, encoding = search.main.incumbent, search.encoding
    value = float(found.value[0]) + encoding.constant
    assert value == pytest.approx(problem.evaluate(encoding.selection(found.vertex)), rel=1e-12)
    for i, s in zip(*np.nonzero(encoding.slots), strict=True):
        other = found.vertex.copy()
        other[i] = s
        if is_acyclic(other) and not is_member(encoding.instance, i, other[-1]):
            assert problem.evaluate(encoding.selection(other)) <= value + 1e-9
    assert len(calls) > 3
    assert min(calls) > 0


def is_acyclic(vertex: IntArray) -> bool:
    """Whether every way upwards ends."""
    n = vertex.size - 1
    ends = vertex[:-1].copy()
    for _ in range(n):
        ends = np.where(ends < n, vertex[np.minimum(ends, n - 1)], ends)
    return bool((ends >= n).all())


def test_a_short_limit_takes_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where coefficients take too much of it; seconds of work count, not those of a clock beside
    them, and whoever insists on all rows gets them.
    """
    problem = problem_of(np.random.default_rng(4), "multiclass", 3)
    monkeypatch.setattr(BranchBoundShape, "LONG_FROM", 0)
    monkeypatch.setattr(BranchBoundShape, "BYTES_PER_SECOND", 1000)

    def is_grouped(limits: Limits, solver: BranchBoundSolver | None = None) -> bool:
        search = BoxSearch(Run(problem, limits), solver or BranchBoundSolver())
        return isinstance(search.rows, GroupedRows)

    assert is_grouped(Limits(time=10.0))
    assert not is_grouped(Limits())
    assert not is_grouped(Limits(time=10.0, work=1e6))
    assert is_grouped(Limits(time=1e6, work=1.0))
    assert not is_grouped(Limits(time=10.0), BranchBoundSolver(rows="all"))
    expected = solve_with(BranchBoundSolver(rows="all"), Run(problem)).objective
    found = solve_with(BranchBoundSolver(), Run(problem, Limits(work=10.0)))
    assert found.objective == pytest.approx(expected, rel=1e-9)


def test_who_is_late_has_a_bound_before_the_first_climb(monkeypatch: pytest.MonkeyPatch) -> None:
    """The root is bounded once, however much of the time has gone by then."""
    problem = problem_of(np.random.default_rng(5), "multiclass", 3)
    run = Run(problem)
    begin(run)
    bounds: list[float] = []
    monkeypatch.setattr("marginbn.solvers.branch_bound.engine.ROOT_SHARE", -1.0)
    monkeypatch.setattr(BoxSearch, "_climb_first", lambda search, _: bounds.append(search.bound))
    BoxSearch(run, BranchBoundSolver(rows="groups")).open()
    assert bounds[0] < initial_bound(problem) * (1 - 1e-6)


def test_a_choice_of_rows_that_does_not_exist_is_refused() -> None:
    problem = random_problem(np.random.default_rng(0), 3)
    with pytest.raises(InputError, match="rows must be one of"):
        solve_structure(problem, Search(rows="some"))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="'branch_bound'"):
        solve_structure(problem, Search("highs", rows="groups"))
