"""What dynamic programming needs, from the sizes of a problem."""

from __future__ import annotations

import math

from marginbn.solvers.memory import Needs

FEW_VARIABLES = 31
"""Up to so many it is the first choice for decomposable scores."""

TABLE_BYTES, TRACE_BYTES = 17, 9
"""A place of a table, and what is kept of a set for the way back."""


def list_bytes(n_candidates: int) -> int:
    """Sorted lists of parent sets, and what else a solve takes whatever the problem."""
    return 16_000_000 + 48 * n_candidates


def needs(n_variables: int, n_candidates: int) -> Needs:
    """The lists; and two layers of sets of variables, one of them as a table that grows, with the
    way back, if no set is left out.
    """
    lists, widest = list_bytes(n_candidates), math.comb(n_variables, n_variables // 2)
    return Needs(lists, lists + 7 * TABLE_BYTES * widest + TRACE_BYTES * 2**n_variables)
