"""Upper bounds of leaves, in whole numbers of 2^grid: a majorant maximised over a leaf or more.

**Forests.** Maximum over forests and class parents, see :mod:`marginbn.proof.checker.forests`.

**Clusters.** For y >= 0 and rows that hold for every structure of the leaf,

    cluster K       sum of eta over candidates of members of K without parents in K     >= 1
    edge {i, j}     sum of eta over candidates of i with j and of j with i              >= 1

the sum of the maxima of each variable over g + rows^T y, minus the sum of y, bounds g . eta.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from marginbn.proof.certificate import Certificate, Multipliers
from marginbn.proof.checker.majorants import Majorant, room
from marginbn.proof.checker.statement import RefutedError, Space
from marginbn.proof.checker.values import Integers

NOTHING = -(2**62)
"""Value of a leaf without structures."""

ROW_BYTES = 500_000_000
"""Rows that are kept once made."""

Edges = frozenset[tuple[int, int]]


# ---------------------------------------------------------------------------------- forests


@dataclass(frozen=True, eq=False)
class Forests:
    """Bounds by forests, where the kept candidates are of that kind."""

    space: Space
    kept: NDArray[np.bool_]

    @cached_property
    def reason(self) -> str | None:
        """Why the candidates are not of that kind, if so."""
        for k in np.flatnonzero(self.kept):
            child, parents = self.space.child[k], self.space.parents[k]
            if len(parents) > 2 or (child != 0 and parents and parents[0] != 0):
                return f"variable {child} may have the parents {parents}"
        return None

    @cached_property
    def _class_sets(self) -> tuple[Integers, Integers, Integers]:
        """Numbers and members of the parent sets of the class; -1 for no member."""
        numbers = np.flatnonzero((self.space.child == 0) & self.kept)
        padded = [(*self.space.parents[k], 0, 0)[:2] for k in numbers]
        members = np.array(padded, dtype=np.int64).reshape(-1, 2) - 1
        return numbers, np.ascontiguousarray(members[:, 0]), np.ascontiguousarray(members[:, 1])

    @cached_property
    def _slots(self) -> tuple[Integers, Integers]:
        """Candidates of features and their place in an (n, n + 2) table of arcs, {class}, {}."""
        n = self.space.n_variables - 1
        numbers = np.flatnonzero((self.space.child != 0) & self.kept)
        places = []
        for k in numbers:
            parents = self.space.parents[k]
            slot = n + 1 if not parents else n if len(parents) == 1 else parents[1] - 1
            places.append((int(self.space.child[k]) - 1) * (n + 2) + slot)
        return numbers, np.array(places, dtype=np.int64)

    def bound(
        self, majorant: Majorant, allowed: NDArray[np.bool_], present: Edges, enough: int
    ) -> int:
        """Bound of a leaf; at most ``enough`` as soon as that is certain."""
        from marginbn.proof.checker.forests import (
            best_forest,  # compiles: only when there is a leaf
        )

        n = self.space.n_variables - 1
        _, bonus_bits, penalty_bits = room(n + 1)
        bonus, penalty = 2**bonus_bits, 2**penalty_bits
        flat = np.full(n * (n + 2), -penalty, dtype=np.int64)
        numbers, places = self._slots
        usable = allowed[numbers]
        flat[places[usable]] = majorant.values[numbers[usable]]
        table = flat.reshape(n, n + 2)
        tied = np.zeros(n, dtype=bool)
        forced = 0
        for i, j in present:
            if i == 0:
                tied[j - 1] = True
            else:
                table[i - 1, j - 1] += bonus
                table[j - 1, i - 1] += bonus
                forced += 1
        numbers, first, second = self._class_sets
        usable = allowed[numbers]
        value = best_forest(
            np.ascontiguousarray(table[:, :n]),
            np.ascontiguousarray(table[:, n]),
            np.ascontiguousarray(table[:, n + 1]),
            tied,
            first[usable],
            second[usable],
            majorant.values[numbers[usable]],
            penalty,
            int(np.clip(enough - majorant.constant, -(2**61), 2**61)) + forced * bonus,
        )
        value = int(value) - forced * bonus
        return NOTHING if value < -(bonus // 2) else value + majorant.constant


# ---------------------------------------------------------------------------------- clusters


@dataclass(frozen=True, eq=False)
class Clusters:
    """Bounds by sums of maxima."""

    space: Space
    certificate: Certificate
    _kept: dict[int, NDArray[np.bool_]] = field(default_factory=dict)

    @cached_property
    def _starts(self) -> Integers:
        return np.searchsorted(self.space.child, np.arange(self.space.n_variables)).astype(np.int64)

    def _row(self, number: int, present: Edges) -> NDArray[np.bool_]:
        """Candidates of a row that holds for every structure of the leaf."""
        if not 0 <= number < len(self.certificate.rows):
            raise RefutedError(f"row {number} does not exist")
        row = self.certificate.rows[number]
        if any(not 0 <= v < self.space.n_variables for v in row.members) or not row.members:
            raise RefutedError(f"row {number} has members that do not exist")
        if row.kind == "edge" and row.members not in present:
            raise RefutedError(f"row {number} needs the edge {row.members}, which may be absent")
        if number not in self._kept:
            if len(self._kept) * len(self.space.parents) > ROW_BYTES:
                self._kept.clear()
            is_edge = row.kind == "edge"
            make = self.space.joining(*row.members) if is_edge else self.space.outside(row.members)
            self._kept[number] = make
        return self._kept[number]

    def bound(
        self,
        majorant: Majorant,
        multipliers: Multipliers,
        allowed: NDArray[np.bool_],
        present: Edges,
    ) -> int:
        """Bound of a leaf."""
        values = majorant.values.copy()
        total = majorant.constant
        limit = 2 ** room(self.space.n_variables)[0]
        for number, y in zip(multipliers.rows, multipliers.values, strict=True):
            row = self._row(number, present)
            if not 0 <= y < math.inf:
                raise RefutedError(f"row {number} has the multiplier {y}, which is negative")
            step = math.floor(Fraction(y) / Fraction(2) ** self.certificate.grid)
            total -= step
            values[row] += min(step, limit)
            if step >= limit or np.abs(values).max() >= limit:
                raise RefutedError(f"row {number} has the multiplier {y}, which is too large")
        values[~allowed] = NOTHING
        best = np.maximum.reduceat(values, self._starts)
        return NOTHING if best.min() <= NOTHING else total + int(best.sum())
