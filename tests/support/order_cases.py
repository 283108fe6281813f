"""Random lists of parent sets and their optimum by a recursion over sets of variables."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache

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
    """The optimum: every set of variables has a last one, with parents among the others."""
    groups = [
        [(frozenset(problem.candidates.parents[k]), float(problem.linear[k])) for k in group]
        for group in map(problem.candidates.group, range(problem.n_variables))
    ]

    @cache
    def best(variables: frozenset[int]) -> float:
        if not variables:
            return 0.0
        return max(
            best(variables - {last})
            + max(
                (score for parents, score in groups[last] if parents <= variables - {last}),
                default=-np.inf,
            )
            for last in variables
        )

    return best(frozenset(range(problem.n_variables)))
