"""The best structures of a small problem, not only the very best one.

A depth-first search decides one variable after the other, better candidates first. What the
decided variables leave to hope for is bounded from above,

    sum of linear scores so far + best linear score of every open variable
    + sum_m w_m min(gamma, min_r (margin so far + largest coefficient of every open variable)),

and a branch is left as soon as that bound lies below what the list asks for: the n-th best value
found, or the optimum minus the given distance. Structures that differ in candidates are
different even if they score the same.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marginbn.exceptions import InputError, ProblemTooLargeError
from marginbn.problem.problem import StructureProblem
from marginbn.problem.structure import Structure
from marginbn.solvers.exhaustive import reach_with
from marginbn.solvers.result import allowance
from marginbn.solvers.solve import solve_structure

MAX_VISITS = 5_000_000
"""Partial structures looked at before giving up: some minutes."""

MAX_RESULTS = 1_000_000
"""Structures kept at most."""


@dataclass(frozen=True)
class RankedStructure:
    """A structure with its objective.

    Examples
    --------
    >>> from marginbn import RankedStructure, Structure
    >>> RankedStructure(Structure(((), (0,))), -4.0).objective
    -4.0
    """

    structure: Structure
    objective: float


def best_structures(
    problem: StructureProblem, *, n_best: int | None = None, within: float | None = None
) -> list[RankedStructure]:
    """The ``n_best`` structures, or all structures at most ``within`` nats below the best.

    Both can be given: then at most ``n_best`` of those within the distance. The list is exact and
    sorted by falling objective, ties by the candidates' order. For small problems only; there is an
    example in :class:`StructureProblem`.
    """
    if n_best is None and within is None:
        raise InputError("say how many structures you want: n_best, within, or both")
    if n_best is not None and n_best < 1:
        raise InputError(f"n_best must be an integer of at least 1, got {n_best}")
    if within is not None and not within >= 0:
        raise InputError(f"within must be a number of at least 0, got {within}")
    floor = -math.inf
    if within is not None:
        best = solve_structure(problem)
        if not best.is_optimal:
            raise ProblemTooLargeError("the optimum itself could not be proved")
        floor = best.objective - within
    search = _Search(problem, MAX_RESULTS if n_best is None else n_best, floor)
    search.visit(0, [1 << v for v in range(problem.n_variables)])
    return search.ranking(strict=n_best is None)


class _Search:
    """Depth-first search with a bound; keeps the best in a heap."""

    def __init__(self, problem: StructureProblem, size: int, floor: float) -> None:
        self._problem = problem
        self._size = size
        self._floor = floor - allowance(floor, problem.rounding)
        self._kept: list[tuple[float, tuple[int, ...]]] = []
        self._visits = 0
        self._order = np.argsort(np.diff(problem.candidates.offsets), kind="stable")
        self._masks = [sum(1 << v for v in p) for p in problem.candidates.parents]
        self._linear_hope, self._margin_hope = _hopes(problem, self._order)
        self._chosen = np.zeros(problem.n_variables, dtype=np.int64)
        rows = self._margin_hope.shape[1:]
        self._linear, self._margins = 0.0, np.zeros(rows)

    def visit(self, depth: int, reach: list[int]) -> None:
        """Decide the variable at this depth in every way that may matter."""
        self._visits += 1
        if self._visits > MAX_VISITS:
            raise ProblemTooLargeError(
                f"more than {MAX_VISITS} partial structures; ask for fewer, or drop candidates"
            )
        if depth == self._problem.n_variables:
            self._keep()
            return
        variable = int(self._order[depth])
        for k in self._candidates(variable, reach[variable]):
            self._add(variable, k)
            if self._bound(depth + 1) >= self._threshold():
                self.visit(depth + 1, reach_with(reach, variable, self._masks[k]))
            self._remove(k)

    def _candidates(self, variable: int, reached: int) -> list[int]:
        """Candidates that close no cycle, the better linear scores first."""
        group = [
            k for k in self._problem.candidates.group(variable) if not self._masks[k] & reached
        ]
        return sorted(group, key=lambda k: -self._problem.linear[k])

    def _add(self, variable: int, k: int) -> None:
        self._chosen[variable] = k
        self._linear += float(self._problem.linear[k])
        if self._problem.margins is not None:
            self._margins = self._margins + self._problem.margins.column(k)

    def _remove(self, k: int) -> None:
        self._linear -= float(self._problem.linear[k])
        if self._problem.margins is not None:
            self._margins = self._margins - self._problem.margins.column(k)

    def _bound(self, depth: int) -> float:
        """Upper bound on every completion, with room for rounding."""
        value = self._linear + self._linear_hope[depth]
        if self._problem.margins is not None:
            margins = self._margins + self._margin_hope[depth]
            smallest = margins.min(axis=1, initial=self._problem.gamma)
            value += float(smallest @ self._problem.sample_weights)
        return float(value + allowance(value, self._problem.rounding))

    def _threshold(self) -> float:
        """Value below which a structure cannot enter the list."""
        return max(self._floor, self._kept[0][0] if len(self._kept) == self._size else -math.inf)

    def _keep(self) -> None:
        """Score the complete structure from the definition and keep it if it is good enough."""
        value = self._problem.evaluate(self._chosen)
        if value < self._threshold():
            return
        entry = (value, tuple(-int(k) for k in self._chosen))  # ties: smaller candidates win
        if len(self._kept) < self._size:
            heapq.heappush(self._kept, entry)
        else:
            heapq.heappushpop(self._kept, entry)

    def ranking(self, strict: bool) -> list[RankedStructure]:
        """The list, best first; ``strict`` refuses a list that was cut off."""
        if strict and len(self._kept) == self._size:
            raise ProblemTooLargeError(
                f"more than {self._size} structures; choose a smaller within"
            )
        return [
            RankedStructure(self._problem.candidates.structure([-k for k in chosen]), value)
            for value, chosen in sorted(self._kept, reverse=True)
        ]


def _hopes(
    problem: StructureProblem, order: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Largest linear score and margin coefficients of the variables from each depth on."""
    n = problem.n_variables
    rows = (0, 0) if problem.margins is None else (problem.n_samples, problem.margins.n_rivals)
    linear, margins = np.zeros(n + 1), np.zeros((n + 1, *rows))
    for depth in range(n - 1, -1, -1):
        group = problem.candidates.group(int(order[depth]))
        linear[depth] = linear[depth + 1] + max(problem.linear[k] for k in group)
        margins[depth] = margins[depth + 1]
        if problem.margins is not None:
            margins[depth] += np.maximum.reduce([problem.margins.column(k) for k in group])
    return linear, margins
