"""`marginbn problem score`: local scores of a table, with and without a class."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from commands import run
from marginbn import BayesianNetworkLearner, load_scores, local_scores
from marginbn.datasets import load_dataset


def test_all_columns_alike(tmp_path: Path) -> None:
    path = tmp_path / "corral.jkl"
    options = ["--score", "bdeu", "--max-parents", 3]
    assert run("problem", "score", "corral", *options, "-o", path).exit_code == 0
    data = BayesianNetworkLearner().encode_table(load_dataset("corral").train)
    expected = local_scores(data, "bdeu", 3)
    found = load_scores(path)
    assert found.candidates.parents == expected.candidates.parents
    assert found.linear.tolist() == expected.linear.tolist()


def test_with_a_class_it_is_what_fit_maximises(tmp_path: Path) -> None:
    path = tmp_path / "x.jkl"
    run("problem", "score", "iris", "-t", "class", "--score", "mdl", "--max-parents", 2, "-o", path)
    fitted = run("fit", "iris", "--method", "generative", "--max-parents", 2, "--json", "-q")
    expected = json.loads(fitted.stdout)
    solved = json.loads(run("problem", "solve", path, "--json", "-q", "--solver", "dp").stdout)
    assert solved["objective"] == pytest.approx(expected["objective"], abs=1e-9)
    assert solved["structure"] == expected["structure"]


def test_missing_values_and_impossible_scores_are_named(tmp_path: Path) -> None:
    """Rows with missing values are left out, as `learn` does."""
    table = tmp_path / "t.csv"
    table.write_text("a,b\n1,x\n,y\n2,x\n2,z\n")
    result = run("problem", "score", table, "-o", tmp_path / "s.jkl")
    assert result.exit_code == 0
    assert "1 of 4 rows" in result.output
    result = run("problem", "score", "corral", "--score", "loglik", "-o", tmp_path / "s.jkl")
    assert result.exit_code == 1
    assert "--max-parents must be given" in result.output


def test_gzipped_scores_and_tables(tmp_path: Path) -> None:
    table, plain = tmp_path / "t.csv.gz", tmp_path / "s.jkl"
    rows = "a,b\n" + "x,u\nx,u\ny,v\ny,v\n" * 5
    table.write_bytes(gzip.compress(rows.encode()))
    packed = tmp_path / "s.jkl.gz"
    assert run("problem", "score", table, "-o", plain).exit_code == 0
    assert run("problem", "score", table, "-o", packed, "--jobs", 2, "--quiet").exit_code == 0
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    assert load_scores(packed).linear.tolist() == load_scores(plain).linear.tolist()
    assert "Proved: best score" in run("problem", "solve", packed).output
