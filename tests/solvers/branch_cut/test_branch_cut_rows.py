"""Cluster inequalities: valid for every graph, and found where a point violates them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pytest

import oracles
from marginbn.problem.candidates import CandidateSets, enumerate_candidates
from marginbn.problem.encoded import Variable
from marginbn.problem.problem import StructureProblem
from marginbn.problem.structure import find_cycle
from marginbn.solvers.branch_cut.arrays import Instance, build_instance
from marginbn.solvers.branch_cut.cuts import (
    ClusterCut,
    FacetCut,
    PackingCut,
    RowPool,
    all_facets,
)
from marginbn.solvers.branch_cut.kernels.separation import (
    SupportArrays,
    search_clusters,
    separate,
)
from marginbn.solvers.branch_cut.separators import (
    ClusterSeparator,
    FacetSeparator,
    PackingSeparator,
)
from problems import small_margin_problem


@dataclass(frozen=True)
class Support:
    """The candidates that a point uses: children, parent sets and masses, in the same order."""

    n_variables: int
    child: tuple[int, ...]
    parents: tuple[tuple[int, ...], ...]
    mass: tuple[float, ...]

    @classmethod
    def of(cls, candidates: CandidateSets, point: np.ndarray) -> Support:
        """Candidates of positive mass."""
        used = [int(k) for k in np.flatnonzero(point > 0)]
        return cls(
            candidates.n_variables,
            tuple(int(candidates.child[k]) for k in used),
            tuple(candidates.parents[k] for k in used),
            tuple(float(point[k]) for k in used),
        )

    def items(self) -> Iterator[tuple[int, tuple[int, ...], float]]:
        """(child, parents, mass) of every candidate."""
        return zip(self.child, self.parents, self.mass, strict=True)


def free_mass(support: Support, members: Collection[int]) -> float:
    """f(K): mass of the members' candidates that have no parent in the cluster."""
    cluster = frozenset(members)
    return sum(
        mass
        for child, parents, mass in support.items()
        if child in cluster and cluster.isdisjoint(parents)
    )


def instance_of(candidates: CandidateSets) -> Instance:
    """The arrays of candidates that all score zero."""
    variables = tuple(Variable(str(i), ()) for i in range(candidates.n_variables))
    scores = np.zeros(candidates.n_candidates)
    return build_instance(StructureProblem(candidates, scores, variables))


RESTRICTED = pytest.mark.parametrize("restricted", [False, True])


def point_of(candidates, graph):
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


def compiled_support(candidates, point, usable):
    """The support of a point as the compiled functions want it."""
    used = np.flatnonzero(point > 0)
    members = np.full((len(used), max(candidates.max_parents, 1)), -1, dtype=np.int64)
    for row, k in enumerate(used):
        members[row, : len(candidates.parents[k])] = candidates.parents[k]
    return SupportArrays(candidates.child[used].astype(np.int64), members, point[used], usable)


def separate_by_enumeration(support: Support, violation: float = 1e-6) -> list[frozenset[int]]:
    """Every violated cluster, the most violated first; for a handful of variables only."""
    variables = range(support.n_variables)
    clusters = [
        frozenset(members)
        for size in range(2, support.n_variables + 1)
        for members in combinations(variables, size)
    ]
    found = [(free_mass(support, cluster), cluster) for cluster in clusters]
    found = [pair for pair in found if pair[0] < 1.0 - violation]
    return [cluster for _, cluster in sorted(found, key=lambda pair: (pair[0], sorted(pair[1])))]


def test_two_cycle_by_hand():
    """Two variables that are each other's parent leave no free mass, and the row says so."""
    candidates = enumerate_candidates(3, 1, class_restricted=False)
    point = point_of(candidates, ((), (2,), (1,)))
    row = ClusterCut((1, 2)).row(instance_of(candidates))
    assert free_mass(Support.of(candidates, point), {1, 2}) == 0.0
    assert [candidates.parents[k] for k in row.index] == [(2,), (1,)]
    assert row.activity(point) == -2.0 < row.rhs == -1.0


@RESTRICTED
def test_no_acyclic_graph_violates_a_cluster(restricted):
    candidates = enumerate_candidates(4, 3, class_restricted=restricted)
    points = np.array(
        [point_of(candidates, graph) for graph in oracles.all_graphs(4, 3, restricted)]
    )
    instance = instance_of(candidates)
    for size in (2, 3, 4):
        for members in combinations(range(4), size):
            row = ClusterCut(tuple(members)).row(instance)
            assert (points[:, row.index] @ row.coefficient).min() == row.rhs


@RESTRICTED
def test_both_forms_of_the_row_agree_with_the_free_mass(restricted):
    """Row activity minus bound equals f(K) - 1 at points that satisfy convexity."""
    candidates = enumerate_candidates(5, 3, class_restricted=restricted)
    rng = np.random.default_rng(5)
    for _ in range(20):
        point = random_point(rng, candidates)
        support = Support.of(candidates, point)
        members = rng.choice(5, size=int(rng.integers(2, 6)), replace=False).tolist()
        row = ClusterCut(tuple(members)).row(instance_of(candidates))
        assert row.activity(point) - row.rhs == pytest.approx(free_mass(support, members) - 1.0)


def test_cycles_of_selections_have_no_free_mass():
    choices = [oracles.parent_sets(v, 4, 2, False) for v in range(4)]
    candidates = enumerate_candidates(4, 2, class_restricted=False)
    rng = np.random.default_rng(3)
    for _ in range(300):
        graph = tuple(c[int(rng.integers(len(c)))] for c in choices)
        cluster = find_cycle(graph)
        assert (cluster is not None) == oracles.has_cycle(graph)
        if cluster is not None:
            support = Support.of(candidates, point_of(candidates, graph))
            assert free_mass(support, cluster) == 0.0


@RESTRICTED
def test_compiled_separation_finds_only_violated_clusters(restricted):
    candidates = enumerate_candidates(5, 3, class_restricted=restricted)
    rng = np.random.default_rng(4)
    usable = np.ones(5, dtype=bool)
    usable[0] = not restricted
    state = np.array([4711], dtype=np.int64)
    n_found = n_missed = 0
    for _ in range(60):
        point = random_point(rng, candidates)
        support = Support.of(candidates, point)
        found, values = separate(compiled_support(candidates, point, usable), state, 2, 1e-4, 64)
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


def test_exhaustive_separation_finds_a_violated_cluster_or_proves_that_there_is_none():
    """It agrees with enumeration where minimum cuts are not asked, and says when it gives up."""
    candidates = enumerate_candidates(5, 3, class_restricted=False)
    rng = np.random.default_rng(8)
    everybody = np.ones(5, dtype=bool)
    for _ in range(40):
        point = random_point(rng, candidates)
        support = Support.of(candidates, point)
        arrays = compiled_support(candidates, point, everybody)
        best = separate_by_enumeration(support)
        found, values, complete = search_clusters(arrays, 1e-6, 10_000, 4)
        assert bool(best) == bool(len(found))
        assert complete or len(found) == 4
        for inside, value in zip(found, values, strict=True):
            members = {int(v) for v in np.flatnonzero(inside)}
            assert free_mass(support, members) == pytest.approx(value)
            assert value < 1 - 1e-6
    graph = ((), (0,), (0, 1), (), (2,))
    arrays = compiled_support(candidates, point_of(candidates, graph), everybody)
    assert search_clusters(arrays, 1e-6, 10_000, 4)[2]
    assert not search_clusters(arrays, 1e-6, 1, 4)[2]


# ---------------------------------------------------------------- kinds of cuts


def test_every_row_has_a_number_and_a_name_in_certificates() -> None:
    """A class row is the cluster of the class and the feature; edges are no rows of all nodes."""
    problem = small_margin_problem(0, n_features=3)
    pool = RowPool(build_instance(problem))
    numbers = [*pool.class_rows(), pool.cluster({3, 1}), pool.edge(2, 1)]
    assert [pool.describe(n) for n in numbers] == [
        *(("cluster", (0, j)) for j in (1, 2, 3)),
        ("cluster", (1, 3)),
        ("edge", (1, 2)),
    ]
    assert [*pool.class_rows(), pool.cluster({1, 3}), pool.edge(1, 2)] == numbers
    lasting = pool.violations(np.zeros(problem.candidates.n_candidates)) > -np.inf
    assert lasting.tolist() == [True] * (len(numbers) - 1) + [False]


@pytest.mark.parametrize("n", [3, 4])
def test_no_acyclic_graph_violates_a_packing(n: int) -> None:
    """At most one member has all the others as parents, and one has in some graphs."""
    candidates = enumerate_candidates(n, 3, class_restricted=False)
    row = PackingCut(tuple(range(n))).row(instance_of(candidates))
    points = np.array([point_of(candidates, graph) for graph in oracles.all_graphs(n, 3, False)])
    assert (points[:, row.index] @ row.coefficient).min() == row.rhs == -1.0


def test_packing_by_hand() -> None:
    """Three variables with half of {both others} each: one and a half where one is the limit."""
    candidates = enumerate_candidates(3, 2, class_restricted=False)
    pool = RowPool(instance_of(candidates))
    point = np.zeros(candidates.n_candidates)
    for i, (j, k) in enumerate([(1, 2), (0, 2), (0, 1)]):
        point[candidates.index(i, ())] = point[candidates.index(i, (j, k))] = 0.5
    [cut] = PackingSeparator(pool, 0).separate(point, 5, 1e-4)
    assert cut == PackingCut((0, 1, 2))
    assert pool[pool.number(cut)].activity(point) == -1.5
    assert ClusterSeparator(pool, 0).separate(point, 5, 1e-4) == []  # no cluster sees it


def test_facets_hold_for_all_graphs_over_four_variables() -> None:
    """With equality for 28 of them that span what an inequality over 28 numbers can say, so that no
    others imply them. Clusters and packings are none of them.
    """
    candidates = enumerate_candidates(4, 3, class_restricted=False)
    instance = instance_of(candidates)
    points = np.array([point_of(candidates, graph) for graph in oracles.all_graphs(4, 3, False)])
    others = [k for k, parents in enumerate(candidates.parents) if parents]
    assert len(points) == 543
    for weights in all_facets():
        row = FacetCut((0, 1, 2, 3, *weights)).row(instance)
        sums = points[:, row.index] @ row.coefficient
        assert sums.min() == row.rhs
        tight = points[sums == row.rhs][:, others]
        assert np.linalg.matrix_rank(tight - tight[0]) == len(others) - 1
    assert len(all_facets()) == 81


def test_facets_are_found_among_more_variables() -> None:
    """Four of six variables have two of the other three as parents, with two thirds each (the first
    kind allows two); the facet is found where the four stand, and nothing where a fifth is chosen.
    """
    candidates = enumerate_candidates(6, 3, class_restricted=False)
    four, pool = (1, 2, 4, 5), RowPool(instance_of(candidates))
    point = np.zeros(candidates.n_candidates)
    for i in (0, 3):
        point[candidates.index(i, ())] = 1.0
    for i in four:
        others = [j for j in four if j != i]
        point[candidates.index(i, ())] = 1.0 / 3.0
        for pair in combinations(others, 2):
            point[candidates.index(i, pair)] = 2.0 / 9.0
    assert PackingSeparator(pool, 0).separate(point, 5, 1e-4) == []
    found = FacetSeparator(pool, 0).separate(point, 5, 1e-4)
    assert [cut.members[:4] for cut in found] == [four]
    row = found[0].row(pool.instance)
    assert row.activity(point) < row.rhs - 0.2
    assert FacetSeparator(pool, 0).separate(point, 5, 1.0) == []


@pytest.mark.parametrize("seed", range(5))
def test_the_most_violated_facets_are_found(seed: int) -> None:
    """At random points against all sets and all facets, where no arc is too small."""
    candidates = enumerate_candidates(6, 3, class_restricted=False)
    instance, rng = instance_of(candidates), np.random.default_rng(seed)
    point = random_point(rng, candidates)
    best = {}
    for four in combinations(range(6), 4):
        rows = [FacetCut((*four, *weights)).row(instance) for weights in all_facets()]
        best[four] = max(row.rhs - row.activity(point) for row in rows)
    found = FacetSeparator(RowPool(instance), 0).separate(point, 15, 0.01)
    excess = {cut.members[:4]: (r := cut.row(instance)).rhs - r.activity(point) for cut in found}
    expected = {four: value for four, value in best.items() if value > 0.01}
    assert excess == pytest.approx(expected)
    assert list(excess.values()) == sorted(excess.values(), reverse=True)


def test_rows_without_dead_candidates() -> None:
    candidates = enumerate_candidates(4, 2, class_restricted=False)
    pool = RowPool(instance_of(candidates))
    early = pool.cluster({0, 1, 2})
    alive = np.random.default_rng(0).random(candidates.n_candidates) < 0.6
    whole = pool[early]
    pool.restrict(alive)
    late = pool.cluster({1, 2, 3})
    assert alive[pool[early].index].all()
    assert alive[pool[late].index].all()
    point = np.where(alive, 0.25, 0.0)
    assert pool[early].activity(point) == whole.activity(point)
    assert pool.violations(point)[early] == whole.rhs - whole.activity(point)
