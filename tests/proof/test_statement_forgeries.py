"""A model, or a statement, that says more than the certificate proves: refused by both checkers."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.end_to_end import write_table
from typer.testing import CliRunner

from certificates import sealed
from marginbn.cli import app
from marginbn.proof import exact
from marginbn.proof.certificate import Candidates, Certificate, read_certificate, write_certificate

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
    "an arc is required": lambda m: m["params"].update(required_arcs=[["colour", "size"]]),
    "an arc is forbidden": lambda m: m["params"].update(forbidden_arcs=[["size", "colour"]]),
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


def test_the_difference_of_a_coding_is_reported(
    fitted: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the model makes, and what the certificate has."""
    model = json.loads((fitted / "m.json").read_text())
    model["coding"][0]["categories"].reverse()
    (tmp_path / "m.json").write_text(json.dumps(model))
    assert exact.main([str(fitted / "proof"), "--model", str(tmp_path / "m.json")]) == 1
    assert "('colour', ['red', 'green', 'blue'" in capsys.readouterr().out.split(" instead of ")[0]


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
    said = json.loads((fitted / "said").read_text())
    STATEMENTS[name](said)
    codes = exit_codes(fitted, fitted / "m.json", "--statement", json.dumps(said))
    assert 0 not in codes


def with_rule(c: Certificate, **changes: Any) -> Certificate:
    """Another rule of the candidates; the tree may or may not prove it."""
    assert c.candidates.rule is not None
    return replace(c, candidates=Candidates(replace(c.candidates.rule, **changes)))


def with_data(c: Certificate, **changes: Any) -> Certificate:
    """Other data, with the fingerprint that they have."""
    return sealed(replace(c, data=replace(c.data, **changes)))


def reverse_classes(c: Certificate) -> Certificate:
    """The same rows, with the labels of the classes in another order."""
    codes = c.data.codes.copy()
    codes[:, 0] = len(c.data.states[0]) - 1 - codes[:, 0]
    return with_data(c, codes=codes, states=(c.data.states[0][::-1], *c.data.states[1:]))


def swap_names(c: Certificate) -> Certificate:
    """Two features have the name of the other one."""
    first, second, third, *rest = c.data.names
    return with_data(c, names=(first, third, second, *rest))


CERTIFICATES: dict[str, Callable[[Certificate], Certificate]] = {
    "other arcs of the class": lambda c: with_rule(
        c,
        class_arcs="all"
        if c.candidates.rule and c.candidates.rule.class_arcs == "free"
        else "free",
    ),
    "arcs are forbidden that the structure lacks": lambda c: with_rule(c, forbidden=((1, 0),)),
    "an arc is required that the structure has": lambda c: with_rule(
        c, required=((c.incumbent[1][0], 1),)
    ),
    "sets of three parents": lambda c: with_rule(c, max_parents=3),
    "a smaller gamma": lambda c: replace(c, score=replace(c.score, gamma=0.999 * c.score.gamma)),
    "the other margin": lambda c: replace(c, score=replace(c.score, name="binary")),
    "twice the weights": lambda c: replace(
        with_data(c, weights=2 * c.data.weights), objective=2 * c.objective, bound=2 * c.bound
    ),
    "another row": lambda c: with_data(
        c, codes=np.vstack([c.data.codes[1:], c.data.codes[:1] * 0])
    ),
    "the fingerprint of other rows": lambda c: replace(
        c, data=replace(c.data, weights=c.data.weights * 2)
    ),
    "classes in another order": reverse_classes,
    "features change names": swap_names,
    "equal names": lambda c: with_data(c, names=(*c.data.names[:2], *c.data.names[1:-1])),
    "a state is renamed": lambda c: with_data(
        c, states=(*c.data.states[:-1], ("x", *c.data.states[-1][1:]))
    ),
    "a claim that is out of reach": lambda c: replace(c, bound=0.99 * c.objective, objective=0.0),
}


@pytest.mark.parametrize("name", CERTIFICATES)
def test_a_certificate_of_something_else_is_refused(
    name: str, fitted: Path, tmp_path: Path
) -> None:
    """By both checkers: compared with the honest model alone, with its table, and with what the
    statement says of the certificate.
    """
    forged = CERTIFICATES[name](read_certificate(fitted / "proof"))
    proof = str(tmp_path / "proof")
    write_certificate(proof, forged)
    said = json.loads((fitted / "said").read_text())
    said = {key: part for key, part in said.items() if key not in LATER}
    model = ["--model", str(fitted / "m.json")]
    for options in (
        model,
        [*model, "--data", str(fitted / "t.csv")],
        ["--statement", json.dumps(said)],
    ):
        assert CliRunner().invoke(app, ["verify", proof, *options]).exit_code != 0
        assert exact.main([proof, *options]) != 0


LATER = ("coding", "left_out", "rows_left_out")
"""What a statement says of model and table."""


def test_rows_that_nothing_identifies_are_a_reservation(fitted: Path) -> None:
    """--strict wants a table or a fingerprint: a proof about other rows fits the same settings."""
    said = json.loads((fitted / "said").read_text())
    said = {key: part for key, part in said.items() if key not in LATER}
    assert exit_codes_alone(fitted, said) == (0, 0)
    del said["data"]
    assert exit_codes_alone(fitted, said) == (4, 4)


def exit_codes_alone(folder: Path, said: Record) -> tuple[int, int]:
    """Of both checkers about a certificate without a model."""
    arguments = [str(folder / "proof"), "--strict", "--statement", json.dumps(said)]
    return CliRunner().invoke(app, ["verify", *arguments]).exit_code, exact.main(arguments)


def test_a_weight_that_is_no_number_is_refused(fitted: Path, tmp_path: Path) -> None:
    """NaN is larger than nothing, so it must not pass for a small difference."""
    model = json.loads((fitted / "m.json").read_text())
    model["params"]["class_weight"] = {"dict": [["c0", math.nan]]}
    (tmp_path / "m.json").write_text(json.dumps(model))
    assert 0 not in exit_codes(fitted, tmp_path / "m.json")


def test_a_key_that_is_there_twice_is_refused(fitted: Path, tmp_path: Path) -> None:
    """In a model and in a statement: another reader may take the first one."""
    text = (fitted / "m.json").read_text()
    (tmp_path / "m.json").write_text(text.replace("{", '{"coding": [], ', 1))
    assert 0 not in exit_codes(fitted, tmp_path / "m.json")
    twice = '{"gamma": 1.0, ' + (fitted / "said").read_text().lstrip("{ \n")
    assert 0 not in exit_codes(fitted, fitted / "m.json", "--statement", twice)
    assert 0 not in exit_codes(fitted, fitted / "m.json", "--statement", '{"p": 0.9, "p": 0.9}')
