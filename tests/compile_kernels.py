"""Compile the kernels of both engines before the suite, not in every one of its processes."""

from __future__ import annotations

from marginbn.solvers.run import Run
from marginbn.solvers.solve import get_solver, solve_with
from problems import small_linear_problem, small_margin_problem

if __name__ == "__main__":
    problems = (small_margin_problem(), small_margin_problem(margin="binary"))
    for name in ("branch_bound", "branch_cut"):
        for problem in (*problems, small_linear_problem()):
            if get_solver(name).can_solve(problem) is None:
                solve_with(get_solver(name), Run(problem, n_jobs=2))
