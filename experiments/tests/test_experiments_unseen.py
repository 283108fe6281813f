"""The suite on raw tables: what is read, measured and written."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from experiments import __main__ as command
from experiments import unseen, unseen_page
from experiments.records import Unit, read_records
from sklearn.linear_model import LogisticRegression

from marginbn import NaiveBayesClassifier
from marginbn.data.table import as_table
from marginbn.exceptions import InputError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A table of 120 rows with missing values, an identifier, and a class of three rows."""
    rng = np.random.default_rng(0)
    lines = ["id,size,colour,class"]
    for i in range(120):
        size = rng.normal() + i % 2
        colour = rng.choice(["red", "blue", ""])
        name = "rare" if i < 3 else ("yes" if i % 2 else "no")
        lines.append(f"{i},{'' if i % 7 == 0 else round(size, 3)},{colour},{name}")
    (tmp_path / "t.csv").write_text("\n".join([*lines, "121,0.5,red,"]) + "\n")
    (tmp_path / "t.toml").write_text('target = "class"\ndrop = ["id"]\norigin = "made here"\n')
    return tmp_path


def test_a_table_keeps_its_missing_values(folder: Path) -> None:
    """Rows without a label and rare classes are left out, and the columns that are dropped."""
    data = unseen.load_raw(unseen.find_tables(folder)["t"])
    assert data.features.names == ("size", "colour")
    assert dict(zip(*np.unique(data.labels, return_counts=True), strict=True)) == {
        "no": 58,
        "yes": 59,
    }
    assert data.n_removed == 4
    assert not data.features.complete.all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("drop = []", "must have target"),
        ('target = "class"\ntagret = 1', "must have target"),
        ('target = "colors"', "no column colors"),
        ('target = "class"\ndrop = ["ids"]', "no column ids"),
        ("target = class", "t.toml is no TOML file: Invalid value"),
        ('target = "class"\ndrop = "id"', "must have the form"),
        ("target = 3", "must have the form"),
        ('target = "size"', "classes in the column size, of which 0 have 10 rows"),
        ('target = "class"\ndrop = ["id", "size", "colour"]', "no column left"),
    ],
)
def test_wrong_entries_are_named(folder: Path, text: str, message: str) -> None:
    (folder / "t.toml").write_text(text)
    with pytest.raises(InputError, match=message):
        unseen.load_raw(unseen.find_tables(folder)["t"])
    (folder / "t.csv").unlink()
    with pytest.raises(InputError, match=r"must have|no TOML|there is no t\.csv"):
        unseen.find_tables(folder)


def test_a_table_of_a_stranger(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Semicolons are read, a table without a TOML file is named, and errors are single lines."""
    text = (folder / "t.csv").read_text().replace(",", ";")
    (folder / "t.csv").write_text(text)
    (folder / "other.csv").write_text("a,b\n1,2\n")
    words = ["unseen", str(folder), "--quick", "--folds", "1", "--methods", "nb", "--records"]
    assert command.main([*words, str(folder / "records")]) == 0
    assert "other.csv is left out: no other.toml names its target" in capsys.readouterr().err
    (folder / "t.csv").write_bytes(text.replace("blue", "blün").encode("latin-1"))
    unseen.load_raw.cache_clear()
    for place, folders, message in (
        (folder / "t.toml", folder, "is not UTF-8"),
        (folder / "t.toml", folder / "nowhere", "has no NAME.toml"),
    ):
        words[1] = str(folders)
        assert command.main([*words, str(place)]) == 1
        (*_, line) = capsys.readouterr().err.splitlines()
        assert line.startswith("error: ")
        assert message in line


def test_calibration_error_by_hand() -> None:
    """Two bins: 0.9 claimed and 1/2 right, 0.6 claimed and all right."""
    posterior = np.array([[0.9, 0.1], [0.9, 0.1], [0.4, 0.6], [0.4, 0.6]])
    classes, truth = np.array(["a", "b"]), np.array(["a", "b", "b", "b"])
    found = unseen.calibration_error(posterior, classes, truth)
    assert found == pytest.approx((2 * 0.4 + 2 * 0.4) / 4)


def test_consistency_of_naive_bayes_by_hand() -> None:
    """With one known feature naive Bayes is Bayes' rule; the shares are counts."""
    table = as_table(
        pd.DataFrame({"x": ["a", "a", "b", "b", "b", "b"], "y": ["u", "v", "u", "v", "u", "v"]})
    )
    labels = np.array(["1", "1", "1", "2", "2", "2"])
    classifier = NaiveBayesClassifier(smoothing=1e-9).fit(table, labels)
    found = unseen.consistency(classifier, table, labels)
    assert found["one"]["queries"] == 4
    assert found["one"]["distance"] == pytest.approx(0, abs=1e-6)
    # shares of class 1: a 2 of 2, b 1 of 4, u 2 of 3, v 1 of 3; 1/2 without the query
    assert found["one"]["classes"] == pytest.approx((2 * 0.5 + 4 * 0.25 + 6 / 6) / 12)
    assert found["two"]["queries"] == 4
    # P(1 | b, u): 1/3 * 2/3 to 1 * 1/3, so 0.4 where the rows say 1/2; (b, v): 1/7 to 0
    assert found["two"]["distance"] == pytest.approx((2 * 0.1 + 2 / 7) / 6, abs=1e-6)


def test_parameters_are_counted() -> None:
    """Coefficients and intercepts; free entries of tables."""
    x = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    assert unseen.count_parameters(LogisticRegression().fit(x, [0, 1, 1, 0])) == 3
    nb = NaiveBayesClassifier().fit([["a", "u"], ["b", "v"], ["a", "v"]], ["1", "2", "2"])
    assert unseen.count_parameters(nb) == 1 + 2 + 2
    assert unseen.count_parameters(object()) is None


METHODS = ("bn", "sm-trained", "nb", "svm", "logistic", "forest")


def test_run_resume_and_page(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Every unit leaves one record; the second run does nothing; the page shows every method."""
    records, page = tmp_path / "records", tmp_path / "page.rst"
    words = ["unseen", str(folder), "--quick", "--folds", "1", "--records", str(records)]
    words += ["--methods", *METHODS]
    assert command.main(words) == 0
    assert command.main(words) == 0
    assert "6 units, 6 of them finished before" in capsys.readouterr().err
    found = {record["unit"]["method"]: record for record in read_records(records)}
    assert tuple(found) == METHODS
    for record in found.values():
        assert record["split"] == {**found["nb"]["split"]}
        assert 0 <= record["calibration_error"] <= 1
        assert 0 <= record["auc"] <= 1
        assert record["parameters"] > 0
        assert set(record["hidden"]) == {"0.3"}
    assert found["bn"]["consistency"]["one"]["queries"] > 2
    assert command.main(["unseen-page", "--records", str(records), "--output", str(page)]) == 0
    text = page.read_text()
    labels = [unseen.METHODS[m].label for m in METHODS]
    for part in (*labels, "made here", "Tables below 2000", "1 of 3: "):
        assert part in text


def test_unfinished_tables_are_left_out() -> None:
    """Folds that not all methods of a table have do not count."""
    base = {"accuracy": 1.0}
    records = [
        {**base, "unit": Unit("t", method, 1, fold).told}
        for method, fold in (("bn", 0), ("bn", 1), ("nb", 0))
    ]
    groups = unseen_page.group(json.loads(json.dumps(records)))
    assert {key: len(group) for key, group in groups.items()} == {("t", "bn"): 1, ("t", "nb"): 1}
