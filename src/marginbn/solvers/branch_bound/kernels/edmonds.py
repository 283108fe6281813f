"""Maximum arborescence with dual prices, compiled.

The mathematics and a readable version are in ``marginbn.problem.arborescence``. Here the
path-growing algorithm works on a dense matrix: a contracted cycle gets a new row and column, so one
arborescence costs O(k^2) after a greedy attempt that is usually right.

Prices give reduced costs. With ``D(X, Y)`` the sum of the prices of all (super)nodes that contain X
but not Y, every arc satisfies ``w(Y -> X) <= D(X, Y)``, and the value of any arborescence is the
sum of all prices minus the slacks of its arcs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from marginbn.solvers.branch_bound.kernels import records
from marginbn.solvers.branch_bound.kernels.records import FloatArray, IntArray, Tree
from marginbn.solvers.compile import kernel

UNVISITED, ON_PATH, DONE = 0, 1, 2
"""States of a node while paths grow."""


class Growth(NamedTuple):
    """Scratch of the path-growing algorithm."""

    weight: FloatArray  # (2k, 2k + 1) adjusted weights [head, tail], root last
    ends: IntArray  # (2, 2k, 2k + 1) original tail and head of the arc behind each weight
    enter: IntArray  # (2, 2k) original tail and head of the chosen entering arc
    active: IntArray  # (2k,) top-level nodes
    path: IntArray  # (2k,)
    state: IntArray  # (2k,) UNVISITED, ON_PATH or DONE


@kernel
def arborescence(weights: FloatArray, k: int, tree: Tree) -> bool:
    """Parents and prices of nodes 0..k-1 (root: column k); False if there is no arborescence."""
    if not _greedy(weights, k, tree):
        return False
    if _is_acyclic(tree.parent, k):
        return True
    return _grow_all(weights, k, tree)


@kernel
def _greedy(weights: FloatArray, k: int, tree: Tree) -> bool:
    """Every node takes its best entering arc."""
    tree.size[0] = k
    for i in range(k):
        best, tail = weights[i, k], k
        for j in range(k):
            if weights[i, j] > best and j != i:
                best, tail = weights[i, j], j
        if best <= records.MISSING:
            return False
        tree.parent[i], tree.price[i], tree.above[i] = tail, best, -1
    return True


@kernel
def _is_acyclic(parent: IntArray, k: int) -> bool:
    mark = np.full(k, -1)
    for i in range(k):
        j = i
        while j != k and mark[j] < 0:
            mark[j] = i
            j = parent[j]
        if j != k and mark[j] == i:
            return False
    return True


@kernel
def _grow_all(weights: FloatArray, k: int, tree: Tree) -> bool:
    """Grow paths backwards from every node that no earlier path has finished."""
    root = 2 * k
    work = Growth(
        np.empty((2 * k, 2 * k + 1)),
        np.empty((2, 2 * k, 2 * k + 1), dtype=np.int64),
        np.empty((2, 2 * k), dtype=np.int64),
        np.empty(2 * k, dtype=np.int64),
        np.empty(2 * k, dtype=np.int64),
        np.zeros(2 * k, dtype=np.int64),
    )
    _load(weights, k, work, root)
    n_active = k
    for start in range(k):
        if work.state[start] != UNVISITED or tree.above[start] >= 0:
            continue
        n_active = _grow(start, n_active, tree, work, root)
        if n_active < 0:
            return False
    _expand(k, tree, work, root)
    return True


@kernel
def _load(weights: FloatArray, k: int, work: Growth, root: int) -> None:
    for i in range(k):
        for j in range(k):
            work.weight[i, j] = weights[i, j] if i != j else records.FORBIDDEN
            work.ends[0, i, j] = j
            work.ends[1, i, j] = i
        work.weight[i, root] = weights[i, k]
        work.ends[0, i, root] = root
        work.ends[1, i, root] = i
        work.active[i] = i


@kernel
def _grow(start: int, n_active: int, tree: Tree, work: Growth, root: int) -> int:
    """One path; returns the new number of top-level nodes, -1 if a node cannot be entered."""
    length = 1
    work.path[0] = start
    work.state[start] = ON_PATH
    while True:
        h = work.path[length - 1]
        u = _choose(h, n_active, tree, work, root)
        if tree.price[h] <= records.MISSING:
            return -1
        if u == root or work.state[u] == DONE:
            break
        if work.state[u] == UNVISITED:
            work.state[u] = ON_PATH
            work.path[length] = u
            length += 1
            continue
        begin = length - 1
        while work.path[begin] != u:
            begin -= 1
        n_active = _contract(begin, length, n_active, tree, work, root)
        work.path[begin] = tree.size[0] - 1
        length = begin + 1
    for p in range(length):
        work.state[work.path[p]] = DONE
    return n_active


@kernel
def _choose(h: int, n_active: int, tree: Tree, work: Growth, root: int) -> int:
    best, tail = work.weight[h, root], root
    for a in range(n_active):
        u = work.active[a]
        if work.weight[h, u] > best and u != h:
            best, tail = work.weight[h, u], u
    tree.price[h] = best
    work.enter[0, h] = work.ends[0, h, tail]
    work.enter[1, h] = work.ends[1, h, tail]
    return tail


@kernel
def _contract(begin: int, length: int, n_active: int, tree: Tree, work: Growth, root: int) -> int:
    """Merge path[begin:length]; an arc into the new node replaces the cycle arc of its head."""
    x = tree.size[0]
    tree.size[0] = x + 1
    work.state[x] = ON_PATH
    tree.above[x] = -1
    for p in range(begin, length):
        tree.above[work.path[p]] = x
    kept = 0
    for a in range(n_active):
        v = work.active[a]
        if tree.above[v] != x:
            work.active[kept] = v
            kept += 1
    for a in range(kept):
        v = work.active[a]
        _merge_into(x, v, begin, length, tree, work)
        _merge_from(x, v, begin, length, work)
    _merge_into(x, root, begin, length, tree, work)
    work.active[kept] = x
    return kept + 1


@kernel
def _merge_into(x: int, v: int, begin: int, length: int, tree: Tree, work: Growth) -> None:
    """w[x, v] = max over the cycle of w[c, v] - price_c."""
    best, which = records.FORBIDDEN, work.path[begin]
    for p in range(begin, length):
        c = work.path[p]
        if work.weight[c, v] > records.MISSING and work.weight[c, v] - tree.price[c] > best:
            best, which = work.weight[c, v] - tree.price[c], c
    work.weight[x, v] = best
    work.ends[0, x, v] = work.ends[0, which, v]
    work.ends[1, x, v] = work.ends[1, which, v]


@kernel
def _merge_from(x: int, v: int, begin: int, length: int, work: Growth) -> None:
    """w[v, x] = max over the cycle of w[v, c]."""
    best, which = records.FORBIDDEN, work.path[begin]
    for p in range(begin, length):
        c = work.path[p]
        if work.weight[v, c] > best:
            best, which = work.weight[v, c], c
    work.weight[v, x] = best
    work.ends[0, v, x] = work.ends[0, v, which]
    work.ends[1, v, x] = work.ends[1, v, which]


@kernel
def _expand(k: int, tree: Tree, work: Growth, root: int) -> None:
    """Undo contractions, last first: an entering arc breaks the cycle at its head."""
    size = tree.size[0]
    for a in range(size):
        work.state[a] = UNVISITED
    for x in range(size - 1, -1, -1):
        if work.state[x] == DONE:
            continue
        head = work.enter[1, x]
        tail = work.enter[0, x]
        tree.parent[head] = k if tail == root else tail
        v = head
        while v != x:
            work.state[v] = DONE
            v = tree.above[v]


@kernel
def total_price(tree: Tree) -> float:
    """Value of the arborescence by its dual."""
    total = 0.0
    for x in range(tree.size[0]):
        total += tree.price[x]
    return total


@kernel
def price_to_root(x: int, tree: Tree) -> float:
    """D(x, root): prices of x and of everything that contains it."""
    total = 0.0
    while x >= 0:
        total += tree.price[x]
        x = tree.above[x]
    return total


@kernel
def price_between(x: int, y: int, tree: Tree) -> float:
    """D(x, y): prices of everything that contains x but not y."""
    total = 0.0
    while x >= 0:
        z = y
        while z >= 0 and z != x:
            z = tree.above[z]
        if z == x:
            break
        total += tree.price[x]
        x = tree.above[x]
    return total
