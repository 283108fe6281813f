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


@pytest.mark.parametrize("for_spreadsheets", [False, True])
def test_csv_of_several_chunks(for_spreadsheets: bool) -> None:
    """Awkward texts in quotes, missing values empty, formulas made harmless if that is asked."""
    stream = io.StringIO()
    write_csv_chunks(stream, CHUNKS, for_spreadsheets=for_spreadsheets)
    formula = "'=1+1" if for_spreadsheets else "=1+1"
    lines = ["id,n,class", f'"a,b",0.1,{formula}', '"""",,', ",1e-300,no", f"c,2,{formula}"]
    assert stream.getvalue().splitlines() == lines


def test_parquet_keeps_types(tmp_path: Path) -> None:
    """Numbers, texts and missing values come back."""
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "out.parquet"
    write_parquet_chunks(path, CHUNKS)
    assert parquet.read_table(path).to_pydict() == pa.concat_tables(CHUNKS).to_pydict()
