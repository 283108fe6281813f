"""Three thousand random general networks against exhaustive search, every cut and bound on and off.

Each problem has 3 to 7 variables, any parents up to a random limit, and a decomposable score of
random data, or scores that are random themselves. Branch and cut solves it

- with everything, with nothing but clusters, and with one of its parts alone (in turn);
- with everything but heuristics, and with random splits: then all pruning rests on bounds;

the default solver does as well. Where there are data, the scorer makes the problem once more,
without what it prunes: branch and cut solves that with everything and with nothing but clusters.
The optimum comes from a recursion over all sets of variables, over all candidates.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from typing import Any
from unittest import mock

import numpy as np

from marginbn.problem.candidates import enumerate_candidates
from marginbn.problem.encoded import Variable
from marginbn.problem.problem import StructureProblem
from marginbn.problem.scores import get_local_score
from marginbn.scoring.local_scores import linear_problem, local_scores
from marginbn.solvers import solve_structure
from marginbn.solvers.branch_cut import BranchCutSolver, engine, relaxation
from marginbn.solvers.branch_cut.branching import Chooser
from marginbn.solvers.branch_cut.separators import (
    ClusterSeparator,
    FacetSeparator,
    PackingSeparator,
)
from marginbn.solvers.result import SolveResult, Status, check_result
from marginbn.solvers.run import Limits, Run
from marginbn.solvers.solve import solve_with
from order_cases import optimum
from problems import random_table
from random_splits import RandomChooser

COUNT = 3_000

PARTS = ("ascent", "exhaustive", "facet", "orders", "packing")
"""What branch and cut can do without: dual ascent at the root, exhaustive separation of clusters,
facets, incumbents by orders, packings.
"""

SCORES = ("bic", "bdeu", "k2", "mdl", "random")

GAP = 1e-9
"""Relative gap that is asked for."""


def score_of(seed: int) -> str:
    first = int(np.random.default_rng([seed, 17]).integers(len(SCORES)))
    return SCORES[seed % len(SCORES) if seed % 10 else first]


def make(seed: int) -> StructureProblem:
    rng = np.random.default_rng([seed, 17])
    n, score = 3 + seed % 5, score_of(seed)
    if seed % 10 == 0:
        rng.integers(len(SCORES))  # the number behind the score
    candidates = enumerate_candidates(n, int(rng.integers(1, n)), class_restricted=False)
    if score == "random":
        sizes = np.array([len(parents) for parents in candidates.parents])
        scores = rng.uniform(0.0, 5.0) * sizes + rng.normal(0.0, 4.0, len(sizes)) - 20.0
        names = tuple(Variable(f"v{i}", ()) for i in range(n))
        return StructureProblem(candidates, np.round(scores, int(rng.integers(0, 8))), names)
    table = random_table(rng, int(rng.integers(5, 120)), n - 1, int(rng.integers(2, 4)))
    return linear_problem(table.encoded(), candidates, get_local_score(score))


def with_only(parts: Collection[str]) -> ExitStack:
    """Branch and cut has these parts and no others, until the stack is closed."""
    stack = ExitStack()
    kinds = {"packing": PackingSeparator, "facet": FacetSeparator}
    separators = (ClusterSeparator, *(kinds[part] for part in kinds if part in parts))
    stack.enter_context(mock.patch.object(relaxation, "SEPARATORS", separators))
    without = {
        "ascent": mock.patch.object(engine.CutSearch, "_ascend", return_value=(math.inf, [])),
        "exhaustive": mock.patch.object(ClusterSeparator, "search_exactly", return_value=[]),
        "orders": mock.patch.object(engine, "OrderSearch", return_value=None),
    }
    for part, patch in without.items():
        if part not in parts:
            stack.enter_context(patch)
    return stack


def answers(problem: StructureProblem, seed: int) -> Iterator[tuple[str, SolveResult]]:
    yield "default", solve_structure(problem, gap_tolerance=GAP)
    alone = PARTS[seed % len(PARTS)]
    ways: dict[str, tuple[Collection[str], bool]] = {
        "all": (PARTS, True),
        "none": ((), True),
        alone: ((alone,), True),
        "no heuristics": (PARTS, False),
        "random splits": (PARTS, False),
    }
    for name, (parts, heuristics) in ways.items():
        chooser = RandomChooser if name == "random splits" else Chooser
        with with_only(parts), mock.patch.object(engine, "Chooser", chooser):
            run = Run(problem, limits=Limits(gap=GAP), seed=seed)
            result = solve_with(BranchCutSolver(heuristics=heuristics), run)
        check_result(problem, result)
        yield name, result
    if problem.origin is None or problem.candidates.rule is None:
        return
    most = problem.candidates.rule.max_parents
    pruned = local_scores(problem.origin[0], score_of(seed), most)
    for name in ("all", "none"):
        with with_only(ways[name][0]):
            run = Run(pruned, limits=Limits(gap=GAP))
            yield f"scorer, {name}", solve_with(BranchCutSolver(), run)


def faults(name: str, result: SolveResult, best: float) -> list[str]:
    """What is wrong with a result, given the true optimum."""
    slack = 1e-8 * max(1.0, abs(best))
    found = []
    if not result.bound >= best - 1e-10 * max(1.0, abs(best)):
        found.append(f"{name}: bound {result.bound!r} below the optimum {best!r}")
    if result.status is not Status.OPTIMAL:
        found.append(f"{name}: ended as {result.status}")
    if not abs(result.objective - best) <= slack:
        found.append(f"{name}: objective {result.objective!r}, but the optimum is {best!r}")
    return found


def judge(seed: int) -> dict[str, Any]:
    """Solve one problem in all ways; a record of what is wrong."""
    problem = make(seed)
    best = optimum(problem)
    wrong, solved = [], 0
    for name, result in answers(problem, seed):
        wrong += faults(name, result, best)
        solved += 1
    return {"seed": seed, "wrong": wrong, "solved": solved}
