"""Every acyclic selection of a tiny problem, one after the other: the reference for the solvers.

The coefficients are those of the problem, and nothing else of the package is used. ``oracles.py``
and ``exhaustive_search.py`` start from raw tables.

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
    return _Enumeration(problem).best


def brute_force(problem: StructureProblem) -> float:
    """The optimum; -inf if no selection is acyclic."""
    return _Enumeration(problem).value


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
        self.value = -math.inf
        self.best: NDArray[np.int64] | None = None
        assert math.prod(map(len, map(candidates.group, self._order))) <= MAX_SELECTIONS
        nothing = np.zeros(self._margins.shape[1:])
        self.visit(0, [1 << v for v in range(len(self._order))], 0.0, nothing)

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
        if values[place] > self.value:
            self._chosen[variable] = allowed[place]
            self.value, self.best = float(values[place]), self._chosen.copy()


def _reach_with(reach: list[int], child: int, parents: int) -> list[int]:
    """What every variable reaches once the child has these parents (a bit mask)."""
    if parents == 0:
        return reach
    return [mask | reach[child] if mask & parents else mask for mask in reach]
