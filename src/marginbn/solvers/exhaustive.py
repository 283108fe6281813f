"""Every acyclic selection of a tiny problem, one after the other: the reference for the others.

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
from marginbn.solvers.memory import Needs, margin_needs
from marginbn.solvers.result import Status
from marginbn.solvers.run import Run, Solver
from marginbn.solvers.tree_search import box_bound

MAX_SELECTIONS = 5_000_000
"""Some minutes of work."""

MAX_VARIABLES = 62
"""One bit each in a signed 64-bit integer."""

MAX_BYTES = 1_000_000_000
"""All margin coefficients are held in memory."""


class ExhaustiveSolver(Solver):
    """Looks at every acyclic selection."""

    name = "exhaustive"

    def can_solve(self, problem: StructureProblem) -> str | None:
        """Only tiny problems."""
        sizes = np.diff(problem.candidates.offsets)
        selections = math.prod(int(size) for size in sizes)
        if selections > MAX_SELECTIONS:
            return f"it has {selections:.2g} selections, more than {MAX_SELECTIONS}"
        if problem.n_variables > MAX_VARIABLES:
            return f"it has {problem.n_variables} variables, more than {MAX_VARIABLES}"
        needed = margin_needs(problem).least
        if needed > MAX_BYTES:
            return f"its margin coefficients take {needed / 1e9:.1f} GB, more than 1 GB"
        return None

    def needs(self, problem: StructureProblem, n_jobs: int = 1) -> Needs:
        """All margin coefficients."""
        return margin_needs(problem)

    def run(self, run: Run) -> Status:
        """Score everything; the run hears of every improvement."""
        run.improve_bound(box_bound(run.problem))
        _Enumeration(run).visit_all()
        run.improve_bound(run.objective)  # nothing else is left
        return Status.OPTIMAL


class _Enumeration:
    """Depth-first search of all acyclic selections."""

    def __init__(self, run: Run) -> None:
        problem, candidates = run.problem, run.problem.candidates
        sizes = np.diff(candidates.offsets)
        self._problem = problem
        self._run = run
        self._order = [int(v) for v in np.argsort(sizes, kind="stable")]
        self._masks = candidates.masks[:, 0].astype(np.int64)
        margins = problem.margins
        shape = (candidates.n_candidates, 0, 0)
        self._margins = np.zeros(shape) if margins is None else margins.dense()
        self._chosen = np.zeros(problem.n_variables, dtype=np.int64)

    def visit_all(self) -> None:
        """Visit everything."""
        reach = [1 << v for v in range(self._problem.n_variables)]  # every variable reaches itself
        self._visit(0, reach, 0.0, np.zeros(self._margins.shape[1:]))

    def _visit(
        self, depth: int, reach: list[int], linear: float, margins: NDArray[np.float64]
    ) -> None:
        """Decide the variable at this depth, given what the earlier ones sum to."""
        self._run.poll()
        variable = self._order[depth]
        group = np.asarray(self._problem.candidates.group(variable))
        allowed = group[(self._masks[group] & reach[variable]) == 0]
        if depth == len(self._order) - 1:
            self._score(variable, allowed, linear, margins)
            return
        for k in allowed:
            self._chosen[variable] = k
            self._visit(
                depth + 1,
                reach_with(reach, variable, int(self._masks[k])),
                linear + float(self._problem.linear[k]),
                margins + self._margins[k],
            )

    def _score(
        self,
        variable: int,
        allowed: NDArray[np.int64],
        linear: float,
        margins: NDArray[np.float64],
    ) -> None:
        """Score all candidates of the last variable together."""
        if len(allowed) == 0:
            return
        values = linear + self._problem.linear[allowed]
        if not self._problem.is_linear:
            smallest = (margins + self._margins[allowed]).min(axis=2, initial=self._problem.gamma)
            values = values + smallest @ self._problem.sample_weights
        best = int(np.argmax(values))
        if values[best] > self._run.objective:
            self._chosen[variable] = allowed[best]
            self._run.offer(self._chosen)


def reach_with(reach: list[int], child: int, parents: int) -> list[int]:
    """What every variable reaches once the child has these parents (a bit mask)."""
    if parents == 0:
        return reach
    return [mask | reach[child] if mask & parents else mask for mask in reach]
