"""Rows divided into groups that agree in the members of a set, for many sets one after the other.

Sets come sorted by their members: of two sets the one that has the first variable in which they
differ comes first. So sets that share their first members stand together and share the divisions
by these, and mostly the division by the last member is all that is new.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from marginbn.problem.array_types import CodeArray, FloatArray, IntArray, WordArray
from marginbn.solvers.compile import kernel


class CodedRows(NamedTuple):
    """The rows of a table: codes (variables, rows), arities and weights."""

    columns: CodeArray
    arities: IntArray
    weights: FloatArray | CodeArray


class Divisions(NamedTuple):
    """The rows divided by one variable after the other, and room for the next division."""

    path: IntArray  # (levels,) the variables that divide them so far, -1 beyond
    counts: IntArray  # (levels,) groups before the first division, after it and so on
    groups: CodeArray  # (levels, rows) the group of each row
    label: CodeArray  # (rows x largest arity,)
    members: IntArray  # (levels,) of the set in hand


@kernel
def lowest(word: int) -> int:
    """The lowest bit of a word that is not zero."""
    v = 0
    for half in (32, 16, 8, 4, 2, 1):
        if word & ((np.uint64(1) << np.uint64(half)) - np.uint64(1)) == np.uint64(0):
            word >>= np.uint64(half)  # type: ignore[assignment]
            v += half
    return v


@kernel
def list_members(mask: WordArray, members: IntArray) -> int:
    """Members from the lowest up; returns how many."""
    n_members = 0
    for w in range(len(mask)):
        left = mask[w]
        while left != np.uint64(0):
            members[n_members] = 64 * w + lowest(left)
            n_members += 1
            left &= left - np.uint64(1)
    return n_members


@kernel
def cell_of(group: int, arity: int, state: int) -> int:
    """The place of a state among those of all groups; unsigned, so that no check is made whether
    it is counted from the end.
    """
    return np.uintp(np.uint32(group) * np.uint32(arity) + np.uint32(state))  # type: ignore[return-value]


@kernel
def divide(
    group: CodeArray, n_groups: int, column: CodeArray, arity: int, label: CodeArray, out: CodeArray
) -> int:
    """Groups of rows that agree in one more variable; returns how many there are."""
    label[: n_groups * arity] = -1
    found = np.int32(0)
    for row in range(len(column)):  # without a branch: no processor could predict it
        cell = cell_of(group[row], arity, column[row])
        is_new = label[cell] < 0
        own = found if is_new else label[cell]
        label[cell] = own
        out[row] = own
        found += np.int32(is_new)
    return int(found)


@kernel
def walk(divisions: Divisions, rows: CodedRows, mask: WordArray, but: int) -> int:
    """Divide the rows by the members of a set, but so many at the end; returns by how many."""
    path, counts, groups, label, members = divisions
    n_members = list_members(mask, members)
    members[n_members] = len(members)  # the end
    depth = max(n_members - but, 0)
    fresh = False
    for level in range(depth):
        v = members[level]
        if fresh or path[level] != v:
            fresh = True
            path[level] = v
            counts[level + 1] = divide(
                groups[level],
                counts[level],
                rows.columns[v],
                rows.arities[v],
                label,
                groups[level + 1],
            )
    if fresh:
        path[depth:] = -1
    return depth
