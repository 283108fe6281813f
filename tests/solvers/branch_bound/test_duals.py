"""Dual weights and rounding allowances of the engine, in exact rational arithmetic.

A bound is valid if the dual weights are feasible *exactly* and if the allowance covers what the
floating-point evaluation may have lost. Both are checked here with fractions, which lose nothing.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numba import njit

from branch_bound_cases import columns_of, random_problem, random_slots
from marginbn.solvers.branch_bound.arrays import Encoding, encode
from marginbn.solvers.branch_bound.kernels import duals
from marginbn.solvers.branch_bound.kernels.bound import bound_error, structure_magnitude
from marginbn.solvers.branch_bound.kernels.combination import BoundState
from marginbn.solvers.branch_bound.kernels.records import Instance, count_rows, new_record
from marginbn.solvers.branch_bound.rows import with_all_rows

pytestmark = pytest.mark.xdist_group("test_duals")  # one process compiles


# kernels have no wrapper for Python; these have
@njit
def smooth_weights(t, gamma, mu, p):  # type: ignore[no-untyped-def]
    duals.smooth_weights(t, 0, t.size, gamma, mu, p)


@njit
def single_weight(t, gamma, mu):  # type: ignore[no-untyped-def]
    return duals.single_weight(t, gamma, mu)


@njit
def update_duals(inst, t, mu, stale, u, changed, delta):  # type: ignore[no-untyped-def]
    return duals.update_duals(inst, t, mu, stale, u, changed, delta)


@njit
def objective_of_vertex(inst, vertex, t):  # type: ignore[no-untyped-def]
    return duals.objective_of_vertex(inst, vertex, t)


def weights_of(t: list[float], gamma: float, mu: float) -> np.ndarray:
    """p of one sample."""
    p = np.empty(len(t))
    smooth_weights(np.array(t), gamma, mu, p)
    return p


def projected(t: np.ndarray, gamma: float, mu: float) -> np.ndarray:
    """The same by the textbook: project -s / mu onto the simplex, sorting its entries."""
    scores = -np.append(t, gamma) / mu
    ordered = np.sort(scores)[::-1]
    above = np.cumsum(ordered) - 1.0
    count = np.flatnonzero(ordered - above / np.arange(1, len(ordered) + 1) > 0)[-1] + 1
    return np.maximum(scores - above[count - 1] / count, 0.0)[:-1]


def test_the_weight_of_a_single_rival_by_hand() -> None:
    """From one, two mu wide around the cap, down to zero; never beyond."""
    found = [single_weight(t, 1.0, 0.1) for t in (-5.0, 0.9, 0.95, 1.0, 1.05, 1.1, 9.0)]
    assert found == pytest.approx([1.0, 1.0, 0.75, 0.5, 0.25, 0.0, 0.0])
    assert (found[0], found[-1]) == (1.0, 0.0)


@pytest.mark.parametrize("seed", range(40))
def test_weights_are_the_projection(seed: int) -> None:
    """Against sorting, for any number of rivals and any smoothing."""
    rng = np.random.default_rng(seed)
    for _ in range(20):
        t = rng.normal(size=int(rng.integers(1, 7))) * rng.choice([0.1, 1.0, 10.0])
        gamma, mu = float(rng.uniform(0.01, 3)), float(10.0 ** rng.uniform(-3, 1))
        if rng.random() < 0.3:
            t = np.round(t)
        found = weights_of(t.tolist(), gamma, mu)
        assert found == pytest.approx(
            projected(t, gamma, mu), abs=1e-11 * (1 + np.abs(t).max() / mu)
        )


@pytest.mark.parametrize("n_rivals", [2, 7, 60])
def test_many_rivals_share_no_more_than_the_whole(n_rivals: int) -> None:
    """In exact arithmetic, before and after multiplying with a weight, and next to nothing less."""
    rng = np.random.default_rng(n_rivals)
    for _ in range(60):
        t = rng.uniform(0, 1, n_rivals)
        p = weights_of(t.tolist(), 9.0, float(rng.uniform(0.1, 3)))
        w = float(rng.uniform(0.1, 9))
        assert (p >= 0).all()
        assert sum(Fraction(w * share) for share in p.tolist()) <= Fraction(w)
        assert sum(p) == pytest.approx(1.0, rel=1e-12)


def instance_of(seed: int) -> Instance:
    return with_all_rows(encoding_of(seed).instance)


def encoding_of(seed: int) -> Encoding:
    return encode(random_problem(np.random.default_rng(seed), 4))


def rows_of_samples(inst: Instance) -> list[slice]:
    return [slice(*inst.starts[m : m + 2]) for m in range(inst.weights.size)]


def random_margins(rng: np.random.Generator, inst: Instance) -> np.ndarray:
    """Margins around the cap, where weights are split."""
    scale = float(rng.choice([0.01, 1.0, 30.0]))
    return inst.gamma * (1 + scale * rng.normal(size=count_rows(inst)))


@pytest.mark.parametrize("seed", range(60))
def test_dual_weights_are_feasible_exactly_and_booked(seed: int) -> None:
    """u >= 0 and sum_c u_mc <= w_m as fractions; changes and unused weight are what was done."""
    rng = np.random.default_rng(seed)
    inst = instance_of(seed)
    n_rows = count_rows(inst)
    u = np.zeros(n_rows)
    changed, delta = np.zeros(n_rows + 4, dtype=np.int64), np.zeros(n_rows + 4)
    for _ in range(6):
        before = u.copy()
        mu = float(inst.gamma * 10.0 ** rng.uniform(-6, 1))
        stale = float(rng.choice([0.0, 1e-3, 0.1]))
        count, unused = update_duals(inst, random_margins(rng, inst), mu, stale, u, changed, delta)
        assert (u >= 0).all()
        left = Fraction(0)
        for w, rows in zip(inst.weights.tolist(), rows_of_samples(inst), strict=True):
            rest = Fraction(w) - sum(map(Fraction, u[rows].tolist()))
            assert rest >= 0
            left += rest
        total = float(inst.weights.sum())
        assert unused == pytest.approx(float(left), abs=1e-13 * total)
        listed = changed[:count]
        assert len(set(listed.tolist())) == count
        assert set(np.flatnonzero(u != before)) == set(listed.tolist())
        np.testing.assert_array_equal(delta[:count], u[listed] - before[listed])


@pytest.mark.parametrize("seed", range(20))
def test_stale_weights_move_when_they_must(seed: int) -> None:
    """Without tolerance u is w p; with one no weight is off by more than that part of w."""
    rng = np.random.default_rng(seed)
    inst = instance_of(seed)
    rows = count_rows(inst)
    changed, delta = np.zeros(rows + 4, dtype=np.int64), np.zeros(rows + 4)
    mu, u = inst.gamma, np.zeros(rows)
    samples = rows_of_samples(inst)
    weights = np.repeat(inst.weights, [own.stop - own.start for own in samples])
    for stale in (0.0, 0.05, 0.3):
        t = random_margins(rng, inst)
        update_duals(inst, t, mu, stale, u, changed, delta)
        wanted = np.concatenate([projected(t[own], inst.gamma, mu) for own in samples])
        assert (np.abs(u / weights - wanted) <= stale + 1e-9).all()


@pytest.mark.parametrize("seed", range(20))
def test_objectives_equal_the_definition(seed: int) -> None:
    inst = instance_of(seed)
    rng = np.random.default_rng(seed)
    for _ in range(10):
        vertex = np.array(random_slots(rng, inst))
        columns = columns_of(inst, vertex)
        margins = inst.columns[columns].sum(axis=0)
        smallest = np.array([margins[own].min() for own in rows_of_samples(inst)])
        expected = inst.linear[columns].sum() + inst.weights @ np.minimum(inst.gamma, smallest)
        found = objective_of_vertex(inst, vertex, np.empty(count_rows(inst)))
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-9)


def test_magnitude_of_structures_by_hand() -> None:
    """G takes the largest slot of every feature and the largest class set."""
    assert structure_magnitude(np.array([235.0, 101.0, 0.25, 7.0, 9.0]), 1, 2) == 235 + 9
    small = np.array([0.25, 0.5, 0.75, 0.625, 0.125])  # below one too, wherever they stand
    assert structure_magnitude(small, 1, 2) == 0.75 + 0.625


@pytest.mark.parametrize("seed", range(20))
def test_the_allowance_is_the_documented_one(seed: int) -> None:
    """2 eps (operations G + (M + 4) gamma W + (R + n + 4) G + 16 (n + 2)^2 max G_v)."""
    rng = np.random.default_rng(seed)
    inst = instance_of(seed)
    structure, largest, operations = (float(v) for v in rng.uniform(1, 1e6, 3))
    total, n, n_rows = float(inst.weights.sum()), inst.n_features, count_rows(inst)
    exact = operations * structure + (inst.weights.size + 4) * inst.gamma * total
    exact += (n_rows + n + 4) * structure + 16 * (n + 2) ** 2 * largest
    scale = new_record(BoundState, structure=structure, largest=largest, total_weight=total)
    found = bound_error(inst, scale, operations)
    assert found == pytest.approx(2 * 2.0**-53 * exact, rel=1e-12)


def exact_dot(inst: Instance, u: np.ndarray, columns: list[int]) -> Fraction:
    """(linear + A^T u) . eta of a vertex, exactly."""
    total = sum((Fraction(float(inst.linear[v])) for v in columns), Fraction(0))
    for r in np.flatnonzero(u):
        margin = sum((Fraction(float(inst.columns[v, r])) for v in columns), Fraction(0))
        total += Fraction(float(u[r])) * margin
    return total


@pytest.mark.parametrize("seed", range(30))
def test_a_majorant_with_its_allowance_covers_the_exact_one(seed: int) -> None:
    """Constant plus gradient, summed row by row, plus allowance is not below the exact value."""
    rng = np.random.default_rng(seed)
    inst = instance_of(seed)
    rows = count_rows(inst)
    u, g = np.zeros(rows), inst.linear.copy()
    changed, delta = np.zeros(rows + 4, dtype=np.int64), np.zeros(rows + 4)
    margins = random_margins(rng, inst)
    _, unused = update_duals(inst, margins, inst.gamma, 0.0, u, changed, delta)
    for r in range(rows):
        g += u[r] * inst.rows[r]
    scale = new_record(
        BoundState,
        structure=encoding_of(seed).structure_magnitude,
        largest=inst.magnitude,
        total_weight=inst.weights.sum(),
    )
    error = bound_error(inst, scale, rows + 13.0)
    used = sum(map(Fraction, u.tolist()), Fraction(0))
    weight = sum(map(Fraction, inst.weights.tolist()), Fraction(0))
    for _ in range(10):
        columns = columns_of(inst, random_slots(rng, inst))
        exact = Fraction(inst.gamma) * (weight - used) + exact_dot(inst, u, columns)
        found = inst.gamma * unused + float(sum(g[v] for v in columns))
        assert Fraction(found + error) >= exact
        assert Fraction(found - error) <= exact
