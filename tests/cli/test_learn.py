"""`marginbn learn`: a network without a class, its files and its words."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from commands import run
from marginbn import BayesianNetworkLearner, load_model, load_network
from marginbn.cli.running import DONE, OPEN_GAP
from marginbn.datasets import load_dataset


def test_everything_is_written_and_the_same(tmp_path: Path) -> None:
    model, network, page = tmp_path / "m.json", tmp_path / "n.bif", tmp_path / "p.html"
    result = run("learn", "corral", "-o", model)
    assert result.exit_code == 0, result.output
    assert f"Saved in {model}." in result.stderr
    assert f"Wrote {network}." in run("export", model, "-o", network).stderr
    assert run("report", model, "-o", page).exit_code == 0
    assert "No allowed network has a better BIC score: proved." in result.output
    expected = BayesianNetworkLearner().fit(load_dataset("corral").train)
    loaded = load_model(model, BayesianNetworkLearner)
    assert loaded.objective_ == expected.objective_
    names = expected.network_.names
    arcs = {(names[p], names[c]) for p, c in expected.structure_.arcs}
    exported = load_network(network)
    assert {(exported.names[p], exported.names[c]) for p, c in exported.structure.arcs} == arcs
    text = page.read_text()
    assert "<svg" in text
    assert all(name in text for name in names)
    assert "http" not in text.replace("http://www.w3.org", "")


def test_json_says_all(tmp_path: Path) -> None:
    options = ("--score", "bdeu", "--ess", 2, "--max-parents", 2, "--json")
    found = json.loads(run("learn", "corral", *options, "--quiet").stdout)
    assert found["optimal"]
    assert found["bound"] >= found["objective"]
    assert max(map(len, found["parents"].values())) <= 2


def test_arcs_and_tiers() -> None:
    options = ("--require", "Irrelevant->class", "--tier", "class", "--tier", "A0,A1", "--json")
    found = json.loads(run("learn", "corral", *options, "--quiet").stdout)
    assert "Irrelevant" in found["parents"]["class"]
    assert not {"A0", "A1"} & {*found["parents"]["class"]}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--score", "residual"), "residual"),
        (("--score", "loglik"), "--max-parents must be given for --score loglik"),
        (("--missing", "guess"), "missing"),
        (("-o", "nowhere/n.json"), "nowhere"),
        (("--require", "class"), "--require"),
    ],
)
def test_what_cannot_be_is_named(options: tuple[str, ...], message: str) -> None:
    result = run("learn", "corral", *options)
    assert result.exit_code != 0
    assert message in result.output


def test_an_open_gap_has_its_exit_code() -> None:
    result = run("learn", "corral", "--time-limit", "1e-9", "--quiet")
    assert result.exit_code == OPEN_GAP
    assert "time limit" in result.output


def test_the_gap_asked_for_is_enough() -> None:
    """As in fit: nothing is left open that anybody wanted."""
    result = run("learn", "corral", "--max-parents", "2", "--gap", "0.5", "--solver", "branch_cut")
    assert result.exit_code == DONE
    assert "proven" not in result.output


def test_every_command_reads_what_learn_saves(tmp_path: Path) -> None:
    """show, ask, report, export and verify; commands that predict say what to use instead."""
    model, proof, page = tmp_path / "m.json", tmp_path / "m.cert", tmp_path / "p.html"
    assert run("learn", "corral", "-o", model, "--certificate", proof, "-q").exit_code == DONE
    names = load_model(model, BayesianNetworkLearner).network_.names
    shown = run("show", model)
    assert "claimed by the file, not checked" in shown.output
    assert "class <- A0, B0, B1" in shown.output
    assert "score: verified." in run("show", model, "--certificate", proof).output
    found = json.loads(run("show", model, "--json", "--tables").stdout)
    assert found["estimator"] == "BayesianNetworkLearner"
    assert len(found["network"]["variables"]) == len(names)
    assert run("verify", proof, "--model", model).exit_code == DONE
    assert run("report", model, "-o", page, "--title", "corral & co").exit_code == DONE
    assert "corral &amp; co" in page.read_text()
    assert "digraph" in run("export", model, "--to", "dot").output
    for command in (("predict", model, "corral"), ("explain", model, "corral")):
        result = run(*command)
        assert result.exit_code == 1
        assert "network without a class; use show, ask or export" in result.output
    assert run("export", model, "--to", "sql").exit_code == 1
    assert run("report", model, "-o", page, "--data", "corral").exit_code == 2


def test_questions_to_a_network(tmp_path: Path) -> None:
    """Of a saved learner and of the .bif that it was written to; by default for all variables."""
    model, network = tmp_path / "m.json", tmp_path / "n.bif"
    run("learn", "corral", "-o", model, "-q")
    run("export", model, "-o", network)
    learner = load_model(model, BayesianNetworkLearner)
    expected = learner.network_.marginals({"A0": "1"})
    for path in (model, network):
        found = json.loads(run("ask", path, "A0=1", "--json").stdout)
        assert found["evidence"] == {"A0": "1"}
        assert found["posterior"].keys() == {*learner.network_.names} - {"A0"}
        for name, posterior in found["posterior"].items():
            assert list(posterior.values()) == pytest.approx(expected[name].tolist())
    assert run("ask", network, "A0=7").exit_code == 1
    text = run("show", network).output
    assert f"A network of {learner.network_.n_variables} variables" in text
    assert json.loads(run("show", network, "--json").stdout)["parents"]


@pytest.mark.parametrize("limit", [(), ("--max-parents", 4)])
def test_the_proof_of_a_network_is_that_of_its_model(tmp_path: Path, limit: tuple[object]) -> None:
    """Without a limit too, where scoring leaves out large parent sets that cannot win."""
    model, proof, table = tmp_path / "m.json", tmp_path / "m.mbc", tmp_path / "t.csv"
    columns = np.random.default_rng(0).integers(2, size=(20, 300))
    columns[1:] = np.where(columns[1:] | columns[:-1] & 1, columns[:-1], columns[1:])
    lines = [",".join(map(str, row)) for row in [[f"v{i}" for i in range(20)], *columns.T]]
    table.write_text("\n".join(lines) + "\n")
    run("learn", table, *limit, "-o", model, "--certificate", proof)
    result = run("verify", proof, "--model", model)
    assert result.exit_code == DONE, result.output
    assert result.stdout.startswith("VERIFIED")


@pytest.mark.parametrize("command", [["fit", "--method", "max-margin", "-t", "y"], ["learn"]])
def test_the_check_that_is_named_works(command: list[str], tmp_path: Path) -> None:
    table, model, proof = tmp_path / "my table.csv", tmp_path / "m.json", tmp_path / "m.mbc"
    rows = [f"{i % 2},{i % 3},{'ab'[i % 2]}" for i in range(60)]
    table.write_text("\n".join(["u,v,y", *rows]) + "\n")
    told = run(*command, table, "-o", model, "--certificate", proof).stderr
    words = shlex.split(told.split("check it with `")[1].split("`")[0])
    assert words == ["marginbn", "verify", *map(str, (proof, "--model", model, "--data", table))]
    assert run(*words[1:]).exit_code == DONE


def test_the_page_of_a_network_follows_the_scheme_and_wraps(tmp_path: Path) -> None:
    """Dark where the reader has it; on a phone the words about arcs are not cut."""
    model, page = tmp_path / "n.json", tmp_path / "n.html"
    assert run("learn", "corral", "-o", model).exit_code == 0
    assert run("report", model, "-o", page).exit_code == 0
    text = page.read_text(encoding="utf-8")
    assert ":root{color-scheme:light dark;" in text
    assert ".arcs{white-space:pre-wrap}" in text
    assert '<pre class="arcs">' in text
