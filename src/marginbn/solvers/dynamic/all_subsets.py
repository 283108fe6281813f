"""All subsets at once, for few variables with very many candidates.

Where no bound leaves out much and lists are long, looking the best parent sets up costs more than
writing them all down: local_v(W) of every v and W comes from the candidates by passing every
subset's value on to its supersets, one variable at a time. Here scores are maximised. Both tables
run over whole arrays, indexed by the bit mask of the subset; only values are stored, and the way
back looks up sink and parent set again. Ties go to the smaller index.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marginbn.exceptions import SolverError
from marginbn.problem.problem import StructureProblem
from marginbn.solvers.run import Run

LARGEST_TABLES = 1_500_000_000
"""23 variables need 1.0 GB, 24 would need 2.1 GB."""


def table_bytes(n_variables: int) -> int:
    """Tables over all subsets: local scores, best scores, subsets by size and scratch."""
    subsets: int = 2**n_variables
    return 4 * n_variables * subsets + 25 * subsets


def search_all_subsets(run: Run) -> None:
    """Fill the tables, then trace the optimum back."""
    local = _local_scores(run)
    best = _best_scores(local, run)
    if not np.isfinite(best[-1]):
        raise SolverError("no acyclic structure was found although one exists")
    run.offer(_trace_back(run.problem, local, best))
    run.improve_bound(run.objective)  # every structure was considered


def _without(masks: NDArray[np.int64], variable: int) -> NDArray[np.int64]:
    """Masks that do not contain the variable, with its bit squeezed out."""
    low = (1 << variable) - 1
    squeezed: NDArray[np.int64] = (masks & low) | ((masks >> 1) & ~low)
    return squeezed


def _parent_masks(problem: StructureProblem) -> NDArray[np.int64]:
    return problem.candidates.masks[:, 0].astype(np.int64)


def _local_scores(run: Run) -> NDArray[np.float64]:
    """local_i(U) for every i and every U without i, shape (N, 2^(N-1)); -inf where none fits."""
    problem, n = run.problem, run.problem.n_variables
    local = np.full((n, 2 ** (n - 1)), -np.inf)
    masks = _parent_masks(problem)
    for i in range(n):
        run.poll()
        group = np.asarray(problem.candidates.group(i))
        np.maximum.at(local[i], _without(masks[group], i), problem.linear[group])
        for bit in range(n - 1):  # hand the value of U on to U with that variable
            pairs = local[i].reshape(-1, 2, 1 << bit)
            np.maximum(pairs[:, 1], pairs[:, 0], out=pairs[:, 1])
    return local


def _best_scores(local: NDArray[np.float64], run: Run) -> NDArray[np.float64]:
    """best(W) for every W, filled by size."""
    n = len(local)
    best = np.full(2**n, -np.inf)
    best[0] = 0.0
    for subsets in _subsets_by_size(n)[1:]:
        for sink in range(n):
            run.poll()
            with_sink = subsets[(subsets >> sink) & 1 == 1]
            rest = with_sink ^ (1 << sink)
            value = best[rest] + local[sink][_without(rest, sink)]
            best[with_sink] = np.maximum(best[with_sink], value)
    return best


def _subsets_by_size(n: int) -> list[NDArray[np.int64]]:
    """All bit masks below 2^n, grouped by the number of their bits."""
    sizes = np.zeros(1, dtype=np.uint8)
    for _ in range(n):
        sizes = np.concatenate([sizes, sizes + np.uint8(1)])
    order = np.argsort(sizes, kind="stable")
    ends = np.cumsum(np.bincount(sizes, minlength=n + 1))
    return np.split(order, ends[:-1])


def _trace_back(
    problem: StructureProblem, local: NDArray[np.float64], best: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Take sinks off one by one, each with its best parent set among the rest."""
    n = problem.n_variables
    masks = _parent_masks(problem)
    chosen = np.zeros(n, dtype=np.int64)
    left = 2**n - 1
    while left:
        members = [v for v in range(n) if left >> v & 1]
        sink = max(members, key=lambda v: (_value_of(v, left ^ (1 << v), local, best), -v))
        left ^= 1 << sink
        group = np.asarray(problem.candidates.group(sink))
        inside = group[(masks[group] & ~left) == 0]
        chosen[sink] = inside[np.argmax(problem.linear[inside])]
    return chosen


def _value_of(sink: int, rest: int, local: NDArray[np.float64], best: NDArray[np.float64]) -> float:
    """best(rest) + local_sink(rest)."""
    squeezed = int(_without(np.array([rest]), sink)[0])
    return float(best[rest] + local[sink][squeezed])
