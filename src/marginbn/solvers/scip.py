"""Formulation (19) on SCIP: the same matrices as on HiGHS, an independent second opinion.

SCIP can be asked to stop at every node, linear programme and presolve round, but not inside a
linear programme; a long one is left behind when time is up (:mod:`marginbn.solvers.milp`).
"""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbn.exceptions import MissingDependencyError, SolverError
from marginbn.problem.formulation import MILP
from marginbn.problem.problem import StructureProblem
from marginbn.solvers.milp import Channel, Formulated, MilpSolver
from marginbn.solvers.result import Status
from marginbn.solvers.run import Run

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


class ScipSolver(MilpSolver):
    """Formulation (19), solved by SCIP on one thread."""

    name = "scip"
    tolerance = TOLERANCE
    threshold = EPSILON
    largest_cost = LARGEST_COST

    def prepare(self, problem: StructureProblem | None = None, n_jobs: int = 1) -> None:
        """Load pyscipopt."""
        load_pyscipopt()

    def work(self, run: Run, task: Formulated) -> Status:
        """Load and run; everything found is posted."""
        scip = load_pyscipopt().Model()
        scip.hideOutput()
        _set_parameters(scip, run)
        columns = _load(scip, task.milp, task.scale, task.channel)
        _add_start(scip, columns, task.point)
        reporter = _Reporter(task, columns[task.milp.eta])
        del task.milp, task.point  # SCIP has its own copy
        _listen(scip, reporter)
        if run.limits.time is not None:
            scip.setParam("limits/time", max(run.remaining(), 1e-3))
        scip.optimizeNogil()
        return reporter.ending(scip)


def _set_parameters(scip: Any, run: Run) -> None:
    scip.setParams(
        {
            "misc/catchctrlc": False,  # Python hears Ctrl-C
            "parallel/maxnthreads": 1,
            "randomization/randomseedshift": run.seed,
            "timing/clocktype": 2,  # wall clock
            "numerics/feastol": TOLERANCE,
            "numerics/dualfeastol": TOLERANCE,
            # Half of the gap is left to the allowance.
            "limits/gap": run.limits.gap / 2,
        }
    )
    if run.limits.nodes is not None:
        scip.setParam("limits/totalnodes", run.limits.nodes)


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

    def __init__(self, task: Formulated, eta: list[Any]) -> None:
        self._task = task
        self._eta = eta

    def report_solution(self, scip: Any) -> None:
        """Post SCIP's best structure."""
        solution = scip.getBestSol()
        self._task.post_selection(np.array([scip.getSolVal(solution, v) for v in self._eta]))

    def report_progress(self, scip: Any) -> None:
        """Post the bound if it is news; interrupt if the work should end."""
        self._report(scip)
        if self._task.channel.is_cancelled:
            scip.interruptSolve()

    def _report(self, scip: Any) -> None:
        self._task.channel.nodes = int(scip.getNTotalNodes())
        bound = float(scip.getDualbound())
        if abs(bound) < scip.infinity():
            self._task.post_bound(bound)

    def ending(self, scip: Any) -> Status:
        """Post what SCIP ended with and say which limit stopped it."""
        ended = scip.getStatus()
        if ended not in STOPPED:
            raise SolverError(f"SCIP ended with the status {ended!r}")
        if scip.getNSols() > 0:
            self.report_solution(scip)
        self._report(scip)
        return STOPPED[ended]


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
            reporter.report_progress(self.model)

    scip.includeEventhdlr(Handler(), "marginbn", "incumbents, bounds and interrupts")
