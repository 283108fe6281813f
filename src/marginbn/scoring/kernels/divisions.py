"""Rows divided into groups that agree in the members of a set, for many sets one after the other.

Sets come sorted by their members: of two sets the one that has the first variable in which they
differ comes first. So sets that share their first members stand together and share the divisions
by these, and mostly the division by the last member is all that is new.

**Smaller tables.** Sets that agree about the variables before v stand together, too. For them rows
are alike that agree in the members before v and in all variables from v on: such rows become one,
with the sum of what they weigh, whenever enough sets follow to pay for it and enough rows vanish. A
table of 8000 different rows may have a few hundred that differ in a dozen of its columns. Tables
lie inside each other, so that there is a stack of them.

Which rows agree in all variables from v on is known in advance (:func:`number_tails`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from marginbn.problem.array_types import CodeArray, FloatArray, IntArray, WordArray
from marginbn.scoring.kernels.set_tables import has
from marginbn.solvers.compile import entry, kernel

MANY = 4
"""Cells per row from which on it is quicker to look at the rows than at the cells."""

ENOUGH = 32
"""Sets that pay for a smaller table."""

SPARED = 0.25
"""The share of rows that has to vanish."""

CUT, UNTIL, LEVEL, ROWS, FIRST = range(5)
"""Columns of :attr:`Stack.tables`."""


class CodedRows(NamedTuple):
    """The rows of a table: codes (variables, rows), arities, and which rows have the same tail.

    ``tails`` (variables + 1, rows) and ``n_tails`` are those of :func:`number_tails`, empty where
    smaller tables do not pay.
    """

    columns: CodeArray
    arities: IntArray
    tails: CodeArray
    n_tails: IntArray


class Stack(NamedTuple):
    """Tables inside each other, and room for what is done with them.

    ``tables`` (tables, 5): the first variable that its sets need not agree about, the number of the
    set before which it ends, the number of members before that variable, of rows, and the place of
    the first row. ``path`` (tables, levels): by which variables the rows are divided so far, -1
    beyond; ``counts`` (tables, levels): into how many groups. The other arrays have a row's things
    one table after the other.
    """

    tables: IntArray
    path: IntArray
    counts: IntArray
    columns: CodeArray
    groups: CodeArray
    origin: CodeArray  # a row of the first table that is like it
    weights: FloatArray | CodeArray
    label: CodeArray
    places: CodeArray
    keys: IntArray
    members: IntArray


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
def first_difference(a: WordArray, b: WordArray) -> int:
    """The first variable that one of two sets has and the other has not."""
    for w in range(len(a)):
        if a[w] != b[w]:
            return 64 * w + lowest(a[w] ^ b[w])
    return 64 * len(a)


@entry
def are_sorted(masks: WordArray) -> bool:
    """Whether each set comes before the next."""
    for k in range(1, len(masks)):
        v = first_difference(masks[k - 1], masks[k])
        if v < 64 * masks.shape[1] and has(masks[k], v):
            return False
    return True


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
    """The place of a state among those of all groups; unsigned, so that nobody asks whether it is
    counted from the end.
    """
    return np.uintp(np.uint32(group) * np.uint32(arity) + np.uint32(state))  # type: ignore[return-value]


@kernel
def divide(
    group: CodeArray, n_groups: int, column: CodeArray, arity: int, label: CodeArray, out: CodeArray
) -> int:
    """Groups of rows that agree in one more variable; returns how many there are."""
    if n_groups * arity <= MANY * len(column):
        label[: n_groups * arity] = -1
    else:
        for row in range(len(column)):
            label[cell_of(group[row], arity, column[row])] = -1
    found = np.int32(0)
    for row in range(len(column)):  # without a branch: nobody could guess it
        cell = cell_of(group[row], arity, column[row])
        is_new = label[cell] < 0
        own = found if is_new else label[cell]
        label[cell] = own
        out[row] = own
        found += np.int32(is_new)
    return int(found)


@entry
def number_tails(columns: CodeArray, arities: IntArray, extra: int, tails: CodeArray) -> IntArray:
    """Fill ``tails`` (variables + 1, rows) with a number for each row that rows have in common if
    they agree in all variables from v on and in the ``extra`` one (-1 for none).

    Returns how many numbers there are for each v. Where these are too many for a smaller table, no
    row has one: a long table would need much memory for them.
    """
    n_variables, n_rows = len(tails) - 1, columns.shape[1]
    label = np.empty(n_rows * arities.max(), np.int32)
    counts = np.full(n_variables + 1, n_rows)
    tails[n_variables] = 0
    counts[n_variables] = 1
    if extra >= 0:
        tails[n_variables] = columns[extra]
        counts[n_variables] = arities[extra]
    for v in range(n_variables - 1, -1, -1):
        counts[v] = divide(tails[v + 1], counts[v + 1], columns[v], arities[v], label, tails[v])
        if counts[v] > (1.0 - SPARED) * n_rows:
            break
    return counts


@kernel
def column_of(stack: Stack, columns: CodeArray, top: int, v: int) -> CodeArray:
    """A column of a table."""
    column: CodeArray = columns[v]
    if top == 0:
        return column
    n_rows = stack.tables[top, ROWS]
    first = stack.tables[top, FIRST] * len(columns) + v * n_rows
    return stack.columns[first : first + n_rows]


@kernel
def group_of(stack: Stack, top: int, level: int) -> CodeArray:
    """The groups of the rows of a table, divided by so many members."""
    n_rows = stack.tables[top, ROWS]
    first = stack.tables[top, FIRST] * stack.path.shape[1] + level * n_rows
    return stack.groups[first : first + n_rows]


@kernel
def start(stack: Stack, n_rows: int, n_sets: int) -> None:
    """Only the first table, with all rows in one group."""
    stack.tables[0] = 0
    stack.tables[0, UNTIL] = n_sets
    stack.tables[0, ROWS] = n_rows
    stack.path[0] = -1
    stack.counts[0, 0] = 1
    group_of(stack, 0, 0)[:] = 0


@kernel
def divide_to(stack: Stack, rows: CodedRows, top: int, depth: int) -> None:
    """Divide the rows of a table by the first members of the set in hand."""
    path, counts = stack.path[top], stack.counts[top]
    fresh = False
    for level in range(stack.tables[top, LEVEL], depth):
        v = stack.members[level]
        if fresh or path[level] != v:
            fresh = True
            path[level] = v
            counts[level + 1] = divide(
                group_of(stack, top, level),
                counts[level],
                column_of(stack, rows.columns, top, v),
                rows.arities[v],
                stack.label,
                group_of(stack, top, level + 1),
            )
    if fresh:
        path[depth:] = -1


@kernel
def walk(stack: Stack, rows: CodedRows, top: int, but: int) -> int:
    """Divide the rows of a table by the members of the set in hand, but so many at the end.

    Returns by how many; it may be one more than asked for, where a table is divided already.
    """
    depth = int(stack.tables[top, LEVEL])
    while stack.members[depth] < len(stack.members):
        depth += 1
    depth = max(depth - but, int(stack.tables[top, LEVEL]))
    divide_to(stack, rows, top, depth)
    return depth


@kernel
def merge(stack: Stack, rows: CodedRows, top: int, level: int, cut: int) -> bool:
    """A table of different rows for sets that agree about the variables before ``cut``.

    Rows are divided by the members among these already. Returns whether it is small enough.
    """
    n_rows = stack.tables[top, ROWS]
    first = stack.tables[top, FIRST]
    begin = int(first + n_rows)
    most = min(int((1.0 - SPARED) * n_rows), len(stack.origin) - begin)
    size = 8
    while size < 2 * most:
        size *= 2
    places = stack.places[:size]
    places[:] = -1
    group = group_of(stack, top, level)
    columns, tail = rows.columns, rows.tails[cut]
    origin, keys, weights = stack.origin, stack.keys, stack.weights
    own = begin * stack.path.shape[1]  # groups of the new table wait at its beginning
    found = 0
    for row in range(n_rows):
        source = origin[first + row] if top > 0 else row
        key = group[row] * rows.n_tails[cut] + tail[source]
        mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
        place = int(mixed >> np.uint64(32)) & (size - 1)
        while places[place] >= 0 and keys[places[place]] != key:
            place = (place + 1) & (size - 1)
        new = int(places[place])
        if new < 0:
            if found == most:
                return False
            new = found
            found += 1
            places[place] = new
            keys[new] = key
            origin[begin + new] = source
            stack.groups[own + new] = group[row]
            weights[begin + new] = 0
        weights[begin + new] += weights[first + row]
    table = stack.tables[top + 1]
    table[CUT], table[LEVEL], table[ROWS], table[FIRST] = cut, level, found, begin
    last = group_of(stack, top + 1, level)
    for row in range(found - 1, -1, -1):  # they move up
        last[row] = stack.groups[own + row]
    for v in range(cut, len(columns)):
        column = column_of(stack, columns, top + 1, v)
        for row in range(found):
            column[row] = columns[v, origin[begin + row]]
    stack.path[top + 1] = -1
    stack.counts[top + 1, level] = stack.counts[top, level]
    return True


@kernel
def enter(stack: Stack, rows: CodedRows, masks: WordArray, k: int, top: int) -> int:
    """Take set k in hand: its members, and the table for it. Returns the number of the table."""
    tables, members = stack.tables, stack.members
    while top > 0 and tables[top, UNTIL] <= k:
        top -= 1
    n_members = list_members(masks[k], members)
    members[n_members] = len(members)  # the end
    if len(rows.tails) == 0:
        return top
    decided = first_difference(masks[k - 1], masks[k]) + 1 if k > 0 else 0
    last = tables[top, UNTIL]
    while True:
        # do enough sets from k on agree about the variables that are decided?
        if k + ENOUGH > last or first_difference(masks[k], masks[k + ENOUGH - 1]) < decided:
            break
        beyond = k + ENOUGH
        while beyond < last:
            middle = (beyond + last) // 2
            if first_difference(masks[k], masks[middle]) < decided:
                last = middle
            else:
                beyond = middle + 1
        cut = first_difference(masks[k], masks[last - 1])
        level = 0
        while members[level] < cut:
            level += 1
        n_dropped = (cut - tables[top, CUT]) - (level - tables[top, LEVEL])
        if n_dropped > 0 and rows.n_tails[cut] <= (1.0 - SPARED) * tables[top, ROWS]:
            divide_to(stack, rows, top, level)
            if merge(stack, rows, top, level, cut):
                top += 1
                tables[top, UNTIL] = last
        decided = cut + 1
    return top
