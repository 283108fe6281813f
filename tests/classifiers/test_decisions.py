"""Decisions by cost: the definition, the threshold, and every place that decides."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marginbn import InputError, NaiveBayesClassifier, TANClassifier, export_model
from marginbn.classifiers.decisions import CostMatrix, costs_of
from marginbn.classifiers.evaluation import cross_validate
from marginbn.classifiers.measures import Quality
from marginbn.classifiers.model_file import load_model, save_model
from marginbn.data.table import as_table
from marginbn.exceptions import FormatError


def rows(n: int = 200, seed: int = 3) -> tuple[Any, Any]:
    """Three classes, the last one rare; two noisy codes and a number."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=[0.5, 0.4, 0.1])
    X = np.column_stack([(y + rng.integers(0, 2, n)) % 3, rng.integers(0, 4, n), y // 2 * 2])
    return (X + (rng.random(X.shape) < 0.3)).astype(str), y


def test_expected_costs_by_hand() -> None:
    """Row 1: deciding a costs 0.2 * 10 = 2, deciding b 0.8."""
    costs = CostMatrix.of(["a", "b"], [[0, 1], [10, 0]])
    np.testing.assert_allclose(costs.expected([[0.8, 0.2], [0.95, 0.05]]), [[2, 0.8], [0.5, 0.95]])
    assert costs.decide([[0.8, 0.2], [0.95, 0.05]]).tolist() == [1, 0]
    assert costs.threshold == pytest.approx(1 / 11)
    assert costs.mean(["a", "b", "b"], ["b", "a", "b"]) == pytest.approx(11 / 3)


@given(
    st.lists(st.floats(0.001, 1.0), min_size=4, max_size=4),
    st.floats(0.001, 0.999).filter(lambda p: p != 0.5),
)
def test_the_threshold_decides(costs: list[float], p: float) -> None:
    """With two classes formula (2) says the same as the comparison of expected costs."""
    right, wrong = costs[:2], costs[2:]
    matrix = np.array([[right[0] - 1, wrong[0]], [wrong[1], right[1] - 1]])
    found = CostMatrix.of([0, 1], matrix)
    assert found.threshold is not None
    if abs(p - found.threshold) > 1e-9:
        assert found.decide([[1 - p, p]])[0] == int(p > found.threshold)


@given(st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3).filter(lambda p: sum(p) > 0.1))
def test_equal_costs_decide_for_the_most_probable(p: list[float]) -> None:
    """Also where two classes are equally probable: the first of them."""
    share = np.array([p]) / sum(p)
    assert CostMatrix.of("abc", {}).decide(share)[0] == share.argmax()


def test_names_of_classes() -> None:
    """Labels are compared as text; what is not named costs one; other classes are refused."""
    costs = CostMatrix.of([0, 1, 2], {2: {"0": 7.5}})
    assert costs.costs.tolist() == [[0, 1, 1], [1, 0, 1], [7.5, 1, 0]]
    assert costs.for_classes([2, 0, 9]).costs.tolist() == [[0, 7.5, 1], [1, 0, 1], [1, 1, 0]]
    assert (
        "1 is decided where its probability is above 25.00 %"
        in CostMatrix.of([0, 1], {1: {0: 3}}).sentence()
    )
    assert (
        "0 is decided where its probability is above 25.00 %"
        in CostMatrix.of([0, 1], {0: {1: 3}}).sentence()
    )
    with pytest.raises(InputError, match="cost names 'x', which is no class"):
        CostMatrix.of([0, 1], {"x": {0: 1}})


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        ("high", "cost must be None, a mapping like"),
        ([[0, 1, 2], [1, 0, 2]], "cost must be None, a mapping like"),
        ([[0, float("nan")], [1, 0]], "cost must be None, a mapping like"),
        ({0: 5}, r"cost\[0\] must map decisions to costs"),
        ({0: {1: "much"}}, r"cost\[0\]\[1\] must be a finite number"),
        ([[0, 1], [5, 0]], "a row and a column for each of the 3 classes"),
        ({0: {7: 5}}, "cost names 7, which is no class"),
    ],
)
def test_what_is_no_cost_is_refused_in_fit(cost: Any, message: str) -> None:
    """The message names the argument and what it must be."""
    with pytest.raises(InputError, match=message):
        NaiveBayesClassifier(cost=cost).fit(*rows())


def test_costs_move_decisions_and_nothing_else() -> None:
    """The rare class is said more often; probabilities are the same; no new fit is needed."""
    X, y = rows()
    plain = NaiveBayesClassifier().fit(X, y)
    careful = NaiveBayesClassifier(cost={2: {0: 20, 1: 20}}).fit(X, y)
    np.testing.assert_array_equal(careful.predict_proba(X), plain.predict_proba(X))
    assert (careful.predict(X) == 2).sum() > (plain.predict(X) == 2).sum()
    expected = plain.predict_proba(X) @ np.array([[0, 1, 1], [1, 0, 1], [20, 20, 0]])
    np.testing.assert_array_equal(careful.predict(X), plain.classes_[expected.argmin(axis=1)])
    plain.set_params(cost={2: {0: 20, 1: 20}})
    np.testing.assert_array_equal(plain.predict(X), careful.predict(X))


def test_the_model_file_keeps_costs(tmp_path: Path) -> None:
    """Whatever the type of the labels; a file with costs of other classes is refused."""
    X, y = rows()
    labels = y.astype(float)
    clf = TANClassifier(cost={2.0: {0.0: 9}}).fit(X, labels)
    save_model(clf, tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(loaded.predict(X), clf.predict(X))
    assert costs_of(loaded).to_list() == [[0, 1, 1], [1, 0, 1], [9, 1, 0]]
    record = json.loads((tmp_path / "model.json").read_text())
    record["params"]["cost"] = [[0, 1], [1, 0]]
    (tmp_path / "bad.json").write_text(json.dumps(record))
    with pytest.raises(FormatError, match=r"\$\.params\.cost: .* each of the 3 classes"):
        load_model(tmp_path / "bad.json")


@pytest.mark.parametrize("way", ["sql", "python", "onnx"])
def test_exports_decide_by_cost(way: str, tmp_path: Path) -> None:
    """As predict does, on every row."""
    X, y = rows(60)
    clf = TANClassifier(cost={2: {0: 20, 1: 20}, 1: {1: 0.2}}).fit(X, y)
    path = tmp_path / {"sql": "m.sql", "python": "m.py", "onnx": "m.onnx"}[way]
    export_model(clf, path, **({"keep": ["n"]} if way == "sql" else {}))
    names = ["x0", "x1", "x2"]
    if way == "sql":
        connection = sqlite3.connect(":memory:")
        connection.execute("CREATE TABLE data (n, x0, x1, x2)")
        connection.executemany(
            "INSERT INTO data VALUES (?, ?, ?, ?)", [(i, *map(str, row)) for i, row in enumerate(X)]
        )
        found = [r[1] for r in sorted(connection.execute(path.read_text()).fetchall())]
    elif way == "python":
        functions: dict[str, Any] = {}
        exec(path.read_text(), functions)
        found = [functions["predict"](dict(zip(names, row, strict=True))) for row in X]
    else:
        runtime = pytest.importorskip("onnxruntime")
        session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        inputs = {i.name: X[:, [names.index(i.name)]].astype(object) for i in session.get_inputs()}
        found = [int(label) for label in session.run(["label"], inputs)[0]]
    assert found == clf.predict(X).tolist()
    assert found != clf.set_params(cost=None).predict(X).tolist()


def test_quality_counts_costs() -> None:
    """By hand: two of three decisions, one of them for the rare class, wrong one costs 5."""
    costs = CostMatrix.of(["a", "b"], {"b": {"a": 5}})
    shares = [[0.9, 0.1], [0.7, 0.3], [0.95, 0.05]]
    quality = Quality.measure(["a", "b"], ["a", "b", "b"], shares, costs)
    assert quality.confusion == ((1, 0), (1, 1))
    assert quality.mean_cost == pytest.approx(5 / 3)
    assert quality.numbers()["mean_cost"] == pytest.approx(5 / 3)
    assert ["mean cost", "1.6667"] in quality.summary()
    plain = Quality.measure(["a", "b"], ["a", "b", "b"], shares)
    assert plain.calibration_error == quality.calibration_error  # of probabilities, not decisions
    assert "mean_cost" not in plain.numbers()
    strange = Quality.measure(["a", "b"], ["a", "c", "b"], shares, costs)  # c costs 1, is not said
    assert strange.mean_cost == pytest.approx((0 + 1 + 5) / 3)


@pytest.mark.filterwarnings("ignore::marginbn.DataWarning")  # of unseen categories
def test_folds_decide_by_cost() -> None:
    """Even those that have never seen one of the classes."""
    X, y = rows(60)
    y[y == 2] = 1
    y[7] = 2
    costs = CostMatrix.of([0, 1, 2], {1: {0: 6}})
    scores = cross_validate(NaiveBayesClassifier, as_table(X), y, 5, costs=costs)
    plain = cross_validate(NaiveBayesClassifier, as_table(X), y, 5)
    assert scores.quality is not None
    assert plain.quality is not None
    assert scores.quality.mean_cost is not None
    cost_of_plain = (np.array(plain.quality.confusion) * costs.costs).sum() / len(y)
    assert scores.quality.mean_cost < cost_of_plain
    assert scores.quality.classes[1].recall > plain.quality.classes[1].recall
