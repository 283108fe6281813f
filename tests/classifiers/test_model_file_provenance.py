"""Model files say where they come from, and nothing about it depends on the clock if asked."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from typer.testing import CliRunner

from marginbn import NaiveBayesClassifier, TANClassifier, load_model, save_model
from marginbn.cli import app
from marginbn.data.labelled import LabelledTable
from marginbn.data.table import as_table
from marginbn.exceptions import FormatError, InputError

X, Y = [["red", 1.5], ["red", 2.5], ["blue", 3.5]] * 4, ["a", "a", "b"] * 4


@pytest.fixture(autouse=True)
def _at_a_fixed_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")


def test_files_are_reproducible_and_tell_their_origin(tmp_path: Path) -> None:
    """Equal to the last byte at an equal time; all of it comes back."""
    for name in ("one.json", "two.json"):
        classifier = NaiveBayesClassifier().fit(X, Y)
        save_model(classifier, tmp_path / name, held_out={"accuracy": 0.75, "auc": math.nan})
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()
    about = load_model(tmp_path / "one.json").provenance_
    assert about.created == "2023-11-14T22:13:20Z"
    assert set(about.versions) == {"python", "numpy", "scikit-learn"}
    assert about.data_sha256 == classifier.data_fingerprint_
    assert about.held_out == {"accuracy": 0.75, "auc": None}


def test_a_loaded_model_keeps_its_origin_and_a_new_fit_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Saving again is no making; measures may be added."""
    path = tmp_path / "model.json"
    save_model(TANClassifier().fit(X, Y), path)
    loaded = load_model(path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1800000000")
    save_model(loaded, path)
    again = load_model(path)
    assert again.provenance_ == loaded.provenance_
    measures = {"accuracy": 0.5}
    save_model(loaded, path, held_out=measures)
    assert load_model(path).provenance_ == msgspec.structs.replace(
        loaded.provenance_, held_out=measures
    )
    save_model(loaded.fit(X, Y), path)
    about = load_model(path).provenance_
    assert about.created == "2027-01-15T08:00:00Z"
    assert about.held_out is None


def test_the_fingerprint_sees_every_change() -> None:
    """Values, names, labels, weights; not how missing numbers or zeros are written."""
    rows = [["u", 0.0], ["v", np.nan], [None, 2.0]]
    labels = np.array(["a", "b", "a"])

    def fingerprint(table: Any, y: Any = labels, names: Any = ("c", "n"), **options: Any) -> str:
        return LabelledTable.of(as_table(table, names=names), y, **options).fingerprint()

    first = fingerprint(rows)
    assert first == fingerprint([["u", -0.0], ["v", -np.nan], [None, 2.0]])
    others = [
        fingerprint([["u", 0.0], ["v", np.nan], [None, 3.0]]),
        fingerprint([["u", 0.0], ["u", np.nan], [None, 2.0]]),
        fingerprint(rows, names=["c", "m"]),
        fingerprint(rows, np.array(["a", "b", "b"])),
        fingerprint(rows, weights=np.array([1.0, 2.0, 1.0])),
        fingerprint(rows, target="y"),
    ]
    assert len({first, *others}) == 7


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("created", "yesterday"),
        ("versions", {"python": 3}),
        ("data_sha256", "abc"),
        ("held_out", {"accuracy": "high"}),
        ("strange", 1),
    ],
)
def test_malformed_origins_are_refused(key: str, value: object, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    save_model(NaiveBayesClassifier().fit(X, Y), path)
    data = json.loads(path.read_text())
    path.write_text(json.dumps(data | {"about": data["about"] | {key: value}}))
    with pytest.raises(FormatError, match=r"\$\.about"):
        load_model(path)


def test_what_cannot_be_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    classifier = NaiveBayesClassifier().fit(X, Y)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "noon")
    with pytest.raises(InputError, match="SOURCE_DATE_EPOCH must be whole seconds"):
        save_model(classifier, tmp_path / "m.json")


def test_fit_writes_and_show_prints_it(tmp_path: Path) -> None:
    """Time and what was measured on the rows held out."""
    path = tmp_path / "m.json"
    fit = ["fit", "corral", "--method", "naive-bayes", "-q", "-o", str(path)]
    done = CliRunner().invoke(app, [*fit, "--json"])
    assert done.exit_code == 0, done.output
    shown = CliRunner().invoke(app, ["show", str(path), "--json"])
    about = json.loads(shown.stdout)["about"]
    quality = json.loads(done.stdout)["quality"]
    assert about["held_out"] == {name: quality[name] for name in about["held_out"]}
    assert about["held_out"]["n_rows"] == quality["n_rows"]
    text = CliRunner().invoke(app, ["show", str(path)]).stdout
    assert "created     2023-11-14T22:13:20Z with python" in text
    assert "log loss" in text
