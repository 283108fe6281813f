"""Cluster inequalities: valid for every graph, and found where a point violates them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import oracles
from marginbn.problem.candidates import enumerate_candidates
from marginbn.solvers.branch_cut.rows import (
    Support,
    cluster_row,
    descend,
    free_mass,
    separate_by_enumeration,
    separate_exactly,
    violated_by_selection,
)

RESTRICTED = pytest.mark.parametrize("restricted", [False, True])


def point_of(candidates, graph):
    """The 0/1 point of a graph."""
    point = np.zeros(candidates.n_candidates)
    for child, parents in enumerate(graph):
        point[candidates.index(child, parents)] = 1.0
    return point


def random_point(rng, candidates):
    """A point with convex weights on a few candidates of each variable."""
    point = np.zeros(candidates.n_candidates)
    for variable in range(candidates.n_variables):
        group = np.asarray(candidates.group(variable))
        chosen = rng.choice(group, size=min(3, len(group)), replace=False)
        point[chosen] = rng.dirichlet(np.ones(len(chosen)))
    return point


def compiled_arrays(candidates, point):
    """The support of a point as the compiled functions want it."""
    used = np.flatnonzero(point > 0)
    members = np.full((len(used), max(candidates.max_parents, 1)), -1, dtype=np.int64)
    for row, k in enumerate(used):
        members[row, : len(candidates.parents[k])] = candidates.parents[k]
    return candidates.child[used].astype(np.int64), members, point[used]


def test_two_cycle_by_hand():
    """Two variables that are each other's parent leave no free mass, and the row says so."""
    candidates = enumerate_candidates(3, 1, class_restricted=False)
    point = point_of(candidates, ((), (2,), (1,)))
    row = cluster_row(candidates, {1, 2})
    assert free_mass(Support.of(candidates, point), {1, 2}) == 0.0
    assert [candidates.parents[k] for k in row.index] == [(2,), (1,)]
    assert row.coefficient * point[row.index].sum() == -2.0 < row.bound == -1.0


@RESTRICTED
def test_no_acyclic_graph_violates_a_cluster(restricted):
    """On four variables every cluster row holds for every acyclic graph, with equality for some."""
    candidates = enumerate_candidates(4, 3, class_restricted=restricted)
    points = np.array(
        [point_of(candidates, graph) for graph in oracles.all_graphs(4, 3, restricted)]
    )
    for size in (2, 3, 4):
        for members in combinations(range(4), size):
            row = cluster_row(candidates, members)
            left = row.coefficient * points[:, row.index].sum(axis=1)
            assert left.min() == row.bound


@RESTRICTED
def test_both_forms_of_the_row_agree_with_the_free_mass(restricted):
    """Row activity minus bound equals f(K) - 1 at points that satisfy convexity."""
    candidates = enumerate_candidates(5, 3, class_restricted=restricted)
    rng = np.random.default_rng(5)
    for _ in range(20):
        point = random_point(rng, candidates)
        support = Support.of(candidates, point)
        members = rng.choice(5, size=int(rng.integers(2, 6)), replace=False)
        row = cluster_row(candidates, [int(v) for v in members])
        slack = row.coefficient * point[row.index].sum() - row.bound
        assert slack == pytest.approx(free_mass(support, row.members) - 1.0)


def test_enumeration_lists_exactly_the_violated_clusters():
    """Enumeration finds a cluster if and only if its free mass is below one."""
    candidates = enumerate_candidates(4, 2, class_restricted=False)
    support = Support.of(candidates, random_point(np.random.default_rng(1), candidates))
    found = set(separate_by_enumeration(support))
    for size in (2, 3, 4):
        for members in combinations(range(4), size):
            assert (frozenset(members) in found) == (free_mass(support, members) < 1 - 1e-6)


def test_descent_never_ends_above_its_start():
    """The descent ends in a cluster of two or more with no larger free mass than its start."""
    candidates = enumerate_candidates(5, 3, class_restricted=False)
    rng = np.random.default_rng(2)
    for _ in range(20):
        support = Support.of(candidates, random_point(rng, candidates))
        cluster, value = descend(support, {0, 1})
        assert len(cluster) >= 2
        assert value == pytest.approx(free_mass(support, cluster))
        assert value <= free_mass(support, {0, 1}) + 1e-12


def test_cycles_of_selections_have_no_free_mass():
    """A cyclic graph gives a cluster of free mass zero, an acyclic one gives none."""
    choices = [oracles.parent_sets(v, 4, 2, False) for v in range(4)]
    candidates = enumerate_candidates(4, 2, class_restricted=False)
    rng = np.random.default_rng(3)
    for _ in range(300):
        graph = tuple(c[int(rng.integers(len(c)))] for c in choices)
        cluster = violated_by_selection(graph)
        assert (cluster is not None) == oracles.has_cycle(graph)
        if cluster is not None:
            support = Support.of(candidates, point_of(candidates, graph))
            assert free_mass(support, cluster) == 0.0


@RESTRICTED
def test_compiled_separation_finds_only_violated_clusters(restricted):
    """Whatever the compiled separation returns is violated, with the free mass it says."""
    from marginbn.solvers.branch_cut.kernels.separation import separate

    candidates = enumerate_candidates(5, 3, class_restricted=restricted)
    rng = np.random.default_rng(4)
    usable = np.ones(5, dtype=bool)
    usable[0] = not restricted
    state = np.array([4711], dtype=np.int64)
    n_found = n_missed = 0
    for _ in range(60):
        point = random_point(rng, candidates)
        support = Support.of(candidates, point)
        found, values = separate(*compiled_arrays(candidates, point), usable, state, 2, 1e-4, 64)
        for inside, value in zip(found, values, strict=True):
            members = {int(v) for v in np.flatnonzero(inside)}
            assert len(members) >= 2
            assert usable[sorted(members)].all()
            assert free_mass(support, members) == pytest.approx(value)
            assert value < 1 - 1e-4
        exact = [c for c in separate_by_enumeration(support, 1e-4) if usable[sorted(c)].all()]
        n_found += len(found) > 0
        n_missed += len(found) == 0 and len(exact) > 0
    assert n_found > 10
    assert n_missed == 0  # a heuristic in general, complete on these points


def test_compiled_descent_equals_the_readable_one():
    """Both descents end at the same free mass from every pair."""
    from marginbn.solvers.branch_cut.kernels.separation import descend_from

    candidates = enumerate_candidates(5, 3, class_restricted=False)
    rng = np.random.default_rng(6)
    for _ in range(10):
        point = random_point(rng, candidates)
        support = Support.of(candidates, point)
        for pair in combinations(range(5), 2):
            inside = np.isin(np.arange(5), pair)
            value = descend_from(
                *compiled_arrays(candidates, point), np.ones(5, dtype=bool), inside, np.zeros(5)
            )
            cluster, readable = descend(support, pair)
            assert value == pytest.approx(readable)
            assert set(np.flatnonzero(inside)) == set(cluster)


def test_exact_separation_finds_the_most_violated_cluster():
    """The integer programme finds the smallest free mass of all clusters, or says none."""
    candidates = enumerate_candidates(5, 3, class_restricted=False)
    rng = np.random.default_rng(8)
    for _ in range(15):
        support = Support.of(candidates, random_point(rng, candidates))
        best = separate_by_enumeration(support)
        found = separate_exactly(support)
        assert (found is None) == (not best)
        if found is not None:
            assert free_mass(support, found) == pytest.approx(free_mass(support, best[0]))
    graph = ((), (0,), (0, 1), (), (2,))
    assert separate_exactly(Support.of(candidates, point_of(candidates, graph))) is None
