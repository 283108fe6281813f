"""Boxes of the engine: propagation, oracle and fixing against the list of all structures."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from marginbn.solvers.branch_bound.kernels.box import fix_box, propagate
from marginbn.solvers.branch_bound.kernels.branching import (
    EDGE,
    MEMBER,
    RELEVANCE,
    SLOT,
    list_candidates,
    restrict,
)
from marginbn.solvers.branch_bound.kernels.children import contains, move_into
from marginbn.solvers.branch_bound.kernels.node_pool import pack_box, unpack_box, words_per_box
from marginbn.solvers.branch_bound.kernels.oracle import maximise
from marginbn.solvers.branch_bound.kernels.records import Box, Instance, new_box, new_oracle
from seeds import seeds


@dataclass(frozen=True)
class Case:
    """A random box on n features with all its structures, and a random gradient."""

    inst: Instance
    box: Box
    g: np.ndarray
    structures: list[tuple[int, ...]]

    def values(self, structures: list[tuple[int, ...]]) -> list[float]:
        n = self.inst.n_features
        return [sum(self.g[i * (n + 2) + z[i]] for i in range(n + 1)) for z in structures]


def plain_instance(n: int) -> Instance:
    """No margin rows; every class set of at most two features."""
    sets = [(), *itertools.combinations(range(n), 1), *itertools.combinations(range(n), 2)]
    first = np.array([s[0] if s else -1 for s in sets], dtype=np.int64)
    second = np.array([s[1] if len(s) > 1 else -1 for s in sets], dtype=np.int64)
    k = n * (n + 2) + len(sets)
    empty = np.zeros((0, k))
    return Instance(
        n,
        1.0,
        0.0,
        0.0,
        empty,
        np.ascontiguousarray(empty.T),
        np.zeros(k),
        0.0,
        np.zeros(0),
        np.zeros(1, dtype=np.int64),
        first,
        second,
    )


def is_structure(inst: Instance, z: tuple[int, ...]) -> bool:
    """Arcs form a forest, and parents of the class have the empty set (slot n + 1)."""
    n = inst.n_features
    members = {int(inst.first[z[n]]), int(inst.second[z[n]])} - {-1}
    if any(z[j] != n + 1 for j in members):
        return False
    for i in range(n):
        seen, j = set(), i
        while j < n:
            if j in seen:
                return False
            seen.add(j)
            j = z[j]
    return True


def in_box(inst: Instance, box: Box, z: tuple[int, ...]) -> bool:
    """The definition of a box, written once more."""
    n = inst.n_features
    members = {int(inst.first[z[n]]), int(inst.second[z[n]])}
    joined = all(z[i] == j or z[j] == i for i, j in zip(*np.nonzero(box.edges), strict=True))
    useful = all(z[j] != n + 1 or j in members for j in np.flatnonzero(box.relevant))
    slots = all(box.allowed[i, z[i]] for i in range(n))
    return bool(slots and box.classes[z[n]] and joined and useful)


@cache
def all_structures(n: int) -> np.ndarray:
    inst = plain_instance(n)
    choices = [*([s for s in range(n + 2) if s != i] for i in range(n)), range(inst.first.size)]
    return np.array([z for z in itertools.product(*choices) if is_structure(inst, z)])


def structures_of(inst: Instance, box: Box) -> list[tuple[int, ...]]:
    n = inst.n_features
    z = all_structures(n)
    inside = box.allowed[np.arange(n), z[:, :n]].all(axis=1) & box.classes[z[:, n]]
    for i, j in zip(*np.nonzero(box.edges), strict=True):
        inside &= (z[:, i] == j) | (z[:, j] == i)
    for j in np.flatnonzero(box.relevant):
        member = (inst.first[z[:, n]] == j) | (inst.second[z[:, n]] == j)
        inside &= (z[:, j] != n + 1) | member
    return [tuple(row) for row in z[inside].tolist()]


def random_case(seed: int, largest: int = 4) -> Case:
    """Slots, class sets, forced edges and relevance marks at random; often empty, as in a tree."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, largest + 1))
    inst = plain_instance(n)
    box = new_box(n, inst.first.size)
    box.allowed[:] = rng.random((n, n + 2)) < rng.choice([0.5, 0.8, 1.0])
    box.allowed[np.arange(n), np.arange(n)] = False
    box.classes[:] = rng.random(inst.first.size) < rng.choice([0.3, 0.7, 1.0])
    for i, j in itertools.combinations(range(n), 2):
        box.edges[i, j] = box.edges[j, i] = rng.random() < rng.choice([0.0, 0.2, 0.4])
    box.relevant[:] = rng.random(n) < rng.choice([0.0, 0.3, 0.6])
    g = rng.normal(size=inst.linear.size) * 3
    if rng.random() < 0.3:
        g = np.round(g)
    return Case(inst, box, g, structures_of(inst, box))


def check_propagation(case: Case) -> None:
    """Propagation keeps exactly the structures of the box and recognises empty boxes."""
    possible = propagate(case.inst, case.box)
    if possible:
        assert structures_of(case.inst, case.box) == case.structures
    else:
        assert not case.structures


def check_oracle(case: Case) -> None:
    """The bound is the maximum, the vertex is in the box and has the value claimed."""
    if not propagate(case.inst, case.box):
        return
    oracle = new_oracle(case.inst.n_features, case.inst.first.size)
    upper, value = maximise(case.inst, case.box, case.g, oracle)
    if not case.structures:
        assert upper == -np.inf
        return
    best = max(case.values(case.structures))
    vertex = tuple(int(s) for s in oracle.vertex)
    assert vertex in set(case.structures)
    assert case.values([vertex])[0] == pytest.approx(value)
    assert upper == pytest.approx(best)
    assert value == pytest.approx(best)


def check_fixing(case: Case, rng: np.random.Generator) -> None:
    """Fixing and the propagation after it lose no structure above the cutoff, and report what they
    lose.
    """
    if not propagate(case.inst, case.box) or not case.structures:
        return
    values = case.values(case.structures)
    cutoff = float(rng.choice(values) + rng.choice([-1e-6, 1e-6]))
    oracle = new_oracle(case.inst.n_features, case.inst.first.size)
    possible, removed = fix_box(case.inst, case.box, 0.0, case.g, cutoff, oracle)
    possible = possible and propagate(case.inst, case.box)
    left = set(structures_of(case.inst, case.box)) if possible else set()
    lost = [v for z, v in zip(case.structures, values, strict=True) if z not in left]
    assert all(v <= cutoff + 1e-9 for v in lost)
    assert all(v <= removed + 1e-9 for v in lost)
    assert removed <= cutoff


@pytest.mark.parametrize("seed", seeds(60, 250))
def test_propagation_keeps_the_structures(seed: int) -> None:
    check_propagation(random_case(seed))


@pytest.mark.parametrize("seed", seeds(60, 250))
def test_oracle_equals_enumeration(seed: int) -> None:
    """The joint oracle with contracted edges finds the best structure, pairs of class parents
    included.
    """
    check_oracle(random_case(1000 + seed))


@pytest.mark.parametrize("seed", seeds(60, 250))
def test_fixing_loses_nothing_above_the_cutoff(seed: int) -> None:
    """Reduced-cost fixing is valid, also with class parents and forced edges (the double-counting
    traps).
    """
    check_fixing(random_case(5000 + seed), np.random.default_rng(seed))


@pytest.mark.parametrize("seed", seeds(40, 120))
def test_split_is_a_partition(seed: int) -> None:
    case = random_case(9000 + seed, largest=3)
    n = case.inst.n_features
    for kind, i, j in [(SLOT, 0, n), (SLOT, 0, 1), (EDGE, 1, 0), (RELEVANCE, 1, 0), (MEMBER, 0, 0)]:
        sides = []
        for first in (True, False):
            child = new_box(n, case.inst.first.size)
            for name in ("allowed", "classes", "edges", "relevant"):
                getattr(child, name)[:] = getattr(case.box, name)
            restrict(case.inst, child, kind, i, j, first)
            sides += structures_of(case.inst, child)
        assert sorted(sides) == case.structures


@pytest.mark.parametrize("seed", range(60))
def test_both_sides_of_every_listed_object_are_smaller(seed: int) -> None:
    """A search that splits on any of them ends; there is one while a feature is undecided."""
    case = random_case(12000 + seed, largest=3)
    if not propagate(case.inst, case.box):
        return
    candidates = list_candidates(case.inst, case.box)
    assert len(np.unique(candidates, axis=0)) == len(candidates)
    assert len(candidates) > 0 or (case.box.allowed.sum(axis=1) == 1).all()
    names = ("allowed", "classes", "edges", "relevant")
    for kind, i, j in candidates.tolist():
        for first in (True, False):
            child = new_box(case.inst.n_features, case.inst.first.size)
            for name in names:
                getattr(child, name)[:] = getattr(case.box, name)
            restrict(case.inst, child, kind, i, j, first)
            assert any((getattr(child, n) != getattr(case.box, n)).any() for n in names)


def test_packing_without_arcs_is_lossless_and_smaller() -> None:
    """Two slots per feature are kept where no feature may be another's parent."""
    rng, n, n_sets = np.random.default_rng(0), 20, 21
    words = np.zeros(words_per_box(n, n_sets, False), dtype=np.uint64)
    assert words.size == 2 < words_per_box(n, n_sets, True)
    box, copy = new_box(n, n_sets), new_box(n, n_sets)
    for flags in (box.allowed[:, n:], box.classes, box.relevant):
        flags[:] = rng.random(flags.shape) < 0.5
    copy.allowed[:] = copy.edges[:] = True
    pack_box(box, words)
    unpack_box(words, copy)
    for name in ("allowed", "classes", "edges", "relevant"):
        assert np.array_equal(getattr(copy, name), getattr(box, name))


@pytest.mark.parametrize("seed", range(40))
def test_packing_is_lossless(seed: int) -> None:
    """A box survives its storage as bits, and ``contains`` agrees with the definition."""
    case = random_case(20000 + seed)
    n, n_sets = case.inst.n_features, case.inst.first.size
    words = np.zeros(words_per_box(n, n_sets, True), dtype=np.uint64)
    pack_box(case.box, words)
    copy = new_box(n, n_sets)
    unpack_box(words, copy)
    for name in ("allowed", "classes", "edges", "relevant"):
        assert np.array_equal(getattr(copy, name), getattr(case.box, name))
    everything = new_box(n, n_sets)
    everything.allowed[:] = True
    everything.classes[:] = True
    for z in structures_of(case.inst, everything):
        assert contains(case.inst, case.box, np.array(z)) == in_box(case.inst, case.box, z)


@pytest.mark.slow
def test_many_boxes() -> None:
    """The same on thousands of boxes, up to five features."""
    rng = np.random.default_rng(0)
    for seed in range(100_000, 103_000):
        check_propagation(random_case(seed))
        check_oracle(random_case(seed))
        check_fixing(random_case(seed), rng)
    for seed in range(200_000, 200_300):
        check_propagation(random_case(seed, largest=5))
        check_oracle(random_case(seed, largest=5))
        check_fixing(random_case(seed, largest=5), rng)


def shares(case: Case, structures: np.ndarray) -> np.ndarray:
    """eta of the mean of some structures."""
    n, eta = case.inst.n_features, np.zeros(case.inst.linear.size)
    for z in structures:
        for i in range(n + 1):
            eta[i * (n + 2) + z[i]] += 1.0 / len(structures)
    return eta


def test_vertices_are_moved_into_the_box() -> None:
    """What is moved arrives in the box, as a structure; most of what is outside can be moved, and
    a slot that the box allows stays unless an edge, a class set or relevance asks for another.
    """
    tried = saved = 0
    for seed in range(300):
        case, rng = random_case(seed), np.random.default_rng(seed)
        if not propagate(case.inst, case.box) or not case.structures:
            continue
        n, inside = case.inst.n_features, set(case.structures)
        everything = all_structures(n)
        mixed = everything[rng.integers(0, len(everything), 6)]
        is_plain = not case.box.edges.any() and not case.box.relevant.any()
        for z in mixed:
            vertex = z.copy()
            moved = move_into(case.inst, case.box, shares(case, mixed), vertex, np.full(1, 7))
            if tuple(z.tolist()) in inside:
                assert moved
                assert vertex.tolist() == z.tolist()
                continue
            tried, saved = tried + 1, saved + moved
            if moved:
                assert tuple(vertex.tolist()) in inside
            if moved and is_plain and case.box.classes[z[n]]:
                kept = case.box.allowed[np.arange(n), z[:n]]
                assert (vertex[:n] == z[:n])[kept].all()
    assert saved > 0.6 * tried > 100
