"""Tables in pieces: the same codes, networks and predictions as in memory."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from marginbn import (
    BayesianNetworkLearner,
    MaxMarginBNClassifier,
    MaxMarginBNClassifierCV,
    NaiveBayesClassifier,
    TANClassifier,
)
from marginbn.data import labelled, profile, source, training
from marginbn.data.source import source_of_memory
from marginbn.data.table import as_stream
from marginbn.data.training import survey
from marginbn.exceptions import DataWarning, InputError, OptimalityWarning

pytestmark = pytest.mark.filterwarnings("ignore:the bins of .* come from")

arrow = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")


def columns_of(n_rows: int = 900) -> dict[str, Any]:
    """Numbers with many and with few values, words, a rare word, flags, and a class."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, n_rows)
    word = np.array(["red", "green", "blue"])[(labels + rng.integers(0, 2, n_rows)) % 3]
    return {
        "size": labels + rng.normal(size=n_rows),
        "kind": np.array(["x", "y", "z"])[labels],
        "count": (labels + rng.integers(0, 4, n_rows)),
        "word": word,
        "flag": rng.random(n_rows) < 0.3,
    }


@pytest.fixture
def table() -> Any:
    return arrow.table(columns_of())


@pytest.fixture(autouse=True)
def in_small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "BLOCK_ROWS", 128)
    monkeypatch.setattr(labelled, "SAMPLE_ROWS", 400)


def write(table: Any, path: Path) -> Path:
    import pyarrow.parquet

    pyarrow.parquet.write_table(table, path, row_group_size=100)
    return path


def sources(table: Any, folder: Path) -> dict[str, Any]:
    """One table, in everything that is read in pieces and installed."""
    import pyarrow.dataset

    parts = folder / "parts"
    parts.mkdir()
    write(table.slice(0, 500), parts / "a.parquet")
    write(table.slice(500), parts / "b.parquet")
    made: dict[str, Any] = {
        "file": write(table, folder / "t.parquet"),
        "text": str(folder / "t.parquet"),
        "folder": parts,
        "dataset": pyarrow.dataset.dataset(folder / "t.parquet"),
    }
    try:
        import polars

        made["polars"] = polars.scan_parquet(folder / "t.parquet")
    except ImportError:
        pass
    try:
        import duckdb

        made["duckdb"] = duckdb.from_arrow(table)
    except ImportError:
        pass
    try:
        import dask.dataframe

        made["dask"] = dask.dataframe.from_pandas(table.to_pandas(), npartitions=3)
    except ImportError:
        pass
    return made


@pytest.mark.parametrize("name", ["file", "text", "folder", "dataset", "polars", "duckdb", "dask"])
def test_every_source_gives_the_model_of_the_table_in_memory(
    name: str, table: Any, tmp_path: Path
) -> None:
    source = sources(table, tmp_path).get(name)
    if source is None:
        pytest.skip(f"{name} is not installed")
    features, labels = table.drop_columns(["kind"]), np.array(table["kind"].to_pylist())
    expected = TANClassifier().fit(features, labels)
    found = TANClassifier().fit(source, "kind")
    assert found.structure_.parents == expected.structure_.parents
    assert found.coding_ == expected.coding_
    assert found.classes_.tolist() == expected.classes_.tolist()
    assert found.n_samples_ == 900
    assert np.allclose(found.predict_log_proba(features), expected.predict_log_proba(features))
    assert np.array_equal(found.predict_proba(source), found.predict_proba(features))


def test_missing_values(table: Any, tmp_path: Path) -> None:
    size = [None if k % 7 == 0 else v for k, v in enumerate(table["size"].to_pylist())]
    holes = table.set_column(0, "size", arrow.array(size))
    path = write(holes, tmp_path / "t.parquet")
    kept = NaiveBayesClassifier(missing="state").fit(path, "kind")
    features, labels = holes.drop_columns(["kind"]), np.array(holes["kind"].to_pylist())
    expected = NaiveBayesClassifier(missing="state").fit(features, labels)
    assert kept.coding_ == expected.coding_
    assert np.allclose(kept.predict_proba(features), expected.predict_proba(features))
    with pytest.warns(DataWarning, match="129 of 900 rows have missing values"):
        dropped = NaiveBayesClassifier(missing="drop").fit(path, "kind")
    assert (dropped.n_samples_, dropped.n_dropped_) == (771, 129)
    with pytest.raises(InputError, match="have missing values"):
        NaiveBayesClassifier(missing="error").fit(path, "kind")


def test_weights_of_classes(table: Any, tmp_path: Path) -> None:
    path = write(table, tmp_path / "t.parquet")
    features, labels = table.drop_columns(["kind"]), np.array(table["kind"].to_pylist())
    for weight in ("balanced", {"x": 3.0}):
        expected = NaiveBayesClassifier(class_weight=weight).fit(features, labels)
        found = NaiveBayesClassifier(class_weight=weight).fit(path, "kind")
        assert found.coding_ == expected.coding_
        total = found.evidence_.total_weight
        assert total == pytest.approx(expected.evidence_.total_weight)


def test_what_is_wrong_is_told(table: Any, tmp_path: Path) -> None:
    path = write(table, tmp_path / "t.parquet")
    with pytest.raises(InputError, match="y must be the name of the class column"):
        NaiveBayesClassifier().fit(path, "absent")
    with pytest.raises(InputError, match="y must be the name"):
        NaiveBayesClassifier().fit(path, np.zeros(900))
    with pytest.raises(InputError, match="column 'size', the class, holds measured numbers"):
        NaiveBayesClassifier().fit(path, "size")
    with pytest.raises(InputError, match="no such file or folder"):
        NaiveBayesClassifier().fit(tmp_path / "absent.parquet", "kind")
    (tmp_path / "t.parquet.txt").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=r"the format of .* is unknown"):
        NaiveBayesClassifier().fit(tmp_path / "t.xlsx", "a")
    with pytest.raises(InputError, match="sample_weight must be None"):
        NaiveBayesClassifier().fit(path, "kind", np.ones(900))
    fitted = NaiveBayesClassifier().fit(path, "kind")
    other = write(table.drop_columns(["word"]), tmp_path / "o.parquet")
    with pytest.raises(InputError, match="lacks columns of training"):
        fitted.predict(other)


def test_amounts_and_dates_are_found_in_pieces(table: Any, tmp_path: Path) -> None:
    """As in memory, and told as there."""
    price = arrow.array([f"${1000 + k % 40}.50" for k in range(900)])
    day = arrow.array([f"2024-{1 + k % 12:02}-{1 + k % 28:02}" for k in range(900)])
    more = table.append_column("price", price).append_column("day", day)
    path = write(more, tmp_path / "t.parquet")
    features, labels = more.drop_columns(["kind"]), np.array(more["kind"].to_pylist())
    said = []
    for X, y in ((path, "kind"), (features, labels)):
        with pytest.warns(DataWarning) as caught:
            found = NaiveBayesClassifier().fit(X, y)
        said.append(([str(w.message) for w in caught], found.coding_))
    assert said[0] == said[1]
    assert any(text.startswith("texts read as numbers: 'price'") for text in said[0][0])
    assert any("year, month and weekday: 'day'" in text for text in said[0][0])
    assert [plan.kind for plan in found.preparation_.columns][-2:] == ["amount", "date"]
    kinds = {"price": "categorical", "day": "categorical"}
    with pytest.warns(DataWarning, match="rare categories merged"):
        kept = NaiveBayesClassifier(column_kinds=kinds).fit(path, "kind")
    assert len(kept.coding_.columns) == 6


@pytest.mark.parametrize("limit", [3.0, None])
def test_a_limit_that_reading_exceeds_is_foretold(
    limit: float | None, table: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the row count of the Parquet footer: each of eight blocks takes a second here."""
    clock = iter(range(1000))
    monkeypatch.setattr(training, "monotonic", lambda: float(next(clock)))
    stream = as_stream(write(table, tmp_path / "t.parquet"))
    assert stream is not None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        survey(stream, "kind", time_limit=limit)
    said = [str(w.message) for w in caught if w.category is OptimalityWarning]
    assert len(said) == (0 if limit is None else 1)
    assert all("reading alone will take about 14 s, more than time_limit=3" in t for t in said)


# ---------------------------------------------------------------------- validation


def test_settings_are_chosen_on_a_sample(
    table: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drawn at random, of the size of a short table; the model is that of all rows."""
    monkeypatch.setattr(labelled, "SAMPLE_ROWS", 300)
    path = write(table, tmp_path / "t.parquet")
    settings = {"gammas": (0.5, 1.0), "max_parents": (1,)}
    with pytest.warns(DataWarning, match="chosen on 300 of 900 rows"):
        found = MaxMarginBNClassifierCV(**settings, time_limit=None).fit(path, "kind")  # type: ignore[arg-type]
    assert found.gamma_ in (0.5, 1.0)
    assert found.n_samples_ == 900
    features, labels = table.drop_columns(["kind"]), np.array(table["kind"].to_pylist())
    same = MaxMarginBNClassifier(gamma=found.gamma_, max_parents=1).fit(features, labels)
    assert found.objective_ == pytest.approx(same.objective_, rel=1e-3)


def test_a_sample_is_even_and_keeps_the_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows from everywhere, none twice, the same in memory and in blocks of any size."""
    monkeypatch.setattr(labelled, "SAMPLE_ROWS", 200)
    numbers = np.arange(5000)
    table = arrow.table({"place": numbers.astype(float), "kind": numbers % 2})
    stream = as_stream(write(table, tmp_path / "t.parquet"))
    assert stream is not None
    drawn = survey(stream, "kind").drawn
    places = drawn.features.column("place").numbers
    assert len(places) == len(drawn.labels) == 200
    assert np.array_equal(places, labelled.sampled_rows(5000, labelled.SAMPLE_ROWS))
    assert np.array_equal(places % 2, drawn.labels)
    thirds = np.bincount((places * 3 // 5000).astype(int))
    assert thirds.min() > 40


# ---------------------------------------------------------------------- without a class


@pytest.mark.parametrize("name", ["file", "folder", "dataset", "polars", "duckdb", "dask"])
def test_networks_without_a_class(name: str, table: Any, tmp_path: Path) -> None:
    source = sources(table, tmp_path).get(name)
    if source is None:
        pytest.skip(f"{name} is not installed")
    expected = BayesianNetworkLearner(time_limit=None).fit(table.to_pandas())
    found = BayesianNetworkLearner(time_limit=None).fit(source)
    assert found.coding_ == expected.coding_
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-12)
    assert found.n_samples_ == 900
    np.testing.assert_allclose(found.score_samples(source), expected.score_samples(table))
    with pytest.raises(InputError, match="sample_weight"):
        BayesianNetworkLearner(time_limit=None).fit(source, sample_weight=np.ones(900))


def test_short_tables_without_a_class_are_read_as_a_whole(
    table: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(labelled, "SAMPLE_ROWS", 900)
    path = write(table, tmp_path / "t.parquet")
    found = BayesianNetworkLearner().fit(path)
    assert found.n_samples_ == 900
    assert found.feature_names_in_.tolist() == table.column_names


# ---------------------------------------------------------------------- where the data is


def test_work_on_partitions_is_done_where_they_are(table: Any) -> None:
    """Workers of a cluster summarise and encode; what comes of it travels."""
    distributed = pytest.importorskip("distributed")
    frames = pytest.importorskip("dask.dataframe")
    settings = {"processes": False, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(n_workers=2, **settings) as made,
        distributed.Client(made) as client,
    ):
        source = frames.from_pandas(table.to_pandas(), npartitions=4)
        found = TANClassifier().fit(source, "kind")
        here = as_stream(source)
        assert here is not None
        places = set(here.each(_where))
        assert places <= set(client.scheduler_info()["workers"])
        assert places
    expected = TANClassifier().fit(
        table.drop_columns(["kind"]), np.array(table["kind"].to_pylist())
    )
    assert found.coding_ == expected.coding_
    assert found.structure_.parents == expected.structure_.parents


def test_a_pass_over_partitions_makes_each_once(table: Any) -> None:
    """Rows are counted once besides, and only the wanted columns are asked for."""
    frames = pytest.importorskip("dask.dataframe")
    rows, made = table.to_pandas(), list[int]()

    def part(k: int) -> Any:
        made.append(k)
        return rows.iloc[300 * k : 300 * (k + 1)]

    source = as_stream(frames.from_map(part, range(3), meta=rows.iloc[:0]))
    assert source is not None
    firsts = [row for names in (None, ["size"]) for row in source.each(_first_row, names)]
    assert firsts == [(0, source.names), (300, source.names), (600, source.names)] + [
        (row, ("size",)) for row in (0, 300, 600)
    ]
    assert sorted(made) == [k for k in range(3) for _ in range(3)]


def _first_row(block: Any, row: int) -> tuple[int, tuple[str, ...]]:
    return row, tuple(block.column_names)


def _where(_: Any, __: int) -> str:
    """Address of the worker that asks."""
    from distributed import get_worker

    return str(get_worker().address)


def test_too_many_categories_are_left_out(table: Any, tmp_path: Path) -> None:
    names = arrow.array([f"name {k}" for k in range(900)])
    path = write(table.append_column("name", names), tmp_path / "t.parquet")
    with pytest.warns(DataWarning, match="'name' .900 of 900 values differ"):
        found = NaiveBayesClassifier().fit(path, "kind")
    assert "name" in found.preparation_.left_out


@pytest.mark.parametrize("n_values", [900, 300])
def test_texts_that_are_too_many_to_count(
    n_values: int, table: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Are left out, used or not, and cost no memory; blocks alone have fewer than the limit."""
    monkeypatch.setattr(profile, "MOST_LEVELS", 150)
    names = arrow.array([f"name {k % n_values}" for k in range(900)])
    path = write(table.append_column("name", names), tmp_path / "t.parquet")
    with pytest.warns(DataWarning, match="'name' .it has too many different values to count"):
        found = NaiveBayesClassifier().fit(path, "kind")
    assert list(found.preparation_.left_out) == ["name"]
    stream = as_stream(path)
    assert stream is not None
    assert not survey(stream, "kind").sample.column("name").counts.size


# ---------------------------------------------------------------------- prediction


@pytest.mark.parametrize("kind", ["numpy", "pandas", "polars", "arrow"])
def test_many_rows_are_answered_in_pieces(kind: str, table: Any) -> None:
    numbers = table.select(["size", "count"])
    labels = np.array(table["kind"].to_pylist())
    if kind == "numpy":
        rows: Any = np.column_stack([numbers["size"].to_numpy(), numbers["count"].to_numpy()])
    elif kind == "arrow":
        rows = numbers
    else:
        library = pytest.importorskip(kind)
        rows = numbers.to_pandas() if kind == "pandas" else library.from_arrow(numbers)
    fitted = NaiveBayesClassifier().fit(rows, labels)
    assert len(list(source_of_memory(rows).blocks())) == 8
    whole = np.concatenate([fitted.predict_proba(rows[k : k + 100]) for k in range(0, 900, 100)])
    assert np.array_equal(fitted.predict_proba(rows), whole)


def test_other_things_are_no_streams() -> None:
    for other in (np.zeros((2, 2)), [[1, 2]], None, 3, arrow.table({"a": [1]})):
        assert as_stream(other) is None
