"""The hybrid linear program of a node: rounds of solving, separating, pricing and bounding.

One round solves the program of a :class:`~marginbn.solvers.branch_cut.warm.Warm` state, takes
the safe bound from its multipliers, and then looks for

* violated cuts at the point eta, in the pool and by the kinds of ``separators.py``;
* samples whose label overestimates them: vio_m = w_m (estimate - min(gamma, min_c a_mc . eta)),
  the sum of which is the distance of the program's value from the true value of eta;
* candidates without column whose value exceeds the price of their variable.

It stops when nothing is left, when what is left is a small part of the remaining gap, or when the
bound stalls. A bound is valid after any round; a node is pruned on the best of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

import numpy as np

from marginbn.problem.array_types import EPS, BoolArray, FloatArray, IntArray
from marginbn.solvers.branch_cut.arrays import Instance
from marginbn.solvers.branch_cut.bound import Prices, feasible_multipliers, lagrangian
from marginbn.solvers.branch_cut.cuts import RowPool
from marginbn.solvers.branch_cut.lp import Program, Solution
from marginbn.solvers.branch_cut.separators import SEPARATORS, ClusterSeparator
from marginbn.solvers.branch_cut.warm import EXPLICIT, Warm, compress, refresh_cost
from marginbn.solvers.run import Run

ALL_COLUMNS, ALL_LINEAR_COLUMNS = 300, 1000
"""Programs get all columns up to so many candidates; beyond it columns are priced in. Columns of
linear problems are sparse.
"""

NEW_COLUMNS = 10
"""Columns per variable that one round prices in at most."""

LEAST_NEW_SAMPLES = 40
"""A round may make so many samples explicit, or double their number if that is more."""

KINK = 0.04
"""Samples within this share of gamma of a kink stay explicit for the children."""

NEAR, NEAR_LINEAR, MOST_COLUMNS = 0.1, 1.0, 4000
"""Columns within this share of the remaining gap stay active for the children. Those of linear
problems are sparse: all that can matter stay, as long as they are not too many.
"""

SLACK = 1e-6
"""Rows of more slack may leave the program."""

FRESH = 50_000
"""Products after which the cost vector is summed again."""


@dataclass(frozen=True)
class Effort:
    """How long one node is worked on."""

    rounds: int  # with new rows at most; three times as many for missing columns
    patience: int  # stop if so many rounds ...
    progress: float  # ... closed less than this share of the gap
    rows: int  # new structural rows per round at most
    violation: float  # rows violated by less are left alone
    accuracy: float = 0.1  # share of the remaining gap to which samples and columns are settled
    exact: bool = False  # whether to search exhaustively where nothing else finds a row


def all_columns(instance: Instance) -> int:
    """Candidates up to which programs get all columns."""
    return ALL_LINEAR_COLUMNS if instance.n_samples == 0 else ALL_COLUMNS


def effort_at(instance: Instance, depth: int) -> Effort:
    """The root is worked on until it stalls: all other nodes inherit its rows."""
    n = instance.n_variables
    if depth == 0:
        return Effort(
            rounds=1000,
            patience=10,
            progress=2e-2 if instance.n_samples == 0 else 2e-3,
            rows=2 * n,
            violation=1e-4 if instance.n_samples == 0 else 1e-3,
            accuracy=0.02,
            exact=True,
        )
    if instance.n_samples == 0:  # cuts are all there is
        return Effort(rounds=30, patience=3, progress=3e-2, rows=n, violation=1e-4, exact=True)
    return Effort(rounds=10, patience=2, progress=1e-2, rows=n, violation=2e-2)


@dataclass(frozen=True)
class Relaxed:
    """A node after one or several rounds."""

    loaded: Warm  # the state whose program is loaded in HiGHS
    warm: Warm  # the one for the children
    bound: float = math.inf  # safe; -inf where the node is proven empty, inf if nothing is proven
    prices: Prices | None = None  # behind the bound; None where no program was solved
    point: FloatArray | None = None  # (K,) the last eta
    margins: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))  # (M, rivals) its margins
    solution: Solution | None = None  # of the last program
    value: float = -math.inf  # the largest true value of a point, see :meth:`middle`

    def middle(self, cutoff: float) -> float:
        """Middle of what is known about the node's relaxation: its value lies between the bound and
        the true value of any point. Programs are solved to a part of the gap, so that bounds
        alone say little about what a split has gained.
        """
        if not math.isfinite(self.bound):
            return cutoff if self.bound < 0 else self.bound
        upper, lower = max(self.bound, cutoff), max(self.value, cutoff)
        return 0.5 * (upper + min(lower, upper)) if math.isfinite(lower) else upper

    def after(self, last: Relaxed) -> Relaxed:
        """The node after one more round: the last point, the best bound."""
        if last.point is None:  # no new state for the children either
            point = None if last.bound == -math.inf else self.point
            return replace(self, loaded=last.loaded, point=point, bound=min(self.bound, last.bound))
        value = max(self.value, last.value)
        if last.bound < self.bound:
            return replace(last, value=value)
        return replace(last, bound=self.bound, prices=self.prices, value=value)


class HybridRelaxation:
    """Solves node programs; one for a search."""

    row_kinds: Collection[str] | None = None
    """Kinds of rows in certificates to which cuts are restricted; None where none is written."""

    def __init__(self, instance: Instance, pool: RowPool, watch: Run, seed: int) -> None:
        self.instance = instance
        self.pool = pool
        self.watch = watch
        self.program = Program(instance, pool)
        self._separators = [
            separator(pool, seed)
            for separator in SEPARATORS
            if self.row_kinds is None or separator.kind.certificate in self.row_kinds
        ]

    def solve(
        self,
        warm: Warm,
        allowed: BoolArray,
        edge_rows: list[int],
        cutoff: float,
        effort: Effort,
        report: Callable[[float], None] = lambda bound: None,
    ) -> Relaxed:
        """Bound the structures with allowed candidates and the edges of ``edge_rows`` present.

        ``report`` gets every better bound of the node, so that none is lost if time runs out.
        """
        if warm.terms > FRESH:
            warm = refresh_cost(self.instance, warm)
        warm = warm.with_rows(edge_rows)
        best = Relaxed(loaded=warm, warm=warm)
        history: list[float] = []
        while True:
            now = self._solve_round(warm, allowed, follows=bool(history))
            best = best.after(now)
            if best.prices is now.prices:
                report(best.bound)
            if now.point is None or best.bound <= cutoff:
                return best
            history.append(best.bound)
            warm = self._extend(now, allowed, cutoff, effort, history)
            if warm is now.warm:
                if warm.basis is None:
                    best = replace(best, warm=replace(warm, basis=self.program.basis()))
                return replace(best, warm=self._compress(best, allowed, cutoff))

    def _solve_round(self, warm: Warm, allowed: BoolArray, follows: bool) -> Relaxed:
        """Solve one program; without point if it has no solution or none was found in time.

        The basis of a linear problem stays with HiGHS until the last round.
        """
        warm, solution = self._run(warm, allowed, follows and self.instance.n_samples == 0)
        if solution.outcome == "infeasible":
            is_empty = self.find_ray(warm, solution, allowed) is not None
            return Relaxed(warm, warm, bound=-math.inf if is_empty else math.inf)
        if solution.outcome == "limit" or len(solution.eta) == 0:
            self.watch.poll()
            return Relaxed(warm, warm)
        prices = self.prices(warm, solution)
        point = np.zeros(self.instance.n_candidates)
        point[warm.active] = np.maximum(solution.eta, 0.0)
        support = np.flatnonzero(point > 0)
        margins = self.instance.coefficients.margins_at(support, point[support])
        margins = margins.reshape(self.instance.n_samples, self.instance.n_rivals)
        capped = margins.min(axis=1, initial=self.instance.gamma)
        linear = float(self.instance.linear[support] @ point[support])
        value = linear + float(self.instance.weights @ capped) + self.instance.constant
        basis = self.program.basis() if self.instance.n_samples else None
        warm = replace(warm, basis=basis)
        return Relaxed(
            loaded=warm,
            warm=warm,
            bound=prices.bound(self.instance, allowed),
            prices=prices,
            point=point,
            margins=margins,
            solution=solution,
            value=value,
        )

    def _run(self, warm: Warm, allowed: BoolArray, follows: bool) -> tuple[Warm, Solution]:
        """Solve a program; one that may be infeasible for lack of columns gets all of them."""
        while True:
            self.watch.poll()
            self.program.load(warm, allowed, follows)
            solution = self.program.run(self.watch.remaining())
            if solution.outcome != "infeasible":
                return warm, solution
            wider = warm.with_columns(np.flatnonzero(allowed))
            if wider is warm:
                return warm, solution
            warm = wider

    def prices(
        self, warm: Warm, solution: Solution, extra: list[tuple[int, float]] | None = None
    ) -> Prices:
        """The Lagrangian of the program's multipliers, made feasible first.

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
        y = _clip(np.concatenate([solution.structural, [value for _, value in further]]))
        return lagrangian(
            instance,
            gradient,
            unused,
            warm.terms + len(warm.explicit),
            self.pool.combine(rows, y),
            y,
            self.pool.rhs(rows),
            self.pool.sizes(rows),
        )

    def find_ray(self, warm: Warm, solution: Solution, allowed: BoolArray) -> FloatArray | None:
        """Multipliers of the rows that no allowed point satisfies, ``None`` if there are none.

        For y >= 0 every allowed structure has y . rhs <= sum_i max_k (rows^T y)_k; if that fails
        by more than rounding, there is none. The sign of HiGHS' ray is tried both ways.
        """
        if len(solution.structural) == 0:
            return None
        rhs = self.pool.rhs(warm.rows)
        for sign in (1.0, -1.0):
            y = _clip(sign * solution.structural)
            values = np.where(allowed, self.pool.combine(warm.rows, y), -np.inf)
            slack = float(self.instance.group_maxima(values).sum()) - float(y @ rhs)
            size = (self.instance.n_variables + 1.0) * float(y @ (1.0 + np.abs(rhs)))
            if slack < -8.0 * EPS * (len(y) + self.instance.n_variables + 8) * size:
                return y
        return None

    def _extend(
        self, now: Relaxed, allowed: BoolArray, cutoff: float, effort: Effort, history: list[float]
    ) -> Warm:
        """The state with missing columns, violated rows and badly labelled samples; or itself."""
        warm = now.warm
        gap = now.bound - cutoff if math.isfinite(cutoff) else 1e-2 * abs(now.bound)
        tolerance = max(effort.accuracy * gap, 1e-9 * abs(now.bound))
        if len(history) < 3 * effort.rounds:
            warm = warm.with_columns(self._missing_columns(now, allowed, tolerance))
        if len(history) >= effort.rounds:
            return warm
        if len(history) > effort.patience:  # did the last rounds close too little of the gap?
            gap = history[-1] - cutoff if math.isfinite(cutoff) else abs(history[-1])
            if history[-1 - effort.patience] - history[-1] < effort.progress * gap:
                return warm
        assert now.point is not None  # such nodes are left alone
        pooled = self.pool.violations(now.point)
        numbers = self._violated_rows(now.point, pooled, effort)
        if numbers:
            warm = self._without_slack_rows(warm, pooled, history).with_rows(numbers)
        samples, rivals = self._find_overestimated(now, tolerance)
        return warm.with_samples(self.instance, samples, rivals) if len(samples) else warm

    @staticmethod
    def _without_slack_rows(warm: Warm, pooled: FloatArray, history: list[float]) -> Warm:
        """The state without rows that the point of a linear problem does not touch, as long as the
        bound falls: they are in the pool and come back when they are violated.
        """
        if warm.basis is not None or len(history) < 2 or history[-1] >= history[-2]:
            return warm
        numbers = np.array(warm.rows, dtype=np.int64)
        slack = -pooled[numbers]
        touched = (slack < SLACK) | ~np.isfinite(slack)
        return warm if touched.all() else replace(warm, rows=tuple(numbers[touched].tolist()))

    def _violated_rows(self, point: FloatArray, pooled: FloatArray, effort: Effort) -> list[int]:
        """Numbers of violated rows, the most violated first, made where necessary."""
        order = np.argsort(-pooled, kind="stable")[: effort.rows]
        numbers = [int(a) for a in order if pooled[a] > effort.violation]
        if len(numbers) < effort.rows // 2:
            room = effort.rows - len(numbers)
            for separator in self._separators:
                cuts = separator.separate(point, room, effort.violation)
                numbers += [self.pool.number(cut) for cut in cuts]
        for separator in self._separators:
            if effort.exact and not numbers and isinstance(separator, ClusterSeparator):
                cuts = separator.search_exactly(point, effort.rows, effort.violation)
                numbers += [self.pool.number(cut) for cut in cuts]
        return numbers

    def _find_overestimated(self, now: Relaxed, tolerance: float) -> tuple[IntArray, IntArray]:
        """Samples to make explicit, or to give another row, and the rival of that row."""
        nothing, instance, labels = np.zeros(0, dtype=np.int64), self.instance, now.warm.labels
        assert now.solution is not None
        if instance.n_samples == 0:
            return nothing, nothing
        estimate = np.full(instance.n_samples, instance.gamma)
        linear = np.flatnonzero(labels >= 0)
        estimate[linear] = now.margins[linear, labels[linear]]
        estimate[now.warm.samples(instance.n_rivals)] = now.solution.tau
        true = np.minimum(now.margins.min(axis=1), instance.gamma)
        excess = instance.weights * np.maximum(estimate - true, 0.0)  # vio_m
        if excess.sum() <= tolerance:
            return nothing, nothing
        rivals = now.margins.argmin(axis=1)
        rows = np.arange(len(rivals)) * instance.n_rivals + rivals
        excess[np.isin(rows, now.warm.explicit)] = 0.0  # there already: the program's tolerance
        order = np.argsort(-excess, kind="stable")
        left = excess.sum() - np.cumsum(excess[order])
        count = int(np.searchsorted(-left, -tolerance / 4)) + 1
        most = max(LEAST_NEW_SAMPLES, len(now.warm.explicit))
        chosen = np.sort(order[: min(count, most)])
        chosen = chosen[excess[chosen] > 0]
        return chosen, rivals[chosen]

    def _missing_columns(self, now: Relaxed, allowed: BoolArray, tolerance: float) -> IntArray:
        """Allowed candidates without column that would improve the program."""
        assert now.prices is not None
        assert now.solution is not None
        excess = now.prices.values - now.solution.convexity[self.instance.child]
        excess[~allowed] = -np.inf
        excess[now.warm.active] = -np.inf
        total = np.maximum(self.instance.group_maxima(excess), 0.0).sum()
        if total <= tolerance / 2:
            return np.zeros(0, dtype=np.int64)
        improving = np.flatnonzero(excess > tolerance / (4 * self.instance.n_variables))
        room = NEW_COLUMNS * self.instance.n_variables
        return np.sort(improving[np.argsort(-excess[improving], kind="stable")[:room]])

    def _compress(self, best: Relaxed, allowed: BoolArray, cutoff: float) -> Warm:
        """The children's state: near columns and samples near a kink stay."""
        instance = self.instance
        columns = allowed.copy()
        many = np.count_nonzero(allowed) > all_columns(instance)
        if many and best.prices is not None:
            assert best.point is not None
            top = best.prices.best(instance, allowed)[instance.child]
            loss = np.where(allowed, top - best.prices.values, np.inf)
            limit = (NEAR if instance.n_samples else NEAR_LINEAR) * (best.bound - cutoff)
            if len(loss) > MOST_COLUMNS:
                limit = min(limit, float(np.partition(loss, MOST_COLUMNS)[MOST_COLUMNS]))
            columns &= (best.point > 0) | (loss < limit)
        if instance.n_samples == 0:
            none = np.zeros(0, dtype=bool)
            return compress(instance, best.warm, columns, none, none)
        near = KINK * instance.gamma
        pieces = np.column_stack([best.margins, np.full(len(best.margins), instance.gamma)])
        pieces.sort(axis=1)
        samples = pieces[:, 1] - pieces[:, 0] < near
        rows = (best.margins - pieces[:, :1] < near).ravel()
        return compress(instance, best.warm, columns, samples, rows)


def _clip(values: FloatArray) -> FloatArray:
    """Make finite and non-negative."""
    return np.where(np.isfinite(values), np.maximum(values, 0.0), 0.0)
