"""The problem of a certificate: its candidates, rebuilt from their definition."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from marginbn.proof.certificate import Candidates, Certificate, Data

if TYPE_CHECKING:
    from marginbn.problem.candidates import CandidateRule

LARGEST_TABLE = 10**8
"""Candidates times variables."""

Sets = list[tuple[int, ...]]


class RefutedError(Exception):
    """The certificate does not prove what it claims; the message says what is wrong and where."""


def refute(condition: object, reason: str) -> None:
    """Refute the certificate if the condition holds."""
    if condition:
        raise RefutedError(reason)


def check_rule(certificate: Certificate) -> None:
    """A rule or a list; a rule names variables that exist, and calls nothing constant that varies
    (types are those of the format: the reader of files has looked at them).
    """
    data, rule = certificate.data, certificate.candidates.rule
    n = len(data.names)
    listed = certificate.candidates.listed
    twice = data.scores and (rule is not None or listed)
    refute(twice, "the candidates are those that have scores, and others are given")
    if rule is None:
        return
    is_part = listed and certificate.score.is_margin
    refute(is_part, "a margin needs all candidates of a rule, and they are listed")
    refute(rule.max_parents < 0, "max_parents of the candidates is negative")
    is_free = rule.class_arcs == "all" and not rule.class_restricted
    refute(is_free, "class_arcs can be all only where candidates are class-restricted")
    for arc in (*rule.required, *rule.forbidden):
        wrong = arc[0] == arc[1] or not all(0 <= v < n for v in arc)
        refute(wrong, f"the rule of the candidates names the arc {arc}, which cannot be")
    for v in rule.constant:
        varies = not 0 <= v < n or data.arities[v] > 1
        refute(varies, f"variable {v} is called constant, but is not")


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
        pairs = zip(self.child.tolist(), self.parents, strict=True)
        return {pair: k for k, pair in enumerate(pairs)}

    def holding(self, child: int, parent: int) -> NDArray[np.bool_]:
        """(K,): candidates of a child with a certain parent."""
        return np.asarray((self.child == child) & self.member[:, parent])

    def joining(self, i: int, j: int) -> NDArray[np.bool_]:
        """(K,): candidates of i or j that contain the other one."""
        return self.holding(i, j) | self.holding(j, i)

    def outside(self, cluster: tuple[int, ...]) -> NDArray[np.bool_]:
        """(K,): candidates of members of a cluster without parents in it."""
        inside = np.isin(np.arange(self.n_variables), cluster)
        return np.asarray(inside[self.child] & ~self.member[:, inside].any(axis=1))


@dataclass(frozen=True)
class Family:
    """The parent sets of a child by a rule: a base, any of the free variables besides, and the
    empty set where ``empty`` is true.
    """

    child: int
    base: tuple[int, ...]
    free: tuple[int, ...]
    empty: bool

    def holds(self, parents: tuple[int, ...], most: int) -> bool:
        """Whether a set, in increasing order, is one of them."""
        fits = set(self.base) <= set(parents) <= {*self.base, *self.free} and len(parents) <= most
        return (fits and list(parents) == sorted(set(parents))) or (self.empty and not parents)


def family_of(i: int, n: int, rule: CandidateRule | None) -> Family:
    """Parent sets of variable i, by section "Candidates" of the format; all where no rule is."""
    if rule is None:
        return Family(i, (), tuple(v for v in range(n) if v != i), False)
    required = {p for p, c in rule.required if c == i}
    forbidden = {p for p, c in rule.forbidden if c == i}
    children = {c for _, c in rule.required}
    left_alone = {v for v in rule.constant if v not in children}
    free = {v for v in range(n) if v != i and (v not in rule.constant or v in required)}
    if i in left_alone:
        return Family(i, (), (), False)
    restricted = rule.class_restricted and i != 0
    empty = restricted and rule.class_arcs == "free" and not required
    if restricted:
        required, free = required | {0}, free | {0}
    elif i == 0 and rule.class_arcs == "all":
        free = left_alone & required
    base = tuple(sorted(required))
    if forbidden & required or not required <= free or len(base) > rule.max_parents:
        refute(not empty, f"variable {i} has no candidate parent set")
        base, free, empty = (), set(), False
    return Family(i, base, tuple(sorted(free - required - forbidden)), empty)


def build_space(data: Data, candidates: Candidates) -> Space:
    """Candidates from their rule or list; the rule is that of the package's documentation.

    Of the sets of a rule that are not listed :mod:`.pruning` shows that they do not matter.
    """
    n, rule = len(data.names), candidates.rule
    scored = [[parents for parents, _ in own] for own in data.scores]
    sets = scored or [list(own) for own in candidates.listed]
    most = n if rule is None else rule.max_parents
    families = [family_of(i, n, rule) for i in range(n)]
    if not candidates.listed and rule is not None:
        sets = [_sets_of(family, most, n) for family in families]
    refute(len(sets) != n, f"candidates are listed for {len(sets)} variables, there are {n}")
    for i, (own, family) in enumerate(zip(sets, families, strict=True)):
        wrong = next((parents for parents in own if not family.holds(parents, most)), None)
        refute(wrong is not None, f"variable {i} has the impossible parent set {wrong}")
        refute(len(set(own)) < len(own), f"variable {i} lists a parent set twice")
    sets = list(map(best_sets, data.scores)) or sets
    child = [i for i, own in enumerate(sets) for _ in own]
    refute(len(child) * n > LARGEST_TABLE, f"{len(child)} candidates are too many to be checked")
    return Space(n, np.array(child, dtype=np.int64), [p for own in sets for p in own])


def best_sets(scored: Iterable[tuple[tuple[int, ...], float]]) -> Sets:
    """Of parent sets with scores those that score more than each of their proper subsets."""
    value = dict(scored)
    below = {s: chain(*(combinations(s, k) for k in range(len(s)))) for s in value}
    return [s for s, own in value.items() if all(value.get(t, -math.inf) < own for t in below[s])]


def _sets_of(family: Family, most: int, n: int) -> Sets:
    """The sets of a family, by size and then lexicographically."""
    pool, base = sorted({*family.base, *family.free}), set(family.base)
    sizes = range(len(base), min(most, len(pool)) + 1)
    count = sum(math.comb(len(family.free), size - len(base)) for size in sizes)
    refute(
        count > LARGEST_TABLE // n, f"variable {family.child} has too many candidate parent sets"
    )
    more = (combinations(family.free, size - len(base)) for size in sizes)
    found = [tuple(sorted({*family.base, *rest})) for own in more for rest in own]
    return [()] * family.empty + sorted(found, key=lambda s: (len(s), s))


def is_acyclic(parents: list[tuple[int, ...]]) -> bool:
    """Whether variables can be taken away one by one, each without parents among the rest."""
    left = set(range(len(parents)))
    while left:
        free = {v for v in left if left.isdisjoint(parents[v])}
        if not free:
            return False
        left -= free
    return True
