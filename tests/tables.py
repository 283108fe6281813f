"""Tables for tests: files by hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from marginbn.data.writers import write_csv_chunks


def write_rows(target: Any, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write rows as CSV."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    write_csv_chunks(target, names, [columns] if columns else [])
