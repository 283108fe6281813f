"""``marginbn predict``: streams, kept and absent columns, encodings, Parquet."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from typer.testing import Result

from commands import run
from marginbn import NaiveBayesClassifier, TANClassifier
from marginbn.classifiers.model_file import load_model, save_model
from marginbn.data import preparation, source, text_files
from marginbn.data.table import read_table
from marginbn.exceptions import DataWarning

ROWS = """id,colour,size,code,kind
7,red,1.5,1,a
8,blue,,2,b
9,red,1.1,1.0,a
10,green,8.0,2,b
11,blue,9.0,x,b
12,?,1.2,1,a
"""


def rows_of(result: Result) -> list[list[str]]:
    assert result.exit_code == 0, result.output
    return list(csv.reader(io.StringIO(result.stdout)))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Six rows with an id, missing values, and text that looks like numbers."""
    path = tmp_path / "rows.csv"
    path.write_text(ROWS)
    return path


@pytest.fixture
def model(tmp_path: Path, table: Path) -> Path:
    """Learned from the rows, without their id; two columns know missing values."""
    rows = read_table(table)
    features = rows.select(["colour", "size", "code"])
    classifier = TANClassifier(missing="state").fit(features, rows.column("kind"))
    save_model(classifier, tmp_path / "model.json")
    return tmp_path / "model.json"


def test_stdin_is_read_like_a_file(model: Path, table: Path) -> None:
    from_file = rows_of(run("predict", model, table, "--proba", "-q"))
    assert from_file == rows_of(run("predict", model, "-", "--proba", "-q", input=ROWS))
    assert len(from_file) == 7
    empty = run("predict", model, "-", "-q", input="")
    assert empty.exit_code == 1
    assert "standard input: the file is empty" in empty.stderr


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a system without named pipes")
def test_a_pipe_is_read_as_csv(model: Path, table: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = Thread(target=pipe.write_text, args=(ROWS,))
    writer.start()
    found = rows_of(run("predict", model, pipe, "--proba", "-q"))
    writer.join()
    assert found == rows_of(run("predict", model, table, "--proba", "-q"))


def test_chunks_change_nothing(model, table, monkeypatch, tmp_path):
    """However the rows are cut: text that looks like a number stays the text it was."""
    expected = rows_of(run("predict", model, table, "--proba", "-q"))
    classifier = load_model(model)
    features = read_table(table).select(["colour", "size", "code"])
    assert [row[0] for row in expected[1:]] == classifier.predict(features).tolist()
    np.testing.assert_array_equal(
        np.array([row[1:] for row in expected[1:]], dtype=float), classifier.predict_proba(features)
    )
    monkeypatch.setattr(source, "BLOCK_ROWS", 1)
    assert rows_of(run("predict", model, table, "--proba", "-q")) == expected
    monkeypatch.setattr(text_files, "MAX_ROW_BYTES", 30)
    assert rows_of(run("predict", model, table, "--proba", "-q")) == expected


def test_kept_columns_stand_before_the_prediction(model: Path, table: Path) -> None:
    """As written; the prediction gives way if the class itself is kept."""
    rows = rows_of(run("predict", model, table, "--keep", "id,size", "--keep", "kind", "-q"))
    assert rows[0] == ["id", "size", "kind", "kind_predicted", "probability"]
    assert [row[:3] for row in rows[1:]] == [
        ["7", "1.5", "a"],
        ["8", "", "b"],
        ["9", "1.1", "a"],
        ["10", "8.0", "b"],
        ["11", "9.0", "b"],
        ["12", "1.2", "a"],
    ]
    wrong = run("predict", model, table, "--keep", "idd", "-q")
    assert wrong.exit_code == 1
    assert "--keep: there is no column 'idd'; did you mean 'id'?" in wrong.stderr


def test_absent_columns_are_summed_out_if_allowed(model: Path, tmp_path: Path) -> None:
    """Even where missing values have a state of their own: not told is not missing."""
    path = tmp_path / "few.csv"
    path.write_text("colour\nred\nblue\n")
    refused = run("predict", model, path, "-q")
    assert refused.exit_code == 1
    assert "'size', 'code'; with --allow-missing-columns they are summed out" in refused.stderr
    rows = rows_of(run("predict", model, path, "--allow-missing-columns", "--proba", "-q"))
    network = load_model(model).network_
    for row, colour in zip(rows[1:], ["red", "blue"], strict=True):
        np.testing.assert_allclose(
            [float(p) for p in row[1:]], network.posterior_array("kind", {"colour": colour})
        )
    path.write_text("other\nred\n")
    nothing = run("predict", model, path, "--allow-missing-columns", "-q")
    assert "has none of the columns" in nothing.stderr


def test_parquet_in_and_out(model: Path, table: Path, tmp_path: Path) -> None:
    """The same answers; the file is Parquet and keeps the types of the kept columns."""
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    expected = rows_of(run("predict", model, table, "-q"))[1:]
    columns = {"id": [7, 8, 9, 10, 11, 12], "colour": ["red", "blue", "red", "green", "blue", None]}
    columns |= {"size": [1.5, None, 1.1, 8.0, 9.0, 1.2], "code": ["1", "2", "1.0", "2", "x", "1"]}
    source, output = tmp_path / "rows.parquet", tmp_path / "out.parquet"
    parquet.write_table(arrow.table(columns), source)
    done = run("predict", model, source, "--keep", "id", "--proba", "-q", "-o", output)
    assert done.exit_code == 0, done.output
    found = parquet.read_table(output)
    assert found.column_names == ["id", "kind", "P(a)", "P(b)"]
    assert found.column("id").to_pylist() == columns["id"]
    assert found.column("kind").to_pylist() == [label for label, _ in expected]
    parquet.write_table(arrow.table(columns).slice(0, 0), source)
    assert "there are no rows" in run("predict", model, source, "-q").stderr


def test_encoding_is_said(tmp_path: Path) -> None:
    X, y = [["müde"], ["froh"], ["müde"], ["froh"]], ["a", "b", "a", "b"]
    save_model(NaiveBayesClassifier().fit(X, y), tmp_path / "m.json")
    path = tmp_path / "rows.csv"
    path.write_bytes("x0\nmüde\nfroh\n".encode("latin-1"))
    args = "predict", tmp_path / "m.json", path, "-q"
    header, *answers = rows_of(run(*args, "--encoding", "latin-1"))
    assert header == ["class", "probability"]
    assert [(label, round(float(share), 12)) for label, share in answers] == [
        ("a", 0.75),
        ("b", 0.75),
    ]
    assert "line 2: byte 0xfc is not UTF-8" in run(*args).stderr
    assert "encoding must be one" in run(*args, "--encoding", "nonsense").stderr


def test_a_bad_row_leaves_the_old_output_alone(model: Path, table: Path, tmp_path: Path) -> None:
    """One error, with its line, and no file half written or written elsewhere."""
    output = tmp_path / "out.csv"
    output.write_text("old")
    table.write_text(ROWS + "13,red\n")
    result = run("predict", model, table, "-q", "-o", output)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.count("expected 5 fields, got 2") == 1
    assert "line 8" in result.stderr
    assert output.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.json", "out.csv", "rows.csv"]


def test_json_holds_all_columns(model: Path, table: Path) -> None:
    found = json.loads(run("predict", model, table, "--keep", "id", "--json", "-q").stdout)
    assert list(found) == ["id", "kind", "probability"]
    assert found["id"] == ["7", "8", "9", "10", "11", "12"]


def test_the_program_loads_neither_pandas_nor_measures(model: Path, table: Path) -> None:
    code = (
        "import sys\n"
        "from marginbn.__main__ import main\n"
        "try:\n    main()\nfinally:\n"
        "    print([m for m in ('pandas', 'scipy.stats', 'sklearn.metrics') if m in sys.modules])"
    )
    command = [sys.executable, "-c", code, "predict", str(model), str(table), "-q"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")
    assert lines[0] == "kind,probability"
    assert lines[-2] == "[]"


def test_raw_tables_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Identifiers, dates and rare categories: as in Python, whatever the chunks are."""
    words = ["uvw"[i % 3] if i % 9 else f"rare{i}" for i in range(120)]
    days = [f"2024-{i % 12 + 1:02}-1{i % 7}" for i in range(120)]
    lines = [f"p{i:03},{days[i]},{words[i]},{'ab'[i % 3 > 0]}" for i in range(120)]
    path, model = tmp_path / "raw.csv", tmp_path / "raw.json"
    path.write_text("\n".join(["id,day,word,kind", *lines]) + "\n")
    rows = read_table(path)
    monkeypatch.setattr(preparation, "MAX_STATES", 4)
    classifier = NaiveBayesClassifier(column_kinds={"day": "date"})
    with pytest.warns(DataWarning):
        classifier.fit(rows.drop("kind"), rows.column("kind"))
    assert "id" in classifier.preparation_.left_out
    assert classifier.preparation_.merged == {"word": 14}
    save_model(classifier, model)
    table = rows.drop("kind").drop("id")
    expected = [["P(a)", "P(b)"], *classifier.predict_proba(table).tolist()]
    monkeypatch.setattr(source, "BLOCK_ROWS", 7)
    found = rows_of(run("predict", model, path, "--proba", "-q"))
    assert [[float(p) for p in row[1:]] for row in found[1:]] == expected[1:]
    asked = run("ask", model, "word=rare9", "--json").stdout
    assert json.loads(asked)["evidence"] == {"word": "other"}
    path.write_text("word\n" + "u\nnew\n" * 100)
    result = run("predict", model, path, "--allow-missing-columns", "-q")
    assert result.exit_code == 0
    assert result.stderr.count("never seen in training") == 1
    assert "'word' (100 values, such as 'new')" in result.stderr
