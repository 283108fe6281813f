"""The problem of a certificate, rebuilt from its definition: candidates, values, acyclicity."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from marginbn.proof.certificate import Candidates, Data

if TYPE_CHECKING:
    from marginbn.problem.candidates import CandidateRule

MOST_CANDIDATES = 5_000_000

MOST_PARENTS = 20

LARGEST_TABLE = 2**29
"""Candidates times variables."""

Sets = list[tuple[int, ...]]


class RefutedError(Exception):
    """The certificate does not prove what it claims; the message says what is wrong and where."""


@dataclass(frozen=True, eq=False)
class Space:
    """All candidates in order; a structure chooses one of every variable."""

    n_variables: int
    child: NDArray[np.int64]
    parents: Sets

    @cached_property
    def member(self) -> NDArray[np.bool_]:
        """(K, n): whether a variable is in a parent set."""
        table = np.zeros((len(self.parents), self.n_variables), dtype=bool)
        for k, parents in enumerate(self.parents):
            table[k, list(parents)] = True
        return table

    @cached_property
    def number(self) -> dict[tuple[int, tuple[int, ...]], int]:
        """Number of a (child, parents)."""
        return {
            (int(i), p): k for k, (i, p) in enumerate(zip(self.child, self.parents, strict=True))
        }

    def holding(self, child: int, parent: int) -> NDArray[np.bool_]:
        """(K,): candidates of a child with a certain parent."""
        return np.asarray((self.child == child) & self.member[:, parent])

    def joining(self, i: int, j: int) -> NDArray[np.bool_]:
        """(K,): candidates of i or j that contain the other one."""
        return self.holding(i, j) | self.holding(j, i)

    def outside(self, cluster: tuple[int, ...], fewer_than: int = 1) -> NDArray[np.bool_]:
        """(K,): candidates of members of a cluster with fewer than so many parents in it."""
        inside = np.zeros(self.n_variables, dtype=bool)
        inside[list(cluster)] = True
        return np.asarray(inside[self.child] & (self.member[:, inside].sum(axis=1) < fewer_than))


def build_space(data: Data, candidates: Candidates) -> Space:
    """Candidates from their rule or list; the rule is that of the package's documentation."""
    n = len(data.names)
    if candidates.rule is not None:
        sets = [_sets_of(i, n, candidates.rule) for i in range(n)]
    else:
        sets = [list(own) for own in candidates.listed]
        _check_lists(sets, n)
    child = [i for i, own in enumerate(sets) for _ in own]
    if len(child) * n > LARGEST_TABLE:
        raise RefutedError(f"{len(child)} candidates are too many to be checked")
    return Space(n, np.array(child, dtype=np.int64), [p for own in sets for p in own])


def _check_lists(sets: list[Sets], n: int) -> None:
    if len(sets) != n:
        raise RefutedError(f"candidates are listed for {len(sets)} variables, there are {n}")
    for i, own in enumerate(sets):
        for parents in own:
            proper = all(0 <= p < n and p != i for p in parents)
            if not proper or list(parents) != sorted(set(parents)):
                raise RefutedError(f"variable {i} has the impossible parent set {parents}")
        if len(set(own)) < len(own):
            raise RefutedError(f"variable {i} lists a parent set twice")


def _sets_of(i: int, n: int, rule: CandidateRule) -> Sets:
    """Parent sets of variable i, by size and then lexicographically.

    All sets of at most ``max_parents`` others that contain the required and avoid the forbidden
    parents. Features have {} or sets with the class if the rule is class-restricted. Variables that
    are constant have {} and are nobody's parent, unless a required arc says otherwise.
    """
    required = {p for p, c in rule.required if c == i}
    forbidden = {p for p, c in rule.forbidden if c == i}
    constant = set(rule.constant)
    if rule.class_restricted and i != 0:
        constant.discard(0)  # the class is never left out of the sets of a feature
    if i in constant and not required:
        pool: list[int] = []
    else:
        pool = [v for v in range(n) if v != i and (v not in constant or v in required)]
    most = min(rule.max_parents, len(pool))
    if sum(math.comb(len(pool), size) for size in range(most + 1)) > MOST_CANDIDATES // n:
        raise RefutedError(f"variable {i} has too many candidate parent sets to be checked")
    found = [s for size in range(most + 1) for s in combinations(pool, size)]
    if rule.class_restricted and i != 0:
        found = [s for s in found if not s or 0 in s]
    return [s for s in found if required.issubset(s) and forbidden.isdisjoint(s)]


def proper_subsets(parents: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """All subsets but the set itself."""
    if len(parents) > MOST_PARENTS:
        raise RefutedError(f"parent sets of {len(parents)} members have too many subsets")
    return (s for size in range(len(parents)) for s in combinations(parents, size))


def is_acyclic(parents: list[tuple[int, ...]]) -> bool:
    """Whether variables can be taken away one by one, each without parents among the rest."""
    left = set(range(len(parents)))
    while left:
        free = {v for v in left if left.isdisjoint(parents[v])}
        if not free:
            return False
        left -= free
    return True
