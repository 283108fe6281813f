"""Chunks written as CSV and Parquet hold what was given."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pytest

from marginbn.cli.data import write_csv_chunks, write_parquet_chunks

CHUNKS = [
    pa.table({"id": ["a,b", '"'], "n": [0.1, None], "class": ["=1+1", None]}),
    pa.table({"id": [None, "c"], "n": [1e-300, 2.0], "class": ["no", "=1+1"]}),
]


def test_csv_of_several_chunks() -> None:
    stream = io.StringIO()
    write_csv_chunks(stream, CHUNKS)
    lines = ["id,n,class", '"a,b",0.1,=1+1', '"""",,', ",1e-300,no", "c,2,=1+1"]
    assert stream.getvalue().splitlines() == lines


def test_parquet_keeps_types(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "out.parquet"
    write_parquet_chunks(path, CHUNKS)
    assert parquet.read_table(path).to_pydict() == pa.concat_tables(CHUNKS).to_pydict()
