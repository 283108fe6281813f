"""Rows with unknown features: posterior of the counted network, and draws of what is unknown.

A counted network over bins is laid out as a tree of buckets, one per feature i: a table

    f_i(c, s, x)    of the class c, the bins s of some features above i, and the bin x of i.

Their product with P(c) is the network; in a tree-augmented one f_i is P(x | c, parent) itself.
Messages go up the tree,

    b_i(c, s, x) = f_i(c, s, x) * product of the messages of the features directly below i
    m_i(c, s)    = sum of b_i(c, s, x) over the bins x that agree with the row,

and the posterior G of the network is P(c) times the messages of the features at the top. Draws come
down again: the class from G, then each unknown feature from b_i(c, s, .), exactly distributed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginbn.class_model.kernels.inputs import Buckets, Codes
from marginbn.problem.array_types import FloatArray, IntArray
from marginbn.solvers.compile import entry, kernel


class PartialRow(NamedTuple):
    """A row while it is answered: cells and bins, which of them are known, running sums of b."""

    cells: IntArray
    bins: IntArray
    is_known: NDArray[np.uint8]
    sums: FloatArray


@kernel
def find_place(buckets: Buckets, row: PartialRow, i: int, c: int) -> int:
    """Where bucket i has its entries for class c and the bins of the features above."""
    start, stop = buckets.table_start[i], buckets.table_start[i + 1]
    place = start + c * ((stop - start) // len(buckets.prior))
    for k in range(buckets.above_start[i], buckets.above_start[i + 1]):
        place += row.bins[buckets.above[k]] * buckets.strides[k]
    return int(place)


@kernel
def message(buckets: Buckets, row: PartialRow, i: int, c: int) -> float:
    """m_i for class c and the bins of the features above, once it is sent."""
    return float(row.sums[find_place(buckets, row, i, c) + buckets.n_bins[i] - 1])


@kernel
def advance(buckets: Buckets, row: PartialRow, i: int) -> bool:
    """Move on to the next bins of the unknown features above i; False after the last."""
    for k in range(buckets.above_start[i], buckets.above_start[i + 1]):
        v = buckets.above[k]
        if not row.is_known[v]:
            row.bins[v] += 1
            if row.bins[v] < buckets.n_bins[v]:
                return True
            row.bins[v] = 0
    return False


@kernel
def send(buckets: Buckets, row: PartialRow, i: int) -> None:
    """Fill in the running sums of b_i over its bins; the last one is the message.

    All are divided by the largest message, so that long products stay in range.
    """
    n, own, largest = buckets.n_bins[i], row.bins[i], 0.0
    more = True
    while more:
        for c in range(len(buckets.prior)):
            place, total = find_place(buckets, row, i, c), 0.0
            for x in range(n):
                if not row.is_known[i] or x == own:
                    row.bins[i] = x
                    value = buckets.tables[place + x]
                    for k in range(buckets.below_start[i], buckets.below_start[i + 1]):
                        value *= message(buckets, row, buckets.below[k], c)
                    total += value
                row.sums[place + x] = total
            largest = max(largest, total)
        more = advance(buckets, row, i)
    row.bins[i] = own
    more = largest > 0.0
    while more:
        for c in range(len(buckets.prior)):
            place = find_place(buckets, row, i, c)
            row.sums[place : place + n] /= largest
        more = advance(buckets, row, i)


@kernel
def ask_network(buckets: Buckets, row: PartialRow, posterior: FloatArray) -> None:
    """Fill in G, and the running sums of all buckets."""
    posterior[:] = buckets.prior
    for i in buckets.order[::-1]:
        send(buckets, row, i)
        if buckets.above_start[i] == buckets.above_start[i + 1]:
            for c in range(len(posterior)):
                posterior[c] *= message(buckets, row, i, c)
            posterior /= posterior.sum()


@kernel
def pick(sums: FloatArray, target: float) -> int:
    """The first of the running sums that is above the target."""
    for k in range(len(sums) - 1):
        if sums[k] > target:
            return k
    return len(sums) - 1


@kernel
def draw(buckets: Buckets, row: PartialRow, i: int, c: int, point: float) -> None:
    """Draw bin and cell of feature i. What the bin leaves of the point chooses the cell."""
    place = find_place(buckets, row, i, c)
    sums = row.sums[place : place + buckets.n_bins[i]]
    target = point * sums[-1]
    x = pick(sums, target)
    before = sums[x - 1] if x > 0 else 0.0
    rest = (target - before) / max(sums[x] - before, 1e-300)
    first, stop = buckets.first_cell[buckets.bin_start[i] + x : buckets.bin_start[i] + x + 2]
    start = buckets.cell_start[i]
    row.bins[i] = x
    row.cells[i] = first + pick(buckets.reach[start + first : start + stop], rest)


@entry
def draw_rows(
    buckets: Buckets, points: FloatArray, codes: Codes, posterior: FloatArray, drawn: Codes
) -> None:
    """Fill in G (rows, classes), and draws of what is unknown in each row, one after the other.

    Of a code beyond unknown only the bin is known: its cell is drawn, too.
    """
    d, n_draws = len(buckets.order), len(points)
    numbers = np.empty((2, d), np.int64)
    row = PartialRow(numbers[0], numbers[1], np.empty(d, np.uint8), np.empty(len(buckets.tables)))
    for r in range(codes.shape[1]):
        for i in range(d):
            start, stop = buckets.cell_start[i], buckets.cell_start[i + 1]
            row.cells[i] = codes[i, r]
            row.is_known[i] = start + row.cells[i] != stop
            row.bins[i] = 0
            if start + row.cells[i] < stop:
                row.bins[i] = buckets.bin_of[start + row.cells[i]]
            elif row.is_known[i]:
                row.bins[i] = start + row.cells[i] - stop - 1
        ask_network(buckets, row, posterior[r])
        reached = np.cumsum(posterior[r])
        for m in range(n_draws):
            c = pick(reached, points[m, 0] * reached[-1])
            for i in buckets.order:
                if codes[i, r] >= buckets.cell_start[i + 1] - buckets.cell_start[i]:
                    draw(buckets, row, i, c, points[m, 1 + i])
                drawn[i, r * n_draws + m] = row.cells[i]
