"""Data sets: counts that can be worked out, the folder's own schema, published properties."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import sklearn.datasets

from data_folder import data_folder
from marginbn.data.table import Table, as_table
from marginbn.datasets import (
    Dataset,
    list_datasets,
    list_folder_datasets,
    load_dataset,
    load_folder_dataset,
    make_corral,
    make_led,
    make_mofn,
    make_monks,
    make_waveform,
)
from marginbn.exceptions import FormatError, InputError


def rows_of(table: Table) -> list[tuple[str, ...]]:
    return list(zip(*[map(str, column.values) for column in table.columns], strict=True))


def class_counts(table: Table) -> dict[str, int]:
    return dict(Counter(map(str, table.column("class").values)))


# --- bundled --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "n_rows", "n_features", "counts"),
    [
        ("iris", 150, 4, {"setosa": 50, "versicolor": 50, "virginica": 50}),
        ("wine", 178, 13, {"class_0": 59, "class_1": 71, "class_2": 48}),
        ("breast_cancer", 569, 30, {"malignant": 212, "benign": 357}),
    ],
)
def test_bundled(name: str, n_rows: int, n_features: int, counts: dict[str, int]) -> None:
    data = load_dataset(name)
    assert (data.name, data.target, data.test) == (name, "class", None)
    assert (data.train.n_rows, data.train.n_columns) == (n_rows, n_features + 1)
    assert set(data.train.drop("class").kinds.values()) == {"numeric"}
    assert class_counts(data.train) == counts


def test_bundled_values_are_those_of_scikit_learn() -> None:
    table = load_dataset("iris").train
    bunch = sklearn.datasets.load_iris()
    assert list(table.names[:-1]) == bunch.feature_names
    np.testing.assert_array_equal(
        np.column_stack([c.values for c in table.columns[:-1]]), bunch.data
    )


# --- generators -----------------------------------------------------------------------------------


def test_corral_follows_its_rule() -> None:
    """Corral's class is (A0 and A1) or (B0 and B1), its correlated bit agrees in 3 rows of 4."""
    table = make_corral().train
    rows = [tuple(map(int, row)) for row in rows_of(table)]
    assert all(row[6] == (row[0] and row[1]) | (row[2] and row[3]) for row in rows)
    settings = itertools.product((0, 1), repeat=5)
    assert Counter(row[:5] for row in rows) == dict.fromkeys(settings, 4)
    agreeing = Counter(row[:5] for row in rows if row[5] == row[6])
    assert set(agreeing.values()) == {3}
    assert class_counts(table) == {"0": 72, "1": 56}


def test_corral_is_the_published_file() -> None:
    published = load_folder_dataset("corral", data_folder()).train
    assert published.names == make_corral().train.names
    assert sorted(rows_of(published)) == sorted(rows_of(make_corral().train))


def test_mofn_follows_its_rule() -> None:
    """The class is 1 iff at least three of bits 2 to 8 are set; training rows are distinct."""
    data = make_mofn()
    assert data.test is not None
    for row in rows_of(data.test):
        assert int(row[10]) == (sum(map(int, row[2:9])) >= 3)
    assert class_counts(data.test) == {"0": 232, "1": 792}
    assert data.train.n_rows == 300
    assert len(set(rows_of(data.train))) == 300
    assert set(rows_of(data.train)) <= set(rows_of(data.test))


def test_mofn_test_part_is_the_published_one() -> None:
    published = load_folder_dataset("mofn-3-7-10", data_folder()).test
    generated = make_mofn().test
    assert published is not None
    assert generated is not None
    assert published.names == generated.names
    assert sorted(rows_of(published)) == sorted(rows_of(generated))


@pytest.mark.parametrize(
    ("problem", "n_train", "positives"), [(1, 124, 216), (2, 169, 142), (3, 122, 228)]
)
def test_monks(problem: int, n_train: int, positives: int) -> None:
    data = make_monks(problem)
    assert data.test is not None
    assert (data.train.n_rows, data.test.n_rows) == (n_train, 432)
    assert class_counts(data.test)["1"] == positives
    assert [len(c.categories) for c in data.test.columns] == [3, 3, 2, 3, 4, 2, 2]
    assert data.test.column("a5").categories == (1, 2, 3, 4)
    truth = {row[:6]: row[6] for row in rows_of(data.test)}
    wrong = sum(truth[row[:6]] != row[6] for row in rows_of(data.train))
    assert wrong == (6 if problem == 3 else 0)


def test_waveform_means_are_the_waves() -> None:
    """The mean of a class is the mean of its two waves, the noise has variance one."""
    table = make_waveform(60_000, seed=1).train
    values = np.column_stack([c.values for c in table.columns[:-1]])
    label = table.column("class").codes
    i = np.arange(1, 22)
    h1, h2, h3 = (np.clip(6 - abs(i - peak), 0, None) for peak in (11, 15, 7))
    for c, (a, b) in enumerate([(h2, h3), (h1, h3), (h1, h2)]):
        rows = values[label == c]
        np.testing.assert_allclose(rows.mean(axis=0), (a + b) / 2, atol=0.1)
        # u a + (1 - u) b has variance (a - b)^2 / 12
        np.testing.assert_allclose(rows.var(axis=0), (a - b) ** 2 / 12 + 1, rtol=0.06)
    assert abs(np.bincount(label) / len(label) - 1 / 3).max() < 0.01


def test_led_without_noise_shows_the_digits() -> None:
    """Without noise each digit has one pattern; eight lights all segments, one lights two."""
    table = make_led(500, noise=0.0).train
    patterns = {row[7]: row[:7] for row in rows_of(table)}
    assert len(set(rows_of(table))) == 10
    assert {digit: sum(map(int, p)) for digit, p in patterns.items()} == {
        "0": 6, "1": 2, "2": 5, "3": 5, "4": 4, "5": 5, "6": 6, "7": 3, "8": 7, "9": 6,
    }  # fmt: skip
    assert len(set(patterns.values())) == 10


def test_led_best_accuracy_is_the_published_one() -> None:
    """With 10 % noise no rule can exceed 74 % accuracy, as the book says of these patterns."""
    clean = {row[7]: tuple(map(int, row[:7])) for row in rows_of(make_led(500, noise=0.0).train)}
    best = 0.0
    for shown in itertools.product((0, 1), repeat=7):
        wrong = [sum(a != b for a, b in zip(shown, p, strict=True)) for p in clean.values()]
        best += max(0.1**k * 0.9 ** (7 - k) for k in wrong) / 10
    assert best == pytest.approx(0.74, abs=0.005)
    noisy = make_led(20_000, seed=3).train
    flips = np.mean(
        [a != str(b) for row in rows_of(noisy) for a, b in zip(row, clean[row[7]], strict=False)]
    )
    assert flips == pytest.approx(0.1, abs=0.005)


@pytest.mark.parametrize("make", [make_mofn, make_waveform, make_led, partial(make_monks, 3)])
def test_seeds(make: Callable[..., Dataset]) -> None:
    first, again, other = (rows_of(make(seed=seed).train) for seed in (5, 5, 6))
    assert first == again
    assert first != other


def test_generator_arguments_are_checked() -> None:
    with pytest.raises(InputError, match="problem must be 1, 2 or 3, got 4"):
        make_monks(4)
    with pytest.raises(InputError, match="n_train"):
        make_mofn(1025)
    with pytest.raises(InputError, match="noise"):
        make_led(noise=1.5)
    with pytest.raises(InputError, match="n must be at least 1"):
        make_waveform(0)


# --- folder ---------------------------------------------------------------------------------------


def test_every_folder_dataset_matches_its_schema() -> None:
    folder = data_folder()
    schema = json.loads((folder / "schema.json").read_text())
    names = list_folder_datasets(folder)
    assert len(names) >= 31
    for name in names:
        data, entry = load_folder_dataset(name, folder), schema[name]
        parts = [data.train] + ([] if data.test is None else [data.test])
        expected = [entry["rows_train"]] + ([] if data.test is None else [entry["rows_test"]])
        assert [part.n_rows for part in parts] == expected, name
        assert data.train.complete.sum() == entry["complete_train"], name
        if data.test is not None:
            assert data.test.complete.sum() == entry["complete_test"], name
        missing = sum(int(c.missing.sum()) for part in parts for c in part.columns)
        assert missing == entry["missing_cells"], name
        assert sum((Counter(class_counts(p)) for p in parts), Counter()) == entry["classes"], name
        kinds = {"continuous": "numeric", "categorical": "categorical"}
        assert data.train.kinds == {
            **{f["name"]: kinds[f["kind"]] for f in entry["features"]},
            "class": "categorical",
        }, name


@pytest.fixture
def small_folder(tmp_path: Path) -> Path:
    """A folder with one data set whose text is easily misread."""
    features = [{"name": "code", "kind": "categorical"}, {"name": "size", "kind": "continuous"}]
    (tmp_path / "schema.json").write_text(json.dumps({"toy": {"features": features}}))
    (tmp_path / "toy.csv").write_text("code,size,class\n01,1,NA\n1.0,2,?\n,,yes\n")
    return tmp_path


def test_folder_text_is_exact(small_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Categories keep their text, only the empty field is missing, few numbers stay numeric."""
    monkeypatch.setenv("MARGINBN_DATA", str(small_folder))
    data = load_dataset("toy")
    assert data.train.column("code").values.tolist() == ["01", "1.0", None]
    assert data.train.column("class").values.tolist() == ["NA", "?", "yes"]
    np.testing.assert_array_equal(data.train.column("size").values, [1, 2, np.nan])
    assert data.test is None
    assert ("toy", "folder") in [(info.name, info.origin) for info in list_datasets()]


def test_folder_errors(small_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MARGINBN_DATA", raising=False)
    with pytest.raises(InputError, match="set the environment variable MARGINBN_DATA"):
        load_folder_dataset("toy")
    with pytest.raises(InputError, match=r"folder must name a folder with a schema\.json"):
        load_folder_dataset("toy", small_folder / "nowhere")
    with pytest.raises(InputError, match=r"'top'.*there are: toy"):
        load_folder_dataset("top", small_folder)
    (small_folder / "toy.csv").write_text("size,code,class\n1,2,3\n")
    with pytest.raises(FormatError, match=r"toy\.csv, line 1: the columns must be"):
        load_folder_dataset("toy", small_folder)
    (small_folder / "toy.csv").unlink()
    with pytest.raises(InputError, match=r"toy\.csv or toy\.csv\.gz is not in"):
        load_folder_dataset("toy", small_folder)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("{", r"schema\.json, line 1"),
        ("[]", "expected an object"),
        ('{"toy": 3}', "must list features"),
        ('{"toy": {"features": [{"name": "a"}]}}', "must list features"),
        ('{"toy": {"features": [{"name": "a", "kind": "odd"}]}}', "kind of 'a'.*'odd'"),
    ],
)
def test_malformed_schema(small_folder: Path, schema: str, message: str) -> None:
    (small_folder / "schema.json").write_text(schema)
    with pytest.raises(FormatError, match=message):
        load_folder_dataset("toy", small_folder)


def test_name_cannot_leave_the_folder(small_folder: Path) -> None:
    inner = small_folder / "inner"
    inner.mkdir()
    (inner / "schema.json").write_text('{"../toy": {"features": []}}')
    with pytest.raises(InputError, match="is not in"):
        load_folder_dataset("../toy", inner)


# --- dispatch and download ------------------------------------------------------------------------


def test_everything_listed_can_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MARGINBN_DATA", raising=False)
    listed = list_datasets()
    assert {info.origin for info in listed} == {"bundled", "generated"}
    for info in listed:
        data = load_dataset(info.name)
        sizes = [data.train.n_rows] + ([] if data.test is None else [data.test.n_rows])
        assert data.name == info.name
        assert info.description.endswith(f"{' + '.join(map(str, sizes))} rows")
        assert f"{data.train.n_columns - 1} features" in info.description


def test_unknown_names_get_suggestions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MARGINBN_DATA", raising=False)
    with pytest.raises(InputError, match=r"'irys'; try iris.*MARGINBN_DATA"):
        load_dataset("irys")


def test_dataset_parts_must_agree() -> None:
    table = as_table([["a", "b"]], names=["x", "class"])
    with pytest.raises(InputError, match="same columns"):
        Dataset("d", table, table.drop("x"), "class")
    with pytest.raises(InputError, match="'target'"):
        Dataset("d", table, None, "target")
