"""Chunks written as CSV and Parquet hold what was given."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from marginbn.data.writers import Coded, write_csv_chunks, write_parquet_chunks

NAMES = ["id", "n", "class"]
CHUNKS = [
    [["a,b", '"'], np.array([0.1, np.nan]), Coded(np.array([1, -1]), ["no", "=1+1"])],
    [["", "c"], np.array([1e-300, 2.0]), Coded(np.array([0, 1]), ["no", "=1+1"])],
]


@pytest.mark.parametrize("for_spreadsheets", [False, True])
def test_csv_of_several_chunks(for_spreadsheets: bool) -> None:
    """Awkward texts in quotes, missing values empty, formulas made harmless if that is asked."""
    stream = io.StringIO()
    write_csv_chunks(stream, NAMES, CHUNKS, for_spreadsheets=for_spreadsheets)
    formula = "'=1+1" if for_spreadsheets else "=1+1"
    lines = ["id,n,class", f'"a,b",0.1,{formula}', '"""",,', ",1e-300,no", f"c,2.0,{formula}"]
    assert stream.getvalue().splitlines() == lines


def test_a_single_empty_field_is_a_row() -> None:
    """An empty line would be none."""
    stream = io.StringIO()
    write_csv_chunks(stream, ["class"], [[Coded(np.array([0, 1, -1]), ["", "a"])]])
    assert stream.getvalue() == 'class\n""\na\n""\n'


def test_parquet_keeps_types(tmp_path: Path) -> None:
    """Numbers, texts and missing values come back."""
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "out.parquet"
    write_parquet_chunks(path, NAMES, CHUNKS)
    found = parquet.read_table(path).to_pydict()
    assert found["id"] == ["a,b", '"', "", "c"]
    assert found["class"] == ["=1+1", None, "no", "=1+1"]
    np.testing.assert_array_equal(found["n"], [0.1, np.nan, 1e-300, 2.0])
    write_parquet_chunks(path, ["y"], [[Coded(np.array([1, 0]), [3, 7])]])
    assert parquet.read_table(path).to_pydict() == {"y": [7, 3]}
