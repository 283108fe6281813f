"""Linear maximisation over a box: arborescence with contracted forced edges, class parents jointly.

The propositions and their proofs are in ``docs/theory/arborescence.rst``; here W are arc weights,
B is the value without class parents, I(r) what the forced edges inside a component add when it is
entered at feature r, and ``rce(j) = D(comp j, root) - g[j, {}] - I(j)`` the reduced cost of the
slot {} of feature j. Class sets are bounded by ``UB_S = g_S + B - sum_{j in S} rce(j)`` and
evaluated in decreasing order until the best value reaches the next bound; before the first pair
with j is evaluated, the problem with j made {} tightens the bounds of all of them.

Forbidden arcs are counted, never added: a sum that once contained -1e30 has lost its digits.

Relevant features lose {} unless they are parents of the class; should that leave nothing, B is
taken without this restriction, which only weakens the bound; pairs are then left as they are.
"""

from __future__ import annotations

import numpy as np

from marginbn.problem.array_types import FloatArray, IntArray
from marginbn.solvers.branch_bound.kernels.edmonds import arborescence, price_to_root, total_price
from marginbn.solvers.branch_bound.kernels.records import (
    FORBIDDEN,
    MISSING,
    Box,
    Graph,
    Instance,
    Oracle,
    Tree,
    column_of,
    copy_array,
    new_graph,
    set_class,
    slot_column,
)
from marginbn.solvers.compile import kernel

SAME = 1e-12
"""Bounds this much (relatively) above a value are not worth an evaluation."""


@kernel
def maximise(inst: Instance, box: Box, g: FloatArray, oracle: Oracle) -> tuple[float, float]:
    """Upper bound on ``g . eta`` over the box, which is the maximum up to rounding, and the value
    of ``oracle.vertex`` (-inf, -inf if the box is empty).
    """
    base, relaxed = maximise_base(box, g, oracle)
    if base <= MISSING:
        return -np.inf, -np.inf
    oracle.solved[0] = 1
    class_bounds(inst, box, g, base, oracle)
    best = -np.inf
    if not relaxed:
        best = _cut_base(inst, box, g, base, oracle)
    upper = oracle.upper
    is_tight = np.full(box.component.size, relaxed)
    while True:
        s = int(np.argmax(upper))
        if upper[s] <= MISSING or upper[s] <= best:
            break
        if upper[s] - best < SAME * abs(best):
            return upper[s], best
        oracle.solved[0] += 1
        j, k = inst.first[s], inst.second[s]
        if k >= 0 and not is_tight[j] and not is_tight[k]:
            _tighten_pairs(inst, box, g, j, oracle)
            is_tight[j] = True
            continue
        upper[s] = FORBIDDEN
        value = _evaluate_class_set(inst, box, g, s, base, relaxed, oracle)
        if value > best:
            best = value
            copy_array(oracle.other, oracle.vertex)
    if best <= MISSING:
        return -np.inf, -np.inf
    return best, best


@kernel
def _cut_base(inst: Instance, box: Box, g: FloatArray, base: float, oracle: Oracle) -> float:
    """The best structure that differs from the one without class parents only in the slots of the
    class's parents; left in ``oracle.vertex``.
    """
    n = box.allowed.shape[0]
    gain = np.empty(n + 1)
    gain[n] = 0.0  # of nobody, number -1
    for j in range(n):
        x = box.component[j]
        alone = box.starts[x + 1] - box.starts[x] == 1
        gain[j] = FORBIDDEN
        if alone and box.allowed[j, n + 1]:
            gain[j] = g[column_of(inst, j, n + 1)] - g[column_of(inst, j, oracle.base[j])]
    best, which = FORBIDDEN, -1
    offset = column_of(inst, n, 0)
    for s in range(box.classes.size):
        if box.classes[s]:
            value = base + g[offset + s] + gain[inst.first[s]] + gain[inst.second[s]]
            if value > best:
                best, which = value, s
    if best <= MISSING:
        return -np.inf
    copy_array(oracle.base[:n], oracle.vertex[:n])
    set_class(inst, oracle.vertex, which)
    return best


@kernel
def maximise_base(box: Box, g: FloatArray, oracle: Oracle) -> tuple[float, bool]:
    """B and whether it had to be relaxed; prices stay in ``oracle.tree``, entry prices in
    ``oracle.enter``.
    """
    graph = oracle.graph
    relaxed = False
    fill_graph(box, g, True, graph)
    value = solve_graph(box, graph, oracle.tree)
    if value <= MISSING:
        relaxed = True
        fill_graph(box, g, False, graph)
        value = solve_graph(box, graph, oracle.tree)
        if value <= MISSING:
            return FORBIDDEN, True
    expand(box, graph, oracle.tree, oracle.base)
    for i in range(box.component.size):
        oracle.enter[i] = price_to_root(box.component[i], oracle.tree)
    return value, relaxed


@kernel
def fill_graph(box: Box, g: FloatArray, strict: bool, graph: Graph) -> None:
    """Arc weights of a box; ``strict``: relevant features may not use {}."""
    n = box.allowed.shape[0]
    for i in range(n):
        offset = slot_column(box, g, i, 0)
        for j in range(n):
            graph.arcs[i, j] = g[offset + j] if box.allowed[i, j] else FORBIDDEN
        root, slot = FORBIDDEN, n
        if box.allowed[i, n]:
            root = g[offset + n]
        empty = box.allowed[i, n + 1] and not (strict and box.relevant[i])
        if empty and g[offset + n + 1] > root:
            root, slot = g[offset + n + 1], n + 1
        graph.arcs[i, n] = root
        graph.root_slot[i] = slot


@kernel
def solve_graph(box: Box, graph: Graph, tree: Tree) -> float:
    """Value of the best arborescence of the graph, forced edges contracted; FORBIDDEN if there is
    none.
    """
    n = box.allowed.shape[0]
    k = box.n_components[0]
    if k == n:
        # Components are numbered in feature order when all are single, so no renaming is needed.
        graph.inner[:] = 0.0
        graph.blocked[:] = 0
        feasible = arborescence(graph.arcs, n, tree)
    else:
        reroot(box, graph)
        contract(box, graph)
        feasible = arborescence(graph.contracted, k, tree)
    return total_price(tree) if feasible else FORBIDDEN


@kernel
def reroot(box: Box, graph: Graph) -> None:
    """I(r) and the number of forbidden arcs behind it, for every feature."""
    for x in range(box.n_components[0]):
        begin, end = box.starts[x], box.starts[x + 1]
        base = box.order[begin]
        graph.inner[base] = 0.0
        graph.blocked[base] = 0
        for a in range(begin + 1, end):
            v = box.order[a]
            _add_arc(graph, base, v, box.above[v], 1.0)
        for a in range(begin + 1, end):
            v = box.order[a]
            p = box.above[v]
            graph.inner[v] = graph.inner[p]
            graph.blocked[v] = graph.blocked[p]
            _add_arc(graph, v, v, p, -1.0)
            _add_arc(graph, v, p, v, 1.0)


@kernel
def _add_arc(graph: Graph, at: int, child: int, parent: int, sign: float) -> None:
    weight = graph.arcs[child, parent]
    if weight <= MISSING:
        graph.blocked[at] += int(sign)
    else:
        graph.inner[at] += sign * weight


@kernel
def contract(box: Box, graph: Graph) -> None:
    """Best entering arc between every two components, and from the root."""
    n = box.allowed.shape[0]
    k = box.n_components[0]
    graph.contracted[:k, : k + 1] = FORBIDDEN
    for r in range(n):
        if graph.blocked[r] > 0:
            continue
        x = box.component[r]
        for u in range(n + 1):
            y = k if u == n else box.component[u]
            weight = graph.arcs[r, u]
            if y == x or weight <= MISSING:
                continue
            if weight + graph.inner[r] > graph.contracted[x, y]:
                graph.contracted[x, y] = weight + graph.inner[r]
                graph.entry[x, y] = r
                graph.exit[x, y] = u


@kernel
def expand(box: Box, graph: Graph, tree: Tree, vertex: IntArray) -> None:
    """Slots of all features from the parents of the components."""
    n = box.allowed.shape[0]
    k = box.n_components[0]
    for x in range(k):
        tail = tree.parent[x]
        if k == n:
            r, u = x, tail
        else:
            r, u = graph.entry[x, tail], graph.exit[x, tail]
            for a in range(box.starts[x], box.starts[x + 1]):  # forced edges point away from r
                v = box.order[a]
                vertex[v] = box.above[v]
            v = r
            while box.above[v] >= 0:
                vertex[box.above[v]] = v
                v = box.above[v]
        vertex[r] = graph.root_slot[r] if u == n else u


@kernel
def class_bounds(inst: Instance, box: Box, g: FloatArray, base: float, oracle: Oracle) -> None:
    """UB_S for every class set of the box."""
    n = box.allowed.shape[0]
    offset = column_of(inst, n, 0)
    cost = np.empty(n + 1)
    cost[n] = 0.0  # of nobody, number -1
    for j in range(n):
        cost[j] = -FORBIDDEN  # of the slot {}, where j cannot be an entry
        if oracle.graph.blocked[j] == 0:
            cost[j] = oracle.enter[j] - g[column_of(inst, j, n + 1)] - oracle.graph.inner[j]
    for s in range(box.classes.size):
        value = base + g[offset + s] - cost[inst.first[s]] - cost[inst.second[s]]
        oracle.upper[s] = value if box.classes[s] else FORBIDDEN


@kernel
def _tighten_pairs(inst: Instance, box: Box, g: FloatArray, j: int, oracle: Oracle) -> None:
    """Bounds of all class sets with feature j, from the best structure in which j is {}."""
    n = box.allowed.shape[0]
    offset = column_of(inst, n, 0)
    trial = new_graph(n)
    copy_array(oracle.graph.arcs, trial.arcs)
    copy_array(oracle.graph.root_slot, trial.root_slot)
    _force_empty(box, g, j, trial)
    base = solve_graph(box, trial, oracle.tree)
    for s in range(box.classes.size):
        if oracle.upper[s] <= MISSING or (inst.first[s] != j and inst.second[s] != j):
            continue
        bound = base + g[offset + s]
        other = inst.second[s] if inst.first[s] == j else inst.first[s]
        if base > MISSING and other >= 0:
            if trial.blocked[other] > 0:
                bound = FORBIDDEN
            else:
                price = price_to_root(box.component[other], oracle.tree)
                bound -= price - g[column_of(inst, other, n + 1)] - trial.inner[other]
        oracle.upper[s] = min(oracle.upper[s], bound)


@kernel
def _evaluate_class_set(
    inst: Instance, box: Box, g: FloatArray, s: int, base: float, relaxed: bool, oracle: Oracle
) -> float:
    """Exact maximum with class set s; the vertex is left in ``oracle.other``."""
    n = box.allowed.shape[0]
    oracle.other[n] = s
    own = g[column_of(inst, n, s)]
    if inst.first[s] < 0 and not relaxed:
        copy_array(oracle.base[:n], oracle.other[:n])
        return float(base + own)
    trial = new_graph(n)
    if relaxed:
        fill_graph(box, g, True, trial)
    else:
        copy_array(oracle.graph.arcs, trial.arcs)
        copy_array(oracle.graph.root_slot, trial.root_slot)
    _force_empty(box, g, inst.first[s], trial)
    _force_empty(box, g, inst.second[s], trial)
    value = solve_graph(box, trial, oracle.tree)
    if value <= MISSING:
        return FORBIDDEN
    expand(box, trial, oracle.tree, oracle.other)
    return float(value + own)


@kernel
def _force_empty(box: Box, g: FloatArray, j: int, graph: Graph) -> None:
    """Leave feature j (-1: none) only the slot {}."""
    if j >= 0:
        n = graph.arcs.shape[0]
        graph.arcs[j, :] = FORBIDDEN
        graph.arcs[j, n] = g[slot_column(box, g, j, n + 1)]
        graph.root_slot[j] = n + 1
