"""Parquet tables that are read in pieces, on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from marginbn.cli import app
from marginbn.data import labelled

arrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two files of a table; whatever has more than 100 rows is long."""
    monkeypatch.setattr(labelled, "SAMPLE_ROWS", 100)
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 400)
    columns = {
        "a": np.array(["x", "y"])[(kind + (rng.random(400) < 0.2)) % 2],
        "b": rng.normal(size=400) + kind,
        "useless": np.arange(400.0),
        "kind": np.array(["no", "yes"])[kind],
    }
    table = arrow.table(columns)
    parts = tmp_path / "parts"
    parts.mkdir()
    parquet.write_table(table.slice(0, 200), parts / "a.parquet")
    parquet.write_table(table.slice(200), parts / "b.parquet")
    return tmp_path


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    return result.exit_code, result.output if result.exit_code else result.stdout


def test_fit_reads_a_folder_in_pieces(folder: Path) -> None:
    model = folder / "model.json"
    call = ["fit", folder / "parts", "--target", "kind", "--drop", "useless", "--method", "tan"]
    code, text = run(*call, "-o", model, "--json", "--quiet")
    assert code == 0, text
    told = json.loads(text)
    assert told["data"] is None
    assert told["quality"] is None
    saved = json.loads(model.read_text())
    assert "useless" not in json.dumps(saved["network"])
    code, text = run(*call, "--holdout", "0.5")
    assert code != 0
    assert "report --test" in " ".join(text.split())
    code, text = run("fit", folder / "parts", "--method", "tan")
    assert code != 0
    assert "--target" in text


def test_learn_reads_a_folder_in_pieces(folder: Path) -> None:
    code, text = run("learn", folder / "parts", "--drop", "useless", "--json", "--quiet")
    assert code == 0, text
    assert "useless" not in text


def test_columns_that_are_not_there(folder: Path) -> None:
    code, text = run("learn", folder / "parts", "--drop", "absent")
    assert code != 0
    assert "no column 'absent'" in text
