"""Every acyclic selection of a tiny problem, one after the other: the reference for the solvers.

Variables are decided in a fixed order, those with few candidates first. The margins of the
candidates chosen so far are carried along, and so is, for every variable, the set of variables
that it reaches as a bit mask: parents P of a variable i close a cycle exactly if i reaches a member
of P. The candidates of the last variable are scored together.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from marginbn.problem.problem import StructureProblem

MAX_SELECTIONS = 5_000_000
"""Some minutes of work."""


def best_selection(problem: StructureProblem) -> NDArray[np.int64] | None:
    """The best acyclic selection, the first one of equals; None if none is acyclic."""
    sizes = np.diff(problem.candidates.offsets)
    assert math.prod(int(size) for size in sizes) <= MAX_SELECTIONS
    search = _Enumeration(problem)
    search.visit(0, [1 << v for v in range(problem.n_variables)], 0.0, search.no_margins)
    return search.best


def brute_force(problem: StructureProblem) -> float:
    """The optimum; -inf if no selection is acyclic."""
    best = best_selection(problem)
    return -math.inf if best is None else problem.evaluate(best)


class _Enumeration:
    """Depth-first search of all acyclic selections."""

    def __init__(self, problem: StructureProblem) -> None:
        candidates = problem.candidates
        self._problem = problem
        self._order = [int(v) for v in np.argsort(np.diff(candidates.offsets), kind="stable")]
        self._masks = candidates.masks[:, 0].astype(np.int64)
        margins = problem.margins
        shape = (candidates.n_candidates, 0, 0)
        self._margins = np.zeros(shape) if margins is None else margins.dense()
        self._chosen = np.zeros(problem.n_variables, dtype=np.int64)
        self._value = -math.inf
        self.no_margins = np.zeros(self._margins.shape[1:])
        self.best: NDArray[np.int64] | None = None

    def visit(
        self, depth: int, reach: list[int], linear: float, margins: NDArray[np.float64]
    ) -> None:
        """Decide the variable at this depth, given what the earlier ones sum to."""
        variable = self._order[depth]
        group = np.asarray(self._problem.candidates.group(variable))
        allowed = group[(self._masks[group] & reach[variable]) == 0]
        if depth == len(self._order) - 1:
            self._score(variable, allowed, linear, margins)
            return
        for k in allowed:
            self._chosen[variable] = k
            self.visit(
                depth + 1,
                _reach_with(reach, variable, int(self._masks[k])),
                linear + float(self._problem.linear[k]),
                margins + self._margins[k],
            )

    def _score(
        self, variable: int, allowed: NDArray[np.int64], linear: float, margins: NDArray[np.float64]
    ) -> None:
        """Score all candidates of the last variable together."""
        if len(allowed) == 0:
            return
        values = linear + self._problem.linear[allowed]
        if not self._problem.is_linear:
            smallest = (margins + self._margins[allowed]).min(axis=2, initial=self._problem.gamma)
            values = values + smallest @ self._problem.sample_weights
        place = int(np.argmax(values))
        if values[place] > self._value:
            self._chosen[variable] = allowed[place]
            self._value, self.best = float(values[place]), self._chosen.copy()


def _reach_with(reach: list[int], child: int, parents: int) -> list[int]:
    """What every variable reaches once the child has these parents (a bit mask)."""
    if parents == 0:
        return reach
    return [mask | reach[child] if mask & parents else mask for mask in reach]
