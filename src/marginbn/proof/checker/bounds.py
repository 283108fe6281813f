"""Majorants: linear functions above the score, rounded up to whole numbers of 2^grid.

For u >= 0 with sum_c u_mc <= w_m every structure with 0/1 choice eta scores at most

    gamma sum_m (w_m - sum_c u_mc) + sum_k g_k eta_k,         g = A^T u,

and this, maximised over the structures of a leaf or over more, bounds their scores
(``docs/theory/certificate_format.rst``). Decomposable scores are g themselves.

**Rounding.** u_mc = w_m parts / 2^bits has a relative error of 2^-53; where a sample has several
rivals, the u are made smaller by the factor 1 - 2^-50 first, so that u >= 0 and sum_c u_mc <= w_m
hold exactly for the numbers at hand. Coefficients are upper bounds of the true ones, exact
multiples of 2^-44. A sum of R products errs by at most (R + 2) 2^-52 sum |a| u, whatever the order;
more is added before rounding up to the grid. The constant has positive terms only and is enlarged
by its relative error.

**Forests.** Features are numbered from 0 here. A feature has the parents {} or {class}, which makes
it a root, or {class, another feature}, which is an arc. The arcs form a forest, and a parent of the
class has {}. For a fixed parent set of the class the best forest is a maximum arborescence of the
graph in which one more node, numbered n, stands for "root". An arc that is not allowed weighs -2^f,
an edge that must be there adds 2^b to both of its arcs, with 2^f >> n 2^b >> n |values|: the best
forest has all edges that must be there unless no forest has. By :func:`room` nothing overflows.

**Clusters.** For y >= 0 and rows that hold for every structure of the leaf (:data:`ROW_RULES`) the
sum of the maxima of each variable over g + rows^T y, minus y . rhs, bounds g . eta.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from marginbn.proof.certificate import Certificate, DualWeights, Multipliers
from marginbn.proof.checker.statement import Space, refute
from marginbn.proof.checker.values import (
    SHIFT,
    SLACK,
    ExactCounts,
    Integers,
    MarginValues,
    local_score,
)

BLOCK_BYTES = 64_000_000
"""Coefficients, dual weights and majorants are handled in blocks of about this size."""

DENSE_BYTES = 1_000_000_000
"""The coefficients used last are kept, up to about this size."""

ROW_BYTES = 500_000_000
"""Rows that are kept once made."""


def room(n: int) -> tuple[int, int, int]:
    """Bits of values, of the bonus b and of the penalty f for n features: n 2^(f + 3) < 2^63."""
    width = max(n, 1).bit_length()
    bits = 54 - 3 * width
    return bits, bits + width + 2, bits + 2 * width + 4


def ceil_to_grid(value: Fraction, grid: int) -> int:
    """Smallest whole number of 2^grid that is not below the value."""
    return math.ceil(value / Fraction(2) ** grid)


@dataclass(frozen=True, eq=False)
class IntegerMajorant:
    """score <= constant + values . eta, in whole numbers of 2^grid."""

    constant: int
    values: Integers


class Majorants:
    """Majorants of dual weights by number, computed block by block and kept while there is room."""

    def __init__(self, certificate: Certificate, space: Space, counts: ExactCounts) -> None:
        self._certificate = certificate
        self._space = space
        self._counts = counts
        self.margins = MarginValues(counts, certificate.score)
        n_rows = len(certificate.data.codes) * max(1, certificate.data.arities[0] - 1)
        longest = max(n_rows, len(space.parents))
        self.count = len(certificate.duals) if certificate.score.is_margin else 1
        self._per_block = max(1, min(512, BLOCK_BYTES // (8 * longest)))
        self._block = lru_cache(2)(self._compute_block)
        self._columns = lru_cache(DENSE_BYTES // BLOCK_BYTES)(self._make_columns)

    def __getitem__(self, number: int) -> IntegerMajorant:
        if not self._certificate.score.is_margin:
            return self._linear
        return self._block(number // self._per_block)[number % self._per_block]

    # ------------------------------------------------------------------ decomposable scores

    @cached_property
    def scores(self) -> list[tuple[int, int]]:
        """Lower and upper score of every candidate of a decomposable score, in units of 2^-44."""
        score, given = self._certificate.score, list(map(dict, self._certificate.data.scores))
        pairs = list(zip(self._space.child.tolist(), self._space.parents, strict=True))
        if given:
            exact = [Fraction(given[child][parents]) * 2**SHIFT for child, parents in pairs]
            return [(math.floor(value), math.ceil(value)) for value in exact]
        return [local_score(self._counts, score, child, parents) for child, parents in pairs]

    @cached_property
    def _linear(self) -> IntegerMajorant:
        grid = self._certificate.grid
        values = [ceil_to_grid(Fraction(up, 2**SHIFT), grid) for _, up in self.scores]
        return IntegerMajorant(0, _checked(values, self._space.n_variables))

    # ------------------------------------------------------------------ margins

    def _make_columns(self, begin: int, end: int) -> NDArray[np.float64]:
        """Upper coefficients of candidates, (n_rows, end - begin or less)."""
        columns = []
        for k in range(begin, min(end, len(self._space.parents))):
            child, parents = int(self._space.child[k]), self._space.parents[k]
            units = self.margins.units(child, parents).reshape(-1)
            if child == 0 or 0 in parents:
                units = units + SLACK
            large = np.abs(units).max(initial=0) >= 2**53
            refute(large, f"coefficients of candidate {k} are too large to be checked")
            columns.append(units.astype(np.float64) * 2.0**-SHIFT)
        return np.column_stack(columns)

    def _compute_block(self, block: int) -> list[IntegerMajorant]:
        """Of the dual weights with these numbers, side by side."""
        first, grid = block * self._per_block, self._certificate.grid
        duals = self._certificate.duals[first : first + self._per_block]
        pairs = [self._weigh(number, dual) for number, dual in enumerate(duals, first)]
        u, weights = np.stack([own for own, _ in pairs]), self._certificate.data.weights
        width = max(1, BLOCK_BYTES // (8 * u.shape[1]))
        values = []
        with np.errstate(all="ignore"):  # what overflows is refused below
            for begin in range(0, len(self._space.parents), width):
                columns = self._columns(begin, begin + width)
                largest = np.abs(columns).reshape(len(weights), -1, columns.shape[1]).max(axis=1)
                error = (len(columns) + 8) * 2.0**-51 * (weights @ largest)
                values.append(u @ columns + error)
            scaled = np.ceil(np.ldexp(np.hstack(values), -grid))
        n = self._space.n_variables
        return [
            IntegerMajorant(ceil_to_grid(c, grid), _checked(row, n))
            for (_, c), row in zip(pairs, scaled, strict=True)
        ]

    def _weigh(self, number: int, dual: DualWeights) -> tuple[NDArray[np.float64], Fraction]:
        """u of all margin rows, and gamma sum_m (w_m - sum_c u_mc) or a little more."""
        weights, whole = self._certificate.data.weights, 2.0**dual.bits
        groups = self._certificate.groups
        parts = (dual.parts if groups is None else dual.parts[groups]).astype(np.float64)
        given, largest = parts.sum(axis=1), parts.max(axis=1)
        given_away = f"sample {int(np.argmax(given > whole))} gives away more than it has"
        refute((given > whole).any(), f"dual weights {number}: {given_away}")
        u = weights[:, None] * (parts / whole)
        u[(parts > 0).sum(axis=1) > 1] *= 1.0 - 2.0**-50
        unused = 1.0 - given / whole  # exact
        unused[(largest > 0) & (largest < whole)] += 2.0**-49  # u is rounded there
        enlarged = Fraction(float(weights @ unused)) * (1 + Fraction(len(unused) + 8, 2**51))
        return u.reshape(-1), Fraction(self._certificate.score.gamma) * enlarged


def _checked(values: list[int] | NDArray[np.float64], n_variables: int) -> Integers:
    """Whole numbers that leave room for sums in 64 bits."""
    limit = 2 ** room(n_variables)[0]
    fits = all(-limit < value < limit for value in values)  # NaN is between nothing
    refute(not fits, "the grid is too fine for 64-bit arithmetic")
    return np.array(values).astype(np.int64)


NOTHING = -(2**62)
"""Less than any value: of a leaf without structures, and of an arc that does not exist."""

Edges = AbstractSet[tuple[int, int]]


# ---------------------------------------------------------------------------------- forests


def contract_cycles(chosen: list[int]) -> tuple[list[int], int]:
    """New numbers of the nodes and the root, equal for the members of a cycle of chosen arcs, and
    how many there are without the root.
    """
    n = len(chosen)
    group = [-1] * (n + 1)
    mark = [-1] * n
    count = 0
    for start in range(n):  # walk until a node that was seen; on this walk it closes a cycle
        v = start
        while v != n and mark[v] < 0:
            mark[v] = start
            v = chosen[v]
        if v != n and mark[v] == start:
            while group[v] < 0:
                group[v] = count
                v = chosen[v]
            count += 1
    for v in range(n):
        if group[v] < 0:
            group[v] = count
            count += 1
    group[n] = count
    return group, count


def best_arborescence(weights: Integers) -> tuple[int, Integers]:
    """Largest sum of one entering arc per node without cycles, and prices of the way to each node.

    ``weights[child, parent]`` has n rows and n + 1 columns, the last of them the root. Cycles of
    best entering arcs are contracted (``docs/theory/arborescence.rst``).

    The reduced weights of the arcs taken are *prices* y: their sum is the value, an arc weighs at
    most the sum of the prices of everything it enters, and prices of contracted cycles are not
    positive. So a solution that uses an arc is worth at most the value minus what the arc falls
    short of its prices, one such term for every arc. The second result (n,) is the sum of the
    prices that an arc from the root enters on its way to each node.
    """
    w = weights.copy()
    n = len(w)
    np.fill_diagonal(w, NOTHING)
    total = 0
    top = np.arange(n)  # what contains each of the original nodes
    prices = np.zeros(n, dtype=np.int64)
    while True:
        best = w.max(axis=1, initial=NOTHING)
        chosen = np.where(w[:, n] == best, n, w.argmax(axis=1))  # the root first: fewer cycles
        total += int(best.sum())
        prices += best[top]
        groups, count = contract_cycles(chosen.tolist())
        if count == n:
            return total, prices
        group = np.array(groups)
        smaller = np.full((count, count + 1), NOTHING, dtype=np.int64)
        np.maximum.at(smaller, (group[:n, None], group[None, :]), w - best[:, None])
        np.fill_diagonal(smaller, NOTHING)
        w, n, top = smaller, count, group[top]


def best_forest(
    table: Integers,
    tied: NDArray[np.bool_],
    class_sets: Integers,
    own: Integers,
    penalty: int,
    enough: int,
) -> int:
    """An upper bound of the largest value over forests and parent sets of the class: the largest
    value itself where it exceeds ``enough``, else at most ``enough``.

    ``table`` (n, n + 2) has every feature's values of {class, u}, {class} and {}; an arc that is
    not allowed costs ``penalty``. A ``tied`` feature has {} only as a parent of the class. The
    class' parent sets have members (S, 2), -1 for none, and ``own``
    values (S,). The arborescence for a class without parents gives a quick bound for each of them:
    its members have {}, an arc from the root that falls short of its prices by so much (or exceeds
    them, where {} needs the set). Only sets with a quick bound above ``enough`` are looked at.
    """
    plain, empty = table[:, :-1].copy(), table[:, -1]
    plain[:, -1] = np.where(tied, plain[:, -1], np.maximum(plain[:, -1], empty))
    without, prices = best_arborescence(plain)
    extra = np.append(empty - prices, 0)  # the last for "no member", which is number -1
    quick = own + extra[class_sets].sum(axis=1) + without
    result = int(quick[quick <= enough].max(initial=NOTHING))
    for s in np.flatnonzero(quick > enough):
        members = class_sets[s][class_sets[s] >= 0]
        weights = plain.copy()
        weights[members, :-1] = -penalty
        weights[members, -1] = empty[members]
        result = max(result, best_arborescence(weights)[0] + int(own[s]))
    return result


@dataclass(frozen=True, eq=False)
class Forests:
    """Bounds by forests, where the candidates are of that kind."""

    space: Space

    @cached_property
    def _class_sets(self) -> tuple[Integers, Integers]:
        """Numbers and members (S, 2) of the parent sets of the class; -1 for no member."""
        numbers = np.flatnonzero(self.space.child == 0)
        padded = [(*self.space.parents[k], 0, 0)[:2] for k in numbers]
        return numbers, np.array(padded, dtype=np.int64).reshape(-1, 2) - 1

    @cached_property
    def _slots(self) -> tuple[Integers, Integers]:
        """Candidates of features and their place in an (n, n + 2) table of arcs, {class}, {};
        refuted where there are candidates of another kind.
        """
        n, places = self.space.n_variables - 1, list[int]()
        for child, parents in zip(self.space.child.tolist(), self.space.parents, strict=True):
            other = len(parents) > 2 or (child != 0 and parents and parents[0] != 0)
            told = f"variable {child} may have the parents {parents}"
            refute(other, f"forests bound nothing here: {told}")
            slot = n + 1 if not parents else n if len(parents) == 1 else parents[1] - 1
            places.append((child - 1) * (n + 2) + slot)
        numbers = np.flatnonzero(self.space.child != 0)
        return numbers, np.array(places, dtype=np.int64)[numbers]

    def bound(
        self, majorant: IntegerMajorant, allowed: NDArray[np.bool_], present: Edges, enough: int
    ) -> int:
        """Bound of a leaf; at most ``enough`` as soon as that is certain."""
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
        numbers, members = self._class_sets
        usable = allowed[numbers]
        least = min(max(enough - majorant.constant, -(2**61)), 2**61) + forced * bonus
        own = majorant.values[numbers[usable]]
        value = best_forest(table, tied, members[usable], own, penalty, least)
        value -= forced * bonus
        return NOTHING if value < -(bonus // 2) else value + majorant.constant


# ---------------------------------------------------------------------------------- clusters

Coefficients = tuple[Integers, int]
"""Of all candidates, -1, 0 or 1, and the right-hand side: coefficients . eta >= right-hand side."""


def _packing_row(space: Space, members: tuple[int, ...]) -> Coefficients:
    """Two members with all the others as parents would be parents of each other."""
    full = np.zeros(len(space.parents), dtype=bool)
    for v in set(members):
        others = [u for u in set(members) if u != v]
        full |= (space.child == v) & space.member[:, others].all(axis=1)
    return -full.astype(np.int64), -1


ROW_RULES: dict[str, Callable[[Space, tuple[int, ...]], Coefficients]] = {
    "cluster": lambda space, members: (space.outside(members).astype(np.int64), 1),
    "packing": _packing_row,
    "edge": lambda space, ends: (space.joining(*ends).astype(np.int64), 1),
}
"""What each kind of row says: a member has no parents among the members; at most one has all others
as parents; an edge that is decided to be there joins its ends.
"""


@dataclass(frozen=True, eq=False)
class Clusters:
    """Bounds by sums of maxima."""

    space: Space
    certificate: Certificate
    _kept: dict[int, Coefficients] = field(default_factory=dict)

    @cached_property
    def _starts(self) -> Integers:
        return np.searchsorted(self.space.child, np.arange(self.space.n_variables)).astype(np.int64)

    def _row(self, number: int, present: Edges) -> Coefficients:
        """The coefficients of a row that holds for every structure of the leaf, kept for others."""
        known = self.certificate.rows
        refute(not 0 <= number < len(known), f"row {number} does not exist")
        kind, members = known[number]
        refute(kind not in ROW_RULES, f"row {number} is of the kind {kind!r}, which is not known")
        exist = bool(members) and all(0 <= v < self.space.n_variables for v in members)
        refute(not exist, f"row {number} has members that do not exist")
        absent = kind == "edge" and members not in present
        refute(absent, f"row {number} needs the edge {members}, which may be absent")
        if number not in self._kept:
            if 8 * len(self._kept) * len(self.space.parents) > ROW_BYTES:
                self._kept.clear()
            self._kept[number] = ROW_RULES[kind](self.space, members)
        return self._kept[number]

    def bound(
        self,
        majorant: IntegerMajorant,
        multipliers: Multipliers,
        allowed: NDArray[np.bool_],
        present: Edges,
    ) -> int:
        """Bound of a leaf."""
        values = majorant.values.copy()
        total = majorant.constant
        limit = 2 ** room(self.space.n_variables)[0]
        for number, y in multipliers:
            coefficients, rhs = self._row(number, present)
            finite = 0 <= y < math.inf
            refute(not finite, f"row {number} has the multiplier {y}, which is negative")
            step = math.floor(Fraction(y) / Fraction(2) ** self.certificate.grid)
            total -= step * rhs
            values += min(step, limit) * coefficients  # these are -1, 0 or 1
            large = step >= limit or np.abs(values).max() >= limit
            refute(large, f"row {number} has the multiplier {y}, which is too large")
        values[~allowed] = NOTHING
        best = np.maximum.reduceat(values, self._starts)
        return NOTHING if best.min() <= NOTHING else total + int(best.sum())
