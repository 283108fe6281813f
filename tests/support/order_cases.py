"""Random lists of parent sets and their optimum by trying every order."""

from __future__ import annotations

from collections.abc import Collection
from itertools import permutations

import numpy as np

from marginbn.problem.candidates import enumerate_candidates
from marginbn.problem.encoded import Variable
from marginbn.problem.problem import StructureProblem


def random_scores(
    seed: int, n: int, max_parents: int = 3, required: Collection[tuple[int, int]] = ()
) -> StructureProblem:
    """Larger sets tend to be better, so that cycles must be paid for."""
    rng = np.random.default_rng(seed)
    candidates = enumerate_candidates(n, max_parents, class_restricted=False, required=required)
    sizes = np.array([len(p) for p in candidates.parents])
    scores = 3.0 * sizes + rng.normal(0.0, 4.0, len(sizes)) - 20.0
    return StructureProblem(candidates, scores, tuple(Variable(f"v{i}", ()) for i in range(n)))


def best_with_order(problem: StructureProblem, order: tuple[int, ...], first: int = 0) -> float:
    """Best score of the variables from place ``first`` on; -inf if one has no set before it."""
    total = 0.0
    for place in range(first, len(order)):
        before = set(order[:place])
        group = problem.candidates.group(order[place])
        inside = [k for k in group if before.issuperset(problem.candidates.parents[k])]
        total += max((problem.linear[k] for k in inside), default=-np.inf)
    return total


def optimum(problem: StructureProblem) -> float:
    """By all orders."""
    return max(best_with_order(problem, o) for o in permutations(range(problem.n_variables)))
