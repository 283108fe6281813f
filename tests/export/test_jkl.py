"""Local scores: files by hand, problems there and back, the same optimum, hostile text refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from exchange import NASTY, assert_only_our_errors, assert_refused, damaged
from marginbn.exceptions import InputError
from marginbn.export.jkl import load_scores, problem_from_jkl, problem_to_jkl, save_scores
from marginbn.problem.candidates import enumerate_candidates
from marginbn.problem.encoded import EncodedData, Variable
from marginbn.problem.problem import StructureProblem, margin_problem
from marginbn.problem.scores import get_local_score
from marginbn.scoring.local_scores import linear_problem
from marginbn.solvers import solve_structure

HAND = """3
a 3
-10.5 0
-7 2 c b
-9.25 1 b

b 1
-4 0
c 2
-6 0
-5.5 1 a
"""


def random_problem(seed: int, n_variables: int = 5) -> StructureProblem:
    """A linear problem with random scores, nasty names and any candidates of up to two parents."""
    rng = np.random.default_rng(seed)
    candidates = enumerate_candidates(n_variables, 2, class_restricted=False)
    names = rng.permutation(len(NASTY))[:n_variables]
    variables = tuple(Variable(NASTY[i], ("0", "1")) for i in names)
    return StructureProblem(candidates, rng.normal(size=candidates.n_candidates), variables)


def test_a_file_by_hand() -> None:
    """Candidates are sorted by size; the best acyclic choice is a with both, c with none: -17."""
    problem = problem_from_jkl(HAND)
    assert [v.name for v in problem.variables] == ["a", "b", "c"]
    assert problem.candidates.parents == ((), (1,), (1, 2), (), (), (0,))
    assert problem.linear.tolist() == [-10.5, -9.25, -7.0, -4.0, -6.0, -5.5]
    result = solve_structure(problem)
    assert result.objective == pytest.approx(-17.0)
    assert result.structure.parents == ((1, 2), (), ())


def test_the_text_by_hand() -> None:
    """A problem that was read is written in order."""
    expected = "3\na 3\n-10.5 0\n-9.25 1 b\n-7.0 2 b c\nb 1\n-4.0 0\nc 2\n-6.0 0\n-5.5 1 a\n"
    assert problem_to_jkl(problem_from_jkl(HAND)) == expected


@pytest.mark.parametrize("seed", range(40))
def test_problems_come_back_bit_for_bit(seed: int, tmp_path: Path) -> None:
    problem = random_problem(seed, 1 + seed % 8)
    save_scores(problem, tmp_path / "s.jkl")
    back = load_scores(tmp_path / "s.jkl")
    assert [v.name for v in back.variables] == [v.name for v in problem.variables]
    assert back.candidates.parents == problem.candidates.parents
    np.testing.assert_array_equal(back.candidates.child, problem.candidates.child)
    np.testing.assert_array_equal(back.linear, problem.linear)


def test_the_optimum_of_data_is_the_optimum_of_the_file() -> None:
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 2, (80, 4))
    codes[:, 2] = codes[:, 0] ^ (rng.random(80) < 0.1)
    variables = tuple(Variable(f"x{i}", ("0", "1")) for i in range(4))
    data = EncodedData(codes, np.ones(80), variables)
    candidates = enumerate_candidates(4, 2)
    problem = linear_problem(data, candidates, get_local_score("mdl", 1.0))
    again = problem_from_jkl(problem_to_jkl(problem))
    assert solve_structure(again).structure == solve_structure(problem).structure
    with pytest.raises(InputError, match="problem must be linear"):
        problem_to_jkl(margin_problem(data, candidates))


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("", 1, "the file ends where the number of variables should be"),
        ("x", 1, "must be a whole number"),
        ("0", 1, "1 or more"),
        ("1 2", 1, "the first line must be the number of variables"),
        ("999999999999999999999", 1, "must be a whole number"),
        ("1\n", 1, "the file ends where a variable should be"),
        ("1\na", 2, "expected a variable and the number of its candidate"),
        ("1\na x", 2, "must be a whole number"),
        ("1\na 0", 2, "'a' has no candidate parent sets"),
        ("1\na 20000001", 2, "must be a whole number, 0 to 20000000"),
        ("2\na 20000000\n0 0\nb", 4, "expected a score"),
        ("1\na 2\n-1 0", 3, "the file ends where a candidate parent set should be"),
        ("1\na 1\n-1", 3, "expected a score, the number of parents"),
        ("1\na 1\n-1 1", 3, "as many parents"),
        ("1\na 1\nx 0", 3, "'x' is not a number"),
        ("1\na 1\n-inf 0", 3, "'-inf' is not a number"),
        ("1\na 1\n-1 1 z", 3, "there is no variable 'z'"),
        ("1\na 1\n-1 1 a", 3, "not the variable itself"),
        ("2\na 1\n-1 2 b b\nb 1\n0 0", 3, "must be different"),
        ("1\na 2\n-1 0\n-2 0", 2, "has a candidate parent set twice"),
        ("2\na 1\n-1 0\na 1\n-1 0", None, "two variables have the same name"),
        ("2\na 1\n-1 1 b\nb 1\n-1 1 a", None, "every choice of parent sets has a directed cycle"),
        ("1\na 1\n-1 0\nb 1", 4, "text after the last variable"),
    ],
)  # fmt: skip
def test_malformed_text_is_refused_with_line_and_reason(
    text: str, line: int | None, reason: str
) -> None:
    assert_refused(problem_from_jkl, text, line, reason)


def test_required_parents_that_can_be_ordered_are_fine() -> None:
    """Without empty sets an order may still exist: c first, then b, then a."""
    text = "3\na 1\n0 2 b c\nb 2\n0 1 a\n1 1 c\nc 2\n0 1 a\n0 0\n"
    assert solve_structure(problem_from_jkl(text)).structure.parents == ((1, 2), (2,), ())


@settings(deadline=None, max_examples=150)
@given(damaged(HAND))
def test_damage_never_raises_anything_but_our_errors(text: str) -> None:
    assert_only_our_errors(problem_from_jkl, text)
