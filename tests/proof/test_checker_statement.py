"""The checker's own candidates and graphs, against definitions and against the package."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import oracles
from marginbn.problem.candidates import enumerate_candidates
from marginbn.proof.certificate import Candidates, Data
from marginbn.proof.checker.statement import RefutedError, Sets, Space, build_space, is_acyclic
from problems import random_candidates


def data_of(n: int) -> Data:
    names = tuple(f"v{i}" for i in range(n))
    return Data(names, (("0", "1"),) * n, np.zeros((1, n), dtype=np.int32), np.ones(1))


def listed(*sets: tuple[tuple[int, ...], ...]) -> Candidates:
    """Candidates without a rule."""
    return Candidates(None, sets)


# ---------------------------------------------------------------------------------- candidates


def test_any_rule_makes_the_package_s_candidates() -> None:
    rng = np.random.default_rng(0)
    found = [made for made in (random_candidates(rng) for _ in range(100)) if made is not None]
    assert len(found) > 60
    assert sum(made.rule is not None and made.rule.class_arcs == "all" for made in found) > 10
    for made in found:
        rule = Candidates(made.rule, ())
        space = build_space(data_of(made.n_variables), rule)
        assert space.child.tolist() == made.child.tolist()
        assert space.parents == list(made.parents)


@pytest.mark.parametrize(
    ("sets", "reason"),
    [
        ((((),),), "listed for 1 variables, there are 2"),
        ((((),), ((),), ((),)), "listed for 3 variables, there are 2"),
        ((((0,),), ((),)), "impossible parent set"),
        ((((),), ((1,),)), "impossible parent set"),
        ((((2,),), ((),)), "impossible parent set"),
        ((((-1,),), ((),)), "impossible parent set"),
        ((((1, 1),), ((),)), "impossible parent set"),
        ((((), ()), ((),)), "lists a parent set twice"),
        ((((),), ((0,), (), (0,))), "lists a parent set twice"),
    ],
)
def test_impossible_lists_are_refused(
    sets: tuple[tuple[tuple[int, ...], ...], ...], reason: str
) -> None:
    """Own, absent, repeated and unsorted parents; sets that appear twice; too few or many lists."""
    with pytest.raises(RefutedError, match=reason):
        build_space(data_of(2), listed(*sets))


def test_parents_are_listed_in_order() -> None:
    """{1, 2} is a parent set, (2, 1) is none."""
    space = build_space(data_of(3), listed(((1, 2),), ((),), ((), (0,))))
    assert space.parents == [(1, 2), (), (), (0,)]
    assert space.child.tolist() == [0, 1, 2, 2]
    with pytest.raises(RefutedError, match="impossible"):
        build_space(data_of(3), listed(((2, 1),), ((),), ((),)))


def test_too_many_candidates_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = enumerate_candidates(3, 2, class_restricted=False).rule
    candidates = Candidates(rule, ())
    limits = "marginbn.proof.checker.statement."
    monkeypatch.setattr(limits + "LARGEST_TABLE", 36)
    assert len(build_space(data_of(3), candidates).parents) == 12
    monkeypatch.setattr(limits + "LARGEST_TABLE", 35)
    with pytest.raises(RefutedError, match="12 candidates are too many"):
        build_space(data_of(3), candidates)
    monkeypatch.setattr(limits + "LARGEST_TABLE", 11)
    with pytest.raises(RefutedError, match="variable 0 has too many"):
        build_space(data_of(3), candidates)


def test_acyclic_graphs_are_those_of_the_definition() -> None:
    """All graphs of three variables, against a search for a cycle."""
    sets = [[s for size in range(3) for s in itertools.combinations(o, size)] for o in others(3)]
    graphs = list(itertools.product(*sets))
    assert len(graphs) == 64
    found = [is_acyclic(list(graph)) for graph in graphs]
    assert found == [not oracles.has_cycle(list(graph)) for graph in graphs]
    assert sum(found) == 25


def others(n: int) -> Sets:
    """All variables but one, for each."""
    return [tuple(v for v in range(n) if v != i) for i in range(n)]


@pytest.mark.parametrize("cluster", [(0,), (1, 2), (0, 1, 2), (0, 3), (0, 1, 2, 3)])
def test_sets_of_candidates_are_those_of_the_definition(cluster: tuple[int, ...]) -> None:
    """Outside a cluster, holding a parent, joining a pair."""
    made = enumerate_candidates(4, 2, class_restricted=False)
    space = Space(4, made.child.astype(np.int64), list(made.parents))
    pairs = list(zip(made.child.tolist(), made.parents, strict=True))
    outside = [i in cluster and set(cluster).isdisjoint(p) for i, p in pairs]
    assert space.outside(cluster).tolist() == outside
    i, j = cluster[0], 3 - cluster[0]
    assert space.holding(i, j).tolist() == [c == i and j in p for c, p in pairs]
    joining = [(c == i and j in p) or (c == j and i in p) for c, p in pairs]
    assert space.joining(i, j).tolist() == joining
    assert [space.number[pair] for pair in pairs] == list(range(len(pairs)))
