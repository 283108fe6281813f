"""Compiled search for combinations of rows with even coefficients and an odd right-hand side.

Rows are given by the parity of their coefficients at the support of a point, the parity of their
right-hand side and their slack. Adding rows adds parities and slacks. Columns are cleared one by
one, those of the largest mass first: a row without slack that is odd there is added to all others
that are. What remains is judged by its *loss*, the slack plus the mass of the odd columns: an odd
right-hand side and a loss below one make a violated cut (:class:`~..rows.HalfCut`), with violation
(1 - loss) / 2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from marginbn.solvers.branch_cut.arrays import BoolArray, FloatArray, IntArray
from marginbn.solvers.branch_cut.kernels.separation import next_random
from marginbn.solvers.compile import entry, kernel


class Parities(NamedTuple):
    """Rows modulo two."""

    odd: BoolArray  # (R, S) coefficients
    odd_rhs: BoolArray  # (R,)
    slack: FloatArray  # (R,)
    mass: FloatArray  # (S,)


@kernel
def _loss(rows: Parities, r: int, enough: float) -> float:
    """Slack and mass of the odd columns, or something from ``enough`` on."""
    total: float = rows.slack[r]
    for s in range(rows.mass.size):
        if rows.odd[r, s]:
            total += rows.mass[s]
            if total >= enough:
                break
    return total


@kernel
def _pair_loss(rows: Parities, a: int, b: int, enough: float) -> float:
    """The same for the sum of two rows."""
    total: float = rows.slack[a] + rows.slack[b]
    for s in range(rows.mass.size):
        if rows.odd[a, s] != rows.odd[b, s]:
            total += rows.mass[s]
            if total >= enough:
                break
    return total


@kernel
def _clear(rows: Parities, used: BoolArray, is_pivot: BoolArray, order: IntArray) -> None:
    """Clear columns by rows without slack, in the given order."""
    n_rows = rows.odd_rhs.size
    for place in range(order.size):
        s = order[place]
        pivot, fewest = -1, rows.mass.size + 1
        for r in range(n_rows):
            if rows.odd[r, s] and not is_pivot[r] and rows.slack[r] <= 1e-7:
                count = rows.odd[r].sum()
                if count < fewest:
                    pivot, fewest = r, count
        if pivot < 0:
            continue
        is_pivot[pivot] = True
        for r in range(n_rows):
            if r != pivot and rows.odd[r, s] and not is_pivot[r]:
                rows.odd[r] ^= rows.odd[pivot]
                used[r] ^= used[pivot]
                rows.odd_rhs[r] ^= rows.odd_rhs[pivot]


@entry
def halve(
    rows: Parities, most_loss: float, tries: int, room: int, state: IntArray
) -> tuple[BoolArray, FloatArray]:
    """Combinations (F, R) of rows and their losses (F,); at most ``room``.

    The first try clears columns by falling mass, others shake that order.
    """
    n_rows, n_columns = rows.odd.shape
    found, losses, count = np.zeros((room, n_rows), dtype=np.bool_), np.zeros(room), 0
    for attempt in range(tries):
        work = Parities(rows.odd.copy(), rows.odd_rhs.copy(), rows.slack, rows.mass)
        used = np.eye(n_rows) > 0.5
        is_pivot = np.zeros(n_rows, dtype=np.bool_)
        keys = -rows.mass.copy()
        if attempt > 0:
            for s in range(n_columns):
                keys[s] *= 0.5 + (next_random(state) % 1024) / 1024.0
        _clear(work, used, is_pivot, np.argsort(keys))
        for a in range(n_rows):
            if is_pivot[a] or count >= room:
                continue
            if work.odd_rhs[a]:
                loss = _loss(work, a, most_loss)
                if loss < most_loss:
                    count = _note(found, losses, count, used[a], loss)
            for b in range(a + 1, n_rows):
                if count >= room:
                    break
                if is_pivot[b] or work.odd_rhs[a] == work.odd_rhs[b]:
                    continue
                loss = _pair_loss(work, a, b, most_loss)
                if loss < most_loss:
                    count = _note(found, losses, count, used[a] ^ used[b], loss)
    return found[:count], losses[:count]


@kernel
def _note(
    found: BoolArray, losses: FloatArray, count: int, combination: BoolArray, loss: float
) -> int:
    """Append a combination unless it is there; the new number of them."""
    for a in range(count):
        if (found[a] == combination).all():
            return count
    found[count] = combination
    losses[count] = loss
    return count + 1
