"""``marginbn verify`` says what is proved, and refutes proofs of what was not asked for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from marginbn import GenerativeBNClassifier, save_model
from marginbn.cli import app, verify
from marginbn.cli.data import encode_rows, load_rows
from marginbn.cli.options import TableOptions
from marginbn.data.preparation import TableSettings
from marginbn.exceptions import CertificateWarning
from marginbn.problem.candidates import CandidateSets, enumerate_candidates
from marginbn.problem.encoded import EncodedData, Variable
from marginbn.problem.problem import margin_problem
from marginbn.proof import exact
from marginbn.solvers import solve_structure
from marginbn.solvers.result import PROOF_TOLERANCE

GAMMA = 2.1972245773362196  # what fit has by default: p = 0.9


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    return result.exit_code, " ".join(result.output.split())


def run_json(*arguments: object) -> dict[str, Any]:
    result = CliRunner().invoke(app, [*(str(a) for a in arguments), "--json"])
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """100 rows, three features that know something of the class."""
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 2, 100)
    flips = rng.random((100, 3)) < (0.2, 0.3, 0.4)
    rows = [[*map(int, label ^ own), "ny"[label]] for label, own in zip(labels, flips, strict=True)]
    path = tmp_path / "t.csv"
    path.write_text("a,b,c,y\n" + "\n".join(",".join(map(str, row)) for row in rows) + "\n")
    return path


def fit(table: Path, name: str, *more: object, method: str = "max-margin") -> tuple[Path, Path]:
    """Model and certificate of a fit to all rows."""
    proof, model = table.with_name(f"{name}.cert"), table.with_name(f"{name}.json")
    usual = ["-t", "y", "--holdout", 0, "-q"]
    files = ["--certificate", proof, "-o", model]
    code, text = run("fit", "--method", method, table, *usual, *files, *more)
    assert code == 0, text
    return proof, model


def check(proof: Path, model: Path, table: Path, *more: object) -> tuple[int, str]:
    """Verify a certificate with everything there is."""
    return run("verify", proof, "--model", model, "--data", table, *more)


@pytest.fixture
def proof(table: Path) -> Path:
    """An honest certificate about all rows; model.json is beside it."""
    return fit(table, "model")[0]


# ------------------------------------------------------------------------------- said aloud


def test_the_tolerance_is_the_solvers() -> None:
    """It is written down twice, so that --help need not import the solvers."""
    assert verify.PROOF_TOLERANCE == PROOF_TOLERANCE


def test_the_statement_is_printed(table: Path, proof: Path, model: Path) -> None:
    """Score, gamma and p, smoothing, classes, features, rows, rule, arcs, tolerance."""
    code, text = check(proof, model, table)
    assert code == 0, text
    for part in (
        "VERIFIED, gap",
        "soft margin, gamma = 2.1972245773362196 (p = 0.9), smoothing 1.0",
        "2 of y: n, y",
        "3: a, b, c",
        f"all the 100 rows of {table}, total weight 100,",
        "all sets of at most 2 parents, for features none or with the class among them",
        "required no arcs forbidden no arcs",
        "a gap of at most 0.0001 % counts as optimal: this structure is",
        "Checked against what you gave: --data, --model.",
    ):
        assert part in text
    assert "The certificate itself states all of this" in run("verify", proof)[1]


def test_the_statement_is_in_the_json(table: Path, proof: Path, model: Path) -> None:
    record = run_json("verify", proof, "--data", table, "--model", model)
    assert record["verified"]
    assert record["optimal"]
    said = record["statement"]
    assert (said["score"], said["gamma"], said["smoothing"]) == ("multiclass", GAMMA, 1.0)
    assert said["p"] == pytest.approx(0.9)
    assert (said["target"], said["classes"], said["features"]) == ("y", ["n", "y"], [*"abc"])
    assert (said["table_rows"], said["table_rows_used"], said["left_out"]) == (100, 100, [])
    assert (said["max_parents"], said["class_restricted"], said["listed"]) == (2, True, None)
    assert said["class_arcs"] == "free"
    assert (said["required"], said["forbidden"], said["total_weight"]) == ([], [], 100.0)
    assert set(said["structure"]) == {*"yabc"}
    assert run_json("verify", proof)["statement"]["left_out"] is None


def test_a_table_needs_a_model(table: Path, proof: Path) -> None:
    code, text = run("verify", proof, "--data", table)
    assert code == 2
    assert "needs --model" in text


def test_the_proof_is_about_all_rows(table: Path) -> None:
    """The model is learned from all rows, held-out ones included; other rows are refuted."""
    proof, model = fit(table, "h", "--holdout", 0.5)
    assert f"all the 100 rows of {table}" in check(proof, model, table)[1]
    table.write_text("\n".join(table.read_text().splitlines()[:81]))
    code, text = check(proof, model, table)
    assert (code, text.split()[0]) == (1, "REFUTED")


def first_line(*arguments: object) -> str:
    """What everybody reads."""
    return CliRunner().invoke(app, [str(a) for a in arguments]).output.splitlines()[0]


SAYS_ALL: dict[str, Any] = {
    "score": "multiclass", "p": 0.9, "smoothing": 1, "max_parents": 2, "class_restricted": True,
    "class_arcs": "free", "required": [], "forbidden": [],
}  # fmt: skip


def test_what_was_not_asked_for_is_told_first(table: Path) -> None:
    """Settings that no statement mentions, and columns left out; what is said is no reservation."""
    proof, model = fit(table, "c", "--p", 0.6, "--forbid", "a->b", "--drop", "c")
    whole = ["verify", proof, "--data", table, "--model", model, "--strict"]
    code, text = run(*whole)
    assert code == 4
    assert "%, with 2 reservations Refused by --strict: not in the statement: score" in text
    told = "1 column of the table left out: c"
    assert text.index(told) < text.index("The structure in the certificate")
    assert "The reservations are about what you did not give" in text
    [unsaid, left_out] = run_json(*whole)["reservations"]
    assert left_out == told
    assert ": score, gamma, smoothing, max_parents, class_restricted, class_arcs, req" in unsaid
    assert run_json(*whole[:-1])["reservations"] == [told]
    said = SAYS_ALL | {"p": 0.6, "forbidden": [["a", "b"]], "left_out": ["c"]}
    assert run_json(*whole, "--statement", json.dumps(said))["strict"]
    assert "reservation" not in run(*whole, "--statement", json.dumps(said))[1]


def test_rows_that_miss_values_are_told(table: Path) -> None:
    table.write_text(table.read_text() + ",1,1,y\n")
    proof, model = fit(table, "c")
    told = ["1 of the 101 rows left out: they have missing values"]
    usual = ["verify", proof, "--data", table, "--model", model]
    assert run_json(*usual)["reservations"] == told
    assert run_json(*usual, "--statement", '{"rows_left_out": 1}')["reservations"] == []
    assert "1 row left out, not 2" in run(*usual, "--statement", '{"rows_left_out": 2}')[1]


@pytest.mark.parametrize(
    "made",
    [
        [],
        ["--missing", "drop"],
        ["--class-weight", "balanced"],
        ["--class-weight", "y=2", "--class-weight", "n=0.5"],
    ],
    ids=lambda made: " ".join(map(str, made)) or "as usual",
)
@pytest.mark.parametrize("method", ["max-margin", "bn"])
def test_the_table_is_made_as_fit_made_it(made: list[object], method: str, table: Path) -> None:
    """Missing values, rare values and weights as the model has them; another row is refuted."""
    lines = table.read_text().splitlines()
    table.write_text("\n".join([lines[0], *("?" + line[1:] for line in lines[1:41]), *lines[41:]]))
    for rare in ("rare", "rarer"):
        table.write_text(table.read_text().replace("1,1,y", f"{rare},1,y", 2))
    proof, model = fit(table, "c", *made, method=method)
    code, text = check(proof, model, table)
    assert code == 0, text
    assert "VERIFIED, gap" in text
    table.write_text(table.read_text() + "\n1,0,1,y")
    code, text = check(proof, model, table)
    assert code == 1
    assert "REFUTED" in text


def generative(table: Path, **settings: Any) -> GenerativeBNClassifier:
    """A classifier with a score that `fit` has no option for."""
    rows = load_rows(TableOptions(str(table), "y"))
    classifier = GenerativeBNClassifier(score="bdeu", **settings)
    classifier.fit_rows(rows)
    return classifier


def test_a_model_speaks_for_its_settings(table: Path, proof: Path) -> None:
    """Without --strict; a statement of a part is asked for the rest."""
    assert first_line("verify", proof).endswith("%")
    model, other = table.with_name("m"), table.with_name("c")
    save_model(generative(table, max_parents=1, certificate=other), model)
    said = '{"score": "bdeu", "equivalent_sample_size": 1, "max_parents": 1}'
    [told] = run_json("verify", other, "--statement", said)["reservations"]
    assert told.endswith("data, class_restricted, class_arcs, required, forbidden")
    assert run_json("verify", other, "--model", model)["reservations"] == []


# ------------------------------------------------------------------------------- forgeries


def encoded(table: Path, *drop: str) -> EncodedData:
    rows = load_rows(TableOptions(str(table), "y", None, list(drop)))
    return encode_rows(rows, TableSettings(missing="drop"))


def one_structure() -> CandidateSets:
    """A list with one parent set per variable: the empty one."""
    return CandidateSets(4, np.arange(4, dtype=np.int32), ((), (), (), ()))


EVERY_ARC = [(i, j) for i in range(4) for j in range(4) if i != j]
FORGERIES: dict[str, tuple[Callable[[], CandidateSets], float, str]] = {
    "one listed structure": (one_structure, GAMMA, "A CUSTOM LIST of 4 parent sets"),
    "another gamma": (lambda: enumerate_candidates(4, 2), 0.01, "gamma = 0.01 (p = 0.5025)"),
    "every arc forbidden": (
        lambda: enumerate_candidates(4, 2, forbidden=EVERY_ARC),
        GAMMA,
        "12 arcs: y -> a, y -> b, y -> c, a -> y, a -> b, a -> c, b -> y, b -> a and 4 more",
    ),
    "no parents": (lambda: enumerate_candidates(4, 0), GAMMA, "at most 0 parents"),
}


@pytest.mark.parametrize("kind", FORGERIES)
def test_a_proof_of_something_else(kind: str, table: Path, tmp_path: Path) -> None:
    """Alone it is a proof, which says of what; with --strict it is refused, with the difference."""
    candidates, gamma, said = FORGERIES[kind]
    path = tmp_path / "forged.cert"
    solve_structure(margin_problem(encoded(table), candidates(), gamma=gamma), certificate=path)
    code, text = run("verify", path)
    assert code == 0
    assert said in text
    whole = ["verify", path, "--strict", "--statement", json.dumps(SAYS_ALL)]
    code, text = run(*whole)
    assert code == 4
    assert text.startswith("REFUTED")
    assert not run_json(*whole)["strict"]
    model = fit(table, "model")[1]
    assert check(path, model, table)[1].startswith("REFUTED")


def test_features_declared_constant_are_named(table: Path, tmp_path: Path) -> None:
    """A variable that varies is not called constant: the certificate lists its sets and says so."""
    candidates = enumerate_candidates(4, 2, constant=[1, 2, 3])
    path = tmp_path / "forged.cert"
    solve_structure(margin_problem(encoded(table), candidates, gamma=GAMMA), certificate=path)
    assert "A CUSTOM LIST" in run("verify", path)[1]
    assert "custom list" in run_json("verify", path)["reservations"][0]
    assert run("verify", path, "--strict", "--statement", json.dumps(SAYS_ALL))[0] == 4


def test_a_gap_is_refused_by_strict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "stopped.cert"
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 2, (60, 9)).astype(np.int32)
    variables = tuple(Variable(f"v{i}", ("0", "1")) for i in range(9))
    problem = margin_problem(EncodedData(rows, np.ones(60), variables), enumerate_candidates(9, 2))
    with pytest.warns(CertificateWarning):
        solve_structure(problem, certificate=path, node_limit=1)
    assert run("verify", path)[0] == 0
    said = json.dumps({key: value for key, value in SAYS_ALL.items() if key != "p"} | {"gamma": 1})
    code, text = run("verify", path, "--strict", "--statement", said)
    assert code == 4
    assert "Refused by --strict: the gap is" in text
    capsys.readouterr()
    assert exact.main([str(path), "--strict", "--statement", said]) == 4
    assert "reservation: the gap is" in capsys.readouterr().out
    assert exact.main([str(path), "--statement", said]) == 0


# ----------------------------------------------------------------------------- from outside


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"p": 0.8}, "gamma is 2.1972245773362196, not 1.3862943611198908"),
        ({"gamma": 3}, "gamma is 2.1972245773362196, not 3.0"),
        ({"score": "binary"}, "score is 'multiclass', not 'binary'"),
        ({"score": "mdl"}, "score is 'multiclass', not 'mdl'"),
        ({"smoothing": 0.5}, "smoothing is 1.0, not 0.5"),
        ({"max_parents": 3}, "max parents is 2, not 3"),
        ({"class_restricted": False}, "class restriction"),
        ({"class_arcs": "all"}, "class arcs is 'free', not 'all'"),
        ({"required": [["y", "a"]]}, "required arcs: y -> a missing"),
        ({"forbidden": [["a", "b"]]}, "forbidden arcs: a -> b missing"),
        ({"gap": 0}, "the proved gap is"),
        ({"data": "0" * 64}, "fingerprint of the data"),
    ],
)
def test_another_statement_is_refuted(said: dict[str, Any], reason: str, proof: Path) -> None:
    code, text = run("verify", proof, "--statement", json.dumps(said))
    assert code == 1
    assert text.startswith("REFUTED the certificate proves another statement")
    assert reason in text
    assert exact.main([str(proof), "--statement", json.dumps(said)]) == 1


@pytest.mark.parametrize(
    "text",
    ['{"gama": 2}', '{"gamma": "2"}', "{", "no such file", '{"p": 2.0}', '{"p": 0.9, "gamma": 2}'],
)
def test_a_statement_that_cannot_be_read(text: str, proof: Path) -> None:
    """Wrong options; nothing is taken for a statement that asks for nothing."""
    assert run("verify", proof, "--statement", text)[0] == 2
    assert exact.main([str(proof), "--statement", text]) == 2


def test_fit_writes_its_statement(table: Path) -> None:
    """Both checkers take it: the fit satisfies it strictly, that of another table does not."""
    said = table.with_name("statement.json")
    proof, model = fit(table, "one", "--statement", said, "--drop", "c")
    whole = ["--statement", said, "--strict"]
    code, text = check(proof, model, table, *whole)
    assert code == 0, text
    arguments = [str(a) for a in ("--model", model, "--data", table, *whole)]
    assert exact.main([str(proof), *arguments]) == 0
    record = json.loads(said.read_text())
    assert (record["left_out"], record["rows_left_out"], record["gap"]) == (["c"], 0, 1e-6)
    assert [own["name"] for own in record["coding"]] == ["a", "b"]
    other, its = fit(table, "two", "--drop", "c", "--drop", "b")
    assert check(other, its, table, *whole)[0] == 4
    arguments = [str(a) for a in ("--model", its, "--data", table, *whole)]
    assert exact.main([str(other), *arguments]) in (1, 4)


def test_a_coding_that_was_asked_for(table: Path) -> None:
    """It must be that of the model; without a model it cannot be checked, which is refused."""
    said = table.with_name("statement.json")
    proof, model = fit(table, "one", "--statement", said)
    record = json.loads(said.read_text())
    record["coding"][0]["categories"].reverse()
    code, text = run("verify", proof, "--statement", json.dumps(record), "--model", model)
    assert code == 2
    assert "--data" in text  # what was left out of it
    del record["left_out"], record["rows_left_out"]
    code, text = run("verify", proof, "--statement", json.dumps(record), "--model", model)
    assert code == 1
    assert "the coding of the model is not the one that was asked for" in text
    code, text = run("verify", proof, "--statement", json.dumps(record))
    assert code == 2
    assert "--model" in text


def test_a_score_has_no_gamma(table: Path, tmp_path: Path) -> None:
    """Decomposable scores: by name, with BDeu's own number; gamma is no part of them."""
    path = tmp_path / "c.cert"
    generative(table, certificate=path)
    code, text = run("verify", path, "--statement", '{"score": "bdeu"}')
    assert code == 0
    assert "BDEU, equivalent sample size 1.0" in text
    text = run("verify", path, "--statement", '{"gamma": 2}')[1]
    assert "gamma is no part of the statement" in text


def test_a_network_without_a_class_speaks_of_variables(table, tmp_path, capsys):
    proof, model = tmp_path / "n.cert", tmp_path / "n.json"
    assert run("learn", table, "-q", "--certificate", proof, "-o", model)[0] == 0
    statement = {"score": "mdl", "max_parents": 3, "required": [], "forbidden": []}
    statement |= {"class_restricted": False, "class_arcs": "free"}
    code, text = check(proof, model, table, "--strict", "--statement", json.dumps(statement))
    assert code == 0, text
    assert "variables 4: a, b, c, y" in text
    assert "all sets of parents" in text
    said = text.replace(str(table), "").replace("marginbn", "")
    assert "class" not in said
    assert "margin" not in said
    assert "class" not in run_json("verify", proof)["statement"]["candidates"]
    capsys.readouterr()
    whole = ["--model", str(model), "--data", str(table), "--strict"]
    assert exact.main([str(proof), *whole, "--statement", json.dumps(statement)]) == 0
    told = capsys.readouterr().out
    assert "class" not in told
    assert "margin" not in told
    assert "4 variables" in told
    table.write_text(table.read_text() + "1,0,1,y\n")
    assert check(proof, model, table)[0] == 1


# ------------------------------------------------------------------------------- models


@pytest.fixture
def model(proof: Path) -> Path:
    return proof.with_suffix(".json")


def test_show_report_and_predict_claim_until_a_proof_was_checked(model, table, tmp_path):
    proof, page = tmp_path / "model.cert", tmp_path / "page.html"
    roads = (["show", model], ["predict", model, table], ["report", model, "-o", page])
    for road in roads:
        text = run(*road)[1]
        told = page.read_text() if road[0] == "report" else text
        assert ("Claimed by the file, not checked" in told) is (road[0] != "predict")
        assert "Proved:" not in told
        code, text = run(*road, "--certificate", proof)
        assert code == 0
        told = page.read_text() if road[0] == "report" else text
        assert "Verified by its certificate" in told
    assert "certificate checked: objective" in run("show", model, "--certificate", proof)[1]
    claimed, checked = (
        run_json("show", model, *more) for more in ([], ["--certificate", str(proof)])
    )
    assert (claimed["proved"], claimed["evidence"]["source"]) == (False, "file")
    assert (checked["proved"], checked["evidence"]["source"]) == (True, "certificate")


def test_a_certificate_of_something_else_ends_show(model, table, tmp_path):
    other, _ = fit(table, "other", "--p", 0.8)
    code, text = run("show", model, "--certificate", other)
    assert code == 1
    assert "does not prove what" in text
    assert "gamma is 1.386" in text
