"""Every kind of table gives the same columns, written by the tool that people use for it."""

from __future__ import annotations

import datetime
import gzip
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from marginbn import NaiveBayesClassifier
from marginbn.data import source as sources
from marginbn.data import text_files
from marginbn.data.source import Source, source_of_memory
from marginbn.data.table import as_stream, as_table, open_file, read_table
from marginbn.data.text_files import source_of_stream
from marginbn.exceptions import FormatError, InputError

WORDS = ["b", "a", None, "b"]
SIZES = [0.5, None, 2.5, 3.5]


def shown(X: Any) -> list[tuple[str, tuple[Any, ...], list[Any]]]:
    """Kind, categories and values of every column, missing ones as None."""
    return [
        (c.kind, c.categories, [None if v != v else v for v in c.values.tolist()])
        for c in as_table(X).columns
    ]


TEXTS = {
    "string": pa.array(WORDS),
    "large string": pa.array(WORDS, pa.large_string()),
    "string view": pa.array(WORDS).cast(pa.string_view()),
    "signed dictionary": pa.array(WORDS).dictionary_encode(),
    "unsigned dictionary": pa.DictionaryArray.from_arrays(
        pa.array([1, 0, None, 1], pa.uint32()), pa.array(["a", "b"])
    ),
    "dictionary with a null value": pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 2, 0], pa.uint8()), pa.array(["b", "a", None])
    ),
    "pieces": pa.chunked_array([WORDS[:1], [], WORDS[1:]]),
    "dictionaries that differ": pa.chunked_array(
        [pa.array(WORDS[:2]).dictionary_encode(), pa.array(WORDS[2:]).dictionary_encode()]
    ),
}


@pytest.mark.parametrize("array", TEXTS.values(), ids=TEXTS)
def test_texts_of_arrow(array: Any) -> None:
    assert shown(pa.table({"w": array})) == [("categorical", ("a", "b"), WORDS)]


NUMBERS = {
    "double": pa.array(SIZES),
    "decimal": pa.array([None if v is None else Decimal(str(v)) for v in SIZES]),
    "float": pa.array(SIZES, pa.float32()),
    "half": pa.array([None if v is None else np.float16(v) for v in SIZES], pa.float16()),
}


@pytest.mark.parametrize("array", NUMBERS.values(), ids=NUMBERS)
def test_numbers_of_arrow(array: Any) -> None:
    assert shown(pa.table({"n": array})) == [("numeric", (), SIZES)]


def test_lists_of_dicts_and_structured_arrays() -> None:
    """Names come with the values; what a dict lacks is missing."""
    dicts = [{"w": "b", "n": 0.5}, {"w": "a"}, {"n": 2.5}]
    assert as_table(dicts).names == ("w", "n")
    assert shown(dicts) == [
        ("categorical", ("a", "b"), ["b", "a", None]),
        ("numeric", (), [0.5, None, 2.5]),
    ]
    array = np.array([("b", 0.5), ("a", 2.5)], dtype=[("w", "U1"), ("n", ">f8")])
    assert as_table(array).names == ("w", "n")
    assert shown(array)[1] == ("numeric", (), [0.5, 2.5])
    fitted = NaiveBayesClassifier().fit(array, ["x", "y"])
    assert fitted.predict(array).tolist() == ["x", "y"]


KINDS = pd.DataFrame(
    {
        "number": np.where(np.arange(90) % 7 == 0, np.nan, np.arange(90) ** 1.5 % 11),
        "nullable": pd.array([None if i % 8 == 0 else i * 7 % 30 for i in range(90)], "Int64"),
        "declared": pd.Categorical(["u", "v", "v"] * 30, ["unused", "v", "u", "never"]),
        "flag": pd.array([[True, None, False][i % 3] for i in range(90)], "boolean"),
        "word": [None if i % 9 == 0 else "xyz"[i % 3] for i in range(90)],
        "day": pd.Timestamp("2021-01-31") + pd.to_timedelta(np.arange(90) * 37 % 90, "D"),
        "zone": pd.date_range("2021-03-01 23:30", periods=90, freq="D", tz="Europe/Berlin"),
        "kind": ["a", "b"] * 45,
    }
)


@pytest.mark.filterwarnings("ignore::marginbn.exceptions.DataWarning")
@pytest.mark.parametrize("tool", ["pandas", "polars", "arrow"])
def test_one_model_from_memory_and_from_every_file(tool: str, tmp_path: Path) -> None:
    """Whatever the columns hold, and whichever library wrote the file."""
    reference = NaiveBayesClassifier().fit(KINDS.drop(columns="kind"), KINDS["kind"])
    expected = reference.predict_proba(KINDS.drop(columns="kind"))
    table = pa.Table.from_pandas(KINDS, preserve_index=False)
    text, packed = tmp_path / "t.csv", tmp_path / "t.parquet"
    if tool == "pandas":
        frame: Any = KINDS
        KINDS.to_csv(text, index=False)
        KINDS.to_parquet(packed)
    elif tool == "polars":
        frame = pl.from_pandas(KINDS)
        frame.write_csv(text)
        frame.write_parquet(packed)
    else:
        frame = table
        arrow_csv.write_csv(table, text)
        pq.write_table(table, packed)
    features = frame[KINDS.columns[:-1].tolist()] if tool != "arrow" else table.drop_columns("kind")
    fits = [NaiveBayesClassifier().fit(features, KINDS["kind"])]
    fits += [NaiveBayesClassifier().fit(path, "kind") for path in (text, packed)]
    for fitted, rows in zip(fits, (features, text, packed), strict=True):
        assert fitted.preparation_.used_names == reference.preparation_.used_names
        assert np.allclose(fitted.predict_proba(rows), expected, atol=1e-12)


# --- folders and files ----------------------------------------------------------------------------


@pytest.fixture
def table() -> pa.Table:
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 600)
    return pa.table(
        {
            "site": np.array(["north", "south", "west"])[(kind + rng.integers(0, 2, 600)) % 3],
            "year": 2020 + rng.integers(0, 15, 600),
            "size": kind + rng.normal(size=600),
            "kind": np.array(["x", "y"])[kind],
        }
    )


def test_partition_columns_are_columns(table: pa.Table, tmp_path: Path) -> None:
    """As Spark and write_to_dataset lay folders out."""
    pq.write_to_dataset(table, tmp_path / "visits", partition_cols=["site", "year"])
    found = read_table(tmp_path / "visits")
    assert sorted(found.names) == ["kind", "site", "size", "year"]
    assert found.column("site").categories == ("north", "south", "west")
    assert found.column("year").kind == "numeric"
    fitted = NaiveBayesClassifier().fit(tmp_path / "visits", "kind")
    assert sorted(fitted.feature_names_in_) == ["site", "size", "year"]


def test_folders_as_spark_leaves_them(tmp_path: Path) -> None:
    """Rows without a value of the partition, sums of checks, and what a task left behind."""
    for site in ("north", "__HIVE_DEFAULT_PARTITION__"):
        folder = tmp_path / "t" / f"site={site}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"n": SIZES}), folder / "part-00000.snappy.parquet")
        (folder / ".part-00000.snappy.parquet.crc").write_bytes(b"crc")
    (tmp_path / "t" / "_SUCCESS").touch()
    (tmp_path / "t" / "_temporary").mkdir()
    (tmp_path / "t" / "_temporary" / "part.parquet").write_bytes(b"not finished")
    found = read_table(tmp_path / "t").column("site").values.tolist()
    assert sorted(found, key=str) == [None] * 4 + ["north"] * 4


def test_files_of_a_folder_may_differ_in_columns_and_types(tmp_path: Path) -> None:
    """No column is lost, no number cut; types that do not go together are named."""
    first = pa.table({"n": [1, 2], "c": pa.array(["a", "b"]).dictionary_encode()})
    pq.write_table(first, tmp_path / "1.parquet")
    pq.write_table(
        pa.table({"c": ["a", "z"], "n": [0.5, 2.5], "more": ["x", "y"]}), tmp_path / "2.parquet"
    )
    found = read_table(tmp_path)
    assert found.names == ("n", "c", "more")
    assert found.column("n").values.tolist() == [1.0, 2.0, 0.5, 2.5]
    assert found.column("c").values.tolist() == ["a", "b", "a", "z"]
    assert found.column("more").values.tolist() == [None, None, "x", "y"]
    pq.write_table(pa.table({"n": ["one"]}), tmp_path / "3.parquet")
    with pytest.raises(FormatError, match=r"Field n has incompatible types: .* vs string"):
        read_table(tmp_path)


def test_arrow_files(table: pa.Table, tmp_path: Path) -> None:
    feather.write_feather(table, tmp_path / "t.feather")
    with pa.ipc.new_file(tmp_path / "t.arrow", table.schema) as writer:
        writer.write_table(table)
    pq.write_table(table, tmp_path / "t.parquet")
    found = [shown(read_table(tmp_path / f"t.{s}")) for s in ("feather", "arrow", "parquet")]
    assert found[0] == found[1] == found[2] == shown(table)


def test_rows_are_counted_by_the_footer(table: pa.Table, tmp_path: Path) -> None:
    pq.write_table(table, tmp_path / "t.parquet")
    source = open_file(tmp_path / "t.parquet")
    object.__setattr__(source, "read", None)
    assert source.count() == 600


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "csv.zst", "tsv", "txt"])
def test_the_same_rows_from_every_file(table: pa.Table, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t.{suffix}"
    text = pl.from_arrow(table).write_csv(separator="\t" if suffix == "tsv" else ",").encode()
    codec = {"gz": "gzip", "zst": "zstd"}.get(suffix.rpartition(".")[2])
    path.write_bytes(text if codec is None else pa.compress(text, codec, asbytes=True))
    assert shown(read_table(path)) == shown(table)
    features, labels = table.drop_columns(["kind"]), np.array(table["kind"].to_pylist())
    expected = NaiveBayesClassifier().fit(features, labels)
    found = NaiveBayesClassifier().fit(path, "kind")
    assert found.coding_ == expected.coding_
    np.testing.assert_array_equal(found.predict_proba(path), expected.predict_proba(features))


def test_a_kind_is_decided_by_all_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A column with few values in its first rows and many later is a measurement."""
    monkeypatch.setattr(sources, "BLOCK_ROWS", 100)
    rng = np.random.default_rng(0)
    levels = np.sort(rng.integers(0, 250, 1000))
    frame = pd.DataFrame({"level": levels, "late": ["1"] * 999 + ["x"], "y": levels % 2})
    for path in (tmp_path / "t.parquet", tmp_path / "t.csv"):
        frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path)
        table = read_table(path)
        assert table.column("level").kind == "numeric"
        assert table.column("late").categories == ("1", "x")


def test_dates_and_times(tmp_path: Path) -> None:
    days = [datetime.date(2024, 5, 31), None]
    stamps = [datetime.datetime(2024, 5, 31, 12, 30), None]
    for array in (
        pa.array(days),
        pa.array(stamps, pa.timestamp("us", tz="UTC")),
        pa.array(stamps, pa.timestamp("ns")),
    ):
        pq.write_table(pa.table({"d": array}), tmp_path / "t.parquet")
        assert read_table(tmp_path / "t.parquet").column("d").values.tolist() == [
            "2024-05-31",
            None,
        ]
    with pytest.raises(InputError, match="'t' holds times, durations or periods"):
        as_table(pa.table({"t": pa.array([datetime.time(1, 2)])}))


# --- text -----------------------------------------------------------------------------------------


def test_standard_input_is_a_file() -> None:
    """Which can be read again, with line numbers in errors."""
    stream = source_of_stream(_stream(b"u,v\n1,2\n3,4\n"))
    for _ in range(2):
        assert stream.whole().to_pydict() == {"u": ["1", "3"], "v": ["2", "4"]}
    with pytest.raises(FormatError, match="standard input, line 3: expected 2 fields, got 1"):
        source_of_stream(_stream(b"u,v\n1,2\n3\n")).whole()


def _stream(data: bytes) -> Any:
    import io

    return io.BytesIO(data)


def test_lines_of_errors_below_fields_with_line_ends(tmp_path: Path) -> None:
    """Lines are those of the file, not rows."""
    path = tmp_path / "t.csv"
    path.write_text("u,v\n" + '1,"x\ny"\n' * 30 + "2,z\n3\n")
    with pytest.raises(FormatError, match="line 63: expected 2 fields, got 1"):
        read_table(path)


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "a,b\n1,2\n1,2,3\n"])
def test_threads_of_arrow_are_waited_for(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would end the process with SIGABRT if they let go of Python while it shuts down."""
    held: list[Any] = []
    real = text_files.arrow_csv.open_csv

    def keep(*arguments: Any) -> Any:
        held.append(arguments)
        del arguments  # the traceback of an error would hold them as well
        return real(*held[0])

    class Clock:
        @staticmethod
        def monotonic() -> float:
            return 0.0

        @staticmethod
        def sleep(seconds: float) -> None:
            held.clear()

    monkeypatch.setattr(text_files.arrow_csv, "open_csv", keep)
    monkeypatch.setattr(text_files, "time", Clock)
    path = tmp_path / "t.csv"
    path.write_text(text)
    if "3" in text:
        with pytest.raises(FormatError, match="expected 2 fields, got 3"):
            read_table(path)
    else:
        assert read_table(path).n_rows == 1
    assert held == []


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "cp1252", "utf-8"])
def test_encodings(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("größe,v\nmüde,1\nfroh,2\n".encode(encoding))
    table = read_table(path, encoding=encoding)
    assert table.column("größe").values.tolist() == ["müde", "froh"]


def test_a_wrong_encoding_names_the_line_and_the_remedy(tmp_path: Path) -> None:
    """Within and beyond the first bytes."""
    path = tmp_path / "t.csv"
    for n_rows in (1, 300_000):
        path.write_bytes(b"u,v\n" + b"froh,1\n" * n_rows + b"m\xfcde,2\n")
        with pytest.raises(
            FormatError, match=rf"line {n_rows + 2}: byte 0xfc is not UTF-8; .* name its encoding"
        ):
            read_table(path)
    with pytest.raises(InputError, match="encoding must be one that Python knows"):
        read_table(path, encoding="klingon")


def test_quotes_after_a_space(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('u, v\n1, "a, b"\n2, "c"\n')
    assert read_table(path).column("v").values.tolist() == ["a, b", "c"]


def test_a_row_that_never_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A field that is longer than a row may be is refused, with the line and the likely reason."""
    monkeypatch.setattr(text_files, "MAX_ROW_BYTES", 1 << 16)
    path = tmp_path / "t.csv"
    path.write_text("u,v\n1,2\n" + '3,"' + "x" * (1 << 18))
    with pytest.raises(FormatError, match=r"line 3: .*quote not closed"):
        read_table(path)
    path.write_text("u,v\n1,2\n3," + "x" * (1 << 18) + "\n")
    with pytest.raises(FormatError, match=r"t\.csv.*(larger|longer)"):
        read_table(path)


def test_a_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "MAX_SAFE_BYTES", 1 << 20)
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"u,v\n" + b"1,2\n" * (1 << 20)))
    with pytest.raises(FormatError, match=r"unpacks to more than .* unpack it yourself"):
        read_table(path)


def test_a_hundred_thousand_columns(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    n = 100_000
    path.write_text(",".join(f"c{i}" for i in range(n)) + "\n" + ",".join(["1"] * n) + "\n")
    source = open_file(path)
    assert len(source.names) == n
    assert source.whole(source.names[:3]).num_rows == 1


def test_numbers_are_those_of_python(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    numbers = rng.standard_normal(2000) * 10.0 ** rng.integers(-300, 300, 2000)
    texts = [repr(float(x)) for x in numbers]
    texts += ["", "NA", "0.1", "1e22", "9007199254740993", "123456789012345678901234567890", " 1 "]
    path = tmp_path / "t.csv"
    path.write_text("u,v\n" + "".join(f"{text},\n" for text in texts))
    expected = [float(t) if t not in ("", "NA") else np.nan for t in texts]
    np.testing.assert_array_equal(read_table(path).column("u").values, expected)


def test_what_is_in_memory_is_not_copied() -> None:
    array = pa.array(np.arange(20) + 0.5)
    column = as_table(source_of_memory(pa.table({"n": array}))).columns[0]
    assert column.numbers.__array_interface__["data"][0] == array.buffers()[1].address


def test_rows_are_read_once_if_they_are_few(
    table: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then later passes over the same columns read nothing; longer tables are read again."""
    passes: list[tuple[str, ...]] = []
    names = tuple(table.column_names)

    def read(wanted: Any) -> Any:
        passes.append(tuple(wanted))
        yield from table.select(list(wanted)).to_batches(max_chunksize=2)

    source = Source(names, read)
    remembering = source.remembering()
    next(iter(remembering.read(names)))  # a pass that does not end keeps nothing
    first = remembering.whole()
    assert remembering.whole().equals(first)
    assert remembering.whole(names[-1:]).equals(first.select(names[-1:]))
    assert passes == [names, names]
    monkeypatch.setattr(sources, "KEPT_BYTES", 10)
    remembering = source.remembering()
    assert remembering.whole().equals(remembering.whole())
    assert len(passes) == 4


def test_a_thousand_files_are_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And their rows are looked at in blocks, not file by file."""
    opened, blocks = [], []
    for k in range(1000):
        pq.write_table(
            pa.table({"u": [f"{k % 7}", "x"], "v": [0.5 + k, k]}), tmp_path / f"{k}.parquet"
        )
    file = pq.ParquetFile
    monkeypatch.setattr(pq, "ParquetFile", lambda *a, **b: opened.append(a) or file(*a, **b))
    stream = as_stream(tmp_path)
    assert stream is not None
    remembering = stream.remembering()
    for _ in range(2):
        blocks += [*remembering.each(lambda block, row: (block.num_rows, row))]
    assert len(opened) == 1000
    assert blocks == [(2000, 0)] * 2
