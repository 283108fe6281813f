"""Maximum arborescence with dual prices, compiled.

The mathematics is in ``docs/theory/arborescence.rst``. A greedy attempt comes first (every node
takes its best entering arc); where that closes cycles, paths grow backwards and contract them.

*Rows of tails.* Only what enters a contracted node x changes, so x has a row over the *original*
tails j outside x:

    weight[x, j] = max over the nodes c of the cycle of weight[c, j] - price_c,

and the head behind each entry. What leaves x need not be known: the best arc that enters an
original node is what the greedy attempt chose, wherever its tail is contracted by then. Rows are
read and written from end to end, one arborescence costs O(k^2), and most of that is the greedy
attempt.

Prices give reduced costs. With ``D(X, Y)`` the sum of the prices of all (super)nodes that contain X
but not Y, every arc satisfies ``w(Y -> X) <= D(X, Y)``, and the value of any arborescence is the
sum of all prices minus the slacks of its arcs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from marginbn.problem.array_types import FloatArray, IntArray
from marginbn.solvers.branch_bound.kernels import records
from marginbn.solvers.branch_bound.kernels.records import Tree
from marginbn.solvers.compile import kernel

UNVISITED, ON_PATH, DONE = 0, 1, 2
"""States of a node while paths grow."""


class Growth(NamedTuple):
    """Scratch of the path-growing algorithm; contracted nodes are numbered from k on."""

    weight: FloatArray  # (k, k + 1) adjusted weights of arcs into contracted nodes, root last
    head: IntArray  # (k, k + 1) original heads of these arcs
    tail: IntArray  # (2k,) original tail of the chosen entering arc
    top: IntArray  # (k,) top-level node that contains the original one
    path: IntArray  # (2k,)
    state: IntArray  # (2k,) UNVISITED, ON_PATH or DONE


@kernel
def arborescence(weights: FloatArray, k: int, tree: Tree) -> bool:
    """Parents and prices of nodes 0..k-1 (root: column k); False if there is no arborescence. The
    weights of loops are forbidden on the way.
    """
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
        row = weights[i]
        row[i] = records.FORBIDDEN
        best, tail = _largest(row, k), k
        if best <= records.MISSING:
            return False
        if row[k] < best:
            tail = 0
            while row[tail] != best:
                tail += 1
        tree.parent[i], tree.price[i], tree.above[i] = tail, best, -1
    return True


@kernel
def _largest(row: FloatArray, k: int) -> float:
    """The largest of entries 0..k; four at a time, of which none waits for another."""
    a0 = a1 = a2 = a3 = row[k]
    j = 0
    while j + 3 < k:
        a0 = row[j] if row[j] > a0 else a0
        a1 = row[j + 1] if row[j + 1] > a1 else a1
        a2 = row[j + 2] if row[j + 2] > a2 else a2
        a3 = row[j + 3] if row[j + 3] > a3 else a3
        j += 4
    while j < k:
        a0 = row[j] if row[j] > a0 else a0
        j += 1
    return float(max(max(a0, a1), max(a2, a3)))


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
    work = Growth(
        np.empty((k, k + 1)),
        np.empty((k, k + 1), dtype=np.int64),
        np.empty(2 * k, dtype=np.int64),
        np.empty(k, dtype=np.int64),
        np.empty(2 * k, dtype=np.int64),
        np.zeros(2 * k, dtype=np.int64),
    )
    for i in range(k):
        work.top[i], work.tail[i] = i, tree.parent[i]
    for start in range(k):
        if work.state[start] != UNVISITED or tree.above[start] >= 0:
            continue
        if not _grow(weights, start, k, tree, work):
            return False
    _expand(k, tree, work)
    return True


@kernel
def _grow(weights: FloatArray, start: int, k: int, tree: Tree, work: Growth) -> bool:
    """One path; False if a node cannot be entered."""
    length = 1
    work.path[0] = start
    work.state[start] = ON_PATH
    while True:
        tail = work.tail[work.path[length - 1]]
        if tail == k:
            break
        u = work.top[tail]
        if work.state[u] == DONE:
            break
        if work.state[u] == UNVISITED:
            work.state[u] = ON_PATH
            work.path[length] = u
            length += 1
            continue
        begin = length - 1
        while work.path[begin] != u:
            begin -= 1
        x = tree.size[0]
        _contract(weights, begin, length, k, tree, work)
        if tree.price[x] <= records.MISSING:
            return False
        work.path[begin] = x
        length = begin + 1
    for p in range(length):
        work.state[work.path[p]] = DONE
    return True


@kernel
def _contract(
    weights: FloatArray, begin: int, length: int, k: int, tree: Tree, work: Growth
) -> None:
    """Merge path[begin:length] into a new node, with the best arc that enters it."""
    x = tree.size[0]
    tree.size[0] = x + 1
    work.state[x] = ON_PATH
    tree.above[x] = -1
    best, heads = work.weight[x - k], work.head[x - k]
    for j in range(k + 1):
        best[j] = -np.inf
    for p in range(begin, length):
        c = work.path[p]
        tree.above[c] = x
        if c < k:
            _enter_node(weights[c], c, tree.price[c], best, heads)
        else:
            _enter_contracted(work.weight[c - k], work.head[c - k], tree.price[c], best, heads)
    highest, tail = best[k], k
    for j in range(k):
        if tree.above[work.top[j]] == x:
            work.top[j] = x
            best[j] = records.FORBIDDEN
        elif best[j] > highest:
            highest, tail = best[j], j
    tree.price[x], work.tail[x] = highest, tail


@kernel
def _enter_node(row: FloatArray, c: int, price: float, best: FloatArray, heads: IntArray) -> None:
    """Arcs into an original node of a cycle, which would replace its arc of the cycle. A forbidden
    weight stays one whatever is subtracted.
    """
    for j in range(best.size):
        value = row[j] - price
        better = value > best[j]
        heads[j] = c if better else heads[j]
        best[j] = value if better else best[j]


@kernel
def _enter_contracted(
    row: FloatArray, own: IntArray, price: float, best: FloatArray, heads: IntArray
) -> None:
    """The same for a contracted node."""
    for j in range(best.size):
        value = row[j] - price
        better = value > best[j]
        heads[j] = own[j] if better else heads[j]
        best[j] = value if better else best[j]


@kernel
def _expand(k: int, tree: Tree, work: Growth) -> None:
    """Undo contractions, last first: an entering arc breaks the cycle at its head."""
    size = tree.size[0]
    for a in range(size):
        work.state[a] = UNVISITED
    for x in range(size - 1, -1, -1):
        if work.state[x] == DONE:
            continue
        tail = work.tail[x]
        head = x if x < k else work.head[x - k, tail]
        tree.parent[head] = tail
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
def prices_between(x: int, k: int, tree: Tree, out: FloatArray) -> None:
    """out[y] = D(x, y) for the nodes y and the root, k: prices of everything that contains x but
    not y. Nodes that x lies in know the sum of the prices below them.
    """
    below = np.full(tree.size[0], np.nan)
    total, z = 0.0, x
    while z >= 0:
        below[z] = total
        total += tree.price[z]
        z = tree.above[z]
    out[k] = total
    for y in range(k):
        z = y
        while z >= 0 and np.isnan(below[z]):
            z = tree.above[z]
        out[y] = below[z] if z >= 0 else total
