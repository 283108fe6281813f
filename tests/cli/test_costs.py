"""``--cost`` of fit, predict and evaluate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from marginbn.cli import app


def run(*arguments: Any) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Two classes that a feature tells only half."""
    rng = np.random.default_rng(0)
    lines = ["sign,y"]
    for _ in range(120):
        label = "sick" if rng.random() < 0.3 else "well"
        sign = "yes" if rng.random() < (0.6 if label == "sick" else 0.3) else "no"
        lines.append(f"{sign},{label}")
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_fit_keeps_costs_and_predict_may_change_them(table: Path, tmp_path: Path) -> None:
    """One line says what they do; the matrix may stand in a file."""
    model, matrix = tmp_path / "model.json", tmp_path / "costs.csv"
    fit = ["fit", table, "-t", "y", "--method", "naive-bayes", "-o", model]
    result = run(*fit, "--cost", "sick:well=9")
    assert result.exit_code == 0, result.output
    assert "By cost, sick is decided where its probability is above 10.00 %" in result.stdout
    assert "mean cost" in result.stdout
    careful = run("predict", model, table)
    assert "By cost, sick is decided" in careful.stderr
    assert set(careful.stdout.split()[1:]) == {"sick"}
    matrix.write_text(",sick,well\nsick,0,1\nwell,9,0\n")
    bold = run("predict", model, table, "--cost", matrix)
    assert set(bold.stdout.split()[1:]) == {"well"}
    found = json.loads(run(*fit, "--cost", matrix, "--json", "-q").stdout)
    assert found["settings"]["cost"]["matrix"] == [[0, 1], [9, 0]]
    assert found["settings"]["cost"]["threshold"] == pytest.approx(0.1)
    assert found["quality"]["mean_cost"] == pytest.approx(0.25)  # six of 24 are sick


def test_evaluate_measures_all_methods_by_cost(table: Path) -> None:
    """The most frequent class is no longer the cheapest one to say."""
    command = ["evaluate", table, "-t", "y", "--method", "naive-bayes", "--cost", "sick:well=9"]
    text = run(*command).stdout
    assert "By cost, sick is decided" in text
    head = next(line for line in text.splitlines() if line.startswith("  method "))
    assert head.split()[:4] == ["method", "accuracy", "+-", "cost"]
    found = json.loads(run(*command, "--json", "-q").stdout)
    assert found["cost"]["classes"] == ["sick", "well"]
    majority = found["methods"]["majority"]["quality"]
    assert majority["confusion"][0][1] == 0  # nobody sick is sent home
    assert majority["mean_cost"] == pytest.approx(majority["confusion"][1][0] / 120)


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        ("sick=3", "write TRUE:PREDICTED=COST"),
        ("sick:well=much", "a cost must be a finite number"),
        ("sick:well:x=3", "more than one colon"),
        ("nowhere.csv", "there is no file 'nowhere.csv'"),
        ("sick:dead=3", "cost names 'dead', which is no class"),
    ],
)
def test_wrong_costs_say_so(cost: str, message: str, table: Path, tmp_path: Path) -> None:
    """In words that name the option or the class."""
    result = run("fit", table, "-t", "y", "--method", "naive-bayes", "--cost", cost)
    assert result.exit_code in (1, 2)
    assert message in " ".join(result.stderr.replace("│", " ").split())


def test_a_file_that_is_no_matrix(table: Path, tmp_path: Path) -> None:
    """Ragged or empty."""
    path = tmp_path / "costs.csv"
    path.write_text(",sick,well\nsick,0\n")
    result = run("fit", table, "-t", "y", "--method", "naive-bayes", "--cost", path)
    assert result.exit_code == 2
    assert "must have a header with the predicted classes" in " ".join(
        result.stderr.replace("│", " ").split()
    )
