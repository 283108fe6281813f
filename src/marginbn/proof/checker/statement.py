"""The problem of a certificate: its candidates, rebuilt from their definition."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from marginbn.proof.certificate import Candidates, Certificate, Data

if TYPE_CHECKING:
    from marginbn.problem.candidates import CandidateRule

MOST_PARENTS = 20

LARGEST_TABLE = 10**8
"""Candidates times variables."""

Sets = list[tuple[int, ...]]


class RefutedError(Exception):
    """The certificate does not prove what it claims; the message says what is wrong and where."""


def check_rule(certificate: Certificate) -> None:
    """A rule or a list; a rule names variables that exist, and calls nothing constant that varies.

    Types, shapes and ranges are those of the format: the reader of files has looked at them.
    """
    data, rule = certificate.data, certificate.candidates.rule
    n = len(data.names)
    if rule is None:
        return
    if certificate.candidates.listed:
        raise RefutedError("candidates are given by a rule and by a list: which one holds?")
    if rule.class_arcs == "all" and not rule.class_restricted:
        raise RefutedError("class_arcs can be all only where candidates are class-restricted")
    for arc in (*rule.required, *rule.forbidden):
        if arc[0] == arc[1] or not all(0 <= v < n for v in arc):
            raise RefutedError(f"the rule of the candidates names the arc {arc}, which cannot be")
    for v in rule.constant:
        if not 0 <= v < n or data.arities[v] > 1:
            raise RefutedError(f"variable {v} is called constant, but is not")


# ---------------------------------------------------------------------------------- candidates


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
        inside = np.isin(np.arange(self.n_variables), cluster)
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
    are constant have {} and are nobody's parent, unless a required arc says otherwise. If the class
    is a parent of all other features, these do not have {}, and the class has no parents but
    constant ones that are required and have none.
    """
    required = {p for p, c in rule.required if c == i}
    forbidden = {p for p, c in rule.forbidden if c == i}
    constant = set(rule.constant)
    if rule.class_restricted and i != 0:
        constant.discard(0)  # the class is never left out of the sets of a feature
    children = {c for _, c in rule.required}
    left_alone = [v for v in range(n) if v in constant and v not in children]
    if i in left_alone:
        pool: list[int] = []
    elif i == 0 and rule.class_arcs == "all":
        pool = [v for v in left_alone if v in required]
    else:
        pool = [v for v in range(n) if v != i and (v not in constant or v in required)]
    most = min(rule.max_parents, len(pool))
    if sum(math.comb(len(pool), size) for size in range(most + 1)) > LARGEST_TABLE // n:
        raise RefutedError(f"variable {i} has too many candidate parent sets to be checked")
    found = [s for size in range(most + 1) for s in combinations(pool, size)]
    if rule.class_restricted and i != 0:
        may_be_empty = rule.class_arcs == "free" or i in left_alone
        found = [s for s in found if 0 in s or (may_be_empty and not s)]
    return [s for s in found if required.issubset(s) and forbidden.isdisjoint(s)]


def one_fewer(parents: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The subsets that lack one member."""
    if len(parents) > MOST_PARENTS:
        raise RefutedError(f"parent sets of {len(parents)} members have too many subsets")
    return (parents[:place] + parents[place + 1 :] for place in range(len(parents)))


def is_acyclic(parents: list[tuple[int, ...]]) -> bool:
    """Whether variables can be taken away one by one, each without parents among the rest."""
    left = set(range(len(parents)))
    while left:
        free = {v for v in left if left.isdisjoint(parents[v])}
        if not free:
            return False
        left -= free
    return True
