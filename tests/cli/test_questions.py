"""``marginbn explain`` and ``marginbn ask`` say what Python says, in the values of the table."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import Result

from commands import run
from marginbn import BNClassifier, MaxMarginBNClassifier, NaiveBayesClassifier, TANClassifier
from marginbn.classifiers.model_file import load_model, save_model
from marginbn.data.labelled import CLASS_NAME
from marginbn.data.table import as_table
from marginbn.datasets import load_dataset

NAMES = ["Age", "Sex", "Pclass", "a=b"]


def error_of(result: Result) -> str:
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
        ("Age=old", "unknown state 'old' of variable 'Age'; its states are '<= "),
        ("Sex=mal", "unknown state 'mal' of variable 'Sex'; did you mean 'male'?"),
        ("Pclass=9", "unknown state '9' of variable 'Pclass'; its states are '1', '2', '3'"),
        ("class=2", "unknown state '2' of variable 'class'; its states are '0', '1'"),
        ("Age=", "no value for variable 'Age', and no state means missing: leave the variable out"),
        ("Age=NA", "no value for variable 'Age'"),
    ],
)
def test_ask_says_what_is_wrong(model: Path, text: str, reason: str) -> None:
    assert reason in error_of(run("ask", model, text))


def test_ask_refuses_what_is_no_evidence(model: Path) -> None:
    result = run("ask", model, "Age")
    assert result.exit_code == 2
    assert "write NAME=VALUE" in result.stderr
    assert "'Age' is given twice" in error_of(run("ask", model, "Age=5", "Age=6"))
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
    assert run("explain", model, "-", input=ROWS).stdout.count("log-odds") == 5
    assert run("explain", model, "-", "--rows", "all", input=ROWS).stdout.count("row ") == 40


def test_explain_sums_out_absent_columns(model: Path) -> None:
    few = "Sex\nmale\n"
    assert "lacks columns" in error_of(run("explain", model, "-", input=few))
    result = run("explain", model, "-", "--allow-missing-columns", "--json", input=few)
    (found,) = json.loads(result.stdout)["explanations"]
    network = load_model(model).network_
    expected = network.posterior_array("class", {"Sex": "male"}).max()
    assert found["probability"] == pytest.approx(expected)


def test_explain_says_what_is_wrong(model: Path) -> None:
    reason = "--rows: there is no row 99; the table has 40 rows"
    assert reason in error_of(run("explain", model, "-", "--rows", "99", input=ROWS))
    for text in ("x", "3-", "-3", "1,,2"):
        result = run("explain", model, "-", f"--rows={text}", input=ROWS)
        assert result.exit_code == 2, text
        assert "as in 0,3,7-9" in result.stderr


@pytest.mark.filterwarnings("ignore::marginbn.DataWarning")
def test_ask_takes_values_as_they_are_written(tmp_path: Path) -> None:
    """As in training: a date with the day first, a decimal comma, a rare category."""
    rows = [
        [f"11.{1 + i % 12}.2024", f"{17 * i + 1000},50 €", f"t{i}" if i < 60 else "big"]
        for i in range(180)
    ]
    classifier = NaiveBayesClassifier(column_kinds={0: "day-first", 2: "categorical"})
    save_model(classifier.fit(rows, [i // 30 % 2 for i in range(180)]), tmp_path / "model.json")

    def ask(*evidence: str) -> Any:
        found = run("ask", tmp_path / "model.json", *evidence, "--json")
        return json.loads(found.stdout)

    parts = ask("x0 year=2024", "x0 month=5", "x0 weekday=Saturday", "x1=1500", "x2=other")
    (rare, *_) = classifier.preparation_.columns[2].merged
    assert ask("x0=11.5.2024", "x1=1.500,00 €", f"x2={rare}") == parts
    assert "day-first" in run("ask", tmp_path / "model.json", "x0=5/31/2024").stderr
    shown = run("ask", tmp_path / "model.json", "x0=11.5.2024", "x1=1500").stdout
    assert shown.startswith("Given x0 = 11.5.2024, x1 = 1500\n")


# --- trained tables -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A model of the default kind, and a table of which some values are hidden."""
    rng = np.random.default_rng(2)
    n = 400
    age = rng.permutation(np.linspace(1, 80, n)).round(2)
    sex = rng.choice(["female", "male"], n)
    pclass = rng.choice(["1st", "2nd", "3rd"], n)
    score = (sex == "female") * 2.0 - (pclass == "3rd") + np.abs(age - 40) / 15 - 1.5
    label = np.where(rng.random(n) < 1 / (1 + np.exp(-score)), "yes", "no")
    rows = [[float(a), str(s), str(p)] for a, s, p in zip(age, sex, pclass, strict=True)]
    classifier = BNClassifier().fit(as_table(rows, names=["Age", "Sex", "Pclass"]), label)
    assert len(classifier.row_coding.columns[0].cuts) > len(classifier.coding_.columns[0].cuts)
    folder = tmp_path_factory.mktemp("trained")
    save_model(classifier, folder / "model.json")
    lines = ["Age,Sex,Pclass", *(f"{a},{s},{p}" for a, s, p in rows[:40]), ",male,", "33,,3rd"]
    (folder / "rows.csv").write_text("\n".join(lines) + "\n")
    return folder / "model.json", folder / "rows.csv"


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Rows of the table as Python has them, read by the standard library."""
    with open(path, newline="") as file:
        found = [*csv.DictReader(file)]
    return [
        {n: None if v == "" else float(v) if n == "Age" else v for n, v in row.items()}
        for row in found
    ]


def test_all_ways_to_ask_the_default_agree(trained: tuple[Path, Path], tmp_path: Path) -> None:
    """predict, explain and ask of the command line say what the classifier says in Python."""
    model, table = trained
    classifier, rows = load_model(model), read_rows(table)
    expected = np.array([[*classifier.posterior(known(row)).values()] for row in rows])
    np.testing.assert_allclose(classifier.predict_proba(rows), expected, rtol=0, atol=1e-12)
    run("predict", model, table, "--proba", "-q", "-o", tmp_path / "out.csv")
    with open(tmp_path / "out.csv", newline="") as file:
        told = [[float(row["P(no)"]), float(row["P(yes)"])] for row in csv.DictReader(file)]
    np.testing.assert_allclose(told, expected, rtol=0, atol=1e-12)
    why = json.loads(run("explain", model, table, "--rows", "all", "--json").stdout)["explanations"]
    shares = [entry["probability"] for entry in why]
    np.testing.assert_allclose(shares, expected.max(axis=1), rtol=0, atol=1e-12)
    for row, answer in zip(rows[:3] + rows[-2:], [*expected[:3], *expected[-2:]], strict=True):
        words = [f"{name}={value}" for name, value in known(row).items()]
        found = json.loads(run("ask", model, *words, "--json").stdout)["posterior"]["class"]
        np.testing.assert_allclose([*found.values()], answer, rtol=0, atol=1e-12)


def known(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}


def test_the_network_answers_where_it_is_asked(trained: tuple[Path, Path]) -> None:
    """The trained tables answer about the class, the counted ones about a feature."""
    model, _ = trained
    network, words = load_model(model).network_, ["Age=70", "Sex=male"]
    found = json.loads(run("ask", model, *words, "--all", "--json").stdout)["posterior"]
    counted = network.marginals({"Age": 70, "Sex": "male"})
    assert abs(found["class"]["yes"] - counted["class"][1]) > 1e-3
    np.testing.assert_allclose([*found["Pclass"].values()], counted["Pclass"], rtol=0, atol=1e-12)
    assert "Given Age = 70, Sex = male" in run("ask", model, *words).stdout


def test_exports_say_what_they_do_not_hold(trained: tuple[Path, Path], tmp_path: Path) -> None:
    model, _ = trained
    result = run("export", model, "--to", "sql", "-o", tmp_path / "m.sql")
    said = "gets NULL (ONNX: NaN)"
    assert said in result.stderr
    assert said in (tmp_path / "m.sql").read_text().splitlines()[0]
    result = run("export", model, "-o", tmp_path / "m.bif")
    assert "Counted tables" in result.stderr
    assert (tmp_path / "m.bif").read_text().startswith("// Counted tables")
    asked = json.loads(
        run("ask", tmp_path / "m.bif", "Sex=male", "--show", "class", "--json").stdout
    )
    expected = load_model(model).network_.posterior_array(CLASS_NAME, {"Sex": "male"})
    np.testing.assert_allclose([*asked["posterior"]["class"].values()], expected, atol=1e-12)


def test_no_caution_where_there_is_one_class(tmp_path: Path) -> None:
    """Every answer is the same, whatever is known."""
    path = tmp_path / "m.json"
    save_model(MaxMarginBNClassifier().fit([["a"], ["b"]], ["yes", "yes"]), path)
    result = run("ask", path)
    assert result.exit_code == 0
    assert result.stderr == ""
