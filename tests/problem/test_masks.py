"""Bit masks in place of tuples, also where 64 bits are not enough."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from marginbn import StructureProblem, Variable
from marginbn.problem.candidates import CandidateSets
from marginbn.problem.masks import ParentSets, SetTable, masks_of, set_sizes, sorting_order
from marginbn.problem.problem import drop_dominated


def random_sets(
    rng: np.random.Generator, n: int, count: int, largest: int
) -> list[tuple[int, ...]]:
    drawn = {
        tuple(sorted(rng.choice(n, int(rng.integers(0, largest + 1)), replace=False).tolist()))
        for _ in range(count)
    }
    return sorted(drawn)


@pytest.mark.parametrize("n_variables", [3, 64, 65, 200])
def test_masks_and_tuples_say_the_same(n_variables: int) -> None:
    sets = random_sets(np.random.default_rng(n_variables), n_variables, 300, min(6, n_variables))
    masks = masks_of(sets, n_variables)
    lazy = ParentSets(masks)
    assert tuple(lazy) == tuple(sets) == tuple(lazy[k] for k in range(len(lazy))) == lazy[:]
    assert lazy == tuple(sets)
    assert lazy != tuple(sets[:-1])
    assert set_sizes(masks).tolist() == [len(s) for s in sets]
    by_tuples = sorted(range(len(sets)), key=lambda k: (len(sets[k]), sets[k]))
    assert sorting_order(masks).tolist() == by_tuples


@pytest.mark.parametrize("n_variables", [10, 130])
def test_a_table_finds_its_sets_and_no_others(n_variables: int) -> None:
    sets = random_sets(np.random.default_rng(1), n_variables, 200, 4)
    known, others = sets[::2], sets[1::2]
    table = SetTable(masks_of(known, n_variables))
    assert table.find(masks_of(known, n_variables)).tolist() == list(range(len(known)))
    assert (table.find(masks_of(others, n_variables)) == -1).all()
    with pytest.raises(ValueError, match="twice"):
        SetTable(masks_of([(1,), (1,)], n_variables))


def best_below(sets: list[tuple[int, ...]], scores: dict[tuple[int, ...], float]) -> list[float]:
    """The plain way: look every proper subset up."""
    return [
        max(
            (scores.get(s, -math.inf) for size in range(len(t)) for s in combinations(t, size)),
            default=-math.inf,
        )
        for t in sets
    ]


@pytest.mark.parametrize("n_variables", [8, 90])
@pytest.mark.parametrize("seed", range(4))
def test_dominated_sets_are_those_with_a_better_subset(seed: int, n_variables: int) -> None:
    rng = np.random.default_rng(seed)
    groups = [
        sorted(
            {(), *random_sets(rng, min(9, n_variables - 1), 400 if v else 1500, 5)},
            key=lambda s: (len(s), s),
        )
        for v in range(n_variables)[:3]
    ]
    groups += [[()]] * (n_variables - 3)
    flat = [s for group in groups for s in group]
    child = np.repeat(np.arange(n_variables, dtype=np.int32), [len(g) for g in groups])
    # few different values, so that there are ties; larger sets a little better
    linear = rng.integers(0, 40, len(flat)) + np.array([2.0 * len(s) for s in flat])
    variables = tuple(Variable(f"v{i}", ()) for i in range(n_variables))
    expected = []
    for v, group in enumerate(groups):
        own = linear[child == v]
        scores = dict(zip(group, own.tolist(), strict=True))
        below = best_below(group, scores)
        expected += [(v, s) for s, b in zip(group, below, strict=True) if scores[s] > b]
    for parents in (tuple(flat), ParentSets(masks_of(flat, n_variables))):
        problem = StructureProblem(CandidateSets(n_variables, child, parents), linear, variables)
        kept = drop_dominated(problem).candidates
        assert list(zip(kept.child.tolist(), kept.parents, strict=True)) == expected
        places = kept.places_in(problem.candidates)
        assert [problem.candidates.parents[k] for k in places] == [s for _, s in expected]
        assert (problem.candidates.places_in(kept) < 0).sum() == len(flat) - len(expected)
