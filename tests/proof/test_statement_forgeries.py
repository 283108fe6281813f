"""A model, or a statement, that says more than the certificate proves: refused by both checkers."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from benchmarks.end_to_end import write_table
from typer.testing import CliRunner

from marginbn.cli import app
from marginbn.proof import exact

Record = dict[str, Any]
Change = Callable[[Record], None]


@pytest.fixture(scope="module", params=["bn", "max-margin"])
def fitted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trained and counted tables of numbers, categories, missing and merged values."""
    folder = tmp_path_factory.mktemp(request.param)
    write_table(folder / "t.csv", 6)
    arguments = ["fit", str(folder / "t.csv"), "-t", "label", "--holdout", "0", "-q"]
    for option, name in (("-o", "m.json"), ("--certificate", "proof"), ("--statement", "said")):
        arguments += [option, str(folder / name)]
    found = CliRunner().invoke(app, [*arguments, "--method", request.param])
    assert found.exit_code == 0, found.output
    return folder


def exit_codes(folder: Path, model: Path, *more: str, table: str = "t.csv") -> tuple[int, int]:
    """Of both checkers about a model and, unless it has no name, a table, with more options."""
    arguments = [str(folder / "proof"), "--model", str(model), *more]
    arguments += ["--data", str(folder / table)] if table else []
    return CliRunner().invoke(app, ["verify", *arguments]).exit_code, exact.main(arguments)


def test_the_honest_model_is_accepted(fitted: Path) -> None:
    """With the statement that fit has written, and --strict."""
    said = ("--statement", str(fitted / "said"), "--strict")
    assert exit_codes(fitted, fitted / "m.json", *said) == (0, 0)


def rename_feature(model: Record) -> None:
    """Two features change their names everywhere but in the parents."""
    for columns in (model["coding"], model["network"]["variables"][1:]):
        columns[0]["name"], columns[1]["name"] = columns[1]["name"], columns[0]["name"]


def move_cut(model: Record) -> None:
    """A cut of a number, and its labels, are elsewhere."""
    column = next(c for c in model["coding"] if c["kind"] == "numeric")
    place = model["coding"].index(column)
    old, new = column["cuts"][0], column["cuts"][0] - 0.25
    column["cuts"][0] = new
    states = model["network"]["variables"][place + 1]["states"]
    states[:] = [state.replace(repr(old), repr(new)) for state in states]


def merge_category(model: Record) -> None:
    """The first category of a column is said to be one that is merged away."""
    plans = model["preparation"] or [
        {"name": c["name"], "kind": c["kind"], "left_out": "", "merged": [], "other": "other"}
        for c in model["coding"]
    ]
    model["preparation"] = plans
    own = next(c for c in model["coding"] if len(c["categories"]) > 2)
    plan = next(p for p in plans if p["name"] == own["name"])
    plan["merged"], plan["other"] = [own["categories"][0]], own["categories"][1]


def change_arc(model: Record) -> None:
    """The structure gets another arc, with the table that belongs to it left as it is."""
    model["network"]["parents"][-1] = []


def rename_category(model: Record) -> None:
    """The network agrees with the coding, the certificate does not."""
    model["coding"][0]["categories"][0] = "black"
    model["network"]["variables"][1]["states"][0] = "black"


def change_counted_entry(model: Record) -> None:
    """The probabilities of the first two classes are others."""
    model["network"]["log_tables"][0][:2] = [math.log(0.3), math.log(0.7)]


STATES: dict[str, Change] = {
    "categories in another order": lambda m: m["coding"][0]["categories"].reverse(),
    "a cut is elsewhere": move_cut,
    "a category is another one": rename_category,
    "a category of the coding is another one": lambda m: m["coding"][0]["categories"].append("z"),
    "a class has another name": lambda m: m["classes"]["labels"].__setitem__(0, "another"),
    "a counted entry is another one": change_counted_entry,
}
"""Refused without the table, too."""

FORGERIES: dict[str, Change] = {
    **STATES,
    "three parents": lambda m: m["params"].update(max_parents=3),
    "an arc is required": lambda m: m["params"].update(
        required_arcs=[{"tuple": ["colour", "size"]}]
    ),
    "an arc is forbidden": lambda m: m["params"].update(
        forbidden_arcs=[{"tuple": ["size", "colour"]}]
    ),
    "a higher objective": lambda m: m["result"].update(objective=m["result"]["objective"] * 1.01),
    "other data": lambda m: m["evidence"].update(data_sha256="0" * 64),
    "more rows": lambda m: m.update(n_samples=10 * m["n_samples"]),
    "weights of classes": lambda m: m["params"].update(class_weight="balanced"),
    "two features change names": rename_feature,
    "a category is merged": merge_category,
    "an arc is gone": change_arc,
    "another kind of classifier": lambda m: m.update(
        estimator="NaiveBayesClassifier"
        if m["estimator"] == "MaxMarginBNClassifier"
        else "TANClassifier"
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_model_is_refused(name: str, fitted: Path, tmp_path: Path) -> None:
    """By both checkers: refuted, or not even read."""
    model = json.loads((fitted / "m.json").read_text())
    FORGERIES[name](model)
    (tmp_path / "m.json").write_text(json.dumps(model))
    assert 0 not in exit_codes(fitted, tmp_path / "m.json")
    if name in STATES:
        assert 0 not in exit_codes(fitted, tmp_path / "m.json", table="")


def test_another_row_is_refuted(fitted: Path) -> None:
    """One more row, the first one again or one with a category that the coding does not know."""
    lines = (fitted / "t.csv").read_text().splitlines()
    for line in (lines[1], lines[1].replace("red", "black").replace("blue", "black")):
        (fitted / "more.csv").write_text("\n".join([*lines, line]) + "\n")
        assert exit_codes(fitted, fitted / "m.json", table="more.csv") == (1, 1)


STATEMENTS: dict[str, Change] = {
    "a larger gamma": lambda s: s.update(gamma=s["gamma"] * 1.001),
    "another family": lambda s: s.update(class_arcs="free" if s["class_arcs"] == "all" else "all"),
    "unrestricted": lambda s: s.update(class_restricted=False),
    "a rounded score": lambda s: s.update(objective=0.0),
    "the binary margin": lambda s: s.update(score="binary"),
    "one class fewer": lambda s: s["classes"].pop(),
    "features in another order": lambda s: s["features"].reverse(),
    "a column left out": lambda s: s.update(left_out=["colour"]),
    "fewer rows left out": lambda s: s.update(rows_left_out=s["rows_left_out"] + 1),
    "an unknown key": lambda s: s.update(proved=True),
    "another coding": lambda s: s["coding"][0].update(missing_state=False, categories=["red"]),
    "a gap below nothing": lambda s: s.update(gap=-1.0),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_another_statement_is_refused(name: str, fitted: Path) -> None:
    """By both checkers, of the honest model and table."""
    said = json.loads((fitted / "said").read_text())
    STATEMENTS[name](said)
    codes = exit_codes(fitted, fitted / "m.json", "--statement", json.dumps(said))
    assert 0 not in codes
