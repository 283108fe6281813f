"""Which arcs a network needs to have the class posterior of given scores.

Scores are a sum of tables over the class and a few features each. Summing features out of their
exponential, one after the other, turns them into conditional tables (``normalise.py``). A feature i
that is summed out leaves a message to all features it shares a table with; those become the parents
of i, and must themselves share a table from then on: they are *married*. Which arcs this adds
depends on the order. Here the order is chosen:

- a feature goes after its children, so that all given arcs between features keep their direction;
- of the features that may go next, one that marries the fewest pairs, then one with the smallest
  table. A forest, a tree or a k-tree whose parents are married needs no arc in any such order.

Ancestors of the class are never summed out. What is said about them ends in the table of the class
given its parents, whose normaliser is a function of the features alone: it changes no posterior.
So every ancestor that the scores mention becomes a parent of the class.

Where a table would be too large, first the arcs into the class are turned around: the class comes
first, its ancestors are ordinary features. If that is not enough, arcs between features that share
no interaction are given up as well; they say nothing about the class.

A feature that no score mentions, nor any message, needs no arc from the class.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from marginbn.exceptions import ProblemTooLargeError
from marginbn.parameters.class_scores import ClassScores, FloatArray
from marginbn.problem.encoded import Groups
from marginbn.problem.structure import Structure

CLASS = 0

MAX_TABLE_CELLS = 2**24
"""Cells of the largest table of a network that is built from scores: 128 MiB of floats."""

MAX_CLASS_CELLS = 2**16
"""The class keeps its parents while its table has at most this many cells."""

Neighbours = dict[int, set[int]]


@dataclass(frozen=True)
class Plan:
    """An order of summing out, and the arcs it needs.

    Parameters
    ----------
    order
        The features that get a table given the class, in the order in which they are summed out.
    parents
        Of every variable, the class left out: those of ``order`` have the class as one more parent.
    receiver
        Of each feature of ``order``: the variable whose family takes its message, 0 for the class.
    groups
        How parents are seen, as in :class:`~marginbn.parameters.class_scores.ClassScores`; finer
        than there for a parent of the class whose main effect differs inside a group.
    """

    order: tuple[int, ...]
    parents: tuple[tuple[int, ...], ...]
    receiver: Mapping[int, int]
    groups: Groups

    @property
    def structure(self) -> Structure:
        """All arcs, those from the class included."""
        below = set(self.order)
        families = enumerate(self.parents)
        return Structure(tuple((CLASS, *p) if i in below else p for i, p in families))


def plan_marrying(scores: ClassScores, structure: Structure) -> Plan:
    """The first plan whose tables are small enough; see above for what it may give up."""
    turned = class_first(structure)
    for arcs in (structure, turned, _arcs_of_scores(scores, turned)):
        plan = _plan(scores, arcs)
        cells, variable = _largest(plan, scores)
        if cells <= MAX_TABLE_CELLS and _keeps_class_small(plan, scores):
            return plan
    raise ProblemTooLargeError(
        f"the table of {scores.variables[variable].name!r} given its parents would have "
        f"{cells} cells, more than {MAX_TABLE_CELLS}; use a structure with fewer parents, "
        "fewer interactions or coarser groups of states"
    )


def class_first(structure: Structure) -> Structure:
    """The same arcs between features, and the class as a parent of its former parents."""
    above = set(structure.parents[CLASS])
    return Structure(
        tuple(
            () if i == CLASS else (CLASS, *p) if i in above else p
            for i, p in enumerate(structure.parents)
        )
    )


def _arcs_of_scores(scores: ClassScores, structure: Structure) -> Structure:
    """Only the arcs that come from the class, or join features of an interaction."""
    families = [set(family) for family in speaking_tables(scores)]
    return Structure(
        tuple(
            tuple(p for p in parents if p == CLASS or any({p, i} <= f for f in families))
            for i, parents in enumerate(structure.parents)
        )
    )


def _keeps_class_small(plan: Plan, scores: ClassScores) -> bool:
    return not plan.parents[CLASS] or _cells(plan, scores, CLASS) <= MAX_CLASS_CELLS


def speaking_tables(scores: ClassScores) -> dict[tuple[int, ...], FloatArray]:
    """The interaction tables that differ between classes; others change no posterior."""
    return {family: t for family, t in scores.tables.items() if _differs(t)}


def group_count(scores: ClassScores, groups: Groups, variable: int) -> int:
    """Number of states of a variable as its children see it."""
    seen = groups[variable]
    return scores.variables[variable].arity if seen is None else int(seen.max()) + 1


def _plan(scores: ClassScores, structure: Structure) -> Plan:
    above = _ancestors(structure)
    scored = _scored_features(scores)
    below = _features_below(structure, scored, above)
    groups = _refine_groups(scores, above & scored)
    order, parents = _eliminate(scores, structure, below, groups)
    ends = above & scored.union(structure.parents[CLASS], *(parents[i] for i in order))
    given = {i: p for i, p in enumerate(structure.parents) if i not in below}
    families = {**given, **parents, CLASS: tuple(sorted(ends))}
    return Plan(
        tuple(order),
        tuple(families[i] for i in range(structure.n_variables)),
        _receivers(order, parents),
        groups,
    )


def _differs(values: FloatArray) -> bool:
    return bool((values != values[:1]).any())


def _scored_features(scores: ClassScores) -> set[int]:
    """Features with a main effect or an interaction that differs between classes."""
    with_effect = {i for i, effect in enumerate(scores.effects, start=1) if _differs(effect)}
    return with_effect.union(*speaking_tables(scores))


def _ancestors(structure: Structure) -> set[int]:
    found: set[int] = set()
    waiting = list(structure.parents[CLASS])
    while waiting:
        v = waiting.pop()
        if v not in found:
            found.add(v)
            waiting.extend(structure.parents[v])
    return found


def _features_below(structure: Structure, scored: set[int], above: set[int]) -> set[int]:
    """Features whose table depends on the class: scored, child of it, or parent of such one."""
    found: set[int] = set()
    waiting = [i for i, p in enumerate(structure.parents) if i in scored or CLASS in p]
    while waiting:
        v = waiting.pop()
        if v != CLASS and v not in found and v not in above:
            found.add(v)
            waiting.extend(structure.parents[v])
    return found


def _refine_groups(scores: ClassScores, features: Collection[int]) -> Groups:
    """Groups of states within which the main effects of some features do not differ either."""
    groups = list(scores.groups)
    for v in features:
        effect = scores.effects[v - 1]
        kinds = np.vstack([scores.group_codes(v, np.arange(effect.shape[1])), effect - effect[:1]])
        _, first, refined = np.unique(kinds, axis=1, return_index=True, return_inverse=True)
        rank = np.argsort(np.argsort(first))  # numbered as they occur, so that bins stay in order
        groups[v] = None if len(first) == effect.shape[1] else rank[refined.reshape(-1)]
    return tuple(groups)


def _eliminate(
    scores: ClassScores, structure: Structure, below: set[int], groups: Groups
) -> tuple[list[int], dict[int, tuple[int, ...]]]:
    """Order of the features below the class and what each shares a table with when it goes.

    A heap holds the cost of every feature whose children are gone; costs that a marriage has
    changed are entered anew, and the stale entries are skipped.
    """
    neighbours = _interaction_graph(scores, structure, below)
    parents_below = (p for i in below for p in structure.parents[i])
    children = Counter(dict.fromkeys(below, 0))
    children.update(p for p in parents_below if p in below)
    sizes = [group_count(scores, groups, v) for v in range(structure.n_variables)]

    def cost(i: int) -> tuple[int, int, int]:
        married = _unmarried_pairs(neighbours, i, below)
        return married, math.prod(sizes[v] for v in neighbours[i]), i

    costs = {i: cost(i) for i, count in children.items() if count == 0}
    queue = sorted(costs.values())
    order: list[int] = []
    parents: dict[int, tuple[int, ...]] = {}
    while queue:
        entry = heapq.heappop(queue)
        i = entry[-1]
        if costs.get(i) != entry:
            continue
        del costs[i]
        order.append(i)
        parents[i] = tuple(sorted(neighbours[i]))
        for p in below.intersection(structure.parents[i]):
            children[p] -= 1
        for v in _marry(neighbours, i):
            if v in below and children[v] == 0:
                costs[v] = cost(v)
                heapq.heappush(queue, costs[v])
    return order, parents


def _interaction_graph(scores: ClassScores, structure: Structure, below: set[int]) -> Neighbours:
    """Features joined by an arc into a feature below the class, or by an interaction."""
    neighbours: Neighbours = {i: set() for i in range(1, structure.n_variables)}
    arcs = ((p, i) for p, i in structure.arcs if i in below and p != CLASS)
    for family in (*arcs, *speaking_tables(scores)):
        for v in family:
            neighbours[v].update(family)
    for v, adjacent in neighbours.items():
        adjacent.discard(v)
    return neighbours


def _unmarried_pairs(neighbours: Neighbours, i: int, below: set[int]) -> int:
    """Arcs that summing out ``i`` adds; ancestors of the class need none between them."""
    around = neighbours[i]
    missing = [len(around - neighbours[v]) - 1 for v in around if v in below]
    one_sided = sum(len(around - neighbours[v] - below) for v in around if v in below)
    return (sum(missing) + one_sided) // 2


def _marry(neighbours: Neighbours, i: int) -> set[int]:
    """Remove a feature and join all its neighbours."""
    around = neighbours.pop(i)
    for v in around:
        neighbours[v] |= around
        neighbours[v] -= {v, i}
    return around


def _receivers(order: list[int], parents: Mapping[int, tuple[int, ...]]) -> dict[int, int]:
    """The parent that is summed out next takes the message: all others are its parents by then."""
    position = {i: k for k, i in enumerate(order)}
    return {
        i: min((p for p in parents[i] if p in position), key=position.__getitem__, default=CLASS)
        for i in order
    }


def _cells(plan: Plan, scores: ClassScores, variable: int) -> int:
    own = scores.variables[variable].arity
    cells = own * math.prod(group_count(scores, plan.groups, p) for p in plan.parents[variable])
    return cells * scores.variables[CLASS].arity if variable in plan.receiver else cells


def _largest(plan: Plan, scores: ClassScores) -> tuple[int, int]:
    """Cells of the largest table, and whose it is."""
    return max((_cells(plan, scores, v), v) for v in range(len(plan.parents)))
