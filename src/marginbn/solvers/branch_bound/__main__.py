"""Compile the engine's kernels ahead of time: ``python -m marginbn.solvers.branch_bound``."""

from __future__ import annotations

from marginbn.solvers.solve import get_solver

if __name__ == "__main__":
    get_solver("branch_bound").prepare()
