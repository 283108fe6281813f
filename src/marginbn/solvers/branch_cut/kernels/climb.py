"""Compiled local search over selections of arbitrary candidates.

``rows`` (R, K) holds the margin coefficients, R = samples x rivals, one contiguous row of all
candidates per margin row, so that all candidates of one variable are scored in one pass: with
``margins`` the margin rows of the selection,

    value(k) = linear_k + sum_m w_m min(gamma, min_c margins_mc - rows[mc, k_i] + rows[mc, k]).

Moves: the best candidate of one variable that closes no cycle; the reversal of one arc j -> i
(the best candidate of i without j, then the best of j with i). Kicks are random feasible
candidates of a few variables. ``stop`` (1,) is a flag that another thread may raise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from marginbn.solvers.branch_cut.kernels.compile import kernel
from marginbn.solvers.branch_cut.kernels.separation import next_random

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


class Landscape(NamedTuple):
    """What the objective is made of."""

    rows: FloatArray  # (R, K)
    linear: FloatArray  # (K,)
    weights: FloatArray  # (M,)
    gamma: float
    n_rivals: int
    offsets: IntArray  # (n + 1,)
    members: IntArray  # (K, P), padded with -1


@kernel
def margins_of(land: Landscape, chosen: IntArray, margins: FloatArray) -> None:
    """Margin rows of a selection."""
    for r in range(margins.size):
        total = 0.0
        for i in range(chosen.size):
            total += land.rows[r, chosen[i]]
        margins[r] = total


@kernel
def value_of(land: Landscape, chosen: IntArray, margins: FloatArray) -> float:
    """Objective of a selection with these margins."""
    total = 0.0
    for i in range(chosen.size):
        total += land.linear[chosen[i]]
    for m in range(land.weights.size):
        least = land.gamma
        for r in range(m * land.n_rivals, (m + 1) * land.n_rivals):
            least = min(least, margins[r])
        total += land.weights[m] * least
    return total


@kernel
def group_values(
    land: Landscape, chosen: IntArray, margins: FloatArray, i: int, values: FloatArray
) -> None:
    """Objective after exchanging the candidate of i, for each of its candidates."""
    first, last = land.offsets[i], land.offsets[i + 1]
    size = last - first
    least = np.empty(size)
    base = 0.0
    for j in range(chosen.size):
        if j != i:
            base += land.linear[chosen[j]]
    for a in range(size):
        values[a] = base + land.linear[first + a]
    for m in range(land.weights.size):
        least[:] = land.gamma
        for r in range(m * land.n_rivals, (m + 1) * land.n_rivals):
            row = land.rows[r]
            rest = margins[r] - row[chosen[i]]
            for a in range(size):
                least[a] = min(least[a], rest + row[first + a])
        weight = land.weights[m]
        for a in range(size):
            values[a] += weight * least[a]


@kernel
def descendants(members: IntArray, chosen: IntArray, i: int, below: BoolArray) -> None:
    """Mark i and everything reached from it."""
    below[:] = False
    below[i] = True
    changed = True
    while changed:
        changed = False
        for v in range(chosen.size):
            if not below[v] and holds_any(members, chosen[v], below):
                below[v] = True
                changed = True


@kernel
def holds_any(members: IntArray, k: int, marked: BoolArray) -> bool:
    """Whether candidate k has a marked member."""
    for p in range(members.shape[1]):
        if members[k, p] < 0:
            break
        if marked[members[k, p]]:
            return True
    return False


@kernel
def holds(members: IntArray, k: int, parent: int) -> bool:
    """Whether candidate k contains ``parent``."""
    found = False
    for p in range(members.shape[1]):
        found = found or members[k, p] == parent
    return found


@kernel
def exchange(land: Landscape, chosen: IntArray, margins: FloatArray, i: int, k: int) -> None:
    """Give variable i the candidate k."""
    old = chosen[i]
    for r in range(margins.size):
        margins[r] += land.rows[r, k] - land.rows[r, old]
    chosen[i] = k


@kernel
def _best_of(
    land: Landscape, values: FloatArray, i: int, below: BoolArray, with_: int, without: int
) -> int:
    """Best candidate of i without marked member, with and without given parents (-1: any)."""
    best, best_value = -1, -np.inf
    for k in range(land.offsets[i], land.offsets[i + 1]):
        value = values[k - land.offsets[i]]
        if value <= best_value or holds_any(land.members, k, below):
            continue
        if with_ >= 0 and not holds(land.members, k, with_):
            continue
        if without >= 0 and holds(land.members, k, without):
            continue
        best, best_value = k, value
    return best


@kernel
def _improve_variable(
    land: Landscape,
    chosen: IntArray,
    margins: FloatArray,
    i: int,
    values: FloatArray,
    below: BoolArray,
) -> bool:
    """Take the best feasible candidate of i."""
    group_values(land, chosen, margins, i, values)
    descendants(land.members, chosen, i, below)
    best = _best_of(land, values, i, below, -1, -1)
    now = values[chosen[i] - land.offsets[i]]
    if best < 0 or not values[best - land.offsets[i]] > now + 1e-9 * abs(now):
        return False
    exchange(land, chosen, margins, i, best)
    return True


@kernel
def _reverse_arc(
    land: Landscape,
    chosen: IntArray,
    margins: FloatArray,
    j: int,
    i: int,
    values: FloatArray,
    below: BoolArray,
) -> bool:
    """Try i -> j instead of j -> i; undone unless it is an improvement."""
    before = value_of(land, chosen, margins)
    old_i, old_j = chosen[i], chosen[j]
    group_values(land, chosen, margins, i, values)
    descendants(land.members, chosen, i, below)
    k = _best_of(land, values, i, below, -1, j)
    if k < 0:
        return False
    exchange(land, chosen, margins, i, k)
    group_values(land, chosen, margins, j, values)
    descendants(land.members, chosen, j, below)
    k = _best_of(land, values, j, below, i, -1)
    if k >= 0 and values[k - land.offsets[j]] > before + 1e-9 * abs(before):
        exchange(land, chosen, margins, j, k)
        return True
    exchange(land, chosen, margins, i, old_i)
    chosen[j] = old_j
    return False


@kernel
def climb(land: Landscape, chosen: IntArray, margins: FloatArray, stop: IntArray) -> float:
    """Improve ``chosen`` to a local optimum; returns its value."""
    n = chosen.size
    values = np.empty((land.offsets[1:] - land.offsets[:-1]).max())
    below = np.zeros(n, dtype=np.bool_)
    margins_of(land, chosen, margins)
    improved = True
    while improved and stop[0] == 0:
        improved = False
        for i in range(n):
            if stop[0] == 0 and _improve_variable(land, chosen, margins, i, values, below):
                improved = True
        if improved:
            continue
        for i in range(n):
            for p in range(land.members.shape[1]):
                j = land.members[chosen[i], p]
                if j < 0 or stop[0] != 0:
                    break
                if _reverse_arc(land, chosen, margins, j, i, values, below):
                    improved = True
                    break
    margins_of(land, chosen, margins)
    return value_of(land, chosen, margins)


@kernel
def kick(land: Landscape, chosen: IntArray, size: int, state: IntArray) -> None:
    """Give ``size`` random variables random candidates that close no cycle."""
    below = np.zeros(chosen.size, dtype=np.bool_)
    for _ in range(size):
        i = next_random(state) % chosen.size
        first = land.offsets[i]
        k = first + next_random(state) % (land.offsets[i + 1] - first)
        descendants(land.members, chosen, i, below)
        if not holds_any(land.members, k, below):
            chosen[i] = k


@kernel
def search_around(
    land: Landscape, best: IntArray, best_value: float, kicks: int, state: IntArray, stop: IntArray
) -> float:
    """Iterated local search from ``best``, which is overwritten; returns its value."""
    margins = np.zeros(land.rows.shape[0])
    trial = best.copy()
    for round_ in range(kicks):
        if stop[0] != 0:
            break
        trial[:] = best
        kick(land, trial, 2 + round_ % 4, state)
        value = climb(land, trial, margins, stop)
        if value > best_value + 1e-9 * abs(best_value):
            best[:] = trial
            best_value = value
    return best_value
