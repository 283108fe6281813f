"""Logical consequences inside a box, and reduced-cost fixing (without it x1.22, at worst > x1.4).

Rules, repeated until nothing changes (none of them removes a structure of the box):

1. a feature without a slot: the box is empty; with one slot that is an arc: the edge is forced;
2. forced edges must form a forest;
3. inside a component of forced edges no further arc is possible;
4. a component is entered at exactly one feature r, and all its edges then point away from r. r is a
   *possible entry* iff all these arcs and some slot from outside ({}, {class} or an arc of another
   component) are allowed. Other features lose their slots from outside; an arc of a forced edge
   that no possible entry uses is removed; no possible entry: the box is empty;
5. a class set needs the slot {} of its members, so two of them cannot lie in one component; a
   feature in every class set left has the slot {} only;
6. a *relevant* feature is a parent of the class or has a slot other than {}.

**Reduced-cost fixing**: what no structure above the cutoff can contain. From a majorant (c, g) of
the box, with B, prices and UB_S of the oracle on g, let

    m   = max UB_S
    m_i = max of UB_S over S containing i
    m_X = max of UB_S over S with a member in component X
    rc(i, s) = D(comp i, comp s) - g[i, s] - I(i)    for slots from outside the component
                                                     ({} and {class}: D(comp i, root)).

Every structure obeys ``g . eta <= B + g_S - sum over components of rc(its entering slot)``: **one
term per component**. Therefore

- drop S if ``c + UB_S <= cutoff``;
- {class} and arcs from outside exclude every S that meets the component: forbid if
  ``c + m - rc <= cutoff``;
- {} with i not in S is excluded if ``c + m - rc <= cutoff`` (mark i relevant); {} with i in S
  already has rc in UB_S, so {} goes only if in addition ``c + m_i <= cutoff``;
- an arc of a forced edge costs the smallest rc of all entries that orient the edge this way; UB_S
  of an S meeting X contains that term already, so it is forbidden only if ``c + m - rc <= cutoff``
  **and** ``c + m_X <= cutoff``.

The two "already contains" clauses prevent that a term counts twice.
"""

from __future__ import annotations

import numpy as np

from marginbn.problem.array_types import FloatArray
from marginbn.solvers.branch_bound.kernels import records
from marginbn.solvers.branch_bound.kernels.edmonds import prices_between
from marginbn.solvers.branch_bound.kernels.oracle import class_bounds, maximise_base
from marginbn.solvers.branch_bound.kernels.records import Box, Instance, Oracle
from marginbn.solvers.compile import kernel


@kernel
def propagate(inst: Instance, box: Box) -> bool:
    """Tighten the box to a fixpoint; False if it is empty. Components are valid afterwards."""
    changed = True
    while changed:
        changed = False
        status = _force_single_arcs(box)
        if status < 0 or not find_components(box):
            return False
        status_inside = _forbid_inner_arcs(box)
        status_entries = _restrict_entries(box)
        status_classes = _restrict_classes(inst, box)
        if status_entries < 0 or status_classes < 0:
            return False
        status_relevant = _restrict_relevant(inst, box)
        changed = status + status_inside + status_entries + status_classes + status_relevant > 0
    return True


@kernel
def _force_single_arcs(box: Box) -> int:
    """Rule 1; returns -1 for an empty box, otherwise whether something changed."""
    n = box.allowed.shape[0]
    changed = 0
    for i in range(n):
        count, last = 0, 0
        for s in range(n + 2):
            if box.allowed[i, s]:
                count += 1
                last = s
        if count == 0:
            return -1
        if count == 1 and last < n and not box.edges[i, last]:
            box.edges[i, last] = True
            box.edges[last, i] = True
            changed = 1
    return changed


@kernel
def find_components(box: Box) -> bool:
    """Breadth-first search over forced edges (rule 2); False if they contain a cycle."""
    n = box.allowed.shape[0]
    for i in range(n):
        box.component[i] = -1
    count, length, read = 0, 0, 0
    for base in range(n):
        if box.component[base] >= 0:
            continue
        box.starts[count] = length
        box.component[base] = count
        box.above[base] = -1
        box.order[length] = base
        length += 1
        while read < length:
            v = box.order[read]
            read += 1
            for u in range(n):
                if not box.edges[v, u] or u == box.above[v]:
                    continue
                if box.component[u] >= 0:
                    return False
                box.component[u] = count
                box.above[u] = v
                box.order[length] = u
                length += 1
        count += 1
    box.starts[count] = length
    box.n_components[0] = count
    return True


@kernel
def _forbid_inner_arcs(box: Box) -> int:
    """Rule 3."""
    n = box.allowed.shape[0]
    if box.n_components[0] == n:
        return 0
    changed = 0
    for i in range(n):
        for j in range(n):
            inside = i != j and box.component[i] == box.component[j]
            if inside and not box.edges[i, j] and box.allowed[i, j]:
                box.allowed[i, j] = False
                changed = 1
    return changed


@kernel
def _restrict_entries(box: Box) -> int:
    """Rule 4 for every component of at least two features."""
    changed = 0
    for x in range(box.n_components[0]):
        begin, end = box.starts[x], box.starts[x + 1]
        if end - begin > 1:
            status = _restrict_component(box, begin, end)
            if status < 0:
                return -1
            changed += status
    return changed


@kernel
def _restrict_component(box: Box, begin: int, end: int) -> int:
    """Rule 4 for one component; re-rooting along the tree counts forbidden orientations."""
    n = box.allowed.shape[0]
    blocked = np.zeros(n, dtype=np.int64)
    below = np.zeros(n, dtype=np.int64)  # possible entries in the subtree, seen from the base
    base = box.order[begin]
    for a in range(begin + 1, end):
        v = box.order[a]
        blocked[base] += not box.allowed[v, box.above[v]]
    for a in range(begin + 1, end):
        v = box.order[a]
        p = box.above[v]
        blocked[v] = blocked[p] + (not box.allowed[p, v]) - (not box.allowed[v, p])
    changed = 0
    for a in range(begin, end):
        r = box.order[a]
        for s in range(n + 2):
            if box.allowed[r, s] and (s >= n or not box.edges[r, s]):  # from outside
                if blocked[r] == 0:
                    below[r] = 1
                else:
                    box.allowed[r, s] = False
                    changed = 1
    for a in range(end - 1, begin, -1):
        v = box.order[a]
        below[box.above[v]] += below[v]
    if below[base] == 0:
        return -1
    for a in range(begin + 1, end):
        v = box.order[a]
        p = box.above[v]
        if below[v] == below[base] and box.allowed[v, p]:
            box.allowed[v, p] = False
            changed = 1
        if below[v] == 0 and box.allowed[p, v]:
            box.allowed[p, v] = False
            changed = 1
    return changed


@kernel
def is_member(inst: Instance, j: int, s: int) -> bool:
    """Whether feature j belongs to class set s."""
    return bool(inst.first[s] == j or inst.second[s] == j)


@kernel
def _restrict_classes(inst: Instance, box: Box) -> int:
    """Rule 5; -1 if no class set is left."""
    n = box.allowed.shape[0]
    changed, left = 0, 0
    count = np.zeros(n + 1, dtype=np.int64)  # the last place, -1, stands for nobody
    for s in range(box.classes.size):
        if not box.classes[s]:
            continue
        j, k = inst.first[s], inst.second[s]
        fits = j < 0 or box.allowed[j, n + 1]
        if fits and k >= 0:
            fits = box.allowed[k, n + 1] and box.component[j] != box.component[k]
        if not fits:
            box.classes[s] = False
            changed = 1
            continue
        left += 1
        count[j] += 1
        count[k] += 1
    if left == 0:
        return -1
    for j in range(n):
        if count[j] == left:
            changed += keep_only_empty(box, j)
            box.relevant[j] = False
        elif count[j] == 0 and box.relevant[j] and box.allowed[j, n + 1]:
            box.allowed[j, n + 1] = False
            changed = 1
    return changed


@kernel
def keep_only_empty(box: Box, j: int) -> int:
    """Forbid every slot of j but {}; whether that changed anything."""
    n = box.allowed.shape[0]
    changed = 0
    for s in range(n + 1):
        if box.allowed[j, s]:
            box.allowed[j, s] = False
            changed = 1
    return changed


@kernel
def _restrict_relevant(inst: Instance, box: Box) -> int:
    """Rule 6: clear the mark where it is implied, use it where only {} is left."""
    n = box.allowed.shape[0]
    changed = 0
    for j in range(n):
        if not box.relevant[j]:
            continue
        if not box.allowed[j, n + 1]:
            box.relevant[j] = False
        elif records.only_true(box.allowed[j]) == n + 1:
            for s in range(box.classes.size):
                if box.classes[s] and not is_member(inst, j, s):
                    box.classes[s] = False
                    changed = 1
    return changed


@kernel
def fix_box(
    inst: Instance, box: Box, c: float, g: FloatArray, cutoff: float, oracle: Oracle
) -> tuple[bool, float]:
    """Remove what cannot exceed the cutoff; (box still possible, largest bound of anything
    removed).
    """
    base, _ = maximise_base(box, g, oracle)
    if base <= records.MISSING:
        return False, -np.inf
    class_bounds(inst, box, g, base, oracle)
    removed = -np.inf
    for s in range(box.classes.size):
        if box.classes[s] and c + oracle.upper[s] <= cutoff:
            removed = max(removed, c + oracle.upper[s])
            box.classes[s] = False
            oracle.upper[s] = records.FORBIDDEN
    best = oracle.upper.max()
    if best <= records.MISSING:
        return False, removed
    with_feature, with_component = _class_maxima(inst, box, oracle)
    entry_cost = np.empty(box.component.size)
    price = np.empty(box.n_components[0] + 1)
    for x in range(box.n_components[0]):
        prices_between(x, box.n_components[0], oracle.tree, price)
        for a in range(box.starts[x], box.starts[x + 1]):
            i = box.order[a]
            lost = _fix_outside(
                box, c + best, g, cutoff, i, c + with_feature[i], price, oracle, entry_cost
            )
            removed = max(removed, lost)
        if box.starts[x + 1] - box.starts[x] > 1 and c + with_component[x] <= cutoff:
            removed = max(removed, _fix_orientations(box, c + best, cutoff, x, entry_cost))
            removed = max(removed, c + with_component[x])
    return True, removed


@kernel
def _class_maxima(inst: Instance, box: Box, oracle: Oracle) -> tuple[FloatArray, FloatArray]:
    """m_i per feature and m_X per component."""
    n = box.component.size
    with_feature = np.full(n + 1, records.FORBIDDEN)  # the last place, -1, stands for nobody
    with_component = np.full(n, records.FORBIDDEN)
    for s in range(box.classes.size):
        if box.classes[s]:
            j, k, upper = inst.first[s], inst.second[s], oracle.upper[s]
            with_feature[j] = max(with_feature[j], upper)
            with_feature[k] = max(with_feature[k], upper)
    for j in range(n):
        x = box.component[j]
        with_component[x] = max(with_component[x], with_feature[j])
    return with_feature, with_component


@kernel
def _fix_outside(
    box: Box,
    best: float,
    g: FloatArray,
    cutoff: float,
    i: int,
    with_feature: float,
    price: FloatArray,
    oracle: Oracle,
    entry_cost: FloatArray,
) -> float:
    """Slots of i that enter its component, with the prices D between that and others; the smallest
    of their costs rc(i, s) goes to ``entry_cost[i]``.
    """
    n = box.allowed.shape[0]
    removed = -np.inf
    entry_cost[i] = np.inf
    offset, inner = records.slot_column(box, g, i, 0), oracle.graph.inner[i]
    for s in range(n + 2):
        if not box.allowed[i, s] or (s < n and box.component[s] == box.component[i]):
            continue
        cost = -records.FORBIDDEN
        if oracle.graph.blocked[i] == 0:
            other = box.component[s] if s < n else price.size - 1
            cost = price[other] - g[offset + s] - inner
        if s < n + 1 or not box.relevant[i]:
            entry_cost[i] = min(entry_cost[i], cost)
        if s == n + 1:
            removed = max(removed, _fix_empty(box, best - cost, cutoff, i, with_feature))
        elif best - cost <= cutoff:
            box.allowed[i, s] = False
            removed = max(removed, best - cost)
    return removed


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
