"""Checks a certificate step by step; see :mod:`marginbn.proof.certificate` for what it says.

1. The form and the data: plain numbers in their ranges, the fingerprint is that of the data, the
   numbers of the score make sense.
2. The candidates: rebuilt from their rule; dropped ones are dominated by a kept subset.
3. The incumbent: made of candidates, acyclic, its score from the definition, rounded down, is at
   least the claimed objective.
4. The tree: complete, and the bound of every leaf, rounded up, is at most the claimed bound.
5. The claim does not contradict itself: the objective is not above the bound.

Nothing here is shared with the search: coefficients, scores, arborescences and bounds are computed
again, in exact or outward-rounded arithmetic.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from marginbn.exceptions import ProblemTooLargeError
from marginbn.proof.certificate import (
    ARC,
    ARGUMENTS,
    CANDIDATE,
    CLUSTERS,
    EDGE,
    FOREST,
    Certificate,
)
from marginbn.proof.checker.bounds import (
    NOTHING,
    Clusters,
    Forests,
    IntegerMajorant,
    Majorants,
    Spare,
    ceil_to_grid,
)
from marginbn.proof.checker.statement import (
    RefutedError,
    Space,
    admit,
    build_space,
    check_form,
    default_memory,
    is_acyclic,
    one_fewer,
)
from marginbn.proof.checker.values import (
    SHIFT,
    SLACK,
    ExactCounts,
    Integers,
    MarginValues,
    NotCheckableError,
    decomposable_scores,
)

SMALLEST, LARGEST = 1e-100, 1e100
"""Numbers outside of this range are not checked."""

LOOK_AHEAD = 2048
"""So many leaves are told to the majorants in advance."""

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
    n_dual_weights: int = 0
    scale: float = 1.0

    @property
    def gap(self) -> float:
        """How far the incumbent can be off at most, see :func:`marginbn.solvers.relative_gap`."""
        width = max(0.0, self.bound - self.objective)
        return width and width / max(self.scale, abs(self.bound), abs(self.objective))

    def __bool__(self) -> bool:
        return self.verified


def check(
    certificate: Certificate, progress: Progress | None = None, max_memory: int | None = None
) -> Verdict:
    """Check everything; raises nothing on a certificate that is merely wrong, and
    :class:`ProblemTooLargeError` on one that asks for more memory or work than is allowed.
    """
    allowed = default_memory() if max_memory is None else max_memory
    try:
        check_form(certificate)
        needs = admit(certificate.extent, allowed)
        check_definition(certificate)
        shape = read_shape(certificate.tree)
        space = build_space(certificate.data, certificate.candidates)
        checker = Checker(certificate, space, Spare(allowed - needs.memory))
        checker.check_incumbent()
        checker.check_tree(shape, progress)
        check_order(certificate)
        scale = checker.scale()
    except (RefutedError, NotCheckableError) as refuted:
        return Verdict(False, str(refuted), certificate.objective, certificate.bound)
    except MemoryError:
        raise ProblemTooLargeError(
            "there is not enough memory to check this certificate: free some, or lower max_memory "
            "(--max-memory), so that less is kept"
        ) from None
    n_duals = len(certificate.duals)
    return Verdict(
        True, "", certificate.objective, certificate.bound, shape.n_leaves, n_duals, scale
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


def check_order(certificate: Certificate) -> None:
    """Step 5. Follows from 3 and 4, and is looked at all the same: were one of them wrong, a claim
    that contradicts itself would give it away.
    """
    if certificate.objective > certificate.bound:
        raise RefutedError(
            f"the claimed objective {certificate.objective!r} exceeds the claimed bound "
            f"{certificate.bound!r}: both cannot hold"
        )


@dataclass(frozen=True, eq=False)
class TreeShape:
    """The number of leaves, of levels at the same time open, and the weights that leaves name."""

    n_leaves: int
    depth: int
    duals: array[int]


def read_shape(tree: NDArray[np.int32]) -> TreeShape:
    """Look at the stream once: it is a complete tree of kinds that exist, and nothing follows.

    Every inner node leaves its second side waiting, so the stream is complete exactly if it ends
    with nothing waiting.
    """
    place, waiting, depth = 0, 1, 1
    duals = array("i")
    while waiting:
        if place >= len(tree):
            raise RefutedError("the tree is not complete: a node has no children")
        kind = int(tree[place])
        if kind not in ARGUMENTS:
            raise RefutedError(f"tree entry {place}: a node of kind {kind} does not exist")
        if place + ARGUMENTS[kind] >= len(tree):
            raise RefutedError("the tree is not complete: the last node is cut off")
        if kind in (FOREST, CLUSTERS):
            duals.append(tree[place + 1])
            waiting -= 1
        else:
            waiting += 1
            depth = max(depth, waiting)
        place += 1 + ARGUMENTS[kind]
    if place != len(tree):
        raise RefutedError(f"the tree ends at entry {place}, {len(tree)} are given")
    return TreeShape(len(duals), depth, duals)


@dataclass(eq=False, slots=True)
class Decision:
    """An object of the tree, the side that is open, and what that side took away."""

    kind: int
    arguments: tuple[int, ...]
    with_it: bool = False
    removed: Integers | None = None
    joins: bool = False  # whether its edge is present because of it

    def __str__(self) -> str:
        if self.kind == CANDIDATE:
            text = f"candidate {self.arguments[0]}"
        elif self.kind == ARC:
            text = f"arc {self.arguments[1]} -> {self.arguments[0]}"
        else:
            text = f"edge {min(self.arguments)} - {max(self.arguments)}"
        return text if self.with_it else f"no {text}"


class Branch:
    """The structures of one node: allowed candidates, edges that are present, and the way there.

    Going down takes candidates away and going back up returns them, so that all levels together
    hold every candidate once.
    """

    def __init__(self, space: Space, allowed: NDArray[np.bool_]) -> None:
        self.space = space
        self.allowed = allowed.copy()
        self.present: set[tuple[int, int]] = set()
        self.path: list[Decision] = []
        self._starts = np.searchsorted(space.child, np.arange(space.n_variables + 1)).tolist()

    def where(self) -> str:
        """The last decisions that lead here, newest last."""
        return ", ".join(map(str, self.path[-20:])) or "the root"

    def split(self, kind: int, arguments: tuple[int, ...]) -> None:
        """Go to the structures without an object."""
        n = self.space.n_variables
        if kind == CANDIDATE:
            [k] = arguments
            if not 0 <= k < len(self.space.parents):
                raise RefutedError(f"candidate {k} does not exist (at {self.where()})")
        elif not all(0 <= v < n for v in arguments) or arguments[0] == arguments[1]:
            i, j = arguments
            raise RefutedError(f"variables {i} and {j} cannot be joined (at {self.where()})")
        self.path.append(Decision(kind, arguments))
        self._enter(self.path[-1])

    def turn(self) -> bool:
        """After a leaf: go to the next side that is left; False if there is none."""
        while self.path:
            last = self.path[-1]
            self._leave(last)
            if not last.with_it:
                last.with_it = True
                self._enter(last)
                return True
            self.path.pop()
        return False

    def _enter(self, decision: Decision) -> None:
        kind, arguments = decision.kind, decision.arguments
        if kind == EDGE and decision.with_it:
            pair = (min(arguments), max(arguments))
            decision.joins = pair not in self.present
            self.present.add(pair)
            return
        arcs = [arguments] if kind != EDGE else [arguments, arguments[::-1]]
        found = [self._without(decision, arc) for arc in arcs]
        decision.removed = np.concatenate(found)
        self.allowed[decision.removed] = False

    def _without(self, decision: Decision, arc: tuple[int, ...]) -> Integers:
        """Allowed candidates of one child that do not belong to the side."""
        child = int(self.space.child[arc[0]]) if decision.kind == CANDIDATE else arc[0]
        begin, end = self._starts[child], self._starts[child + 1]
        if decision.kind == CANDIDATE:
            has_it = np.arange(begin, end) == arc[0]
        else:
            has_it = self.space.member[begin:end, arc[1]]
        goes = self.allowed[begin:end] & (has_it != decision.with_it)
        return np.asarray(np.flatnonzero(goes) + begin, dtype=np.int64)

    def _leave(self, decision: Decision) -> None:
        if decision.removed is not None:
            self.allowed[decision.removed] = True
            decision.removed = None
        if decision.joins:
            self.present.discard((min(decision.arguments), max(decision.arguments)))
            decision.joins = False


class Checker:
    """Steps 2 to 4."""

    def __init__(self, certificate: Certificate, space: Space, spare: Spare | None = None) -> None:
        spare = spare or Spare()
        self.certificate = certificate
        self.space = space
        self.counts = ExactCounts(certificate.data)
        dropped = certificate.candidates.dropped
        every = np.ones(len(space.parents), dtype=bool)
        self.kept = ~dropped if len(dropped) == len(every) else every
        self.majorants = Majorants(certificate, space, self.counts, self.kept, spare)
        self.forests = Forests(space, self.kept)
        places = np.flatnonzero(self.kept)  # rows are priced over these alone
        parents = [space.parents[k] for k in places.tolist()]
        self.clusters = Clusters(
            Space(space.n_variables, space.child[places], parents), certificate, spare
        )

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
        size = Fraction(max(abs(first), abs(best)), 2**SHIFT)
        return float(size / 100)

    # ------------------------------------------------------------------ the tree

    def loss(self) -> int:
        """What leaving out the dropped candidates may cost (step 2), in units of 2^-44."""
        dropped = self.certificate.candidates.dropped
        if len(dropped) == 0:
            return 0
        if len(dropped) != len(self.space.parents) or self.certificate.score.is_margin:
            raise RefutedError("these candidates cannot be dropped")
        return sum(self._loss(i, dropped) for i in range(self.space.n_variables))

    def _loss(self, variable: int, dropped: NDArray[np.bool_]) -> int:
        """How much a dropped candidate may score above its best kept subset, in units of 2^-44.

        Exchanging parents for a subset closes no cycle, so a structure with dropped candidates can
        be changed into one without at this cost.
        """
        own = np.flatnonzero(self.space.child == variable).tolist()
        scores = self.majorants.scores
        kept = {self.space.parents[k]: scores[k][0] for k in own if not dropped[k]}

        @cache
        def best_within(parents: tuple[int, ...]) -> float:
            """The largest score of a kept subset; an integer, or minus infinity."""
            return max([kept.get(parents, -math.inf), *map(best_within, one_fewer(parents))])

        worst = 0
        for k in own:
            if dropped[k]:
                lower = best_within(self.space.parents[k])
                if lower == -math.inf:
                    raise RefutedError(f"candidate {k} is dropped although no subset of it is kept")
                worst = max(worst, scores[k][1] - int(lower))
        return worst

    def check_tree(self, shape: TreeShape, progress: Progress | None = None) -> None:
        """Step 4: the bound of every leaf, in the order of the stream."""
        grid, tree = self.certificate.grid, self.certificate.tree
        limit = math.floor(Fraction(self.certificate.bound) / Fraction(2) ** grid)
        limit -= ceil_to_grid(Fraction(self.loss(), 2**SHIFT), grid)
        branch = Branch(self.space, self.kept)
        place, leaf, more = 0, 0, True
        while more:
            kind = int(tree[place])
            arguments = tuple(tree[place + 1 : place + 1 + ARGUMENTS[kind]].tolist())
            place += 1 + len(arguments)
            if kind in (EDGE, ARC, CANDIDATE):
                branch.split(kind, arguments)
                continue
            self.majorants.prepare(shape.duals[leaf : leaf + LOOK_AHEAD])
            try:
                self._check_leaf(branch, kind, arguments, limit)
            except RefutedError as refuted:
                raise RefutedError(f"leaf {leaf} ({branch.where()}): {refuted}") from None
            leaf += 1
            if progress is not None:
                progress(place, len(tree))
            more = branch.turn()

    def _check_leaf(
        self, branch: Branch, kind: int, arguments: tuple[int, ...], limit: int
    ) -> None:
        if not 0 <= arguments[0] < self.majorants.count:
            raise RefutedError(f"dual weights {arguments[0]} do not exist")
        majorant = self.majorants[arguments[0]]
        if kind == FOREST:
            if self.forests.reason is not None:
                raise RefutedError(f"forests bound nothing here: {self.forests.reason}")
            bound = self.forests.bound(majorant, branch.allowed, branch.present, limit)
        else:
            assert kind == CLUSTERS
            if not 0 <= arguments[1] < len(self.certificate.multipliers):
                raise RefutedError(f"multipliers {arguments[1]} do not exist")
            multipliers = self.certificate.multipliers[arguments[1]]
            over_kept = IntegerMajorant(majorant.constant, majorant.values[self.kept])
            allowed = branch.allowed[self.kept]
            bound = self.clusters.bound(over_kept, multipliers, allowed, branch.present)
        if bound > limit and bound != NOTHING:
            value = float(bound * Fraction(2) ** self.certificate.grid)
            raise RefutedError(
                f"structures may score up to {value!r}, "
                f"more than the claimed bound {self.certificate.bound!r}"
            )
