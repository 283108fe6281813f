"""Parent sets level by level, without the sets that cannot be chosen.

A parent set is *dominated* if a subset of it scores at least as well: no optimal structure needs
it, because removing parents makes no cycle. A set is *closed* if no superset can beat the best
score of the set and its subsets. Sets grow by one member per level, only from sets that are open
together with all their subsets, and only undominated sets are kept.

**Upper limits of the scores of supersets** of T (q parent states, r child states, M rows):

    AIC, BIC    - 2 q (r - 1) times 1 or (log M)/2                       (rule 2)
    BDeu, K2    - c log r, c the number of joint states that occur       (rule 4, whole counts)

For AIC and BIC a member v of T also has to pay for itself: it gains the child at most
M min(H(i | T - v), H(v | T - v)) and costs (r_v - 1) times the price of the parent states without
it (rule 3). ``docs/theory/scores.rst`` has the rules with their proofs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from marginbn.exceptions import ProblemTooLargeError
from marginbn.problem.array_types import BoolArray, CodeArray, FloatArray, IntArray, WordArray
from marginbn.problem.candidates import MAX_CANDIDATES, Arc
from marginbn.problem.encoded import EncodedData
from marginbn.problem.masks import masks_of, set_sizes
from marginbn.scoring.kernels.levels import Level, extend_sets, weigh_members
from marginbn.scoring.sums import IsLate, SetSums, exact_values, states_of

TOLERANCE = 1e-9
"""Relative to the total weight: scores that differ by less are compared again later."""

SET_WORK = 200
"""Work of generating and comparing one parent set, in rows counted: about 0.4 microseconds."""

MAX_WORK = 10_000_000_000
"""Rows counted, at most, where the number of parents has no limit: about 10 to 20 seconds."""

MAX_BYTES = 800_000_000
"""Bytes of sums, levels and kept sets, at most, where the number of parents has no limit."""

MAX_KEPT = 1_000_000
"""Kept sets, at most, where the number of parents has no limit: more are too many for a search."""

Progress = Callable[[int, int], None]
"""Called with the size of the newest parent sets and the number of all sets so far."""


@dataclass(frozen=True)
class Lattice:
    """The parent sets of one child: a base, and any of the free variables besides.

    Where ``empty`` is true the empty set is one of them although the base is not empty.
    """

    child: int
    base: WordArray  # (1, words)
    free: IntArray
    empty: bool

    @property
    def n_base(self) -> int:
        """Members of the base."""
        return int(set_sizes(self.base)[0])


class KeptSets(NamedTuple):
    """Parent sets of one child, with their scores and what rounding can have done to these."""

    masks: WordArray
    doubtful: BoolArray
    values: FloatArray
    errors: FloatArray


class Climb:
    """The search for the parent sets of one child.

    ``kept`` holds, per level, the parent sets that no subset dominates with their exact scores;
    ``doubtful`` marks those whose best subset is as good but for rounding.
    """

    def __init__(self, lattice: Lattice, sums: SetSums, most: int) -> None:
        self.lattice = lattice
        self._sums = sums
        self._least = TOLERANCE * sums.total
        self._price = sums.price(lattice.child)
        self._own = masks_of([[lattice.child]], len(sums.arities))
        self.size = lattice.n_base
        base, empty = lattice.base, np.zeros_like(lattice.base)
        first = [empty, base][not lattice.empty : 2 if self.size <= most else 1]
        self.kept: list[KeptSets] = []
        self._keep(np.concatenate(first), np.ones(len(first), dtype=bool))
        best = np.array([max(self._score_of(mask) for mask in first)])
        no_limit = np.array([np.inf])
        level, _ = self._judge(empty, best, np.zeros((1, 0)), no_limit)
        self.level = keep_sets(level, np.full(len(level.masks), self.size <= most))

    def _keep(self, masks: WordArray, doubtful: BoolArray) -> None:
        values, errors = exact_values(self._sums, self.lattice.child, masks)
        self.kept.append(KeptSets(masks, doubtful, values, errors))

    def _score_of(self, mask: WordArray) -> float:
        child, sums = self.lattice.child, self._sums
        parents, family = sums.count(mask), sums.count(mask | self._own)
        cost = self._price * states_of(mask, sums.arities)
        return float((sums.scores(child, parents, family) - cost)[0])

    @property
    def n_open(self) -> int:
        """Sets that may have supersets."""
        return len(self.level.masks)

    @property
    def most_ahead(self) -> float:
        """Sets of one more member, at most."""
        own = self.size - self.lattice.n_base
        return self.n_open * (len(self.lattice.free) - own) / (own + 1)

    @property
    def n_bytes(self) -> int:
        """Bytes of what is stored."""
        return sum(v.nbytes for part in (self.level, *self.kept) for v in part)

    @property
    def open_gain(self) -> float:
        """How much more than its best subset a larger set can score; no score is positive."""
        if not self.most_ahead:
            return 0.0
        gains = np.minimum(self.level.limit, 0.0) - self.level.best
        return max(float(gains.max()) + self._least, 0.0)

    def extend(self) -> tuple[WordArray, CodeArray, FloatArray, FloatArray]:
        """Sets of one more member: masks, places of their subsets, best score of a subset, upper
        limit of the likelihood.
        """
        level, free = self.level, self.lattice.free
        arities = self._sums.arities[free]
        return extend_sets(level, free, arities, self._least)

    def rise(self) -> int:
        """Score the sets of one more member; returns how many there were. A ``TimeoutError``
        changes nothing here.
        """
        masks, places, below, upper = self.extend()
        level, lattice, sums = self.level, self.lattice, self._sums
        sums.work += SET_WORK * len(masks)
        worth = np.zeros((len(masks), 0))
        if self._price and len(masks):
            numbers = sums.count(masks | lattice.base)
            worth = np.empty(places.shape)
            free, entropy = lattice.free, sums.entropies(numbers)
            useful = weigh_members(
                level, masks, places, free, sums.arities[free], entropy, self._least, worth, upper
            )
            masks, below, worth, upper = masks[useful], below[useful], worth[useful], upper[useful]
        risen, scores = self._judge(masks, below, worth, upper)
        kept = scores > below - self._least
        self._keep((masks | lattice.base)[kept], (scores <= below + self._least)[kept])
        self.level = risen
        self.size += 1
        return len(places)

    def _judge(
        self, masks: WordArray, below: FloatArray, worth: FloatArray, upper: FloatArray
    ) -> tuple[Level, FloatArray]:
        """Score sets; returns the open ones, and the scores of all.

        ``upper`` limits the likelihood: sets for which that is not enough are not counted.
        """
        child, sums = self.lattice.child, self._sums
        whole = masks | self.lattice.base
        parents = sums.count(whole)
        cost = self._price * states_of(whole, sums.arities) if self._price else np.zeros(len(masks))
        asked = upper - cost > below - self._least
        family = sums.count(whole[asked] | self._own)
        likelihood = upper.copy()
        likelihood[asked] = sums.scores(child, parents[asked], family)
        scores = np.where(asked, likelihood - cost, -np.inf)
        limit = -2.0 * cost if self._price else np.full(len(masks), np.inf)
        if sums.score in ("bdeu", "k2") and sums.whole:
            limit[asked] = -math.log(int(sums.arities[child])) * sums.cells(family)
        nothing = np.empty(0)
        priced = self._price > 0
        level = Level(
            masks,
            np.maximum(scores, below),
            limit,
            cost if priced else nothing,
            sums.entropies(parents) if priced else nothing,
            np.where(asked, -likelihood, np.inf) if priced else nothing,
            -likelihood if priced else nothing,
            worth,
        )
        return keep_sets(level, level.limit > level.best - self._least), scores


def keep_sets(level: Level, mask: BoolArray) -> Level:
    """Some of the sets of a level."""
    return Level._make(v[mask] if len(v) else v for v in level)


def find_lattices(
    data: EncodedData,
    class_restricted: bool,
    required: frozenset[Arc],
    forbidden: frozenset[Arc],
) -> list[Lattice]:
    """What each variable may have as parents; variables with one state are no parents."""
    lattices = []
    n = data.n_variables
    for i in range(n):
        base = {p for p, c in required if c == i}
        banned = {p for p, c in forbidden if c == i}
        empty = not base
        if class_restricted and i > 0 and 0 not in banned:
            base.add(0)
        free = [v for v in range(n) if v not in {i, *base, *banned} and data.arities[v] > 1]
        if class_restricted and i > 0 and 0 not in base:
            free = []
        if data.arities[i] == 1 and empty:  # nothing can be learned about it
            base, free = set(), []
        mask = masks_of([sorted(base)], n)
        lattices.append(Lattice(i, mask, np.array(free, dtype=np.int64), empty and bool(base)))
    return lattices


def climb_lattices(
    sums: SetSums,
    lattices: list[Lattice],
    least: int,
    most: int,
    progress: Progress | None = None,
    is_late: IsLate = lambda: False,
) -> tuple[list[Climb], int, float]:
    """All children, level by level, so that they share the sums over sets; those with the fewest
    sets first.

    Sets of more than ``least`` and up to ``most`` members are scored as long as a level of all
    children fits :data:`MAX_WORK`, :data:`MAX_BYTES` and :data:`MAX_KEPT`, and it is not late.
    Smaller ones are scored whatever they take; if it is late, as far as they are.
    Returns also the largest size of sets, ``most`` if no set is open; and how much the sets up to
    this size that are not scored may add to the score of a structure.
    """
    climbs = [Climb(lattice, sums, most) for lattice in lattices]
    sums.is_late = is_late
    total = 0
    for size in range(1, most + 1):
        if not any(climb.n_open for climb in climbs):
            break
        waiting = [climb for climb in climbs if climb.size == size - 1]
        if size > least and (is_late() or not _has_room(sums, waiting, size)):
            return climbs, size - 1, 0.0
        for climb in sorted(waiting, key=lambda climb: climb.most_ahead):
            try:
                total += climb.rise()
                is_over = size > least and (is_late() or _is_too_much(sums, climbs))
            except TimeoutError:
                is_over = True
            if is_over and size <= least:
                gains = [climb.open_gain for climb in climbs if climb.size < least]
                return climbs, least, math.fsum(gains)
            if is_over:
                for risen in (c for c in waiting if c.size == size):
                    risen.kept.pop()
                return climbs, size - 1, 0.0
            if size <= least and total > MAX_CANDIDATES:
                raise ProblemTooLargeError(
                    f"more than {MAX_CANDIDATES} sets of at most {least} parents could matter; "
                    "set a smaller max_parents, or use fewer columns"
                )
            if progress is not None:
                progress(size, total)
    return climbs, most, 0.0


def _has_room(sums: SetSums, waiting: list[Climb], size: int) -> bool:
    """Whether the sets of the next level can probably be scored with the work that is left.

    Each set of ``size + 1`` variables is counted once for its ``size + 1`` children. If an upper
    limit of the number of parent sets is too large, that of every eighth child is counted.
    """
    left = (MAX_WORK - sums.work) / (SET_WORK + sums.n_rows / (size + 1))
    ahead = sum(climb.most_ahead for climb in waiting)
    if ahead <= left:
        return True
    sample = waiting[::8]
    left *= sum(climb.most_ahead for climb in sample) / ahead
    for climb in sample:
        left -= len(climb.extend()[0])
        if left < 0.0:
            return False
    return True


def _is_too_much(sums: SetSums, climbs: list[Climb]) -> bool:
    """Whether work, memory or the sets that are kept exceed their limits."""
    return (
        sums.work > MAX_WORK
        or sums.n_bytes + sum(climb.n_bytes for climb in climbs) > MAX_BYTES
        or sum(len(kept.masks) for climb in climbs for kept in climb.kept) > MAX_KEPT
    )
