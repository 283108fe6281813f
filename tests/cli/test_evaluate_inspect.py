"""``marginbn inspect``, and what fit, evaluate and predict say of a raw table."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from commands import run
from marginbn import load_model


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """Names, an empty column, dates and a class that one feature tells."""
    rng = np.random.default_rng(0)
    lines = ["name,plan,since,nothing,y"]
    for i in range(90):
        label = "no" if rng.random() < 0.7 else "yes"
        plan = {"no": "basic", "yes": "gold"}[label] if rng.random() < 0.9 else "trial"
        lines.append(f"n{i},{plan},20{rng.integers(10, 24)}-03-{i % 28 + 1:02},,{label}")
    path = tmp_path / "raw.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_inspect_says_what_a_fit_would_do(raw: Path) -> None:
    result = run("inspect", raw, "--target", "y")
    assert result.exit_code == 0
    assert "left out as identifiers: 'name' (90 of 90 values differ)" in result.stdout
    assert "no row has a value: 'nothing'" in result.stdout
    record = json.loads(run("inspect", raw, "-t", "y", "--json").stdout)
    assert record["n_rows"] == 90
    assert sum(record["classes"].values()) == 90
    used = json.loads(run("inspect", raw, "-t", "y", "--kind", "name=categorical", "--json").stdout)
    assert [c["n_states"] > 0 for c in used["columns"]] == [True, True, True, False]


def test_inspect_without_a_class(raw: Path) -> None:
    result = run("inspect", raw)
    assert result.exit_code == 0
    assert "90 rows, 5 columns, no class" in result.stdout
    assert "left out as identifiers: 'name' (90 of 90 values differ)" in result.stdout
    assert "classes lost" not in result.stdout
    record = json.loads(run("inspect", raw, "--drop", "since", "--json").stdout)
    assert (record["target"], record["classes"]) == (None, {})
    states = {c["name"]: c["n_states"] for c in record["columns"]}
    assert states == {"name": 0, "plan": 3, "nothing": 0, "y": 2}
    assert (record["n_parameters"], record["n_parameters_tree"]) == (2 + 1, 3 * (2 + 1))
    used = json.loads(run("inspect", raw, "--kind", "name=categorical", "--json").stdout)
    assert used["columns"][0]["n_states"] > 0
    dates = json.loads(run("inspect", raw, "--kind", "since=date", "--json").stdout)
    assert dates["columns"][2]["kind"] == "date"


def test_fit_says_it_and_the_file_keeps_it(raw: Path, tmp_path: Path) -> None:
    """Each thing in a line on stderr; predict takes the raw table, with dates as text."""
    model = tmp_path / "m.json"
    options = ["--method", "tan", "--kind", "since=date", "--class-weight", "balanced"]
    result = run("fit", raw, "-t", "y", *options, "-o", model)
    assert result.exit_code == 0
    assert result.stderr.count("left out as identifiers: 'name'") == 1
    assert result.stderr.count("no row has a value: 'nothing'") == 1
    assert "balanced accuracy" in result.stdout
    clf = load_model(model)
    assert clf.class_weight == "balanced"
    assert clf.network_.names[1:] == ("plan", "since year", "since month", "since weekday")
    predicted = run("predict", model, raw)
    assert predicted.exit_code == 0
    assert len(predicted.stdout.splitlines()) == 91


def test_quality_stands_in_the_json(raw: Path) -> None:
    record = json.loads(run("fit", raw, "-t", "y", "--method", "tan", "--json", "-q").stdout)
    assert record["quality"]["n_rows"] == 18
    arguments = ["--method", "tan", "--folds", 3, "--class-weight", "yes=2"]
    found = json.loads(run("evaluate", raw, "-t", "y", *arguments, "--json", "-q").stdout)
    for method in ("tan", "naive Bayes", "logistic regression", "most frequent class"):
        assert found["methods"][method]["quality"]["n_rows"] == 90
    assert found["methods"]["most frequent class"]["quality"]["balanced_accuracy"] == 0.5


@pytest.mark.parametrize("weight", ["even", "yes=much", "=2"])
def test_wrong_class_weights_are_usage_errors(raw: Path, weight: str) -> None:
    result = run("fit", raw, "-t", "y", "--method", "tan", "--class-weight", weight)
    assert result.exit_code == 2
    assert "--class-weight" in result.stderr


def test_a_type_slip_at_prediction_is_told_once(raw: Path, tmp_path: Path) -> None:
    model, other = tmp_path / "m.json", tmp_path / "upper.csv"
    run("fit", raw, "-t", "y", "--method", "tan", "--drop", "since", "-o", model)
    other.write_text(raw.read_text().replace("basic", "BASIC"))
    result = run("predict", model, other, "--proba")
    assert result.stderr.count("slip of types or spelling: 'BASIC' in 'plan' was 'basic'") == 1


def test_baselines_lose_no_class_that_the_method_keeps(tmp_path: Path) -> None:
    """Without --method missing values are treated by "auto", for all that are compared."""
    lines = [f"{'ab'[i % 2]},{i % 3},{'yes' if i % 2 else 'no'}" for i in range(60)]
    lines += ["a,,rare"] * 6
    path = tmp_path / "gaps.csv"
    path.write_text("\n".join(["x,z,y", *lines]) + "\n")
    arguments = ["--method", "tan", "--missing", "drop", "--folds", 2, "-q"]
    refused = run("evaluate", path, "-t", "y", *arguments)
    assert refused.exit_code == 1
    assert "'rare'" in refused.stderr
    result = run("evaluate", path, "-t", "y", "--folds", 2, "-q", "--json")
    assert result.exit_code == 0
    for method in json.loads(result.stdout)["methods"].values():
        assert [c["label"] for c in method["quality"]["classes"]] == ["no", "rare", "yes"]


def test_whole_numbers_with_few_rows_each_are_no_classes(tmp_path: Path) -> None:
    """A count such as an age is a measurement; with enough rows of each, numbers are classes."""
    path = tmp_path / "ages.csv"
    path.write_text("x,age\n" + "".join(f"{i % 3},{20 + i % 30}\n" for i in range(120)))
    refused = run("inspect", path, "--target", "age")
    assert refused.exit_code == 1
    assert "the target 'age' holds 30 different numbers in 120 rows; choose" in refused.stderr
    assert run("inspect", path, "-t", "age", "--kind", "age=categorical").exit_code == 0
    path.write_text("x,age\n" + "".join(f"{i % 3},{20 + i % 30}\n" for i in range(150)))
    assert run("inspect", path, "--target", "age").exit_code == 0
