"""From a problem to the definition in its certificate."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from marginbn import Statement, local_scores, solve_structure, verify_certificate
from marginbn.exceptions import InputError
from marginbn.problem.candidates import enumerate_candidates
from marginbn.problem.encoded import EncodedData, Variable
from marginbn.problem.problem import (
    StructureProblem,
    drop_dominated,
    margin_problem,
)
from marginbn.problem.scores import SCORES, get_local_score
from marginbn.proof import exact
from marginbn.proof.certificate import Score
from marginbn.proof.definition import data_behind, define_candidates, define_data, define_score
from marginbn.scoring.local_scores import linear_problem
from problems import small_linear_problem, small_margin_problem
from seeds import slow

LABELS = (Variable("class", ("a", "b")), Variable("x", ("0", "1")))
DATA = EncodedData(np.array([[0, 0], [1, 1], [0, 0]]), np.array([1.0, 2.0, 4.0]), LABELS)


def kept_only(problem: StructureProblem, kept: list[int]) -> StructureProblem:
    """The problem with some of its candidates."""
    keep = np.isin(np.arange(problem.candidates.n_candidates), kept)
    return replace(problem, candidates=problem.candidates.keep(keep), linear=problem.linear[keep])


# ---------------------------------------------------------------------------------- data, score


def test_equal_rows_are_merged_and_labels_kept() -> None:
    """Two rows of weight 1 and 4 are one of weight 5."""
    data = define_data(DATA)
    assert (data.names, data.states) == (("class", "x"), (("a", "b"), ("0", "1")))
    assert dict(zip(map(tuple, data.codes.tolist()), data.weights.tolist(), strict=True)) == {
        (0, 0): 5.0,
        (1, 1): 2.0,
    }


def test_the_data_behind_a_problem() -> None:
    """Margins have theirs, scores their origin; given scores have none."""
    candidates = enumerate_candidates(2, 1)
    margins = margin_problem(DATA, candidates)
    assert margins.margins is not None
    assert data_behind(margins) is margins.margins.data
    scores = linear_problem(DATA, candidates, SCORES["k2"].function)
    assert scores.origin is not None
    assert data_behind(scores) is scores.origin[0]
    assert data_behind(replace(scores, origin=None)) is None
    with pytest.raises(InputError, match="without additional scores"):
        data_behind(replace(margins, linear=np.array([0.0, 0.0, 0.5, 0.0])))


def test_scores_have_their_names_and_numbers() -> None:
    """Margins with gamma and smoothing, BDeu with its sample size, others by name."""
    candidates = enumerate_candidates(2, 1)
    margins = margin_problem(DATA, candidates, margin="binary", gamma=2.5, smoothing=0.3)
    assert define_score(margins) == Score("binary", 2.5, 0.3)
    for name in ("aic", "loglik", "k2", "mdl"):
        assert define_score(linear_problem(DATA, candidates, SCORES[name].function)) == Score(name)
    sized = linear_problem(DATA, candidates, get_local_score("bdeu", 7.0))
    assert define_score(sized) == Score("bdeu", equivalent_sample_size=7.0)
    for plain in (SCORES["bdeu"].function, partial(SCORES["bdeu"].function)):
        found = define_score(linear_problem(DATA, candidates, plain))
        assert found == Score("bdeu", equivalent_sample_size=1.0)


def test_scores_of_one_s_own_have_no_name() -> None:
    """The message lists those that have."""

    def mine(counts: np.ndarray, total: float) -> float:
        return -total * counts.size

    problem = linear_problem(DATA, enumerate_candidates(2, 1), mine)
    with pytest.raises(InputError, match=r"one of the scores \['aic', .*\], got mine"):
        define_score(problem)


# ---------------------------------------------------------------------------------- candidates


def test_a_rule_says_it_all_where_nothing_is_left_out() -> None:
    """Every number stays."""
    problem = small_margin_problem(0, n_features=3)
    candidates = define_candidates(problem)
    assert candidates.rule == problem.candidates.rule
    assert (candidates.listed, candidates.loss) == ((), 0.0)


def test_candidates_without_a_rule_are_listed() -> None:
    problem = margin_problem(DATA, replace(enumerate_candidates(2, 1), rule=None))
    candidates = define_candidates(problem)
    assert candidates.rule is None
    assert candidates.listed == (((), (1,)), ((), (0,)))


def test_dominated_candidates_are_not_listed() -> None:
    problem = small_linear_problem(0, n_features=3, max_parents=2)
    fewer = drop_dominated(problem)
    candidates = define_candidates(fewer)
    assert candidates.rule == problem.candidates.rule
    assert [s for own in candidates.listed for s in own] == list(fewer.candidates.parents)
    assert 0.0 < candidates.loss < 1e-9
    margins = margin_problem(DATA, enumerate_candidates(2, 1))
    listed = define_candidates(kept_only(margins, [0, 2, 3]))
    assert listed.rule is None  # nothing is dominated in a margin problem
    assert listed.listed == (((),), ((), (0,)))


@pytest.mark.parametrize("n", [14, slow(24)])
def test_a_rule_with_too_many_sets_to_list_is_proved_in_full(n: int, tmp_path: Path) -> None:
    """All sets of any number of parents are 24 times 2^23, and the proof is about all of them."""
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 2, (60, n)).astype(np.int32)
    codes[:, 1] = codes[:, 0] ^ (rng.random(60) < 0.1)
    variables = tuple(Variable(f"v{i}", ("0", "1")) for i in range(n))
    problem = local_scores(EncodedData(codes, np.ones(60), variables), "bic")
    assert problem.candidates.max_parents < n - 1
    path = tmp_path / "proof"
    solve_structure(problem, certificate=path)
    assert verify_certificate(path, expect=Statement(max_parents=n - 1, class_restricted=False))
    assert exact.main([str(path), "--statement", json.dumps({"max_parents": n - 1})]) == 0
