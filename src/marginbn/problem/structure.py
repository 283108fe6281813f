"""A directed acyclic graph over variables, written as one parent set per variable."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush

from marginbn.exceptions import InputError


def topological_order(parents: Sequence[Sequence[int]]) -> tuple[int, ...] | None:
    """Order of the variables with parents first, ties by index; ``None`` if there is a cycle."""
    waiting = [len(set(p)) for p in parents]
    children: list[list[int]] = [[] for _ in parents]
    for child, parent_set in enumerate(parents):
        for parent in set(parent_set):
            children[parent].append(child)
    ready = [v for v, count in enumerate(waiting) if count == 0]  # increasing: already a heap
    order: list[int] = []
    while ready:
        variable = heappop(ready)
        order.append(variable)
        for child in children[variable]:
            waiting[child] -= 1
            if waiting[child] == 0:
                heappush(ready, child)
    return tuple(order) if len(order) == len(parents) else None


def is_acyclic(parents: Sequence[Sequence[int]]) -> bool:
    """Whether one parent set per variable describes a graph without directed cycle."""
    return topological_order(parents) is not None


@dataclass(frozen=True)
class Structure:
    """One parent set per variable; variable 0 is the class.

    Parameters
    ----------
    parents
        ``parents[i]`` holds the indices of the parents of variable ``i``; they are sorted on
        construction. Cycles, self-loops and indices out of range are refused.

    Examples
    --------
    >>> naive_bayes = Structure(((), (0,), (0,)))
    >>> naive_bayes.arcs
    ((0, 1), (0, 2))
    >>> naive_bayes.children(0)
    (1, 2)
    >>> Structure.from_arcs(3, [(0, 1), (0, 2), (1, 2)]).parents
    ((), (0,), (0, 1))
    """

    parents: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        parents = tuple(tuple(sorted(int(p) for p in parent_set)) for parent_set in self.parents)
        object.__setattr__(self, "parents", parents)
        n_variables = len(parents)
        for child, parent_set in enumerate(parents):
            if len(set(parent_set)) != len(parent_set):
                raise InputError(f"variable {child} lists a parent twice: {parent_set}")
            if any(not 0 <= p < n_variables or p == child for p in parent_set):
                raise InputError(
                    f"parents of variable {child} must be other variables in "
                    f"0..{n_variables - 1}, got {parent_set}"
                )
        if not is_acyclic(parents):
            raise InputError(f"the graph has a directed cycle: {describe_cycle(parents)}")

    @property
    def n_variables(self) -> int:
        """Number of variables, class included."""
        return len(self.parents)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """A topological order, parents first."""
        order = topological_order(self.parents)
        assert order is not None  # checked on construction
        return order

    @property
    def arcs(self) -> tuple[tuple[int, int], ...]:
        """All arcs as (parent, child), sorted by child."""
        return tuple((p, child) for child, ps in enumerate(self.parents) for p in ps)

    def children(self, variable: int) -> tuple[int, ...]:
        """Variables that have ``variable`` among their parents."""
        return tuple(child for child, ps in enumerate(self.parents) if variable in ps)

    @classmethod
    def from_arcs(cls, n_variables: int, arcs: Iterable[tuple[int, int]]) -> Structure:
        """Build the structure from (parent, child) pairs."""
        parents: list[set[int]] = [set() for _ in range(n_variables)]
        for parent, child in arcs:
            if not 0 <= child < n_variables:
                raise InputError(
                    f"arcs must end in a variable in 0..{n_variables - 1}, got {(parent, child)}"
                )
            parents[child].add(parent)
        return cls(tuple(tuple(sorted(p)) for p in parents))


def find_cycle(parents: Sequence[Sequence[int]]) -> list[int] | None:
    """The variables of one directed cycle, each followed by a parent of it; ``None`` if acyclic."""
    alive = set(range(len(parents)))
    while free := {v for v in alive if alive.isdisjoint(parents[v])}:
        alive -= free
    if not alive:
        return None
    path = [min(alive)]
    while path[-1] not in path[:-1]:  # everybody left has a parent that is left
        path.append(min(alive.intersection(parents[path[-1]])))
    return path[path.index(path[-1]) + 1 :]


def describe_cycle(parents: Sequence[Sequence[int]], names: Sequence[str] | None = None) -> str:
    """One directed cycle, like ``1 -> 2 -> 1`` or by names; the graph must have one."""
    cycle = find_cycle(parents)
    assert cycle is not None
    around = reversed([cycle[-1], *cycle])
    return " -> ".join(str(v) if names is None else names[v] for v in around)
