"""Compiled propagation: what follows from forbidden candidates and present edges.

* A variable without allowed candidate makes the node empty.
* A parent contained in every allowed candidate is a *forced arc*; forced arcs must be acyclic,
  and a variable that is reached from i along them can be no parent of i.
* Of a present edge at least one orientation must stay possible; if only one is, it is forced.
* Variables are placed one after the other, each as soon as an allowed candidate lies inside the
  placed ones; if this gets stuck there is no acyclic selection (placing a variable never takes a
  choice away from another).

For class-restricted candidates the second rule contains: a feature that must not be empty is no
parent of the class.
"""

from __future__ import annotations

import numpy as np

from marginbn.problem.array_types import BoolArray, IntArray
from marginbn.solvers.compile import entry, kernel


@kernel
def holds_any(members: IntArray, k: int, marked: BoolArray) -> bool:
    """Whether candidate k has a marked member."""
    for p in range(members.shape[1]):
        if members[k, p] < 0:
            break
        if marked[members[k, p]]:
            return True
    return False


@entry
def propagate(offsets: IntArray, members: IntArray, allowed: BoolArray, present: BoolArray) -> bool:
    """Tighten ``allowed`` (K,) and ``present`` (n, n), upper triangle; False if nothing is left.

    Present edges that are already forced by the candidates are taken off ``present``.
    """
    n = offsets.size - 1
    count = np.zeros((n, n), dtype=np.int64)
    total = np.zeros(n, dtype=np.int64)
    reach = np.zeros((n, n), dtype=np.bool_)
    changed = True
    while changed:
        _count(offsets, members, allowed, count, total)
        for i in range(n):
            if total[i] == 0:
                return False
        if not _close(count, total, reach):
            return False
        changed = _forbid_ancestors(offsets, members, allowed, reach)
        if not changed:
            verdict = _orient(offsets, members, allowed, present, count, total)
            if verdict < 0:
                return False
            changed = verdict > 0
    return _can_be_placed(offsets, members, allowed)


@kernel
def _count(
    offsets: IntArray, members: IntArray, allowed: BoolArray, count: IntArray, total: IntArray
) -> None:
    """``count[i, j]``: allowed candidates of i that contain j; ``total[i]``: all of them."""
    count[:] = 0
    total[:] = 0
    for i in range(total.size):
        for k in range(offsets[i], offsets[i + 1]):
            if not allowed[k]:
                continue
            total[i] += 1
            for p in range(members.shape[1]):
                if members[k, p] < 0:
                    break
                count[i, members[k, p]] += 1


@kernel
def _close(count: IntArray, total: IntArray, reach: BoolArray) -> bool:
    """``reach[j, i]``: forced arcs lead from j to i; False if some variable reaches itself."""
    n = total.size
    for i in range(n):
        for j in range(n):
            reach[j, i] = count[i, j] == total[i]
    for via in range(n):
        for j in range(n):
            if reach[j, via]:
                for i in range(n):
                    if reach[via, i]:
                        reach[j, i] = True
    for i in range(n):  # noqa: SIM110 - compiled
        if reach[i, i]:
            return False
    return True


@kernel
def _forbid_ancestors(
    offsets: IntArray, members: IntArray, allowed: BoolArray, reach: BoolArray
) -> bool:
    """Remove candidates of i with a member that i reaches."""
    changed = False
    for i in range(offsets.size - 1):
        for k in range(offsets[i], offsets[i + 1]):
            if allowed[k] and holds_any(members, k, reach[i]):
                allowed[k] = False
                changed = True
    return changed


@kernel
def _orient(
    offsets: IntArray,
    members: IntArray,
    allowed: BoolArray,
    present: BoolArray,
    count: IntArray,
    total: IntArray,
) -> int:
    """Present edges with one possible orientation; -1 if one has none, 1 if something changed."""
    changed = 0
    for i in range(total.size):
        for j in range(i + 1, total.size):
            if not present[i, j]:
                continue
            if count[i, j] == 0 and count[j, i] == 0:
                return -1
            if count[i, j] == total[i] or count[j, i] == total[j]:
                present[i, j] = False
            elif count[i, j] == 0:
                _demand(offsets, members, allowed, j, i)
                present[i, j] = False
                changed = 1
            elif count[j, i] == 0:
                _demand(offsets, members, allowed, i, j)
                present[i, j] = False
                changed = 1
    return changed


@kernel
def _demand(
    offsets: IntArray, members: IntArray, allowed: BoolArray, child: int, parent: int
) -> None:
    """Remove the candidates of ``child`` without ``parent``."""
    for k in range(offsets[child], offsets[child + 1]):
        if not (members[k] == parent).any():
            allowed[k] = False


@kernel
def _can_be_placed(offsets: IntArray, members: IntArray, allowed: BoolArray) -> bool:
    """Whether the allowed candidates contain an acyclic selection."""
    count = offsets.size - 1
    waiting = np.zeros(count, dtype=np.bool_)
    waiting[:] = True
    while count > 0:
        progress = False
        for i in range(waiting.size):
            if not waiting[i]:
                continue
            for k in range(offsets[i], offsets[i + 1]):
                if allowed[k] and not holds_any(members, k, waiting):
                    waiting[i] = False
                    count -= 1
                    progress = True
                    break
        if not progress:
            return False
    return True
