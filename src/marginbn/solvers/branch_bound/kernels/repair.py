"""Move the vertices of a parent into the box of its child (without it x1.19, at worst x1.65).

A child inherits the convex combination of its parent. About half of its vertices use what the child
forbids; without them the child would also lose the balance of everything that the split has nothing
to do with, and would need many iterations to find it again. So a vertex outside the box is changed
where it has to be, and nowhere else:

- a class set that is gone becomes the heaviest one left, and its members get {};
- a forced edge that is missing is added, either way round, drawn by the shares of both ways in eta,
  unless that would close a cycle or take another forced edge away;
- a forbidden slot becomes another one that closes no cycle, drawn by the shares of eta.

What does not get into the box that way is given up. A vertex only decides where the search for dual
weights begins; no bound depends on it.
"""

from __future__ import annotations

from marginbn.problem.array_types import FloatArray, IntArray
from marginbn.solvers.branch_bound.kernels.box import is_member
from marginbn.solvers.branch_bound.kernels.records import (
    Box,
    Instance,
    column_of,
    next_random,
    set_class,
)
from marginbn.solvers.compile import kernel

ROUNDS = 2
"""Looks at a vertex: what helps one feature may leave another without its forced edge."""

FINE = 1 << 20
"""Steps in which shares are drawn."""


@kernel
def contains(inst: Instance, box: Box, vertex: IntArray) -> bool:
    """Whether a feasible structure belongs to the box."""
    n = inst.n_features
    if not box.classes[vertex[n]]:
        return False
    for i in range(n):
        if not box.allowed[i, vertex[i]] or _is_isolated(inst, box, vertex, i):
            return False
        for j in range(i):
            if box.edges[i, j] and vertex[i] != j and vertex[j] != i:
                return False
    return True


@kernel
def _is_isolated(inst: Instance, box: Box, vertex: IntArray, i: int) -> bool:
    """Whether a relevant feature stands alone."""
    n = inst.n_features
    return bool(box.relevant[i] and vertex[i] == n + 1 and not is_member(inst, i, vertex[n]))


@kernel
def move_into(inst: Instance, box: Box, eta: FloatArray, vertex: IntArray, seed: IntArray) -> bool:
    """Change a feasible structure into one of a box whose components are known; whether that was
    possible.
    """
    n = inst.n_features
    if not box.classes[vertex[n]]:
        set_class(inst, vertex, _heaviest_class_set(inst, box, eta))
    for _ in range(ROUNDS):
        for v in range(n):
            p = box.above[v]
            missing = p >= 0 and vertex[v] != p and vertex[p] != v
            if missing and not _join(inst, box, eta, vertex, v, p, seed):
                return False
        for i in range(n):
            wrong = not box.allowed[i, vertex[i]] or _is_isolated(inst, box, vertex, i)
            if wrong and not _draw_slot(inst, box, eta, vertex, i, seed):
                return False
        if contains(inst, box, vertex):
            return True
    return False


@kernel
def _heaviest_class_set(inst: Instance, box: Box, eta: FloatArray) -> int:
    offset = column_of(inst, inst.n_features, 0)
    best = -1
    for s in range(box.classes.size):
        if box.classes[s] and (best < 0 or eta[offset + s] > eta[offset + best]):
            best = s
    return best


@kernel
def _join(
    inst: Instance, box: Box, eta: FloatArray, vertex: IntArray, i: int, j: int, seed: IntArray
) -> bool:
    """Make one of two features the parent of the other."""
    down = _share_of_arc(inst, box, eta, vertex, i, j)
    up = _share_of_arc(inst, box, eta, vertex, j, i)
    if down < 0.0 and up < 0.0:
        return False
    if up < 0.0 or (down >= 0.0 and _draw(seed) * (down + up) <= down):
        vertex[i] = j
    else:
        vertex[j] = i
    return True


@kernel
def _share_of_arc(
    inst: Instance, box: Box, eta: FloatArray, vertex: IntArray, i: int, j: int
) -> float:
    """eta of feature i with parent j; negative if it cannot have it."""
    n = inst.n_features
    holds = vertex[i] < n and box.edges[i, vertex[i]]
    if holds or not box.allowed[i, j] or is_member(inst, i, vertex[n]) or is_below(vertex, j, i):
        return -1.0
    return float(eta[column_of(inst, i, j)])


@kernel
def _draw_slot(
    inst: Instance, box: Box, eta: FloatArray, vertex: IntArray, i: int, seed: IntArray
) -> bool:
    """Another slot for a feature; without shares {class} if possible, or the last one."""
    n = inst.n_features
    if is_member(inst, i, vertex[n]):
        return False
    offset = column_of(inst, i, 0)
    total, spare = 0.0, -1
    for s in range(n + 2):
        if _is_possible(box, vertex, i, s):
            total += eta[offset + s]
            if spare != n:
                spare = s
    if spare < 0:
        return False
    vertex[i] = spare
    left = _draw(seed) * total
    for s in range(n + 2):
        if _is_possible(box, vertex, i, s) and eta[offset + s] > 0.0:
            left -= eta[offset + s]
            if left <= 0.0:
                vertex[i] = s
                break
    return True


@kernel
def _is_possible(box: Box, vertex: IntArray, i: int, s: int) -> bool:
    """Whether feature i may have slot s in a box, beside the slots of the others."""
    n = box.allowed.shape[0]
    if not box.allowed[i, s] or (s == n + 1 and box.relevant[i]):
        return False
    return s >= n or not is_below(vertex, s, i)


@kernel
def _draw(seed: IntArray) -> float:
    """A number from 0 to 1."""
    return float(next_random(seed) % FINE / FINE)


@kernel
def is_below(vertex: IntArray, j: int, i: int) -> bool:
    """Whether j is i or a descendant of i."""
    n = vertex.size - 1
    while j < n:
        if j == i:
            return True
        j = vertex[j]
    return False
