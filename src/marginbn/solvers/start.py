"""A first structure and a first bound, cheap and always there.

**A first structure.** Place variables one after the other, each as soon as one of its candidates
lies inside the set already placed. Placing a variable never takes a choice away from another, so
if the rule gets stuck no acyclic selection exists at all (required and forbidden arcs can cause
that), and any candidate inside the placed set may be taken.

**A first bound.** Every tau is at most gamma and every variable takes one candidate, so

    sum_i max_k linear_k + gamma sum_m w_m

bounds every structure. With the margins at hand each row is also at most the sum over variables
of its largest coefficient: the box bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from marginbn.exceptions import InputError
from marginbn.problem.candidates import CandidateSets
from marginbn.problem.problem import StructureProblem
from marginbn.solvers.run import Run

Poll = Callable[[], None]
Preference = Callable[[int], float]
"""Worth of a candidate to :func:`feasible_selection`; ties go to the smaller index."""


def feasible_selection(
    candidates: CandidateSets, preference: Preference | None = None
) -> NDArray[np.int64]:
    """An acyclic selection; the smallest parent sets unless a preference is given.

    Raises
    ------
    InputError
        If no acyclic selection exists.
    """
    worth = preference or (lambda k: -len(candidates.parents[k]))
    chosen = np.full(candidates.n_variables, -1, dtype=np.int64)
    placed: set[int] = set()
    waiting = list(range(candidates.n_variables))
    while waiting:
        for variable in waiting:
            open_to = [
                k for k in candidates.group(variable) if placed.issuperset(candidates.parents[k])
            ]
            if open_to:
                break
        else:
            raise InputError(
                f"no acyclic structure can be made of the candidates: variables {waiting} wait "
                "for one another; remove required or forbidden arcs, or raise max_parents"
            )
        chosen[variable] = max(open_to, key=lambda k: (worth(k), -k))
        placed.add(variable)
        waiting.remove(variable)
    return chosen


def initial_selection(problem: StructureProblem) -> NDArray[np.int64]:
    """A cheap acyclic selection that respects every required arc.

    Linear problems take the best candidate inside the variables placed so far; problems with
    margins the better of the smallest parent sets and the class as the only parent.
    """
    return max(_first_selections(problem), key=problem.evaluate)


def _first_selections(problem: StructureProblem) -> Iterator[NDArray[np.int64]]:
    candidates = problem.candidates
    yield feasible_selection(candidates)
    if problem.is_linear:
        yield feasible_selection(candidates, lambda k: float(problem.linear[k]))
    else:
        yield feasible_selection(candidates, lambda k: candidates.parents[k] == (0,))


def initial_bound(problem: StructureProblem) -> float:
    """An upper bound on every structure's objective that needs no margin at all."""
    best = math.fsum(_group_maxima(problem, problem.linear))
    if problem.is_linear:
        return best
    return best + problem.gamma * math.fsum(problem.sample_weights)


def box_bound(problem: StructureProblem, poll: Poll = lambda: None) -> float:
    """An upper bound from the largest coefficient of each variable in each margin row.

    It reads every coefficient once; ``poll`` is called for each candidate and may raise.
    """
    best = math.fsum(_group_maxima(problem, problem.linear))
    if problem.margins is None:
        return best
    total = np.zeros((problem.margins.n_samples, problem.margins.n_rivals))
    for variable in range(problem.n_variables):
        largest = np.full_like(total, -np.inf)
        for k in problem.candidates.group(variable):
            poll()
            np.maximum(largest, problem.margins.column(k), out=largest)
        total += largest
    capped = total.min(axis=1, initial=problem.gamma)
    return best + math.fsum(problem.sample_weights * capped)


def _group_maxima(problem: StructureProblem, values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.maximum.reduceat(values, problem.candidates.offsets[:-1])


def begin(run: Run) -> None:
    """Give a run its first incumbent and bound.

    A start that the caller gives comes first, so that it is the first point of the trace; then
    what an earlier call has saved.
    """
    if run.start is not None:
        run.offer(run.start)
    if run.saved is not None:
        run.offer(run.saved.selection)
    run.offer(initial_selection(run.problem))
    run.improve_bound(initial_bound(run.problem))
    if run.saved is not None:
        run.recall_bound(run.saved.bound)
