"""Structures for the residual score: which tables to add to main effects.

The class is a parent of every feature and has no parents itself; what is chosen are the features'
other parents. Nothing is lost by that: a class with the parents S has one table over S, and so has
a member of S with the class and the rest of S as parents; what the rest gains alone, which is taken
off there, is gained by one of its members.

* One feature parent at most: forests. The gain of a pair is the same both ways round, and Edmonds'
  arborescence finds the optimum in polynomial time, with arcs required or forbidden as well.
* Two feature parents that are married, so that the network keeps its posterior when its tables are
  normalised: 2-trees, here by a greedy extension of the best forest.
* Any number of feature parents: the solvers, on :func:`residual_problem`.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marginbn.exceptions import InputError
from marginbn.problem.arborescence import maximum_arborescence
from marginbn.problem.candidates import Arc, CandidateSets, enumerate_candidates
from marginbn.problem.encoded import EncodedData
from marginbn.problem.problem import StructureProblem
from marginbn.problem.residuals import PRICE, RIDGE, FloatArray, ResidualScore, residual_score
from marginbn.problem.structure import Structure

Family = tuple[int, ...]
"""Features in increasing order."""


def residual_candidates(
    data: EncodedData,
    max_parents: int,
    *,
    required: Collection[Arc] = (),
    forbidden: Collection[Arc] = (),
) -> CandidateSets:
    """Parent sets with the class in every one; the class itself has none.

    Arcs that are asked for go first: a feature whose arc from the class is forbidden has no
    parents, and one that is a required parent of the class has none either.
    """
    if max_parents < 1:
        raise InputError(
            "max_parents must be at least 1 for the residual score, which has the class as a "
            f"parent of every feature; got {max_parents}"
        )
    wanted, unwanted = set(required), set(forbidden)
    features = range(1, data.n_variables)
    into = {(0, i) for i in features if i not in data.constant and (i, 0) not in wanted}
    back = {(i, 0) for i in features}
    return enumerate_candidates(
        data.n_variables,
        max_parents,
        required=sorted(wanted | (into - unwanted)),
        forbidden=sorted(unwanted | (back - wanted)),
        constant=data.constant,
        names=data.names,
    )


def features_of(variables: Collection[int]) -> Family:
    """The features that have a table together with the class, if it is there."""
    return tuple(sorted({*variables} - {0})) if 0 in variables else ()


@dataclass(frozen=True, eq=False)
class FamilyGains:
    """Gains of families, each computed once."""

    data: EncodedData
    score: ResidualScore

    @cached_property
    def _known(self) -> dict[Family, tuple[float, float]]:
        return {}

    def with_error(self, family: Family) -> tuple[float, float]:
        """Gain and rounding error."""
        if len(family) < 2:
            return 0.0, 0.0
        if family not in self._known:
            self._known[family] = self.score.gain_and_error(self.data, family)
        return self._known[family]

    def local_score(self, child: int, parents: Collection[int]) -> tuple[float, float]:
        """What a parent set adds to the table that the parents have, and its rounding error."""
        gain, error = self.with_error(features_of({child, *parents}))
        before, other = self.with_error(features_of(parents))
        return gain - max(0.0, before), error + other + 2.0**-52 * abs(gain)


def residual_problem(
    data: EncodedData,
    residuals: ArrayLike,
    curvatures: ArrayLike,
    max_parents: int = 2,
    *,
    required: Collection[Arc] = (),
    forbidden: Collection[Arc] = (),
    ridge: float = RIDGE,
    price: float = PRICE,
) -> StructureProblem:
    """The problem whose optimum is the best structure for given residuals.

    Parameters
    ----------
    data
        Class first; rows as the interaction tables will see them.
    residuals, curvatures
        [y = c] - p and p (1 - p) of the main effects, (n_samples, n_classes), before weighting.
    max_parents
        Parents per feature, the class counted.
    required, forbidden
        Arcs (parent, child) that every (no) structure must contain.
    ridge, price
        Numbers of the formula, see :mod:`marginbn.problem.residuals`.

    Examples
    --------
    Main effects know nothing of an exclusive or; the pair of features does.

    >>> import numpy as np
    >>> from marginbn import EncodedData, Variable, residual_problem, solve_structure
    >>> codes = np.array([[0, 0, 0], [1, 0, 1], [1, 1, 0], [0, 1, 1]] * 25)
    >>> variables = tuple(Variable(name, ("0", "1")) for name in ("class", "x", "y"))
    >>> data = EncodedData(codes, np.ones(100), variables)
    >>> posterior = np.full((100, 2), 0.5)
    >>> residuals = np.eye(2)[codes[:, 0]] - posterior
    >>> problem = residual_problem(data, residuals, posterior * (1 - posterior))
    >>> result = solve_structure(problem)
    >>> result.structure.parents, round(result.objective, 3)
    (((), (0,), (0, 1)), 44.065)
    """
    merged, score = residual_score(data, residuals, curvatures, ridge=ridge, price=price)
    candidates = residual_candidates(data, max_parents, required=required, forbidden=forbidden)
    return gain_problem(FamilyGains(merged, score), candidates)


def gain_problem(gains: FamilyGains, candidates: CandidateSets) -> StructureProblem:
    """The gains of all candidates; for residuals that are merged already, or lists of one's own."""
    pairs = zip(candidates.child.tolist(), candidates.parents, strict=True)
    found = [gains.local_score(child, parents) for child, parents in pairs]
    linear, errors = np.array(found).reshape(-1, 2).T
    return StructureProblem(
        candidates=candidates,
        linear=np.ascontiguousarray(linear),
        variables=gains.data.variables,
        origin=(gains.data, gains.score),
        error=math.fsum(np.maximum.reduceat(errors, candidates.offsets[:-1])),
        size=gains.score.size,
    )


@dataclass(frozen=True)
class ResidualStructure:
    """A structure with its gain, and a number that no structure of its kind exceeds.

    Examples
    --------
    >>> from marginbn import ResidualStructure, Structure
    >>> ResidualStructure(Structure(((), (0,), (0, 1))), gain=12.5).bound  # nothing is known
    inf
    """

    structure: Structure
    gain: float
    bound: float = math.inf


def residual_forest(
    data: EncodedData,
    residuals: ArrayLike,
    curvatures: ArrayLike,
    *,
    required: Collection[Arc] = (),
    forbidden: Collection[Arc] = (),
    ridge: float = RIDGE,
    price: float = PRICE,
) -> ResidualStructure:
    """The best structure with at most one feature parent each, in polynomial time.

    Parameters as in :func:`residual_problem`. The bound exceeds the gain by rounding only.

    Examples
    --------
    >>> import numpy as np
    >>> from marginbn import EncodedData, Variable, residual_forest
    >>> codes = np.array([[0, 0, 0], [1, 0, 1], [1, 1, 0], [0, 1, 1]] * 25)
    >>> variables = tuple(Variable(name, ("0", "1")) for name in ("class", "x", "y"))
    >>> data = EncodedData(codes, np.ones(100), variables)
    >>> posterior = np.full((100, 2), 0.5)
    >>> residuals = np.eye(2)[codes[:, 0]] - posterior
    >>> forest = residual_forest(data, residuals, posterior * (1 - posterior))
    >>> forest.structure.parents, round(forest.gain, 3)
    (((), (0,), (0, 1)), 44.065)
    """
    problem = residual_problem(
        data,
        residuals,
        curvatures,
        2,
        required=required,
        forbidden=forbidden,
        ridge=ridge,
        price=price,
    )
    return forest_of(problem)


def forest_of(problem: StructureProblem) -> ResidualStructure:
    """Edmonds' optimum of a problem of :func:`residual_problem` with two parents at most."""
    candidates = problem.candidates
    if candidates.max_parents > 2 or any(map(len, candidates.parents[: candidates.offsets[1]])):
        raise InputError(
            "a forest needs max_parents=2 and a class without parents: solve_structure finds the "
            "best structure of other problems"
        )
    n = problem.n_variables - 1
    weights = np.full((n, n + 1), -np.inf)
    for k in range(int(candidates.offsets[1]), candidates.n_candidates):
        child, others = int(candidates.child[k]) - 1, [p for p in candidates.parents[k] if p > 0]
        tail = others[0] - 1 if others else n
        weights[child, tail] = max(weights[child, tail], problem.linear[k])
    tails, _ = maximum_arborescence(weights)
    structure = Structure(((), *(_parents(candidates, i, int(t)) for i, t in enumerate(tails))))
    gain = problem.score(structure)
    finite = np.abs(weights[np.isfinite(weights)])
    rounding = 2.0 * problem.error + 2.0**-50 * n * n * float(finite.max(initial=0.0))
    return ResidualStructure(structure, gain, gain + rounding)


def _parents(candidates: CandidateSets, feature: int, tail: int) -> tuple[int, ...]:
    """The parent set behind an arc from a feature, or from the root."""
    if tail < candidates.n_variables - 1:
        return (0, tail + 1)
    own = [candidates.parents[k] for k in candidates.group(feature + 1)]
    return (0,) if (0,) in own else ()


def two_tree(
    data: EncodedData,
    residuals: ArrayLike,
    curvatures: ArrayLike,
    *,
    required: Collection[Arc] = (),
    forbidden: Collection[Arc] = (),
    ridge: float = RIDGE,
    price: float = PRICE,
) -> ResidualStructure:
    """At most two feature parents each, which are married: the best forest, extended greedily.

    A feature with one feature parent may get a second one, a feature without any may get two; both
    parents are joined already, or one of them that has no feature parent gets the other. What adds
    most goes first, until nothing adds anything. Every parent set is a clique, so the network keeps
    its class posterior when its tables are normalised. There is no bound;
    ``solve_structure(residual_problem(..., max_parents=3))`` has one, for parents married or not.

    Parameters as in :func:`residual_problem`.

    Examples
    --------
    The class is the parity of three features, of which the third is mostly 0.

    >>> import numpy as np
    >>> from marginbn import EncodedData, Variable, two_tree
    >>> bits = np.array(np.meshgrid([0, 1], [0, 1], [0, 1])).reshape(3, 8).T
    >>> codes = np.tile(np.column_stack([bits.sum(axis=1) % 2, bits]), (20, 1))
    >>> variables = tuple(Variable(name, ("0", "1")) for name in ("class", "x", "y", "z"))
    >>> data = EncodedData(codes, np.where(codes[:, 3] == 0, 2.0, 1.0), variables)
    >>> posterior = np.full((160, 2), 0.5)
    >>> residuals = np.eye(2)[codes[:, 0]] - posterior
    >>> two_tree(data, residuals, posterior * (1 - posterior)).structure.parents
    ((), (0,), (0, 1), (0, 1, 2))
    """
    merged, score = residual_score(data, residuals, curvatures, ridge=ridge, price=price)
    gains = FamilyGains(merged, score)
    candidates = residual_candidates(data, 3, required=required, forbidden=forbidden)
    small = candidates.keep(np.array([len(p) <= 2 for p in candidates.parents]))
    if len(set(small.child.tolist())) < small.n_variables:
        raise InputError(
            "required_arcs give a feature two feature parents: two_tree starts from a forest"
        )
    forest = forest_of(gain_problem(gains, small)).structure
    structure = _TwoTree(forest, gains, candidates).grow()
    total = math.fsum(gains.local_score(i, p)[0] for i, p in enumerate(structure.parents))
    return ResidualStructure(structure, total)


MOST_TRIPLES = 10_000
"""With more triples than this, a 2-tree looks only at those that hold an arc of the forest."""


class _TwoTree:
    """A structure whose parent sets are cliques, and every way to make one of them larger.

    A move gives a child c the feature parents p and q. It adds score(c, {p, q}) instead of what c
    has; if p and q are not joined, p gets q as well and adds score(p, {q}).
    """

    def __init__(self, forest: Structure, gains: FamilyGains, candidates: CandidateSets) -> None:
        n = forest.n_variables
        self.parents = [set(p) for p in forest.parents]
        self.worth = np.array([gains.local_score(i, p)[0] for i, p in enumerate(forest.parents)])
        self.pair = np.full((n, n), -np.inf)  # score(child, {parent})
        moves = []
        triples = _triples(forest)
        for child, own in zip(candidates.child.tolist(), candidates.parents, strict=True):
            if len(own) == 2 and own[0] == 0:
                self.pair[child, own[1]] = gains.local_score(child, own)[0]
            elif len(own) == 3 and own[0] == 0 and tuple(sorted((child, *own[1:]))) in triples:
                value = gains.local_score(child, own)[0]
                moves += [(child, own[1], own[2], value), (child, own[2], own[1], value)]
        table = np.array(moves).reshape(-1, 4)
        self.child, self.first, self.second = table[:, :3].T.astype(np.int64)
        self.value = table[:, 3]

    def grow(self) -> Structure:
        """Make the best move until none adds anything."""
        while len(self.value):
            added = self._added()
            best = int(added.argmax())
            if not added[best] > 0:
                break
            child, p, q = int(self.child[best]), int(self.first[best]), int(self.second[best])
            if q not in self.parents[p] and p not in self.parents[q]:
                self.parents[p].add(q)
                self.worth[p] = self.pair[p, q]
            self.parents[child] = {0, p, q}
            self.worth[child] = self.value[best]
        return Structure(tuple(tuple(sorted(p)) for p in self.parents))

    def _added(self) -> FloatArray:
        """What every move adds; minus infinity where it is not one."""
        n, c, p, q = len(self.parents), self.child, self.first, self.second
        arc = np.zeros((n, n), dtype=bool)  # [child, parent]
        for i, own in enumerate(self.parents):
            arc[i, list(own)] = True
        count = arc[:, 1:].sum(axis=1)
        below = _descendants(self.parents)
        inside = count[c] == 0
        inside |= (count[c] == 1) & (arc[c, p] | arc[c, q])
        inside &= ~below[c, p] & ~below[c, q]
        joined = arc[p, q] | arc[q, p]
        free = (count[p] == 0) & ~below[p, q]  # p may get q
        added = self.value - self.worth[c] + np.where(joined, 0.0, self.pair[p, q])
        return np.where(inside & (joined | free), added, -np.inf)


def _triples(forest: Structure) -> set[Family]:
    """Three features at a time: all of them, or those with an arc of the forest."""
    features = range(1, forest.n_variables)
    if math.comb(len(features), 3) <= MOST_TRIPLES:
        return set(combinations(features, 3))
    arcs = [arc for arc in forest.arcs if 0 not in arc]
    return {tuple(sorted((*arc, v))) for arc in arcs for v in features if v not in arc}


def _descendants(parents: list[set[int]]) -> NDArray[np.bool_]:
    """(n, n): whether the second variable is the first or comes after it."""
    n = len(parents)
    below = np.eye(n, dtype=bool)
    for child in reversed(Structure(tuple(tuple(p) for p in parents)).order):
        for parent in parents[child]:
            below[parent] |= below[child]
    return below
