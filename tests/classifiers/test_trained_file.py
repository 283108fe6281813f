"""Model files of trained networks: to the last bit, with missing features too, and strict."""

from __future__ import annotations

import base64
import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trained
from marginbn import (
    BNClassifier,
    FormatError,
    GenerativeBNClassifier,
    MaxMarginBNClassifier,
    describe,
    load_model,
    save_model,
    verify_model,
)
from marginbn.classifiers import BaseBNClassifier
from marginbn.report.summary import is_proved, summarise, verdict


def reloaded(name: str, folder: Path) -> tuple[BaseBNClassifier, BaseBNClassifier]:
    """A fitted classifier, and what comes back from its file."""
    fitted = trained.fitted(name)
    save_model(fitted, folder / "m.json")
    return fitted, load_model(folder / "m.json")


@pytest.mark.parametrize("name", trained.CLASSIFIERS)
def test_the_loaded_classifier_predicts_the_same_bits(name: str, tmp_path: Path) -> None:
    """Rows with missing features too; and every fitted attribute is there again."""
    saved, loaded = reloaded(name, tmp_path)
    X = trained.with_gaps()
    assert (loaded.predict_log_proba(X) == saved.predict_log_proba(X)).all()
    assert (loaded.predict(X) == saved.predict(X)).all()
    assert loaded.network_ == saved.network_
    assert loaded.result_.structure == saved.result_.structure
    assert loaded.coding_ == saved.coding_
    assert loaded.__dict__["training_"] == saved.__dict__["training_"]
    fitted_names = {name for name in vars(saved) if name.endswith("_")}
    told = {name for name in vars(loaded) if name.endswith("_")} - {"provenance_"}  # of the file
    assert told == fitted_names
    assert loaded.explain(X[:1])[0].log_margin == saved.explain(X[:1])[0].log_margin


@pytest.mark.parametrize("name", ["chosen", "average"])
def test_the_choice_survives(name: str, tmp_path: Path) -> None:
    """The structure chosen and what was measured of each candidate."""
    saved, loaded = reloaded(name, tmp_path)
    assert isinstance(saved, BNClassifier)
    assert isinstance(loaded, BNClassifier)
    assert loaded.chosen_ == saved.chosen_
    assert loaded.cv_results_.keys() == saved.cv_results_.keys()
    for key, column in saved.cv_results_.items():
        assert np.array_equal(loaded.cv_results_[key], column)


def test_the_search_may_have_found_fewer_arcs(tmp_path: Path) -> None:
    """Main effects add arcs from the class: the file has both structures."""
    saved, loaded = reloaded("unrestricted", tmp_path)
    assert saved.result_.structure != saved.network_.structure
    assert loaded.structure_ == saved.structure_
    assert loaded.network_.structure == saved.network_.structure


def test_nothing_is_written_twice(tmp_path: Path) -> None:
    """One list of states, one twin for all members, and tables as bytes."""
    saved, loaded = reloaded("average", tmp_path)
    text = (tmp_path / "m.json").read_text(encoding="utf-8")
    data = json.loads(text)
    members = data["trained"]["members"]
    assert len(members) == len(saved.trained_) == 2
    assert members[0]["network"] is None
    assert members[1]["twin"] is None
    assert loaded.trained_[1].answers.twin is loaded.trained_[0].answers.twin
    assert text.count('"states"') == saved.network_.n_variables
    bytes_of_tables = 8 * sum(
        t.network.n_table_cells + t.answers.twin.n_table_cells for t in saved.trained_
    )
    assert len(text) < 4 / 3 * bytes_of_tables + 10_000


def test_one_class_and_few_rows(tmp_path: Path) -> None:
    """Nothing to train, or nothing to validate."""
    X, y = trained.rows()
    for labels, n in ((["low"] * 30, 30), (y, 6)):
        saved = BNClassifier().fit(X[:n], labels[:n])
        save_model(saved, tmp_path / "m.json")
        loaded = load_model(tmp_path / "m.json")
        assert (loaded.predict_proba(X) == saved.predict_proba(X)).all()
        assert getattr(loaded, "cv_results_", None) == getattr(saved, "cv_results_", None)


# ------------------------------------------------------------------------------- hostile files

NAN = base64.b64encode(np.full(2, np.nan, dtype="<f8").tobytes()).decode()
ZERO = base64.b64encode(np.array([0.0, -np.inf], dtype="<f8").tobytes()).decode()

HOSTILE: list[tuple[list[Any], Any, str]] = [
    (["trained"], None, r"\$\.trained: is missing for this BNClassifier"),
    (["params", "average"], False, r"\$\.trained\.members: must be one"),
    (["trained", "structure"], [[]], r"\$\.trained\.structure: must have 5 entries"),
    (["trained", "structure"], [[1], [0], [], [], []], "directed cycle"),
    (["trained", "weights"], [1.0], r"\$\.trained\.weights: weights must be one number"),
    (["trained", "weights"], [2.0, -1.0], r"\$\.trained\.weights: weights must be positive"),
    (["trained", "models", 0, "ridge"], "x", r"\$\.trained\.models\[0\]\.ridge: must be a number"),
    (["trained", "members", 0, "most"], 2.0, r"members\[0\]: most must lie between 0 and 1"),
    (["trained", "members", 0, "half"], 0.0, r"members\[0\]: half must be a positive number"),
    (["trained", "members", 0, "n_draws"], 10**9, r"n_draws: must be 1 to 4096"),
    (["trained", "members", 0, "doubt"], 1.5, r"doubt: must lie between 0 and 1"),
    (["trained", "members", 0, "background"], [1.0], r"background\[0\]: must lie between"),
    (["trained", "members", 0, "background"], [0.5], r"background: must have 2 entries"),
    (["trained", "members", 0, "background"], [0.5, 0.4], r"background: must sum to one"),
    (["trained", "members", 0, "twin"], None, r"members\[0\]\.twin: must be there"),
    (
        ["trained", "members", 0, "twin", "parents", 0],
        [1],
        "the structure of a twin must be a forest",
    ),
    (["trained", "members", 0, "twin", "log_tables", 0], "AA==", "must have 16 entries, got 1"),
    (["trained", "members", 0, "twin", "log_tables", 0], "é", "must be bytes in base64"),
    (["trained", "members", 0, "twin", "log_tables", 0], [0.5], "must be a string"),
    (["trained", "members", 0, "twin", "log_tables", 0], NAN, "NaN or inf"),
    (["trained", "members", 0, "twin", "log_tables", 0], ZERO, "probabilities must be positive"),
    (["trained", "members", 0, "twin", "groups", 1], [0], r"twin\.groups: groups of"),
    (["trained", "members", 1, "network", "log_tables", 0], NAN, r"members\[1\]\.network: log"),
    (["network", "log_tables", 0], NAN, r"\$\.network: log table of"),
    (["validation", "chosen"], "5-tree", r"\$\.validation\.chosen: must be one of"),
    (["validation", "chosen"], "tan", "must have the structure that was chosen"),
    (["validation", "results", "accuracy"], [1.0], "equal length"),
    (["validation", "results", "x"], [1.0], r"the keys must be structure, log_loss"),
    (["validation"], None, r"\$\.validation: must be an object"),
    (["committee"], {"networks": [], "weights": []}, r"\$\.committee: must not be there"),
]


@pytest.fixture(scope="module")
def averaged(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The file of an average of two trained networks."""
    path = tmp_path_factory.mktemp("average") / "m.json"
    save_model(trained.fitted("average"), path)
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return data


@pytest.mark.parametrize(("place", "value", "reason"), HOSTILE)
def test_hostile_files_are_refused(
    averaged: dict[str, Any], place: list[Any], value: Any, reason: str, tmp_path: Path
) -> None:
    """With the file and the place in it."""
    data = copy.deepcopy(averaged)
    target: Any = data
    for key in place[:-1]:
        target = target[key]
    target[place[-1]] = value
    path = tmp_path / "m.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(FormatError, match=reason) as caught:
        load_model(path)
    assert str(caught.value).startswith(str(path))


def test_counted_parameters_have_no_trained_part(averaged: dict[str, Any], tmp_path: Path) -> None:
    """Neither can a file of one kind pass for the other."""
    data = copy.deepcopy(averaged)
    data.update(estimator="NaiveBayesClassifier", params={}, validation=None)
    (tmp_path / "m.json").write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(FormatError, match=r"\$\.trained: must not be there for this Naive"):
        load_model(tmp_path / "m.json")


# ------------------------------------------------------------------------------- certificates

PROVED: list[BaseBNClassifier] = [
    MaxMarginBNClassifier(parameters="conditional", bins="ordinal", max_parents=1),
    GenerativeBNClassifier(
        parameters="conditional", bins="ordinal", class_restricted=False, max_parents=1
    ),
]


def prove(classifier: BaseBNClassifier, folder: Path) -> BaseBNClassifier:
    """Fitted with a certificate, saved and loaded."""
    classifier.set_params(certificate=folder / "proof.cert").fit(*trained.rows())
    save_model(classifier, folder / "m.json")
    return load_model(folder / "m.json")


@pytest.mark.parametrize("classifier", PROVED, ids=lambda c: type(c).__name__)
def test_the_structure_is_verified_and_nothing_else(
    classifier: BaseBNClassifier, tmp_path: Path
) -> None:
    """Claimed when read, verified by its certificate; the words are about the structure."""
    loaded = prove(classifier, tmp_path)
    assert verdict(loaded).startswith("Claimed optimal, not checked")
    assert not is_proved(loaded)
    found = verify_model(loaded, tmp_path / "proof.cert")
    assert found, found.reason
    sentence = verdict(loaded)
    assert sentence.startswith("Verified optimal")
    assert "about the structure, not about the trained parameters" in sentence
    assert summarise(loaded)["proved"]
    assert "trained parameters" in " ".join(describe(loaded).split())


def test_a_forged_model_is_refused(tmp_path: Path) -> None:
    """Another structure, other data, other rows under the twin."""
    loaded = prove(PROVED[0], tmp_path)
    data = json.loads((tmp_path / "m.json").read_text(encoding="utf-8"))
    other = copy.deepcopy(data)
    naive = [[], [0], [0], [0], [0]]
    other["trained"]["structure"] = (
        [[], [], [0], [0], [0]] if [*map(list, loaded.structure_.parents)] == naive else naive
    )
    (tmp_path / "other.json").write_text(json.dumps(other), encoding="utf-8")
    found = verify_model(load_model(tmp_path / "other.json"), tmp_path / "proof.cert")
    assert "the structure is another one" in found.reason

    X, y = trained.rows(50)  # trained on other rows, with the evidence of these
    stolen = MaxMarginBNClassifier(parameters="conditional", bins="ordinal", max_parents=1)
    stolen.fit(X, y)
    stolen.evidence_ = loaded.evidence_
    stolen.result_ = loaded.result_
    found = verify_model(stolen, tmp_path / "proof.cert")
    assert not found
    assert "its data do not give the tables of the model" in found.reason
    assert verdict(stolen).startswith("Claimed")
