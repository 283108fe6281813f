"""Compile the engine's kernels ahead of time: ``python -m marginbn.solvers.branch_bound``."""

from __future__ import annotations

from marginbn.solvers.branch_bound import warm_up

if __name__ == "__main__":
    warm_up()
