"""Instances with the rows that matter: nowhere smaller, and the same optimum in the end."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from branch_bound_cases import columns_of, random_problem, random_slots
from brute_force import brute_force
from marginbn.problem.array_types import FloatArray
from marginbn.problem.candidates import enumerate_candidates
from marginbn.problem.problem import margin_problem
from marginbn.solvers.branch_bound import BranchBoundSolver, engine
from marginbn.solvers.branch_bound import rows as reduction
from marginbn.solvers.branch_bound.arrays import Encoding, encode
from marginbn.solvers.branch_bound.kernels import combination, duals, nearby
from marginbn.solvers.branch_bound.kernels.bound import Settings
from marginbn.solvers.branch_bound.kernels.combination import load_margins, new_bounding
from marginbn.solvers.branch_bound.kernels.records import NO_PLACES, Instance, count_rows
from marginbn.solvers.branch_bound.rows import Copies, Reduction, thinned, with_all_rows
from marginbn.solvers.branch_bound.schedule import settings_for
from marginbn.solvers.result import Status
from marginbn.solvers.run import Limits, Run
from marginbn.solvers.solve import solve_with
from marginbn.solvers.tree_search import begin, initial_bound
from strategies import make_data

pytestmark = pytest.mark.xdist_group("test_branch_bound_rows")  # compile once


# kernels have no wrapper for Python; this one has
@njit
def near_instance(inst, t, band, rows, caps, structure):  # type: ignore[no-untyped-def]
    nearby._choose_terms(inst, t, band, rows, caps)
    return nearby.build(inst, rows, caps, structure)


@njit
def new_balance(inst, b):  # type: ignore[no-untyped-def]
    return combination.new_balance(inst, b)


@njit
def fresh_gradient(inst, u, changed, delta):  # type: ignore[no-untyped-def]
    g, spans = np.empty(inst.linear.size), np.array([[0, inst.linear.size]])
    duals.fresh_gradient(inst, spans, 1, u, changed, delta, g)
    return g


def three_samples() -> Instance:
    """One column, gamma 1, weight 2 each: margins (5, 6), (-4, 3) and (0, 0.5)."""
    margins = np.array([[5.0, 6.0, -4.0, 3.0, 0.0, 0.5]])
    return Instance(
        n_features=0,
        gamma=1.0,
        offset=0.0,
        error=0.0,
        rows=np.zeros((0, 0)),
        columns=margins,
        linear=np.array([0.25]),
        magnitude=30.0,
        weights=np.full(3, 2.0),
        starts=np.array([0, 2, 4, 6]),
        first=np.array([-1]),
        second=np.array([-1]),
    )


def objective(inst: Instance, eta: FloatArray) -> float:
    """offset + linear . eta + sum_m w_m min(gamma, margins), from the definition."""
    margins = eta @ inst.columns
    total = inst.offset + float(inst.linear @ eta)
    for m, weight in enumerate(inst.weights):
        own = margins[inst.starts[m] : inst.starts[m + 1]]
        total += weight * min(inst.gamma, own.min())
    return total


def random_eta(rng: np.random.Generator, encoding: Encoding) -> FloatArray:
    """A convex combination of a few choices of one slot per feature and a class set."""
    inst = encoding.instance
    eta = np.zeros(inst.linear.size)
    for share in rng.dirichlet(np.ones(3)):
        eta[columns_of(inst, random_slots(rng, inst))] += share
    return eta


def test_kinds_of_samples_by_hand() -> None:
    """With band 1: the first is a constant, the second linear, the third keeps both rows."""
    full = three_samples()
    reduced = Reduction(full, 30.0, band=1.0)
    reduced.extend(full.columns[0])
    inst = reduced.instance
    assert inst.offset == 2.0
    assert inst.linear.tolist() == [0.25 - 2 * 4]
    assert inst.columns.tolist() == [[0.0, 0.5]]
    assert inst.rows.tolist() == [[0.0], [0.5]]
    assert (inst.weights.tolist(), inst.starts.tolist()) == ([2.0], [0, 2])
    assert objective(inst, np.ones(1)) == objective(full, np.ones(1)) == 2.0 - 8.0 + 0.25
    assert 0 < inst.error < 1e-12


def test_cost_by_hand() -> None:
    """At other margins the constant sample would be 3 lower and the linear one 1 lower."""
    full = three_samples()
    reduced = Reduction(full, 30.0, band=1.0)
    reduced.extend(full.columns[0])
    assert reduced.cost(full.columns[0]) == 0.0
    elsewhere = np.array([-2.0, 6.0, -4.0, -5.0, 0.0, 0.5])
    assert reduced.cost(elsewhere) == 2 * 3.0 + 2 * 1.0
    reduced.extend(elsewhere)
    assert reduced.cost(elsewhere) == 0.0


@pytest.mark.parametrize("seed", range(30))
def test_the_reduced_objective_is_nowhere_smaller(seed: int) -> None:
    """Nor larger where it was made, and the difference is the cost."""
    rng = np.random.default_rng(seed)
    encoding = encode(random_problem(rng, 2 + seed % 3))
    full = encoding.instance
    if full.weights.size == 0:
        return
    reduced = Reduction(full, encoding.structure_magnitude, band=float(rng.uniform(0, 0.5)))
    for _ in range(2):
        eta = random_eta(rng, encoding)
        reduced.extend(eta @ full.columns)
        here = objective(full, eta)
        assert objective(reduced.instance, eta) == pytest.approx(here, rel=1e-12, abs=1e-9)
    for _ in range(5):
        eta = random_eta(rng, encoding)
        larger = objective(reduced.instance, eta) - objective(full, eta)
        rounding = 1e-12 * encoding.structure_magnitude
        assert larger >= -rounding
        assert larger == pytest.approx(reduced.cost(eta @ full.columns), rel=1e-6, abs=rounding)


@pytest.mark.parametrize("is_by_box", [False, True])
@pytest.mark.parametrize("heuristics", [True, False])
@pytest.mark.parametrize("seed", range(25))
def test_few_rows_still_prove_the_optimum(
    monkeypatch: pytest.MonkeyPatch, seed: int, heuristics: bool, is_by_box: bool
) -> None:
    """With hardly any band most bounds come from too few rows, chosen once or by every box; the
    proof is right all the same.
    """

    def settings(limits: Limits, heuristics: bool = True) -> Settings:
        return settings_for(limits, heuristics)._replace(many_rows=0, band=0.02)

    if is_by_box:
        monkeypatch.setattr(engine, "settings_for", settings)
    else:
        monkeypatch.setattr(reduction, "BAND", 0.02)
    problem = random_problem(np.random.default_rng(seed), 2 + seed % 3)
    best = brute_force(problem)
    result = solve_with(BranchBoundSolver(heuristics=heuristics), Run(problem))
    rounding = 1e-11 * max(1.0, abs(best))
    assert result.status is Status.OPTIMAL
    assert result.bound >= best - rounding
    assert result.objective == pytest.approx(best, rel=1.01e-6, abs=rounding)


@pytest.mark.parametrize("seed", range(20))
def test_rows_of_a_box_are_those_of_the_reduction(seed: int) -> None:
    """Kernel and array code leave the same terms out, and make the same instance of the others."""
    rng = np.random.default_rng(seed)
    encoding = encode(random_problem(rng, 2 + seed % 3))
    full = with_all_rows(encoding.instance)
    if full.weights.size == 0:
        return
    band, magnitude = float(rng.uniform(0, 0.5)), encoding.structure_magnitude
    reduced = Reduction(full, magnitude, band)
    rows = np.zeros(count_rows(full), dtype=np.bool_)
    caps = np.zeros(full.weights.size, dtype=np.bool_)
    for _ in range(2):
        t = random_eta(rng, encoding) @ full.columns
        reduced.extend(t)
        near = near_instance(full, t, band, rows, caps, magnitude)
        expected = reduced.instance
        assert np.array_equal(near.starts, expected.starts)
        assert np.array_equal(near.weights, expected.weights)
        assert np.array_equal(near.rows[near.places], expected.rows)
        assert np.array_equal(near.columns[:, near.places], expected.columns)
        assert near.linear == pytest.approx(expected.linear, rel=1e-12, abs=1e-9)
        assert near.offset == pytest.approx(expected.offset)
        assert near.error == pytest.approx(expected.error)


@pytest.mark.parametrize("seed", range(20))
def test_borrowed_coefficients_are_those_of_a_copy(seed: int) -> None:
    """Margins of vertices and gradients, with room for copies of columns and without."""
    rng = np.random.default_rng(seed)
    encoding = encode(random_problem(rng, 2 + seed % 3))
    full = with_all_rows(encoding.instance)
    if full.weights.size == 0:
        return
    rows, caps = rng.random(count_rows(full)) < 0.7, rng.random(full.weights.size) < 0.5
    near = near_instance(full, np.full(rows.size, np.inf), 0.0, rows, caps, 1.0)
    copy = near._replace(
        rows=full.rows[near.places], columns=full.columns[:, near.places].copy(), places=NO_PLACES
    )
    b = new_bounding(full, 5, encoding.structure_magnitude)
    b = b._replace(room=np.empty(rng.integers(2) * full.rows.size))
    b.vertices[:3] = [random_slots(rng, full) for _ in range(3)]
    b.share[:3], b.state.n_active = rng.dirichlet(np.ones(3)), 3
    found, expected = (new_balance(inst, b).margins[:3] for inst in (near, copy))
    assert np.array_equal(found, expected)
    for inst in (near, copy):
        load_margins(inst, b)
        assert b.t[: near.places.size] == pytest.approx(b.share[:3] @ expected, rel=1e-9, abs=1e-9)
    u = rng.random(near.places.size)
    room = np.zeros(u.size + 4, dtype=np.int64), np.zeros(u.size + 4)
    gradients = [fresh_gradient(inst, u, *room) for inst in (near, copy)]
    assert np.array_equal(*gradients)
    assert gradients[0] == pytest.approx(near.linear + copy.columns @ u, rel=1e-9, abs=1e-9)


def test_thinning_keeps_the_total_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every third sample with three times its weight; small instances stay as they are."""
    full = with_all_rows(three_samples())
    assert thinned(full) is full
    monkeypatch.setattr(reduction, "ENOUGH", 2)
    coarse = thinned(full)
    assert (coarse.weights.tolist(), coarse.starts.tolist()) == ([6.0], [0, 2])
    assert coarse.columns.tolist() == [[5.0, 6.0]]


def test_copies_look_at_the_clock_and_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Piece by piece, and ended by whoever looks."""
    monkeypatch.setattr(reduction, "PIECE", 7)
    looks: list[int] = []
    full = three_samples()
    wide = full._replace(columns=np.vstack([full.columns, 2 * full.columns]), linear=np.ones(2))
    reduced = Reduction(wide, 30.0, 1.0, lambda: looks.append(1))
    reduced.extend(wide.columns[0])
    assert np.array_equal(reduced.instance.columns, wide.columns[:, [4, 5]])
    assert np.array_equal(reduced.instance.rows, reduced.instance.columns.T)
    assert reduced.instance.linear.tolist() == [1 - 8, 1 - 16]
    assert len(looks) > 2

    def end() -> None:
        raise TimeoutError

    late = Reduction(wide, 30.0, 1.0, end)
    late.extend(wide.columns[0])  # copies are made when somebody asks for them
    with pytest.raises(TimeoutError):
        _ = late.instance


@pytest.mark.parametrize("is_shared", [True, False])
@pytest.mark.parametrize("seed", range(10))
def test_a_longer_choice_has_all_its_coefficients(
    seed: int, is_shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever was there before, block by block; what others still read is not written over."""
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(reduction, "PIECE", int(rng.integers(1, 40)))
    columns = rng.random((int(rng.integers(1, 8)), 30))
    full = three_samples()._replace(columns=columns, linear=np.zeros(len(columns)))
    copies = Copies(full, lambda: None, is_shared)
    chosen: set[int] = set()
    earlier: list[tuple[FloatArray, FloatArray, FloatArray]] = []
    for size in rng.integers(0, 12, 5):
        chosen |= {int(r) for r in rng.choice(30, size, replace=False)}
        wanted = np.array(sorted(chosen), dtype=np.int64)
        by_column, by_row = copies.of(wanted)
        np.testing.assert_array_equal(by_column, columns[:, wanted])
        np.testing.assert_array_equal(by_row, columns[:, wanted].T)
        earlier.append((by_column, by_row, columns[:, wanted]))
    if is_shared:
        for by_column, by_row, expected in earlier:
            np.testing.assert_array_equal(by_column, expected)
            np.testing.assert_array_equal(by_row, expected.T)


def test_a_choice_with_too_many_rows_is_not_made() -> None:
    """The one before stays: it is a bound too."""
    full = three_samples()
    reduced = Reduction(full, 30.0, 1.0, most=1)
    before = reduced.instance
    reduced.extend(full.columns[0])
    assert reduced.instance is before


@pytest.mark.parametrize("rows", ["all", "groups"])
def test_a_bound_comes_before_the_local_search(rows: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which may take longer than there is time."""
    noise = np.random.default_rng(3).integers(0, 2, (60, 7))
    data = make_data(noise.tolist(), (2,) * 7)
    problem = margin_problem(data, enumerate_candidates(7, 2), gamma=1.0)
    run = Run(problem, Limits(nodes=40))
    begin(run)
    known: list[float] = []
    monkeypatch.setattr(engine.BoxSearch, "_climb_first", lambda *_: known.append(run.bound))
    BranchBoundSolver(rows=rows).run(run)  # type: ignore[arg-type]
    assert known[0] < initial_bound(problem) * (1 - 1e-6)
