"""Formulation (19), the paper's method: solved by HiGHS, or written as MPS or LP file for others.

highspy is imported when it is first needed, never before.

HiGHS blocks, so it runs in a thread of its own and only *posts* what it finds; the calling thread
reports the posts to the :class:`Run`, and watches the clock and Ctrl-C. To end the work it sets a
flag that HiGHS' callbacks look at. Should HiGHS not call back in time (a long presolve, a large
linear program), the caller leaves without it; what it still posts is discarded.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue
from types import ModuleType
from typing import Any

import numpy as np

from marginbn.exceptions import InputError, MissingDependencyError, SolverError
from marginbn.files import replacing
from marginbn.problem import formulation
from marginbn.problem.array_types import IntArray
from marginbn.problem.formulation import MILP
from marginbn.problem.problem import StructureProblem
from marginbn.problem.structure import is_acyclic
from marginbn.solvers.memory import Needs
from marginbn.solvers.result import Status
from marginbn.solvers.run import Run, Solver, solver_thread

SUFFIXES = (".mps", ".lp")
"""File formats that :func:`write_formulation` writes."""


def load_highspy() -> ModuleType:
    """The highspy module, or an error that says what to do."""
    try:
        import highspy
    except ImportError as error:
        reason = "solver 'highs' needs highspy"
        if "undefined symbol" in str(error):
            reason = (
                "highspy cannot be loaded together with another copy of the HiGHS library in this "
                "process (ortools ships one; highspy 1.15 and later clash with it)"
            )
        raise MissingDependencyError(f'{reason}: pip install "highspy>=1.14,<1.15"') from error
    module: ModuleType = highspy
    return module


def pass_to_highs(highs: Any, milp: MILP, scale: float = 1.0) -> None:
    """Load the formulation into a ``highspy.Highs`` object, the objective divided by ``scale``."""
    highspy = load_highspy()
    integrality = np.zeros(milp.n_columns, dtype=np.int32)
    integrality[milp.eta] = int(highspy.HighsVarType.kInteger)
    matrix = milp.matrix
    status = highs.passModel(
        milp.n_columns,
        milp.n_rows,
        matrix.nnz,
        int(highspy.MatrixFormat.kRowwise),
        int(highspy.ObjSense.kMaximize),
        0.0,
        milp.cost / scale,
        milp.lower,
        milp.upper,
        milp.row_lower,
        milp.row_upper,
        matrix.indptr.astype(np.int32, copy=False),
        matrix.indices.astype(np.int32, copy=False),
        matrix.data,
        integrality,
    )
    if status == highspy.HighsStatus.kError:
        raise SolverError("HiGHS did not accept the formulation")


def write_formulation(problem: StructureProblem, path: str | os.PathLike[str]) -> Path:
    """Write problem (19) for CPLEX, Gurobi, SCIP and the like.

    Parameters
    ----------
    problem
        Any problem; its objective is maximised in the file too.
    path
        A name ending in ``.mps`` or ``.lp``.

    Returns
    -------
    Path
        The file. Columns are called ``pa_3_0_2`` (variable 3 has the parents 0 and 2),
        ``tau_7`` (margin of sample 7) and ``order_3``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from marginbn import StructureProblem, Variable, enumerate_candidates, write_formulation
    >>> variables = (Variable("class", ("0", "1")), Variable("x", ("0", "1")))
    >>> problem = StructureProblem(
    ...     enumerate_candidates(2, 1), np.array([-3.0, -2.0, -5.0, -1.0]), variables
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_formulation(problem, Path(folder) / "problem.lp")
    ...     "pa_1_0" in path.read_text()
    True
    """
    target = Path(path)
    if target.suffix.lower() not in SUFFIXES:
        raise InputError(f"path must end in one of {', '.join(SUFFIXES)}, got {str(target)!r}")
    highs = load_highspy().Highs()
    highs.silent()
    milp = formulation.formulate(problem)
    pass_to_highs(highs, milp)
    for column, name in enumerate(milp.column_names()):
        highs.passColName(column, name)
    for row, name in enumerate(milp.row_names()):
        highs.passRowName(row, name)
    with replacing(target, target.suffix.lower()) as draft:  # the name decides on the format
        if highs.writeModel(draft) == load_highspy().HighsStatus.kError:
            raise SolverError(f"HiGHS could not write {str(target)!r}")
    return target


TICK = 0.05
"""Seconds between two polls of the clock; also how long Ctrl-C may wait on some systems."""

PATIENCE = 0.5
"""Seconds that a solver gets to wind up after it was asked to stop."""

PATIENCE_SHARE = 0.02
"""The same as a share of the time already spent, for long solves."""


class Foreign:
    """Work in a thread of its own, and its posts on their way to a run."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.nodes = 0
        self.is_cancelled = False
        """Whether the work should end now."""
        self._posts: SimpleQueue[IntArray | float | Status | BaseException] = SimpleQueue()

    def post(self, finding: IntArray | float) -> None:
        """Report a selection (an array) or an upper bound (a number)."""
        self._posts.put(finding)

    def follow(self, work: Callable[[], Status]) -> Status:
        """Do ``work`` until it ends, with the limit that it ran into (GAP_LIMIT if it thinks that
        it is done), or until a limit, the callback or Ctrl-C ends it.
        """

        def body() -> None:
            try:
                self._posts.put(work())
            except BaseException as error:  # handed over, raised again by the listener
                self._posts.put(error)

        run, stopped = self.run, None
        solver_thread(body, "marginbn foreign solver").start()
        try:
            while stopped is None:
                run.save_if_due()
                ending = self._listen(min(TICK, run.remaining()))
                if ending is not None:
                    return ending
                stopped = run.limit or (Status.GAP_LIMIT if run.is_closed else None)
        except KeyboardInterrupt:
            stopped = Status.INTERRUPTED
        finally:
            self.is_cancelled = True
        clock = run.deadline
        leave = clock.elapsed() + max(PATIENCE, PATIENCE_SHARE * clock.elapsed())
        with contextlib.suppress(KeyboardInterrupt):  # a second Ctrl-C: leave at once
            while clock.elapsed() < leave and self._listen(TICK) is None:
                pass
        return stopped

    def _listen(self, seconds: float) -> Status | None:
        """Read one post, waiting that long at most; returns how the work ended, if it has."""
        run = self.run
        run.nodes = self.nodes
        try:
            post = self._posts.get(timeout=seconds)
        except Empty:
            return None
        if isinstance(post, Status):
            run.nodes = self.nodes
            return post
        if isinstance(post, BaseException):
            raise post
        if isinstance(post, float):
            run.improve_bound(post)
        elif is_acyclic([run.problem.candidates.parents[int(k)] for k in post]):
            run.offer(post)  # a cycle within the solver's tolerances is no structure
        return None


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
        """Formulate, and solve in a thread.

        HiGHS sees the objective divided by ``scale``; bounds that it claims are raised by
        :func:`marginbn.problem.formulation.bound_allowance` before they are used.
        """
        problem, first = run.problem, run.selection
        assert first is not None  # every run begins with an incumbent
        milp = formulation.formulate(problem, poll=run.poll)
        if run.remaining() < SECONDS_PER_NONZERO * milp.matrix.nnz:
            return Status.TIME_LIMIT
        # objectives are small where gamma is; larger costs tighten the tolerances by as much
        small = 1.0 if problem.is_linear else min(1.0, max(problem.gamma, SMALLEST_GAMMA))
        scale = formulation.objective_scale(milp, 1.0 / small)
        point = formulation.point_of(problem, milp, first)
        allowance = formulation.bound_allowance(
            milp, point, scale=scale, tolerance=TOLERANCE, threshold=SMALLEST_COEFFICIENT
        )
        highs, foreign = load_highspy().Highs(), Foreign(run)
        _set_options(highs, run)
        pass_to_highs(highs, milp, scale)
        run.poll()
        highs.setSolution(milp.n_columns, np.arange(milp.n_columns, dtype=np.int32), point)
        del milp, point  # HiGHS has its own copy
        listener = _Listener(highs, foreign, scale, allowance)
        if run.limits.time is not None:
            highs.setOptionValue("time_limit", max(run.remaining(), 1e-3))

        def work() -> Status:
            highs.run()
            return listener.ending(highs)

        return foreign.follow(work)


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
    """Turns HiGHS' callbacks into posts, and a cancelled work into an interrupt."""

    def __init__(self, highs: Any, foreign: Foreign, scale: float, allowance: float) -> None:
        """Subscribe to everything that can report or interrupt."""
        self._foreign, self._scale, self._allowance = foreign, scale, allowance
        self._best_bound = math.inf
        highs.cbMipImprovingSolution += lambda e: self._post_solution(e.data_out.mip_solution)
        highs.cbMipLogging += self._on_progress
        highs.cbMipInterrupt += self._on_progress
        highs.cbSimplexInterrupt += self._on_interrupt
        highs.cbIpmInterrupt += self._on_interrupt

    def _post_solution(self, values: Any) -> None:
        """The values of the candidates come first."""
        candidates = self._foreign.run.problem.candidates
        self._foreign.post(formulation.selection_of(candidates, np.array(values)))

    def _on_progress(self, event: Any) -> None:
        self._report(event.data_out)
        self._on_interrupt(event)

    def _on_interrupt(self, event: Any) -> None:
        if self._foreign.is_cancelled:
            event.interrupt()

    def _report(self, info: Any) -> None:
        self._foreign.nodes = max(int(info.mip_node_count), 0)
        bound = float(info.mip_dual_bound)
        if math.isfinite(bound) and bound < self._best_bound:
            self._best_bound = bound
            self._foreign.post(bound * self._scale + self._allowance)

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
            self._post_solution(highs.getSolution().col_value)
        self._report(info)
        return stopped[ended]
