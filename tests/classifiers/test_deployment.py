"""SQL, ONNX, Python and scorecards answer as predict_proba does, on rows of many kinds."""

from __future__ import annotations

import csv
import io
import math
import sqlite3
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from marginbn import (
    A1DEClassifier,
    BayesianNetwork,
    BNClassifier,
    InputError,
    NaiveBayesClassifier,
    TANClassifier,
    export_model,
)
from marginbn.classifiers.base import BaseBNClassifier
from marginbn.classifiers.deployment import DEPLOYMENTS, deployable, deployment_text
from marginbn.datasets import load_dataset
from marginbn.exceptions import DataWarning
from marginbn.export.scorecard import term_rows

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


def quadrants(n: int = 400) -> tuple[Any, Any]:
    """Two numbers whose signs count together, so that a trained network sees them in groups."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(n, 3))
    y = ((x[:, 0] > 0) ^ (x[:, 1] > 0)) ^ (rng.random(n) < 0.1)
    x[:, 2] += y
    return pandas.DataFrame(x, columns=["a", "b", "c d"]), pandas.Series(y, name="odd")


def bundled(name: str) -> tuple[Any, Any]:
    """A data set as a frame and labels."""
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


MAKERS: dict[str, Callable[[], tuple[BaseBNClassifier, Any]]] = {
    "iris, naive": lambda: _fit(NaiveBayesClassifier(), bundled("iris")),
    "wine, tree": lambda: _fit(TANClassifier(), bundled("wine")),
    "quadrants, trained on groups": lambda: _fit(BNClassifier(structures=("2-tree",)), quadrants()),
    "digits, naive": lambda: _fit(NaiveBayesClassifier(), bundled("led-7")),
    "shop, a state for missing": lambda: _fit(TANClassifier(missing="state"), shop(400)),
    "shop, rare categories merged": lambda: _fit(
        NaiveBayesClassifier(missing="state", max_states=2), shop(400)
    ),
    "iris, average": lambda: _fit(
        BNClassifier(structures=("naive", "tan"), average=True), bundled("iris")
    ),
}


@cache
def made(name: str) -> tuple[BaseBNClassifier, Any]:
    """Classifier and rows, fitted once."""
    return MAKERS[name]()


def by_sqlite(clf: BaseBNClassifier, rows: Any, folder: Path) -> np.ndarray:
    """P of every row from a table of SQLite."""
    connection = sqlite3.connect(":memory:")
    rows = rows.assign(row_number=range(len(rows)))
    names = ", ".join('"' + name.replace('"', '""') + '"' for name in rows.columns)
    connection.execute(f"CREATE TABLE data ({names})")
    values = [[_plain(v) for v in row] for row in rows.itertuples(index=False, name=None)]
    marks = ", ".join("?" * len(rows.columns))
    connection.executemany(f"INSERT INTO data VALUES ({marks})", values)
    export_model(clf, folder / "model.sql", keep=["row_number"])
    found = connection.execute((folder / "model.sql").read_text(encoding="utf-8")).fetchall()
    found.sort()
    _check_predictions(clf, [row[1] for row in found], [row[2:] for row in found])
    return np.array([row[2:] for row in found], dtype=float)


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return None if value is None or value != value else value


def by_duckdb(clf: BaseBNClassifier, rows: Any, folder: Path) -> np.ndarray:
    """P of every row from DuckDB."""
    duckdb = pytest.importorskip("duckdb")
    rows = rows.assign(row_number=range(len(rows)))
    connection = duckdb.connect()
    connection.register("data", rows)
    export_model(clf, folder / "model.sql", keep=["row_number"])
    found = connection.execute((folder / "model.sql").read_text(encoding="utf-8")).fetchall()
    found.sort()
    return np.array([row[2:] for row in found], dtype=float)


def by_python(clf: BaseBNClassifier, rows: Any, folder: Path) -> np.ndarray:
    """P of every row from the function of the file; rows without answer are NaN."""
    export_model(clf, folder / "model.py")
    functions: dict[str, Any] = {}
    exec((folder / "model.py").read_text(encoding="utf-8"), functions)
    result = np.full((len(rows), len(clf.classes_)), np.nan)
    for i, row in enumerate(rows.to_dict("records")):
        try:
            answer = functions["predict_proba"](row)
        except ValueError:
            continue
        assert list(answer) == clf.classes_.tolist()
        assert answer[functions["predict"](row)] == max(answer.values())
        result[i] = list(answer.values())
    return result


def by_onnx(clf: BaseBNClassifier, rows: Any, folder: Path) -> np.ndarray:
    """P of every row from onnxruntime."""
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


def by_scorecard(clf: BaseBNClassifier, rows: Any, folder: Path) -> np.ndarray:
    """P of every row by adding up lines of the CSV file."""
    export_model(clf, folder / "card.csv")
    with open(folder / "card.csv", encoding="utf-8", newline="") as file:
        header, *lines = csv.reader(file)
    width = sum(name.startswith("feature") for name in header)
    others = len(clf.classes_) - 1
    start, doubt, shares = np.zeros(others), 0.0, []
    points: dict[tuple[str, ...], dict[tuple[str, ...], np.ndarray]] = {}
    for line in lines:
        values = line[2 * width : 2 * width + others]
        if line[0] == "(start)":
            start = np.array(values, dtype=float)
        elif line[0] == "(doubt)":
            doubt = float(line[1])
        elif line[0].startswith("(share of"):
            shares.append(float(line[1]))
        else:
            names = tuple(filter(None, line[: 2 * width : 2]))
            states = tuple(line[1 : 2 * width : 2][: len(names)])
            points.setdefault(names, {})[states] = np.array(values, dtype=float)
    model = deployable(clf)
    codes = clf._encode(rows)
    result = np.full((len(rows), others + 1), np.nan)
    terms = {tuple(model.features[i].name for i in t.members): t for t in model.members[0].terms}
    assert set(terms) == set(points)
    labels = {names: term_rows(model, term) for names, term in terms.items()}
    for r, row in enumerate(codes):
        total = start.copy()
        for names, term in terms.items():
            cell = [_own_code(model.features[i], row[i]) for i in term.members]
            if None in cell:
                break
            states = (
                own[groups[code]]
                for own, groups, code in zip(labels[names], term.groups, cell, strict=True)
            )
            total += points[names][tuple(states)]
        else:
            odds = np.append(1.0, 2.0 ** (total / 20.0))
            result[r] = (1 - doubt) * odds / odds.sum() + doubt * np.array(shares or [0.0])
    return result


def _own_code(feature: Any, code: int) -> int | None:
    if code >= 0:
        return int(code)
    return feature.n_codes - 1 if feature.n_codes > feature.coding.variable.arity else None


WAYS = {
    "sqlite": by_sqlite, "duckdb": by_duckdb, "python": by_python, "onnx": by_onnx,
    "scorecard": by_scorecard,
}  # fmt: skip


def _cases() -> Iterator[Any]:
    for name in MAKERS:
        for way in WAYS:
            if not (way == "scorecard" and "average" in name):
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


def test_a_trained_network_asks_for_every_value(tmp_path: Path) -> None:
    """Its answer for a row with missing values is no sum of table entries."""
    clf, frame = made("quadrants, trained on groups")
    assert clf.network_.groups is not None
    rows = many_rows(frame, 20)
    rows.iloc[3, 0] = np.nan
    found = by_sqlite(clf, rows, tmp_path)
    assert np.flatnonzero(np.isnan(found[:, 0])).tolist() == [3]


def test_unseen_categories_may_be_an_error(tmp_path: Path) -> None:
    """With unseen='error' they have no answer, as predict has none."""
    clf = NaiveBayesClassifier(unseen="error").fit([["a"], ["b"]], ["x", "y"])
    functions: dict[str, Any] = {}
    export_model(clf, tmp_path / "m.py")
    exec((tmp_path / "m.py").read_text(), functions)
    with pytest.raises(ValueError, match="unknown category 'c'"):
        functions["predict"]({"x0": "c"})
    assert functions["predict"]({"x0": None}) == "x"


@pytest.mark.parametrize("name", MAKERS)
def test_the_definition_by_numpy(name: str) -> None:
    """Sums of table entries are the posterior; only differences to the first class are kept."""
    clf, frame = made(name)
    model = deployable(clf)
    codes = clf._encode(frame)
    for i, feature in enumerate(model.features):
        codes[codes[:, i] < 0, i] = feature.n_codes - 1
    np.testing.assert_allclose(model.probabilities(codes), clf.predict_proba(frame), atol=1e-12)
    for member in model.members:
        for term in member.terms:
            assert term.table.shape[-1] == len(clf.classes_) - 1


def test_huge_scores_stay_in_range(tmp_path: Path) -> None:
    """120 copies of a telling column: EXP of their sum would be no double."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=300)
    frame = pandas.DataFrame({f"x{i}": y.astype(str) for i in range(120)})
    clf = NaiveBayesClassifier(smoothing=0.01).fit(frame, y)
    rows = frame[:5]
    for way in ("sqlite", "python", "onnx"):
        found = WAYS[way](clf, rows, tmp_path)
        np.testing.assert_allclose(found, clf.predict_proba(rows), atol=TOLERANCE)


def test_a_scorecard_has_counts_and_evidence(tmp_path: Path) -> None:
    """Counts of the rows given, weights of evidence by hand; the page escapes names."""
    clf = NaiveBayesClassifier().fit([["<a>"], ["<a>"], ["b"], ["b"]], ["x", "x", "x", "y"])
    export_model(clf, tmp_path / "plain.csv")
    lines = list(csv.reader(io.StringIO((tmp_path / "plain.csv").read_text())))
    by_state = {line[1]: line for line in lines[2:]}
    # P(b | y) = (1 + 1) / (1 + 2), P(b | x) = (1 + 1) / (3 + 2); 20 points double the odds
    expected = math.log((2 / 3) / (2 / 5))
    assert float(by_state["b"][-1]) == pytest.approx(expected)
    assert float(by_state["b"][2]) == pytest.approx(20 * expected / math.log(2))
    assert by_state["b"][3] == ""
    X, y = [["<a>"], ["b"], ["b"]], ["x", "y", "y"]
    export_model(clf, tmp_path / "counted.csv", X=X, y=y)
    lines = list(csv.reader(io.StringIO((tmp_path / "counted.csv").read_text())))
    by_state = {line[1]: line for line in lines[2:]}
    assert by_state["b"][3] == "2"
    assert float(by_state["b"][-1]) == pytest.approx(math.log((2.5 / 3) / (0.5 / 2)))
    export_model(clf, tmp_path / "card.html", X=X, y=y)
    page = (tmp_path / "card.html").read_text()
    assert "<td>&lt;a&gt;</td>" in page
    assert "<a>" not in page
    assert "points for y" in page
    missing = [line for line in lines if line[1] == "(missing or unknown)"]
    assert [float(line[2]) for line in missing] == [0.0]
    with pytest.raises(InputError, match="X and y must be given together"):
        export_model(clf, tmp_path / "card.html", X=X)


def test_what_cannot_be_exported_says_why(tmp_path: Path) -> None:
    """Averages of joints, points of an average, zeros, unknown formats and names."""
    X, y = bundled("iris")
    with pytest.raises(InputError, match="TANClassifier"):
        export_model(A1DEClassifier().fit(X, y), tmp_path / "m.sql")
    with pytest.raises(InputError, match="export to sql, python or onnx"):
        export_model(made("iris, average")[0], tmp_path / "m.csv")
    zeros = NaiveBayesClassifier().fit([["a"], ["b"]], ["x", "y"])
    with np.errstate(divide="ignore"):
        tables = zeros.network_.log_tables[0], np.log([[1.0, 0.0], [0.0, 1.0]])
    zeros.network_ = BayesianNetwork(zeros.structure_, zeros.network_.variables, tables)
    with pytest.raises(InputError, match="smoothing > 0"):
        export_model(zeros, tmp_path / "m.sql")
    clf = made("iris, naive")[0]
    with pytest.raises(InputError, match=r"must end in one of \.sql, \.onnx"):
        export_model(clf, tmp_path / "m.txt")
    with pytest.raises(InputError, match="format must be one of sql, onnx, python, scorecard"):
        export_model(clf, tmp_path / "m.txt", "excel")
    with pytest.raises(InputError, match="keep must not name 'prediction'"):
        export_model(clf, tmp_path / "m.sql", keep=["Prediction"])
    assert list(DEPLOYMENTS) == ["sql", "onnx", "python", "scorecard"]


def test_one_class_and_no_influence(tmp_path: Path) -> None:
    """The only class is certain, whatever the row."""
    clf = NaiveBayesClassifier().fit([["a"], ["b"]], ["x", "x"])
    for way in ("sqlite", "python"):
        rows = pandas.DataFrame({"x0": ["a", "b", None]})
        np.testing.assert_allclose(WAYS[way](clf, rows, tmp_path), np.ones((3, 1)))
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
    assert deployment_text(classifier, model, "sql").startswith(f"-- {expected[0]}")
    assert f"# {expected[1]}" in deployment_text(classifier, model, "python")
