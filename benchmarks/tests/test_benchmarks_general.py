"""The suite "general": records of small score files and tables, and what a folder must have."""

import gzip
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from benchmarks import __main__ as command
from benchmarks import general, page
from benchmarks.run import read_records

from brute_force import brute_force
from marginbn import local_scores, save_scores

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path):
    """A table of four columns, the fourth the sum of the second and third, and its scores."""
    rng = np.random.default_rng(0)
    table = rng.integers(0, 2, (60, 3))
    table = np.column_stack([table, table[:, 1] + table[:, 2]])
    (tmp_path / "csv").mkdir()
    (tmp_path / "scores").mkdir()
    text = "".join(",".join(map(str, row)) + "\n" for row in table)
    (tmp_path / "csv" / "small.csv.gz").write_bytes(gzip.compress(text.encode()))
    problem = local_scores(general.read_states(tmp_path / "csv" / "small.csv.gz"), "bic")
    for name in ("small.BIC.jkl.gz", "wine.BIC.3.jkl"):
        save_scores(problem, tmp_path / "scores" / name)
    return tmp_path


def test_read_states(tmp_path):
    """States are the numbers that occur, in order; names of states are kept."""
    path = tmp_path / "t.csv"
    path.write_text("0,7\n2,3\n0,7\n")
    data = general.read_states(path)
    np.testing.assert_array_equal(data.codes, [[0, 1], [1, 0], [0, 1]])
    assert [v.states for v in data.variables] == [("0", "2"), ("3", "7")]
    np.testing.assert_array_equal(data.weights, 1.0)


def test_search(folder):
    """The record has the best score (of all graphs, by enumeration) and the size."""
    data = general.read_states(folder / "csv" / "small.csv.gz")
    problem = local_scores(data, "bic")
    best = brute_force(problem)
    record = general.measure(general.Search("small.BIC", seconds=20.0), folder)
    assert (record["status"], record["solver"], record["limit"]) == ("optimal", "auto", 20.0)
    assert record["objective"] == pytest.approx(best, abs=1e-9)
    assert (record["variables"], record["parent_sets"]) == (4, problem.candidates.n_candidates)
    assert record["gap_percent"] == 0.0
    assert record["seconds"] >= 0
    assert record["key"] == "small.BIC auto 20"


def test_search_without_time(folder):
    """What is left is positive although scores are negative."""
    record = general.measure(general.Search("small.BIC", "branch_cut", 1e-9), folder)
    assert record["status"] == "time_limit"
    assert record["gap_percent"] > 0
    assert record["objective"] < record["bound"]


def test_scoring(folder):
    """With any number of parents, or up to one: as many sets as the scorer keeps."""
    data = general.read_states(folder / "csv" / "small.csv.gz")
    for limit, told in ((None, "any"), (1, "1")):
        record = general.measure(general.Scoring("small", "bdeu", limit), folder)
        kept = local_scores(data, "bdeu", limit).candidates.n_candidates
        assert (record["rows"], record["variables"], record["parent_sets"]) == (60, 4, kept)
        assert record["key"] == f"small bdeu {told} scores"


def test_learning(folder):
    """Scores and search of a table, and a certificate that both checkers accept."""
    data = general.read_states(folder / "csv" / "small.csv.gz")
    best = brute_force(local_scores(data, "bic"))
    record = general.measure(general.Learning("small", "bic", None), folder)
    assert record["objective"] == pytest.approx(best, abs=1e-9)
    assert record["accepted"] == [True, True]
    assert record["certificate_bytes"] > 0
    assert len(record["checker_seconds"]) == 2
    assert record["good_after"] >= 0
    assert record["key"] == "small bic any network"
    (lines,) = [line for line in page.general_networks([record]) if "both accept" in line]
    assert lines


def test_folder_is_looked_at_first(folder, monkeypatch, capsys):
    """No folder, or one without an instance that is asked for: nothing runs."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["benchmarks", "run", "general", *words])
        with pytest.raises(SystemExit) as ended:
            command.main()
        assert ended.value.code == 2
        return capsys.readouterr().err

    assert "general needs --data FOLDER" in run()
    assert "no instance with 'absent' in its name" in run("--only", "absent")
    assert "has no child_2000_1.BDeu; --only NAME" in run("--data", str(folder), "--only", "child")
    with pytest.raises(FileNotFoundError, match="no instance absent"):
        general.measure(general.Search("absent"), folder)


def test_run_and_page(folder, monkeypatch, capsys):
    """A run leaves one record, the second run none; the page shows it beside GOBNILP."""
    monkeypatch.chdir(ROOT)
    records = folder / "general.jsonl"
    words = ["--only", "wine.BIC.3", "--data", str(folder), "--records", str(records)]
    monkeypatch.setattr(sys, "argv", ["benchmarks", "run", "general", *words])
    command.main()
    command.main()
    assert capsys.readouterr().err.count("wine.BIC.3 auto 120") == 1
    (record,) = read_records(records)
    assert record["status"] == "optimal"
    text = page.write_page(folder, folder / "page.rst")
    row = ["wine.BIC.3", "4", str(record["parent_sets"]), f"{record['objective']:.6f}"]
    assert "   * - " + "\n     - ".join(row) + "\n" in text
    assert "     - 2.6 s\n     - GOBNILP 1.43 s\n" in text


def test_published_names():
    """What was copied about other programs belongs to measurements of the suite."""
    published = tomllib.loads(page.PUBLISHED.read_text(encoding="utf-8"))
    keys = {m.key for m in general.measurements()}
    names = {m.instance for m in general.measurements()}
    assert {*published["times"], *published["measured"]} <= names
    assert {f"{name} scores" for name in published["scoring"]} <= keys
