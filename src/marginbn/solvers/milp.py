"""Formulation (19), the paper's method: solved by HiGHS, or written as MPS or LP file for others.

highspy is imported when it is first needed, never before.

HiGHS blocks, so it works in a thread of its own and only *posts* what it finds; the calling thread
reads the posts, reports them to the :class:`Run`, which calls the user's callback, and watches the
clock and Ctrl-C. To end the work it sets a flag that the thread polls whenever HiGHS calls back.
Should HiGHS not call back in time (a long presolve, a large linear programme), the caller leaves
without it: the thread stops at its next poll, and what it still posts is discarded.
"""

from __future__ import annotations

import contextlib
import gzip
import math
import os
import shutil
import tempfile
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from types import ModuleType
from typing import Any

import numpy as np

from marginbn.exceptions import InputError, MissingDependencyError, SolverError
from marginbn.files import open_new, replacing
from marginbn.problem import formulation
from marginbn.problem.array_types import FloatArray, IntArray
from marginbn.problem.formulation import MILP
from marginbn.problem.problem import StructureProblem
from marginbn.problem.structure import is_acyclic
from marginbn.solvers.memory import Needs
from marginbn.solvers.result import Status
from marginbn.solvers.run import Run, Solver, solver_thread
from marginbn.solvers.tree_search import box_bound

SUFFIXES = (".mps", ".lp", ".mps.gz", ".lp.gz")
"""File formats that :func:`write_formulation` writes."""


def load_highspy() -> ModuleType:
    """The highspy module, or an error that says what to do."""
    try:
        import highspy
    except ImportError as error:
        if "undefined symbol" in str(error):
            raise MissingDependencyError(
                "highspy cannot be loaded together with another copy of the HiGHS library in this "
                "process (ortools ships one; highspy 1.15 and later clash with it): "
                'pip install "highspy>=1.14,<1.15"'
            ) from error
        raise MissingDependencyError(
            "solver 'highs' needs highspy: pip install \"highspy>=1.14,<1.15\""
        ) from error
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
        A name ending in ``.mps``, ``.lp``, ``.mps.gz`` or ``.lp.gz``.

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
    suffix = next((s for s in SUFFIXES if target.name.lower().endswith(s)), None)
    if suffix is None:
        raise InputError(f"path must end in one of {', '.join(SUFFIXES)}, got {str(target)!r}")
    highs = load_highspy().Highs()
    highs.silent()
    milp = formulation.formulate(problem)
    pass_to_highs(highs, milp)
    for column, name in enumerate(milp.column_names()):
        highs.passColName(column, name)
    for row, name in enumerate(milp.row_names()):
        highs.passRowName(row, name)
    _write(highs, target, suffix)
    return target


def _write(highs: Any, target: Path, suffix: str) -> None:
    """All or nothing: HiGHS takes the format from the name and does not compress."""
    plain = suffix.removesuffix(".gz")
    if plain == suffix:
        with replacing(target, plain) as draft:
            _write_plain(highs, draft, target)
        return
    with (
        tempfile.TemporaryDirectory(dir=target.parent) as folder,
        replacing(target) as packed,
    ):
        draft = os.path.join(folder, f"formulation{plain}")
        _write_plain(highs, draft, target)
        with (
            open(draft, "rb") as source,
            open_new(packed) as file,
            gzip.GzipFile("", "wb", fileobj=file) as stream,
        ):
            shutil.copyfileobj(source, stream)


def _write_plain(highs: Any, draft: str, target: Path) -> None:
    if highs.writeModel(draft) == load_highspy().HighsStatus.kError:
        raise SolverError(f"HiGHS could not write {str(target)!r}")


TICK = 0.05
"""Seconds between two polls of the clock; also how long Ctrl-C may wait on some systems."""

PATIENCE = 0.5
"""Seconds that a solver gets to wind up after it was asked to stop."""

PATIENCE_SHARE = 0.02
"""The same as a share of the time already spent, for long solves."""


class Cancelled(Exception):  # noqa: N818  (an ending, not an error)
    """Raised inside the working thread to leave it."""


class Channel:
    """What the working thread sees of the outside: posts out, the flag in."""

    def __init__(self) -> None:
        self.posts: SimpleQueue[IntArray | float | Status | BaseException] = SimpleQueue()
        self._cancelled = threading.Event()
        self.nodes = 0

    @property
    def is_cancelled(self) -> bool:
        """Whether the work should end now."""
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """Ask the work to end."""
        self._cancelled.set()

    def poll(self) -> None:
        """Leave the work if it should end."""
        if self.is_cancelled:
            raise Cancelled

    def post(self, finding: IntArray | float) -> None:
        """Report a selection (an array) or an upper bound (a number)."""
        self.posts.put(finding)


Work = Callable[[Channel], Status]
"""Ends with the limit that the solver ran into; GAP_LIMIT if it thinks that it is done."""


def follow(work: Work, run: Run) -> Status:
    """Do ``work`` in a thread until it ends or a limit, the callback or Ctrl-C ends it."""
    channel = Channel()
    solver_thread(partial(_perform, work, channel), "marginbn foreign solver").start()
    try:
        ending, stopped = _attend(channel, run)
        return _wind_up(channel, run, stopped) if ending is None else ending
    except KeyboardInterrupt:
        return _wind_up(channel, run, Status.INTERRUPTED)
    finally:
        channel.cancel()
        run.nodes = channel.nodes


def _attend(channel: Channel, run: Run) -> tuple[Status | None, Status]:
    """Listen until the work ends, or until there is a reason to stop it."""
    while True:
        run.save_if_due()
        ending = _listen(channel, run, min(TICK, run.remaining()))
        if ending is not None:
            return ending, ending
        if run.limit is not None:
            return None, run.limit
        if run.is_closed:
            return None, Status.GAP_LIMIT


def _perform(work: Work, channel: Channel) -> None:
    """Body of the thread: whatever happens, one last post says how it ended."""
    try:
        channel.posts.put(work(channel))
    except Cancelled:
        channel.posts.put(Status.INTERRUPTED)
    except BaseException as error:  # handed over, raised again by the listener
        channel.posts.put(error)


def _listen(channel: Channel, run: Run, seconds: float = TICK) -> Status | None:
    """Read one post, waiting that long at most; returns how the work ended, if it has."""
    try:
        post = channel.posts.get(timeout=seconds)
    except Empty:
        return None
    if isinstance(post, Status):
        return post
    if isinstance(post, BaseException):
        raise post
    if isinstance(post, float):
        run.improve_bound(post)
    elif is_acyclic([run.problem.candidates.parents[int(k)] for k in post]):
        run.offer(post)  # a cycle within the solver's tolerances is no structure
    return None


def _wind_up(channel: Channel, run: Run, stopped: Status) -> Status:
    """Ask the solver to stop and read its last posts, for as long as patience lasts."""
    channel.cancel()
    clock = run.deadline
    leave = clock.elapsed() + max(PATIENCE, PATIENCE_SHARE * clock.elapsed())
    ending: Status | None = None
    with contextlib.suppress(KeyboardInterrupt):  # a second Ctrl-C: leave at once
        while ending is None and clock.elapsed() < leave:
            ending = _listen(channel, run)
    return stopped


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

    def __init__(self, problem: StructureProblem, first: IntArray, channel: Channel) -> None:
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

    def post_selection(self, eta: FloatArray) -> None:
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
