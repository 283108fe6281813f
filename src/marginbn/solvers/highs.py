"""Formulation (19) on HiGHS: the paper's method, and the baseline for everything else.

HiGHS runs in a thread of its own (:mod:`marginbn.solvers.milp`); the bounds that it claims
are raised by :func:`marginbn.problem.formulation.bound_allowance` before anybody believes them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbn.exceptions import SolverError
from marginbn.problem.candidates import CandidateSets
from marginbn.problem.formulation import (
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
from marginbn.solvers.milp import Channel, Ending, follow, load_highspy, pass_to_highs
from marginbn.solvers.result import SolveResult, Status
from marginbn.solvers.run import Callback, Deadline, Limits, Tracker
from marginbn.solvers.start import begin, box_bound

TOLERANCE = 1e-9
"""Primal, dual and integer feasibility; HiGHS takes 1e-10 at the least."""

SMALLEST_COEFFICIENT = 1e-12
"""HiGHS leaves out matrix entries below this."""

SECONDS_PER_NONZERO = 6e-8
"""Upper estimate of the time that HiGHS needs to take over a matrix; nothing can stop it then."""


class HighsSolver:
    """Formulation (19), solved by HiGHS on one thread."""

    name = "highs"

    def can_solve(self, problem: StructureProblem) -> str | None:
        """Any problem whose matrix fits into memory."""
        return why_too_large(problem)

    def needs(self, problem: StructureProblem, n_jobs: int = 1) -> Needs:
        """The matrix, here and inside HiGHS."""
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
        load_highspy()
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
    highs = load_highspy().Highs()
    _set_options(highs, deadline.limits, seed)
    channel.post(box_bound(problem, channel.poll))
    milp = formulate(problem, poll=channel.poll)
    if deadline.remaining() < SECONDS_PER_NONZERO * milp.matrix.nnz:
        return Ending(Status.TIME_LIMIT)
    scale = objective_scale(milp)
    point = point_of(problem, milp, first)
    pass_to_highs(highs, milp, scale)
    channel.poll()
    columns = np.arange(milp.n_columns, dtype=np.int32)
    highs.setSolution(milp.n_columns, columns, point)
    allowance = bound_allowance(
        milp, point, scale=scale, tolerance=TOLERANCE, threshold=SMALLEST_COEFFICIENT
    )
    listener = _Listener(milp.candidates, scale, allowance, channel)
    del milp, point, columns  # HiGHS has its own copy
    listener.attach(highs)
    if deadline.limits.time is not None:
        highs.setOptionValue("time_limit", max(deadline.remaining(), 1e-3))
    highs.run()
    return listener.ending(highs)


def _set_options(highs: Any, limits: Limits, seed: int) -> None:
    options: dict[str, object] = {
        "output_flag": False,
        "threads": 1,
        "random_seed": seed,
        "primal_feasibility_tolerance": TOLERANCE,
        "dual_feasibility_tolerance": TOLERANCE,
        "mip_feasibility_tolerance": TOLERANCE,
        "small_matrix_value": SMALLEST_COEFFICIENT,
        # Half of the gap is left to the allowance; an absolute gap would say nothing about
        # objectives near zero.
        "mip_rel_gap": limits.gap / 2,
        "mip_abs_gap": 0.0,
    }
    if limits.nodes is not None:
        options["mip_max_nodes"] = limits.nodes
    for name, value in options.items():
        highs.setOptionValue(name, value)


class _Listener:
    """Turns HiGHS' callbacks into posts, and a cancelled channel into an interrupt."""

    def __init__(
        self, candidates: CandidateSets, scale: float, allowance: float, channel: Channel
    ) -> None:
        self._candidates = candidates
        self._scale = scale
        self._allowance = allowance
        self._channel = channel
        self._best_bound = math.inf

    def attach(self, highs: Any) -> None:
        """Subscribe to everything that can report or interrupt."""
        highs.cbMipImprovingSolution += self._on_solution
        highs.cbMipLogging += self._on_look
        highs.cbMipInterrupt += self._on_look
        highs.cbSimplexInterrupt += self._on_interrupt
        highs.cbIpmInterrupt += self._on_interrupt

    def _on_solution(self, event: Any) -> None:
        self._post_solution(event.data_out.mip_solution)

    def _post_solution(self, values: Any) -> None:
        self._channel.post(selection_of(self._candidates, np.array(values)))

    def _on_look(self, event: Any) -> None:
        self._channel.nodes = max(int(event.data_out.mip_node_count), 0)
        self._report_bound(float(event.data_out.mip_dual_bound))
        self._on_interrupt(event)

    def _on_interrupt(self, event: Any) -> None:
        if self._channel.is_cancelled:
            event.interrupt()

    def _report_bound(self, dual_bound: float) -> None:
        if dual_bound < self._best_bound and math.isfinite(dual_bound):
            self._best_bound = dual_bound
            self._channel.post(dual_bound * self._scale + self._allowance)

    def ending(self, highs: Any) -> Ending:
        """Post what HiGHS ended with and say which limit stopped it, if any."""
        status = load_highspy().HighsModelStatus
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
        if info.primal_solution_status == int(
            load_highspy().SolutionStatus.kSolutionStatusFeasible
        ):
            self._post_solution(highs.getSolution().col_value)
        self._report_bound(float(info.mip_dual_bound))
        return Ending(stopped[ended], max(int(info.mip_node_count), 0))
