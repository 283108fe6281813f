"""The best structure of a box for given values of the candidates, whatever the number of parents.

For dual weights u the objective is linear, and linear maximisation over acyclic graphs is dynamic
programming over sets of variables. With

    local_i(W) = largest value of a candidate of i with parents inside W
    best(W)    = max over i in W of best(W - i) + local_i(W - i)

best of all variables is the maximum. A candidate has at most p parents, so it lacks one of any
p + 1 members of W:

    local_i(W) = max of local_i(W - b) over p + 1 members b of W,        |W| > p,

instead of a search through lists. Sets that differ only in variables of smaller numbers are
neighbours in memory. So if b are the largest members, many sets go through this side by side, a
*run* at a time; likewise for best, if all sets of the variables before one are done before the
first that contains it. Only the variables of the :data:`LOW` smallest numbers, whose sets are a
*block*, are treated one by one.

*Edges that must be present.* Whoever of i and j comes later must have the other as a parent: with
R_i the other ends of such edges, local_i(W) is over candidates with R_i n W inside. Then members of
R_i cannot be left out, and p + 1 others are looked at.

*The class.* Of class-restricted candidates, features have no parents or the class, and parents of
the class have none. So features without parents come first, then the class, then the others:

    best(W) = max(first(W), ...),
    first(W) = sum over i in W of g(i, {})  +  largest value of a class set inside W,

and only features are ordered; local_i then means the candidates with the class.

*Variables that need no place in the order* are left out of the sets, which halves their number:
those whose parents are all placed before everybody (they come next), and those that nobody left can
have as a parent (they come last).

*The best structure with a given candidate.* Let tail(W) be the best value of what follows W. Then

    through(i, S) = g(i, S) + max over W with S inside, i not, of best(W) + tail(W + i),

the maximum over supersets again by blocks, from the largest set down. That gives the bound of every
candidate at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from marginbn.solvers.branch_bound.kernels.records import (
    BoolArray,
    FloatArray,
    IntArray,
    copy_array,
)
from marginbn.solvers.compile import kernel

LOW = 5
LANES = 1 << LOW
"""Variables inside a block, and its sets."""

APART = 24
"""Numbers between two columns: those of one set must not all compete for one place of a cache."""

ORDERED, FREE = 0, 1
"""Roles of a variable: with a place in the sets, or decided apart from all others."""


class Candidates(NamedTuple):
    """Parent sets of all variables."""

    offsets: IntArray  # (n + 1,) the candidates of i are offsets[i]:offsets[i + 1]
    masks: IntArray  # (K,) parents as bits
    most: int  # p: parents of a variable that is ordered, the class not counted, at most
    most_of_class: int  # where candidates are restricted to it; else as before
    restricted: bool  # to the class, variable 0


class Layout(NamedTuple):
    """What dynamic programming over a box runs over."""

    bit: IntArray  # (n,) place of every variable, -1 if it has none
    live: IntArray  # (L,) candidates that matter, variable by variable
    column: IntArray  # (L,) place of the child, or the one after the last for the class
    key: IntArray  # (L,) parents by place
    empty: IntArray  # (m,) candidate {} of every place where features are ordered, -1 if forbidden
    required: IntArray  # (m + 1,) by column: other ends of edges that must be present
    free: IntArray  # variables decided apart
    small: IntArray  # blocks with few members outside, by column
    small_starts: IntArray  # (m + 2,)
    runs: IntArray  # (., 2 + p + 1) start and length of every run, and the starts of its sources
    run_starts: IntArray  # (m + 2,) runs of each column
    everybody: int  # the set of all who have a place; the others of the first block have none


class Tables(NamedTuple):
    """Values of all sets; for boxes with as many places, or fewer."""

    local: FloatArray  # (m + 1 columns of 2^m,); then what the rest adds
    best: FloatArray  # (2^m,)
    tail: FloatArray  # (2^m,)
    base: FloatArray  # (2^m,) sums of g(i, {})


def table_bytes(places: int) -> int:
    """Memory of the tables for so many places."""
    return int(8 * (places + 4) * 2.0 ** max(places, LOW))


def new_tables(places: int) -> Tables:
    """Room for so many places."""
    places = max(places, LOW)
    size = 1 << places
    local = np.empty((size + APART) * (places + 1))
    return Tables(local, np.empty(size), np.empty(size), np.empty(size))


@kernel
def lay_out(c: Candidates, allowed: BoolArray, present: BoolArray) -> Layout:
    """Who has a place in the order; ``present`` (n, n) is an upper triangle of edges."""
    n = c.offsets.size - 1
    first = 1 if c.restricted else 0
    role = _find_roles(c, allowed, first)
    bit = np.full(n, -1, dtype=np.int64)
    free = np.empty(n, dtype=np.int64)
    m, n_free = 0, 0
    for i in range(first, n):
        if role[i] == ORDERED:
            bit[i] = m
            m += 1
        else:
            free[n_free] = i
            n_free += 1
    everybody, m = (1 << m) - 1, max(m, LOW)
    required = np.zeros(m + 1, dtype=np.int64)
    for i in range(n):
        for j in range(i + 1, n):
            if present[i, j]:
                _require(c, bit, required, i, j)
                _require(c, bit, required, j, i)
    empty = np.full(m, -1, dtype=np.int64)
    live, column, key = _list_live(c, allowed, bit, empty, m)
    small, small_starts = _list_small(c, required)
    runs, run_starts = _list_runs(c, required)
    return Layout(
        bit,
        live,
        column,
        key,
        empty,
        required,
        free[:n_free],
        small,
        small_starts,
        runs,
        run_starts,
        everybody,
    )


@kernel
def _require(c: Candidates, bit: IntArray, required: IntArray, i: int, j: int) -> None:
    """i must have j as a parent if j comes first."""
    if bit[j] < 0:
        return
    if bit[i] >= 0:
        required[bit[i]] |= 1 << bit[j]
    elif c.restricted and i == 0:
        required[required.size - 1] |= 1 << bit[j]


@kernel
def _find_roles(c: Candidates, allowed: BoolArray, first: int) -> IntArray:
    """ORDERED or FREE for every variable from ``first`` on."""
    n = c.offsets.size - 1
    ordered = 0
    for i in range(first, n):
        ordered |= 1 << i
    role = np.zeros(n, dtype=np.int64)
    of_class = _parents_of(c, allowed, 0) if c.restricted else 0
    changed = True
    while changed:  # those whose parents are all there
        changed = False
        for i in range(first, n):
            if role[i] == ORDERED and _parents_of(c, allowed, i) & ordered == 0:
                can_wait = of_class >> i & 1 == 0 or not _has_both(c, allowed, i)
                if not c.restricted or can_wait:
                    role[i], changed = FREE, True
                    ordered &= ~(1 << i)
    changed = True
    while changed:  # those that nobody needs
        changed = False
        needed = of_class
        for i in range(first, n):
            if role[i] == ORDERED:
                needed |= _parents_of(c, allowed, i)
        for i in range(first, n):
            if role[i] == ORDERED and needed >> i & 1 == 0:
                role[i], changed = FREE, True
    return role


@kernel
def _parents_of(c: Candidates, allowed: BoolArray, i: int) -> int:
    """Everybody that variable i may have as a parent."""
    union = 0
    for k in range(c.offsets[i], c.offsets[i + 1]):
        if allowed[k]:
            union |= c.masks[k]
    return union


@kernel
def _has_both(c: Candidates, allowed: BoolArray, i: int) -> bool:
    """Whether a feature may be without parents, and may have some."""
    with_, without = False, False
    for k in range(c.offsets[i], c.offsets[i + 1]):
        if allowed[k]:
            if c.masks[k] == 0:
                without = True
            else:
                with_ = True
    return with_ and without


@kernel
def _list_live(
    c: Candidates, allowed: BoolArray, bit: IntArray, empty: IntArray, m: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Candidates of ordered variables and of the class, with columns and keys."""
    n, count = bit.size, 0
    live = np.empty(allowed.size, dtype=np.int64)
    column, key = np.empty(allowed.size, dtype=np.int64), np.empty(allowed.size, dtype=np.int64)
    for i in range(n):
        is_class = c.restricted and i == 0
        if bit[i] < 0 and not is_class:
            continue
        for k in range(c.offsets[i], c.offsets[i + 1]):
            if not allowed[k]:
                continue
            if c.restricted and not is_class and c.masks[k] == 0:
                empty[bit[i]] = k
                continue
            live[count], column[count] = k, m if is_class else bit[i]
            key[count] = 0
            for j in range(n):
                if c.masks[k] >> j & 1 and bit[j] >= 0:
                    key[count] |= 1 << bit[j]
            count += 1
    return live[:count], column[:count], key[:count]


@kernel
def maximise_over_orders(
    c: Candidates,
    layout: Layout,
    allowed: BoolArray,
    g: FloatArray,
    tables: Tables,
    vertex: IntArray,
) -> float:
    """Largest value of a structure of the box, and the structure: a candidate of every variable;
    -inf if there is none.
    """
    value = _fill(c, layout, g, tables)
    if value == -np.inf:
        return value
    for a in range(layout.free.size):
        k = best_of(c, allowed, g, layout.free[a])
        vertex[layout.free[a]] = k
        value += g[k]
    _trace_back(layout, g, tables, c.restricted, vertex)
    return value


@kernel
def best_of(c: Candidates, allowed: BoolArray, g: FloatArray, i: int) -> int:
    """Allowed candidate of the largest value."""
    best = -1
    for k in range(c.offsets[i], c.offsets[i + 1]):
        if allowed[k] and (best < 0 or g[k] > g[best]):
            best = k
    return best


@kernel
def _most_of(c: Candidates, column: int, m: int) -> int:
    """Parents with a place that a candidate of a column has at most."""
    return c.most_of_class if column == m else c.most


@kernel
def _is_used(c: Candidates, column: int, m: int) -> bool:
    """Whether there is such a column: the last one is that of the class."""
    return column < m or c.restricted


@kernel
def _list_small(c: Candidates, required: IntArray) -> tuple[IntArray, IntArray]:
    """Blocks with no more members outside than a candidate has parents, those required apart."""
    m = required.size - 1
    starts = np.zeros(m + 2, dtype=np.int64)
    found = np.empty((m + 1) << m - LOW, dtype=np.int64)
    count = 0
    for column in range(m + 1):
        for block in range(0, 1 << m, LANES):
            if column >= LOW and column < m and block >> column & 1:
                continue
            if _is_used(c, column, m) and _has_at_most(
                block & ~required[column], _most_of(c, column, m)
            ):
                found[count] = block
                count += 1
        starts[column + 1] = count
    return found[:count], starts


@kernel
def _list_runs(c: Candidates, required: IntArray) -> tuple[IntArray, IntArray]:
    """All other blocks, by their largest members that are not required: one run for every choice of
    these and of the required ones between them.
    """
    m = required.size - 1
    width = 1 + max(c.most, c.most_of_class)
    runs = np.empty((64, 2 + width), dtype=np.int64)
    starts, count = np.zeros(m + 2, dtype=np.int64), 0
    chosen = np.empty(width, dtype=np.int64)
    for column in range(m + 1):
        size = 1 + _most_of(c, column, m)
        others = 0
        for place in range(LOW, m):
            if place != column and required[column] >> place & 1 == 0:
                others |= 1 << place
        places = members_of(others)
        more = places.size >= size and _is_used(c, column, m)
        for a in range(size):
            chosen[a] = size - 1 - a
        while more:
            lowest, bits = 1 << places[chosen[size - 1]], 0
            for a in range(size):
                bits |= 1 << places[chosen[a]]
            between = required[column] & ~(2 * lowest - 1)
            extra = between
            while True:  # all subsets of ``between``
                if count == runs.shape[0]:
                    larger = np.empty((2 * count, 2 + width), dtype=np.int64)
                    larger[:count] = runs
                    runs = larger
                runs[count, 0], runs[count, 1] = bits | extra, lowest
                for a in range(size):
                    runs[count, 2 + a] = (bits | extra) ^ (1 << places[chosen[a]])
                count += 1
                if extra == 0:
                    break
                extra = (extra - 1) & between
            more = _next_choice(chosen, size, places.size)
        starts[column + 1] = count
    return runs[:count], starts


@kernel
def members_of(word: int) -> IntArray:
    """Members of a set, increasing."""
    found, count = np.empty(64, dtype=np.int64), 0
    while word:
        found[count] = _lowest(word)
        word &= word - 1
        count += 1
    return found[:count]


@kernel
def _lowest(word: int) -> int:
    """Number of the lowest member of a set that is not empty."""
    place = 0
    while word & 1 == 0:
        word >>= 1
        place += 1
    return place


@kernel
def _next_choice(chosen: IntArray, size: int, n: int) -> bool:
    """The next choice of ``size`` of n numbers, falling, the last changing first; False after the
    last.
    """
    for a in range(size - 1, -1, -1):
        limit = n if a == 0 else chosen[a - 1]
        if chosen[a] + 1 < limit:
            chosen[a] += 1
            for b in range(a + 1, size):
                chosen[b] = size - 1 - b
            return True
    return False


@kernel
def _fill(c: Candidates, layout: Layout, g: FloatArray, tables: Tables) -> float:
    """Local and best values of all sets; the largest of everything ordered."""
    m = layout.empty.size
    size = 1 << m
    _fill_locals(c, layout, g, tables.local, size)
    best, base = tables.best, tables.base
    if c.restricted:
        _fill_base(layout, g, base)
        of_class = column_of(tables.local, m, size)
        for w in range(size):
            best[w] = base[w] + of_class[w]
    else:
        for w in range(size):
            best[w] = -np.inf
        best[0] = 0.0
    for block in range(0, size, LANES):
        _reach_block(tables, size, block)
        _push(tables, size, block + LANES)
    return float(best[layout.everybody])


@kernel
def column_of(local: FloatArray, column: int, size: int) -> FloatArray:
    """Values of all sets in one column."""
    start = column * (size + APART)
    return local[start : start + size]


@kernel
def _fill_locals(
    c: Candidates, layout: Layout, g: FloatArray, local: FloatArray, size: int
) -> None:
    """local_i(W) of all columns; sets that contain i itself are not of use."""
    m = layout.empty.size
    for column in range(m + 1):
        own = column_of(local, column, size)
        for a in range(layout.small_starts[column], layout.small_starts[column + 1]):
            for w in range(layout.small[a], layout.small[a] + LANES):
                own[w] = -np.inf
    for a in range(layout.live.size):
        place = layout.column[a] * (size + APART) + layout.key[a]
        local[place] = max(local[place], g[layout.live[a]])
    for column in range(m + 1):
        own = column_of(local, column, size)
        for a in range(layout.small_starts[column], layout.small_starts[column + 1]):
            _fill_small(own, layout.small[a], layout.required[column])
        sources = 1 + _most_of(c, column, m)
        for a in range(layout.run_starts[column], layout.run_starts[column + 1]):
            _fill_run(own, layout.runs[a], sources)


@kernel
def _fill_run(own: FloatArray, run: IntArray, sources: int) -> None:
    """local_i of a run, from so many others; the first three at once."""
    start, length = run[0], run[1]
    out, x = own[start : start + length], own[run[2] : run[2] + length]
    first = 3
    if sources >= 3:
        y, z = own[run[3] : run[3] + length], own[run[4] : run[4] + length]
        for lane in range(out.size):
            value = x[lane] if x[lane] > y[lane] else y[lane]
            out[lane] = value if value > z[lane] else z[lane]
        first = 5
    else:
        copy_array(x, out)
    for b in range(first, 2 + sources):
        _raise(out, own[run[b] : run[b] + length])


@kernel
def _fill_small(own: FloatArray, block: int, required: int) -> None:
    """local_i of a small block, which holds its candidates, from sets with one member less."""
    out = own[block : block + LANES]
    left = block & ~required
    while left:
        one = left & -left
        left ^= one
        _raise(out, own[block ^ one : (block ^ one) + LANES])
    for place in range(LOW):
        one = 1 << place
        if required & one == 0:
            for start in range(0, LANES, 2 * one):
                for lane in range(start, start + one):
                    out[lane + one] = max(out[lane + one], out[lane])


@kernel
def _raise(out: FloatArray, other: FloatArray) -> None:
    """out = max(out, other)."""
    for lane in range(out.size):
        out[lane] = other[lane] if other[lane] > out[lane] else out[lane]


@kernel
def _fill_base(layout: Layout, g: FloatArray, base: FloatArray) -> None:
    """Values of features without parents; -inf where one must have some, or an edge is missing."""
    base[0] = 0.0
    for place in range(layout.empty.size):
        value, required = -np.inf, 0
        if layout.empty[place] >= 0:
            value, required = g[layout.empty[place]], layout.required[place]
        one = 1 << place
        for w in range(one):
            base[w | one] = base[w] + value
        if required:
            for w in range(one):
                if w & required:
                    base[w | one] = -np.inf


@kernel
def _reach_block(tables: Tables, size: int, block: int) -> None:
    """best of a block, once everything from other blocks is there: sets of the first three
    variables by hand, the rest as in :func:`_push`.
    """
    out, local, step = tables.best[block : block + LANES], tables.local, size + APART
    first, second = local[block : block + LANES], local[step + block : step + block + LANES]
    third = local[2 * step + block : 2 * step + block + LANES]
    for start in range(0, LANES, 8):
        _reach_four(out, first, second, start)
        for lane in range(start, start + 4):
            out[lane + 4] = max(out[lane + 4], out[lane] + third[lane])
        _reach_four(out, first, second, start + 4)
        end = start + 8
        if end < LANES:
            one = end & -end
            y = local[_lowest(one) * step + block : _lowest(one) * step + block + LANES]
            for lane in range(end, end + one):
                value = out[lane - one] + y[lane - one]
                out[lane] = value if value > out[lane] else out[lane]


@kernel
def _reach_four(out: FloatArray, first: FloatArray, second: FloatArray, start: int) -> None:
    """best of the sets of the first two variables."""
    out[start + 1] = max(out[start + 1], out[start] + first[start])
    out[start + 2] = max(out[start + 2], out[start] + second[start])
    after_both = max(out[start + 1] + second[start + 1], out[start + 2] + first[start + 2])
    out[start + 3] = max(out[start + 3], after_both)


@kernel
def _push(tables: Tables, size: int, end: int) -> None:
    """All sets before ``end`` are done. With one the lowest member of ``end``, those from
    ``end - one`` on lack the variable that is the only difference to the sets after them.
    """
    if end >= size:
        return
    one = end & -end
    place = _lowest(one)
    x, y = tables.best[end - one : end], column_of(tables.local, place, size)[end - one : end]
    out = tables.best[end : end + one]
    for w in range(one):
        value = x[w] + y[w]
        out[w] = value if value > out[w] else out[w]


@kernel
def _has_at_most(word: int, count: int) -> bool:
    """Whether a set has no more members than that."""
    for _ in range(count):
        word &= word - 1
    return word == 0


@kernel
def _trace_back(
    layout: Layout, g: FloatArray, tables: Tables, restricted: bool, vertex: IntArray
) -> None:
    """Candidates of the ordered variables, and of the class, of the best structure."""
    m = layout.empty.size
    size, w = 1 << m, layout.everybody
    local, best, base = tables.local, tables.best, tables.base
    while True:
        of_class = column_of(local, m, size)[w]
        if restricted and best[w] == base[w] + of_class:
            _take(layout, g, of_class, w, m, vertex)
            for i in range(m):
                if w >> i & 1:
                    _put(layout, i, layout.empty[i], vertex)
            return
        if w == 0:
            return
        for i in range(m):
            before = w & ~(1 << i)
            value = column_of(local, i, size)[before]
            if before != w and best[w] == best[before] + value:
                _take(layout, g, value, before, i, vertex)
                w = before
                break


@kernel
def _take(
    layout: Layout, g: FloatArray, value: float, w: int, column: int, vertex: IntArray
) -> None:
    """The candidate behind a local value."""
    needed = layout.required[column] & w
    for a in range(layout.live.size):
        if layout.column[a] != column or layout.key[a] & ~w != 0 or needed & ~layout.key[a] != 0:
            continue
        if g[layout.live[a]] == value:
            if column == layout.empty.size:
                vertex[0] = layout.live[a]
            else:
                _put(layout, column, layout.live[a], vertex)
            return


@kernel
def _put(layout: Layout, place: int, k: int, vertex: IntArray) -> None:
    for i in range(layout.bit.size):
        if layout.bit[i] == place:
            vertex[i] = k


@kernel
def values_through(
    c: Candidates,
    layout: Layout,
    allowed: BoolArray,
    g: FloatArray,
    tables: Tables,
    through: FloatArray,
) -> float:
    """Largest value of a structure with each candidate, (K,), -inf where there is none; and the
    largest of all.
    """
    value = _fill(c, layout, g, tables)
    through[:] = -np.inf
    if value == -np.inf:
        return value
    apart = 0.0
    for a in range(layout.free.size):
        apart += g[best_of(c, allowed, g, layout.free[a])]
    alone = np.full(layout.empty.size, -np.inf)
    _fill_backwards(layout, tables, c.restricted, alone)
    size = 1 << layout.empty.size
    for a in range(layout.live.size):
        k = layout.live[a]
        own = column_of(tables.local, layout.column[a], size)
        rest = _look_up(own, layout.key[a], layout.required[layout.column[a]])
        through[k] = apart + (g[k] + rest)
    for i in range(layout.empty.size):
        if layout.empty[i] >= 0:
            through[layout.empty[i]] = apart + alone[i]
    value += apart
    for a in range(layout.free.size):
        i = layout.free[a]
        best = g[best_of(c, allowed, g, i)]
        for k in range(c.offsets[i], c.offsets[i + 1]):
            if allowed[k]:
                through[k] = value - (best - g[k])
    return value


@kernel
def _fill_backwards(layout: Layout, tables: Tables, restricted: bool, alone: FloatArray) -> None:
    """Tails of all sets; local_i(W) becomes the largest best(V) + tail(V + i) over V that contain
    W. ``alone`` (m,) is the best value of a structure in which a feature has no parents.
    """
    m = layout.empty.size
    size = 1 << m
    local, best, tail, base = tables.local, tables.best, tables.tail, tables.base
    for w in range(size):
        tail[w] = -np.inf
    tail[layout.everybody] = 0.0
    for block in range(size - LANES, -1, -LANES):
        _leave_block(tables, size, block)
        _pull(tables, size, block)
    if restricted:
        own = column_of(local, m, size)
        _find_alone(base, own, tail, alone)
        for w in range(size):
            own[w] = base[w] + tail[w]
        _raise_from_above(own, layout.required[m], m, -1)
    for i in range(m):
        own = column_of(local, i, size)
        if i < LOW:
            for w in range(size):
                own[w] = best[w] + tail[w | 1 << i] if w >> i & 1 == 0 else -np.inf
        else:
            one = 1 << i
            for start in range(0, size, 2 * one):  # sets with i are not of use
                x, y = best[start : start + one], tail[start + one : start + 2 * one]
                out = own[start : start + one]
                for a in range(one):
                    out[a] = x[a] + y[a]
        _raise_from_above(own, layout.required[i], m, i)


@kernel
def _find_alone(base: FloatArray, own: FloatArray, tail: FloatArray, alone: FloatArray) -> None:
    """Largest first(W) + tail(W) over sets that contain each feature."""
    m = alone.size
    by_lane = np.full(LANES, -np.inf)
    for block in range(0, 1 << m, LANES):
        highest = -np.inf
        for lane in range(LANES):
            value = base[block + lane] + own[block + lane] + tail[block + lane]
            by_lane[lane] = max(by_lane[lane], value)
            highest = max(highest, value)
        for i in range(LOW, m):
            if block >> i & 1:
                alone[i] = max(alone[i], highest)
    for lane in range(LANES):
        for i in range(LOW):
            if lane >> i & 1:
                alone[i] = max(alone[i], by_lane[lane])


@kernel
def _leave_block(tables: Tables, size: int, block: int) -> None:
    """tail of a block, the mirror image of :func:`_reach_block`."""
    out, local, step = tables.tail[block : block + LANES], tables.local, size + APART
    for lane in range(LANES - 2, -1, -1):
        value = out[lane]
        for place in range(LOW):
            if lane >> place & 1 == 0:
                here = local[place * step + block + lane]
                value = max(value, out[lane | 1 << place] + here)
        out[lane] = value


@kernel
def _pull(tables: Tables, size: int, start: int) -> None:
    """The mirror image of :func:`_push`: all sets from ``start`` on are done."""
    if start == 0:
        return
    one = start & -start
    place = _lowest(one)
    x = tables.tail[start : start + one]
    y = column_of(tables.local, place, size)[start - one : start]
    out = tables.tail[start - one : start]
    for w in range(one):
        value = x[w] + y[w]
        out[w] = value if value > out[w] else out[w]


@kernel
def _raise_from_above(own: FloatArray, required: int, m: int, i: int) -> None:
    """Largest values over sets with more members outside the block, those required and i apart;
    inside a block :func:`_look_up` does the rest.
    """
    for place in range(LOW, m):
        one = 1 << place
        if place == i or required & one:
            continue
        for start in range(0, own.size, 2 * one):
            _raise(own[start : start + one], own[start + one : start + 2 * one])


@kernel
def _look_up(own: FloatArray, key: int, required: int) -> float:
    """Largest value over the sets of a block that contain a key, and nobody else that is
    required.
    """
    block = key & ~(LANES - 1)
    value = -np.inf
    for lane in range(LANES):
        w = block | lane
        if w & key == key and (w ^ key) & required == 0:
            value = max(value, own[w])
    return value
