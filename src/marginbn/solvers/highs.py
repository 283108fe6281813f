"""Formulation (19) on HiGHS: the paper's method, and the baseline for everything else."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbn.exceptions import SolverError
from marginbn.problem import formulation
from marginbn.problem.problem import StructureProblem
from marginbn.solvers.memory import Needs
from marginbn.solvers.milp import Channel, follow, load_highspy, pass_to_highs
from marginbn.solvers.result import Status
from marginbn.solvers.run import Run, Solver
from marginbn.solvers.tree_search import box_bound

TOLERANCE = 1e-9
"""Primal, dual and integer feasibility; HiGHS takes 1e-10 at the least."""

SMALLEST_COEFFICIENT = 1e-12
"""HiGHS leaves out matrix entries below this."""

SECONDS_PER_NONZERO = 6e-8
"""Upper estimate of the time that HiGHS needs to take over a matrix; nothing can stop it then."""


SMALLEST_GAMMA = 1e-3
"""Costs are not raised beyond what this gamma asks for: HiGHS loses digits."""


class HighsSolver(Solver):
    """Formulation (19), solved by HiGHS on one thread."""

    name = "highs"

    def can_solve(self, problem: StructureProblem) -> str | None:
        """Any problem whose matrix fits into memory."""
        return formulation.why_too_large(problem)

    def needs(self, problem: StructureProblem, n_jobs: int = 1) -> Needs:
        """The matrix with indices here, and twice more inside HiGHS."""
        needed = 3 * 12 * formulation.count_nonzeros(problem)
        return Needs(needed, needed)

    def prepare(self, problem: StructureProblem | None = None, n_jobs: int = 1) -> None:
        """Load highspy."""
        load_highspy()

    def run(self, run: Run) -> Status:
        """Formulate and solve in a thread."""
        first = run.selection
        assert first is not None  # every run begins with an incumbent
        return follow(lambda c: self._work(run, Formulated(run.problem, first, c)), run)

    def _work(self, run: Run, task: Formulated) -> Status:
        """Load and run; everything found is posted. Of the run only the request may be read."""
        deadline, milp = run.deadline, task.milp
        if deadline.remaining() < SECONDS_PER_NONZERO * milp.matrix.nnz:
            return Status.TIME_LIMIT
        highs = load_highspy().Highs()
        _set_options(highs, run)
        pass_to_highs(highs, milp, task.scale)
        task.channel.poll()
        columns = np.arange(milp.n_columns, dtype=np.int32)
        highs.setSolution(milp.n_columns, columns, task.point)
        del milp, task.milp, task.point, columns  # HiGHS has its own copy
        listener = _Listener(task)
        listener.attach(highs)
        if run.limits.time is not None:
            highs.setOptionValue("time_limit", max(deadline.remaining(), 1e-3))
        highs.run()
        return listener.ending(highs)


class Formulated:
    """Problem (19) on its way into HiGHS, and the posts on their way back.

    HiGHS sees the objective divided by ``scale``; bounds that it claims are raised by
    :func:`marginbn.problem.formulation.bound_allowance` before they are used.
    """

    def __init__(
        self, problem: StructureProblem, first: NDArray[np.int64], channel: Channel
    ) -> None:
        channel.post(box_bound(problem, channel.poll))
        self.channel = channel
        self.milp = formulation.formulate(problem, poll=channel.poll)
        self.scale = formulation.objective_scale(self.milp, 1.0 / _smallness(problem))
        self.point = formulation.point_of(problem, self.milp, first)
        self._allowance = formulation.bound_allowance(
            self.milp,
            self.point,
            scale=self.scale,
            tolerance=TOLERANCE,
            threshold=SMALLEST_COEFFICIENT,
        )
        self._candidates = problem.candidates
        self._best_bound = math.inf

    def post_selection(self, eta: NDArray[np.float64]) -> None:
        """Post the structure of a solution; ``eta`` begins with the values of the candidates."""
        self.channel.post(formulation.selection_of(self._candidates, eta))

    def post_bound(self, bound: float) -> None:
        """Post the bound of HiGHS if it is better than the last."""
        if bound < self._best_bound:
            self._best_bound = bound
            self.channel.post(bound * self.scale + self._allowance)


def _smallness(problem: StructureProblem) -> float:
    """Objectives are small where gamma is; larger costs tighten the tolerances by as much."""
    return 1.0 if problem.is_linear else min(1.0, max(problem.gamma, SMALLEST_GAMMA))


def _set_options(highs: Any, run: Run) -> None:
    options: dict[str, object] = {
        "output_flag": False,
        "threads": 1,
        "random_seed": run.seed,
        "primal_feasibility_tolerance": TOLERANCE,
        "dual_feasibility_tolerance": TOLERANCE,
        "mip_feasibility_tolerance": TOLERANCE,
        "small_matrix_value": SMALLEST_COEFFICIENT,
        # Half of the gap is left to the allowance; an absolute gap would say nothing about
        # objectives near zero.
        "mip_rel_gap": run.limits.gap / 2,
        "mip_abs_gap": 0.0,
    }
    if run.limits.nodes is not None:
        options["mip_max_nodes"] = run.limits.nodes
    for name, value in options.items():
        highs.setOptionValue(name, value)


class _Listener:
    """Turns HiGHS' callbacks into posts, and a cancelled channel into an interrupt."""

    def __init__(self, task: Formulated) -> None:
        self._task = task

    def attach(self, highs: Any) -> None:
        """Subscribe to everything that can report or interrupt."""
        highs.cbMipImprovingSolution += self._on_solution
        highs.cbMipLogging += self._on_progress
        highs.cbMipInterrupt += self._on_progress
        highs.cbSimplexInterrupt += self._on_interrupt
        highs.cbIpmInterrupt += self._on_interrupt

    def _on_solution(self, event: Any) -> None:
        self._task.post_selection(np.array(event.data_out.mip_solution))

    def _on_progress(self, event: Any) -> None:
        self._report(event.data_out)
        self._on_interrupt(event)

    def _on_interrupt(self, event: Any) -> None:
        if self._task.channel.is_cancelled:
            event.interrupt()

    def _report(self, info: Any) -> None:
        self._task.channel.nodes = max(int(info.mip_node_count), 0)
        if math.isfinite(info.mip_dual_bound):
            self._task.post_bound(float(info.mip_dual_bound))

    def ending(self, highs: Any) -> Status:
        """Post what HiGHS ended with and say which limit stopped it."""
        highspy = load_highspy()
        status = highspy.HighsModelStatus
        stopped = {
            status.kOptimal: Status.GAP_LIMIT,  # if the allowance leaves more than the gap
            status.kTimeLimit: Status.TIME_LIMIT,
            status.kSolutionLimit: Status.NODE_LIMIT,
            status.kInterrupt: Status.INTERRUPTED,
            status.kMemoryLimit: Status.MEMORY_LIMIT,
        }
        ended, info = highs.getModelStatus(), highs.getInfo()
        if ended not in stopped:
            raise SolverError(f"HiGHS ended with the status {highs.modelStatusToString(ended)}")
        if info.primal_solution_status == int(highspy.SolutionStatus.kSolutionStatusFeasible):
            self._task.post_selection(np.array(highs.getSolution().col_value))
        self._report(info)
        return stopped[ended]
