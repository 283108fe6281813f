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
from marginbn.problem.candidates import CandidateSets, enumerate_candidates
from marginbn.problem.encoded import EncodedData
from marginbn.problem.problem import margin_problem
from marginbn.solvers import solve_structure
from marginbn.solvers.result import PROOF_TOLERANCE

GAMMA = 2.1972245773362196  # what fit has by default: p = 0.9


def run(*arguments: object) -> tuple[int, str]:
    """Exit code and output, in one line for every run of spaces."""
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    return result.exit_code, " ".join(result.output.split())


def run_json(*arguments: object) -> dict[str, Any]:
    """What ``--json`` prints."""
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


@pytest.fixture
def proof(table: Path, tmp_path: Path) -> Path:
    """An honest certificate about all rows."""
    path = tmp_path / "proof.cert"
    assert (
        run(
            "fit",
            "--method",
            "max-margin",
            table,
            "-t",
            "y",
            "--holdout",
            0,
            "--certificate",
            path,
            "-q",
        )[0]
        == 0
    )
    return path


# ------------------------------------------------------------------------------- said aloud


def test_the_tolerance_is_the_solvers() -> None:
    """It is written down twice, so that --help need not import the solvers."""
    assert verify.PROOF_TOLERANCE == PROOF_TOLERANCE


def test_the_statement_is_printed(table: Path, proof: Path) -> None:
    """Score, gamma and p, smoothing, classes, features, rows, rule, arcs, tolerance."""
    code, text = run("verify", proof, "--data", table)
    assert code == 0
    for part in (
        "VERIFIED, gap",
        "soft margin, gamma = 2.1972245773362196 (p = 0.9), smoothing 1.0",
        "2 of y: n, y",
        "3: a, b, c",
        f"all the 100 rows of {table}, total weight 100,",
        "all sets of at most 2 parents, for features none or with the class among them",
        "required no arcs forbidden no arcs",
        "a gap of at most 1e-06 counts as optimal: this structure is",
        "Checked against what you gave: --data.",
    ):
        assert part in text
    assert "what the certificate says of itself" in run("verify", proof)[1]


def test_the_statement_is_in_the_json(table: Path, proof: Path) -> None:
    """The same for programs, and the structure in full."""
    record = run_json("verify", proof, "--data", table)
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


def test_the_family_that_was_asked_for(proof: Path) -> None:
    """A proof for the paper's family is none for the one in which all features have the class."""
    assert run("verify", proof, "--class-arcs", "free")[0] == 0
    code, text = run("verify", proof, "--class-arcs", "all")
    assert code == 1
    assert "class arcs is 'free', not 'all'" in text


def test_the_proof_is_about_all_rows(table: Path, tmp_path: Path) -> None:
    """The model is learned from all rows, held-out ones included; other rows are refuted."""
    path = tmp_path / "h.cert"
    run(
        "fit",
        "--method",
        "max-margin",
        table,
        "-t",
        "y",
        "--holdout",
        0.5,
        "--certificate",
        path,
        "-q",
    )
    assert f"all the 100 rows of {table}" in run("verify", path, "--data", table)[1]
    table.write_text("\n".join(table.read_text().splitlines()[:81]))
    code, text = run("verify", path, "--data", table)
    assert (code, text.split()[0]) == (1, "REFUTED")


def first_line(*arguments: object) -> str:
    """What everybody reads."""
    return CliRunner().invoke(app, [str(a) for a in arguments]).output.splitlines()[0]


def test_what_nobody_asked_for_is_told_first(table: Path, tmp_path: Path) -> None:
    """Another class, fewer columns, other settings; what is said is no reservation."""
    path = tmp_path / "c.cert"
    said = ["--p", 0.6, "--forbid", "a->b", "--drop", "y"]
    assert (
        run("fit", "--method", "max-margin", table, "-t", "c", "--certificate", path, "-q", *said)[
            0
        ]
        == 0
    )
    told = [
        "gamma is 0.4054651081081642, not 2.1972245773362196",
        "forbidden arcs: a -> b not asked for",
        "the class is the column 'c'",
        "1 column of the table left out: y",
    ]
    code, text = run("verify", path, "--data", table)
    assert code == 0
    assert "%, with 4 reservations You did not ask for this" in text
    assert f"it is not all of {table} with what `marginbn fit` has by default: - gamma" in text
    assert text.index(told[-1]) < text.index("The structure in the certificate")
    assert "The reservations are about what you did not give" in text
    assert run_json("verify", path, "--data", table)["reservations"] == told
    assert run_json("verify", path)["reservations"] == told[:2]
    whole = ["verify", path, "--data", table, "-t", "c", *said]
    assert run_json(*whole)["reservations"] == []
    assert "reservation" not in run(*whole)[1]


def test_rows_that_miss_values_are_told(table: Path, tmp_path: Path) -> None:
    """They are no part of the proof."""
    table.write_text(table.read_text() + ",1,1,y\n")
    path = tmp_path / "c.cert"
    run(
        "fit",
        "--method",
        "max-margin",
        table,
        "-t",
        "y",
        "--holdout",
        0,
        "--certificate",
        path,
        "-q",
    )
    told = ["1 of the 101 rows are not part of it: values are missing in them"]
    assert run_json("verify", path, "--data", table)["reservations"] == told


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
def test_the_table_is_made_as_fit_made_it(made: list[object], table: Path, tmp_path: Path) -> None:
    """Without a word as fit does by default; with other words another table is refuted."""
    lines = table.read_text().splitlines()
    table.write_text("\n".join([lines[0], *("?" + line[1:] for line in lines[1:41]), *lines[41:]]))
    for rare in ("rare", "rarer"):
        table.write_text(table.read_text().replace("1,1,y", f"{rare},1,y", 2))
    path = tmp_path / "c.cert"
    run(
        "fit",
        "--method",
        "max-margin",
        table,
        "-t",
        "y",
        "--holdout",
        0,
        "--certificate",
        path,
        "-q",
        *made,
    )
    code, text = run("verify", path, "--data", table, *made)
    assert code == 0
    assert "VERIFIED, gap" in text
    code, text = run("verify", path, "--data", table)
    assert code == (1 if made else 0)
    assert ("REFUTED" if made else "VERIFIED, gap") in text


def generative(table: Path, **settings: Any) -> GenerativeBNClassifier:
    """A classifier with a score that `fit` has no option for."""
    rows = load_rows(TableOptions(str(table), "y"))
    classifier = GenerativeBNClassifier(score="bdeu", **settings)
    classifier.fit_rows(rows)
    return classifier


def test_the_plain_problem_has_no_reservations(table: Path, proof: Path) -> None:
    """Nor has one that a model speaks for; another score is one reservation, not many."""
    assert first_line("verify", proof, "--data", table).endswith("%")
    assert first_line("verify", proof).endswith("%")
    model, other = table.with_name("m"), table.with_name("c")
    save_model(generative(table, max_parents=1, certificate=other), model)
    told = ["score is 'bdeu', not 'multiclass'", "max parents is 1, not 2"]
    assert run_json("verify", other)["reservations"] == told
    assert run_json("verify", other, "--score", "bdeu")["reservations"] == told[1:]
    assert run_json("verify", other, "--model", model)["reservations"] == []


# ------------------------------------------------------------------------------- forgeries


def encoded(table: Path, *drop: str) -> EncodedData:
    """The rows of the table as ``fit`` would encode them."""
    rows = load_rows(TableOptions(str(table), "y", None, list(drop)))
    return encode_rows(rows, TableSettings(missing="drop"))


def one_structure() -> CandidateSets:
    """A list with one parent set per variable: the empty one."""
    return CandidateSets(4, np.arange(4, dtype=np.int32), ((), (), (), ()))


EVERY_ARC = [(i, j) for i in range(4) for j in range(4) if i != j]
FORGERIES: dict[str, tuple[Callable[[], CandidateSets], float, tuple[str, ...], str]] = {
    "one listed structure": (
        one_structure,
        GAMMA,
        (),
        "A CUSTOM LIST: 4 of 19 possible sets of at most 2 parents",
    ),
    "another gamma": (lambda: enumerate_candidates(4, 2), 0.01, (), "gamma = 0.01 (p = 0.5025)"),
    "every arc forbidden": (
        lambda: enumerate_candidates(4, 2, forbidden=EVERY_ARC),
        GAMMA,
        (),
        "12 arcs: y -> a, y -> b, y -> c, a -> y, a -> b, a -> c, b -> y, b -> a and 4 more",
    ),
    "no parents": (lambda: enumerate_candidates(4, 0), GAMMA, (), "at most 0 parents"),
    "columns left out": (
        lambda: enumerate_candidates(2, 2),
        GAMMA,
        ("b", "c"),
        "LEFT OUT 2 columns: b, c",
    ),
}


@pytest.mark.parametrize("kind", FORGERIES)
def test_a_proof_of_something_else(kind: str, table: Path, tmp_path: Path) -> None:
    """Alone it is a proof, which says of what; with --strict it is refuted, with the difference."""
    candidates, gamma, drop, said = FORGERIES[kind]
    problem = margin_problem(encoded(table, *drop), candidates(), gamma=gamma)
    path = tmp_path / "forged.cert"
    solve_structure(problem, certificate=path)
    code, text = run("verify", path, "--data", table)
    assert code == 0
    assert said in text
    assert "reservation" in first_line("verify", path, "--data", table)
    code, text = run("verify", path, "--data", table, "--strict")
    assert code == 1
    assert text.startswith("REFUTED")
    record = run_json("verify", path, "--data", table, "--strict")
    assert not record["verified"]
    assert not record["optimal"]
    assert "another statement" in record["reason"] or "left out" in record["reason"]


def test_features_declared_constant_are_named(table: Path, tmp_path: Path) -> None:
    """A variable that varies is not called constant: the certificate lists its sets and says so."""
    candidates = enumerate_candidates(4, 2, constant=[1, 2, 3])
    path = tmp_path / "forged.cert"
    solve_structure(margin_problem(encoded(table), candidates, gamma=GAMMA), certificate=path)
    _, text = run("verify", path, "--data", table)
    assert "A CUSTOM LIST" in text
    assert run("verify", path, "--data", table, "--strict")[0] == 1


# ----------------------------------------------------------------------------- from outside


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--p", "0.8"], "gamma is 2.1972245773362196, not 1.3862943611198908"),
        (["--gamma", "3"], "gamma is 2.1972245773362196, not 3.0"),
        (["--margin", "binary"], "score is 'multiclass', not 'binary'"),
        (["--score", "bic"], "score is 'multiclass', not 'mdl'"),
        (["--smoothing", "0.5"], "smoothing is 1.0, not 0.5"),
        (["--max-parents", "3"], "max parents is 2, not 3"),
        (["--unrestricted"], "class restriction"),
        (["--require", "y->a"], "required arcs: y -> a missing"),
        (["--forbid", "a->b"], "forbidden arcs: a -> b missing"),
        (["--gap", "0"], "the proven gap is"),
    ],
)
def test_another_statement_is_refuted(options: list[str], reason: str, proof: Path) -> None:
    """With the difference."""
    code, text = run("verify", proof, *options)
    assert code == 1
    assert text.startswith("REFUTED the certificate proves another statement")
    assert reason in text


def test_the_right_statement_is_verified(proof: Path, table: Path) -> None:
    """All of it, in the words of fit."""
    said = ["--p", 0.9, "--margin", "multiclass", "--smoothing", 1, "--max-parents", 2]
    said += ["--class-arcs", "free"]
    code, text = run("verify", proof, *said, "--gap", 1e-6, "--strict", "--data", table)
    assert code == 0
    assert "--data, --margin, --p, --smoothing, --max-parents, --class-arcs, --gap" in text
    assert "class arcs" in run("verify", proof, "--strict")[1]  # those of the default are all


def test_arcs_and_columns_of_a_fit(table: Path, tmp_path: Path) -> None:
    """What was required, forbidden and left out is asked for by the same options."""
    path = tmp_path / "c.cert"
    said = ["--require", "y->a", "--forbid", "a->b", "--drop", "c"]
    fit = [
        "fit",
        "--method",
        "max-margin",
        table,
        "-t",
        "y",
        "--holdout",
        0,
        "--certificate",
        path,
        "-q",
        *said,
    ]
    assert run(*fit)[0] == 0
    check = ["verify", path, "--data", table, "--strict", "--class-arcs", "free"]
    assert run(*check, *said)[0] == 0
    code, text = run(*check)
    assert code == 1
    for part in ("required arcs: y -> a not asked for", "forbidden arcs", "['c'] of the table"):
        assert part in text
    assert "are not left out" in run(*check, *said, "--drop", "b")[1]


def test_a_score_has_no_gamma(table: Path, tmp_path: Path) -> None:
    """Decomposable scores: by name, with BDeu's own number; gamma is no part of them."""
    path = tmp_path / "c.cert"
    generative(table, certificate=path)
    code, text = run("verify", path, "--score", "bdeu", "--strict")
    assert code == 0
    assert "BDEU, equivalent sample size 1.0" in text
    assert "gamma is no part of the statement" in run("verify", path, "--gamma", 2)[1]
    code, text = run("verify", path, "--score", "bdeu", "--margin", "binary")
    assert code == 2


# ------------------------------------------------------------------------------- models


@pytest.fixture
def model(table: Path, tmp_path: Path) -> Path:
    """A saved classifier with its proof, model.json and proof.cert."""
    path = tmp_path / "model.json"
    files = ["-o", path, "--certificate", tmp_path / "proof.cert"]
    assert (
        run("fit", "--method", "max-margin", table, "-t", "y", "--holdout", 0, "-q", *files)[0] == 0
    )
    return path


def test_verify_compares_a_model(model: Path, table: Path, tmp_path: Path) -> None:
    """The certificate of this model is verified, that of another one refuted."""
    assert run("verify", tmp_path / "proof.cert", "--model", model)[0] == 0
    other, rows = tmp_path / "other.cert", tmp_path / "fewer.csv"
    rows.write_text("\n".join(table.read_text().splitlines()[:81]))
    run("fit", "--method", "max-margin", rows, "-t", "y", "--certificate", other, "-q")
    code, text = run("verify", other, "--model", model)
    assert code == 1
    assert "fingerprint of the data is" in text


def test_show_report_and_predict_claim_until_a_proof_was_checked(
    model: Path, table: Path, tmp_path: Path
) -> None:
    """Claimed optimal, then verified, on every road."""
    proof, page = tmp_path / "proof.cert", tmp_path / "page.html"
    roads = (["show", model], ["predict", model, table], ["report", model, "-o", page])
    for road in roads:
        text = run(*road)[1]
        told = page.read_text() if road[0] == "report" else text
        assert "Claimed optimal, not checked" in told
        assert "Optimal, proven" not in told
        code, text = run(*road, "--certificate", proof)
        assert code == 0
        told = page.read_text() if road[0] == "report" else text
        assert "Verified optimal" in told
    assert "certificate checked: objective" in run("show", model, "--certificate", proof)[1]
    claimed, checked = (
        run_json("show", model, *more) for more in ([], ["--certificate", str(proof)])
    )
    assert (claimed["proved"], claimed["evidence"]["source"]) == (False, "file")
    assert (checked["proved"], checked["evidence"]["source"]) == (True, "certificate")


def test_a_certificate_of_something_else_ends_show(
    model: Path, table: Path, tmp_path: Path
) -> None:
    """One line that says what differs."""
    other = tmp_path / "other.cert"
    run(
        "fit",
        "--method",
        "max-margin",
        table,
        "-t",
        "y",
        "--holdout",
        0,
        "--p",
        0.8,
        "--certificate",
        other,
        "-q",
    )
    code, text = run("show", model, "--certificate", other)
    assert code == 1
    assert "does not prove what" in text
    assert "gamma is 1.386" in text
