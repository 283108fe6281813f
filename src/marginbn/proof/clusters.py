"""The hybrid linear programme as the tree of a certificate needs it: any candidates, any score.

The only module here that knows ``branch_cut``. A visit solves the node's programmes and takes the
multipliers behind the best bound: dual weights of the margin rows, rounded to few bits, and
multipliers of clusters and present edges as they are. Nothing is fixed and nothing is propagated: a
node holds exactly the structures that its decisions describe. A node that linear programming shows
to be empty is bounded by a multiple of the ray that shows it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from marginbn.problem.problem import StructureProblem
from marginbn.proof.certificate import ARC, CANDIDATE, EDGE, Row
from marginbn.proof.record import (
    Claim,
    Cutoff,
    Proof,
    Split,
    Visit,
    choose_grid,
    exact_shares,
    quantise,
    rounding_slack,
    unused_weight,
    weights_of,
)
from marginbn.solvers.branch_cut.arrays import BoolArray, FloatArray, IntArray
from marginbn.solvers.branch_cut.bounds import Prices, feasible_multipliers
from marginbn.solvers.branch_cut.kernels.climb import IncumbentSearch
from marginbn.solvers.branch_cut.program import Solution
from marginbn.solvers.branch_cut.relaxation import HybridRelaxation, Relaxed
from marginbn.solvers.branch_cut.rows import violated_by_selection
from marginbn.solvers.branch_cut.split import Chooser, sides
from marginbn.solvers.branch_cut.split import Split as Object
from marginbn.solvers.branch_cut.visit import effort_at, prepare
from marginbn.solvers.branch_cut.warm import EXPLICIT, Warm

LEAF_BITS = (2, 4, 7, 11, 15, 20, 24)
"""Tried one after the other until the rounded weights still prune."""

INNER_BITS = 15
"""For nodes that are split; programmes are solved to more digits than Frank-Wolfe steps."""

Pairs = tuple[tuple[int, float], ...]
"""Numbers of structural rows with their multipliers."""


@dataclass(frozen=True)
class RecordedPrices(Prices):
    """Prices with what made them: shares of the rivals, (M, rivals), and structural rows."""

    shares: FloatArray
    pairs: Pairs


class RecordingRelaxation(HybridRelaxation):
    """Keeps the multipliers behind its bounds."""

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

    def _is_empty(self, warm: Warm, solution: Solution, allowed: BoolArray) -> bool:
        """As before; the ray stays in :attr:`ray`."""
        for sign in (1.0, -1.0):
            turned = replace(solution, structural=sign * np.asarray(solution.structural))
            pairs = zip(warm.rows, turned.structural, strict=False)
            self.ray = tuple((n, float(y)) for n, y in pairs if y > 0 and math.isfinite(y))
            values = np.where(allowed, self.rows_value(self.ray), -np.inf)
            rhs = sum(y * self.pool[n].rhs for n, y in self.ray)
            if float(self.instance.group_maxima(values).sum()) < rhs - 1e-6 * (1.0 + abs(rhs)):
                return super()._is_empty(warm, solution, allowed)
        self.ray = ()
        return False

    def rows_value(self, pairs: Pairs) -> FloatArray:
        """rows^T y."""
        return self.pool.combine(tuple(n for n, _ in pairs), np.array([y for _, y in pairs]))


@dataclass(frozen=True, eq=False)
class State:
    """The structures of a node and what its programme starts from."""

    allowed: BoolArray
    present: BoolArray
    warm: Warm
    depth: int
    majorant: Majorant


@dataclass(frozen=True, eq=False)
class Majorant:
    """Rounded weights with what they give: values of candidates, rows included, and a constant."""

    proof: Proof
    constant: float
    values: FloatArray

    def bound(self, offsets: IntArray, allowed: BoolArray) -> float:
        """Bound over allowed candidates."""
        values = np.where(allowed, self.values, -np.inf)
        return self.constant + float(np.maximum.reduceat(values, offsets[:-1]).sum())


class ClusterRelaxation:
    """Nodes of any problem."""

    def __init__(
        self, problem: StructureProblem, numbers: IntArray, cutoff: Cutoff, seed: int
    ) -> None:
        self.problem = problem
        self.cutoff = cutoff
        self.ground = prepare(problem)
        self.instance, self.pool = self.ground.instance, self.ground.pool
        self.relaxation = RecordingRelaxation(self.instance, self.pool, cutoff.run, seed)
        self.finder = IncumbentSearch(self.instance, seed)
        self.chooser = Chooser(self.relaxation, self.ground.costs, seed, False)
        self._numbers = numbers[self.ground.original]
        self._rows: dict[int, Row] = {}
        self._most_rows = 0
        self._level = 1
        largest = 4.0 * self._largest()
        self.grid = choose_grid(largest, problem.n_variables)
        self._size = largest

    def _largest(self) -> float:
        sizes = np.abs(self.instance.linear)
        if self.instance.n_samples:
            sizes = sizes + self.instance.coefficients.magnitudes(self.instance.weights)
        return float(sizes.max(initial=0.0))

    @property
    def slack(self) -> float:
        """Depends on how many rows a proof has used."""
        return rounding_slack(self.problem, self.grid, self._size, self._most_rows)

    def interrupt(self) -> None:
        """Programmes look at the clock themselves."""

    # ------------------------------------------------------------------ the root

    def root(self) -> Claim:
        """Everything allowed; the trivial bound."""
        n = self.instance.n_variables
        features = [j for j in range(1, n) if len(self.instance.holding(0, j))]
        allowed = np.ones(self.instance.n_candidates, dtype=bool)
        known = self.ground.starts(self.cutoff.run.selection)[0]
        warm = self.ground.first_state(known, allowed)
        if self.instance.restricted:
            pairs = zip(warm.rows[: len(features)], features, strict=True)
            self._rows = {number: Row("cluster", (0, feature)) for number, feature in pairs}
        majorant = self._majorant(None, ())
        state = State(allowed, np.zeros((n, n), dtype=bool), warm, 0, majorant)
        bound = majorant.bound(self.instance.offsets, allowed)
        return Claim(state, bound, majorant.proof)

    # ------------------------------------------------------------------ one node

    def visit(self, claim: Claim) -> Visit:
        """Solve the node's programmes; a leaf if the rounded multipliers prune."""
        state: State = claim.state
        counts = np.add.reduceat(state.allowed.astype(np.int64), self.instance.offsets[:-1])
        if counts.min() == 0:
            return Visit(-math.inf, claim.proof)
        if counts.max() == 1:
            return self._single(claim, np.flatnonzero(state.allowed))
        self.relaxation.ray = ()
        edges = list(zip(*np.nonzero(state.present), strict=True))
        relaxed = self.relaxation.solve(
            state.warm,
            state.allowed,
            [self.pool.edge(int(i), int(j)) for i, j in edges],
            self.cutoff.value,
            effort_at(self.instance, state.depth),
        )
        if relaxed.bound == -math.inf:
            empty = self._empty(claim)
            if empty is not None:
                return empty
        majorant = self._rounded(state, relaxed)
        bound = min(claim.bound, majorant.bound(self.instance.offsets, state.allowed))
        if bound <= self.cutoff.value:
            return Visit(bound, majorant.proof)
        self._use_point(relaxed)
        return self._split(state, relaxed, majorant, bound)

    def _single(self, claim: Claim, chosen: IntArray) -> Visit:
        """One candidate per variable: its score, or a cycle that excludes it."""
        parents = [self.relaxation._parents(int(k)) for k in chosen]
        cycle = violated_by_selection(parents)
        pairs: Pairs = ()
        if cycle is not None:
            pairs = ((self.pool.cluster(cycle), max(1.0, 2.0 * abs(claim.bound)) * 4.0),)
        shares = None
        if self.instance.n_samples:
            margins = self.instance.coefficients.margins_at(chosen, np.ones(len(chosen)))
            shares = exact_shares(margins.reshape(-1, self.instance.n_rivals), self.instance.gamma)
        if cycle is None:
            self.cutoff.offer(self.ground.original[chosen])
        majorant = self._majorant(shares, pairs, 1)
        return Visit(self._bound(majorant, claim.state.allowed), majorant.proof)

    def _bound(self, majorant: Majorant, allowed: BoolArray) -> float:
        return majorant.bound(self.instance.offsets, allowed)

    def _empty(self, claim: Claim) -> Visit | None:
        """A multiple of the ray that takes the bound below the cutoff, if there is one."""
        allowed = claim.state.allowed
        plain = self._majorant(None, ())
        height = self._bound(plain, allowed) - self.cutoff.value
        ray = self.relaxation.ray
        values = np.where(allowed, self.relaxation.rows_value(ray), -np.inf)
        fall = sum(y * self.pool[n].rhs for n, y in ray)
        fall -= float(self.instance.group_maxima(values).sum())
        if fall <= 0:
            return None
        scale = 1.01 * (max(height, 0.0) + 1e-6 * (1.0 + abs(self.cutoff.value))) / fall
        majorant = self._majorant(None, tuple((n, scale * y) for n, y in ray))
        bound = self._bound(majorant, allowed)
        largest = max((scale * y for _, y in ray), default=0.0)
        if bound > self.cutoff.value or largest > self._size:
            return None
        return Visit(bound, majorant.proof)

    def _use_point(self, relaxed: Relaxed) -> None:
        """Offer what the point rounds to."""
        if relaxed.point is None or relaxed.prices is None:
            return
        chosen = self.finder.rounded(relaxed.point, relaxed.prices.values)
        if chosen is not None:
            self.cutoff.offer(self.ground.original[chosen])

    # ------------------------------------------------------------------ multipliers

    def _rounded(self, state: State, relaxed: Relaxed) -> Majorant:
        """The multipliers of the best bound with as few bits as prune, or those of a split."""
        prices = relaxed.prices
        if not isinstance(prices, RecordedPrices):
            return state.majorant
        allowed = state.allowed
        if self.instance.n_samples == 0:
            return self._majorant(None, prices.pairs)
        if relaxed.bound <= self.cutoff.value:
            for level in range(max(0, self._level - 1), len(LEAF_BITS)):
                majorant = self._majorant(prices.shares, prices.pairs, LEAF_BITS[level])
                if self._bound(majorant, allowed) <= self.cutoff.value:
                    self._level = level
                    return majorant
        return self._majorant(prices.shares, prices.pairs, INNER_BITS)

    def _majorant(self, shares: FloatArray | None, pairs: Pairs, bits: int = 1) -> Majorant:
        self._most_rows = max(self._most_rows, len(pairs))
        dual = None
        if self.instance.n_samples:
            if shares is None:
                shares = np.zeros((self.instance.n_samples, self.instance.n_rivals))
            dual = quantise(shares, bits)
        named = tuple((self._row(n), y) for n, y in pairs)
        proof = Proof(dual, named)
        return self._evaluate(proof, pairs)

    def _evaluate(self, proof: Proof, pairs: Pairs) -> Majorant:
        instance = self.instance
        constant, values = instance.constant, instance.linear
        if proof.dual is not None:
            constant += instance.gamma * unused_weight(proof.dual, instance.weights)
            u = weights_of(proof.dual, instance.weights)
            used = np.flatnonzero(u)
            values = values + instance.coefficients.combine(used, u[used])
        if pairs:
            values = values + self.relaxation.rows_value(pairs)
            constant -= sum(y * self.pool[n].rhs for n, y in pairs)
        return Majorant(proof, constant, values)

    def _row(self, number: int) -> Row:
        """A structural row in the terms of a certificate."""
        if number not in self._rows:
            clusters, edges = self.pool._clusters.items(), self.pool._edges.items()
            self._rows |= {n: Row("cluster", tuple(sorted(c))) for c, n in clusters}
            self._rows |= {n: Row("edge", e) for e, n in edges}
        return self._rows[number]

    # ------------------------------------------------------------------ splitting

    def _split(self, state: State, relaxed: Relaxed, majorant: Majorant, bound: float) -> Visit:
        cutoff = self.cutoff.value
        choice = self.chooser.choose(
            relaxed, bound, cutoff, state.allowed, state.present, state.depth
        )
        made = []
        for change in sides(self.instance, choice.split, state.allowed):
            allowed, present = state.allowed.copy(), state.present.copy()
            allowed[change.removed] = False
            if change.edge is not None:
                present[change.edge] = True
            below = min(bound, self._bound(majorant, allowed))
            child = State(allowed, present, relaxed.warm, state.depth + 1, majorant)
            made.append(Claim(child, below, majorant.proof))
        return Visit(bound, majorant.proof, self._object(choice.split), (made[0], made[1]))

    def _object(self, split: Object) -> Split:
        if split.kind == "edge":
            return EDGE, split.first, split.second
        if split.kind == "arc":
            return ARC, split.first, split.second
        return CANDIDATE, int(self._numbers[split.first])
