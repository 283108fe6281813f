"""Checks a certificate step by step; see :mod:`marginbn.proof.certificate` for what it says.

1. The fingerprint is that of the data, numbers are in range, objective <= bound.
2. The candidates: rebuilt from their rule; those that are not listed are dominated.
3. The incumbent: made of candidates, acyclic, its score from the definition, rounded down, is at
   least the claimed objective.
4. The tree: complete, and the bound of every leaf, rounded up, is at most the claimed bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from marginbn.exceptions import ProblemTooLargeError
from marginbn.proof.certificate import ARC, ARGUMENTS, CANDIDATE, EDGE, FOREST, Certificate
from marginbn.proof.checker.bounds import NOTHING, Clusters, Forests, Majorants, ceil_to_grid
from marginbn.proof.checker.pruning import Pruning, SetSums
from marginbn.proof.checker.statement import (
    LARGEST_TABLE,
    RefutedError,
    Space,
    build_space,
    check_rule,
    family_of,
    is_acyclic,
    refute,
)
from marginbn.proof.checker.values import SHIFT, SLACK, ExactCounts, decomposable_scores

SMALLEST, LARGEST = 1e-100, 1e100
"""Numbers outside of this range are not checked."""

Progress = Callable[[int, int], None]
"""Called with the number of tree entries read and their total."""


@dataclass(frozen=True)
class Verdict:
    """What the checker found.

    Attributes
    ----------
    verified
        Whether the claim follows.
    reason
        What is wrong and where, if not.
    objective, bound
        The incumbent scores at least ``objective``, no structure more than ``bound``.
    n_leaves
        Size of the proof.
    scale
        What the gap is relative to where objective and bound are small: a hundredth of what a
        margin can be, the total weight times gamma (at most one nat).

    Examples
    --------
    >>> from marginbn.proof.checker import Verdict
    >>> verdict = Verdict(verified=True, reason="", objective=99.0, bound=100.0)
    >>> bool(verdict), verdict.gap
    (True, 0.01)
    """

    verified: bool
    reason: str
    objective: float
    bound: float
    n_leaves: int = 0
    scale: float = 1.0

    @property
    def gap(self) -> float:
        """How far the incumbent can be off at most, see :func:`marginbn.solvers.relative_gap`."""
        width = max(0.0, self.bound - self.objective)
        return width and width / max(self.scale, abs(self.bound), abs(self.objective))

    def __bool__(self) -> bool:
        return self.verified


def check(certificate: Certificate, progress: Progress | None = None) -> Verdict:
    """Check everything; raises nothing on a certificate that is merely wrong."""
    try:
        check_rule(certificate)
        check_definition(certificate)
        space = build_space(certificate.data, certificate.candidates)
        checker = Checker(certificate, space)
        checker.check_incumbent()
        n_leaves = checker.check_tree(progress)
    except RefutedError as refuted:
        return Verdict(False, str(refuted), certificate.objective, certificate.bound)
    except MemoryError:
        raise ProblemTooLargeError(
            "there is not enough memory to check this certificate: free some"
        ) from None
    scale = 0.0
    if certificate.score.is_margin:
        total = math.fsum(certificate.data.weights.tolist())
        scale = 0.01 * total * min(certificate.score.gamma, 1.0)
    return Verdict(True, "", certificate.objective, certificate.bound, n_leaves, scale)


def check_definition(certificate: Certificate) -> None:
    """Step 1."""
    data, score, loss = certificate.data, certificate.score, certificate.candidates.loss
    same = data.fingerprint() == certificate.fingerprint
    refute(not same, "the fingerprint is not that of the data in the certificate")
    refute(len(set(data.names)) < len(data.names), "two variables have the same name")
    known = score.is_margin or score.name in (*decomposable_scores(), "given")
    refute(not known, f"the score {score.name!r} is not known")
    for name in ("gamma", "smoothing", "equivalent_sample_size"):
        inside = SMALLEST <= getattr(score, name) <= LARGEST
        refute(not inside, f"{name} must be positive, it is {getattr(score, name)}")
    refute(not 0.0 <= loss <= LARGEST, "the loss of sets that are not listed must not be negative")
    large = any(abs(value) > LARGEST for own in data.scores for _, value in own)
    refute(large, "scores are too large to be checked")
    inside = ((data.weights >= SMALLEST) & (data.weights <= LARGEST)).all()
    refute(not inside, "weights are too small or too large to be checked")
    refute(score.is_margin and data.arities[0] < 2, "margins need two classes")
    refute(not -300 <= certificate.grid <= 64, f"the grid 2^{certificate.grid} makes no sense")
    refute(
        certificate.objective > certificate.bound,
        f"the claimed objective {certificate.objective!r} exceeds the claimed bound "
        f"{certificate.bound!r}: both cannot hold",
    )


Node = tuple[NDArray[np.bool_], frozenset[tuple[int, int]]]
"""The structures of a node: allowed candidates, and edges that are present."""


def children(space: Space, node: Node, kind: int, arguments: tuple[int, ...]) -> tuple[Node, Node]:
    """The structures of a node without an object, and those with it."""
    (allowed, present), child = node, arguments[0]
    if kind == CANDIDATE:
        [k] = arguments
        refute(not 0 <= k < len(space.parents), f"candidate {k} does not exist")
        has_it, child = np.arange(len(allowed)) == k, int(space.child[k])
    else:
        i, j = arguments
        fits = i != j and all(0 <= v < space.n_variables for v in arguments)
        refute(not fits, f"variables {i} and {j} cannot be joined")
        has_it = space.joining(i, j) if kind == EDGE else space.holding(i, j)
    without = allowed & ~has_it, present
    if kind == EDGE:
        return without, (allowed, present | {(min(arguments), max(arguments))})
    return without, (allowed & (has_it | (space.child != child)), present)


class Checker:
    """Steps 2 to 4."""

    def __init__(self, certificate: Certificate, space: Space) -> None:
        self.certificate = certificate
        self.space = space
        self.counts = ExactCounts(certificate.data)
        self.majorants = Majorants(certificate, space, self.counts)
        self.forests = Forests(space)
        self.clusters = Clusters(space, certificate)

    # ------------------------------------------------------------------ the incumbent

    def check_incumbent(self) -> None:
        """Step 3."""
        parents = list(self.certificate.incumbent)
        whole = len(parents) == self.space.n_variables
        refute(not whole, "the incumbent must name the parents of every variable")
        for i, own in enumerate(parents):
            has_it = (i, own) in self.space.number
            refute(not has_it, f"the incumbent gives variable {i} the parents {own}: no candidate")
        refute(not is_acyclic(parents), "the incumbent has a directed cycle")
        lower = self._score_of(parents)
        if lower < Fraction(self.certificate.objective) * 2**SHIFT:
            raise RefutedError(
                f"the incumbent scores {float(lower / 2**SHIFT)!r}, "
                f"less than the claimed objective {self.certificate.objective!r}"
            )

    def _score_of(self, parents: list[tuple[int, ...]]) -> Fraction:
        """Score of a structure from the definition, rounded down, in units of 2^-44."""
        data, score = self.certificate.data, self.certificate.score
        if not score.is_margin:
            scores = self.majorants.scores
            return Fraction(sum(scores[self.space.number[i, p]][0] for i, p in enumerate(parents)))
        total = np.zeros((len(data.codes), score.n_rivals(data.arities[0])), dtype=np.int64)
        for i, own in enumerate(parents):
            total += self.majorants.margins.units(i, own) - SLACK
            large = np.abs(total).max() >= 2**61
            refute(large, "the margins of the incumbent are too large to be checked")
        cap = math.floor(Fraction(score.gamma) * 2**SHIFT)
        pairs = zip(self.counts.weights, total.min(axis=1).tolist(), strict=True)
        return Fraction(sum(w * min(cap, s) for w, s in pairs), self.counts.scale)

    # ------------------------------------------------------------------ the tree

    def check_candidates(self) -> float:
        """What the sets of the rule that are not listed may add to a score (step 2)."""
        candidates = self.certificate.candidates
        if candidates.rule is None or not candidates.listed:
            return 0.0
        n, scores = self.space.n_variables, self.majorants.scores
        lower = {key: scores[k][0] for key, k in self.space.number.items()}
        families = [family_of(i, n, candidates.rule) for i in range(n)]
        sums = SetSums(self.counts, self.certificate)
        for base in {family.base for family in families}:
            own = [family for family in families if family.base == base]
            Pruning(sums, self.certificate, own).check(candidates.rule.max_parents, lower)
        return n * candidates.loss

    def check_tree(self, progress: Progress | None = None) -> int:
        """Step 4: the bound of every leaf, in the order of the stream; how many there are."""
        grid, tree = self.certificate.grid, self.certificate.tree
        limit = math.floor(Fraction(self.certificate.bound) / Fraction(2) ** grid)
        limit -= ceil_to_grid(Fraction(self.check_candidates()), grid)
        every = np.ones(len(self.space.parents), dtype=bool)
        place, leaf, waiting = 0, 0, [(every, frozenset[tuple[int, int]]())]
        while waiting:
            refute(place >= len(tree), "the tree is not complete: a node has no children")
            node, kind = waiting.pop(), int(tree[place])
            known = kind in ARGUMENTS
            refute(not known, f"tree entry {place}: a node of kind {kind} does not exist")
            arguments = tuple(tree[place + 1 : place + 1 + ARGUMENTS[kind]].tolist())
            is_cut = len(arguments) < ARGUMENTS[kind]
            refute(is_cut, "the tree is not complete: the last node is cut off")
            place += 1 + len(arguments)
            if kind in (EDGE, ARC, CANDIDATE):
                waiting += children(self.space, node, kind, arguments)[::-1]
                deep = len(waiting) * len(every) > LARGEST_TABLE
                refute(deep, "the tree is too deep to be checked")
                continue
            try:
                bound = self._bound(node, kind, arguments, limit)
            except RefutedError as refuted:
                raise RefutedError(f"leaf {leaf}: {refuted}") from None
            if bound > limit and bound != NOTHING:
                value = float(bound * Fraction(2) ** grid)
                raise RefutedError(
                    f"leaf {leaf}: structures may score up to {value!r}, "
                    f"more than the claimed bound {self.certificate.bound!r}"
                )
            leaf += 1
            if progress is not None:
                progress(place, len(tree))
        refute(place != len(tree), f"the tree ends at entry {place}, {len(tree)} are given")
        return leaf

    def _bound(self, node: Node, kind: int, arguments: tuple[int, ...], limit: int) -> int:
        """Bound of a leaf in whole numbers of 2^grid."""
        dual, known = arguments[0], self.certificate.multipliers
        refute(not 0 <= dual < self.majorants.count, f"dual weights {dual} do not exist")
        if kind == FOREST:
            return self.forests.bound(self.majorants[dual], *node, limit)
        number = arguments[1]
        refute(not 0 <= number < len(known), f"multipliers {number} do not exist")
        return self.clusters.bound(self.majorants[dual], known[number], *node)
