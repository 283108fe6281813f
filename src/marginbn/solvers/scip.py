"""Formulation (19) on SCIP: the same matrices as on HiGHS, an independent second opinion.

SCIP runs in a thread of its own (:mod:`marginbn.solvers.milp`). It can be told to stop at
every node, linear programme and presolve round, but not inside a linear programme; a long one is
left behind when time is up. The bounds that it claims are raised by
:func:`marginbn.problem.formulation.bound_allowance` before anybody believes them.
"""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbn.exceptions import MissingDependencyError, SolverError
from marginbn.problem.candidates import CandidateSets
from marginbn.problem.formulation import (
    MILP,
    bound_allowance,
    formulate,
    objective_scale,
    point_of,
    selection_of,
    why_too_large,
)
from marginbn.problem.problem import StructureProblem
from marginbn.solvers.checkpoint import Checkpoint
from marginbn.solvers.memory import Needs, milp_needs
from marginbn.solvers.milp import Channel, Ending, follow
from marginbn.solvers.result import SolveResult, Status
from marginbn.solvers.run import Callback, Deadline, Limits, Tracker
from marginbn.solvers.start import begin, box_bound

TOLERANCE = 1e-7
"""Primal and dual feasibility; SCIP divides it by 1000 at times, and its linear programming code
complains on the terminal about anything below 1e-10."""

LARGEST_COST = 1024.0
"""The objective is scaled to this, which makes the tolerance of its reduced costs about 1e-10."""

EPSILON = 1e-9
"""SCIP takes numbers below this for zero (its default)."""

STOPPED = {
    "optimal": Status.GAP_LIMIT,  # if the allowance leaves more than the gap
    "gaplimit": Status.GAP_LIMIT,
    "timelimit": Status.TIME_LIMIT,
    "nodelimit": Status.NODE_LIMIT,
    "totalnodelimit": Status.NODE_LIMIT,
    "userinterrupt": Status.INTERRUPTED,
    "memlimit": Status.MEMORY_LIMIT,
}
"""SCIP's endings; any other is a failure."""


def load_pyscipopt() -> ModuleType:
    """The pyscipopt module, or an error that says what to do."""
    try:
        import pyscipopt
    except ImportError as error:
        raise MissingDependencyError(
            f"solver 'scip' needs pyscipopt ({error}): pip install \"marginbn[scip]\""
        ) from error
    module: ModuleType = pyscipopt
    return module


class ScipSolver:
    """Formulation (19), solved by SCIP on one thread."""

    name = "scip"

    def can_solve(self, problem: StructureProblem) -> str | None:
        """Any problem whose matrix fits into memory."""
        return why_too_large(problem)

    def needs(self, problem: StructureProblem, n_jobs: int = 1) -> Needs:
        """The matrix, here and inside SCIP."""
        return milp_needs(problem)

    def solve(
        self,
        problem: StructureProblem,
        *,
        limits: Limits,
        start: NDArray[np.int64] | None = None,
        callback: Callback | None = None,
        seed: int = 0,
        n_jobs: int = 1,
        checkpoint: Checkpoint | None = None,
    ) -> SolveResult:
        """Solve; see :class:`marginbn.solvers.solve.Solver`."""
        tracker = Tracker(problem, Deadline(limits), callback, checkpoint)
        load_pyscipopt()
        try:
            first = begin(tracker, start)
        except KeyboardInterrupt:
            return tracker.finish(self.name, Status.INTERRUPTED)
        deadline = tracker.deadline
        ending = follow(lambda channel: _work(problem, deadline, seed, first, channel), tracker)
        return tracker.finish(self.name, ending.stopped, ending.nodes)


def _work(
    problem: StructureProblem,
    deadline: Deadline,
    seed: int,
    first: NDArray[np.int64],
    channel: Channel,
) -> Ending:
    """Build, load, run; everything found is posted to the channel."""
    channel.post(box_bound(problem, channel.poll))
    milp = formulate(problem, poll=channel.poll)
    scale = objective_scale(milp, LARGEST_COST)
    point = point_of(problem, milp, first)
    allowance = bound_allowance(milp, point, scale=scale, tolerance=TOLERANCE, threshold=EPSILON)
    scip = load_pyscipopt().Model()
    scip.hideOutput()
    _set_parameters(scip, deadline.limits, seed)
    columns = _load(scip, milp, scale, channel)
    _add_start(scip, columns, point)
    reporter = _Reporter(problem.candidates, columns[milp.eta], scale, allowance, channel)
    del milp, point  # SCIP has its own copy
    _listen(scip, reporter)
    if deadline.limits.time is not None:
        scip.setParam("limits/time", max(deadline.remaining(), 1e-3))
    scip.optimizeNogil()
    return reporter.ending(scip)


def _set_parameters(scip: Any, limits: Limits, seed: int) -> None:
    scip.setParams(
        {
            "misc/catchctrlc": False,  # Python hears Ctrl-C
            "parallel/maxnthreads": 1,
            "randomization/randomseedshift": seed,
            "timing/clocktype": 2,  # wall clock
            "numerics/feastol": TOLERANCE,
            "numerics/dualfeastol": TOLERANCE,
            # Half of the gap is left to the allowance.
            "limits/gap": limits.gap / 2,
        }
    )
    if limits.nodes is not None:
        scip.setParam("limits/totalnodes", limits.nodes)


def _load(scip: Any, milp: MILP, scale: float, channel: Channel) -> list[Any]:
    """Columns and rows into SCIP; returns the columns."""
    n_integer = milp.candidates.n_candidates
    columns = [
        scip.addVar(
            vtype="B" if j < n_integer else "C",
            lb=None if math.isinf(milp.lower[j]) else float(milp.lower[j]),
            ub=float(milp.upper[j]),
            obj=float(milp.cost[j]) / scale,
        )
        for j in range(milp.n_columns)
    ]
    scip.setMaximize()
    terms = [load_pyscipopt().scip.Term(column) for column in columns]
    for row in range(milp.n_rows):
        channel.poll()
        scip.addCons(_constraint(milp, row, terms))
    return columns


def _constraint(milp: MILP, row: int, terms: list[Any]) -> Any:
    """One row as SCIP's linear expression, made from its dictionary: sums would be slow."""
    parts = load_pyscipopt().scip
    entries = slice(milp.matrix.indptr[row], milp.matrix.indptr[row + 1])
    keys = [terms[j] for j in milp.matrix.indices[entries].tolist()]
    values = milp.matrix.data[entries].tolist()
    lower, upper = float(milp.row_lower[row]), float(milp.row_upper[row])
    return parts.ExprCons(
        parts.Expr(dict(zip(keys, values, strict=True))),
        lhs=None if math.isinf(lower) else lower,
        rhs=None if math.isinf(upper) else upper,
    )


def _add_start(scip: Any, columns: list[Any], point: NDArray[np.float64]) -> None:
    solution = scip.createSol()
    for column, value in zip(columns, point.tolist(), strict=True):
        scip.setSolVal(solution, column, value)
    scip.addSol(solution)


class _Reporter:
    """Turns SCIP's events into posts, and a cancelled channel into an interrupt."""

    def __init__(
        self,
        candidates: CandidateSets,
        eta: list[Any],
        scale: float,
        allowance: float,
        channel: Channel,
    ) -> None:
        self._candidates = candidates
        self._eta = eta
        self._scale = scale
        self._allowance = allowance
        self._channel = channel
        self._best_bound = math.inf

    def report_solution(self, scip: Any) -> None:
        """Post SCIP's best structure."""
        solution = scip.getBestSol()
        values = np.array([scip.getSolVal(solution, v) for v in self._eta])
        self._channel.post(selection_of(self._candidates, values))

    def look(self, scip: Any) -> None:
        """Post the bound if it is news; interrupt if the work should end."""
        self._channel.nodes = int(scip.getNTotalNodes())
        self._report_bound(scip)
        if self._channel.is_cancelled:
            scip.interruptSolve()

    def _report_bound(self, scip: Any) -> None:
        bound = float(scip.getDualbound())
        if bound < self._best_bound and abs(bound) < scip.infinity():
            self._best_bound = bound
            self._channel.post(bound * self._scale + self._allowance)

    def ending(self, scip: Any) -> Ending:
        """Post what SCIP ended with and say which limit stopped it, if any."""
        ended = scip.getStatus()
        if ended not in STOPPED:
            raise SolverError(f"SCIP ended with the status {ended!r}")
        if scip.getNSols() > 0:
            self.report_solution(scip)
        self._report_bound(scip)
        return Ending(STOPPED[ended], int(scip.getNTotalNodes()))


def _listen(scip: Any, reporter: _Reporter) -> None:
    """Subscribe the reporter to SCIP's events."""
    pyscipopt = load_pyscipopt()
    kinds = pyscipopt.SCIP_EVENTTYPE
    looks = (kinds.PRESOLVEROUND, kinds.LPSOLVED, kinds.NODESOLVED, kinds.DUALBOUNDIMPROVED)

    class Handler(pyscipopt.Eventhdlr):  # type: ignore[misc, name-defined]  # untyped, imported late
        def eventinit(self) -> None:
            for kind in (kinds.BESTSOLFOUND, *looks):
                self.model.catchEvent(kind, self)

        def eventexec(self, event: Any) -> None:
            if event.getType() == kinds.BESTSOLFOUND:
                reporter.report_solution(self.model)
            reporter.look(self.model)

    scip.includeEventhdlr(Handler(), "marginbn", "incumbents, bounds and interrupts")
