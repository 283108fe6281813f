"""The hybrid linear program as the tree of a certificate needs it: any candidates, any score.

The only module here that knows ``branch_cut``. A visit solves the node's programs and takes the
multipliers behind the best bound: dual weights of the margin rows, rounded to few bits, and
multipliers of rows as they are. Nothing is fixed or propagated: a node holds the structures that
its decisions describe. A node shown to be empty is bounded by a multiple of the ray that shows it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from marginbn.problem.array_types import BoolArray, FloatArray, IntArray
from marginbn.problem.masks import ParentSets
from marginbn.problem.structure import find_cycle
from marginbn.proof import record
from marginbn.proof.certificate import ARC, CANDIDATE, EDGE, NamedRow
from marginbn.proof.checker.bounds import ROW_RULES
from marginbn.proof.record import Proof, Relaxation, RoundedMajorant, TreeNode
from marginbn.solvers.branch_cut.bound import Prices, feasible_multipliers
from marginbn.solvers.branch_cut.branching import Chooser, Split, children_of
from marginbn.solvers.branch_cut.engine import ASCENT_ROUNDS, ASCENTS, prepare
from marginbn.solvers.branch_cut.incumbents import IncumbentSearch
from marginbn.solvers.branch_cut.lp import Solution
from marginbn.solvers.branch_cut.relaxation import HybridRelaxation, Relaxed, effort_at
from marginbn.solvers.branch_cut.warm import EXPLICIT, Warm
from marginbn.solvers.orders.ascent import dual_ascent
from marginbn.solvers.run import Run

MULTIPLIER_ROOM = 4.0
"""Values with their multipliers may become so many times as large as values without."""

Pairs = tuple[tuple[int, float], ...]
"""Numbers of structural rows with their multipliers."""


@dataclass(frozen=True)
class RecordedPrices(Prices):
    """Prices with what made them: shares of the rivals, (M, rivals), and structural rows."""

    shares: FloatArray
    pairs: Pairs


class RecordingRelaxation(HybridRelaxation):
    """Keeps the multipliers behind its bounds."""

    row_kinds = ROW_RULES.keys()  # what the checker does not know proves nothing
    ray: Pairs = ()

    def prices(
        self, warm: Warm, solution: Solution, extra: list[tuple[int, float]] | None = None
    ) -> RecordedPrices:
        """The Lagrangian, with its multipliers."""
        plain = super().prices(warm, solution, extra)
        pairs = zip(warm.rows, solution.structural, strict=True)
        positive = tuple((n, float(y)) for n, y in (*pairs, *(extra or ())) if y > 0)
        return RecordedPrices(
            plain.values, plain.constant, plain.error, self._shares(warm, solution), positive
        )

    def _shares(self, warm: Warm, solution: Solution) -> FloatArray:
        """u / w of every margin row."""
        instance = self.instance
        shares = np.zeros((instance.n_samples, instance.n_rivals))
        linear = np.flatnonzero(warm.labels >= 0)
        shares[linear, warm.labels[linear]] = 1.0
        owner = warm.explicit // instance.n_rivals
        multipliers, _ = feasible_multipliers(solution.explicit, owner, instance.weights)
        assert (warm.labels[owner] == EXPLICIT).all()
        shares.reshape(-1)[warm.explicit] = multipliers / instance.weights[owner]
        return shares

    def find_ray(self, warm: Warm, solution: Solution, allowed: BoolArray) -> FloatArray | None:
        """As before; the ray stays in :attr:`ray`."""
        y = super().find_ray(warm, solution, allowed)
        pairs = () if y is None else zip(warm.rows, y.tolist(), strict=True)
        self.ray = tuple((number, value) for number, value in pairs if value > 0)
        return y

    def combine(self, pairs: Pairs) -> tuple[FloatArray, float]:
        """rows^T y, (K,), and y . rhs."""
        numbers, y = tuple(n for n, _ in pairs), np.array([y for _, y in pairs])
        return self.pool.combine(numbers, y), sum(y * self.pool[n].rhs for n, y in pairs)


@dataclass(frozen=True, eq=False)
class NodeState:
    """The structures of a node and what its programme starts from."""

    allowed: BoolArray
    present: BoolArray
    warm: Warm
    depth: int
    majorant: RoundedMajorant


class ClusterRelaxation(Relaxation):
    """Nodes of any problem."""

    LEAF_BITS = (2, 4, 7, 11, 15, 20, 24)
    INNER_BITS = 15  # programmes are solved to more digits than Frank-Wolfe steps

    def __init__(self, run: Run, numbers: IntArray) -> None:
        self.shared = prepare(run.problem)
        self.instance, self.pool = self.shared.instance, self.shared.pool
        sizes = np.abs(self.instance.linear)
        if self.instance.n_samples:
            sizes = sizes + self.instance.coefficients.magnitudes(self.instance.weights)
        super().__init__(run, MULTIPLIER_ROOM * float(sizes.max(initial=0.0)))
        self.relaxation = RecordingRelaxation(self.instance, self.pool, run, run.seed)
        self.finder = IncumbentSearch(self.instance, run.seed)
        self.chooser = Chooser(self.relaxation, self.shared.costs)
        self._numbers = numbers[self.shared.original]

    # ------------------------------------------------------------------ the root

    def root(self) -> TreeNode:
        """Everything allowed; the trivial bound, or that of dual ascent for a linear problem: where
        no linear programme is solved in time it is the proof.
        """
        n = self.instance.n_variables
        allowed = np.ones(self.instance.n_candidates, dtype=bool)
        known = self.shared.starts(self.run.selection)[0]
        pairs = self._first_rows()
        warm = self.shared.first_state(known, allowed, [number for number, _ in pairs])
        majorant = self._majorant(None, pairs, allowed)
        state = NodeState(allowed, np.zeros((n, n), dtype=bool), warm, 0, majorant)
        return TreeNode(majorant.bound, majorant.proof, state=state)

    def _first_rows(self) -> Pairs:
        """Clusters of a linear problem that dual ascent raises, with their multipliers."""
        lists = self.shared.lists
        if lists is None:
            return ()
        ascent = dual_ascent(lists, passes=ASCENTS, rounds=ASCENT_ROUNDS)
        total: dict[int, float] = {}
        clusters = ParentSets(ascent.clusters)
        for members, y in zip(clusters, ascent.multipliers.tolist(), strict=True):
            number = self.pool.cluster(members)
            total[number] = total.get(number, 0.0) + y
        return tuple((number, y) for number, y in total.items() if y > 0)

    # ------------------------------------------------------------------ one node

    def visit(self, claim: TreeNode) -> TreeNode:
        """Solve the node's programmes; a leaf if the rounded multipliers prune."""
        state: NodeState = claim.state
        counts = np.add.reduceat(state.allowed.astype(np.int64), self.instance.offsets[:-1])
        if counts.min() == 0:
            return TreeNode(-math.inf, claim.proof)
        if counts.max() == 1:
            return self._single(claim, np.flatnonzero(state.allowed))
        self.relaxation.ray = ()
        edges = list(zip(*np.nonzero(state.present), strict=True))
        relaxed = self.relaxation.solve(
            state.warm,
            state.allowed,
            [self.pool.edge(int(i), int(j)) for i, j in edges],
            self.cutoff,
            effort_at(self.instance, state.depth),
        )
        if relaxed.bound == -math.inf:
            empty = self._empty(claim)
            if empty is not None:
                return empty
        majorant = self._rounded(state, relaxed)
        if claim.bound < majorant.bound:  # programmes that ended early may prove less
            majorant = replace(state.majorant, bound=claim.bound)
        if majorant.bound <= self.cutoff:
            return TreeNode(majorant.bound, majorant.proof)
        if relaxed.point is not None and relaxed.prices is not None:
            chosen = self.finder.rounded(relaxed.point, relaxed.prices.values)
            if chosen is not None:
                self.run.offer(self.shared.original[chosen])
        return self._split(state, relaxed, majorant)

    def _single(self, claim: TreeNode, chosen: IntArray) -> TreeNode:
        """One candidate per variable: its score, or a cycle that excludes it."""
        parents = [self.instance.candidates.parents[k] for k in chosen]
        cycle = find_cycle(parents)
        pairs: Pairs = ()
        if cycle is not None:
            large = max(self.problem.scale, 2.0 * abs(claim.bound)) * 4.0
            pairs = ((self.pool.cluster(cycle), large),)
        shares = None
        if self.instance.n_samples:
            margins = self.instance.coefficients.margins_at(chosen, np.ones(len(chosen)))
            shares = record.exact_shares(
                margins.reshape(-1, self.instance.n_rivals), self.instance.gamma
            )
        if cycle is None:
            self.run.offer(self.shared.original[chosen])
        majorant = self._majorant(shares, pairs, claim.state.allowed)
        return TreeNode(majorant.bound, majorant.proof)

    def _empty(self, claim: TreeNode) -> TreeNode | None:
        """A multiple of the ray that takes the bound below the cutoff, if there is one."""
        allowed, ray = claim.state.allowed, self.relaxation.ray
        height = self._majorant(None, (), allowed).bound - self.cutoff
        values, fall = self.relaxation.combine(ray)
        fall -= float(self.instance.group_maxima(np.where(allowed, values, -np.inf)).sum())
        if fall <= 0:
            return None
        little = 1e-6 * (self.problem.scale + abs(self.cutoff))
        scale = 1.01 * (max(height, 0.0) + little) / fall
        scaled = tuple((number, scale * y) for number, y in ray)
        majorant = self._majorant(None, scaled, allowed)
        largest = max((y for _, y in scaled), default=0.0)
        if majorant.bound > self.cutoff or largest > self.largest:
            return None
        return TreeNode(majorant.bound, majorant.proof)

    # ------------------------------------------------------------------ multipliers

    def _rounded(self, state: NodeState, relaxed: Relaxed) -> RoundedMajorant:
        """The multipliers of the best bound, dual weights rounded."""
        prices, allowed = relaxed.prices, state.allowed
        if not isinstance(prices, RecordedPrices):
            return replace(state.majorant, bound=self._bound(state.majorant, allowed))
        prunes = self.instance.n_samples > 0 and relaxed.bound <= self.cutoff
        shares, pairs = prices.shares, prices.pairs
        return self.fewest_bits(prunes, lambda bits: self._majorant(shares, pairs, allowed, bits))

    def _majorant(
        self, shares: FloatArray | None, pairs: Pairs, allowed: BoolArray, bits: int = 1
    ) -> RoundedMajorant:
        """Shares (M, rivals), or none, and multipliers of rows, with their bound over a node."""
        instance = self.instance
        constant, values, dual = instance.constant, instance.linear, None
        if instance.n_samples:
            if shares is None:
                shares = np.zeros((instance.n_samples, instance.n_rivals))
            dual = record.quantise(shares, bits)
            u, unused = record.weights_of(dual, instance.weights)
            constant += instance.gamma * unused
            used = np.flatnonzero(u)
            values = values + instance.coefficients.combine(used, u[used])
        if pairs:
            rows, fall = self.relaxation.combine(pairs)
            values, constant = values + rows, constant - fall
        self.most_rows = max(self.most_rows, len(pairs))
        describe: Any = self.pool.describe
        proof = Proof(dual, tuple((NamedRow(*describe(n)), y) for n, y in pairs))
        made = RoundedMajorant(proof, constant, values, math.inf)
        return replace(made, bound=self._bound(made, allowed))

    def _bound(self, majorant: RoundedMajorant, allowed: BoolArray) -> float:
        """Sum of the variables' largest values over allowed candidates."""
        values = np.where(allowed, majorant.values, -np.inf)
        return majorant.constant + float(self.instance.group_maxima(values).sum())

    # ------------------------------------------------------------------ splitting

    def _split(self, state: NodeState, relaxed: Relaxed, majorant: RoundedMajorant) -> TreeNode:
        cutoff, bound = self.cutoff, majorant.bound
        choice = self.chooser.choose(
            relaxed, bound, cutoff, state.allowed, state.present, state.depth
        )
        made = []
        for change in children_of(self.instance, choice.split, state.allowed):
            allowed, present = change.apply(state.allowed, state.present)
            below = min(bound, self._bound(majorant, allowed))
            child = NodeState(allowed, present, relaxed.warm, state.depth + 1, majorant)
            made.append(TreeNode(below, majorant.proof, state=child))
        return TreeNode(bound, majorant.proof, self._decision(choice.split), (made[0], made[1]))

    def _decision(self, split: Split) -> record.Decision:
        if split.kind == "candidate":
            return CANDIDATE, int(self._numbers[split.first])
        return EDGE if split.kind == "edge" else ARC, split.first, split.second
