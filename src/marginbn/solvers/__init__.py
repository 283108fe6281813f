"""Solvers: siblings behind one protocol."""

from marginbn.solvers.result import SolveResult, Status, TracePoint, relative_gap
from marginbn.solvers.run import Deadline, Limits
from marginbn.solvers.solve import (
    Search,
    choose_solver,
    get_solver,
    solve_structure,
    solver_names,
)

__all__ = [
    "Deadline",
    "Limits",
    "Search",
    "SolveResult",
    "Status",
    "TracePoint",
    "choose_solver",
    "get_solver",
    "relative_gap",
    "solve_structure",
    "solver_names",
]
