"""Decomposable scores against textbook formulas in plain Python."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import oracles
from marginbn.exceptions import InputError
from marginbn.problem.candidates import CandidateSets, enumerate_candidates
from marginbn.problem.encoded import EncodedData
from marginbn.problem.scores import SCORES, LocalScore, get_local_score
from marginbn.problem.structure import Structure
from marginbn.scoring.local_scores import linear_problem
from strategies import all_structures, encoded_data, make_data, make_variables, random_data

NAMES = sorted(SCORES)


def scores_of(
    data: EncodedData, candidates: CandidateSets, score: LocalScore
) -> NDArray[np.float64]:
    return linear_problem(data, candidates, score).linear


def textbook_score(
    name: str, data: EncodedData, child: int, parents: tuple[int, ...], size: float = 1.0
) -> float:
    """The local score by its definition; every parent state counts, seen or not."""
    raw = data.codes.tolist(), data.weights.tolist(), data.arities.tolist()
    return oracles.local_score(name, oracles.local_terms(*raw, child, parents), sum(raw[1]), size)


def general_scores(data: EncodedData, name: str, size: float = 1.0) -> Callable[[Structure], float]:
    candidates = enumerate_candidates(
        data.n_variables, data.n_variables - 1, class_restricted=False
    )
    return linear_problem(data, candidates, get_local_score(name, size)).score


def test_scores_of_a_coin_by_hand() -> None:
    """Three heads and one tail: L = 3 log(3/4) + log(1/4), one free parameter, 4 rows."""
    data = make_data([[0], [0], [0], [1]])
    candidates = enumerate_candidates(1, 0)
    likelihood = 3 * math.log(3 / 4) + math.log(1 / 4)
    expected = {
        "loglik": likelihood,
        "aic": likelihood - 1,
        "bic": likelihood - 0.5 * math.log(4),
        "mdl": likelihood - math.log(2),
        "k2": math.log(math.factorial(3) * 1 / math.factorial(5)),  # 3! 1! / (4 + 1)!
        # Gamma(1)/Gamma(5) * Gamma(3.5)/Gamma(.5) * Gamma(1.5)/Gamma(.5) = (15/8) (1/2) / 24
        "bdeu": math.log(15 / 16 / 24),
    }
    assert sorted(expected) == NAMES
    for name, value in expected.items():
        assert scores_of(data, candidates, get_local_score(name))[0] == pytest.approx(value)


@pytest.mark.parametrize("name", NAMES)
@given(encoded_data(), st.sampled_from([0.1, 1.0, 10.0]))
@settings(deadline=None, max_examples=25)
def test_every_candidate_has_its_textbook_score(name: str, data: EncodedData, size: float) -> None:
    candidates = enumerate_candidates(data.n_variables, 2, class_restricted=False)
    scores = scores_of(data, candidates, get_local_score(name, size))
    expected = [
        textbook_score(name, data, int(child), parents, size)
        for child, parents in zip(candidates.child, candidates.parents, strict=True)
    ]
    np.testing.assert_allclose(scores, expected, rtol=1e-10, atol=1e-10)


def equivalence_class(structure: Structure) -> tuple[object, object]:
    """Skeleton and v-structures: equal exactly for Markov-equivalent DAGs (Verma and Pearl)."""
    skeleton = frozenset(frozenset(arc) for arc in structure.arcs)
    colliders = frozenset(
        (frozenset(pair), child)
        for child, parents in enumerate(structure.parents)
        for pair in itertools.combinations(parents, 2)
        if frozenset(pair) not in skeleton
    )
    return skeleton, colliders


@pytest.mark.parametrize("name", ["loglik", "aic", "bic", "mdl", "bdeu"])
def test_equivalent_structures_score_alike(name: str) -> None:
    score = general_scores(random_data(3, 40, (3, 2, 3, 2)), name, 2.0)
    classes: dict[object, list[float]] = defaultdict(list)
    for structure in all_structures(4):
        classes[equivalence_class(structure)].append(score(structure))
    assert len(classes) == 185
    for values in classes.values():
        assert max(values) - min(values) <= 1e-9 * abs(values[0])
    means = sorted(values[0] for values in classes.values())
    if name != "loglik":  # complete graphs aside, classes are told apart
        assert np.min(np.diff(means)) > 1e-9


def test_k2_tells_equivalent_structures_apart() -> None:
    score = general_scores(random_data(3, 40, (3, 2, 3, 2)), "k2")
    there = score(Structure(((), (0,), (), ())))
    back = score(Structure(((1,), (), (), ())))
    assert abs(there - back) > 1e-3


@pytest.mark.parametrize("name", NAMES)
def test_a_million_rows_keep_their_digits(name: str) -> None:
    data = make_data([[0, 0], [0, 1], [1, 1]], None, [1e6, 3e6, 2e6 + 0.5])
    candidates = enumerate_candidates(2, 1)
    scores = scores_of(data, candidates, get_local_score(name))
    expected = [
        textbook_score(name, data, int(child), parents)
        for child, parents in zip(candidates.child, candidates.parents, strict=True)
    ]
    np.testing.assert_allclose(scores, expected, rtol=1e-9)


def test_one_registry_has_the_functions_and_their_names_in_certificates() -> None:
    """One function has one formula in certificates, whatever names users have for it."""
    formulas = {score.function: score.certificate for score in SCORES.values()}
    assert all(formulas[score.function] == score.certificate for score in SCORES.values())
    assert None not in formulas.values()


def test_unknown_scores_and_sizes_are_refused() -> None:
    with pytest.raises(InputError, match=r"score must be one of \['aic', .*got 'bde'"):
        get_local_score("bde")
    for size in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(InputError, match="equivalent_sample_size must be positive"):
            get_local_score("bdeu", size)


@pytest.mark.parametrize("name", NAMES)
def test_no_rows_is_a_clear_error(name: str) -> None:
    data = EncodedData(np.empty((0, 2), np.int32), np.empty(0), make_variables((2, 2)))
    with pytest.raises(InputError, match="no rows"):
        linear_problem(data, enumerate_candidates(2, 1), get_local_score(name))
