"""Memory of a problem that has not been made yet, as its solver will count it."""

from __future__ import annotations

import math

from marginbn.problem.problem import ProblemSize
from marginbn.solvers.branch_bound.needs import Shape
from marginbn.solvers.branch_cut.needs import estimate
from marginbn.solvers.dynamic import MAX_BYTES, bytes_needed
from marginbn.solvers.memory import Needs


def estimate_needs(
    size: ProblemSize, max_parents: int, *, class_restricted: bool = True, n_jobs: int = 1
) -> Needs:
    """Memory that solver ``"auto"`` needs for a problem of such a size.

    Constant features and required or forbidden arcs make it less.
    """
    n = size.n_variables - 1
    if class_restricted and max_parents <= 2 and n > 0:
        n_class_sets = sum(math.comb(n, count) for count in range(max_parents + 1))
        return Shape(n, n_class_sets, size.n_margin_rows).needs(n_jobs)
    tables = bytes_needed(size.n_variables) if size.n_variables < 64 else MAX_BYTES + 1
    if size.n_margin_rows == 0 and tables <= MAX_BYTES:
        return Needs(tables, tables)
    return estimate(size.n_candidates, size.n_margin_rows, n_jobs)
