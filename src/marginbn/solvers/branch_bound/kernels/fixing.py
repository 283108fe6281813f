"""Reduced-cost fixing: what no structure above the cutoff can contain.

From a majorant (c, g) of the box, with B, prices and UB_S of the oracle on g, let

    m = max UB_S,      m_i = max over S containing i,      m_X = max over S with a member in
    component X, rc(i, s) = D(comp i, comp s) - g[i, s] - I(i)            for slots from outside the
    component ({} and {class}: D(comp i, root)).

Every structure obeys ``g . eta <= B + g_S - sum over components of rc(its entering slot)``: **one
term per component**. Therefore

- drop S if ``c + UB_S <= cutoff``;
- {class} and arcs from outside exclude every S that meets the component: forbid if ``c + m - rc <=
  cutoff``;
- {} with i not in S is excluded if ``c + m - rc <= cutoff`` (mark i relevant); {} with i in S
  already has rc in UB_S, so {} goes only if in addition ``c + m_i <= cutoff``;
- an arc of a forced edge costs the smallest rc of all entries that orient the edge this way; UB_S
  of an S meeting X contains that term already, so it is forbidden only if ``c + m - rc <= cutoff``
  **and** ``c + m_X <= cutoff``.

Counting a term twice once produced wrong proofs; the two "already contains" clauses are what
prevents it.
"""

from __future__ import annotations

import numpy as np

from marginbn.solvers.branch_bound.kernels.edmonds import price_between
from marginbn.solvers.branch_bound.kernels.oracle import class_bounds, maximise_base
from marginbn.solvers.branch_bound.kernels.records import (
    FORBIDDEN,
    MISSING,
    Box,
    FloatArray,
    Instance,
    Oracle,
)
from marginbn.solvers.compile import kernel


@kernel
def fix_box(
    inst: Instance, box: Box, c: float, g: FloatArray, cutoff: float, oracle: Oracle
) -> tuple[bool, float]:
    """Remove what cannot exceed the cutoff; (box still possible, largest bound of anything
    removed).
    """
    base, _ = maximise_base(box, g, oracle)
    if base <= MISSING:
        return False, -np.inf
    class_bounds(inst, box, g, base, oracle)
    removed = _drop_class_sets(box, c, cutoff, oracle)
    best = oracle.upper.max()
    if best <= MISSING:
        return False, removed
    with_feature, with_component = _class_maxima(inst, box, oracle)
    entry_cost = np.empty(box.component.size)
    for i in range(box.component.size):
        removed = max(
            removed,
            _fix_outside(box, c + best, g, cutoff, i, c + with_feature[i], oracle, entry_cost),
        )
    for x in range(box.n_components[0]):
        if box.starts[x + 1] - box.starts[x] > 1 and c + with_component[x] <= cutoff:
            removed = max(removed, _fix_orientations(box, c + best, cutoff, x, entry_cost))
            removed = max(removed, c + with_component[x])
    return True, removed


@kernel
def _drop_class_sets(box: Box, c: float, cutoff: float, oracle: Oracle) -> float:
    removed = -np.inf
    for s in range(box.classes.size):
        if box.classes[s] and c + oracle.upper[s] <= cutoff:
            removed = max(removed, c + oracle.upper[s])
            box.classes[s] = False
            oracle.upper[s] = FORBIDDEN
    return removed


@kernel
def _class_maxima(inst: Instance, box: Box, oracle: Oracle) -> tuple[FloatArray, FloatArray]:
    """m_i per feature and m_X per component."""
    n = box.component.size
    with_feature = np.full(n, FORBIDDEN)
    with_component = np.full(n, FORBIDDEN)
    for s in range(box.classes.size):
        if not box.classes[s]:
            continue
        for j in (inst.first[s], inst.second[s]):
            if j >= 0:
                x = box.component[j]
                with_feature[j] = max(with_feature[j], oracle.upper[s])
                with_component[x] = max(with_component[x], oracle.upper[s])
    return with_feature, with_component


@kernel
def _fix_outside(
    box: Box,
    best: float,
    g: FloatArray,
    cutoff: float,
    i: int,
    with_feature: float,
    oracle: Oracle,
    entry_cost: FloatArray,
) -> float:
    """Slots of i that enter its component; their smallest cost goes to ``entry_cost[i]``."""
    n = box.allowed.shape[0]
    removed = -np.inf
    entry_cost[i] = np.inf
    for s in range(n + 2):
        if not box.allowed[i, s] or (s < n and box.component[s] == box.component[i]):
            continue
        cost = slot_cost(box, g, i, s, oracle)
        if s < n + 1 or not box.relevant[i]:
            entry_cost[i] = min(entry_cost[i], cost)
        if s == n + 1:
            removed = max(removed, _fix_empty(box, best - cost, cutoff, i, with_feature))
        elif best - cost <= cutoff:
            box.allowed[i, s] = False
            removed = max(removed, best - cost)
    return removed


@kernel
def slot_cost(box: Box, g: FloatArray, i: int, s: int, oracle: Oracle) -> float:
    """rc(i, s) of a slot from outside the component."""
    n = box.allowed.shape[0]
    if oracle.graph.blocked[i] > 0:
        return -FORBIDDEN
    if s >= n:
        price = oracle.enter[i]
    else:
        price = price_between(box.component[i], box.component[s], oracle.tree)
    return float(price - g[i * (n + 2) + s] - oracle.graph.inner[i])


@kernel
def _fix_empty(box: Box, value: float, cutoff: float, i: int, with_feature: float) -> float:
    """The slot {}: two ways to use it, as an isolated feature or as a parent of the class."""
    n = box.allowed.shape[0]
    removed = -np.inf
    if value <= cutoff and not box.relevant[i]:
        box.relevant[i] = True
        removed = value
    if box.relevant[i] and with_feature <= cutoff:
        box.allowed[i, n + 1] = False
        removed = max(removed, with_feature)
    return removed


@kernel
def _fix_orientations(
    box: Box, best: float, cutoff: float, x: int, entry_cost: FloatArray
) -> float:
    """Arcs of forced edges in component x, which no class set left can meet above the cutoff."""
    n = box.allowed.shape[0]
    begin, end = box.starts[x], box.starts[x + 1]
    down = np.full(n, np.inf)  # cheapest entry that leaves the edge (v, above v) pointing to v
    up = np.full(n, np.inf)  # cheapest entry that points it to above v
    on_path = np.zeros(n, dtype=np.bool_)
    for a in range(begin, end):
        r = box.order[a]
        v = r
        while v >= 0:
            on_path[v] = True
            v = box.above[v]
        for e in range(begin + 1, end):
            v = box.order[e]
            if on_path[v]:
                up[v] = min(up[v], entry_cost[r])
            else:
                down[v] = min(down[v], entry_cost[r])
        v = r
        while v >= 0:
            on_path[v] = False
            v = box.above[v]
    removed = -np.inf
    for a in range(begin + 1, end):
        v = box.order[a]
        removed = max(removed, _forbid_if(box, v, box.above[v], best - down[v], cutoff))
        removed = max(removed, _forbid_if(box, box.above[v], v, best - up[v], cutoff))
    return removed


@kernel
def _forbid_if(box: Box, i: int, s: int, value: float, cutoff: float) -> float:
    if box.allowed[i, s] and value <= cutoff:
        box.allowed[i, s] = False
        return value
    return -np.inf
