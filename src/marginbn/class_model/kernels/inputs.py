"""Records that the compiled loops read; they are made without a compiler."""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from marginbn.problem.array_types import FloatArray, IntArray

Codes = NDArray[Any]
"""uint8 or uint16 (features, rows); the number after the last cell of a feature is unknown."""


class TableLayout(NamedTuple):
    """Tables A V B' of a class model in flat arrays; V holds the parameters of a table."""

    features: IntArray  # (tables, 2), the two features of each table
    sides: IntArray  # (tables, 2), the numbers of its sides A and B
    cell_of: IntArray  # for each side its row for every code of the feature
    cell_start: IntArray  # where these start
    bases: FloatArray  # for each side its matrix row by row
    base_start: IntArray
    shapes: IntArray  # (sides, 2), its rows and columns
    products: IntArray  # columns of A and B that each parameter multiplies
    first_parameter: IntArray  # of each table; parameter 0 is the offset
    first_entry: IntArray  # of each table, and the end of the last


class Buckets(NamedTuple):
    """A counted network as a tree of buckets, in flat arrays."""

    prior: FloatArray  # P(class)
    order: IntArray  # the features, those above first
    n_bins: IntArray  # of each feature
    tables: FloatArray  # f_i row by row, axes (class, features above, own bin)
    table_start: IntArray
    above: IntArray  # features above of each bucket
    strides: IntArray  # the distance of their bins in f_i
    above_start: IntArray  # of both
    below: IntArray  # features whose message a bucket receives
    below_start: IntArray
    bin_of: IntArray  # bin of each cell of a feature
    reach: FloatArray  # share of this and the earlier cells of its bin in the weight of the bin
    cell_start: IntArray  # of both
    first_cell: IntArray  # first cell of each bin, and the end of the last
    bin_start: IntArray
