"""Tables for tests: files by hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from marginbn.cli.data import write_csv_chunks


def write_rows(target: Any, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    lines = [[None if v is None or v != v else str(v) for v in row] for row in rows]
    columns = zip(*lines, strict=True) if lines else [[] for _ in names]
    arrays = [pa.array(list(column), pa.string()) for column in columns]
    write_csv_chunks(target, [pa.Table.from_arrays(arrays, names=[*names])])
