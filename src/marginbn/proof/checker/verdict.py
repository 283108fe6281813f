"""Checks a certificate step by step; see :mod:`marginbn.proof.certificate` for what it says.

1. The data: the fingerprint is theirs, the numbers of the score make sense.
2. The candidates: rebuilt from their rule; dropped ones are dominated by a kept subset.
3. The incumbent: made of candidates, acyclic, its score from the definition, rounded down, is at
   least the claimed objective.
4. The tree: complete, and the bound of every leaf, rounded up, is at most the claimed bound.

Nothing here is shared with the search: coefficients, scores, arborescences and bounds are computed
again, in exact or outward-rounded arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from marginbn.proof.certificate import (
    ARC,
    ARGUMENTS,
    CANDIDATE,
    CLUSTERS,
    EDGE,
    FOREST,
    Certificate,
)
from marginbn.proof.checker.bounds import NOTHING, Clusters, Edges, Forests, Majorants, ceil_to_grid
from marginbn.proof.checker.statement import (
    RefutedError,
    Space,
    build_space,
    is_acyclic,
    proper_subsets,
)
from marginbn.proof.checker.values import (
    SHIFT,
    SLACK,
    ExactCounts,
    MarginValues,
    NotCheckableError,
    decomposable_scores,
)

SMALLEST, LARGEST = 1e-100, 1e100
"""Numbers outside of this range are not checked."""

DEEPEST_BYTES = 2**31
"""Memory for the nodes on the way to a leaf."""

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
    n_leaves, n_dual_weights
        Size of the proof.
    scale
        What the gap is relative to where objective and bound are small: a hundredth of what the
        objective can be, from the data and the score alone.

    Examples
    --------
    >>> from marginbn import Verdict
    >>> verdict = Verdict(verified=True, reason="", objective=99.0, bound=100.0)
    >>> bool(verdict), verdict.gap
    (True, 0.01)
    """

    verified: bool
    reason: str
    objective: float
    bound: float
    n_leaves: int = 0
    n_dual_weights: int = 0
    scale: float = 1.0

    @property
    def gap(self) -> float:
        """How far the incumbent can be off at most, see :func:`marginbn.relative_gap`."""
        width = max(0.0, self.bound - self.objective)
        return width and width / max(self.scale, abs(self.bound), abs(self.objective))

    def __bool__(self) -> bool:
        return self.verified


def check(certificate: Certificate, progress: Progress | None = None) -> Verdict:
    """Check everything; never raises on a certificate that is merely wrong."""
    n_leaves, scale = 0, 1.0
    try:
        check_definition(certificate)
        space = build_space(certificate.data, certificate.candidates)
        checker = Checker(certificate, space)
        checker.check_incumbent()
        n_leaves = checker.check_tree(progress)
        scale = checker.scale()
    except (RefutedError, NotCheckableError) as refuted:
        return Verdict(False, str(refuted), certificate.objective, certificate.bound)
    return Verdict(
        True, "", certificate.objective, certificate.bound, n_leaves, len(certificate.duals), scale
    )


def check_definition(certificate: Certificate) -> None:
    """Step 1."""
    data, score = certificate.data, certificate.score
    if data.fingerprint() != certificate.fingerprint:
        raise RefutedError("the fingerprint is not that of the data in the certificate")
    if not score.is_margin and score.name not in decomposable_scores():
        raise RefutedError(f"the score {score.name!r} is not known")
    for name in ("gamma", "smoothing", "equivalent_sample_size"):
        if not SMALLEST <= getattr(score, name) <= LARGEST:
            raise RefutedError(f"{name} must be positive, it is {getattr(score, name)}")
    if data.weights.min() < SMALLEST or data.weights.max() > LARGEST:
        raise RefutedError("weights are too small or too large to be checked")
    if score.is_margin and data.arities[0] < 2:
        raise RefutedError("margins need two classes")
    if not -300 <= certificate.grid <= 64:
        raise RefutedError(f"the grid 2^{certificate.grid} makes no sense")


@dataclass(frozen=True, eq=False)
class CheckedNode:
    """Structures made of allowed candidates with certain edges, and the way to them."""

    allowed: NDArray[np.bool_]
    present: Edges
    path: tuple[CheckedNode, str] | None

    def where(self) -> str:
        """The decisions that lead here, newest last."""
        texts, node = [], self
        while node.path is not None:
            node, text = node.path
            texts.append(text)
        return ", ".join(reversed(texts[:20])) or "the root"


class Checker:
    """Steps 2 to 4."""

    def __init__(self, certificate: Certificate, space: Space) -> None:
        self.certificate = certificate
        self.space = space
        self.counts = ExactCounts(certificate.data)
        dropped = certificate.candidates.dropped
        every = np.ones(len(space.parents), dtype=bool)
        self.kept = ~dropped if len(dropped) == len(every) else every
        self.majorants = Majorants(certificate, space, self.counts, self.kept)
        self.forests = Forests(space, self.kept)
        self.clusters = Clusters(space, certificate)

    # ------------------------------------------------------------------ the incumbent

    def check_incumbent(self) -> None:
        """Step 3."""
        parents = list(self.certificate.incumbent)
        if len(parents) != self.space.n_variables:
            raise RefutedError("the incumbent must name the parents of every variable")
        for i, own in enumerate(parents):
            if (i, own) not in self.space.number:
                raise RefutedError(
                    f"the incumbent gives variable {i} the parents {own}: no candidate"
                )
        if not is_acyclic(parents):
            raise RefutedError("the incumbent has a directed cycle")
        lower = self._score_of(parents)
        if lower < Fraction(self.certificate.objective) * 2**SHIFT:
            raise RefutedError(
                f"the incumbent scores {float(lower / 2**SHIFT)!r}, "
                f"less than the claimed objective {self.certificate.objective!r}"
            )

    def _score_of(self, parents: list[tuple[int, ...]]) -> Fraction:
        """Score of a structure from the definition, rounded down, in units of 2^-44."""
        if not self.certificate.score.is_margin:
            scores = self.majorants.scores
            return Fraction(sum(scores[self.space.number[i, p]][0] for i, p in enumerate(parents)))
        margins = MarginValues(self.counts, self.certificate.score)
        total = np.zeros((len(self.certificate.data.codes), margins.n_rivals), dtype=np.int64)
        for i, own in enumerate(parents):
            total += margins.units(i, own) - SLACK
            if np.abs(total).max() >= 2**61:
                raise RefutedError("the margins of the incumbent are too large to be checked")
        cap = math.floor(Fraction(self.certificate.score.gamma) * 2**SHIFT)
        pairs = zip(self.counts.weights, total.min(axis=1).tolist(), strict=True)
        return Fraction(sum(w * min(cap, s) for w, s in pairs), self.counts.scale)

    def scale(self) -> float:
        """A hundredth of what the objective can be: the total weight times gamma (at most one nat),
        or the larger of the scores of the smallest parent sets and of the best ones.
        """
        score = self.certificate.score
        if score.is_margin:
            return 0.01 * math.fsum(self.certificate.data.weights.tolist()) * min(score.gamma, 1.0)
        first = best = 0
        for i in range(self.space.n_variables):
            values = [
                self.majorants.scores[k][1] for k in np.flatnonzero(self.space.child == i).tolist()
            ]
            first, best = first + values[0], best + max(values)
        return float(Fraction(max(abs(first), abs(best)), 100 * 2**SHIFT))

    # ------------------------------------------------------------------ the tree

    def root(self) -> tuple[CheckedNode, int]:
        """All structures of kept candidates, and what dropping the others may cost (step 2)."""
        dropped = self.certificate.candidates.dropped
        if len(dropped) == 0:
            return CheckedNode(self.kept, frozenset(), None), 0
        if len(dropped) != len(self.space.parents) or self.certificate.score.is_margin:
            raise RefutedError("these candidates cannot be dropped")
        losses = [self._loss(i, dropped) for i in range(self.space.n_variables)]
        return CheckedNode(self.kept, frozenset(), None), sum(losses)

    def _loss(self, variable: int, dropped: NDArray[np.bool_]) -> int:
        """How much a dropped candidate may score above its best kept subset, in units of 2^-44.

        Exchanging parents for a subset closes no cycle, so a structure with dropped candidates can
        be changed into one without at this cost.
        """
        own = np.flatnonzero(self.space.child == variable).tolist()
        scores = self.majorants.scores
        kept = {self.space.parents[k]: scores[k][0] for k in own if not dropped[k]}
        worst = 0
        for k in own:
            if dropped[k]:
                lower = [kept[s] for s in proper_subsets(self.space.parents[k]) if s in kept]
                if not lower:
                    raise RefutedError(f"candidate {k} is dropped although no subset of it is kept")
                worst = max(worst, scores[k][1] - max(lower))
        return worst

    def check_tree(self, progress: Progress | None = None) -> int:
        """Step 4; returns the number of leaves.

        The stream is read in preorder. Every inner node leaves its second child waiting, so the
        stream is a complete tree exactly if it ends with nothing waiting.
        """
        root, loss = self.root()
        grid = self.certificate.grid
        limit = math.floor(Fraction(self.certificate.bound) / Fraction(2) ** grid)
        limit -= ceil_to_grid(Fraction(loss, 2**SHIFT), grid)
        stream = self.certificate.tree.tolist()
        waiting, place, leaves = [root], 0, 0
        while waiting:
            node = waiting.pop()
            kind, arguments = self._read(stream, place)
            place += 1 + len(arguments)
            if kind in (EDGE, ARC, CANDIDATE):
                without, with_it = self._children(node, kind, arguments)
                waiting += [with_it, without]
                if len(waiting) * len(root.allowed) > DEEPEST_BYTES:
                    raise RefutedError("the tree is too deep to be checked")
            else:
                self._check_leaf(node, kind, arguments, limit, leaves)
                leaves += 1
                if progress is not None:
                    progress(place, len(stream))
        if place != len(stream):
            raise RefutedError(f"the tree ends at entry {place}, {len(stream)} are given")
        return leaves

    def _read(self, stream: list[int], place: int) -> tuple[int, list[int]]:
        if place >= len(stream):
            raise RefutedError("the tree is not complete: a node has no children")
        kind = stream[place]
        if kind not in ARGUMENTS:
            raise RefutedError(f"tree entry {place}: a node of kind {kind} does not exist")
        arguments = stream[place + 1 : place + 1 + ARGUMENTS[kind]]
        if len(arguments) < ARGUMENTS[kind]:
            raise RefutedError("the tree is not complete: the last node is cut off")
        return kind, arguments

    def _children(
        self, node: CheckedNode, kind: int, arguments: list[int]
    ) -> tuple[CheckedNode, CheckedNode]:
        """Structures of the node without the object, and with it."""
        if kind == CANDIDATE:
            [k] = arguments
            if not 0 <= k < len(self.space.parents):
                raise RefutedError(f"candidate {k} does not exist (at {node.where()})")
            of_child = self.space.child == self.space.child[k]
            holding = np.zeros(len(of_child), dtype=bool)
            holding[k] = True
            text = f"candidate {k}"
        else:
            i, j = arguments
            if not (0 <= i < self.space.n_variables and 0 <= j < self.space.n_variables) or i == j:
                raise RefutedError(f"variables {i} and {j} cannot be joined (at {node.where()})")
            if kind == EDGE:
                return self._edge_children(node, min(i, j), max(i, j))
            of_child = self.space.child == i
            holding = self.space.holding(i, j)
            text = f"arc {j} -> {i}"
        without, with_it = node.allowed & ~holding, node.allowed & (holding | ~of_child)
        return (
            CheckedNode(without, node.present, (node, f"no {text}")),
            CheckedNode(with_it, node.present, (node, text)),
        )

    def _edge_children(self, node: CheckedNode, i: int, j: int) -> tuple[CheckedNode, CheckedNode]:
        without = node.allowed & ~self.space.joining(i, j)
        return (
            CheckedNode(without, node.present, (node, f"no edge {i} - {j}")),
            CheckedNode(node.allowed, node.present | {(i, j)}, (node, f"edge {i} - {j}")),
        )

    def _check_leaf(
        self, node: CheckedNode, kind: int, arguments: list[int], limit: int, number: int
    ) -> None:
        where = f"leaf {number} ({node.where()})"
        if not 0 <= arguments[0] < self.majorants.count:
            raise RefutedError(f"{where}: dual weights {arguments[0]} do not exist")
        majorant = self.majorants[arguments[0]]
        try:
            if kind == FOREST:
                if self.forests.reason is not None:
                    raise RefutedError(f"forests bound nothing here: {self.forests.reason}")
                bound = self.forests.bound(majorant, node.allowed, node.present, limit)
            else:
                assert kind == CLUSTERS
                if not 0 <= arguments[1] < len(self.certificate.multipliers):
                    raise RefutedError(f"multipliers {arguments[1]} do not exist")
                multipliers = self.certificate.multipliers[arguments[1]]
                bound = self.clusters.bound(majorant, multipliers, node.allowed, node.present)
        except RefutedError as refuted:
            raise RefutedError(f"{where}: {refuted}") from None
        if bound > limit and bound != NOTHING:
            value = float(bound * Fraction(2) ** self.certificate.grid)
            raise RefutedError(
                f"{where}: structures may score up to {value!r}, "
                f"more than the claimed bound {self.certificate.bound!r}"
            )
