"""Parent sets that a rule allows and a certificate does not list: each of them is dominated.

A set is *dominated* if a listed proper subset scores at least as much, but for ``loss`` nats. Sets
are looked at by size. A set is *closed* if all its supersets are dominated:

    price     -2 p q(T) <= best(T) + loss               AIC, BIC: the likelihood is at most zero
    cells     -c(T) log r <= best(T) + loss             BDeu, K2: joint states that occur
    member    min(H(i | S), H(v | S)) <= p q(S) (r_v - 1), S = T - {v}: v cannot pay in any superset

with ``best(T)`` the largest score of a listed subset of T. ``docs/theory/certificate_format.rst``
has the order of the search and what need not be counted, ``docs/theory/scores.rst`` the proofs.

**Arithmetic.** The score of a child with parents T is a difference A(T + i) - A(T) of sums of f(n)
over the joint states of a set, f(n) = n log n or log Gamma(a + n) - log Gamma(a). Values of f are
rounded to whole numbers of 2^-shift, so the sums are exact integers with a known error. A set is
found by its place in the list of all sets of its size, ordered by their largest members.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginbn.proof.certificate import Certificate
from marginbn.proof.checker.statement import Family, RefutedError, refute
from marginbn.proof.checker.values import (
    PENALTIES,
    PRIORS,
    SHIFT,
    ExactCounts,
    Integers,
    entropy_units,
    log_gamma_units,
    log_units,
    penalty_units,
)

Bools = NDArray[np.bool_]
Members = tuple[int, ...]

CLOSED = -(2**62)
"""Best score of a child with a set that is closed, or of which a subset is."""

MOST_TOTAL = 10**7
"""Total weight up to which the values of f for all counts are kept."""

LARGEST_LIST, LARGEST_LEVEL = 2 * 10**8, 10**8
"""Sets of one size, which have places in a table, and open ones times variables, at most."""

MOST_WORK = 4 * 10**10
"""Sets counted times rows, at most: about two minutes."""

ENTRIES, STEP = 100_000, 4096
"""Sets times rows that are counted, and sets that are looked at, at a time: they fit the cache."""


class SetSums:
    """The sums of f(n) over the joint states of sets, each computed once."""

    def __init__(self, counts: ExactCounts, certificate: Certificate) -> None:
        data, self.score = certificate.data, certificate.score
        total, rows = float(data.weights.sum()), len(data.weights)
        self.counts = counts
        self.whole = bool((data.weights == np.rint(data.weights)).all()) and total <= MOST_TOTAL
        self._weights = None if (data.weights == 1.0).all() else data.weights
        self._columns = np.ascontiguousarray(data.codes.T, dtype=np.int64)
        self.arities = np.array(data.arities)
        self.is_dirichlet = self.score.name in PRIORS
        most = max(total, rows, 3.0)
        most *= 800.0 if self.is_dirichlet else math.log(most)  # the largest sum
        self.shift = min(SHIFT, 60 - math.frexp(most)[1])
        self.error = 4 * rows  # of a difference of two sums: two for every state
        n = range(len(self.arities))
        self._places = np.array([[min(math.comb(v, k + 1), 2**40) for k in n] for v in n])
        self._known: dict[tuple[int, Fraction], tuple[Integers, Integers]] = {}
        self._kinds: dict[Fraction, int] = {}
        self._values = np.full((0, int(total) + 1 if self.whole else 1), CLOSED)
        self._work = 0

    def place(self, sets: Integers) -> Integers:
        """Place of each set (B, m), in increasing order, in the list of all sets of its size."""
        return np.asarray(self._places[sets, np.arange(sets.shape[1])].sum(axis=1))

    def get(self, sets: Integers, prior: Fraction = Fraction(1)) -> tuple[Integers, Integers]:
        """Sums and numbers of states that occur of sets (B, m), members in increasing order."""
        size = sets.shape[1]
        if (size, prior) not in self._known:
            length = math.comb(len(self.arities), size)
            many = length > LARGEST_LIST
            refute(many, f"there are {length} sets of {size} variables: too many")
            self._known = {k: v for k, v in self._known.items() if k[0] >= size - 1}
            self._known[size, prior] = np.zeros(length, np.int64), np.zeros(length, np.int64)
        sums, states = self._known[size, prior]
        places = self.place(sets)
        fresh = np.flatnonzero(states[places] == 0)
        _, first = np.unique(places[fresh], return_index=True)
        step = max(1, ENTRIES // self._columns.shape[1])
        self._work += len(first) * self._columns.shape[1]
        refute(self._work > MOST_WORK, "too many sets are left out to look at all of them")
        for begin in range(0, len(first), step):
            part = fresh[first[begin : begin + step]]
            sums[places[part]], states[places[part]] = self._sum(sets[part], prior)
        return sums[places], states[places]

    def _sum(self, sets: Integers, prior: Fraction) -> tuple[Integers, Integers]:
        """Count the states of sets and add up f."""
        priors, own = [prior], np.zeros(len(sets), dtype=np.int64)
        if self.score.name == "bdeu":
            sizes = self.arities[sets].astype(np.float64).prod(axis=1)
            large = sizes.max() > 2.0**53
            refute(large, "sets that are left out have too many joint states")
            cells, own = np.unique(sizes, return_inverse=True)
            priors = [PRIORS["bdeu"](self.score, int(size)) for size in cells.tolist()]
        if not self.whole:
            pairs = zip(sets.tolist(), own.reshape(-1).tolist(), strict=True)
            found = np.array([self._exact_sum(members, priors[k]) for members, k in pairs])
            return found[:, 0], found[:, 1]
        states, sizes = self._states(sets)
        starts = np.cumsum(sizes) - sizes
        states = (states + starts[:, None]).reshape(-1)
        weights = None if self._weights is None else np.tile(self._weights, len(sets))
        counted = np.bincount(states, weights)
        occurs = np.flatnonzero(counted)
        first = np.searchsorted(occurs, starts)
        occurring = np.diff(first, append=len(occurs))
        kinds = self._rows_of(priors)[own.reshape(-1)] * self._values.shape[1]
        index = counted[occurs].astype(np.int64) + np.repeat(kinds, occurring)
        values = self._values.take(index)
        missing = index[values == CLOSED]
        if len(missing):
            known = list(self._kinds)
            for k, n in zip(*np.divmod(np.unique(missing), self._values.shape[1]), strict=True):
                self._values[k, n] = self._f(known[k], Fraction(int(n)))
            values = self._values.take(index)
        return np.add.reduceat(values, first), occurring

    def _f(self, prior: Fraction, n: Fraction) -> int:
        """The value of f, off by less than two."""
        if self.is_dirichlet:
            return (log_gamma_units(prior + n) - log_gamma_units(prior)) >> SHIFT - self.shift
        return entropy_units(n, self.shift)

    def _exact_sum(self, members: list[int], prior: Fraction) -> tuple[int, int]:
        """The same for one set and any weights."""
        states = self.counts.group(members)
        found = [n for n in self.counts.count(states, int(states.max()) + 1) if n]
        return sum(self._f(prior, Fraction(n, self.counts.scale)) for n in found), len(found)

    def _states(self, sets: Integers) -> tuple[Integers, Integers]:
        """Number of the joint state of each set in every row (B, rows), and how many there are.

        Neighbours share all but their smallest member, whose states are numbered once; where there
        are more numbers than rows, those that occur are numbered again.
        """
        if not sets.shape[1]:
            return np.zeros((len(sets), self._columns.shape[1]), np.int64), np.ones(len(sets), int)
        rest, r = sets[:, 1:], self.arities[sets[:, 0]]
        is_new = np.append(True, (rest[1:] != rest[:-1]).any(axis=1))
        states, sizes = self._states(rest[is_new])
        if sizes.max() > states.shape[1]:
            starts = np.cumsum(sizes) - sizes
            states += starts[:, None]
            numbers = np.bincount(states.reshape(-1))
            occurs = np.flatnonzero(numbers)
            numbers[occurs] = np.arange(len(occurs))
            first = np.searchsorted(occurs, starts)
            states, sizes = numbers[states] - first[:, None], np.diff(first, append=len(occurs))
        group = np.cumsum(is_new) - 1
        return states[group] * r[:, None] + self._columns[sets[:, 0]], sizes[group] * r

    def _rows_of(self, priors: list[Fraction]) -> Integers:
        """The rows of the table of values for prior counts; CLOSED is what is not known yet."""
        rows = [self._kinds.setdefault(own, len(self._kinds)) for own in priors]
        large = self._values.shape[1] * len(self._kinds) > LARGEST_LEVEL
        refute(large, "there are too many rows to look at the sets left out")
        missing = len(self._kinds) - len(self._values)
        if missing:
            self._values = np.pad(self._values, ((0, missing), (0, 0)), constant_values=CLOSED)
        return np.array(rows)


class Level(NamedTuple):
    """Sets of one size that are open for a child: free members and, by child, the best score of a
    listed subset (CLOSED if it is not open for the child) and minus the likelihood; the sum.
    """

    sets: Integers
    best: Integers
    lost: Integers
    sums: Integers


class Pruning:
    """Looks at the sets that are not listed, of children whose sets have certain members."""

    def __init__(self, sums: SetSums, certificate: Certificate, families: list[Family]) -> None:
        self.sums, self.families = sums, families
        self.n, self.base = len(sums.arities), families[0].base
        self.loss = min(math.floor(Fraction(certificate.candidates.loss) * 2**sums.shift), 2**61)
        lost_bits, counts = SHIFT - sums.shift, sums.counts
        self.price = 0.0 * sums.arities  # by child, of a state of the parents
        if sums.score.name in PENALTIES:
            price, off = penalty_units(sums.score.name, sum(counts.weights), counts.scale)
            refute(price < 0, "a penalty is negative, and sets are left out")
            self.price = max(price - off, 0) / 2.0**lost_bits * (sums.arities - 1.0)
        self.logs = np.array([log_units(r) - 1 >> lost_bits for r in sums.arities.tolist()])
        self.pool = np.zeros((self.n, self.n), dtype=bool)
        for family in families:
            self.pool[family.child, list(family.free)] = True

    def cost(self, states: NDArray[np.float64]) -> Integers:
        """Price of so many states for every child (B, n), rounded down."""
        whole = np.minimum(states[:, None] * self.price * (1.0 - 2.0**-49), 2.0**60)
        return np.floor(whole).astype(np.int64)

    def check(self, most: int, lower: dict[tuple[int, Members], int]) -> None:
        """Sets of ``most`` members at most, size by size, by lower scores of listed sets."""
        live, best = np.zeros((1, self.n), dtype=bool), np.full((1, self.n), CLOSED)
        listed: dict[int, list[tuple[int, int, int]]] = {}
        for family in self.families:
            i = family.child
            live[0, i] = True
            is_single = self.sums.arities[list(family.free)] < 2
            refute(is_single.any(), "a parent with one state is not called constant")
            own = {s: v >> SHIFT - self.sums.shift for (child, s), v in lower.items() if child == i}
            if family.empty:
                refute(() not in own, f"variable {i} lacks the empty parent set")
                best[0, i] = own.pop(())
            for s, value in own.items():
                free = np.array([[v for v in s if v not in self.base]], dtype=np.int64)
                place = int(self.sums.place(free)[0])
                listed.setdefault(free.shape[1], []).append((place, i, value))
        level = self._look(np.zeros((1, 0), np.int64), live, best, [], listed.get(0, []))
        for size in range(1, most - len(self.base) + 1):
            parts = list(self._extended(level, listed.get(size, [])))
            large = sum(len(part.sets) for part in parts) * self.n > LARGEST_LEVEL
            refute(large, "too many sets are left out to look at all of them")
            if not parts:
                return
            level = Level(*map(np.concatenate, zip(*parts, strict=True)))

    def _extended(self, level: Level, kept: list[tuple[int, int, int]]) -> Iterator[Level]:
        """Open sets of one more member, in the order of their places."""
        rows = np.full(math.comb(self.n, level.sets.shape[1]), -1)  # by place, -1 if not open
        rows[self.sums.place(level.sets)] = np.arange(len(level.sets))
        last = level.sets[:, -1] if level.sets.shape[1] else np.array([-1])
        for v in np.flatnonzero(self.pool.any(axis=0)).tolist():
            end = int(np.searchsorted(last, v))
            for begin in range(0, end, STEP):
                own = level.sets[begin : min(begin + STEP, end)]
                sets = np.column_stack([own, np.full(len(own), v)])
                live = np.tile(self.pool[:, v], (len(own), 1))
                below, subsets = np.full(live.shape, CLOSED), []
                for j in range(sets.shape[1]):
                    row = rows[self.sums.place(np.delete(sets, j, axis=1))]
                    live &= (row >= 0)[:, None] & (level.best[row] > CLOSED)
                    below = np.maximum(below, level.best[row])
                    subsets.append(row)
                some = live.any(axis=1)
                gains = [(level.lost[row[some]], level.sums[row[some]]) for row in subsets]
                part = self._look(sets[some], live[some], below[some], gains, kept)
                if len(part.sets):
                    yield part

    def _look(
        self,
        sets: Integers,
        live: Bools,
        below: Integers,
        subsets: list[tuple[Integers, Integers]],
        kept: list[tuple[int, int, int]],
    ) -> Level:
        """Refuse sets that may matter, with the best score below them, minus the likelihood and the
        sum of each subset of one member less; the sets that are open for a child.
        """
        base = np.array(self.base, dtype=np.int64)
        whole = np.sort(np.hstack([sets, np.tile(base, (len(sets), 1))]), axis=1)
        states = self.sums.arities[whole].astype(np.float64).prod(axis=1)
        cost, above = self.cost(states), self._above(whole)
        if self.price.any():
            live &= -cost > below
            ahead = np.full(live.shape, -CLOSED)
            for j, (lost, before) in enumerate(subsets):
                r = self.sums.arities[sets[:, j]]
                gains = np.minimum(lost, (before - above[:, 0] + self.sums.error)[:, None])
                live &= gains > self.cost(states / r * (r - 1.0))
                ahead = np.minimum(ahead, before[:, None] - lost + 2 * self.sums.error)
            room = below + self.loss
            live &= (-2 * cost > room) | (ahead - above - cost > room)
        families, occurring = np.zeros((2, *live.shape), dtype=np.int64)  # zero where not live
        rows, child = np.nonzero(live)
        own = np.sort(np.column_stack([whole[rows], child]), axis=1)
        families[rows, child], occurring[rows, child] = self.sums.get(own)
        score = families - above + self.sums.error - cost
        best, is_kept = below.copy(), np.zeros(live.shape, dtype=bool)
        row_of = {place: row for row, place in enumerate(self.sums.place(sets).tolist())}
        for place, i, value in kept:
            if place in row_of:
                row = row_of[place]
                is_kept[row, i], best[row, i] = True, max(best[row, i], value)
        wrong = np.argwhere(live & ~is_kept & (score > below + self.loss))
        if len(wrong):
            raise RefutedError(
                f"variable {wrong[0, 1]} may have the parents {tuple(whole[wrong[0, 0]].tolist())},"
                " which are not listed, and no listed subset scores as much"
            )
        limit = np.zeros(live.shape, dtype=np.int64)
        if self.price.any():
            limit = -2 * cost
        elif self.sums.is_dirichlet and self.sums.whole:
            limit = -occurring * self.logs
        live &= limit > best + self.loss
        best[~live] = CLOSED
        some = live.any(axis=1)
        lost = above - families + self.sums.error
        return Level(sets[some], best[some], lost[some], above[some, 0])

    def _above(self, whole: Integers) -> Integers:
        """Sum of the parents' states for every child (B, n), which matters for K2 alone."""
        priors = self.sums.arities if self.sums.score.name == "k2" else np.ones(self.n, np.int64)
        kinds, kind = np.unique(priors, return_inverse=True)
        found = [self.sums.get(whole, Fraction(r))[0] for r in kinds.tolist()]
        return np.column_stack(found)[:, kind.reshape(-1)]
