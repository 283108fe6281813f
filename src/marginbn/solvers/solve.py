"""The registry of solvers and the one entry point.

:func:`solve_structure` makes a :class:`Run` of its arguments, chooses a solver, lets it work and
checks the result: whatever a solver claims is computed again before anybody sees it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Literal, Self, get_args

import numpy as np
from joblib import effective_n_jobs

from marginbn.exceptions import InputError, ProblemTooLargeError
from marginbn.files import PathLike
from marginbn.interrupts import INTERRUPTS
from marginbn.problem.problem import StructureProblem
from marginbn.problem.structure import Structure
from marginbn.solvers.checkpoint import Checkpoint, SearchState
from marginbn.solvers.memory import Memory, parse_memory
from marginbn.solvers.result import (
    PROOF_TOLERANCE,
    SolveResult,
    Status,
    TracePoint,
    check_result,
    relative_gap,
)
from marginbn.solvers.run import Callback, ConsoleListener, Limits, RowsInUse, Run, Solver, Stopped
from marginbn.solvers.tree_search import begin

_REGISTRY: dict[str, tuple[str, str]] = {
    "branch_bound": ("marginbn.solvers.branch_bound", "BranchBoundSolver"),
    "branch_cut": ("marginbn.solvers.branch_cut", "BranchCutSolver"),
    "dp": ("marginbn.solvers.dynamic", "DynamicProgrammingSolver"),
    "highs": ("marginbn.solvers.milp", "HighsSolver"),
}
"""Module and class by name; imported when a solver is chosen."""

SolverName = Literal["auto", "branch_bound", "branch_cut", "dp", "highs"]

AUTO_ORDER = ("branch_bound", "dp", "branch_cut")
"""Solvers that ``"auto"`` tries, in this order: the first that suits the problem and fits does."""

LAST_RESORT = "dp"
"""Tried where none of these fits: it begins with little memory and ends where that is full."""


def solver_names() -> tuple[str, ...]:
    """All solver names."""
    return tuple(_REGISTRY)


def get_solver(name: str) -> Solver:
    """The solver of that name."""
    if name not in _REGISTRY:
        raise InputError(f"solver must be 'auto' or one of {sorted(_REGISTRY)}, got {name!r}")
    module, class_name = _REGISTRY[name]
    make: Callable[[], Solver] = getattr(import_module(module), class_name)
    return make()


def choose_solver(
    problem: StructureProblem, name: str = "auto", memory: Memory | None = None, n_jobs: int = 1
) -> Solver:
    """The named solver if it can solve the problem; for ``"auto"`` the first that can.

    Raises
    ------
    ProblemTooLargeError
        If it, or the least demanding one, needs more than ``memory`` (None: than the machine has
        left).
    """
    memory = memory or Memory.probe(None)
    if name != "auto":
        solver = get_solver(name)
        reason = solver.can_solve(problem)
        if reason is not None:
            raise InputError(f"solver {name!r} cannot solve this problem: {reason}")
        memory.refuse_if_too_large(name, solver.needs(problem, n_jobs))
        return solver
    too_large: list[ProblemTooLargeError] = []
    for solver in _suitable(problem):
        try:
            memory.refuse_if_too_large(solver.name, solver.needs(problem, n_jobs))
        except ProblemTooLargeError as error:
            too_large.append(error)
        else:
            return solver
    raise too_large[-1]


def _suitable(problem: StructureProblem) -> Iterator[Solver]:
    """The solvers for a problem, the best first."""
    for solver in map(get_solver, AUTO_ORDER):
        if solver.can_solve(problem) is None and solver.suits(problem):
            yield solver
    last = get_solver(LAST_RESORT)
    if last.can_solve(problem) is None:
        yield last


@dataclass(frozen=True)
class Search:
    """How a structure is searched for: what is rarely set.

    Parameters
    ----------
    solver
        ``"auto"``, ``"branch_bound"``, ``"branch_cut"``, ``"dp"`` or ``"highs"``.
    gap_tolerance
        Relative gap at which the search stops; 1e-6 is a proof of optimality.
    memory_limit
        Bytes that the search may take, or text like "2 GB"; None means most of what the
        machine has left. A full store of open nodes is searched depth first.
    checkpoint
        File in which the search is kept, now and then and at its end; fitting the same data again
        resumes it. A file of another problem is refused, so cross-validation, which fits many
        problems, cannot share one.
    rows
        Margin rows that the search works with: "all", "groups", or "auto". Objective, bound and gap
        are those of all rows in any case; see *Large data* in the guide.
    dask
        Search on a Dask cluster: the address of its scheduler, a client, or "local" for processes
        on this machine; not together with a certificate. Needs ``marginbn[dask]``.
    callback
        Called with a :class:`TracePoint` at every improvement; a true return value stops.
    verbose
        1 shows progress: lines on stderr.
    time_limit
        Seconds for the search alone; the ``time_limit`` of a classifier is for the whole fit.
    work_limit
        Seconds of work for the search, counted by operations (with up to two parents): the same
        structure on every machine.
    inner_time_limit
        Seconds of work for each search of a validation. Work is counted by operations (with up to
        two parents; else by the clock), so that scores depend neither on ``n_jobs`` nor on what
        else the machine does.

    Examples
    --------
    >>> from marginbn import MaxMarginBNClassifier, Search
    >>> clf = MaxMarginBNClassifier(max_parents=1, search=Search(solver="highs"))
    >>> clf.fit([["a"], ["b"], ["b"]], [0, 1, 1]).result_.solver
    'highs'
    """

    solver: SolverName = "auto"
    gap_tolerance: float = PROOF_TOLERANCE
    memory_limit: int | str | None = None
    checkpoint: PathLike | None = None
    rows: RowsInUse = "auto"
    dask: Any = None
    callback: Callback | None = None
    verbose: int = 0
    time_limit: float | None = None
    work_limit: float | None = None
    inner_time_limit: float | None = 5.0

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # it never changes, and a client of a cluster cannot be copied

    def limits(self, nodes: int | None = None) -> Limits:
        """Of one solve."""
        memory = parse_memory(self.memory_limit)
        return Limits(self.time_limit, nodes, self.gap_tolerance, memory, self.work_limit)

    def listener(self) -> Callback | None:
        """The user's callback and the progress that is shown, whichever are wanted."""
        if not self.verbose:
            return self.callback
        console, callback = ConsoleListener(), self.callback or (lambda point: None)

        def both(point: TracePoint) -> bool | None:
            console(point)
            return callback(point)

        return both

    def check(self) -> None:
        """Refuse values that make no sense."""
        known = ["auto", *solver_names()]
        if self.solver not in known:
            raise InputError(f"solver must be one of {known}, got {self.solver!r}")
        if self.rows not in get_args(RowsInUse):
            raise InputError(f"rows must be one of {[*get_args(RowsInUse)]}, got {self.rows!r}")
        parse_memory(self.memory_limit)
        if not isinstance(self.checkpoint, str | os.PathLike | None):
            raise InputError(f"checkpoint must be a path or None, got {self.checkpoint!r}")
        for name in ("time_limit", "work_limit", "inner_time_limit"):
            value: Any = getattr(self, name)
            if value is not None and not (
                isinstance(value, int | float | np.number) and 0 < value < math.inf
            ):
                raise InputError(f"{name} must be a positive number or None, got {value!r}")
        gap: Any = self.gap_tolerance
        if not (isinstance(gap, int | float | np.number) and 0 <= gap < math.inf):
            raise InputError(f"gap_tolerance must be a number of at least 0, got {gap!r}")


def solve_structure(
    problem: StructureProblem,
    solver: SolverName | Search = "auto",
    *,
    time_limit: float | None = None,
    node_limit: int | None = None,
    gap_tolerance: float | None = None,
    start: Structure | None = None,
    callback: Callback | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    memory_limit: int | float | str | None = None,
    checkpoint: PathLike | None = None,
    certificate: PathLike | None = None,
) -> SolveResult:
    """Find the best structure of a problem, with a proved bound.

    Parameters
    ----------
    problem
        See :func:`marginbn.margin_problem` and :func:`marginbn.linear_problem`.
    solver
        ``"auto"``, ``"branch_bound"``, ``"branch_cut"``, ``"dp"``, ``"highs"``, or a
        :class:`marginbn.Search`. Arguments of the same name go before its fields; of two time
        limits the smaller one counts. ``Search(dask="local")`` starts ``n_jobs`` processes, or one
        per core.
    time_limit, node_limit
        Limits of this call; a limit is a normal ending and shows in the status.
    start
        A structure to start from, made of the problem's candidates.
    gap_tolerance, callback, memory_limit, checkpoint
        As in :class:`marginbn.Search`. The tree is kept in a checkpoint by ``branch_bound`` and
        ``branch_cut``; other solvers keep incumbent and bound.
    seed
        Seed of the solver's heuristics.
    n_jobs
        Workers on one search tree, where the solver can use them (``branch_bound`` can); None
        means 1, -1 all cores.
    certificate
        A file for a proof that others can check (:func:`marginbn.verify_certificate`). The solver
        then searches for at most 40 % of the time limit; the rest is for a search that keeps its
        proof. Whatever ends it, the certificate proves the gap that is left.

    Returns
    -------
    SolveResult
        Re-checked: acyclic, objective recomputed from the definition, bound not below it.

    Examples
    --------
    Two scores per variable, given by hand: the second feature gains from the class as a parent.

    >>> import numpy as np
    >>> from marginbn import StructureProblem, Variable, enumerate_candidates, solve_structure
    >>> candidates = enumerate_candidates(3, 1)
    >>> linear = np.zeros(candidates.n_candidates)
    >>> linear[candidates.index(2, (0,))] = 1.5
    >>> variables = tuple(Variable(name, ("no", "yes")) for name in ("class", "x", "y"))
    >>> result = solve_structure(StructureProblem(candidates, linear, variables))
    >>> result.objective, result.structure.parents[2]
    (1.5, (0,))
    """
    search = solver if isinstance(solver, Search) else Search(solver)
    limits = [limit for limit in (time_limit, search.time_limit) if limit is not None]
    given: dict[str, Any] = {
        "time_limit": min(limits, default=None),
        "gap_tolerance": gap_tolerance,
        "callback": callback,
        "memory_limit": memory_limit,
        "checkpoint": checkpoint,
    }
    search = replace(search, **{name: value for name, value in given.items() if value is not None})
    search.check()
    run = Run(
        problem,
        search.limits(node_limit),
        seed=seed,
        n_jobs=effective_n_jobs(n_jobs),
        callback=search.listener(),
    )
    chosen = _with_rows(choose_solver(problem, search.solver, run.memory, run.n_jobs), search.rows)
    if search.solver == "auto" and chosen.may_run_out_of_memory:
        others = [other for other in _suitable(problem) if other.name != chosen.name]
        enough = run.memory.spendable
        fitting = (other for other in others if other.needs(problem, run.n_jobs).least <= enough)
        run.fallback = next(fitting, None)
    if start is not None:
        run.start = problem.candidates.selection(start)
    if search.checkpoint is not None:
        run.checkpoint = Checkpoint(search.checkpoint, problem)
    if search.dask is not None:
        if certificate is not None:
            raise InputError("certificate must be None with dask: write it in a solve without")
        cluster = import_module("marginbn.solvers.cluster")
        result: SolveResult = cluster.solve_on_cluster(chosen, run, search.dask)
    elif certificate is None:
        result = solve_with(chosen, run)
    else:
        write = import_module("marginbn.proof.write")
        result = write.solve_with_certificate(chosen, run, certificate)
    check_result(problem, result)
    return result


def _with_rows(solver: Solver, rows: str) -> Solver:
    """The solver with this choice of margin rows."""
    if rows == "auto":
        return solver
    if solver.name != "branch_bound":
        raise InputError(
            f"rows={rows!r} is for the solver 'branch_bound' (at most two parents), and "
            f"{solver.name!r} would be used; leave rows out"
        )
    make: Callable[..., Solver] = type(solver)
    return make(rows=rows)


def solve_with(solver: Solver, run: Run) -> SolveResult:
    """Let a solver work on a run, unless an earlier call has closed the gap that is asked for."""
    saved, problem = run.saved, run.problem
    if saved is not None:
        gap = relative_gap(problem.evaluate(saved.selection), saved.bound, problem.scale)
        if gap <= run.limits.gap:
            known = replace(run, checkpoint=None)  # there is nothing new to save
            known.offer(saved.selection)
            known.recall_bound(saved.bound)
            known.nodes = saved.search.nodes
            return known.finish(saved.search.solver or solver.name)
    solver.prepare(problem, run.n_jobs)
    INTERRUPTS.raise_if_requested()
    run.start_clock()
    with run.ending():
        begin(run)
        INTERRUPTS.has_result = True
        if INTERRUPTS.requested:  # by a signal that came before: the first structure must do
            raise Stopped(Status.INTERRUPTED)
        run.stopped = solver.run(run)
    if run.stopped is Status.MEMORY_LIMIT and run.fallback is not None:
        solver = run.fallback
        with run.ending():
            solver.prepare(problem, run.n_jobs)
            run.stopped = solver.run(run)
    result = run.finish(solver.name)
    run.snapshot = SearchState  # a tree takes most of the memory
    return result
