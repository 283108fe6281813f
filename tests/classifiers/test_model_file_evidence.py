"""What a model file claims, what it can be caught at, and how a certificate makes it verified."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from marginbn import (
    FormatError,
    GenerativeBNClassifier,
    InputError,
    MaxMarginBNClassifier,
    MaxMarginBNClassifierCV,
    NaiveBayesClassifier,
    TANClassifier,
    describe,
    load_model,
    save_model,
    verify_model,
)
from marginbn.classifiers.base import BaseBNClassifier
from marginbn.proof.certificate import read_certificate
from marginbn.report.summary import is_proved, summarise, verdict


def rows() -> tuple[list[list[str]], list[str]]:
    """Eighty rows, three features, two classes."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 80)
    X = (y[:, None] ^ (rng.random((80, 3)) < (0.2, 0.3, 0.4))).astype(str)
    return X.tolist(), np.array(["no", "yes"])[y].tolist()


SEARCHING = [
    MaxMarginBNClassifier(max_parents=1),
    MaxMarginBNClassifier(margin="binary", gamma=1.0, required_arcs=[("class", "x0")]),
    MaxMarginBNClassifierCV(gammas=[1.0, 2.0], max_parents=(1,), cv=2),
    GenerativeBNClassifier(score="bic"),
    GenerativeBNClassifier(score="bdeu", equivalent_sample_size=3.0, class_restricted=False),
]


def saved(classifier: BaseBNClassifier, folder: Path) -> BaseBNClassifier:
    """Fitted with a certificate and saved, as model.json and proof.cert."""
    classifier.set_params(certificate=folder / "proof.cert").fit(*rows())
    save_model(classifier, folder / "model.json")
    return classifier


@pytest.mark.parametrize("classifier", SEARCHING, ids=lambda c: type(c).__name__)
def test_claimed_until_verified(classifier: BaseBNClassifier, tmp_path: Path) -> None:
    """Proven where it was searched, claimed when read, verified by its certificate."""
    fitted = saved(classifier, tmp_path)
    assert verdict(fitted).startswith("Proved: ")
    loaded = load_model(tmp_path / "model.json")
    assert verdict(loaded).startswith("Claimed by the file, not checked: ")
    assert not is_proved(loaded)
    found = verify_model(loaded, tmp_path / "proof.cert")
    assert found, found.reason
    assert verdict(loaded).startswith("Verified by its certificate: ")
    assert summarise(loaded)["evidence"]["gap"] == found.gap
    save_model(loaded, tmp_path / "again.json")  # a file cannot pass on that somebody checked
    assert verdict(load_model(tmp_path / "again.json")).startswith("Claimed")


def test_the_file_holds_both_fingerprints(tmp_path: Path) -> None:
    """SHA-256 of the data as in the certificate, and of the certificate as a file."""
    saved(MaxMarginBNClassifier(max_parents=1), tmp_path)
    record = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))["evidence"]
    proof = tmp_path / "proof.cert"
    assert record == {
        "total_weight": 80.0,
        "data_sha256": read_certificate(proof).fingerprint,
        "certificate_sha256": hashlib.sha256(proof.read_bytes()).hexdigest(),
    }


def test_a_certificate_of_an_earlier_fit_is_not_this_ones(tmp_path: Path) -> None:
    """One class: nothing is searched and no certificate written, but the old file is there."""
    classifier = saved(MaxMarginBNClassifier(max_parents=1), tmp_path)
    classifier.fit(rows()[0], ["yes"] * 80)
    assert classifier.evidence_.certificate_sha256 is None
    with pytest.raises(InputError, match="nothing to prove"):
        verify_model(classifier, tmp_path / "proof.cert")


@pytest.mark.parametrize(
    ("classifier", "says"),
    [(NaiveBayesClassifier(), "Naive Bayes"), (TANClassifier(), "Claimed by the file")],
)
def test_classifiers_without_a_search(
    classifier: BaseBNClassifier, says: str, tmp_path: Path
) -> None:
    """Naive Bayes claims nothing, TAN does; neither has a certificate."""
    save_model(classifier.fit(*rows()), tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert describe(loaded).startswith(says)
    assert not is_proved(loaded)
    with pytest.raises(InputError, match="nothing to prove"):
        verify_model(loaded, tmp_path / "proof.cert")


def test_a_gap_is_claimed_too(tmp_path: Path) -> None:
    """And the certificate's own gap is what is verified."""
    saved(MaxMarginBNClassifier(max_parents=1), tmp_path)
    edit(tmp_path, lambda data: data["result"].update(status="time_limit", bound=170.0))
    loaded = load_model(tmp_path / "model.json")
    assert verdict(loaded).startswith("Claimed by the file, not checked: within")
    assert verify_model(loaded, tmp_path / "proof.cert")
    assert verdict(loaded).startswith("Verified by its certificate: ")


# --------------------------------------------------------------------------------- edited files


def edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the model file behind everybody's back."""
    path = folder / "model.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    change(data)
    path.write_text(json.dumps(data), encoding="utf-8")


@pytest.mark.parametrize("classifier", SEARCHING, ids=lambda c: type(c).__name__)
def test_an_impossible_objective_is_noticed(classifier: BaseBNClassifier, tmp_path: Path) -> None:
    """gamma times the total weight for margins, 0 for logarithms of probabilities."""
    saved(classifier, tmp_path)
    edit(tmp_path, lambda data: data["result"].update(objective=99999.0, bound=99999.0))
    with pytest.raises(FormatError, match=r"\$\.result\.objective: 99999\.0 is more than"):
        load_model(tmp_path / "model.json")


def more_certain(data: dict[str, Any]) -> None:
    """Other probabilities of the class."""
    p = 0.9
    data["network"]["log_tables"][0] = np.log([p, 1 - p]).tolist()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda data: data["result"].update(objective=100.0, bound=100.0), "it is not 100.0"),
        (lambda data: data["params"].update(gamma=5.0), "gamma is"),
        (lambda data: data["params"].update(max_parents=3), "max parents is 1, not 3"),
        (lambda data: data["params"].update(smoothing=2.0), "smoothing is 1.0, not 2.0"),
        (
            lambda data: data["params"].update(forbidden_arcs=[["x0", "class"]]),
            "forbidden arcs: x0 -> class missing",
        ),
        (lambda data: data["evidence"].update(data_sha256="0" * 64), "fingerprint of the data"),
        (more_certain, "the counted table of variable 0 is not that of the rows"),
    ],
)
def test_an_edited_model_is_not_verified(
    change: Callable[[dict[str, Any]], object], reason: str, tmp_path: Path
) -> None:
    """The certificate proves something, but not what this file says."""
    saved(MaxMarginBNClassifier(max_parents=1), tmp_path)
    edit(tmp_path, change)
    loaded = load_model(tmp_path / "model.json")
    found = verify_model(loaded, tmp_path / "proof.cert")
    assert not found
    assert reason in found.reason
    assert verdict(loaded).startswith("Claimed")


def test_another_structure_is_told(tmp_path: Path) -> None:
    saved(MaxMarginBNClassifier(max_parents=1), tmp_path)
    worse = MaxMarginBNClassifier(max_parents=1, forbidden_arcs=[("class", "x0")]).fit(*rows())
    worse.set_params(forbidden_arcs=None)
    found = verify_model(worse, tmp_path / "proof.cert")
    assert "the structure is another one" in found.reason


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda data: data.pop("evidence"), "missing required field `evidence`"),
        (lambda data: data["evidence"].update(total_weight=-1.0), "Expected `float` > 0"),
        (lambda data: data["evidence"].update(data_sha256="x"), "sha256: Expected `str` matching"),
    ],
)
def test_broken_evidence_is_refused(
    change: Callable[[dict[str, Any]], object], reason: str, tmp_path: Path
) -> None:
    saved(MaxMarginBNClassifier(max_parents=1), tmp_path)
    edit(tmp_path, change)
    with pytest.raises(FormatError, match=reason):
        load_model(tmp_path / "model.json")
