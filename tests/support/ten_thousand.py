"""Ten thousand random small problems against exhaustive search.

Each problem has 2 to 5 features, 2 to 4 classes, a soft or a binary margin, gamma from 0.004 to 7,
1 to 3 parents, in half of the cases weights, and in two of seven the class is a parent of every
feature. It is solved

- by the default solver;
- by the default solver under a time limit of 0.1 to 20 ms;
- by the relaxation over arborescences (at most two parents) and by the linear programmes, both of
  them in every other problem without any heuristics: then the first incumbent is the empty graph
  or the first leaf, and all pruning rests on bounds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from exhaustive_search import Sample, best_objective
from marginbn.problem.candidates import ClassArcs, enumerate_candidates
from marginbn.problem.encoded import EncodedData
from marginbn.problem.problem import StructureProblem, margin_problem
from marginbn.solvers import solve_structure
from marginbn.solvers.branch_bound import BranchBoundSolver
from marginbn.solvers.branch_cut import BranchCutSolver
from marginbn.solvers.result import SolveResult, Status, check_result
from marginbn.solvers.run import Run
from marginbn.solvers.solve import solve_with
from strategies import make_variables

COUNT = 10_000
CHUNK = 250
PROVED = 1.01e-6
"""Relative distance to the optimum that the default gap tolerance allows."""

ROUNDING = 1e-10
"""Relative error of the sums on both sides."""


@dataclass(frozen=True)
class Problem:
    sample: Sample
    gamma: float
    max_parents: int
    seed: int

    @property
    def class_arcs(self) -> ClassArcs:
        return "all" if self.seed % 7 in (2, 5) else "free"

    def build(self) -> StructureProblem:
        sample = self.sample
        data = EncodedData(
            sample.codes.astype(np.int32), sample.weights, make_variables(sample.arities)
        )
        return margin_problem(
            data,
            enumerate_candidates(data.n_variables, self.max_parents, class_arcs=self.class_arcs),
            margin="binary" if sample.binary else "multiclass",
            gamma=self.gamma,
            smoothing=sample.smoothing,
        )


def make(seed: int) -> Problem:
    rng = np.random.default_rng([seed, 7])
    n_features = 5 if seed % 10 == 0 else 2 + seed % 3
    n_classes, n_rows = int(rng.integers(2, 5)), int(rng.integers(4, 36))
    arities = (n_classes, *(int(a) for a in rng.integers(2, 5, n_features)))
    columns = [rng.integers(0, n_classes, n_rows)]
    for arity in arities[1:]:
        source = columns[0] + columns[int(rng.integers(0, len(columns)))]
        copies = rng.random(n_rows) < rng.uniform(0, 0.9)
        columns.append(np.where(copies, source % arity, rng.integers(0, arity, n_rows)))
    weights = np.ones(n_rows)
    if seed % 2:
        weights = np.round(rng.uniform(0.05, 4.0, n_rows), 2) * 10.0 ** rng.integers(-2, 5)
    sample = Sample(
        np.column_stack(columns),
        weights,
        arities,
        smoothing=float(rng.choice([0.1, 1.0, 1.0, 2.0])),
        binary=bool(rng.random() < 0.5),
    )
    gamma = float(np.exp(rng.uniform(np.log(0.004), np.log(7.0))))
    return Problem(sample, gamma, int(rng.integers(1, 4)), seed)


def answers(problem: Problem) -> Iterator[tuple[str, SolveResult, float]]:
    structure = problem.build()
    yield "default", solve_structure(structure), 0.0
    limit = float(10.0 ** np.random.default_rng(problem.seed).uniform(-4, math.log10(0.02)))
    start = time.perf_counter()
    result = solve_structure(structure, time_limit=limit)
    yield "limited", result, time.perf_counter() - start - limit
    heuristics = problem.seed % 4 < 2
    solvers = [BranchBoundSolver(heuristics), BranchCutSolver(heuristics)]
    for solver in solvers:
        if solver.can_solve(structure) is None:
            result = solve_with(solver, Run(structure, seed=problem.seed))
            check_result(structure, result)
            yield solver.name, result, 0.0


def faults(name: str, result: SolveResult, best: float) -> list[str]:
    """What is wrong with a result, given the true optimum."""
    size = max(1.0, abs(best))
    found = []
    if not result.bound >= best - ROUNDING * size:
        found.append(f"{name}: bound {result.bound!r} below the optimum {best!r}")
    if not result.objective <= best + ROUNDING * size:
        found.append(f"{name}: objective {result.objective!r} above the optimum {best!r}")
    if name == "limited" and result.status is Status.TIME_LIMIT:
        return found
    if result.status is not Status.OPTIMAL:
        found.append(f"{name}: ended as {result.status}")
    if not abs(result.objective - best) <= PROVED * max(size, abs(result.bound)):
        found.append(f"{name}: objective {result.objective!r}, but the optimum is {best!r}")
    return found


def judge(seed: int) -> dict[str, Any]:
    """Solve one problem in all ways; a record of what is wrong and of the worst overrun."""
    problem = make(seed)
    best = best_objective(problem.sample, problem.max_parents, problem.gamma, problem.class_arcs)
    wrong, overrun, solved = [], 0.0, []
    for name, result, late in answers(problem):
        wrong += faults(name, result, best)
        overrun = max(overrun, late)
        solved.append(name)
    return {"seed": seed, "wrong": wrong, "overrun": round(overrun, 4), "solved": solved}
