"""``marginbn compare``: what differs between two models, and only that."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import log_loss
from typer.testing import CliRunner, Result

from marginbn import NaiveBayesClassifier, TANClassifier, load_model, save_model
from marginbn.cli import app
from marginbn.cli.compare import compare_arcs, compare_tables
from marginbn.datasets import load_dataset


def run(*args: object) -> Result:
    """Run a command in this process."""
    result = CliRunner().invoke(app, [str(a) for a in args])
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Naive Bayes with two smoothings, and a tree."""
    folder = tmp_path_factory.mktemp("models")
    data = load_dataset("corral").train
    classifiers = {
        "nb": NaiveBayesClassifier(),
        "smooth": NaiveBayesClassifier(smoothing=20.0),
        "tan": TANClassifier(),
    }
    for name, classifier in classifiers.items():
        save_model(classifier.fit(data.drop("class"), data.column("class")), folder / name)
    return {name: folder / name for name in classifiers}


def test_a_model_equals_itself(models: dict[str, Path]) -> None:
    """Nothing differs."""
    text = run("compare", models["tan"], models["tan"]).stdout
    lines = text.splitlines()
    assert lines[0] == "Settings: the same"
    assert lines[1].startswith("Arcs: the same ")
    assert lines[2] == "Tables: none that both have differs"


def test_tables_that_differ_most(models: dict[str, Path]) -> None:
    """By the largest difference of a probability; checked against all entries by brute force."""
    found = json.loads(run("compare", models["nb"], models["smooth"], "--json").stdout)
    assert found["settings"] == {"smoothing": [1.0, 20.0]}
    assert found["arcs"]["turned"] == found["arcs"]["only_in_first"] == []
    a, b = (load_model(models[name]).network_ for name in ("nb", "smooth"))
    largest = {
        name: np.abs(np.exp(x) - np.exp(y)).max()
        for name, x, y in zip(a.names, a.log_tables, b.log_tables, strict=True)
    }
    sizes = [abs(entry["first"] - entry["second"]) for entry in found["tables"]]
    assert sizes == sorted(sizes, reverse=True)
    assert {e["variable"]: s for e, s in zip(found["tables"], sizes, strict=True)} == pytest.approx(
        {name: size for name, size in largest.items() if size > 0}
    )
    for entry in found["tables"]:
        evidence = entry["given"]
        states = a.variables[a.variable_index(entry["variable"])].states
        for network, value in ((a, entry["first"]), (b, entry["second"])):
            posterior = network.posterior_array(entry["variable"], evidence)
            assert posterior[states.index(entry["state"])] == pytest.approx(value)
    text = run("compare", models["nb"], models["smooth"], "--most", 2).stdout
    assert text.count("P(") == 2


def test_arcs_of_one_and_of_both(models: dict[str, Path]) -> None:
    """Naive Bayes has the arcs of the class; the tree has more."""
    found = json.loads(run("compare", models["nb"], models["tan"], "--json").stdout)
    assert len(found["arcs"]["both"]) == 6
    assert len(found["arcs"]["only_in_second"]) == 5
    assert found["settings"]["estimator"] == ["NaiveBayesClassifier", "TANClassifier"]
    text = run("compare", models["nb"], models["tan"]).stdout
    assert text.count("only in B: ") == 5
    turned = compare_arcs([("u", "v")], [("v", "u")])
    assert turned["turned"] == [("u", "v")]
    assert turned["both"] == turned["only_in_first"] == turned["only_in_second"] == []


def test_parents_in_another_order_are_the_same_table() -> None:
    """The table is turned before it is compared."""
    from marginbn import BayesianNetwork, Structure, Variable

    y, u, v = Variable("y", ("0", "1")), Variable("u", ("a", "b", "c")), Variable("v", ("d", "e"))
    rng = np.random.default_rng(0)
    py, pu = rng.dirichlet([1, 1]), rng.dirichlet([1, 1, 1], size=2)
    pv = rng.dirichlet([1, 1], size=(2, 3))
    a = BayesianNetwork(Structure(((), (0,), (0, 1))), (y, u, v), tuple(map(np.log, (py, pu, pv))))
    turned = np.log(pv.transpose(1, 0, 2))
    b = BayesianNetwork(
        Structure(((), (0, 2), (0,))), (y, v, u), (np.log(py), np.log(pv), np.log(pu))
    )
    assert compare_tables(a, b) == []
    assert turned.shape == (3, 2, 2)


def test_quality_on_labelled_rows(models: dict[str, Path]) -> None:
    """Measures of scikit-learn, and who is right where."""
    data = load_dataset("corral").train
    X, y = data.drop("class"), data.column("class").values.astype(str)
    found = json.loads(
        run("compare", models["nb"], models["tan"], "--data", "corral", "--json").stdout
    )["quality"]
    assert found["n_rows"] == 128
    right = []
    for name, measured in zip(("nb", "tan"), found["models"], strict=True):
        classifier = load_model(models[name])
        right.append(classifier.predict(X).astype(str) == y)
        assert measured["accuracy"] == pytest.approx(right[-1].mean())
        labels = classifier.classes_.astype(str)
        expected = log_loss(y, classifier.predict_proba(X), labels=labels)
        assert measured["log_loss"] == pytest.approx(expected)
    assert found["only_second_right"] == int((right[1] & ~right[0]).sum())
    assert sum(found[k] for k in found if k.endswith("right")) == 128
    text = run("compare", models["nb"], models["tan"], "--data", "corral").stdout
    assert text.startswith("Quality on 128 rows\n")
