"""Memory of branch and cut: what it needs, and how a limit is divided.

Linear programmes grow with the candidates and with the samples near a kink; both have an allowance
per candidate and per margin row, for every worker. The margin matrix, which workers share, is
written out where it fits, else its columns are made when asked for and a cache keeps some. Open
nodes get the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

from marginbn.solvers.memory import Needs

BASE = 60_000_000
"""HiGHS and the rows of one programme, whatever the problem."""

PER_WORKER = 15_000_000
"""The programme of each further worker, whatever the problem."""

PER_CANDIDATE = 500
PER_ROW = 200

LARGEST_DENSE = 1_500_000_000
"""Margin coefficients up to this size are written out where no limit says otherwise."""

LARGEST_CACHE = 500_000_000
"""Columns kept where the matrix is not written out."""

LARGEST_TREE = 1_500_000_000
"""Open nodes where no limit says otherwise."""


@dataclass(frozen=True)
class Division:
    """Bytes for the margin matrix written out, for columns kept instead, and for open nodes."""

    dense: int
    cache: int
    tree: int


def estimate(n_candidates: int, n_rows: int, n_jobs: int = 1) -> Needs:
    """At the least, with columns made on demand; and with the matrix written out."""
    programme = PER_CANDIDATE * n_candidates + PER_ROW * n_rows
    least = BASE + programme + (n_jobs - 1) * (PER_WORKER + programme)
    return Needs(least, least + 8 * n_rows * n_candidates)


def divide(
    n_candidates: int, n_rows: int, limit: int | None, spendable: float, n_jobs: int = 1
) -> Division:
    """Divide what may be spent; without a limit never more than the largest sizes above."""
    needed = estimate(n_candidates, n_rows, n_jobs)
    matrix = needed.full - needed.least
    fits = needed.full <= spendable and (limit is not None or matrix <= LARGEST_DENSE)
    left = max(0.0, spendable - (needed.full if fits else needed.least))
    cache = 0 if fits else int(min(LARGEST_CACHE, left / 2))
    tree = min(left - cache, LARGEST_TREE if limit is None else 2**62)
    return Division(matrix if fits else 0, cache, int(tree))
