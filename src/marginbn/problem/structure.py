"""A directed acyclic graph over variables, written as one parent set per variable."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from typing import Generic, TypeVar

from marginbn.exceptions import InputError

_LISTED = 20
"""Variables of a cycle that a message lists."""

CLASS = 0
"""The variable that is the class, where there is one."""


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


Node = TypeVar("Node", int, str)
"""A variable by position or by name."""


@dataclass(frozen=True)
class EquivalenceClass(Generic[Node]):
    """All structures with the same independences, as a graph that is directed where they agree.

    ``directed`` are the compelled arcs (parent, child), which all of them have; ``undirected`` are
    the reversible ones, pairs (smaller position, larger) whose arc points one way in some
    structures and the other way in others. Also known as CPDAG.
    """

    n_variables: int
    directed: tuple[tuple[Node, Node], ...]
    undirected: tuple[tuple[Node, Node], ...]


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

    def markov_blanket(self, variable: int) -> tuple[int, ...]:
        """Parents, children and other parents of the children: given these, nothing else matters.

        Examples
        --------
        >>> Structure(((), (), (0, 1), (2,))).markov_blanket(0)
        (1, 2)
        """
        children = self.children(self._checked(variable))
        blanket = {*self.parents[variable], *children}
        blanket.update(p for child in children for p in self.parents[child])
        return tuple(sorted(blanket - {variable}))

    def d_separated(
        self,
        a: int | Iterable[int],
        b: int | Iterable[int],
        given: int | Iterable[int] = (),
    ) -> bool:
        """Whether ``a`` and ``b`` are independent given the others, whatever the tables are.

        The graph of the ancestors of all that is named is moralised and made undirected. Without
        what is given, no path may then lead from a to b (Lauritzen and others, 1990).

        Examples
        --------
        >>> collider = Structure(((), (), (0, 1)))  # 0 -> 2 <- 1
        >>> collider.d_separated(0, 1), collider.d_separated(0, 1, given=2)
        (True, False)
        """
        first, second, known = (self._as_set(v) for v in (a, b, given))
        if first & second or (first | second) & known:
            raise InputError("a, b and given must not share variables")
        relevant = self.ancestors(first | second | known)
        neighbours: dict[int, set[int]] = {v: set() for v in relevant}
        for child in relevant:
            family = {child, *self.parents[child]}
            for member in family:
                neighbours[member] |= family - {member}
        reached, todo = set(first), list(first)
        while todo:
            new = neighbours[todo.pop()] - known - reached
            reached |= new
            todo += new
        return reached.isdisjoint(second)

    def ancestors(self, variables: int | Iterable[int]) -> set[int]:
        """The variables and everything with a directed path to one of them.

        Examples
        --------
        >>> sorted(Structure(((), (0,), (1,), ())).ancestors(2))
        [0, 1, 2]
        """
        found = self._as_set(variables)
        todo = list(found)
        while todo:
            new = set(self.parents[todo.pop()]) - found
            found |= new
            todo += new
        return found

    def cpdag(self) -> EquivalenceClass[int]:
        """The equivalence class: which arcs data alone, without interventions, could direct.

        Directed are the arcs of v-structures (two parents of a child that are not adjacent), and
        those that follow by Meek's rules.

        Examples
        --------
        >>> Structure(((), (0,), (1,))).cpdag().undirected  # a chain can be turned around
        ((0, 1), (1, 2))
        >>> Structure(((), (), (0, 1), (2,))).cpdag().directed
        ((0, 2), (1, 2), (2, 3))
        """
        directed = {
            (p, child)
            for child, parents in enumerate(self.parents)
            for p in parents
            if any(q != p and not self._adjacent(p, q) for q in parents)
        }
        open_arcs = set(self.arcs) - directed
        while forced := {arc for arc in open_arcs if self._is_forced(*arc, directed, open_arcs)}:
            directed |= forced
            open_arcs -= forced
        undirected = sorted((min(arc), max(arc)) for arc in open_arcs)
        ordered = sorted(directed, key=lambda arc: arc[::-1])
        return EquivalenceClass(self.n_variables, tuple(ordered), tuple(undirected))

    def _is_forced(
        self, p: int, c: int, directed: set[tuple[int, int]], open_arcs: set[tuple[int, int]]
    ) -> bool:
        """Whether one of Meek's rules directs the arc; its own direction is the only one left."""
        before = [a for a, b in directed if b == p]
        if any(not self._adjacent(a, c) for a in before):  # a -> p - c
            return True
        if any((b, c) in directed for a, b in directed if a == p):  # p -> b -> c
            return True
        into = [a for a, b in directed if b == c]
        linked = [a for a in into if (a, p) in open_arcs or (p, a) in open_arcs]
        return any(not self._adjacent(a, b) for a in linked for b in linked if a != b)

    def _adjacent(self, a: int, b: int) -> bool:
        return a in self.parents[b] or b in self.parents[a]

    def structural_hamming_distance(self, other: Structure, *, cpdag: bool = False) -> int:
        """How many pairs of variables are joined differently: an arc more, less or turned around.

        With ``cpdag=True`` the equivalence classes are compared, so that arcs which no data could
        direct do not count.

        Examples
        --------
        >>> chain, turned = Structure(((), (0,), (1,))), Structure(((1,), (2,), ()))
        >>> chain.structural_hamming_distance(turned)
        2
        >>> chain.structural_hamming_distance(turned, cpdag=True)
        0
        """
        if other.n_variables != self.n_variables:
            raise InputError(
                f"other must have {self.n_variables} variables, got {other.n_variables}"
            )
        mine, theirs = self._marks(cpdag), other._marks(cpdag)
        return sum(mine.get(pair) != theirs.get(pair) for pair in mine.keys() | theirs.keys())

    def _marks(self, cpdag: bool) -> dict[tuple[int, int], int]:
        """For each pair that is joined, its child, or -1 where the direction is open."""
        graph = self.cpdag() if cpdag else None
        arcs = self.arcs if graph is None else graph.directed
        marks = {(min(arc), max(arc)): arc[1] for arc in arcs}
        return marks | dict.fromkeys(() if graph is None else graph.undirected, -1)

    def _as_set(self, variables: int | Iterable[int]) -> set[int]:
        listed = [variables] if isinstance(variables, int) else variables
        return {self._checked(v) for v in listed}

    def _checked(self, variable: int) -> int:
        if not 0 <= variable < self.n_variables:
            raise InputError(f"a variable must lie in 0..{self.n_variables - 1}, got {variable}")
        return int(variable)

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
    while path[-1] not in path[:-1]:  # every variable left has a parent that is left
        path.append(min(alive.intersection(parents[path[-1]])))
    return path[path.index(path[-1]) + 1 :]


def describe_cycle(parents: Sequence[Sequence[int]], names: Sequence[str] | None = None) -> str:
    """One directed cycle, like ``1 -> 2 -> 1`` or by names; the graph must have one."""
    cycle = find_cycle(parents)
    assert cycle is not None
    around = [str(v) if names is None else names[v] for v in reversed([cycle[-1], *cycle])]
    if len(around) > _LISTED:
        around[_LISTED // 2 : -1] = ["..."]
    return " -> ".join(around)
