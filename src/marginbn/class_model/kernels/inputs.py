"""Records that the compiled loops read; they are made without a compiler."""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from marginbn.problem.array_types import FloatArray, IntArray

Codes = NDArray[Any]
"""uint8 or uint16 (features, rows); the number after the last cell of a feature is unknown."""


class TableLayout(NamedTuple):
    """Tables A V B' of a class model in flat arrays; V holds the parameters of a table.

    Parameters
    ----------
    features, sides
        int64 (tables, 2), the two features of each table and the numbers of its sides A and B.
    cell_of, cell_start
        For each side its row for every code of the feature, and where these start.
    bases, base_start, shapes
        For each side its matrix row by row, where it starts, and its rows and columns.
    products, first_parameter
        Columns of A and B that each parameter multiplies, and the first parameter of each table.
        Parameter 0 is the offset.
    first_entry
        First entry of each table, and the end of the last.
    """

    features: IntArray
    sides: IntArray
    cell_of: IntArray
    cell_start: IntArray
    bases: FloatArray
    base_start: IntArray
    shapes: IntArray
    products: IntArray
    first_parameter: IntArray
    first_entry: IntArray


class Buckets(NamedTuple):
    """A counted network as a tree of buckets, in flat arrays.

    Parameters
    ----------
    prior, order, n_bins
        P(class), the features with those above first, and the number of bins of each.
    tables, table_start
        f_i row by row, axes (class, features above, own bin), and where it starts.
    above, strides, above_start
        Features above of each bucket, the distance of their bins in f_i, and where both start.
    below, below_start
        Features whose message a bucket receives, and where they start.
    bin_of, reach, cell_start
        Bin of each cell of a feature, share of this and the earlier cells of its bin in the
        training weight of the bin, and where both start.
    first_cell, bin_start
        First cell of each bin and the end of the last, and where these start.
    """

    prior: FloatArray
    order: IntArray
    n_bins: IntArray
    tables: FloatArray
    table_start: IntArray
    above: IntArray
    strides: IntArray
    above_start: IntArray
    below: IntArray
    below_start: IntArray
    bin_of: IntArray
    reach: FloatArray
    cell_start: IntArray
    first_cell: IntArray
    bin_start: IntArray
