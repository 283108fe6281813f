"""The hybrid linear programme of a node: rounds of solving, separating, pricing and bounding.

One round solves the programme of a :class:`~marginbn.solvers.branch_cut.warm.Warm` state, takes
the safe bound from its multipliers, and then looks for

* violated cluster and class rows at the point eta (from the pool, by minimum cuts and descent);
* samples whose label overestimates them: vio_m = w_m (estimate - min(gamma, min_c a_mc . eta)),
  the sum of which is the distance of the programme's value from the true value of eta;
* candidates without column whose value exceeds the price of their variable.

It stops when nothing is left, when what is left is a small part of the remaining gap, or when the
bound stalls. A bound is valid after any round; a node is pruned on the best of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from marginbn.solvers.branch_cut.arrays import BoolArray, FloatArray, Instance, IntArray
from marginbn.solvers.branch_cut.bounds import EPS, Prices, feasible_multipliers, lagrangian
from marginbn.solvers.branch_cut.kernels.separation import separate
from marginbn.solvers.branch_cut.program import Program, Solution
from marginbn.solvers.branch_cut.rows import (
    RowPool,
    Support,
    separate_exactly,
    violated_by_selection,
)
from marginbn.solvers.branch_cut.warm import (
    EXPLICIT,
    SATURATED,
    LabelArray,
    Retention,
    Warm,
    compressed,
    refreshed,
)
from marginbn.solvers.run import Watch

ALL_COLUMNS = 300
"""Programmes get all columns up to so many candidates; beyond it columns are priced in."""

KINK = 0.04
"""Samples within this share of gamma of a kink stay explicit for the children."""

NEAR = 0.1
"""Columns within this share of the remaining gap stay active for the children."""

EXACT_SECONDS = 1.0
"""Time limit of one exact separation; a run in which it strikes depends on the machine."""

FRESH = 50_000
"""Products after which the cost vector is summed anew."""


@dataclass(frozen=True)
class Effort:
    """How long one node is worked on.

    Attributes
    ----------
    rounds
        Rounds with new rows at most; three times as many for missing columns.
    patience, progress
        Stop if so many rounds closed less than this share of the gap.
    rows, violation
        New structural rows per round at most; rows violated by less are left alone.
    accuracy
        Share of the remaining gap to which samples and columns are settled.
    exact
        How often the exact separation may be called when nothing else finds a row.
    """

    rounds: int
    patience: int
    progress: float
    rows: int
    violation: float
    accuracy: float = 0.1
    exact: int = 0


@dataclass(frozen=True)
class Relaxed:
    """A node after its relaxation.

    Attributes
    ----------
    bound
        Safe bound; -inf where the node is proven empty, +inf where nothing was proven.
    prices
        Behind the bound; ``None`` in the two extreme cases.
    point
        The last eta, (K,), or ``None``.
    loaded, warm
        The state whose programme is loaded in HiGHS, and the one for the children.
    """

    bound: float
    prices: Prices | None
    point: FloatArray | None
    loaded: Warm
    warm: Warm


@dataclass(frozen=True)
class Round:
    """One solved programme: state with basis, solution, prices, bound, point and margins."""

    warm: Warm
    solution: Solution
    prices: Prices
    bound: float
    point: FloatArray
    margins: FloatArray


class HybridRelaxation:
    """Solves node programmes; one per worker."""

    def __init__(self, instance: Instance, pool: RowPool, watch: Watch, seed: int) -> None:
        self.instance = instance
        self.pool = pool
        self.watch = watch
        self.program = Program(instance, pool)
        self._random = np.array([2 * seed + 88_172_645_463_325_252], dtype=np.int64)
        self._usable = np.ones(instance.n_variables, dtype=bool)
        self._usable[0] = not instance.restricted  # class rows imply clusters with the class
        self._exact_calls = 0
        self.rounds = 0

    def solve(
        self,
        warm: Warm,
        allowed: BoolArray,
        edge_rows: list[int],
        cutoff: float,
        effort: Effort,
        tell: Callable[[float], None] = lambda bound: None,
    ) -> Relaxed:
        """Bound the structures with allowed candidates and the edges of ``edge_rows`` present.

        ``tell`` hears of every better bound of the node, so that none is lost if time runs out.
        """
        if warm.terms > FRESH:
            warm = refreshed(self.instance, warm)
        warm = warm.with_rows(edge_rows)
        best = Relaxed(math.inf, None, None, warm, warm)
        history: list[float] = []
        while True:
            self.watch.poll()
            self.program.load(warm, allowed)
            best = replace(best, loaded=warm)  # also if this programme cannot be solved
            solution = self.program.run(self.watch.remaining())
            self.rounds += 1
            if solution.outcome == "infeasible":
                wider = warm.with_columns(np.flatnonzero(allowed))
                if wider is warm:
                    empty = self._is_empty(warm, solution, allowed)
                    return replace(best, bound=-math.inf, point=None) if empty else best
                warm = wider
                continue
            if solution.outcome == "limit" or len(solution.eta) == 0:
                self.watch.poll()
                return best
            now = self._round(warm, solution, allowed)
            best = replace(best, point=now.point, loaded=now.warm, warm=now.warm)
            if now.bound < best.bound:
                best = replace(best, bound=now.bound, prices=now.prices)
                tell(best.bound)
            if best.bound <= cutoff:
                return best
            history.append(best.bound)
            warm = self._extended(now, allowed, cutoff, effort, history)
            if warm is now.warm:
                return replace(best, warm=self._compressed(now, best, allowed, cutoff))

    def _round(self, warm: Warm, solution: Solution, allowed: BoolArray) -> Round:
        """Point, margins, prices and bound of a solution."""
        prices = self.prices(warm, solution)
        point = np.zeros(self.instance.n_candidates)
        point[warm.active] = np.maximum(solution.eta, 0.0)
        support = np.flatnonzero(point > 0)
        rows = self.instance.coefficients.margins_at(support, point[support])
        return Round(
            warm=replace(warm, basis=self.program.basis()),
            solution=solution,
            prices=prices,
            bound=prices.bound(self.instance, allowed),
            point=point,
            margins=rows.reshape(self.instance.n_samples, self.instance.n_rivals),
        )

    # ------------------------------------------------------------------ bounds

    def prices(
        self, warm: Warm, solution: Solution, extra: list[tuple[int, float]] | None = None
    ) -> Prices:
        """The Lagrangian of the programme's multipliers, made feasible first.

        ``extra`` lists further structural rows with their multipliers.
        """
        instance = self.instance
        owner = warm.explicit // instance.n_rivals
        multipliers, sums = feasible_multipliers(solution.explicit, owner, instance.weights)
        gradient = warm.cost
        if len(warm.explicit):
            gradient = gradient + instance.coefficients.combine(warm.explicit, multipliers)
        explicit = warm.labels == EXPLICIT
        unused = warm.saturated_weight(instance)
        unused += float((instance.weights[explicit] - sums[explicit]).sum())
        further = extra or []
        rows = (*warm.rows, *(number for number, _ in further))
        y = _clipped(np.concatenate([solution.structural, [value for _, value in further]]))
        return lagrangian(
            instance,
            gradient,
            unused,
            warm.terms + len(warm.explicit),
            self.pool.combine(rows, y),
            y,
            self.pool.rhs(rows),
        )

    def _is_empty(self, warm: Warm, solution: Solution, allowed: BoolArray) -> bool:
        """Whether a ray proves that no allowed point satisfies the structural rows.

        For y >= 0 every allowed structure has y . rhs <= sum_i max_k (rows^T y)_k; if that fails
        by more than rounding, there is none. The sign of HiGHS' ray is tried both ways.
        """
        if len(solution.structural) == 0:
            return False
        rhs = self.pool.rhs(warm.rows)
        for sign in (1.0, -1.0):
            y = _clipped(sign * solution.structural)
            values = np.where(allowed, self.pool.combine(warm.rows, y), -np.inf)
            slack = float(self.instance.group_maxima(values).sum()) - float(y @ rhs)
            size = (self.instance.n_variables + 1.0) * float(y @ (1.0 + np.abs(rhs)))
            if slack < -8.0 * EPS * (len(y) + self.instance.n_variables + 8) * size:
                return True
        return False

    # ------------------------------------------------------------------ extending

    def _extended(
        self, now: Round, allowed: BoolArray, cutoff: float, effort: Effort, history: list[float]
    ) -> Warm:
        """The state with missing columns, violated rows and badly labelled samples; or itself."""
        extended = now.warm
        tolerance = _tolerance(now.bound, cutoff, effort.accuracy)
        if len(history) < 3 * effort.rounds:
            extended = extended.with_columns(self._missing_columns(now, allowed, tolerance))
        if len(history) >= effort.rounds or _stalls(history, cutoff, effort):
            return extended
        extended = extended.with_rows(self._violated_rows(now.point, effort))
        samples, rivals = self._overestimated(now, tolerance)
        if len(samples) == 0:
            return extended
        return extended.with_samples(self.instance, samples, rivals)

    def _violated_rows(self, point: FloatArray, effort: Effort) -> list[int]:
        """Numbers of violated rows, the most violated first, made where necessary."""
        pooled = self.pool.violations(point)
        order = np.argsort(-pooled, kind="stable")[: effort.rows]
        numbers = [self.pool.shared[a] for a in order if pooled[a] > effort.violation]
        if len(numbers) < effort.rows // 2:
            numbers += self._separated(point, effort.rows - len(numbers), effort.violation)
        if not numbers and self._exact_calls < effort.exact:
            numbers += self._separated_exactly(point)
        return numbers

    def _separated_exactly(self, point: FloatArray) -> list[int]:
        """The most violated cluster, within a second; integral points have none left."""
        support = np.flatnonzero(point > 1e-7)
        if len(support) == self.instance.n_variables:
            return []
        self._exact_calls += 1
        used = Support(
            self.instance.n_variables,
            tuple(int(i) for i in self.instance.child[support]),
            tuple(tuple(self._parents(int(k))) for k in support),
            tuple(float(mass) for mass in point[support]),
        )
        seconds = min(EXACT_SECONDS, max(self.watch.remaining(), 1e-3))
        usable = [int(v) for v in np.flatnonzero(self._usable)]
        cluster = separate_exactly(used, usable, seconds=seconds)
        return [] if cluster is None else [self.pool.cluster(cluster)]

    def _separated(self, point: FloatArray, room: int, violation: float) -> list[int]:
        """New cluster rows by cuts and descent; integral points give a cycle for certain."""
        support = np.flatnonzero(point > 1e-7)
        found, values = separate(
            self.instance.child[support],
            self.instance.members[support],
            point[support],
            self._usable,
            self._random,
            2,
            violation,
            256,
        )
        order = np.argsort(values, kind="stable")[:room]
        clusters = [frozenset(int(v) for v in np.flatnonzero(found[a])) for a in order]
        if not clusters and len(support) == self.instance.n_variables:
            cycle = violated_by_selection([self._parents(int(k)) for k in support])
            clusters = [] if cycle is None else [cycle]
        return [self.pool.cluster(cluster) for cluster in clusters]

    def _parents(self, k: int) -> list[int]:
        row = self.instance.members[k]
        return [int(v) for v in row[row >= 0]]

    def _overestimated(self, now: Round, tolerance: float) -> tuple[IntArray, IntArray]:
        """Samples to make explicit, or to give another row, and the rival of that row."""
        nothing = np.zeros(0, dtype=np.int64)
        if self.instance.n_samples == 0:
            return nothing, nothing
        excess = self._excess(now)
        if excess.sum() <= tolerance:
            return nothing, nothing
        rivals = now.margins.argmin(axis=1)
        rows = np.arange(len(rivals)) * self.instance.n_rivals + rivals
        excess[np.isin(rows, now.warm.explicit)] = 0.0  # there already: the programme's tolerance
        order = np.argsort(-excess, kind="stable")
        left = excess.sum() - np.cumsum(excess[order])
        count = int(np.searchsorted(-left, -tolerance / 4)) + 1
        chosen = np.sort(order[: min(count, max(40, len(now.warm.explicit)))])
        chosen = chosen[excess[chosen] > 0]
        return chosen, rivals[chosen]

    def _excess(self, now: Round) -> FloatArray:
        """vio_m of every sample, (M,)."""
        instance, labels = self.instance, now.warm.labels
        estimate = np.full(instance.n_samples, instance.gamma)
        linear = np.flatnonzero(labels >= 0)
        estimate[linear] = now.margins[linear, labels[linear]]
        estimate[now.warm.samples(instance.n_rivals)] = now.solution.tau
        true = np.minimum(now.margins.min(axis=1), instance.gamma)
        return np.asarray(instance.weights * np.maximum(estimate - true, 0.0))

    def _missing_columns(self, now: Round, allowed: BoolArray, tolerance: float) -> IntArray:
        """Allowed candidates without column that would improve the programme."""
        excess = now.prices.values - now.solution.convexity[self.instance.child]
        excess[~allowed] = -np.inf
        excess[now.warm.active] = -np.inf
        total = np.maximum(self.instance.group_maxima(excess), 0.0).sum()
        if total <= tolerance / 2:
            return np.zeros(0, dtype=np.int64)
        improving = np.flatnonzero(excess > tolerance / (4 * self.instance.n_variables))
        room = 10 * self.instance.n_variables
        return np.sort(improving[np.argsort(-excess[improving], kind="stable")[:room]])

    # ------------------------------------------------------------------ for the children

    def _compressed(self, now: Round, best: Relaxed, allowed: BoolArray, cutoff: float) -> Warm:
        """The children's state: near columns and samples near a kink stay."""
        instance = self.instance
        columns = allowed.copy()
        if instance.n_candidates > ALL_COLUMNS and best.prices is not None:
            top = best.prices.best(instance, allowed)[instance.child]
            columns &= (now.point > 0) | (top - best.prices.values < NEAR * (best.bound - cutoff))
        if instance.n_samples == 0:
            none = np.zeros(0, dtype=bool)
            return compressed(instance, now.warm, Retention(columns, none, none))
        near = KINK * instance.gamma
        pieces = np.column_stack([now.margins, np.full(len(now.margins), instance.gamma)])
        pieces.sort(axis=1)
        samples = pieces[:, 1] - pieces[:, 0] < near
        rows = (now.margins - pieces[:, :1] < near).ravel()
        return compressed(instance, now.warm, Retention(columns, samples, rows))


def _clipped(values: FloatArray) -> FloatArray:
    """Finite and non-negative."""
    return np.where(np.isfinite(values), np.maximum(values, 0.0), 0.0)


def _tolerance(bound: float, cutoff: float, accuracy: float) -> float:
    """What may be left unsettled, absolute."""
    gap = bound - cutoff if math.isfinite(cutoff) else 1e-2 * abs(bound)
    return max(accuracy * gap, 1e-9 * abs(bound))


def _stalls(history: list[float], cutoff: float, effort: Effort) -> bool:
    """Whether the last rounds closed too little of the gap."""
    if len(history) <= effort.patience:
        return False
    gap = history[-1] - cutoff if math.isfinite(cutoff) else abs(history[-1])
    return history[-1 - effort.patience] - history[-1] < effort.progress * gap


def labels_at(instance: Instance, chosen: IntArray) -> LabelArray:
    """Labels that are exact at a selection: its smallest row, or saturated; int16 (M,)."""
    rows = instance.coefficients.margins_at(chosen, np.ones(len(chosen)))
    margins = rows.reshape(instance.n_samples, instance.n_rivals)
    if instance.n_samples == 0:
        return np.zeros(0, dtype=np.int16)
    labels: LabelArray = margins.argmin(axis=1).astype(np.int16)
    labels[margins.min(axis=1) >= instance.gamma] = SATURATED
    return labels
