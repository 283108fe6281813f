"""Moving weight between the vertices at hand: eta stays a convex combination and f grows."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from scipy.optimize import minimize
from test_duals import projected

from branch_bound_cases import columns_of, random_problem
from marginbn.solvers.branch_bound.arrays import encode
from marginbn.solvers.branch_bound.kernels import combination, newton
from marginbn.solvers.branch_bound.kernels.box import propagate
from marginbn.solvers.branch_bound.kernels.combination import Bounding, load_margins, new_bounding
from marginbn.solvers.branch_bound.kernels.oracle import maximise
from marginbn.solvers.branch_bound.kernels.records import Instance, new_box, new_oracle
from marginbn.solvers.branch_bound.rows import with_all_rows

pytestmark = pytest.mark.xdist_group("test_combination")  # one process compiles


# kernels have no wrapper for Python; these have
@njit
def newton_step(inst, b, tolerance):  # type: ignore[no-untyped-def]
    return newton.newton_step(inst, b, combination.new_balance(inst, b), tolerance)


@njit
def second_order(inst, b):  # type: ignore[no-untyped-def]
    balance = combination.new_balance(inst, b)
    level, hessian = newton.second_order(inst, b, balance)
    return level, hessian


@njit
def maximise_quadratic(hessian, level, share, tolerance):  # type: ignore[no-untyped-def]
    return newton.maximise_quadratic(hessian, level, share, tolerance)


@njit
def make_room(inst, b):  # type: ignore[no-untyped-def]
    combination.make_room(b, combination.new_balance(inst, b))


@njit
def step_towards(inst, b, target, worst, slope):  # type: ignore[no-untyped-def]
    balance = combination.new_balance(inst, b)
    into = combination.find_vertex(inst, b, balance, target)
    combination.step_between(inst, b, balance, into, worst, slope)


def random_combination(seed: int, active: int = 16) -> tuple[Instance, Bounding]:
    """A problem and up to six of its structures with random shares."""
    rng = np.random.default_rng(seed)
    encoding = encode(random_problem(rng, int(rng.integers(3, 6))))
    inst = with_all_rows(encoding.instance)
    box = new_box(inst.n_features, inst.first.size)
    box.allowed[:], box.classes[:] = encoding.slots, True
    assert propagate(inst, box)
    oracle = new_oracle(inst.n_features, inst.first.size)
    found = []
    for _ in range(40):
        maximise(inst, box, rng.normal(size=inst.linear.size), oracle)
        found.append(oracle.vertex.copy())
    vertices = np.unique(found, axis=0)[: min(6, active)]
    b = new_bounding(inst, active, encoding.structure_magnitude)
    b.vertices[: len(vertices)] = vertices
    b.share[: len(vertices)] = rng.dirichlet(np.ones(len(vertices)))
    b.state.n_active = len(vertices)
    b.state.smoothing = 0.3 * inst.gamma
    load_margins(inst, b)
    return inst, b


def margins_of(inst: Instance, vertex: np.ndarray) -> np.ndarray:
    return sum(inst.columns[k] for k in columns_of(inst, vertex))


def smoothed(inst: Instance, b: Bounding, share: np.ndarray) -> float:
    """sum_m w_m min over p of (p . s + mu / 2 |p|^2), by the textbook projection, plus linear."""
    mu = b.state.smoothing
    vertices = b.vertices[: len(share)]
    t = sum(x * margins_of(inst, v) for x, v in zip(share, vertices, strict=True))
    total = 0.0
    for x, v in zip(share, vertices, strict=True):
        total += x * sum(inst.linear[k] for k in columns_of(inst, v))
    for m, weight in enumerate(inst.weights):
        own = t[inst.starts[m] : inst.starts[m + 1]]
        p = projected(own, inst.gamma, mu)
        rest = 1.0 - p.sum()
        total += weight * (p @ own + rest * inst.gamma + 0.5 * mu * (p @ p + rest * rest))
    return float(total)


def shares(b: Bounding) -> np.ndarray:
    return b.share[: b.state.n_active].copy()


@pytest.mark.parametrize("seed", range(30))
def test_a_step_climbs_and_keeps_a_convex_combination(seed: int) -> None:
    """Shares stay a distribution, t stays theirs, and the smoothed objective never falls."""
    inst, b = random_combination(seed)
    before = smoothed(inst, b, shares(b))
    for _ in range(4):
        newton_step(inst, b, 0.0)
        after = smoothed(inst, b, shares(b))
        assert after >= before - 1e-9 * (1 + abs(before))
        before = after
    assert shares(b).min() >= 0
    assert shares(b).sum() == pytest.approx(1)
    t = b.t.copy()
    load_margins(inst, b)
    assert b.t == pytest.approx(t, abs=1e-9 * (1 + np.abs(t).max()))


@pytest.mark.parametrize("seed", range(12))
def test_steps_reach_the_optimum_over_the_vertices(seed: int) -> None:
    """Another solver on the same small concave problem agrees; twenty steps are enough."""
    inst, b = random_combination(seed)
    vertices, begin = b.vertices[: b.state.n_active].copy(), shares(b)
    known = b._replace(vertices=vertices)
    b.share[:], mixed = 0.999 * b.share, 0.001 / len(begin)  # every vertex keeps some weight
    b.share[: len(begin)] += mixed
    load_margins(inst, b)
    for _ in range(20):
        newton_step(inst, b, 0.0)
    value = smoothed(inst, b, shares(b))
    other = minimize(
        lambda share: -smoothed(inst, known, share),
        begin,
        bounds=[(0, 1)] * len(begin),
        constraints={"type": "eq", "fun": lambda share: share.sum() - 1},
    )
    first = smoothed(inst, known, begin)
    assert value >= -other.fun - 0.02 * (-other.fun - first) - 1e-6 * (1 + abs(value))


@pytest.mark.parametrize("seed", range(20))
def test_levels_and_bends_are_derivatives(seed: int) -> None:
    """Differences of the smoothed objective, by its definition, between shares nearby."""
    inst, b = random_combination(seed)
    b.state.smoothing = 2.0 * inst.gamma + 0.1  # most samples bend, and few change their support
    level, hessian = second_order(inst, b)
    here, h = shares(b), 1e-4
    value = smoothed(inst, b, here)
    for k in range(1, len(here)):
        move = np.zeros(len(here))
        move[k], move[0] = h, -h
        up, down = smoothed(inst, b, here + move), smoothed(inst, b, here - move)
        slope, bend = (up - down) / (2 * h), (2 * value - up - down) / h**2
        direction = move / h
        scale = 1 + abs(hessian).max()
        assert slope == pytest.approx(level @ direction, abs=1e-3 * scale)
        assert bend == pytest.approx(direction @ hessian @ direction, abs=0.02 * scale)


@pytest.mark.parametrize("seed", range(20))
def test_quadratic_equals_another_solver(seed: int) -> None:
    """Over the simplex, H of any rank."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 9))
    x = rng.normal(size=(k, int(rng.integers(1, 10))))
    hessian, level, begin = x @ x.T, rng.normal(size=k), rng.dirichlet(np.ones(k))

    def value(share: np.ndarray) -> float:
        move = share - begin
        return float(level @ move - 0.5 * move @ hessian @ move)

    share = begin.copy()
    for _ in range(50):  # each goes on where the one before ran out of pairs
        here = level - hessian @ (share - begin)
        maximise_quadratic(hessian, here, share, 1e-9)
    other = minimize(
        lambda z: -value(z),
        begin,
        bounds=[(0, 1)] * k,
        constraints={"type": "eq", "fun": lambda z: z.sum() - 1},
    )
    assert share.min() >= 0
    assert share.sum() == pytest.approx(1)
    assert value(share) >= -other.fun - 1e-5


@pytest.mark.parametrize("tolerance", [-1.0, 0.0])
def test_a_single_vertex_stays(tolerance: float) -> None:
    """Whatever rounding made of what the oracle promised."""
    inst, b = random_combination(3)
    b.share[0], b.state.n_active = 1.0, 1
    load_margins(inst, b)
    newton_step(inst, b, tolerance)
    assert (b.state.n_active, b.share[0]) == (1, 1.0)


def test_equal_slopes_mean_no_step() -> None:
    """Nothing moves where nothing is to be gained."""
    inst, b = random_combination(5)
    before, t = shares(b), b.t.copy()
    assert not newton_step(inst, b, 1e99)
    assert shares(b).tolist() == before.tolist()
    assert b.t == pytest.approx(t, abs=1e-12 * (1 + np.abs(t).max()))


@pytest.mark.parametrize("seed", range(6))
def test_making_room(seed: int) -> None:
    """Only where there is none; the lightest goes, the others keep their proportions."""
    inst, b = random_combination(seed, active=3)
    full = b.state.n_active == 3
    before = np.sort(shares(b))
    make_room(inst, b)
    kept = before[1:] / before[1:].sum() if full else before
    assert np.sort(shares(b)) == pytest.approx(kept)
    t = b.t.copy()
    load_margins(inst, b)
    assert b.t == pytest.approx(t, abs=1e-9 * (1 + np.abs(t).max()))


def test_a_step_towards_a_new_vertex_adds_it_once() -> None:
    """Twice towards the same vertex is one vertex more."""
    inst, b = random_combination(7)
    target = b.vertices[b.state.n_active - 1].copy()
    b.state.n_active -= 1
    b.share[: b.state.n_active] /= b.share[: b.state.n_active].sum()
    load_margins(inst, b)
    count = int(b.state.n_active)
    for _ in range(2):
        step_towards(inst, b, target, 0, 1e-3)
    assert (b.vertices[: b.state.n_active] == target).all(axis=1).sum() == 1
    assert b.state.n_active in (count, count + 1)
    assert shares(b).sum() == pytest.approx(1)
