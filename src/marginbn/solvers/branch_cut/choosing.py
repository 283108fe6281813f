"""Choosing the object to split on: pseudo-costs, checked by a few strong-branching programmes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice

import numpy as np

from marginbn.solvers.branch_cut.arrays import BoolArray
from marginbn.solvers.branch_cut.bounds import Prices
from marginbn.solvers.branch_cut.relaxation import HybridRelaxation, Relaxed
from marginbn.solvers.branch_cut.split import (
    PseudoCosts,
    Side,
    Split,
    any_split,
    every_split,
    fractional_splits,
    score,
    sides,
)

RELIABLE = 1
"""Observations of both sides after which pseudo-costs are believed."""

PROBED, PROBED_AT_ROOT = 3, 16
"""Objects probed per node at most."""

CONSIDERED = 8
"""Objects with the best expected score that may be probed."""

ITERATIONS = 150
"""Simplex iterations of one probe; its bound is safe whenever it stops."""


@dataclass(frozen=True)
class Choice:
    """The object, its value at the point and safe bounds of the children (inf where unknown)."""

    split: Split
    value: float
    bounds: tuple[float, float] = (math.inf, math.inf)


class Chooser:
    """Learns from node to node, with all workers; one per worker."""

    def __init__(
        self, relaxation: HybridRelaxation, costs: PseudoCosts, seed: int, random_splits: bool
    ) -> None:
        self._relaxation = relaxation
        self._instance = relaxation.instance
        self._random = np.random.default_rng(seed) if random_splits else None
        self.costs = costs

    def choose(
        self,
        relaxed: Relaxed,
        bound: float,
        cutoff: float,
        allowed: BoolArray,
        present: BoolArray,
        depth: int,
    ) -> Choice:
        """The object with the best product of losses."""
        if self._random is not None:
            splits = every_split(self._instance, allowed, present)
            return Choice(splits[int(self._random.integers(len(splits)))], 0.5)
        if relaxed.point is None:
            return Choice(*any_split(self._instance, None, allowed))
        scale = bound - cutoff if math.isfinite(cutoff) else abs(bound)
        found = fractional_splits(self._instance, relaxed.point, allowed, present)
        ranked = sorted(found, key=lambda item: -score(self.costs.expected(*item), scale))
        wanted = CONSIDERED if depth else 2 * PROBED_AT_ROOT
        considered = list(islice((s for s in ranked if self._splits(s[0], allowed)), wanted))
        if not considered:
            return Choice(*any_split(self._instance, relaxed.point, allowed))
        return self._probe_best(considered, relaxed, bound, cutoff, scale, allowed, depth)

    def _splits(self, split: Split, allowed: BoolArray) -> bool:
        """Whether the object is undecided among the allowed candidates, after fixing."""
        zero, one = sides(self._instance, split, allowed)
        return len(zero.removed) > 0 and (one.edge is not None or len(one.removed) > 0)

    def _probe_best(
        self,
        considered: list[tuple[Split, float]],
        relaxed: Relaxed,
        bound: float,
        cutoff: float,
        scale: float,
        allowed: BoolArray,
        depth: int,
    ) -> Choice:
        """Probe the unreliable ones among the best, then take the best score."""
        room = PROBED_AT_ROOT if depth == 0 else PROBED
        unreliable = [s for s in considered if self.costs.observations(s[0]) < RELIABLE][:room]
        choices: list[tuple[float, Choice]] = []
        probed = self._probe(unreliable, relaxed, bound, cutoff, allowed)
        for split, value in considered:
            if split in probed:
                losses, bounds = probed[split]
                choices.append((score(losses, scale), Choice(split, value, bounds)))
            else:
                expected = self.costs.expected(split, value)
                choices.append((score(expected, scale), Choice(split, value)))
        return max(choices, key=lambda item: item[0])[1]

    def _probe(
        self,
        splits: list[tuple[Split, float]],
        relaxed: Relaxed,
        bound: float,
        cutoff: float,
        allowed: BoolArray,
    ) -> dict[Split, tuple[tuple[float, float], tuple[float, float]]]:
        """Estimated losses and safe bounds of both children of each object."""
        if not splits:
            return {}
        program, pool = self._relaxation.program, self._relaxation.pool
        edges = [split for split, _ in splits if split.kind == "edge"]
        numbers = {split: pool.edge(split.first, split.second) for split in edges}
        first = 0
        if edges:
            first = program.add_probe_rows([pool[numbers[split]] for split in edges])
        basis = program.remember_basis()
        results: dict[Split, tuple[tuple[float, float], tuple[float, float]]] = {}
        for split, value in splits:
            row = first + edges.index(split) if split.kind == "edge" else None
            losses, both = [], []
            for side, change in enumerate(sides(self._instance, split, allowed)):
                on = row if change.edge is not None else None
                number = numbers.get(split) if change.edge is not None else None
                estimate, reached = self._probe_side(relaxed, basis, change, on, number, allowed)
                loss = min(max(bound - estimate, 0.0), max(bound - cutoff, 0.0))
                self.costs.learn(split, side, value, loss)
                losses.append(loss)
                both.append(min(bound, reached))
            results[split] = ((losses[0], losses[1]), (both[0], both[1]))
            if min(both) <= cutoff:  # one child is settled: nothing beats that
                break
        return results

    def _probe_side(
        self,
        relaxed: Relaxed,
        basis: object,
        change: Side,
        row: int | None,
        number: int | None,
        allowed: BoolArray,
    ) -> tuple[float, float]:
        """Value of one child's programme without further rounds, and its safe bound.

        Where columns are missing the value is too low and the safe bound too weak; the value is the
        better guide, and only a guide.
        """
        relaxation = self._relaxation
        relaxation.watch.look_up()
        seconds = relaxation.watch.remaining()
        solution, multiplier = relaxation.program.probe(
            basis, change.removed, row, seconds, ITERATIONS
        )
        if solution.outcome == "infeasible":
            return -math.inf, math.inf
        if len(solution.eta) == 0:
            return math.inf, math.inf
        child = allowed.copy()
        child[change.removed] = False
        extra = [] if number is None else [(number, multiplier)]
        prices: Prices = relaxation.prices(relaxed.loaded, solution, extra)
        saturated = relaxed.loaded.saturated_weight(self._instance)
        estimate = solution.objective + self._instance.gamma * saturated + self._instance.constant
        return estimate, prices.bound(self._instance, child)
