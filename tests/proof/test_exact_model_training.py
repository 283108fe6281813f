"""Loss and certified gap of trained tables against code that needs the standard library only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks.end_to_end import write_table
from typer.testing import CliRunner

from marginbn.cli import app
from marginbn.proof.exact_model import DifferentError, check_training, encode_table, read_table

Record = dict[str, Any]


@pytest.fixture(scope="module", params=[3, 4, 5])
def fitted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two and three classes, numbers, categories, missing values, merged categories."""
    folder = tmp_path_factory.mktemp("trained")
    write_table(folder / "t.csv", request.param)
    arguments = ["fit", str(folder / "t.csv"), "-t", "label", "--holdout", "0", "-q"]
    found = CliRunner().invoke(app, [*arguments, "-o", str(folder / "m.json")])
    assert found.exit_code == 0, found.output
    return folder


def check(folder: Path, model: Record) -> float:
    """The certified gap, computed again."""
    return check_training(model, encode_table(model, *read_table(str(folder / "t.csv"))))


def test_the_claims_of_the_model_are_true(fitted: Path) -> None:
    """The penalised loss to nine digits, and a gap of at most 1e-6."""
    model = json.loads((fitted / "m.json").read_text())
    gap = check(fitted, model)
    assert gap <= 1e-6
    assert gap == pytest.approx(model["class_model"]["gap"], rel=1e-2, abs=1e-9)


@pytest.mark.parametrize("key", ["parameters", "log_shares", "weights", "positions", "objective"])
def test_what_was_changed_is_found(key: str, fitted: Path) -> None:
    """Parameters, class shares, cells and the claim itself."""
    model = json.loads((fitted / "m.json").read_text())
    trained = model["class_model"]
    if key == "objective":
        trained[key] *= 1.001
    elif key == "parameters":
        row = trained[key][0]
        place = max(range(len(row)), key=lambda k: abs(row[k]))
        row[place] *= 1.01
    elif key == "log_shares":
        trained[key][0] += 0.01
    else:
        next(cells for cells in trained["cells"] if cells[key])[key][0] += 0.01
    with pytest.raises(DifferentError):
        check(fitted, model)
