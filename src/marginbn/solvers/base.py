"""The solver protocol, the registry and the one entry point.

Every solver takes a :class:`StructureProblem` and returns a :class:`SolveResult` with a bound.
:func:`solve_structure` chooses, runs and judges: whatever a solver claims is re-checked before
anybody sees it.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Protocol

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from marginbn.exceptions import InputError, MissingDependencyError
from marginbn.problem import StructureProblem
from marginbn.solvers.check import check_result
from marginbn.solvers.events import Callback
from marginbn.solvers.limits import Limits
from marginbn.solvers.result import SolveResult
from marginbn.structure import Structure


class Solver(Protocol):
    """What every solver offers."""

    name: str

    def can_solve(self, problem: StructureProblem) -> str | None:
        """``None`` if the solver can handle the problem, else the reason why not."""

    def solve(
        self,
        problem: StructureProblem,
        *,
        limits: Limits,
        start: NDArray[np.int64] | None = None,
        callback: Callback | None = None,
        seed: int = 0,
        n_jobs: int = 1,
    ) -> SolveResult:
        """Solve the problem; a limit or an interrupt is a normal ending."""


# name -> (module, class, module that must be installed, line that installs it)
_REGISTRY: dict[str, tuple[str, str, str, str]] = {
    "branch_bound": (
        "marginbn.solvers.branch_bound",
        "BranchBoundSolver",
        "numba",
        "pip install numba",
    ),
    "branch_cut": (
        "marginbn.solvers.branch_cut",
        "BranchCutSolver",
        "highspy",
        'pip install "highspy>=1.14,<1.15"',
    ),
    "dp": ("marginbn.solvers.dynamic", "DynamicProgrammingSolver", "numpy", "pip install numpy"),
    "exhaustive": ("marginbn.solvers.exhaustive", "ExhaustiveSolver", "numpy", "pip install numpy"),
    "highs": (
        "marginbn.solvers.highs",
        "HighsSolver",
        "highspy",
        'pip install "highspy>=1.14,<1.15"',
    ),
    "scip": ("marginbn.solvers.scip", "ScipSolver", "pyscipopt", 'pip install "marginbn[scip]"'),
}

AUTO_ORDER = ("branch_bound", "dp", "branch_cut")
"""Solvers that ``"auto"`` tries, in this order: the first that can solve the problem does."""


def solver_names() -> tuple[str, ...]:
    """All solver names, installed or not."""
    return tuple(_REGISTRY)


def available_solvers() -> tuple[str, ...]:
    """Names of the solvers whose packages are installed; nothing is imported to find out."""
    return tuple(name for name, entry in _REGISTRY.items() if find_spec(entry[2]) is not None)


def get_solver(name: str) -> Solver:
    """The solver of that name, or a clear error with the line that installs it."""
    if name not in _REGISTRY:
        raise InputError(f"solver must be 'auto' or one of {sorted(_REGISTRY)}, got {name!r}")
    module, class_name, needed, hint = _REGISTRY[name]
    if find_spec(needed) is None:
        raise MissingDependencyError(f"solver {name!r} needs {needed}: {hint}")
    make: Callable[[], Solver] = getattr(import_module(module), class_name)
    return make()


def choose_solver(problem: StructureProblem, name: str = "auto") -> Solver:
    """The named solver if it can solve the problem; for ``"auto"`` the first that can."""
    if name != "auto":
        solver = get_solver(name)
        reason = solver.can_solve(problem)
        if reason is not None:
            raise InputError(f"solver {name!r} cannot solve this problem: {reason}")
        return solver
    for candidate in AUTO_ORDER:
        if candidate in available_solvers():
            solver = get_solver(candidate)
            if solver.can_solve(problem) is None:
                return solver
    raise InputError('no installed solver can solve this problem: pip install "highspy<1.15"')


def solve_structure(
    problem: StructureProblem,
    solver: str = "auto",
    *,
    time_limit: float | None = None,
    node_limit: int | None = None,
    gap_tolerance: float = 1e-6,
    start: Structure | None = None,
    callback: Callback | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
) -> SolveResult:
    """Find the best structure of a problem, with a proven bound.

    Parameters
    ----------
    problem
        See :func:`marginbn.problem.margin_problem` and :func:`marginbn.problem.linear_problem`.
    solver
        ``"auto"`` or a name from :func:`available_solvers`.
    time_limit, node_limit, gap_tolerance
        Limits; reaching one is a normal ending and shows in the status.
    start
        A structure to start from; it must be made of the problem's candidates.
    callback
        Called with a :class:`TracePoint` at every improvement; a true return value stops.
    seed
        Seed of the solver's heuristics.
    n_jobs
        Workers, where the solver can use them; None means 1, -1 all cores.

    Returns
    -------
    SolveResult
        Re-checked: acyclic, objective recomputed from the definition, bound not below it.
    """
    limits = Limits(time=time_limit, nodes=node_limit, gap=gap_tolerance)
    chosen = choose_solver(problem, solver)
    selection = None if start is None else problem.candidates.selection(start)
    result = chosen.solve(
        problem,
        limits=limits,
        start=selection,
        callback=callback,
        seed=seed,
        n_jobs=effective_n_jobs(n_jobs),
    )
    check_result(problem, result)
    return result
