"""Branching candidates and their scores (without pseudo-costs x1.57, at worst x3.6; without edges
x1.27, at worst x1.96).

Every candidate has two children that together contain every structure of the box exactly once:

    SLOT (i, s)        feature i has slot s                        | has not
    EDGE (i, j)        i and j are joined, either way round        | are not
    RELEVANCE j        j is {} and no parent of the class          | is not (``relevant``)
    MEMBER j           j is a parent of the class                  | is not

An arc alone is a poor candidate: re-rooting the forest replaces it by its reverse at almost no
cost. So arcs are candidates only where the edge is already decided or the reverse is impossible.

The score of a candidate is the product of the gains to expect from its two children. They are
predicted from the *degradations* of f when eta is moved into either child, everything else
unchanged. With T_i the part of t that feature i contributes, e the share of eta in the first child
and delta the move into it:

    first child     t + delta
    second child    t - e / (1 - e) delta        (the average of the two children is t)

**Pseudo-costs.** How much of a degradation is left
as a gain once the rest of the structure has adapted is learned from the tree, per candidate and
child; ``docs/theory/search.rst`` says what a gain is. With r0 the ratio of all gains to all
degradations of candidates of this kind and child, and m the mean degradation of this candidate and
child,

    ratio = (sum of gains + PRIOR m r0) / (sum of degradations + PRIOR m),

and the gain to expect is the degradation times the ratio, no more than ``mid - cutoff``, which ends
the box. The table is one array: (candidates and kinds, 2 children, sums of gains and of
degradations and their number). Several workers write to it without locks: an update that is lost
changes the order of the search, never what it proves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from marginbn.problem.array_types import FloatArray, IntArray
from marginbn.solvers.branch_bound.kernels.box import is_member, keep_only_empty
from marginbn.solvers.branch_bound.kernels.combination import Bounding, BoundState, point_of
from marginbn.solvers.branch_bound.kernels.duals import value_along
from marginbn.solvers.branch_bound.kernels.records import (
    Box,
    Instance,
    add_scaled,
    column_of,
    count_rows,
    only_true,
)
from marginbn.solvers.compile import kernel, shared

NONE, SLOT, EDGE, RELEVANCE, MEMBER = 0, 1, 2, 3, 4
"""Kinds of candidates."""

GAIN, DEGRADATION, COUNT = 0, 1, 2
"""Columns of the table."""

PRIOR = 2.0
"""Observations that the ratio of the kind counts as."""

RECENT = 0.02
"""Weight of the newest gain in the running mean."""

SMALL = 0.03
"""Shares nearer to 0 (or 1) than this say too little about the candidate."""

LARGEST_SLOT = 0.999
"""The limit near 1 for slots. They are what remains to be split on where edges, relevance and
members are settled, so only those are left out that eta has settled too: there the step to the
second side, e / (1 - e), would be a thousand times the move to the first.
"""

TINY = 1e-9
"""Degradations below this part of f are rounding. They count as so much, so that a candidate with
one such child is still compared by its other child.
"""


LEAST = 1e-3
"""Gains to expect count as at least this part of the largest possible one."""


class Ranking(NamedTuple):
    """Candidates that a box can be split on."""

    candidates: IntArray  # (m, 3) kind, i, j
    degradations: FloatArray  # (m, 2) of both children
    score: FloatArray  # (m,) product of the gains to expect


class Splitting(NamedTuple):
    """Scratch of the split selection."""

    eta: FloatArray  # (K,)
    parts: FloatArray  # (n + 1, R) what each feature (last: the class) contributes to t
    part_linear: FloatArray  # (n + 1,)
    t: FloatArray  # (R,) the sum of the parts
    delta: FloatArray  # (R,)
    member: FloatArray  # (n,) share of class sets containing the feature


@kernel
def _new_splitting(inst: Instance, b: Bounding) -> Splitting:
    """The relaxed solution and its parts T_i = sum_s eta_is A_is."""
    n, n_rows = inst.n_features, count_rows(inst)
    parts, part_linear, member = np.zeros((n + 1, n_rows)), np.zeros(n + 1), np.zeros(n)
    eta = point_of(inst, b)
    for v in range(eta.size):
        if eta[v] > 0.0:
            i = min(v // (n + 2 - inst.skipped), n)
            add_scaled(parts[i], eta[v], inst.columns[v])
            part_linear[i] += eta[v] * inst.linear[v]
    for s in range(inst.first.size):
        for j in (inst.first[s], inst.second[s]):
            if j >= 0:
                member[j] += eta[column_of(inst, n, s)]
    t = np.zeros(n_rows)
    for i in range(n + 1):
        add_scaled(t, 1.0, parts[i])
    return Splitting(eta, parts, part_linear, t, np.zeros(n_rows), member)


@kernel
def restrict(inst: Instance, box: Box, kind: int, i: int, j: int, first: bool) -> None:
    """Restrict a box to one side."""
    n = box.allowed.shape[0]
    if kind == SLOT:
        for s in range(n + 2):
            if first != (s == j):
                box.allowed[i, s] = False
    elif kind == EDGE:
        if first:
            box.edges[i, j] = True
            box.edges[j, i] = True
        else:
            box.allowed[i, j] = False
            box.allowed[j, i] = False
    elif kind == RELEVANCE and not first:
        box.relevant[i] = True
    else:
        if kind == RELEVANCE or first:
            keep_only_empty(box, i)
        wanted = kind == MEMBER and first
        for s in range(box.classes.size):
            if is_member(inst, i, s) != wanted:
                box.classes[s] = False


@kernel
def rank_candidates(
    inst: Instance, box: Box, b: Bounding, gains: FloatArray, room: float
) -> Ranking:
    """The candidates worth a split with their scores; none if every feature is decided. ``room`` is
    the largest gain possible.
    """
    candidates = list_candidates(inst, box)
    degradations, score = np.zeros((candidates.shape[0], 2)), np.zeros(candidates.shape[0])
    work = _new_splitting(inst, b)
    here = value_along(inst, 0.0, work.t, 0.0, work.delta)
    count = 0
    for k in range(candidates.shape[0]):
        kind, i, j = candidates[k, 0], candidates[k, 1], candidates[k, 2]
        share = _share(inst, work, kind, i, j)
        if share < SMALL or share > (LARGEST_SLOT if kind == SLOT else 1.0 - SMALL):
            continue
        if kind == SLOT and j < inst.n_features and box.allowed[j, i] and not box.edges[i, j]:
            continue  # the edge that is open says the same
        if kind == SLOT and j == inst.n_features + 1 and _relevance_is_open(box, i):
            continue
        first, second = _degradations(inst, work, here, share, kind, i, j)
        candidates[count, 0], candidates[count, 1], candidates[count, 2] = kind, i, j
        degradations[count, 0], degradations[count, 1] = first, second
        row = row_of(inst.n_features, kind, i, j)
        score[count] = _expected(first * ratio_of(gains, inst.n_features, row, 0), room)
        score[count] *= _expected(second * ratio_of(gains, inst.n_features, row, 1), room)
        count += 1
    if count > 0:
        return Ranking(candidates[:count], degradations[:count], score[:count])
    return _largest_choice(inst, box, work, Ranking(candidates, degradations, score))


@kernel
def _expected(gain: float, room: float) -> float:
    """A gain to expect, no more than is possible and no less than is worth telling apart."""
    return min(room, max(gain, LEAST * room)) if room < np.inf else max(gain, 0.0)


@kernel
def list_candidates(inst: Instance, box: Box) -> IntArray:
    """Every candidate (kind, i, j) both of whose children are smaller than the box."""
    n = box.allowed.shape[0]
    with_feature, n_sets = np.zeros(n + 1, dtype=np.int64), 0  # the last place stands for nobody
    for s in range(box.classes.size):
        if box.classes[s]:
            n_sets += 1
            with_feature[inst.first[s]] += 1
            with_feature[inst.second[s]] += 1
    candidates = np.empty((n * (2 * n + 4), 3), dtype=np.int64)  # n^2 edges, n (n + 2) slots, 2 n
    count = 0
    for i in range(n):
        for j in range(i):
            if box.allowed[i, j] and box.allowed[j, i] and not box.edges[i, j]:
                count = _append(candidates, count, EDGE, i, j)
    for j in range(n):
        # eta may lie outside the box after fixing, so it cannot say whether a side is empty
        splits = with_feature[j] > 0 or only_true(box.allowed[j]) < 0
        if _relevance_is_open(box, j) and with_feature[j] < n_sets and splits:
            count = _append(candidates, count, RELEVANCE, j, 0)
    for i in range(n):
        if only_true(box.allowed[i]) < 0:
            for s in range(n + 2):
                if box.allowed[i, s]:
                    count = _append(candidates, count, SLOT, i, s)
    for j in range(n):
        if 0 < with_feature[j] < n_sets:
            count = _append(candidates, count, MEMBER, j, 0)
    return candidates[:count]


@kernel
def _append(candidates: IntArray, count: int, kind: int, i: int, j: int) -> int:
    candidates[count, 0], candidates[count, 1], candidates[count, 2] = kind, i, j
    return count + 1


@kernel
def _relevance_is_open(box: Box, j: int) -> bool:
    n = box.allowed.shape[0]
    return box.allowed[j, n + 1] and not box.relevant[j]


@kernel
def _share(inst: Instance, work: Splitting, kind: int, i: int, j: int) -> float:
    """The share of eta on the first child of a candidate."""
    n = inst.n_features
    if kind == EDGE:
        return float(work.eta[column_of(inst, i, j)] + work.eta[column_of(inst, j, i)])
    if kind == RELEVANCE:
        return float(work.eta[column_of(inst, i, n + 1)] - work.member[i])
    return float(work.eta[column_of(inst, i, j)] if kind == SLOT else work.member[i])


@kernel
def _degradations(
    inst: Instance, work: Splitting, here: float, share: float, kind: int, i: int, j: int
) -> tuple[float, float]:
    """The degradations of both children; ``here`` is f(t)."""
    linear = _move_to_first_side(inst, work, kind, i, j)
    first = here - value_along(inst, linear, work.t, 1.0, work.delta)
    step = -share / (1.0 - share)
    if kind == MEMBER:  # its children differ in more than one part: the second is a move of its own
        work.delta[:] = 0.0
        linear, step = _condition_class(inst, work, i, False), 1.0
    second = here - value_along(inst, step * linear, work.t, step, work.delta)
    tiny = TINY * (inst.scale + abs(here))
    return max(first, tiny), max(second, tiny)


@kernel
def _move_to_first_side(inst: Instance, work: Splitting, kind: int, i: int, j: int) -> float:
    """Fill delta; returns the change of the linear scores."""
    n = inst.n_features
    if kind == EDGE:
        a, back = work.eta[column_of(inst, i, j)], work.eta[column_of(inst, j, i)]
        work.delta[:] = 0.0
        linear = _edge_side(inst, work, i, j, a, back)
        return linear + _edge_side(inst, work, j, i, back, a)
    if kind == SLOT:
        return _move_to_slot(inst, work, i, j)
    linear = _move_to_slot(inst, work, i, n + 1)
    if kind == MEMBER:
        return linear + _condition_class(inst, work, i, True)
    if work.member[i] > 0.0:  # class sets without i keep their proportions
        linear += _condition_class(inst, work, i, False)
    return linear


@kernel
def _edge_side(inst: Instance, work: Splitting, i: int, j: int, a: float, back: float) -> float:
    """Change of feature i when the edge i - j is present; with a = eta_ij, b = eta_ji, x = a + b:

    delta += a/x A_ij + b/x (T_i - a A_ij)/(1 - a) - T_i
    """
    if a <= 0.0 or a >= 1.0:
        return 0.0
    x = a + back
    v = column_of(inst, i, j)
    own = a / x - back / x * a / (1.0 - a)
    rest = back / x / (1.0 - a) - 1.0
    add_scaled(work.delta, own, inst.columns[v])
    add_scaled(work.delta, rest, work.parts[i])
    return float(own * inst.linear[v] + rest * work.part_linear[i])


@kernel
def _move_to_slot(inst: Instance, work: Splitting, i: int, s: int) -> float:
    """delta = A_is - T_i."""
    v = column_of(inst, i, s)
    column, part = inst.columns[v], work.parts[i]
    for r in range(work.delta.size):
        work.delta[r] = column[r] - part[r]
    return float(inst.linear[v] - work.part_linear[i])


@kernel
def _condition_class(inst: Instance, work: Splitting, j: int, wanted: bool) -> float:
    """delta += (class part given j in S, or not) - (class part)."""
    n = inst.n_features
    offset = column_of(inst, n, 0)
    share = work.member[j] if wanted else 1.0 - work.member[j]
    add_scaled(work.delta, -1.0, work.parts[n])
    linear = -work.part_linear[n]
    for s in range(inst.first.size):
        weight = work.eta[offset + s] / share
        if weight > 0.0 and is_member(inst, j, s) == wanted:
            add_scaled(work.delta, weight, inst.columns[offset + s])
            linear += weight * inst.linear[offset + s]
    return float(linear)


@kernel
def _largest_choice(inst: Instance, box: Box, work: Splitting, room: Ranking) -> Ranking:
    """Without a fractional candidate: the feature with most slots, at its heaviest slot; or none.
    Nothing is known of its degradations.
    """
    n = box.allowed.shape[0]
    most, found = 1, 0
    for i in range(n):
        count, heaviest = 0, -1
        offset = column_of(inst, i, 0)
        for s in range(n + 2):
            if box.allowed[i, s]:
                count += 1
                if heaviest < 0 or work.eta[offset + s] > work.eta[offset + heaviest]:
                    heaviest = s
        if count > most:
            most, found = count, 1
            _append(room.candidates, 0, SLOT, i, heaviest)
    return Ranking(room.candidates[:found], room.degradations[:found], room.score[:found])


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
