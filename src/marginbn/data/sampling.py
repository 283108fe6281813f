"""A fixed sample of rows: what is decided by some of the rows is decided by these.

Every row has a key, a hash of its number in the table, and the rows of the smallest keys are the
sample. So the sample depends on nothing but the number of rows: it is the same whether a table is
in memory, in a file or on a cluster, and a part of a table knows which of its rows may belong.

A share estimated from the sample has a standard error of at most 1 / (2 sqrt(250 000)) = 0.1 %.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from marginbn.exceptions import DataWarning

SAMPLE_ROWS = 250_000
"""Rows of the sample; a table of no more rows is its own sample."""


def row_keys(first_row: int, n_rows: int) -> NDArray[np.uint64]:
    """Keys of consecutive rows: the finaliser of splitmix64, a bijection of 64 bits."""
    keys = np.arange(first_row + 1, first_row + n_rows + 1, dtype=np.uint64)
    keys *= np.uint64(0x9E3779B97F4A7C15)
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))


def sampled_rows(n_rows: int) -> NDArray[np.intp] | None:
    """Rows of the sample of so many rows, in their order; None if it is all of them."""
    if n_rows <= SAMPLE_ROWS:
        return None
    keys = row_keys(0, n_rows)
    return np.flatnonzero(keys <= np.partition(keys, SAMPLE_ROWS - 1)[SAMPLE_ROWS - 1])


@dataclass
class RowSample:
    """Rows that belong to the sample as far as is known, with their numbers and keys."""

    parts: list[pa.Table] = field(default_factory=list)
    rows: list[NDArray[np.int64]] = field(default_factory=list)
    keys: list[NDArray[np.uint64]] = field(default_factory=list)
    n_kept: int = 0

    def add(self, block: pa.Table, first_row: int, largest: np.uint64 | None = None) -> None:
        """Take rows of a block, only those of keys up to the ``largest`` if it is known."""
        keys = row_keys(first_row, block.num_rows)
        if largest is not None:
            chosen = keys <= largest
            block, keys = block.filter(pa.array(chosen)), keys[chosen]
            rows = first_row + np.flatnonzero(chosen)
        else:
            rows = first_row + np.arange(block.num_rows)
        self.parts.append(block)
        self.rows.append(rows)
        self.keys.append(keys)
        self.n_kept += len(keys)

    def merge(self, other: RowSample) -> None:
        """Take over the rows of another part of the table."""
        self.parts += other.parts
        self.rows += other.rows
        self.keys += other.keys
        self.n_kept += other.n_kept
        if self.n_kept > 2 * SAMPLE_ROWS:
            self.prune()

    def prune(self) -> None:
        """Leave no more rows than the sample has."""
        if self.n_kept <= SAMPLE_ROWS:
            return
        limit = np.partition(np.concatenate(self.keys), SAMPLE_ROWS - 1)[SAMPLE_ROWS - 1]
        chosen = [keys <= limit for keys in self.keys]
        self.parts = [p.filter(pa.array(c)) for p, c in zip(self.parts, chosen, strict=True)]
        self.rows = [r[c] for r, c in zip(self.rows, chosen, strict=True)]
        self.keys = [k[c] for k, c in zip(self.keys, chosen, strict=True)]
        self.n_kept = sum(map(len, self.keys))

    @property
    def table(self) -> pa.Table:
        """The rows of the sample."""
        return pa.concat_tables(self.parts, promote_options="permissive")

    @property
    def positions(self) -> NDArray[np.int64]:
        """Their numbers."""
        return np.concatenate(self.rows)


def largest_key(n_rows: int | None) -> np.uint64 | None:
    """A key that nearly surely no row of the sample exceeds; None if the number of rows is not
    known, or all rows belong to it.
    """
    if n_rows is None or n_rows <= SAMPLE_ROWS:
        return None
    expected, spread = SAMPLE_ROWS / n_rows, 10 * np.sqrt(SAMPLE_ROWS) / n_rows
    return np.uint64(min(expected + spread, 1.0) * (2**64 - 1025))


def report_sample(names: Sequence[str], n_rows: int, stacklevel: int) -> None:
    """Say which columns are cut by the sample."""
    if names:
        listed = ", ".join(map(repr, names[:10]))
        warnings.warn(
            f"the bins of {len(names)} numeric columns ({listed}) come from {SAMPLE_ROWS} of "
            f"{n_rows} rows, drawn at random with a fixed seed",
            DataWarning,
            stacklevel=stacklevel + 1,
        )
