"""``marginbn explain`` and ``marginbn ask`` say what Python says, in the values of the table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from marginbn import NaiveBayesClassifier, TANClassifier
from marginbn.classifiers.model_file import load_model, save_model
from marginbn.cli import app
from marginbn.data.labelled import CLASS_NAME
from marginbn.data.table import as_table
from marginbn.datasets import load_dataset

NAMES = ["Age", "Sex", "Pclass", "a=b"]


def run(*args: object, **options: Any) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(app, [str(a) for a in args], **options)


def error_of(result: Result) -> str:
    """The line of a command that failed."""
    assert result.exit_code == 1, result.output
    assert result.stdout == ""
    return result.stderr.strip()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Numbers in bins, words, whole numbers as categories, a name with an equals sign."""
    rng = np.random.default_rng(1)
    survived = rng.integers(2, size=200)
    age = np.where(survived, 25.0, 50.0) + rng.normal(0, 8, 200)
    sex = np.where(rng.random(200) < 0.2 + 0.5 * survived, "female", "male")
    pclass = 1 + rng.integers(3, size=200)
    rows = [[age[i], sex[i], int(pclass[i]), "uv"[i % 2]] for i in range(200)]
    table = as_table(rows, names=NAMES)
    classifier = TANClassifier().fit(table, survived)
    path = tmp_path_factory.mktemp("ask") / "model.json"
    save_model(classifier, path)
    return path


def test_ask_answers_in_values_of_the_table(model: Path) -> None:
    """A number falls into its bin, 2.0 is 2, and labels of bins are welcome too."""
    network = load_model(model).network_
    oldest = network.variables[1].states[-1]
    assert oldest.startswith(">")
    args = "ask", model, "Age=53", "Sex=male", "Pclass=2.0", "a=b=u", "--json"
    found = json.loads(run(*args).stdout)
    evidence = {"Age": oldest, "Sex": "male", "Pclass": "2", "a=b": "u"}
    assert found["evidence"] == evidence
    expected = network.posterior_array(CLASS_NAME, evidence)
    np.testing.assert_allclose(list(found["posterior"][CLASS_NAME].values()), expected)
    np.testing.assert_allclose(
        list(found["prior"][CLASS_NAME].values()), network.posterior_array(CLASS_NAME)
    )
    by_label = run("ask", model, f"Age={oldest}", "Sex=male", "Pclass=2", "a=b=u", "--json")
    assert json.loads(by_label.stdout) == found


def test_ask_for_other_variables(model: Path) -> None:
    """The class may be evidence; several may be asked for, or all."""
    network = load_model(model).network_
    found = json.loads(run("ask", model, "class=1", "--all", "--json").stdout)["posterior"]
    assert sorted(found) == sorted(NAMES)
    for name in NAMES:
        expected = network.posterior_array(name, {"class": "1"})
        np.testing.assert_allclose(list(found[name].values()), expected)
    text = run("ask", model, "class=1", "--show", "Sex", "--show", "Pclass").stdout
    assert text.startswith("Given class = 1\n")
    assert "Sex" in text
    assert "Pclass" in text
    assert "Age" not in text
    assert run("ask", model).stdout.startswith("Nothing is given\n")


def test_ask_says_of_the_class_what_predict_says(tmp_path: Path) -> None:
    """To the last digit."""
    data = load_dataset("corral").train
    classifier = TANClassifier().fit(data.drop("class"), data.column("class"))
    save_model(classifier, tmp_path / "m.json")
    first = data.drop("class").take([0])
    known = [f"{c.name}={c.values[0]}" for c in first.columns]
    found = json.loads(run("ask", tmp_path / "m.json", *known, "--json").stdout)["posterior"]
    expected = classifier.predict_proba(first)[0]
    np.testing.assert_allclose(list(found["class"].values()), expected)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Agee=53", "there is no variable 'Agee'; did you mean 'Age'?"),
        ("Age=old", "'Age' is a number, got 'old'; write it as in Age=1.5"),
        ("Age=inf", "'Age' is a number, got 'inf'"),
        ("Sex=mal", "'Sex' has no value 'mal'; did you mean 'male'"),
        ("Pclass=9", "'Pclass' has no value '9'; its values are '1', '2', '3'"),
        ("class=2", "'class' has no value '2'; its values are '0', '1'"),
        ("Age=", "'Age' has no value; leave it out: what is not said is summed out"),
        ("Age=NA", "'Age' has no value; leave it out"),
    ],
)
def test_ask_says_what_is_wrong(model: Path, text: str, reason: str) -> None:
    """One line that names the variable and the remedy."""
    assert reason in error_of(run("ask", model, text))


def test_ask_refuses_what_is_no_evidence(model: Path) -> None:
    """A word without a value is wrong use, a variable said twice is an error."""
    result = run("ask", model, "Age")
    assert result.exit_code == 2
    assert "write NAME=VALUE" in result.stderr
    assert "'Age' is said twice" in error_of(run("ask", model, "Age=5", "Age=6"))
    assert "there is no variable 'x'" in error_of(run("ask", model, "--show", "x"))


ROWS = "Sex,Age,Pclass,a=b\n" + "".join(f"male,{age},1,u\n" for age in range(20, 60))


def test_explain_is_what_python_says(model: Path) -> None:
    """Rows keep their numbers, whatever the chunk they stand in."""
    classifier = load_model(model)
    table = as_table([[float(age), "male", 1, "u"] for age in range(20, 60)], names=NAMES)
    expected = classifier.explain(table)
    result = run("explain", model, "-", "--rows", "3,38-45", "--json", input=ROWS)
    found = json.loads(result.stdout)["explanations"]
    assert [entry["row"] for entry in found] == [3, 38, 39]
    for entry in found:
        wanted = json.loads(json.dumps(expected[entry["row"]].to_dict()))
        assert entry == wanted
    text = run("explain", model, "-", "--rows", "3", "--most", "1", input=ROWS).stdout
    assert text == expected[3].text(1) + "\n"
    assert run("explain", model, "-", input=ROWS).stdout.count("log margin") == 5
    assert run("explain", model, "-", "--rows", "all", input=ROWS).stdout.count("row ") == 40


def test_explain_sums_out_absent_columns(model: Path) -> None:
    """Only if that is allowed."""
    few = "Sex\nmale\n"
    assert "lacks columns" in error_of(run("explain", model, "-", input=few))
    result = run("explain", model, "-", "--allow-missing-columns", "--json", input=few)
    (found,) = json.loads(result.stdout)["explanations"]
    network = load_model(model).network_
    expected = network.posterior_array("class", {"Sex": "male"}).max()
    assert found["probability"] == pytest.approx(expected)


def test_explain_says_what_is_wrong(model: Path) -> None:
    """Rows that are not there, and rows that are none."""
    reason = "--rows: there is no row 99; the table has 40 rows"
    assert reason in error_of(run("explain", model, "-", "--rows", "99", input=ROWS))
    for text in ("x", "3-", "-3", "1,,2"):
        result = run("explain", model, "-", f"--rows={text}", input=ROWS)
        assert result.exit_code == 2, text
        assert "as in 0,3,7-9" in result.stderr


@pytest.mark.filterwarnings("ignore::marginbn.DataWarning")  # of texts read as numbers
def test_ask_takes_dates_and_amounts_as_they_are_written(tmp_path: Path) -> None:
    """As the columns were in training: day first here, and a decimal comma."""
    rows = [[f"11.{1 + i % 12}.2024", f"{17 * i + 1000},50 €"] for i in range(60)]
    classifier = NaiveBayesClassifier(column_kinds={0: "day-first"})
    save_model(classifier.fit(rows, [i // 30 for i in range(60)]), tmp_path / "model.json")

    def ask(*evidence: str) -> Any:
        found = run("ask", tmp_path / "model.json", *evidence, "--json")
        return json.loads(found.stdout)

    parts = ask("x0 year=2024", "x0 month=5", "x0 weekday=Saturday", "x1=1500")
    assert ask("x0=11.5.2024", "x1=1.500,00 €") == parts
    assert "day-first" in run("ask", tmp_path / "model.json", "x0=5/31/2024").stderr
