"""The problem value: its objective, its refusals, dominated candidates and its size."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
from brute_force import brute_force
from marginbn.exceptions import InputError, ProblemTooLargeError
from marginbn.problem.candidates import enumerate_candidates
from marginbn.problem.encoded import EncodedData, Variable
from marginbn.problem.margins import MarginKind, MarginRows
from marginbn.problem.problem import (
    StructureProblem,
    drop_dominated,
    margin_problem,
)
from marginbn.problem.scores import SCORES, get_local_score
from marginbn.problem.structure import Structure
from marginbn.scoring.local_scores import linear_problem
from strategies import data_and_structure, make_data, make_variables, random_data

KINDS: tuple[MarginKind, ...] = ("multiclass", "binary")
COIN = (Variable("class", ("head", "tail")),)


def test_soft_margin_of_the_empty_graph_by_hand() -> None:
    """Classes 0, 0, 0, 1: margins log(4/2) three times, -log(4/2) once, capped at gamma."""
    data = make_data([[0], [0], [0], [1]])
    problem = margin_problem(data, enumerate_candidates(1, 0), gamma=5.0)
    assert problem.evaluate([0]) == pytest.approx(3 * math.log(2) - math.log(2))
    assert problem.with_gamma(0.1).evaluate([0]) == pytest.approx(3 * 0.1 - math.log(2))
    assert (problem.n_samples, problem.n_rows) == (2, 2)
    assert problem.sample_weights.tolist() == [3.0, 1.0]
    assert not problem.is_linear


def test_the_smallest_rival_counts() -> None:
    """Classes 0, 0, 1, 2, 2, 2: the margin is taken against the strongest rival (eq. 8)."""
    data = make_data([[0], [0], [1], [2], [2], [2]])
    problem = margin_problem(data, enumerate_candidates(1, 0), gamma=9.0)
    expected = 2 * math.log(3 / 4) + math.log(2 / 4) + 3 * math.log(4 / 3)
    assert problem.evaluate([0]) == pytest.approx(expected)
    assert problem.n_rows == 3 * 2


def test_a_linear_problem_adds_its_scores() -> None:
    candidates = enumerate_candidates(2, 1)
    problem = StructureProblem(candidates, np.array([1.0, 2.0, 10.0, 20.0]), make_variables((2, 2)))
    assert problem.score(Structure(((), (0,)))) == 21.0
    assert problem.score(Structure(((1,), ()))) == 12.0
    assert problem.with_gamma(0.5).score(Structure(((1,), ()))) == 12.0
    assert (problem.n_samples, problem.n_rows, problem.is_linear) == (0, 0, True)
    assert problem.sample_weights.shape == (0,)
    assert problem.n_variables == 2


def test_linear_and_margin_parts_add_up() -> None:
    data = random_data(1, 10, (2, 2, 2)).merged()
    candidates = enumerate_candidates(3, 2)
    margins = margin_problem(data, candidates, gamma=0.8)
    linear = linear_problem(data, candidates, get_local_score("bic"))
    both = StructureProblem(
        candidates, linear.linear, data.variables, margins.margins, data.weights, 0.8
    )
    selection = candidates.selection(Structure(((), (0,), (0, 1))))
    assert both.evaluate(selection) == pytest.approx(
        linear.evaluate(selection) + margins.evaluate(selection)
    )


@pytest.mark.parametrize("kind", KINDS)
@given(data_and_structure(), st.floats(0.004, 7.0))
@settings(deadline=None, max_examples=50)
def test_the_objective_is_the_capped_sum_of_margins(
    kind: MarginKind, case: tuple[EncodedData, Structure], gamma: float
) -> None:
    """Equations 9 and 21 of the paper over unmerged rows, by the oracle's own counts."""
    data, structure = case
    candidates = enumerate_candidates(data.n_variables, 3)
    problem = margin_problem(data, candidates, margin=kind, gamma=gamma, smoothing=0.5)
    raw = data.codes.tolist(), data.weights.tolist(), data.arities.tolist()
    by_definition = {"multiclass": oracles.soft_margin, "binary": oracles.soft_binary_margin}[kind]
    expected = by_definition(*raw, 0.5, gamma)(structure.parents)
    value = problem.score(structure)
    assert value == pytest.approx(expected, rel=1e-10, abs=1e-10)
    assert value <= gamma * data.total_weight * (1 + 1e-12)
    assert problem.with_gamma(2 * gamma).score(structure) >= value - 1e-12 * abs(value)


@pytest.mark.parametrize("restricted", [True, False])
@pytest.mark.parametrize("name", sorted(set(SCORES) - {"mdl"}))
def test_dropping_dominated_candidates_keeps_the_optimum(name: str, restricted: bool) -> None:
    dropped = 0
    for seed, required in enumerate([(), ((0, 1),), ((0, 3), (1, 3))]):
        data = random_data(20 + seed, 40, (2, 3, 2, 2))
        candidates = enumerate_candidates(
            4, 3, class_restricted=restricted, required=required, forbidden=[(2, 0)]
        )
        problem = linear_problem(data, candidates, get_local_score(name))
        smaller = drop_dominated(problem)
        assert brute_force(smaller) == pytest.approx(brute_force(problem), rel=1e-12)
        assert all(len(smaller.candidates.group(v)) > 0 for v in range(4))
        dropped += problem.candidates.n_candidates - smaller.candidates.n_candidates
    assert dropped > 0 or name == "loglik"


def test_margin_problems_keep_all_candidates() -> None:
    """With margin rows a candidate's worth depends on the others, so none is dropped."""
    problem = margin_problem(random_data(1), enumerate_candidates(4, 2))
    assert drop_dominated(problem) is problem


@pytest.mark.parametrize("gamma", [0.0, -1.0, math.inf, math.nan])
def test_gamma_must_be_positive_and_finite(gamma: float) -> None:
    data, candidates = make_data([[0], [1]]), enumerate_candidates(1, 0)
    with pytest.raises(InputError, match=f"gamma must be a positive finite number, got {gamma}"):
        margin_problem(data, candidates, gamma=gamma)
    with pytest.raises(InputError, match="gamma must be a positive finite number"):
        margin_problem(data, candidates).with_gamma(gamma)


@pytest.mark.parametrize("smoothing", [0.0, -1.0, math.inf, math.nan])
def test_smoothing_must_be_positive(smoothing: float) -> None:
    with pytest.raises(InputError, match="smoothing must be a positive number"):
        margin_problem(make_data([[0], [1]]), enumerate_candidates(1, 0), smoothing=smoothing)


def test_wrong_margins_classes_and_rows_are_told() -> None:
    candidates = enumerate_candidates(1, 0)
    with pytest.raises(InputError, match="margin must be 'multiclass' or 'binary', got 'soft'"):
        margin_problem(make_data([[0], [1]]), candidates, margin="soft")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="at least two classes"):
        margin_problem(make_data([[0], [0]]), candidates)
    empty = EncodedData(np.empty((0, 1), np.int32), np.empty(0), COIN)
    with pytest.raises(InputError, match="no rows"):
        margin_problem(empty, candidates)


@pytest.mark.parametrize("n_variables", [1, 3])
def test_candidates_of_other_data_are_refused(n_variables: int) -> None:
    data = make_data([[0, 0], [1, 1]])
    candidates = enumerate_candidates(n_variables, 1)
    with pytest.raises(InputError, match="2 variables"):
        margin_problem(data, candidates)
    with pytest.raises(InputError, match="2 variables"):
        linear_problem(data, candidates, get_local_score("bic"))


def test_linear_scores_must_fit_and_be_finite() -> None:
    candidates = enumerate_candidates(1, 0)
    with pytest.raises(InputError, match="one score per candidate"):
        StructureProblem(candidates, np.zeros(2), COIN)
    for bad in (math.nan, -math.inf):
        with pytest.raises(InputError, match="must be finite"):
            StructureProblem(candidates, np.array([bad]), COIN)
    with pytest.raises(InputError, match="must be finite"):
        StructureProblem(enumerate_candidates(2, 0), np.array([0.0, math.nan]), COIN)
    rows = MarginRows(make_data([[0], [1]]), candidates, "binary", 1.0)
    for weights in (None, np.ones(3)):
        with pytest.raises(InputError, match="weights must hold one number per sample"):
            StructureProblem(candidates, np.zeros(1), COIN, rows, weights, 1.0)


@pytest.mark.parametrize("kind", KINDS)
def test_tables_that_cannot_be_stored_are_refused_before_any_is_made(kind: MarginKind) -> None:
    """The message counts each variable once: 2 x 65536 x 65536 joint states."""
    variables = make_variables((2, 65536, 65536))
    data = EncodedData(np.array([[0, 0, 0], [1, 1, 1]], np.int32), np.ones(2), variables)
    with pytest.raises(ProblemTooLargeError) as caught:
        margin_problem(data, enumerate_candidates(3, 2), margin=kind)
    assert f"would have {2**33} joint states" in str(caught.value)
    assert str(caught.value).count("'class'") == 1
