"""Level by level through the parent sets, without looking at those that cannot be chosen.

A parent set is *dominated* if a subset of it scores at least as well: no optimal structure needs
it, because taking parents away makes no cycle. A set is *closed* if no superset can beat what it or
a subset of it has. So sets grow by one member per level, only from sets that are open together with
all their subsets, and only undominated ones are kept.

**What a superset can score at most** (q parent states, r child states, M rows; supersets have at
least twice the parent states, features with one state being left out):

    AIC, BIC    - 2 q (r - 1) times 1 or (log M)/2: the likelihood is at most zero
    BDeu, K2    - c log r, c the number of joint states of parents and child that occur

(de Campos and Ji 2011; for BDeu and K2 they and Cussens 2012 count the parents' states alone.) The
second, for whole counts: a marginal likelihood is the product of the probabilities of the rows,
each given those before it. A row that is the first of its kind, n_j = 0 rows of child state j among
the N with its parents' state, has probability (A / r) / (A + N) <= 1 / r, and any other at most
one. More parents make more kinds of rows, not fewer. Nor can a marginal likelihood exceed the
likelihood given all other variables: rows that agree in these stay together. Both hold among the
rows of each parents' state, so the sum of the smaller ones is a limit, too (compare Correia,
Cussens and de Campos 2020). Where rows that stay together are of two kinds or more, more can be
said. Take one row of each kind of a parents' state first: the first costs log r, each further one
log r + log(1 + 1/A) or more, with A at most s / (2 q) for BDeu (for K2 log r + log((r + 1) / r)).
The others have a probability of at most their likelihood. So with L the likelihood of the rows
given all other variables, L' without a row of each kind, and g the most that L can grow by leaving
out one row, the rows of a state of T with c kinds score, together with all supersets, at most

    - c log r - log(1 + 1/A) + L'    and    L + 2 (g - log r) - log(1 + 1/A),

the latter if that is below L and further kinds make it less, else L.

For AIC and BIC a member v of T also has to pay for itself: it gains the child at most
M min(H(i | T - v), H(v | T - v)) and costs (r_v - 1) times the price of the parent states without
it; where it cannot, it cannot in any superset either (de Campos et al. 2018).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marginbn.exceptions import ProblemTooLargeError
from marginbn.problem.candidates import MAX_CANDIDATES, Arc
from marginbn.problem.encoded import EncodedData
from marginbn.problem.masks import Masks, masks_of, renamed, set_sizes
from marginbn.scoring.sums import SetSums, kernels, states_of, with_member

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

TOLERANCE = 1e-9
"""Relative to the total weight: scores nearer than this are not told apart here."""

WORTH = 5
"""Sets ahead, for each open one, that make it worth while to compute a lower limit."""

FEW = 20_000
"""Sets ahead that are counted before it is worth while."""

GROWTH = 1.2
"""Of what rows that stay together cost, with one member more: a guess on the high side."""

Progress = Callable[[int, int], None]
"""Called with the size of the newest parent sets and with how many were looked at so far."""


@dataclass(frozen=True)
class Lattice:
    """The parent sets of one child: a base, and any of the free variables besides.

    Where ``empty`` is true the empty set is one of them although the base is not empty.
    """

    child: int
    base: Masks  # (1, words)
    free: IntArray
    empty: bool

    @property
    def n_base(self) -> int:
        """Members of the base."""
        return int(set_sizes(self.base)[0])

    def renamed(self, names: IntArray) -> Lattice:
        """The same where variable v is called ``names[v]``."""
        base, free = renamed(self.base, names), np.sort(names[self.free])
        return Lattice(int(names[self.child]), base, free, self.empty)


@dataclass
class Level:
    """Sets of one size that may have supersets, without the base, and what is known of them."""

    masks: Masks
    best: FloatArray  # score of each and its subsets
    limit: FloatArray  # of the scores of supersets
    price: FloatArray  # of their states; this and the next are empty where states cost nothing
    entropy: FloatArray  # sum of n log n
    lost_most: FloatArray  # minus the log likelihood, at most
    lost_least: FloatArray  # and at least
    worth: FloatArray  # (sets, members): what is unknown about a member given the others
    gain: FloatArray  # by how much rows that stay together lower the limit, at a guess

    def keep(self, mask: NDArray[np.bool_]) -> Level:
        """Some of the sets."""
        return Level(*(v[mask] if len(v) else v for v in vars(self).values()))


class Climb:
    """One child on its way up the lattice.

    ``kept`` are the parent sets that no subset dominates, ``doubtful`` says of which a subset is as
    good but for rounding.
    """

    def __init__(self, lattice: Lattice, sums: SetSums, most: int) -> None:
        self.lattice = lattice
        self._sums = sums
        self._least = TOLERANCE * sums.total
        self._price = sums.price(lattice.child)
        self._most = most
        self.size = self._n_base = lattice.n_base
        base, empty = lattice.base, np.zeros_like(lattice.base)
        score = {name: self._score_of(mask) for name, mask in (("base", base), ("empty", empty))}
        self.kept = [empty] if lattice.empty else []
        if self.size <= most:
            self.kept.append(base)
        self.doubtful = [np.ones(len(self.kept), dtype=bool)]
        best = max(score.values()) if lattice.empty else score["base"]
        first = self._judge(
            empty,
            np.array([best]),
            np.zeros((1, 0)),
            np.array([np.inf]),
            np.array([np.inf]),
            first=True,
        )
        self.level = first if self.size <= most else first.keep(np.zeros(len(first.masks), bool))

    def _score_of(self, mask: Masks) -> float:
        child, sums = self.lattice.child, self._sums
        parents, family = sums.count(mask), sums.count(with_member(mask, child))
        cost = self._price * states_of(mask, sums.arities)
        return float((sums.scores(child, parents, family) - cost)[0])

    @property
    def is_done(self) -> bool:
        """Whether there are no larger sets to look at."""
        return self.size >= self._most or len(self.level.masks) == 0

    def rise(self) -> int:
        """Look at the sets of one more member; returns how many there were."""
        if self.is_done:
            return 0
        level, lattice, sums = self.level, self.lattice, self._sums
        self.size += 1
        arities = sums.arities[lattice.free]
        masks, places, below, upper = kernels()[3].extend_sets(
            level.masks,
            lattice.free,
            level.best,
            level.limit,
            level.price,
            arities,
            level.lost_most,
            level.lost_least,
            level.worth,
            self._least,
        )
        worth = np.zeros((len(masks), 0))
        gain = np.full(len(masks), np.inf)
        if not self._price and self._is_worth_it(len(masks)):
            gain = GROWTH * level.gain[places].max(axis=1)
        if self._price and len(masks):
            numbers = sums.count(masks | lattice.base)
            worth = np.empty(places.shape)
            useful = kernels()[3].weigh_members(
                masks,
                places,
                lattice.free,
                arities,
                level.price,
                level.lost_most,
                level.lost_least,
                level.entropy,
                sums.entropies(numbers),
                self._least,
                worth,
                upper,
            )
            masks, below, worth, upper = (v[useful] for v in (masks, below, worth, upper))
            gain = gain[useful]
        self.level = self._judge(masks, below, worth, upper, gain)
        return len(places)

    def _judge(
        self,
        masks: Masks,
        below: FloatArray,
        worth: FloatArray,
        upper: FloatArray,
        gain: FloatArray,
        *,
        first: bool = False,
    ) -> Level:
        """Score sets, keep those that no subset dominates; returns those that may have supersets.

        ``upper`` is what the likelihood can be at most: where that is not enough nothing is
        counted. ``gain`` is what :meth:`_limits` may hope for.
        """
        child, sums = self.lattice.child, self._sums
        whole = masks | self.lattice.base
        parents = sums.count(whole)
        cost = self._price * states_of(whole, sums.arities) if self._price else np.zeros(len(masks))
        asked = upper - cost > below - self._least
        family = sums.count(with_member(whole[asked], child))
        likelihood = upper.copy()
        likelihood[asked] = sums.scores(child, parents[asked], family)
        scores = np.where(asked, likelihood - cost, -np.inf)
        if not first:
            kept = scores > below - self._least
            self.kept.append(whole[kept])
            self.doubtful.append((scores <= below + self._least)[kept])
        nothing = np.empty(0)
        priced = self._price > 0
        level = Level(
            masks,
            np.maximum(scores, below),
            self._limits(cost, np.maximum(scores, below), whole, asked, family, gain),
            cost if priced else nothing,
            sums.entropies(parents) if priced else nothing,
            np.where(asked, -likelihood, np.inf) if priced else nothing,
            -likelihood if priced else nothing,
            worth,
            nothing if priced else gain,
        )
        return level.keep(level.limit > level.best - self._least)

    def _is_worth_it(self, n_open: int) -> bool:
        """Whether a lower limit, which costs as much as counting, can save much counting."""
        n_free = len(self.lattice.free)
        own = self.size - self._n_base
        last = min(self._most - self._n_base, n_free)
        ahead = sum(math.comb(n_free, size) for size in range(own + 1, last + 1))
        return n_open > 0 and max(WORTH * n_open, FEW) < ahead

    def _limits(
        self,
        cost: FloatArray,
        best: FloatArray,
        whole: Masks,
        asked: NDArray[np.bool_],
        family: IntArray,
        gain: FloatArray,
    ) -> FloatArray:
        """What no proper superset can exceed.

        The lower limit takes as long as counting does; only sets that it may close are looked at:
        rows that stay together cost about as much here as with one member less. ``gain`` becomes
        what they cost.
        """
        if self._price:
            return -2.0 * cost
        limits = np.full(len(cost), np.inf)
        if self._sums.score in ("bdeu", "k2") and self._sums.rows.whole:
            r = int(self._sums.arities[self.lattice.child])
            limits[asked] = -math.log(r) * self._sums.cells(family)
            is_open = limits > best - self._least
            if self._is_worth_it(int(is_open.sum())):
                near = is_open & (limits - gain <= best)
                lower = limits[near]
                self._sums.limit_supersets(self.lattice.child, whole[near], lower)
                gain[near] = limits[near] - lower
                limits[near] = lower
        return limits


def find_lattices(
    data: EncodedData,
    class_restricted: bool,
    required: frozenset[Arc],
    forbidden: frozenset[Arc],
) -> list[Lattice]:
    """What each variable may have as parents; variables with one state are nobody's parents."""
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
    sums: SetSums, lattices: list[Lattice], most: int, progress: Progress | None = None
) -> list[Climb]:
    """All children, level by level, so that they share the sums over sets."""
    climbs = [Climb(lattice, sums, most) for lattice in lattices]
    total = 0
    while True:
        waiting = [climb for climb in climbs if not climb.is_done]
        if not waiting:
            return climbs
        for climb in waiting:
            total += climb.rise()
            if total > MAX_CANDIDATES:
                raise ProblemTooLargeError(
                    f"more than {MAX_CANDIDATES} parent sets could matter; set max_parents, or "
                    "use fewer columns"
                )
            if progress is not None:
                progress(climb.size, total)
