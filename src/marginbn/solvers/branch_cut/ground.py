"""What all workers stand on: the problem as arrays, structural rows, what scores have learned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginbn.problem.problem import StructureProblem, drop_dominated
from marginbn.solvers.branch_cut.arrays import (
    BoolArray,
    Instance,
    IntArray,
    Poll,
    build_instance,
)
from marginbn.solvers.branch_cut.needs import Division, divide
from marginbn.solvers.branch_cut.relaxation import ALL_COLUMNS, labels_at
from marginbn.solvers.branch_cut.rows import RowPool
from marginbn.solvers.branch_cut.split import PseudoCosts
from marginbn.solvers.branch_cut.warm import Warm, cold_start
from marginbn.solvers.memory import spendable
from marginbn.solvers.start import feasible_selection, initial_selection

FIRST_COLUMNS = 20
"""Columns per variable at the root where columns are priced."""


@dataclass(frozen=True, eq=False)
class Ground:
    """The common ground of the workers; safe to use from several threads.

    Attributes
    ----------
    problem
        The problem without dominated candidates.
    original
        Number of each of its candidates in the problem as it was given.
    memory
        How memory is used.
    instance, pool, costs
        Its arrays, the rows made so far, and what was learned about splits.
    """

    problem: StructureProblem
    original: IntArray
    memory: Division
    instance: Instance
    pool: RowPool
    costs: PseudoCosts

    def starts(self, known: IntArray | None) -> list[IntArray]:
        """Selections to start from; first a known one, if it is made of the candidates here."""
        starts = [initial_selection(self.problem), feasible_selection(self.problem.candidates)]
        places = {int(k): place for place, k in enumerate(self.original)}
        if known is not None and all(int(k) in places for k in known):
            starts.insert(0, np.array([places[int(k)] for k in known], dtype=np.int64))
        return starts

    def first_state(self, chosen: IntArray, allowed: BoolArray) -> Warm:
        """Labels of a selection; some or all columns."""
        instance = self.instance
        labels = labels_at(instance, chosen)
        warm = cold_start(instance, labels, np.flatnonzero(allowed), self.pool.class_rows())
        if instance.n_candidates <= ALL_COLUMNS:
            return warm
        active = {int(k) for k in chosen}
        for i in range(instance.n_variables):
            group = instance.group(i)
            order = np.argsort(-warm.cost[group], kind="stable")[:FIRST_COLUMNS]
            active.update(int(k) + group.start for k in order)
        columns = np.array(sorted(active), dtype=np.int64)
        return cold_start(instance, labels, columns[allowed[columns]], list(warm.rows))


def prepare(
    problem: StructureProblem,
    poll: Poll = lambda: None,
    *,
    memory_limit: int | None = None,
    n_jobs: int = 1,
    division: Division | None = None,
) -> Ground:
    """Write a problem out; ``division`` says how memory is used if not as the limit has it."""
    reduced = drop_dominated(problem)
    size = reduced.candidates.n_candidates, reduced.n_rows
    memory = division or divide(*size, memory_limit, spendable(memory_limit), n_jobs)
    instance = build_instance(reduced, memory.dense, poll, memory.cache)
    pool = RowPool(instance, reduced.candidates)
    return Ground(reduced, _positions(reduced, problem), memory, instance, pool, PseudoCosts())


def _positions(reduced: StructureProblem, original: StructureProblem) -> IntArray:
    """Flat index in the original problem of every candidate of the reduced one."""
    if reduced is original:
        return np.arange(original.candidates.n_candidates)
    pairs = zip(reduced.candidates.child, reduced.candidates.parents, strict=True)
    return np.array([original.candidates.index(int(i), p) for i, p in pairs], dtype=np.int64)
