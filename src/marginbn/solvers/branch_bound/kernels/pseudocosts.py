"""Pseudo-costs, the gains of splits so far (without them proofs take x1.57, at worst x3.6).

The degradation of f towards a child of a candidate (``branching.py``) is cheap, and leaves out how
the rest of the structure gives way. How much of it is left as a gain is learned from the tree, per
candidate and child:

    gain = mid(parent) - mid(child),      mid = (D + max(f(eta), cutoff)) / 2,

the middle of the bracket in which the relaxation of a box lies. Bounds alone would not do: they
also fall because an iteration more was made. A child that is pruned or empty counts as
``mid(parent) - cutoff``. With r0 the ratio of all gains to all degradations of candidates of this
kind and child, and m the mean degradation of this candidate and child,

    ratio = (sum of gains + PRIOR m r0) / (sum of degradations + PRIOR m),

and the gain to expect is the degradation times the ratio, no more than ``mid - cutoff``, which ends
the box.

The table is one array: (candidates and kinds, 2 children, sums of gains and of degradations and
their number). Several workers write to it without locks: an update that is lost changes the order
of the search, never what it proves.
"""

from __future__ import annotations

import numpy as np

from marginbn.problem.array_types import FloatArray
from marginbn.solvers.branch_bound.kernels.combination import BoundState
from marginbn.solvers.compile import kernel, shared

NONE, SLOT, EDGE, RELEVANCE, MEMBER = 0, 1, 2, 3, 4
"""Kinds of candidates."""

GAIN, DEGRADATION, COUNT = 0, 1, 2
"""Columns of the table."""

PRIOR = 2.0
"""Observations that the ratio of the kind counts as."""

RECENT = 0.02
"""Weight of the newest gain in the running mean."""


@shared
def new_pseudocosts(n: int) -> FloatArray:
    """An empty table for n features."""
    return np.zeros((2 * n * (n + 3) + 5, 2, 3))


@shared
def row_of(n: int, kind: int, i: int, j: int) -> int:
    """Row of a candidate."""
    if kind <= EDGE:
        return (kind - SLOT) * n * (n + 2) + i * (n + 2) + j
    return 2 * n * (n + 2) + (kind - RELEVANCE) * n + i


@shared
def kind_of(n: int, row: int) -> int:
    """Kind of the candidate in a row."""
    if row < 2 * n * (n + 2):
        return SLOT + row // (n * (n + 2))
    return RELEVANCE + (row - 2 * n * (n + 2)) // n


@shared
def observe(
    gains: FloatArray, n: int, row: int, side: int, gain: float, degradation: float
) -> None:
    """Add an observation; without an incumbent the gain of a pruned box is not known."""
    if not np.isfinite(gain):
        return
    gain = max(gain, 0.0)
    kinds = gains.shape[0] - 5
    for place in (row, kinds + kind_of(n, row)):
        gains[place, side, GAIN] += gain
        gains[place, side, DEGRADATION] += degradation
        gains[place, side, COUNT] += 1.0
    recent = gains[kinds + NONE, 0, GAIN]
    gains[kinds + NONE, 0, GAIN] = gain if recent == 0.0 else recent + RECENT * (gain - recent)


@shared
def recent_gain(gains: FloatArray) -> float:
    """Running mean of all gains, 0 before the first."""
    return float(gains[gains.shape[0] - 5, 0, GAIN])


@kernel
def ratio_of(gains: FloatArray, n: int, row: int, side: int) -> float:
    """How much of a degradation towards a child of a candidate becomes a gain."""
    kind = gains.shape[0] - 5 + kind_of(n, row)
    usual = 1.0
    if gains[kind, side, DEGRADATION] > 0.0:
        usual = gains[kind, side, GAIN] / gains[kind, side, DEGRADATION]
    count = gains[row, side, COUNT]
    if count == 0.0:
        return usual
    prior = PRIOR * gains[row, side, DEGRADATION] / count
    return float((gains[row, side, GAIN] + prior * usual) / (gains[row, side, DEGRADATION] + prior))


@kernel
def observations(gains: FloatArray, row: int) -> float:
    """The smaller number of observations of the two children."""
    return float(min(gains[row, 0, COUNT], gains[row, 1, COUNT]))


@shared
def midpoint(state: BoundState, cutoff: float) -> float:
    """mid of a box that was bounded."""
    lower = max(state.relaxed, cutoff)
    return float(max(cutoff, 0.5 * (state.bound + lower))) if lower > -np.inf else state.bound
