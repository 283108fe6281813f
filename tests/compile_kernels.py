"""Compile all kernels before the suite, side by side, not in every one of its processes."""

from __future__ import annotations

import subprocess
import sys

SOLVER = "from marginbn.solvers.solve import get_solver; get_solver({!r}).prepare()"

PARTS = [
    SOLVER.format("branch_bound"),
    "from marginbn.proof.write import warm_up_forests; warm_up_forests()",
    SOLVER.format("branch_cut"),
    SOLVER.format("dp"),
    "from marginbn.solvers.branch_cut.engine import warm_up_hull; warm_up_hull()",
]
"""What each process compiles. What else is compiled takes a few seconds."""

if __name__ == "__main__":
    running = [subprocess.Popen([sys.executable, "-c", code]) for code in PARTS]
    sys.exit(max(process.wait() for process in running))
