"""The command line with networks chosen by validation, and with trained parameters."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import trained
from marginbn import BNClassifier, MaxMarginBNClassifier, load_model, read_table
from marginbn.cli import app
from marginbn.cli.options import (
    Method,
    ProblemOptions,
    SearchOptions,
    build_classifier,
    with_method,
)

FAST = ["--structures", "naive"]


def run(*args: object) -> Result:
    """A command in this process."""
    return CliRunner().invoke(app, list(map(str, args)), catch_exceptions=False)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """The rows of the trained classifiers as a file."""
    path = tmp_path / "rows.csv"
    X, y = trained.rows()
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = [[*row, label] for row, label in zip(X, y, strict=True)]
        csv.writer(file).writerows([["a", "b", "c", "colour", "level"], *rows])
    return path


def test_fit_chooses_by_validation_if_no_method_is_named(table: Path, tmp_path: Path) -> None:
    """One line per candidate on stderr; an honest verdict, not a proof; the exit code is 0."""
    model = tmp_path / "m.json"
    result = run("fit", table, "-t", "level", "-o", model, "--structures", "naive,forest")
    assert result.exit_code == 0, result.output
    assert "Training and validating naive, forest." in result.stderr
    assert "naive: log loss" in result.stderr
    assert result.stdout.startswith("Chosen by validated log loss among 2 candidates")
    assert "Optimal, proven" not in result.stdout
    loaded = load_model(model)
    assert isinstance(loaded, BNClassifier)
    assert (loaded.structures, loaded.verbose) == (("naive", "forest"), 0)
    shown = run("show", model, "--tables")
    assert shown.stdout.startswith("Chosen by validated log loss")
    assert "P(colour | level" in shown.stdout


def test_commands_on_a_trained_model(table: Path, tmp_path: Path) -> None:
    """predict, export and report."""
    model = tmp_path / "m.json"
    result = run("fit", table, "-t", "level", "-o", model, "-q", "--json", "--average", *FAST)
    assert result.stderr == ""
    fit = json.loads(result.stdout)
    assert (fit["estimator"], fit["choice"]["chosen"]) == ("BNClassifier", "naive")
    assert fit["proved"] is False
    predicted = json.loads(run("predict", model, table, "--proba", "--json", "-q").stdout)
    features = read_table(table)
    assert predicted["level"] == load_model(model).predict(features).tolist()
    assert '"marginbn-network"' in run("export", model, "--format", "json").stdout
    page = tmp_path / "r.html"
    done = run("report", model, "-o", page, "--data", table, "--folds", 0, "-q")
    assert done.exit_code == 0, done.output
    assert "How it was chosen" in page.read_text(encoding="utf-8")


def test_evaluate_names_no_gap_where_none_is_claimed(table: Path) -> None:
    """bn beside naive Bayes and TAN."""
    result = run("evaluate", table, "-t", "level", "--folds", 2, *FAST)
    assert result.exit_code == 0, result.output
    lines = [line.strip() for line in result.stdout.splitlines()]
    assert any(line.startswith("bn ") for line in lines)
    assert not any(line.startswith("bn ") and "gap" in line for line in lines)
    assert "gap" not in result.stderr


def test_trained_parameters_of_a_searched_structure(table: Path, tmp_path: Path) -> None:
    """The certificate is about the structure, and `show` says so."""
    model, proof = tmp_path / "m.json", tmp_path / "p.cert"
    options = ["--parameters", "conditional", "--bins", "ordinal", "--max-parents", 1]
    files = ["-o", model, "--certificate", proof]
    result = run("fit", table, "-t", "level", "--holdout", 0, "-q", *options, *files)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("Optimal, proven")
    classifier = load_model(model)
    assert isinstance(classifier, MaxMarginBNClassifier)
    assert (classifier.parameters, classifier.bins) == ("conditional", "ordinal")
    checked = run("verify", proof, "--model", model, "--data", table, "-q")
    assert checked.exit_code == 0, checked.output
    assert "not about the trained parameters of the model" in " ".join(checked.stdout.split())
    shown = " ".join(run("show", model, "--certificate", proof).stdout.split())
    assert shown.startswith("Verified optimal")
    assert "about the structure, not about the trained parameters" in shown


@pytest.mark.parametrize(
    ("given", "method"),
    [
        ({}, Method.BN),
        ({"average": True, "structures": "naive,tan", "bins": "mdlp"}, Method.BN),
        ({"p": 0.9}, Method.MAX_MARGIN),
        ({"max_parents": 1}, Method.MAX_MARGIN),
        ({"smoothing": "0.5"}, Method.MAX_MARGIN),
        ({"method": Method.TAN, "smoothing": "0.5"}, Method.TAN),
    ],
)
def test_the_method_that_is_meant(given: dict[str, object], method: Method) -> None:
    """bn, unless something asks for the search of a structure."""
    assert with_method(ProblemOptions(**given), SearchOptions()).method is method  # type: ignore[arg-type]


def test_options_of_a_search_ask_for_one(tmp_path: Path) -> None:
    """Its solver, its gap, its files; a time limit or jobs do not."""
    nothing = ProblemOptions()
    assert with_method(nothing, SearchOptions(time_limit=9.0, jobs=2)).method is Method.BN
    assert with_method(nothing, SearchOptions(solver="dp")).method is Method.MAX_MARGIN
    assert with_method(nothing, SearchOptions(), None, tmp_path).method is Method.MAX_MARGIN
    classifier = build_classifier(nothing, SearchOptions(time_limit=9.0, seed=4))
    assert isinstance(classifier, BNClassifier)
    assert (classifier.time_limit, classifier.random_state) == (9.0, 4)


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (["--structures", "naive,4-tree"], "every entry of structures must be"),
        (["--method", "tan", "--structures", "naive"], "no meaning with --method tan"),
        (["--method", "bn", "--p", "0.9"], "no meaning with --method bn"),
        (["--method", "bn", "--certificate", "c"], "no meaning with --method bn"),
        (["--bins", "ordinal", "--max-parents", "1"], "bins='ordinal' needs trained parameters"),
    ],
)
def test_options_that_do_not_go_together(args: list[str], reason: str) -> None:
    """Refused with exit code 2, before anything is read."""
    result = run("fit", "iris", *args)
    assert result.exit_code == 2
    assert reason in " ".join(result.stderr.replace("│", " ").split())
