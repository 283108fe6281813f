"""Local scores on the command line: written by ``formulate``, solved by ``solve``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands import run
from marginbn.proof import exact

TRIANGLE = """3
A 3
-1.0 0
-0.2 1 B
-0.1 1 C
B 2
-2.0 0
-0.5 1 A
C 2
-3.6 0
-2.5 1 B
"""


@pytest.fixture
def triangle(tmp_path: Path) -> Path:
    """Every variable prefers a parent; A <- C, B <- A, C <- B would be a cycle."""
    path = tmp_path / "triangle.jkl"
    path.write_text(TRIANGLE)
    return path


@pytest.mark.parametrize("solver", ["auto", "dp", "branch_cut"])
def test_the_triangle_by_hand(triangle: Path, solver: str) -> None:
    # no limit: on a busy machine compiling a kernel may take longer than the usual one
    result = run(
        "problem", "solve", triangle, "--json", "-q", "--solver", solver, "--time-limit", 0
    )
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert answer["structure"] == {"A": [], "B": ["A"], "C": ["B"]}
    assert answer["objective"] == pytest.approx(-4.0)
    assert (answer["status"], answer["proved"]) == ("optimal", True)


def test_a_proof_about_a_score_file(triangle: Path, tmp_path: Path) -> None:
    """Both checkers accept it, with --strict where they are given the file; and no other file."""
    proof, other = tmp_path / "proof", tmp_path / "other.jkl"
    assert run("problem", "solve", triangle, "-q", "--certificate", proof).exit_code == 0
    about = [str(proof), "--data", str(triangle), "--strict"]
    assert run("verify", *about).exit_code == 0
    assert exact.main(about) == 0
    other.write_text(TRIANGLE.replace("-3.6 0", "-3.5 0"))
    about[2] = str(other)
    assert run("verify", *about).exit_code == 4
    assert exact.main(about) == 4
    text = run("verify", proof).stdout
    assert "sum of local scores that were given" in text
    assert "class" not in text
    assert run("verify", proof, "--strict").exit_code == 4  # nobody has asked for these scores


def test_the_answer_in_words(triangle: Path) -> None:
    result = run("problem", "solve", triangle, "-q")
    lines = result.stdout.splitlines()
    assert lines[0] == "Proved: best score of all allowed structures."
    assert lines[-3:] == ["  A: no parents", "  B <- A", "  C <- B"]
    assert "-4.0000" in result.stdout


def test_malformed_scores_are_told_by_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.jkl"
    path.write_text("1\nA 1\nmuch 0\n")
    result = run("problem", "solve", path)
    assert result.exit_code == 1
    assert "bad.jkl" in result.stderr
    assert "line 3" in result.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--solver", "magic"], "'magic' is not one of 'auto'"),
        (["--time-limit", -1], "--time-limit"),
        (["--gap", -1], "--gap"),
    ],
)
def test_wrong_options_are_usage_errors(triangle, options, message):
    result = run("problem", "solve", triangle, *options)
    assert result.exit_code == 2
    assert message in result.stderr
