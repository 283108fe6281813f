"""SQL and ONNX answer as predict_proba does, on rows of many kinds."""

from __future__ import annotations

import math
import sqlite3
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from marginbn import BayesianNetwork, InputError, NaiveBayesClassifier, TANClassifier, export_model
from marginbn.classifiers.base import BaseBNClassifier
from marginbn.classifiers.deployment import DEPLOYMENTS, deployable
from marginbn.data import preparation
from marginbn.datasets import load_dataset
from marginbn.exceptions import DataWarning
from marginbn.export.sql import to_sql

pandas = pytest.importorskip("pandas")

TOLERANCE = 1e-6


def shop(n: int, seed: int = 0) -> tuple[Any, Any]:
    """Numbers, categories with quotes, codes, booleans; every column misses some values."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    cities = np.array(["O'Hare", 'the "Bell"', "a;b--c", "Zürich", "x,y"], dtype=object)
    frame = pandas.DataFrame(
        {
            'price "net"': 3.0 * y + rng.normal(0, 2, n),
            "it's old": rng.exponential(5, n) * (1 + y),
            "city": cities[(y + rng.integers(0, 4, n)) % 5],
            "code": (y + rng.integers(0, 3, n)).astype(float),
            "constant": ["same"] * n,
        }
    )
    frame = frame.mask(rng.random(frame.shape) < 0.1)
    frame["constant"] = "same"
    frame["member"] = np.where(rng.random(n) < 0.3 + 0.4 * y, True, False)
    return frame, pandas.Series(np.array(["no", "it's a yes"])[y], name="buys")


def bundled(name: str) -> tuple[Any, Any]:
    rows = load_dataset(name).train
    frame = pandas.DataFrame({c.name: c.values for c in rows.columns})
    return frame.drop(columns="class"), frame["class"]


def many_rows(frame: Any, n: int) -> Any:
    """Rows put together from the columns' own values, numbers moved a little."""
    rng = np.random.default_rng(1)
    columns = {}
    for name in frame.columns:
        values = frame[name].to_numpy()[rng.integers(len(frame), size=n)]
        if values.dtype.kind == "f" and len(frame[name].unique()) > 12:
            values = values + rng.normal(0, 0.1 * np.nanstd(values), n)
        columns[name] = values
    return pandas.DataFrame(columns)


def _fit(clf: BaseBNClassifier, data: tuple[Any, Any]) -> tuple[BaseBNClassifier, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # of rare categories
        return clf.fit(*data), data[0]


def _fit_with_few_states(
    clf: BaseBNClassifier, data: tuple[Any, Any]
) -> tuple[BaseBNClassifier, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(preparation, "MAX_STATES", 2)
        return _fit(clf, data)


MAKERS: dict[str, Callable[[], tuple[BaseBNClassifier, Any]]] = {
    "iris, naive": lambda: _fit(NaiveBayesClassifier(), bundled("iris")),
    "wine, tree": lambda: _fit(TANClassifier(), bundled("wine")),
    "digits, naive": lambda: _fit(NaiveBayesClassifier(), bundled("led-7")),
    "iris, trained": lambda: _fit(TANClassifier(parameters="trained"), bundled("iris")),
    "shop, trained": lambda: _fit(TANClassifier(parameters="trained", missing="state"), shop(400)),
    "shop, a state for missing": lambda: _fit(TANClassifier(missing="state"), shop(400)),
    "shop, rare categories merged": lambda: _fit_with_few_states(
        NaiveBayesClassifier(missing="state"), shop(400)
    ),
}


@cache
def made(name: str) -> tuple[BaseBNClassifier, Any]:
    return MAKERS[name]()


def by_sqlite(clf: BaseBNClassifier, rows: Any, folder: Path) -> np.ndarray:
    connection = sqlite3.connect(":memory:")
    rows = rows.assign(row_number=range(len(rows)))
    names = ", ".join('"' + name.replace('"', '""') + '"' for name in rows.columns)
    connection.execute(f"CREATE TABLE data ({names})")
    values = [[_plain(v) for v in row] for row in rows.itertuples(index=False, name=None)]
    marks = ", ".join("?" * len(rows.columns))
    connection.executemany(f"INSERT INTO data VALUES ({marks})", values)
    export_model(clf, folder / "model.sql", keep=["row_number"])
    found = connection.execute((folder / "model.sql").read_text(encoding="utf-8")).fetchall()
    connection.close()
    found.sort()
    _check_predictions(clf, [row[1] for row in found], [row[2:] for row in found])
    return np.array([row[2:] for row in found], dtype=float)


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return None if value is None or value != value else value


def by_duckdb(clf: BaseBNClassifier, rows: Any, folder: Path) -> np.ndarray:
    duckdb = pytest.importorskip("duckdb")
    rows = rows.assign(row_number=range(len(rows)))
    connection = duckdb.connect()
    connection.register("data", rows)
    export_model(clf, folder / "model.sql", keep=["row_number"])
    found = connection.execute((folder / "model.sql").read_text(encoding="utf-8")).fetchall()
    connection.close()
    found.sort()
    return np.array([row[2:] for row in found], dtype=float)


def by_onnx(clf: BaseBNClassifier, rows: Any, folder: Path) -> np.ndarray:
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    export_model(clf, folder / "model.onnx")
    session = runtime.InferenceSession(
        str(folder / "model.onnx"), providers=["CPUExecutionProvider"]
    )
    inputs = {}
    for item in session.get_inputs():
        column = rows[item.name]
        if item.type == "tensor(double)":
            values = column.to_numpy(dtype=np.float64)
        else:
            values = np.array([_text(v) for v in column], dtype=object)
        inputs[item.name] = values[:, np.newaxis]
    label, probabilities = session.run(["label", "probabilities"], inputs)
    _check_predictions(clf, label.tolist(), probabilities.tolist())
    return probabilities


def _text(value: Any) -> str:
    value = _plain(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "" if value is None else str(value)


def _check_predictions(clf: BaseBNClassifier, labels: list, rows: list) -> None:
    for label, row in zip(labels, rows, strict=True):
        if row[0] is not None and not math.isnan(row[0]):
            best = clf.classes_[int(np.argmax(row))]
            assert label == best or str(label) == str(best)  # SQLite has 1 for TRUE


WAYS = {"sqlite": by_sqlite, "duckdb": by_duckdb, "onnx": by_onnx}


def _cases() -> Iterator[Any]:
    for name in MAKERS:
        for way in WAYS:
            yield pytest.param(name, way, 300, id=f"{name}, {way}")
            yield pytest.param(
                name, way, 10_000, id=f"{name}, {way}, 10000 rows", marks=pytest.mark.slow
            )


@pytest.mark.parametrize(("name", "way", "n_rows"), list(_cases()))
def test_answers_equal_predict_proba(name: str, way: str, n_rows: int, tmp_path: Path) -> None:
    """To 1e-6 on every row, none of which lacks an answer."""
    clf, frame = made(name)
    rows = many_rows(frame, n_rows)
    found = WAYS[way](clf, rows, tmp_path)
    np.testing.assert_allclose(found, clf.predict_proba(rows), atol=TOLERANCE)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [NaiveBayesClassifier, TANClassifier])
@pytest.mark.filterwarnings("ignore::marginbn.DataWarning")  # of unseen categories
def test_missing_and_unseen_values(kind: type, way: str, tmp_path: Path) -> None:
    """Summed out exactly where a leaf is missing; no answer where a parent is."""
    frame, labels = shop(300)
    with pytest.warns(UserWarning, match="rows"):
        clf = kind(missing="drop").fit(frame, labels)
    rows, _ = shop(200, seed=3)
    rows.loc[rows.index % 7 == 0, "city"] = "nowhere"
    found = WAYS[way](clf, rows, tmp_path)
    answered = ~np.isnan(found[:, 0])
    np.testing.assert_allclose(found[answered], clf.predict_proba(rows[answered]), atol=TOLERANCE)
    parents = {p for own in clf.structure_.parents for p in own} - {0}
    columns = [frame.columns[p - 1] for p in parents if clf.network_.arities[p] > 1]
    lacking = rows[columns].isna().any(axis=1).to_numpy(copy=True)
    if "city" in columns:
        lacking |= (rows["city"] == "nowhere").to_numpy()
    np.testing.assert_array_equal(answered, ~lacking)
    assert answered.any()
    assert answered.all() == (kind is NaiveBayesClassifier)


@pytest.mark.parametrize("name", MAKERS)
def test_the_definition_by_numpy(name: str) -> None:
    """Sums of table entries are the posterior; only differences to the first class are kept."""
    clf, frame = made(name)
    model = deployable(clf)
    codes = clf.encode(frame)
    for i, feature in enumerate(model.features):
        codes[codes[:, i] < 0, i] = feature.n_codes - 1
    scores = np.zeros((len(codes), model.n_classes))
    scores[:, 1:] = model.bias
    for term in model.terms:
        pairs = zip(term.groups, term.members, strict=True)
        scores[:, 1:] += term.table[tuple(groups[codes[:, i]] for groups, i in pairs)]
    found = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, clf.predict_proba(frame), atol=1e-12)
    for term in model.terms:
        assert term.table.shape[-1] == len(clf.classes_) - 1


@pytest.mark.filterwarnings("ignore:.*(gives the class away|determine each other)")
def test_huge_scores_stay_in_range(tmp_path: Path) -> None:
    """120 copies of a telling column: EXP of their sum would be no double."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=300)
    frame = pandas.DataFrame({f"x{i}": y.astype(str) for i in range(120)})
    clf = NaiveBayesClassifier(smoothing=0.01).fit(frame, y)
    rows = frame[:5]
    for way in ("sqlite", "onnx"):
        found = WAYS[way](clf, rows, tmp_path)
        np.testing.assert_allclose(found, clf.predict_proba(rows), atol=TOLERANCE)


def test_what_cannot_be_exported_says_why(tmp_path: Path) -> None:
    zeros = NaiveBayesClassifier().fit([["a"], ["b"]], ["x", "y"])
    with np.errstate(divide="ignore"):
        tables = zeros.network_.log_tables[0], np.log([[1.0, 0.0], [0.0, 1.0]])
    zeros.network_ = BayesianNetwork(zeros.structure_, zeros.network_.variables, tables)
    with pytest.raises(InputError, match="smoothing > 0"):
        export_model(zeros, tmp_path / "m.sql")
    clf = made("iris, naive")[0]
    with pytest.raises(InputError, match=r"must end in one of \.sql, \.onnx"):
        export_model(clf, tmp_path / "m.txt")
    with pytest.raises(InputError, match="format must be one of sql, onnx, got"):
        export_model(clf, tmp_path / "m.txt", "excel")
    with pytest.raises(InputError, match="keep must not name 'prediction'"):
        export_model(clf, tmp_path / "m.sql", keep=["Prediction"])
    assert list(DEPLOYMENTS) == ["sql", "onnx"]


def test_one_class_and_no_influence(tmp_path: Path) -> None:
    clf = NaiveBayesClassifier().fit([["a"], ["b"]], ["x", "x"])
    rows = pandas.DataFrame({"x0": ["a", "b", None]})
    np.testing.assert_allclose(by_sqlite(clf, rows, tmp_path), np.ones((3, 1)))
    with pytest.raises(InputError, match="no feature has any influence"):
        export_model(clf, tmp_path / "m.onnx")


def test_columns_that_a_fit_makes_of_others_are_told() -> None:
    """Code for elsewhere reads no texts of amounts and no dates: it says what it wants instead."""
    rows = [[f"${17 * i + 1000:,}.50", f"2024-{1 + i % 12:02}-11"] for i in range(60)]
    classifier = NaiveBayesClassifier(column_kinds={1: "date"})
    with pytest.warns(DataWarning, match="texts read as numbers"):
        classifier.fit(rows, [i // 30 for i in range(60)])
    with pytest.warns(DataWarning, match="reads prepared columns"):
        model = deployable(classifier)
    expected = (
        "'x1 year', 'x1 month', 'x1 weekday' of the date 'x1'",
        "'x0' is a number, not a text",
    )
    assert model.notes == expected
    assert to_sql(model).startswith(f"-- {expected[0]}\n-- {expected[1]}\n")


@pytest.mark.filterwarnings("ignore::marginbn.DataWarning")
def test_dates_and_amounts_are_read_as_the_guide_says(tmp_path: Path) -> None:
    """A date is year, month and weekday, an amount a number; both may be missing."""
    rng = np.random.default_rng(5)
    y = rng.integers(2, size=300)
    days = pandas.Timestamp("2021-01-01") + pandas.to_timedelta(
        rng.integers(0, 400, 300) + 300 * y, unit="D"
    )
    amounts = rng.gamma(2, 600 * (1 + y))
    raw = pandas.DataFrame(
        {
            "signed": [day.strftime("%Y-%m-%d") for day in days],
            "price": [f"${amount:,.2f}" for amount in amounts],
        }
    ).mask(rng.random((300, 2)) < 0.1)
    clf = NaiveBayesClassifier(missing="state").fit(raw, np.where(y, "yes", "no"))
    prepared = pandas.DataFrame(
        {
            "signed year": days.year.astype(float),
            "signed month": days.month.astype(float),
            "signed weekday": days.day_name(),
            "price": amounts.round(2),
        }
    ).astype(object)
    prepared.loc[raw["signed"].isna(), list(prepared.columns[:3])] = None
    prepared.loc[raw["price"].isna(), "price"] = None
    for way in (by_sqlite, by_duckdb, by_onnx):
        found = way(clf, prepared, tmp_path)
        np.testing.assert_allclose(found, clf.predict_proba(raw), atol=1e-12)
