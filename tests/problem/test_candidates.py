"""Candidate parent sets: counted by formula, listed by hand, checked against all DAGs."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginbn.exceptions import InputError, ProblemTooLargeError
from marginbn.problem.candidates import (
    MAX_CANDIDATES,
    CandidateSets,
    count_candidates,
    enumerate_candidates,
)
from marginbn.problem.structure import Structure, is_acyclic
from strategies import all_structures


def sets_of(candidates: CandidateSets, variable: int) -> list[tuple[int, ...]]:
    return [candidates.parents[k] for k in candidates.group(variable)]


def test_three_variables_by_hand() -> None:
    """With two features and two parents: any set for the class, {} or sets with 0 for features."""
    candidates = enumerate_candidates(3, 2)
    assert sets_of(candidates, 0) == [(), (1,), (2,), (1, 2)]
    assert sets_of(candidates, 1) == [(), (0,), (0, 2)]
    assert sets_of(candidates, 2) == [(), (0,), (0, 1)]
    assert candidates.offsets.tolist() == [0, 4, 7, 10]
    assert candidates.child.tolist() == [0] * 4 + [1] * 3 + [2] * 3
    assert candidates.child.dtype == np.int32
    assert candidates.offsets.dtype == np.int64
    assert candidates.n_candidates == 10
    assert candidates.max_parents == 2
    assert candidates.is_class_restricted


FAMILIES = pytest.mark.parametrize(
    "family",
    [{"class_restricted": True}, {"class_restricted": False}, {"class_arcs": "all"}],
    ids=lambda family: str(*family.items()),
)


@FAMILIES
@pytest.mark.parametrize(
    ("n_variables", "n_constant"),
    [(n, c) for n in (1, 2, 3, 5, 7) for c in range(min(n, 3))],  # the class is never constant
)
def test_the_formula_counts_what_is_enumerated(
    n_variables: int, n_constant: int, family: dict[str, Any]
) -> None:
    constant = range(n_variables - n_constant, n_variables)
    for max_parents in range("class_arcs" in family, n_variables + 2):
        candidates = enumerate_candidates(n_variables, max_parents, constant=constant, **family)
        assert candidates.n_candidates == count_candidates(
            n_variables, max_parents, n_constant=n_constant, **family
        )
        pairs = list(zip(candidates.child.tolist(), candidates.parents, strict=True))
        assert len(set(pairs)) == len(pairs)
        assert pairs == sorted(pairs, key=lambda p: (p[0], len(p[1]), p[1]))
        assert candidates.is_class_restricted or family == {"class_restricted": False}


def is_in(structure: Structure, family: dict[str, Any]) -> bool:
    """Whether a DAG obeys the rule of its family."""
    features = structure.parents[1:]
    if "class_arcs" in family:
        return all(0 in parents for parents in features)
    return not family["class_restricted"] or all(not p or 0 in p for p in features)


@FAMILIES
@pytest.mark.parametrize("max_parents", [0, 1, 2, 3])
@pytest.mark.parametrize("n_variables", [1, 2, 3, 4])
def test_acyclic_selections_are_the_allowed_dags(
    n_variables: int, max_parents: int, family: dict[str, Any]
) -> None:
    if "class_arcs" in family and max_parents == 0:
        return
    candidates = enumerate_candidates(n_variables, max_parents, **family)
    every = all_structures(n_variables, min(max_parents, n_variables - 1))
    allowed = {s for s in every if is_in(s, family)}
    groups = [candidates.group(v) for v in range(n_variables)]
    reached = {
        candidates.structure(selection)
        for selection in product(*groups)
        if is_acyclic([candidates.parents[k] for k in selection])
    }
    assert reached == allowed
    for structure in allowed:
        selection = candidates.selection(structure)
        assert selection.dtype == np.int64
        assert candidates.structure(selection) == structure


@given(st.data())
@settings(deadline=None, max_examples=60)
def test_arc_constraints_keep_exactly_the_obedient_dags(data: st.DataObject) -> None:
    restricted = data.draw(st.booleans())
    pairs = [(p, c) for p in range(3) for c in range(3) if p != c]
    required = data.draw(st.lists(st.sampled_from(pairs), unique=True, max_size=2))
    forbidden = data.draw(
        st.lists(st.sampled_from([a for a in pairs if a not in required]), unique=True, max_size=3)
    )
    allowed = {
        s
        for s in all_structures(3)
        if is_in(s, {"class_restricted": restricted})
        and set(required) <= set(s.arcs)
        and not set(forbidden) & set(s.arcs)
    }
    try:
        candidates = enumerate_candidates(
            3, 2, class_restricted=restricted, required=required, forbidden=forbidden
        )
    except InputError:
        assert not allowed
        return
    reached = {
        candidates.structure(selection)
        for selection in product(*(candidates.group(v) for v in range(3)))
        if is_acyclic([candidates.parents[k] for k in selection])
    }
    assert reached == allowed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"required": [(0, 3)]}, r"required arcs must join two different variables in 0\.\.2"),
        ({"forbidden": [(1, 1)]}, "forbidden arcs must join two different variables"),
        ({"forbidden": [(-1, 1)]}, "forbidden arcs must join two different variables"),
        (
            {"required": [(0, 1)], "forbidden": [(0, 1)]},
            "at once .*: 0 -> 1",
        ),
        ({"required": [(0, 1), (1, 0)]}, "directed cycle"),
        ({"required": [(1, 2), (0, 2)], "max_parents": 1}, "variable 2 has no candidate"),
        ({"required": [(1, 2)], "forbidden": [(0, 2)]}, "must contain the class"),
        ({"max_parents": -1}, "max_parents must be an integer of at least 0, got -1"),
        ({"class_arcs": "some"}, "class_arcs must be 'free' or 'all', got 'some'"),
        ({"class_arcs": "all", "class_restricted": False}, "needs class_restricted=True"),
        ({"class_arcs": "all", "max_parents": 0}, "at least 1 with class_arcs='all', got 0"),
        ({"class_arcs": "all", "forbidden": [(0, 2)]}, "variable 2 has no .*use class_arcs='free'"),
        ({"class_arcs": "all", "required": [(1, 0)]}, "variable 0 has no .*use class_arcs='free'"),
    ],
)
def test_impossible_wishes_are_told(options: dict[str, object], message: str) -> None:
    given_options = {"max_parents": 2} | options
    with pytest.raises(InputError, match=message):
        enumerate_candidates(3, **given_options)  # type: ignore[arg-type]


def test_constant_features_stay_alone() -> None:
    candidates = enumerate_candidates(4, 3, constant=(2,))
    assert sets_of(candidates, 2) == [()]
    assert all(2 not in parents for parents in candidates.parents)
    assert sets_of(candidates, 1) == [(), (0,), (0, 3)]


def test_a_required_arc_wakes_a_constant_feature() -> None:
    """Required arcs hold also where one end is constant."""
    candidates = enumerate_candidates(3, 2, constant=(2,), required=[(0, 2)])
    assert sets_of(candidates, 2) == [(0,), (0, 1)]
    candidates = enumerate_candidates(3, 2, constant=(2,), required=[(2, 0)])
    assert sets_of(candidates, 0) == [(2,), (1, 2)]
    assert sets_of(candidates, 1) == [(), (0,)]


def test_constant_features_stay_alone_where_all_others_have_the_class() -> None:
    """Without an arc they change no margin; a required parent brings the class with it."""
    options: dict[str, Any] = {"class_arcs": "all", "constant": (2,)}
    candidates = enumerate_candidates(4, 2, **options)
    assert sets_of(candidates, 2) == [()]
    assert sets_of(candidates, 1) == [(0,), (0, 3)]
    assert sets_of(enumerate_candidates(4, 2, required=[(1, 2)], **options), 2) == [(0, 1)]
    assert sets_of(enumerate_candidates(4, 2, required=[(2, 0)], **options), 0) == [(2,)]
    assert sets_of(enumerate_candidates(4, 2, forbidden=[(0, 2)], **options), 2) == [()]


def test_too_many_candidates_are_refused_before_they_are_made() -> None:
    with pytest.raises(ProblemTooLargeError) as caught:
        enumerate_candidates(60, 10**9)
    expected = 2**59 + 59 * (1 + 2**58)  # any set for the class, any set with it for features
    assert str(expected) in str(caught.value)
    assert str(MAX_CANDIDATES) in str(caught.value)
    assert "reduce max_parents" in str(caught.value)


def test_index_finds_every_candidate_and_nothing_else() -> None:
    candidates = enumerate_candidates(4, 2)
    for k, parents in enumerate(candidates.parents):
        assert candidates.index(int(candidates.child[k]), parents[::-1]) == k
    with pytest.raises(KeyError):
        candidates.index(1, (2,))


def test_structures_outside_the_candidates_are_refused() -> None:
    candidates = enumerate_candidates(3, 1)
    with pytest.raises(InputError, match=r"gives variable 2 the parents \(0, 1\)"):
        candidates.selection(Structure(((), (0,), (0, 1))))
    for parents in ((), ((),) * 2, ((),) * 4):
        with pytest.raises(InputError):
            candidates.selection(Structure(parents))


def test_selections_for_the_wrong_variables_are_refused() -> None:
    """A selection takes one candidate of each variable, in order; cycles are refused as well."""
    candidates = enumerate_candidates(3, 1)
    right = candidates.selection(Structure(((), (0,), (0,))))
    for wrong in (right[::-1], right[:2], [*right, 0], right - candidates.n_candidates):
        with pytest.raises(InputError, match="selection"):
            candidates.structure(wrong)
    cyclic = [candidates.index(0, (1,)), candidates.index(1, (0,)), candidates.index(2, ())]
    with pytest.raises(InputError, match="directed cycle"):
        candidates.structure(cyclic)


def test_keeping_some_renumbers_the_rest() -> None:
    candidates = enumerate_candidates(4, 2)
    mask = np.array([len(p) < 2 for p in candidates.parents])
    kept = candidates.keep(mask)
    assert kept.parents == enumerate_candidates(4, 1).parents
    assert kept.offsets.tolist() == enumerate_candidates(4, 1).offsets.tolist()
