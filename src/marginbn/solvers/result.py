"""What a solve returns: structure, objective, bound, gap, status and the trace; and how a result is
checked again, from the problem's definition alone.

**The gap.** With objective z (best structure found) and bound Z >= z (proven upper bound)

    relative_gap = (Z - z) / max(s, |Z|, |z|)

which is sane for every sign: zero exactly when the bound is met, never more than 2. An optimum of 0
is an ordinary case; s, the scale of the problem (:attr:`StructureProblem.scale`), says what small
means there, and grows with the weights as z and Z do: no unit of weight makes a gap look smaller.
The paper's table 1 uses 100 (Z - z) / Z, the same number in per cent whenever 0 <= z and Z >= s.

**Scores with an error.** Where rounding can have moved the scores of two structures by e each
(:attr:`StructureProblem.error`), Z is 2 e above the bound for the rounded scores: it bounds the
exact optimum, and the gap the exact loss. If nothing is left to search and the gap is too wide all
the same, the status is ROUNDING.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from enum import StrEnum
from html import escape

import numpy as np
from numpy.typing import ArrayLike

from marginbn.exceptions import InputError, SolverError
from marginbn.problem.array_types import IntArray
from marginbn.problem.encoded import PIECE
from marginbn.problem.masks import members_of
from marginbn.problem.problem import StructureProblem
from marginbn.problem.structure import Structure, is_acyclic


def fingerprint(problem: StructureProblem) -> str:
    """SHA-256 of everything that the optimum depends on; names and labels do not matter.

    The margin coefficients are not written out: data, kind and smoothing determine them.
    """
    digest = hashlib.sha256(b"marginbn problem 1\0")
    candidates = problem.candidates
    members, lengths = members_of(candidates.masks)
    numbers = [candidates.n_variables, problem.n_samples, problem.n_rows]
    for integers in (numbers, candidates.child, lengths, members):
        _add(digest, integers, "<i8")
    _add(digest, problem.linear, "<f8")
    if problem.margins is not None:
        data = problem.margins.data
        digest.update(f"{problem.margins.kind}\0".encode())
        _add(digest, data.arities, "<i8")
        _add(digest, data.codes, "<i8")
        settings = [problem.gamma, problem.margins.smoothing]
        for reals in (data.weights, problem.sample_weights, settings):
            _add(digest, reals, "<f8")
    return digest.hexdigest()


def _add(digest: hashlib._Hash, values: ArrayLike, dtype: str) -> None:
    """Shape first, so that no two lists of arrays look alike; then some rows at a time: never a
    second table.
    """
    array = np.asarray(values)
    digest.update(f"{array.shape}\0".encode())
    for begin in range(0, len(array), PIECE):
        digest.update(np.ascontiguousarray(array[begin : begin + PIECE], dtype=dtype).tobytes())


def relative_gap(objective: float, bound: float, scale: float = 1.0) -> float:
    """Gap between objective and bound, relative to the larger of the two in size.

    ``scale`` is the least size to divide by: that of the problem (``problem.scale``,
    ``result.scale``). The default is right for two numbers in nats of which nothing else is known.

    Examples
    --------
    >>> relative_gap(99.0, 100.0)
    0.01
    >>> relative_gap(-100.0, -99.0)
    0.01
    >>> relative_gap(0.0, 0.0)
    0.0
    >>> relative_gap(0.0, 0.5, scale=2.0)
    0.25
    """
    if bound <= objective:
        return 0.0
    if not (math.isfinite(objective) and math.isfinite(bound)):
        return math.inf
    return (bound - objective) / max(scale, abs(bound), abs(objective))


class Status(StrEnum):
    """How a solve ended; only ``OPTIMAL`` is a proof of optimality (to the gap tolerance).

    Examples
    --------
    >>> from marginbn.solvers import Status
    >>> Status.OPTIMAL == "optimal", Status("time_limit") is Status.TIME_LIMIT
    (True, True)
    """

    OPTIMAL = "optimal"
    GAP_LIMIT = "gap_limit"
    TIME_LIMIT = "time_limit"
    WORK_LIMIT = "work_limit"
    NODE_LIMIT = "node_limit"
    MEMORY_LIMIT = "memory_limit"
    INTERRUPTED = "interrupted"
    ROUNDING = "rounding"


MORE_WORK = "search=Search(work_limit=...)"
"""What raises the budget of work; the command line has max-margin, which has none, in its place."""

PROOF_TOLERANCE = 1e-6
"""A relative gap of at most this much is called optimal; a larger requested gap is a gap limit."""


SCORE_TOLERANCE = 1e-9
"""Relative difference allowed between a claimed and a recomputed objective: float summation."""


def allowance(value: float, rounding: float) -> float:
    """How far two computations of the same objective may differ by rounding; ``rounding`` is that
    of the problem (:attr:`StructureProblem.rounding`).
    """
    return max(SCORE_TOLERANCE * abs(value), rounding) if math.isfinite(value) else 0.0


@dataclass(frozen=True)
class TracePoint:
    """Best objective and bound known ``seconds`` after the start; infinite while unknown.

    ``scale`` is that of the problem, see :func:`relative_gap`; ``rows`` the weight of all rows, 0
    where the objective is not a sum over rows. ``proof`` are the seconds after the start between
    which the proof is likely (:data:`~marginbn.solvers.run.ROOT_GAP_LAW`). Both are for progress
    lines: a model file does not keep them, and points are equal without them.

    Examples
    --------
    >>> from marginbn.solvers import TracePoint
    >>> point = TracePoint(seconds=1.5, objective=99.0, bound=100.0, rows=50.0, proof=(4.2, 17.1))
    >>> point.gap, point.details
    (0.01, '0.02 nats per row, proof after about 4 to 17 s')
    """

    seconds: float
    objective: float
    bound: float
    scale: float = 1.0
    rows: float = field(default=0.0, compare=False)
    proof: tuple[float, float] | None = field(default=None, compare=False)

    @property
    def gap(self) -> float:
        """Relative gap at this moment."""
        return relative_gap(self.objective, self.bound, self.scale)

    @property
    def forecast(self) -> str:
        """When the proof is likely, in words; empty where that is not known."""
        if self.proof is None:
            return ""
        return f"proof after about {self.proof[0]:.0f} to {self.proof[1]:.0f} s"

    @property
    def details(self) -> str:
        """The gap per row, which says something with objectives near zero too, and the forecast."""
        gap = self.bound - self.objective
        per_row = f"{gap / self.rows:.2g} nats per row" if self.rows and math.isfinite(gap) else ""
        return ", ".join(filter(None, (per_row, self.forecast)))


@dataclass(frozen=True, eq=False)
class SolveResult:
    """The answer of a solver, always with a bound.

    Parameters
    ----------
    structure, selection
        Best structure found, also as the flat candidate index of each variable.
    objective, bound
        Its value and a proved upper bound on every structure's value, in nats.
    status
        How the solve ended.
    trace
        (seconds, objective, bound) whenever one of the two improved.
    seconds, nodes, solver
        Wall-clock time, number of tree nodes (0 where there is no tree) and the solver's name.
        After going on from a checkpoint time and trace are those of the last call, nodes those of
        all calls.
    scale
        What the gap is relative to where objective and bound are small (:func:`relative_gap`).
    work
        Seconds of work that ``branch_bound`` counts, by operations and not by a clock.

    Examples
    --------
    >>> import numpy as np
    >>> from marginbn import StructureProblem, Variable, enumerate_candidates, solve_structure
    >>> variables = (Variable("class", ("0", "1")), Variable("x", ("0", "1")))
    >>> problem = StructureProblem(
    ...     enumerate_candidates(2, 1), np.array([-3.0, -2.0, -5.0, -1.0]), variables
    ... )
    >>> result = solve_structure(problem, "dp")
    >>> result.is_optimal, result.objective, result.bound, result.structure.arcs
    (True, -4.0, -4.0, ((0, 1),))
    """

    structure: Structure
    selection: IntArray
    objective: float
    bound: float
    status: Status
    trace: tuple[TracePoint, ...]
    seconds: float
    solver: str
    nodes: int = 0
    scale: float = 1.0
    work: float = 0.0

    @property
    def gap(self) -> float:
        """Relative gap, see :func:`relative_gap`."""
        return relative_gap(self.objective, self.bound, self.scale)

    @property
    def is_optimal(self) -> bool:
        """Whether optimality is proved."""
        return self.status is Status.OPTIMAL

    @property
    def is_closed(self) -> bool:
        """Whether the search reached what it was asked for: a proof, or the requested gap."""
        return self.status in (Status.OPTIMAL, Status.GAP_LIMIT)

    def _repr_html_(self) -> str:
        """The numbers as notebooks show them."""
        rows = {
            "status": str(self.status).replace("_", " "),
            "objective": f"{self.objective:.6g}",
            "bound": f"{self.bound:.6g}",
            "gap": f"{100 * self.gap:.2g} %",
            "arcs": str(len(self.structure.arcs)),
            "solver": f"{self.solver}, {self.nodes} nodes, {self.seconds:.2f} s",
        }
        lines = "".join(
            f"<tr><th>{name}</th><td>{escape(text)}</td></tr>" for name, text in rows.items()
        )
        return f"<table>{lines}</table>"


def check_result(problem: StructureProblem, result: SolveResult) -> None:
    """Raise :class:`SolverError` unless the result is consistent.

    The structure must be acyclic, made of candidates and the one that is selected, the objective
    must be what the definition gives, the bound must not lie below it and must meet it if
    the status says optimal; in the trace objectives only rise, bounds only fall and no bound lies
    below any objective.
    """
    if not is_acyclic(result.structure.parents):
        raise SolverError(f"solver {result.solver!r} returned a cyclic graph")
    _check_selection(problem, result)
    recomputed = problem.score(result.structure)
    if abs(recomputed - result.objective) > allowance(recomputed, problem.rounding):
        raise SolverError(
            f"solver {result.solver!r} claims the objective {result.objective}, "
            f"the definition gives {recomputed}"
        )
    if not result.bound >= result.objective:
        raise SolverError(
            f"solver {result.solver!r} claims the bound {result.bound}, "
            f"which lies below the objective {result.objective}"
        )
    gap = relative_gap(result.objective, result.bound, problem.scale)
    if result.status is Status.OPTIMAL and gap > PROOF_TOLERANCE:
        raise SolverError(
            f"solver {result.solver!r} claims an optimal structure, but objective "
            f"{result.objective} and bound {result.bound} leave a gap of {gap:.3g}"
        )
    _check_trace(result, problem.rounding)


def _check_selection(problem: StructureProblem, result: SolveResult) -> None:
    try:
        selection = problem.candidates.selection(result.structure)
    except InputError as error:
        raise SolverError(f"solver {result.solver!r}: {error}") from error
    if not np.array_equal(selection, result.selection):
        raise SolverError(
            f"solver {result.solver!r} returned the selection {result.selection}, "
            f"but its structure is the selection {selection}"
        )


def _check_trace(result: SolveResult, rounding: float) -> None:
    seconds, objective, bound = 0.0, -math.inf, math.inf
    for point in result.trace:
        falls = point.bound <= bound + allowance(bound, rounding)
        # every comparison with NaN is false, so a NaN is refused here as well
        if not (point.seconds >= seconds and falls and objective <= point.objective <= point.bound):
            raise SolverError(f"solver {result.solver!r} has an inconsistent trace at {point}")
        seconds, objective, bound = point.seconds, point.objective, point.bound
    if objective > result.objective + allowance(objective, rounding):
        raise SolverError(f"solver {result.solver!r} once had a better structure: {objective}")
    if bound < result.objective - allowance(bound, rounding):
        raise SolverError(f"solver {result.solver!r} once claimed a bound that was too low")
