"""Level by level through the parent sets, without looking at those that cannot be chosen.

A parent set is *dominated* if a subset of it scores at least as well: no optimal structure needs
it, because taking parents away makes no cycle. A set is *closed* if no superset can beat what it or
a subset of it has. So sets grow by one member per level, only from sets that are open together with
all their subsets, and only undominated ones are kept.

**Sums over sets.** With n(F) the counts of the joint states of a set F of variables, the score of a
child i with parents T, F = T + {i}, is a difference of two sums over sets, shared by all children:

    log likelihood    L(F) - L(T),                        L(F)    = sum n log n
    BDeu              A(F, s/|F|) - A(T, s/|T|),          A(F, a) = sum log Gamma(a + n)/Gamma(a)
    K2                A(F, 1) - A(T, r_i)

with |F| the number of joint states.

**What a superset can score at most** (q parent states, r child states, M rows; supersets have at
least twice the parent states, features with one state being left out):

    AIC, BIC    - 2 q (r - 1) times 1 or (log M)/2: the likelihood is at most zero
    BDeu, K2    - q+ log r, q+ the number of parent states that occur: given its parents' state, the
                first row has probability 1/r, and all further ones at most one (whole counts only)

(de Campos and Ji 2011, Cussens 2012.) For AIC and BIC a member v of T also has to pay for itself:
it gains the child at most M min(H(i | T - v), H(v | T - v)) and costs (r_v - 1) times the price of
the parent states without it; where it cannot, it cannot in any superset either (de Campos et al.
2018). Sums are computed in the plain way here, which may lose
digits; that decides what is kept, within a tolerance. The kept are scored by the formulas of
``problem/scores.py`` and compared once more.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbn.data.encode import EncodedData
from marginbn.exceptions import InputError, ProblemTooLargeError
from marginbn.problem.candidates import MAX_CANDIDATES, Arc, CandidateSets
from marginbn.problem.problem import StructureProblem, drop_dominated, linear_problem
from marginbn.problem.scores import get_local_score

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Masks = NDArray[np.uint64]


def kernels() -> Any:
    """The compiled loops; importing them loads the compiler."""
    from marginbn.scoring.kernels import subsets

    return subsets


MOST_VARIABLES = 64
"""Bits of a mask."""

TOLERANCE = 1e-9
"""Relative to the total weight: scores nearer than this are not told apart here."""


@dataclass(frozen=True)
class Lattice:
    """The parent sets of one child: a base, and any of the free variables besides.

    Where ``empty`` is true the empty set is one of them although the base is not empty.
    """

    child: int
    base: int
    free: Masks
    empty: bool


class SetSums:
    """Sums over the sets of variables that were asked for, each counted once."""

    def __init__(self, data: EncodedData, score: str, equivalent_sample_size: float) -> None:
        self.data = data
        self.score = score
        self.prior = equivalent_sample_size
        self.arities = data.arities
        self.columns = np.ascontiguousarray(data.codes.T)
        self.whole = bool((data.weights == np.rint(data.weights)).all())
        self.child_arities = np.unique(self.arities)
        self.masks = np.empty(0, np.uint64)
        self.sums = np.empty((0, max(1, self.priors(self.masks).shape[1])))
        self.observed = np.empty(0, np.int64)

    def states(self, masks: Masks) -> FloatArray:
        """Number of joint states of each set, as a float: it may be huge."""
        total = np.ones(len(masks))
        for v, arity in enumerate(self.arities):
            total[(masks >> np.uint64(v)) & np.uint64(1) == 1] *= arity
        return total

    def priors(self, masks: Masks) -> FloatArray:
        """Priors of the sums of log Gamma, (sets, kinds)."""
        if self.score == "bdeu":
            prior: FloatArray = self.prior / self.states(masks)
            return prior[:, np.newaxis]
        if self.score == "k2":
            return np.tile([1.0, *self.child_arities.astype(float)], (len(masks), 1))
        return np.empty((len(masks), 0))

    def count(self, masks: Masks) -> None:
        """Make the sums over these sets known."""
        new = np.setdiff1d(masks, self.masks, assume_unique=False)
        sums = np.empty((len(new), self.sums.shape[1]))
        observed = np.empty(len(new), np.int64)
        weights = np.asarray(self.data.weights)
        kernels().sum_sets(
            self.columns, self.arities, weights, self.whole, new, self.priors(new), sums, observed
        )
        order = np.argsort(np.concatenate([self.masks, new]), kind="stable")
        self.masks = np.concatenate([self.masks, new])[order]
        self.sums = np.concatenate([self.sums, sums])[order]
        self.observed = np.concatenate([self.observed, observed])[order]

    def scores(self, child: int, sets: Masks) -> FloatArray:
        """Score of a child with each of the parent sets."""
        r = int(self.arities[child])
        family = np.searchsorted(self.masks, sets | np.uint64(1 << child))
        parents = np.searchsorted(self.masks, sets)
        kind = 1 + int(np.searchsorted(self.child_arities, r)) if self.score == "k2" else 0
        scores: FloatArray = self.sums[family, 0] - self.sums[parents, kind]
        price = self.price(child)
        return scores - price * self.states(sets) if price else scores

    def price(self, child: int) -> float:
        """What a parent state costs."""
        half = 0.5 * math.log(self.data.total_weight)
        each = {"aic": 1.0, "bic": half, "mdl": half}.get(self.score, 0.0)
        return each * (int(self.arities[child]) - 1)

    def of(self, sets: Masks) -> FloatArray:
        """The first kind of sum over each of the sets."""
        return np.asarray(self.sums[np.searchsorted(self.masks, sets), 0])

    def lost(self, child: int, sets: Masks) -> FloatArray:
        """Minus the log likelihood of a child with each of the parent sets."""
        return np.asarray(self.of(sets) - self.of(sets | np.uint64(1 << child)))

    def limits(self, child: int, sets: Masks) -> FloatArray:
        """What no proper superset can exceed."""
        r = int(self.arities[child])
        if self.score in ("bdeu", "k2"):
            if not self.whole:
                return np.full(len(sets), np.inf)
            observed = self.observed[np.searchsorted(self.masks, sets)].astype(np.float64)
            return np.asarray(-math.log(r) * observed)
        price = self.price(child)
        return -2.0 * price * self.states(sets) if price else np.full(len(sets), np.inf)


@dataclass
class Climb:
    """One child on its way up the lattice."""

    lattice: Lattice
    level: Masks  # the newest sets without the base
    best: FloatArray  # of each of them and its subsets
    kept: list[Masks]

    @property
    def _base(self) -> np.uint64:
        return np.uint64(self.lattice.base)

    def rise(self, sums: SetSums, least: float) -> Masks:
        """The sets of the next level, those that are open and have only open subsets."""
        limit = sums.limits(self.lattice.child, self.level | self._base)
        is_open = limit > self.best - least
        sets = np.asarray(kernels().extend_sets(self.level[is_open], self.lattice.free))
        return self.useful(sets, sums, least, counted=False)

    def useful(self, sets: Masks, sums: SetSums, least: float, *, counted: bool) -> Masks:
        """Without the sets of which a member cannot pay for itself."""
        price = sums.price(self.lattice.child)
        if not price or not len(sets):
            return sets
        below = self.level | self._base
        useless = kernels().useless_members(
            sets,
            self.level,
            self.lattice.free,
            sums.arities[_bit_lengths(self.lattice.free) - 1],
            price * sums.states(below) - least,
            sums.lost(self.lattice.child, below),
            sums.of(below),
            sums.of(sets | self._base) if counted else np.full(len(sets), np.inf),
        )
        return np.asarray(sets[~useless])

    def judge(self, sets: Masks, sums: SetSums, least: float) -> None:
        """Score the sets of the next level, keep those that no subset dominates."""
        scores = sums.scores(self.lattice.child, sets | self._base)
        below = kernels().best_subsets(sets, self.level, self.best, self.lattice.free)
        self.kept.append((sets | self._base)[scores > below - least])
        self.level, self.best = sets, np.maximum(scores, below)


def _bit_lengths(bits: Masks) -> IntArray:
    return np.array([int(bit).bit_length() for bit in bits], dtype=np.int64)


def local_scores(
    data: EncodedData,
    score: str = "bic",
    max_parents: int | None = None,
    *,
    equivalent_sample_size: float = 1.0,
    class_restricted: bool = False,
    required: Collection[Arc] = (),
    forbidden: Collection[Arc] = (),
) -> StructureProblem:
    """The undominated parent sets of every variable with their scores.

    Parameters
    ----------
    data
        Encoded rows; with ``class_restricted=False`` the first variable is like all others.
    score
        "bic" ("mdl"), "aic", "bdeu", "k2" or "loglik".
    max_parents
        None allows any number, as far as the bounds above end the search for larger sets.
    equivalent_sample_size
        Of "bdeu".
    class_restricted
        Features have no parents or the class (variable 0) among them.
    required, forbidden
        Arcs (parent, child) that every (no) structure has.

    Returns
    -------
    StructureProblem
        Ready for :func:`marginbn.solve_structure` and :func:`marginbn.save_scores`.

    Examples
    --------
    >>> import numpy as np
    >>> from marginbn import EncodedData, Variable, local_scores
    >>> variables = tuple(Variable(name, ("0", "1")) for name in "abc")
    >>> codes = np.array([[0, 0, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]] * 5)
    >>> problem = local_scores(EncodedData(codes, np.ones(20), variables), "bic")
    >>> problem.candidates.parents
    ((), (1,), (), (0,), ())
    """
    formula = get_local_score(score, equivalent_sample_size)
    if data.n_variables > MOST_VARIABLES:
        raise ProblemTooLargeError(
            f"scores of at most {MOST_VARIABLES} variables are computed this way, got "
            f"{data.n_variables}; leave out columns, or use enumerate_candidates and linear_problem"
        )
    if max_parents is None and score == "loglik":
        raise InputError("max_parents must be given for score='loglik': every parent helps it")
    merged = data.merged()
    sums = SetSums(merged, score, equivalent_sample_size)
    most = data.n_variables - 1 if max_parents is None else max_parents
    lattices = find_lattices(data, class_restricted, frozenset(required), frozenset(forbidden))
    parents = list(_kept_sets(sums, lattices, most))
    child = np.repeat(np.arange(data.n_variables, dtype=np.int32), [len(p) for p in parents])
    flat = tuple(members for group in parents for members in group)
    candidates = CandidateSets(data.n_variables, child, flat)
    return drop_dominated(linear_problem(merged, candidates, formula))


def find_lattices(
    data: EncodedData,
    class_restricted: bool,
    required: frozenset[Arc],
    forbidden: frozenset[Arc],
) -> list[Lattice]:
    """What each variable may have as parents; variables with one state are nobody's parents."""
    lattices = []
    for i in range(data.n_variables):
        base = {p for p, c in required if c == i}
        if not base.isdisjoint(p for p, c in forbidden if c == i):
            raise InputError(f"an arc to {data.names[i]!r} is both required and forbidden")
        empty = not base
        if class_restricted and i > 0 and (0, i) not in forbidden:
            base.add(0)
        free = [
            v
            for v in range(data.n_variables)
            if v != i and v not in base and data.arities[v] > 1 and (v, i) not in forbidden
        ]
        if class_restricted and i > 0 and 0 not in base:
            free = []
        bits = np.array([1 << v for v in free], dtype=np.uint64)
        lattices.append(Lattice(i, sum(1 << v for v in base), bits, empty and bool(base)))
    return lattices


def _kept_sets(
    sums: SetSums, lattices: list[Lattice], most: int
) -> Iterator[list[tuple[int, ...]]]:
    """Undominated parent sets of every child, by size and then by members."""
    least = TOLERANCE * sums.data.total_weight
    climbs = [_start(sums, lattice, most) for lattice in lattices]
    total = 0
    for _ in range(most):
        levels = [
            climb.rise(sums, least) if _has_room(climb, most) else climb.level[:0]
            for climb in climbs
        ]
        total += sum(map(len, levels))
        if total > MAX_CANDIDATES:
            raise ProblemTooLargeError(
                f"more than {MAX_CANDIDATES} parent sets could matter; set max_parents"
            )
        if not any(map(len, levels)):
            break
        _count(sums, climbs, levels)
        levels = [
            climb.useful(sets, sums, least, counted=True)
            for climb, sets in zip(climbs, levels, strict=True)
        ]
        _count(sums, climbs, levels, with_child=True)
        for climb, sets in zip(climbs, levels, strict=True):
            climb.judge(sets, sums, least)
    for climb in climbs:
        members = [_members(int(mask)) for mask in np.concatenate(climb.kept).tolist()]
        yield sorted(set(members), key=lambda m: (len(m), m))


def _start(sums: SetSums, lattice: Lattice, most: int) -> Climb:
    """The base alone, and the empty set where it is allowed."""
    child, base = np.uint64(1 << lattice.child), np.uint64(lattice.base)
    first = np.array([0, base], dtype=np.uint64)
    sums.count(np.unique(np.concatenate([first, first | child])))
    empty, alone = sums.scores(lattice.child, first)
    too_many = lattice.base.bit_count() > most
    if too_many and not lattice.empty:
        raise InputError(
            f"max_parents must be at least {lattice.base.bit_count()}: arcs require it"
        )
    kept = first[:1] if lattice.empty else first[:0]
    best = max(empty, alone) if lattice.empty else alone
    if not too_many and not (lattice.empty and alone <= empty and lattice.base):
        kept = np.append(kept, first[1:])
    level = np.zeros(0 if too_many else 1, dtype=np.uint64)
    return Climb(lattice, level, np.full(len(level), best), [kept])


def _has_room(climb: Climb, most: int) -> bool:
    """Whether one more parent is allowed."""
    if not len(climb.level):
        return False
    return (int(climb.level[0]) | climb.lattice.base).bit_count() < most


def _count(
    sums: SetSums, climbs: list[Climb], levels: list[Masks], *, with_child: bool = False
) -> None:
    """Count all parent sets of a level, or these with their child."""
    parts = []
    for climb, sets in zip(climbs, levels, strict=True):
        child = 1 << climb.lattice.child if with_child else 0
        parts.append(sets | np.uint64(climb.lattice.base | child))
    sums.count(np.unique(np.concatenate(parts)))


def _members(mask: int) -> tuple[int, ...]:
    return tuple(v for v in range(mask.bit_length()) if mask >> v & 1)
