"""The checker's bounds of leaves: exact to the largest values, no impossible multipliers."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from test_certificate import tiny_certificate

import oracles
from marginbn.problem.candidates import enumerate_candidates
from marginbn.proof.certificate import Multipliers, NamedRow
from marginbn.proof.checker.bounds import (
    NOTHING,
    ROW_RULES,
    Clusters,
    Edges,
    Forests,
    IntegerMajorant,
    room,
)
from marginbn.proof.checker.statement import RefutedError, Space

# ---------------------------------------------------------------------------------- forests


def best_of_leaf(space: Space, values: list[int], allowed: np.ndarray, present: Edges) -> int:
    """Largest value of the acyclic structures of a leaf, by looking at all of them."""
    best = NOTHING
    groups = [np.flatnonzero(space.child == i).tolist() for i in range(space.n_variables)]
    for chosen in itertools.product(*groups):
        parents = [space.parents[k] for k in chosen]
        joined = all(i in parents[j] or j in parents[i] for i, j in present)
        if joined and allowed[list(chosen)].all() and not oracles.has_cycle(parents):
            best = max(best, sum(values[k] for k in chosen))
    return best


@pytest.mark.parametrize("n", [2, 3, 4])
def test_forests_are_exact_up_to_the_largest_values(n: int) -> None:
    """Bonuses and penalties outweigh all values that are let in, and nothing overflows; what is
    enough only decides how far one looks.
    """
    rng = np.random.default_rng(n)
    candidates = enumerate_candidates(n, 2)
    space = Space(n, candidates.child.astype(np.int64), list(candidates.parents))
    everything = np.ones(candidates.n_candidates, dtype=bool)
    forests = Forests(space)
    largest = 2 ** room(n)[0] - 1
    pairs = list(itertools.combinations(range(n), 2))
    for a in range(40):
        values = rng.choice([-largest, largest], candidates.n_candidates)
        if a == 0:
            values[:] = -largest
        elif a % 2:
            values = rng.integers(-50, 51, candidates.n_candidates)
        present = frozenset(pair for pair in pairs if a and rng.random() < 0.4)
        allowed = everything if a < 20 else rng.random(candidates.n_candidates) < 0.8
        best = best_of_leaf(space, values.tolist(), allowed, present)
        wanted = best if best == NOTHING else best + 10**9
        majorant = IntegerMajorant(10**9, values)
        assert forests.bound(majorant, allowed, present, wanted - 1) == wanted
        assert forests.bound(majorant, allowed, present, -(2**80)) == wanted
        assert forests.bound(majorant, allowed, present, 2**80) >= wanted
        if best != NOTHING:
            assert forests.bound(majorant, allowed, present, wanted) == wanted


@pytest.mark.parametrize(
    ("child", "parents"), [(0, (1, 2, 3)), (1, (0, 2, 3)), (1, (2,)), (1, (2, 3))]
)
def test_forests_have_one_arc_per_feature_and_two_class_parents(
    child: int, parents: tuple[int, ...]
) -> None:
    """A single candidate beyond that forbids the bound."""
    sets = [[(), parents] if i == child else [()] for i in range(4)]
    numbers = [i for i, own in enumerate(sets) for _ in own]
    space = Space(4, np.array(numbers), [p for own in sets for p in own])
    majorant = IntegerMajorant(0, np.zeros(len(numbers), dtype=np.int64))
    with pytest.raises(RefutedError, match=f"variable {child} may have the parents"):
        Forests(space).bound(majorant, np.ones(len(numbers), dtype=bool), frozenset(), 0)


# ---------------------------------------------------------------------------------- clusters

TOO_LARGE = 2.0 ** room(2)[0]
PRESENT = frozenset({(0, 1)})


ROWS = (NamedRow("edge", (0, 1)), NamedRow("cluster", (0, 1)))


def bound_of_pair(multipliers: Multipliers, rows: tuple[NamedRow, ...] = ROWS) -> int:
    """Two variables with and without the other; the edge is there, and costs ten."""
    space = Space(2, np.array([0, 0, 1, 1]), [(), (1,), (), (0,)])
    clusters = Clusters(space, replace(tiny_certificate(), grid=0, rows=rows))
    majorant = IntegerMajorant(3, np.array([10, 0, 10, 0]))
    return clusters.bound(majorant, multipliers, np.ones(4, dtype=bool), PRESENT)


@pytest.mark.parametrize(
    ("row", "y", "bound"),
    [(0, 0.0, 23), (0, 0.9, 23), (0, 4.0, 19), (0, 10.0, 13), (0, 12.5, 15), (1, 4.0, 27)],
)
def test_a_multiplier_by_hand(row: int, y: float, bound: int) -> None:
    """3 + 20 without; the edge row, rounded down to the grid, takes away until arcs are as good
    as none; a cluster row helps nothing here.
    """
    assert bound_of_pair(((row, y),)) == bound


@pytest.mark.parametrize(
    ("rows", "values", "reason"),
    [
        ((0,), (-0.5,), "negative"),
        ((0,), (-1e-300,), "negative"),
        ((0,), (math.inf,), "negative"),
        ((0,), (math.nan,), "negative"),
        ((0,), (TOO_LARGE,), "too large"),
        ((0, 0), (TOO_LARGE - 1, 1.0), "too large"),
        ((0, 1), (1.0, TOO_LARGE - 10), "too large"),
        ((-1,), (1.0,), "does not exist"),
        ((2,), (1.0,), "does not exist"),
    ],
)
def test_impossible_multipliers_are_refused(
    rows: tuple[int, ...], values: tuple[float, ...], reason: str
) -> None:
    with pytest.raises(RefutedError, match=reason):
        bound_of_pair(tuple(zip(rows, values, strict=True)))


@pytest.mark.parametrize("members", [(), (2,), (-1,), (0, 2), (-1, 0), (0, 1, 2)])
def test_rows_of_nobody_are_refused(members: tuple[int, ...]) -> None:
    """The sum over no candidates is not at least one: such a row would prove anything."""
    with pytest.raises(RefutedError, match="members that do not exist"):
        bound_of_pair(((0, 5.0),), (NamedRow("cluster", members),))


def test_rows_of_an_unknown_kind_are_refused() -> None:
    """Also in a certificate that was never read from a file."""
    with pytest.raises(RefutedError, match="row 0 is of the kind 'triangle', which is not known"):
        bound_of_pair(((0, 5.0),), (NamedRow("triangle", (0, 1)),))


@pytest.mark.parametrize("kind", ["cluster", "packing"])
def test_rules_hold_for_all_graphs_over_four_variables(kind: str) -> None:
    """And no structure is above the bound that a multiplier gives."""
    candidates = enumerate_candidates(4, 3, class_restricted=False)
    space = Space(4, candidates.child, list(candidates.parents))
    graphs = [
        [candidates.index(i, own) for i, own in enumerate(graph)]
        for graph in oracles.all_graphs(4, 3, False)
    ]
    rng = np.random.default_rng(7)
    for _ in range(25):
        members = sorted(rng.choice(4, int(rng.integers(2, 5)), replace=False).tolist())
        coefficients, rhs = ROW_RULES[kind](space, tuple(members))
        assert coefficients[np.array(graphs)].sum(axis=1).min() >= rhs


def test_a_row_of_one_variable_changes_nothing() -> None:
    """It has some parent set: all its candidates gain what is taken away."""
    assert bound_of_pair(((0, 5.0),), (NamedRow("cluster", (1,)),)) == 23


def test_the_largest_multiplier_is_not_refused() -> None:
    """One less than too large: the arcs are worth that much, twice, and it is taken away once."""
    assert bound_of_pair(((0, TOO_LARGE - 1),)) == 3 + TOO_LARGE - 1


def test_a_leaf_without_structures_has_no_bound() -> None:
    """Whether one variable has nothing to choose or all of them."""
    space = Space(3, np.arange(3), [(), (), ()])
    clusters = Clusters(space, tiny_certificate())
    majorant = IntegerMajorant(0, np.ones(3, dtype=np.int64))
    for allowed in itertools.product([False, True], repeat=3):
        found = clusters.bound(majorant, (), np.array(allowed), frozenset())
        assert found == (3 if all(allowed) else NOTHING)


def test_rows_are_made_anew_once_too_many_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is forgotten is made again, with the same bound."""
    multipliers = ((0, 1.0), (1, 2.0), (0, 3.0), (1, 4.0))
    bound = bound_of_pair(multipliers)
    monkeypatch.setattr("marginbn.proof.checker.bounds.ROW_BYTES", 0)
    assert bound_of_pair(multipliers) == bound
