"""Choosing what to split on.

Objects, each with two sides that together contain every structure of the box exactly once:

    SLOT (i, s)        feature i has slot s                        | has not
    EDGE (i, j)        i and j are joined, either way round        | are not
    RELEVANCE j        j is {} and no parent of the class          | is not (``relevant``)
    MEMBER j           j is a parent of the class                  | is not

An arc alone is a poor object: re-rooting the forest replaces it by its reverse at almost no cost.
So arcs are candidates only where the edge is already decided or the reverse is impossible, and
every slot is discounted (``slot_discount``).

The score of an object is the product of the two *drops* of f when eta is moved into either side,
everything else unchanged. With T_i the part of t that feature i contributes, e the share of eta on
the first side:

    first side    t + delta            second side    t - e / (1 - e) delta        (the average of
    the two sides is t)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from marginbn.solvers.branch_bound.kernels.bound import Settings
from marginbn.solvers.branch_bound.kernels.box import is_member, keep_only_empty
from marginbn.solvers.branch_bound.kernels.combination import Bounding
from marginbn.solvers.branch_bound.kernels.gradient import only_slot
from marginbn.solvers.branch_bound.kernels.records import (
    Box,
    FloatArray,
    Instance,
    IntArray,
    column_of,
)
from marginbn.solvers.compile import kernel

NONE, SLOT, EDGE, RELEVANCE, MEMBER = 0, 1, 2, 3, 4

SMALL = 0.03
"""Shares nearer to 0 (or 1) than this say too little about the object."""


class Splitting(NamedTuple):
    """Scratch of the split selection."""

    eta: FloatArray  # (K,)
    parts: FloatArray  # (n + 1, R) what each feature (last: the class) contributes to t
    part_linear: FloatArray  # (n + 1,)
    delta: FloatArray  # (R,)
    member: FloatArray  # (n,) share of class sets containing the feature


@kernel
def _new_splitting(inst: Instance) -> Splitting:
    n_rows, n_columns = inst.rows.shape[0], inst.linear.size
    n = inst.n_features
    return Splitting(
        np.zeros(n_columns),
        np.zeros((n + 1, n_rows)),
        np.zeros(n + 1),
        np.zeros(n_rows),
        np.zeros(n),
    )


@kernel
def apply_split(inst: Instance, box: Box, kind: int, i: int, j: int, first: bool) -> None:
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
def choose_split(
    inst: Instance, box: Box, settings: Settings, b: Bounding, seed: IntArray
) -> tuple[int, int, int]:
    """The best object (kind, i, j); kind NONE if every feature is decided."""
    if settings.random_splits:
        return _random_split(inst, box, seed)
    work = _new_splitting(inst)
    _load_shares(inst, b, work)
    _load_parts(inst, work)
    here = _value_along(inst, b, work, 0.0, 0.0)
    best = (0.0, NONE, 0, 0)
    best = _score_edges(inst, box, b, work, here, best)
    best = _score_relevance(inst, box, b, work, here, best)
    best = _score_slots(inst, box, b, work, here, settings.slot_discount, best)
    best = _score_members(inst, box, b, work, here, best)
    if best[1] != NONE:
        return best[1], best[2], best[3]
    return _largest_choice(box, work)


@kernel
def _load_shares(inst: Instance, b: Bounding, work: Splitting) -> None:
    """eta from the active vertices, and the share of class sets with each feature."""
    n = inst.n_features
    for k in range(b.state.n_active):
        for i in range(n + 1):
            work.eta[column_of(n, i, b.vertices[k, i])] += b.share[k]
    for s in range(inst.first.size):
        if inst.first[s] >= 0:
            work.member[inst.first[s]] += work.eta[column_of(n, n, s)]
        if inst.second[s] >= 0:
            work.member[inst.second[s]] += work.eta[column_of(n, n, s)]


@kernel
def _load_parts(inst: Instance, work: Splitting) -> None:
    """T_i = sum_s eta_is A_is for every feature and for the class."""
    n = inst.n_features
    for v in range(work.eta.size):
        if work.eta[v] > 0.0:
            i = min(v // (n + 2), n)
            _add(work.parts[i], work.eta[v], inst.columns[v])
            work.part_linear[i] += work.eta[v] * inst.linear[v]


@kernel
def _add(out: FloatArray, scale: float, column: FloatArray) -> None:
    for r in range(out.size):
        out[r] += scale * column[r]


@kernel
def _value_along(inst: Instance, b: Bounding, work: Splitting, step: float, linear: float) -> float:
    """f(t + step delta), linear parts relative to eta."""
    total = step * linear
    for m in range(inst.weights.size):
        lowest = inst.gamma
        for r in range(inst.starts[m], inst.starts[m + 1]):
            lowest = min(lowest, b.t[r] + step * work.delta[r])
        total += inst.weights[m] * lowest
    return total


@kernel
def _score(
    inst: Instance, b: Bounding, work: Splitting, here: float, share: float, linear: float
) -> float:
    """Product of the drops on both sides of the object whose first side is t + delta."""
    first = here - _value_along(inst, b, work, 1.0, linear)
    second = here - _value_along(inst, b, work, -share / (1.0 - share), linear)
    tiny = 1e-9 * (1.0 + abs(here))
    return max(first, tiny) * max(second, tiny)


@kernel
def _is_open_edge(box: Box, i: int, j: int) -> bool:
    return box.allowed[i, j] and box.allowed[j, i] and not box.edges[i, j]


@kernel
def _score_edges(
    inst: Instance,
    box: Box,
    b: Bounding,
    work: Splitting,
    here: float,
    best: tuple[float, int, int, int],
) -> tuple[float, int, int, int]:
    """delta = [a/x A_ij + b/x (T_i - a A_ij)/(1 - a) - T_i] + the same with i, j exchanged; a =
    eta_ij, b = eta_ji, x = a + b.
    """
    n = inst.n_features
    for i in range(n):
        for j in range(i):
            a, back = work.eta[column_of(n, i, j)], work.eta[column_of(n, j, i)]
            x = a + back
            if x < SMALL or x > 1.0 - SMALL or not _is_open_edge(box, i, j):
                continue
            work.delta[:] = 0.0
            linear = _edge_side(inst, work, i, j, a, back)
            linear += _edge_side(inst, work, j, i, back, a)
            score = _score(inst, b, work, here, x, linear)
            if score > best[0]:
                best = (score, EDGE, i, j)
    return best


@kernel
def _edge_side(inst: Instance, work: Splitting, i: int, j: int, a: float, back: float) -> float:
    """Change of feature i when the edge i - j is present."""
    if a <= 0.0 or a >= 1.0:
        return 0.0
    x = a + back
    v = column_of(inst.n_features, i, j)
    own = a / x - back / x * a / (1.0 - a)
    rest = back / x / (1.0 - a) - 1.0
    _add(work.delta, own, inst.columns[v])
    _add(work.delta, rest, work.parts[i])
    return float(own * inst.linear[v] + rest * work.part_linear[i])


@kernel
def _relevance_is_open(box: Box, j: int) -> bool:
    n = box.allowed.shape[0]
    return box.allowed[j, n + 1] and not box.relevant[j]


@kernel
def _score_relevance(
    inst: Instance,
    box: Box,
    b: Bounding,
    work: Splitting,
    here: float,
    best: tuple[float, int, int, int],
) -> tuple[float, int, int, int]:
    """First side: j goes to {} and the class sets without j keep their proportions."""
    n = inst.n_features
    for j in range(n):
        x = work.eta[column_of(n, j, n + 1)] - work.member[j]
        if x < SMALL or x > 1.0 - SMALL or not _can_split_relevance(inst, box, j):
            continue
        linear = _move_to_slot(inst, work, j, n + 1)
        if work.member[j] > 0.0:
            linear += _condition_class(inst, work, j, False)
        score = _score(inst, b, work, here, x, linear)
        if score > best[0]:
            best = (score, RELEVANCE, j, 0)
    return best


@kernel
def _move_to_slot(inst: Instance, work: Splitting, i: int, s: int) -> float:
    """delta = A_is - T_i."""
    v = column_of(inst.n_features, i, s)
    column, part = inst.columns[v], work.parts[i]
    for r in range(work.delta.size):
        work.delta[r] = column[r] - part[r]
    return float(inst.linear[v] - work.part_linear[i])


@kernel
def _condition_class(inst: Instance, work: Splitting, j: int, wanted: bool) -> float:
    """delta += (class part given j in S, or not) - (class part)."""
    n = inst.n_features
    offset = column_of(n, n, 0)
    share = work.member[j] if wanted else 1.0 - work.member[j]
    _add(work.delta, -1.0, work.parts[n])
    linear = -work.part_linear[n]
    for s in range(inst.first.size):
        weight = work.eta[offset + s] / share
        if weight > 0.0 and is_member(inst, j, s) == wanted:
            _add(work.delta, weight, inst.columns[offset + s])
            linear += weight * inst.linear[offset + s]
    return float(linear)


@kernel
def _slot_is_candidate(box: Box, i: int, s: int) -> bool:
    n = box.allowed.shape[0]
    if not box.allowed[i, s]:
        return False
    if s < n:
        return box.edges[i, s] or not box.allowed[s, i]
    return s == n or not _relevance_is_open(box, i)


@kernel
def _score_slots(
    inst: Instance,
    box: Box,
    b: Bounding,
    work: Splitting,
    here: float,
    discount: float,
    best: tuple[float, int, int, int],
) -> tuple[float, int, int, int]:
    n = inst.n_features
    for i in range(n):
        for s in range(n + 2):
            e = work.eta[column_of(n, i, s)]
            if (
                e < SMALL
                or e > 0.999
                or not _slot_is_candidate(box, i, s)
                or only_slot(box, i) >= 0
            ):
                continue
            linear = _move_to_slot(inst, work, i, s)
            score = discount * _score(inst, b, work, here, e, linear)
            if score > best[0]:
                best = (score, SLOT, i, s)
    return best


@kernel
def _score_members(
    inst: Instance,
    box: Box,
    b: Bounding,
    work: Splitting,
    here: float,
    best: tuple[float, int, int, int],
) -> tuple[float, int, int, int]:
    """The sides differ in more than one part, so their drops are computed separately."""
    n = inst.n_features
    tiny = 1e-9 * (1.0 + abs(here))
    for j in range(n):
        x = work.member[j]
        if x < SMALL or x > 1.0 - SMALL or not _can_split_member(inst, box, j):
            continue
        linear = _move_to_slot(inst, work, j, n + 1) + _condition_class(inst, work, j, True)
        first = here - _value_along(inst, b, work, 1.0, linear)
        work.delta[:] = 0.0
        linear = _condition_class(inst, work, j, False)
        second = here - _value_along(inst, b, work, 1.0, linear)
        score = max(first, tiny) * max(second, tiny)
        if score > best[0]:
            best = (score, MEMBER, j, 0)
    return best


@kernel
def _largest_choice(box: Box, work: Splitting) -> tuple[int, int, int]:
    """Without a fractional object: the feature with most slots, at its heaviest slot."""
    n = box.allowed.shape[0]
    most, which, slot = 1, -1, -1
    for i in range(n):
        count, heaviest = 0, -1
        for s in range(n + 2):
            if box.allowed[i, s]:
                count += 1
                if (
                    heaviest < 0
                    or work.eta[column_of(n, i, s)] > work.eta[column_of(n, i, heaviest)]
                ):
                    heaviest = s
        if count > most:
            most, which, slot = count, i, heaviest
    if which < 0:
        return NONE, 0, 0
    return SLOT, which, slot


@kernel
def next_random(seed: IntArray) -> int:
    """Xorshift generator on 63 bits; deterministic and the same on every platform."""
    x = np.uint64(seed[0])
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    seed[0] = np.int64(x >> np.uint64(1)) + 1
    return int(x >> np.uint64(11))


@kernel
def _random_split(inst: Instance, box: Box, seed: IntArray) -> tuple[int, int, int]:
    """Any object with two non-trivial sides, uniformly (for tests)."""
    n = box.allowed.shape[0]
    count = 0
    chosen = (NONE, 0, 0)
    for i in range(n):
        slots = 0
        for s in range(n + 2):
            slots += box.allowed[i, s]
        for s in range(n + 2):
            if box.allowed[i, s] and slots > 1:
                count += 1
                if next_random(seed) % count == 0:
                    chosen = (SLOT, i, s)
        for j in range(i):
            if _is_open_edge(box, i, j):
                count += 1
                if next_random(seed) % count == 0:
                    chosen = (EDGE, i, j)
        if _can_split_relevance(inst, box, i):
            count += 1
            if next_random(seed) % count == 0:
                chosen = (RELEVANCE, i, 0)
        if _can_split_member(inst, box, i):
            count += 1
            if next_random(seed) % count == 0:
                chosen = (MEMBER, i, 0)
    return chosen


@kernel
def _can_split_relevance(inst: Instance, box: Box, j: int) -> bool:
    """Whether both sides are smaller than the box (eta may lie outside the box after fixing)."""
    inside, outside = _count_member_sets(inst, box, j)
    return _relevance_is_open(box, j) and outside > 0 and (inside > 0 or only_slot(box, j) < 0)


@kernel
def _can_split_member(inst: Instance, box: Box, j: int) -> bool:
    inside, outside = _count_member_sets(inst, box, j)
    return inside > 0 and outside > 0


@kernel
def _count_member_sets(inst: Instance, box: Box, j: int) -> tuple[int, int]:
    inside, outside = 0, 0
    for s in range(box.classes.size):
        if box.classes[s]:
            if is_member(inst, j, s):
                inside += 1
            else:
                outside += 1
    return inside, outside
